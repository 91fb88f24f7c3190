"""Continuation from a closed configuration to a neighbouring point of a grid, on the same branch.

    K d = -[phi; r; 0]        K = [G; D; N']    N: idle motions, held still
    r -> 0 along a straight line, in substeps

A substep is accepted by the rule of closing/continuation.py. A grid often has the symmetry of its
mechanism, and on the line of symmetry two arms may be stretched at one point: the determinant has a
double zero there, and keeps its sign. So, in addition, no eigenvalue of K^-1 K' may be negative,
with K' at the end of a substep.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest, null_space_by_svd, turned_over
from holoctl.base.tolerances import CORRECTED, LEFT_OPEN
from holoctl.closing.continuation import Steps, corrected, determinant_kept, in_substeps
from holoctl.design.maps.grid_coordinates import Rows
from holoctl.design.paths.path_system import Factored, factored
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.evaluate import constraint_rows

__all__ = ["PartitionedConfiguration", "PathEnd", "reached"]

MAP_EVALUATIONS = 400
"""Largest number of evaluations of the rows for one neighbour."""


class PartitionedConfiguration(NamedTuple):
    """A closed configuration, and a partition that is well-conditioned there."""

    q: Vector
    part: Partition


class PathEnd(NamedTuple):
    """The end of a continuation before its goal: the share of the path, and the reason in words."""

    share: float
    why: str


class _RowValues(NamedTuple):
    """The rows at a q, scaled: errors of the kept ones, the worst of all, r, and [G; D]."""

    errors: Vector
    worst: float
    r: Vector
    GD: Array


class _FactoredPoint(NamedTuple):
    """A closed configuration on the path: rows of a partition, idle motions N', and K factored."""

    q: Vector
    part: Partition
    r: Vector
    errors: Vector
    N: Array
    K: Factored

    def right(self, at: _RowValues | _FactoredPoint, goal: Vector) -> Vector:
        """The right side of the linear system from the rows `at` to a goal of r."""
        return np.concatenate([-at.errors, goal - at.r, np.zeros(self.N.shape[0])])


def reached(
    mech: Mechanism, t: float, start: PartitionedConfiguration, left: Rows
) -> PartitionedConfiguration | PathEnd:
    """The configuration with r = 0, along a straight line from the start; or the end of that."""
    count, why = 0, "slow"

    def substep(here: _FactoredPoint, share: float) -> _FactoredPoint | None:
        """The configuration at a share of the remaining path; None, with `why` set, if the substep
        is not accepted."""
        nonlocal count, why
        goal, K, last, worst = (1.0 - share) * here.r, np.zeros((0, 0)), here.K, 0.0

        def linearised(q: Vector) -> tuple[Vector, float] | str:
            nonlocal count, K, last, worst
            at, count = _rows(mech, t, q, here.part, left), count + 1
            K, worst = np.vstack([at.GD, here.N]), at.worst
            if not np.isfinite(K).all():
                return "range"
            last = factored(K)
            if not determinant_kept(last.over(here.K)):
                return "singular"
            right = here.right(at, goal)
            return right, largest(right)

        def solved(right: Vector) -> Vector:
            return last.lu.solve(right)

        def moved(q: Vector, d: Vector) -> Vector:
            x: Vector = pin.integrate(mech.model, q, mech.column_scale * d)
            return x

        steps = Steps(solved, largest, moved, CORRECTED)
        predicted = here.K.lu.solve(here.right(here, goal))
        failed, q, *_ = corrected(steps, linearised, here.q, predicted)
        if failed:
            why = failed
        elif turned_over(here.K.lu.solve(K)):
            why = "singular"
        elif worst > max(LEFT_OPEN, here.part.tolerance):
            why = "open"
        else:
            q = pin.normalize(mech.model, q)
            return _factored_point(
                mech, t, q, repartitioned(mech, here.part, q, np.zeros(mech.nv), t), left
            )
        return None

    here, rest = in_substeps(
        substep, _factored_point(mech, t, start.q, start.part, left),
        may_go_on=lambda: count < MAP_EVALUATIONS and why != "open",
    )  # fmt: skip
    if not rest:
        return PartitionedConfiguration(here.q, here.part)
    if count >= MAP_EVALUATIONS and why != "open":
        why = "steps"
    return PathEnd(1.0 - rest, _WHY[why])


_WHY = {
    "open": "rows left out as redundant open there",
    "steps": "it took too many steps: give a nearer start, or a finer grid",
    "singular": "it comes to a singular configuration",
    "far": "it comes to a singular configuration",
    "first": "it does not close, near a singular configuration",
    "slow": "it does not close, near a singular configuration",
    "range": "numbers beyond the range of floats",
}


def _rows(mech: Mechanism, t: float, q: Vector, part: Partition, left: Rows) -> _RowValues:
    kin, rows = constraint_rows(mech, q, np.zeros(mech.nv), t)
    c = mech.column_scale
    error = mech.row_scale * rows.error
    G = mech.row_scale[part.rows, None] * rows.jacobian[part.rows] * c
    r, D = left(kin)
    return _RowValues(error[part.rows], largest(error), r, np.vstack([G, D * c]))


def _factored_point(
    mech: Mechanism, t: float, q: Vector, part: Partition, left: Rows
) -> _FactoredPoint:
    at, N = _rows(mech, t, q, part, left), np.zeros((0, mech.nv))
    if at.GD.shape[0] < mech.nv:
        N = null_space_by_svd(at.GD, at.GD.shape[0])[3].T
    return _FactoredPoint(q, part, at.r, at.errors, N, factored(np.vstack([at.GD, N])))
