"""The mechanisms that the benchmark measures, from 3 coordinates to 120.

Joints are revolute, prismatic or floating only, so that each can be rebuilt in Drake and in
MuJoCo. Dimensions and masses are chosen for the example; they are those of no real robot.

    .venv/bin/python benchmarks/mechanisms.py     checks each of them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import holoctl as hc
from holoctl.tree.frames import Frame, FrameLike, resolve_frame

Vector = NDArray[np.float64]
Point = Sequence[float]


# ------------------------------------------------------------------------------ the closures


@dataclass(frozen=True)
class Loop:
    """A closure as other libraries have it: two frames that share a point, or a pose."""

    name: str
    weld: bool
    frame_a: Frame
    frame_b: Frame


def loops(mech: hc.Mechanism) -> list[Loop]:
    """The closures of `mech`; a hinge of a planar mechanism counts as a point.

    In a plane the other rows of a hinge hold by themselves, so all describe the same motion.
    """
    found = []
    for c in mech.constraints:
        if not isinstance(c, hc.Closure):
            raise TypeError(f"{c!r} is not a closure")
        if c.joint not in ("spherical", "weld") and not _is_planar(mech.model):
            raise TypeError(f"{c.default_name}: only points and welds, except in a plane")
        frames = [resolve_frame(mech.model, f, c.default_name) for f in (c.a, c.b)]
        found.append(Loop(c.default_name, c.joint == "weld", *frames))
    return found


def _is_planar(model: pin.Model) -> bool:
    """Whether all joints are hinges about one direction."""
    if model.nq != model.nv:
        return False
    data = model.createData()
    turns = pin.computeJointJacobians(model, data, pin.neutral(model))[3:]
    sizes = np.linalg.svd(turns, compute_uv=False)
    return bool((np.linalg.norm(turns, axis=0) > 0.5).all() and sizes[1] < 1e-9 * sizes[0])


# ----------------------------------------------------------------------------------- pieces


def _at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([x, y, z], dtype=float))


def _turned(axis: int, angle: float) -> pin.SE3:
    return pin.SE3(pin.exp3(angle * np.eye(3)[axis]), np.zeros(3))


def _lump(mass: float, centre: Point, radius: float) -> pin.Inertia:
    """A ball of the given radius."""
    return pin.Inertia(mass, np.asarray(centre, float), 0.4 * mass * radius**2 * np.eye(3))


def _rod(mass: float, end: Point, radius: float = 0.01) -> pin.Inertia:
    """A round rod of steady thickness from the origin to `end`."""
    end = np.asarray(end, float)
    length = float(np.linalg.norm(end))
    along = np.outer(end, end) / length**2
    across = np.eye(3) - along
    own = radius**2 / 2 * along + (length**2 / 12 + radius**2 / 4) * across
    return pin.Inertia(mass, end / 2, mass * own)


class _Builder:
    """A tree that grows joint by joint, with the reference angle of each."""

    def __init__(self) -> None:
        self.model = pin.Model()
        self.angles: dict[str, float] = {}
        self.loops: list[hc.Closure] = []

    def floating(self, name: str, body: pin.Inertia) -> str:
        joint = self.model.addJoint(0, pin.JointModelFreeFlyer(), _at(), name)
        self.model.appendBodyToJoint(joint, body, _at())
        return name

    def hinge(
        self, parent: str, name: str, axis: int, place: pin.SE3, body: pin.Inertia, angle: float = 0
    ) -> str:
        kinds = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
        joint = self.model.addJoint(self.model.getJointId(parent), kinds[axis](), place, name)
        self.model.appendBodyToJoint(joint, body, _at())
        self.angles[name] = angle
        return name

    def world(self, joint: str) -> pin.SE3:
        """World placement of a joint in the reference configuration."""
        data = self.model.createData()
        pin.forwardKinematics(self.model, data, self.reference())
        return data.oMi[self.model.getJointId(joint)].copy()

    def reference(self) -> Vector:
        q = pin.neutral(self.model)
        for name, angle in self.angles.items():
            q[self.model.joints[self.model.getJointId(name)].idx_q] = angle
        return q

    def rod(self, carrier: str, start: Point, tip: pin.SE3, name: str, mass: float) -> FrameLike:
        """A rod on a universal joint, from a point of `carrier` to the place `tip` in the world.

        At zero it points along its z, a little off the tip, so that its reference angles are
        not all zero. Returns the frame at its far end.
        """
        base = self.world(carrier)
        start = np.asarray(start, float)
        line = base.actInv(tip.translation) - start
        length = float(np.linalg.norm(line))
        first, second = 0.1, -0.07
        z = line / length
        x = np.cross([0.0, 1.0, 0.0], z)
        x /= np.linalg.norm(x)
        bent = _turned(0, first).rotation @ _turned(1, second).rotation
        zero = np.column_stack([x, np.cross(z, x), z]) @ bent.T
        cross, body = f"{name}_a", name
        self.hinge(carrier, cross, 0, pin.SE3(zero, start), _lump(0.03, (0, 0, 0), 0.012), first)
        self.hinge(cross, body, 1, _at(), _rod(mass, (0, 0, length), 0.006), second)
        return (body, _at(0, 0, length))

    def ball(self, end: FrameLike, body: str, point: Point, name: str) -> None:
        """Close a rod's far end on a point of `body`."""
        self.loops.append(hc.Closure(end, (body, _at(*point)), joint="spherical", name=name))

    def weld(self, body: str, place: pin.SE3, name: str) -> None:
        """Hold a frame of `body` to the world where it is in the reference configuration."""
        ground = ("universe", self.world(body) * place)
        self.loops.append(hc.Closure(ground, (body, place), joint="weld", name=name))

    def mechanism(self, motors: Sequence[str], name: str) -> hc.Mechanism:
        return hc.Mechanism(self.model, self.loops, motors, reference=self.reference(), name=name)


