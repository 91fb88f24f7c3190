"""Inverse dynamics in a tick: everything that does not change is laid out once.

With the kept rows split into dependent and independent columns,

    G_dep a_dep = -drift - G_ind ydd       a from the motion
    w = M a + h - F                        recursive Newton-Euler, forces of the mechanism
    G_dep' y = w_dep                       two vector solves in all: gamma is not formed
    gamma' B u = w_ind - G_ind' y

Derivation: docs/derivations.md, "In a tick".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg import lapack

from holoctl.base.checks import Vector, listing
from holoctl.base.linalg import in_place_lu
from holoctl.base.tolerances import (
    INVERSE_DOUBT,
    PASSIVE_DOUBT,
    UNEQUAL_PIVOTS,
)
from holoctl.dynamics.actuation import effort_scales, target_consistent
from holoctl.dynamics.tick.aim import Aim, Ground
from holoctl.estimation.readings import Readings
from holoctl.estimation.seen_motion import Seeing
from holoctl.forces.together import all_in_a_tick
from holoctl.mechanism.coupled_motors import coupled_motors
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, most_condition
from holoctl.projector.split import Split, split_rows
from holoctl.rows.closure_limits import StateLimits
from holoctl.rows.evaluate import may_depend_on_time
from holoctl.rows.tick.fast_rows import why_not
from holoctl.tree.live_motion import LiveMotion, live_motion

__all__ = ["Behind", "LaidOut", "Tick", "coupled", "lay_out", "lay_out_behind", "why_general"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

Tick = Callable[[Vector, Vector, Any, float, Vector | None, Vector | None], Vector | None]
"""tick(q, v, target, t, efforts, rates) -> u, or None where the general path is to decide. Without
a target, u holds the mechanism at rest, and v is judged only. With rates, of the motors, friction
is that of the motion that has these; see dynamics/reference_rates.py. What is no array is for the
aim that the tick was laid out with."""


class Behind(NamedTuple):
    """What more can be asked at the state of the last tick that gave an answer.

    Attributes
    ----------
    efforts : Tick
        Once more, for another target; the state must be the same.
    acceleration : function (q, v, t) -> (nv,) array or None
        What the last answer for a target causes; it changes with the next one. Where friction is
        compensated at the reference that is not what was asked for, for v has friction of its own.
    response : function (q) -> (H, Y) or None
        What efforts cause there, as in dynamics/effort_response.py, which is the oracle; None where
        some motion has no inertia.
    worth : function (q) -> H or None
        The first of these alone.
    """

    efforts: Tick
    acceleration: Callable[[Vector, Vector, float], Vector | None]
    response: Callable[[Vector], tuple[Array, Array] | None]
    worth: Callable[[Vector], Array | None]


class LaidOut(NamedTuple):
    """A tick, and what may be asked behind it."""

    tick: Tick
    behind: Behind


def why_general(mech: Mechanism, part: Partition, motion: LiveMotion | None = None) -> str:
    """Why the fast path does not serve; empty where it does. `motion` as in `why_not`."""
    rho, k = part.actuation_rank, part.independent.size
    if rows := why_not(mech, motion):
        return rows
    if rho == 0 or rho < min(mech.nu, k):
        return "the motors drive fewer motions than there are motors and motions" + coupled(mech)
    if rho < k and _motor_coordinates(mech, part) is None:
        return "some motion is passive, and not every motor drives an independent coordinate"
    return ""


def coupled(mech: Mechanism) -> str:
    """Which motors add no motion, as words behind others; empty where couplings tie none."""
    tied = coupled_motors(mech)
    which = f" ({listing(tied)}: couplings tie what they drive to what other motors drive)"
    return which if tied else ""


def lay_out(
    mech: Mechanism, part: Partition, weights: Vector | None, inconsistent: str,
    limits: StateLimits, aim: Aim | None = None,
) -> LaidOut | None:  # fmt: skip
    """The tick of one thread, or None where only the general path serves."""
    motion = live_motion(mech.model, mech.model.createData())
    if motion is None or why_general(mech, part, motion):
        return None
    motors, more = _motor_coordinates(mech, part), None if aim is None else aim.rows
    if motors is None:
        split = split_rows(mech, part, part.independent, motion, INVERSE_DOUBT, limits, more)
        return _tick(mech, split, _actuated(mech, part, split, weights, inconsistent), motion, aim)
    passive = np.setdiff1d(part.independent, motors)
    independent, doubt = np.concatenate([motors, passive]), INVERSE_DOUBT
    if passive.size:
        doubt = PASSIVE_DOUBT
    split = split_rows(mech, part, independent, motion, doubt, limits, more)
    return _tick(mech, split, None, motion, aim)


def lay_out_behind(
    mech: Mechanism,
    part: Partition,
    weights: Vector | None,
    inconsistent: str,
    see: Seeing,
    sensors: Readings,
    aim: Aim | None = None,
) -> LaidOut | None:
    """The tick at the state that an estimate has just found: G_dep is factored there already.

    None where what is measured is not what is independent here, or not in the order of the motors.
    """
    fast, motion, unseen, columns = see.rows.fast, see.rows.motion, see.unseen, sensors.columns
    if fast is None or motion is None or not see.known or see.bordered:
        return None
    if why_general(mech, part, motion) or not np.array_equal(unseen, part.dependent):
        return None
    motors = _motor_coordinates(mech, part)
    if motors is not None and not np.array_equal(motors, columns):
        return None
    per_unit, moved, pivots = 1.0 / mech.column_scale[unseen], fast.moved, see.pivots
    limit, inverse = min(INVERSE_DOUBT, most_condition(part)) ** 2, np.zeros(unseen.size)

    def constrain(q: Vector, v: Vector, t: float) -> bool:
        np.divide(per_unit, pivots, inverse)
        return bool(inverse.dot(inverse) < limit) and moved(q, v, t)

    split = Split(
        constrain, see.solve, fast.right, see.rows.G_seen, unseen, columns, motion.data,
        fast.kept_by,
    )  # fmt: skip
    own = None if motors is not None else _actuated(mech, part, split, weights, inconsistent)
    return _tick(mech, split, own, motion, aim)


def _motor_coordinates(mech: Mechanism, part: Partition) -> Indices | None:
    """The coordinate of each motor, if each drives an independent one of its own, at ratio 1."""
    motors: Indices = np.argmax(mech.B, axis=0)
    if not set(motors.tolist()) <= set(part.independent.tolist()):
        return None
    selection = np.zeros(mech.B.shape)
    selection[motors, np.arange(mech.nu)] = 1.0
    own = len(set(motors.tolist())) == mech.nu
    return motors if own and np.array_equal(selection, mech.B) else None


class _Motors(NamedTuple):
    """``Y = gamma' B``, scaled, where it is not the identity; refilled by `factor`."""

    factor: Callable[[], bool]
    motion: Callable[[Vector], Vector | None]  # target to ydd
    nearest: Callable[[Vector], Vector]  # B' v to yd
    share: Callable[[Vector], Vector | None]  # gamma' (M a + h) to u


