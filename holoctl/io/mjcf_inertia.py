"""Mass and inertia of a body of MJCF: as given, or of its geoms, as MuJoCo's compiler does it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.io.limits import LARGEST
from holoctl.io.mjcf_compiled import CompiledFile
from holoctl.io.mjcf_elements import Compiler, Item
from holoctl.io.rotations import z_to
from holoctl.tree.inertia import rigid_body

__all__ = ["PRIMITIVES", "Lump", "lump_of", "placed", "scaled_to_total"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Lump:
    """A mass with its principal moments about the origin of a frame, the centre of mass."""

    mass: float = 0.0
    moments: tuple[float, ...] = (0.0, 0.0, 0.0)
    frame: pin.SE3 = None

    @property
    def inertia(self) -> pin.Inertia:
        """For Pinocchio, in what the frame is given in."""
        R = self.frame.rotation
        return rigid_body(self.mass, self.frame.translation, R @ np.diag(self.moments) @ R.T)


def lump_of(
    body: Item,
    inertials: Sequence[tuple[Item, pin.SE3]],
    geoms: Sequence[tuple[Item, pin.SE3]],
    index: int,
    compiled: CompiledFile,
) -> Lump:
    """The inertia of a body in its own frame.

    Parameters
    ----------
    body : Item
    inertials, geoms : sequences of (Item, pin.SE3)
        Its ``<inertial>``, at most one, and its geoms, each with the frame that it stands in.
    index, compiled
        Where the body is in the file as MuJoCo compiles it, which is asked for a body whose
        inertia is that of a mesh.

    Raises
    ------
    LoadError
        For an inertia that no body can have, and for a geom whose inertia counts and is not
        known: a mesh, without MuJoCo.
    """
    compiler = body.compiler
    if len(inertials) > 1:
        raise inertials[1][0].error("<inertial> stands twice")
    given = bool(inertials) and compiler.inertiafromgeom != "true"
    if given:
        found = _given(*inertials[0])
    elif compiler.inertiafromgeom == "false":
        found = _nothing(body)
    elif unknown := _unknown(geoms, compiler):
        found = Lump(*compiled.lump(body, index, *unknown))
    else:
        found = _of_geoms(geoms, compiler) or (
            _given(*inertials[0]) if inertials else _nothing(body)
        )
    return _bounded(inertials[0][0] if given else body, found, compiler)


def scaled_to_total(lumps: Sequence[Lump], total: float) -> list[Lump]:
    """All masses and inertias times one factor, so that the masses sum up to `total`."""
    factor = total / max(sum(lump.mass for lump in lumps), 1e-15)
    return [
        replace(x, mass=x.mass * factor, moments=tuple(m * factor for m in x.moments))
        for x in lumps
    ]


def _nothing(body: Item) -> Lump:
    """A body without mass: if a bound gives it one, that is at the body's own ``pos``.

    In axes of the body: MuJoCo takes the pose of the body for that of its centre of mass.
    """
    return Lump(frame=body.pose())


def _bounded(place: Item, lump: Lump, compiler: Compiler) -> Lump:
    """With the compiler's lower bounds; moments that no body has are balanced or refused."""
    moments = tuple(max(m, compiler.boundinertia) for m in lump.moments)
    least, middle, most = sorted(moments)
    if least + middle < most * (1.0 - 1e-9) - 1e-15:
        if not compiler.balanceinertia:
            raise place.error(
                f"no body has these principal moments of inertia: {least:g} + {middle:g} < "
                f"{most:g}; MuJoCo's balanceinertia would make them equal"
            )
        moments = (sum(moments) / 3.0,) * 3
    return Lump(max(lump.mass, compiler.boundmass), moments, lump.frame)


# -------------------------------------------------------------------------------- as given


def _given(item: Item, frame: pin.SE3) -> Lump:
    if "mass" not in item or "pos" not in item:
        raise item.error("mass and pos are needed")
    pose, mass = frame * item.pose(), item.size("mass", 0.0)
    if "fullinertia" not in item:
        if "diaginertia" not in item:
            raise item.error("diaginertia or fullinertia is needed")
        moments = item.numbers("diaginertia", (0.0, 0.0, 0.0))
        if min(moments) < 0.0:
            raise item.error(f"diaginertia must not be negative; got {moments}")
        return Lump(mass, moments, pose)
    if not np.array_equal(item.pose().rotation, np.eye(3)):
        raise item.error("give fullinertia or an orientation, not both")
    xx, yy, zz, xy, xz, yz = item.numbers("fullinertia", (0.0,) * 6)
    full = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    lump = _principal(mass, pose.translation, pose.rotation @ full @ pose.rotation.T)
    if lump.moments[0] < -1e-15 or "diaginertia" in item:
        raise item.error(
            "give one of diaginertia and fullinertia"
            if "diaginertia" in item
            else f"fullinertia must be positive; its moments are {lump.moments}"
        )
    return lump


def _principal(mass: float, com: Vector, inertia: Array) -> Lump:
    """A lump from the inertia about the centre of mass, in the axes of the body."""
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.linalg.det(axes)
    return Lump(mass, tuple(moments.tolist()), pin.SE3(axes, com))


# -------------------------------------------------------------------------------- of geoms


