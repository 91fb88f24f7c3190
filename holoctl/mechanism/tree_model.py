"""The tree of a linkage as a `pin.Model`, built joint by joint from the ground."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, vector
from holoctl.base.errors import InputError
from holoctl.constraints.closure import Closure
from holoctl.constraints.joint_coordinates import child_frame
from holoctl.mechanism.joint_types import GROUND, IN_SERIES, OTHER_IF_REVERSED, Joint
from holoctl.mechanism.spanning_tree import TreeBranch
from holoctl.tree.inertia_checks import rigid_body

__all__ = ["BodyPlacement", "position", "tree_model", "weld_of_part"]

BodyPlacement = tuple[str, pin.SE3]
"""A joint of the model, and a placement in it."""


def tree_model(
    name: str,
    gravity: Vector,
    bodies: Mapping[str, pin.Inertia],
    branches: Sequence[TreeBranch],
    parts: Sequence[TreeBranch],
) -> tuple[pin.Model, dict[str, BodyPlacement]]:
    """The tree, numbered depth-first, and the placement of each body in it."""
    model = pin.Model()
    model.name, model.gravity.linear = name, gravity
    shares = Counter(b.below for b in parts)
    places = {GROUND: (GROUND, pin.SE3.Identity())}
    below: dict[str, list[TreeBranch]] = {}
    for branch in sorted((*branches, *parts), key=lambda b: b.joint.name, reverse=True):
        below.setdefault(branch.above, []).append(branch)
    stack = list(below.get(GROUND, ()))
    while stack:
        branch = stack.pop()
        joint, X = _hang(model, branch, places[branch.above])
        share = _share(bodies[branch.below], 1 + shares[branch.below])
        model.appendBodyToJoint(model.getJointId(joint), share, X)
        if not branch.part:
            _add_frame(model, branch.below, joint, X, pin.FrameType.BODY)
            places[branch.below] = (joint, X)
            stack += below.get(branch.below, ())
    return model, places


def _hang(model: pin.Model, branch: TreeBranch, place: BodyPlacement) -> BodyPlacement:
    """Add a branch to the model below a body that is placed already; returns the placement of the
    body below."""
    j = branch.joint
    above, below = (j.at_parent, j.at_child)[:: -1 if branch.reversed else 1]
    last, X = place[0], place[1] * above
    if j.type == "weld":
        _add_frame(model, j.name, last, X, pin.FrameType.FIXED_JOINT)
        return last, X * below.inverse()
    if branch.reversed and j.type in OTHER_IF_REVERSED:
        _add_frame(model, child_frame(j.name), last, X, pin.FrameType.OP_FRAME)
    for name, kind in _pinocchio_joints(j, branch.reversed):
        number = model.addJoint(model.getJointId(last), kind, X, name)
        model.addJointFrame(number)
        last, X = name, pin.SE3.Identity()
    if last != j.name:  # several joints in series: the frame after them has the name
        _add_frame(model, j.name, last, X, pin.FrameType.OP_FRAME)
    return last, below.inverse()


def _pinocchio_joints(j: Joint, reverse: bool) -> list[tuple[str, pin.JointModel]]:
    """Names and joints from above to below; for a reversed joint such that its coordinates are the
    same."""
    if j.type == "spherical":
        return [(j.name, pin.JointModelSpherical())]
    if j.type == "free":
        return [(j.name, pin.JointModelFreeFlyer())]
    if j.type == "screw":  # rotation and translation change sign together, so the pitch is the same
        axis = np.array([0.0, 0.0, -1.0 if reverse else 1.0])
        return [(j.name, pin.JointModelHelicalUnaligned(axis, j.pitch))]
    kinds = [_pinocchio_joint(part, reverse) for part in IN_SERIES[j.type]]
    return list(zip(j.coordinates, kinds, strict=True))[:: -1 if reverse else 1]


def _pinocchio_joint(part: str, reverse: bool) -> pin.JointModel:
    """A rotation or translation along an axis, in the opposite direction if it is reversed."""
    if not reverse:
        return getattr(pin, f"JointModel{part[0]}{part[1].upper()}")()
    axis = -np.eye(3)["xyz".index(part[1])]
    turn, slide = pin.JointModelRevoluteUnaligned, pin.JointModelPrismaticUnaligned
    return turn(axis) if part[0] == "R" else slide(axis)


def _add_frame(model: pin.Model, name: str, joint: str, X: pin.SE3, kind: Any) -> None:
    above = model.getFrameId(joint, pin.FrameType.JOINT) if joint != GROUND else 0
    model.addFrame(pin.Frame(name, model.getJointId(joint), above, X, kind))


def _share(inertia: pin.Inertia, parts: int) -> pin.Inertia:
    """One of several equal parts of a body."""
    return rigid_body(inertia.mass / parts, inertia.lever, inertia.inertia / parts)


def weld_of_part(branch: TreeBranch, places: Mapping[str, BodyPlacement]) -> Closure:
    """The weld that ties the part of a body that a joint carries to the rest of the body."""
    j = branch.joint
    joint, X = places[branch.below]
    parts = _pinocchio_joints(j, branch.reversed)
    rest = (joint, X * (j.at_parent if branch.reversed else j.at_child))
    return Closure((parts[-1][0], pin.SE3.Identity()), rest, joint="weld", name=f"{j.name}.weld")


def position(joint: Joint, given: Any, reverse: bool) -> Vector:
    """The entries of q for a given position of a joint."""
    sizes = {"spherical": 4, "free": 7}
    size = sizes.get(joint.type, joint.dof)
    what = f"reference[{joint.name!r}]"
    if size == 0:
        raise InputError(f"{what}: a weld has no coordinate that could be set")
    value = vector(what, [given] if np.isscalar(given) else given, size, joint.type)
    if not reverse or joint.type not in OTHER_IF_REVERSED:
        return value
    rotation, norm = value[-4:], float(np.linalg.norm(value[-4:]))
    if not norm > 0.0:
        raise InputError(f"{what}: the quaternion x y z w is zero")
    p = value[:3] if size == 7 else np.zeros(3)
    inverse = pin.XYZQUATToSE3(np.concatenate([p, rotation / norm])).inverse()
    turned: Vector = pin.SE3ToXYZQUAT(inverse)[-size:]
    return turned
