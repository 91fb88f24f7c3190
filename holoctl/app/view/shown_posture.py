"""The shown configuration, and its drags by motors along the closed motions.

A posture is a value; a drag returns another one. All data between drags is in the posture: its
partition, the positions of the motors with turns counted, and the ranges of the sliders.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.app.units import position_units
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

SLIDER_TURNS = 12.6  # rad
"""Largest range of limits that is the range of a slider; with a larger one it is half a turn in
both directions."""

SLIDER_SLIDE = 0.3
"""Range of a slider without limits of a prismatic joint, in both directions, in sizes of the
loop."""

ROTOR_MOVES = 1e-6
"""Smallest ratio of the motion of other coordinates to that of a rotor in the range of its
slider."""


@dataclass(frozen=True, eq=False)
class Posture:
    """A shown configuration.

    Attributes
    ----------
    mech : Mechanism
    q : (nq,) array
    gap : float
        The largest error of all constraint rows, scaled.
    closed : bool
        Whether a certificate accepts that error.
    words : str
        Why a drag stopped, or the error of a posture that is open or singular; else empty.
    motors : (nu,) array
        Positions of the motors, rad or m, ``B' x`` with the positions x of their coordinates; turns
        are counted from drag to drag. A motor without single coordinates, on a ball joint for
        example, is at 0 in the first posture.
    ranges : (2, nu) array
        Ranges of the sliders.
    part : Partition or None
        The partition at q; None if the first posture is not closed, or singular.
    singular : bool
        Whether constraints are singular at q; the partition is then that of a posture before it.
    """

    mech: Mechanism
    q: Vector
    gap: float
    closed: bool
    words: str
    motors: Vector
    ranges: Array = field(repr=False)
    part: Partition | None = field(default=None, repr=False)
    singular: bool = False


class Slider(NamedTuple):
    """The slider of a motor.

    Attributes
    ----------
    name : str
    unit : str
        ``"rad"`` or ``"m"``; empty if the motor acts on both.
    low, high, value : float
        The value may be outside the range after whole turns.
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
        If the mechanism does not close, the best configuration that was found: not `closed`, with
        the error in its words. At a singular configuration the words also have the error.

    Raises
    ------
    InputError
        For a value that is not a mechanism, or not a configuration of it.
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
        mech, read_only(found), gap, closed, words, read_only(motors), read_only(ranges), part,
        bool(singular),
    )  # fmt: skip


@quiet
def dragged(posture: Posture, motor: int, target: float) -> Posture:
    """The posture after a drag of a motor to a target along the closed motions, on the same branch.

    Other motors that are independent of it are held exactly; with more motors than motions,
    dependent motors move as little as possible, to first order in each step. After them a floating
    base, and then all coordinates without motor, move as little as possible; so bodies that spin
    idly do not move. The path depends on the posture alone: if other motors move, a drag back need
    not return to the start.

    Steps are about 0.1 rad for any target. Each is followed by Newton's method with an unchanged
    sign of the determinant (paths/path_continuation.py); the closure error of the kept rows is at
    most 1e-11, with Newton's method converged to 2e-13. Limits of joints are checked after each
    step. Rows that depend on time are evaluated at t = 0.

    Parameters
    ----------
    posture : Posture
    motor : int
        Index of the motor in u.
    target : float
        Target position, rad or m, as in `Posture.motors`.

    Returns
    -------
    Posture
        At the target, without words; or at the last possible position, with words that say why the
        drag stops: a dead point, a singular configuration, a limit of a joint, a locked motor.

    Raises
    ------
    InputError
        If there is no such motor, or the target is not a number.
    """
    mech = posture.mech
    motor = whole("motor", motor, 0)
    if motor >= mech.nu:
        raise InputError(f"motor must be less than {mech.nu}, the number of motors; got {motor}")
    target = number("target", target, "rad or m")
    if not posture.closed or posture.part is None:  # its words say that it is open or singular
        return posture
    distance = target - float(posture.motors[motor])
    start = DragPoint(posture.q, posture.motors.copy(), posture.part, posture.gap)
    if distance == 0.0:
        return replace(posture, words="")
    there, words = drag_along(mech, start, distance, motor)
    if not words:
        there.motors[motor] = target  # without its rounding error
    part = repartitioned(mech, there.part, there.q, np.zeros(mech.nv))
    return replace(
        posture, q=read_only(there.q), gap=there.gap, words=words,
        motors=read_only(there.motors), part=part, singular=False,
    )  # fmt: skip


@quiet
def moved(posture: Posture, q: Vector, t: float = 0.0) -> Posture:
    """The posture at another configuration, without closing it.

    Parameters
    ----------
    posture : Posture
        The posture before it, from which turns of motors are counted.
    q : (nq,) array
        For example a configuration of a motion, or of a recorded instant at t, s.

    Returns
    -------
    Posture
        Not `closed` if the error is larger than a certificate accepts; with words if it is
        singular.
    """
    mech, gap, words, part = posture.mech, _gap(posture.mech, q, t), "", posture.part
    if closed := gap <= limit("closure", mech.tolerance):
        part, words = _part_at(mech, q, t, part)
    motors = readings(mech, q, posture.motors + mech.B.T @ pin.difference(mech.model, posture.q, q))
    return replace(
        posture, q=read_only(q), gap=gap, closed=closed, words=words, motors=read_only(motors),
        part=part, singular=bool(words),
    )  # fmt: skip


def sliders(posture: Posture) -> tuple[Slider, ...]:
    """A slider for each motor, in the order of u.

    Their ranges are those of the limits. Without limits they are half a turn in both directions
    from the first posture, or 0.3 sizes of the loop for prismatic joints. For a rotor, a body that
    only couplings tie to others, the range is that which moves the others by as much.
    """
    mech = posture.mech
    return tuple(
        Slider(name, unit, float(low), float(high), float(value))
        for name, unit, low, high, value in zip(
            mech.actuator_names, position_units(mech), *posture.ranges, posture.motors, strict=True
        )
    )


def _part_at(
    mech: Mechanism, q: Vector, t: float, part: Partition | None = None
) -> tuple[Partition | None, str]:
    """The partition at a closed configuration, if possible that before it, and the error in words
    if the configuration is singular."""
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
            if low > high:  # far past a limit: the range includes the way back
                low, high = min(low, high - reach), max(high, low + reach)
        found[:, i] = min(low, here), max(high, here)
    return found


def _reach(mech: Mechanism, q: Vector, part: Partition | None, motor: int) -> float:
    """The range of a slider in both directions without limits."""
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
