"""Points of an axis that a joint fixes.

A joint is given by the relative twists of its bodies that it allows: (6, f), linear first.
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import least_squares

__all__ = ["can_hold", "held_points"]

MOST_FREE = 4
"""A joint that fixes a point of an axis allows three rotations about it and a translation along
it."""


def held_points(free: Array, w: Vector, at_rest: float) -> tuple[float, float] | None:
    """The points of the axis of w that a joint with these allowed twists keeps on the axis.

    An interval along the axis: one point, or all (from -inf to inf), as for a hinge. None if there
    is no axis, or none of its points is kept.
    """
    v, omega = w[:3], w[3:]
    size = float(np.linalg.norm(omega))
    if size <= at_rest or abs(v @ omega) > at_rest * size * float(np.linalg.norm(w)):
        return None  # a translation, or a screw motion
    n, foot = omega / size, np.cross(omega, v) / size**2

    def across(u: Array) -> Array:
        return (u - np.outer(u @ n, n)).ravel()

    a = across(free[:3].T + np.cross(free[3:].T, foot))
    b = across(np.cross(free[3:].T, n))
    one = float(b @ b) > at_rest**2
    along = -float(a @ b) / float(b @ b) if one else 0.0
    if float(np.abs(a + along * b).max(initial=0.0)) > at_rest * (1.0 + abs(along)):
        return None
    return (along, along) if one else (-np.inf, np.inf)


def can_hold(free: Array, at_rest: float) -> bool:
    """Whether a joint with these allowed twists fixes a point of some axis: the twists are
    rotations about a point, and at most one translation, along the axis."""
    if free.shape[1] > MOST_FREE:
        return False
    _, s, vt = np.linalg.svd(free[3:])
    turning = int(np.count_nonzero(s > at_rest))
    if turning == 0 or free.shape[1] > turning + 1:
        return False
    twists = free @ vt[:turning].T
    along = twists[3:, 0] if turning == 1 else np.zeros(3)
    if free.shape[1] > turning:
        along = free[:3] @ vt[turning]
    n = along / max(float(np.linalg.norm(along)), 1e-300)
    P = np.eye(3) - np.outer(n, n)
    A = np.vstack([-P @ _skew(omega) for omega in twists[3:].T])
    b = (P @ twists[:3]).T.ravel()
    return bool(np.abs(A @ least_squares(A, -b, rcond=at_rest) + b).max() <= at_rest)


def _skew(w: Vector) -> Array:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
