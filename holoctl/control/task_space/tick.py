"""One task in a tick: the motion that does it, from the factors of the constraints.

With the kept rows split into dependent and independent columns, G_dep a_dep = right - G_ind ydd,

    Z = G_dep^-T J_dep'        J_y = J_ind - Z' G_ind        J a = J_y ydd + Z' right

and with as many rows as motions ``J_y ydd = xdd - Jd v - Z' right`` is the motion: neither gamma
nor any inertia is formed. With fewer rows the rest is that of the posture, at right angles by
W = gamma' M gamma:

    ydd = ydd_p + W^-1 J_y' A^-1 (right - J_y ydd_p)        A = J_y W^-1 J_y'

aim.py is the oracle, and takes over near singular tasks. Derivation: docs/derivations.md,
"Task space".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from holoctl.base.checks import Vector
from holoctl.base.linalg import cholesky, in_place_lu, solved
from holoctl.base.tolerances import BESIDE_DAMPED, TASK_DAMPED, TASK_DOUBT
from holoctl.control.task_space.law import Asked, TaskLaw, critical_damping, matrix, times
from holoctl.control.tasks.contract import BoundTask
from holoctl.dynamics.tick.aim import Aimed, AimTick, Ground
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["factors_of", "lay_out_task", "pivots_are_large"]

Array = NDArray[np.float64]


def lay_out_task(
    mech: Mechanism, law: TaskLaw, ground: Ground, at_reference: bool
) -> AimTick | None:
    """The tick of a law of one task, with no more rows than motions; None where it has none."""
    task, split = law.tasks[0], ground.split
    rows, k, r = task.scale.size, split.independent.size, split.dependent.size
    more = split.more
    beside = None if more is None else more.rows
    here = task.tick(ground.motion, beside)
    if here is None:
        return None
    evaluate, J, of_task, error = here
    dependent, independent, solve = split.dependent, split.independent, split.solve
    G_ind, right = split.G_ind, split.right
    of_rows, rate = np.zeros((rows, k)), np.zeros(rows)
    ZT, J_y = np.zeros((rows, r)), np.zeros((rows, k))
    if more is not None:
        ZT, J_y, rate = more.dep, more.ind, more.rows.rates
    Z, f = ZT.T, factors_of(task)
    by_row, scaled = f[:, None], not bool((f == 1.0).all())
    way = (_square if rows == k else _wide)(mech, law, ground, J_y)
    undamped = _needs_no_damping(mech, law, ground, J_y) if law.damped else None
    stiffness, damping = _gains(law)
    mobility = _mobility(ground, J_y)
    natural, inertia = law.natural, law.inertia
    per_inertia = None if inertia is None else cholesky(inertia)
    tau = np.zeros(r)

    def outside(efforts: Vector) -> Vector:
        """gamma' efforts."""
        efforts.take(dependent, None, tau, "clip")
        solve(tau, 1)
        found: Vector = efforts.take(independent) - G_ind.T.dot(tau)
        return found

    def aim(q: Vector, v: Vector, t: float, asked: Asked) -> Aimed | None:
        (wanted,) = asked.wanted
        of_J = of_task
        if more is None:
            evaluate(q, v, t)
            J.dot(v, rate)
            J.take(dependent, 1, ZT, "clip")
            J.take(independent, 1, J_y, "clip")
            if scaled:
                np.multiply(ZT, by_row, ZT)
                np.multiply(J_y, by_row, J_y)
                of_J = f * of_task
        e, ed = error(q, wanted.value), wanted.rate - rate
        solve(Z, 1)  # G_dep' Z = J_dep'
        ZT.dot(G_ind, of_rows)
        np.subtract(J_y, of_rows, J_y)
        if undamped is not None and not undamped():
            return None
        D, felt = damping, None
        if D is None:
            felt = mobility(q)
            if felt is None:
                return None
            D = critical_damping(law.stiffness[0], by_row * solved(felt.A, np.diag(f)))
        command = times(stiffness, e)
        command += times(D, ed)
        xdd, push = wanted.acceleration, None
        if natural:
            push = (command / f if scaled else command).dot(J_y)  # J_y' (K e + D ed)
            if asked.outside is not None:  # it is not to be compensated
                push = push + outside(asked.outside)
        else:
            xdd = command + xdd
        if not way.factor(q, felt):
            return None
        if asked.outside is not None and per_inertia is not None:
            xdd = xdd + per_inertia.solve(way.felt(outside(asked.outside)))
        needed = of_J - ZT.dot(right)
        needed += f * xdd if scaled else xdd
        ydd = way.motion(q, v, needed)
        if not at_reference:
            return Aimed(ydd, None, push)
        yd = way.rates(f * wanted.rate)
        asked.told.rates = partial(ground.motor_rates, yd)
        return Aimed(ydd, yd, push)

    return aim


def factors_of(task: BoundTask) -> Vector:
    """What rows are multiplied by in a tick: their scales, or where these are all alike nothing."""
    scale = task.scale
    return np.ones(scale.size) if (scale == scale[0]).all() else scale


def _gains(law: TaskLaw) -> tuple[Array, Array | None]:
    """Stiffness and damping, per wanted inertia where there is one."""
    stiffness, damping = law.stiffness[0], law.damping[0]
    if law.inertia is None or damping is None:
        return stiffness, damping
    found = cholesky(law.inertia)
    per = [found.solve(matrix(x)) for x in (stiffness, damping)]
    return per[0], per[1]


