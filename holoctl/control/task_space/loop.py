"""Loops of laws of tasks, which remember where the mechanism is, and what follows a reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, quiet, quoted
from holoctl.base.errors import InputError
from holoctl.control.limited_tick import Limiting
from holoctl.control.task_space.controller import TaskController
from holoctl.control.task_space.law import TaskNotes
from holoctl.dynamics.tick.prepared_inverse import sensed
from holoctl.dynamics.tick.sensed import Sensed
from holoctl.estimation.prepared_assembly import AssemblyReport, PreparedAssembly

__all__ = ["SensedTaskTracking", "TaskLoop", "TaskReference", "TaskReport", "TaskTracking"]


@dataclass(frozen=True, eq=False)
class TaskReport:
    """What the last tick of a law of tasks was like.

    Attributes
    ----------
    saturated : tuple of str
        What limited it, as in `LimitedInverseDynamics`.
    softened : tuple of str
        Limits of joints that gave way, or are passed already.
    scale : float
        1 where nothing was limited; how much was left of what was asked for; nan where the efforts
        are the nearest.
    damping : float
        Of a singular task, relative to its mobility; 0 away from there.
    assembly : AssemblyReport or None
        What it took to find the state; None where it is given.
    """

    saturated: tuple[str, ...]
    softened: tuple[str, ...]
    scale: float
    damping: float
    assembly: AssemblyReport | None


def report_of(notes: TaskNotes, assembly: AssemblyReport | None) -> TaskReport:
    """The report of what is noted."""
    found: Limiting | None = notes.limiting
    if found is None:
        return TaskReport((), (), 1.0, notes.damping, assembly)
    return TaskReport(found.saturated, found.softened, found.outcome.scale, notes.damping, assembly)


@dataclass(frozen=True, eq=False, repr=False)
class TaskLoop:
    """One loop of a `TaskSpaceControl` or `Impedance`, whose motors, or what its `assembly` says,
    are measured.

    It belongs to one thread: ``ctl.loop()`` makes one for each.

    Attributes
    ----------
    measured : tuple of str
        The order of what is measured.
    assembly : PreparedAssembly
        How the state is found; it remembers the last one.

    Raises
    ------
    None
        ``ctl.loop()`` says what it raises.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> tip = hc.FrameTask("tip_right", "x z")
    >>> loop = hc.TaskSpaceControl(mech, tip, kp=400.0, kd=40.0).loop()
    >>> q_motors = mech.motor_positions(mech.reference)
    >>> u = loop.torque_from_motors(q_motors, [0.0, 0.0], np.zeros(2))
    """

    _own: TaskController
    _sensed: Sensed
    _notes: TaskNotes = field(default_factory=TaskNotes)

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            "a TaskLoop remembers where its mechanism is, for one thread: it is neither copied nor "
            "pickled; ctl.loop() makes another one"
        )

    def __repr__(self) -> str:
        return f"<TaskLoop of {self._own.mech.name}: {self.assembly!r}>"

    @property
    def assembly(self) -> PreparedAssembly:
        """How the state is found."""
        return self._sensed.assembly

    @property
    def measured(self) -> tuple[str, ...]:
        """The order of what is measured."""
        return self.assembly.measured

    @property
    def last(self) -> TaskReport:
        """What the last tick was like."""
        return report_of(self._notes, self.assembly.last)

    def state(
        self, q_measured: Any, v_measured: Any = None, t: float = 0.0
    ) -> tuple[Vector, Vector]:
        """`PreparedAssembly.state`, remembered by this loop."""
        return self.assembly.state(q_measured, v_measured, t)

    def reset(self, q: Any, t: float = 0.0) -> None:
        """`PreparedAssembly.reset`: tell where the mechanism is."""
        self.assembly.reset(q, t)
        self._notes.clear()

    def resynchronise(self, q_measured: Any, t: float = 0.0) -> None:
        """`PreparedAssembly.resynchronise`: go where the sensors read this, however far."""
        self.assembly.resynchronise(q_measured, t)

    @quiet
    def torque_from_motors(
        self, q_motors: Any, v_motors: Any, reference: Any, t: float = 0.0, *, f_ext: Any = None,
        out: Vector | None = None,
    ) -> Vector:  # fmt: skip
        """The closed state from what is measured, and the motor efforts there, in one tick.

        Where the state is found and the torque is not, the state is remembered all the same.

        Parameters
        ----------
        q_motors, v_motors : array_like
            Positions and rates in the order of `measured`; rad or m, rad/s or m/s.
        reference : object
            As in `TaskSpaceControl.torque`.
        t : float, optional
            Time, s.
        f_ext : mapping or pin.StdVec_Force, optional
            External forces that are measured, as in `TaskSpaceControl.torque`.
        out : (nu,) array, optional
            Takes the result; left as it is where an error is raised.

        Returns
        -------
        u : (nu,) array
            N m or N, in the order of ``mech.actuated``: `out`, or a new array.

        Raises
        ------
        InputError, SingularityError, InconsistentError, LimitError
            As `TaskSpaceControl.torque`.
        BranchError, AssemblyError
            As `PreparedAssembly.state`.
        """
        return self._own.at_estimate(
            self._sensed, q_motors, v_motors, reference, t, f_ext, out, self._notes
        )


# -------------------------------------------------------------------------------- tracking


TaskReference = Callable[[float], Any]
"""reference(t): what `torque` takes as reference."""


@dataclass(frozen=True, eq=False)
class TaskTracking:
    """A controller(t, q, v) -> u that follows a reference of tasks: ``ctl.track`` makes one.

    Parameters
    ----------
    controller : TaskSpaceControl or Impedance
    reference : function
        ``reference(t)``: as ``controller.torque`` takes it.

    Raises
    ------
    InputError
        For what is no controller of tasks, or no function.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> tip = hc.FrameTask("tip_right", "x z")
    >>> here = hc.task_terms(hc.project(mech, q, v), tip).value
    >>> hold = hc.TaskSpaceControl(mech, tip, kp=400.0, kd=40.0).track(lambda t: here)
    >>> u = hold(0.0, q, v)
    """

    controller: Any
    reference: TaskReference
    _notes: TaskNotes = field(init=False, repr=False, default_factory=TaskNotes)

    def __post_init__(self) -> None:
        if not isinstance(getattr(self.controller, "_own", None), TaskController):
            raise InputError(
                "controller must be a TaskSpaceControl or Impedance; got "
                f"{type(self.controller).__name__}"
            )
        if not callable(self.reference):
            raise InputError(f"reference must be a function of time; got {quoted(self.reference)}")

    @quiet
    def __call__(self, t: float, q: Vector, v: Vector) -> Vector:
        """The motor efforts u at the time t, s, in the state (q, v)."""
        own: TaskController = self.controller._own
        return own.at_state(q, v, self.reference(t), t, None, None, None, self._notes)

    @property
    def last(self) -> TaskReport:
        """What the last call was like."""
        return report_of(self._notes, None)

    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> TaskTracking:
        """This one, or one of the same reference with another partition."""
        controller = self.controller.repartitioned(q, v, t)
        if controller is self.controller:
            return self
        other = replace(self, controller=controller)
        object.__setattr__(other, "_notes", self._notes)
        return other


@dataclass(frozen=True, eq=False)
class SensedTaskTracking:
    """A controller(t, q_motors, v_motors) -> u that follows a reference of tasks where only the
    motors, or what ``controller.assembly`` says, are measured: ``ctl.track_from_motors`` makes one.

    It remembers where the mechanism is, in a loop of its own.

    Parameters
    ----------
    controller : TaskSpaceControl or Impedance
    reference : function
        ``reference(t)``: as ``controller.torque`` takes it.
    loop : TaskLoop, optional
        Default: a new one of the controller.

    Raises
    ------
    InputError
        For what is no controller of tasks, or no function; and as ``controller.loop``.
    """

    controller: Any
    reference: TaskReference
    loop: TaskLoop = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        TaskTracking(self.controller, self.reference)  # the same checks
        if self.loop is None:
            object.__setattr__(self, "loop", self.controller.loop())
        own: TaskController = self.controller._own
        if not isinstance(self.loop, TaskLoop) or self.loop._own.mech is not own.mech:
            raise InputError(
                "loop must be a TaskLoop of the mechanism of the controller, as controller.loop() "
                f"makes one; got {type(self.loop).__name__}"
            )

    def __call__(self, t: float, q_motors: Vector, v_motors: Vector) -> Vector:
        """The motor efforts u at the time t, s, where the sensors read this."""
        return self.loop.torque_from_motors(q_motors, v_motors, self.reference(t), t)

    @property
    def last(self) -> TaskReport:
        """`TaskLoop.last`."""
        return self.loop.last

    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> SensedTaskTracking:
        """This one, or one of the same reference with another partition, which goes on from where
        this one is. For the state (q, v) it takes its own."""
        own: TaskController = self.controller._own
        rest = np.zeros(own.mech.nv)
        controller = self.controller.repartitioned(self.loop.assembly.q, rest, t)
        if controller is self.controller:
            return self
        renewed = sensed(controller._own.prepared, self.loop.assembly)
        going_on = TaskLoop(controller._own, renewed, self.loop._notes)
        return replace(self, controller=controller, loop=going_on)