def _tick(
    mech: Mechanism, split: Split, motors: _Motors | None, motion: LiveMotion, aim: Aim | None
) -> LaidOut | None:
    """One tick. Without `motors`, motor i drives the ith independent coordinate, and those
    behind the last motor are passive: they follow the dynamics, see `_passive`."""
    constrain, solve, right, G_ind, dependent, independent, data, kept_by, _ = split
    model, r, k, nu, G_ind_T = mech.model, dependent.size, independent.size, mech.nu, G_ind.T
    passive = _passive(mech, split) if motors is None and nu < k else None
    order = np.concatenate([dependent, independent])
    place = np.argsort(order)
    ordered_a, ordered_w, own_a = np.zeros((3, mech.nv))
    a_dep, ydd = ordered_a[:r], ordered_a[r:]
    driven = ydd if motors is not None else ydd[:nu]
    w_dep, w_ind, of_rows = ordered_w[:r], ordered_w[r:], np.zeros(k)
    rest, rnea = np.zeros(mech.nv), pin.rnea
    friction, others = all_in_a_tick(mech.bound_forces, model, motion)
    with_reference = _with_reference(mech, split, motors)
    timed = friction is not None and may_depend_on_time(mech)
    reached, reached_at = own_a, own_a
    pushed: Vector | None = None
    to_motion = _given_motion if motors is None else motors.motion
    to_rates = _given_rates if motors is None else motors.nearest
    N, basis, inertia = _inertia(mech, split)
    aimed = None
    if aim is not None:
        BT = np.ascontiguousarray(mech.B.T)

        def motor_rates(yd: Vector) -> Vector:
            found: Vector = yd if motors is None else -BT.dot(basis().dot(yd))
            return found

        ground = Ground(split, motion, to_motion, motor_rates, basis, inertia)
        aimed = None if passive is not None else aim.lay_out(mech, ground)
        if aimed is None:
            return None

    def tick(
        q: Vector, v: Vector, target: Any, t: float, efforts: Vector | None, rates: Vector | None
    ) -> Vector | None:
        if not constrain(q, v, t) or (motors is not None and not motors.factor()):
            return None
        if aimed is None or target is None or type(target) is np.ndarray:
            return efforts_here(q, v, target, t, efforts, rates)
        found = aimed(q, v, t, target)
        if found is None:
            return None
        wanted, rates, push = found
        return efforts_for(q, v, wanted, t, efforts, rates, push)

    def efforts_here(
        q: Vector, v: Vector, target: Vector | None, t: float, efforts: Vector | None,
        rates: Vector | None,
    ) -> Vector | None:  # fmt: skip
        wanted = None if target is None else to_motion(target)
        if target is not None and wanted is None:
            return None
        return efforts_for(q, v, wanted, t, efforts, None if rates is None else to_rates(rates))

    def efforts_for(
        q: Vector, v: Vector, wanted: Vector | None, t: float, efforts: Vector | None,
        rates: Vector | None, push: Vector | None = None,
    ) -> Vector | None:  # fmt: skip
        """For accelerations of the independent coordinates, or those that have a motor; `push` is
        on these too."""
        nonlocal reached, reached_at, pushed
        pushed = push
        if wanted is None:
            if passive is not None:
                return None  # what rest leaves unbalanced takes the general path's least squares
            w = rnea(model, data, q, rest, rest)
            if others is not None:
                w -= others(q, rest, t)
            if efforts is not None:
                w -= efforts
        else:
            a, at = own_a, v
            if rates is not None and friction is not None:
                both = None if timed else with_reference(q, v, wanted, rates)
                if both is None:
                    return None
                a, at = both
            else:
                driven[:] = wanted
                G_ind.dot(ydd, a_dep)
                np.subtract(right, a_dep, a_dep)
                solve(a_dep, 0)  # G_dep a_dep = right - G_ind ydd
                ordered_a.take(place, None, a, "clip")
            reached, reached_at = a, at
            w = rnea(model, data, q, v, a)  # M a + h
            if friction is not None:
                w -= friction(q, at, t)
            if others is not None:
                w -= others(q, v, t)
            if efforts is not None:
                w -= efforts
            if passive is not None and not passive(q, w, a):
                return None
            if kept_by is not None and not kept_by(v, a):
                return None
        w.take(order, None, ordered_w, "clip")
        solve(w_dep, 1)  # G_dep' y = w_dep
        G_ind_T.dot(w_dep, of_rows)
        u = np.subtract(w_ind, of_rows)  # gamma' w
        if push is not None:
            u += push
        if motors is not None:
            return motors.share(u)
        return u if passive is None else u[:nu]

    caused, response, worth = _response(mech, split, motors is None, N, inertia)

    def acceleration(q: Vector, v: Vector, t: float) -> Vector | None:
        change = None
        if friction is not None and reached_at is not v:
            change = friction(q, v, t).copy()  # both are written into one place
            change -= friction(q, reached_at, t)
        if change is None and pushed is None:
            return reached
        more = caused(q, change, pushed)
        return None if more is None else reached + more

    return LaidOut(tick, Behind(efforts_here, acceleration, response, worth))


