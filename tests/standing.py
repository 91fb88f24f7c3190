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


def limb(m, rng, chain, tail):
    """Joints of one limb: (parent, kind, place, name, mass), names with a tail but for roots."""
    for parent, kind, place, name, mass in chain:
        above = f"{parent}_{tail}" if m.existJointName(f"{parent}_{tail}") else parent
        joint = getattr(pin, f"JointModel{kind}")()
        add_body(m, above, joint, place, f"{name}_{tail}", lump(rng, mass))


def rod_legged():
    """A pelvis on two legs of five motors: a rod from thigh to tarsus, rotors, feet of one line."""
    rng, m = np.random.default_rng(7), pin.Model()
    pelvis = pin.Inertia.FromBox(10, 0.2, 0.3, 0.2)
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "pelvis", pelvis)
    loops, motors = [], []
    for side, y in (("left", 0.13), ("right", -0.13)):
        chain = [
            ("pelvis", "RX", at(0.02, y), "roll", 1.8),
            ("roll", "RZ", at(0, 0, -0.07), "yaw", 1.6),
            ("yaw", "RY", at(0, 0, -0.09), "thigh", 3.0),
            ("thigh", "RY", at(-0.1, 0.02, -0.3), "rod", 0.2),
            ("rod", "RX", at(), "twist", 0.1),
            ("thigh", "RY", at(0, 0, -0.3), "shin", 0.6),
            ("shin", "RY", at(0, 0, -0.4), "tarsus", 0.8),
            ("tarsus", "RY", at(0, 0, -0.35), "toe", 0.2),
        ]
        limb(m, rng, chain, side)
        ends = (f"twist_{side}", at(0, 0, -0.4)), (f"tarsus_{side}", at(-0.09))
        loops.append(hc.Closure(*ends, "spherical", name=f"achilles_{side}"))
        motors += [f"{name}_{side}" for name in ("roll", "yaw", "thigh", "shin", "toe")]
    for name in motors:
        m.armature[m.joints[m.getJointId(name)].idx_v] = 0.05
    reference = pin.neutral(m)
    reference[7:] = 2 * [0.0, 0.0, -0.6, 1.2, 0.0, 1.2, -1.2, 0.6]
    return hc.Mechanism(m, loops, motors, reference=reference, name="rod_legged")


def quadruped():
    """A trunk on four legs whose knees are driven by parallel rods, with point feet."""
    rng, m = np.random.default_rng(9), pin.Model()
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "trunk", pin.Inertia.FromBox(12, 0.5, 0.2, 0.1))
    loops, motors, bend = [], [], 1.4
    for leg, x, y in (("fl", 1, 1), ("fr", 1, -1), ("hl", -1, 1), ("hr", -1, -1)):
        chain = [
            ("trunk", "RX", at(0.2 * x, 0.08 * y), "abduction", 0.7),
            ("abduction", "RY", at(0, 0.08 * y), "crank", 0.1),
            ("crank", "RY", at(0.05), "rod", 0.1),
            ("abduction", "RY", at(0, 0.05 * y), "hip", 0.8),
            ("hip", "RY", at(0, 0, -0.2), "knee", 0.2),
        ]
        limb(m, rng, chain, leg)
        lever = at(0.05 * np.cos(bend), 0.03 * y, -0.05 * np.sin(bend))
        ends = (f"rod_{leg}", at(0, 0, -0.2)), (f"knee_{leg}", lever)
        loops.append(hc.Closure(*ends, axes="x z", name=f"bar_{leg}"))
        motors += [f"{name}_{leg}" for name in ("abduction", "hip", "crank")]
    reference = pin.neutral(m)
    reference[7:] = 4 * [0.0, bend / 2, 0.0, bend / 2, -bend]
    return hc.Mechanism(m, loops, motors, reference=reference, name="quadruped")


PAD = 0.1  # m, from the wrist


