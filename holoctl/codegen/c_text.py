"""Texts of C: templates to fill, numbers and arrays as C reads them.

The templates are in ``templates/``, with ``@{name}`` where something is filled in. What the names
stand for is told by the fields of frozen values, beside what fills them in.
"""

from __future__ import annotations

import math
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["array", "comment", "filled", "number"]

_TEMPLATES = Path(__file__).parent / "templates"


class _At(Template):
    """``@{name}``, for C and CMake use the dollar or nothing."""

    delimiter = "@"


def filled(name: str, shared: Any = None, own: Any = None) -> str:
    """A template with its names filled in; `name` is that of the file without ``.in``.

    Parameters
    ----------
    name : str
    shared, own : frozen value or types.SimpleNamespace, optional
        Their fields are what the names of the template stand for: what several templates share,
        and what is of this one alone.

    Raises
    ------
    ValueError
        For a name of the template that is no field, a field that is in both, and one of its own
        that the template does not use.
    """
    template = _At((_TEMPLATES / f"{name}.in").read_text(encoding="utf-8"))
    fields = [vars(x) if x is not None else {} for x in (shared, own)]
    names = set(template.get_identifiers())
    for wrong, what in (
        (names - fields[0].keys() - fields[1].keys(), "without a field"),
        (fields[0].keys() & fields[1].keys(), "told twice"),
        (fields[1].keys() - names, "not in the template"),
    ):
        if wrong:
            raise ValueError(f"template {name}: {', '.join(sorted(wrong))}: {what}")
    return template.substitute(fields[0] | fields[1])


def comment(text: str) -> str:
    """A text that may stand in a comment of C, CMake and Markdown, whatever is in it."""
    plain = "".join(x if " " <= x <= "~" else "?" for x in text)
    for mark in ("*/", "/*", "-->", "<!--", "??"):
        plain = plain.replace(mark, " ".join(mark))
    return plain.replace("\\", "/")


def number(x: float) -> str:
    """A double as C reads it back exactly; not for what is no number."""
    if math.isinf(x):
        return "HUGE_VAL" if x > 0.0 else "-HUGE_VAL"
    text = f"{x:.17g}"
    shorter = repr(float(x))
    text = shorter if float(shorter) == x and len(shorter) <= len(text) else text
    return text if any(c in text for c in ".en") else f"{text}.0"


def array(name: str, values: ArrayLike, sizes: str) -> str:
    """``static const double name[sizes] = {...};``, a row in a line."""
    rows = np.atleast_2d(np.asarray(values, dtype=float))
    flat = np.asarray(values).ndim == 1
    lines = [", ".join(number(x) for x in row) for row in rows]
    body = lines[0] if flat else ",\n".join(f"  {{{line}}}" for line in lines)
    inside = f"{{{body}}}" if flat else f"{{\n{body}\n}}"
    return f"static const double {name}{sizes} = {inside};\n"
