"""Mechanisms drawn in an assembled posture: joints as points and axes of the world.

Every body has the axes of the world in the posture drawn, so a joint is given once, is the same
frame in both its bodies, and all loops close at q = 0 as exactly as numbers go. Lengths are in
metres times `scale`. Masses and inertias have no symmetry, and gravity is oblique.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin

import holoctl as hc

X, Y, Z = np.eye(3)
GRAVITY = np.array([1.7, -6.5, -7.1])


@dataclass(frozen=True)
class Truth:
    """What is known of a mechanism.

    Attributes
    ----------
    dof : int
        Motions that go on, idle ones among them.
    redundant : int
        Rows that may go without a change of the motion: how far counting is wrong.
    idle : int
        Motions of bodies between others at rest, as the spin of a bar between balls.
    here : int, optional
        Motions of first order in the posture drawn, where that is singular.
    shaky : int
        How many of them lead nowhere.
    """

    dof: int
    redundant: int
    idle: int = 0
    here: int | None = None
    shaky: int = 0

    @property
    def regular(self) -> bool:
        """Whether all motions of first order go on."""
        return self.here is None


@dataclass
class Drawing:
    """A mechanism as drawn; `mechanism` makes it.

    Attributes
    ----------
    name : str
    truth : Truth
    motors : tuple of str
        Coordinates that determine all motions that are not idle, as many as these.
    scale : float
        1000 for millimetres.
    """

    name: str
    truth: Truth
    motors: tuple[str, ...] = ()
    scale: float = 1.0
    joints: list[tuple[str, str, str, str, pin.SE3, float | None]] = field(default_factory=list)
    couplings: list[hc.Coupling] = field(default_factory=list)

    def joint(
        self, name: str, type: str, a: str, b: str, point: Any, axis: Any = Z, pitch: Any = None
    ) -> None:
        """A joint between bodies `a` and `b`; z of its frame is `axis`."""
        placed = pin.SE3(along(axis), self.scale * np.array(point, float))
        self.joints.append((name, type, a, b, placed, pitch and self.scale * pitch))

    def hinge(self, name: str, a: str, b: str, point: Any, axis: Any = Z) -> None:
        self.joint(name, "revolute", a, b, point, axis)

    def slide(self, name: str, a: str, b: str, point: Any, axis: Any = Z) -> None:
        self.joint(name, "prismatic", a, b, point, axis)

    def ball(self, name: str, a: str, b: str, point: Any) -> None:
        self.joint(name, "spherical", a, b, point)

    def universal(self, name: str, a: str, b: str, point: Any, x: Any, y: Any) -> None:
        """A cross with one axis `x` in body `a` and one `y`, at a right angle, in body `b`."""
        x, y = unit(x), np.array(y, float)
        y = unit(y - (x @ y) * x)
        placed = pin.SE3(np.column_stack([x, y, np.cross(x, y)]), self.scale * np.array(point))
        self.joints.append((name, "universal", a, b, placed, None))

    def bar(self, name: str, a: str, b: str, at_a: Any, at_b: Any) -> None:
        """A bar with a ball at both ends, named after it."""
        self.ball(f"{name}_a", a, name, at_a)
        self.ball(f"{name}_b", name, b, at_b)

    def ring(self, axes: Sequence[tuple[Any, Any]]) -> Drawing:
        """Hinges hinge_1 ... on these axes (point, direction); the last link is the ground."""
        bodies = ["universe", *(f"link_{i}" for i in range(1, len(axes))), "universe"]
        for i, (point, axis) in enumerate(axes, start=1):
            self.hinge(f"hinge_{i}", bodies[i - 1], bodies[i], point, axis)
        return self

    def pins(self, pins: Iterable[tuple[str, str, Any]], height: float = 0.07) -> Drawing:
        """Hinges along z of planar mechanisms: (body, body, (x, y)), named after the bodies.

        They do not lie in one plane: pins of real parts stand at different heights.
        """
        for i, (a, b, point) in enumerate(pins):
            at_z = height * ((3 * i) % 5 - 2)
            self.hinge(f"{a}_{b}".replace("universe", "base"), a, b, (*point, at_z))
        return self

    def linkage(self, askew: bool = False) -> hc.Linkage:
        """Bodies and joints; `askew`: in a turned world, each body and hinge with axes of its own.

        Then no number is round any more, as in a file that was drawn elsewhere.
        """
        rng, turns = np.random.default_rng(17), np.random.default_rng(29)
        world = anywhere(turns, self.scale) if askew else pin.SE3.Identity()
        link = hc.Linkage(self.name, gravity=self.scale * (world.rotation @ GRAVITY))
        points: dict[str, list[Any]] = {}
        for _, _, a, b, placed, _ in self.joints:
            for body in (a, b):
                points.setdefault(body, []).append(placed.translation)
        points.pop("universe", None)
        own = (lambda: anywhere(turns, self.scale)) if askew else pin.SE3.Identity
        frames = {body: own() for body in points}
        for body, ends in points.items():
            A = rng.normal(size=(3, 3))
            second = 0.004 * self.scale**2 * (A @ A.T + 3.0 * np.eye(3))
            mass = rng.uniform(0.5, 2.0)
            com = np.mean(ends, axis=0) + 0.03 * self.scale * rng.normal(size=3)
            moments = mass * (np.trace(second) * np.eye(3) - second)
            inertia = frames[body].inverse().act(pin.Inertia(mass, com, moments))
            link.add_body(body, mass, inertia.lever, inertia.inertia)
        frames["universe"] = world.inverse()
        for name, type, a, b, placed, pitch in self.joints:
            if askew and type != "universal":
                placed = placed * pin.SE3(pin.exp3(turns.uniform(-3.0, 3.0) * Z), np.zeros(3))  # noqa: PLW2901
            ends = [frames[body].inverse() * placed for body in (a, b)]
            link.add_joint(name, type, a, b, *ends, pitch=pitch)
        return link

    def mechanism(self, askew: bool = False, **options: Any) -> hc.Mechanism:
        """As drawn, with its motors; options of `Linkage.mechanism`."""
        mech = self.linkage(askew).mechanism(**{"actuated": self.motors} | options)
        return mech.with_constraints(*self.couplings) if self.couplings else mech


def anywhere(rng: np.random.Generator, length: float) -> pin.SE3:
    """A placement at random."""
    return pin.SE3(pin.exp3(rng.normal(size=3)), length * rng.normal(size=3))


def unit(direction: Any) -> Any:
    """Of length 1."""
    d = np.array(direction, float)
    return d / np.linalg.norm(d)


def along(axis: Any) -> Any:
    """A rotation with z along the axis."""
    z = unit(axis)
    x = unit(np.cross(np.eye(3)[np.argmin(np.abs(z))], z))
    return np.column_stack([x, np.cross(z, x), z])


def on_circle(radius: float, angle: float, z: float = 0.0) -> Any:
    """A point over a circle about the z axis."""
    return np.array([radius * np.cos(angle), radius * np.sin(angle), z])


def meet(a: Any, ra: float, b: Any, rb: float, side: float = 1.0) -> Any:
    """Where circles about `a` and `b` meet in the plane, left of a to b for side = 1."""
    a, b = np.array(a, float), np.array(b, float)
    d = np.linalg.norm(b - a)
    e = (b - a) / d
    s = (ra**2 - rb**2 + d**2) / (2.0 * d)
    return a + s * e + side * np.sqrt(ra**2 - s**2) * np.array([-e[1], e[0]])
