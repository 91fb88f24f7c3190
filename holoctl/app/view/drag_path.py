"""The path of a drag: a motion from a closed configuration on one branch, as far as possible.

The path is divided into short steps. Each is followed like a path of a trajectory, with halved
steps if needed (design/paths/path_continuation.py), so that it never leaves its branch and ends
before a dead point. It also ends at limits of joints, and before rows that were left out as
redundant open.
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

DRAG_STEP = 0.1  # scaled
"""Largest expected motion of a coordinate in a step, except that of the dragged motor itself."""

DRAG_LONGEST = 0.5  # scaled
"""Largest motion of the dragged motor in a step, such as that of a rotor that moves all other
bodies slowly."""

DRAG_SHORTEST = 1e-5  # scaled
"""A drag stops if a step of this length is not accepted, and so at this distance from a dead
point."""

DRAG_LEAST = 1e-10  # scaled
"""Shortest step away from a dead point."""

DRAG_GAIN = 1e4
"""A drag stops if a coordinate moves by more than this times the dragged motor, scaled, and this
ratio has grown in the step."""

LIMIT_MET = 1e-7  # rad, m
"""Largest distance from a limit of a joint at which a drag stops, on the inner side."""

LIMIT_OVER = 1e-10  # rad, m
"""A position beyond its limit by less counts as within it."""


class DragPoint(NamedTuple):
    """A closed configuration on the path of a drag.

    Attributes
    ----------
    q : (nq,) array
    motors : (nu,) array
        Positions of the motors, rad or m, with turns counted.
    part : Partition
    gap : float
        The largest scaled error of all rows.
    motion : (nv,) array or None
        The motion of the last step, scaled; None if a motor is dragged.
    """

    q: Vector
    motors: Vector
    part: Partition
    gap: float
    motion: Vector | None = None


def drag_along(
    mech: Mechanism, here: DragPoint, distance: float, motor: int = -1
) -> tuple[DragPoint, str]:
    """The end of a drag, and why it ended early, in words; empty if it did not.

    Parameters
    ----------
    here : DragPoint
        Its `motion` is dragged if no motor is.
    distance : float
        rad or m of the motor; for a motion its length, scaled. Negative: backwards.
    motor : int
        Index of the dragged motor, -1 for none.
    """
    drag = _Drag(mech, motor, 1.0 if distance > 0.0 else -1.0)
    unit = float(drag_model(mech).unit[motor]) if motor >= 0 else 1.0
    left, words = abs(distance) / unit, ""
    while left > 0.0 and not words:
        T = motions_at(mech, here.part, here.q)
        t = _direction(drag, T, here)
        if t is None:
            return here, locked(mech, here.q, here.part, motor)
        if words := _pressed(mech, here.q, drag.sign * t * mech.column_scale):
            return here, words
        here, done, words = _step(drag, here, T, t, min(left, _length(drag, t)))
        left -= done
    return here, words


class _Drag(NamedTuple):
    """A dragged motor, or the motion of a `DragPoint` if `motor` is -1; and the direction."""

    mech: Mechanism
    motor: int
    sign: float


def _direction(drag: _Drag, T: Array, here: DragPoint) -> Vector | None:
    """The motion of the drag in the basis T, scaled: the least motion of a motor; else the
    projection of the last motion, normalised."""
    if drag.motor >= 0:
        return least_motion(drag.mech, T, drag.motor)
    if here.motion is None or not T.size:
        return None
    t: Vector = T @ (T.T @ here.motion)
    size = largest(t)
    return t / size if size > 0.5 * largest(here.motion) else None


def _length(drag: _Drag, t: Vector) -> float:
    """The length of a step: coordinates other than the motor move by at most `DRAG_STEP`."""
    others = t.copy()
    if drag.motor >= 0:
        others[drag.mech.B[:, drag.motor] != 0.0] = 0.0
    return min(max(DRAG_STEP / max(largest(others), DRAG_STEP), DRAG_STEP), DRAG_LONGEST)


class _DragStep(NamedTuple):
    """A prepared step: its square system, the held motors, its path and its first node."""

    system: System
    held: Indices
    path: Path
    begin: PathNode


def _step(
    drag: _Drag, here: DragPoint, T: Array, t: Vector, length: float
) -> tuple[DragPoint, float, str]:
    """The point after a step, the length of the step, and why it ended early."""
    mech, motor = drag.mech, drag.motor
    system, held = drag_system(mech, here.part, here.q, T, t, motor)
    step = _prepared(drag, here, system, held)
    if step is None:
        return here, 0.0, stop_reason(system, here.q, np.zeros(system.drive.scale.size), motor)
    step = _by_the_middle(drag, here, step, length)
    last, there = _followed(step, length)
    why = partial(stop_reason, last, there.q, step.path(there.s).value, motor)
    gain, before = (largest(x.d1 / mech.column_scale) for x in (there, step.begin))
    if gain > max(DRAG_GAIN, before):
        return here, 0.0, why()
    if motor >= 0 and not drag_model(mech).numbered[motor] and _turned_back(drag, last, there):
        if length > DRAG_SHORTEST:
            return _step(drag, here, T, t, 0.5 * length)
        return here, 0.0, why()
    if there.worst > max(LEFT_OPEN, here.part.tolerance):
        return here, 0.0, row_opens(mech, there.q, here.part)
    met = _at_a_limit(mech, step.begin, there, lambda s: _followed(step, s)[1])
    there, words = met or (there, "" if there.s == length else why())
    return _arrived(mech, here, last, there, step.held, t), there.s, words


def _prepared(drag: _Drag, here: DragPoint, system: System, held: Indices) -> _DragStep | None:
    """A step along a straight line of the dragged row; None if it has no first node."""
    mech, away = drag.mech, np.zeros(system.drive.scale.size)
    if held.size:  # correct the rounding errors of held motors
        error = here.motors - readings(mech, here.q, here.motors)
        away[1:] = (error / drag_model(mech).unit)[held]
    along, rest = np.zeros(away.size), np.zeros(away.size)
    along[0] = drag.sign

    def path(s: float) -> PathReference:
        return PathReference(away + s * along, along, rest)

    begin = node_at(system, path, here.q, 0.0)
    return None if begin is None else _DragStep(system, held, path, begin)


def _turned_back(drag: _Drag, system: System, there: PathNode) -> bool:
    """Whether a dead point was passed: the motion of the motor there leads back.

    For other motors the determinant shows this. For a motor on a ball joint it does not, as the
    rate of the motor is that of the driven row only at the start of a step.
    """
    mech = drag.mech
    t = least_motion(mech, motions_at(mech, system.part, there.q), drag.motor)
    return t is None or not drag.sign * float(t @ (there.d1 / mech.column_scale)) > 0.0


def _by_the_middle(drag: _Drag, here: DragPoint, step: _DragStep, length: float) -> _DragStep:
    """The step with the least motion at its middle, if the motion is not unique: forward and back
    are then nearly the same path."""
    if not step.system.idle.shape[1]:
        return step
    middle = _followed(step, 0.5 * length)[1]
    T = motions_at(drag.mech, here.part, middle.q)
    t = _direction(drag, T, here)
    if middle.s < 0.5 * length or t is None:
        return step
    system, held = drag_system(drag.mech, here.part, here.q, T, t, drag.motor)
    return _prepared(drag, here, system, held) or step


def _followed(step: _DragStep, length: float) -> tuple[System, PathNode]:
    """The last node of a step; next to a dead point it begins with shorter steps, if these lead
    away from it."""
    system, path, begin = step.system, step.path, step.begin
    last, there = as_far(system, path, begin, length, DRAG_SHORTEST)
    if there.s > 0.0:
        return last, there
    away, first = as_far(system, path, begin, min(length, DRAG_SHORTEST), DRAG_LEAST)
    if away.part is not system.part or first.s == 0.0 or first.K.size <= begin.K.size:
        return last, there
    return as_far(away, path, first, length, DRAG_SHORTEST)


def _arrived(
    mech: Mechanism, here: DragPoint, system: System, there: PathNode, held: Indices, t: Vector
) -> DragPoint:
    motors = here.motors
    if mech.nu:
        moved = pin.difference(mech.model, here.q, there.q)
        motors = readings(mech, there.q, here.motors + mech.B.T @ moved)
        motors[held] = here.motors[held]  # without the rounding errors of held motors
    return DragPoint(there.q, motors, system.part, there.worst, None if here.motion is None else t)


# -------------------------------------------------------------------------------------- limits


def _pressed(mech: Mechanism, q: Vector, v: Vector) -> str:
    """The limit that a motion would exceed at once, in words; empty for none."""
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
    """The last node within the limits of joints, and its limit in words; None if all limits hold.

    A joint that was outside its limits may return, but not move farther out.
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
        # the joint over its limit at the far end whose limit is met first on the chord
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
