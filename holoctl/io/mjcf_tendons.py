"""Tendons of an MJCF: a fixed one is a sum of coordinates, a spatial one is known by name only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holoctl.io.limits import MOST_CONSTRAINTS, check_count
from holoctl.io.mjcf_elements import Item, named, sections
from holoctl.io.mjcf_tree import SINGLE, MjcfTree, ascending, limited
from holoctl.io.xml import Element

__all__ = ["Tendon", "add_rotor", "by_name", "limits_told", "tendons_of"]


@dataclass(frozen=True)
class Tendon:
    """A tendon: the coefficients of its joints, by name, or None for a spatial one."""

    item: Item
    coefficients: Mapping[str, float] | None


def tendons_of(root: Element, tree: MjcfTree) -> list[Tendon]:
    """All tendons, in the order of the file.

    Tendons only pull where an actuator or a spring does. A rotor on a tendon is an inertia, which
    is that of a joint where the tendon has only one.
    """
    elements = sections(root, "tendon")
    check_count(root, len(elements), MOST_CONSTRAINTS, "tendons")
    found: list[Tendon] = []
    names: set[str] = set()
    for element in elements:
        item = tree.defaults.item(element, "tendon")
        name = item.text("name")
        tendon = Tendon(item, _coefficients(item, tree) if element.tag == "fixed" else None)
        if name in names:
            raise item.error(f"two tendons are called {name!r}")
        if name:
            names.add(name)
        found.append(tendon)
        add_rotor(item, tendon, item.size("armature", 0.0), tree)
    return found


def by_name(tendons: Sequence[Tendon]) -> dict[str, Tendon]:
    """The tendons that have a name, by it."""
    named_ones = ((tendon.item.text("name"), tendon) for tendon in tendons)
    return {name: tendon for name, tendon in named_ones if name}


def limits_told(tendons: Sequence[Tendon]) -> list[str]:
    """The limits of tendons, in words."""
    found = list[str]()
    for i, (item, coefficients) in enumerate((t.item, t.coefficients) for t in tendons):
        if coefficients != {} and limited(item, "range", "limited"):
            lower, upper = ascending(item, "range")
            what = " ".join(f"{x:+g} {name!r}" for name, x in (coefficients or {}).items())
            name = item.text("name") or f"tendon {i}"
            within = f"{what or 'its length'} within {lower:g} and {upper:g}"
            found.append(f"{name!r} (line {item.element.line}): {within}")
    return found


def _coefficients(item: Item, tree: MjcfTree) -> dict[str, float]:
    """Length over position, by joint; joints without any effect are left out."""
    found: dict[str, float] = {}
    for child in item.element.children:
        part = tree.defaults.plain(child)
        name = named(part, "joint", tree.joints, "joint")
        if tree.joints[name].type not in SINGLE:
            raise part.error(f"joint: {name!r} is no hinge or slide")
        if name in found:
            raise part.error(f"joint {name!r} stands twice in the tendon")
        if "coef" not in part:
            raise part.error("coef is needed")
        found[name] = part.number("coef", 0.0)
    if not found:
        raise item.error("a fixed tendon needs a <joint>")
    return {name: coefficient for name, coefficient in found.items() if coefficient}


def add_rotor(item: Item, tendon: Tendon, rotor: float, tree: MjcfTree) -> None:
    """The inertia of a rotor that turns as a tendon gets longer."""
    if not rotor:
        return
    if tendon.coefficients is None or len(tendon.coefficients) > 1:
        raise item.error("armature of a tendon is not read; it would couple the joints")
    for name, coefficient in tendon.coefficients.items():
        model = tree.model
        model.armature[model.idx_vs[tree.joints[name].index]] += rotor * coefficient**2
