"""Short HTML tables by which notebooks show values. Showing a value never raises an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

__all__ = ["Cells", "folded", "html_table", "named"]

Cells = tuple[object, ...]
"""A line of a table: its cells."""

_CELL = "text-align: left; vertical-align: top; padding: 1px 10px 1px 0"


def html_table(value: object, parts: Callable[[], Iterable[Cells]]) -> str:
    """A table whose title is the `repr` of a value; the title alone if the lines cannot be made.

    Parameters
    ----------
    value : object
        Its `repr` without angle brackets is the title; or the title as text.
    parts : function () -> lines
        A line is a tuple of cells. Texts are escaped, except cells made by `folded`.
    """
    title = _title(value)
    try:
        lines = "".join(map(_line, parts()))
    except Exception:  # otherwise a notebook would show a traceback instead of the value
        lines = ""
    return f"<div><b>{escape(title)}</b><table>{lines}</table></div>"


def named(names: Sequence[str], most: int = 8) -> str:
    """Names in a cell: the first `most`, and the number of the others."""
    shown = ", ".join(map(str, names[:most]))
    return shown + (f", ... ({len(names) - most} more)" if len(names) > most else "") or "none"


class folded:
    """A long text in a cell, shown after a click on a word."""

    def __init__(self, word: str, text: str) -> None:
        self.html = (
            f"<details><summary>{escape(word)}</summary>"
            f'<pre style="white-space: pre-wrap">{escape(text)}</pre></details>'
        )


def _title(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        text = repr(value).split("\n", 1)[0]
    except Exception:
        text = type(value).__name__
    return text.removeprefix("<").removesuffix(">") if text.startswith("<") else text


def _line(cells: Cells) -> str:
    inside = (c.html if isinstance(c, folded) else escape(str(c)) for c in cells)
    return "<tr>" + "".join(f'<td style="{_CELL}">{c}</td>' for c in inside) + "</tr>"
