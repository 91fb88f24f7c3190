"""Actuators of an MJCF as motors: each drives a joint, through a gear."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.io.mjcf_elements import Item, named, sections
from holoctl.io.mjcf_tree import Joint, Tree
from holoctl.io.xml import Element

__all__ = ["check_tendons", "motors_of"]

Array = NDArray[np.float64]


def motors_of(root: Element, tree: Tree) -> tuple[list[str], Array | None]:
    """The coordinates with a motor, in the order of the file; a matrix B where one has a gear."""
    gears: dict[str, Vector] = {}
    for element in sections(root, "actuator"):
        item = tree.defaults.item(element, "actuator")
        name = _driven(item, tree)
        joint = tree.joints[name]
        n = tree.model.nvs[joint.index]
        gear = np.array(item.numbers("gear", (1.0, *(0.0,) * 5), least=1)[:n])
        if not gear.any():
            raise item.error("gear is zero: a motor on nothing")
        _add_rotor(item, joint, gear, tree.model)
        if name in gears and not np.array_equal(gears[name], gear):
            raise item.error(f"another actuator drives joint {name!r} with another gear")
        gears[name] = gear
    if all(gear.size == 1 and gear[0] == 1.0 for gear in gears.values()):
        return list(gears), None
    B = np.zeros((tree.model.nv, len(gears)))
    for column, (name, gear) in enumerate(gears.items()):
        first = tree.model.idx_vs[tree.joints[name].index]
        B[first : first + gear.size, column] = gear
    return [], B


def _driven(item: Item, tree: Tree) -> str:
    """The joint that an actuator drives."""
    others = [
        n for n in ("tendon", "site", "refsite", "slidersite", "cranksite", "body") if n in item
    ]
    if others:
        raise item.error(
            f"its transmission {others[0]!r} is not read; only 'joint' is. Leave the actuator "
            "out and give the mechanism a matrix: dataclasses.replace(mech, actuation=B)"
        )
    given = [n for n in ("joint", "jointinparent") if n in item]
    if len(given) != 1:
        raise item.error("an actuator drives one joint: give joint=")
    name = named(item, given[0], tree.joints, "joint")
    kind = tree.joints[name].type
    if kind == "free" or (kind == "ball" and given[0] == "jointinparent"):
        raise item.error(f"{given[0]}: a motor on the {kind} joint {name!r} is not read")
    return name


def _add_rotor(item: Item, joint: Joint, gear: Vector, model: pin.Model) -> None:
    """The rotor inertia of an actuator, seen through its gear."""
    rotor = item.size("armature", 0.0)
    if rotor and gear.size > 1:
        raise item.error("armature of a motor on a ball joint is not read; give it to the joint")
    model.armature[model.idx_vs[joint.index]] += rotor * gear[0] ** 2


def check_tendons(root: Element, tree: Tree) -> None:
    """Tendons only pull where an actuator or a spring does; a rotor on one is an inertia."""
    for i, element in enumerate(sections(root, "tendon")):
        item = tree.defaults.item(element, "tendon")
        if item.size("armature", 0.0):
            raise item.error("armature of a tendon is not read; it would couple the joints")
        if any(item.numbers("stiffness", (0.0,) * 3, least=1)):
            tree.springs.append(item.text("name") or f"tendon {i}")
