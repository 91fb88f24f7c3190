"""Mechanisms from bodies and joints, with what is known of their mobility.

Four-bar, triangle, spherical loop, umbrella and double link are the test cases of "Kinematic
loops", a post on joints in SymPy (Google Summer of Code 2022); the others are overconstrained, or
have idle spins. Lengths are in metres times `scale`, masses
in kg: with ``scale=1000.0`` the same mechanism in millimetres.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from zoo import at, bennett_ring, bricard_ring

import holoctl as hc


class Expected(NamedTuple):
    """What depends on the cut: open dof, active rows, rows. What does not: closed dof, gruebler."""

    joints: int
    open_dof: int
    active: int
    closed_dof: int
    rows: int
    gruebler: int


class Case(NamedTuple):
    """A linkage, the joints that the table cuts, and what the table says."""

    linkage: hc.Linkage
    cut: tuple[str, ...]
    expected: Expected
    reference: Mapping[str, Any]
    motors: tuple[str, ...]

    def mechanism(self, **options: Any) -> hc.Mechanism:
        """The mechanism of the table."""
        return self.linkage.mechanism(
            **{"cut": self.cut, "actuated": self.motors, "reference": self.reference} | options
        )


class Recorded(hc.Linkage):
    """A linkage that knows how it was built."""

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "calls", [])

    def add_body(self, *arguments, **options):
        super().add_body(*arguments, **options)
        self.calls.append((hc.Linkage.add_body, arguments, options))

    def add_joint(self, *arguments, **options):
        super().add_joint(*arguments, **options)
        self.calls.append((hc.Linkage.add_joint, arguments, options))

    def replayed(self, order):
        """The same linkage, its parts added in another order."""
        new = hc.Linkage(self.name, self.gravity)
        for i in order(len(self.calls)):
            add, arguments, options = self.calls[i]
            add(new, *arguments, **options)
        return new


def add_bar(link, name, length, scale, mass=None):
    """A slender bar along x, a little thick, 2 kg/m."""
    mass = 2.0 * length if mass is None else mass
    inertia = mass * np.diag([1e-4, length**2 / 12 + 1e-4, length**2 / 12 + 1e-4])
    link.add_body(name, mass, (scale * length / 2, 0.0, 0.0), scale**2 * inertia)


def add_lump(link, name, scale, mass=1.0, com=(0.05, 0.08, 0.1)):
    """A body without symmetry, its centre of mass off every joint."""
    R = pin.rpy.rpyToMatrix(0.3, -0.5, 0.7)
    inertia = mass * R @ np.diag([0.010, 0.012, 0.015]) @ R.T
    link.add_body(name, mass, scale * np.array(com), scale**2 * inertia)


def planar(name, scale):
    """Gravity along -y: the planar mechanisms move in x and y."""
    return Recorded(name, gravity=(0.0, -9.81 * scale, 0.0))


def spatial(name, scale):
    return Recorded(name, gravity=(0.0, 0.0, -9.81 * scale))


def four_bar(scale=1.0):
    """Crank, coupler and rocker; the crank is driven."""
    link = planar("four_bar", scale)
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        add_bar(link, name, length, scale)
    link.add_joint("motor", "revolute", "universe", "crank")
    link.add_joint("elbow", "revolute", "crank", "coupler", at(0.2, scale=scale))
    link.add_joint("pivot", "revolute", "universe", "rocker", at(0.5, scale=scale))
    link.add_joint(
        "pin", "revolute", "coupler", "rocker", at(0.5, scale=scale), at(0.4, scale=scale)
    )
    reference = {"motor": 1.0, "elbow": -0.5, "pivot": 1.4}
    return Case(link, ("pin",), Expected(4, 3, 2, 1, 5, -2), reference, ("motor",))


def triangle(scale=1.0):
    """Three bars, one of them the ground: rigid."""
    link = planar("triangle", scale)
    add_bar(link, "a", 0.5, scale)
    add_bar(link, "b", 0.4, scale)
    link.add_joint("left", "revolute", "universe", "a")
    link.add_joint("top", "revolute", "a", "b", at(0.5, scale=scale))
    link.add_joint("right", "revolute", "b", "universe", at(0.4, scale=scale), at(0.6, scale=scale))
    return Case(link, ("right",), Expected(3, 2, 2, 0, 5, -3), {"left": 0.7, "top": -1.4}, ())


def spherical_loop(scale=1.0):
    """A crank that a rod with two ball joints holds: what is left is the spin of the rod."""
    link = spatial("spherical_loop", scale)
    add_lump(link, "crank", scale)
    add_lump(link, "rod", scale, 0.5, (0.2, 0.01, 0.02))
    link.add_joint("pin", "revolute", "universe", "crank")
    link.add_joint("foot", "spherical", "universe", "rod", at(0.5, 0.1, 0.3, scale=scale))
    link.add_joint(
        "head", "spherical", "rod", "crank", at(0.45, scale=scale), at(0.2, 0.0, 0.05, scale=scale)
    )
    reference = {"foot": pin.Quaternion(pin.rpy.rpyToMatrix(0.2, 0.6, -2.9)).coeffs()}
    return Case(link, ("pin",), Expected(3, 6, 5, 1, 5, 1), reference, ())


def umbrella(scale=1.0, turn=np.pi):
    """Two arms, rod and strut each, on one slider; the second is turned about the shaft."""
    link = spatial("umbrella", scale)
    add_lump(link, "slider", scale)
    link.add_joint("shaft", "prismatic", "universe", "slider", at(0.0, 0.0, 0.4, scale=scale))
    side = np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])  # x outwards, y up the shaft
    for arm, angle in (("1", 0.3), ("2", 0.3 + turn)):
        R = pin.rpy.rpyToMatrix(0.0, 0.0, angle) @ side
        add_bar(link, f"rod_{arm}", 0.6, scale)
        add_bar(link, f"strut_{arm}", 0.35, scale)
        hub, foot = at(0.0, 0.0, 1.0, R, scale), at(R=R)
        link.add_joint(f"hub_{arm}", "revolute", "universe", f"rod_{arm}", hub)
        link.add_joint(f"foot_{arm}", "revolute", "slider", f"strut_{arm}", foot)
        middle, tip = at(0.3, scale=scale), at(0.35, scale=scale)
        link.add_joint(f"pin_{arm}", "revolute", f"strut_{arm}", f"rod_{arm}", tip, middle)
    reference = {"shaft": 0.25 * scale, "hub_1": -0.5, "hub_2": -0.5, "foot_1": 0.6, "foot_2": 0.6}
    return Case(
        link, ("pin_1", "pin_2"), Expected(7, 5, 4, 1, 10, -5), reference, ("shaft",)
    )  # fmt: skip


def turned_umbrella(scale=1.0):
    return umbrella(scale, 1.9)


def double_link(scale=1.0):
    """Two equal bars folded onto each other: they turn together."""
    link = planar("double_link", scale)
    add_bar(link, "a", 0.4, scale)
    add_bar(link, "b", 0.4, scale, 0.5)
    link.add_joint("base", "revolute", "universe", "a")
    link.add_joint("fold", "revolute", "a", "b", at(0.4, scale=scale))
    link.add_joint("back", "revolute", "b", "universe", at(0.4, scale=scale))
    return Case(
        link, ("back",), Expected(3, 2, 1, 1, 5, -3), {"base": 0.6, "fold": np.pi}, ("base",)
    )  # fmt: skip


def _ring(name, scale, links, angles, expected):
    """A ring of hinges: Rz(theta) Tx(a) Rx(alpha) for each link; the last link is the ground."""
    link = spatial(name, scale)
    n = len(links)
    ends = [at(a, R=pin.rpy.rpyToMatrix(alpha, 0.0, 0.0), scale=scale) for a, alpha in links]
    bodies = ["universe", *(f"link_{i}" for i in range(1, n)), "universe"]
    for i in range(1, n):
        add_lump(link, f"link_{i}", scale, 1.0 + 0.1 * i)
    for i in range(1, n + 1):
        start = pin.SE3.Identity() if i == 1 else ends[i - 2]
        end = ends[-1].inverse() if i == n else pin.SE3.Identity()
        link.add_joint(f"hinge_{i}", "revolute", bodies[i - 1], bodies[i], start, end)
    reference = {f"hinge_{i + 1}": angle for i, angle in enumerate(angles)}
    return Case(link, (f"hinge_{n}",), expected, reference, ("hinge_1",))


def bennett(scale=1.0):
    """Bennett's loop, as in the zoo."""
    return _ring("bennett", scale, *bennett_ring(), Expected(4, 3, 2, 1, 5, -2))


