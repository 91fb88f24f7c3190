"""Continuation on one branch of closed configurations: the corrector, and its substeps.

    q <- q (+) d        K(q) d = right(q)        until the right side vanishes

A substep counts only where all of it stays in the reach of Newton's method: a short prediction and
a short first correction, corrections that contract, and a determinant of K that keeps its sign and
changes by no more than a factor. Then no singular configuration lies on the way, and the branch is
the same. Else the substep is halved; after one that counts it is doubled. The rows of K are for the
caller: of measurements, of a path, of a chart.
Reference: P. Deuflhard, Newton Methods for Nonlinear Problems, the chapter on continuation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from holoctl.base.checks import Vector
from holoctl.base.tolerances import (
    CONTRACTION,
    DETERMINANT_CHANGE,
    FIRST_CORRECTION,
    PREDICTED_STEP,
    SETTLED_TICK,
    SHORTEST_SUBSTEP,
)

__all__ = ["Linearised", "Steps", "corrected", "determinant_kept", "in_substeps"]

_P = TypeVar("_P")

LEAST_RATIO = 1.0 / DETERMINANT_CHANGE

ROUNDED_SHARE = 1e-9
"""A substep that leaves less than this share of the way goes all of it."""


Linearised = Callable[[Vector], tuple[Vector, float] | str]
"""linearised(q): K evaluated and factored at q; the right side, and its largest entry. In place of
it why this q does not count: ``"range"``, ``"singular"``, ``"slow"``."""


class Steps(NamedTuple):
    """What corrections are made with.

    Attributes
    ----------
    solved : function (right) -> d
        By the factors of K where it was linearised last.
    size_of : function (d) -> float
        The largest entry of a step, scaled.
    moved : function (q, d) -> q
    stalled : float
        Corrections that contract no more are at their end where the right side is at most this.
    """

    solved: Callable[[Vector], Vector]
    size_of: Callable[[Vector], float]
    moved: Callable[[Vector, Vector], Vector]
    stalled: float


def corrected(
    steps: Steps, linearised: Linearised, q: Vector, d: Vector
) -> tuple[str, Vector, float, int, float]:
    """Newton's method from q moved by a predicted step d.

    Returns
    -------
    why : str
        Empty where it counts. Else ``"far"`` (the prediction is long), ``"first"`` (the first
        correction is long), ``"slow"`` (corrections do not contract), or the word of `Linearised`.
    q : (nq,) array
        The configuration that was evaluated last; a quaternion in it may have to be normalized.
    size : float
        The largest entry of the right side there.
    count : int
        How many corrections were made.
    contraction : float
        The largest ratio of a correction to the one before.
    """
    solved, size_of, moved, stalled = steps
    if not size_of(d) <= PREDICTED_STEP:
        return "far", q, 0.0, 0, 0.0
    q, before, count, contraction = moved(q, d), 0.0, 0, 0.0
    while True:
        found = linearised(q)
        if isinstance(found, str):
            return found, q, 0.0, count, contraction
        right, size = found
        if size <= SETTLED_TICK:
            return "", q, size, count, contraction
        d = solved(right)
        length = size_of(d)
        if not before:
            if not length <= FIRST_CORRECTION:
                return "first", q, size, count, contraction
        elif length <= CONTRACTION * before:
            contraction = max(contraction, length / before)
        else:  # it falls no more
            return "" if size <= stalled else "slow", q, size, count, contraction
        before, count, q = length, count + 1, moved(q, d)


def determinant_kept(ratio: float) -> bool:
    """Whether a determinant, over the one before, keeps its sign and about its size."""
    return LEAST_RATIO < ratio < DETERMINANT_CHANGE


def in_substeps(
    substep: Callable[[_P, float], _P | None],
    here: _P,
    *,
    first: float = 1.0,
    shortest: float = SHORTEST_SUBSTEP,
    may_go_on: Callable[[], bool] = lambda: True,
) -> tuple[_P, float]:
    """Go as far towards a goal as substeps count.

    Parameters
    ----------
    substep : function (here, share) -> place or None
        The place after this share of what is left of the way; None where that does not count.
    here : place
    first, shortest : float
        The first substep, and the least one, as shares of the whole way.
    may_go_on : function () -> bool
        Asked before each substep.

    Returns
    -------
    here : place
        The last one that counts.
    left : float
        The share of the way that is left; 0 at the goal.
    """
    left, part = 1.0, first
    while part >= shortest and may_go_on():
        whole = part >= (1.0 - ROUNDED_SHARE) * left
        there = substep(here, 1.0 if whole else part / left)
        if there is None:
            part = 0.5 * min(part, left)  # never the same once more
        elif whole:
            return there, 0.0
        else:
            here, left, part = there, left - part, 2.0 * part
    return here, left
