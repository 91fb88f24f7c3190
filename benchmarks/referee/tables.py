"""Markdown of the page: tables, their cells, pictures, lines of text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence


def picture(what: str, name: str) -> str:
    """One of docs/pictures/referee.py."""
    return f"![{what}](pictures/referee-{name}.png)"


def filled(text: str) -> str:
    """In lines of a hundred letters."""
    return textwrap.fill(
        text.replace("\n", " "), 100, break_long_words=False, break_on_hyphens=False
    )


def figure(x: float, how: str = ".0e") -> str:
    """A number, or nothing."""
    return "" if math.isnan(x) else format(x, how)


def count(x: int | None) -> str:
    """A whole number, or nothing."""
    return "" if x is None else str(x)


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], words: int, left: Sequence[int] = ()
) -> str:
    """Aligned Markdown; the first `words` columns and those in `left` begin at the left."""
    to_left = {*range(words), *left}
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = [("-" * w) if i in to_left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join(
        "| " + " | ".join(
            x.ljust(w) if i in to_left else x.rjust(w)
            for i, (x, w) in enumerate(zip(line, widths, strict=True))
        ) + " |"
        for line in (head, rule, *rows)
    )  # fmt: skip
