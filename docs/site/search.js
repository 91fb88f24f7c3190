// The search takes every word as the beginning of a word, so that "a" finds whatever begins with
// it. Words that say nothing of the subject are left out, short ones are searched as they are, and
// endings are cut. A query with operators (quotes, + - * ~ ^, a field as in title:) is not changed; a
// colon alone is none, because messages and sentences have colons.
// tests/site_search.py does the same with these three constants.
const LEFT_OUT = "a about an and any are as at be but by can cannot could do does doing for from get has have how i if in into is it its just like make me mine must my need needs no not of on one or our out own please robot robots s should so some t than that the their them then there these they this to too up use using want was we what when where which who whose why will with without would you your"
const ENDING = /(ations?|ings?|ed|es|e|s)$/
const SHORTEST_STEM = 4
function asked(query) {
  if (/["*~^]|\b(title|tags|text):|(^|\s)[+-]/.test(query)) return query
  const words = query.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter((word) => word)
  const kept = words.filter((word) => !LEFT_OUT.split(" ").includes(word))
  return (kept.length ? kept : words).map((word) => {
    if (word.length < 3) return `${word}^1`
    const stem = word.replace(ENDING, "")
    return stem.length < SHORTEST_STEM ? word : stem
  }).join(" ")
}
const QUERY = 2 // the type of a message that asks, in the theme's worker
window.Worker = class extends window.Worker {
  postMessage(message, ...rest) {
    const query = message && message.type === QUERY && typeof message.data === "string"
    super.postMessage(query ? { ...message, data: asked(message.data) } : message, ...rest)
  }
}
