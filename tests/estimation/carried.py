"""Mechanisms that inertia carries through their dead points, while the sensors merely turn back."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    dead: np.ndarray
    gain: np.ndarray


def _least(oracle, q):
    s = np.linalg.svd(oracle.jacobian(q) @ oracle.basis(q), compute_uv=False)
    return s[oracle.b - 1]


@cache
def motion(name, seed, duration=1.0):
    """A motion from a random start at a random speed; None where there is none."""
    mech, measured, _ = moving(name)
    rng = np.random.default_rng([seed, len(name)])
    for _ in range(50):
        guess = pin.integrate(mech.model, mech.reference, 0.5 * rng.normal(size=mech.nv))
        try:
            q, v = hc.assemble(mech, guess, rng.normal(size=mech.nv), restarts=0)
            speed = np.exp(rng.uniform(np.log(2.0), np.log(20.0)))
            v = v * speed / np.abs(v / mech.column_scale).max()
            run = hc.simulate(mech, None, q, v, duration, frequency=1000.0)
        except hc.HoloctlError:
            continue
        oracle = Oracle(mech, measured, q)
        least = np.array([_least(oracle, q) for q in run.q])
        # a zero of the least singular value: a minimum with a kink
        fall, rise = least[:-2] - least[1:-1], least[2:] - least[1:-1]
        kink = (fall > 0) & (rise >= 0) & (least[1:-1] < 0.75 * np.maximum(fall, rise) + 1e-12)
        return Motion(run.q, run.v, np.flatnonzero(kink) + 1, 1.0 / np.maximum(least, 1e-12))
    return None


@dataclass
class Followed:
    """What became of motions under a rate and a noise.

    Attributes
    ----------
    runs, ticks, refusals : int
    swaps : int
        Accepted states on another branch than the true one.
    first : int
        Of these, in the first call after a reset.
    noisy : int
        Accepted states of the right branch, off by more than 30 times the noise.
    idle : int
        Refusals where no dead point was within 30 ticks.
    before : list of float
        How many ticks ahead of the dead point it refused.
    passed : int
        Dead points passed on the right branch.
    """

    runs: int = 0
    ticks: int = 0
    refusals: int = 0
    swaps: int = 0
    first: int = 0
    noisy: int = 0
    idle: int = 0
    passed: int = 0
    newton: int = 0
    before: list[float] = field(default_factory=list)


def followed(tally, name, here, oracle, seen, every, noise, rng, again=10.0):
    """Feed the readings of a motion; after a refusal, go on where the gain is below `again`."""
    mech, c, n = moving(name)[0], moving(name)[0].column_scale, len(seen.q)
    tally.runs += 1
    since = None
    for k in range(0, n, every):
        if since is None:
            if seen.gain[k] <= again:
                here.reset(seen.q[k])
                since = 0
            continue
        x = oracle.at(seen.q[k])
        x = x + noise * rng.normal(size=x.size)
        try:
            q, _ = here.state(x)
        except hc.HoloctlError:
            ahead = seen.dead[seen.dead > k - every]
            tally.refusals += 1
            tally.before.append((ahead[0] - k) / every if ahead.size else np.inf)
            near = seen.gain[max(k - 30 * every, 0) : k + 30 * every]
            tally.idle += bool(near.max() < 30.0)
            since = None
            continue
        tally.ticks += 1
        tally.newton += here.last.newton_steps
        since += 1
        tally.passed += int(((seen.dead > k - every) & (seen.dead <= k)).sum())
        apart = np.abs(pin.difference(mech.model, q, seen.q[k]) / c).max()
        if apart > 30.0 * noise + 1e-6 and oracle.idle:
            apart = oracle.apart(q, seen.q[k], x)
        if apart > 30.0 * noise + 1e-6:
            if noise and apart <= 8.0 * noise * max(seen.gain[k], here.last.gain):
                tally.noisy += 1
                continue
            tally.swaps += 1
            tally.first += since == 1
            since = None
    return tally
