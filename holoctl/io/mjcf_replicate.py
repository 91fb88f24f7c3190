"""Copies that ``<replicate>`` of an MJCF asks for: each stands in a ``<frame>`` of its own.

Names in a copy get its number behind them, and what refers to them (equalities, tendons,
actuators) is copied along with them, as in MuJoCo.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pinocchio as pin

from holoctl.io.limits import MOST_ELEMENTS, MOST_REPLICATES, check_count
from holoctl.io.mjcf_elements import Compiler, Item
from holoctl.io.xml import Element

__all__ = ["write_copies_out"]

Names = set[tuple[str, str]]
"""Kinds of elements and their names."""

_REFERENCES = {
    "equality": {
        "body1": "body", "body2": "body", "site1": "site", "site2": "site",
        "joint1": "joint", "joint2": "joint", "tendon1": "tendon", "tendon2": "tendon",
    },
    "tendon": {"joint": "joint", "site": "site", "geom": "geom", "sidesite": "site"},
    "actuator": {
        "joint": "joint", "jointinparent": "joint", "tendon": "tendon", "site": "site",
        "refsite": "site", "slidersite": "site", "cranksite": "site", "body": "body",
    },
}  # fmt: skip
"""Sections of a file, and which of their attributes name what; tendons name it in elements."""

_ALWAYS = ("body", "world")
"""What may be named in a copy although it is not copied itself."""


def write_copies_out(root: Element, compiler: Compiler) -> None:
    """Put frames with copies in the place of every ``<replicate>``, the inner ones first.

    Raises
    ------
    LoadError
        For counts and sizes beyond what is read, and where an equality, a tendon or an actuator
        names both what is copied and what is not.
    """
    found = list(_replicates(root))
    check_count(root, len(found), MOST_REPLICATES, "<replicate>")
    if not found:
        return
    elements = sum(1 for _ in root.each())
    for parent, element in found:
        item = Item(element, element.attributes, compiler)
        count = _count(item)
        references = _referring(root, element)
        size = sum(1 for child in (element, *(e for _, e in references)) for _ in child.each())
        elements += size * count
        check_count(element, elements, MOST_ELEMENTS, "elements, all copies written out,")
        suffixes = [f"{item.text('sep')}{i:0{len(str(count))}d}" for i in range(count)]
        frames = [
            _frame(element, pose, suffix)
            for pose, suffix in zip(_poses(item, count), suffixes, strict=True)
        ]
        i = next(i for i, child in enumerate(parent.children) if child is element)
        parent.children[i : i + 1] = frames
        for section, old in references:
            section.children = [child for child in section.children if child is not old]
        for suffix in suffixes:
            for section, old in references:
                section.children.append(_copied_reference(old, section.tag, suffix))


def _replicates(root: Element) -> Iterator[tuple[Element, Element]]:
    """Every ``<replicate>`` and what it stands in, the inner ones first."""
    waiting = [(root, child, False) for child in reversed(root.children)]
    while waiting:
        parent, element, seen = waiting.pop()
        if seen:
            yield parent, element
            continue
        if element.tag == "replicate":
            waiting.append((parent, element, True))
        waiting += [(element, child, False) for child in reversed(element.children)]


def _count(item: Item) -> int:
    if "count" not in item:
        raise item.error("count is needed")
    count = item.number("count", 1.0)
    if count < 1.0 or count != int(count):
        raise item.error(
            f"count must be a whole number above zero; got {item.text('count')[:60]!r}"
        )
    return int(min(count, MOST_ELEMENTS + 1.0))


def _poses(item: Item, count: int) -> Iterator[pin.SE3]:
    """Where the copies stand: each is moved against the one before it.

    Turned it is by as many times the angles, not by the product of the turns, as in MuJoCo.
    """
    angles = np.array(item.numbers("euler", (0.0, 0.0, 0.0)))
    offset, at = np.array(item.numbers("offset", (0.0, 0.0, 0.0))), np.zeros(3)
    for i in range(count):
        euler = " ".join(map(repr, (i * angles).tolist()))
        rotation = replace(item, attributes={"euler": euler}).pose().rotation
        yield pin.SE3(rotation, at)
        at = at + rotation @ offset


def _frame(element: Element, pose: pin.SE3, suffix: str) -> Element:
    x, y, z, w = pin.Quaternion(pose.rotation).coeffs().tolist()
    attributes = {
        "pos": " ".join(map(repr, pose.translation.tolist())),
        "quat": f"{w!r} {x!r} {y!r} {z!r}",
    }
    if "childclass" in element.attributes:
        attributes["childclass"] = element.attributes["childclass"]
    children = [_copied(child, suffix) for child in element.children]
    return Element("frame", attributes, element.file, element.line, children)


def _copied(element: Element, suffix: str) -> Element:
    """An element and all in it, with other names; level by level, for it may be deep."""
    new = _alone(element, suffix)
    waiting = [(element, new)]
    while waiting:
        old, copy = waiting.pop()
        copy.children = [_alone(child, suffix) for child in old.children]
        waiting += zip(old.children, copy.children, strict=True)
    return new


def _alone(element: Element, suffix: str) -> Element:
    attributes = dict(element.attributes)
    if "name" in attributes:
        attributes["name"] += suffix
    return replace(element, attributes=attributes, children=[])


# ------------------------------------------------------------------------------- references


def _kind(element: Element) -> str:
    return "joint" if element.tag == "freejoint" else element.tag


def _referring(root: Element, element: Element) -> list[tuple[Element, Element]]:
    """What refers to names in an element: its section and itself; tendons come first."""
    names: Names = {
        (_kind(e), e.attributes["name"]) for e in element.each() if "name" in e.attributes
    }
    found = []
    for tag in ("tendon", "equality", "actuator"):
        for section in root.children:
            if section.tag == tag:
                for child in section.children:
                    if _refers(child, tag, names):
                        found.append((section, child))
                        if tag == "tendon" and "name" in child.attributes:
                            names.add(("tendon", child.attributes["name"]))
    return found


def _named(element: Element, section: str) -> list[tuple[Element, str, str]]:
    """The names that an element of a section refers to: where, as which attribute, what kind."""
    parts = element.children if section == "tendon" else [element]
    return [
        (part, word, kind)
        for part in parts
        for word, kind in _REFERENCES[section].items()
        if word in part.attributes
    ]


def _refers(element: Element, section: str, names: Names) -> bool:
    inside = [
        (kind, part.attributes[word]) in names
        for part, word, kind in _named(element, section)
        if (kind, part.attributes[word]) != _ALWAYS
    ]
    if any(inside) and not all(inside) and element.tag != "spatial":  # of these only names count
        raise element.error(
            f"{element} names what is in a <replicate> together with what is not; write the "
            "copies out, with an element for each"
        )
    return any(inside)


def _copied_reference(element: Element, section: str, suffix: str) -> Element:
    new = _copied(element, "")
    if "name" in new.attributes:
        new.attributes["name"] += suffix
    for part, word, kind in _named(new, section):
        if (kind, part.attributes[word]) != _ALWAYS:
            part.attributes[word] += suffix
    return new
