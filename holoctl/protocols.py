"""What a constraint, a force or a task of the user is written with.

The protocols that such a class follows, and the values and functions that it uses:
docs/architecture-extending.md, "Adding a constraint", "Adding a force", "Adding a task".
"""

from __future__ import annotations

from holoctl.constraints import kinds
from holoctl.constraints.constraint_protocol import BoundRows, Constraint, Rows
from holoctl.constraints.wrench_rows import wrench_rows
from holoctl.control.tasks.task_protocol import (
    BoundTask,
    FrameMotion,
    Task,
    TaskExpression,
    TaskMotion,
    TaskTick,
)
from holoctl.forces.force_protocol import BoundForce, Efforts, Force
from holoctl.tree.frames import Frame, resolve_frame
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = [
    "BoundForce",
    "BoundRows",
    "BoundTask",
    "Constraint",
    "Efforts",
    "Force",
    "Frame",
    "FrameMotion",
    "Kinematics",
    "LiveMotion",
    "Rows",
    "Task",
    "TaskExpression",
    "TaskMotion",
    "TaskTick",
    "kinds",
    "resolve_frame",
    "wrench_rows",
]
