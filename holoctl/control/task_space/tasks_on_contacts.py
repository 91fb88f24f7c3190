"""Tasks on unilateral contacts: all share one least-squares program, by their weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError
from holoctl.control.contact_paths import Motions, WeightedRows
from holoctl.control.task_space.law import TaskLaw, TaskRequest
from holoctl.control.tasks.task_protocol import TaskTick
from holoctl.dynamics.actuation import effort_scales
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.projection import Projection
from holoctl.tree.live_motion import LiveMotion

__all__ = ["POSTURE", "row_factor", "task_rows"]

POSTURE = 1e-4
"""Weight of the posture, relative to a task of weight one."""


def task_rows(mech: Mechanism, law: TaskLaw) -> WeightedRows:
    """The rows of a law of tasks; the target is a `TaskRequest`.

    Raises
    ------
    InputError
        For several tasks without weights.
    """
    if len(law.tasks) > 1 and law.weights is None:
        raise InputError(
            f"{mech.name}: on contacts tasks are weighted: give task_weights, one for each of "
            f"{len(law.tasks)} tasks"
        )

    def at(P: Projection, target: Any) -> tuple[Array, Vector]:
        rows, right = [], []
        for i, (task, wanted) in enumerate(zip(law.tasks, target.wanted, strict=True)):
            motion, factor = task.at(P.kinematics), row_factor(law, i)
            e, ed = task.error(motion.value, wanted.value), wanted.rate - motion.jacobian @ P.v
            rows.append(factor[:, None] * motion.jacobian)
            right.append(factor * (wanted.acceleration + _feedback(law, i, e, ed) - motion.drift))
        J, xdd = _posture(mech, law, P.q, P.v)
        return np.concatenate([*rows, J]), np.concatenate([*right, xdd])

    return WeightedRows(at, lambda motion: _in_a_tick(mech, law, motion))


def row_factor(law: TaskLaw, i: int) -> Vector:
    """The factors of the rows of a task: its scale times the root of its weight."""
    weight = 1.0 if law.weights is None else law.weights[i]
    found: Vector = np.sqrt(weight) * law.tasks[i].scale
    return found


def _feedback(law: TaskLaw, i: int, e: Vector, ed: Vector) -> Vector:
    damping = law.damping[i]
    return law.command(i, e, ed, np.zeros(0) if damping is None else damping)


def _posture(mech: Mechanism, law: TaskLaw, q: Vector, v: Vector) -> tuple[Array, Vector]:
    """The rows of the posture, with a small weight."""
    scale = np.sqrt(POSTURE) * effort_scales(mech)[0]
    wanted = law.posture.acceleration(q, mech.B.T @ v)
    return scale[:, None] * mech.B.T, scale * wanted


def _in_a_tick(mech: Mechanism, law: TaskLaw, motion: LiveMotion) -> Motions | None:
    """The rows of tasks in a tick; None if a task has no tick."""
    found = [task.tick(motion, None) for task in law.tasks]
    ticks: list[TaskTick] = [tick for tick in found if tick is not None]
    if len(ticks) < len(found):
        return None
    factors = [row_factor(law, i) for i in range(len(ticks))]
    sizes = [factor.size for factor in factors]
    ends = np.cumsum([0, *sizes])
    T, right = np.zeros((ends[-1] + mech.nu, mech.nv)), np.zeros(ends[-1] + mech.nu)

    def motions(request: TaskRequest, q: Vector, v: Vector, t: float) -> tuple[Array, Vector]:
        for i, (tick, wanted) in enumerate(zip(ticks, request.wanted, strict=True)):
            evaluate, J, needed, error = tick
            evaluate(q, v, t)
            at, factor = slice(ends[i], ends[i + 1]), factors[i]
            np.multiply(factor[:, None], J, T[at])
            command = _feedback(law, i, error(q, wanted.value), wanted.rate - J.dot(v))
            right[at] = factor * (wanted.acceleration + command + needed)
        T[ends[-1] :], right[ends[-1] :] = _posture(mech, law, q, v)
        return T, right

    return motions
