"""`CompiledTasks`: a compiled law of one task, with the Python path if it is in doubt."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, as_given, finite, instant, name_list, one_of, quiet, stored
from holoctl.base.errors import InputError
from holoctl.codegen.batched_functions import batched_source
from holoctl.codegen.compiled.estimator import Estimators, not_compiled
from holoctl.codegen.compiled.extension import built
from holoctl.codegen.compiled.extension_source import Law, task_source
from holoctl.codegen.compiled.fallback_counter import Fallbacks
from holoctl.codegen.compiled.functions import law_of, limited_source
from holoctl.codegen.compiled.interpreted import Interpreted, interpreted
from holoctl.codegen.compiled.loop_functions import estimated, loop_functions, repartitioned
from holoctl.codegen.compiled.present_load import (
    PresentLoad,
    carrying,
    expressions_of,
    loaded,
    other_controller,
)
from holoctl.codegen.laws.border_expressions import estimator_with
from holoctl.codegen.laws.limited import limited_task
from holoctl.codegen.laws.task import task_function
from holoctl.codegen.laws.task_rows import reference_pose, reference_value
from holoctl.codegen.task_law_options import TaskSubject, task_subject_of
from holoctl.constraints.user_constraints import of_library
from holoctl.control.loop import (
    LoopFunctions,
    loop_of_thread,
    new_loop,
    reset,
    track,
    track_from_motors,
)
from holoctl.control.loop_memory import Memory
from holoctl.control.task_space.controller import TaskController
from holoctl.control.task_space.impedance import Impedance
from holoctl.control.task_space.task_space_control import TaskSpaceControl
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import may_depend_on_time

__all__ = ["CompiledTasks", "compiled_tasks", "task_source_and_law", "task_wanted"]

FUNCTIONS = ("torque", "state", "kinematics")
"""The last one in batches only."""
NO_STATE = "machine='vm' does not estimate the closed state; machine='c' does"


@dataclass(frozen=True, eq=False, repr=False)
class CompiledTasks:
    """The result of `compile` for a `TaskSpaceControl` or `Impedance`: its torque in machine code,
    or by CasADi's virtual machine.

    References are those of the controller: poses (`pin.SE3`) and contiguous arrays of float64, or
    tuples of these, are passed to C directly, except for a user-defined task, whose methods read
    them. Where the guard does not pass (near singular tasks and states, beyond the limits of
    closure or velocity error, references that are no rotations or not finite) the Python path
    computes the result, or raises its error; `fallbacks` counts these calls, and the first one is
    logged as a warning.

    With ``payload=`` or ``gravity=`` of `compile`, `loaded` returns the same law with others.

    It may be shared between threads, copied and pickled; a pickle is built again, or loaded from
    the cache.

    Attributes
    ----------
    controller : TaskSpaceControl or Impedance
        With the load, if there is one.
    functions : tuple of str
        The compiled functions: ``"torque"``, and ``"state"`` if it was requested.
    flags : tuple of str
    measured : tuple of str or None
        The measured joints of `torque_from_motors`; None for those of the controller's `estimator`,
        or the motors.
    machine : str
        ``"c"``, or ``"vm"``: CasADi's virtual machine, which has only `torque`.

    See Also
    --------
    compile : returns it.
    TaskSpaceControl : one of the laws.
    results.Loop : a loop with its own memory.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> tip = hc.FrameTask("tip_right", "x z")
    >>> fast = hc.compile(hc.TaskSpaceControl(mech, tip, kp=400.0, kd=40.0), machine="vm")
    >>> fast.torque(*hc.assemble(mech), [0.0, 0.4]).round(2).tolist()
    [2.0, -1.96]
    """

    controller: TaskSpaceControl | Impedance
    functions: tuple[str, ...]
    flags: tuple[str, ...]
    measured: tuple[str, ...] | None
    machine: str
    _code: tuple[Any, Law] = field(repr=False)
    _load: PresentLoad | None = field(default=None, repr=False)
    _empty: CompiledTasks | None = field(default=None, repr=False)
    _fallbacks: Fallbacks = field(init=False, repr=False)
    _estimators: Estimators = field(init=False, repr=False)
    _local: threading.local = field(init=False, repr=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        if self._empty is None:
            put("_fallbacks", Fallbacks(self.mech.name))
            own = self.mech, self._estimator, self.flags, self.machine, self._fallbacks.note
            put("_estimators", Estimators(*own))
        else:  # the geometry is the same
            put("_fallbacks", self._empty._fallbacks)
            put("_estimators", self._empty._estimators)
        put("_local", threading.local())
        # the tick replaces the method of the same name, and calls it if needed
        module, _ = self._code
        usual = type(self).torque.__get__(self)
        if self.machine == "vm":
            put("torque", _virtual(module, self.controller._own, usual))
        elif of_library(self.controller._own.law.tasks[0]):  # others may read references otherwise
            put("torque", module.bind(usual, self._torque_in_python, pin.SE3))

    def __repr__(self) -> str:
        return f"<CompiledTasks {self.mech.name!r}: {', '.join(self.functions)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.functions, self.flags, self.measured, self.machine, self._load
        return compiled_tasks, ((self._empty or self).controller, *given)

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledTasks:
        return self  # immutable except for the counter of fallbacks

    @property
    def mech(self) -> Mechanism:
        """The mechanism."""
        return self.controller.mech

    @property
    def fallbacks(self) -> int:
        """The number of calls that the Python path computed because the guard did not pass."""
        return self._fallbacks.count

    @quiet
    def torque(
        self, q: Any, v: Any, reference: Any, t: float = 0.0, *, out: Vector | None = None
    ) -> Vector:
        """The motor efforts of the controller, for one tick.

        Parameters
        ----------
        q, v, reference, t, out
            As in `TaskSpaceControl.torque`. External forces are only accepted by the controller in
            Python.

        Returns
        -------
        u : (nu,) array
            N m or N: `out`, or a new array.

        Raises
        ------
        InputError, SingularityError, InconsistentError
            As `TaskSpaceControl.torque`.
        """
        own, (module, law), mech = self.controller._own, self._code, self.mech
        (wanted,) = own.wanted(reference)
        q, v, t = as_given("q", q, mech.nq), as_given("v", v, mech.nv), instant(t)
        value = reference_value(own.law.tasks[0], wanted.value)
        given = [
            np.require(x, dtype=float, requirements=["C", "A"])
            for x in (q, v, value, wanted.rate, wanted.acceleration)
        ]
        u, guard = (np.empty(size) for _, size in law.outputs)
        module.raw(*given, t, u, guard)
        if not (guard[0] < 1.0 and all(finite(x) for x in (*given, u))):
            return self._torque_in_python(q, v, reference, t, out=out)
        return u if out is None else stored("out", out, u)

    def _torque_in_python(
        self, q: Any, v: Any, reference: Any, t: Any = 0.0, *, out: Vector | None = None
    ) -> Vector:
        self._fallbacks.note("torque")
        controller: Any = self.controller
        found: Vector = controller.torque(q, v, reference, t, out=out)
        return found

    def torque_from_motors(
        self, q_motors: Any, v_motors: Any, reference: Any, t: float = 0.0, *,
        out: Vector | None = None,
    ) -> Vector:  # fmt: skip
        """The closed state from the measured joints, and the motor efforts there, by the loop of
        this thread.

        Parameters
        ----------
        q_motors, v_motors, reference, t, out
            As in `Loop.torque_from_motors`.

        Returns
        -------
        u : (nu,) array
            N m or N: `out`, or a new array.

        Raises
        ------
        InputError, SingularityError, InconsistentError, BranchError, AssemblyError
            As there, and as `loop`.
        """
        loop = loop_of_thread(self)
        return loop.torque_from_motors(q_motors, v_motors, reference, t, out=out)

    loop = new_loop
    track = track
    track_from_motors = track_from_motors
    reset = reset
    repartitioned = repartitioned
    loaded = loaded

    def _carrying(self, load: PresentLoad) -> CompiledTasks:
        """The same code with another load."""
        empty = self._empty or self
        controller = other_controller(empty.controller, load.mechanism(empty.mech))
        given = self.functions, self.flags, self.measured, self.machine
        code = carrying(self._code, load, controller.mech)
        return CompiledTasks(controller, *given, code, load, empty)

    def _law_of_torque(self) -> TaskSpaceControl | Impedance:
        return self.controller

    def _estimator(self) -> ClosedStateEstimator:
        """The estimator of the measured joints, with the rows of the partition."""
        own = self.controller._own
        return estimator_with(self.mech, own.prepared.partition, self.measured, own.estimator)

    def _loop_functions(self, memory: Memory | None = None) -> LoopFunctions:
        """The functions that loops and trackings need."""
        controller: Any = self.controller
        python: LoopFunctions = controller._loop_functions(memory)
        return loop_functions(
            python, self.torque, self._estimators, controller._own.law.damped,
            lambda found: estimated(found, self.torque, 1), 1, may_depend_on_time(self.mech),
        )  # fmt: skip


def _virtual(law: Interpreted, own: TaskController, usual: Any) -> Any:
    """The tick of the virtual machine: `usual` takes arguments that are no arrays, and doubts."""

    def nothing(*_: Any, **__: Any) -> None:
        return None

    tick, (task,) = law.bind(nothing, nothing), own.law.tasks

    @quiet
    def torque(q: Any, v: Any, reference: Any, t: Any = 0.0, *, out: Any = None) -> Any:
        (wanted,) = own.wanted(reference)
        value = reference_value(task, wanted.value)
        found = tick(q, v, value, wanted.rate, wanted.acceleration, t, out=out)
        return usual(q, v, reference, t, out=out) if found is None else found

    return torque


@quiet
def compiled_tasks(
    controller: TaskSpaceControl | Impedance,
    functions: Any,
    flags: tuple[str, ...],
    measured: tuple[str, ...] | None,
    machine: str = "c",
    load: PresentLoad | None = None,
) -> CompiledTasks:
    """Build the requested functions, now or when a pickle is read.

    Raises
    ------
    InputError
        For another function than ``"torque"`` and ``"state"``; for tasks, constraints and forces
        that cannot be compiled, by name; for ``"state"`` with ``machine="vm"``.
    """
    subject = task_subject_of(controller, "compiled")
    wanted = task_wanted(functions)
    if machine == "vm" and "state" in wanted:
        raise InputError(NO_STATE)
    empty = None if load is None else load.empty(subject.mech)
    code = carrying(_machine_code(subject, load, flags, machine), empty, subject.mech)
    found = CompiledTasks(controller, wanted, flags, measured, machine, code, empty)
    if "state" in wanted:
        found._estimators.code()
    return found if load is None or load.same(empty) else found._carrying(load)


def task_wanted(functions: Any) -> tuple[str, ...]:
    """The names that are given, checked; default: the torque."""
    wanted = ("torque",) if functions is None else tuple(name_list("functions", functions))
    for name in wanted:
        one_of("functions of a law of tasks", name, FUNCTIONS)
    if "torque" not in wanted:
        raise not_compiled("torque", "hc.compile(controller)")
    return wanted


def task_source_and_law(subject: TaskSubject, load: PresentLoad | None = None) -> tuple[str, Law]:
    """The C function of the torque, and what callers need to know."""
    E, limits = expressions_of(subject, load), subject.keeping
    if limits is not None:
        return limited_source(limited_task(E, subject, limits), limits)
    function = task_function(E, subject)
    return batched_source([function]), law_of(function)


def _machine_code(
    subject: TaskSubject, load: PresentLoad | None, flags: tuple[str, ...], machine: str
) -> tuple[Any, Law]:
    """The extension module of the torque, or its equivalent for the virtual machine; the law."""
    limited = subject.keeping is not None
    if machine == "vm":
        if limited:
            raise InputError(
                f"{subject.mech.name}: machine='vm' has no torque within limits; machine='c' has"
            )
        function = task_function(expressions_of(subject, load), subject)
        return interpreted(function, law_of(function)), law_of(function)
    kernel, law = task_source_and_law(subject, load)
    along, turns = reference_pose(subject.task)
    return built(partial(task_source, kernel, law, along, turns, limited), flags), law
