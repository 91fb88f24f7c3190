"""What the search of the site finds first.

The theme ranks titles, tags and texts (boosts in mkdocs.yml). Added here, before it writes its
index: terms of the glossary and words of users as tags of the page or section that treats them, a
weight for each kind of page, and of an example only its title and what it is about.
tests/test_site.py asks in users' words and compares the page that comes first.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority, get_plugin_logger

log = get_plugin_logger("search")

GLOSSARY = Path(__file__).resolve().parents[1] / "glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \| \[[^\]]+\]\(([^)]+)\)", re.MULTILINE)

WEIGHTS = {
    "reference/": 0.5,
    "examples/": 0.25,
    "derivations": 0.1,
    "referee": 0.1,
    "decisions": 0.05,
    "architecture": 0.05,
    "benchmarks/": 0.1,
    "CHANGELOG": 0.05,
    "CONTRIBUTING": 0.05,
    "tests/": 0.02,
}
"""By the beginning of the address; a page that is not named has 1."""

WORDS: dict[str, str] = {}
"""Words of users for a page or section that the page and the glossary do not have in a title."""


@event_priority(100)
def on_post_build(config: Any) -> None:
    """Before the search writes its index."""
    entries = config.plugins["material/search"].search_index.entries
    tags = glossary_tags()
    for address, words in WORDS.items():
        tags.setdefault(address, []).append(words)
    places = {entry["location"] for entry in entries}
    for address in tags.keys() - places:
        log.warning("words for the search of %s, which is no page or section", address)
    for entry in entries:
        address = entry["location"]
        if of_example(address):
            entry["text"] = "" if "#" in address else first_paragraph(entry["text"])
        if address in tags:
            entry["tags"] = tags[address]
        entry["boost"] = next((w for start, w in WEIGHTS.items() if address.startswith(start)), 1)


def glossary_tags() -> dict[str, list[str]]:
    """Terms and synonyms, by the address of the page or section that their row links to."""
    tags: dict[str, list[str]] = {}
    for term, synonyms, target in ROW.findall(GLOSSARY.read_text("utf-8")):
        path, mark, anchor = target.partition("#")
        path = posixpath.normpath(path).removeprefix("../").removesuffix(".md")
        tags.setdefault(f"{path}.html{mark}{anchor}", []).append(f"{term}, {synonyms}")
    return tags


def of_example(address: str) -> bool:
    return address.startswith("examples/") and ".py" in address


def first_paragraph(text: str) -> str:
    return text.partition("</p>")[0] + "</p>"
