"""The search of the site in Python: what is found first, without a browser.

The theme searches with lunr 2.3.9 in its worker. This is its ranking for plain words:

- Terms: a text without its tags, split by the separator of the index, in small letters, without
  lunr's words that do not count; no stems (the pipeline of the index has none).
- Weight of a term in a field of a document, BM25 with b = 0 and k1 = 1.2: with tf, how often the
  term is in it, N documents, and n fields of documents that have it,
  ``log(1 + |N - n + 1/2| / (n + 1/2)) * 2.2 tf / (1.2 + tf) * boost of field * boost of document``,
  to three decimals.
- Score of a document: the sum of the weights of all terms that a word of the query begins, once
  for each word; over the length of the vector of these terms. A word with ``^1`` is the term.
- The theme multiplies it by ``1 + g^2``, g the share of the words that are found, and one more for
  the first entry of a page. A page has the score of its best entry.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from functools import cached_property
from pathlib import Path

from support import ROOT

K1 = 1.2
SCRIPT = (ROOT / "docs" / "site" / "search.js").read_text("utf-8")
(LEFT_OUT,) = (set(x.split()) for x in re.findall(r'^const LEFT_OUT = "(.*)"$', SCRIPT, re.M))
(ENDING,) = re.findall(r"^const ENDING = /(.*)/$", SCRIPT, re.M)
(SHORTEST_STEM,) = (int(x) for x in re.findall(r"^const SHORTEST_STEM = (\d+)$", SCRIPT, re.M))


def asked(query: str) -> str:
    """What docs/site/search.js hands to the search."""
    if re.search(r'["*~^]|\b(title|tags|text):|(^|\s)[+-]', query):
        return query
    words = [word for word in re.split(r"\W+", query.lower()) if word]
    kept = [word for word in words if word not in LEFT_OUT] or words
    stems = {word: re.sub(rf"{ENDING}", "", word) for word in kept}
    return " ".join(
        f"{word}^1" if len(word) < 3 else word if len(stems[word]) < SHORTEST_STEM else stems[word]
        for word in kept
    )


class SearchIndex:
    """The index of a site that is built, and the words that lunr leaves out of it."""

    def __init__(self, site: Path) -> None:
        index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
        (worker,) = site.glob("assets/javascripts/workers/search*.js")
        (words,) = re.findall(r'StopWordFilter\((\["a",.*?\])\)', worker.read_text("utf-8"))
        self.left_out = frozenset(json.loads(words))
        self.docs = index["docs"]
        self.boosts = {name: field["boost"] for name, field in index["config"]["fields"].items()}
        self.separator = re.compile(index["config"]["separator"])

    def terms(self, content: str | list[str]) -> list[str]:
        if isinstance(content, list):
            return [term for part in content for term in self.terms(part)]
        pieces = re.split(r"<[^>]*>", content)
        words = [word.lower() for piece in pieces for word in self.separator.split(piece)]
        return [word for word in words if word and word not in self.left_out]

    @cached_property
    def weights(self) -> dict[str, dict[int, float]]:
        """Of each term in each document, all fields together."""
        counts = [
            (i, field, Counter(self.terms(doc[field])))
            for i, doc in enumerate(self.docs)
            for field in self.boosts
            if doc.get(field)
        ]
        found = Counter(term for *_, terms in counts for term in terms)
        weights: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for i, field, terms in counts:
            boost = self.boosts[field] * self.docs[i].get("boost", 1)
            for term, tf in terms.items():
                n = found[term]
                idf = math.log(1 + abs((len(self.docs) - n + 0.5) / (n + 0.5)))
                weights[term][i] += round(idf * (K1 + 1) * tf / (K1 + tf) * boost, 3)
        return weights

    @cached_property
    def vocabulary(self) -> list[str]:
        return sorted(self.weights)

    def begun(self, word: str) -> list[str]:
        """Terms that a word of a query finds."""
        if word.endswith("^1"):
            return [word[:-2]] if word[:-2] in self.weights else []
        at = bisect_left(self.vocabulary, word)
        end = bisect_left(self.vocabulary, word + "\U0010ffff")
        return self.vocabulary[at:end]

    def pages(self, query: str) -> list[tuple[str, float]]:
        """Pages that are found for a question, the best first, with their scores."""
        words = asked(query).split()
        times = Counter(term for word in words for term in self.begun(word))
        scores: dict[int, float] = defaultdict(float)
        for term, count in times.items():
            for i, weight in self.weights[term].items():
                scores[i] += count * weight
        length = math.sqrt(sum(count**2 for count in times.values()))
        first: dict[str, int] = {}
        for i, doc in enumerate(self.docs):
            first.setdefault(doc["location"].partition("#")[0], i)
        best: dict[str, float] = defaultdict(float)
        plain = {word.removesuffix("^1") for word in words}
        for i, score in scores.items():
            page = self.docs[i]["location"].partition("#")[0]
            there = [term for term in times if i in self.weights[term]]
            seen = {word for word in plain if any(term.startswith(word) for term in there)}
            missed = {word for word in plain - seen if word not in self.left_out}
            g = (first[page] == i) + len(seen) / max(1, len(seen | missed))
            best[page] = max(best[page], score / length * (1 + g**2))
        return sorted(best.items(), key=lambda x: -x[1])