def _given_motion(target: Vector) -> Vector | None:
    """Of motors that have coordinates of their own."""
    return target


def _given_rates(rates: Vector) -> Vector:
    return rates


def _inertia(
    mech: Mechanism, split: Split
) -> tuple[Array, Callable[[], Array], Callable[[Vector], Array]]:
    """-gamma, a function that fills it, and one (q) that gives W besides, by the factors of G_dep:

    gamma_dep = -G_dep^-1 G_ind        W = gamma' M gamma
    """
    solve, G_ind, data = split.solve, split.G_ind, split.data
    dependent, independent = split.dependent, split.independent
    model, k = mech.model, independent.size
    X = np.zeros((dependent.size, k), order="F")
    order = np.argsort(np.concatenate([dependent, independent]))
    ordered, N = np.zeros((mech.nv, k)), np.zeros((mech.nv, k))  # -gamma: no sign to turn
    ordered[dependent.size :] = -np.eye(k)
    N_dep = ordered[: dependent.size]
    NT, crba = N.T, pin.crba

    def basis() -> Array:
        X[:] = G_ind
        solve(X, 0)
        N_dep[:] = X
        ordered.take(order, 0, N, "clip")
        return N

    def inertia(q: Vector) -> Array:
        basis()
        W: Array = NT.dot(crba(model, data, q).dot(N))
        return W

    return N, basis, inertia


