"""The shapes of an MJCF: geoms of the groups 0 to 2, which MuJoCo shows; all, if a body has none.

They are the geoms of MuJoCo's compiler, as for the reader of `holoctl.io`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pinocchio as pin

from holoctl.app.view.shapes import (
    Color,
    DrawnSolid,
    Solid,
    ball,
    box,
    capsule,
    cylinder,
    ellipsoid,
    mesh,
)
from holoctl.app.view.urdf_geometry import clipped
from holoctl.io.mjcf_compiled import CompiledMjcf, compiled
from holoctl.io.mjcf_text import mjcf_text
from holoctl.io.mjcf_tree import tree_of
from holoctl.io.rotations import quaternion

__all__ = ["drawn_in_mjcf"]

_SHOWN = (0, 1, 2)
_FORMS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
_NO_END = ("plane", "hfield")
"""Forms that are not shown: infinite ground, and height fields, which have separate files."""

_NO_COLOR = (0.5, 0.5, 0.5, 1.0)
"""Color of a geom without one."""


def drawn_in_mjcf(
    text: str, file: str, folder: Path, include_root: Path | None, words: list[str]
) -> Iterator[DrawnSolid]:
    """The shapes of each body; `words` gets a sentence on each that is left out.

    Raises
    ------
    LoadError
        If the MJCF cannot be loaded.
    """
    found = compiled(mjcf_text(text, file, folder, include_root, looks=True), refused=words)
    names, m, made = tree_of(found).body_names, found.model, dict[int, Solid]()
    for i, name in enumerate(names):
        first, seen = m.body_geomadr[i], []
        for g in range(first, first + m.body_geomnum[i]):
            form, color = _FORMS[m.geom_type[g]], _color(found, g)
            if form in _NO_END or (color is not None and color[3] == 0.0):
                continue
            place = pin.SE3(quaternion(*m.geom_quat[g].tolist()), np.array(m.geom_pos[g]))
            solid = _solid(found, g, form, made)
            body = name if i else "universe"
            seen.append((int(m.geom_group[g]), DrawnSolid(body, place, solid, color)))
        yield from [one for group, one in seen if group in _SHOWN] or [one for _, one in seen]


def _solid(found: CompiledMjcf, g: int, form: str, made: dict[int, Solid]) -> Solid:
    """The shape of a geom; MuJoCo's sizes, except radii, are half of those used here."""
    m, size = found.model, tuple(found.model.geom_size[g].tolist())
    if form == "sphere":
        return ball(size[0])
    if form == "ellipsoid":
        return ellipsoid(size)
    if form == "box":
        return box(2.0 * size[0], 2.0 * size[1], 2.0 * size[2])
    if form in ("capsule", "cylinder"):
        return (capsule if form == "capsule" else cylinder)(size[0], 2.0 * size[1])
    k = int(m.geom_dataid[g])
    if k not in made:
        v, f = (slice(a[k], a[k] + n[k]) for a, n in (
            (m.mesh_vertadr, m.mesh_vertnum), (m.mesh_faceadr, m.mesh_facenum)
        ))  # fmt: skip
        made[k] = mesh(m.mesh_vert[v].astype(float), m.mesh_face[f].astype(np.int64))
    return made[k]


def _color(found: CompiledMjcf, g: int) -> Color | None:
    """The color of the geom, else that of its material; None if it has neither."""
    m, rgba, material = (
        found.model,
        tuple(found.model.geom_rgba[g].tolist()),
        found.model.geom_matid[g],
    )
    if np.allclose(rgba, _NO_COLOR):
        return clipped(tuple(m.mat_rgba[material].tolist())) if material >= 0 else None
    return clipped(rgba)
