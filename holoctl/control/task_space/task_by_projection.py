"""The motion of a law of tasks by the general path: the exact result, or an error.

The motions are those that motors drive: a = D x + a_b, with D = gamma; if some motions N are
passive, D is orthogonal to them in the metric of M, because they follow the dynamics:

    D = driven - N (N' M N)^-1 N' M driven        N' (M a_b + h - F) = 0

References: docs/derivations.md, "Task space".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import (
    Cholesky,
    cholesky,
    least_squares,
    orthonormal_columns,
    singular_values,
)
from holoctl.base.tolerances import SINGULAR
from holoctl.control.task_space.law import (
    PriorityLevel,
    TaskLaw,
    TaskRequest,
    check_regular,
    critical_damping,
    mobility_size,
    prioritised,
    prioritised_damped,
)
from holoctl.control.task_space.task_tick import prepare_task
from holoctl.control.tasks.task_protocol import TaskMotion
from holoctl.control.tasks.task_singularity import damping_of
from holoctl.dynamics.actuation import Actuation, effort_scales
from holoctl.dynamics.tick.acceleration_task import AccelerationTask, Context, MotionOfTask
from holoctl.laws.task import TaskResult
from holoctl.projector.projection import Projection
from holoctl.rows.evaluate import may_depend_on_time
from holoctl.rows.tick.fast_rows import Beside

__all__ = ["acceleration_task"]


def acceleration_task(law: TaskLaw, at_reference: bool) -> AccelerationTask:
    """A law of tasks for the inverse dynamics; with `at_reference` friction is taken at the rates
    of the reference."""
    tasks, beside = law.tasks, law.tasks[0].rows
    rows = None
    if len(tasks) == 1 and beside is not None:
        rows = Beside(beside, np.ones(tasks[0].scale.size))

    def prepare(context: Context) -> MotionOfTask | None:
        if at_reference and may_depend_on_time(context.mech):
            return None
        return prepare_task(law, context, at_reference)

    return AccelerationTask(rows, prepare, partial(_general_motion, law, at_reference))


def _general_motion(
    law: TaskLaw, at_reference: bool, P: Projection, act: Actuation, request: TaskRequest,
    known: Vector,
) -> TaskResult:  # fmt: skip
    """Accelerations and rates of the motors, and additional efforts of an impedance."""
    mech = P.mechanism
    outside = request.outside if law.natural else None  # not compensated
    D, a_b, L = _driven(P, act, known if outside is None else known - outside)
    of_forces = law.natural or law.inertia is not None
    inertia = _TaskSpaceInertia(P, law, _all_inertia(P) if of_forces and act.rank < P.k else L)
    levels, push = list[PriorityLevel](), np.zeros(mech.nv)
    for i, (task, wanted) in enumerate(zip(law.tasks, request.wanted, strict=True)):
        motion = task.at(P.kinematics)
        e = task.error(motion.value, wanted.value)
        ed = wanted.rate - motion.jacobian @ P.v
        command = law.command(i, e, ed, inertia.damping(i, motion))
        xdd = wanted.acceleration
        if law.natural and act.rank == P.k:
            push += motion.jacobian.T @ command
        elif law.natural:
            xdd = xdd + inertia.mobility(motion) @ command
        elif law.inertia is None:
            xdd = xdd + command
        else:
            if request.outside is not None:
                command = command + inertia.outside(i, motion, request.outside)
            xdd = xdd + cholesky(law.inertia).solve(command)
        right = np.column_stack(
            [xdd - motion.drift - motion.jacobian @ a_b, wanted.rate - motion.jacobian @ P.v_t]
        )
        scale, mobility = law.usual[i]
        s, sizes = scale[:, None], task.scale / scale
        J = s * motion.jacobian * mech.column_scale
        levels.append(PriorityLevel(J, s * right, task.labels, sizes, mobility))
    if law.weights is not None:
        levels = [_together(levels, law.weights)]
    E = L.whitened(D / mech.column_scale[:, None])
    posture = _posture(P, law, D, a_b, L)
    if law.damped:
        z, request.damping = prioritised_damped(levels, E, posture)
    else:
        z = prioritised(mech.name, levels, E, posture)
    motion_a, motion_v = (mech.column_scale[:, None] * E @ z).T
    a = motion_a + a_b
    if outside is not None:
        a = a + inertia.caused(outside)
    target = mech.B.T @ a
    rates = mech.B.T @ (motion_v + P.v_t) if at_reference else None
    request.rates = None if rates is None else (lambda: rates)
    return TaskResult(target, rates, push if law.natural and act.rank == P.k else None)


def _driven(P: Projection, act: Actuation, known: Vector) -> tuple[Array, Vector, Cholesky]:
    """D, a_b, and the Cholesky factor of D' M D."""
    M, D, a_b = P.terms.M, P.gamma, P.bias
    if act.rank < P.k:
        N = act.passive
        reduced = _factored(P, N.T @ M @ N)
        D = act.driven - N @ reduced.solve(N.T @ (M @ act.driven))
        a_b = a_b + N @ reduced.solve(N.T @ (known - P.terms.h - M @ a_b))
    return D, a_b, _factored(P, D.T @ M @ D)


