"""`Loop` and `Tracking` of all controllers, in Python or compiled.

A loop remembers the last state of its mechanism, a tracking follows a reference. A controller
provides its `_loop_functions`. The closed state is estimated by a `ClosedStateEstimator`, or by its
compiled equivalent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import BuiltinFunctionType
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Vector, quoted
from holoctl.base.errors import InputError
from holoctl.base.renamed import former_names
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = [
    "Loop", "LoopFunctions", "Tracking", "estimator_of", "hand_over", "in_python",
    "loop_of_thread", "new_loop", "reset", "track", "track_from_motors",
]  # fmt: skip


class LoopFunctions(NamedTuple):
    """The functions of a controller that a loop or a tracking needs.

    Attributes
    ----------
    memory : Memory
        The memory of the functions from tick to tick; ``clear()`` resets it.
    torque : function (q, v, *reference, t, *, out, ...) -> u, or None
        The torque at a given state; None if it was not compiled.
    torque_with_estimator : function (estimator) -> function
        Takes an estimator, and returns the function ``(q_motors, v_motors, *reference, t, *, out,
        ...) -> u`` of the torque at the estimated state.
    estimator : function (estimator or None) -> estimator
        A new estimator; or one that continues from the last state of another one.
    report : function (EstimatorReport or None) -> LoopReport or TaskReport
        The report on the last tick.
    spread : function (reference(t)) -> tuple
        The value of a reference as arguments of `torque`.
    """

    memory: Any
    torque: Callable[..., Vector] | None
    torque_with_estimator: Callable[[Any], Callable[..., Vector]]
    estimator: Callable[[Any], Any]
    report: Callable[[Any], Any]
    spread: Callable[[Any], tuple[Any, ...]]


@former_names(estimator="assembly")
@dataclass(frozen=True, eq=False, repr=False)
class Loop:
    """One loop of a controller that measures the motors, or the joints of its `estimator`.

    It belongs to one thread: ``ctl.loop()`` makes one for each thread, of a `ComputedTorque`, a
    `TaskSpaceControl` or an `Impedance`, and of the result of `compile` for one of these.

    Attributes
    ----------
    controller : ComputedTorque, TaskSpaceControl, Impedance, Compiled or CompiledTasks
    measured : tuple of str
        The measured joints, in the order of their readings.
    estimator : ClosedStateEstimator
        The estimator of the state, which remembers the last one. For a compiled loop: its
        equivalent in Python, at the same state.

    Raises
    ------
    None
        See ``ctl.loop()``.

    See Also
    --------
    results.Tracking : follows a reference.
    ClosedStateEstimator : its estimator.
    ComputedTorque : one of the controllers.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> loop = hc.ComputedTorque(mech, kp=400.0, kd=40.0).loop()
    >>> home, rest = [2.2, 0.94], [0.0, 0.0]
    >>> loop.torque_from_motors(home, rest, home, rest, rest).round(2).tolist()
    [-2.31, 2.31]
    """

    controller: Any
    _estimator: Any
    _memory: Any = None
    _functions: LoopFunctions = field(init=False)
    _from_motors: Callable[..., Vector] = field(init=False)

    def __post_init__(self) -> None:
        functions = self.controller._loop_functions(self._memory)
        from_motors = functions.torque_with_estimator(self._estimator)
        state = self._estimator.state
        found = {"_functions": functions, "_memory": functions.memory, "_from_motors": from_motors}
        # functions in C replace the methods of the same name
        for name, function in (("torque_from_motors", from_motors), ("state", state)):
            if isinstance(function, BuiltinFunctionType):
                found[name] = function
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            "a Loop remembers the state of its mechanism, for one thread: it cannot be copied or "
            "pickled; ctl.loop() makes another one"
        )

    def __repr__(self) -> str:
        return f"<Loop of {self.controller.mech.name}: {self._estimator!r}>"

    @property
    def estimator(self) -> ClosedStateEstimator:
        """The estimator of the state."""
        return _prepared(self._estimator)

    @property
    def measured(self) -> tuple[str, ...]:
        """The measured joints, in the order of their readings."""
        measured: tuple[str, ...] = self._estimator.measured
        return measured

    @property
    def last(self) -> Any:
        """The report on the last tick, a `LoopReport` or a `TaskReport`: the active limits, and the
        work of the estimator. `InputError` for machine code, which does not report."""
        found = self._estimator
        return self._functions.report(
            found.last if isinstance(found, ClosedStateEstimator) else None
        )

    def state(
        self,
        q_measured: Any,
        v_measured: Any = None,
        t: float = 0.0,
        *,
        out: tuple[Vector, Vector] | None = None,
    ) -> tuple[Vector, Vector]:
        """`ClosedStateEstimator.state`, remembered by this loop."""
        q, v = self._estimator.state(q_measured, v_measured, t, out=out)
        return q, v

    def reset(self, q: Any, t: float = 0.0) -> None:
        """`ClosedStateEstimator.reset`: set the configuration of the mechanism. The integral is
        reset to zero."""
        self._estimator.reset(q, t)
        self._memory.clear()

    def resynchronise(self, q_measured: Any, t: float = 0.0) -> None:
        """`ClosedStateEstimator.resynchronise`: follow the sensors to these readings, however
        far."""
        self._estimator.resynchronise(q_measured, t)

    def torque(self, q: Any, v: Any, *reference: Any, **more: Any) -> Vector:
        """``controller.torque`` at a known state, which is not remembered; the integral is
        updated."""
        functions = self._functions
        return (functions.torque or self._from_motors)(q, v, *reference, **more)

    def torque_from_motors(
        self, q_motors: Any, v_motors: Any, *reference: Any, **more: Any
    ) -> Vector:
        """The closed state from the measured joints, and the motor efforts there, in one tick.

        If the state is found and the torque raises an error, the state is remembered.

        Parameters
        ----------
        q_motors, v_motors : array_like
            Positions and rates in the order of `measured`; rad or m, rad/s or m/s.
        reference
            As ``controller.torque`` takes it, followed by the time t, s: ``q_ref, v_ref, a_ref,
            t=0.0``, or for a law of tasks ``reference, t=0.0``.
        more
            ``out=``, a (nu,) array for the result, unchanged if an error is raised. For a law of
            tasks in Python, ``f_ext=`` are measured external forces.

        Returns
        -------
        u : (nu,) array
            N m or N, in the order of ``mech.actuated``: `out`, or a new array.

        Raises
        ------
        InputError, SingularityError, InconsistentError, LimitError
            As ``controller.torque``.
        BranchError, AssemblyError
            As `ClosedStateEstimator.state`.
        """
        return self._from_motors(q_motors, v_motors, *reference, **more)


@dataclass(frozen=True, eq=False)
class Tracking:
    """A controller ``(t, q, v) -> u`` that follows a reference.

    ``ctl.track(reference)`` makes one for every controller, in Python or compiled.
    ``ctl.track_from_motors(reference)`` makes a controller(t, q_motors, v_motors) -> u for the
    readings of its `loop`. It remembers the integral of its controller, and the limits that were
    active in the last call.

    Parameters
    ----------
    controller : ComputedTorque, TaskSpaceControl, Impedance, Compiled or CompiledTasks
    reference : function
        ``reference(t)``: (q_ref, v_ref, a_ref) as `ComputedTorque.torque` takes them, or for a law
        of tasks the reference that its ``torque`` takes.
    loop : Loop, optional
        A loop of this controller, if only its measured joints are known. Default: the whole state
        is known.
    active : function, optional
        ``active(t)``: the names of the `contacts` of the controller that act. Default: all.

    Raises
    ------
    InputError
        If `controller` is no controller, `reference` no function, or `loop` no loop of this
        controller.

    See Also
    --------
    ComputedTorque : returns it, from `track`.
    results.Loop : one loop on measured joints.
    simulate : takes it as the controller.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> home, rest = mech.motor_positions(q), [0.0, 0.0]
    >>> hold = hc.ComputedTorque(mech, kp=400.0, kd=40.0).track(lambda t: (home, rest, rest))
    >>> hold(0.0, q, v).round(2).tolist()
    [-2.3, 2.3]
    """

    controller: Any
    reference: Callable[[float], Any]
    loop: Loop | None = None
    active: Callable[[float], Any] | None = None
    _memory: Any = field(default=None, repr=False)
    _functions: LoopFunctions = field(init=False, repr=False)
    _torque: Callable[..., Vector] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        controller, loop = self.controller, self.loop
        if not hasattr(type(controller), "_loop_functions") or isinstance(controller, type):
            raise InputError(
                "controller must be a ComputedTorque, a TaskSpaceControl, an Impedance, or what "
                f"hc.compile makes of one; got {type(controller).__name__}"
            )
        if not callable(self.reference):
            raise InputError(f"reference must be a function of time; got {quoted(self.reference)}")
        if self.active is not None and not callable(self.active):
            raise InputError(
                "active must be a function of time that returns names of contacts; got "
                f"{quoted(self.active)}"
            )
        if loop is not None and (not isinstance(loop, Loop) or loop.controller is not controller):
            raise InputError(
                "loop must be a Loop of the controller, as controller.loop() makes one; got "
                f"{type(loop).__name__}"
            )
        functions = controller._loop_functions(self._memory) if loop is None else loop._functions
        if functions.torque is None:
            raise InputError("torque was not compiled; hc.compile(controller) does it")
        torque = functions.torque if loop is None else loop.torque_from_motors
        for name, value in (
            ("_functions", functions), ("_memory", functions.memory), ("_torque", torque),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tracking, (self.controller, self.reference, self.loop, self.active, self._memory)

    def __call__(self, t: float, q: Vector, v: Vector) -> Vector:
        """The motor efforts u at the time t, s, in the state (q, v); with a loop, q and v are its
        readings."""
        more = {} if self.active is None else {"active": self.active(t)}
        return self._torque(q, v, *self._functions.spread(self.reference(t)), t, **more)

    @property
    def last(self) -> Any:
        """The report on the last call: a `LoopReport`, or for a law of tasks a `TaskReport`."""
        return self._functions.report(None) if self.loop is None else self.loop.last

    def reset(self) -> None:
        """Set the integral to zero, as before another run. The state of a loop is kept; see
        `Loop.reset`."""
        self._memory.clear()

    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> Tracking:
        """This tracking, or one of the same reference with ``controller.repartitioned``, which
        continues from the memory of this one. With a loop, its own state replaces (q, v)."""
        loop = self.loop
        if loop is not None:
            q, v = loop._estimator.q, np.zeros(self.controller.mech.nv)
        controller = self.controller.repartitioned(q, v, t)
        if controller is self.controller:
            return self
        return replace(
            self, controller=controller, loop=None if loop is None else _continued(loop, controller)
        )


def new_loop(self: Any, after: Loop | None = None) -> Loop:
    """A loop of this controller, which remembers the state of the mechanism; one for each thread.

    For a compiled controller, the first loop compiles the estimator of the state, unless
    ``"state"`` was compiled with it.

    Parameters
    ----------
    after : Loop, optional
        A loop of the same compiled law with another load (see `Compiled.loaded`), from whose state
        and integral this one continues. Both then have one state and one integral, so that either
        may compute the next tick, but not both the same one. Default: the loop starts at the
        reference.

    Returns
    -------
    Loop

    Raises
    ------
    InputError
        For a general actuation matrix, whose motors have no positions; if the motors do not
        determine the motion of the mechanism, and no `estimator` measures other joints; for
        functions compiled for CasADi's virtual machine; for another `after`.
    AssemblyError, BranchError
        As `ClosedStateEstimator`.
    HoloctlError
        If a compiler fails.
    """
    if after is None:
        return Loop(self, self._loop_functions().estimator(None))
    shared = getattr(self, "_estimators", None)
    if (
        shared is None or not isinstance(after, Loop)
        or getattr(after.controller, "_estimators", None) is not shared
    ):  # fmt: skip
        raise InputError(
            "after must be a loop of the same compiled law with another load, as "
            f"fast.loaded(...).loop(after=loop) has it; got {quoted(after)}"
        )
    return _continued(after, self)


def track(
    self: Any, reference: Callable[[float], Any], active: Callable[[float], Any] | None = None
) -> Tracking:
    """A controller(t, q, v) -> u that follows a reference.

    A compiled controller has the same limits and integral. It is made for one partition: if the
    kept rows become dependent, or the coordinates no longer determine the others, its controller in
    Python continues. Python also computes the ticks in which an integral meets a limit; with an
    integral and limits of joints, all ticks.

    Parameters
    ----------
    reference : function
        ``reference(t)``: (q_ref, v_ref, a_ref), or for a law of tasks the reference of `torque`.
    active : function, optional
        ``active(t)``: the names of the contacts that act, for a controller with `contacts`.
        Default: all.

    Returns
    -------
    Tracking

    Raises
    ------
    InputError
        If `reference` or `active` is no function, and if no torque was compiled.
    """
    return Tracking(self, reference, active=active)


def track_from_motors(self: Any, reference: Callable[[float], Any]) -> Tracking:
    """A controller(t, q_motors, v_motors) -> u that follows a reference, with its own loop.

    Parameters
    ----------
    reference : function
        As `track` takes it.

    Returns
    -------
    Tracking

    Raises
    ------
    InputError, AssemblyError, BranchError, HoloctlError
        As `track` and `loop`.
    """
    return Tracking(self, reference, new_loop(self))


def reset(self: Any, q: Any, t: float = 0.0) -> None:
    """`Loop.reset` of the loop of this thread: set the configuration of the mechanism.

    Parameters
    ----------
    q : (nq,) array_like
        A closed configuration.
    t : float, optional
        Time, s.

    Raises
    ------
    InputError, InconsistentError, BranchError, SingularityError
        As `ClosedStateEstimator.reset`, and as `loop`.
    """
    loop_of_thread(self).reset(q, t)


def loop_of_thread(controller: Any) -> Loop:
    """The loop of this thread, which the first call makes."""
    local = controller._local
    try:
        loop: Loop = local.loop
    except AttributeError:
        loop = local.loop = new_loop(controller)
    return loop


def hand_over(controller: Any, other: Any) -> None:
    """Continue the loop of this thread, if there is one, with another controller."""
    if (loop := getattr(controller._local, "loop", None)) is not None:
        other._local.loop = _continued(loop, other)


def _continued(loop: Loop, controller: Any) -> Loop:
    """A loop of another controller that continues from the state and memory of a loop."""
    estimator = controller._loop_functions().estimator(loop._estimator)
    return Loop(controller, estimator, loop._memory)


def _prepared(estimator: Any) -> ClosedStateEstimator:
    """The estimator in Python, at the same state."""
    if isinstance(estimator, ClosedStateEstimator):
        return estimator
    found: ClosedStateEstimator = estimator.in_python()
    return found


def in_python(controller: Any) -> Any:
    """The Python controller of a compiled one, or the controller itself."""
    return getattr(controller, "controller", controller)


def estimator_of(
    mech: Mechanism, part: Partition, given: ClosedStateEstimator | None, before: Any,
    contacts: Any = None,
) -> ClosedStateEstimator:  # fmt: skip
    """The estimator of a loop in Python: that of a previous loop, else a fresh copy of the given
    one, else one that measures the motors.

    Raises
    ------
    InputError
        For a general actuation matrix, and for contacts.
    """
    if before is not None:
        return _prepared(before)
    if contacts is not None:
        raise InputError(
            f"{mech.name}: a controller on contacts needs the whole state, also of the base, which "
            "no loop estimates from motors; call `torque`, or `track`"
        )
    if not mech.actuated:
        raise InputError(
            f"{mech.name}: its motors act by an actuation matrix, so they have no positions to "
            "follow; find the state by hc.ClosedStateEstimator(mech, measured=[...]), and the "
            "torque by `torque`"
        )
    return ClosedStateEstimator(mech, partition=part) if given is None else given.fresh()
