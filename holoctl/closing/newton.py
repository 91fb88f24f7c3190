"""Closing a configuration: damped Newton steps on the scaled rows e(q), shortest in a metric.

    (G'^T G' + mu I) step = -G'^T e        mu = damping * min(|e|^2, 1)

This is Levenberg-Marquardt; the damping vanishes with the square of the error, which keeps
convergence quadratic with redundant rows. Additional rows push axes of closures apart that point in
opposite directions.
References: J. Nocedal and S. Wright, Numerical Optimization, the chapter on nonlinear least
squares; docs/derivations.md, "Assembly".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest, least_squares
from holoctl.base.tolerances import EASIER, HARDER, RANK, ROUNDING
from holoctl.closing.axis_sign import cosine_rows
from holoctl.constraints.constraint_protocol import Rows
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import constraint_rows
from holoctl.tree.kinematics import Kinematics

__all__ = ["Problem", "at_rest", "damped_step", "everywhere", "newton", "residual"]

LONGEST_STEP = 0.5  # scaled
"""Longest step of the iterations that close a mechanism (about 0.5 rad)."""


FALLING = 0.25
"""Below the tolerance, the iteration continues while a step reduces the squared error to this
fraction of it."""

STALLED, STALLS = 1e-4, 8  # a share; a count
"""A step that reduces the squared error by less than this fraction has stalled; number of stalled
steps in a row after which the iteration may end."""

AT_LEAST_ERROR, STALL_OPEN = 1e-2, 1e-3  # scaled
"""It ends at a slope of the error below the first with an error above the second: no step closes
the mechanism from there."""

LIGHTEST = 1e-6
"""In the metric of steps, weights are at least this fraction of the largest."""


def newton(p: Problem, q: Vector, axis_signs: WrenchRows | None, patient: bool = False) -> Vector:
    """Levenberg-Marquardt on the scaled rows, with push-off rows if `axis_signs` is given.

    With push-off rows it stops once the axes agree and the rows are nearly closed; without, it
    continues below `tol` until the error no longer falls, so that only rounding remains. It ends at
    a local minimum of the error that is not zero, unless it is `patient`.
    """
    pushing = axis_signs is not None
    damping, in_vain = 1e-3, 0
    error, G = residual(p, q, axis_signs)
    for _ in range(p.max_iter):
        size = float(error @ error)
        if largest(error) <= ROUNDING or (pushing and size < 1e-8):
            break
        # not smaller, so that rows which are zero up to rounding cause no step
        mu = max(damping * min(size, 1.0), p.blind**2)
        step = damped_step(G, error, mu)
        length = float(np.linalg.norm(step))
        trial = p.moved(q, step * min(1.0, LONGEST_STEP / length) if length > 0.0 else step)
        new_error, new_G = residual(p, trial, axis_signs)
        new_size = float(new_error @ new_error)
        if new_size < size:
            slow = largest(error) <= p.tol and new_size > FALLING * size
            in_vain = in_vain + 1 if new_size > (1.0 - STALLED) * size else 0
            q, error, G = trial, new_error, new_G
            damping = max(EASIER * damping, 1e-12)
            if slow or (in_vain >= STALLS and not patient and at_rest(error, G)):
                break
        elif largest(error) <= p.tol or damping > 1e12 or length < 1e-15:
            break
        else:
            damping *= HARDER
    return q


def at_rest(error: Vector, G: Array) -> bool:
    """Whether the error is not zero, but stationary: no step reduces it to first order."""
    size = float(np.linalg.norm(error))
    return size > STALL_OPEN and float(np.linalg.norm(G.T @ error)) < AT_LEAST_ERROR * size


def damped_step(G: Array, error: Vector, mu: float) -> Vector:
    """argmin |G step + error|^2 + mu |step|^2."""
    n = G.shape[1]
    stacked = np.vstack([G, np.sqrt(mu) * np.eye(n)])
    return least_squares(stacked, -np.append(error, np.zeros(n)))


def residual(p: Problem, q: Vector, axis_signs: WrenchRows | None) -> tuple[Vector, Array]:
    """Scaled error and its Jacobian by steps in the metric, with push-off rows if requested."""
    error, G = p.scaled_rows(q)
    if axis_signs is None:
        return error, G
    axes = cosine_rows(p.mech, q, p.t, axis_signs)
    # cos(angle) - 1 has no slope at 180 degrees; only axes more than 60 degrees apart push
    push = np.minimum(axes.error - 0.5, 0.0)
    slope = (push < 0.0)[:, None] * axes.jacobian[:, p.free] * p.metric
    return np.concatenate([error, push]), np.vstack([G, slope])


@dataclass(frozen=True)
class Problem:
    """A closing problem.

    `metric` (nf,) are the step sizes of equal weight. `rows` are those that must close; None means
    all. Combinations of rows with a singular value below `blind` cause no step. `also` returns
    additional rows that do not belong to the mechanism: their scaled error, and its Jacobian by v.
    """

    mech: Mechanism
    guess: Vector
    t: float
    tol: float
    max_iter: int
    weights: Vector
    free: NDArray[np.intp]
    rows: NDArray[np.intp] | None = None
    blind: float = 1e-10
    also: Callable[[Kinematics], tuple[Vector, Array]] | None = None

    @cached_property
    def metric(self) -> Vector:
        floor = LIGHTEST * (self.weights * self.mech.column_scale**2).max()
        scaled = np.maximum(self.weights * self.mech.column_scale**2, floor if floor > 0 else 1.0)
        scale: Vector = (self.mech.column_scale / np.sqrt(scaled / scaled.max()))[self.free]
        return scale

    @cached_property
    def weight_unit(self) -> float:
        """The largest weight, in scaled coordinates, to which the others are relative."""
        unit = float((self.weights * self.mech.column_scale**2).max())
        return unit if unit > 0.0 else 1.0

    def moved(self, q: Vector, step: Vector) -> Vector:
        """q after a step in the metric of the free coordinates."""
        d = np.zeros(self.mech.nv)
        d[self.free] = self.metric * step
        new: Vector = pin.normalize(self.mech.model, pin.integrate(self.mech.model, q, d))
        return new

    def scaled_rows(self, q: Vector) -> tuple[Vector, Array]:
        """Scaled error, and its Jacobian by steps in the metric."""
        return self.scaled(*constraint_rows(self.mech, q, np.zeros(self.mech.nv), self.t))

    def scaled(self, kin: Kinematics, rows: Rows) -> tuple[Vector, Array]:
        """`scaled_rows` from rows that are evaluated already."""
        r = self.mech.row_scale
        error, G = r * rows.error, r[:, None] * rows.jacobian[:, self.free] * self.metric
        if self.rows is not None:
            error, G = error[self.rows], G[self.rows]
        if self.also is None:
            return error, G
        others, J = self.also(kin)
        return np.append(error, others), np.vstack([G, J[:, self.free] * self.metric])


def everywhere(mech: Mechanism, q: Vector, t: float) -> Problem:
    """A problem in which all coordinates are free and have the same weight."""
    everything, weights = np.arange(mech.nv), 1.0 / mech.column_scale**2
    return Problem(mech, q, t, 1e-9, 50, weights, everything, blind=RANK)
