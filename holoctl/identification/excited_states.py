"""Information on parameters, and the distance from limits, at states of a periodic motion.

    M = 1/n sum_i W_i' C_i^-1 W_i        C = N' B S B' N

W (k, b) are the columns of base parameters in N' (M a + h - F), scaled by the sizes of these; C is
the covariance of the efforts on N for noise of the motors with standard deviations sqrt(S).
A distance (slack) is positive within a limit, and 1 is about the whole range.
Reference: docs/derivations-identification.md, "Excitation".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import cholesky, orthonormal_columns
from holoctl.design.paths.closed_path import ClosedPath, closed_path
from holoctl.design.paths.dynamics import shared_efforts
from holoctl.design.paths.inputs import CheckedPath
from holoctl.design.paths.path_continuation import System, filled_at, gamma_of, moved
from holoctl.design.paths.path_system import PathReference
from holoctl.design.retiming.limit_rows import effort_range, limited_along
from holoctl.dynamics.actuation import scaled_motors
from holoctl.identification.fourier import Series
from holoctl.identification.parameters import Parameters, parameter_rows
from holoctl.mechanism.bound_limits import BoundLimits
from holoctl.projector.projection import Projection, project

__all__ = ["Excited", "ExcitedStates", "Slopes", "slack_names", "smallest_singular_values"]

FAR_FROM_SINGULAR = 0.2
"""The smallest singular values of the constraints and of gamma' B along the motion are at least
this share of those at its start."""

STEP = 1e-6
"""Steps of differences, of the units of values, rates and accelerations."""


class Excited(NamedTuple):
    """A motion at its samples.

    Attributes
    ----------
    path : ClosedPath
    W : (n, k, p) array
        C^-1/2 N' W.
    u : (n, nu) array
        Efforts with the parameters of the mechanism.
    slack : (n, m) array
        Distances from limits, in the order of `slack_names`.
    projections : list of n Projection
    """

    path: ClosedPath
    W: Array
    u: Array
    slack: Array
    projections: list[Projection]


class Slopes(NamedTuple):
    """Derivatives by values, rates and accelerations of the driven coordinates at each sample.

    Attributes
    ----------
    W : (n, 3 p, k, b) array
    slack : (n, 3 p, m) array
    """

    W: Array
    slack: Array


def slack_names(bound: BoundLimits, motors: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the distances: a limit for each of its finite sides."""
    joints = [
        f"{name}.{what}"
        for what in ("position", "velocity", "acceleration")
        for side in (0, 1)
        for name, x in zip(bound.names, getattr(bound, what)[side], strict=True)
        if np.isfinite(x)
    ]
    efforts = [motors[i] for side in (0, 1) for i in _limited_motors(bound, side)]
    return (*joints, *efforts, "singularity of the constraints", "type-2 singularity")


def _limited_motors(bound: BoundLimits, side: int) -> list[int]:
    """Motors with a limit on a side."""
    return np.flatnonzero(np.isfinite(bound.effort[side])).tolist()


