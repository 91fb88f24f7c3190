"""`compile`: the laws of a mechanism or controller as machine code, called from Python.

Expressions become C, C becomes an extension module, and a tick goes straight into it. Where the
numbers that the pivots were chosen for do not hold, the guard says so and the Python path gives
the answer, or the error that explains.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

from holoctl.base.checks import name_list, one_of, quiet
from holoctl.base.errors import InputError
from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.compiled.compiled import Compiled, from_subject
from holoctl.codegen.compiled.compiled_tasks import NO_STATE, CompiledTasks, compiled_tasks
from holoctl.codegen.compiled.functions import MACHINES, wanted_functions
from holoctl.codegen.law_options import Subject, subject_of
from holoctl.codegen.task_law_options import check_own_options
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
) -> Compiled: ...


@overload
def compile(
    what: TaskSpaceControl | Impedance,
    functions: Iterable[str] | None = None,
    *,
    flags: Iterable[str] = (),
    measured: Iterable[str] | None = None,
    machine: str = "c",
) -> CompiledTasks: ...


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
) -> Compiled | CompiledTasks:
    """Compile a mechanism or a controller, with the machine's C compiler or for CasADi's virtual
    machine.

    Needs CasADi (the extra ``holoctl[codegen]``), and for ``machine="c"`` a C compiler and the
    headers of Python, all for building only. What is compiled is kept in the user's cache folder
    (or the one that ``HOLOCTL_CACHE`` names), so that the compiler runs once for a mechanism.

    Parameters
    ----------
    what : Mechanism, ComputedTorque, TaskSpaceControl or Impedance
        A controller brings its partition, weights and limits, and projects targets. Where it has
        ``limits=``, ``torque`` keeps them; the inverse dynamics are those of the mechanism. Of a
        law of tasks, ``"torque"`` and ``"state"`` can be compiled: of one task that has an
        expression (a `CustomTask` has none), with no more rows than motions, all of these driven,
        and without ``limits=``.
    functions : iterable of str, optional
        Of ``"inverse_dynamics"``, ``"forward_dynamics"``, ``"terms"``, ``"torque"`` (of a
        controller), ``"inverse_dynamics_derivatives"``, ``"forward_dynamics_derivatives"``,
        ``"state"`` (from what is measured; where it is not asked for here it is compiled when it
        is first needed). Default: the first three (the first only where there are motors), and the
        torque of a controller.
    partition : Partition, optional
        Default: decided at the configuration assembled from the mechanism's reference.
    weights : (nu,) array_like, optional
        For more motors than motions: as in `PreparedInverseDynamics`.
    inconsistent : str, optional
        ``"raise"`` or ``"project"``: as in `PreparedInverseDynamics`. Default: ``"raise"``; a
        controller takes ``"project"`` alone.
    closure_limit, velocity_limit : float or None, optional
        How far the state may be off for a torque, None for by any amount: as in
        `PreparedInverseDynamics`. Default: 1e-2 and 0.1; not for a controller, which brings its
        own.
    flags : iterable of str, optional
        More flags for the compiler, behind our own: such as ``"-O1"`` to build faster.
    measured : iterable of str, optional
        What `Compiled.state` and `Compiled.torque_from_motors` take, as in `ClosedStateEstimator`.
        Default: what the `estimator` of a controller measures, else the motors.
    machine : str, optional
        ``"c"``, or ``"vm"``: CasADi's virtual machine, which needs no compiler and is there in a
        fraction of the time. It is slower than C, as a rule faster than the tick in Python, and has
        the same guard. It has no closed state from what is measured, and no torque of laws with
        limits.

    Returns
    -------
    Compiled, or CompiledTasks for a law of tasks

    Raises
    ------
    InputError
        Without CasADi, a compiler or Python.h; for unknown functions; for joints, constraints and
        forces that have no expressions, or wrong ones, by name; where the motors drive fewer
        motions than there are motors and motions; for a controller with integral action; for a
        law of tasks other than above; for what ``machine="vm"`` has not.
    NotActuatedError
        If torques are asked of a mechanism that has no motors or no motion.
    SingularityError
        For a task that is singular at all configurations that are tried.
    AssemblyError
        If the reference configuration cannot be assembled.
    HoloctlError
        If the compiler fails.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> fast = hc.compile(mech, ["inverse_dynamics"])
    >>> q, v = hc.assemble(mech)
    >>> bool(np.allclose(fast.inverse_dynamics(q, v, np.zeros(2)),
    ...                  hc.inverse_dynamics(mech, q, v, [0.0, 0.0]).u))
    True
    """
    one_of("machine", machine, MACHINES)
    if isinstance(what, (TaskSpaceControl, Impedance)):
        options = {
            "partition": partition is None, "weights": weights is None,
            "inconsistent": inconsistent is NOT_GIVEN, "closure_limit": closure_limit is NOT_GIVEN,
            "velocity_limit": velocity_limit is NOT_GIVEN,
        }  # fmt: skip
        check_own_options(what, options)
        casadi_module()
        more = tuple(name_list("flags", flags))
        sensors = None if measured is None else tuple(name_list("measured", measured))
        return compiled_tasks(what, functions, more, sensors, machine)
    subject = subject_of(what, partition, weights, inconsistent, closure_limit, velocity_limit)
    wanted = wanted_functions(functions, subject)
    more = tuple(name_list("flags", flags))
    casadi_module()
    sensors = None if measured is None else tuple(name_list("measured", measured))
    if machine == "vm":
        _check_virtual(subject, wanted)
    return from_subject(subject, wanted, more, sensors, machine)


def _check_virtual(subject: Subject, wanted: tuple[str, ...]) -> None:
    """Raise `InputError` for what the virtual machine has not."""
    if "state" in wanted:
        raise InputError(NO_STATE)
    if "torque" in wanted and subject.keeping is not None:
        raise InputError(
            f"{subject.mech.name}: machine='vm' has no torque within limits; machine='c' has"
        )
