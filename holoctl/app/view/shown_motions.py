"""The motions of a mechanism, described and played: those of motors, those without motor, idle
ones.

A motion is continued along itself, t -> T T' t from step to step, as a motor is dragged: to and
fro, or one whole turn of a body that spins idly. A motion that is infinitesimal only (of a shaky
mechanism) or may be (at a singular configuration) is described but not played: every frame is
closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holoctl.app.view.drag_path import DragPoint
from holoctl.app.view.dragging import drag_model, least_motion, motions_at, readings
from holoctl.app.view.motion_playback import once_round, to_and_fro
from holoctl.app.view.shown_posture import Posture
from holoctl.app.view.stop_reason import some
from holoctl.base.checks import Array, Vector, quiet, read_only, whole
from holoctl.base.errors import HoloctlError, InputError, SingularityError
from holoctl.base.linalg import largest, null_space_by_svd, pivoted_qr
from holoctl.base.tolerances import (
    DRAG_LOCKED,
    IDLE_NEW,
    UNSEEN_MOTION,
)
from holoctl.closing.rank import manifold_rank, scaled_jacobian
from holoctl.closing.sampled_configurations import goes_on, sample
from holoctl.doctor.mobility_analysis import mobility
from holoctl.doctor.motion_types import Motion
from holoctl.doctor.report import MobilityReport
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, partition

__all__ = ["ShownMotion", "motions", "played", "sweep"]


@dataclass(frozen=True, eq=False)
class ShownMotion:
    """One motion of a mechanism at a configuration.

    Attributes
    ----------
    words : str
        A short description, for a button.
    v : (nv,) array
        A velocity: that of the motor is 1 rad/s or m/s; without motor, that of the coordinate that
        moves most, with lengths over the size of the loop.
    idle : bool
        Whether it moves only bodies between two others.
    motor : int
        Index of the motor that drives it; -1 for none.
    finite : bool
        Whether it is known to be a finite motion; at a singular configuration that is unknown. A
        motion that is not is marked in the words, and not played.
    """

    words: str
    v: Vector
    idle: bool = False
    motor: int = -1
    finite: bool = True


_INFINITESIMAL = " (infinitesimal only)"
_SINGULAR = " (singular here: its continuation is unknown)"


class _Found(NamedTuple):
    """A motion without its scaling for display; t is scaled."""

    words: str
    t: Vector
    idle: bool = False
    motor: int = -1


@quiet
def motions(
    mech: Mechanism, q: Vector, report: MobilityReport | None = None
) -> tuple[ShownMotion, ...]:
    """A basis of the motions of a mechanism at a closed configuration.

    First those of motors, with the other motors at rest if possible; then those that no motor
    drives, and the idle ones, as in the doctor's report; at a singular configuration also the
    remaining ones.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        A closed configuration.
    report : MobilityReport, optional
        The result of `mobility` at q. Default: it is computed.

    Raises
    ------
    InputError
        For a value that is not a mechanism, or not a configuration of it.
    InconsistentError
        For a configuration that is not closed.
    """
    check_mechanism(mech)
    q = check_configuration(mech, q, "q")
    T, part = _motions_here(mech, q)
    if not T.shape[1]:
        return ()
    report = mobility(mech, q) if report is None else report
    found, left = list[_Found](), T
    for one in _candidates(mech, report, T):
        size, share = float(np.linalg.norm(one.t)), left.T @ one.t
        if (
            size > 0.0 and float(np.linalg.norm(share)) > IDLE_NEW * size
        ):  # independent of the others
            found.append(one)
            left = left @ null_space_by_svd(share[None], 1)[3]
    while left.shape[1]:
        i = int(pivoted_qr(left.T, 1).pivots[0])
        t = left @ left[i] / float(left[i] @ left[i])
        found.append(_Found(_moved(mech, t, i), t))
        left = left @ null_space_by_svd((left.T @ t)[None], 1)[3]
    why = [_SINGULAR if part is None else ""] * len(found)
    if part is not None and report.counts.shaky:
        at = sample(mech, q, 0.0, tolerance=part.tolerance)
        finite = (goes_on(mech, at, one.t / float(np.linalg.norm(one.t)), 0.0) for one in found)
        why = ["" if is_finite else _INFINITESIMAL for is_finite in finite]
    return tuple(_shown(mech, *pair) for pair in zip(found, why, strict=True))


def _motions_here(mech: Mechanism, q: Vector) -> tuple[Array, Partition | None]:
    """All motions at q, and the partition; None for it at a singular configuration."""
    try:
        part = partition(mech, q)
    except SingularityError:
        G, error = scaled_jacobian(mech, q, 0.0)
        rank = manifold_rank(G, largest(error), mech.tolerance)
        return null_space_by_svd(G, rank)[3], None
    return motions_at(mech, part, q), part


def _candidates(mech: Mechanism, report: MobilityReport, T: Array) -> Iterator[_Found]:
    """Motions of motors, each with the others at rest if possible; then those without motor and
    idle ones of the doctor's report, projected onto T."""
    rows = np.zeros((0, T.shape[1]))
    for i, row in enumerate(drag_model(mech).rows @ T):
        rest = row - rows.T @ (rows @ row)
        t = least_motion(mech, T, i)
        if t is not None and float(np.linalg.norm(rest)) > DRAG_LOCKED:
            rows = np.vstack([rows, rest / np.linalg.norm(rest)])
            yield _Found(f"motor {mech.actuator_names[i]}", t, motor=i)
    for motion in report.undriven:
        t = T @ (T.T @ _direction(mech, motion))
        i = mech.coordinate_names.index(motion.rates[0][0])
        more = ", loaded by gravity" if motion.loaded else ""
        yield _Found(f"no motor: {_moved(mech, t, i)}{more}", t)
    for motion in report.idle_motions:
        t = T @ (T.T @ _direction(mech, motion))
        yield _Found(f"idle: {' + '.join(motion.bodies)}", t, idle=True)


