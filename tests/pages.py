"""Pages of the documentation that are one program: what a reader does, from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from support import ROOT

DOCS = ROOT / "docs"
ALL_PAGES = sorted(DOCS.rglob("*.md"))

IN_ORDER = "<!-- one program: its blocks run in this order, in one folder -->"
"""A page with this line shares names and files between its blocks; others run them one by one."""

FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A block of code: its language, the file it is saved as, its text, what it prints."""

    language: str
    title: str
    text: str
    printed: str | None


def is_one_program(page: Path) -> bool:
    return IN_ORDER in page.read_text(encoding="utf-8")


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page; a ``text`` block right behind one is what that prints."""
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for i, match in enumerate(found):
        language, title, body = match.groups()
        after = found[i + 1] if i + 1 < len(found) else None
        if language == "console":
            body, _, printed = body.partition("\n")
            yield Block(language, "", body, printed)
        elif language != "text":
            follows = after and after[1] == "text" and not text[match.end() : after.start()].strip()
            yield Block(language, title or "", body, after[3] if after and follows else None)


def rounded(text):
    """Sizes of rounding errors, and gaps above them, differ between machines."""
    text = re.sub(r"\d(\.\d)?e-1\d", "~0", text)
    return re.sub(r"\d(\.\d)?e\+1\d", "~inf", text).split()
