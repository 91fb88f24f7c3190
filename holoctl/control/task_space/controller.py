"""The common part of `TaskSpaceControl` and `Impedance`: options, and the torque at a state.

Both define a law of tasks; a `TaskController` computes its torque at a state that is given or
estimated from the motors.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from holoctl.base.checks import (
    Vector,
    instant,
    number,
    numbers,
    one_of,
    positive,
    quiet,
    stored,
)
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.control.contact_paths import ContactLimiting, ContactPaths, acting, contact_paths
from holoctl.control.controller_limits import limits_law_of
from holoctl.control.limit_policies import LIMIT_POLICIES
from holoctl.control.limited_tick import LimitedTick, Limiting
from holoctl.control.loop import LoopFunctions, estimator_of, hand_over, loop_of_thread
from holoctl.control.loop_memory import Memory, task_report_of
from holoctl.control.motor_feedback import FRICTION_AT, check_finite, position_error
from holoctl.control.task_space.law import HeldPosture, TaskLaw, TaskRequest
from holoctl.control.task_space.task_by_projection import acceleration_task
from holoctl.control.task_space.tasks_on_contacts import task_rows
from holoctl.control.tasks.task_protocol import ReferenceMotion, wanted_of
from holoctl.control.tasks.task_singularity import usual
from holoctl.dynamics.tick.inverse_tick import prepare, why_general
from holoctl.dynamics.tick.inverse_with_fallback import EstimatedPaths, Paths
from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics, with_task
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator, check_estimator
from holoctl.mechanism.checks import check_mechanism, state_in_a_tick
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import known_efforts
from holoctl.projector.partition import Partition
from holoctl.rows.tick.fast_rows import why_not

__all__ = [
    "LoopOptions", "TaskController", "general", "loop_options", "posture_of", "repartitioned",
    "task_controller", "torque", "torque_from_motors",
]  # fmt: skip

log = logging.getLogger(__name__)

AT_SINGULAR = ("raise", "damp")


@dataclass(frozen=True, eq=False)
class TaskController:
    """A law of tasks with its prepared inverse dynamics, limits and estimator.

    Attributes
    ----------
    law : TaskLaw
    prepared : PreparedInverseDynamics
        With the law as its task.
    limited : LimitedTick or None
        The limits; None without.
    estimator : ClosedStateEstimator or None
        The estimator of the state if only some joints are measured.
    feels : bool
        Whether the task responds to ``f_ext``, as an impedance; else ``f_ext`` is compensated.
    standing : ContactPaths or None
        The contacts that the mechanism stands on.
    local : threading.local
        The loop of each thread.
    """

    law: TaskLaw
    prepared: PreparedInverseDynamics
    limited: LimitedTick | None
    estimator: ClosedStateEstimator | None
    feels: bool
    standing: ContactPaths | None = None
    local: threading.local = field(init=False, repr=False, default_factory=threading.local)

    @property
    def general(self) -> str:
        """Why every tick uses the general path; empty if the fast one is available."""
        part, law = self.prepared.partition, self.law
        if self.standing is not None:
            return why_not(self.mech)
        if why := why_general(self.mech, part):
            return why
        if part.actuation_rank < part.independent.size:
            return "some motion is passive"
        if len(law.tasks) > 1 and law.damped:
            return "several tasks are damped together"
        if prepare(self.mech, part, self.prepared._paths.options) is not None:
            return ""
        return "a task has no tick, or friction is taken at a reference and constraints in time"

    @property
    def mech(self) -> Mechanism:
        """The mechanism."""
        return self.prepared.mech

    def wanted(self, reference: Any) -> tuple[Any, ...]:
        """The reference motion of each task, checked."""
        tasks = self.law.tasks
        if len(tasks) == 1:
            return (wanted_of(tasks[0], reference),)
        if not isinstance(reference, (tuple, list)) or len(reference) != len(tasks):
            raise InputError(
                f"the reference of {len(tasks)} tasks is a sequence of {len(tasks)}, one for each; "
                f"got {type(reference).__name__} {str(reference)[:60]!r}"
            )
        return tuple(wanted_of(task, one) for task, one in zip(tasks, reference, strict=True))

    @quiet
    def torque(
        self, q: Any, v: Any, reference: Any, t: Any = 0.0, *, f_ext: Any = None,
        efforts: Any = None, active: Any = None, out: Vector | None = None,
        memory: Memory | None = None,
    ) -> Vector:  # fmt: skip
        """The torque at a given state."""
        wanted, paths = (
            self.wanted(reference),
            acting(self.standing, active) or self.prepared._paths,
        )
        try:
            q, v, t = state_in_a_tick(self.mech, q, v, t)
            return self._torque(paths, q, v, t, wanted, f_ext, efforts, out, memory)
        except InputError:
            _check_finite(wanted)
            check_finite(q=q, v=v)
            raise

    @quiet
    def torque_at_estimate(
        self, found: EstimatedPaths, q_motors: Any, v_motors: Any, reference: Any, t: Any = 0.0, *,
        f_ext: Any = None, out: Vector | None = None, memory: Memory,
    ) -> Vector:  # fmt: skip
        """The torque at the estimated state, if only some joints are measured."""
        t = instant(t)
        wanted = self.wanted(reference)
        q, v = found.state(q_motors, v_motors, t)
        try:
            return self._torque(found, q, v, t, wanted, f_ext, None, out, memory)
        except InputError:
            _check_finite(wanted)
            raise

    def _torque(
        self, paths: Paths, q: Vector, v: Vector, t: float, wanted: tuple[Any, ...], f_ext: Any,
        efforts: Any, out: Vector | None, memory: Memory | None,
    ) -> Vector:  # fmt: skip
        """The efforts of the law, within limits."""
        known, outside = self._acting(q, v, t, f_ext, efforts)
        request, limited = TaskRequest(wanted, outside), self.limited
        found: Limiting | ContactLimiting | None = None
        u = paths.efforts(request, None, q, v, t, known)
        if limited is not None and not limited.within(u):
            still = np.zeros(self.mech.nu), None if request.rates is None else request.rates()
            u, found = limited.kept(u, paths, q, v, t, known, *still)
        elif isinstance(paths, ContactPaths):
            found = paths.limiting()
        u = u if out is None else stored("out", out, u)
        if memory is not None:  # no error can occur after this
            memory.damping, memory.last = request.damping, found
            memory.note(q, t)
        return u

    def _acting(
        self, q: Vector, v: Vector, t: float, f_ext: Any, efforts: Any
    ) -> tuple[Vector | None, Vector | None]:
        """Known efforts, and those of them that the task responds to."""
        if f_ext is None and efforts is None:
            return None, None
        if not self.feels or f_ext is None:
            return known_efforts(self.mech, q, v, t, f_ext, efforts), None
        outside = known_efforts(self.mech, q, v, t, f_ext, None)
        if efforts is None:
            return outside, outside
        return outside + known_efforts(self.mech, q, v, t, None, efforts), outside

    def loop_functions(self, memory: Memory | None = None) -> LoopFunctions:
        """The functions that loops and trackings need."""
        paths, memory = self.prepared._paths, Memory() if memory is None else memory
        given = self.mech, paths.partition, self.estimator
        memory.continue_sides(self.mech, paths.partition)
        return LoopFunctions(
            memory=memory,
            torque=partial(self.torque, memory=memory),
            torque_with_estimator=lambda found: partial(
                self.torque_at_estimate, EstimatedPaths(paths, found), memory=memory
            ),
            estimator=lambda before: estimator_of(
                *given, before, None if self.standing is None else self.standing.contacts
            ),
            report=partial(task_report_of, self.mech, paths.partition, memory),
            spread=lambda wanted: (wanted,),
        )


def _check_finite(wanted: Sequence[ReferenceMotion]) -> None:
    """Raise `InputError` with the names of references that are not finite."""
    for i, one in enumerate(wanted):
        of = f" of task {i}" if len(wanted) > 1 else ""
        check_finite(
            **{
                f"rate of the reference{of}": one.rate,
                f"acceleration of the reference{of}": one.acceleration,
            }
        )


class LoopOptions(NamedTuple):
    """The common options of all laws of tasks; see `TaskSpaceControl`."""

    partition: Partition | None
    at_singular: str
    weights: Any
    closure_limit: float | None
    velocity_limit: float | None
    friction_at: str
    estimator: ClosedStateEstimator | None
    limits: Limits | None
    policy: str
    dt: float
    margin: float | None
    contacts: Any = None


def loop_options(controller: Any) -> LoopOptions:
    """The options of a `TaskSpaceControl` or `Impedance` that is being made, checked.

    Raises
    ------
    InputError
        For invalid options.
    NotActuatedError
        If its mechanism has no motors.
    """
    mech = controller.mech
    check_mechanism(mech)
    limits = requested_limits(mech, controller.limits, type(controller).__name__)
    object.__setattr__(controller, "limits", limits)
    given: list[Any] = [getattr(controller, name, None) for name in LoopOptions._fields]
    options = LoopOptions(*given)
    if mech.nu == 0:
        raise NotActuatedError(f"{mech.name} has no motors to control")
    one_of("at_singular", options.at_singular, AT_SINGULAR)
    one_of("friction_at", options.friction_at, FRICTION_AT)
    one_of("policy", options.policy, LIMIT_POLICIES)
    positive("dt", options.dt, "s")
    check_estimator(mech, options.estimator, "controller")
    return options


def task_controller(
    mech: Mechanism, described: Sequence[Any], law: TaskLaw, options: LoopOptions, feels: bool
) -> TaskController:
    """The controller of a law; a warning is logged if its tasks have more rows than there are
    motions."""
    prepared = PreparedInverseDynamics(
        mech, options.partition, options.weights, "project", options.closure_limit,  # type: ignore[arg-type]
        options.velocity_limit, options.margin,
    )  # fmt: skip
    part = prepared.partition
    if options.contacts is not None:
        standing = contact_paths(options, prepared, task_rows(mech, law))
        return TaskController(law, prepared, None, None, feels, standing)
    pairs = zip(described, law.tasks, strict=True)
    law = replace(law, usual=tuple(usual(mech, part, *pair) for pair in pairs))
    friction = any(force.friction for force in mech.bound_forces)
    at_reference = friction and options.friction_at == "reference"
    with_task(prepared, acceleration_task(law, at_reference))
    _warn_of_rows(mech, law, part.actuation_rank)
    limited = None
    if options.limits is not None:
        limits = limits_law_of(mech, options.limits, options.policy, options.dt)
        limited = LimitedTick(limits, part)
    return TaskController(law, prepared, limited, options.estimator, feels)


def posture_of(mech: Mechanism, positions: Any, kp: Any, kd: Any) -> HeldPosture:
    """The posture law of the motions that no task needs."""
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


def _warn_of_rows(mech: Mechanism, law: TaskLaw, motions: int) -> None:
    """Log a warning, once for each mechanism, if tasks have more rows than there are motions.

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
    logged: set[tuple[str, ...]] = mech.per_thread("tasks of more rows than motions", set)
    if labels not in logged:
        logged.add(labels)
        log.warning(
            "%s: the tasks have %d rows, and the motors drive %d motions: they are solved by "
            "least squares, those of higher priority first",
            mech.name, len(labels), motions,
        )  # fmt: skip


