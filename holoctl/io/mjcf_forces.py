"""Friction and springs of an MJCF: what MuJoCo calls passive forces, and ``frictionloss``.

A hinge or slide counts from its ``ref`` here, so a spring rests at ``springref - ref``. A tendon
without ``springlength`` has the length that it has where all joints are at their ``springref``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from holoctl.forces.joint_spring import JointSpring
from holoctl.forces.spring import Spring
from holoctl.io.losses import Losses
from holoctl.io.mjcf_elements import Item, named, sections
from holoctl.io.mjcf_motors import target_of
from holoctl.io.mjcf_tendons import Tendon, by_name
from holoctl.io.mjcf_tree import SINGLE, MjcfJoint, MjcfTree
from holoctl.io.xml import Element
from holoctl.tree.frames import FrameLike

__all__ = ["losses_of"]

_POLYNOMIAL = "a polynomial"
_NEGATIVE = "negative"


def losses_of(root: Element, tree: MjcfTree, tendons: Sequence[Tendon]) -> Losses:
    """What joints, tendons and actuators say of friction and springs.

    Parameters
    ----------
    root, tree
    tendons : sequence of Tendon
        All of them, also those without a name.

    Raises
    ------
    LoadError
        For values that are no numbers.
    """
    found = Losses(root.file, root)
    springs, dampers, friction = _switched_on(root, tree)
    for name, joint in tree.joints.items():
        if joint.item.element.tag != "body":  # the root of a free flyer
            _joint(name, joint, found, springs, dampers, friction)
    at_rest: list[pin.Data] = []
    for i, tendon in enumerate(tendons):
        _tendon(tendon, i, tree, found, (springs, dampers, friction), at_rest)
    if dampers:
        for i, element in enumerate(sections(root, "actuator")):
            _actuator(tree.defaults.item(element, "actuator"), i, tree, tendons, found)
    return found


def _switched_on(root: Element, tree: MjcfTree) -> tuple[bool, bool, bool]:
    """Whether springs, dampers and dry friction act, as the flags say; the last of each counts."""
    words = ("enable", "disable")
    flags = ("passive", "constraint", "spring", "damper", "frictionloss")
    off = dict.fromkeys(flags, "enable")
    for option in (child for child in root.children if child.tag == "option"):
        for flag in option.children:
            item = tree.defaults.plain(flag)
            off = {name: item.word(name, words, now) for name, now in off.items()}
    passive, solved, *rest = (word == "enable" for word in off.values())
    return passive and rest[0], passive and rest[1], solved and rest[2]


def _linear(item: Item, attribute: str, what: str, found: Losses) -> float:
    """The first coefficient of a polynomial, where that is all of it; else 0, which is noted."""
    x, *higher = item.numbers(attribute, (0.0,) * 3, least=1)
    if any(higher):
        found.left_out[f"{attribute} of {what}"] = _POLYNOMIAL
    elif x < 0.0:
        found.left_out[f"{attribute} of {what}"] = _NEGATIVE
    else:
        return x
    return 0.0


def _joint(
    name: str, joint: MjcfJoint, found: Losses, springs: bool, dampers: bool, friction: bool
) -> None:
    item, shown = joint.item, repr(name)
    if item.element.tag == "freejoint":
        return
    made = item.numbers("springdamper", (0.0, 0.0))
    if any(made) and (springs or dampers):
        found.left_out[f"springdamper of {shown}"] = "MuJoCo makes it of the inertia"
    else:
        if dampers:
            found.add("viscous", name, _linear(item, "damping", shown, found))
        if springs:
            _joint_spring(name, joint, found)
    loss = item.size("frictionloss", 0.0) if friction else 0.0
    if loss and joint.type == "free":
        found.left_out[f"frictionloss of {shown}"] = "a free joint, along axes of the world"
    else:
        found.add("coulomb", name, loss)


def _joint_spring(name: str, joint: MjcfJoint, found: Losses) -> None:
    stiffness = _linear(joint.item, "stiffness", repr(name), found)
    if not stiffness:
        return
    if joint.type == "free":
        found.left_out[f"stiffness of {name!r}"] = "a free joint"
    elif joint.item.number("springyield", 0.0):
        found.left_out[f"stiffness of {name!r}"] = "springyield: it is plastic"
    else:
        rest = joint.rest if joint.type in SINGLE else 0.0
        found.springs.append((JointSpring(name, stiffness, rest), joint.item.element))


# --------------------------------------------------------------------------------- tendons


def _tendon(
    tendon: Tendon,
    i: int,
    tree: MjcfTree,
    found: Losses,
    acting: tuple[bool, bool, bool],
    at_rest: list[pin.Data],
) -> None:
    """A spring between two sites; what else a tendon has is noted."""
    item, (springs, dampers, friction) = tendon.item, acting
    name = item.text("name") or f"tendon {i}"
    what = f"tendon {name!r}"
    stiffness = _linear(item, "stiffness", what, found) if springs else 0.0
    damping = _linear(item, "damping", what, found) if dampers else 0.0
    if friction and item.size("frictionloss", 0.0):
        found.left_out[f"frictionloss of {what}"] = "dry friction is that of joints"
    if not (stiffness or damping):
        return
    why = _not_straight(item, tendon)
    ends = [] if why else [tree.sites[site] for site in _sites(item, tree)]
    if not why and ends[0][0] == ends[1][0]:
        return  # both sites on one body: its length never changes
    if stiffness and item.number("springyield", 0.0):
        why = why or "springyield: it is plastic"
    least, most = (0.0, 0.0) if why else _resting(item, ends, tree, at_rest)
    if 0.0 < least < most and stiffness:
        why = "springlength is a range, and it pushes below it"
    if why:
        words = " and ".join(w for w, x in (("stiffness", stiffness), ("damping", damping)) if x)
        found.left_out[f"{words} of {what}"] = why
        return
    a, b = (_frame(tree, *end) for end in ends)
    rope = bool(stiffness) and least < most
    if not rope:
        spring = Spring(a, b, stiffness, most if stiffness else 0.0, damping, name=name)
        found.springs.append((spring, item.element))
        return
    pulls = Spring(a, b, stiffness, most, unilateral=True, name=name)
    found.springs.append((pulls, item.element))
    if damping:  # of a slack one too, as in MuJoCo
        damper = Spring(a, b, 0.0, 0.0, damping, name=f"{name} damper")
        found.springs.append((damper, item.element))


def _not_straight(item: Item, tendon: Tendon) -> str:
    """Why a tendon is no line between two sites; empty where it is."""
    if tendon.coefficients is not None:
        return "a fixed tendon"
    tags = [child.tag for child in item.element.children]
    if "geom" in tags or "pulley" in tags:
        return "it goes around a geom, or over a pulley"
    return "" if tags == ["site"] * 2 else f"it goes through {len(tags)} sites, and not through two"


def _sites(item: Item, tree: MjcfTree) -> list[str]:
    parts = [tree.defaults.plain(child) for child in item.element.children]
    return [named(part, "site", tree.sites, "site") for part in parts]


def _resting(
    item: Item, ends: Sequence[tuple[int, pin.SE3]], tree: MjcfTree, at_rest: list[pin.Data]
) -> tuple[float, float]:
    """Between which lengths it has no force; MuJoCo's default is where the springs rest."""
    given = item.numbers("springlength", (-1.0, -1.0), least=1)
    lengths = item.text("springlength").split()
    least, most = given if len(lengths) != 1 else (given[0], given[0])
    if least == most == -1.0:
        if not at_rest:
            at_rest.append(_drawn_at_rest(tree))
        p, r = (at_rest[0].oMi[joint].act(at.translation) for joint, at in ends)
        least = most = float(np.linalg.norm(p - r))
    if least > most or most < 0.0:
        raise item.error(
            "springlength must be one length, or an ascending pair of them, or -1 for that where "
            f"the springs of joints rest; got {item.text('springlength')[:60]!r}"
        )
    return max(least, 0.0), most


