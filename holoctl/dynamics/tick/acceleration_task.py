"""A task at acceleration level, in the place of a target of the motors.

A law that commands other accelerations than those of the motors, such as that of a frame, needs the
constraints to determine the motion. It is prepared with a tick, and evaluated between the
constraints and the efforts, or within the general path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from holoctl.base.checks import Vector
from holoctl.dynamics.actuation import Actuation
from holoctl.dynamics.tick.constraints_and_tree import NumericConstraints, NumericTree
from holoctl.laws.task import TaskResult
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.coordinate_split import Split
from holoctl.projector.projection import Projection
from holoctl.rows.tick.fast_rows import Beside
from holoctl.tree.live_motion import LiveMotion

__all__ = ["AccelerationTask", "Context", "MotionOfTask"]


class Context(NamedTuple):
    """The context of a task: the state of a tick, whose kept rows are factored."""

    mech: Mechanism
    split: Split
    motion: LiveMotion
    K: NumericConstraints
    tree: NumericTree

    def motor_rates(self, rates: Vector) -> Vector:
        """Rates of the motors (nu,) for those of the independent coordinates."""
        found: Vector = self.K.actuation().T.dot(rates)
        return found


MotionOfTask = Callable[[Vector, Vector, float, Any], TaskResult | None]
"""motion(q, v, t, request) in the coordinates of K; None if the general path must be used."""


class AccelerationTask(NamedTuple):
    """A law of motions; its requests are not arrays.

    Attributes
    ----------
    rows : Beside or None
        Rows that a tick evaluates in addition to those of constraints.
    prepare : function (context) -> MotionOfTask or None
        For one thread; None if only the general path can be used.
    general : function (P, act, request, known) -> TaskResult
        By the general path, under known efforts: accelerations and rates of the motors (nu,), and
        efforts on the coordinates (nv,). It raises the errors of the task.
    """

    rows: Beside | None
    prepare: Callable[[Context], MotionOfTask | None]
    general: Callable[[Projection, Actuation, Any, Vector], TaskResult]
