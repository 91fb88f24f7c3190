"""Exact equations of random closed states, with efforts of known parameters."""

from __future__ import annotations

from contextlib import suppress
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
    dry = dict.fromkeys(mech.actuated, 0.05)
    wet = dict.fromkeys(mech.actuated, 0.1)
    return mech.with_forces([hc.JointFriction(viscous=wet, coulomb=dry, transition=0.05)])


@cache
def states(name, count, seed):
    mech = robot(name)
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    return list(closed_samples(mech, part, q, count, np.random.default_rng(seed)))


def equations(model, name, count=100, seed=0):
    """The regression of a model at random states of a robot; efforts are zero."""
    return _regression(model, states(name, count, seed))


def motion(model, name, amplitude, seed, seconds=10.0):
    """The regression along a Fourier series of the motors about the reference, period 5 s."""
    mech, rng, w = robot(name), np.random.default_rng(seed), 2.0 * np.pi / 5.0
    middle = mech.motor_positions(hc.assemble(mech)[0])
    if name == "stewart":
        middle = np.full(6, 0.1)  # of the stroke
    A, B, k = rng.normal(size=(5, mech.nu)), rng.normal(size=(5, mech.nu)), np.arange(1, 6)
    t = np.arange(0.0, seconds, 1.0 / RATE)
    c, s = np.cos(np.outer(t, k) * w), np.sin(np.outer(t, k) * w)
    size = amplitude / np.abs(s @ A + c @ B).max()
    x, xd = middle + size * (s @ A + c @ B), size * ((c * k * w) @ A - (s * k * w) @ B)
    xdd = -size * ((s * (k * w) ** 2) @ A + (c * (k * w) ** 2) @ B)
    estimator = hc.ClosedStateEstimator(mech)
    estimator.resynchronise(x[0])
    found = []
    for i in range(t.size):
        P = hc.project(mech, *estimator.state(x[i], xd[i]), partition=estimator.partition)
        z = np.linalg.lstsq(mech.B.T @ P.gamma, xdd[i] - mech.B.T @ P.bias, rcond=None)[0]
        found.append((P, P.gamma @ z + P.bias))
    return _regression(model, found)


def _regression(model, found):
    """Of the states at which motors determine the motion well."""
    rows, kept = [], []
    for P, a in found:
        with suppress(hc.SingularityError):
            rows.append(equations_at(model, P, a, np.zeros(model.mech.nu))[0])
            kept.append((P, a))
    assert len(kept) > 0.8 * len(found)
    W, found, P = np.array(rows), kept, kept[0][0]
    return Regression(
        model, None, np.arange(len(W)) / RATE, np.array([P.q for P, _ in found]),
        np.array([P.v for P, _ in found]), np.array([a for _, a in found]), W,
        np.zeros(W.shape[:2]), row_labels(model.mech, model.mech.nu, P.k), RATE,
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
