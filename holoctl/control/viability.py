"""Bounds of accelerations that keep positions and velocities within their limits: viability.

From now on the acceleration is constant for a time dt. On the upper side, with room = q_max - q:

    a <= (v_max - v) / dt                                          the velocity after it
    a <= 2 (room - dt v) / dt^2                                    the position after it, where v
                                                                   does not turn within dt; else
    a <= min(-v^2 / (2 room), -v / dt)                             where it turns
    a <= max(-v / dt, (sqrt(b^2 - 4 dt^2 x) - b) / (2 dt^2))       afterwards it can still stop
         b = dt (2 v + brake dt),  x = v^2 - 2 brake (room - dt v),  brake <= -v_min / dt

and the lower side is its mirror. brake is how hard the coordinate can be braked. dt is longer than
a tick, brake less than all of it, and there are margins, for in a tick the acceleration of a closed
chain varies. What is beyond a limit is led back gently. Near a limit of velocity the bounds hold at
the end of the tick too, where the acceleration under the same efforts is another one (`narrowed`).

References: A. Del Prete, Joint position and velocity bounds in discrete-time acceleration/torque
control of robot arms, IEEE Robotics and Automation Letters (2018); docs/derivations.md, "Limits".
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.tolerances import (
    BRAKE_SHARE,
    LED_BACK_TICKS,
    POSITION_MARGIN,
    TICKS_AHEAD,
    VELOCITY_MARGIN,
)
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = ["acceleration_bounds", "most_acceleration", "narrowed", "near_speed", "safe_range"]

Array = NDArray[np.float64]


def most_acceleration(
    room: float, v: float, v_min: float, v_max: float, brake: float, tick: float, unit: float
) -> float:
    """The largest acceleration that keeps a coordinate below its limits.

    Parameters
    ----------
    room : float
        ``q_max - q``, rad or m; inf without a limit.
    v, v_min, v_max : float
        rad/s or m/s; v_min, below zero, is how fast it may be led back.
    brake : float
        How hard the coordinate can be braked, above 0, rad/s^2 or m/s^2.
    tick : float
        s.
    unit : float
        What the margins are multiplied with: 1 for an angle, a length in m for a length.
    """
    dt, back = TICKS_AHEAD * tick, LED_BACK_TICKS * tick
    left, margin = v_max - v, unit * VELOCITY_MARGIN
    most = left / dt if left >= 0.0 else left / back
    most -= margin / dt
    if room == inf:
        return most
    margin = unit * POSITION_MARGIN
    if room < 0.0:  # back as a critically damped spring pulls, but not further away, nor faster
        room = max(room, 2.0 * back * BRAKE_SHARE * v_min)
        by_position = (room / back - 2.0 * v) / back - 2.0 * margin / (dt * dt)
        return min(most, by_position, -v / dt) if v > 0.0 else min(most, by_position)
    room -= margin
    by_position = 2.0 * (room - dt * v) / (dt * dt)
    if v > 0.0 and room > 0.0 and by_position <= -v / dt:
        by_position = min(-v / dt, -v * v / (2.0 * room))
    usable = min(BRAKE_SHARE * brake, -v_min / dt)  # more would turn it too fast
    b, x = dt * (2.0 * v + usable * dt), v * v - 2.0 * usable * (room - dt * v)
    square, by_stopping = b * b - 4.0 * dt * dt * x, -v / dt
    if square >= 0.0:
        by_stopping = max(by_stopping, (sqrt(square) - b) / (2.0 * dt * dt))
    return min(most, by_position, by_stopping)


def acceleration_bounds(
    bound: BoundLimits, brakes: Array, q: Vector, v: Vector, tick: float
) -> tuple[Vector, Vector]:
    """Lower and upper bounds of the accelerations of the coordinates that are limited.

    They always contain the near end of what brakes can give, so that they ask for nothing that
    is harder; and where both sides exclude each other, they agree on the middle.

    Parameters
    ----------
    bound : BoundLimits
    brakes : (2, n) array
        How hard each coordinate can be accelerated downwards and upwards, both above 0.
    q, v : (n,) arrays
        Positions and velocities of these coordinates.
    tick : float
        s.
    """
    lower, upper = np.zeros((2, q.size))
    table = zip(
        q.tolist(), v.tolist(), *bound.position.tolist(), *bound.velocity.tolist(),
        *bound.acceleration.tolist(), *brakes.tolist(), bound.units.tolist(), strict=True,
    )  # fmt: skip
    for i, (x, rate, x_lo, x_hi, v_lo, v_hi, a_lo, a_hi, down, up, unit) in enumerate(table):
        most = max(most_acceleration(x_hi - x, rate, v_lo, v_hi, down, tick, unit), -down)
        least = min(-most_acceleration(x - x_lo, -rate, -v_hi, -v_lo, up, tick, unit), up)
        most, least = min(most, a_hi), max(least, a_lo)
        if least > most:
            least = most = 0.5 * (least + most)
        lower[i], upper[i] = least, most
    return lower, upper


def near_speed(near: Array, v: Vector) -> NDArray[np.bool_] | None:
    """(2, n): whether coordinates are near their limits of velocity, the lower and the upper ones:
    faster than `near` (2, n); None where none is."""
    below, above = (v < -near[0]).tolist(), (v > near[1]).tolist()
    return np.array([below, above]) if True in below or True in above else None


def narrowed(
    least: Vector, most: Vector, near: NDArray[np.bool_], v: Vector, change: Vector, tick: float
) -> tuple[Vector, Vector]:
    """Bounds of accelerations that hold at the end of the tick too, for coordinates that are `near`
    their limits of velocity: never more than what stops them, nor past the other bound.

    Parameters
    ----------
    least, most : (n,) arrays
        `acceleration_bounds`.
    near : (2, n) array
        `near_speed`.
    v, change : (n,) arrays
        Velocities, and by how much accelerations change within the tick under held efforts.
    tick : float
        s.
    """
    stop, below, above = -v / (TICKS_AHEAD * tick), near[0], near[1]
    upper = np.maximum(most - np.maximum(change, 0.0), np.minimum(most, stop))
    lower = np.minimum(least - np.minimum(change, 0.0), np.maximum(least, stop))
    upper, lower = np.maximum(upper, least), np.minimum(lower, most)
    return np.where(below, lower, least), np.where(above, upper, most)


def safe_range(bound: BoundLimits, brakes: Array, tick: float) -> Array | None:
    """(2, 3 n): ranges of positions, velocities and accelerations of the limited coordinates, in
    this order, that are within all bounds in any combination; None where there are none such.

    Slow enough, a coordinate may be anywhere but where it has to brake:

        reach = v dt + a dt^2 / 2 + (v + a dt)^2 / (2 brake)
    """
    dt = TICKS_AHEAD * tick
    half = 0.5 * (bound.position[1] - bound.position[0])
    some, both = np.isfinite(bound.position).any(axis=0), np.isfinite(half)
    fastest = np.minimum(-bound.velocity[0], bound.velocity[1]) - bound.units * VELOCITY_MARGIN
    quick = np.isfinite(fastest)
    a = np.minimum(brakes.min(axis=0), np.abs(bound.acceleration).min(axis=0))
    brake = BRAKE_SHARE * brakes.min(axis=0)
    v = 0.5 * fastest
    v[some] = np.minimum(v, 0.1 * brake)[some]  # a tenth of a second to brake
    v[both] = np.minimum(v, np.sqrt(0.5 * brake * np.where(both, half, 1.0)))[both]
    brake[quick] = np.minimum(brake, fastest / dt)[quick]
    a[quick] = np.minimum(a, (fastest - np.where(quick, v, 0.0)) / dt)[quick]
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
