"""`mobility`: everything that can be said about a mechanism before a torque is computed.

References: K. J. Waldron and G. L. Kinzel, Kinematics, Dynamics, and Design of Machinery, on
mobility and its exceptions; docs/doctor.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, number, quiet
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import lu, pivoted_qr
from holoctl.closing.nearby import configuration_along
from holoctl.closing.polarity import opposite_closures
from holoctl.closing.rank import RANK, SINGULAR, UNIT
from holoctl.constraints.wrench import WrenchRows
from holoctl.doctor.contradiction import Closing, closing
from holoctl.doctor.crossed import crossed_axes
from holoctl.doctor.motions import actuation, motions
from holoctl.doctor.redundancy import Redundancy, redundancy
from holoctl.doctor.report import MobilityReport
from holoctl.doctor.samples import Sample, Samples, sample, samples
from holoctl.mechanism.mechanism import (
    Mechanism,
    check_configuration,
    check_mechanism,
    loop_sizes,
    row_names,
    workspace,
)
from holoctl.projector.partition import partition
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import kinematics

__all__ = ["mobility"]

Array = NDArray[np.float64]

CLOSED = 1e-12
"""A configuration that is open by more than this (scaled) is closed first."""

FAR = 0.7
"""A coordinate that moved by more (rad, or sizes of its loop) while closing is told."""

UNCERTAIN = 100.0
"""A smaller gap between singular values leaves the rank open, as does one that counts by a smaller
factor."""


@quiet
def mobility(mech: Mechanism, q: Any = None, *, t: float = 0.0) -> MobilityReport:
    """Examine a mechanism: mobility, redundant rows, locked joints, motors, contradictions.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like, optional
        Where to look; closed from there if it is open. Default: ``mech.reference``.
    t : float, optional
        Time, s, for constraints that depend on it.

    Returns
    -------
    MobilityReport
        ``print(report)`` explains it. A mechanism that does not close is reported, not raised.

    Raises
    ------
    InputError
        For a q of the wrong shape, or numbers that are not finite.

    Notes
    -----
    Rank is decided by singular values of scaled rows: at this configuration, and as the largest
    over closed configurations nearby. What depends on how the tree was cut: open degrees of
    freedom, active rows, names. What does not: degrees of freedom, ``rows - active``, idle motions,
    verdicts.

    Examples
    --------
    >>> import holoctl as hc
    >>> report = hc.mobility(hc.load(hc.robot_file("four_bar")))
    >>> report.dof, report.redundant
    (1, ['pin.z', 'pin.ry', 'pin.rx'])
    """
    check_mechanism(mech)
    t = number("t", t, "time, s")
    guess = mech.reference.copy() if q is None else check_configuration(mech, q)
    found = Closing(guess, True)
    if sample(mech, guess, t).error > CLOSED or opposite_closures(mech, guess, t):
        found = closing(mech, guess, t)
    if not found.closed:
        return _unclosed(mech, found, t)
    polished = configuration_along(mech, found.q, np.zeros(mech.nv), t)
    if polished is not None:  # a rank is as good as its configuration is closed
        found = replace(found, q=polished)
    return _report(mech, guess, found, samples(mech, found.q, t), t)


def _report(mech: Mechanism, guess: Vector, found: Closing, s: Samples, t: float) -> MobilityReport:
    r, m, here = redundancy(mech, s, t), motions(mech, s, t), s.here
    names = row_names(mech)
    motor = actuation(mech, here, here.null)
    singular = []
    if here.rank < s.generic_rank:
        singular.append("bifurcation")
    if m.actuation_rank < m.generic_actuation_rank:
        singular.append("actuation singularity")
    if s.finite_dof < mech.nv - s.generic_rank:
        singular.append("shaky")
    counted, left_out = here.values[: here.rank], here.values[here.rank :]
    gap = _gap(counted, left_out)
    should = min(mech.nu, s.finite_dof - len(m.idle))
    choice = _independent(mech, s, r, t)
    return MobilityReport(
        name=mech.name,
        q=found.q,
        closed=True,
        error=here.error,
        open_dof=mech.nv,
        rows=len(names),
        active=here.rank,
        dof=mech.nv - here.rank,
        generic_rank=s.generic_rank,
        finite_dof=s.finite_dof,
        gruebler=mech.nv - len(names),
        gruebler_reason=_reason(mech, s, r, t),
        redundant=[names[i] for i in r.redundant],
        latent=[names[i] for i in r.latent],
        weak=list(r.weak),
        essential=list(r.essential),
        groups=list(r.groups),
        locked_joints=list(m.locked_joints),
        idle=[" + ".join(motion.bodies) for motion in m.idle],
        idle_motions=list(m.idle),
        undriven=list(m.undriven) if mech.nu else [],
        **choice,
        actuation=_verdict(mech.nu, m.generic_actuation_rank, s.finite_dof - len(m.idle)),
        motors=list(mech.actuator_names),
        actuation_rank=m.actuation_rank,
        generic_actuation_rank=m.generic_actuation_rank,
        margin=float(counted[-1]) if counted.size else float("inf"),
        usual_margin=max(_smallest(at.values, at.rank) for at in s.generic),
        gap=gap,
        uncertain=gap < UNCERTAIN or _smallest(counted, here.rank) < UNCERTAIN * RANK,
        actuation_margin=_smallest(motor.values, should),
        singular=singular,
        contradictions=[],
        opposite=list(found.opposite),
        **_told(mech, found.q, t),
        far=_far(mech, guess, found.q),
        message=found.message,
    )


def _told(mech: Mechanism, q: Vector, t: float) -> dict[str, Any]:
    """What can be said of every mechanism, closed or not."""
    size, sizes = loop_sizes(mech)
    return {
        "crossed": list(crossed_axes(mech, q, t)),
        "size": size,
        "loop_sizes": sizes,
        "mass": sum(float(inertia.mass) for inertia in plain(mech.model).inertias[1:]),
    }


def _far(mech: Mechanism, guess: Vector, q: Vector) -> list[str]:
    """Coordinates that had to go far to close the mechanism, the farthest first."""
    d = np.abs(pin.difference(mech.model, guess, q)) / mech.column_scale
    return [mech.coordinate_names[i] for i in np.argsort(-d) if d[i] > FAR]


def _unclosed(mech: Mechanism, found: Closing, t: float) -> MobilityReport:
    """Counts alone: there is no configuration to speak of motions."""
    here, m = sample(mech, found.q, t, 0.0), mech.row_scale.size
    nothing = float("inf")
    return MobilityReport(
        name=mech.name, q=found.q, closed=False, error=here.error, open_dof=mech.nv, rows=m,
        active=here.rank, dof=mech.nv - here.rank, generic_rank=here.rank, finite_dof=0,
        gruebler=mech.nv - m, gruebler_reason="", redundant=[], latent=[], weak=[],
        essential=[], groups=[], locked_joints=[], idle=[], idle_motions=[], undriven=[],
        independent=[], independent_condition=nothing, actuated_condition=None, best_independent=[],
        best_condition=nothing, actuation="unknown", motors=list(mech.actuator_names),
        actuation_rank=0, generic_actuation_rank=0, margin=nothing, usual_margin=nothing,
        gap=nothing, uncertain=False,
        actuation_margin=nothing, singular=[], contradictions=list(found.contradictions),
        opposite=list(found.opposite), **_told(mech, found.q, t), far=[], message=found.message,
    )  # fmt: skip


def _verdict(motors: int, rank: int, dof: int) -> str:
    if motors == 0:
        return "none"
    if rank == motors == dof:
        return "fully"
    if rank == motors:
        return "under"
    return "redundantly" if rank == dof else "both"


def _gap(counted: Vector, left_out: Vector) -> float:
    if not counted.size or not left_out.size or left_out[0] == 0.0:
        return float("inf")
    return float(counted[-1] / left_out[0])


def _smallest(values: Vector, count: int) -> float:
    """The smallest of those that should count; 0 where there are not so many."""
    if count == 0:
        return float("inf")
    return float(values[count - 1]) if values.size >= count else 0.0


def _independent(mech: Mechanism, s: Samples, r: Redundancy, t: float) -> dict[str, Any]:
    """Which coordinates to use: as `partition` chooses, the motors, the best."""
    at = s.generic[0]
    names = mech.coordinate_names
    kept = at.G[r.kept]
    pivots = np.sort(pivoted_qr(kept, s.generic_rank).pivots[: s.generic_rank])
    dependent = _dependent(mech, at, t, pivots)
    best = min(dependent, pivots, key=lambda columns: _condition(kept, columns))
    motors = [names.index(n) for n in mech.actuated]
    condition = None
    if motors and len(motors) == mech.nv - s.generic_rank:
        others = np.setdiff1d(np.arange(mech.nv), motors)
        condition = _condition(kept, others)

    def without(columns: NDArray[np.intp]) -> list[str]:
        return [names[i] for i in np.setdiff1d(np.arange(mech.nv), columns)]

    return {
        "independent": without(dependent),
        "independent_condition": _condition(kept, dependent),
        "actuated_condition": condition,
        "best_independent": without(best),
        "best_condition": _condition(kept, best),
    }


def _dependent(mech: Mechanism, at: Sample, t: float, best: NDArray[np.intp]) -> NDArray[np.intp]:
    try:
        return partition(mech, at.q, t=t).dependent
    except SingularityError:
        return best


def _condition(kept: Array, columns: NDArray[np.intp]) -> float:
    size = max(float(np.abs(kept).sum(axis=0).max(initial=0.0)), UNIT)
    condition = lu(kept[:, columns], size).condition
    return condition if condition <= SINGULAR else float("inf")


# -------------------------------------------------------------- why counting gives another number


def _reason(mech: Mechanism, s: Samples, r: Redundancy, t: float) -> str:
    if mech.row_scale.size == s.here.rank:
        return ""
    reasons = []
    if r.redundant.size:
        n = r.redundant.size
        text = f"{n} row{' repeats' if n == 1 else 's repeat'} what is so anyway"
        kinds = _loops(mech, s.generic[0], r, t)
        if kinds:
            text += f" ({'; '.join(kinds)})"
        reasons.append(text)
    short = mech.row_scale.size - s.here.rank - r.redundant.size
    if short > 0:
        rows = "row has" if short == 1 else "rows have"
        reasons.append(f"{short} {rows} no effect at this configuration")
    return ", and ".join(reasons)


def _loops(mech: Mechanism, at: Sample, r: Redundancy, t: float) -> list[str]:
    """What is special about the loops with redundant rows."""
    names = row_names(mech)
    concerned = {names[i].rsplit(".", 1)[0] for i in r.redundant}
    kin = kinematics(mech.model, workspace(mech), at.q, np.zeros(mech.nv), t)
    kinds: dict[str, list[str]] = {}
    for name, rows in zip(mech.constraint_names, mech._bound, strict=True):
        if name in concerned and isinstance(rows, WrenchRows):
            kind = _kind(kin.J[:, rows.support.any(axis=0)])
            kinds.setdefault(kind, []).append(name)
    return [f"{', '.join(loops)}: {kind}" for kind, loops in kinds.items()]


def _kind(J: Array) -> str:
    """Planar, spherical, or special: from the screws (6, n) of the joints of a loop."""
    linear, angular = J[:3].T, J[3:].T
    turning = np.linalg.norm(angular, axis=1) > 1e-9
    size = max(float(np.abs(linear).max()), 1e-9)
    if turning.any():
        n = angular[turning][0] / np.linalg.norm(angular[turning][0])
        parallel = np.abs(np.cross(angular, n)).max() < 1e-7
        if parallel and np.abs(linear @ n).max() < 1e-7 * size:
            return "a planar loop"
        # v + omega x p = 0 at one point p of all
        A = np.concatenate([pin.skew(w) for w in angular])
        p = np.linalg.lstsq(A, -linear.ravel(), rcond=None)[0]
        if np.abs(A @ p + linear.ravel()).max() < 1e-7 * size:
            return "a spherical loop, all axes meet in a point"
    elif np.linalg.matrix_rank(linear, tol=1e-7 * size) < 3:
        return "a loop of parallel slides"
    return "special dimensions or directions"
