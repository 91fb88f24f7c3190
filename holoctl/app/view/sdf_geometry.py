"""The shapes of the links of an SDF: ``<visual>``, else ``<collision>``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pinocchio as pin

from holoctl.app.view.meshes import Meshes
from holoctl.app.view.shapes import (
    Color,
    DrawnSolid,
    Solid,
    ball,
    box,
    capsule,
    cylinder,
    ellipsoid,
)
from holoctl.app.view.urdf_geometry import clipped, visual_or_collision
from holoctl.io.sdf import drawing_of
from holoctl.io.sdf_elements import child_of, number, pose_of, triple, word
from holoctl.io.sdf_frames import Drawing
from holoctl.io.xml import Element, blamed_on, decimals

__all__ = ["drawn_in_sdf"]

_NO_END = ("plane", "heightmap", "empty")


def drawn_in_sdf(text: str, file: str, meshes: Meshes, words: list[str]) -> Iterator[DrawnSolid]:
    """The shapes of each link; `words` gets a sentence on each that is left out.

    Raises
    ------
    LoadError
        If the SDF cannot be loaded.
    """
    _, model = drawing_of(text, file)
    for name, link in model.links.items():
        drawn = partial(_drawn, name, model, meshes)
        yield from visual_or_collision(link, drawn, words)


def _drawn(link: str, model: Drawing, meshes: Meshes, element: Element) -> Iterator[DrawnSolid]:
    geometry = child_of(element, "geometry")
    if geometry is None or len(geometry.children) != 1:
        raise element.error(f"{element} of {link!r}: <geometry> must hold one form")
    form = geometry.children[0]
    if form.tag not in _NO_END:
        yield DrawnSolid(link, _pose(link, element, model), _solid(form, meshes), _color(element))


def _pose(link: str, element: Element, model: Drawing) -> pin.SE3:
    """The placement in the link, which the file may give relative to another frame."""
    pose = child_of(element, "pose")
    frame = "" if pose is None else pose.attributes.get("relative_to", "")
    if not frame:
        return pose_of(element)
    if frame not in model.placed:
        raise element.error(f"{element} of {link!r}: relative_to: there is no frame {frame[:60]!r}")
    return model.placed[link].actInv(model.placed[frame]) * pose_of(element)


def _solid(form: Element, meshes: Meshes) -> Solid:
    if form.tag == "mesh":
        if child_of(form, "submesh") is not None:
            raise form.error("a submesh is not read")
        scale = tuple(triple(form, "scale", (1.0, 1.0, 1.0)).tolist())
        with blamed_on(form):
            return meshes.solid(word(form, "uri"), scale)
    if form.tag == "box":
        x, y, z = _above_zero(form, triple(form, "size", (1.0, 1.0, 1.0)).tolist())
        return box(x, y, z)
    if form.tag == "ellipsoid":
        return ellipsoid(tuple(_above_zero(form, triple(form, "radii", (1.0, 1.0, 1.0)).tolist())))
    radius = number(form, "radius", 0.5 if form.tag == "capsule" else 1.0)
    length = number(form, "length", 1.0)
    _above_zero(form, [radius, length])
    if form.tag == "sphere":
        return ball(radius)
    if form.tag not in ("cylinder", "capsule"):
        raise form.error(f"<{form.tag[:60]}> is not drawn")
    return cylinder(radius, length) if form.tag == "cylinder" else capsule(radius, length)


def _above_zero(form: Element, sizes: list[float]) -> list[float]:
    if min(sizes) <= 0.0:
        raise form.error(f"<{form.tag}>: sizes must be positive")
    return sizes


def _color(element: Element) -> Color | None:
    """The diffuse color of the material, with the transparency of the element."""
    material = child_of(element, "material")
    diffuse = None if material is None else child_of(material, "diffuse")
    numbers = None if diffuse is None else decimals(diffuse.text, (3, 4))
    if numbers is None:
        return None
    red, green, blue, alpha = clipped(numbers)
    return red, green, blue, alpha * min(max(1.0 - number(element, "transparency", 0.0), 0.0), 1.0)