def _drawn_at_rest(tree: MjcfTree) -> pin.Data:
    """Where everything is with all joints at their springref."""
    q = tree.home.copy()
    for joint in tree.joints.values():
        if joint.type in SINGLE:
            q[tree.model.idx_qs[joint.index]] = joint.rest
    data = tree.model.createData()
    pin.forwardKinematics(tree.model, data, q)
    return data


def _frame(tree: MjcfTree, joint: int, at: pin.SE3) -> FrameLike:
    return (tree.model.names[joint], at)


# -------------------------------------------------------------------------------- actuators


def _actuator(item: Item, i: int, tree: MjcfTree, tendons: Sequence[Tendon], found: Losses) -> None:
    """The damping of an actuator, seen through its gear."""
    what = item.text("name") or f"<{item.element.tag}> {i}"
    for word in ("lugre", "cogging"):
        if item.element.tag == "dcmotor" and word in item:
            found.left_out[f"{word} of actuator {what!r}"] = "of the motor itself"
    damping = _linear(item, "damping", f"actuator {what!r}", found)
    if not damping:
        return
    known = by_name(tendons)
    kind, name = target_of(item, tree, known)
    gear = item.numbers("gear", (1.0, *(0.0,) * 5), least=1)[0]
    arms = {name: 1.0}
    if kind == "tendon":
        arms = dict(known[name].coefficients or {})
    on_joints = kind in ("joint", "jointinparent", "tendon") and len(arms) == 1
    if not on_joints or any(tree.joints[joint].type not in SINGLE for joint in arms):
        found.left_out[f"damping of actuator {what!r}"] = "it is not on one hinge or slide"
        return
    for joint, arm in arms.items():
        found.add("viscous", joint, damping * gear**2 * arm**2)
