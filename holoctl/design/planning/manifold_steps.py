"""Steps on the manifold of closed configurations, along a tangent, each proved to be on its branch.

    q <- q (+) N z        [G; N'] d = [-phi; 0]        until phi vanishes

N is an orthonormal basis of the velocities at the start of the step (scaled): the step is a chart
of the manifold about it. It is accepted by the rule of closing/continuation.py for [G; N']. Where
the motors determine the motion, [G; B'] passes the same rule, so that no type-2 singularity lies
within the step, and the smallest singular value of gamma' B stays above a margin. With idle motions
or other numbers of motors, det(L' L1) det(R' R1) > 0 instead, where N' B = U S R' and L = N U at
both ends: the sign changes where a singular value passes zero. Limits of positions are kept.

Redundant rows are combined, W'G and W'phi, by the left singular vectors W of G at the start of the
step: any choice of rows becomes dependent somewhere. Their determinants have no sign in common.
Reference: R. Bordalba, L. Ros and J. M. Porta, "A randomised kinodynamic planner for closed-chain
robotic systems", on tangent spaces as charts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.angles import wrapped
from holoctl.base.checks import Array, Mask, Vector
from holoctl.base.linalg import largest, null_space_by_svd, turned_over
from holoctl.base.tolerances import CLOSED
from holoctl.closing.continuation import Steps, corrected, determinant_kept
from holoctl.design.paths.path_system import Factored, PartitionRows, factored, partition_rows
from holoctl.dynamics.actuation import scaled_motors
from holoctl.dynamics.actuation_side import has_sides
from holoctl.mechanism.bound_limits import BoundLimits
from holoctl.mechanism.limited_coordinates import positions_at
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["ManifoldPlace", "ManifoldSteps", "ManifoldWalk", "manifold_steps", "with_combined_rows"]

SEARCH_STEP = 0.15  # scaled
"""Longest step of a search for a path."""

STEP_HALVED = 4
"""A step that is not accepted is halved at most this often."""

CLOSER = 0.1
"""A step towards a target must come closer by this share of its length."""

FLAT = 0.01
"""A walk ends where less than this share of the way to its target is along the manifold."""

ARRIVED = 1e-9  # scaled
"""Largest distance of two configurations that are the same."""

STEP_STALLED = 1e-12  # scaled
"""Newton's method that no longer contracts is accepted at this error."""


class ManifoldPlace(NamedTuple):
    """A closed configuration.

    Attributes
    ----------
    q : (nq,) array
    G : (r, nv) array
        The kept rows, scaled.
    N : (nv, k) array
        The admissible velocities, orthonormal, scaled.
    chart : Factored
        The factors of [G; N'].
    driven : Factored or None
        Those of [G; B'], if it is square.
    sigma : float
        The smallest singular value of gamma' B, scaled; inf without motors.
    second : float
        The next one; inf without one.
    held : tuple of (nv, k) and (nu, k) arrays
        The motions that the motors drive, and the motors: L = N U and R of N' B = U S R'.
    mix : (m, r) array or None
        W; None if the rows are not combined.
    """

    q: Vector
    G: Array
    N: Array
    chart: Factored
    driven: Factored | None
    sigma: float
    second: float
    held: tuple[Array, Array]
    mix: Array | None

    @property
    def signed(self) -> float:
        """`sigma` with the sign of det [G; B']."""
        return self.sigma if self.driven is None else self.sigma * self.driven.sign


class ManifoldWalk(NamedTuple):
    """A walk towards a target: its places after the start, whether the last one is there, and the
    number of steps that were tried."""

    stops: list[ManifoldPlace]
    arrived: bool
    tried: int


