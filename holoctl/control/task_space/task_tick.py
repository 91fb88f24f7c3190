"""Tasks in a tick: laws/task.py for floats.

Rows between two bodies are evaluated together with those of constraints. If a task has as many rows
as there are motions, neither gamma nor any inertia is formed. The reference, which takes over near
singular tasks, is task_by_projection.py. Derivation: docs/derivations.md, "Task space".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag, lapack

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import cholesky
from holoctl.base.tolerances import TASK_DAMPED, TASK_DOUBT
from holoctl.control.task_space.law import (
    TaskLaw,
    TaskRequest,
    critical_damping,
    gains,
    matrix,
    null_space,
)
from holoctl.control.tasks.task_protocol import ReferenceMotion, TaskTick
from holoctl.dynamics.tick.acceleration_task import Context, MotionOfTask
from holoctl.laws.task import TaskResult, by_priority, task_motion

__all__ = ["pivots_are_large", "prepare_task"]

BESIDE_DAMPED = 0.9
"""With damping requested, a real-time task hands over to the general path from this fraction of
where damping begins."""


Product = Callable[[Vector], Vector]


class NumericTask(NamedTuple):
    """`laws.contract.TaskOperators` in numbers, of one thread; the Jacobian is its dependent and
    independent columns."""

    jacobian: tuple[Array, Array]
    right: Vector
    rate: Vector
    error: Callable[[Any], Vector]
    stiffness: Product
    damping: Product | None
    critical: Callable[[Array, Vector], Vector]
    natural: bool
    per_inertia: Product | None
    posture: Callable[[], Vector]
    factor: Callable[[Array], tuple[Product, Product]] | None
    damped: Callable[[Array, Array | None], Array | None] | None
    factor_mobility: Callable[[Array, Array], Product]
    levels: Callable[[Array], Callable[[Vector, Any], Vector]] | None = None


def prepare_task(law: TaskLaw, context: Context, at_reference: bool) -> MotionOfTask | None:
    """The tick of a law of tasks; None if only the general path is available."""
    split, K, tree, more = context.split, context.K, context.tree, context.split.more
    nr, k, by_levels = split.dependent.size, split.independent.size, _by_levels(law, context)
    if by_levels and (law.damped or law.inertia is not None or any(d is None for d in law.damping)):
        return None
    here = [task.tick(context.motion, None if more is None else more.rows) for task in law.tasks]
    ticks = [tick for tick in here if tick is not None]
    if len(ticks) < len(here):
        return None
    own = _slices(law)
    rows = own[-1].stop
    if more is None:
        dep, ind, rate = np.zeros((rows, nr)), np.zeros((rows, k)), np.zeros(rows)
    else:
        dep, ind, rate = more.dep, more.ind, more.rows.rates
    right = np.zeros(rows) if more is None else ticks[0].right
    pairs = zip(ticks, own, strict=True)
    of_tasks = [(x, rate[at], dep[at], ind[at], right[at]) for x, at in pairs]
    task = _numeric_task(law, context, ticks, (dep, ind), (rate, right))
    dependent, independent = split.dependent, split.independent
    stacked = _stacking(own) if len(own) > 1 else None

    def motion_of(q: Vector, v: Vector, t: float, request: TaskRequest) -> TaskResult | None:
        if by_levels and request.outside is not None:
            return None
        if more is None:
            for (evaluate, J, needed, _), of_rate, of_dep, of_ind, of_right in of_tasks:
                evaluate(q, v, t)
                J.dot(v, of_rate)
                J.take(dependent, 1, of_dep, "clip")
                J.take(independent, 1, of_ind, "clip")
                of_right[:] = needed
        wanted = stacked(request.wanted) if stacked else request.wanted[0]
        found = task_motion(K, tree, task, wanted, request.outside, at_reference)
        if at_reference:
            request.rates = partial(context.motor_rates, found.rates)
        return found

    return motion_of


def _by_levels(law: TaskLaw, context: Context) -> bool:
    """Whether tasks are solved by priority, or by least squares."""
    return len(law.tasks) > 1 or law.tasks[0].scale.size > context.split.independent.size


def _slices(law: TaskLaw) -> list[slice]:
    """The rows of each task among all."""
    ends = np.cumsum([0, *(task.scale.size for task in law.tasks)]).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


def _stacking(own: Sequence[slice]) -> Callable[[Sequence[ReferenceMotion]], ReferenceMotion]:
    """A function that stacks the references of several tasks."""
    rate, acceleration = np.zeros((2, own[-1].stop))

    def stacked(wanted: Sequence[ReferenceMotion]) -> ReferenceMotion:
        for at, (_, rate_of, acceleration_of) in zip(own, wanted, strict=True):
            rate[at], acceleration[at] = rate_of, acceleration_of
        return ReferenceMotion(wanted, rate, acceleration)

    return stacked


def _numeric_task(
    law: TaskLaw, context: Context, ticks: Sequence[TaskTick], J: tuple[Array, Array],
    rates: tuple[Vector, Vector],
) -> NumericTask:  # fmt: skip
    """One task; or several, with the products and errors of each."""
    task = _one_task(law, context, ticks[0], J, rates)
    if _by_levels(law, context):
        task = task._replace(factor=None, levels=_levels(law, context))
    if len(ticks) == 1:
        return task
    here, own = context.tree.here, _slices(law)

    e, by_task = np.zeros(own[-1].stop), list(zip(ticks, own, strict=True))

    def error(wanted: Sequence[ReferenceMotion]) -> Vector:
        for (tick, at), one in zip(by_task, wanted, strict=True):
            e[at] = tick.error(here.q, one.value)
        return e

    return task._replace(
        error=error, stiffness=_product(_stacked_gain(law.stiffness)),
        damping=_product(_stacked_gain([gain for gain in law.damping if gain is not None])),
    )  # fmt: skip


def _stacked_gain(gains: Sequence[Array]) -> Array:
    """The stacked gain of several tasks."""
    if all(gain.ndim == 1 for gain in gains):
        return np.concatenate(gains)
    return np.asarray(block_diag(*map(matrix, gains)))


def _levels(law: TaskLaw, context: Context) -> Callable[[Array], Callable[[Vector, Any], Vector]]:
    """The solution by priority, in coordinates z with ``W = L L'``, ``c = L^-T z``."""
    K, tree, here, own = context.K, context.tree, context.tree.here, _slices(law)
    roots = [1.0] * len(own) if law.weights is None else [w**0.5 for w in law.weights]
    scales = [root * task.scale for root, task in zip(roots, law.tasks, strict=True)]
    by_row = np.concatenate(scales)
    by_size = np.concatenate([usual.scale for usual in law.usual])[:, None]
    levels = own if law.weights is None else [slice(own[-1].stop)]
    squares = context.mech.column_scale[context.split.independent] ** 2
    potrf, potrs, trtrs = lapack.dpotrf, lapack.dpotrs, lapack.dtrtrs

    def prepared(J_c: Array) -> Callable[[Vector, Any], Vector]:
        N = K.basis()
        L, info = potrf(N.T.dot(tree.inertia_times(N)), 1, 1)
        J, relative = trtrs(L, (J_c * by_row[:, None]).T, lower=1)[0].T, J_c * by_size
        if info:
            here.doubtful = True

        def factor_level(level: slice, J_F: Array) -> tuple[Product, Array | None]:
            """Solve a level; in doubt if its rows are nearly singular, also relative to all motions
            before the previous levels."""
            rows, left = J_F.shape
            wide, size, own = rows <= left, np.vecdot(J[level], J[level]).max(), relative[level]
            A = J_F.dot(J_F.T) if wide else J_F.T.dot(J_F)
            factors, info = potrf(A)
            pivots = factors.diagonal()
            good = not info and size < TASK_DOUBT**2 * (pivots * pivots).min()
            if wide:
                good = good and pivots_are_large(own, squares)
            else:  # smaller rows may be rounding errors
                good = good and np.vecdot(own * squares, own).max() * TASK_DOUBT**2 > 1.0
            if not good:
                here.doubtful = True

            def solve(b: Vector) -> Vector:
                x: Vector
                x = J_F.T.dot(potrs(factors, b)[0]) if wide else potrs(factors, J_F.T.dot(b))[0]
                return x

            return solve, null_space(J_F) if rows < left else None

        move = by_priority(J, levels, factor_level)

        def motion(right: Vector, c_p: Any) -> Vector:
            z = move(right * by_row, None if c_p is None else L.T.dot(c_p))
            c: Vector = trtrs(L, z, lower=1, trans=1)[0]
            return c

        return motion

    return prepared


