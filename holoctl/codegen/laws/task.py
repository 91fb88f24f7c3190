"""The torque of a law of one task as an expression.

The kept rows with the motors, K = [G; C'], are eliminated once (see `bordered`), for the task and
for the efforts. Each row of the task gives

    K' (y; x) = J_i'        J_i a = x . c + y . right        J_i v = x . (rates) + y . moving

so that x is its row of J_c, the Jacobian in the coordinates c of K, and

    as many rows as motions     J_c c = xdd - Jd v - y . right
    fewer, or damped            c = c_p + W^-1 J_c' A^-1 (xdd - Jd v - y . right - J_c c_p)

with W = N' M N, A = J_c W^-1 J_c', and c_p that of the posture. The laws themselves, and the words,
are those of control/task_space/law.py; control/task_space/tick.py does the same with numbers, and
control/task_space/aim.py is the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import listing
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import cholesky
from holoctl.base.tolerances import (
    TASK_DAMPED,
    TASK_DOUBT,
    TASK_LOST,
    TASK_SINGULAR,
)
from holoctl.codegen.casadi_extra import SX, casadi_module
from holoctl.codegen.elimination import Factors, factored
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.bordered import eliminated
from holoctl.codegen.laws.critical import critically_damped
from holoctl.codegen.laws.forward_dynamics import reduced_inertia
from holoctl.codegen.laws.inverse_dynamics import Aimed, aimed_dynamics
from holoctl.codegen.laws.measures import redundant_doubt, state_doubt
from holoctl.codegen.laws.motor_constraints import SymbolicConstraints
from holoctl.codegen.laws.task_rows import TaskRows, reference_size, task_rows
from holoctl.codegen.laws.torque import errors_function
from holoctl.codegen.matrices import column, dense, scalars, total
from holoctl.codegen.task_subject import TaskSubject
from holoctl.control.task_space.law import TaskLaw, matrix

__all__ = ["NAMES", "AskedOf", "TaskTorque", "asked_of", "task_function", "task_torque"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AskedOf:
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


def asked_of(subject: TaskSubject) -> AskedOf:
    """The symbols for the task of a controller."""
    task, sym = subject.task, casadi_module().SX.sym
    rows = task.scale.size
    return AskedOf(sym("value", reference_size(task)), sym("rate", rows), sym("acceleration", rows))


@dataclass(frozen=True, eq=False)
class TaskTorque:
    """A law of one task.

    Attributes
    ----------
    u, a : (nu, 1), (nv, 1) expressions
        The efforts, and the acceleration without what the task pushes with besides.
    doubt, singular : expressions
        Without that of the state, and what the task has to do with it.
    missed : (rows,) list
        What the task is not given of the acceleration that is asked for, where it is damped.
    damping : expression
        Of a singular task, relative to its mobility.
    """

    u: SX
    a: SX
    doubt: SX
    singular: SX
    missed: list[SX]
    damping: SX


def task_torque(E: Expressions, subject: TaskSubject, asked: AskedOf) -> TaskTorque:
    """The law of a controller.

    Raises
    ------
    NotActuatedError, InputError
        As `aimed_dynamics`; an `InputError` for a task that has no expressions, by name.
    SingularityError
        For a task that is singular wherever pivots are chosen.
    """
    told = list[_Task]()

    def aim(ground: SymbolicConstraints) -> Aimed:
        task = _Task(E, subject, ground, asked)
        told.append(task)
        task.check()
        return task.aimed

    u, a, doubt = aimed_dynamics(E, subject.weights, aim)
    (task,) = told
    singular = total([*task.command[1], *task.way[1]])
    return TaskTorque(u, a, doubt, singular, task.missed, task.damping)


def task_function(E: Expressions, subject: TaskSubject) -> Any:
    """``torque(q, v, value, rate, acceleration, t) -> u, doubt``, as the controller's torque.

    Raises
    ------
    NotActuatedError, InputError, SingularityError
        As `task_torque`.
    """
    asked = asked_of(subject)
    found = task_torque(E, subject, asked)
    limits = state_doubt(E, subject.limits)
    doubt = total([found.doubt, *limits, *redundant_doubt(E, found.a)])
    return casadi_module().Function(
        "torque", [E.q, E.v, *asked.inputs, E.t], [found.u, doubt],
        ["q", "v", *NAMES, "t"], ["u", "doubt"],
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Task:
    """One task on its ground."""

    E: Expressions
    subject: TaskSubject
    ground: SymbolicConstraints
    asked: AskedOf

    @property
    def law(self) -> TaskLaw:
        return self.subject.law

    @property
    def scale(self) -> Array:
        found: Array = self.law.usual[0].scale
        return found

    @cached_property
    def rows(self) -> TaskRows:
        return task_rows(self.E, self.subject.task, self.asked.value)

    @cached_property
    def solved(self) -> list[list[SX]]:
        """(y; x) of each row."""
        ca, n, K = casadi_module(), self.E.mech.nv, self.ground.bordered
        given = ([row.get(i, ca.SX(0.0)) for i in range(n)] for row in self.rows.jacobian)
        return [K.elimination.solve_transposed(row) for row in given]

    @cached_property
    def J(self) -> list[list[SX]]:
        """J_c."""
        r = len(self.ground.bordered.right)
        return [row[r:] for row in self.solved]

    def start(self, right: list[SX]) -> list[SX]:
        """``y . right``: J a, or J v, where c is zero."""
        return [total(y * x for y, x in zip(row, right, strict=False)) for row in self.solved]

    def check(self) -> None:
        """Raise `SingularityError` for a task that is singular wherever pivots are chosen."""
        ca, E, unit = casadi_module(), self.E, self.ground.unit
        evaluate = ca.Function("J", [E.q, E.t], [ca.densify(_matrix(self.J))])
        samples = [self.scale[:, None] * np.array(evaluate(q, 0.0)) / unit for q in E.samples]
        least = min((np.linalg.cond(J) for J in samples if np.isfinite(J).all()), default=np.inf)
        if not (least <= TASK_SINGULAR or self.law.damped):
            labels = list(self.subject.task.labels)
            raise SingularityError(
                f"{E.mech.name}: the task {listing(labels, 6)} is singular at every configuration "
                f"that was tried (condition number {least:.1e} at least), so no code can be made; "
                "take other axes",
                condition=float(least), names=labels,
            )  # fmt: skip

    @cached_property
    def square(self) -> bool:
        """Whether the rows say all motions by themselves."""
        return len(self.J) == self.ground.unit.size and not self.law.damped

    # ------------------------------------------------------------------------ what it asks for

    @cached_property
    def aimed(self) -> Aimed:
        law = self.law
        command, doubt = self.command
        push = column(_combined(self.J, command)) if law.natural else None
        motion, more = self.way
        rates = None
        if self.subject.at_reference:
            known = self.start(self.ground.bordered.moving)
            wanted = zip(scalars(self.asked.rate), known, strict=True)
            rates = column(motion([x - y for x, y in wanted], False))
        return Aimed(column(self.motion), rates, push, [*self.rows.doubt, *doubt, *more])

    @cached_property
    def command(self) -> tuple[list[SX], list[SX]]:
        """``K e + D ed``, a force or an acceleration, and its doubt."""
        ed = [w - r for w, r in zip(scalars(self.asked.rate), self.rows.rate, strict=True)]
        stiffness, damping = _gains(self.law)
        forces, doubt = self._critical(ed) if damping is None else (_times(damping, ed), [])
        springs = _times(stiffness, self.rows.error)
        return [x + y for x, y in zip(springs, forces, strict=True)], doubt

    @cached_property
    def right(self) -> list[SX]:
        """What ``J_c c`` is to be."""
        xdd = scalars(self.asked.acceleration)
        if not self.law.natural:
            xdd = [x + y for x, y in zip(xdd, self.command[0], strict=True)]
        known = zip(xdd, self.rows.drift, self.start(self.ground.bordered.right), strict=True)
        return [x - drift - start for x, drift, start in known]

    @cached_property
    def motion(self) -> list[SX]:
        """c."""
        return self.way[0](self.right, True)

    @property
    def missed(self) -> list[SX]:
        """What is left of the acceleration that was asked for."""
        given = zip(self.J, self.right, strict=True)
        return [total(x * y for x, y in zip(row, self.motion, strict=True)) - r for row, r in given]

    @cached_property
    def way(self) -> tuple[Callable[[list[SX], bool], list[SX]], list[SX]]:
        """A function (right, posture) -> c with ``J_c c = right``, and doubt."""
        return self._square_way() if self.square else self._wide_way()

    def _square_way(self) -> tuple[Callable[[list[SX], bool], list[SX]], list[SX]]:
        rows = [dict(enumerate(row)) for row in self.J]
        rows = [{k: x for k, x in row.items() if not x.is_zero()} for row in rows]
        factors = eliminated(self.E, rows, self.scale, 1.0 / self.ground.unit, 1.0 / TASK_DOUBT)
        return lambda right, posture: factors.solve(right), factors.doubt

    def _wide_way(self) -> tuple[Callable[[list[SX], bool], list[SX]], list[SX]]:
        s, T, A = self.scale.tolist(), self._T, self._A
        doubt = [*self._W.doubt, *A.doubt]
        if not self.law.damped:
            doubt += self._still

        def motion(right: list[SX], posture: bool) -> list[SX]:
            """``c_p + T A^-1 (right - J_c c_p)``: what damping takes it leaves to the posture."""
            c = self._posture() if posture else [casadi_module().SX(0.0)] * len(T[0])
            left = [
                x * (y - total(a * z for a, z in zip(row, c, strict=True)))
                for x, y, row in zip(s, right, self.J, strict=True)
            ]
            return [x + y for x, y in zip(c, _combined(T, A.solve(left)), strict=True)]

        return motion, doubt

    @property
    def _still(self) -> list[SX]:
        """Doubt of rows that hardly move, or hardly otherwise than others."""
        n, per_unit = len(self.J), (1.0 / self.ground.unit).tolist()
        J = [[s * x * y for x, y in zip(row, per_unit, strict=True)]
             for s, row in zip(self.scale.tolist(), self.J, strict=True)]  # fmt: skip
        rows = [[total(x * y for x, y in zip(J[max(i, j)], J[min(i, j)], strict=True))
                 for j in range(n)] for i in range(n)]  # fmt: skip
        factors = factored(_matrix(rows), TASK_DOUBT**2)
        return [*factors.doubt, *(x / TASK_DOUBT**2 for x in factors.inverses)]

    def _posture(self) -> list[SX]:
        """c of the posture."""
        ca, E, posture = casadi_module(), self.E, self.law.posture
        rates = scalars(ca.SX(E.mech.B.T) @ E.v)
        wanted = [-posture.kd * x for x in rates]
        errors, held = errors_function(E.mech), self.subject.held
        if held is not None:
            e, _ = errors.call([E.q, E.v, ca.SX(held), ca.SX.zeros(E.mech.nu)], True, False)
            wanted = [x + posture.kp * y for x, y in zip(wanted, scalars(e), strict=True)]
        return scalars(self.ground.of_motors(column(wanted)))

    # ---------------------------------------------------------------------- inertia of the rows

    @cached_property
    def N(self) -> SX:
        """The motions, a column for each c."""
        return self.ground.basis()

    @cached_property
    def _W(self) -> Factors:
        return reduced_inertia(self.E, self.N)

    @cached_property
    def _T(self) -> list[list[SX]]:
        """Columns of ``W^-1 J_c'``, in scaled rows."""
        scaled = zip(self.scale.tolist(), self.J, strict=True)
        return [self._W.solve([s * x for x in row]) for s, row in scaled]

    @cached_property
    def mobility(self) -> list[list[SX]]:
        """``A``, in scaled rows."""
        n, s = len(self.J), self.scale.tolist()
        A = [[casadi_module().SX(0.0)] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                A[i][j] = s[i] * total(x * y for x, y in zip(self.J[i], self._T[j], strict=True))
                A[j][i] = A[i][j]
        return A

    @cached_property
    def _A(self) -> Factors:
        """Of the mobility with its damping."""
        return factored(self._mobility_damped, TASK_DOUBT**2)

    @cached_property
    def _mobility_damped(self) -> SX:
        A, n = self.mobility, len(self.J)
        if not self.law.damped:
            return _matrix(A)
        own, ca = total(A[i][i] for i in range(n)) / n, casadi_module()
        size = ca.fmax(own, self.law.usual[0].mobility)  # as `mobility_size`
        return _matrix(A) + self.damping * size * ca.SX.eye(n)

    @cached_property
    def _metric(self) -> SX:
        """``N' N`` in scaled coordinates."""
        N = casadi_module().SX(np.diag(1.0 / self.E.mech.column_scale)) @ self.N
        return N.T @ N

    @cached_property
    def damping(self) -> SX:
        """As `damping_of`, without singular values: a sum of 1 / (x + lost) over the eigenvalues x
        of a matrix is the trace of an inverse."""
        ca = casadi_module()
        if not self.law.damped:
            return ca.SX(0.0)
        metric = factored(self._metric, 1.0 / np.finfo(float).eps)
        J = [[s * x for x in row] for s, row in zip(self.scale.tolist(), self.J, strict=True)]
        T = [metric.solve(row) for row in J]
        n = len(J)
        A = [[total(x * y for x, y in zip(J[i], T[j], strict=True)) for j in range(n)]
             for i in range(n)]  # fmt: skip
        mean = ca.fmax(total(A[i][i] for i in range(n)) / n, 1.0)
        relative = _matrix([[A[max(i, j)][min(i, j)] / mean for j in range(n)] for i in range(n)])
        factors = factored(relative + TASK_LOST * ca.SX.eye(n), 1.0 / TASK_LOST)
        inverses = (factors.solve(scalars(e)) for e in ca.horzsplit(ca.SX(np.eye(n))))
        s2 = 1.0 / total(x[i] for i, x in enumerate(inverses))
        left = ca.fmax(0.0, 1.0 - s2 / TASK_DAMPED**2)
        return TASK_DAMPED**2 * left * left

    def _critical(self, ed: list[SX]) -> tuple[list[SX], list[SX]]:
        """``D ed`` with the natural inertia, and doubt."""
        s, A, n = self.scale, self._mobility_damped, len(self.J)
        K = matrix(self.law.stiffness[0]) / np.outer(s, s)
        mobility = [[A[i, j] for j in range(n)] for i in range(n)]
        given = [float(x) * y for x, y in zip(s, ed, strict=True)]
        found, doubt = critically_damped(K, mobility, given)
        doubt = [*self._W.doubt, *self._A.doubt, *doubt]
        return [float(x) * y for x, y in zip(s, found, strict=True)], doubt


def _gains(law: TaskLaw) -> tuple[Array, Array | None]:
    """Stiffness and damping, per wanted inertia where there is one."""
    stiffness, damping = law.stiffness[0], law.damping[0]
    if law.inertia is None or damping is None:
        return stiffness, damping
    per = cholesky(law.inertia)
    return per.solve(matrix(stiffness)), per.solve(matrix(damping))


def _times(gain: Array, x: list[SX]) -> list[SX]:
    if gain.ndim == 1:
        return [g * y for g, y in zip(gain.tolist(), x, strict=True)]
    return [total(g * y for g, y in zip(row, x, strict=True) if g != 0.0) for row in gain.tolist()]


def _combined(columns: list[list[SX]], factors: list[SX]) -> list[SX]:
    return [
        total(x * y for x, y in zip(row, factors, strict=True))
        for row in zip(*columns, strict=True)
    ]


def _matrix(A: list[list[SX]]) -> SX:
    return dense([dict(enumerate(row)) for row in A], len(A[0]))
