"""Limits of joints: bounds of their accelerations, and the motion under constant efforts in a tick.

If the commanded efforts cause the acceleration a, other efforts u cause

    a(u) = a + Y (u - commanded)

and after a tick dt of constant efforts the mechanism is at

    q (+) (dt v + dt^2 a / 2)        v + dt a

The bounds of accelerations are those of the viability kernel, the states from which limits can be
kept for ever. The acceleration is constant for a time dt. On the upper side, with room = q_max - q:

    a <= (v_max - v) / dt                                          the velocity after it
    a <= 2 (room - dt v) / dt^2                                    the position after it, where v
                                                                   does not turn within dt; else
    a <= min(-v^2 / (2 room), -v / dt)                             where it turns
    a <= max(-v / dt, (sqrt(b^2 - 4 dt^2 x) - b) / (2 dt^2))       afterwards it can still stop
         b = dt (2 v + brake dt),  x = v^2 - 2 brake (room - dt v),  brake <= -v_min / dt

and the lower side is its mirror image. brake is the braking acceleration that the coordinate can
reach. dt is longer than a tick, only a fraction of brake is used, and there are margins, because
the acceleration of a closed chain varies within a tick. A coordinate beyond its limit returns to it
with a time constant of some ticks.

All bounds are of one coordinate. The backend gives its `Operations` on numbers. Simulations test
that the bounds keep the limits: tests/control/test_viability_kernel.py.
References: A. Del Prete, Joint position and velocity bounds in discrete-time acceleration/torque
control of robot arms, IEEE Robotics and Automation Letters (2018); docs/derivations.md, "Limits".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from holoctl.base.tolerances import BRAKE_SHARE, POSITION_MARGIN, TICKS_AHEAD, VELOCITY_MARGIN
from holoctl.laws.operators import times

__all__ = [
    "LimitedCoordinates",
    "Operations",
    "a_tick_on",
    "at_both_ends",
    "by_position",
    "by_velocity",
    "caused",
    "led_back",
    "stop",
]

LED_BACK_TICKS = 20.0
"""Time constant, in ticks, with which a coordinate beyond its limit returns to it."""


class Operations(NamedTuple):
    """The operations of a backend on its numbers, in addition to sums and products.

    Attributes
    ----------
    least, most, both : functions of two
        The smaller of two numbers, the larger one; whether both of two conditions hold.
    sqrt : function
    choose : function (condition, one, two)
        `one` and `two` are functions without arguments: the value of the first if the condition
        holds, else that of the second.
    """

    least: Callable[[Any, Any], Any]
    most: Callable[[Any, Any], Any]
    both: Callable[[Any, Any], Any]
    sqrt: Callable[[Any], Any]
    choose: Callable[[Any, Callable[[], Any], Callable[[], Any]], Any]


class LimitedCoordinates(NamedTuple):
    """The n coordinates of `BoundLimits` at a state, those of the tree, then those of cut joints.

    Attributes
    ----------
    positions, velocities : (n,)
        rad or m, rad/s or m/s. A coordinate whose position is not a number (as of a ball joint) has
        no limit, and 0 here.
    J : (n, nv)
    bias : (n,)
        ``d velocities / dt = J a + bias``
    columns : int array or None
        J selects these coordinates; None if it is a general matrix.
    """

    positions: Any
    velocities: Any
    J: Any
    bias: Any
    columns: Any = None

    def accelerations(self, a: Any) -> Any:
        """d velocities / dt at the acceleration a of the mechanism."""
        return times(self.J, a) + self.bias if self.columns is None else a[self.columns]

    def moved(self, Y: Any) -> Any:
        """``J Y``."""
        return times(self.J, Y) if self.columns is None else Y[self.columns]


# ------------------------------------------------------------------------------- within a tick


def caused(a: Any, Y: Any, u: Any, commanded: Any) -> Any:
    """The accelerations that the efforts u cause, if the commanded ones cause a."""
    return a + times(Y, u - commanded)


def a_tick_on(v: Any, a: Any, tick: float) -> tuple[Any, Any]:
    """The step of the configuration within a tick, and the velocity after it."""
    return tick * v + (0.5 * tick * tick) * a, v + tick * a


# -------------------------------------------------------------------- bounds of one coordinate


def stop(v: Any, tick: float) -> Any:
    """The acceleration that stops a coordinate."""
    return -v / (TICKS_AHEAD * tick)


def by_velocity(n: Operations, v: Any, v_max: Any, size: Any, tick: float) -> Any:
    """The largest acceleration that keeps a coordinate slower than v_max.

    Margins are multiplied by `size`: 1 for an angle, the size of the loop in m for a length.
    """
    dt, back, left = TICKS_AHEAD * tick, LED_BACK_TICKS * tick, v_max - v
    # the second if left is below zero: the return to the limit takes longer
    most = n.most(left / dt, left / back)
    return most - size * (VELOCITY_MARGIN / dt)


def by_position(
    n: Operations, room: Any, v: Any, v_min: Any, brake: Any, size: Any, tick: float
) -> Any:
    """The largest acceleration that keeps a coordinate within its limit; `room`, the distance to
    it, is not below zero."""
    dt, halt = TICKS_AHEAD * tick, stop(v, tick)
    room = room - size * POSITION_MARGIN
    there = 2.0 * (room - dt * v) / (dt * dt)
    turns = n.both(n.both(v > 0.0, room > 0.0), there <= halt)
    there = n.choose(turns, lambda: n.least(halt, -v * v / (2.0 * room)), lambda: there)
    usable = n.least(BRAKE_SHARE * brake, -v_min / dt)  # more would turn it too fast
    b, x = dt * (2.0 * v + usable * dt), v * v - 2.0 * usable * (room - dt * v)
    square = b * b - 4.0 * dt * dt * x
    stopping = n.choose(
        square >= 0.0,
        lambda: n.most(halt, (n.sqrt(square) - b) / (2.0 * dt * dt)),
        lambda: halt,
    )
    return n.least(there, stopping)


def led_back(n: Operations, room: Any, v: Any, v_min: Any, size: Any, tick: float) -> Any:
    """The same beyond the limit, with `room` below zero: the acceleration of a critically damped
    spring towards the limit, at a speed of at most -v_min, v_min below zero."""
    dt, back = TICKS_AHEAD * tick, LED_BACK_TICKS * tick
    margin, room = size * POSITION_MARGIN, n.most(room, 2.0 * back * BRAKE_SHARE * v_min)
    there = (room / back - 2.0 * v) / back - 2.0 * margin / (dt * dt)
    return n.choose(v > 0.0, lambda: n.least(there, stop(v, tick)), lambda: there)


def at_both_ends(n: Operations, least: Any, most: Any, v: Any, change: Any, tick: float) -> Any:
    """An upper bound that holds at the end of the tick too, when the acceleration changes under
    constant efforts: never less than the acceleration that stops a coordinate, nor below the lower
    bound."""
    kept = n.most(most - n.most(change, 0.0), n.least(most, stop(v, tick)))
    return n.most(kept, least)
