"""Several tasks in a tick, or one with more rows than motions, by priority.

As law.py has it, in coordinates z with ``W = L L'``, ``ydd = L^-T z``, and ``J_z = J_y L^-T``
of each level; F are the motions that are left, from the QR of what the levels before have used:

    rows <= left    z += F J' (J J')^-1 (right - J_z z)        F := F Q2,  J' = [Q1 Q2] [R; 0]
    rows > left     z += F (J' J)^-1 J' (right - J_z z)        nothing is left           J = J_z F

aim.py is the oracle, and takes over near singular tasks, and where these may be damped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from holoctl.base.checks import Vector
from holoctl.base.tolerances import TASK_DOUBT
from holoctl.control.task_space.law import TaskLaw, TaskRequest, null_space, times
from holoctl.control.task_space.tick import pivots_are_large
from holoctl.dynamics.tick.aim import Aimed, AimTick, Ground
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["lay_out_levels"]

Array = NDArray[np.float64]


def lay_out_levels(
    mech: Mechanism, law: TaskLaw, ground: Ground, at_reference: bool
) -> AimTick | None:
    """The tick of a law of several tasks; None where one of them, or damping, needs the general
    path."""
    if law.damped or law.inertia is not None or any(damping is None for damping in law.damping):
        return None
    here = [task.tick(ground.motion, None) for task in law.tasks]
    ticks = [tick for tick in here if tick is not None]
    if len(ticks) < len(here):
        return None
    K, inertia, posture = ground.K, ground.inertia, law.posture
    dependent, independent = ground.split.dependent, ground.split.independent
    sizes = [task.scale.size for task in law.tasks]
    stops = np.cumsum([0, *sizes]).tolist()
    slices = [slice(a, b) for a, b in pairwise(stops)]
    roots = [1.0] * len(sizes) if law.weights is None else [w**0.5 for w in law.weights]
    f = np.concatenate([root * task.scale for root, task in zip(roots, law.tasks, strict=True)])
    by_row, rows, k = f[:, None], stops[-1], independent.size
    by_size = np.concatenate([usual.scale for usual in law.usual])[:, None]
    levels = slices if law.weights is None else [slice(rows)]
    J, needed = np.zeros((rows, mech.nv)), np.zeros((rows, 2 if at_reference else 1))
    of_tasks = list(zip(ticks, slices, law.stiffness, law.damping, strict=True))
    motors = np.ascontiguousarray(mech.B.T)
    command = np.zeros(rows)
    squares = mech.column_scale[independent] ** 2

    def aim(q: Vector, v: Vector, t: float, asked: TaskRequest) -> Aimed | None:
        if asked.outside is not None:
            return None
        for wanted, (tick, own, stiffness, damping) in zip(asked.wanted, of_tasks, strict=True):
            tick.evaluate(q, v, t)
            J[own] = tick.jacobian
            ed = wanted.rate - tick.jacobian.dot(v)
            if damping is not None:
                command[own] = times(stiffness, tick.error(q, wanted.value)) + times(damping, ed)
            needed[own, 0] = wanted.acceleration + tick.right
            if at_reference:
                needed[own, 1] = wanted.rate
        push = None
        J_y, Ja, _ = K.rows((J.take(dependent, 1), J.take(independent, 1)))
        needed[:, 0] -= Ja
        if law.natural:
            push = command.dot(J_y)
        else:
            needed[:, 0] += command
        L, info = lapack.dpotrf(inertia(), 1, 1)
        held = K.of_motors(posture.acceleration(q, motors.dot(v)))
        if info:
            return None
        at_posture = np.zeros((k, needed.shape[1]))
        at_posture[:, 0] = L.T.dot(held)
        scaled, relative = J_y * by_row, J_y * by_size

        def regular(own: slice, wide: bool) -> bool:
            if wide:
                return pivots_are_large(relative[own], squares)
            moved = np.vecdot(relative[own] * squares, relative[own])  # else it may be rounding
            return bool(moved.max() * TASK_DOUBT**2 > 1.0)

        J_z = lapack.dtrtrs(L, scaled.T, lower=1)[0].T
        z = _by_priority(J_z, needed * by_row, levels, at_posture, regular)
        if z is None:
            return None
        ydd = lapack.dtrtrs(L, z, lower=1, trans=1)[0]
        if not at_reference:
            return Aimed(ydd[:, 0], None, push)
        asked.told.rates = partial(ground.motor_rates, ydd[:, 1])
        return Aimed(ydd[:, 0], ydd[:, 1], push)

    return aim


def _by_priority(
    J_z: Array, needed: Array, levels: list[slice], at_posture: Array,
    regular: Callable[[slice, bool], bool],
) -> Array | None:  # fmt: skip
    """z of the levels, and the posture's in the rest; None for doubt, such as of rows that are not
    `regular`."""
    free: Array | None = None  # None: all
    z = np.zeros(at_posture.shape)
    for own in levels:
        J, missing = J_z[own], needed[own]
        if free is not None:
            if free.shape[1] == 0:
                return z
            missing = missing - J.dot(z)
            J = J.dot(free)
        rows, left = J.shape
        wide, size = rows <= left, np.vecdot(J_z[own], J_z[own]).max()
        if not regular(own, wide):
            return None
        A, b = (J.dot(J.T), missing) if wide else (J.T.dot(J), J.T.dot(missing))
        solved = _solved(A, b, size)
        if solved is None:
            return None
        step = J.T.dot(solved) if wide else solved
        z = z + (step if free is None else free.dot(step))
        rest = null_space(J) if rows < left else np.zeros((left, 0))
        free = rest if free is None else free.dot(rest)
    if free is None or free.shape[1] == 0:
        return z
    found: Array = z + free.dot(free.T.dot(at_posture - z))
    return found


def _solved(A: Array, b: Array, size: float) -> Array | None:
    """x with ``A x = b``; None where A is close to singular, also relative to what its entries
    would be if no level had taken motions away."""
    factors, x, info = lapack.dposv(A, b)
    if info:
        return None
    pivots = factors.diagonal()
    good = bool(size < TASK_DOUBT**2 * (pivots * pivots).min())
    return np.asarray(x) if good else None
