"""Robots that run into their limits all the time: none is ever exceeded, at ticks or between."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from support import few, together
from zoo import floating_leg

import holoctl as hc
from holoctl.mechanism.bound_limits import bound_limits

RATE, BETWEEN = 1000.0, 3  # of each tick so many instants are looked at
EVERY = 1.3  # s of a wave, another one, and a set point that is jumped to


@dataclass(frozen=True)
class Case:
    """A robot, its limits, where its motors are sent, and what must have limited it."""

    mech: hc.Mechanism
    q: Any
    limits: hc.Limits
    wanted: Any
    limiting: tuple[str, ...]


def sent(middle, by, rates, seed, duration=60.0):
    """Waves, and every third time a set point, beyond what is allowed."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1.0, 1.0, size=(int(duration / EVERY) + 2, len(middle)))
    phases, rest = rng.uniform(0.0, 2.0 * np.pi, len(middle)), np.zeros(len(middle))

    def reference(t):
        k = int(t / EVERY)
        if k % 3 == 2:
            return middle + by * points[k], rest, rest
        wave, slope = np.sin(rates * t + phases), np.cos(rates * t + phases)
        return middle + by * wave, by * rates * slope, -by * rates**2 * wave

    return reference


def around(x, by):
    return x - by, x + by


ARMS = {
    "five_bar": {
        "effort": 8.0,
        "curve": [(0.0, 8.0), (2.0, 5.0), (4.0, 3.0)],
        "velocity": {"elbow_left": 5.0},
        "acceleration": {"elbow_left": 40.0},
        "position": (0.5, "elbow_left", 0.4),
        "waves": ([0.7, 0.8], [5.0, 7.0]),
        "limiting": ("elbow_left.position", "motor_left.position", "motor_right.velocity"),
    },
    "delta": {
        "effort": 3.0,
        "curve": [(0.0, 3.0), (2.0, 1.5), (4.0, 0.8)],
        "velocity": {"elbow_1a[0]": 5.0, "platform_pose[2]": 0.8},
        "acceleration": {"elbow_1a[0]": 20.0, "platform_pose[2]": 10.0},
        "position": (0.4, "elbow_1a[0]", 0.25),
        "waves": ([0.5, 0.6, 0.55], [5.0, 6.0, 7.0]),
        "limiting": ("elbow_1a[0].position", "motor_3.position"),
    },
}
"""Robots on motors that turn: what limits these, and passive joints besides; how far motors may go
from the start, and the second coordinate; amplitudes and rates of waves; what must have limited."""


def arm(name, seed):
    mech, given = hc.load(hc.robot_file(name)), ARMS[name]
    q, _ = hc.assemble(mech)
    home, motors = mech.motor_positions(q), mech.actuated
    by, elbow, by_elbow = given["position"]
    assert mech.coordinate_names[1] == elbow
    limits = hc.Limits(
        effort=given["effort"],
        speed_torque=given["curve"],
        velocity={**dict.fromkeys(motors, 4.0), **given["velocity"]},
        acceleration={**dict.fromkeys(motors, 40.0), **given["acceleration"]},
        position={**{m: around(x, by) for m, x in zip(motors, home, strict=True)},
                  elbow: around(q[1], by_elbow)},
    )  # fmt: skip
    sizes, rates = map(np.array, given["waves"])
    return Case(mech, q, limits, sent(home, sizes, rates, seed), (*motors, *given["limiting"]))


def stewart(seed):
    mech = hc.load(hc.robot_file("stewart"))
    q, v = hc.assemble(mech)
    home, motors = mech.motor_positions(q), mech.actuated
    limits = hc.Limits(
        effort=40.0,
        speed_torque=[(0.0, 40.0), (0.05, 26.0), (0.25, 20.0)],
        velocity={**dict.fromkeys(motors, 0.22), "foot_1[0]": 0.7},
        acceleration={**dict.fromkeys(motors, 1.0), "foot_1[0]": 2.0},
        position={**{m: around(x, 0.03) for m, x in zip(motors, home, strict=True)},
                  "foot_1[0]": around(q[0], 0.15)},
    )  # fmt: skip
    gamma = hc.project(mech, q, v).gamma
    legs = np.linalg.solve(gamma[-6:].T, (mech.B.T @ gamma).T).T  # lengths by the pose
    rates = np.array([3.0, 4.0, 5.0, 3.5, 4.5, 5.5])
    pose = sent(np.zeros(6), np.array([0.06, 0.06, 0.03, 0.15, 0.15, 0.25]), rates, seed)

    def wanted(t):
        x, v, a = pose(t)
        return home + legs @ x, legs @ v, legs @ a

    names = ("leg_2", "leg_3.position", "leg_5.velocity", "foot_1[0].position")
    return Case(mech, q, limits, wanted, names)


