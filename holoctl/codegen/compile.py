"""`compile`: the laws of a mechanism or controller as machine code, called from Python.

Expressions become C, C becomes an extension module, and a tick is a call of it. If the pivots,
which were chosen beforehand, are not accurate at a state, the guard is in doubt, and the Python
path computes the result or raises its error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

from holoctl.base.checks import name_list, one_of, quiet
from holoctl.base.errors import InputError
from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.compiled.compiled import Compiled, from_subject
from holoctl.codegen.compiled.compiled_tasks import (
    NO_STATE,
    CompiledTasks,
    compiled_tasks,
    task_wanted,
)
from holoctl.codegen.compiled.functions import MACHINES, wanted_functions
from holoctl.codegen.compiled.present_load import present_load
from holoctl.codegen.devices.batch_functions import (
    BatchFunctions,
    batch_functions,
    check_device,
)
from holoctl.codegen.law_options import Subject, refuse_contacts, subject_of
from holoctl.codegen.task_law_options import check_own_options, task_subject_of
from holoctl.control.computed_torque import ComputedTorque
from holoctl.control.task_space.impedance import Impedance
from holoctl.control.task_space.task_space_control import TaskSpaceControl
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.state_limits import NOT_GIVEN, NotGiven

__all__ = ["compile"]


@overload
def compile(
    what: Mechanism | ComputedTorque,
    functions: Iterable[str] | None = None,
    *,
    partition: Partition | None = None,
    weights: Any = None,
    inconsistent: str | NotGiven = NOT_GIVEN,
    closure_limit: float | NotGiven | None = NOT_GIVEN,
    velocity_limit: float | NotGiven | None = NOT_GIVEN,
    flags: Iterable[str] = (),
    measured: Iterable[str] | None = None,
    machine: str = "c",
    payload: str | None = None,
    gravity: bool = False,
    device: None = None,
) -> Compiled: ...


@overload
def compile(
    what: TaskSpaceControl | Impedance,
    functions: Iterable[str] | None = None,
    *,
    flags: Iterable[str] = (),
    measured: Iterable[str] | None = None,
    machine: str = "c",
    payload: str | None = None,
    gravity: bool = False,
    device: None = None,
) -> CompiledTasks: ...


@overload
def compile(
    what: Mechanism | ComputedTorque | TaskSpaceControl | Impedance,
    functions: Iterable[str] | None = None,
    *,
    partition: Partition | None = None,
    weights: Any = None,
    inconsistent: str | NotGiven = NOT_GIVEN,
    closure_limit: float | NotGiven | None = NOT_GIVEN,
    velocity_limit: float | NotGiven | None = NOT_GIVEN,
    measured: Iterable[str] | None = None,
    device: str,
    workers: int | None = None,
    frames: Iterable[str] = (),
) -> BatchFunctions: ...


@quiet
def compile(
    what: Mechanism | ComputedTorque | TaskSpaceControl | Impedance,
    functions: Iterable[str] | None = None,
    *,
    partition: Partition | None = None,
    weights: Any = None,
    inconsistent: str | NotGiven = NOT_GIVEN,
    closure_limit: float | NotGiven | None = NOT_GIVEN,
    velocity_limit: float | NotGiven | None = NOT_GIVEN,
    flags: Iterable[str] = (),
    measured: Iterable[str] | None = None,
    machine: str = "c",
    payload: str | None = None,
    gravity: bool = False,
    device: str | None = None,
    workers: int | None = None,
    frames: Iterable[str] = (),
) -> Compiled | CompiledTasks | BatchFunctions:
    """Compile a mechanism or a controller, with the C compiler of this computer or for CasADi's
    virtual machine.

    Needs CasADi (the extra ``holoctl[codegen]``), and for ``machine="c"`` a C compiler and the
    headers of Python, all for building only. Compiled modules are kept in the user's cache folder
    (or the one that ``HOLOCTL_CACHE`` names), so that the compiler runs once for a mechanism.

    Parameters
    ----------
    what : Mechanism, ComputedTorque, TaskSpaceControl or Impedance
        The partition, weights and limits of a controller are used, and targets are projected. If it
        has ``limits=``, ``torque`` keeps them; the inverse dynamics are those of the mechanism. For
        a law of tasks, ``"torque"`` and ``"state"`` can be compiled: for one task that has an
        expression (a `CustomTask` has none), with no more rows than motions, all of these driven.
    functions : iterable of str, optional
        Some of ``"inverse_dynamics"``, ``"forward_dynamics"``, ``"terms"``, ``"torque"`` (of a
        controller), ``"inverse_dynamics_derivatives"``, ``"forward_dynamics_derivatives"``,
        ``"state"`` (the closed state from measured joints; if it is not listed it is compiled on
        first use). Default: the first three (the first only if there are motors), and the torque of
        a controller.
    partition : Partition, optional
        Default: chosen at the configuration assembled from the mechanism's reference.
    weights : (nu,) array_like, optional
        For more motors than motions: as in `PreparedInverseDynamics`.
    inconsistent : str, optional
        ``"raise"`` or ``"project"``: as in `PreparedInverseDynamics`. Default: ``"raise"``; a
        controller takes ``"project"`` alone.
    closure_limit, velocity_limit : float or None, optional
        The largest closure error and velocity error of a state, None for no limit: as in
        `PreparedInverseDynamics`. Default: 1e-2 and 0.1; not for a controller, which has its own.
    flags : iterable of str, optional
        Additional flags for the compiler, after those of the library: such as ``"-O1"`` to build
        faster.
    measured : iterable of str, optional
        The measured joints of `Compiled.state` and `Compiled.torque_from_motors`, as in
        `ClosedStateEstimator`. Default: those of the `estimator` of a controller, else the motors.
    machine : str, optional
        ``"c"``, or ``"vm"``: CasADi's virtual machine, which needs no compiler and is built in a
        fraction of the time. It is slower than C, usually faster than the tick in Python, and has
        the same guard. It does not estimate the closed state, and has no torque of laws with
        limits.
    payload : str, optional
        A frame of a body that moves, where a payload may be mounted at run time:
        ``fast.loaded(payload)`` has the same machine code with a payload there. Without it, and in
        the result itself, there is none.
    gravity : bool, optional
        Whether gravity may change likewise: ``fast.loaded(gravity=g)``.
    device : str, optional
        ``"cpu"`` or ``"cuda"``: functions of many robots in one call, on all cores or on the GPU.
        Has the functions above, ``"kinematics"`` (placements and Jacobians of `frames`), and all
        options but `flags`, `machine`, `payload` and `gravity`; ``"state"`` must be listed.
        Default: functions of one state.
    workers : int, optional
        The number of threads of ``device="cpu"``; default: one for each core.
    frames : iterable of str, optional
        The frames of ``"kinematics"``: names of joints, bodies or frames.

    Returns
    -------
    Compiled, or CompiledTasks for a law of tasks; BatchFunctions with a `device`

    Raises
    ------
    InputError
        Without CasADi, a compiler or Python.h; for unknown functions; for joints, constraints and
        forces that have no expressions, or wrong ones, by name; if the motors drive fewer motions
        than there are motors and motions; for a controller with integral action; for a law of
        tasks other than above; for functions that ``machine="vm"`` does not have; for
        an unknown frame of a payload; with `payload` or `gravity` for limits of positions without
        accelerations; with a payload for damped tasks and the centre of mass as a task; with
        `gravity` for a `Counterbalance`. With a `device`: for an unknown one and for options it
        does not have, for the torque of motors without a position of their own, for ``"state"``
        with constraints that depend on time, for unknown frames, and for frames without
        ``"kinematics"`` or the reverse.
    NotActuatedError
        If torques are requested for a mechanism that has no motors or no motion.
    SingularityError
        For a task that is singular at all configurations that are tried.
    AssemblyError
        If the reference configuration cannot be assembled.
    HoloctlError
        If the compiler fails.

    See Also
    --------
    export_c : a C library for another computer.
    results.Compiled : the result for a mechanism or a `ComputedTorque`.
    results.CompiledTasks : the result for a law of tasks.
    results.BatchFunctions : the result with a `device`.
    PreparedInverseDynamics : the same tick in Python.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> fast = hc.compile(mech, ["inverse_dynamics"], machine="vm")
    >>> q, v = hc.assemble(mech)
    >>> fast.inverse_dynamics(q, v, np.zeros(2)).round(2).tolist()
    [-2.3, 2.3]
    """
    one_of("machine", machine, MACHINES)
    placed = tuple(name_list("frames", frames))
    if device is not None:
        options = {
            "flags": not name_list("flags", flags), "machine": machine == "c",
            "payload": payload is None, "gravity": not gravity,
        }  # fmt: skip
        check_device(device, workers, options)
    elif workers is not None:
        raise InputError("workers is the number of threads of device='cpu'; give both, or neither")
    if isinstance(what, (TaskSpaceControl, Impedance)):
        own = {
            "partition": partition is None, "weights": weights is None,
            "inconsistent": inconsistent is NOT_GIVEN, "closure_limit": closure_limit is NOT_GIVEN,
            "velocity_limit": velocity_limit is NOT_GIVEN,
        }  # fmt: skip
        check_own_options(what, own)
        casadi_module()
        more = tuple(name_list("flags", flags))
        sensors = None if measured is None else tuple(name_list("measured", measured))
        wanted = task_wanted(functions)
        if device is not None:
            tasks = task_subject_of(what, "compiled")
            return batch_functions(tasks, wanted, sensors, device, workers, placed)
        _check_no_kinematics(wanted, placed)
        load = present_load(what, task_subject_of(what, "compiled"), payload, gravity)
        return compiled_tasks(what, wanted, more, sensors, machine, load)
    refuse_contacts(what)
    subject = subject_of(what, partition, weights, inconsistent, closure_limit, velocity_limit)
    wanted = wanted_functions(functions, subject)
    more = tuple(name_list("flags", flags))
    casadi_module()
    sensors = None if measured is None else tuple(name_list("measured", measured))
    if machine == "vm":
        _check_virtual(subject, wanted)
    if device is not None:
        return batch_functions(subject, wanted, sensors, device, workers, placed)
    _check_no_kinematics(wanted, placed)
    load = present_load(what, subject, payload, gravity)
    return from_subject(subject, wanted, more, sensors, machine, load)


def _check_no_kinematics(wanted: tuple[str, ...], frames: tuple[str, ...]) -> None:
    """Raise `InputError` for what functions of one state do not have."""
    if "kinematics" in wanted or frames:
        raise InputError(
            "frames and 'kinematics' are for many robots: give device='cpu' or 'cuda'. Of one "
            "state hc.task_terms computes a FrameTask; hc.export_c writes C of 'kinematics'"
        )


def _check_virtual(subject: Subject, wanted: tuple[str, ...]) -> None:
    """Raise `InputError` for functions that the virtual machine does not have."""
    if "state" in wanted:
        raise InputError(NO_STATE)
    if "torque" in wanted and subject.keeping is not None:
        raise InputError(
            f"{subject.mech.name}: machine='vm' has no torque within limits; machine='c' has"
        )
