// The search of the site, before it begins: the words of a question, and a file without a server.

// Opened from a file, a browser allows no workers: the search then runs in a hidden frame.
// It looks for the name IFrameWorker, to find the scripts of languages beside its own.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      inside.importScripts = (...urls) =>
        urls.reduce((done, next) => done.then(() => this.load(next)), Promise.resolve())
      this.ready = this.load(url)
    }
    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script")
        script.src = new URL(url, location.href)
        script.onload = resolve
        script.onerror = () => reject(new Error(`cannot load ${url}`))
        this.frame.contentDocument.body.appendChild(script)
      })
    }
    postMessage(data) {
      const inside = this.frame.contentWindow
      this.ready = this.ready.then(() => new Promise((done) =>
        setTimeout(() => done(inside.dispatchEvent(new MessageEvent("message", { data }))))))
    }
    terminate() {
      this.frame.remove()
    }
  }
}

// The search takes every word as the beginning of a word, so that "a" finds whatever begins with
// it. Words that say nothing of the subject are left out, short ones are searched as they are, and
// endings are cut. A query with operators (quotes, + - * ~ ^ :) is not changed.
// tests/site_search.py does the same with these three constants.
const LEFT_OUT = "a about an and any are as at be but by can cannot could do does doing for from get has have how i if in into is it its just like make me mine must my need needs no not of on one or our out own please robot robots s should so some t than that the their them then there these they this to too up use using want was we what when where which who whose why will with without would you your"
const ENDING = /(ations?|ings?|ed|es|e|s)$/
const SHORTEST_STEM = 4
function asked(query) {
  if (/["*~^:]|(^|\s)[+-]/.test(query)) return query
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