# --------------------------------------------------------------------------- the mechanisms


def biped() -> hc.Mechanism:
    """A walking robot on one foot: 36 coordinates, 24 rows of rank 24, 12 motors, k = 12.

    Each leg has 15 coordinates and 9 rows: hip yaw, roll and pitch (motors); a knee that a
    crank on the thigh (motor) turns through a rod; an ankle of pitch and roll that two cranks
    on the shin (motors) turn through two rods. Rods stand on universal joints, so none spins
    idly, and end in ball joints. The left foot is held to the world with six rows.
    """
    b = _Builder()
    torso = _rod(22.0, (0, 0, 0.5), 0.14) + _lump(6.0, (0.01, 0, -0.02), 0.10)
    b.floating("base", torso)
    motors = [m for side, y in (("left", 1.0), ("right", -1.0)) for m in _biped_leg(b, side, y)]
    b.weld("left_foot", _at(0.03, 0, -0.07), "stance")
    return b.mechanism(motors, "biped")


def _biped_leg(b: _Builder, side: str, y: float) -> list[str]:
    """One leg; returns its motors. The legs stand in slightly different postures."""

    def named(part: str) -> str:
        return f"{side}_{part}"

    more = 0.1 if side == "right" else 0.0
    yaw = b.hinge("base", named("yaw"), 2, _at(0, 0.1 * y, -0.08),
                  _lump(1.5, (-0.02, 0, -0.03), 0.05), 0.05 * y)  # fmt: skip
    roll = b.hinge(yaw, named("roll"), 0, _at(0, 0, -0.05), _lump(1.8, (0.01, 0.01 * y, 0), 0.05),
                   0.04 * y)  # fmt: skip
    thigh = b.hinge(roll, named("pitch"), 1, _at(0.0, 0.02 * y, -0.02),
                    _rod(3.5, (0, 0, -0.38), 0.05), -0.45 - more)  # fmt: skip
    crank = b.hinge(thigh, named("knee_crank"), 1, _at(0.01, 0.03 * y, -0.1),
                    _rod(0.3, (-0.07, 0, 0)), 0.2)  # fmt: skip
    place, angle = _at(0, 0, -0.38), 0.8 + 1.5 * more
    attach = (-0.06, 0.035 * y, 0.02)
    tip = b.world(thigh) * place * _turned(1, angle) * _at(*attach)
    end = b.rod(crank, (-0.07, 0.0, 0.0), tip, named("knee_rod"), 0.2)
    shin = b.hinge(thigh, named("knee"), 1, place, _rod(2.2, (0, 0, -0.36), 0.04), angle)
    b.ball(end, shin, attach, named("knee_ball"))
    return [yaw, roll, thigh, crank, *_biped_ankle(b, shin, side, y)]


