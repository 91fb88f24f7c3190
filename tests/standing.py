"""Mechanisms that stand on contacts, and their states."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
from zoo import add_body, at, lump, standing_leg

import holoctl as hc


def biped():
    """A trunk on two legs, each with a four-bar knee and a plane foot."""
    rng, m = np.random.default_rng(4), pin.Model()
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "trunk", pin.Inertia.FromBox(15, 0.2, 0.3, 0.4))
    loops, motors = [], []
    for side, y in (("left", 0.1), ("right", -0.1)):
        chain = [
            ("trunk", "RZ", at(0, y, -0.2), "yaw", 1.0),
            ("yaw", "RX", at(), "roll", 1.0),
            ("roll", "RY", at(0, 0, -0.05), "hip", 3.0),
            ("hip", "RY", at(0.05, 0, -0.05), "crank", 0.3),
            ("crank", "RY", at(0.06), "rod", 0.2),
            ("hip", "RY", at(0, 0, -0.35), "knee", 1.5),
            ("knee", "RY", at(0, 0, -0.3), "pitch", 0.3),
            ("pitch", "RX", at(), "foot", 0.5),
        ]
        for parent, kind, place, name, mass in chain:
            above = parent if parent == "trunk" else f"{parent}_{side}"
            joint = getattr(pin, f"JointModel{kind}")()
            add_body(m, above, joint, place, f"{name}_{side}", lump(rng, mass))
        ends = (f"rod_{side}", at(0, 0, -0.3)), (f"knee_{side}", at(0.06))
        loops.append(hc.Closure(*ends, axes="x z", name=f"bar_{side}"))
        motors += [f"{name}_{side}" for name in ("yaw", "roll", "hip", "crank", "pitch", "foot")]
    reference = pin.neutral(m)
    reference[7:] = 2 * [0.0, 0.0, -0.4, 0.8, -0.8, 0.8, -0.4, 0.0]
    return hc.Mechanism(m, loops, motors, reference=reference, name="biped")


def sole(frame, name="foot", z=-0.05, **options):
    corners = [(x, y, z) for x in (0.12, -0.08) for y in (0.05, -0.05)]
    return hc.UnilateralContact(frame, corners, name=name, **options)


def under(mech, joint):
    """The z axis of a joint: the normal of a ground on which its sole is flat."""
    return rotation(mech, mech.model.getJointId(joint), mech.reference)[:, 2]


class Standing:
    """A mechanism with contacts, and the same with bilateral ones for its states."""

    def __init__(self, mech, contacts, effort):
        self.mech, self.contacts, self.effort = mech, contacts, effort
        self.part = hc.partition(mech, hc.assemble(mech)[0])
        self.held = mech.with_constraints(*(one for c in contacts for one in c.bilateral))
        self.held_part = hc.partition(self.held, hc.assemble(self.held)[0])

    def state(self, rng, speed=0.2, away=0.08):
        moved = np.array(self.held.reference)
        n = self.mech.nv - 6
        moved[-n:] += away * rng.normal(size=n)
        return hc.assemble(self.held, moved, speed * rng.normal(size=self.mech.nv))

    def solved(self, q, v, target, limits=None, **options):
        return hc.contact_inverse_dynamics(
            self.mech, q, v, target, self.contacts, limits, partition=self.part, **options
        )


@cache
def standing(name):
    leg = standing_leg().without("heel", "toe")
    shipped = hc.load(hc.robot_file("leg"), free_flyer=True)
    edge = hc.UnilateralContact("ankle", [(-0.06, 0, -0.05), (0.12, 0, -0.05)], name="foot")
    feet = [sole(f"foot_{side}", side, friction=0.8) for side in ("left", "right")]
    return {
        "edge": lambda: Standing(leg, [edge], 40.0),
        "sole": lambda: Standing(leg, [sole("ankle", facets=8, normal=under(leg, "ankle"))], 60.0),
        "leg": lambda: Standing(shipped, [sole("sole", z=0.0)], 25.0),
        "biped": lambda: Standing(biped(), feet, 60.0),
    }[name]()


NAMES = "edge", "sole", "leg", "biped"


def rotation(mech, joint, q):
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    return data.oMi[joint].rotation
