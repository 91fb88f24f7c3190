"""Continuation on one branch of closed configurations: the corrector, and its substeps.

    q <- q (+) d        K(q) d = right(q)        until the right side vanishes

A substep is accepted only if all of it stays within the convergence region of Newton's method: a
short prediction and a short first correction, corrections that contract, and a determinant of K
that keeps its sign and changes by a limited factor. Then no singular configuration lies on the
path, and the branch is the same. Otherwise the substep is halved; after an accepted one it is
doubled. The caller chooses the rows of K: of measurements, of a path, of a chart.
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
"""A substep that leaves less than this fraction of the path is extended to the end."""


Linearised = Callable[[Vector], tuple[Vector, float] | str]
"""linearised(q) evaluates and factors K at q, and returns the right side and its largest entry; or
why this q is rejected: ``"range"``, ``"singular"``, ``"slow"``."""


class Steps(NamedTuple):
    """The functions with which corrections are made.

    Attributes
    ----------
    solved : function (right) -> d
        Solves with the factors of K of the last linearisation.
    size_of : function (d) -> float
        The largest entry of a step, scaled.
    moved : function (q, d) -> q
    stalled : float
        If corrections no longer contract, the point is accepted if the right side is at most this.
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
        Empty if it is accepted. Else ``"far"`` (the prediction is long), ``"first"`` (the first
        correction is long), ``"slow"`` (corrections do not contract), or the word of `Linearised`.
    q : (nq,) array
        The configuration that was evaluated last; a quaternion in it may have to be normalized.
    size : float
        The largest entry of the right side there.
    count : int
        The number of corrections.
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
        else:  # no longer contracting
            return "" if size <= stalled else "slow", q, size, count, contraction
        before, count, q = length, count + 1, moved(q, d)


def determinant_kept(ratio: float) -> bool:
    """Whether the ratio of a determinant to the one before is positive and close enough to 1."""
    return LEAST_RATIO < ratio < DETERMINANT_CHANGE


def in_substeps(
    substep: Callable[[_P, float], _P | None],
    here: _P,
    *,
    first: float = 1.0,
    shortest: float = SHORTEST_SUBSTEP,
    may_go_on: Callable[[], bool] = lambda: True,
) -> tuple[_P, float]:
    """Go towards a goal as far as substeps are accepted.

    Parameters
    ----------
    substep : function (here, share) -> place or None
        The place after this fraction of the remaining path; None if the substep is rejected.
    here : place
    first, shortest : float
        The first substep, and the shortest one, as fractions of the whole path.
    may_go_on : function () -> bool
        Called before each substep; the continuation ends if it returns False.

    Returns
    -------
    here : place
        The last accepted place.
    left : float
        The fraction of the path that remains; 0 at the goal.
    """
    left, part = 1.0, first
    while part >= shortest and may_go_on():
        whole = part >= (1.0 - ROUNDED_SHARE) * left
        there = substep(here, 1.0 if whole else part / left)
        if there is None:
            part = 0.5 * min(part, left)  # never the same substep again
        elif whole:
            return there, 0.0
        else:
            here, left, part = there, left - part, 2.0 * part
    return here, left