def _of_geoms(geoms: Sequence[tuple[Item, pin.SE3]], compiler: Compiler) -> Lump | None:
    """The sum of all geoms of the body whose group counts; None if they have no mass."""
    lumps = [
        lump
        for item, frame in geoms
        if _counts(item, compiler) and (lump := _of_geom(item, frame)) is not None
    ]
    if len(lumps) == 1:
        return lumps[0]
    mass = sum(lump.mass for lump in lumps)
    if mass <= 0.0:
        return None
    com = sum((lump.mass * lump.frame.translation for lump in lumps), np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for lump in lumps:
        arm, R = lump.frame.translation - com, lump.frame.rotation
        inertia += R @ np.diag(lump.moments) @ R.T
        inertia += lump.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return _principal(mass, com, inertia)


def _counts(item: Item, compiler: Compiler) -> bool:
    first, last = compiler.inertiagrouprange
    return first <= item.number("group", 0.0) <= last


def _unknown(geoms: Sequence[tuple[Item, pin.SE3]], compiler: Compiler) -> tuple[Item, str] | None:
    """A geom whose inertia counts and is not known from the file, and why."""
    for item, _ in geoms:
        if _counts(item, compiler) and _has_mass(item):
            kind = item.word("type", _TYPES, "sphere")
            if kind in _NEEDS_ASSET or item.text("mesh"):
                return item, (
                    f"the mass and inertia of this body come from a {kind}, and files are not "
                    "opened"
                )
            if item.true("shellinertia"):
                return item, "shellinertia is not read"
    return None


def _has_mass(item: Item) -> bool:
    return item.size("mass" if "mass" in item else "density", 1000.0) != 0.0


_TYPES = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "plane", "hfield", "mesh", "sdf")
_NEEDS_ASSET = ("mesh", "hfield", "sdf")
_SMALLEST = 1e-15  # m, as MuJoCo has it: volumes and their reciprocals stay in range
PRIMITIVES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
"""Forms of geoms, and how many sizes each has."""


def _of_geom(item: Item, frame: pin.SE3) -> Lump | None:
    """Mass and moments of a geom; None where it has no mass."""
    kind = item.word("type", _TYPES, "sphere")
    if not _has_mass(item):
        return None
    mass = item.size("mass", 0.0) if "mass" in item else None
    if kind == "plane":
        raise item.error("a plane can only be part of a body that does not move")
    size, pose = placed(item, kind)
    volume, moments = _solid(kind, size)
    mass = item.size("density", 1000.0) * volume if mass is None else mass
    if mass > LARGEST:
        raise item.error(
            f"this {kind} would have a mass of {mass:.6g} kg, more than {LARGEST:g} kg"
        )
    return Lump(mass, tuple(mass * m for m in moments), frame * pose)


def placed(item: Item, kind: str) -> tuple[tuple[float, ...], pin.SE3]:
    """Sizes and pose of a primitive; ``fromto`` gives its place, direction and half length."""
    count = PRIMITIVES[kind]
    if "fromto" not in item:
        size = item.numbers("size", (0.0, 0.0, 0.0), least=count)[:count]
        pose = item.pose()
    elif kind == "sphere":
        raise item.error("fromto is for capsules, cylinders, boxes and ellipsoids")
    else:
        ends = np.array(item.numbers("fromto", (0.0,) * 6))
        across = item.numbers("size", (0.0, 0.0, 0.0), least=1)[0]
        along = ends[:3] - ends[3:]
        length = float(np.linalg.norm(along))
        if length < 1e-10:
            raise item.error("fromto: the two points are one")
        size = (*(across,) * (count - 1), 0.5 * length)
        pose = pin.SE3(z_to(along / length), 0.5 * (ends[:3] + ends[3:]))
    if min(size) < _SMALLEST:
        raise item.error(
            f"a {kind} has {count} size{'s' * (count > 1)} above zero, of at least "
            f"{_SMALLEST:g} m; got {' '.join(f'{x:g}' for x in size)}"
        )
    return size, pose


def _solid(kind: str, size: tuple[float, ...]) -> tuple[float, tuple[float, ...]]:
    """Volume, m^3, and principal moments of unit mass, m^2."""
    if kind in ("sphere", "ellipsoid"):
        a, b, c = size * 3 if kind == "sphere" else size
        moments = ((b * b + c * c) / 5.0, (a * a + c * c) / 5.0, (a * a + b * b) / 5.0)
        return 4.0 / 3.0 * math.pi * a * b * c, moments
    if kind == "box":
        a, b, c = size
        moments = ((b * b + c * c) / 3.0, (a * a + c * c) / 3.0, (a * a + b * b) / 3.0)
        return 8.0 * a * b * c, moments
    r, h = size
    cylinder = 2.0 * math.pi * r * r * h
    balls = 4.0 / 3.0 * math.pi * r**3 if kind == "capsule" else 0.0  # two half balls
    volume = cylinder + balls
    across = cylinder * (3.0 * r * r + 4.0 * h * h) / 12.0
    across += balls * (0.4 * r * r + h * h + 0.75 * h * r)
    along = cylinder * 0.5 * r * r + balls * 0.4 * r * r
    return volume, (across / volume, across / volume, along / volume)
