"""The texts of a library that has the torque of a law of one task."""

from __future__ import annotations

from holoctl.base.tolerances import NOT_A_ROTATION
from holoctl.codegen.c_text import comment, filled, number
from holoctl.codegen.exported.contexts import Rotation, Shared, TaskDeclaration, TaskTorque
from holoctl.codegen.exported.laws import TaskExport
from holoctl.codegen.laws.task_rows import reference_pose, reference_size

__all__ = ["task_declaration", "task_torque"]


def task_declaration(task: TaskExport, shared: Shared) -> str:
    """What the header says of it."""
    bound, law = task.subject.task, task.subject.law
    labels = bound.labels
    text = _NATURAL if law.natural else _ACCELERATION if law.inertia is None else _WANTED
    if len(labels) < task.subject.partition.actuation_rank:
        text += _POSTURE
    if law.damped:
        text += _DAMPED
    table = "\n".join(f" *   {i}  {comment(label)}" for i, label in enumerate(labels))
    own = TaskDeclaration(comment(labels[0]), text, len(labels), table, _value(task))
    return filled("torque_task.h", shared, own)


def _value(task: TaskExport) -> str:
    """Lines of documentation of the value."""
    bound = task.subject.task
    along, turns = reference_pose(bound)
    count = reference_size(bound)
    letters = " ".join("xyz"[i] for i in along)
    if turns:
        return (
            f" *   value[{count}]                     the pose to follow: position {letters}, m, "
            "then the rotation matrix\n"
            " *                                 row by row; one that is none is NOT_NORMALISED"
        )
    if along:
        what = f"position {letters} to follow, m"
    else:
        what = "what is to be followed, in the order of the rows; positions in rad or m"
    return f" *   value[{count}]                      {what}"


def task_torque(task: TaskExport, timed: bool, shared: Shared, noise: str) -> str:
    """The function for its torque."""
    bound = task.subject.task
    along, turns = reference_pose(bound)
    rotation = filled("rotation.c", None, Rotation(number(NOT_A_ROTATION))) if turns else ""
    test = f"!is_rotation(value + {len(along)})"
    check = f"  if ({test}) return refuse(c, {shared.U}_NOT_NORMALISED, u);\n"
    own = TaskTorque(
        bound.scale.size, reference_size(bound), rotation, check if turns else "",
        ", &t" if timed else "", noise,
    )  # fmt: skip
    return filled("torque_task.c", shared, own)


_ACCELERATION = " *   xdd = acceleration + kd (rate - J v) + kp e"
_NATURAL = " *   xdd = acceleration + A (K e + D (rate - J v))"
_WANTED = " *   xdd = acceleration + inertia^-1 (K e + D (rate - J v))"
_POSTURE = "\n *   and the posture in the motions that are left"
_DAMPED = "\n *   damped near singular poses"
