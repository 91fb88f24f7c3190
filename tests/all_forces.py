"""A mechanism with every force that the library has, on whatever joints it has."""

from __future__ import annotations

from functools import cache

import numpy as np
from support import mechanism
from zoo import at

import holoctl as hc

AT_T = 0.3
"""A time at which the force of our own is not zero."""


def wind(q, v, t):
    """Efforts that depend on configuration, velocity and time."""
    return 0.1 * np.arange(1.0, v.size + 1.0) * np.sin(t + q[0]) - 0.05 * np.roll(v, 1)


def casadi_wind(q, v, t):
    import casadi as ca

    n = v.numel()
    turned = ca.vertcat(v[n - 1], v[: n - 1])
    return 0.1 * ca.DM(np.arange(1.0, n + 1.0)) * ca.sin(t + q[0]) - 0.05 * turned


def cut_joints(mech):
    """Names of closures that are joints, in which something moves."""
    named = zip(mech.constraint_names, mech.constraints, strict=True)
    return [n for n, c in named if isinstance(c, hc.Closure) and c.joint not in (None, "weld")]


def lifted(mech, names):
    """A counterbalance on the last body that gravity moves."""
    for name in reversed(names):
        force = hc.Counterbalance((name, at(0.1, 0.2, 0.3)), 0.7)
        there = hc.terms(mech.with_forces([force]), mech.reference, np.zeros(mech.nv))
        if np.abs(there.F - hc.terms(mech, there.q, there.v).F).max() > 0.1:
            return [force]
    return []


def every_force(mech):
    """One of each, springs on every joint that takes one."""
    names, cut = list(mech.model.names)[1:], cut_joints(mech)
    every = 0.3, 0.5, (0.8, 0.5)
    if all(n == 6 for n in list(mech.model.nvs)[1:]):  # a number leaves free joints out
        every = tuple(dict.fromkeys(names, x) for x in every)
    forces = [hc.JointFriction(*every, transition=0.05)]
    if cut:
        of_cut = dict.fromkeys(cut, 0.2)
        forces.append(hc.JointFriction(viscous=of_cut, coulomb=of_cut, transition=0.1, name="cut"))
    for joint in [*names[:3], *cut]:
        for rest in (0.3, (0.1, -0.2, 0.3)):
            spring = hc.JointSpring(joint, 5.0, rest, 0.2)
            try:
                mech.with_forces([spring])
            except hc.InputError:
                continue
            forces.append(spring)
    arm = (names[-1], at(0.1, 0.2, 0.3))
    forces += [
        hc.Spring(arm, ("universe", at(1.0, 0.2, 0.3)), 50.0, 0.4, damping=3.0),
        hc.Spring(arm, ("universe", at(-1.0, 0.4, 0.3)), 30.0, 0.1, unilateral=True, name="rope"),
        hc.CustomForce(wind, casadi_wind),
    ]
    return forces + lifted(mech, names)


@cache
def forced(name):
    """A mechanism of the zoo with every force."""
    mech = mechanism(name)
    return mech.with_forces(every_force(mech))
