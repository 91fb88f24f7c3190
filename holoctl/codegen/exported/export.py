"""`export_c`: a controller or a mechanism as a small C library that needs nothing but libm.

The laws are those of `holoctl.codegen.laws`, the code that of `c_source`. Around them the C checks
every input and every result, and gives a torque in all cases, as a drive without a supervisor
needs. The numbers of the self-test come from the Python path.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from holoctl.base.checks import file_path, listing, one_of, quiet, whole
from holoctl.base.errors import BranchError, InputError
from holoctl.base.renamed import formerly
from holoctl.base.tolerances import HOLD_LIMIT
from holoctl.codegen.exported.c_sources import Library, library_files
from holoctl.codegen.exported.functions import functions_files
from holoctl.codegen.exported.laws import exported_laws
from holoctl.codegen.exported.not_exported import left_out
from holoctl.codegen.exported.payload import payload_files
from holoctl.codegen.exported.self_test_states import golden_states
from holoctl.codegen.exported.self_test_ticks import golden_ticks
from holoctl.codegen.exported.state_feedback import GainSchedule, feedback_files
from holoctl.codegen.exported.transmission import transmission_files
from holoctl.codegen.exported.transmission_table import table_files
from holoctl.codegen.exported.write_files import identifier, write_files
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.law_options import Subject, subject_of
from holoctl.codegen.laws.border_expressions import estimator_with, sensing_of
from holoctl.codegen.may_change import payload_frame
from holoctl.codegen.precision import PRECISIONS
from holoctl.codegen.task_law_options import TaskSubject, check_own_options, task_subject_of
from holoctl.control.computed_torque import ComputedTorque
from holoctl.control.controller_limits import limits_law_of
from holoctl.control.limit_policies import LimitsLaw
from holoctl.control.limited_inverse_dynamics import WithinLimits
from holoctl.control.task_space.impedance import Impedance
from holoctl.control.task_space.task_space_control import TaskSpaceControl
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.estimation.payload_estimator import PayloadEstimator
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.state_limits import NOT_GIVEN, NotGiven
from holoctl.transmission.table import TransmissionTable
from holoctl.transmission.transmission import Transmission

__all__ = ["export_c", "law_library"]

LARGEST_REFERENCE = 1e6  # rad, m
"""The largest entry of the reference configuration: the states of the self-test, drawn around it,
then have ten digits left."""


log = logging.getLogger(__name__)

POLICIES = ("hold", "zero")
_MOST_HELD = 2**32 - 1
"""What an unsigned long of C holds everywhere."""


ALONE: dict[type, tuple[Any, str]] = {
    Transmission: (transmission_files, ""),
    TransmissionTable: (table_files, "table"),
    PayloadEstimator: (payload_files, "payload"),
    GainSchedule: (feedback_files, "feedback"),
}
"""What is exported without a law: its files, and the word after its name."""


@quiet
@formerly(
    policy="limits=hc.WithinLimits(limits, policy=...)", dt="limits=hc.WithinLimits(limits, dt=...)"
)
def export_c(
    what: Mechanism
    | ComputedTorque
    | TaskSpaceControl
    | Impedance
    | Transmission
    | TransmissionTable
    | PayloadEstimator
    | GainSchedule,
    folder: str | PathLike[str],
    *,
    name: str | None = None,
    partition: Partition | None = None,
    weights: Any = None,
    closure_limit: float | NotGiven | None = NOT_GIVEN,
    velocity_limit: float | NotGiven | None = NOT_GIVEN,
    in_trouble: str = "hold",
    hold_limit: int = HOLD_LIMIT,
    plant: bool = False,
    measured: Iterable[str] | None = None,
    limits: Limits | WithinLimits | str | None = None,
    precision: str = "double",
    functions: Iterable[str] | None = None,
    frames: Iterable[str] = (),
    payload: str | None = None,
    gravity: bool = False,
) -> tuple[Path, ...]:
    """Write a C99 library of the controller: no dependency but libm, no allocation.

    Needs CasADi (the extra ``holoctl[codegen]``), except for a table, and no compiler. In addition
    to the header and the source there are a self-test with 64 states, for ``ctest``, a
    CMakeLists.txt and a README. The same input gives the same bytes. docs/embedded.md shows a loop
    around it.

    Parts of the description that the C does not have are logged as a warning, and listed in header
    and README: limits (``hc.limits_of(mech)``) that were not given, constraints that are switched
    off, friction under ``compensation="gravity"``, a closed state that the motors do not determine.

    Parameters
    ----------
    what : Mechanism, controller, Transmission, TransmissionTable, PayloadEstimator or StateFeedback
        A controller (`ComputedTorque`, `TaskSpaceControl`, `Impedance`) gives
        ``holoctl_<name>_torque``, if its motors have positions of their own; it and a mechanism
        give ``holoctl_<name>_inverse_dynamics``. Limits of a controller are kept by both: the
        status is then LIMITED, and efforts never exceed theirs. Laws of tasks are exported as far
        as `compile` accepts them; on `contacts` several weighted ones too, and limits of efforts
        alone. A transmission gives positions, rates and efforts of motors and joints, both ways;
        its `table` positions, Jacobian and curvature of the motors without
        iterations, within the bounds of the table; a payload estimator mass and centre of a payload
        from the motors; a state feedback of `lqr` or `lqr_along` its efforts at a closed state,
        with the table of gains, references and efforts over time. Of the other parameters these
        four take `name` alone.
    folder : str or path
        Made if it does not exist. Files in it are overwritten only if they were written by holoctl.
    name : str, optional
        Default: that of the mechanism, for a table, a payload or a feedback followed by that word.
        Other characters than letters and digits become underscores.
    partition : Partition, optional
        Default: chosen at the configuration assembled from the mechanism's reference. Not for a
        controller, which has its own.
    weights : (nu,) array_like, optional
        For more motors than motions: as in `PreparedInverseDynamics`. Not for a controller.
    closure_limit, velocity_limit : float or None, optional
        The largest closure error and velocity error of a state; beyond them a status is returned
        instead of a torque; None for no limit: as in `PreparedInverseDynamics`. May be changed in
        C. Default: 1e-2 and 0.1; not for a controller, which has its own.
    in_trouble : str, optional
        The output of C without a valid torque: ``"hold"``, the last good one, or ``"zero"``. May be
        changed in C.
    hold_limit : int, optional
        The number of consecutive calls with an error for which ``"hold"`` holds a torque, 0 to
        4294967295. After them u is zero and the status EXPIRED, until a call succeeds. May be
        changed in C.
    plant : bool, optional
        Also write ``holoctl_<name>_plant.c``: the exact plant, for simulation on a computer.
    measured : iterable of str, or "all", optional
        The measured joints, as in `ClosedStateEstimator`: C also estimates the closed state, with
        ``holoctl_<name>_state`` and ``holoctl_<name>_torque_from_motors``. ``"all"``: without these
        functions. Default: the motors, if they determine the state; for a controller with an
        `estimator`, its measured joints.
    limits : "model", Limits, WithinLimits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
        For the inverse dynamics of a mechanism; with policy and tick as
        ``hc.WithinLimits(limits, policy=..., dt=...)``, else its defaults. Not for a controller,
        which has its own.
    precision : str, optional
        Of all numbers of the C: ``"double"``, or ``"single"``, for processors that compute in
        ``float``; the header tells the error of its torques. The plant stays in double precision.
    functions : iterable of str, optional
        Parts of the model of a mechanism instead of a law, as functions without memory:
        ``"kinematics"`` (placements and Jacobians of `frames`), ``"inertia"``, ``"bias"``,
        ``"constraints"``, ``"forward_dynamics"``, ``"linearize"`` (A and B as
        ``hc.linearize(along="motion")``). Beside them name, partition and precision may be
        given. Default: the law.
    frames : iterable of str, optional
        The frames of ``"kinematics"``.
    payload : str, optional
        A frame of a body that moves. The struct then has the mass, the centre of mass and the
        inertia of a payload mounted there, in its axes, by init none, which may be changed between
        ticks; a step of the plant takes them, too.
    gravity : bool, optional
        Whether the struct has the acceleration of gravity, too, by init that of the model.

    Returns
    -------
    tuple of Path
        The files.

    Raises
    ------
    InputError
        Without CasADi; for invalid arguments; for joints, constraints and forces that have no
        expressions, or wrong ones, by name; if a file would be overwritten that holoctl did not
        write; for a controller with integral action, or with the policy "raise" for its limits;
        for a law of tasks that `compile` refuses; on contacts for limits of joints, `plant` and
        `measured`; in single precision for contacts, for damped tasks and critical damping; for an
        unknown frame of a payload, by name; with `payload` or `gravity` for contacts and for limits
        of positions without accelerations; with a payload for damped tasks and the centre of mass;
        with `gravity` for a `Counterbalance`.
    NotActuatedError
        If the mechanism has no motors or no motion.
    AssemblyError
        If the reference configuration cannot be assembled.
    HoloctlError
        If the folder cannot be written.

    See Also
    --------
    compile : machine code for this computer.
    ComputedTorque : a controller to export.

    Examples
    --------
    >>> import tempfile, holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(hc.export_c(ctl, folder)[0].name)
    holoctl_four_bar.h
    """
    controllers = ComputedTorque, TaskSpaceControl, Impedance
    if not isinstance(what, (Mechanism, *controllers, *ALONE)):
        raise InputError(
            "what must be a Mechanism or a ComputedTorque, a TaskSpaceControl, an Impedance, a "
            "Transmission, a TransmissionTable, a PayloadEstimator or a StateFeedback; got a "
            f"{type(what).__name__}"
        )
    of_a_law = {
        "weights": weights, "measured": measured, "limits": limits, "plant": plant or None,
        "payload": payload, "gravity": gravity or None,
    }  # fmt: skip
    parts, placed = None if functions is None else tuple(functions), tuple(frames)
    if isinstance(what, (Transmission, TransmissionTable, PayloadEstimator, GainSchedule)):
        other = None if precision == "double" else precision
        _refuse_others(f"a {type(what).__name__} is", of_a_law | {
            "partition": partition, "precision": other, "functions": parts,
            "frames": placed or None,
        })  # fmt: skip
        return _without_law(what, folder, name)
    if parts is not None or placed:
        _refuse_others("functions are", of_a_law)
        return _parts_of_model(what, parts, placed, folder, name, partition, precision)
    place = file_path("folder", folder)
    lib = law_library(
        what, name=name, partition=partition, weights=weights, closure_limit=closure_limit,
        velocity_limit=velocity_limit, in_trouble=in_trouble, hold_limit=hold_limit, plant=plant,
        measured=measured, limits=limits, precision=precision, payload=payload, gravity=gravity,
    )  # fmt: skip
    paths = write_files(place, library_files(lib))
    for sentence in lib.left_out:
        log.warning("%s: not in the C: %s", lib.E.mech.name, sentence)
    return paths


def law_library(
    what: Mechanism | ComputedTorque | TaskSpaceControl | Impedance,
    *,
    name: str | None = None,
    partition: Partition | None = None,
    weights: Any = None,
    closure_limit: float | NotGiven | None = NOT_GIVEN,
    velocity_limit: float | NotGiven | None = NOT_GIVEN,
    in_trouble: str = "hold",
    hold_limit: int = HOLD_LIMIT,
    plant: bool = False,
    measured: Iterable[str] | None = None,
    limits: Limits | WithinLimits | str | None = None,
    precision: str = "double",
    payload: str | None = None,
    gravity: bool = False,
) -> Library:
    """What `export_c` writes of a law; its errors."""
    of_task = None
    if isinstance(what, (TaskSpaceControl, Impedance)):
        check_own_options(what, {
            "partition": partition is None, "weights": weights is None,
            "closure_limit": closure_limit is NOT_GIVEN,
            "velocity_limit": velocity_limit is NOT_GIVEN,
        })  # fmt: skip
        of_task = task_subject_of(what, "exported")
        part, own = of_task.partition, of_task.limits
        subject = Subject(of_task.mech, None, part, of_task.weights, "project", own)
    else:
        if isinstance(what, ComputedTorque) and what.ki.any():
            raise InputError(
                f"{what.mech.name}: the integral action ki of a controller is no part of code that "
                "is exported; take ki=0 for that"
            )
        subject = subject_of(what, partition, weights, NOT_GIVEN, closure_limit, velocity_limit)
    mech, weights, off = subject.mech, subject.weights, subject.limits
    law = _keeping(what, of_task or subject, limits)
    one_of("in_trouble", in_trouble, POLICIES)
    one_of("precision", precision, tuple(PRECISIONS))
    if precision != "double":
        _check_single(what, of_task)
    if whole("hold_limit", hold_limit, 0) > _MOST_HELD:
        raise InputError(f"hold_limit must be {_MOST_HELD} at most; got {hold_limit}")
    prefix = f"holoctl_{identifier(mech.name if name is None else name)}"
    _check_reference(mech)
    frame = payload_frame(what, mech, payload, gravity, law)
    E = symbolic(mech, subject.partition, PRECISIONS[precision], frame, gravity)
    estimator, not_seen = _estimator(what, mech, E.partition, measured, plant)
    sensing = None if estimator is None else sensing_of(estimator)
    laws = exported_laws(E, subject.controller, weights, sensing, law, of_task)
    states = golden_states(E, laws, weights, off)
    ticks = None if estimator is None else golden_ticks(estimator, laws.timed)
    missing = left_out(subject, laws, not_seen)
    return Library(
        prefix, E, laws, weights, off, in_trouble, hold_limit, states, ticks, plant, missing
    )


def _refuse_others(what: str, given: dict[str, Any]) -> None:
    """Raise `InputError` for options that do not belong to what is exported."""
    if names := [x for x, value in given.items() if value is not None]:
        raise InputError(f"{what} exported without {listing(names)}: leave it out")


def _without_law(what: Any, folder: Any, name: str | None) -> tuple[Path, ...]:
    """What has files of its own."""
    files, word = next(found for kind, found in ALONE.items() if isinstance(what, kind))
    owner = what.name if isinstance(what, TransmissionTable) else what.mech.name
    prefix = f"holoctl_{identifier(f'{owner} {word}'.strip() if name is None else name)}"
    return write_files(file_path("folder", folder), files(what, prefix))


def _parts_of_model(
    what: Any, parts: tuple[str, ...] | None, frames: tuple[str, ...], folder: Any,
    name: str | None, partition: Partition | None, precision: str,
) -> tuple[Path, ...]:  # fmt: skip
    """Functions instead of a law."""
    if not isinstance(what, Mechanism) or not parts:
        raise InputError(
            "functions and frames are for the parts of a Mechanism; got "
            f"functions={parts} and a {type(what).__name__}"
        )
    E = symbolic(what, partition, PRECISIONS[one_of("precision", precision, tuple(PRECISIONS))])
    prefix = f"holoctl_{identifier(f'{what.name} functions' if name is None else name)}"
    return write_files(file_path("folder", folder), functions_files(E, parts, frames, prefix))


def _check_single(what: Any, task: TaskSubject | None) -> None:
    """Raise `InputError` for what single precision does not carry."""
    no = "contacts" if getattr(what, "contacts", None) is not None else ""
    if task is not None and not no:
        critical = task.law.damping[0] is None
        no = "a damped task" if task.law.damped else "critical damping" if critical else ""
    if no:
        raise InputError(
            f"{no} needs more digits than single precision has; leave out precision='single'"
        )


def _estimator(
    what: Mechanism | ComputedTorque | TaskSpaceControl | Impedance, mech: Mechanism,
    part: Partition, measured: Any, plant: bool,
) -> tuple[ClosedStateEstimator | None, str]:  # fmt: skip
    """The estimator of the state, and why there is none; None if all is measured, and by default if
    the motors do not determine the state."""
    if getattr(what, "contacts", None) is not None:
        if plant or measured not in (None, "all"):
            raise InputError(
                f"{mech.name}: a controller on contacts is exported without plant and measured: "
                "the plant knows no ground, and joints do not determine where a robot stands"
            )
        return None, ""
    if isinstance(measured, str):
        one_of("measured", measured, ("all",))
        return None, ""
    given = None if isinstance(what, Mechanism) else what.estimator
    try:
        return estimator_with(mech, part, measured, given), ""
    except (InputError, BranchError) as error:
        if measured is None and given is None:
            return None, str(error)
        raise


def _keeping(what: Any, subject: Subject | TaskSubject, limits: Any) -> LimitsLaw | None:
    """The limits law, if it can be exported."""
    law = subject.keeping
    if limits is not None:
        if not isinstance(what, Mechanism):
            raise InputError(
                f"{subject.mech.name}: limits are for a Mechanism, a controller brings its own; "
                f"got {limits}"
            )
        within = limits if isinstance(limits, WithinLimits) else WithinLimits(limits)
        if within.metric is not None or within.preload is not None or within.solver != "daqp":
            raise InputError(
                f"{subject.mech.name}: exported C has no metric, preload or solver of "
                "hc.WithinLimits; give limits, policy and dt alone"
            )
        requested = requested_limits(what, within.limits, "export_c")
        law = limits_law_of(what, requested or Limits(), within.policy, within.dt)
    if law is not None and law.policy == "raise":
        raise InputError(
            f"{subject.mech.name}: limits with policy='raise' cannot be exported, because C has "
            "no errors to raise; take 'nearest' or 'scale'"
        )
    return law


def _check_reference(mech: Mechanism) -> None:
    """Raise `InputError` for a reference so large that states around it would lose digits."""
    far = np.flatnonzero(~(np.abs(mech.reference) <= LARGEST_REFERENCE))
    if far.size:
        found = ", ".join(f"reference[{i}] = {mech.reference[i]:g}" for i in far)
        raise InputError(
            f"{mech.name}: numbers of the reference configuration must be within "
            f"{LARGEST_REFERENCE:g} for an export; got {found}. Likely causes: another unit than "
            "rad and m, or an angle that was summed up over many turns"
        )
