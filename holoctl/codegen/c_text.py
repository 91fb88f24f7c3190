"""Texts of C: templates to fill, numbers and arrays as C reads them.

The templates are in ``templates/``. Their syntax:

    @{name}             a value, or a tolerance of base/tolerances.py
    @?name{text}        text if the value is true; @?!name{text} if it is not
    @if name            lines if it is true, `@if !name` if it is not; to @else or @end
    @include file       another template
    @# text             a comment on the values; not in the output
"""

from __future__ import annotations

import math
import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holoctl.base import tolerances
from holoctl.codegen.precision import DOUBLE

__all__ = ["arrays", "comment", "filled", "normalised", "number"]

TEMPLATES = Path(__file__).parent / "templates"
_VALUE = re.compile(r"@\{(\w+)\}")
_WHERE = re.compile(r"@\?(!?\w+)\{((?:[^{}@]|@\{\w+\})*)\}")


def filled(name: str, values: Mapping[str, object] | None = None) -> str:
    """A template with its values filled in; `name` is that of the file without ``.in``.

    Raises
    ------
    ValueError
        For a value that the template names and that is not given.
    """
    given = ChainMap(dict(values or {}), DOUBLE.values, _tolerances())

    def holds(condition: str) -> bool:
        return bool(given[condition.lstrip("!")]) is not condition.startswith("!")

    try:
        text = "".join(_lines(name, holds))
        text = _WHERE.sub(lambda found: found[2] if holds(found[1]) else "", text)
        return _VALUE.sub(lambda found: str(given[found[1]]), text)
    except KeyError as missing:
        raise ValueError(f"template {name}: no value {missing}") from None


def _lines(name: str, holds: Callable[[str], bool]) -> Iterator[str]:
    """The lines of a template, and of those that it includes, that are to be there."""
    kept = [True]
    for line in _template(name):
        word, _, rest = line.rstrip().partition(" ")
        if word == "@if":
            kept.append(kept[-1] and holds(rest))
        elif word == "@else":
            kept[-1] = kept[-2] and not kept[-1]
        elif word == "@end":
            kept.pop()
        elif word == "@include" and kept[-1]:
            yield from _lines(rest, holds)
        elif kept[-1] and word not in ("@#", "@include"):
            yield line


@cache
def _tolerances() -> dict[str, object]:
    found = {x: y for x, y in vars(tolerances).items() if x.isupper()}
    return {x: number(y) if isinstance(y, float) else y for x, y in found.items()}


@cache
def _template(name: str) -> tuple[str, ...]:
    text = (TEMPLATES / f"{name}.in").read_text(encoding="utf-8")
    return tuple(text.splitlines(keepends=True))


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


def arrays(**named: ArrayLike | None) -> str:
    """Vectors and matrices, of int or else double, as constants of C: of a matrix a row in a line,
    of what has no entries one zero, of None nothing."""
    return "".join(_array(name, np.asarray(x)) for name, x in named.items() if x is not None)


def _array(name: str, x: NDArray[Any]) -> str:
    kind = "int" if x.dtype.kind == "i" else "double"
    if not x.size:
        x = np.zeros((*x.shape[:-1], 1), dtype=kind)
    text = str if kind == "int" else number
    lines = [", ".join(text(entry) for entry in row.tolist()) for row in np.atleast_2d(x)]
    body = lines[0] if x.ndim == 1 else "\n" + ",\n".join(f"  {{{x}}}" for x in lines) + "\n"
    return f"static const {kind} {name}{''.join(f'[{n}]' for n in x.shape)} = {{{body}}};\n"


def normalised(where: str, parts: Sequence[tuple[int, ...]]) -> str:
    """A condition of C that brings these parts of an array, quaternions and cosine-sine pairs, to
    norm one; empty without any."""
    return " && ".join(f"normalise({where} + {part[0]}, {len(part)})" for part in parts)
