"""Carried through a dead point by inertia, while the sensors merely turn back: never a swap."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pinocchio as pin
import pytest
import zoo
from branches import Oracle
from carried import MOVING, NOISES, RATES, Followed, followed, motion, moving
from support import few

import holoctl as hc

EVERY = [1000 // rate for rate in RATES]


def motions(name, count):
    found = [motion(name, seed) for seed in range(count)]
    return [m for m in found if m is not None and m.dead.size]


def tallied(name, count, every, noise, sensors):
    """All motions of a mechanism; resets only well away from dead points, where the first call
    cannot meet one."""
    mech = moving(name)[0]
    seen = motions(name, count)
    away = max(3.0, 1.5 * min(m.gain.min() for m in seen))
    oracle = Oracle(mech, sensors, seen[0].q[0])
    here = hc.ClosedStateEstimator(mech, sensors, start=seen[0].q[np.argmin(seen[0].gain)])
    found = Followed()
    for i, m in enumerate(seen):
        followed(found, name, here, oracle, m, every, noise, np.random.default_rng(i), away)
    return found


def check(name, count):
    runs = 0
    for every in EVERY:
        for noise in NOISES:
            found = tallied(name, count, every, noise, moving(name)[1])
            before = [x for x in found.before if np.isfinite(x)]
            print(
                f"{name}, {1000 // every} Hz, noise {noise:g}: {found.runs} runs, {found.ticks} "
                f"ticks, {found.swaps} swaps, {found.refusals} refusals ({found.idle} idle), "
                f"{found.noisy} noisy; refused {np.median(before):.1f} ticks before; "
                f"{found.newton / found.ticks:.2f} Newton steps"
            )
            assert not found.swaps, (name, every, noise)
            assert found.refusals
            if every == 1:
                assert found.newton <= 2.1 * found.ticks
            runs += found.runs
    return runs


@pytest.mark.parametrize("name", ["slider_crank", "four_bar at the rocker"])
def test_no_swap(name):
    assert check(name, 2) >= 9


@pytest.mark.slow
def test_no_swap_in_360_runs():
    assert sum(check(name, 9) for name in MOVING) >= 360


@pytest.mark.parametrize(
    "name",
    few(
        ["slider_crank", "four_bar at the rocker", "idle_rod at the rocker"],
        ["slider_crank", "four_bar at the rocker"],
    ),
)
def test_a_second_sensor_passes(name):
    """At 1 kHz, where the dead point of the first sensors is none of both."""
    found = tallied(name, 3, 1, 1e-5, moving(name)[2])
    assert found.passed
    assert not found.refusals
    assert not found.swaps


def first_reading(oracle, here, seen, k, ahead, speed, told=False):
    """What becomes of the first reading after a reset, so many ticks ahead at so many times the
    speed: without gravity that is a motion too. The time is told, or not."""
    mech = here.mech
    c, q, v = mech.column_scale, seen.q[k + ahead], speed * seen.v[k + ahead]
    rates = oracle.unit * (oracle.jacobian(q) @ (v / c))
    x = oracle.at(q)
    try:
        here.reset(seen.q[k])
        found, _ = here.state(x, rates, 1e-3 * ahead / speed if told else 0.0)
    except hc.HoloctlError:
        return "refused"
    apart = np.abs(pin.difference(mech.model, found, q) / c).max()
    if apart > 1e-6 and oracle.idle:
        apart = oracle.apart(found, q, x)
    return "WRONG" if apart > 1e-6 else "right"


def check_first_readings(name, count, stride=1):
    """At 1 kHz, up to 40 times as fast, and up to 50 ms after the reset, or 200 ms where `t` tells,
    around dead points, each `stride` ticks; and anywhere, where they are to be accepted."""
    mech, measured, _ = moving(name)
    seen = motions(name, count)
    oracle = Oracle(mech, measured, seen[0].q[0])
    here = hc.ClosedStateEstimator(mech, measured, start=seen[0].q[np.argmin(seen[0].gain)])
    near, anywhere, rng = Counter(), Counter(), np.random.default_rng(0)
    for m in seen:
        for dead in m.dead:
            for k in range(dead + 1, max(dead - 41, -1), -stride):
                for ahead, speed, told in (
                    (1, 1, 0), (5, 5, 0), (20, 20, 0), (40, 40, 0), (5, 1, 0), (10, 1, 0),
                    (20, 1, 0), (50, 1, 0), (20, 1, 1), (50, 1, 1), (40, 40, 1), (200, 1, 1),
                ):  # fmt: skip
                    if k + ahead < len(m.q):
                        near[first_reading(oracle, here, m, k, ahead, speed, told)] += 1
        for k in rng.integers(len(m.q) - 1, size=40):
            behind = k + 1 - m.dead  # up to 10 ms behind a dead point is not elsewhere
            if m.gain[k] <= 10.0 * m.gain.min() and not ((behind >= 0) & (behind <= 11)).any():
                anywhere[first_reading(oracle, here, m, k, 1, 1, told=True)] += 1
    print(f"{name}: near dead points {dict(near)}, elsewhere {dict(anywhere)}")
    assert near["refused"]
    assert not near["WRONG"]
    assert not anywhere["WRONG"]
    assert anywhere["refused"] <= 0.02 * anywhere.total()


@pytest.mark.parametrize("name", ["slider_crank", "four_bar at the rocker"])
def test_first_readings_are_right_or_refused(name):
    check_first_readings(name, 2, stride=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", MOVING)
def test_many_first_readings(name):
    check_first_readings(name, 9)


class Crank:
    """A slider-crank whose slider is measured, at 1 kHz, by the angle and rate of its crank."""

    def __init__(self, lengths=(0.2, 0.5)):
        self.lengths = lengths
        self.mech = zoo.slider_crank(lengths=lengths, reference=self.at(1.0, 0.0)[0])
        self.sensors = hc.ClosedStateEstimator(self.mech)

    def at(self, angle, rate):
        """q and v, in closed form."""
        a, b = self.lengths
        turn = -np.arcsin(a * np.sin(angle) / b)
        turning = -a * np.cos(angle) * rate / (b * np.cos(turn))
        slid = a * np.cos(angle) + b * np.cos(turn)
        v = -a * np.sin(angle) * rate - b * np.sin(turn) * turning
        return np.array([angle, turn - angle, slid]), np.array([rate, turning - rate, v])

    def read(self, angle, rate, t=0.0):
        """The angle of the crank that is found, and its rate."""
        q, v = self.at(angle, rate)
        found, rates = self.sensors.state(q[2:], v[2:], t)
        return found[0], rates[0]


@pytest.mark.parametrize("lengths", [(0.2, 0.5), (0.15, 0.4), (0.3, 0.31)])
def test_a_first_reading_beyond_the_dead_point_is_refused(lengths):
    """However near, or far, and however fast: for its rate leads away from there."""
    crank, rng = Crank(lengths), np.random.default_rng(0)
    ways = [(0.2, -0.1), (0.1, -0.05), (0.06, -0.04), (0.05, -0.1), (0.1, -0.1)]
    ways += zip(rng.uniform(0.04, 0.4, 30), rng.uniform(-0.4, -0.04, 30), strict=True)
    for before, now in ways:
        for side, tick in ((1.0, 1e-3), (-1.0, 4e-3), (1.0, 1e-2), (-1.0, 2e-2), (1.0, 5e-2)):
            crank.sensors.reset(crank.at(side * before, 0.0)[0])
            with pytest.raises(hc.BranchError, match="dead point"):
                crank.read(side * now, side * (now - before) / tick)
            with pytest.raises(hc.BranchError, match="reset"):  # also where it comes to rest there
                crank.read(side * now, 0.0)


def test_a_first_reading_is_refused_however_much_later_it_is_told_to_be():
    """Between 0.05 and 0.25 s, over a dead point midway; also where its rate fell to two thirds."""
    crank = Crank()
    for tick in (0.06, 0.1, 0.2, 0.24):
        for angle in (0.1, 0.3, 0.5):
            crank.sensors.reset(crank.at(angle, 0.0)[0], 7.0)
            with pytest.raises(hc.BranchError, match="dead point"):
                crank.read(-angle, -2.0 * angle / tick / 1.5, 7.0 + tick)


def test_positions_alone_are_no_past():
    """Readings without rates, or at rest, prove nothing for those that follow."""
    crank = Crank()
    for rates in (None, [0.0]):
        crank.sensors.reset(crank.at(0.1, 0.0)[0])
        for _ in range(3):
            crank.sensors.state(crank.at(0.1, 0.0)[0][2:], rates)
        with pytest.raises(hc.BranchError, match="dead point"):
            crank.read(-0.1, -10.0)


def test_first_readings_on_this_side_are_taken():
    """At 1 kHz, at rest and at 20 rad/s, but for the last 12 ms since the dead point."""
    crank, rng = Crank(), np.random.default_rng(1)
    for before in rng.uniform(0.06, 2.5, 100):
        for rate in (0.0, *rng.uniform(-20.0, 20.0, 4)):
            now = before + 1e-3 * rate
            if now < 0.04 or 0.0 < now / max(rate, 1e-9) < 0.015:
                continue
            crank.sensors.reset(crank.at(before, 0.0)[0])
            found = crank.read(now, rate, 1e-3)
            np.testing.assert_allclose(found, [now, rate], rtol=1e-8, atol=1e-8)


def test_a_second_reading_beyond_the_dead_point_is_refused():
    """Where the mechanism was not quite where it was said to be, the past tells nothing yet."""
    crank = Crank()
    crank.sensors.reset(crank.at(0.09, 0.0)[0])
    assert crank.read(0.1, -190.0, 1e-4)[0] == pytest.approx(0.1)
    with pytest.raises(hc.BranchError, match="dead point"):
        crank.read(-0.09, -190.0, 1.1e-3)


def test_another_run_is_refused_until_reset():
    """Its time begins anew: what the first run proved does not hold on the other side."""
    crank = Crank()
    crank.sensors.reset(crank.at(0.45, 0.0)[0])
    for k in range(20):
        crank.read(0.45, 0.0, 0.1 + 1e-3 * k)
    crank.sensors.state(crank.at(0.45, 0.0)[0][2:], None, 0.115)  # a clock may be a little off
    for rate in (-5.0, 5.0, 0.0):
        with pytest.raises(hc.BranchError, match=r"t went back, from 0.115 to 0 s") as told:
            crank.read(-0.45, rate)
        assert told.value.why == "time"
        with pytest.raises(hc.BranchError, match="t went back"):
            crank.read(0.45, 0.0, 0.116)
        crank.sensors.reset(crank.at(-0.45, 0.0)[0], -1e-3)
        assert crank.read(-0.45, rate)[0] == pytest.approx(-0.45)
        crank.sensors.reset(crank.at(0.45, 0.0)[0])
        crank.read(0.45, 0.0, 0.115)


def test_after_a_gap_the_rates_are_asked_again():
    """Behind 0.3 s without readings the past tells no more than before a first reading."""
    crank = Crank()
    for now, rate in ((0.3, 0.0), (-0.1, -2.0), (0.25, -0.2)):
        crank.sensors.reset(crank.at(0.3, 0.0)[0])
        for k in range(3):
            crank.read(0.3 + 1e-4 * k, 0.1, 1e-3 * (k + 1))
        if now < 0.0:
            with pytest.raises(hc.BranchError, match="dead point"):
                crank.read(now, rate, 0.303)
        else:
            assert crank.read(now, rate, 0.8)[0] == pytest.approx(now)


@pytest.mark.parametrize("missing", [np.nan, np.inf, "no calls"])
def test_a_dead_point_behind_missing_ticks_is_not_passed(missing):
    """From 0.5 rad at 10 rad/s, 120 ms later: readings that are no numbers are ticks as well."""
    crank = Crank()
    crank.sensors.reset(crank.at(0.53, 0.0)[0])
    for k, angle in enumerate((0.52, 0.51, 0.5)):
        crank.read(angle, -10.0, 1e-3 * (k + 1))
    for _ in range(0 if missing == "no calls" else 119):
        with pytest.raises(hc.InputError):
            crank.sensors.state([missing], [0.0])
    with pytest.raises(hc.BranchError, match="dead point"):
        crank.read(-0.7, -10.0, 0.123)


def test_without_rates_the_branch_is_that_of_the_straight_way():
    crank = Crank()
    crank.sensors.reset(crank.at(0.2, 0.0)[0])
    found, v = crank.sensors.state(crank.at(0.1, 0.0)[0][2:])
    assert found[0] == pytest.approx(0.1)
    assert not v.any()