def leg(seed):
    """Afloat, without weight: the base and the head are moved by the motors' reactions."""
    mech = floating_leg()
    model = mech.model.copy()
    model.gravity.linear = np.zeros(3)
    mech = dataclasses.replace(mech, model=model)
    q, _ = hc.assemble(mech)
    knee = q[model.joints[model.getJointId("knee")].idx_q]
    limits = hc.Limits(
        effort={"hip": 15.0, "motor_crank": 15.0, "wheel": 4.0},
        speed_torque={"hip": [(0, 15), (3, 6)], "motor_crank": [(0, 15), (3, 4)],
                      "wheel": [(0, 4), (6, 1)]},
        velocity={"hip": 4.0, "motor_crank": 4.0, "wheel": 8.0, "knee": 5.0},
        acceleration=dict.fromkeys(("hip", "motor_crank", "wheel", "knee"), 20.0),
        position={"hip": 0.5, "motor_crank": 0.5, "knee": around(knee, 0.4)},
    )  # fmt: skip
    by, rates = np.array([0.7, 0.7, 3.0]), np.array([5.0, 6.0, 3.0])
    wanted = sent(mech.motor_positions(q), by, rates, seed)
    names = ("motor_crank", "wheel", "hip.position", "knee.position", "wheel.velocity")
    return Case(mech, q, limits, wanted, names)


ROBOTS = {**{name: partial(arm, name) for name in ARMS}, "stewart": stewart, "leg": leg}


class Watched:
    """A controller, and how often each limit acted or gave way."""

    def __init__(self, follow):
        self.follow, self.acted, self.gave_way = follow, Counter(), []

    def __call__(self, t, q, v):
        u = self.follow(t, q, v)
        last = self.follow.last
        self.acted.update(last.saturated)
        if last.softened:
            self.gave_way.append((t, *last.softened))
        return u

    def repartitioned(self, q, v, t):
        self.follow = self.follow.repartitioned(q, v, t)
        return self


def run_at_the_limits(case, policy, duration, **options):
    """Past its limits by how much, of position, velocity and effort; and what was watched."""
    mech, bound = case.mech, bound_limits(case.mech, case.limits)
    ctl = hc.ComputedTorque(mech, 400.0, 40.0, limits=case.limits, policy=policy, dt=1.0 / RATE)
    watched = Watched(ctl.track(case.wanted))
    output = np.arange(round(duration * RATE) * BETWEEN + 1) / (RATE * BETWEEN)
    run = hc.simulate(
        mech, watched, case.q, np.zeros(mech.nv), duration,
        frequency=RATE, output=output, **together(rtol=1e-8, **options),
    )  # fmt: skip
    assert run.closure.max() < 1e-9
    rates = run.v @ mech.B  # at ticks the motors give no more than they can at their rates
    most = np.column_stack([
        np.full(len(rates), np.inf) if curve is None else np.interp(np.abs(rates[:, i]), *curve)
        for i, curve in enumerate(bound.curves)
    ])  # fmt: skip
    at_ticks = np.arange(0, output.size, BETWEEN)
    driving = run.u * rates > 0.0
    past = {
        "position": beyond(run.q[:, bound.places], bound.position)[:, bound.places >= 0],
        "velocity": beyond(run.v[:, bound.columns], bound.velocity),
        "effort": beyond(run.u, bound.effort),
        "driving": np.where(driving, np.abs(run.u) - most, -1.0)[at_ticks],
    }
    return {what: float(x.max()) for what, x in past.items()}, watched


def beyond(x, bounds):
    return np.maximum(x - bounds[1], bounds[0] - x)


def check(robot, policy, duration, seed, **options):
    case = ROBOTS[robot](seed)
    if "dynamics" in options:
        options["dynamics"] = hc.compile(case.mech, ["forward_dynamics"])
    past, watched = run_at_the_limits(case, policy, duration, **options)
    assert watched.gave_way == []
    assert past["position"] <= 0.0
    assert past["velocity"] <= 0.0
    assert past["effort"] <= 0.0
    assert past["driving"] <= 1e-12
    return case, watched.acted


@pytest.mark.parametrize("policy", ["nearest", "scale"])
@pytest.mark.parametrize("robot", ["five_bar", "leg"])
def test_no_limit_is_exceeded_in_a_second(robot, policy):
    _, acted = check(robot, policy, 1.0, seed=1)
    assert sum(acted.values()) > 300


@pytest.mark.parametrize("robot", few(ROBOTS, ["five_bar"]))
def test_brakes_that_nobody_told_are_enough(robot):
    """Of the efforts of the motors: so hard that all limited joints can be braked at once."""
    told = ROBOTS[robot](seed=2)
    efforts = {"five_bar": 6.0, "delta": 2.0}.get(robot, told.limits.effort)
    limits = dataclasses.replace(told.limits, effort=efforts, acceleration=None, speed_torque=None)
    past, watched = run_at_the_limits(dataclasses.replace(told, limits=limits), "nearest", 4.0)
    assert watched.gave_way == []
    assert max(past["position"], past["velocity"], past["effort"]) <= 0.0
    assert sum(watched.acted[motor] for motor in told.mech.actuated) > 100


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["nearest", "scale"])
@pytest.mark.parametrize("robot", ROBOTS)
def test_no_limit_is_exceeded_in_a_minute(robot, policy):
    """Efforts of motors, by speed too; positions and velocities of motors and passive joints."""
    pytest.importorskip("casadi")
    case, acted = check(robot, policy, 60.0, seed=2, dynamics=True)
    print(robot, policy, dict(acted))
    assert {name: acted[name] for name in case.limiting if acted[name] < 20} == {}