def _biped_ankle(b: _Builder, shin: str, side: str, y: float) -> list[str]:
    """Two cranks on the shin that turn the foot about two axes."""
    cranks, ends = [], []
    ankle, pitch, bend = _at(0, 0, -0.36), -0.35, -0.04 * y
    drop = _at(0, 0, -0.015)
    foot_at = b.world(shin) * ankle * _turned(1, pitch) * drop * _turned(0, bend)
    for name, across, height in (("outer", 0.035 * y, -0.12), ("inner", -0.03 * y, -0.16)):
        crank = b.hinge(shin, f"{side}_{name}_crank", 1, _at(-0.01, across, height),
                        _rod(0.2, (-0.05, 0, 0)), 0.1)  # fmt: skip
        attach = (-0.055, 1.1 * across, -0.005)
        end = b.rod(crank, (-0.05, 0, 0), foot_at * _at(*attach), f"{side}_{name}_rod", 0.12)
        cranks.append(crank)
        ends.append((end, attach, f"{side}_{name}_ball"))
    cross = b.hinge(shin, f"{side}_ankle", 1, ankle, _lump(0.15, (0, 0, 0), 0.02), pitch)
    foot = b.hinge(cross, f"{side}_foot", 0, drop, _lump(1.0, (0.03, 0, -0.04), 0.06), bend)
    for end, attach, name in ends:
        b.ball(end, foot, attach, name)
    return cranks


def cassie_like() -> hc.Mechanism:
    """A biped in Cassie's topology: 30 coordinates, 18 rows of rank 18, 10 motors, k = 12.

    Each leg has 12 coordinates and 6 rows: hip roll, yaw and pitch and the knee (motors); a
    shin and a tarsus without motors; a heel rod from the thigh to the tarsus on a universal
    joint and a ball; a crank on the tarsus (motor) that turns the toe through a plantar rod,
    on a universal joint and a ball too. The left toe is held to the world with six rows.

    Two motions more than motors are left: where the real robot has a leaf spring at the shin,
    nothing holds the joint here, and it follows the dynamics (a spring would be an external
    effort). So every library needs M as well as h.
    """
    b = _Builder()
    b.floating("base", _rod(10.0, (0.02, 0, 0.25), 0.10))
    motors = [m for side, y in (("left", 1.0), ("right", -1.0)) for m in _cassie_leg(b, side, y)]
    b.weld("left_toe", _at(0.02, 0, -0.03), "stance")
    return b.mechanism(motors, "cassie_like")


def _cassie_leg(b: _Builder, side: str, y: float) -> list[str]:
    """One leg; returns its motors."""
    more = 0.1 if side == "right" else 0.0
    roll = b.hinge("base", f"{side}_roll", 0, _at(0.02, 0.13 * y, 0),
                   _lump(1.8, (-0.01, 0.02 * y, 0), 0.05), 0.03 * y)  # fmt: skip
    yaw = b.hinge(roll, f"{side}_yaw", 2, _at(0, 0, -0.08), _lump(1.2, (0, 0, -0.03), 0.05), 0.02)
    thigh = b.hinge(yaw, f"{side}_pitch", 1, _at(0, 0, -0.08), _rod(4.0, (0.02, 0, -0.14), 0.06),
                    -0.6 - more)  # fmt: skip
    hip = b.world(thigh)
    knee_at, knee_angle = _at(0.1, 0, -0.12), 1.1 + more
    shin_at, shin_angle = _at(0.05, 0.01 * y, -0.05), 0.05
    tarsus_at, tarsus_angle = _at(0.02, 0, -0.4), -1.2 - more
    heel = (-0.09, 0.02 * y, 0.01)
    at_shin = hip * knee_at * _turned(1, knee_angle) * shin_at * _turned(1, shin_angle)
    end = b.rod(thigh, (-0.03, 0.05 * y, -0.03),
                at_shin * tarsus_at * _turned(1, tarsus_angle) * _at(*heel),
                f"{side}_heel_rod", 0.25)  # fmt: skip
    knee = b.hinge(thigh, f"{side}_knee", 1, knee_at, _lump(0.8, (0.02, 0, -0.02), 0.05),
                   knee_angle)  # fmt: skip
    shin = b.hinge(knee, f"{side}_shin", 1, shin_at, _rod(0.9, (0.02, 0, -0.4), 0.02), shin_angle)
    tarsus = b.hinge(shin, f"{side}_tarsus", 1, tarsus_at, _rod(0.8, (0.03, 0, -0.36), 0.02),
                     tarsus_angle)  # fmt: skip
    b.ball(end, tarsus, heel, f"{side}_heel")
    return [roll, yaw, thigh, knee, _cassie_toe(b, tarsus, side, y)]


