"""The visible shapes of a body: boxes, balls, cylinders, capsules, meshes, each fixed in a joint.

placement in the world = X_j placement        X_j: placement of the joint at a configuration
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.app.palette import BODIES, GROUND, rgb
from holoctl.base.checks import Array, Vector

__all__ = [
    "Bar",
    "Color",
    "DrawnSolid",
    "Geometry",
    "Kind",
    "Shape",
    "Solid",
    "ball",
    "box",
    "capsule",
    "color_of",
    "color_of_joint",
    "cylinder",
    "ellipsoid",
    "lying",
    "mesh",
]

Faces = NDArray[np.int64]
Kind = Literal["box", "sphere", "cylinder", "capsule", "mesh"]
Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, each from 0 to 1."""

_AROUND = 24  # points around an ellipsoid, and half as many from pole to pole


@dataclass(frozen=True, eq=False)
class Solid:
    """A form in its own frame.

    Attributes
    ----------
    kind : str
    size : tuple of float
        m. Box: its three edges. Sphere: radius. Cylinder: radius, length, along z. Capsule:
        radius, and the length between the centres of its ends, along z. Mesh: empty.
    vertices : (n, 3) array
        Vertices of a mesh, m; else empty.
    faces : (m, 3) int array
        Triangles of a mesh, as indices of `vertices`; else empty.
    """

    kind: Kind
    size: tuple[float, ...] = ()
    vertices: Array = field(default_factory=lambda: np.zeros((0, 3)))
    faces: Faces = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Shape:
    """A solid fixed in the body of a joint.

    Attributes
    ----------
    joint : int
        Index in the model; 0 for the world.
    placement : pin.SE3
        Placement of the solid in the frame of the joint.
    kind, size, vertices, faces
        As in `Solid`.
    color : tuple of 4 float
        Red, green, blue and opacity, each from 0 to 1.
    body : str
        Name of the body of the file that it belongs to, or of the joint.
    """

    joint: int
    placement: pin.SE3
    kind: Kind
    size: tuple[float, ...]
    color: Color
    vertices: Array
    faces: Faces
    body: str

    @staticmethod
    def of(
        solid: Solid, joint: int, placement: pin.SE3, body: str, color: Color | None = None
    ) -> Shape:
        """A solid fixed in a joint; by default in the color of the joint."""
        shown = color_of_joint(joint) if color is None else color
        return Shape(
            joint, placement, solid.kind, solid.size, shown, solid.vertices, solid.faces, body
        )


@dataclass(frozen=True, eq=False)
class Bar:
    """A round bar between two points of two bodies, with the distance of these as its length.

    Attributes
    ----------
    joints : tuple of 2 int
        The joints that move the bodies; 0 for the world.
    ends : tuple of 2 (3,) array
        The points, each in the frame of its joint, m.
    radius : float
        Radius, m.
    color : tuple of 4 float
        Red, green, blue and opacity, each from 0 to 1.
    """

    joints: tuple[int, int]
    ends: tuple[Vector, Vector]
    radius: float
    color: Color


@dataclass(frozen=True, eq=False)
class Geometry:
    """Shapes and bars of a mechanism, and sentences on shapes of a file that are left out."""

    shapes: tuple[Shape, ...]
    words: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()


@dataclass(frozen=True, eq=False)
class DrawnSolid:
    """A solid in a file: the name of the body, the placement in it, and a color if given."""

    body: str
    placement: pin.SE3
    solid: Solid
    color: Color | None = None


def color_of_joint(joint: int) -> Color:
    """One of a few colors that are distinct for the color-blind; that of the ground for joint 0."""
    return color_of(GROUND if joint == 0 else BODIES[(joint - 1) % len(BODIES)])


def color_of(hexadecimal: str) -> Color:
    """A color of the palette as an opaque `Color`."""
    red, green, blue = (x / 255.0 for x in rgb(hexadecimal))
    return red, green, blue, 1.0


# ---------------------------------------------------------------------------------- solids


def box(x: float, y: float, z: float) -> Solid:
    """A box with these edges, m."""
    return Solid("box", (x, y, z))


def ball(radius: float) -> Solid:
    """A sphere."""
    return Solid("sphere", (radius,))


def cylinder(radius: float, length: float) -> Solid:
    """A cylinder along z with its centre at the origin."""
    return Solid("cylinder", (radius, length))


def capsule(radius: float, length: float) -> Solid:
    """A capsule along z with its centre at the origin; `length` between the centres of its ends."""
    return Solid("capsule", (radius, length))


def mesh(vertices: Array, faces: Faces) -> Solid:
    """A mesh of triangles, counter-clockwise seen from outside."""
    return Solid("mesh", (), vertices, faces)


def ellipsoid(radii: tuple[float, ...]) -> Solid:
    """An ellipsoid as a mesh: a scaled ball of triangles."""
    down, around = np.meshgrid(
        np.linspace(0.0, np.pi, _AROUND // 2 + 1)[1:-1],
        np.arange(_AROUND) * (2.0 * np.pi / _AROUND),
        indexing="ij",
    )
    rings = np.stack(
        [np.sin(down) * np.cos(around), np.sin(down) * np.sin(around), np.cos(down)], axis=-1
    ).reshape(-1, 3)
    vertices = np.vstack([rings, [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]])
    here = np.arange(len(rings)).reshape(-1, _AROUND)
    beside = np.roll(here, -1, axis=1)
    north, south = (np.full(_AROUND, len(rings) + i) for i in (0, 1))
    faces = [
        np.stack([here[:-1], here[1:], beside[1:]], axis=-1).reshape(-1, 3),
        np.stack([here[:-1], beside[1:], beside[:-1]], axis=-1).reshape(-1, 3),
        np.stack([north, here[0], beside[0]], axis=-1),
        np.stack([south, beside[-1], here[-1]], axis=-1),
    ]
    return mesh(vertices * np.array(radii), np.vstack(faces).astype(np.int64))


def lying(a: Vector, b: Vector) -> tuple[pin.SE3, float]:
    """The placement with z from a to b and the origin in the middle, and the distance of a and b.

    The two points must differ.
    """
    length = float(np.linalg.norm(b - a))
    z = (b - a) / length
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return pin.SE3(np.column_stack((x, np.cross(z, x), z)), 0.5 * (a + b)), length
