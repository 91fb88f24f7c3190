"""Mechanisms with every force on them: what the tests of compiled forces share."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
from all_forces import every_force
from expressed import case
from zoo import at

import holoctl as hc


@cache
def forced(name):
    """Mechanism with every force, and its partition."""
    mech = case(name)[0]
    mech = mech.with_forces(every_force(mech))
    return mech, hc.partition(mech, hc.assemble(mech)[0])


def moving_states(name, count=4):
    """Closed states: fast, slow, at rest, and as slow as the transition of friction."""
    mech, _ = forced(name)
    rng, found = np.random.default_rng(7), []
    middle, _ = hc.assemble(mech)
    while len(found) < count:
        unit = mech.column_scale
        guess = pin.integrate(mech.model, middle, 0.1 * rng.normal(size=mech.nv) * unit)
        speed = (1.0, 0.03, 0.0, -0.3)[len(found) % 4] * rng.normal(size=mech.nv) * unit
        try:
            found.append(hc.assemble(mech, guess, speed, restarts=0))
        except hc.AssemblyError:
            continue
    return found


def off_by(found, expected):
    """Largest difference, over the largest entry."""
    found, expected = np.asarray(found, dtype=float).ravel(), np.asarray(expected).ravel()
    return np.abs(found - expected).max() / (1e-3 + np.abs(expected).max())


def meeting_ends():
    """An arm, a spring from its end to the world, and a configuration where both ends meet."""
    base = case("no_constraints")[0]
    q = pin.integrate(base.model, base.reference, np.full(base.nv, 0.4))
    data = base.model.createData()
    pin.forwardKinematics(base.model, data, q)
    last = base.model.names[base.model.njoints - 1]
    there = data.oMi[base.model.njoints - 1] * at(0.1, 0.0, 0.0)
    return base.with_forces(
        [hc.Spring((last, at(0.1, 0.0, 0.0)), ("universe", there), 10.0, 0.1, name="band")]
    ), q