class _Way(NamedTuple):
    """From rows to motions, at the state whose J_y, with its factors, was filled.

    Attributes
    ----------
    factor : function (q, mobility) -> bool
        False is a reason for doubt; J_y may be overwritten. The mobility is given where it is
        known already.
    motion : function (q, v, right) -> (k,) array
        ydd with ``J_y ydd = right``, and the posture's in the rest.
    rates : function (rate) -> (k,) array
        Likewise, and none in the rest.
    felt : function (gamma' efforts) -> (rows,) array
        What the task feels of efforts; these may be overwritten.
    """

    factor: Callable[[Vector, _Mobility | None], bool]
    motion: Callable[[Vector, Vector, Vector], Vector]
    rates: Callable[[Vector], Vector]
    felt: Callable[[Vector], Vector]


def _square(mech: Mechanism, law: TaskLaw, ground: Ground, J_y: Array) -> _Way:
    """As many rows as motions: J_y' is factored where it is."""
    task, c = law.tasks[0], mech.column_scale[ground.split.independent]
    f = factors_of(task)
    lu = in_place_lu(J_y.T, law.usual[0].scale / f * c.min())

    def factor(q: Vector, mobility: _Mobility | None) -> bool:
        return lu.factor() < TASK_DOUBT**2

    def motion(q: Vector, v: Vector, right: Vector) -> Vector:
        lu.solve(right, 1)
        return right

    def felt(efforts: Vector) -> Vector:
        lu.solve(efforts, 0)
        return f * efforts

    return _Way(factor, motion, lambda rate: motion(rate, rate, rate), felt)


def _wide(mech: Mechanism, law: TaskLaw, ground: Ground, J_y: Array) -> _Way:
    """Fewer rows than motions."""
    posture, of_motors, motors = law.posture, ground.K.of_motors, np.ascontiguousarray(mech.B.T)
    mobility, potrs = _mobility(ground, J_y), lapack.dpotrs
    squares = mech.column_scale[ground.split.independent] ** 2
    least = float((factors_of(law.tasks[0]) / law.usual[0].scale).max()) / TASK_DOUBT
    T, factors, f = np.zeros(J_y.T.shape), np.zeros((J_y.shape[0],) * 2), factors_of(law.tasks[0])

    def factor(q: Vector, known: _Mobility | None) -> bool:
        nonlocal T, factors
        found = mobility(q) if known is None else known
        if found is None:
            return False
        T, A = found
        factors, info = lapack.dpotrf(A)
        pivots = factors.diagonal()
        if info or not A.diagonal().max() < TASK_DOUBT**2 * (pivots * pivots).min():
            return False
        return pivots_are_large(J_y, squares, least)

    def motion(q: Vector, v: Vector, right: Vector) -> Vector:
        wanted = of_motors(posture.acceleration(q, motors.dot(v)))
        found: Vector = wanted + T.dot(potrs(factors, right - J_y.dot(wanted))[0])
        return found

    def rates(rate: Vector) -> Vector:
        found: Vector = T.dot(potrs(factors, rate)[0])
        return found

    def felt(efforts: Vector) -> Vector:
        found: Vector = f * potrs(factors, T.T.dot(efforts))[0]
        return found

    return _Way(factor, motion, rates, felt)


def pivots_are_large(J_y: Array, squares: Vector, least: float) -> bool:
    """Whether the pivots of rows along the coordinates, with the squares of their units, are larger
    than this: masses do not matter then."""
    factors, info = lapack.dpotrf((J_y * squares).dot(J_y.T))
    return not info and bool(factors.diagonal().min() > least)


class _Mobility(NamedTuple):
    """``T = W^-1 J_y'`` and ``A = J_y T``."""

    T: Array
    A: Array


def _mobility(ground: Ground, J_y: Array) -> Callable[[Vector], _Mobility | None]:
    """A function (q) that gives the mobility of J_y, if there is an inertia."""
    inertia, posv = ground.inertia, lapack.dposv

    def mobility(q: Vector) -> _Mobility | None:
        _, T, info = posv(inertia(), J_y.T)
        return None if info else _Mobility(T, J_y.dot(T))

    return mobility


def _needs_no_damping(
    mech: Mechanism, law: TaskLaw, ground: Ground, J_y: Array
) -> Callable[[], bool]:
    """A function that says whether the task is too far from singular to be damped, exactly
    as `damping_of`, with ``A = J_y (gamma' gamma)^-1 J_y'``, scaled."""
    basis, posv, task = ground.K.basis, lapack.dposv, law.tasks[0]
    scale = (law.usual[0].scale / factors_of(task))[:, None]
    per_c, one = 1.0 / mech.column_scale[:, None], np.eye(J_y.shape[0])
    most = BESIDE_DAMPED / TASK_DAMPED**2

    def undamped() -> bool:
        N, J = basis() * per_c, J_y * scale
        _, T, info = posv(N.T.dot(N), J.T)
        if info:
            return False
        A = J.dot(T)
        _, inverse, info = posv(A, one)
        mean = max(float(A.diagonal().mean()), 1.0)
        return not info and bool(inverse.trace() * mean < most)

    return undamped