def _cassie_toe(b: _Builder, tarsus: str, side: str, y: float) -> str:
    """A crank on the tarsus that turns the toe; returns its motor."""
    crank = b.hinge(tarsus, f"{side}_toe_crank", 1, _at(0.02, 0.03 * y, -0.06),
                    _rod(0.15, (-0.055, 0, 0)), 0.15)  # fmt: skip
    toe_at, toe_angle, attach = _at(0.03, 0, -0.36), 0.6, (-0.05, 0.025 * y, 0.01)
    tip = b.world(tarsus) * toe_at * _turned(1, toe_angle) * _at(*attach)
    end = b.rod(crank, (-0.055, 0, 0), tip, f"{side}_plantar_rod", 0.12)
    toe = b.hinge(tarsus, f"{side}_toe", 1, toe_at, _rod(0.25, (0.14, 0, -0.02), 0.02), toe_angle)
    b.ball(end, toe, attach, f"{side}_plantar")
    return crank


def chain(n: int) -> hc.Mechanism:
    """n planar four-bars in series, a motor each: 3 n coordinates, 2 n rows, k = nu = n.

    Each stands on the rocker of the one before. Bars differ from cell to cell, cells bend to
    either side in turn, and those further out are lighter, as in an arm.
    """
    b = _Builder()
    b.model.gravity.linear = np.array([0.0, -9.81, 0.0])
    carrier = "universe"
    for i in range(n):
        carrier = _cell(b, carrier, i)
    return b.mechanism([f"crank_{i}" for i in range(n)], f"chain_{n}")


def _cell(b: _Builder, carrier: str, i: int) -> str:
    """One four-bar on `carrier`; returns the rocker, which carries the next.

    The crank turns about the carrier's far end, the rocker about a point beside it; the
    coupler joins their tips. Angles follow from the triangle at the coupler.
    """
    side = 1.0 if i % 2 == 0 else -1.0
    mass = 0.93**i
    crank, rocker, base = 0.10 + 0.006 * (i % 3), 0.13 + 0.005 * (i % 4), 0.11 + 0.004 * (i % 5)
    coupler = base + 0.03
    start = _at() if i == 0 else _at(0.16, 0.0)
    pivot = np.array([0.0, -side * base, 0.0])
    bend = side * (0.45 + 0.03 * (i % 4)) if i else 0.6
    crank_angle, coupler_angle = _triangle(pivot[1], crank, coupler, rocker, bend, side)
    first = b.hinge(carrier, f"crank_{i}", 2, start, _rod(0.4 * mass, (crank, 0, 0)), crank_angle)
    second = b.hinge(first, f"coupler_{i}", 2, _at(crank), _rod(0.3 * mass, (coupler, 0, 0)),
                     coupler_angle)  # fmt: skip
    beside = start * pin.SE3(np.eye(3), pivot)
    body = _rod(0.8 * mass, (0.16, 0, 0), 0.015)
    third = b.hinge(carrier, f"rocker_{i}", 2, beside, body, bend)
    ends = (second, _at(coupler)), (third, _at(rocker))
    b.loops.append(hc.Closure(*ends, axes="x y", name=f"pin_{i}"))
    return third


def _triangle(
    pivot: float, crank: float, coupler: float, rocker: float, bend: float, side: float
) -> tuple[float, float]:
    """Angles of crank and coupler that close on the rocker's tip."""
    tip = np.array([rocker * np.cos(bend), pivot + rocker * np.sin(bend)])
    reach = float(np.linalg.norm(tip))
    cosine = (crank**2 + reach**2 - coupler**2) / (2 * crank * reach)
    angle = float(np.arctan2(tip[1], tip[0])) + side * float(np.arccos(cosine))
    rest = tip - crank * np.array([np.cos(angle), np.sin(angle)])
    return angle, float(np.arctan2(rest[1], rest[0])) - angle


def shipped(name: str) -> Callable[[], hc.Mechanism]:
    """A robot that comes with the library."""
    return lambda: hc.load(hc.robot_file(name))


CHAINS = (1, 2, 6, 12, 40)

MECHANISMS: dict[str, Callable[[], hc.Mechanism]] = {
    "four_bar": shipped("four_bar"),
    "five_bar": shipped("five_bar"),
    "stewart": shipped("stewart"),
    "biped": biped,
    "cassie_like": cassie_like,
    **{f"chain {n}": (lambda n=n: chain(n)) for n in CHAINS},
}


def robot(name: str) -> hc.Mechanism:
    """One of `MECHANISMS`, or one that comes with the library, afloat where its name says so."""
    if name in MECHANISMS:
        return MECHANISMS[name]()
    own, _, afloat = name.partition(", ")
    return hc.load(hc.robot_file(own), free_flyer=afloat == "floating")