def _all_inertia(P: Projection) -> Cholesky:
    """The Cholesky factor of gamma' M gamma, with passive motions."""
    return _factored(P, P.gamma.T @ P.terms.M @ P.gamma)


def _factored(P: Projection, W: Array) -> Cholesky:
    L = cholesky(W)
    if not L.condition <= SINGULAR:
        raise SingularityError(
            f"{P.mechanism.name}: some motion has no inertia (condition number {L.condition:.1e}), "
            "so a task has none either; give its bodies a mass",
            condition=L.condition,
        )
    return L


def _posture(P: Projection, law: TaskLaw, D: Array, a_b: Vector, L: Cholesky) -> Array:
    """z of the posture's acceleration, and of its rates, which are zero."""
    mech = P.mechanism
    wanted = law.posture.acceleration(P.q, mech.B.T @ P.v)
    u_scale, _ = effort_scales(mech)
    right = u_scale * (wanted - mech.B.T @ a_b)
    x = least_squares(u_scale[:, None] * (mech.B.T @ D), right)
    return np.column_stack([L.factor.T @ x, np.zeros(x.size)])


def _together(levels: Sequence[PriorityLevel], weights: Sequence[float]) -> PriorityLevel:
    """One level of the rows of all levels, with the roots of their weights."""
    roots = [np.full(len(level.labels), w**0.5) for level, w in zip(levels, weights, strict=True)]
    J, right = np.vstack([one.J for one in levels]), np.vstack([one.right for one in levels])
    labels = sum((level.labels for level in levels), ())
    sizes = np.concatenate([one.roots for one in levels])
    mobility = max(one.mobility for one in levels)
    return PriorityLevel(J, right, labels, sizes * np.concatenate(roots), mobility)


class _TaskSpaceInertia(NamedTuple):
    """The task-space inertia and mobility, and the effect of external forces.

    All motions are included, because external forces move the passive ones too; L is the Cholesky
    factor of their inertia W.
    """

    P: Projection
    law: TaskLaw
    L: Cholesky

    def mobility(self, motion: TaskMotion) -> Array:
        """A = J_y W^-1 J_y', unscaled."""
        X = self.L.whitened(motion.jacobian @ self.P.gamma)
        return X @ X.T

    def damping(self, i: int, motion: TaskMotion) -> Array:
        """D, the critical damping if none is given."""
        given = self.law.damping[i]
        if given is not None:
            return given
        return critical_damping(self.law.stiffness[i], self._inertia(i, motion))

    def outside(self, i: int, motion: TaskMotion, efforts: Vector) -> Vector:
        """``Lambda J_y W^-1 gamma' efforts``."""
        found: Vector = self._inertia(i, motion) @ (motion.jacobian @ self.caused(efforts))
        return found

    def caused(self, efforts: Vector) -> Vector:
        """The acceleration that efforts cause, ``gamma W^-1 gamma' efforts``."""
        P = self.P
        found: Vector = P.gamma @ self.L.solve(P.gamma.T @ efforts)
        return found

    def _inertia(self, i: int, motion: TaskMotion) -> Array:
        """Lambda, with the damping of the task."""
        P, task = self.P, self.law.tasks[i]
        c, (s, mobility) = P.mechanism.column_scale, self.law.usual[i]
        none, alike = np.zeros((s.size, 0)), np.ones(s.size)
        level = PriorityLevel(s[:, None] * motion.jacobian * c, none, task.labels, alike, mobility)
        motions = P.gamma / c[:, None]
        X = self.L.whitened(s[:, None] * motion.jacobian @ P.gamma)
        A = X @ X.T
        if self.law.damped:
            sizes = singular_values(level.J @ orthonormal_columns(motions))
            added = damping_of(sizes) * mobility_size(X, mobility)
            A += np.diag(np.full(s.size, added))
        else:
            check_regular(P.mechanism.name, level, motions, 0)
        inertia = s[:, None] * cholesky(A).solve(np.diag(s))
        return np.asarray(0.5 * (inertia + inertia.T))
