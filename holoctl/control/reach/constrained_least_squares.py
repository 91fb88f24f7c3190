"""Nonlinear least squares of some rows, on the manifold of others, within limits.

    min 1/2 |r(q)|^2        phi(q) = 0,   lower <= x(q) <= upper

Steps stay in the tangent space Z of phi and within the limits, then phi is closed again:

    min 1/2 y' (H + mu I) y + g' y      lower <= x + A Z y <= upper,   g = Z' D' r

with H = (D Z)' D Z (Gauss-Newton, Levenberg-Marquardt); if that converges slowly H is the second
derivative of the Lagrangian along Z, by differences. Steps are short, so that the path stays on the
branch where it starts, as far as that leads.
References: J. Nocedal and S. Wright, Numerical Optimization, the chapters on nonlinear least
squares and sequential quadratic programming.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import daqp
import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import in_range, largest, least_squares, null_space_by_svd
from holoctl.base.tolerances import DAQP_FEASIBLE, EASIER, HARDER, WITHIN_LIMIT
from holoctl.closing.least_squares import distance
from holoctl.closing.newton import Problem, newton
from holoctl.closing.rank import manifold_rank
from holoctl.mechanism.mechanism import workspace
from holoctl.rows.evaluate import constraint_rows
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = ["Descent", "PositionBounds", "closed_within", "kinematics_at", "least", "no_bounds"]

REACH_CLOSED = 1e-10  # scaled
"""Closure error to which the mechanism is closed after each step."""

REACH_BENT = 0.5
"""A step is shortened if closing moves the mechanism by more than this fraction of the step."""

REACH_SADDLE = 1e-6
"""An iteration at rest is at a saddle if a second derivative is below minus this fraction of the
largest."""

REACH_KICK = (0.1, 0.03)  # scaled
"""Steps with which an iteration leaves a saddle."""

AT_LIMIT = 1e-9  # scaled
"""A limit at no more than this distance is active: it stops a motion towards it."""


REACH_STEP, REACH_STEPS = 0.3, 300  # scaled; a count
"""The longest step on the path to a pose, and the largest number of steps."""

REACHED_POSE = 1e-11  # scaled
"""The path ends if the residual is smaller; Newton's method completes it."""

REACH_SLOW, REACH_AT_REST = 0.5, 1e-9  # a share; scaled
"""Second derivatives are used if a step leaves more than this fraction of the cost; a step below
the second number is no progress."""

REACH_GAINS, REACH_SHORT = 1e-12, 1e-4  # a share; scaled
"""A step is rejected if it lowers the cost by less than the first fraction, unless it is shorter
than the second number: then rounding hides its gain."""

REACH_DAMPED = (1e-3, 1e-12)  # shares
"""Initial and least damping of steps, relative to the largest second derivative and the cost."""


Rows = Callable[[Kinematics], tuple[Vector, Array]]
"""A function of the kinematics: scaled values, and their derivative by steps of q."""


@dataclass(frozen=True, eq=False)
class PositionBounds:
    """Limits of positions, scaled.

    Attributes
    ----------
    at : function (kin) -> x (n,), A (n, nv)
        The scaled positions, and their derivative by steps of q.
    lower, upper : (n,) arrays
        The limits of the scaled positions.
    names : tuple of n str
        The names of the limits.
    units : (n,) array
        The units that positions are divided by.
    places : (n_tree,) int array
        The indices in q of the first positions, those of the tree; -1 for a position that is no
        entry of q.
    put : function (q) -> q
        q with positions of the tree that are beyond a limit moved to that limit.
    """

    at: Rows
    lower: Vector
    upper: Vector
    names: tuple[str, ...]
    units: Vector
    places: NDArray[np.intp]
    put: Callable[[Vector], Vector]

    def excess(self, kin: Kinematics) -> Vector:
        """The distance of each position from its limits: above zero beyond the upper one, below
        zero beyond the lower one, zero within."""
        x, _ = self.at(kin)
        over: Vector = np.maximum(x - self.upper, 0.0) - np.maximum(self.lower - x, 0.0)
        return over

    def held(self, at_upper: NDArray[np.bool_], which: NDArray[np.intp]) -> Rows:
        """Rows that hold some positions at their limits."""
        bound = np.where(at_upper, self.upper, self.lower)[which]

        def rows(kin: Kinematics) -> tuple[Vector, Array]:
            x, A = self.at(kin)
            return x[which] - bound, A[which]

        return rows


def no_bounds(nv: int) -> PositionBounds:
    """`PositionBounds` of no positions."""
    none = np.zeros(0)
    places = np.zeros(0, dtype=np.intp)
    return PositionBounds(
        lambda kin: (none, np.zeros((0, nv))), none, none, (), none, places, lambda q: q
    )  # fmt: skip


