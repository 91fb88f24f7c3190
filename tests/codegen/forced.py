"""Mechanisms with every force on them: what the tests of compiled forces share."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from expressed import case

import holoctl as hc

ca = pytest.importorskip("casadi")


def wind(q, v, t):
    return 0.1 * np.arange(1.0, v.size + 1.0) * np.sin(t + v[0])


def wind_expression(q, v, t):
    return 0.1 * ca.DM(np.arange(1.0, v.numel() + 1.0)) * ca.sin(t + v[0])


def place(x, y, z):
    return pin.SE3(np.eye(3), np.array([x, y, z]))


def cut_joints(mech):
    pairs = zip(mech.constraint_names, mech.constraints, strict=True)
    return [n for n, c in pairs if isinstance(c, hc.Closure) and c.joint not in (None, "weld")]


def with_every_force(mech):
    """Friction in all joints, cut ones too, springs where there may be some, a rope, a function."""
    names, cut = list(mech.model.names[1:]), cut_joints(mech)
    forces = [
        hc.JointFriction(viscous=0.3, coulomb=0.5, stribeck=(0.8, 0.1), transition=0.05),
        hc.Spring((names[-1], place(0.1, 0.2, 0.3)), ("universe", place(1.0, 0.2, 0.3)), 50.0, 0.4,
                  damping=3.0, name="to the world"),
        hc.CustomForce(wind, wind_expression),
    ]  # fmt: skip
    if len(names) > 1:
        ends = (names[-1], place(0.1, -0.2, 0.3)), (names[0], place(1.0, 0.2, 0.3))
        forces.append(hc.Spring(*ends, 20.0, 0.3, damping=1.0, unilateral=True, name="rope"))
    if cut:
        of_each = dict.fromkeys(cut, 0.2)
        forces.append(hc.JointFriction(viscous=of_each, coulomb=of_each, name="in cut joints"))
    for joint in [*names[:3], *cut]:
        spring = hc.JointSpring(joint, 5.0, 0.3, 0.2)
        try:
            mech.with_forces([spring])
        except hc.InputError:  # not of a joint with several coordinates
            continue
        forces.append(spring)
    return mech.with_forces(forces)


@cache
def forced(name):
    """Mechanism with every force, and its partition."""
    mech = with_every_force(case(name)[0])
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
