"""Measurements of a simulated robot: a periodic motion, its motor efforts, noise, encoders."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

import holoctl as hc

AMPLITUDE = {"five_bar": 0.4, "leg": 0.3, "delta": 0.3, "stewart": 0.05, "four_bar": 0.4}
ENCODER = {"stewart": 1e-6}  # m; 17 bits a turn otherwise
PERIOD, HARMONICS = 2.0, 4


class Measured(NamedTuple):
    """A robot as in its file, one with friction that moves, and what is measured of it."""

    mech: hc.Mechanism
    true: hc.Mechanism
    t: np.ndarray
    x: np.ndarray
    u: np.ndarray
    q: np.ndarray

    @property
    def model(self):
        return hc.Parameters(self.mech, friction="motors", transition=0.05)

    @property
    def values(self):
        return hc.Parameters(self.true, friction="motors").values

    def noisy(self, seed, effort=0.015):
        """Positions and efforts as sensors give them."""
        rng = np.random.default_rng(seed)
        step = ENCODER.get(self.mech.name, 2.0 * np.pi / 2**17)
        u = self.u + effort * abs(self.u).max(axis=0) * rng.normal(size=self.u.shape)
        return np.round(self.x / step) * step, u


@lru_cache(maxsize=20)
def measured_motion(name, seconds=3.0, rate=400.0, seed=1, period=PERIOD, harmonics=HARMONICS):
    mech = hc.load(hc.robot_file(name))
    friction = hc.JointFriction(
        viscous=dict.fromkeys(mech.actuated, 0.02),
        coulomb=dict.fromkeys(mech.actuated, 0.05), transition=0.05,
    )  # fmt: skip
    true = mech.with_forces([friction])
    middle = mech.motor_positions(hc.assemble(mech)[0])
    if name == "stewart":
        middle = np.full(mech.nu, 0.1)
    rng = np.random.default_rng(seed)
    of_sin, of_cos = rng.normal(size=(2, harmonics, mech.nu))
    t = np.arange(0.0, seconds, 1.0 / rate)
    w = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    c, s = np.cos(np.outer(t, w)), np.sin(np.outer(t, w))
    x = s @ of_sin + c @ of_cos
    scale = AMPLITUDE[name] / abs(x).max()
    x, v = middle + scale * x, scale * ((c * w) @ of_sin - (s * w) @ of_cos)
    a = -scale * ((s * w**2) @ of_sin + (c * w**2) @ of_cos)
    sensors, inverse = hc.ClosedStateEstimator(true), hc.PreparedInverseDynamics(true)
    sensors.resynchronise(x[0])
    q, u = [], []
    for i in range(t.size):
        state = sensors.state(x[i], v[i])
        q.append(state[0])
        u.append(inverse.torque(*state, a[i]).copy())
    return Measured(mech, true, t, x, np.array(u), np.array(q))


def residual(data, p):
    """The residual of equations, relative to the efforts."""
    return np.linalg.norm(data.W @ p - data.y) / np.linalg.norm(data.y)
