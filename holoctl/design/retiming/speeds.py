"""What motors can give along a path where that changes with their speed.

    lower + rises sd <= u <= upper - falls sd        for each of some lines

The curve of a motor is a polygon. Near a speed it is the piece there, and those other pieces whose
lines are above it there: a corner that bends down is exact, one that bends up is cut by the line of
its side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.design.paths.closed import ClosedPath
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = ["Box", "effort_boxes", "effort_range"]

Array = NDArray[np.float64]


class Box(NamedTuple):
    """See the head of this module; (n, nu) each, falls and rises at least 0."""

    lower: Array
    upper: Array
    rises: Array
    falls: Array


def effort_boxes(path: ClosedPath, bound: BoundLimits, sd: Vector) -> list[Box]:
    """The bounds of efforts near the speeds sd (n,): all of these hold; always as many."""
    n, nu = path.s.size, bound.effort.shape[1]
    lower, upper = (np.broadcast_to(x, (n, nu)) for x in bound.effort)
    whole = Box(lower, upper, *np.zeros((2, n, nu)))
    pieces = max((curve.shape[1] for curve in bound.curves if curve is not None), default=0)
    return [whole, *(_box(path, bound, sd, piece) for piece in range(pieces))]


def effort_range(path: ClosedPath, bound: BoundLimits, sd: Vector) -> tuple[Array, Array]:
    """Lower and upper bounds (n, nu) at these speeds."""
    box, (lower, upper) = _box(path, bound, sd, None), bound.effort
    return (
        np.maximum(lower, box.lower + box.rises * sd[:, None]),
        np.minimum(upper, box.upper - box.falls * sd[:, None]),
    )


def _box(path: ClosedPath, bound: BoundLimits, sd: Vector, piece: int | None) -> Box:
    """By the line of a piece, where it is above the curve at sd; else by the piece there."""
    n, nu = path.s.size, bound.effort.shape[1]
    lower, upper = (np.broadcast_to(x, (n, nu)).copy() for x in bound.effort)
    rises, falls = np.zeros((2, n, nu))
    rates = path.d1 @ path.system.mech.B
    for j, curve in enumerate(bound.curves):
        if curve is None:
            continue
        speeds, efforts = curve
        rate = np.abs(rates[:, j])
        slopes = np.append(-np.diff(efforts) / np.diff(speeds), 0.0)
        firsts = efforts + slopes * speeds
        here = np.searchsorted(speeds, rate * sd, side="right") - 1
        at, slope = firsts[here], slopes[here] * rate
        if piece is not None and piece < speeds.size:
            other = firsts[piece] - slopes[piece] * rate * sd >= at - slope * sd
            at = np.where(other, firsts[piece], at)
            slope = np.where(other, slopes[piece] * rate, slope)
        up, down = rates[:, j] > 0.0, rates[:, j] < 0.0
        upper[up, j], falls[up, j] = at[up], slope[up]
        lower[down, j], rises[down, j] = -at[down], slope[down]
    return Box(lower, upper, rises, falls)