class Descent(NamedTuple):
    """The end of a path of least squares.

    Attributes
    ----------
    q : (nq,) array
        The last configuration.
    left : array
        The residual r there.
    stopped_by : tuple of str
        The limits that stop the path.
    ended : bool
        Whether no further step was possible; else there were too many steps.
    """

    q: Vector
    left: Vector
    stopped_by: tuple[str, ...]
    ended: bool


class _Iterate(NamedTuple):
    """The rows, constraints and positions at q; derivatives by scaled steps."""

    q: Vector
    r: Vector
    D: Array
    G: Array
    Z: Array
    x: Vector
    A: Array

    @property
    def cost(self) -> float:
        return 0.5 * float(self.r @ self.r)


def least(
    p: Problem, rows: Rows, bounds: PositionBounds, q: Vector, *, kicks: bool = True
) -> Descent:
    """Minimise |r| from a closed q within the bounds, to a local minimum or to r = 0.

    Parameters
    ----------
    p : Problem
        The constraints that stay closed, ``p.also`` included; all coordinates free.
    rows : function (kin) -> r, derivative by steps of q
    bounds : PositionBounds
        A position that is beyond a limit at q does not move farther beyond it.
    q : (nq,) array
    kicks : bool
        Whether to leave saddle points by small steps to either side.
    """
    bounds = _widened(p, bounds, q)
    here = _iterate(p, rows, bounds, q)
    damping, reach, last = REACH_DAMPED[0], REACH_STEP, REACH_STEP
    curved, stopped, ended = False, tuple[str, ...](), True
    for _ in range(REACH_STEPS):
        if largest(here.r) <= REACHED_POSE or here.Z.shape[1] == 0:
            break
        H = _second(p, rows, here) if curved else _gauss_newton(here)
        step, stopped = _step(here, bounds, H, damping)
        length = float(np.linalg.norm(step))
        if min(length, reach) <= REACH_AT_REST:
            if not curved:
                damping, reach, curved = REACH_DAMPED[0], REACH_STEP, True
                continue
            kicked = _kicked(p, rows, bounds, here, H) if kicks else None
            if kicked is None:
                break
            here, reach, curved = kicked, REACH_STEP, False
            continue
        taken = min(length, reach)
        trial = _closed(p, rows, bounds, here, step * (taken / length))
        short = curved and taken == length <= min(REACH_SHORT, 0.5 * last)
        gain = -REACH_GAINS if short else REACH_GAINS  # rounding hides the gain of short steps
        if trial is not None and trial.cost < (1.0 - gain) * here.cost:
            last = taken
            curved |= trial.cost > REACH_SLOW * here.cost and taken < REACH_STEP
            here, damping = trial, max(EASIER * damping, REACH_DAMPED[1])
            reach = min(2.0 * max(taken, reach), REACH_STEP)
        else:
            damping, reach = min(HARDER * damping, 1.0), 0.25 * taken
    else:
        ended = False
    return Descent(here.q, here.r, stopped, ended)


def closed_within(p: Problem, bounds: PositionBounds, q: Vector) -> Vector | None:
    """q closed by Newton's method, with positions that leave their limits held at them; None if
    that does not close."""
    also, held = p.also, np.zeros(bounds.lower.size, dtype=np.intp)
    for _ in range(bounds.lower.size + 1):
        x = newton(p, q, None)
        if not largest(p.scaled_rows(x)[0]) <= REACH_CLOSED:
            return None
        over = bounds.excess(kinematics_at(p, x)) if bounds.lower.size else np.zeros(0)
        if largest(over) <= WITHIN_LIMIT:
            return x
        new = np.where(np.abs(over) > WITHIN_LIMIT, np.sign(over), 0).astype(np.intp)
        if not (new != 0)[held == 0].any():
            return None
        held = np.where(held == 0, new, held)
        at = bounds.held(held > 0, np.flatnonzero(held))
        p = replace(p, also=at if also is None else _together(also, at))
    return None


def kinematics_at(p: Problem, q: Vector) -> Kinematics:
    """The kinematics at q, at the time of the problem."""
    return kinematics(p.mech.model, workspace(p.mech), q, np.zeros(p.mech.nv), p.t)


def _together(first: Rows, second: Rows) -> Rows:
    """The rows of both functions."""

    def rows(kin: Kinematics) -> tuple[Vector, Array]:
        a, b = first(kin), second(kin)
        return np.append(a[0], b[0]), np.vstack([a[1], b[1]])

    return rows


# ----------------------------------------------------------------------------- one configuration


def _iterate(p: Problem, rows: Rows, bounds: PositionBounds, q: Vector) -> _Iterate:
    kin, found = constraint_rows(p.mech, q, np.zeros(p.mech.nv), p.t)
    error, G = p.scaled(kin, found)
    Z = null_space_by_svd(G, manifold_rank(G, largest(error)))[3]
    r, D = rows(kin)
    x, A = bounds.at(kin)
    return _Iterate(q, r, D * p.metric, G, Z, x, A * p.metric)


