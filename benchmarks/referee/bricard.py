"""A04: Bricard's mechanism, five rods and six hinges square to each other; it should not move.

Hinges 1, 3, 5 turn by x and hinges 2, 4, 6 by y, where

    4 cos^2(theta / 2) cos^2(phi / 2) = 1    theta = pi/2 - x,  phi = pi/2 - y

(the threefold symmetric mechanism with square twists: Chen, You and Tarnai 2005). The curve goes
round the origin of (theta, phi) once; its polar angle is the coordinate of the reference.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import holoctl as hc
from referee.one_freedom import OneFreedom, Pose, one_freedom
from referee.problem import Problem, at, brick

Array = NDArray[np.float64]
GRAVITY = np.array([0.0, -9.81, 0.0])
TIMES = np.linspace(0.0, 10.0, 101)
POINTS = np.array(
    [[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], float
)  # fmt: skip
AXES = np.eye(3)[[1, 2, 0, 1, 2, 0]]
SECTION = 0.1
START = 0.25 * np.pi
"""Of the polar angle: theta = phi = pi/2."""


def _along(i: int) -> Array:
    """Axes of rod i: x from its first point to its second."""
    x = POINTS[i + 1] - POINTS[i]
    y = np.roll(np.abs(x), 1)
    return np.stack([x, y, np.cross(x, y)], axis=1)


def linkage() -> hc.Linkage:
    """Five rods; `h1` to `h6` are its hinges."""
    link = hc.Linkage("bricard", GRAVITY)
    names = ["universe", *(f"rod_{i}" for i in range(1, 6)), "universe"]
    for i, name in enumerate(names[1:6]):
        R = _along(i)
        inertia = R @ brick(1.0, 1.0, SECTION, SECTION) @ R.T
        link.add_body(name, 1.0, 0.5 * (POINTS[i] + POINTS[i + 1]), inertia)
    for i in range(6):
        z = AXES[i]
        x = np.roll(z, 1)
        place = at(*POINTS[i], turn=np.stack([x, np.cross(z, x), z], axis=1))
        link.add_joint(f"h{i + 1}", "revolute", names[i], names[i + 1], place, place)
    return link


def make(cut: str) -> tuple[hc.Mechanism, Array, Array]:
    """At rest in the posture in which it was drawn, one hinge cut."""
    mech = linkage().mechanism(cut=[cut])
    q, v = hc.assemble(mech)
    return mech, q, v


def hinge_angles(a: float) -> tuple[float, float]:
    """x and y at a polar angle of the curve."""
    c, s = np.cos(a), np.sin(a)
    r = 2.2
    for _ in range(60):  # Newton from outside
        t, p = 0.5 * r * c, 0.5 * r * s
        f = np.cos(t) * np.cos(p) - 0.5
        slope = -0.5 * (c * np.sin(t) * np.cos(p) + s * np.cos(t) * np.sin(p))
        step = f / slope
        r -= step
        if abs(step) < 1e-16 * r:
            break
    return 0.5 * np.pi - r * c, 0.5 * np.pi - r * s


def placements(a: float) -> tuple[list[Array], list[Array]]:
    """Rotations of the rods from the drawing, and the six points."""
    x, y = hinge_angles(a)
    R, at_point = np.eye(3), POINTS[0]
    turns, points = [], [POINTS[0]]
    for i in range(5):
        R = R @ turned(AXES[i], x if i % 2 == 0 else y)
        at_point = at_point + R @ (POINTS[i + 1] - POINTS[i])
        turns.append(R)
        points.append(at_point)
    return turns, points


def turned(axis: Array, angle: float) -> Array:
    """Rodrigues' formula."""
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def _poses(a: float) -> list[Pose]:
    turns, points = placements(a)
    return [
        (0.5 * (points[i] + points[i + 1]), turns[i] @ _along(i)) for i in range(5)
    ]  # fmt: skip


def motion(samples: int = 512) -> OneFreedom:
    """Of one freedom, the polar angle."""
    bodies = [(1.0, brick(1.0, 1.0, SECTION, SECTION))] * 5
    return one_freedom(_poses, bodies, GRAVITY, samples)


def reference(times: Array = TIMES) -> Array:
    """The points between rods 1 and 2, 2 and 3, 3 and 4, 4 and 5."""
    a, _ = motion().motion(times, START, 0.0)
    return np.array([placements(x)[1][1:5] for x in a])


def bricard(cut: str) -> Problem:
    """The problem with one hinge cut."""
    return Problem(
        f"A04, Bricard, cut at {cut}",
        "Data: IFToMM benchmark A04 (five rods of 1 m, 1 kg, section 0.1 m square, at rest, "
        "10 s), hinges as in RehabEngGroup/MBSbenchmarksInOpenSim and Exudyn's "
        "bricardMechanism.py. All four points between rods are compared, so P3 is among them. "
        "Reference: the closed form of the threefold symmetric mechanism, one freedom, DOP853 at "
        "1e-13; closed to rounding at all samples.",
        lambda: make(cut), tuple((f"rod_{i}", at(*POINTS[i])) for i in range(1, 5)), TIMES,
        reference, steps={"Exudyn": 1e-3, "MuJoCo": 1e-3}, peers=cut == "h6",
    )  # fmt: skip