def spherical_four_bar(scale=1.0):
    """Four hinges whose axes meet in a point."""
    links = [(0.0, 0.6), (0.0, 1.1), (0.0, 0.9), (0.0, 1.2)]
    angles = [1.0, 1.7, 2.0]
    return _ring("spherical_four_bar", scale, links, angles, Expected(4, 3, 2, 1, 5, -2))


def bricard(scale=1.0):
    """Bricard's loop, as in the zoo."""
    return _ring("bricard", scale, *bricard_ring(), Expected(6, 5, 4, 1, 5, 0))


def third_bar(scale=1.0):
    """A parallelogram with a third parallel bar: ten rows of which three count."""
    link = planar("third_bar", scale)
    add_bar(link, "coupler", 0.6, scale)
    for i in range(3):
        add_bar(link, f"bar_{i}", 0.25, scale, 0.5 + 0.1 * i)
        x = at(0.3 * i, scale=scale)
        link.add_joint(f"foot_{i}", "revolute", "universe", f"bar_{i}", x)
        link.add_joint(
            f"head_{i}", "revolute", f"bar_{i}", "coupler", at(0.25, scale=scale), x
        )  # fmt: skip
    reference = {"foot_0": 1.1, "foot_1": 1.1, "foot_2": 1.1, "head_0": -1.1}
    return Case(
        link, ("head_1", "head_2"), Expected(6, 4, 3, 1, 10, -6), reference, ("foot_0",)
    )  # fmt: skip