def _response(
    mech: Mechanism, split: Split, own: bool, N: Array, inertia: Callable[[Vector], Array]
) -> tuple[
    Callable[[Vector, Vector | None, Vector | None], Vector | None],
    Callable[[Vector], tuple[Array, Array] | None],
    Callable[[Vector], Array | None],
]:
    """Functions that give what efforts on the coordinates, and on the independent ones, cause; H
    and Y of dynamics/effort_response.py (q), and H alone (q), with N = -gamma. Where each motor has
    a coordinate of its `own`, A is the identity, or its first part:

        H = A' W^-1 A        Y = gamma W^-1 A
    """
    k, nu = split.independent.size, mech.nu
    NT, BT, posv = N.T, np.ascontiguousarray(mech.B.T), lapack.dposv
    of_own = -np.eye(k, nu, order="F")

    def caused(q: Vector, efforts: Vector | None, push: Vector | None) -> Vector | None:
        W = inertia(q)
        along = np.zeros(k) if efforts is None else NT.dot(efforts)
        if push is not None:
            along -= push
        _, z, info = posv(W, along)
        return None if info else N.dot(z)

    def factored(q: Vector) -> tuple[Array, Array] | None:
        W = inertia(q)
        AT = of_own.T if own else BT.dot(N)
        _, WA, info = posv(W, AT.T)
        return None if info else (AT, WA)

    def worth(q: Vector) -> Array | None:
        found = factored(q)
        if found is None:
            return None
        AT, WA = found
        return -WA[:nu] if own else AT.dot(WA)

    def response(q: Vector) -> tuple[Array, Array] | None:
        found = factored(q)
        if found is None:
            return None
        AT, WA = found
        return AT.dot(WA), N.dot(WA)

    return caused, response, worth


def _with_reference(
    mech: Mechanism, split: Split, motors: _Motors | None
) -> Callable[[Vector, Vector, Vector, Vector], tuple[Vector, Vector] | None]:
    """A function (q, v, wanted, rates), of the independent coordinates or those with a motor: the
    acceleration and, by the same solve, the velocity at which friction is compensated; see
    dynamics/reference_rates.py, which is the oracle.

        G_dep (a_dep, v_dep) = (right, 0) - G_ind (ydd, yd)        rows that depend on no time
    """
    solve, right, G_ind, model, data = split.solve, split.right, split.G_ind, mech.model, split.data
    dependent, independent = split.dependent, split.independent
    nv, r, k, nu = mech.nv, dependent.size, independent.size, mech.nu
    flat, motions, rights = np.zeros(2 * nv), np.zeros((2, nv)), np.zeros((2, r))
    of_dep, of_ind = flat[: 2 * r].reshape(2, r), flat[2 * r :].reshape(2, k)
    at = np.arange(2 * nv)  # what is solved for, and then what is given, of each motion
    ordered = [np.concatenate([at[m * r :][:r], at[2 * r + m * k :][:k]]) for m in (0, 1)]
    places = np.array(ordered)[:, np.argsort(np.concatenate([dependent, independent]))]
    G_ind_T, columns, needed, (a, reference) = G_ind.T, of_dep.T, rights[0], motions
    ydd, yd = of_ind
    undriven = k - nu if motors is None else 0
    driven, driven_rates = ydd[: k - undriven], yd[: k - undriven]
    X, N = np.zeros((r, undriven), order="F"), np.zeros((nv, undriven))
    N[independent[k - undriven :], np.arange(undriven)] = 1.0

    def found(q: Vector, v: Vector, wanted: Vector, rates: Vector) -> tuple[Vector, Vector] | None:
        driven[:], driven_rates[:] = wanted, rates
        needed[:] = right
        of_ind.dot(G_ind_T, of_dep)
        np.subtract(rights, of_dep, of_dep)
        solve(columns, 0)
        flat.take(places, None, motions, "clip")
        if undriven:  # N' M (reference + N z - v) = 0
            X[:] = G_ind[:, nu:]
            solve(X, 0)
            N[dependent] = -X
            MN = pin.crba(model, data, q).dot(N)
            _, z, info = lapack.dposv(N.T.dot(MN), MN.T.dot(v - reference))
            if info:
                return None
            np.add(reference, N.dot(z), reference)
        return a, reference

    return found


