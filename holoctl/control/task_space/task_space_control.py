"""Task space control: feedback cancellation in the coordinates of tasks, through closed loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from holoctl.base.checks import numbers, quiet, quoted
from holoctl.base.errors import InputError
from holoctl.base.renamed import former_names
from holoctl.base.tolerances import CLOSURE_LIMIT, MOST_UNEQUAL, VELOCITY_LIMIT
from holoctl.control.loop import new_loop, reset, track, track_from_motors
from holoctl.control.task_space.controller import (
    TaskController,
    general,
    loop_options,
    posture_of,
    repartitioned,
    task_controller,
    torque,
    torque_from_motors,
)
from holoctl.control.task_space.law import TaskLaw
from holoctl.control.tasks.gains import gains_of
from holoctl.control.tasks.task_protocol import Task
from holoctl.control.tasks.task_terms import bound_to
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["TaskSpaceControl"]


@former_names(estimator="assembly")
@dataclass(frozen=True, eq=False)
class TaskSpaceControl:
    """PD plus feedforward in the coordinates of tasks, through the inverse dynamics.

    With e the error of a task, J its Jacobian and xd = J v,

        xdd = a_ref + kd (v_ref - xd) + kp e

    is the commanded motion, achieved exactly on a perfect model. So ``e'' + kd e' + kp e = 0`` for
    positions, and for rotations about one direction, or to first order in e. If tasks have fewer
    rows than there are motions, the remaining motions follow the posture, by the dynamically
    consistent inverse, so that the posture does not accelerate any task.

    Parameters
    ----------
    mech : Mechanism
    tasks : task, or sequence of tasks
        `FrameTask`, `PostureTask`, `CenterOfMassTask`, `CustomTask`. Several tasks are achieved by
        priority, in their order: each uses the motions that the previous ones leave. If there are
        more rows than motions, the remaining rows are solved by least squares, scaled; a warning is
        logged.
    kp, kd : float, (rows,) or (rows, rows) array_like, or a sequence of these
        Gains, 1/s^2 and 1/s: numbers, or symmetric positive semidefinite matrices. For several
        tasks a number, or one gain for each.
    posture : (nu,) or (nq,) array_like, optional
        Positions of the motors that are held with the motions that the tasks leave free. Default:
        these are only braked.
    partition : Partition, optional
        Default: chosen at the configuration assembled from ``mech.reference``.
    task_weights : sequence of float, optional
        Weights above zero, one for each task: then the tasks are achieved together, by weighted
        least squares in scaled rows, and not by priority.
    posture_kp, posture_kd : float, optional
        Gains of the posture, 1/s^2 and 1/s.
    at_singular : str, optional
        If a task is singular, or contradicts the previous ones: ``"raise"``, or ``"damp"`` for the
        damped inverse near such a state, whose damping is reported in ``last`` of a loop or
        tracking.
    weights, closure_limit, velocity_limit, friction_at, estimator, limits, policy, dt, margin
        As in `ComputedTorque`. Friction is compensated at the rates of the references of the tasks.
    contacts
        As in `ComputedTorque`. Several tasks then need `task_weights`, and the posture has a weight
        of 1e-4.

    Raises
    ------
    InputError
        For invalid tasks, gains of the wrong shape or sign, unknown options.
    NotActuatedError
        If the mechanism has no motors.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

    See Also
    --------
    FrameTask : the pose of a frame as a task.
    Impedance : yields to forces.
    inverse_kinematics : the state for a pose.
    results.TaskReport : what happened in the last tick.

    References
    ----------
    docs/task-space.md; docs/derivations.md, "Task space".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> tip = hc.FrameTask("tip_right", "x z")
    >>> ctl = hc.TaskSpaceControl(mech, tip, kp=400.0, kd=40.0)
    >>> ctl.torque(q, v, [0.0, 0.4]).round(2).tolist()
    [2.0, -1.96]
    """

    mech: Mechanism
    tasks: Task | Sequence[Task]
    kp: Any
    kd: Any
    posture: Any = None
    partition: Partition = None  # type: ignore[assignment]
    task_weights: Sequence[float] | None = None
    posture_kp: float = 100.0
    posture_kd: float = 20.0
    at_singular: str = "raise"
    weights: Any = None
    closure_limit: float | None = CLOSURE_LIMIT
    velocity_limit: float | None = VELOCITY_LIMIT
    friction_at: str = "reference"
    estimator: ClosedStateEstimator | None = None
    limits: Limits | str | None = None
    policy: str = "nearest"
    dt: float = 1e-3
    margin: float | None = None
    contacts: Any = None
    _own: TaskController = field(init=False, repr=False)

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""
        mech, options = self.mech, loop_options(self)
        given = self.tasks if isinstance(self.tasks, (list, tuple)) else (self.tasks,)
        if not given:
            raise InputError("tasks must be one task or more")
        object.__setattr__(self, "tasks", tuple(given))
        tasks = tuple(bound_to(mech, task) for task in given)
        rows = [task.scale.size for task in tasks]
        law = TaskLaw(
            tasks=tasks,
            stiffness=gains_of("kp", self.kp, rows),
            damping=gains_of("kd", self.kd, rows),
            inertia=None,
            natural=False,
            posture=posture_of(mech, self.posture, self.posture_kp, self.posture_kd),
            weights=_weights(self.task_weights, len(tasks)),
            damped=self.at_singular == "damp",
        )
        for name, gains in (("kp", law.stiffness), ("kd", law.damping)):
            object.__setattr__(self, name, gains if len(tasks) > 1 else gains[0])
        object.__setattr__(self, "posture", law.posture.held)
        object.__setattr__(self, "task_weights", law.weights)
        own = task_controller(mech, given, law, options, feels=False)
        object.__setattr__(self, "weights", own.prepared.weights)
        object.__setattr__(self, "_own", own)
        object.__setattr__(self, "partition", own.prepared.partition)

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskSpaceControl, (
            self.mech, self.tasks, self.kp, self.kd, self.posture, self.partition,
            self.task_weights, self.posture_kp, self.posture_kd, self.at_singular, self.weights,
            self.closure_limit, self.velocity_limit, self.friction_at, self.estimator, self.limits,
            self.policy, self.dt, self.margin, self.contacts,
        )  # fmt: skip

    general = property(general)
    torque = torque
    torque_from_motors = torque_from_motors
    _local = property(lambda self: self._own.local)
    _loop_functions = property(lambda self: self._own.loop_functions)
    loop = new_loop
    reset = reset
    track = track
    track_from_motors = track_from_motors
    repartitioned = repartitioned


def _weights(given: Any, count: int) -> tuple[float, ...] | None:
    if given is None:
        return None
    x = numbers("task_weights", given, "one for each task")
    if x.shape != (count,) or not (x > 0.0).all() or not (x < float("inf")).all():
        raise InputError(
            f"task_weights must be {count} numbers above zero, one for each task; got "
            f"{quoted(given)}"
        )
    if x.max() > MOST_UNEQUAL * x.min():
        raise InputError(
            f"task_weights may differ by a factor of {MOST_UNEQUAL:.0e}; got {quoted(given)}"
        )
    return tuple(x.tolist())