def stewart(scale=1.0, foot="universal"):
    """A platform on six legs, closed at zero; its pistons are driven."""
    kind = {"universal": "ups", "spherical": "sps"}[foot]
    link = spatial(f"stewart_6{kind}", scale)
    add_lump(link, "platform", scale, 5.0, (0.02, 0.01, 0.03))
    base = [0.1, 1.9, 2.3, 4.1, 4.4, 6.1]
    top = [0.8, 1.2, 2.9, 3.4, 5.0, 5.4]
    for i, (below, above) in enumerate(zip(base, top, strict=True), start=1):
        foot_at = np.array([0.6 * np.cos(below), 0.6 * np.sin(below), 0.02 * i])
        head_at = np.array([0.4 * np.cos(above), 0.35 * np.sin(above), 0.7])
        leg = head_at - foot_at
        length = float(np.linalg.norm(leg))
        R = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), leg / length).matrix()
        add_lump(link, f"cylinder_{i}", scale, 0.8, (0.01, 0.02, 0.2))
        add_lump(link, f"rod_{i}", scale, 0.5, (0.01, 0.0, -0.2))
        half = 0.5 * length
        link.add_joint(
            f"foot_{i}", foot, "universe", f"cylinder_{i}", at(*foot_at, R=R, scale=scale)
        )
        link.add_joint(
            f"piston_{i}", "prismatic", f"cylinder_{i}", f"rod_{i}",
            at(0.0, 0.0, half, scale=scale), at(0.0, 0.0, -half, scale=scale),
        )  # fmt: skip
        on_platform = at(*(head_at - [0.0, 0.0, 0.7]), R=R, scale=scale)
        link.add_joint(f"head_{i}", "spherical", f"rod_{i}", "platform", None, on_platform)
    spins = 6 if kind == "sps" else 0
    expected = Expected(18, 21 + spins, 15, 6 + spins, 15, 6 + spins)
    cut = tuple(f"head_{i}" for i in range(2, 7))
    return Case(link, cut, expected, {}, tuple(f"piston_{i}" for i in range(1, 7)))


def stewart_6sps(scale=1.0):
    return stewart(scale, "spherical")


FEW = ("four_bar", "triangle", "spherical_loop", "bennett", "third_bar", "bricard", "stewart_6ups")
"""The short run's."""

LINKAGES: dict[str, Callable[..., Case]] = {
    "four_bar": four_bar,
    "triangle": triangle,
    "spherical_loop": spherical_loop,
    "umbrella": umbrella,
    "turned_umbrella": turned_umbrella,
    "double_link": double_link,
    "bennett": bennett,
    "spherical_four_bar": spherical_four_bar,
    "third_bar": third_bar,
    "bricard": bricard,
    "stewart_6ups": stewart,
    "stewart_6sps": stewart_6sps,
}