def _direction(mech: Mechanism, motion: Motion) -> Vector:
    """The direction of a motion of the doctor's report, scaled."""
    t = np.zeros(mech.nv)
    for name, rate in motion.rates:
        t[mech.coordinate_names.index(name)] = rate
    return t / mech.column_scale


def _moved(mech: Mechanism, t: Vector, first: int) -> str:
    """Names of the coordinates that move most, after that with index `first`."""
    size = np.abs(t)
    order = [first, *(i for i in np.argsort(-size).tolist() if i != first)]
    names = [mech.coordinate_names[i] for i in order if size[i] > UNSEEN_MOTION * size.max()]
    return some(names, 2) if names else repr(mech.coordinate_names[first])


def _shown(mech: Mechanism, one: _Found, why: str) -> ShownMotion:
    v = one.t * mech.column_scale
    if one.motor >= 0:
        v /= float(mech.B[:, one.motor] @ v)
    else:
        v /= v[int(np.argmax(np.abs(one.t)))]
    return ShownMotion(one.words + why, read_only(v), one.idle, one.motor, not why)


# --------------------------------------------------------------------------------------- played


@quiet
def played(mech: Mechanism, q: Vector, motion: ShownMotion, frames: int = 120) -> Array:
    """Closed configurations along a motion, a loop that begins and ends at q.

    The motion is to and fro, by 0.3 (rad, or of the size of the loop) of the coordinate that moves
    most, without rotors, or by less if the motion stops before; an idle spin is one whole turn, if
    it returns to its start. If there is no finite motion, all configurations are q.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        A closed configuration: that at which `motions` found the motion, or another one, at which
        its projection onto the motions there is played.
    motion : ShownMotion
    frames : int
        Approximate number of configurations.

    Returns
    -------
    (n, nq) array
        Each with a closure error of the kept rows of at most 1e-9.

    Raises
    ------
    InputError
        For a value that is not a configuration, a motion of another mechanism, less than 8 frames.
    """
    check_mechanism(mech)
    q = check_configuration(mech, q, "q")
    if motion.v.shape != (mech.nv,) or motion.motor >= mech.nu:
        raise InputError(f"this motion does not belong to {mech.name}")
    count = whole("frames", frames, 8) // 4
    still = np.repeat(q[None], 4 * count + 1, axis=0)
    T, part = _motions_here(mech, q)
    if not motion.finite or part is None or not T.shape[1]:
        return still
    t = T @ (T.T @ (motion.v / mech.column_scale))
    if not largest(t) > 0.0:
        return still
    gap = largest(scaled_jacobian(mech, q, 0.0)[1])
    start = DragPoint(q, readings(mech, q, np.zeros(mech.nu)), part, gap, t / largest(t))
    turn = once_round(mech, start, 4 * count) if motion.idle else None
    return to_and_fro(mech, start, motion.motor, count) if turn is None else turn


SWEPT = 8
"""Number of configurations of each motion in a sweep."""

SWEPT_WORK = 25000
"""Number of motions in a sweep, times the square of the number of coordinates: about a second."""

FEWEST = 6
"""If there is time for fewer motions than this, there is no sweep."""


def sweep(posture: Posture) -> Array:
    """Configurations (n, nq) of the motions of a posture, with their ends.

    All motions up to about 30 coordinates, evenly chosen ones up to about 60, none for more, which
    would take seconds; none for a posture that is open, or whose motions are unknown.
    """
    mech, none = posture.mech, np.zeros((0, posture.mech.nq))
    most = SWEPT_WORK // max(mech.nv, 1) ** 2
    if not posture.closed or most < FEWEST:
        return none
    try:
        found = motions(mech, posture.q)
        chosen = found[:: -(-len(found) // most)] if found else ()
        return np.vstack([none, *(played(mech, posture.q, one, SWEPT) for one in chosen)])
    except HoloctlError:
        return none
