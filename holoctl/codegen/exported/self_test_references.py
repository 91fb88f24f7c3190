"""References of a task for the self-test of an exported library, with torques by Python."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.codegen.exported.laws import TaskExport
from holoctl.codegen.laws.task_rows import reference_value
from holoctl.codegen.task_law_options import TaskSubject
from holoctl.control.tasks.task_terms import task_terms
from holoctl.projector.projection import project

__all__ = ["TaskState", "reference_of_tasks", "task_state"]


class TaskState(NamedTuple):
    """A reference of a task at a state, and what becomes of it.

    Attributes
    ----------
    reference : tuple of arrays
        Value, rate and acceleration, as numbers.
    free, torque : (nu,) arrays
        The torque of the law without limits, and that of the controller.
    guard : float
        Of the law.
    worse : float
        How many times worse conditioned it is than the inverse dynamics of the motors.
    """

    reference: tuple[Array, Array, Array]
    free: Array
    torque: Array
    guard: float
    worse: float


def task_state(
    task: TaskExport, q: Array, v: Array, t: float, context: list[Any], hasty: float,
    rng: np.random.Generator,
) -> TaskState:  # fmt: skip
    """A reference a little off a state; its acceleration is `hasty` times the usual one, `context`
    are the last inputs of the law.

    Raises
    ------
    SingularityError, InconsistentError
        As the torque of the controller.
    """
    subject = task.subject
    (given,) = _tasks(subject.controller)
    bound = subject.task
    found = task_terms(project(subject.mech, q, v, t=t, partition=subject.partition), given)
    off = rng.normal(size=(3, bound.scale.size))
    value = _beside(found.value, 0.05, off[0], rng)
    reference = value, found.rate + 0.1 * off[1], 2.0 * hasty * off[2]
    torque = subject.torque(q, v, reference, t)
    (wanted,) = subject.own.wanted(reference)
    numbers = reference_value(bound, wanted.value), wanted.rate, wanted.acceleration
    law = task.function if task.limited is None else task.limited.function
    outputs = law.call([q, v, *numbers, *context])
    known = dict(zip(law.name_out(), outputs, strict=True))
    free = np.array(known["u" if task.limited is None else "asked"]).ravel()[: subject.mech.nu]
    worse = max(1.0, found.condition if np.isfinite(found.condition) else 1.0)
    return TaskState(numbers, free, torque, float(known["guard"]), worse)


def _tasks(controller: Any) -> tuple[Any, ...]:
    """The descriptions of its tasks."""
    many = getattr(controller, "tasks", None)
    return (controller.task,) if many is None else tuple(many)


def reference_of_tasks(
    subject: TaskSubject, q: Vector, v: Vector, t: float, rng: np.random.Generator
) -> tuple[Any, tuple[Array, Array, Array]]:
    """References a little off a state, as the controller takes them, and as the C does."""
    P, given = project(subject.mech, q, v, t=t, partition=subject.partition), []
    for task in subject.own.law.tasks:
        motion = task.at(P.kinematics)
        off = rng.normal(size=(3, task.scale.size))
        value = _beside(motion.value, 0.02, off[0], rng)
        given.append((value, motion.jacobian @ v + 0.1 * off[1], off[2]))
    reference = given[0] if len(given) == 1 else given
    wanted = subject.own.wanted(reference)
    tasks = zip(subject.own.law.tasks, wanted, strict=True)
    return reference, (
        np.concatenate([reference_value(task, x.value) for task, x in tasks]),
        np.concatenate([x.rate for x in wanted]),
        np.concatenate([x.acceleration for x in wanted]),
    )


def _beside(value: Any, size: float, off: Array, rng: np.random.Generator) -> Any:
    """A value of a reference so far off a value."""
    if isinstance(value, pin.SE3):
        return value * pin.exp6(pin.Motion(size * rng.normal(size=6) * np.repeat([1.0, 4.0], 3)))
    return value + size * off
