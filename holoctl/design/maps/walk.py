"""From a closed configuration to a neighbouring point of a grid, on the same branch or not at all.

    K d = -[phi; r; 0]        K = [G; D; N']    N: idle motions, held still
    r -> 0 by the straight way, in substeps

A substep counts only where its correction is short and contracts, and the determinant of K changes
by less than a factor: it has no zero on the way, so the branch is the same. The rules, and their
numbers, are those of loops: estimation/following.py. A grid is often symmetric as its mechanism is,
and on the symmetry line two arms stretch at one point: the determinant has a double zero there, and
keeps its sign. So no eigenvalue of K^-1 K' may be negative, K' that of the end of a substep.
Reference: P. Deuflhard, Newton Methods for Nonlinear Problems, the chapter on continuation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.linalg import largest, null_space_by_svd, turned_over
from holoctl.base.tolerances import (
    CONTRACTION,
    CORRECTED,
    DETERMINANT_CHANGE,
    FIRST_CORRECTION,
    LEFT_OPEN,
    PREDICTED_STEP,
    SETTLED_TICK,
    SHORTEST_SUBSTEP,
)
from holoctl.design.maps.chart import Rows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.evaluate import constraint_rows

__all__ = ["PartitionedSpot", "WayEnd", "reached"]

MAP_EVALUATIONS = 400  # a count
"""Evaluations that a way to a neighbour may take."""


Array = NDArray[np.float64]


class PartitionedSpot(NamedTuple):
    """A closed configuration, and a partition that is good there."""

    q: Vector
    part: Partition


class WayEnd(NamedTuple):
    """Where a way ended: at a share of it, and why, in words."""

    share: float
    why: str


class _Place(NamedTuple):
    """Everything at a q, by scaled steps: open rows, K without its borders, borders."""

    q: Vector
    error: Vector
    open: float
    r: Vector
    GD: Array

    def right(self, goal: Vector, borders: int) -> Vector:
        return np.concatenate([-self.error, goal - self.r, np.zeros(borders)])


def reached(
    mech: Mechanism, t: float, start: PartitionedSpot, left: Rows
) -> PartitionedSpot | WayEnd:
    """The spot where r vanishes, by the straight way; or where that ends."""
    q, part = start
    here, gone, length, count = _place(mech, t, q, part, left), 0.0, 1.0, 0
    why = "slow"
    N, det = _borders(here, mech.nv)
    while length >= SHORTEST_SUBSTEP and count < MAP_EVALUATIONS:
        rest = 1.0 - gone
        share = 1.0 if length >= rest else length / rest
        there, used = _substep(mech, t, part, left, here, N, det, share)
        count += used
        if isinstance(there, str):
            why, length = there, 0.5 * min(length, rest)
            continue
        if there.open > max(LEFT_OPEN, part.tolerance):
            return WayEnd(gone, "rows left out as redundant open there")
        part = repartitioned(mech, part, there.q, np.zeros(mech.nv), t)
        if share == 1.0:
            return PartitionedSpot(there.q, part)
        here, gone, length = _place(mech, t, there.q, part, left), gone + length, 2.0 * length
        N, det = _borders(here, mech.nv)
    if count >= MAP_EVALUATIONS:
        return WayEnd(gone, "it took too many steps: give a start, or a grid, that is nearer")
    return WayEnd(gone, _WHY.get(why, why))


_WHY = {
    "singular": "it comes to a singular configuration",
    "far": "it comes to a singular configuration",
    "first": "it does not close, near a singular configuration",
    "slow": "it does not close, near a singular configuration",
    "range": "numbers beyond the range of floats",
}


def _place(mech: Mechanism, t: float, q: Vector, part: Partition, left: Rows) -> _Place:
    kin, rows = constraint_rows(mech, q, np.zeros(mech.nv), t)
    c = mech.column_scale
    error = mech.row_scale * rows.error
    G = mech.row_scale[part.rows, None] * rows.jacobian[part.rows] * c
    r, D = left(kin)
    return _Place(q, error[part.rows], largest(error), r, np.vstack([G, D * c]))


def _borders(here: _Place, nv: int) -> tuple[Array, float]:
    """N', the motions that neither rows nor chart see; and the determinant of K."""
    N = np.zeros((0, nv))
    if here.GD.shape[0] < nv:
        N = null_space_by_svd(here.GD, here.GD.shape[0])[3].T
    return N, float(np.linalg.det(np.vstack([here.GD, N])))


def _substep(
    mech: Mechanism,
    t: float,
    part: Partition,
    left: Rows,
    here: _Place,
    N: Array,
    det: float,
    share: float,
) -> tuple[_Place | str, int]:
    """The place at a share of what is left, and evaluations; in place of it why there is none."""
    model, c = mech.model, mech.column_scale
    goal, n = (1.0 - share) * here.r, N.shape[0]
    d = _solved(np.vstack([here.GD, N]), here.right(goal, n))
    if not largest(d) <= PREDICTED_STEP:
        return "far", 0
    q, before, count = pin.integrate(model, here.q, c * d), 0.0, 0
    while True:
        at = _place(mech, t, q, part, left)
        count += 1
        K = np.vstack([at.GD, N])
        if not np.isfinite(K).all():
            return "range", count
        if not 1.0 / DETERMINANT_CHANGE < np.linalg.det(K) / det < DETERMINANT_CHANGE:
            return "singular", count
        rhs = at.right(goal, n)
        size = largest(rhs)
        if size <= SETTLED_TICK:
            break
        d = _solved(K, rhs)
        length = largest(d)
        if not before:
            if not length <= FIRST_CORRECTION:
                return "first", count
        elif not length <= CONTRACTION * before:
            if size <= CORRECTED:
                break  # it falls no more
            return "slow", count
        before = length
        q = pin.integrate(model, q, c * d)
    if turned_over(_solved(np.vstack([here.GD, N]), K)):
        return "singular", count
    return at._replace(q=pin.normalize(model, q)), count


def _solved(K: Array, b: Array) -> Array:
    try:
        x = np.asarray(np.linalg.solve(K, b), dtype=float)
    except np.linalg.LinAlgError:
        return np.full(b.shape, np.inf)
    return x
