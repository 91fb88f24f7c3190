"""From a closed configuration along its motions, on one branch, as far as it goes.

A way is taken in short steps. Each is followed as a path is, with halved steps where need be
(design/paths/path_continuation.py): so it never leaves its branch, and ends before a dead point. It
ends as well at the limits of joints, and where rows that were left out as redundant would open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.app.view.dragging import (
    DRAG_AT_REST,
    drag_model,
    drag_system,
    least_motion,
    motions_at,
    readings,
)
from holoctl.app.view.stop_reason import locked, row_opens, stop_reason
from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.linalg import largest
from holoctl.base.tolerances import LEFT_OPEN
from holoctl.design.paths.path_continuation import Path, PathNode, System, as_far, node_at
from holoctl.design.paths.path_system import PathReference
from holoctl.mechanism.bound_limits import BoundLimits
from holoctl.mechanism.limited_coordinates import coordinates_at
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["DragPoint", "drag_along"]

DRAG_STEP, DRAG_LONGEST = 0.1, 0.5  # scaled
"""A drag goes in steps in which nothing is expected to go farther than the first; a motor itself,
as a rotor does that moves all else slowly, may go as far as the second."""

DRAG_SHORTEST, DRAG_LEAST = 1e-5, 1e-10  # scaled
"""Where a step of the first length does not count, a drag stops: so far before a dead point. Steps
that lead away from one may be as short as the second."""

DRAG_GAIN = 1e4
"""Where a motor moves some coordinate by so many times what it moves itself, scaled, and by more on
the way, a drag stops."""

LIMIT_MET, LIMIT_OVER = 1e-7, 1e-10  # rad, m
"""A drag that stops at a limit of a joint stops so close to it, on the inside; over it by less than
the second is at it."""


class DragPoint(NamedTuple):
    """A closed configuration on a way.

    Attributes
    ----------
    q : (nq,) array
    motors : (nu,) array
        Where the motors are, rad or m, turns counted.
    part : Partition
    gap : float
        The largest scaled error of all rows.
    motion : (nv,) array or None
        The motion that led there, scaled, the last time; None for a motor.
    """

    q: Vector
    motors: Vector
    part: Partition
    gap: float
    motion: Vector | None = None


def drag_along(
    mech: Mechanism, here: DragPoint, way: float, motor: int = -1
) -> tuple[DragPoint, str]:
    """Where a way ends, and why there, in words; empty where that is its end.

    Parameters
    ----------
    here : DragPoint
        Its `motion` is led where no motor is.
    way : float
        rad or m of the motor; of a motion its length, scaled. Below zero: backwards.
    motor : int
        -1 for none.
    """
    drag = _Drag(mech, motor, 1.0 if way > 0.0 else -1.0)
    unit = float(drag_model(mech).unit[motor]) if motor >= 0 else 1.0
    left, words = abs(way) / unit, ""
    while left > 0.0 and not words:
        T = motions_at(mech, here.part, here.q)
        t = _direction(drag, T, here)
        if t is None:
            return here, locked(mech, here.q, here.part, motor)
        if words := _pressed(mech, here.q, drag.sign * t * mech.column_scale):
            return here, words
        here, gone, words = _step(drag, here, T, t, min(left, _length(drag, t)))
        left -= gone
    return here, words


class _Drag(NamedTuple):
    """What is dragged: a motor, or where that is -1 the motion of a point; and which way."""

    mech: Mechanism
    motor: int
    sign: float


def _direction(drag: _Drag, T: Array, here: DragPoint) -> Vector | None:
    """The motion of the drag among those in T, scaled: the least one of a motor; else the one
    before, as far as it is one here, of the same size."""
    if drag.motor >= 0:
        return least_motion(drag.mech, T, drag.motor)
    if here.motion is None or not T.size:
        return None
    t: Vector = T @ (T.T @ here.motion)
    size = largest(t)
    return t / size if size > 0.5 * largest(here.motion) else None


def _length(drag: _Drag, t: Vector) -> float:
    """How far a step may be: nothing but the motor itself goes farther than a short way."""
    others = t.copy()
    if drag.motor >= 0:
        others[drag.mech.B[:, drag.motor] != 0.0] = 0.0
    return min(max(DRAG_STEP / max(largest(others), DRAG_STEP), DRAG_STEP), DRAG_LONGEST)


class _DragStep(NamedTuple):
    """A step that is prepared: what is solved, what is held, and where it goes."""

    system: System
    held: Indices
    path: Path
    begin: PathNode


def _step(
    drag: _Drag, here: DragPoint, T: Array, t: Vector, length: float
) -> tuple[DragPoint, float, str]:
    """A step, how far it went, and why it ended before its end."""
    mech, motor = drag.mech, drag.motor
    system, held = drag_system(mech, here.part, here.q, T, t, motor)
    way = _way(drag, here, system, held)
    if way is None:
        return here, 0.0, stop_reason(system, here.q, np.zeros(system.drive.scale.size), motor)
    way = _by_the_middle(drag, here, way, length)
    last, there = _followed(way, length)
    why = partial(stop_reason, last, there.q, way.path(there.s).value, motor)
    gain, before = (largest(x.d1 / mech.column_scale) for x in (there, way.begin))
    if gain > max(DRAG_GAIN, before):
        return here, 0.0, why()
    if motor >= 0 and not drag_model(mech).numbered[motor] and _turned_back(drag, last, there):
        if length > DRAG_SHORTEST:
            return _step(drag, here, T, t, 0.5 * length)
        return here, 0.0, why()
    if there.worst > max(LEFT_OPEN, here.part.tolerance):
        return here, 0.0, row_opens(mech, there.q, here.part)
    met = _at_a_limit(mech, way.begin, there, lambda s: _followed(way, s)[1])
    there, words = met or (there, "" if there.s == length else why())
    return _arrived(mech, here, last, there, way.held, t), there.s, words


def _way(drag: _Drag, here: DragPoint, system: System, held: Indices) -> _DragStep | None:
    """A straight way of what is dragged; None where it cannot begin."""
    mech, away = drag.mech, np.zeros(system.drive.scale.size)
    if held.size:  # what rounding has left is made up for
        off = here.motors - readings(mech, here.q, here.motors)
        away[1:] = (off / drag_model(mech).unit)[held]
    along, rest = np.zeros(away.size), np.zeros(away.size)
    along[0] = drag.sign

    def path(s: float) -> PathReference:
        return PathReference(away + s * along, along, rest)

    begin = node_at(system, path, here.q, 0.0)
    return None if begin is None else _DragStep(system, held, path, begin)


def _turned_back(drag: _Drag, system: System, there: PathNode) -> bool:
    """Whether a dead point was passed: the motion that a motor leads there is the way back.

    The determinant tells of other motors. Of one on a ball joint it does not: its rates are not
    those of what a step is measured by, but at its beginning.
    """
    mech = drag.mech
    t = least_motion(mech, motions_at(mech, system.part, there.q), drag.motor)
    return t is None or not drag.sign * float(t @ (there.d1 / mech.column_scale)) > 0.0


def _by_the_middle(drag: _Drag, here: DragPoint, way: _DragStep, length: float) -> _DragStep:
    """The same way with the least motion of its middle, where that changes: so it is nearly the
    same way there and back."""
    if not way.system.idle.shape[1]:
        return way
    middle = _followed(way, 0.5 * length)[1]
    T = motions_at(drag.mech, here.part, middle.q)
    t = _direction(drag, T, here)
    if middle.s < 0.5 * length or t is None:
        return way
    system, held = drag_system(drag.mech, here.part, here.q, T, t, drag.motor)
    return _way(drag, here, system, held) or way


def _followed(way: _DragStep, length: float) -> tuple[System, PathNode]:
    """As far as it goes; right beside a dead point in shorter steps, if they lead away from it."""
    system, path, begin = way.system, way.path, way.begin
    last, there = as_far(system, path, begin, length, DRAG_SHORTEST)
    if there.s > 0.0:
        return last, there
    off, first = as_far(system, path, begin, min(length, DRAG_SHORTEST), DRAG_LEAST)
    if off.part is not system.part or first.s == 0.0 or first.K.size <= begin.K.size:
        return last, there
    return as_far(off, path, first, length, DRAG_SHORTEST)


def _arrived(
    mech: Mechanism, here: DragPoint, system: System, there: PathNode, held: Indices, t: Vector
) -> DragPoint:
    motors = here.motors
    if mech.nu:
        moved = pin.difference(mech.model, here.q, there.q)
        motors = readings(mech, there.q, here.motors + mech.B.T @ moved)
        motors[held] = here.motors[held]  # what they are held at, not what rounding made of it
    return DragPoint(there.q, motors, system.part, there.worst, None if here.motion is None else t)


# -------------------------------------------------------------------------------------- limits


def _pressed(mech: Mechanism, q: Vector, v: Vector) -> str:
    """Which limit a motion would leave at once; empty for none."""
    bound = drag_model(mech).limits
    if not bound.names:
        return ""
    at = coordinates_at(mech, bound, q, np.zeros(mech.nv), 0.0)
    rates, (low, high) = at.J @ v, bound.position
    least = DRAG_AT_REST * largest(v)
    up, down = high - at.positions < LIMIT_MET, at.positions - low < LIMIT_MET
    out = np.flatnonzero((up & (rates > least)) | (down & (rates < -least)))
    return _met(mech, bound, q, int(out[0]), bool(rates[out[0]] > 0.0)) if out.size else ""


def _met(mech: Mechanism, bound: BoundLimits, q: Vector, which: int, upper: bool) -> str:
    side = float(bound.position[1 if upper else 0][which])
    past = abs(_positions(mech, bound, q)[which] - side) > 10.0 * LIMIT_MET
    return f"{bound.names[which]!r} is {'past' if past else 'at'} its limit, {side:.4g}."


def _at_a_limit(
    mech: Mechanism, begin: PathNode, there: PathNode, at: Callable[[float], PathNode]
) -> tuple[PathNode, str] | None:
    """The last node within the limits of joints, and which one it is at; None where all hold.

    What was outside may come back, and goes no farther out.
    """
    bound = drag_model(mech).limits
    if not bound.names:
        return None
    start = _positions(mech, bound, begin.q)
    low, high = np.minimum(bound.position[0], start), np.maximum(bound.position[1], start)

    def beyond(node: PathNode) -> Vector:
        x = _positions(mech, bound, node.q)
        found: Vector = np.maximum(x - high, low - x)
        return found

    over = beyond(there)
    if not over.max() > LIMIT_OVER:
        return None
    inside, outside = begin, there
    f_in, f_out = np.minimum(beyond(begin), -0.0), over
    which = int(np.argmax(over))
    while f_in[which] < -LIMIT_MET and outside.s - inside.s > LIMIT_MET:
        # of all that are over at the far end, the one that is met first on the chord
        shares = np.where(f_out > 0.0, f_in / np.minimum(f_in - f_out, -1e-300), np.inf)
        share = float(np.clip(shares.min(), 0.05, 0.95))
        s = inside.s + share * (outside.s - inside.s)
        node = at(s)
        if node.s < s:
            break
        f = beyond(node)
        if f.max() > 0.0:
            outside, f_out, which = node, f, int(np.argmax(f))
        else:
            inside, f_in = node, f
    upper = bool(_positions(mech, bound, outside.q)[which] > high[which])
    return inside, _met(mech, bound, inside.q, which, upper)


def _positions(mech: Mechanism, bound: BoundLimits, q: Vector) -> Vector:
    x: Vector = coordinates_at(mech, bound, q, np.zeros(mech.nv), 0.0).positions
    return x
