"""One task in a tick: that of laws/task.py in numbers.

Rows between two bodies are evaluated beside those of constraints. Where a task has as many rows as
there are motions, neither gamma nor any inertia is formed. aim.py is the oracle, and takes over
near singular tasks. Derivation: docs/derivations.md, "Task space".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from holoctl.base.checks import Vector
from holoctl.base.linalg import cholesky
from holoctl.base.tolerances import BESIDE_DAMPED, TASK_DAMPED, TASK_DOUBT
from holoctl.control.task_space.law import TaskLaw, TaskRequest, critical_damping, gains
from holoctl.control.tasks.contract import TaskTick
from holoctl.dynamics.tick.aim import AimTick, Ground
from holoctl.laws.task import TaskResult, task_motion
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["lay_out_task", "pivots_are_large"]

Array = NDArray[np.float64]
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
    square: Callable[[Array], tuple[Product, Product]] | None
    damped: Callable[[Array, Array | None], Array | None] | None
    solver: Callable[[Array, Array], Product]


def lay_out_task(
    mech: Mechanism, law: TaskLaw, ground: Ground, at_reference: bool
) -> AimTick | None:
    """The tick of a law of one task, with no more rows than motions; None where it has none."""
    split, K, tree = ground.split, ground.K, ground.tree
    more, dependent, independent = split.more, split.dependent, split.independent
    found = law.tasks[0].tick(ground.motion, None if more is None else more.rows)
    if found is None:
        return None
    evaluate, J = found.evaluate, found.jacobian
    if more is None:
        m = J.shape[0]
        dep, ind, rate = np.zeros((m, dependent.size)), np.zeros((m, independent.size)), np.zeros(m)
    else:
        dep, ind, rate = more.dep, more.ind, more.rows.rates
    task = _numeric_task(mech, law, ground, found, (dep, ind), rate)

    def aim(q: Vector, v: Vector, t: float, asked: TaskRequest) -> TaskResult:
        if more is None:
            evaluate(q, v, t)
            J.dot(v, rate)
            J.take(dependent, 1, dep, "clip")
            J.take(independent, 1, ind, "clip")
        aimed = task_motion(K, tree, task, asked.wanted[0], asked.outside, at_reference)
        if at_reference:
            asked.told.rates = partial(ground.motor_rates, aimed.rates)
        return aimed

    return aim


def _numeric_task(
    mech: Mechanism, law: TaskLaw, ground: Ground, tick: TaskTick, J: tuple[Array, Array],
    rate: Vector,
) -> NumericTask:  # fmt: skip
    here, c, scale = ground.tree.here, ground.split.independent, law.usual[0].scale
    columns, motors = mech.column_scale[c], np.ascontiguousarray(mech.B.T)
    rows, k = J[1].shape
    stiffness, damping = gains(law)
    posture, unit, error_of = law.posture, np.eye(rows), tick.error
    J_T, order = J[1].T, np.zeros(rows, dtype=np.int32)
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

    def square(J: Array) -> tuple[Product, Product]:
        """In doubt by the norm of the scaled inverse: pivots may share what is small."""
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

    def solver(J: Array, A: Array) -> Product:
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
        """A as it is: that of a task so near to singular that it is damped is in doubt, exactly as
        `damping_of`, with ``A = J_c (gamma' gamma)^-1 J_c'``, scaled."""
        N, J = ground.K.basis() * per_c, J * by_row
        _, T, info = posv(N.T.dot(N), J.T)
        A_c = J.dot(T)
        _, inverse, more = posv(A_c, unit)
        mean = max(float(A_c.diagonal().mean()), 1.0)
        if info or more or not inverse.trace() * mean < most:
            here.doubtful = True
        return A

    return NumericTask(
        jacobian=J,
        right=tick.right,
        rate=rate,
        error=lambda value: error_of(here.q, value),
        stiffness=_product(stiffness),
        damping=None if damping is None else _product(damping),
        critical=critical,
        natural=law.natural,
        per_inertia=None if law.inertia is None else cholesky(law.inertia).solve,
        posture=lambda: posture.acceleration(here.q, motors.dot(here.v)),
        square=square if rows == k else None,
        damped=undamped if law.damped else None,
        solver=solver,
    )


def _product(gain: Array) -> Product:
    """x -> gain x, without asking at each tick what the gain is."""
    return gain.__mul__ if gain.ndim == 1 else gain.dot


def pivots_are_large(J: Array, squares: Vector) -> bool:
    """Whether the inverse pivots of scaled rows along the coordinates, with the squares of their
    units, have a norm of less than `TASK_DOUBT`: masses do not matter then."""
    factors, info = lapack.dpotrf((J * squares).dot(J.T))
    inverses = 1.0 / factors.diagonal()
    return not info and bool(inverses.dot(inverses) < TASK_DOUBT**2)
