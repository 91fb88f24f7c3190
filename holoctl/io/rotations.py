"""Rotations in the notations of robot descriptions."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector

__all__ = ["CYCLE", "quaternion", "turn", "z_to"]

CYCLE = np.roll(np.eye(3), 1, axis=0)
"""The rotation that turns z to x, x to y and y to z."""


def turn(axis: Vector, angle: float) -> Array:
    """The rotation about a unit vector by an angle, rad."""
    rotation: Array = pin.AngleAxis(angle, axis).toRotationMatrix()
    return rotation


def quaternion(w: float, x: float, y: float, z: float) -> Array:
    """The rotation of a unit quaternion."""
    rotation: Array = pin.Quaternion(w, x, y, z).toRotationMatrix()
    return rotation


def z_to(axis: Vector) -> Array:
    """The smallest rotation that turns z to a unit vector; half a turn about x for -z."""
    normal = np.array([-axis[1], axis[0], 0.0])  # z x axis
    sine = float(np.linalg.norm(normal))
    if sine < 1e-10:
        return np.eye(3) if axis[2] > 0.0 else np.diag([1.0, -1.0, -1.0])
    return turn(normal / sine, math.atan2(sine, axis[2]))
