"""What motors can give along a path where that changes with their speed.

    lower + rises sd <= u <= upper - falls sd

The curve of a motor is followed by the lines of its pieces: near a speed, by that piece.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.design.path_closed import ClosedPath
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = ["Box", "effort_box"]

Array = NDArray[np.float64]


class Box(NamedTuple):
    """See the head of this module; (n, nu) each, falls and rises at least 0."""

    lower: Array
    upper: Array
    rises: Array
    falls: Array


def effort_box(path: ClosedPath, bound: BoundLimits, sd: Vector) -> Box:
    """The bounds of efforts, linearised at the speeds sd (n,)."""
    n, nu = path.s.size, bound.effort.shape[1]
    lower, upper = (np.broadcast_to(x, (n, nu)).copy() for x in bound.effort)
    rises, falls = np.zeros((2, n, nu))
    rates = path.d1 @ path.system.mech.B
    for j, curve in enumerate(bound.curves):
        if curve is None:
            continue
        speeds, efforts = curve
        rate = np.abs(rates[:, j])
        piece = np.searchsorted(speeds, rate * sd, side="right") - 1
        last = speeds.size - 1
        slope = np.append(-np.diff(efforts) / np.diff(speeds), 0.0)[np.minimum(piece, last)]
        at = efforts[np.minimum(piece, last)] + slope * speeds[np.minimum(piece, last)]
        now = at - slope * rate * sd
        up = (rates[:, j] > 0.0) & (now < upper[:, j])
        down = (rates[:, j] < 0.0) & (-now > lower[:, j])
        upper[up, j], falls[up, j] = at[up], (slope * rate)[up]
        lower[down, j], rises[down, j] = -at[down], (slope * rate)[down]
    return Box(lower, upper, rises, falls)
