"""Equalities of an MJCF: connects and welds as closures, joints and fixed tendons as couplings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pinocchio as pin

from holoctl.constraints.closure import Closure
from holoctl.constraints.contract import Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.io.mjcf_elements import Item, named, quaternion, sections
from holoctl.io.mjcf_tendons import Tendon
from holoctl.io.mjcf_tree import SINGLE, WORLD, MjcfTree
from holoctl.io.xml import Element, blamed_on

__all__ = ["Row", "equalities"]

Row = tuple[Constraint, Element, bool]
"""A constraint, its element, and whether it is active."""


def equalities(root: Element, tree: MjcfTree, tendons: Mapping[str, Tendon]) -> list[Row]:
    """A `Closure` or `Coupling` for each equality, checked against the model."""
    data = tree.model.createData()
    pin.forwardKinematics(tree.model, data, tree.home)
    names: dict[str, int] = {}
    found: list[Row] = []
    for element in sections(root, "equality"):
        item = tree.defaults.item(element, "equality")
        with blamed_on(element):
            constraint: Closure | Coupling | None
            if element.tag == "joint":
                constraint = _joint_equality(item, tree, names)
            elif element.tag == "tendon":
                constraint = _tendon_equality(item, tendons, names)
            else:
                constraint = _closure(item, tree, data, names)
            if constraint is None:
                continue
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


def _closure(item: Item, tree: MjcfTree, data: pin.Data, names: dict[str, int]) -> Closure | None:
    """A connect (three rows) or a weld (six) between two bodies or two sites.

    None, which is noted in the tree, if both are parts of one body: it cannot hold anything.

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
    label = _label(item, ends, names)
    if i == j and ends[0] != ends[1]:
        tree.idle.append(label)
        return None
    a, b = ((tree.model.names[k], X) for k, X in ((i, A), (j, B)))
    return Closure(a, b, joint="weld" if turns else "spherical", name=label)


def _relative(item: Item, drawn: pin.SE3) -> pin.SE3:
    """Where a weld holds the anchor of body 2 in body 1: at ``relpose``, or as drawn.

    MuJoCo takes the position of relpose for the anchor, not for the origin of body 2.
    """
    given = np.array(item.numbers("relpose", (0.0, 1.0, *(0.0,) * 5)))
    if not given[3:].any():  # MuJoCo's way to say that none is given
        return drawn
    return pin.SE3(quaternion(item, "relpose", given[3:]), given[:3])


def _joint_equality(item: Item, tree: MjcfTree, names: dict[str, int]) -> Coupling:
    """``q1 = a0 + a1 q2``, both counted from where the joints stand in the drawing."""
    ends = ["joint1", "joint2"][: 2 if "joint2" in item else 1]
    found = [_single(item, end, tree) for end in ends]
    return _line(item, found, [{name: 1.0} for name in found], names)


def _tendon_equality(item: Item, tendons: Mapping[str, Tendon], names: dict[str, int]) -> Coupling:
    """``l1 = a0 + a1 l2``: lengths of fixed tendons, counted from those in the drawing."""
    ends = ["tendon1", "tendon2"][: 2 if "tendon2" in item else 1]
    found = [named(item, end, tendons, "tendon") for end in ends]
    sums = []
    for end, name in zip(ends, found, strict=True):
        coefficients = tendons[name].coefficients
        if coefficients is None:
            raise item.error(
                f"{end}: {name!r} is no <fixed> tendon, so its length is no sum of coordinates; "
                "use hc.Rod on the mechanism for a straight one, hc.Custom for others"
            )
        sums.append(coefficients)
    return _line(item, found, sums, names)


def _line(
    item: Item, found: list[str], sums: Sequence[Mapping[str, float]], names: dict[str, int]
) -> Coupling:
    """``s1 = a0 + a1 s2`` for sums of coordinates; the second may be missing."""
    a0, a1, *higher = item.numbers("polycoef", (0.0, 1.0, 0.0, 0.0, 0.0), least=1)
    if len(found) == 2 and found[0] == found[1]:
        kind = item.element.tag
        raise item.error(f"{kind}1 and {kind}2 are the same")
    coefficients = dict(sums[0])
    if len(found) == 2:
        if any(higher):
            raise item.error(
                "polycoef: only the first two coefficients are read, for a line; make a polynomial "
                "of higher order a hc.Custom and add it with mech.with_constraints"
            )
        for name, x in sums[1].items():
            coefficients[name] = coefficients.get(name, 0.0) - a1 * x
    coefficients = {name: x for name, x in coefficients.items() if x}
    if not coefficients:
        raise item.error("the equality holds nothing: its coordinates cancel each other")
    return Coupling(coefficients, offset=a0, name=_label(item, found, names))


def _single(item: Item, attribute: str, tree: MjcfTree) -> str:
    """The name of a hinge or slide."""
    name = named(item, attribute, tree.joints, "joint")
    if tree.joints[name].type not in SINGLE:
        raise item.error(f"{attribute}: {name!r} is no hinge or slide")
    return name
