"""`mobility`: the analysis of a mechanism before a torque is computed.

The mechanism is closed and sampled nearby; then its rows, motions, coordinates and margins are
judged. Each of these has a module. Reference: docs/doctor.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, flag, number, quiet
from holoctl.base.progress import progress_bar
from holoctl.base.tolerances import CLOSED_ALREADY
from holoctl.closing.axis_sign import opposite_closures
from holoctl.closing.nearby_configurations import configuration_along
from holoctl.closing.sampled_configurations import Samples, sample, samples
from holoctl.closing.toleranced_rows import KeptRows, toleranced_rows
from holoctl.doctor.acting_forces import acting_forces
from holoctl.doctor.contradiction import ClosingResult, closing
from holoctl.doctor.coordinate_choice import choice
from holoctl.doctor.crossed_axes import crossed_axes
from holoctl.doctor.mobility_count import Counts, counts
from holoctl.doctor.motion_types import motions
from holoctl.doctor.rank_margins import margins
from holoctl.doctor.redundancy import Redundancy, redundancy
from holoctl.doctor.report import MobilityReport
from holoctl.doctor.rounding import FAR, Rounding, wanted
from holoctl.doctor.sensors import reported_sensors, sensors
from holoctl.doctor.size_and_mass import dimensions
from holoctl.estimation.measurement_model import MeasurementModel
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.limited_coordinates import beyond_limits
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["mobility"]


@quiet
def mobility(
    mech: Mechanism,
    q: Any = None,
    *,
    t: float = 0.0,
    progress: bool = False,
    measured: Iterable[str] | None = None,
) -> MobilityReport:
    """Examine a mechanism: mobility, redundant rows, locked joints, motors, sensors,
    contradictions.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like, optional
        The configuration to examine; it is closed first if needed. Default: ``mech.reference``.
    t : float, optional
        Time, s, for constraints that depend on it.
    progress : bool, optional
        Show a progress bar (needs tqdm): large mechanisms take a while.
    measured : iterable of str, optional
        The sensors, as in `ClosedStateEstimator`: joints, coordinates, closures that are joints.
        Default: the motors; without motors that act on joints sensors are not examined.

    Returns
    -------
    MobilityReport
        ``print(report)`` explains it. A mechanism that does not close is reported, not raised.

    Raises
    ------
    InputError
        For a q of the wrong shape, numbers that are not finite, a `progress` that is no bool, and
        for names in `measured` that are no joints.

    See Also
    --------
    assembly_modes : other postures.
    repaired_geometry : exact geometry, from rounded files.
    partition : rank and coordinates, for programs.
    results.MobilityReport : what the report holds.

    Notes
    -----
    The rank is determined by singular values of scaled rows, at this configuration and at closed
    configurations nearby; if paths of different dimension meet, the largest dimension counts. If
    the geometry is rounded, singular values below ``mech.tolerance`` count as zero.

    Open degrees of freedom, active rows and names depend on how the tree was cut. Degrees of
    freedom, ``rows - active``, idle motions and verdicts do not.

    Examples
    --------
    >>> import holoctl as hc
    >>> report = hc.mobility(hc.load(hc.robot_file("four_bar")))
    >>> report.dof, report.redundant
    (1, ['pin.z', 'pin.ry', 'pin.rx'])
    """
    check_mechanism(mech)
    t = number("t", t, "time, s")
    measured_joints = reported_sensors(mech, measured)
    guess = mech.reference.copy() if q is None else check_configuration(mech, q)
    with progress_bar(5, "doctor", "parts", show=flag("progress", progress)) as bar:
        return _examined(mech, guess, t, measured_joints, bar)


def _examined(
    mech: Mechanism, guess: Vector, t: float, measured: MeasurementModel | None, bar: Any
) -> MobilityReport:
    def begin(part: str, ended: int = 1) -> None:
        bar.update(ended)
        bar.set_postfix_str(part)

    begin("closing", 0)
    found, meant = _closed(mech, guess, t)
    if not found.closed:
        begin("", bar.total)
        return _unclosed(mech, found, wanted(mech, guess, t), t)
    tolerance = 0.0 if meant is None else mech.tolerance
    begin("looking around")
    s = samples(mech, found.q, t, tolerance)
    begin("rows")
    r = redundancy(mech, s, t, meant)
    begin("motions")
    m = motions(mech, s, t)
    seen = sensors(mech, s, measured, t)
    begin("coordinates")
    chosen = choice(mech, s, r, t)
    begin("")
    return MobilityReport(
        mech.name, list(mech.actuator_names),
        replace(found, error=s.here.error, far=_far(mech, guess, found.q)),
        counts(mech, s, r, t), dimensions(mech),
        list(crossed_axes(mech, found.q, t, tolerance)), r, m, seen, chosen,
        margins(mech, s, m), _rounding(mech, guess, t, s, r, meant),
        acting_forces(mech, m.locked_joints), [str(x) for x in beyond_limits(mech, found.q, t)],
    )  # fmt: skip


def _rounding(
    mech: Mechanism, guess: Vector, t: float, s: Samples, r: Redundancy, meant: KeptRows | None
) -> Rounding:
    """The rounding of the geometry; if the mechanism moves less than it might, also the tolerance
    with which it would move."""
    hint, far = Rounding(), bool(_far(mech, guess, s.here.q))
    if s.finite_dof == 0 or r.weak or far:
        hint = wanted(mech, guess, t, 1 if far else s.finite_dof + 1)
    if meant is None:
        return hint
    return replace(hint, tolerance=mech.tolerance, off=meant.error, repeats=meant.lost)


def _closed(mech: Mechanism, guess: Vector, t: float) -> tuple[ClosingResult, KeptRows | None]:
    """The guess if it is closed, else the closed configuration that is found from it; and the rows
    that determine the motion there if the geometry is rounded."""
    found = ClosingResult(guess, True)
    if sample(mech, guess, t).error > CLOSED_ALREADY or opposite_closures(mech, guess, t):
        found = closing(mech, guess, t)
    if not found.closed:
        return found, None
    meant = toleranced_rows(mech, found.q, t)
    if meant is not None:
        return found, meant
    polished = configuration_along(mech, found.q, np.zeros(mech.nv), t)
    # a rank is only as accurate as its configuration is closed
    return (found if polished is None else replace(found, q=polished)), None


def _unclosed(mech: Mechanism, found: ClosingResult, hint: Rounding, t: float) -> MobilityReport:
    """The report of a mechanism that does not close: counts, without motions."""
    here = sample(mech, found.q, t, 0.0)
    return MobilityReport(
        mech.name,
        list(mech.actuator_names),
        replace(found, error=here.error),
        Counts(mech.nv, mech.row_scale.size, here.rank, here.rank, finite_dof=0),
        dimensions(mech),
        list(crossed_axes(mech, found.q, t)),
        rounding=hint,
        forces=acting_forces(mech),
    )


def _far(mech: Mechanism, guess: Vector, q: Vector) -> tuple[str, ...]:
    """Coordinates that had to move far to close the mechanism, the farthest first."""
    d = np.abs(pin.difference(mech.model, guess, q)) / mech.column_scale
    return tuple(mech.coordinate_names[i] for i in np.argsort(-d) if d[i] > FAR)