# ------------------------------------------------------- methods of TaskSpaceControl and Impedance


class _Controller(Protocol):
    """`TaskSpaceControl` or `Impedance`."""

    _own: TaskController


_C = TypeVar("_C", bound=_Controller)


def general(self: _Controller) -> str:
    """Why every tick uses the general path, at about ten times the cost; empty if the fast path is
    available."""
    return self._own.general


def torque(
    self: _Controller, q: Any, v: Any, reference: Any, t: float = 0.0, *, f_ext: Any = None,
    efforts: Any = None, active: Any = None, out: Vector | None = None,
) -> Vector:  # fmt: skip
    """The motor efforts for one tick.

    Parameters
    ----------
    q : (nq,) array_like
        Measured configuration.
    v : (nv,) array_like
        Measured velocity, rad/s or m/s.
    reference : object
        The reference value of the task, or (value, rate, acceleration), rate and acceleration
        (rows,), in m, rad and s; for several tasks a sequence with one reference for each.
    t : float, optional
        Time, s, for constraints that depend on it.
    f_ext : mapping or pin.StdVec_Force, optional
        External forces, as `inverse_dynamics` takes them. `TaskSpaceControl` compensates them. An
        `Impedance` yields to them: with the natural inertia without this measurement, which has no
        effect; with a given inertia by means of this measurement.
    efforts : (nv,) array_like, optional
        Known efforts on the coordinates, N m or N, to be compensated, such as those of a payload.
    active : str or sequence of str, optional
        The names of the contacts that act now. Default: all `contacts`, of a `TaskSpaceControl`.
    out : (nu,) array, optional
        Array for the result; unchanged if an error is raised.

    Returns
    -------
    u : (nu,) array
        N m or N, in the order of ``mech.actuated``: `out`, or a new array.

    Raises
    ------
    InputError
        For wrong shapes, or input that is not finite.
    SingularityError
        If the task is singular and ``at_singular="raise"``; if the split or the actuation is
        singular.
    InconsistentError
        If the state is beyond its limits.
    LimitError
        With the policy "raise", beyond one of `limits`.
    """
    own = self._own
    return own.torque(q, v, reference, t, f_ext=f_ext, efforts=efforts, active=active, out=out)


