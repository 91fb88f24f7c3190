"""Hyperbolic tangents and exponentials of C, several at once: a part of the time that libm takes.

Friction has one or both for every joint. Those that do not wait for each other stand in lines one
behind the other (see `c_source`). Here they become functions without branches, which a processor
works on side by side; many become one call, which a compiler can vectorise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holoctl.codegen.c_text import filled

__all__ = ["AT_ONCE", "curves", "curves_together"]

CALLED = {
    "tangent": (), "tangents": ("tangent",), "holoctl_exponential": (),
    "exponential": ("holoctl_exponential",), "exponentials": ("holoctl_exponential",),
}  # fmt: skip
"""Functions of ``curves.c.in`` with those that they call; ``tangents`` and the like are of n
numbers."""

AT_ONCE = 4
"""Numbers are filled up with zeros to a multiple of this, for processors that take several."""

_FEW = 8
"""So many are quicker one by one: what goes through an array waits until it has arrived there."""

_LINE = re.compile(r"  const double (x\d+) = (tanh|exp)\((\S+)\);")
_NAMES = {"tanh": "tangent", "exp": "exponential"}


def curves_together(source: str) -> str:
    """Straight-line C with these functions in the place of libm's; as it was without such."""
    found = "\n".join(_lines(source.split("\n")))
    called = {name for name in CALLED if f" {name}(" in found}
    return curves(called) + found if called else source


def curves(names: Iterable[str]) -> str:
    """The C of these functions and of those that they call; ``float.h`` and ``math.h`` before."""
    wanted = {x for name in names for x in (name, *CALLED[name])}
    return filled("curves.c", {name: name in wanted for name in CALLED})


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