@dataclass(frozen=True, eq=False)
class ManifoldSteps:
    """The rule by which steps are accepted.

    Attributes
    ----------
    mech : Mechanism
    part : Partition
    rows : PartitionRows
    motors : (nv, nu) array
        B, scaled.
    square : bool
        Whether the motors are as many as the motions.
    bound : BoundLimits or None
    position : (2, n) array
        Limits of the coordinates of `bound`.
    turning : (nv,) mask
        Passive angles without a limit, in which whole turns do not count.
    margin : float
        The least `sigma`; below 0 for steps that may pass a type-2 singularity.
    combined : bool
        Whether `rows` are all rows, and combined.
    """

    mech: Mechanism
    part: Partition
    rows: PartitionRows
    motors: Array
    square: bool
    bound: BoundLimits | None
    position: Array
    turning: Mask
    margin: float
    combined: bool = False

    def left(self, q: Vector, target: Vector) -> Vector:
        """The scaled step from q to a target; whole turns that do not count are left out."""
        mech = self.mech
        step = target - q if mech.nq == mech.nv else pin.difference(mech.model, q, target)
        step = np.where(self.turning, wrapped(step), step)
        found: Vector = step / mech.column_scale
        return found

    def moved(self, q: Vector, step: Vector) -> Vector:
        """q after a scaled step."""
        mech, v = self.mech, step * self.mech.column_scale
        if mech.nq == mech.nv:
            return q + v
        there: Vector = pin.normalize(mech.model, pin.integrate(mech.model, q, v))
        return there

    def inside(self, q: Vector) -> bool:
        """Whether limits of positions are kept."""
        if self.bound is None:
            return True
        x = positions_at(self.mech, self.bound, q)
        return bool((x >= self.position[0]).all() and (x <= self.position[1]).all())

    def place(self, q: Vector) -> ManifoldPlace | None:
        """The place of a nearly closed configuration; None if its constraints are singular, or not
        closed nearby."""
        here = self._at(q, self.rows.at(q)[0].copy())
        return here if here is None else self.step(here, np.zeros(here.N.shape[1]), anywhere=True)

    def step(
        self, here: ManifoldPlace, z: Vector, aim: Vector | None = None, anywhere: bool = False
    ) -> ManifoldPlace | None:
        """The place after a step N z, or at the configuration `aim` close by; None if it is not
        accepted. Limits and margin do not count `anywhere`."""
        r, mech, N = self.part.rank, self.mech, here.N
        K, right = np.zeros((mech.nv, mech.nv), order="F"), np.zeros(mech.nv)
        K[r:] = N.T
        last, worst, G = here.chart, 0.0, here.G

        def linearised(q: Vector) -> tuple[Vector, float] | str:
            nonlocal last, worst, G
            G, errors, worst = self.rows.at(q)
            K[:r] = G if here.mix is None else here.mix.T @ G
            right[:r] = -errors if here.mix is None else -here.mix.T @ errors
            if aim is not None:
                right[r:] = N.T @ self.left(q, aim)
            last = factored(K)
            if not determinant_kept(last.over(here.chart)):
                return "singular"
            return right, largest(right)

        def solved(right: Vector) -> Vector:
            return last.lu.solve(right)

        steps = Steps(solved, largest, self.moved, STEP_STALLED)
        why, q, *_ = corrected(steps, linearised, here.q, N @ z)
        if why or not worst <= max(CLOSED, self.part.tolerance):
            return None
        if not (anywhere or self.inside(q)):
            return None
        if turned_over(here.chart.lu.solve(K)):
            return None
        there = self._at(q, G.copy())
        if there is None or anywhere or self.margin < 0.0:
            return there
        return there if there.sigma > self.margin and self._one_side(here, there) else None

    def walk(self, here: ManifoldPlace, target: Vector, most: int) -> ManifoldWalk:
        """Go towards a target as far as steps come closer to it, with `most` steps tried."""
        stops, left, tried = list[ManifoldPlace](), self.left(here.q, target), 0
        while tried < most:
            z, away = here.N.T @ left, float(np.linalg.norm(left))
            if away <= ARRIVED:
                return ManifoldWalk(stops, True, tried)
            size, there = float(np.linalg.norm(z)), None
            length = min(size, SEARCH_STEP)
            if size <= SEARCH_STEP and away <= 2.0 * SEARCH_STEP:
                there, tried = self.step(here, z, target), tried + 1
                if there is not None and not largest(self.left(there.q, target)) <= ARRIVED:
                    there = None  # another configuration with the same coordinates in the chart
            for _ in range(STEP_HALVED if there is None and length > FLAT * away else 0):
                there, tried = self.step(here, (length / size) * z), tried + 1
                if there is not None:
                    break
                length *= 0.5
            if there is None:
                break
            here, left = there, self.left(there.q, target)
            stops.append(here)
            if away - float(np.linalg.norm(left)) < CLOSER * length:
                break
        return ManifoldWalk(stops, largest(left) <= ARRIVED, tried)

    def _one_side(self, here: ManifoldPlace, there: ManifoldPlace) -> bool:
        """Whether no type-2 singularity lies between two neighbours."""
        if here.driven is None or there.driven is None:
            pairs = zip(here.held, there.held, strict=True)
            return bool(np.prod([np.linalg.det(x.T @ y) for x, y in pairs]) > 0.0)
        if not determinant_kept(there.driven.over(here.driven)):
            return False
        return not turned_over(here.driven.lu.solve(np.vstack([there.G, self.motors.T])))

    def _at(self, q: Vector, G: Array) -> ManifoldPlace | None:
        rank, mix = self.part.actuation_rank, None
        if self.combined:
            mix = np.linalg.svd(G)[0][:, : self.part.rank]
            G = mix.T @ G
        N = null_space_by_svd(G, self.part.rank)[3]
        chart = factored(np.vstack([G, N.T]))
        if not chart.sign:
            return None
        if not rank:
            return ManifoldPlace(q, G, N, chart, None, np.inf, np.inf, (N[:, :0],) * 2, mix)
        U, sizes, R = np.linalg.svd(N.T @ self.motors, full_matrices=False)
        held = N @ U[:, :rank], R[:rank].T
        second = float(sizes[rank - 2]) if rank > 1 else np.inf
        driven = factored(np.vstack([G, self.motors.T])) if self.square else None
        return ManifoldPlace(q, G, N, chart, driven, float(sizes[rank - 1]), second, held, mix)


def manifold_steps(
    mech: Mechanism, part: Partition, bound: BoundLimits | None, turning: Mask, margin: float
) -> ManifoldSteps:
    """The rule for a mechanism."""
    position = np.zeros((2, 0)) if bound is None else bound.position
    motors = scaled_motors(mech) if mech.nu else np.zeros((mech.nv, 0))
    return ManifoldSteps(
        mech, part, partition_rows(mech, part.rows), motors, has_sides(mech, part), bound,
        position, turning, margin,
    )  # fmt: skip


def with_combined_rows(steps: ManifoldSteps) -> ManifoldSteps:
    """The rule with combinations of all rows, for redundant ones."""
    every = partition_rows(steps.mech, np.arange(len(steps.mech.row_names)))
    return replace(steps, rows=every, square=False, combined=True)
