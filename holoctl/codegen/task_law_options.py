"""What code is made for of a controller of tasks: one task that has expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holoctl.base.checks import Vector, listing, numbers
from holoctl.base.errors import InputError
from holoctl.codegen.law_options import refuse_contacts
from holoctl.control.limit_policies import LimitsLaw
from holoctl.control.task_space.controller import TaskController
from holoctl.control.task_space.impedance import Impedance
from holoctl.control.task_space.law import TaskLaw
from holoctl.control.task_space.task_space_control import TaskSpaceControl
from holoctl.control.tasks.task_protocol import BoundTask
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motors import position_reader
from holoctl.projector.partition import Partition
from holoctl.rows.state_limits import StateLimits

__all__ = ["TaskSubject", "check_own_options", "task_subject_of"]


def check_own_options(controller: Any, left_out: dict[str, bool]) -> None:
    """Raise `InputError` for options that a controller brings: name to whether it was left out."""
    given = [name for name, absent in left_out.items() if not absent]
    if given:
        raise InputError(
            f"a {type(controller).__name__} brings its own {listing(given)}; give none beside it"
        )


@dataclass(frozen=True, eq=False)
class TaskSubject:
    """A controller of one task, and what its law depends on; checked.

    Attributes
    ----------
    controller : TaskSpaceControl or Impedance
    """

    controller: TaskSpaceControl | Impedance

    @property
    def own(self) -> TaskController:
        """What the controller has in a loop."""
        return self.controller._own

    @property
    def mech(self) -> Mechanism:
        """The mechanism."""
        return self.own.mech

    @property
    def law(self) -> TaskLaw:
        """The law."""
        return self.own.law

    @property
    def task(self) -> BoundTask:
        """The one task."""
        return self.law.tasks[0]

    @property
    def partition(self) -> Partition:
        """That of the controller."""
        return self.own.prepared.partition

    @property
    def weights(self) -> Vector | None:
        """Of the motors."""
        found: Vector | None = self.own.prepared.weights
        return found

    @property
    def limits(self) -> StateLimits:
        """How far a state may be off for a torque."""
        return self.own.prepared.limits

    @property
    def keeping(self) -> LimitsLaw | None:
        """The limits of motors and joints that the controller keeps; None without."""
        limited = self.own.limited
        return None if limited is None else limited.law

    @property
    def at_reference(self) -> bool:
        """Whether friction is taken at the rates of the reference."""
        friction = any(force.friction for force in self.mech.bound_forces)
        return friction and self.controller.friction_at == "reference"

    def torque(self, q: Any, v: Any, reference: Any, t: Any, out: Vector | None = None) -> Vector:
        """That of the controller."""
        return self.own.torque(q, v, reference, t, out=out)

    @property
    def held(self) -> Vector | None:
        """Positions of the motors that the posture holds; None where it only brakes them."""
        given = self.controller.posture
        if given is None:
            return None
        mech = self.mech
        x: Vector = numbers("posture", given)
        if x.shape == (mech.nq,) and mech.nq != mech.nu:
            return position_reader(mech.motors)(check_configuration(mech, x, "posture"))
        return x


def task_subject_of(controller: Any, doing: str) -> TaskSubject:
    """A controller of tasks that code can be made of; `doing` is "compiled" or "exported".

    Raises
    ------
    InputError
        For several tasks, more rows than motions, and a posture that has no expression, with what
        to do.
    """
    if doing == "compiled":
        refuse_contacts(controller)
    subject = TaskSubject(controller)
    own, name = subject.own, subject.mech.name
    if own.standing is None:
        _check_one_task(subject, doing)
    if own.law.posture.held is not None and (
        not subject.mech.actuated or subject.mech.motors.missing
    ):
        raise InputError(
            f"{name}: a posture of motors that have no positions of their own cannot be {doing}; "
            "leave it out, or let the controller itself hold it"
        )
    return subject


def _check_one_task(subject: TaskSubject, doing: str) -> None:
    own, name = subject.own, subject.mech.name
    kind = type(subject.controller).__name__
    if len(own.law.tasks) > 1:
        labels = [", ".join(task.labels) for task in own.law.tasks]
        raise InputError(
            f"{name}: a {kind} of {len(labels)} tasks ({listing(labels, 3)}) cannot be {doing}, "
            "one of a single task can: put axes of one frame into one FrameTask, or let the "
            "controller itself do several"
        )
    rows, motions = subject.task.scale.size, subject.partition.actuation_rank
    if rows > motions:
        raise InputError(
            f"{name}: the task {', '.join(subject.task.labels)} has {rows} rows, and the motors "
            f"drive {motions} motions: its least squares cannot be {doing}; take fewer axes, or "
            "the controller itself"
        )