def torque_from_motors(
    self: _Controller, q_motors: Any, v_motors: Any, reference: Any, t: float = 0.0, *,
    f_ext: Any = None, out: Vector | None = None,
) -> Vector:  # fmt: skip
    """`Loop.torque_from_motors` of the loop of this thread, which the first call makes.

    Parameters
    ----------
    q_motors, v_motors, reference, t, f_ext, out
        As in `Loop.torque_from_motors`.

    Returns
    -------
    u : (nu,) array
        N m or N.

    Raises
    ------
    InputError, SingularityError, InconsistentError, BranchError, AssemblyError, LimitError
        As `Loop.torque_from_motors` and `loop`.
    """
    own_loop = loop_of_thread(self)
    return own_loop.torque_from_motors(q_motors, v_motors, reference, t, f_ext=f_ext, out=out)


@quiet
def repartitioned(self: _C, q: Any, v: Any, t: float = 0.0) -> _C:
    """This controller, or one with other rows or coordinates if its partition is ill-conditioned;
    see `PreparedInverseDynamics.repartitioned`.

    Parameters
    ----------
    q, v, t
        State, as in `torque`.

    Returns
    -------
    TaskSpaceControl or Impedance
        This one if no change is needed.

    Raises
    ------
    InputError
        For wrong shapes.
    """
    own = self._own
    prepared = own.prepared.repartitioned(q, v, t)
    if prepared is own.prepared:
        return self
    given: Any = self
    other: _C = replace(given, partition=prepared.partition)
    renewed = replace(other._own, prepared=prepared)  # has its workspaces
    object.__setattr__(other, "_own", renewed)
    hand_over(self, other)
    return other
