"""Limits and losses of the joints of an SDF, and its frames, in the model."""

from __future__ import annotations

import math
import sys

import pinocchio as pin

from holoctl.io.limits import FREE
from holoctl.io.sdf_elements import GROUND, TYPES, child_of, number
from holoctl.io.sdf_frames import Drawing
from holoctl.io.xml import Element

__all__ = ["completed"]


def completed(plain: pin.Model, model: Drawing) -> pin.Model:
    """A copy of the model with the frames of the file, and limits and losses of tree joints."""
    new = plain.copy()
    for name, element in model.frames.items():
        link = model.body(name, element)
        joint, at = _place(new, link)
        at = at * model.where(link).actInv(model.placed[name])
        new.addFrame(pin.Frame(name, joint, 0, at, pin.FrameType.OP_FRAME), False)
    for joint in new.joints[1:]:
        if (joint.nq, joint.nv) == (1, 1):
            new.lowerPositionLimit[joint.idx_q] = -FREE
            new.upperPositionLimit[joint.idx_q] = FREE
    for name, element in model.joints.items():
        for i, tag in enumerate(("axis", "axis2")):
            axis = child_of(element, tag)
            kind = TYPES.get(element.attributes.get("type", ""), "")
            if axis is None or not kind or (i and kind != "universal"):
                continue
            for part in (f"{name}[{i}]",) if kind == "universal" else (name,):
                if new.existJointName(part):
                    _limit(new, part, element, axis)
    return new


def _place(model: pin.Model, link: str) -> tuple[int, pin.SE3]:
    """The joint that moves a link, and the link in it."""
    if link == GROUND:
        return 0, pin.SE3.Identity()
    frame = model.frames[model.getFrameId(link, pin.FrameType.BODY)]
    return frame.parentJoint, frame.placement


def _limit(model: pin.Model, part: str, joint: Element, axis: Element) -> None:
    """Limits and losses of one joint of the model."""
    found = model.joints[model.getJointId(part)]
    of_v, single = slice(found.idx_v, found.idx_v + found.nv), found.nv == 1
    limit, losses = child_of(axis, "limit"), child_of(axis, "dynamics")
    lower, upper, most = -FREE, FREE, sys.float_info.max
    effort = speed = most
    if limit is not None:
        turns = joint.attributes["type"] == "continuous"
        lower = lower if turns else max(number(limit, "lower", -math.inf, True), -FREE)
        upper = upper if turns else min(number(limit, "upper", math.inf, True), FREE)
        if lower > upper:
            raise limit.error(f"{joint}: lower {lower:g} is above upper {upper:g}")
        effort, speed = (number(limit, tag, -1.0, True) for tag in ("effort", "velocity"))
        effort, speed = (most if x < 0.0 else min(x, most) for x in (effort, speed))
    if single:
        model.lowerPositionLimit[found.idx_q] = lower
        model.upperPositionLimit[found.idx_q] = upper
    model.upperEffortLimit[of_v], model.lowerEffortLimit[of_v] = effort, -effort
    model.upperVelocityLimit[of_v], model.lowerVelocityLimit[of_v] = speed, -speed
    if losses is not None:
        friction = abs(number(losses, "friction", 0.0))
        model.damping[of_v] = max(number(losses, "damping", 0.0), 0.0)
        model.upperDryFrictionLimit[of_v] = friction
        model.lowerDryFrictionLimit[of_v] = -friction
