"""Exact equations of random closed states, with efforts of known parameters."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.identification.closed_samples import closed_samples
from holoctl.identification.regression import equations_at, row_labels
from holoctl.results import Regression

RATE = 20.0


@cache
def robot(name):
    """A robot of the library with friction of its motors."""
    mech = hc.load(hc.robot_file(name))
    dry = {motor: 0.05 for motor in mech.actuated}
    wet = {motor: 0.1 for motor in mech.actuated}
    return mech.with_forces([hc.JointFriction(viscous=wet, coulomb=dry, transition=0.05)])


@cache
def states(name, count, seed):
    mech = robot(name)
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    return list(closed_samples(mech, part, q, count, np.random.default_rng(seed)))


def equations(model, name, count=100, seed=0):
    """The regression of a model at random states of a robot, with exact efforts."""
    found = states(name, count, seed)
    rows = [equations_at(model, P, a, np.zeros(model.mech.nu)) for P, a in found]
    W = np.array([w for w, _ in rows])
    y = np.array([y for _, y in rows]) * 0.0
    mech, P = model.mech, found[0][0]
    return Regression(
        model, None, np.arange(len(W)) / RATE, np.array([P.q for P, _ in found]),
        np.array([P.v for P, _ in found]), np.array([a for _, a in found]), W, y,
        row_labels(mech, mech.nu, P.k), RATE,
    )  # fmt: skip


def measured(data, p, noise=0.0, seed=0, **changes):
    """The regression with efforts of parameters p, and noise relative to the largest."""
    y = data.W @ p
    rng = np.random.default_rng(seed)
    y = y + noise * np.abs(y).max(axis=0) * rng.normal(size=y.shape)
    return replace(data, y=y, **changes)


def as_drawn(mech, seed=0, by=0.2):
    """A mechanism whose masses, centres and inertias are off by up to 20 %, without friction."""
    rng, model = np.random.default_rng(seed), mech.model.copy()
    for j in range(1, model.njoints):
        body = model.inertias[j]
        if body.mass:
            f, g = 1.0 + by * rng.uniform(-1.0, 1.0, 2)
            lever = body.lever * (1.0 + by * rng.uniform(-1.0, 1.0, 3))
            model.inertias[j] = pin.Inertia(f * body.mass, lever, f * g * body.inertia)
    return replace(mech, model=model, forces=())
