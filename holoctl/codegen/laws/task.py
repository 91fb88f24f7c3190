"""The torque of a law of one task as an expression: that of laws/task.py, over the constraints of
`motor_constraints`, with the rows of the task as a tick has them in numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holoctl.base.checks import Array, listing
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.tolerances import (
    TASK_DAMPED,
    TASK_DOUBT,
    TASK_LOST,
    TASK_SINGULAR,
)
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.elimination import Factors, factored
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.bordered_elimination import eliminated
from holoctl.codegen.laws.computed_torque import errors_function
from holoctl.codegen.laws.constraints_and_tree import (
    SymbolicConstraints,
    SymbolicTree,
    motor_constraints,
)
from holoctl.codegen.laws.critical_damping import critically_damped
from holoctl.codegen.laws.residuals import redundant_guard, state_guard
from holoctl.codegen.laws.task_rows import reference_size, task_rows
from holoctl.codegen.matrices import column, dense, scalars, total
from holoctl.codegen.task_law_options import TaskSubject
from holoctl.control.task_space.law import gains, matrix
from holoctl.control.tasks.task_protocol import TaskExpression
from holoctl.laws.inverse import inverse
from holoctl.laws.task import task_motion

__all__ = [
    "NAMES",
    "TaskEfforts",
    "TaskReference",
    "guarded_efforts",
    "task_efforts",
    "task_function",
    "task_reference",
]

Product = Callable[[SX], SX]


@dataclass(frozen=True, eq=False)
class TaskReference:
    """The symbols of a reference.

    Attributes
    ----------
    value, rate, acceleration : (n, 1), (rows, 1), (rows, 1) symbols
    """

    value: SX
    rate: SX
    acceleration: SX

    @property
    def inputs(self) -> list[SX]:
        """Of a function."""
        return [self.value, self.rate, self.acceleration]


NAMES = ("value", "rate", "acceleration")
"""What the symbols of a reference are called."""


def task_reference(subject: TaskSubject) -> TaskReference:
    """The symbols for the task of a controller."""
    task, sym = subject.task, casadi_module().SX.sym
    rows = task.scale.size
    return TaskReference(
        sym("value", reference_size(task)), sym("rate", rows), sym("acceleration", rows)
    )


@dataclass(frozen=True, eq=False)
class TaskEfforts:
    """A law of one task.

    Attributes
    ----------
    u, a : (nu, 1), (nv, 1) expressions
        The efforts, and the acceleration without the additional efforts of an impedance.
    guard, singular : expressions
        Without that of the state, and what the task has to do with it.
    missed : (rows,) list
        The part of the commanded acceleration that a damped task does not achieve.
    damping : expression
        Of a singular task, relative to its mobility.
    base : function () -> u, a
        The same of the motion that does not accelerate the motors.
    """

    u: SX
    a: SX
    guard: SX
    singular: SX
    missed: list[SX]
    damping: SX
    base: Callable[[], tuple[SX, SX]]


def task_efforts(E: Expressions, subject: TaskSubject, asked: TaskReference) -> TaskEfforts:
    """The law of a controller.

    Raises
    ------
    NotActuatedError, InputError
        As `inverse_function`; an `InputError` for a task that has no expressions, by name, and
        where some motion is passive.
    SingularityError
        For a task that is singular wherever pivots are chosen.
    """
    if E.partition.actuation_rank < E.partition.independent.size:
        raise InputError(
            f"{E.mech.name}: some of its motions are passive, and then the motion of a task cannot "
            "be compiled; the controller in Python computes it"
        )
    K, tree = motor_constraints(E, subject.weights, "project"), SymbolicTree(E)
    rows = task_rows(E, subject.task, asked.value)
    task = _symbolic_task(E, subject, K, rows)
    motion = task_motion(K, tree, task, asked, None, subject.at_reference)
    singular = [*tree.guard, *task.guard]
    u, a, _ = inverse(K, tree, motion.motion, motion.rates, motion.push)
    guard = total([*E.guard, *K.guard, *tree.guard, *rows.guard, *task.guard])
    missed = scalars(motion.jacobian @ motion.motion - motion.right)

    def base() -> tuple[SX, SX]:
        still = K.of_motors(casadi_module().SX.zeros(E.mech.nu))
        held, motion_held, _ = inverse(K, tree, still, motion.rates, None)
        return held, motion_held

    return TaskEfforts(u, a, guard, total(singular), missed, total(task.lost), base)


def task_function(E: Expressions, subject: TaskSubject) -> Any:
    """``torque(q, v, value, rate, acceleration, t) -> u, guard``, as the controller's torque;
    after t there are the parameters of E.

    Raises
    ------
    NotActuatedError, InputError, SingularityError
        As `task_efforts`.
    """
    asked, found, guard = guarded_efforts(E, subject)
    return casadi_module().Function(
        "torque", [E.q, E.v, *asked.inputs, *E.context.values()], [found.u, guard],
        ["q", "v", *NAMES, *E.context], ["u", "guard"],
    )  # fmt: skip


def guarded_efforts(E: Expressions, subject: TaskSubject) -> tuple[TaskReference, TaskEfforts, SX]:
    """The symbols of the reference, the law, and its guard with that of the state.

    Raises
    ------
    NotActuatedError, InputError, SingularityError
        As `task_efforts`.
    """
    asked = task_reference(subject)
    found = task_efforts(E, subject, asked)
    limits = state_guard(E, subject.limits)
    return asked, found, total([found.guard, *limits, *redundant_guard(E, found.a)])


@dataclass(frozen=True, eq=False)
class SymbolicTask:
    """`laws.contract.TaskOperators` as expressions.

    Attributes
    ----------
    guard : list of expressions
        Of solving for the task; each is below one where it can be trusted.
    lost : list of at most one expression
        The damping of a singular task, relative to its mobility, if it has been computed.
    """

    guard: list[SX]
    lost: list[SX]
    jacobian: SX
    right: SX
    rate: SX
    error: Callable[[SX], SX]
    stiffness: Product
    damping: Product | None
    critical: Callable[[SX, SX], SX]
    natural: bool
    posture: Callable[[], SX]
    factor: Callable[[SX], tuple[Product, Product]] | None
    damped: Callable[[SX, SX], SX] | None
    factor_mobility: Callable[[SX, SX], Product]
    per_inertia: None = None  # nothing is felt from outside
    levels: None = None  # nor is anything done by priority


def _symbolic_task(
    E: Expressions, subject: TaskSubject, K: SymbolicConstraints, rows: TaskExpression
) -> SymbolicTask:
    ca, law, scale = casadi_module(), subject.law, subject.law.usual[0].scale
    m, per_unit, guard, lost = scale.size, 1.0 / K.unit, list[SX](), list[SX]()
    stiffness, damping = gains(law)
    most = min(TASK_DOUBT**2, E.precision.reduced)
    factors = dict[int, Factors]()

    def factored_once(A: SX) -> Factors:
        if id(A) not in factors:
            factors[id(A)] = factored(A, most)
            guard.extend(factors[id(A)].guard)
        return factors[id(A)]

    def critical(A: SX, ed: SX) -> SX:
        factored_once(A)
        entries = [[A[max(i, j), min(i, j)] for j in range(m)] for i in range(m)]
        found, more = critically_damped(matrix(law.stiffness[0]), entries, scalars(ed))
        guard.extend(more)
        return column(found)

    def factor(J: SX) -> tuple[Product, Product]:
        _check(E, subject, K, J)
        entries = [{k: J[i, k] for k in range(m) if not J[i, k].is_zero()} for i in range(m)]
        found = eliminated(E, entries, scale, per_unit, 1.0 / TASK_DOUBT)
        guard.extend(found.guard)
        return (
            lambda b: column(found.solve(scalars(b))),
            lambda x: column(found.solve_transposed(scalars(x))),
        )

    def damped(J: SX, A: SX) -> SX:
        N = ca.SX(np.diag(1.0 / E.mech.column_scale)) @ K.basis()
        lost.append(_damping(N, ca.SX(np.diag(scale)) @ J))
        squares = (scale / scale[0]) ** 2
        own = total(float(s) * A[i, i] for i, s in enumerate(squares)) / m
        size = ca.fmax(own, law.usual[0].mobility / scale[0] ** 2)  # as `mobility_size`
        return A + ca.diag(lost[0] * size * ca.SX(1.0 / squares))

    def factor_mobility(J: SX, A: SX) -> Product:
        _check(E, subject, K, J)
        found = factored_once(A)
        if not law.damped:
            guard.extend(_still(ca.SX(np.diag(scale)) @ J @ ca.SX(np.diag(per_unit)), most))
        return lambda b: column(found.solve(scalars(b)))

    return SymbolicTask(
        guard=guard,
        lost=lost,
        jacobian=dense(rows.jacobian, E.mech.nv),
        right=-column(rows.drift),
        rate=column(rows.rate),
        error=lambda _: column(rows.error),
        stiffness=_product(stiffness),
        damping=None if damping is None else _product(damping),
        critical=critical,
        natural=law.natural,
        posture=lambda: _posture(E, subject),
        factor=factor if m == K.unit.size and not law.damped else None,
        damped=damped if law.damped else None,
        factor_mobility=factor_mobility,
    )


def _product(gain: Array) -> Product:
    """x -> gain x; rows of zeros add nothing."""
    ca = casadi_module()
    return (lambda x: ca.SX(gain) * x) if gain.ndim == 1 else (lambda x: ca.SX(gain) @ x)


def _check(E: Expressions, subject: TaskSubject, K: SymbolicConstraints, J: SX) -> None:
    """Raise `SingularityError` for a task that is singular wherever pivots are chosen."""
    ca, scale = casadi_module(), subject.law.usual[0].scale
    evaluate = ca.Function("J", [E.q, E.t], [ca.densify(J)])
    samples = [scale[:, None] * np.array(evaluate(q, 0.0)) / K.unit for q in E.samples]
    least = min((np.linalg.cond(J) for J in samples if np.isfinite(J).all()), default=np.inf)
    if not (least <= TASK_SINGULAR or subject.law.damped):
        labels = list(subject.task.labels)
        raise SingularityError(
            f"{E.mech.name}: the task {listing(labels, 6)} is singular at every configuration "
            f"that was tried (condition number {least:.1e} at least), so no code can be made; "
            "take other axes",
            condition=float(least), names=labels,
        )  # fmt: skip


def _posture(E: Expressions, subject: TaskSubject) -> SX:
    """The accelerations of the motors that the posture commands."""
    ca, posture, held = casadi_module(), subject.law.posture, subject.held

    def error(q: SX) -> SX:
        given = [q, E.v, ca.SX(held), ca.SX.zeros(E.mech.nu)]
        return errors_function(E.mech).call(given, True, False)[0]

    posture = replace(posture, error=None if held is None else error)
    return posture.acceleration(E.q, ca.SX(E.mech.B.T) @ E.v)


def _still(J: SX, most: float) -> list[SX]:
    """Doubt of rows that hardly move, or hardly otherwise than others; scaled, as
    `pivots_are_large`."""
    factors = factored(J @ J.T, most)
    return [*factors.guard, *(x / most for x in factors.inverses)]


def _damping(N: SX, J: SX) -> SX:
    """As `damping_of`, scaled, without singular values: a sum of 1 / (x + lost) over the
    eigenvalues x of a matrix is the trace of an inverse."""
    ca, m = casadi_module(), J.shape[0]
    metric = factored(N.T @ N, 1.0 / np.finfo(float).eps)
    T = ca.horzcat(*(column(metric.solve(scalars(row.T))) for row in ca.vertsplit(J)))
    A = J @ T
    mean = ca.fmax(ca.trace(A) / m, 1.0)
    factors = factored(A / mean + TASK_LOST * ca.SX.eye(m), 1.0 / TASK_LOST)
    inverses = (factors.solve(scalars(e)) for e in ca.horzsplit(ca.SX(np.eye(m))))
    s2 = 1.0 / total(x[i] for i, x in enumerate(inverses))
    left = ca.fmax(0.0, 1.0 - s2 / TASK_DAMPED**2)
    return TASK_DAMPED**2 * left * left
