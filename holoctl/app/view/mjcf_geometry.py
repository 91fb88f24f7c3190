"""What an MJCF shows of its bodies: geoms of the groups 0 to 2, which MuJoCo shows, else all.

Bodies, their names and default classes are those of the reader of `holoctl.io`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holoctl.app.view.meshes import Meshes, hull
from holoctl.app.view.shapes import (
    Color,
    Drawn,
    Solid,
    ball,
    box,
    capsule,
    cylinder,
    ellipsoid,
    mesh,
)
from holoctl.app.view.urdf_geometry import clipped
from holoctl.base.errors import LoadError
from holoctl.io.limits import DECIMAL
from holoctl.io.mjcf import elements_of
from holoctl.io.mjcf_elements import Defaults, Item, named, sections
from holoctl.io.mjcf_inertia import PRIMITIVES, placed
from holoctl.io.mjcf_tree import WORLD, MjcfTree, Part
from holoctl.io.xml import Element, blamed_on

__all__ = ["drawn_in_mjcf"]

Array = NDArray[np.float64]

_SHOWN = (0, 1, 2)
_NO_END = ("plane", "hfield")
"""Ground, which has no end, and hills, which are in files of their own."""


def drawn_in_mjcf(
    text: str, file: str, folder: Path, include_root: Path | None, words: list[str]
) -> Iterator[Drawn]:
    """What is drawn of each body; `words` gets a sentence on each thing that is not.

    Raises
    ------
    LoadError
        For what is no MJCF that can be loaded.
    """
    root, defaults = elements_of(text, file, folder, include_root)
    tree = MjcfTree(root, defaults, free_flyer=False, compiled=None)
    tree.build()
    assets = _assets_of(root, defaults, folder)
    for body, parts in tree.geoms.items():
        found: list[tuple[float, Drawn]] = []
        for part in parts:
            try:
                found += _of_geom("universe" if body == WORLD else body, part, defaults, assets)
            except LoadError as error:
                words.append(str(error))
        shown = [one for group, one in found if group in _SHOWN]
        yield from shown or [one for _, one in found]


@dataclass(frozen=True, eq=False)
class _Assets:
    """Meshes and materials of a file by their names; `made` keeps meshes that were asked for."""

    files: Meshes
    directory: str
    stripped: bool
    meshes: dict[str, Item]
    materials: dict[str, Item]
    made: dict[str, Solid] = field(default_factory=dict)


def _assets_of(root: Element, defaults: Defaults, folder: Path) -> _Assets:
    directory, stripped = "", False
    for element in root.children:
        if element.tag == "compiler":
            given = element.attributes
            directory = given.get("meshdir", given.get("assetdir", directory))
            stripped = given.get("strippath", str(stripped)).lower() == "true"
    meshes, materials = dict[str, Item](), dict[str, Item]()
    for element in sections(root, "asset"):
        if element.tag == "mesh":
            item = defaults.item(element, "mesh")
            meshes[item.text("name") or Path(item.text("file")).stem] = item
        elif element.tag == "material":
            item = defaults.item(element, "material")
            materials[item.text("name")] = item
    return _Assets(Meshes(folder), directory, stripped, meshes, materials)


def _mesh_of(geom: Item, assets: _Assets) -> Solid:
    """The mesh that a geom names, as MuJoCo places it."""
    name = named(geom, "mesh", assets.meshes, "mesh")
    if name not in assets.made:
        item = assets.meshes[name]
        found, scale = _unscaled(item, assets), np.array(item.numbers("scale", (1.0, 1.0, 1.0)))
        vertices = found.vertices - np.array(item.numbers("refpos", (0.0, 0.0, 0.0)))
        if "refquat" in item:
            turned = replace(item, attributes={"quat": item.text("refquat")})
            vertices = vertices @ turned.pose().rotation
        faces = found.faces[:, ::-1] if np.prod(scale) < 0.0 else found.faces
        assets.made[name] = mesh(vertices * scale, faces)
    return assets.made[name]


def _unscaled(item: Item, assets: _Assets) -> Solid:
    """The mesh as it stands in its file, or in the element itself."""
    if "vertex" in item:
        vertices = _floats(item, "vertex")
        if "face" not in item:
            with blamed_on(item.element):
                return hull(vertices)
        faces = _floats(item, "face").astype(np.int64)
        if faces.min() < 0 or faces.max() >= len(vertices):
            raise item.error("face: there are triangles between vertices that are not there")
        return mesh(vertices, faces)
    name = item.text("file")
    if not name:
        raise item.error("this mesh is made by MuJoCo, and not drawn here: it has no file")
    if assets.stripped:
        name = Path(name.replace("\\", "/")).name
    with blamed_on(item.element):
        return assets.files.solid(str(Path(assets.directory) / name))


def _floats(item: Item, name: str) -> Array:
    """Triples of numbers, as many as there are."""
    words = item.text(name).split()
    if not words or len(words) % 3 or not all(map(DECIMAL.fullmatch, words)):
        raise item.error(f"{name} must be finite numbers, three for each; got {len(words)} words")
    return np.array(words, dtype=float).reshape(-1, 3)


def _of_geom(
    body: str, part: Part, defaults: Defaults, assets: _Assets
) -> Iterator[tuple[float, Drawn]]:
    """The group of a geom, and what is drawn of it; nothing of what cannot be seen."""
    element, frame, childclass = part
    item = defaults.item(element, "geom", childclass)
    kind = item.text("type", "sphere")
    color = _color(item, assets)
    if kind in _NO_END or (color is not None and color[3] == 0.0):
        return
    if item.text("mesh"):
        solid, pose = _mesh_of(item, assets), item.pose()
    elif kind in PRIMITIVES:
        size, pose = placed(item, kind)
        solid = _primitive(kind, size)
    else:
        raise item.error(f"a geom of the type {kind[:60]!r} is not drawn")
    yield item.number("group", 0.0), Drawn(body, frame * pose, solid, color)


def _primitive(kind: str, size: tuple[float, ...]) -> Solid:
    """MuJoCo's sizes are half of ours, but for radii."""
    if kind == "sphere":
        return ball(size[0])
    if kind == "ellipsoid":
        return ellipsoid(size)
    if kind == "box":
        return box(2.0 * size[0], 2.0 * size[1], 2.0 * size[2])
    return (capsule if kind == "capsule" else cylinder)(size[0], 2.0 * size[1])


def _color(item: Item, assets: _Assets) -> Color | None:
    """That of the geom, else that of its material; None where there is neither."""
    if "rgba" in item:
        return clipped(item.numbers("rgba", (0.5, 0.5, 0.5, 1.0)))
    material = assets.materials.get(item.text("material"))
    if material is None or "rgba" not in material:
        return None
    return clipped(material.numbers("rgba", (1.0, 1.0, 1.0, 1.0)))
