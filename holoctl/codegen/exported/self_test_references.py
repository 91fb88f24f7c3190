"""References of a task for the self-test of an exported library, with torques by Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array
from holoctl.codegen.exported.laws import TaskExport
from holoctl.codegen.laws.task_rows import reference_value
from holoctl.control.tasks.task_terms import task_terms
from holoctl.projector.projection import project

__all__ = ["task_state"]


def task_state(
    task: TaskExport, q: Array, v: Array, t: float, timed: bool, rng: np.random.Generator
) -> tuple[tuple[Array, Array, Array], Array | None, float]:
    """Value, rate and acceleration a little off a state, the torque there, None where the guard of
    the law does not trust it, and how many times worse conditioned it is than that of the motors.

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
    if isinstance(found.value, pin.SE3):
        step = pin.Motion(0.05 * rng.normal(size=6) * np.repeat([1.0, 4.0], 3))
        value: Any = found.value * pin.exp6(step)
    else:
        value = found.value + 0.05 * off[0]
    reference = value, found.rate + 0.1 * off[1], 2.0 * off[2]
    torque = subject.torque(q, v, reference, t)
    (wanted,) = subject.own.wanted(reference)
    numbers = reference_value(bound, wanted.value), wanted.rate, wanted.acceleration
    outputs = task.function.call([q, v, *numbers, *([t] if timed else [])])
    trusted = float(outputs[1]) < 0.5
    worse = max(1.0, found.condition if np.isfinite(found.condition) else 1.0)
    return numbers, torque if trusted else None, worse


def _tasks(controller: Any) -> tuple[Any, ...]:
    """The descriptions of its tasks."""
    many = getattr(controller, "tasks", None)
    return (controller.task,) if many is None else tuple(many)