def _one_task(
    law: TaskLaw, context: Context, tick: TaskTick, J: tuple[Array, Array],
    rates: tuple[Vector, Vector],
) -> NumericTask:  # fmt: skip
    mech, here = context.mech, context.tree.here
    c, scale = context.split.independent, law.usual[0].scale
    columns, motors = mech.column_scale[c], np.ascontiguousarray(mech.B.T)
    rows, k = scale.size, c.size
    stiffness, damping = gains(law)
    posture, unit, error_of = law.posture, np.eye(rows), tick.error
    order = np.zeros(rows, dtype=np.int32)
    J_T: Array = J[1].T
    per_unit, inverse = np.diag(1.0 / (scale * columns.min())), np.zeros((rows, rows), order="F")
    entries = inverse.reshape(-1, order="F")
    squares, by_row = columns**2, scale[:, None]
    per_c, most = 1.0 / mech.column_scale[:, None], BESIDE_DAMPED / TASK_DAMPED**2
    posv, potrf, potrs = lapack.dposv, lapack.dpotrf, lapack.dpotrs
    getrf, getrs = lapack.dgetrf, lapack.dgetrs

    def solve(b: Vector) -> Vector:
        getrs(J_T, order, b, 1, 1)
        return b

    def transposed(x: Vector) -> Vector:
        getrs(J_T, order, x, 0, 1)
        return x

    def factor(J: Array) -> tuple[Product, Product]:
        """Factor J; in doubt by the norm of the scaled inverse, because no single pivot need be
        small."""
        nonlocal order
        _, order, info = getrf(J_T, 1)
        inverse[:] = per_unit
        getrs(J_T, order, inverse, 1, 1)
        if info or not entries.dot(entries) < TASK_DOUBT**2:
            here.doubtful = True
        return solve, transposed

    def critical(A: Array, ed: Vector) -> Vector:
        _, inertia, info = posv(A, unit)
        if info:
            here.doubtful = True
            return ed
        found: Vector = critical_damping(law.stiffness[0], inertia).dot(ed)
        return found

    def factor_mobility(J: Array, A: Array) -> Product:
        factors, info = potrf(A)
        pivots = factors.diagonal()
        lost = A.diagonal() / (pivots * pivots)
        good = not info and lost.dot(lost) < TASK_DOUBT**4
        if not (good and pivots_are_large(J * by_row, squares)):
            here.doubtful = True

        def solve_A(b: Vector) -> Vector:
            x: Vector = potrs(factors, b)[0]
            return x

        return solve_A

    def undamped(J: Array, A: Array | None) -> Array | None:
        """A unchanged; in doubt if the task is so near to singular that `damping_of` would damp it,
        by ``A = J_c (gamma' gamma)^-1 J_c'``, scaled."""
        N, J = context.K.basis() * per_c, J * by_row
        _, T, info = posv(N.T.dot(N), J.T)
        A_c = J.dot(T)
        _, inverse, more = posv(A_c, unit)
        mean = max(float(A_c.diagonal().mean()), 1.0)
        if info or more or not inverse.trace() * mean < most:
            here.doubtful = True
        return A

    return NumericTask(
        jacobian=J,
        right=rates[1],
        rate=rates[0],
        error=lambda value: error_of(here.q, value),
        stiffness=_product(stiffness),
        damping=None if damping is None else _product(damping),
        critical=critical,
        natural=law.natural,
        per_inertia=None if law.inertia is None else cholesky(law.inertia).solve,
        posture=lambda: posture.acceleration(here.q, motors.dot(here.v)),
        factor=factor if rows == k else None,
        damped=undamped if law.damped else None,
        factor_mobility=factor_mobility,
    )


def _product(gain: Array) -> Product:
    """The function x -> gain x, for a diagonal or a full gain."""
    return gain.__mul__ if gain.ndim == 1 else gain.dot


def pivots_are_large(J: Array, squares: Vector) -> bool:
    """Whether the inverse pivots of scaled rows have a norm of less than `TASK_DOUBT`, independent
    of masses; `squares` are the squared units of the coordinates."""
    factors, info = lapack.dpotrf((J * squares).dot(J.T))
    inverses = 1.0 / factors.diagonal()
    return not info and bool(inverses.dot(inverses) < TASK_DOUBT**2)
