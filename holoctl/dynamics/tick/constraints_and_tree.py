"""The constraints and the tree of a tick: the NumPy backend of laws/operators.py.

With the kept rows split into dependent and independent columns, and c the independent rates,

    G_dep a_dep = -drift - G_ind c          K a = [-drift; c]
    x = w_ind - G_ind' y                    G_dep' y = w_dep

so that a motion and the efforts along it take one solve each, and gamma is formed only if a law
uses it. Constants are prepared once, for one thread.
Derivation: docs/derivations.md, "Inverse dynamics in a tick".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.linalg import lapack

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import in_place_lu
from holoctl.base.tolerances import INVERSE_DOUBT
from holoctl.dynamics.actuation import effort_scales, target_consistent
from holoctl.forces.sum_of_forces import all_in_a_tick
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.coordinate_split import Split
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import may_depend_on_time
from holoctl.tree.live_motion import LiveMotion

__all__ = ["NumericConstraints", "NumericTree", "TickState", "numeric_constraints", "numeric_tree"]

UNEQUAL_PIVOTS = 1e8
"""Largest ratio of the pivots of weighted motors in a tick."""


class TickState:
    """The state of a tick, and whether some result is in doubt there."""

    __slots__ = ("doubtful", "known", "q", "t", "v")
    q: Vector
    v: Vector
    t: float
    known: Vector | None
    doubtful: bool

    def at(self, q: Vector, v: Vector, t: float, known: Vector | None) -> None:
        """Set the state, without doubts."""
        self.q, self.v, self.t, self.known, self.doubtful = q, v, t, known, False


@dataclass(frozen=True, eq=False, slots=True)
class NumericConstraints:
    """`laws.operators.Constraints` in numbers. The next call of a function overwrites its
    result."""

    factor: Callable[[], bool] | None
    of_motors: Callable[[Vector], Vector]
    of_rates: Callable[[Vector], Vector]
    motion: Callable[[Vector], Vector]
    velocity: Callable[[Vector], Vector]
    along: Callable[[Vector], Vector]
    share: Callable[[Vector], Vector]
    basis: Callable[[], Array]
    actuation: Callable[[], Array]
    undriven: Callable[[], Array] | None
    rows: Callable[[tuple[Array, Array]], tuple[Array, Vector, float]]
    keeps: Callable[[Vector], None] | None


@dataclass(frozen=True, eq=False, slots=True)
class NumericTree:
    """`laws.operators.Tree` in numbers."""

    here: TickState
    friction: bool
    needed: Callable[[Vector, Vector | None], Vector]
    at_rest: Callable[[], Vector]
    inertia_times: Callable[[Array], Array]
    cholesky: Callable[[Array], Callable[[Array], Array]]
    lower: Callable[[Array], Array]
    friction_change: Callable[[Vector], Vector | None]
    steps: int = 1

    @property
    def v(self) -> Vector:
        """The velocity (nv,)."""
        return self.here.v


def numeric_tree(
    mech: Mechanism, data: pin.Data, motion: LiveMotion, here: TickState
) -> NumericTree:
    """The tree of one thread; `motion` is read at the q of the last evaluation."""
    model, rest = mech.model, np.zeros(mech.nv)
    friction, others = all_in_a_tick(mech.bound_forces, model, motion)
    rnea, crba, potrf, potrs = pin.rnea, pin.crba, lapack.dpotrf, lapack.dpotrs
    most = INVERSE_DOUBT**4

    def needed(a: Vector, at: Vector | None) -> Vector:
        q, v, t = here.q, here.v, here.t
        w: Vector = rnea(model, data, q, v, a)  # M a + h
        if friction is not None:
            w -= friction(q, v if at is None else at, t)
        if others is not None:
            w -= others(q, v, t)
        if here.known is not None:
            w -= here.known
        return w

    def at_rest() -> Vector:
        w: Vector = rnea(model, data, here.q, rest, rest)
        if others is not None:
            w -= others(here.q, rest, here.t)
        if here.known is not None:
            w -= here.known
        return w

    def inertia_times(X: Array) -> Array:
        found: Array = crba(model, data, here.q).dot(X)
        return found

    def guard(W: Array, factor: Array, info: int) -> None:
        pivots = factor.diagonal()
        lost = W.diagonal() / (pivots * pivots)
        if info or not lost.dot(lost) < most:
            here.doubtful = True

    def lower(W: Array) -> Array:
        """The lower factor."""
        factor, info = potrf(W, lower=1)
        guard(W, factor, info)
        return np.asarray(factor)

    def cholesky(W: Array) -> Callable[[Array], Array]:
        factor, info = potrf(W)
        guard(W, factor, info)

        def solve(b: Array) -> Array:
            x: Array = potrs(factor, b)[0]
            return x

        return solve

    def friction_change(at: Vector) -> Vector | None:
        """Friction at v minus friction at another velocity; None if it is zero."""
        if friction is None or at is here.v:
            return None
        change = friction(here.q, here.v, here.t).copy()  # the next call overwrites the array
        change -= friction(here.q, at, here.t)
        return change

    return NumericTree(
        here,
        friction is not None,
        needed,
        at_rest,
        inertia_times,
        cholesky,
        lower,
        friction_change,
    )


def numeric_constraints(
    mech: Mechanism, part: Partition, split: Split, here: TickState, own: bool,
    weights: Vector | None, inconsistent: str,
) -> NumericConstraints:  # fmt: skip
    """K of one thread. If the motors are the first independent coordinates of the split (`own`), c
    are the rates of the motors followed by those of passive motions; else c are the rates of the
    independent coordinates."""
    solve, solve_transposed = split.solve, split.solve_transposed
    right, G_ind = split.right, split.G_ind
    dependent, independent, kept_by = split.dependent, split.independent, split.kept_by
    nv, r, k, nu = mech.nv, dependent.size, independent.size, mech.nu
    G_ind_T, place = G_ind.T, np.argsort(np.concatenate([dependent, independent]))
    a, velocity_here, ordered_w = np.zeros((3, nv))
    a_dep, v_dep, of_rows = np.zeros(r), np.zeros(r), np.zeros(k)
    w_dep, w_ind = ordered_w[:r], ordered_w[r:]
    X, N = np.zeros((r, k), order="F"), np.zeros((nv, k))
    N[independent] = np.eye(k)
    timed = may_depend_on_time(mech)

    def motion(c: Vector) -> Vector:
        G_ind.dot(c, a_dep)
        np.subtract(right, a_dep, a_dep)
        solve(a_dep)  # G_dep a_dep = right - G_ind c
        a[dependent], a[independent] = a_dep, c  # half of the time of `take`
        return a

    def velocity(c: Vector) -> Vector:
        if timed:  # the rows have no phi_t
            here.doubtful = True
        G_ind.dot(c, v_dep)
        np.negative(v_dep, v_dep)
        solve(v_dep)
        velocity_here[dependent], velocity_here[independent] = v_dep, c
        return velocity_here

    def along(w: Vector) -> Vector:
        ordered_w[place] = w
        solve_transposed(w_dep)  # G_dep' y = w_dep
        G_ind_T.dot(w_dep, of_rows)
        return np.subtract(w_ind, of_rows)

    def basis() -> Array:
        np.negative(G_ind, X)
        solve(X)
        N[dependent] = X
        return N

    def rows(J: tuple[Array, Array]) -> tuple[Array, Vector, float]:
        """For dependent and independent columns; J_c overwrites the latter. The rate of c = 0 is
        returned as zero: `velocity` handles rows that depend on time."""
        dep, ind = J
        solve_transposed(dep.T)  # G_dep' Z = J_dep'
        return np.subtract(ind, dep.dot(G_ind), ind), dep.dot(right), 0.0

    def keeps(a: Vector) -> None:
        if kept_by is not None and not kept_by(here.v, a):
            here.doubtful = True

    of_own, BT = np.eye(k, nu), np.ascontiguousarray(mech.B.T)

    def actuation() -> Array:
        return of_own if own else BT.dot(basis()).T

    motors = _own_motors(mech, split) if own else _any_motors(
        mech, part, split, here, weights, inconsistent
    )  # fmt: skip
    return NumericConstraints(
        motors.factor, motors.of_motors, motors.of_rates, motion, velocity, along, motors.share,
        basis, actuation, motors.undriven, rows, None if kept_by is None else keeps,
    )  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class _MotorMaps:
    """Maps between motors and motions. `factor`, if it is needed, must be called after the rows are
    factored at a state."""

    factor: Callable[[], bool] | None
    of_motors: Callable[[Vector], Vector]
    of_rates: Callable[[Vector], Vector]
    share: Callable[[Vector], Vector]
    undriven: Callable[[], Array] | None


def _own_motors(mech: Mechanism, split: Split) -> _MotorMaps:
    """Maps for motors that each drive one independent coordinate."""
    nv, nu, k = mech.nv, mech.nu, split.independent.size
    if nu == k:
        return _MotorMaps(None, _same, _same, _same, None)
    solve, dependent, passive = split.solve, split.dependent, split.independent[nu:]
    of_motors, of_rates = np.zeros((2, k))
    N, X = np.zeros((nv, k - nu)), np.zeros((dependent.size, k - nu), order="F")
    N[passive, np.arange(k - nu)] = 1.0
    G_passive = split.G_ind[:, nu:]

    def accelerations(target: Vector) -> Vector:
        of_motors[:nu] = target
        return of_motors

    def rates(given: Vector) -> Vector:
        of_rates[:nu] = given
        return of_rates

    def undriven() -> Array:
        np.negative(G_passive, X)
        solve(X)
        N[dependent] = X
        return N

    return _MotorMaps(None, accelerations, rates, lambda x: x[:nu], undriven)


def _same(x: Vector) -> Vector:
    return x


def _any_motors(
    mech: Mechanism, part: Partition, split: Split, here: TickState, weights: Vector | None,
    inconsistent: str,
) -> _MotorMaps:  # fmt: skip
    """Any actuation matrix that drives all motions; more motors than these share the effort.

    Y = gamma' B, scaled:        Y' c = target - B' bias        Y u = x
    """
    nu, k, r = mech.nu, split.independent.size, split.dependent.size
    allowed = 0.1 * target_consistent(part.tolerance) if inconsistent == "raise" else np.inf
    solve_transposed, right, G_ind_T = split.solve_transposed, split.right, split.G_ind.T
    unit = mech.column_scale[split.independent]
    u_scale, cost = effort_scales(mech, weights)
    B_dep, B_ind = mech.B[split.dependent], mech.B[split.independent]
    X, Y = np.zeros((r, nu), order="F"), np.zeros((k, nu), order="F")
    square = in_place_lu(Y, np.ones(k)) if k == nu else None

    def factor() -> bool:
        X[:] = B_dep
        solve_transposed(X)  # G_dep' X = B_dep
        Y[:] = unit[:, None] * (B_ind - G_ind_T.dot(X)) * u_scale
        if square is not None:
            return square.factor() < INVERSE_DOUBT**2
        triangle, _, _, _ = lapack.dgeqrf(Y.T)
        return bool(np.abs(triangle.diagonal()).min() > 1.0 / INVERSE_DOUBT)

    def solved(wanted: Vector) -> tuple[Vector, Vector]:
        """c of ``Y' c = wanted``, and the residual."""
        if square is not None:
            square.solve_transposed(wanted)
            return unit * wanted, wanted[k:]
        _, x, _ = lapack.dgels(Y.T, wanted)
        return unit * x[:k], x[k:]

    def of_motors(target: Vector) -> Vector:
        c, left = solved(u_scale * (target - X.T.dot(right)))
        if left.size and not left.dot(left) < allowed * allowed:  # of idle motors it may be nan
            here.doubtful = True
        return c

    def of_rates(rates: Vector) -> Vector:
        return solved(u_scale * rates)[0]

    def share(x: Vector) -> Vector:
        u = unit * x
        if square is not None:
            square.solve(u)
        else:
            triangle, u, _ = lapack.dgels(Y / cost, np.concatenate([u, np.zeros(nu - k)]))
            pivots = np.abs(triangle.diagonal())
            if not pivots.min() * UNEQUAL_PIVOTS > pivots.max():
                here.doubtful = True
            u /= cost
        u *= u_scale
        return u

    return _MotorMaps(factor, of_motors, of_rates, share, None)