def _widened(p: Problem, bounds: PositionBounds, q: Vector) -> PositionBounds:
    """The bounds, widened to contain the positions at q."""
    if not bounds.lower.size:
        return bounds
    x, _ = bounds.at(kinematics_at(p, q))
    return replace(
        bounds, lower=np.minimum(bounds.lower, x), upper=np.maximum(bounds.upper, x)
    )  # fmt: skip


def _closed(
    p: Problem, rows: Rows, bounds: PositionBounds, here: _Iterate, step: Vector
) -> _Iterate | None:
    """The configuration after a step, closed again; None if that fails or leads far away."""
    ahead = p.moved(here.q, step)
    q = closed_within(p, bounds, ahead)
    length = float(np.linalg.norm(step))
    if q is None or distance(p.mech, ahead, q) > REACH_BENT * length + REACH_AT_REST:
        return None
    return _iterate(p, rows, bounds, q)


# -------------------------------------------------------------------------------------- the step


def _gauss_newton(here: _Iterate) -> Array:
    DZ = here.D @ here.Z
    H: Array = DZ.T @ DZ
    return H


def _second(p: Problem, rows: Rows, here: _Iterate, h: float = 1e-5) -> Array:
    """Second derivative of ``|r|^2 / 2 - l . phi`` along Z, by central differences."""
    g = here.D.T @ here.r
    multipliers = least_squares(here.G.T, g, rcond=1e-9) if here.G.size else np.zeros(0)

    def slope(step: Vector) -> Vector:
        kin, found = constraint_rows(
            p.mech, p.moved(here.q, step), np.zeros(p.mech.nv), p.t
        )  # fmt: skip
        r, D = rows(kin)
        s: Vector = p.metric * (D.T @ r) - p.scaled(kin, found)[1].T @ multipliers
        return s

    H = np.column_stack([(slope(h * z) - slope(-h * z)) / (2.0 * h) for z in here.Z.T])
    reduced = here.Z.T @ H
    symmetric: Array = 0.5 * (reduced + reduced.T)
    return symmetric


def _step(
    here: _Iterate, bounds: PositionBounds, H: Array, damping: float
) -> tuple[Vector, tuple[str, ...]]:
    """The best step within the bounds, and the limits that stop it."""
    values, vectors = np.linalg.eigh(in_range(H))
    most = max(float(np.abs(values).max()), 1e-12)
    mu = damping * min(1.0, 2.0 * here.cost) + REACH_DAMPED[1]
    values = np.abs(values) + mu * most
    g = here.Z.T @ (here.D.T @ here.r)
    y = -vectors @ ((vectors.T @ g) / values)
    rows = here.A @ here.Z
    moving = np.linalg.norm(rows, axis=1) > REACH_AT_REST
    rows, names = rows[moving], np.array(bounds.names)[moving]
    low = np.minimum(bounds.lower - here.x, 0.0)[moving]
    high = np.maximum(bounds.upper - here.x, 0.0)[moving]
    y *= min(1.0, REACH_STEP / max(float(np.linalg.norm(y)), REACH_AT_REST))
    ahead = rows @ y
    if (ahead >= low).all() and (ahead <= high).all():
        return here.Z @ y, ()
    damped = vectors @ (values[:, None] * vectors.T)
    sense = np.zeros(low.size, dtype=np.intc)
    y, _, flag, info = daqp.solve(damped, g, rows, high, low, sense, primal_tol=DAQP_FEASIBLE)
    if flag < 1 or not np.isfinite(y).all():
        return np.zeros(here.Z.shape[0]), ()
    ahead = rows @ y
    at = (np.abs(info["lam"]) > 0.0) & (np.minimum(high, -low) <= AT_LIMIT)
    return here.Z @ y, tuple(names[at].tolist())


def _kicked(
    p: Problem, rows: Rows, bounds: PositionBounds, here: _Iterate, H: Array
) -> _Iterate | None:
    """A configuration of lower cost next to a saddle point, in all directions or along the active
    bounds; None if there is none."""
    at = np.minimum(bounds.upper - here.x, here.x - bounds.lower) <= AT_LIMIT
    A = here.A[at] @ here.Z
    spaces = [np.eye(H.shape[0])]
    if A.size:
        spaces.append(null_space_by_svd(A, int(np.linalg.matrix_rank(A, AT_LIMIT)))[3])
    for space in spaces:
        if not space.size:
            continue
        values, vectors = np.linalg.eigh(in_range(space.T @ H @ space))
        if values[0] >= -REACH_SADDLE * max(float(np.abs(values).max()), REACH_SADDLE):
            continue
        direction = here.Z @ (space @ vectors[:, 0])
        for step in [side * size * direction for size in REACH_KICK for side in (1.0, -1.0)]:
            trial = _closed(p, rows, bounds, here, step)
            if trial is not None and trial.cost < (1.0 - REACH_GAINS) * here.cost:
                return trial
    return None
