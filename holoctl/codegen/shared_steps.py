"""Straight-line C arranged for short waiting: slow steps that can be shared are done once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from holoctl.codegen.c_source import c_function
from holoctl.codegen.c_text import filled
from holoctl.codegen.curves import AT_ONCE, curves_together

__all__ = ["source"]

_TURN = re.compile(r"  const double (x\d+) = (sin|cos)\((\S+)\);")
_LOAD = re.compile(r"  const double (x\d+) = (\w+\[\d+\]);")
_QUOTIENT = re.compile(r"  const double (x\d+) = (\S+) / (\S+);")


def source(
    functions: Iterable[Any],
    qualifier: str = "static",
    symbols: Any = None,
    more: Iterable[str] = (),
) -> str:
    """The C of several functions, without slow steps that can be shared.

    `qualifier` and `symbols` are those of `c_function`; `more` is C that is there already.
    """
    written = [c_function(f, qualifier=qualifier, symbols=symbols) for f in functions]
    found = curves_together("\n".join(map(_shared, [*written, *more])))
    return filled("sines_cosines.c") + found if "sines_cosines" in found else found


def _shared(source: str) -> str:
    """Sines and cosines of all angles together; one division for all quotients by a value.

    A product is there three times as soon as a quotient, and most of a tick is waiting for what
    was computed before. Within each C function, for its values are its own.
    """
    return "\n".join(map(_shared_in, source.split("\n}\n")))


def _shared_in(function: str) -> str:
    if not function.strip():
        return ""
    given = function.splitlines()
    loads = {m.group(1): m.group(2) for m in map(_LOAD.fullmatch, given) if m}
    turned = dict.fromkeys(str(m.group(3)) for m in map(_TURN.fullmatch, given) if m)
    angles = [x for x in turned if x in loads or not x.startswith("x")]
    divisors = Counter(m.group(3) for m in map(_QUOTIENT.fullmatch, given) if m)
    lines, inverses = list[str](), set[str]()
    for old in given:
        line, turn, quotient = old, _TURN.fullmatch(old), _QUOTIENT.fullmatch(old)
        if turn is not None and turn.group(3) in angles:
            value, kind, angle = turn.groups()
            line = f"  const double {value} = {kind}_of[{angles.index(angle)}];"
        elif quotient is not None and divisors[quotient.group(3)] > 1:
            value, above, below = quotient.groups()
            inverse = f"per_{re.sub(r'[^a-z0-9]+', '_', below).strip('_')}"
            if below not in inverses:
                inverses.add(below)
                lines.append(f"  const double {inverse} = 1.0 / {below};")
            line = f"  const double {value} = {above} * {inverse};"
        lines.append(line)
        if angles and line.endswith("{"):
            lines += _together([loads.get(x, x) for x in angles])
    return "\n".join([*_without_unused(lines, angles), "}", ""])


def _without_unused(lines: list[str], angles: list[str]) -> Iterator[str]:
    """Angles are read from their array now; elsewhere they may be needed still, or not."""
    uses = Counter(re.findall(r"\bx\d+\b", "\n".join(lines)))
    for line in lines:
        load = _LOAD.fullmatch(line)
        if load is None or load.group(1) not in angles or uses[load.group(1)] > 1:
            yield line


def _together(angles: list[str]) -> list[str]:
    n = len(angles)
    if angles == [f"q[{i}]" for i in range(n)]:
        return [
            f"  double sin_of[{n}], cos_of[{n}];",
            f"  sines_cosines(q, {n}, sin_of, cos_of);",
        ]
    n = -(-len(angles) // AT_ONCE) * AT_ONCE
    filling = ["0.0"] * (n - len(angles))
    return [
        f"  const double angle[{n}] = {{{', '.join([*angles, *filling])}}};",
        f"  double sin_of[{n}], cos_of[{n}];",
        f"  sines_cosines(angle, {n}, sin_of, cos_of);",
    ]
