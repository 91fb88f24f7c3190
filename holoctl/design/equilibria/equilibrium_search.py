"""The search for an equilibrium: from a closed guess, on the manifold, to r = 0.

    min 1/2 |r(q)|^2,  phi(q) = 0            then both by Newton's method, to the last digit
    min |q - guess|,   phi(q) = 0,  r(q) = 0

Reference: docs/equilibria.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest
from holoctl.base.tolerances import REACH_STALLED, SAME_LEAST
from holoctl.closing.least_squares import distance
from holoctl.closing.newton import Problem, everywhere
from holoctl.control.reach.constrained_least_squares import closed_within, least, no_bounds
from holoctl.design.equilibria.balance_residual import Balance
from holoctl.design.equilibria.equilibrium_stability import falls
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.kinematics import Kinematics

__all__ = ["balanced"]

BALANCED = 1e-10  # of the efforts that act
"""Largest residual at a start that is an equilibrium already."""

BALANCED_NEARLY = 1e-8  # of the efforts that act
"""Largest residual at the end of a search: a smaller one is due to rounding, and is reported."""

UNBALANCED_ENDS = 3
"""The search is given up after this number of starts that end at the same residual."""


Rows = Callable[[Kinematics], tuple[Vector, Array]]


def balanced(
    balance: Balance, start: Vector, fixed: NDArray[np.intp], restarts: int, seed: int
) -> Vector | None:
    """A closed q with r = 0, found from the start or from random starts around it; else None."""
    mech = balance.mech
    if balance.off(balance.at(start)) <= BALANCED:
        return start
    if falls(balance, start):
        return None
    part = balance.part
    p = replace(
        everywhere(mech, start, balance.t),
        rows=part.rows if part.tolerance > 0.0 else None,
        also=_away(mech, start, fixed) if fixed.size else None,
    )
    ends: list[float] = []
    for place in _starts(p, start, restarts, seed):
        minimum = least(p, balance.left_and_slope, no_bounds(mech.nv), place)
        q = _at_rest(balance, p, minimum.q)
        if q is not None:
            return _nearest(balance, p, start, q)
        if not minimum.ended:
            break  # |r| decreases without end: other starts would take as long
        ends.append(float(np.linalg.norm(minimum.left)))
        if sum(x <= (1.0 + SAME_LEAST) * min(ends) for x in ends) >= UNBALANCED_ENDS:
            break  # several starts end at the same minimum
    return None


def _starts(p: Problem, start: Vector, restarts: int, seed: int) -> Iterator[Vector]:
    yield start
    rng = np.random.default_rng(seed)
    for i in range(restarts):
        step = (0.1 + 2.0 * i / restarts) * rng.normal(size=p.free.size)
        place = closed_within(p, no_bounds(p.mech.nv), p.moved(start, step))
        if place is not None:
            yield place


def _away(mech: Mechanism, start: Vector, which: NDArray[np.intp] | slice) -> Rows:
    """Rows of the differences of coordinates from their values at the start, scaled."""
    c = mech.column_scale[which]

    def rows(kin: Kinematics) -> tuple[Vector, Array]:
        d = pin.difference(mech.model, start, kin.q)[which]
        D = pin.dDifference(mech.model, start, kin.q, pin.ArgumentPosition.ARG1)[which]
        return d / c, D / c[:, None]

    return rows


def _with_balance(balance: Balance, p: Problem) -> Problem:
    """The problem p with the additional equation r = 0."""
    kept = p.also

    def rows(kin: Kinematics) -> tuple[Vector, Array]:
        r, D = balance.left_and_slope(kin)
        if kept is None:
            return r, D
        d, J = kept(kin)
        return np.append(d, r), np.vstack([J, D])

    return replace(p, also=rows)


def _at_rest(balance: Balance, p: Problem, q: Vector) -> Vector | None:
    """The end q of a search, refined by Newton's method; None if it is no equilibrium."""
    if not largest(balance.left(balance.at(q))) <= REACH_STALLED:
        return None
    last = closed_within(_with_balance(balance, p), no_bounds(p.mech.nv), q)
    for x in (q,) if last is None else (last, q):
        if balance.off(balance.at(x)) <= BALANCED_NEARLY:
            return x
    return None


def _nearest(balance: Balance, p: Problem, start: Vector, q: Vector) -> Vector:
    """The equilibrium nearest to the start in the set of equilibria around q."""
    mech = p.mech
    held = _with_balance(balance, p)
    slid = least(held, _away(mech, start, slice(None)), no_bounds(mech.nv), q, kicks=False).q
    x = _at_rest(balance, p, slid)
    return x if x is not None and distance(mech, start, x) < distance(mech, start, q) else q
