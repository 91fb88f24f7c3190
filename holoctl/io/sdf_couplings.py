"""Gearboxes and mimic joints of an SDF: linear rows on coordinates."""

from __future__ import annotations

import math

from holoctl.base.checks import suggestion
from holoctl.constraints.constraint_protocol import Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.io.reader_limits import FilePlace
from holoctl.io.sdf_elements import TYPES, child_of, number, word
from holoctl.io.sdf_frames import Drawing
from holoctl.io.xml import Element, blamed_on

__all__ = ["couplings"]


def couplings(model: Drawing) -> list[tuple[Constraint, FilePlace]]:
    """A `Coupling` for each gearbox and each mimic joint."""
    found: list[tuple[Constraint, FilePlace]] = []
    for name, joint in model.joints.items():
        with blamed_on(joint):
            if joint.attributes.get("type") == "gearbox":
                found.append((_gearbox(name, joint, model), joint))
                continue
            for i, tag in enumerate(("axis", "axis2")):
                axis = child_of(joint, tag)
                mimic = child_of(axis, "mimic") if axis is not None else None
                if mimic is not None:
                    follower = _coordinate(joint, i, mimic)
                    found.append((_mimic(follower, mimic, model), mimic))
    return found


def _gearbox(name: str, joint: Element, model: Drawing) -> Coupling:
    """``angle of the child = -ratio * angle of the parent``, both relative to the reference
    body."""
    body = model.body(word(joint, "gearbox_reference_body"), joint)
    ratio = number(joint, "gearbox_ratio", 1.0)
    coefficients: dict[str, float] = {}
    for end, tag, factor in (("child", "axis2", 1.0), ("parent", "axis", ratio)):
        other = model.body(word(joint, end), joint)
        hinge, sign = _hinge_between(body, other, joint, tag, model)
        coefficients[hinge] = coefficients.get(hinge, 0.0) + sign * factor
    return Coupling(coefficients, name=name)


def _hinge_between(
    body: str, other: str, gearbox: Element, tag: str, model: Drawing
) -> tuple[str, float]:
    """The revolute joint between two links, and 1, or -1 if its angle has the opposite sign."""
    for name, joint in model.joints.items():
        if TYPES.get(joint.attributes.get("type", "")) == "revolute":
            ends = tuple(model.body(word(joint, end), joint) for end in ("parent", "child"))
            if set(ends) == {body, other}:
                along = float(model.axis(gearbox, tag) @ model.axis(joint, "axis"))
                if abs(along) < 1.0 - 1e-6:
                    raise gearbox.error(f"{gearbox}: {tag} is not the axis of joint {name!r}")
                return name, math.copysign(1.0, along) * (1.0 if ends == (body, other) else -1.0)
    raise gearbox.error(
        f"{gearbox}: a gearbox is read only if a revolute joint connects each of its links with "
        f"the reference body; none connects {body!r} and {other!r}"
    )


def _mimic(follower: str, mimic: Element, model: Drawing) -> Coupling:
    """``follower = multiplier (leader - reference) + offset``."""
    name = mimic.attributes.get("joint", "")
    if name not in model.joints:
        raise mimic.error(f"mimic: there is no joint {name[:60]!r}{suggestion(name, model.joints)}")
    axis = mimic.attributes.get("axis", "axis")
    if axis not in ("axis", "axis2"):
        raise mimic.error(f"mimic: axis must be axis or axis2; got {axis[:60]!r}")
    leader = _coordinate(model.joints[name], int(axis == "axis2"), mimic)
    factor = number(mimic, "multiplier", 1.0)
    offset = number(mimic, "offset", 0.0) - factor * number(mimic, "reference", 0.0)
    coefficients = {follower: 1.0} | ({leader: -factor} if factor else {})
    if leader == follower:
        raise mimic.error("mimic: a joint cannot mimic itself")
    return Coupling(coefficients, offset=offset, name=f"{follower}-mimic")


def _coordinate(joint: Element, axis: int, place: Element) -> str:
    """The name of the coordinate of an axis of a joint."""
    kind, name = TYPES.get(joint.attributes.get("type", "")), joint.attributes["name"]
    if kind == "universal":
        return f"{name}[{axis}]"
    if kind not in ("revolute", "prismatic") or axis:
        raise place.error(f"mimic: joint {name!r} has no angle or length on that axis")
    return name
