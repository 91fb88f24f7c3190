"""Mechanisms that inertia carries through their dead points, while the sensors merely turn back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import overconstrained_nets as nets
import pinocchio as pin
import zoo
from branches import Oracle

import holoctl as hc

RATES, NOISES = (1000, 250, 100), (0.0, 1e-5, 1e-4)


def _at_rest(mech):
    """Without gravity: it goes on whatever the posture."""
    model = mech.model.copy()
    model.gravity = pin.Motion.Zero()
    return hc.Mechanism(
        model, mech.constraints, mech.actuated, reference=mech.reference, name=mech.name
    )


MOVING = {
    "slider_crank": (lambda: zoo.slider_crank("slider"), ("slider",), ("crank",)),
    "four_bar at the rocker": (zoo.four_bar, ("rocker",), ("crank",)),
    "five_bar": (zoo.five_bar, ("left", "right"), ("left_rod",)),
    "watt at the rocker": (lambda: nets.watt().mechanism(), None, None),
    "idle_rod at the rocker": (zoo.idle_rod, ("rocker",), ("crank",)),
    "three_arms": (lambda: nets.planar_3rrr().mechanism(), None, None),
}
"""Mechanism, what is measured, and a second sensor that sees what the first ones do not."""


@cache
def moving(name):
    make, measured, second = MOVING[name]
    mech = _at_rest(make())
    if name.startswith("watt"):
        names = [n for n in mech.coordinate_names if n not in mech.actuated]
        measured, second = (names[-1],), mech.actuated
    if name == "three_arms":
        measured = mech.actuated
        second = tuple(n for n in mech.coordinate_names if n not in measured)[:1]
    return mech, tuple(measured), (*measured, *second)


@dataclass(frozen=True)
class Motion:
    """A motion at 1 kHz: states, readings, and where the determinant changes its sign."""

    q: np.ndarray
    v: np.ndarray
    readings: np.ndarray
    rates: np.ndarray
    dead: np.ndarray
    gain: np.ndarray


@cache
def motion(name, seed, duration=1.0):
    """A motion from a random start at a random speed; None where there is none."""
    mech, measured, second = moving(name)
    rng = np.random.default_rng([seed, len(name)])
    for _ in range(50):
        guess = mech.reference + rng.normal(size=mech.nv) * 0.5 if mech.nq == mech.nv else (
            pin.integrate(mech.model, mech.reference, 0.5 * rng.normal(size=mech.nv)))
        try:
            q, v = hc.assemble(mech, guess, rng.normal(size=mech.nv), restarts=0)
            speed = np.exp(rng.uniform(np.log(2.0), np.log(20.0)))
            v = v * speed / np.abs(v / mech.column_scale).max()
            run = hc.simulate(mech, None, q, v, duration, rate=1000.0)
        except hc.HoloctlError:
            continue
        oracle = Oracle(mech, measured, q)
        dets, gains = [], []
        for q in run.q:
            G = oracle.rows(q)[1]
            Z = np.linalg.svd(G)[2][oracle.rank :].T
            s = np.linalg.svd(oracle.jacobian(q) @ Z, compute_uv=False)
            gains.append(1.0 / s[oracle.b - 1])
            dets.append(s[oracle.b - 1])
        s = np.array(dets)
        low = (s[1:-1] < s[:-2]) & (s[1:-1] <= s[2:])  # a minimum of the least singular value ...
        steep = np.abs(s[2:] - 2 * s[1:-1] + s[:-2])  # ... with a kink is a zero
        kink = low & (s[1:-1] < 0.75 * np.maximum(s[:-2] - s[1:-1], s[2:] - s[1:-1]) + 1e-12)
        dead = np.flatnonzero(kink) + 1
        del steep
        readings = np.array([oracle.at(q) for q in run.q])
        rates = np.array([run.v[i][oracle.columns[oracle.columns >= 0]] for i in range(len(run.t))])
        return Motion(run.q, run.v, readings, rates, dead, np.array(gains))
    return None


@dataclass
class Followed:
    """What became of a motion under a rate and a noise."""

    ticks: int = 0
    swaps: int = 0
    off: int = 0
    refusals: int = 0
    passed: int = 0
    before: list[float] = None
    false_alarms: int = 0
    newton: int = 0
    worst: float = 0.0


def followed(name, here, seen, every, noise, seed):
    """Feed the readings of a motion; after a refusal start again after the dead point."""
    mech, _, _ = moving(name)
    rng, found, lost = np.random.default_rng(seed), Followed(before=[]), False
    n = len(seen.q)
    ticks = list(range(0, n, every))
    here.reset(seen.q[0])
    for k in ticks[1:]:
        if lost:
            if seen.gain[k] > 10.0:
                continue
            here.reset(seen.q[k])
            lost = False
            continue
        x = seen.readings[k] + noise * rng.normal(size=seen.readings.shape[1])
        ahead = seen.dead[seen.dead >= k - every]
        try:
            q, _ = here.state(x)
        except hc.HoloctlError as error:
            found.refusals += 1
            to = (ahead[0] - k) / every if ahead.size else np.inf
            found.before.append(to)
            if seen.gain[max(k - 30 * every, 0) : k + 30 * every].max() < 20.0:
                found.false_alarms += 1
            lost = True
            if not isinstance(error, hc.BranchError):
                found.off += 0
            continue
        found.ticks += 1
        found.newton += here.last.newton_steps
        apart = np.abs(pin.difference(mech.model, q, seen.q[k]) / mech.column_scale)
        if here._place.borders.N.size:
            apart = apart - apart  # idle motions: judged by the oracle below
            o = Oracle(mech, here.measured, seen.q[k])
            apart = np.array([o.apart(q, seen.q[k], seen.readings[k])])
        if apart.max() > 30.0 * noise + 1e-6:
            found.off += 1
            found.worst = max(found.worst, apart.max())
            if apart.max() > 8.0 * here.last.gain * noise + 1e-6:
                found.swaps += 1
                lost = True
    for d in seen.dead:
        inside = [k for k in ticks if k <= d]
        del inside
    return found
