"""Linkages whose loops are cut in every way, and states that are the same."""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio as pin
import pytest
from linkages import add_lump
from zoo import at

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows


def generic(mech, seed=1, spread=0.1):
    """A closed state near the reference, at a generic place, moving."""
    rng = np.random.default_rng(seed)
    step = spread * mech.column_scale * rng.normal(size=mech.nv)
    guess = pin.integrate(mech.model, mech.reference, step)
    q, v = hc.assemble(mech, guess, mech.column_scale * rng.normal(size=mech.nv))
    size = np.linalg.norm(v / mech.column_scale)
    return q, v * (2.0 / size if size > 1e-9 else 1.0)


def motions(mech, names, q, v=None):
    """Value, rate and Jacobian of these joints."""
    return {name: hc.joint_motion(mech, name, q, v) for name in names}


def kept(mech, link):
    """The joints of a linkage that have coordinates in this mechanism."""
    return [name for name in link.joints if name not in mech.constraint_names]


def positions(mech, link, q, other):
    """What to give another cut as its reference, so that it stands as this mechanism does."""
    return {name: hc.joint_motion(mech, name, q).value for name in kept(other, link)}


def same_state(mech, link, q, v, **options):
    """The mechanism with another cut, in the same state: (mechanism, q, v)."""
    blank = link.mechanism(**options)
    reference = positions(mech, link, q, blank)
    reference = {name: x for name, x in reference.items() if x.size}
    other = link.mechanism(**options, reference=reference)
    here = motions(mech, link.joints, q, v)
    there = motions(other, link.joints, other.reference)
    J = np.vstack([there[name].jacobian / unit(here, name) for name in link.joints])
    rates = np.concatenate([here[name].rate / unit(here, name) for name in link.joints])
    scaled = np.linalg.lstsq(J * other.column_scale, rates, rcond=None)[0]
    q, v = other.reference.copy(), other.column_scale * scaled
    error = constraint_rows(other, q, v)[1].error
    assert np.abs(other.row_scale * error).max(initial=0.0) < 1e-11
    return other, q, v


def unit(here, name):
    return max(1.0, float(np.abs(here[name].jacobian).max(initial=0.0)))


def body_motions(mech, link, q, v, a):
    """Velocity and acceleration of every body: (bodies, 12), in its own axes at its origin."""
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q, v, a)
    pin.updateFramePlacements(mech.model, data)
    found = []
    for body in link.bodies:
        frame = mech.model.getFrameId(body, pin.FrameType.BODY)
        velocity = pin.getFrameVelocity(mech.model, data, frame).vector
        acceleration = pin.getFrameAcceleration(mech.model, data, frame).vector
        found.append(np.concatenate([data.oMf[frame].translation, velocity, acceleration]))
    return np.array(found)


def cuts(link, without=(), most=12, seed=0):
    """Feasible cuts without some joints: all where there are few, else a seeded sample."""
    joints = [name for name in link.joints if name not in without]
    every = list(itertools.combinations(joints, len(link.loops)))
    rng = np.random.default_rng(seed)
    found = []
    for i in rng.permutation(len(every)):
        if feasible(link, every[i]):
            found.append(every[i])
        if len(found) == most:
            break
    return found


def feasible(link, cut):
    try:
        link.mechanism(cut=cut)
    except hc.InputError:
        return False
    return True


def close(a, b, tol=1e-9):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    return np.abs(a - b).max(initial=0.0) <= tol * (1.0 + np.abs(b).max(initial=0.0))


DOF = {"revolute": 1, "prismatic": 1, "cylindrical": 2, "universal": 2, "spherical": 3,
       "planar": 3, "screw": 1, "weld": 0}  # fmt: skip
"""Degrees of freedom of the joints."""

PITCH = 0.4


def pitch_of(kind):
    return PITCH if kind == "screw" else None


def closed_by(kind, outwards=True, seed=3):
    """An arm with skew axes, closed to the ground by a joint of this kind, with its state."""
    rng = np.random.default_rng(seed)
    n = 6 - DOF[kind] + 2

    def somewhere():
        return pin.SE3(pin.exp3(rng.normal(size=3)), 0.3 * rng.normal(size=3))

    link = hc.Linkage("arm")
    above = "universe"
    for i in range(n):
        add_lump(link, f"body_{i}", 1.0, 1.0 + 0.2 * i)
        ends = (above, f"body_{i}") if i % 2 == 0 else (f"body_{i}", above)
        joint = "prismatic" if i % 3 == 2 else "revolute"
        link.add_joint(f"j{i}", joint, *ends, somewhere(), somewhere())
        above = f"body_{i}"
    reference = {f"j{i}": x for i, x in enumerate(0.5 * rng.normal(size=n))}
    open_arm = link.mechanism(reference=reference)
    data = open_arm.model.createData()
    pin.framesForwardKinematics(open_arm.model, data, open_arm.reference)
    hand = data.oMf[open_arm.model.getFrameId(above)]
    shown, X = position(kind, rng)
    end = somewhere()
    # the child against the parent is X; the ground is the parent, or the child
    if outwards:
        ends = ("universe", above, hand * end * X.inverse(), end)
    else:
        ends = (above, "universe", end, hand * end * X)
    link.add_joint("end", kind, *ends, pitch=pitch_of(kind))
    return link, reference, shown


def refused(match, call, *args, **kwargs):
    with pytest.raises(hc.InputError, match=match):
        call(*args, **kwargs)


def position(kind, rng):
    """Coordinates of a joint, and the placement that they mean."""
    x = 0.7 * rng.normal(size=DOF[kind])

    def turn(axis, angle):
        return pin.SE3(pin.exp3(angle * np.eye(3)["xyz".index(axis)]), np.zeros(3))

    if kind == "revolute":
        return x, turn("z", x[0])
    if kind == "prismatic":
        return x, at(0, 0, x[0])
    if kind == "screw":
        return x, at(0, 0, PITCH * x[0]) * turn("z", x[0])
    if kind == "cylindrical":
        return x, at(0, 0, x[0]) * turn("z", x[1])
    if kind == "universal":
        return x, turn("x", x[0]) * turn("y", x[1])
    if kind == "planar":
        return x, at(x[0], x[1]) * turn("z", x[2])
    if kind == "spherical":
        R = pin.exp3(x)
        return pin.Quaternion(R).coeffs(), at(R=R)
    return x, pin.SE3.Identity()