def two_arms():
    """Two arms of six joints that hold a free object between plane pads."""
    rng, m = np.random.default_rng(11), pin.Model()
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "object", pin.Inertia.FromBox(3, 0.2, 0.3, 0.2))
    motors = []
    for side, x in (("left", -0.5), ("right", 0.5)):
        facing = pin.rpy.rpyToMatrix(0.0, 0.0, 0.0 if x < 0.0 else np.pi)
        chain = [
            (0, "RZ", at(x, 0, 0.3, facing), "yaw", 3.0),
            ("yaw", "RY", at(), "shoulder", 3.0),
            ("shoulder", "RY", at(0, 0, 0.3), "elbow", 2.0),
            ("elbow", "RZ", at(0, 0, 0.15), "turn", 1.0),
            ("turn", "RY", at(0, 0, 0.15), "wrist", 0.5),
            ("wrist", "RZ", at(), "hand", 0.5),
        ]
        limb(m, rng, chain, side)
        motors += [f"{one[3]}_{side}" for one in chain]
    reference = pin.neutral(m)
    reference[:3] = 0.0, 0.0, 0.5
    reach, total = np.hypot(0.3, 0.2), np.arctan2(0.3, 0.2)
    inner = np.arccos(reach / 0.6)
    arm = [0.0, total - inner, 2.0 * inner, 0.0, np.pi / 2 - total - inner, 0.0]
    reference[7:] = 2 * arm
    return hc.Mechanism(m, [], motors, reference=reference, name="two_arms")


def pads_of_hands(friction=0.7):
    """The contacts of two arms, and closures that hold the same pads."""
    corners = [(x, y, PAD) for x in (0.03, -0.03) for y in (0.04, -0.04)]
    pads, welds = [], []
    for side, out, turn in (("left", -1.0, np.pi / 2), ("right", 1.0, -np.pi / 2)):
        frame = f"hand_{side}"
        pads.append(
            hc.UnilateralContact(
                frame, corners, (out, 0, 0), friction, relative_to="object", name=side
            )
        )
        half = np.pi if side == "right" else 0.0
        face = pin.rpy.rpyToMatrix(0.0, turn, 0.0) @ pin.rpy.rpyToMatrix(0.0, 0.0, half)
        ends = ("object", at(0.1 * out, 0, 0, face)), (frame, at(0, 0, PAD))
        welds.append(hc.Closure(*ends, "weld", name=side))
    return pads, welds


def sole(frame, name="foot", z=-0.05, **options):
    corners = [(x, y, z) for x in (0.12, -0.08) for y in (0.05, -0.05)]
    return hc.UnilateralContact(frame, corners, name=name, **options)


def under(mech, joint):
    """The z axis of a joint: the normal of a ground on which its sole is flat."""
    return rotation(mech, mech.model.getJointId(joint), mech.reference)[:, 2]


class Standing:
    """A mechanism with contacts, and the same with bilateral ones for its states."""

    def __init__(self, mech, contacts, effort, held=()):
        self.mech, self.contacts, self.effort = mech, contacts, effort
        self.part = hc.partition(mech, hc.assemble(mech)[0])
        held = held or [one for c in contacts for one in c.bilateral]
        self.held = mech.with_constraints(*held)
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
    line = [(-0.06, 0, -0.03), (0.1, 0, -0.03)]
    lines = [
        hc.UnilateralContact(f"toe_{x}", line, friction=0.7, name=x) for x in ("left", "right")
    ]
    tip = [(0, 0, -0.2)]
    legs = [
        hc.UnilateralContact(f"knee_{x}", tip, friction=0.7, name=x)
        for x in ("fl", "fr", "hl", "hr")
    ]
    pads, welds = pads_of_hands()
    return {
        "edge": lambda: Standing(leg, [edge], 40.0),
        "sole": lambda: Standing(leg, [sole("ankle", facets=8, normal=under(leg, "ankle"))], 60.0),
        "leg": lambda: Standing(shipped, [sole("sole", z=0.0)], 25.0),
        "biped": lambda: Standing(biped(), feet, 60.0),
        "rod_legged": lambda: Standing(rod_legged(), lines, 80.0),
        "quadruped": lambda: Standing(quadruped(), legs, 30.0),
        "two_arms": lambda: Standing(two_arms(), pads, 60.0, welds),
    }[name]()


NAMES = "edge", "sole", "leg", "biped"
ROBOTS = "rod_legged", "quadruped", "two_arms"


def rotation(mech, joint, q):
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    return data.oMi[joint].rotation
