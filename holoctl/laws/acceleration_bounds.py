"""Limits of joints: the accelerations that keep them, and what held efforts cause within a tick.

Efforts u beside those that were asked for, of which a is known, cause

    a(u) = a + Y (u - asked)

and a tick dt later, held, the mechanism is at

    q (+) (dt v + dt^2 a / 2)        v + dt a

Bounds of accelerations are those of the viability kernel, the states from where limits can be kept
for ever. From now on the acceleration is constant for a time dt. On the upper side, with
room = q_max - q:

    a <= (v_max - v) / dt                                          the velocity after it
    a <= 2 (room - dt v) / dt^2                                    the position after it, where v
                                                                   does not turn within dt; else
    a <= min(-v^2 / (2 room), -v / dt)                             where it turns
    a <= max(-v / dt, (sqrt(b^2 - 4 dt^2 x) - b) / (2 dt^2))       afterwards it can still stop
         b = dt (2 v + brake dt),  x = v^2 - 2 brake (room - dt v),  brake <= -v_min / dt

and the lower side is its mirror. brake is how hard the coordinate can be braked. dt is longer than
a tick, brake less than all of it, and there are margins, for in a tick the acceleration of a closed
chain varies. What is beyond a limit is led back gently.

All of it is of one coordinate. A machine gives its `Operations` on numbers. The oracle of what
follows from the bounds are simulations; tests/control/test_viability_kernel.py.
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
"""What is beyond a limit is led back with a time constant of so many ticks."""


class Operations(NamedTuple):
    """What a machine does with numbers, beside sums and products.

    Attributes
    ----------
    least, most, both : functions of two
        The smaller one, the larger one; of two conditions whether they hold.
    sqrt : function
    choose : function (condition, one, two)
        Of two functions without arguments, what the first returns where the condition holds, else
        what the second returns.
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
        rad or m, rad/s or m/s; a position without a number of its own, which has no limit, is 0.
    J : (n, nv)
    bias : (n,)
        ``d velocities / dt = J a + bias``
    columns : int array or None
        J selects these; None where it does more.
    """

    positions: Any
    velocities: Any
    J: Any
    bias: Any
    columns: Any = None

    def accelerations(self, a: Any) -> Any:
        """d velocities / dt where the mechanism accelerates by a."""
        return times(self.J, a) + self.bias if self.columns is None else a[self.columns]

    def moved(self, Y: Any) -> Any:
        """``J Y``."""
        return times(self.J, Y) if self.columns is None else Y[self.columns]


# ------------------------------------------------------------------------------- within a tick


def caused(a: Any, Y: Any, u: Any, asked: Any) -> Any:
    """The accelerations that the efforts u cause, where those asked for cause a."""
    return a + times(Y, u - asked)


def a_tick_on(v: Any, a: Any, tick: float) -> tuple[Any, Any]:
    """The step of the configuration within a tick, and the velocity behind it."""
    return tick * v + (0.5 * tick * tick) * a, v + tick * a


# -------------------------------------------------------------------- bounds of one coordinate


def stop(v: Any, tick: float) -> Any:
    """The acceleration that stops a coordinate."""
    return -v / (TICKS_AHEAD * tick)


def by_velocity(n: Operations, v: Any, v_max: Any, size: Any, tick: float) -> Any:
    """The largest acceleration that keeps a coordinate slower than v_max.

    `size` is what margins are multiplied with: 1 for an angle, a length in m for a length.
    """
    dt, back, left = TICKS_AHEAD * tick, LED_BACK_TICKS * tick, v_max - v
    most = n.most(left / dt, left / back)  # back takes longer: the second where left is below zero
    return most - size * (VELOCITY_MARGIN / dt)


def by_position(
    n: Operations, room: Any, v: Any, v_min: Any, brake: Any, size: Any, tick: float
) -> Any:
    """The largest acceleration that keeps a coordinate within its room, which is not below zero."""
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
    """The same with room below zero: back as a critically damped spring pulls, but not further
    away, nor faster than v_min, below zero."""
    dt, back = TICKS_AHEAD * tick, LED_BACK_TICKS * tick
    margin, room = size * POSITION_MARGIN, n.most(room, 2.0 * back * BRAKE_SHARE * v_min)
    there = (room / back - 2.0 * v) / back - 2.0 * margin / (dt * dt)
    return n.choose(v > 0.0, lambda: n.least(there, stop(v, tick)), lambda: there)


def at_both_ends(n: Operations, least: Any, most: Any, v: Any, change: Any, tick: float) -> Any:
    """An upper bound that holds at the end of the tick too, where under held efforts the
    acceleration changes: never less than what stops a coordinate, nor past the lower bound."""
    kept = n.most(most - n.most(change, 0.0), n.least(most, stop(v, tick)))
    return n.most(kept, least)