@dataclass(frozen=True, eq=False)
class ExcitedStates:
    """The evaluation of motions of a system.

    Attributes
    ----------
    model : Parameters
    system : System
    start : (nq,) array
    bound : BoundLimits
        With the margin.
    noise : (nu,) array
        Standard deviations of the measured efforts.
    least : (2,) array
        The smallest singular values of the constraints and of gamma' B at the start.
    """

    model: Parameters
    system: System
    start: Vector
    bound: BoundLimits
    noise: Vector
    least: Vector

    def motion(self, series: Series, samples: int) -> ClosedPath:
        """The motion at equidistant samples of a period, proved to be on the branch of the start.

        Raises
        ------
        SingularityError
            If it leaves the workspace or comes to a type-2 singularity.
        BranchError
            If it cannot be followed for another reason.
        """
        grid: Vector = np.linspace(0.0, series.period, samples, endpoint=False)
        return closed_path(CheckedPath(self.system, series, grid, self.start), grid, still=True)

    def excited(self, path: ClosedPath, at: list[Projection] | None = None) -> Excited:
        """Columns, efforts and distances from limits at the states of a path in time; `at` are
        their projections, if these are known."""
        model, mech, part = self.model, self.model.mech, self.system.part
        if at is None:
            at = [project(mech, *x, partition=part) for x in zip(path.q, path.d1, strict=True)]
        n, k, p = path.s.size, path.gamma.shape[2], len(model.names)
        W, needed = np.zeros((n, k, p)), np.zeros((n, k))
        A = np.swapaxes(path.gamma, 1, 2) @ mech.B
        for i, P in enumerate(at):
            rows, known = parameter_rows(model, P, path.d2[i], path.gamma[i])
            needed[i] = rows @ model.values + known
            C = A[i] * self.noise
            W[i] = cholesky(C @ C.T).whitened(rows.T).T
        ones = np.ones(n)
        lower, upper = effort_range(path, self.bound, ones)
        u = shared_efforts(A, needed, lower, upper)
        parts = [*self._of_joints(path)]
        strong = np.where(np.isfinite(self.bound.effort), np.abs(self.bound.effort), 0.0).max(
            axis=0
        )
        for side, x in enumerate((u - lower, upper - u)):
            of = _limited_motors(self.bound, side)
            parts.append(x[:, of] / strong[of])
        parts.append(smallest_singular_values(path) / self.least - FAR_FROM_SINGULAR)
        return Excited(path, W, u, np.hstack(parts), at)

    def _of_joints(self, path: ClosedPath) -> list[Array]:
        """Distances from limits of positions, velocities and accelerations."""
        bound, found = self.bound, list[Array]()
        if not bound.names:
            return found
        for what, x in zip(
            ("position", "velocity", "acceleration"), limited_along(path, bound), strict=True
        ):
            lower, upper = getattr(bound, what)
            size = 0.5 * (upper - lower)
            size = np.where(np.isfinite(size), size, bound.units)
            for y in (x - lower, upper - x):
                use = np.isfinite(y[0])
                found.append(y[:, use] / size[use])
        return found

    def slopes(self, at: Excited, basis: Array) -> Slopes:
        """Derivatives by differences of each state, of the columns times a `basis` (p, b)."""
        path, units, W, slack = at.path, 1.0 / self.system.drive.scale, [], []
        wanted = [path.path(s) for s in path.s.tolist()]
        for order in range(3):
            for j, unit in enumerate(units):
                step = np.zeros((3, units.size))
                step[order, j] = h = STEP * unit
                if order == 2:
                    there = replace(path, d2=path.d2 + h * path.gamma[:, :, j])
                    found = self.excited(there, at.projections)
                else:
                    near = [PathReference(*np.add((w.value, w.rate, w.acceleration), step))
                            for w in wanted]  # fmt: skip
                    found = self.excited(self._near(path, near))
                W.append((found.W - at.W) @ basis / h)
                slack.append((found.slack - at.slack) / h)
        return Slopes(np.stack(W, axis=1), np.stack(slack, axis=1))

    def _near(self, path: ClosedPath, wanted: list[PathReference]) -> ClosedPath:
        """The path at slightly different values, by Newton's method from its nodes."""
        system, mech = self.system, self.system.mech
        r, c, q = system.part.rank, mech.column_scale, path.q
        p = system.drive.scale.size
        values = [w.value for w in wanted]
        for _ in range(3):
            K, right, _ = filled_at(system, values, q)
            if not np.abs(right).max(initial=0.0) > 1e-13:
                break
            steps = c * np.linalg.solve(K, right[:, :, None])[:, :, 0]
            q = np.array([moved(mech, *x) for x in zip(q, steps, strict=True)])
            if mech.nq != mech.nv:
                q = np.array([pin.normalize(mech.model, x) for x in q])
        gamma = gamma_of(system, K)
        d1 = np.einsum("ivp,ip->iv", gamma, np.array([w.rate for w in wanted]))
        right = np.zeros_like(right)
        for i, (w, x, v) in enumerate(zip(wanted, q, d1, strict=True)):
            right[i, :r] = system.rows.right(x, v)
            right[i, r : r + p] = system.drive.scale * w.acceleration
        d2 = c * np.linalg.solve(K, right[:, :, None])[:, :, 0]
        return ClosedPath(system, path.path, path.s, q, d1, d2, gamma)


def smallest_singular_values(path: ClosedPath) -> Array:
    """Those of the constraints, 1 without any, and of gamma' B, scaled, (n, 2)."""
    mech, system, n = path.system.mech, path.system, path.s.size
    c, found = mech.column_scale[:, None], np.ones((n, 2))
    if system.part.rank:
        G = np.array([system.rows.at(q)[0].copy() for q in path.q])
        found[:, 0] = np.linalg.svd(G, compute_uv=False)[:, -1]
    N = np.array([orthonormal_columns(gamma / c) for gamma in path.gamma])
    E = np.swapaxes(N, 1, 2) @ scaled_motors(mech)
    found[:, 1] = np.linalg.svd(E, compute_uv=False)[:, path.gamma.shape[2] - 1]
    return found
