"""Bounds of the accelerations of limited coordinates: laws/acceleration_bounds.py for floats.

Near a limit of velocity the bounds hold also at the end of the tick, where the acceleration under
the same efforts has changed (`narrowed`).
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector
from holoctl.base.tolerances import (
    BRAKE_SHARE,
    NEAR_SPEED,
    POSITION_MARGIN,
    TICKS_AHEAD,
    VELOCITY_MARGIN,
)
from holoctl.laws.acceleration_bounds import (
    Operations,
    at_both_ends,
    by_position,
    by_velocity,
    led_back,
)
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = ["FLOATS", "acceleration_bounds", "most_acceleration", "narrowed", "safe_range"]

Sides = NDArray[np.bool_]

FLOATS = Operations(
    min, max, lambda x, y: x and y, sqrt, lambda holds, one, two: one() if holds else two()
)


def most_acceleration(
    room: float, v: float, v_min: float, v_max: float, brake: float, tick: float, unit: float
) -> float:
    """The largest acceleration that keeps a coordinate below its limits.

    Parameters
    ----------
    room : float
        ``q_max - q``, rad or m; inf without a limit.
    v, v_min, v_max : float
        Velocity and its limits, rad/s or m/s; v_min, below zero, is the speed of return to a limit.
    brake : float
        The acceleration with which the coordinate can brake, above 0, rad/s^2 or m/s^2.
    tick : float
        The tick, s.
    unit : float
        The factor of the margins: 1 for an angle, a length in m for a length.
    """
    most: float = by_velocity(FLOATS, v, v_max, unit, tick)
    if room == inf:
        return most
    there: float
    if room < 0.0:
        there = led_back(FLOATS, room, v, v_min, unit, tick)
    else:
        there = by_position(FLOATS, room, v, v_min, brake, unit, tick)
    return min(most, there)


def acceleration_bounds(
    bound: BoundLimits, braking: Array, q: Vector, v: Vector, tick: float
) -> tuple[Vector, Vector]:
    """Lower and upper bounds of the accelerations of the coordinates that are limited.

    They always contain the nearer end of the range of braking accelerations, so that they never
    require more; if both sides exclude each other, both are set to their mean.

    Parameters
    ----------
    bound : BoundLimits
    braking : (2, n) array
        The accelerations of each coordinate downwards and upwards, both above 0.
    q, v : (n,) arrays
        Positions and velocities of these coordinates.
    tick : float
        The tick, s.
    """
    lower, upper = np.zeros((2, q.size))
    table = zip(
        q.tolist(), v.tolist(), *bound.position.tolist(), *bound.velocity.tolist(),
        *bound.acceleration.tolist(), *braking.tolist(), bound.units.tolist(), strict=True,
    )  # fmt: skip
    for i, (x, rate, x_lo, x_hi, v_lo, v_hi, a_lo, a_hi, down, up, unit) in enumerate(table):
        most = max(most_acceleration(x_hi - x, rate, v_lo, v_hi, down, tick, unit), -down)
        least = min(-most_acceleration(x - x_lo, -rate, -v_hi, -v_lo, up, tick, unit), up)
        most, least = min(most, a_hi), max(least, a_lo)
        if least > most:
            least = most = 0.5 * (least + most)
        lower[i], upper[i] = least, most
    return lower, upper


def narrowed(
    least: Vector, most: Vector, near: Sides, v: Vector, rise: Vector, fall: Vector, tick: float
) -> tuple[Vector, Vector]:
    """Bounds of accelerations that hold also at the end of the tick, for coordinates near their
    limits of velocity.

    Parameters
    ----------
    least, most : (n,) arrays
        `acceleration_bounds`.
    near : (2, n) array of bool
        Which coordinates are near, downwards and upwards.
    v, rise, fall : (n,) arrays
        Velocities, and the largest and least change of the accelerations within the tick under
        held efforts.
    tick : float
        The tick, s.
    """
    lower, upper = least.copy(), most.copy()
    given = least, most, v, rise, fall, *near
    table = zip(*(x.tolist() for x in given), strict=True)
    for i, (low, high, rate, more, less, down, up) in enumerate(table):
        if up:
            upper[i] = at_both_ends(FLOATS, low, high, rate, more, tick)
        if down:
            lower[i] = -at_both_ends(FLOATS, -high, -low, -rate, -less, tick)
    return lower, upper


def safe_range(bound: BoundLimits, braking: Array, tick: float) -> Array | None:
    """Ranges (2, 3 n) of positions, velocities and accelerations of the limited coordinates, in
    this order, that are within all bounds in any combination, and not near a limit of velocity;
    None if there are none.

    A slow coordinate may have any position farther from its limits than its braking distance:

        reach = v dt + a dt^2 / 2 + (v + a dt)^2 / (2 brake)
    """
    dt = TICKS_AHEAD * tick
    half = 0.5 * (bound.position[1] - bound.position[0])
    some, both = np.isfinite(bound.position).any(axis=0), np.isfinite(half)
    fastest = np.minimum(-bound.velocity[0], bound.velocity[1]) - bound.units * VELOCITY_MARGIN
    quick = np.isfinite(fastest)
    a = np.minimum(braking.min(axis=0), np.abs(bound.acceleration).min(axis=0))
    brake = BRAKE_SHARE * braking.min(axis=0)
    v = 0.5 * fastest
    v[some] = np.minimum(v, 0.1 * brake)[some]  # a tenth of a second to brake
    v[both] = np.minimum(v, np.sqrt(0.5 * brake * np.where(both, half, 1.0)))[both]
    brake[quick] = np.minimum(brake, fastest / dt)[quick]
    near = np.minimum(fastest, NEAR_SPEED * np.abs(bound.velocity).min(axis=0))
    a[quick] = np.minimum(a, (near - np.where(quick, v, 0.0)) / dt)[quick]
    if not (v > 0.0).all() or not (a > 0.0).all():
        return None
    reach = np.zeros(half.size)
    v_, a_, brake_ = v[some], a[some], brake[some]
    reach[some] = v_ * dt + 0.5 * a_ * dt * dt + (v_ + a_ * dt) ** 2 / (2.0 * brake_)
    reach += bound.units * POSITION_MARGIN
    if not (reach[both] < half[both]).all():
        return None
    low, high = bound.position[0] + reach, bound.position[1] - reach
    return np.array([np.concatenate([low, -v, -a]), np.concatenate([high, v, a])])
