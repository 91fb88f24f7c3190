"""Straight-line C whose slow functions are computed together, in a fraction of libm's time.

Sines and cosines of all angles become one call, and all quotients by a value one division. Friction
has hyperbolic tangents and exponentials for every joint: those that are independent of each other
are placed in consecutive lines (see `c_source`), and become functions without branches, which a
processor executes in parallel; many become one call, which a compiler can vectorise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from holoctl.codegen.c_source import c_function
from holoctl.codegen.c_text import filled
from holoctl.codegen.precision import DOUBLE, Precision

__all__ = ["AT_ONCE", "batched_source", "batched_tanh_exp", "tanh_exp"]

CALLED = {
    "tangent": (), "tangents": ("tangent",), "bounded_exponential": (),
    "exponential": ("bounded_exponential",), "exponentials": ("bounded_exponential",),
}  # fmt: skip
"""Functions of ``tanh_exp.c.in`` with those that they call; ``tangents`` and the like are of n
numbers."""

AT_ONCE = 4
"""Numbers are filled up with zeros to a multiple of this, for processors that take several."""

_FEW = 8
"""Up to this number they are faster one by one: values in an array must be stored and loaded."""

_LINE = re.compile(r"  const double (x\d+) = (tanh|exp)\((\S+)\);")
_NAMES = {"tanh": "tangent", "exp": "exponential"}
_TURN = re.compile(r"  const double (x\d+) = (sin|cos)\((\S+)\);")
_LOAD = re.compile(r"  const double (x\d+) = (\w+\[\d+\]);")
_QUOTIENT = re.compile(r"  const double (x\d+) = (\S+) / (\S+);")


def batched_source(
    functions: Iterable[Any],
    qualifier: str = "static",
    symbols: Any = None,
    more: Iterable[str] = (),
    precision: Precision = DOUBLE,
) -> str:
    """The C of several functions, without slow steps that can be shared.

    `qualifier` and `symbols` are those of `c_function`; `more` is C that is there already. In
    single precision tangents and exponentials are those of libm.
    """
    written = [c_function(f, qualifier=qualifier, symbols=symbols) for f in functions]
    found = "\n".join(map(_shared, [*written, *more]))
    if precision is DOUBLE:
        found = batched_tanh_exp(found)
    head = filled("sines_cosines.c", precision.values) if "sines_cosines" in found else ""
    return head + found


def _shared(source: str) -> str:
    """Sines and cosines of all angles together; one division for all quotients by a value.

    A product is available three times as soon as a quotient, and most of a tick is waiting for
    earlier results. Values are shared within each C function only.
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
            lines += _angles_together([loads.get(x, x) for x in angles])
    return "\n".join([*_without_unused(lines, angles), "}", ""])


def _without_unused(lines: list[str], angles: list[str]) -> Iterator[str]:
    """Remove the loads of angles that are only read from their array now."""
    uses = Counter(re.findall(r"\bx\d+\b", "\n".join(lines)))
    for line in lines:
        load = _LOAD.fullmatch(line)
        if load is None or load.group(1) not in angles or uses[load.group(1)] > 1:
            yield line


def _angles_together(angles: list[str]) -> list[str]:
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


# ------------------------------------------------------------- hyperbolic tangents, exponentials


def batched_tanh_exp(source: str) -> str:
    """Straight-line C with these functions in the place of libm's; as it was without such."""
    found = "\n".join(_lines(source.split("\n")))
    called = {name for name in CALLED if f" {name}(" in found}
    return tanh_exp(called) + found if called else source


def tanh_exp(names: Iterable[str]) -> str:
    """The C of these functions and of those that they call; ``float.h`` and ``math.h`` before."""
    wanted = {x for name in names for x in (name, *CALLED[name])}
    return filled("tanh_exp.c", {name: name in wanted for name in CALLED})


def _lines(given: list[str]) -> Iterator[str]:
    run: list[tuple[str, str]] = []
    kind, comments, calls = "", list[str](), 0
    for line in given:  # the last closes a function
        found = _LINE.fullmatch(line)
        if run and not (line.startswith("  /*") or (found and found.group(2) == kind)):
            yield from comments
            yield from _together(kind, run, calls)
            run, comments, calls = [], [], calls + 1
        if found:
            kind = found.group(2)
            run.append((found.group(1), found.group(3)))
        elif run:
            comments.append(line)
        else:
            yield line


def _together(kind: str, run: list[tuple[str, str]], number: int) -> Iterator[str]:
    if len(run) <= _FEW:
        for value, of in run:
            yield f"  const double {value} = {_NAMES[kind]}({of});"
        return
    n = -(-len(run) // AT_ONCE) * AT_ONCE
    filled = [*(of for _, of in run), *["0.0"] * (n - len(run))]
    place, result = f"{kind}_in{number}", f"{kind}_of{number}"
    yield f"  const double {place}[{n}] = {{{', '.join(filled)}}};"
    yield f"  double {result}[{n}];"
    yield f"  {_NAMES[kind]}s({place}, {n}, {result});"
    for i, (value, _) in enumerate(run):
        yield f"  const double {value} = {result}[{i}];"
