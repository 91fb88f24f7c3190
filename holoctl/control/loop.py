"""A loop remembers where its mechanism is, a tracking follows a reference: one of each, for every
controller, in Python or compiled.

Of a controller they need what its `_loop_functions` give. The closed state is found by an
estimator: a `ClosedStateEstimator`, or the same in machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import BuiltinFunctionType
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Vector, quoted
from holoctl.base.errors import InputError
from holoctl.base.renamed import formerly
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = [
    "Loop", "LoopFunctions", "Tracking", "estimator_of", "handed_over", "in_python",
    "loop_of_thread", "new_loop", "reset", "track", "track_from_motors",
]  # fmt: skip


class LoopFunctions(NamedTuple):
    """What a controller brings to a loop or a tracking.

    Attributes
    ----------
    memory : Memory
        What the functions remember from tick to tick; ``clear()`` begins anew.
    torque : function (q, v, *reference, t, *, out, ...) -> u, or None
        Where the whole state is given; None where it was not compiled.
    behind : function (estimator) -> function (q_motors, v_motors, *reference, t, *, out, ...) -> u
        Where an estimator finds it.
    estimator : function (estimator or None) -> estimator
        A new one; or one that goes on from where another one is.
    report : function (EstimatorReport or None) -> LoopReport or TaskReport
        What the last tick was like.
    spread : function (reference(t)) -> tuple
        What a reference gives, as the arguments of `torque`.
    """

    memory: Any
    torque: Callable[..., Vector] | None
    behind: Callable[[Any], Callable[..., Vector]]
    estimator: Callable[[Any], Any]
    report: Callable[[Any], Any]
    spread: Callable[[Any], tuple[Any, ...]]


@formerly(estimator="assembly")
@dataclass(frozen=True, eq=False, repr=False)
class Loop:
    """One loop of a controller, whose motors, or what its `estimator` says, are measured.

    It belongs to one thread: ``ctl.loop()`` makes one for each, of a `ComputedTorque`, a
    `TaskSpaceControl` or an `Impedance`, and of what `compile` makes of one.

    Attributes
    ----------
    controller : ComputedTorque, TaskSpaceControl, Impedance, Compiled or CompiledTasks
    measured : tuple of str
        The order of what is measured.
    estimator : ClosedStateEstimator
        How the state is found; it remembers the last one. Of a compiled loop: the same in Python,
        where it is now.

    Raises
    ------
    None
        ``ctl.loop()`` says what it raises.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> loop = hc.ComputedTorque(mech, kp=400.0, kd=40.0).loop()
    >>> q_motors = mech.motor_positions(mech.reference)
    >>> u = loop.torque_from_motors(q_motors, [0.0, 0.0], q_motors, [0.0, 0.0], [0.0, 0.0])
    """

    controller: Any
    _estimator: Any
    _memory: Any = None
    _functions: LoopFunctions = field(init=False)
    _from_motors: Callable[..., Vector] = field(init=False)

    def __post_init__(self) -> None:
        functions = self.controller._loop_functions(self._memory)
        from_motors, state = functions.behind(self._estimator), self._estimator.state
        found = {"_functions": functions, "_memory": functions.memory, "_from_motors": from_motors}
        # Functions in C stand before the methods of the same name.
        for name, function in (("torque_from_motors", from_motors), ("state", state)):
            if isinstance(function, BuiltinFunctionType):
                found[name] = function
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            "a Loop remembers where its mechanism is, for one thread: it is neither copied nor "
            "pickled; ctl.loop() makes another one"
        )

    def __repr__(self) -> str:
        return f"<Loop of {self.controller.mech.name}: {self._estimator!r}>"

    @property
    def estimator(self) -> ClosedStateEstimator:
        """How the state is found."""
        return _prepared(self._estimator)

    @property
    def measured(self) -> tuple[str, ...]:
        """The order of what is measured."""
        measured: tuple[str, ...] = self._estimator.measured
        return measured

    @property
    def last(self) -> Any:
        """What the last tick was like, a `LoopReport` or a `TaskReport`: what limited it, and what
        it took to find the state. Machine code does not tell: an `InputError`."""
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
        """`ClosedStateEstimator.reset`: tell where the mechanism is. An integral begins anew."""
        self._estimator.reset(q, t)
        self._memory.clear()

    def resynchronise(self, q_measured: Any, t: float = 0.0) -> None:
        """`ClosedStateEstimator.resynchronise`: go where the sensors read this, however far."""
        self._estimator.resynchronise(q_measured, t)

    def torque(self, q: Any, v: Any, *reference: Any, **more: Any) -> Vector:
        """``controller.torque``, where the whole state is known: of it nothing is remembered, but
        the integral goes on."""
        functions = self._functions
        return (functions.torque or self._from_motors)(q, v, *reference, **more)

    def torque_from_motors(
        self, q_motors: Any, v_motors: Any, *reference: Any, **more: Any
    ) -> Vector:
        """The closed state from what is measured, and the motor efforts there, in one tick.

        Where the state is found and the torque is not, the state is remembered all the same.

        Parameters
        ----------
        q_motors, v_motors : array_like
            Positions and rates in the order of `measured`; rad or m, rad/s or m/s.
        reference
            As ``controller.torque`` takes it, with the time t, s, behind it: ``q_ref, v_ref, a_ref,
            t=0.0``, or of a law of tasks ``reference, t=0.0``.
        more
            ``out=``, a (nu,) array, takes the result, and is left as it is where an error is
            raised. Of a law of tasks in Python, ``f_ext=`` are external forces that are measured.

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
    """A controller(t, q, v) -> u that follows a reference: ``ctl.track(reference)`` makes one, of
    every controller and of what `compile` makes of it. ``ctl.track_from_motors(reference)`` makes a
    controller(t, q_motors, v_motors) -> u of what its `loop` measures.

    It remembers the integral of its controller, and what limited the last call.

    Parameters
    ----------
    controller : ComputedTorque, TaskSpaceControl, Impedance, Compiled or CompiledTasks
    reference : function
        ``reference(t)``: (q_ref, v_ref, a_ref) as `ComputedTorque.torque` takes them, or of a law
        of tasks what its ``torque`` takes as reference.
    loop : Loop, optional
        Of this controller, where only what it measures is known. Default: the whole state is.

    Raises
    ------
    InputError
        For what is no controller, no function, or no loop of this controller.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> home, rest = mech.motor_positions(q), np.zeros(2)
    >>> hold = hc.ComputedTorque(mech, kp=400.0, kd=40.0).track(lambda t: (home, rest, rest))
    >>> hold = hold.repartitioned(q, v)
    >>> u = hold(0.0, q, v)
    """

    controller: Any
    reference: Callable[[float], Any]
    loop: Loop | None = None
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
        return Tracking, (self.controller, self.reference, self.loop, self._memory)

    def __call__(self, t: float, q: Vector, v: Vector) -> Vector:
        """The motor efforts u at the time t, s, in the state (q, v), or where the sensors read
        this."""
        return self._torque(q, v, *self._functions.spread(self.reference(t)), t)

    @property
    def last(self) -> Any:
        """What the last call was like: a `LoopReport`, or of a law of tasks a `TaskReport`."""
        return self._functions.report(None) if self.loop is None else self.loop.last

    def reset(self) -> None:
        """Begin anew: the integral is zero, as before another run. A loop stays where it is; see
        `Loop.reset`."""
        self._memory.clear()

    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> Tracking:
        """This one, or one of the same reference with ``controller.repartitioned``, which goes on
        from where this one is. With a loop, for the state (q, v) it takes its own."""
        loop = self.loop
        if loop is not None:
            q, v = loop._estimator.q, np.zeros(self.controller.mech.nv)
        controller = self.controller.repartitioned(q, v, t)
        if controller is self.controller:
            return self
        return replace(
            self, controller=controller, loop=None if loop is None else _going_on(loop, controller)
        )


