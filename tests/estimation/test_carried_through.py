"""Carried through a dead point by inertia, while the sensors merely turn back: never a swap."""

from __future__ import annotations

import numpy as np
import pytest
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
    here = hc.PreparedAssembly(mech, sensors, start=seen[0].q[np.argmin(seen[0].gain)])
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
