"""The shapes of the links of a URDF: ``<visual>``, else ``<collision>``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import pinocchio as pin

from holoctl.app.view.meshes import Meshes
from holoctl.app.view.shapes import Color, DrawnSolid, Solid, ball, box, capsule, cylinder
from holoctl.base.checks import suggestion
from holoctl.base.errors import LoadError
from holoctl.io.reader_limits import LARGEST
from holoctl.io.xml import Element, blamed_on, check_root, decimals, parsed

__all__ = ["clipped", "drawn_in_urdf", "visual_or_collision"]

_SOLIDS = ("box", "sphere", "cylinder", "capsule", "mesh")


def drawn_in_urdf(text: str, file: str, meshes: Meshes, words: list[str]) -> Iterator[DrawnSolid]:
    """The shapes of each link; `words` gets a sentence on each that is left out.

    Raises
    ------
    LoadError
        If the text is not a URDF.
    """
    root = parsed(text, file)
    check_root(root, "robot", "a URDF")
    materials = _materials(root, words)
    for link in root.children:
        if link.tag == "link":
            drawn = partial(_drawn, link, materials, meshes)
            yield from visual_or_collision(link, drawn, words)


def visual_or_collision(
    link: Element, drawn: Callable[[Element], Iterable[DrawnSolid]], words: list[str]
) -> list[DrawnSolid]:
    """The shapes of the visuals of a link; those of its collisions if there are none."""
    for tag in ("visual", "collision"):
        found = list[DrawnSolid]()
        for element in link.children:
            if element.tag == tag:
                try:
                    found += drawn(element)
                except LoadError as error:
                    words.append(str(error))
        if found:
            return found
    return []


def _drawn(
    link: Element, materials: Mapping[str, Color], meshes: Meshes, element: Element
) -> tuple[DrawnSolid]:
    placement, solid = _origin(element), _solid(link, element, meshes)
    material, color = _child(element, "material"), None
    if material is not None:
        color = materials.get(material.attributes.get("name", ""))
        own = _child(material, "color")
        if own is not None:
            color = _color(own)
    return (DrawnSolid(link.attributes.get("name", ""), placement, solid, color),)


def _origin(element: Element) -> pin.SE3:
    origin = _child(element, "origin")
    if origin is None:
        return pin.SE3.Identity()
    if "quat_xyzw" in origin.attributes:
        raise origin.error("quat_xyzw is not read; give the rotation as rpy")
    xyz, rpy = (_numbers(origin, name, (0.0, 0.0, 0.0)) for name in ("xyz", "rpy"))
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array(xyz))


def _solid(link: Element, element: Element, meshes: Meshes) -> Solid:
    """The single form in ``<geometry>``."""
    geometry = _child(element, "geometry")
    found = [] if geometry is None else geometry.children
    if len(found) != 1 or found[0].tag not in _SOLIDS:
        tag = found[0].tag[:60] if len(found) == 1 else ""
        raise element.error(
            f"{link}: <geometry> of <{element.tag}> must hold one of {', '.join(_SOLIDS)}"
            + (f"; got <{tag}>{suggestion(tag, _SOLIDS)}" if tag else f", and has {len(found)}")
        )
    form = found[0]
    if form.tag == "mesh":
        with blamed_on(form):
            return meshes.solid(
                form.attributes.get("filename", ""), _numbers(form, "scale", (1.0, 1.0, 1.0))
            )
    if form.tag == "box":
        x, y, z = _sizes(form, "size", 3)
        return box(x, y, z)
    (radius,) = _sizes(form, "radius", 1)
    if form.tag == "sphere":
        return ball(radius)
    (length,) = _sizes(form, "length", 1)
    return cylinder(radius, length) if form.tag == "cylinder" else capsule(radius, length)


# -------------------------------------------------------------------------------- materials


def _materials(root: Element, words: list[str]) -> dict[str, Color]:
    """Colors by name; materials of the robot have priority over those in a ``<visual>``."""
    found: dict[str, Color] = {}
    inside = [v for link in root.children for v in link.children if v.tag == "visual"]
    for place in (root, *inside):
        for material in place.children:
            color = _child(material, "color") if material.tag == "material" else None
            if color is None:
                continue
            try:
                found.setdefault(material.attributes.get("name", ""), _color(color))
            except LoadError as error:
                words.append(str(error))
    found.pop("", None)
    return found


def _color(element: Element) -> Color:
    text = element.attributes.get("rgba", "")
    numbers = decimals(text, (3, 4))
    if numbers is None:
        raise element.error(f"rgba must be three or four numbers from 0 to 1; got {text[:60]!r}")
    return clipped(numbers)


def clipped(numbers: tuple[float, ...]) -> Color:
    """A color of three or four numbers, each clipped to the interval from 0 to 1."""
    red, green, blue, alpha = (min(max(x, 0.0), 1.0) for x in (*numbers, 1.0)[:4])
    return red, green, blue, alpha


# ------------------------------------------------------------------------------- attributes


def _child(element: Element, tag: str) -> Element | None:
    return next((child for child in element.children if child.tag == tag), None)


def _numbers(element: Element, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
    if name not in element.attributes:
        return default
    text = element.attributes[name]
    found = decimals(text, [len(default)])
    if found is None or max(map(abs, found)) > LARGEST:
        raise element.error(
            f"<{element.tag}>: {name} must be {len(default)} finite numbers of at most "
            f"{LARGEST:g} in size; got {text[:60]!r}"
        )
    return found


def _sizes(element: Element, name: str, count: int) -> tuple[float, ...]:
    """Required positive lengths."""
    found = _numbers(element, name, (0.0,) * count)
    if min(found) <= 0.0:
        raise element.error(f"<{element.tag}>: {name} is required, and must be positive")
    return found