def new_loop(self: Any) -> Loop:
    """A loop of this controller that remembers where the mechanism is: one for each thread.

    Where the controller is compiled, the first one compiles what finds the state, unless
    ``"state"`` was asked for.

    Returns
    -------
    Loop

    Raises
    ------
    InputError
        For a general actuation matrix, whose motors have no positions; where the motors do not
        tell how the mechanism moves, and no `estimator` says what else is measured; on the virtual
        machine.
    AssemblyError, BranchError
        As `ClosedStateEstimator`.
    HoloctlError
        If a compiler fails.
    """
    return Loop(self, self._loop_functions().estimator(None))


def track(self: Any, reference: Callable[[float], Any]) -> Tracking:
    """A controller(t, q, v) -> u that follows a reference.

    Machine code has the same limits and integral. It is made for one partition: where kept rows
    get dependent, or coordinates determine the others no longer, its controller in Python goes on.
    Python also answers where an integral meets a limit; with an integral and limits of joints, at
    every tick.

    Parameters
    ----------
    reference : function
        ``reference(t)``: (q_ref, v_ref, a_ref), or of a law of tasks what `torque` takes.

    Returns
    -------
    Tracking

    Raises
    ------
    InputError
        For what is no function, and where no torque was compiled.
    """
    return Tracking(self, reference)


def track_from_motors(self: Any, reference: Callable[[float], Any]) -> Tracking:
    """A controller(t, q_motors, v_motors) -> u that follows a reference, with a loop of its own.

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
    """`Loop.reset` of the loop of this thread: tell where the mechanism is.

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


def handed_over(controller: Any, other: Any) -> None:
    """The loop of this thread, if there is one, goes on with another controller."""
    if (loop := getattr(controller._local, "loop", None)) is not None:
        other._local.loop = _going_on(loop, other)


def _going_on(loop: Loop, controller: Any) -> Loop:
    """A loop of another controller that goes on from where one is."""
    estimator = controller._loop_functions().estimator(loop._estimator)
    return Loop(controller, estimator, loop._memory)


def _prepared(estimator: Any) -> ClosedStateEstimator:
    """In Python, where it is now."""
    if isinstance(estimator, ClosedStateEstimator):
        return estimator
    found: ClosedStateEstimator = estimator.in_python()
    return found


def in_python(controller: Any) -> Any:
    """The controller behind a compiled one, or itself."""
    return getattr(controller, "controller", controller)


def estimator_of(
    mech: Mechanism, part: Partition, given: ClosedStateEstimator | None, before: Any
) -> ClosedStateEstimator:
    """How a loop in Python finds the state: from where it was before; else in the given way, or by
    the motors.

    Raises
    ------
    InputError
        For a general actuation matrix.
    """
    if before is not None:
        return _prepared(before)
    if not mech.actuated:
        raise InputError(
            f"{mech.name}: its motors act by an actuation matrix, so they have no positions to "
            "follow; find the state by hc.ClosedStateEstimator(mech, measured=[...]), and the "
            "torque by `torque`"
        )
    return ClosedStateEstimator(mech, partition=part) if given is None else given.fresh()
