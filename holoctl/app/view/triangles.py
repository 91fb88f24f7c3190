"""Triangles of shapes: what a page draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from holoctl.app.view.geometry import Shape

__all__ = ["triangles_of"]

Array = NDArray[np.float64]

ROUND = 12
"""Sides of what is round: few, for pages that are drawn without a graphics card."""


def triangles_of(shape: Shape) -> tuple[Array, NDArray[np.int64]]:
    """(n, 3) vertices in the axes of the shape, m, and (m, 3) faces."""
    from trimesh import creation

    if shape.kind == "mesh":
        return np.asarray(shape.vertices, dtype=float), np.asarray(shape.faces, dtype=np.int64)
    size = shape.size
    if shape.kind == "box":
        found = creation.box(extents=size)
    elif shape.kind == "sphere":
        found = creation.icosphere(subdivisions=2, radius=size[0])
    elif shape.kind == "cylinder":
        found = creation.cylinder(radius=size[0], height=size[1], sections=ROUND)
    else:  # trimesh has a capsule stand on its middle too, along z
        found = creation.capsule(height=size[1], radius=size[0], count=[ROUND, ROUND // 2])
    return np.asarray(found.vertices, dtype=float), np.asarray(found.faces, dtype=np.int64)
