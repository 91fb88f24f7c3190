"""Bounds of accelerations: a point that obeys them stays within its limits, and is led back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zoo import four_bar

import holoctl as hc
from holoctl.base.tolerances import NEAR_SPEED, POSITION_MARGIN, TICKS_AHEAD, VELOCITY_MARGIN
from holoctl.control.viability_kernel import acceleration_bounds, most_acceleration, safe_range
from holoctl.laws.acceleration_bounds import LED_BACK_TICKS
from holoctl.mechanism.bound_limits import bound_limits

DT = 1e-3


def bounds(position=(-1.0, 1.0), velocity=(-2.0, 2.0), acceleration=(-50.0, 50.0)):
    """One limited coordinate, and how hard it can be braked."""
    limits = hc.Limits(
        position={"crank": position}, velocity={"crank": velocity},
        acceleration={"crank": acceleration},
    )  # fmt: skip
    bound = bound_limits(four_bar(), limits)
    return bound, np.abs(bound.acceleration)


def least_and_most(bound, brakes, x, v, dt=DT):
    lower, upper = acceleration_bounds(bound, brakes, np.array([x]), np.array([v]), dt)
    return float(lower[0]), float(upper[0])


def moved(x, v, a, dt=DT):
    return x + dt * v + 0.5 * dt * dt * a, v + dt * a


@pytest.mark.parametrize("velocity", [(-2.0, 2.0), (-0.3, 5.0), (-np.inf, np.inf)])
@pytest.mark.parametrize("acceleration", [(-50.0, 50.0), (-5.0, 200.0), (-1.0, 1.0)])
@pytest.mark.parametrize("push", ["out", "in", "random", "far out"])
def test_a_point_stays_within(velocity, acceleration, push):
    bound, brakes = bounds((-0.4, 0.5), velocity, acceleration)
    rng, x, v, near = np.random.default_rng(0), 0.0, 0.0, 0
    for k in range(6000):
        least, most = least_and_most(bound, brakes, x, v)
        assert least <= most
        assert acceleration[0] <= least
        assert most <= acceleration[1]
        side = 1.0 if (k // 1500) % 2 == 0 else -1.0
        wanted = {"out": 1e3 * side, "in": -1e2 * x, "random": 300.0 * rng.normal(),
                  "far out": 1e9 * side}[push]  # fmt: skip
        x, v = moved(x, v, min(max(wanted, least), most))
        assert -0.4 <= x <= 0.5
        assert velocity[0] <= v <= velocity[1]
        near += x > 0.5 - 1e-4 or x < -0.4 + 1e-4
    if push in ("out", "far out"):
        assert near > 20


@given(
    x=st.floats(-0.5, 0.5), v=st.floats(-2.0, 2.0), a=st.floats(0.5, 500.0),
    dt=st.floats(1e-4, 1e-2), wide=st.floats(0.1, 3.0),
)  # fmt: skip
def test_what_can_still_stop_can_stop_after_every_tick(x, v, a, dt, wide):
    """From a state whose braking distance fits, the upper bound leaves one that fits."""
    room, least_room = wide - x, v * abs(v) / (2.0 * 0.7 * a)
    if v <= 0.0 or room - 1e-3 < least_room + 4.0 * dt * v + 20.0 * a * dt * dt:
        return
    most = most_acceleration(room, v, -np.inf, np.inf, a, dt, 1.0)
    for _ in range(3):
        x, v = moved(x, v, max(min(most, a), -a), dt)
        most = most_acceleration(wide - x, v, -np.inf, np.inf, a, dt, 1.0)
        assert x <= wide
        assert v <= 0.0 or v * v / (2.0 * a) <= wide - x + 1e-9


@pytest.mark.parametrize("start", [0.51, 0.6, 2.0])
@pytest.mark.parametrize("speed", [-1.0, 0.0, 1.0])
def test_what_is_beyond_is_led_back_and_not_thrown(start, speed):
    bound, brakes = bounds((-0.4, 0.5), (-2.0, 2.0), (-50.0, 50.0))
    x, v, fastest, farthest = start, speed, 0.0, start
    for _ in range(20_000):
        least, most = least_and_most(bound, brakes, x, v)
        assert least <= most
        x, v = moved(x, v, min(max(0.0, least), most))  # nobody helps
        fastest, farthest = max(fastest, -v), max(farthest, x)
    assert x <= 0.5
    gentle = (start - 0.5) / (LED_BACK_TICKS * DT)
    assert fastest <= max(gentle, -speed) + 0.1
    assert farthest <= start + max(speed, 0.0) ** 2 / (2.0 * 20.0) + 0.02
    assert fastest <= 2.0


def test_a_speed_beyond_its_limit_is_led_back():
    bound, brakes = bounds((-np.inf, np.inf), (-2.0, 2.0), (-50.0, 50.0))
    x, v, before = 0.0, 3.0, 3.0
    for _ in range(400):
        least, most = least_and_most(bound, brakes, x, v)
        x, v = moved(x, v, min(max(30.0, least), most))
        assert v <= before + 1e-12
        before = max(v, 2.0 - 2.0 * VELOCITY_MARGIN)
    assert 1.9 < v <= 2.0


def test_margins_are_small():
    bound, brakes = bounds((-0.4, 0.5), (-2.0, 2.0), (-50.0, 50.0))
    x, v, fastest = 0.0, 0.0, 0.0
    for _ in range(3000):
        _, most = least_and_most(bound, brakes, x, v)
        x, v = moved(x, v, most)
        fastest = max(fastest, v)
    assert 0.5 - 3.0 * POSITION_MARGIN < x <= 0.5
    assert 2.0 - 1.1 * VELOCITY_MARGIN < fastest <= 2.0


@pytest.mark.parametrize("off", [0.05, 0.2, 0.7])
@pytest.mark.parametrize("towards", [-1.0, 1.0])
def test_what_the_acceleration_changes_in_a_tick_pushes_nothing_over(off, towards):
    """By always the same, so that what only stops would creep through the margin."""
    bound, brakes = bounds((-0.4, 0.5), (-2.0, 2.0), (-50.0, 50.0))
    x, v, end = 0.0, 0.0, 0.5 if towards > 0.0 else -0.4
    for _ in range(4000):
        least, most = least_and_most(bound, brakes, x, v)
        x, v = moved(x, v, (most if towards > 0.0 else least) + towards * off)
        assert -0.4 <= x <= 0.5
    assert abs(x - end) < 2.0 * POSITION_MARGIN
    assert abs(v) < 1e-9


def test_the_mirror_gives_the_mirror():
    one, other = bounds((-0.4, 0.5), (-1.0, 2.0), (-30.0, 50.0)), None
    other = bounds((-0.5, 0.4), (-2.0, 1.0), (-50.0, 30.0))
    rng = np.random.default_rng(1)
    for _ in range(300):
        x, v = rng.uniform(-0.6, 0.6), rng.uniform(-2.5, 2.5)
        least, most = least_and_most(*one, x, v)
        assert (-most, -least) == pytest.approx(least_and_most(*other, -x, -v), rel=1e-12)


def test_safe_ranges_are_safe():
    """Whatever is within them is within all bounds, and not near a limit of velocity."""
    rng, looked_at = np.random.default_rng(2), 0
    for _ in range(60):
        wide, fast, hard = rng.uniform(0.1, 3.0), rng.uniform(0.2, 8.0), 10.0 ** rng.uniform(0, 3)
        bound, brakes = bounds((-wide, 1.3 * wide), (-fast, 1.5 * fast), (-hard, 2.0 * hard))
        dt = 10.0 ** rng.uniform(-4, -2)
        safe = safe_range(bound, brakes, dt)
        if safe is None:
            continue
        for corner in [*np.array(np.meshgrid(*safe.T)).reshape(3, -1).T,
                       *rng.uniform(safe[0], safe[1], (20, 3))]:  # fmt: skip
            x, v, a = corner.tolist()
            least, most = least_and_most(bound, brakes, x, v, dt)
            assert least * (1.0 + 1e-9) <= a <= most * (1.0 + 1e-9)
            for late in (v, v + TICKS_AHEAD * dt * a):
                assert abs(late) <= NEAR_SPEED * fast * (1.0 + 1e-9)
        looked_at += 1
    assert looked_at >= 20


def test_braking_leaves_the_other_speed_within_its_limit():
    """Slow one way and quick the other: braked from quick, it is not thrown back too fast."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        slow, fast = rng.uniform(0.02, 0.1), rng.uniform(1.0, 4.0)
        bound, brakes = bounds((-0.4, 0.5), (-slow, fast), (-200.0, 200.0))
        x, v = 0.0, 0.0
        for _ in range(600):
            least, most = least_and_most(bound, brakes, x, v, 5e-3)
            x, v = moved(x, v, min(max(200.0, least), most), 5e-3)
            assert x <= 0.5
            assert -slow <= v <= fast


def test_open_sides_and_speeds_without_limits_are_far_too():
    """The ranges that are safe exist where a side is open, and hold."""
    for position, velocity in [((-1.0, np.inf), (-2.0, 2.0)), ((-1.0, 1.0), (-np.inf, np.inf)),
                               ((-np.inf, np.inf), (-np.inf, np.inf))]:  # fmt: skip
        bound, brakes = bounds(position, velocity)
        safe = safe_range(bound, brakes, DT)
        assert safe is not None
        ends = np.where(np.isfinite(safe), safe, np.sign(safe) * 3.0)
        for corner in np.array(np.meshgrid(*ends.T)).reshape(3, -1).T:
            x, v, a = corner.tolist()
            least, most = least_and_most(bound, brakes, x, v)
            assert least * (1.0 + 1e-8) <= a <= most * (1.0 + 1e-8)
