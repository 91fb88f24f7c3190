"""Actuators of an MJCF as motors: each drives a joint, or those of a tendon, through a gear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.io.limits import FilePlace
from holoctl.io.mjcf_elements import Item, named, sections
from holoctl.io.mjcf_limits import Range, added, common, range_of, range_on_tendon, switched_off
from holoctl.io.mjcf_tendons import Tendon, add_rotor
from holoctl.io.mjcf_tree import SINGLE, MjcfJoint, MjcfTree
from holoctl.io.mjcf_words import NO_MOTORS
from holoctl.io.xml import Element

__all__ = ["Motors", "motors_of", "target_of"]

Array = NDArray[np.float64]

_TRANSMISSIONS = ("joint", "jointinparent", "tendon", "site", "cranksite", "body")
_OF_OTHERS = ("refsite", "slidersite")


@dataclass
class Motors:
    """Coordinates with a motor, or a matrix B; actuators that are left out, and why, by name; the
    forces that each motor can give, and where they stand."""

    names: list[str]
    B: Array | None
    left_out: dict[str, str]
    ranges: list[tuple[Range, FilePlace]]


def motors_of(
    root: Element, tree: MjcfTree, tendons: Mapping[str, Tendon], skip: bool = False
) -> Motors:
    """The motors in the order of the file.

    Parameters
    ----------
    root, tree, tendons
    skip : bool
        Leave out what is no motor on joints, instead of refusing it. What such an actuator adds to
        the inertia of a joint is not left out.

    Raises
    ------
    LoadError
        For what is no motor on joints, unless it is left out; for mistakes in any case.
    """
    columns: dict[tuple[str, str], Vector] = {}
    ranges: dict[tuple[str, str], tuple[Range, FilePlace]] = {}
    on_tendons: dict[tuple[str, str], tuple[Tendon, float]] = {}
    clamped = not switched_off(root, tree)
    left_out: dict[str, str] = {}
    for i, element in enumerate(sections(root, "actuator")):
        item = tree.defaults.item(element, "actuator")
        key = target_of(item, tree, tendons)
        gear = np.array(item.numbers("gear", (1.0, *(0.0,) * 5), least=1))
        rotor = item.size("armature", 0.0)
        if rotor:
            _add_rotor(item, key, gear, tree, tendons, rotor)
        column, why = _column(item, key, gear, tree, tendons)
        if not why and key in columns and not np.array_equal(columns[key], column):
            why = f"another actuator drives {key[0]} {key[1]!r} with another gear"
        if not why:
            columns[key] = column
            one = range_of(item, clamped)
            ranges[key] = (added(ranges[key][0], one) if key in ranges else one, item)
            if key[0] == "tendon":
                on_tendons[key] = tendons[key[1]], gear[0]
        elif not skip:
            raise item.error(f"{why}; hc.load(..., actuators='skip') loads the file without it")
        else:
            left_out[item.text("name") or f"<{element.tag}> {i}"] = why
    for key, (tendon, ratio) in on_tendons.items():
        ranges[key] = (
            common(ranges[key][0], range_on_tendon(tendon, ratio), tendon.item),
            tendon.item,
        )
    joints = [name for kind, name in columns if kind == "joint"]
    if len(joints) == len(columns) and all(
        tree.joints[name].type in SINGLE and columns["joint", name].max() == 1.0 for name in joints
    ):
        return Motors(joints, None, left_out, list(ranges.values()))
    return Motors([], np.column_stack(list(columns.values())), left_out, list(ranges.values()))


def target_of(item: Item, tree: MjcfTree, tendons: Mapping[str, Tendon]) -> tuple[str, str]:
    """What an actuator acts on: a kind of transmission, and a name."""
    given = [n for n in _TRANSMISSIONS if n in item]
    others = [n for n in _OF_OTHERS if n in item]
    if not given:
        given = others[:1]
    if len(given) != 1:
        raise item.error("an actuator drives one joint or tendon: give joint= or tendon=")
    kind = given[0]
    if kind in ("joint", "jointinparent"):
        name = named(item, kind, tree.joints, "joint")
        return ("joint" if tree.joints[name].type in SINGLE else kind), name
    if kind == "tendon":
        return kind, named(item, kind, tendons, "tendon")
    return kind, item.text(kind)


def _column(
    item: Item,
    key: tuple[str, str],
    gear: Vector,
    tree: MjcfTree,
    tendons: Mapping[str, Tendon],
) -> tuple[Vector, str]:
    """The efforts of a unit force on all coordinates; or why there is no such column."""
    column, (kind, name) = np.zeros(tree.model.nv), key
    matrix = "; or give the mechanism a matrix: dataclasses.replace(mech, actuation=B)"
    if item.element.tag in NO_MOTORS:
        return column, f"{item.element} in <actuator> is not read: {NO_MOTORS[item.element.tag]}"
    if kind == "tendon":
        coefficients = tendons[name].coefficients
        if coefficients is None:
            return column, (
                f"its transmission 'tendon' is not read: {name!r} is no <fixed> tendon, so its "
                f"arms change with the configuration{matrix}"
            )
        for end, coefficient in coefficients.items():
            column[tree.model.idx_vs[tree.joints[end].index]] = gear[0] * coefficient
    elif kind not in ("joint", "jointinparent"):
        return column, (
            f"its transmission {kind!r} is not read; only 'joint' and 'tendon' are{matrix}"
        )
    else:
        joint = tree.joints[name]
        if joint.type == "free" or (joint.type == "ball" and kind == "jointinparent"):
            return column, f"{kind}: a motor on the {joint.type} joint {name!r} is not read"
        first, n = tree.model.idx_vs[joint.index], tree.model.nvs[joint.index]
        column[first : first + n] = gear[:n]
    return column, "" if column.any() else "gear is zero: a motor on nothing"


def _add_rotor(
    item: Item,
    key: tuple[str, str],
    gear: Vector,
    tree: MjcfTree,
    tendons: Mapping[str, Tendon],
    rotor: float,
) -> None:
    """The rotor inertia of an actuator, seen through its gear."""
    kind, name = key
    if kind == "tendon":
        add_rotor(item, tendons[name], rotor * gear[0] ** 2, tree)
        return
    joint: MjcfJoint | None = tree.joints.get(name) if kind.startswith("joint") else None
    if joint is None or joint.type not in SINGLE:
        what = f"{joint.type} joint" if joint else kind
        raise item.error(f"armature of a motor on a {what} is not read; give it to the joint")
    tree.model.armature[tree.model.idx_vs[joint.index]] += rotor * gear[0] ** 2
