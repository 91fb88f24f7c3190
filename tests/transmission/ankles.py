"""Parallel joints for the tests: an ankle of rods and cranks, one of linear motors, a four-bar
knee, and a humanoid that has all of them; motor positions in closed form."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from zoo import add_body, at, bar, lump

import holoctl as hc

PITCH_ROLL = ["pitch", "roll"]
ORIGIN = pin.SE3.Identity()


def serial_ankle(m, base, side="", x=ORIGIN):
    """Pitch about y, then roll about x, with a cross and a foot."""
    rng = np.random.default_rng(5)
    add_body(m, base, pin.JointModelRY(), x, f"{side}pitch", lump(rng, 0.1))
    add_body(m, f"{side}pitch", pin.JointModelRX(), at(), f"{side}roll", lump(rng, 0.8))


def rod(length):
    return pin.Inertia(0.05, np.array([0, 0, -length / 2]),
                       np.diag([0.05 * length**2 / 12, 0.05 * length**2 / 12, 1e-6]))  # fmt: skip


def cranked(m, base, side="", x=ORIGIN, ball=False, crank=(0.05, 0.04), rods=(0.2, 0.15)):
    """Two motors about y with cranks to the back and rods down to the foot."""
    serial_ankle(m, base, side, x)
    loops, motors = [], []
    for of, y, r, length in zip(("left", "right"), (0.04, -0.05), crank, rods, strict=True):
        name = f"{side}{of}"
        place = x * at(-0.06 + r, y, length)
        body = pin.Inertia(0.08, np.array([-r / 2, 0, 0.01]), 1e-5 * np.eye(3))
        add_body(m, base, pin.JointModelRY(), place, name, body)
        if ball:
            add_body(m, name, pin.JointModelSpherical(), at(-r), f"{name} rod", rod(length))
        else:
            add_body(m, name, pin.JointModelRX(), at(-r), f"{name} rod x", pin.Inertia.Zero())
            add_body(m, f"{name} rod x", pin.JointModelRY(), at(), f"{name} rod", rod(length))
        m.armature[m.idx_vs[m.getJointId(name)]] = 4e-3 + (0.002 if name.endswith("t") else 0.0)
        loops.append(hc.Closure((f"{name} rod", at(0, 0, -length)),
                                (f"{side}roll", at(-0.06, y, 0.0)),
                                axes="x y z", name=f"{name} ball"))  # fmt: skip
        motors.append(name)
    return loops, motors


def crank_angle(y, side, crank=(0.05, 0.04), rods=(0.2, 0.15)):
    """The angle of a crank in closed form: the rod projected into the plane of the crank, and the
    law of cosines with atan2."""
    i = ("left", "right").index(side)
    width, r, length = (0.04, -0.05)[i], crank[i], rods[i]
    pitch, roll = y
    R = pin.rpy.rpyToMatrix(0.0, pitch, 0.0) @ pin.rpy.rpyToMatrix(roll, 0.0, 0.0)
    ball = R @ np.array([-0.06, width, 0.0])
    d = ball - np.array([-0.06 + r, width, length])  # from the motor
    rho2, along = length**2 - d[1] ** 2, np.hypot(d[0], d[2])
    # crank tip at r (-cos a, 0, sin a); |tip - d| = rho in the plane
    cosine = (r**2 + along**2 - rho2) / (2.0 * r * along)
    direction = np.arctan2(d[2], -d[0])
    return direction + np.arctan2(np.sqrt(1.0 - cosine**2), cosine)


def pushed(m, base, side="", x=ORIGIN):
    """Two linear motors on universal joints behind the shank, balls at the foot."""
    serial_ankle(m, base, side, x)
    loops, motors = [], []
    for of, y in (("left", 0.04), ("right", -0.04)):
        name = f"{side}{of}"
        place = x * at(-0.05, y, 0.25)
        add_body(m, base, pin.JointModelRX(), place, f"{name} x", pin.Inertia.Zero())
        add_body(m, f"{name} x", pin.JointModelRY(), at(), f"{name} y", rod(0.12))
        add_body(m, f"{name} y", pin.JointModelPZ(), at(0, 0, -0.25), name, rod(0.1))
        m.armature[m.idx_vs[m.getJointId(name)]] = 5.0
        loops.append(hc.Closure(name, (f"{side}roll", at(-0.05, y, 0.0)), axes="x y z",
                                name=f"{name} ball"))  # fmt: skip
        motors.append(name)
    return loops, motors


def stroke(y, side):
    """The stroke of a linear motor: the distance of its ends, in closed form."""
    width = 0.04 if side == "left" else -0.04
    R = pin.rpy.rpyToMatrix(0.0, y[0], 0.0) @ pin.rpy.rpyToMatrix(y[1], 0.0, 0.0)
    return 0.25 - np.linalg.norm(R @ np.array([-0.05, width, 0.0]) - [-0.05, width, 0.25])


LINKS = (0.05, 0.2, 0.06, 0.21)
"""Crank, coupler, lever and ground of the knee."""


def four_barred(m, base, side="", x=ORIGIN):
    """A knee whose lever is driven through a coupler by a crank in the thigh; all about y."""
    crank, coupler, lever, ground = LINKS
    add_body(m, base, pin.JointModelRY(), x, f"{side}knee", lump(np.random.default_rng(7), 1.5))
    add_body(m, base, pin.JointModelRY(), x * at(0, 0, ground), f"{side}crank", bar(crank, 0.1))
    add_body(m, f"{side}crank", pin.JointModelRY(), at(crank), f"{side}coupler", bar(coupler, 0.2))
    m.armature[m.idx_vs[m.getJointId(f"{side}crank")]] = 0.01
    loop = hc.Closure((f"{side}coupler", at(coupler)), (f"{side}knee", at(-lever)), axes="x z",
                      name=f"{side}pin")  # fmt: skip
    return [loop], [f"{side}crank"]


def crank_of_knee(knee, elbow=1.0):
    """Law of cosines in the four-bar, x-z plane, on one of its two branches."""
    crank, coupler, lever, ground = LINKS
    tip = np.array([-lever * np.cos(knee), lever * np.sin(knee)])  # Ry(a) (-l, 0, 0)
    d = tip - np.array([0.0, ground])
    along = np.hypot(*d)
    cosine = (crank**2 + along**2 - coupler**2) / (2.0 * crank * along)
    direction = np.arctan2(-d[1], d[0])  # Ry(a) (r, 0, 0) = r (cos a, 0, -sin a)
    return direction + elbow * np.arctan2(np.sqrt(1.0 - cosine**2), cosine)


def alone(build, **options):
    """One parallel joint on the ground."""
    m = pin.Model()
    loops, motors = build(m, "universe", **options)
    return hc.Mechanism(m, loops, actuated=motors, name=build.__name__)


def humanoid(legs=2, arms=3):
    """A floating pelvis on legs of hip, four-bar knee and parallel ankle, with serial arms."""
    m, loops, motors = pin.Model(), [], []
    rng = np.random.default_rng(3)
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "pelvis", lump(rng, 8.0))
    for k in range(legs):
        side, y = f"leg{k} ", 0.1 - 0.2 * k
        add_body(m, "pelvis", pin.JointModelRX(), at(0, y, 0), f"{side}hip x", lump(rng, 2.0))
        add_body(m, f"{side}hip x", pin.JointModelRY(), at(), f"{side}hip", lump(rng, 4.0))
        motors += [f"{side}hip x", f"{side}hip"]
        for build, base, x in (
            (four_barred, f"{side}hip", at(0, 0, -0.4)),
            (cranked if k % 2 == 0 else pushed, f"{side}knee", at(0.02, 0, -0.4)),
        ):
            more = build(m, base, side, x)
            loops, motors = loops + more[0], motors + more[1]
    for k in range(arms):
        parent = "pelvis"
        for i in range(4):
            name = f"arm{k} {i}"
            joint = pin.JointModelRY() if i % 2 else pin.JointModelRX()
            add_body(m, parent, joint, at(0, 0.1, 0.1), name, lump(rng, 1.0))
            motors.append(name)
            parent = name
    m = hc.renumbered(m)
    return hc.Mechanism(m, loops, actuated=motors, name="humanoid")
