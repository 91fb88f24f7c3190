"""Impedance: a task that responds to forces as a spring, a damper, and optionally a mass.

    natural inertia    Lambda (xdd - a_ref) = K e + D (v_ref - xd) + F
    inertia Ld         Ld (xdd - a_ref) = K e + D (v_ref - xd) + F        F must be measured

with F the external force on the task. Reference: N. Hogan, "Impedance control: an approach to
manipulation", Journal of Dynamic Systems, Measurement, and Control, 1985.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holoctl.base.checks import quiet, quoted
from holoctl.base.errors import InputError
from holoctl.base.renamed import former_names
from holoctl.base.tolerances import CLOSURE_LIMIT, VELOCITY_LIMIT
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
from holoctl.control.task_space.law import TaskLaw, critical_damping, matrix
from holoctl.control.tasks.gains import gain_of
from holoctl.control.tasks.task_protocol import Task
from holoctl.control.tasks.task_terms import bound_to
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["Impedance"]


@former_names(estimator="assembly")
@dataclass(frozen=True, eq=False)
class Impedance:
    """A task that yields to forces like a spring with a damper, through closed loops.

    A static force F at the task moves it by ``K^-1 F`` from its reference. With the natural inertia
    forces need not be measured. Motions that the task leaves free follow the posture.

    Parameters
    ----------
    mech : Mechanism
    task : task
        Such as a `FrameTask`.
    stiffness : float, (rows,) or (rows, rows) array_like
        K, N/m and N m/rad: symmetric positive semidefinite.
    damping : float, (rows,) or (rows, rows) array_like, or "critical"
        D, N s/m and N m s/rad: symmetric positive semidefinite; or ``"critical"``: the damping
        ratio is one along each axis of motion, with the natural inertia at the state or the given
        inertia.
    inertia : float, (rows,) or (rows, rows) array_like, optional
        Ld, kg and kg m^2, symmetric positive definite: the inertia with which the task responds to
        f_ext. Default: the natural inertia.
    posture : (nu,) or (nq,) array_like, optional
        Positions of the motors that are held with the motions that the task leaves free. Default:
        these are only braked.
    partition : Partition, optional
        Default: chosen at the configuration assembled from ``mech.reference``.
    posture_kp, posture_kd : float, optional
        Gains of the posture, 1/s^2 and 1/s.
    at_singular : str, optional
        As in `TaskSpaceControl`.
    weights, closure_limit, velocity_limit, friction_at, estimator, limits, policy, dt, margin
        As in `ComputedTorque`. Friction is compensated at the rates of the reference of the task.

    Raises
    ------
    InputError
        For an invalid task, matrices of the wrong shape or sign, unknown options; for a task of
        more rows than the motors drive motions, which has no inertia, if an inertia is given or
        damping is ``"critical"``.
    NotActuatedError
        If the mechanism has no motors.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

    See Also
    --------
    TaskSpaceControl : follows a task, with gains on accelerations.
    results.TaskTerms : the task-space inertia.
    MomentumObserver : the forces that push.

    References
    ----------
    docs/task-space.md; docs/derivations.md, "Task space".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> tip = hc.FrameTask("tip_right", "x z")
    >>> spring = hc.Impedance(mech, tip, stiffness=500.0, damping="critical")
    >>> spring.torque(q, v, [0.0, 0.4]).round(2).tolist()
    [2.1, -2.06]
    """

    mech: Mechanism
    task: Task
    stiffness: Any
    damping: Any
    inertia: Any = None
    posture: Any = None
    partition: Partition = None  # type: ignore[assignment]
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
    _own: TaskController = field(init=False, repr=False)

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""
        mech, options = self.mech, loop_options(self)
        task = bound_to(mech, self.task)
        rows = task.scale.size
        stiffness = gain_of("stiffness", self.stiffness, rows)
        inertia = None if self.inertia is None else gain_of("inertia", self.inertia, rows, True)
        if isinstance(self.damping, str) and self.damping != "critical":
            raise InputError(f"damping must be numbers or 'critical'; got {quoted(self.damping)}")
        damping = None
        if not isinstance(self.damping, str):
            damping = gain_of("damping", self.damping, rows)
        elif inertia is not None:
            damping = critical_damping(stiffness, matrix(inertia))
        law = TaskLaw(
            tasks=(task,),
            stiffness=(stiffness,),
            damping=(damping,),
            inertia=None if inertia is None else matrix(inertia),
            natural=inertia is None,
            posture=posture_of(mech, self.posture, self.posture_kp, self.posture_kd),
            weights=None,
            damped=self.at_singular == "damp",
        )
        object.__setattr__(self, "stiffness", stiffness)
        object.__setattr__(self, "inertia", inertia)
        object.__setattr__(self, "posture", law.posture.held)
        if not isinstance(self.damping, str):
            object.__setattr__(self, "damping", damping)
        own = task_controller(mech, (self.task,), law, options, feels=True)
        object.__setattr__(self, "weights", own.prepared.weights)
        object.__setattr__(self, "_own", own)
        object.__setattr__(self, "partition", own.prepared.partition)

    def __reduce__(self) -> tuple[Any, ...]:
        return Impedance, (
            self.mech, self.task, self.stiffness, self.damping, self.inertia, self.posture,
            self.partition, self.posture_kp, self.posture_kd, self.at_singular, self.weights,
            self.closure_limit, self.velocity_limit, self.friction_at, self.estimator, self.limits,
            self.policy, self.dt, self.margin,
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
