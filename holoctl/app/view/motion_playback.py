"""Closed configurations along a motion, as a film: to and fro, or one whole turn.

A motion to and fro is slow at its ends, ``s = A sin(2 pi k / n)``. If the motion stops earlier, the
film reverses a little before that point.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from holoctl.app.view.drag_path import DragPoint, drag_along
from holoctl.app.view.dragging import drag_model, least_motion, motions_at
from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest
from holoctl.base.tolerances import UNSEEN_MOTION
from holoctl.closing.body_graph import Bodies
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.kinematics import kinematics

__all__ = ["once_round", "to_and_fro"]

PLAYED_ANGLE = 0.3  # scaled
"""Amplitude of a motion in both directions."""

PLAYED_SHARE = 0.95
"""Amplitude of a motion that stops earlier, as a share of the distance at which it stops."""

PLAYED_BACK = 0.02  # scaled
"""Largest distance from the start after a whole turn of an idle spin; with a larger one it is
played to and fro."""


def to_and_fro(mech: Mechanism, start: DragPoint, motor: int, count: int) -> Array:
    """``(4 count + 1, nq)``, from the start to both sides and back, along the motion of `start` or
    of a motor."""
    q = start.q
    there, back = (_side(mech, start, motor, sign, count) for sign in (1.0, -1.0))
    return np.array([q, *there, *there[-2::-1], q, *back, *back[-2::-1], q])


def _side(mech: Mechanism, start: DragPoint, motor: int, sign: float, count: int) -> list[Vector]:
    """Configurations to one side, with decreasing steps."""
    if motor >= 0:
        t = least_motion(mech, motions_at(mech, start.part, start.q), motor)
        if t is None:
            return [start.q] * count
        others = np.delete(t, drag_model(mech).rotors)
        size = largest(others) if others.size and others.any() else largest(t)
        reach = PLAYED_ANGLE * float(drag_model(mech).unit[motor]) / size
        start = start._replace(motion=None)
    else:
        reach = PLAYED_ANGLE
    shares = np.sin(0.5 * np.pi * np.arange(1, count + 1) / count)
    found, distance = _along(mech, start, motor, sign * reach * shares)
    if len(found) < count:
        found, _ = _along(mech, start, motor, PLAYED_SHARE * distance * shares)
    return found + [found[-1] if found else start.q] * (count - len(found))


def _along(
    mech: Mechanism, start: DragPoint, motor: int, places: Vector
) -> tuple[list[Vector], float]:  # fmt: skip
    """Configurations at some distances along a motion, and the distance that was reached."""
    here, at, found = start, 0.0, list[Vector]()
    for place in places.tolist():
        there, words = drag_along(mech, here, place - at, motor)
        if words:
            reached = there.motors[motor] - start.motors[motor] if motor >= 0 else at
            return found, float(reached)
        here, at = there, place
        found.append(here.q)
    return found, at


def once_round(mech: Mechanism, start: DragPoint, count: int) -> Array | None:
    """A whole turn of the body that rotates fastest; None if it does not return to the start."""
    here, found = start, [start.q]
    for _ in range(count):
        if here.motion is None:
            return None
        kin = kinematics(mech.model, workspace(mech), here.q, np.zeros(mech.nv), 0.0)
        bodies = Bodies(mech, kin, here.part.tolerance)
        rate = max(
            float(np.linalg.norm(bodies.twist(j, here.motion)[3:]))
            for j in range(1, mech.model.njoints)
        )
        if not rate > UNSEEN_MOTION:
            return None
        here, words = drag_along(mech, here, 2.0 * np.pi / count / rate)
        if words:
            return None
        found.append(here.q)
    distance = pin.difference(mech.model, here.q, start.q) / mech.column_scale
    if not largest(distance) <= PLAYED_BACK:
        return None
    found[-1] = start.q
    return np.array(found)
