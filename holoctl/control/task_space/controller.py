"""What `TaskSpaceControl` and `Impedance` have in common: options, and the torque at a state.

They say what is asked for; a `TaskController` gives the torque, at a state that is given or found
from the motors. Their public methods are in methods.py, their loops in loop.py.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Vector, instant, number, numbers, one_of, positive, stored
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.control.commanded import within_limits
from holoctl.control.limited_tick import LimitedTick
from holoctl.control.limits_law import LIMIT_POLICIES
from holoctl.control.limits_made import limits_law_of
from holoctl.control.reference_law import FRICTION_AT, check_finite, position_error
from holoctl.control.task_space.aim import TaskAim
from holoctl.control.task_space.law import HeldPosture, TaskLaw, TaskNotes, TaskRequest
from holoctl.control.tasks.contract import WantedMotion, wanted_of
from holoctl.control.tasks.nearness import usual
from holoctl.dynamics.tick.inverse_tick import Behind, why_general
from holoctl.dynamics.tick.prepared_inverse import (
    PreparedInverseDynamics,
    aimed,
    answer,
    behind,
    has_tick,
)
from holoctl.dynamics.tick.sensed import SensedDynamics
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator, check_estimator
from holoctl.mechanism.checks import check_mechanism, state_in_a_tick
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import known_efforts
from holoctl.projector.partition import Partition

__all__ = ["LoopOptions", "TaskController", "loop_options", "posture_of", "task_controller"]

log = logging.getLogger(__name__)

AT_SINGULAR = ("raise", "damp")


@dataclass(frozen=True, eq=False)
class TaskController:
    """What a law of tasks needs in a loop.

    Attributes
    ----------
    law : TaskLaw
    prepared : PreparedInverseDynamics
        With the law as its aim.
    limited : LimitedTick or None
    assembly : ClosedStateEstimator or None
        How the state is found where only some joints are measured.
    feels : bool
        Whether ``f_ext`` is felt by the task, as of an impedance, and not known to the law alone.
    local : threading.local
        The loop of each thread.
    """

    law: TaskLaw
    prepared: PreparedInverseDynamics
    limited: LimitedTick | None
    assembly: ClosedStateEstimator | None
    feels: bool
    local: threading.local = field(init=False, repr=False, default_factory=threading.local)

    @property
    def general(self) -> str:
        """Why every tick goes through the general path; empty where a fast one serves."""
        part, law = self.prepared.partition, self.law
        if why := why_general(self.mech, part):
            return why
        if part.actuation_rank < part.independent.size:
            return "some motion is passive"
        if len(law.tasks) > 1 and law.damped:
            return "several tasks are damped together"
        if has_tick(self.prepared):
            return ""
        return "a task has no tick, or friction is taken at a reference and constraints in time"

    @property
    def mech(self) -> Mechanism:
        """The mechanism."""
        return self.prepared.mech

    def wanted(self, reference: Any) -> tuple[Any, ...]:
        """What a reference asks of each task, checked."""
        tasks = self.law.tasks
        if len(tasks) == 1:
            return (wanted_of(tasks[0], reference),)
        if not isinstance(reference, (tuple, list)) or len(reference) != len(tasks):
            raise InputError(
                f"the reference of {len(tasks)} tasks is a sequence of {len(tasks)}, one for each; "
                f"got {type(reference).__name__} {str(reference)[:60]!r}"
            )
        return tuple(wanted_of(task, one) for task, one in zip(tasks, reference, strict=True))

    def at_state(
        self, q: Any, v: Any, reference: Any, t: Any, f_ext: Any, efforts: Any, out: Vector | None,
        notes: TaskNotes | None = None,
    ) -> Vector:  # fmt: skip
        """The torque where the whole state is given."""
        mech, prepared = self.mech, self.prepared
        wanted = self.wanted(reference)
        try:
            q, v, t = state_in_a_tick(mech, q, v, t)
            known, outside = self._acting(q, v, t, f_ext, efforts)

            def of_target(
                q: Vector, v: Vector, target: Any, t: float, out: Vector | None,
                rates: Vector | None,
            ) -> Vector:  # fmt: skip
                return answer(prepared, q, v, target, t, known, out, rates)

            def after() -> Behind | None:
                return behind(prepared)

            return self._commanded(of_target, after, q, v, wanted, outside, t, known, out, notes)
        except InputError:
            _check_finite(wanted)
            check_finite(q=q, v=v)
            raise

    def at_estimate(
        self, found: SensedDynamics, q_motors: Any, v_motors: Any, reference: Any, t: Any,
        f_ext: Any, out: Vector | None, notes: TaskNotes,
    ) -> Vector:  # fmt: skip
        """The torque where only some joints are measured."""
        t = instant(t)
        wanted = self.wanted(reference)
        q, v = found.state(q_motors, v_motors, t)
        known, outside = self._acting(q, v, t, f_ext, None)

        def of_target(
            q: Vector, v: Vector, target: Any, t: float, out: Vector | None, rates: Vector | None
        ) -> Vector:
            return found.efforts(q, v, target, t, out, rates, known)

        try:
            after = found.behind
            return self._commanded(of_target, after, q, v, wanted, outside, t, known, out, notes)
        except InputError:
            _check_finite(wanted)
            raise

    def _acting(
        self, q: Vector, v: Vector, t: float, f_ext: Any, efforts: Any
    ) -> tuple[Vector | None, Vector | None]:
        """Known efforts, and those of them that a task feels."""
        if f_ext is None and efforts is None:
            return None, None
        if not self.feels or f_ext is None:
            return known_efforts(self.mech, q, v, t, f_ext, efforts), None
        outside = known_efforts(self.mech, q, v, t, f_ext, None)
        if efforts is None:
            return outside, outside
        return outside + known_efforts(self.mech, q, v, t, None, efforts), outside

    def _commanded(
        self, efforts: Callable[..., Vector], after: Callable[[], Behind | None], q: Vector,
        v: Vector, wanted: tuple[Any, ...], outside: Vector | None, t: float, known: Vector | None,
        out: Vector | None, notes: TaskNotes | None,
    ) -> Vector:  # fmt: skip
        """The efforts of the law, within limits."""
        told = TaskNotes()
        u, found = efforts(q, v, TaskRequest(wanted, outside, told), t, None, None), None
        limited = self.limited
        if limited is not None and not limited.within(u):
            rest, rates = np.zeros(self.mech.nu), None if told.rates is None else told.rates()
            u, found = within_limits(u, limited, efforts, after(), q, v, t, known, rest, rates)
        u = u if out is None else stored("out", out, u)
        if notes is not None:  # nothing can go wrong any more
            notes.damping, notes.limiting = told.damping, found
        return u


def _check_finite(wanted: Sequence[WantedMotion]) -> None:
    """Name what of references is not finite."""
    for i, one in enumerate(wanted):
        of = f" of task {i}" if len(wanted) > 1 else ""
        check_finite(
            **{
                f"rate of the reference{of}": one.rate,
                f"acceleration of the reference{of}": one.acceleration,
            }
        )


class LoopOptions(NamedTuple):
    """What all laws of tasks take besides; see `TaskSpaceControl`."""

    partition: Partition | None
    at_singular: str
    weights: Any
    closure_limit: float | None
    velocity_limit: float | None
    friction_at: str
    assembly: ClosedStateEstimator | None
    limits: Limits | None
    policy: str
    dt: float


def loop_options(controller: Any) -> LoopOptions:
    """Those of a `TaskSpaceControl` or `Impedance` that is being made, checked.

    Raises
    ------
    InputError
        For options that are none.
    NotActuatedError
        If its mechanism has no motors.
    """
    mech = controller.mech
    options = LoopOptions(*(getattr(controller, name) for name in LoopOptions._fields))
    check_mechanism(mech)
    if mech.nu == 0:
        raise NotActuatedError(f"{mech.name} has no motors to control")
    one_of("at_singular", options.at_singular, AT_SINGULAR)
    one_of("friction_at", options.friction_at, FRICTION_AT)
    one_of("policy", options.policy, LIMIT_POLICIES)
    positive("dt", options.dt, "s")
    check_estimator(mech, options.assembly, "controller")
    return options


def task_controller(
    mech: Mechanism, described: Sequence[Any], law: TaskLaw, options: LoopOptions, feels: bool
) -> TaskController:
    """The controller of a law; a warning is logged where its tasks have more rows than there are
    motions."""
    prepared = PreparedInverseDynamics(
        mech, options.partition, options.weights, "project", options.closure_limit,  # type: ignore[arg-type]
        options.velocity_limit,
    )  # fmt: skip
    part = prepared.partition
    pairs = zip(described, law.tasks, strict=True)
    law = replace(law, usual=tuple(usual(mech, part, *pair) for pair in pairs))
    friction = any(force.friction for force in mech.bound_forces)
    aimed(prepared, TaskAim(law, friction and options.friction_at == "reference"))
    _tell_of_rows(mech, law, part.actuation_rank)
    limited = None
    if options.limits is not None:
        limits = limits_law_of(mech, options.limits, options.policy, options.dt)
        limited = LimitedTick(limits, part)
    return TaskController(law, prepared, limited, options.assembly, feels)


def posture_of(mech: Mechanism, positions: Any, kp: Any, kd: Any) -> HeldPosture:
    """What is done with the motions that no task needs."""
    kp, kd = number("posture_kp", kp, "1/s^2"), number("posture_kd", kd, "1/s")
    if kp < 0.0 or kd < 0.0:
        raise InputError(f"posture_kp and posture_kd must not be negative; got {kp:g}, {kd:g}")
    if positions is None:
        return HeldPosture(None, None, kp, kd)
    error_of, held = position_error(mech), numbers("posture", positions).copy()
    if held.shape not in ((mech.nu,), (mech.nq,)):
        raise InputError(
            f"posture must have shape ({mech.nu},), positions of the motors, or ({mech.nq},), a "
            f"configuration; got {held.shape}"
        )
    if not np.isfinite(held).all():
        raise InputError("posture must be finite")
    error_of(mech.reference, held)  # the other checks
    held.setflags(write=False)
    return HeldPosture(held, lambda q: error_of(q, held), kp, kd)


def _tell_of_rows(mech: Mechanism, law: TaskLaw, motions: int) -> None:
    """Log a warning, once for each mechanism, where tasks have more rows than there are motions.

    Raises
    ------
    InputError
        For a law that needs the inertia of such a task, which has none.
    """
    labels = tuple(label for task in law.tasks for label in task.labels)
    if len(labels) <= motions:
        return
    if law.inertia is not None or law.damping[0] is None:
        raise InputError(
            f"{mech.name}: a task of {len(labels)} rows has no inertia where the motors drive "
            f"{motions} motions, so it can neither be given one, nor be damped critically; name "
            "fewer axes, or give the damping in numbers"
        )
    told: set[tuple[str, ...]] = mech.per_thread("tasks of more rows than motions", set)
    if labels not in told:
        told.add(labels)
        log.warning(
            "%s: the tasks have %d rows, and the motors drive %d motions: they are done by least "
            "squares, those of higher priority first",
            mech.name, len(labels), motions,
        )  # fmt: skip
