"""Equalities of an MJCF: connects and welds as closures, joints that follow joints as couplings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from holoctl.constraints.closure import Closure
from holoctl.constraints.contract import Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.io.mjcf_elements import Item, named, quaternion, sections
from holoctl.io.mjcf_tree import SINGLE, WORLD, Tree
from holoctl.io.xml import Element, blamed_on

__all__ = ["Row", "equalities"]

Row = tuple[Constraint, Element, bool]
"""A constraint, its element, and whether it is active."""


def equalities(root: Element, tree: Tree) -> list[Row]:
    """A `Closure` or `Coupling` for each equality, checked against the model."""
    data = tree.model.createData()
    pin.forwardKinematics(tree.model, data, tree.home)
    names: dict[str, int] = {}
    found: list[Row] = []
    for element in sections(root, "equality"):
        item = tree.defaults.item(element, "equality")
        make = _joint_equality if element.tag == "joint" else _closure
        with blamed_on(element):
            constraint = make(item, tree, data, names)
            constraint.bind(tree.model, constraint.default_name, tree.home)
        found.append((constraint, element, item.true("active", True)))
    return found


def _label(item: Item, ends: Sequence[str], names: dict[str, int]) -> str:
    """The name of an equality, or its ends; numbered where several have the same ends."""
    given = item.text("name")
    label = given or "-".join(ends)
    names[label] = names.get(label, 0) + 1
    if names[label] == 1:
        return label
    if given:
        raise item.error(f"two equalities are called {label!r}")
    return _label(item, (*ends, str(names[label])), names)


def _closure(item: Item, tree: Tree, data: pin.Data, names: dict[str, int]) -> Closure:
    """A connect (three rows) or a weld (six) between two bodies or two sites.

    MuJoCo multiplies the three rows of a weld's orientation by ``torquescale``: with zero nothing
    is left of them, and the anchor alone is held.
    """
    weld = item.element.tag == "weld"
    turns = weld and item.number("torquescale", 1.0) != 0.0
    of_sites, of_bodies = (
        [n for n in group if n in item] for group in (("site1", "site2"), ("body1", "body2"))
    )
    if of_sites:
        if of_bodies or len(of_sites) < 2 or "anchor" in item or "relpose" in item:
            raise item.error("with sites: give site1 and site2, and no body, anchor or relpose")
        ends = [named(item, name, tree.sites, "site") for name in ("site1", "site2")]
        (i, A), (j, B) = (tree.sites[end] for end in ends)
    else:
        if "body1" not in item or not (weld or "anchor" in item):
            needed = "body1" if weld else "body1 and anchor"
            raise item.error(f"give {needed} (body2 is the world by default), or site1 and site2")
        ends = [named(item, "body1", tree.bodies, "body"), WORLD]
        if "body2" in item:
            ends[1] = named(item, "body2", tree.bodies, "body")
        (i, A), (j, B) = (tree.bodies[end] for end in ends)
        anchor = pin.SE3(np.eye(3), np.array(item.numbers("anchor", (0.0, 0.0, 0.0))))
        between = (data.oMi[i] * A).actInv(data.oMi[j] * B)  # of body 2 in body 1, as drawn
        if weld:
            A, B = A * _relative(item, between * anchor), B * anchor
        else:
            A, B = A * anchor, B * between.inverse() * anchor
    a, b = ((tree.model.names[k], X) for k, X in ((i, A), (j, B)))
    return Closure(a, b, joint="weld" if turns else "spherical", name=_label(item, ends, names))


def _relative(item: Item, drawn: pin.SE3) -> pin.SE3:
    """Where a weld holds the anchor of body 2 in body 1: at ``relpose``, or as drawn.

    MuJoCo takes the position of relpose for the anchor, not for the origin of body 2.
    """
    given = np.array(item.numbers("relpose", (0.0, 1.0, *(0.0,) * 5)))
    if not given[3:].any():  # MuJoCo's way to say that none is given
        return drawn
    return pin.SE3(quaternion(item, "relpose", given[3:]), given[:3])


def _joint_equality(item: Item, tree: Tree, data: pin.Data, names: dict[str, int]) -> Coupling:
    """``q1 = a0 + a1 q2``, both counted from where the joints stand in the drawing."""
    first = _single(item, "joint1", tree)
    a0, a1, *higher = item.numbers("polycoef", (0.0, 1.0, 0.0, 0.0, 0.0), least=1)
    if "joint2" not in item:
        return Coupling({first: 1.0}, offset=a0, name=_label(item, [first], names))
    second = _single(item, "joint2", tree)
    if first == second:
        raise item.error("joint1 and joint2 are the same")
    if any(higher):
        raise item.error(
            "polycoef: only the first two coefficients are read, for a line; make a polynomial "
            "of higher order a hc.Custom and add it with mech.with_constraints"
        )
    coefficients = {first: 1.0, second: -a1} if a1 else {first: 1.0}
    return Coupling(coefficients, offset=a0, name=_label(item, [first, second], names))


def _single(item: Item, attribute: str, tree: Tree) -> str:
    """The name of a hinge or slide."""
    name = named(item, attribute, tree.joints, "joint")
    if tree.joints[name].type not in SINGLE:
        raise item.error(f"{attribute}: {name!r} is no hinge or slide")
    return name