def _passive(mech: Mechanism, split: Split) -> Callable[[Vector, Vector, Vector], bool]:
    """A function (q, w, a) that adds to ``w = M a + h`` and a what the passive motions change.

    They move so that no effort acts along them: with N their columns of gamma,

        N' (w + M N z) = 0
    """
    solve, model, data = split.solve, mech.model, split.data
    coordinates, dependent = split.independent[mech.nu :], split.dependent
    count = coordinates.size
    N = np.zeros((mech.nv, count))
    N[coordinates, np.arange(count)] = 1.0
    NT, G_passive = N.T, split.G_ind[:, mech.nu :]
    X = np.zeros((dependent.size, count), order="F")
    crba, posv, most = pin.crba, lapack.dposv, INVERSE_DOUBT**2

    def follow(q: Vector, w: Vector, a: Vector) -> bool:
        X[:] = G_passive
        solve(X, 0)
        N[dependent] = -X
        MN = crba(model, data, q).dot(N)
        reduced = NT.dot(MN)
        factor, z, info = posv(reduced, NT.dot(w))
        pivots = factor.diagonal()
        if info or not (reduced.diagonal() / (pivots * pivots)).max() < most:
            return False
        w -= MN.dot(z)
        a -= N.dot(z)
        return True

    return follow


def _actuated(
    mech: Mechanism, part: Partition, split: Split, weights: Vector | None, inconsistent: str
) -> _Motors:
    """Any actuation matrix that drives all motions; more motors than these share the effort."""
    nu, k, r = mech.nu, split.independent.size, split.dependent.size
    consistent = target_consistent(part.tolerance)
    solve, right, G_ind_T = split.solve, split.right, split.G_ind.T
    unit = mech.column_scale[split.independent]
    u_scale, cost = effort_scales(mech, weights)
    B_dep, B_ind = mech.B[split.dependent], mech.B[split.independent]
    X, Y = np.zeros((r, nu), order="F"), np.zeros((k, nu), order="F")
    square = in_place_lu(Y, np.ones(k)) if k == nu else None

    def factor() -> bool:
        X[:] = B_dep
        solve(X, 1)  # G_dep' X = B_dep
        Y[:] = unit[:, None] * (B_ind - G_ind_T.dot(X)) * u_scale
        if square is not None:
            return square.factor() < INVERSE_DOUBT**2
        triangle, _, _, _ = lapack.dgeqrf(Y.T)
        return bool(np.abs(triangle.diagonal()).min() > 1.0 / INVERSE_DOUBT)

    def solved(wanted: Vector) -> tuple[Vector, Vector]:
        """y of ``Y' y = wanted``, and what is left of it."""
        if square is not None:
            square.solve(wanted, 1)
            return unit * wanted, wanted[k:]
        _, x, _ = lapack.dgels(Y.T, wanted)
        return unit * x[:k], x[k:]

    def motion(target: Vector) -> Vector | None:
        ydd, left = solved(u_scale * (target - X.T.dot(right)))  # Y' ydd = target - B' bias
        if inconsistent == "raise" and left.size and np.abs(left).max() > 0.1 * consistent:
            return None
        return ydd

    def nearest(rates: Vector) -> Vector:
        return solved(u_scale * rates)[0]

    def share(w: Vector) -> Vector | None:
        u = unit * w
        if square is not None:
            square.solve(u, 0)
        else:
            triangle, u, _ = lapack.dgels(Y / cost, np.concatenate([u, np.zeros(nu - k)]))
            pivots = np.abs(triangle.diagonal())
            if not pivots.min() * UNEQUAL_PIVOTS > pivots.max():
                return None
            u /= cost
        u *= u_scale
        return u

    return _Motors(factor, motion, nearest, share)
