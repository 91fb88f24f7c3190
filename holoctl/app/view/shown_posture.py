"""The configuration that is shown, and motors that lead it along the closed motions.

A posture is a value; a drag gives another one. Nothing is kept between drags but what stands in the
posture: its partition, where the motors are with their turns counted, and how far sliders go.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.app.units import motor_units
from holoctl.app.view.drag_path import DragPoint, drag_along
from holoctl.app.view.dragging import drag_model, least_motion, motions_at, readings
from holoctl.base.checks import Array, Vector, number, quiet, read_only, whole
from holoctl.base.errors import AssemblyError, HoloctlError, InputError
from holoctl.base.linalg import largest
from holoctl.closing.assembly import assemble
from holoctl.closing.rank import scaled_jacobian
from holoctl.dynamics.certificate import limit
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, partition
from holoctl.projector.repartition import repartitioned

__all__ = ["Posture", "Slider", "dragged", "moved", "opened", "sliders"]

SLIDER_TURNS, SLIDER_SLIDE = 12.6, 0.3  # rad; of the size of the loop
"""Limits that are farther apart are none for a slider, which then goes half a turn both ways; and a
slide goes as far as the second both ways."""

ROTOR_MOVES = 1e-6
"""The slider of a rotor goes as far as if it moved something else by this part at least."""


@dataclass(frozen=True, eq=False)
class Posture:
    """A configuration that is shown.

    Attributes
    ----------
    mech : Mechanism
    q : (nq,) array
    gap : float
        The largest error of all constraint rows, scaled.
    closed : bool
        Whether that is as much as a certificate takes for closed.
    words : str
        Why it stands still; empty while it moves.
    motors : (nu,) array
        Where the motors are, rad or m, ``B' x`` of the numbers x of their coordinates; turns are
        counted on from drag to drag. A motor on a coordinate that is no number of its own, as of a
        ball joint, is at 0 where it was opened.
    ranges : (2, nu) array
        How far a slider goes.
    part : Partition or None
        Which rows count there; None where it is not closed, or singular.
    """

    mech: Mechanism
    q: Vector
    gap: float
    closed: bool
    words: str
    motors: Vector
    ranges: Array = field(repr=False)
    part: Partition | None = field(default=None, repr=False)


class Slider(NamedTuple):
    """What a motor is dragged by.

    Attributes
    ----------
    name : str
    unit : str
        ``"rad"`` or ``"m"``; empty where the motor acts on both.
    low, high, value : float
        The value may be outside, where turns were counted on.
    """

    name: str
    unit: str
    low: float
    high: float
    value: float


@quiet
def opened(mech: Mechanism, q: Any = None) -> Posture:
    """The closed posture nearest to a configuration.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like, optional
        Default: the reference.

    Returns
    -------
    Posture
        Where it does not close, the best one that was found: not `closed`, with the words of the
        error. The same words are there where it closes, but is singular.

    Raises
    ------
    InputError
        For what is no mechanism, or no configuration of it.
    """
    check_mechanism(mech)
    guess = mech.reference.copy() if q is None else check_configuration(mech, q, "q")
    words = ""
    try:
        found = assemble(mech, guess)[0]
    except AssemblyError as error:
        found, words = (guess if error.q is None else error.q), str(error)
    gap = _gap(mech, found)
    closed = not words and gap <= limit("closure", mech.tolerance)
    part, singular = _part_at(mech, found, 0.0) if closed else (None, "")
    words = words or singular
    motors = readings(mech, found, np.zeros(mech.nu))
    ranges = _ranges(mech, found, motors, part)
    return Posture(
        mech, read_only(found), gap, closed, words, read_only(motors), read_only(ranges), part
    )


@quiet
def dragged(posture: Posture, motor: int, target: float) -> Posture:
    """A motor led to a target along the closed motions, on the branch where it is.

    Other motors stay exactly where they are, as far as they are independent of it; others, where
    motors are more than motions, move as little as can be, to first order from step to step. Then
    a floating base, then all that no motor drives, moves as little as can be; so bodies that spin
    idly do not. There is no other memory than the posture: where motors follow, the way back need
    not end where the way there began.

    It goes in steps of about 0.1 rad, however far the target is, each followed by Newton's method
    with a sign of the determinant that stays (paths/path_continuation.py), and is closed to 1e-11
    of the rows that count, where Newton's method converges to 2e-13. Limits of joints are looked at
    after each step. Rows that depend on time are those at t = 0.

    Parameters
    ----------
    posture : Posture
    motor : int
        Its place in u.
    target : float
        rad or m, in the numbers of `Posture.motors`.

    Returns
    -------
    Posture
        At the target, without words; or as far as it goes, with words that say why it stops: a dead
        point, a singular configuration, the limit of a joint, a motor that is locked.

    Raises
    ------
    InputError
        For a motor that there is not, a target that is no number.
    """
    mech = posture.mech
    motor = whole("motor", motor, 0)
    if motor >= mech.nu:
        raise InputError(f"motor must be less than {mech.nu}, the number of motors; got {motor}")
    target = number("target", target, "rad or m")
    if not posture.closed or posture.part is None:  # open, or singular: the words say so
        return posture
    way = target - float(posture.motors[motor])
    start = DragPoint(posture.q, posture.motors.copy(), posture.part, posture.gap)
    if way == 0.0:
        return replace(posture, words="")
    there, words = drag_along(mech, start, way, motor)
    if not words:
        there.motors[motor] = target  # not what rounding made of it
    part = repartitioned(mech, there.part, there.q, np.zeros(mech.nv))
    return replace(
        posture, q=read_only(there.q), gap=there.gap, words=words,
        motors=read_only(there.motors), part=part,
    )  # fmt: skip


@quiet
def moved(posture: Posture, q: Vector, t: float = 0.0) -> Posture:
    """The posture at another configuration, as it is: nothing is closed there.

    Parameters
    ----------
    posture : Posture
        One before it, from which turns of motors are counted on.
    q : (nq,) array
        Such as that of a motion that is played, or of a recorded instant, at t, s.

    Returns
    -------
    Posture
        Not `closed` where the error is larger than a certificate takes; with words where it is
        singular.
    """
    mech, gap, words, part = posture.mech, _gap(posture.mech, q, t), "", posture.part
    if closed := gap <= limit("closure", mech.tolerance):
        part, words = _part_at(mech, q, t, part)
    motors = readings(mech, q, posture.motors + mech.B.T @ pin.difference(mech.model, posture.q, q))
    return replace(
        posture, q=read_only(q), gap=gap, closed=closed, words=words, motors=read_only(motors),
        part=part,
    )  # fmt: skip


def sliders(posture: Posture) -> tuple[Slider, ...]:
    """A slider for each motor, in the order of u.

    Their ranges are those of the limits, without any half a turn both ways from where the posture
    was opened; of slides 0.3 of the size of the loop. A rotor, a body that only couplings tie to
    others, goes as far as moves these so much.
    """
    mech = posture.mech
    units = [{"N": "m", "N m": "rad"}.get(unit, "") for unit in motor_units(mech)]
    return tuple(
        Slider(name, unit, float(low), float(high), float(value))
        for name, unit, low, high, value in zip(
            mech.actuator_names, units, *posture.ranges, posture.motors, strict=True
        )
    )


def _part_at(
    mech: Mechanism, q: Vector, t: float, part: Partition | None = None
) -> tuple[Partition | None, str]:
    """The partition at a closed configuration, by the one before; where it is singular the words
    of the error."""
    try:
        if part is None:
            return partition(mech, q), ""
        return repartitioned(mech, part, q, np.zeros(mech.nv), t), ""
    except HoloctlError as error:
        return part, str(error)


def _gap(mech: Mechanism, q: Vector, t: float = 0.0) -> float:
    return largest(scaled_jacobian(mech, q, t)[1])


# -------------------------------------------------------------------------------------- ranges


def _ranges(mech: Mechanism, q: Vector, motors: Vector, part: Partition | None) -> Array:
    """(2, nu): lowest and highest positions of sliders."""
    bound, slides = drag_model(mech).limits, drag_model(mech).slides
    found = np.zeros((2, mech.nu))
    for i, here in enumerate(motors.tolist()):
        reach = _reach(mech, q, part, i)
        low, high = here - reach, here + reach
        on = np.flatnonzero(mech.B[:, i])
        at = np.flatnonzero(bound.columns == on[0]) if on.size == 1 else on[:0]
        if at.size:
            b = float(mech.B[on[0], i])
            ends = sorted((b * bound.position[:, at[0]]).tolist())
            wide = ends[1] - ends[0] > max(SLIDER_TURNS, 2.0 * reach)
            if wide and not slides[i]:
                low, high = max(low, ends[0]), min(high, ends[1])
            else:
                low = ends[0] if np.isfinite(ends[0]) else low
                high = ends[1] if np.isfinite(ends[1]) else high
            if low > high:  # far past a limit: back over it as well
                low, high = min(low, high - reach), max(high, low + reach)
        found[:, i] = min(low, here), max(high, here)
    return found


def _reach(mech: Mechanism, q: Vector, part: Partition | None, motor: int) -> float:
    """How far a motor goes both ways where nothing limits it."""
    model = drag_model(mech)
    unit = float(model.unit[motor])
    reach = SLIDER_SLIDE * unit if model.slides[motor] else np.pi * unit
    on = np.flatnonzero(mech.B[:, motor])
    if part is None or on.size != 1 or not np.isin(on, model.rotors).all():
        return reach
    t = least_motion(mech, motions_at(mech, part, q), motor)
    if t is None:
        return reach
    others = np.abs(np.delete(t, on[0]))
    return float(np.pi * unit / max(largest(others), ROTOR_MOVES)) if others.any() else reach
