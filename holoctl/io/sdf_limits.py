"""Limits and losses of the joints of an SDF, and its frames, in the model."""

from __future__ import annotations

import logging
import math
import sys

import pinocchio as pin

from holoctl.base.checks import listing
from holoctl.base.tolerances import LARGEST_LIMIT
from holoctl.constraints.joint_coordinates import part_names
from holoctl.io.file_limits import FileLimits
from holoctl.io.reader_limits import FREE
from holoctl.io.sdf_elements import GROUND, TYPES, child_of, number
from holoctl.io.sdf_frames import Drawing
from holoctl.io.xml import Element
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["completed", "limits_of_cut", "place"]

log = logging.getLogger(__name__)


def completed(plain: pin.Model, model: Drawing) -> pin.Model:
    """A copy of the model with the frames of the file, and limits and losses of tree joints."""
    new = plain.copy()
    for name, element in model.frames.items():
        link = model.body(name, element)
        joint, at = place(new, link)
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


def place(model: pin.Model, link: str) -> tuple[int, pin.SE3]:
    """The joint that moves a link, and the link in it."""
    if link == GROUND:
        return 0, pin.SE3.Identity()
    frame = model.frames[model.getFrameId(link, pin.FrameType.BODY)]
    return frame.parentJoint, frame.placement


def _limit(model: pin.Model, part: str, joint: Element, axis: Element) -> None:
    """Limits and losses of one joint of the model."""
    found = model.joints[model.getJointId(part)]
    of_v, single = slice(found.idx_v, found.idx_v + found.nv), found.nv == 1
    losses = child_of(axis, "dynamics")
    lower, upper, effort, speed = _bounds(joint, axis)
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


def _bounds(joint: Element, axis: Element) -> tuple[float, float, float, float]:
    """Bounds of the position, and the largest effort and speed; finite numbers if there are
    none."""
    limit, most = child_of(axis, "limit"), sys.float_info.max
    if limit is None:
        return -FREE, FREE, most, most
    turns = joint.attributes["type"] == "continuous"
    lower = -FREE if turns else max(number(limit, "lower", -math.inf, True), -FREE)
    upper = FREE if turns else min(number(limit, "upper", math.inf, True), FREE)
    mimic = child_of(axis, "mimic")
    if lower > upper and mimic is not None and number(mimic, "multiplier", 1.0) < 0.0:
        log.warning(
            "%s: %s (line %s): lower %g is above upper %g, because the joint mimics another one "
            "with a negative multiplier; they are exchanged",
            limit.file, joint, limit.line, lower, upper,
        )  # fmt: skip
        lower, upper = upper, lower
    if lower > upper:
        raise limit.error(f"{joint}: lower {lower:g} is above upper {upper:g}")
    effort, speed = (number(limit, tag, -1.0, True) for tag in ("effort", "velocity"))
    effort, speed = (most if x < 0.0 else min(x, most) for x in (effort, speed))
    return lower, upper, effort, speed


def limits_of_cut(mech: Mechanism, model: Drawing) -> FileLimits:
    """Limits of positions and velocities of joints that close loops, which the model does not have.

    The angle of a cut joint is known between -pi and pi: bounds beyond that are left out, with a
    warning.
    """
    found, left = FileLimits(model.element), list[str]()
    for name in mech.constraint_names:
        joint = model.joints.get(name)
        kind = "" if joint is None else TYPES.get(joint.attributes.get("type", ""), "")
        if (
            joint is None
            or part_names(mech.model, name)  # in the tree; a cut joint is a closure of this name
            or kind not in ("revolute", "prismatic", "universal")
        ):
            continue
        for i, tag in enumerate(("axis", "axis2") if kind == "universal" else ("axis",)):
            axis = child_of(joint, tag)
            if axis is None:
                continue
            one = f"{name}[{i}]" if kind == "universal" else name
            lower, upper, _, speed = _bounds(joint, axis)
            if 0.0 < speed < LARGEST_LIMIT:
                found.given.append(("velocity", one, speed, axis))
            known = kind == "prismatic" or -math.pi < lower <= upper < math.pi
            if known and lower < upper:
                both = lower if lower > -FREE else -math.inf, upper if upper < FREE else math.inf
                found.given.append(("position", one, both, axis))
            elif not known and (lower > -FREE or upper < FREE):
                left.append(one)
    if left:
        log.warning(
            "%s: the loop is cut at these joints, where angles are known between -pi and pi only, "
            "so position limits beyond these are left out: %s; cut: in the YAML file chooses "
            "other joints",
            model.element.file, listing(left),
        )  # fmt: skip
    return found
