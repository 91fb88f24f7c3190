"""Triangles of shapes, for a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array

if TYPE_CHECKING:
    from holoctl.app.view.geometry import Shape

__all__ = ["joined", "triangles_of"]


EDGE = 0.7
"""Angle between two triangles, rad, above which their common side is drawn as an edge."""

ROUND = 12
"""Number of sides of round shapes: small, for browsers without a graphics card."""


def triangles_of(shape: Shape) -> tuple[Array, NDArray[np.int64]]:
    """(n, 3) vertices in the axes of the shape, m, and (m, 3) faces."""
    from trimesh import creation
    from trimesh.graph import smooth_shade

    if shape.kind == "mesh":
        return np.asarray(shape.vertices, dtype=float), np.asarray(shape.faces, dtype=np.int64)
    unit = max(shape.size)  # trimesh drops triangles that are small in m
    size = [x / unit for x in shape.size]
    if shape.kind == "box":
        found = creation.box(extents=size)
    elif shape.kind == "sphere":
        found = creation.icosphere(subdivisions=2, radius=size[0])
    elif shape.kind == "cylinder":
        found = creation.cylinder(radius=size[0], height=size[1], sections=ROUND)
    else:  # the origin of trimesh's capsule is its middle too, its axis z
        found = creation.capsule(height=size[1], radius=size[0], count=[ROUND, ROUND // 2])
    if shape.kind in ("box", "cylinder"):  # keep edges in smooth shading
        found = smooth_shade(found, angle=EDGE)
    return unit * np.asarray(found.vertices, dtype=float), np.asarray(found.faces, dtype=np.int64)


def joined(shapes: Iterable[Shape]) -> tuple[Array, NDArray[np.int64]]:
    """The triangles of shapes of one body, in the axes of its joint."""
    vertices, faces, before = [np.zeros((0, 3))], [np.zeros((0, 3), dtype=np.int64)], 0
    for shape in shapes:
        points, corners = triangles_of(shape)
        vertices.append(points @ shape.placement.rotation.T + shape.placement.translation)
        faces.append(corners + before)
        before += len(points)
    return np.vstack(vertices), np.vstack(faces)
