"""Bounds of the motor efforts at the present speeds.

lower <= u <= upper             always
|u| <= curve(|rate|)            where a motor drives: u and rate of one sign
|u| <= curve(0)                 where it brakes
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Vector
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = ["effort_bounds", "effort_bounds_at_any_rate", "least_efforts"]


def effort_bounds(bound: BoundLimits, rates: Vector) -> tuple[Vector, Vector]:
    """Lower and upper bounds of the efforts at these rates of the motors, each (nu,)."""
    lower, upper = bound.effort.copy()
    for i, curve in enumerate(bound.curves):
        if curve is None:
            continue
        rate = float(rates[i])
        most = float(np.interp(abs(rate), curve[0], curve[1]))
        if rate > 0.0:
            upper[i] = max(min(upper[i], most), lower[i])
        elif rate < 0.0:
            lower[i] = min(max(lower[i], -most), upper[i])
    return lower, upper


def effort_bounds_at_any_rate(bound: BoundLimits) -> tuple[Vector, Vector]:
    """Lower and upper bounds of the efforts that hold at all speeds, each (nu,)."""
    lower, upper = bound.effort.copy()
    for i, curve in enumerate(bound.curves):
        if curve is not None:
            least = float(curve[1, -1])
            lower[i] = min(max(lower[i], -least), upper[i])
            upper[i] = max(min(upper[i], least), lower[i])
    return lower, upper


def least_efforts(bound: BoundLimits) -> Vector:
    """The efforts nearest to zero that are within their limits, (nu,)."""
    lower, upper = bound.effort
    least: Vector = np.minimum(np.maximum(0.0, lower), upper)
    return least
