"""A tree as URDF: a `pin.Model` without loops.

Joints of one coordinate, and free ones; what URDF has no word for, such as rotor inertias, is
written as a comment. Limits that are infinite are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError
from holoctl.tree.frozen_model import plain

__all__ = [
    "ANY_LIMIT",
    "JointText",
    "described_joint",
    "link_names",
    "other_frames",
    "row_text",
    "urdf_link",
    "written_urdf",
]

ANY_LIMIT = 1e6
"""A limit at least as large is none."""


class JointText(NamedTuple):
    """A joint of a tree.

    Attributes
    ----------
    name, kind : str
        ``"revolute"``, ``"prismatic"``, ``"free"`` or ``"spherical"``.
    axis : (3,) array
        Of the first two.
    turning : bool
        Whether it has no position limits.
    """

    name: str
    kind: str
    axis: Vector
    turning: bool


def written_urdf(model: pin.Model, name: str) -> str:
    """A URDF of a model; the root link is ``base``, each joint moves a link of its name.

    Raises
    ------
    InputError
        For joints that URDF does not have, by name.
    """
    model, lines = plain(model), ['<?xml version="1.0" encoding="utf-8"?>']
    lines += [f"<robot name={quoteattr(name)}>", *urdf_link("base", model.inertias[0])]
    for j in range(1, model.njoints):
        joint = described_joint(model, j)
        if joint.kind == "spherical":
            raise InputError(f"URDF has no ball joints: {joint.name!r}; write MJCF instead")
        kind = "floating" if joint.kind == "free" else joint.kind
        kind = "continuous" if kind == "revolute" and joint.turning else kind
        above = int(model.parents[j])
        parent = f"{model.names[above]}_link" if above else "base"
        place = model.jointPlacements[j]
        lines += [
            f"  <joint name={quoteattr(joint.name)} type={quoteattr(kind)}>",
            f'    <origin xyz="{row_text(place.translation)}" '
            f'rpy="{row_text(pin.rpy.matrixToRpy(place.rotation))}"/>',
            f"    <parent link={quoteattr(parent)}/>",
            f"    <child link={quoteattr(joint.name + '_link')}/>",
        ]
        if joint.kind != "free":
            lines += [f'    <axis xyz="{row_text(joint.axis)}"/>', *_urdf_limit(model, j, joint)]
        lines += ["  </joint>", *urdf_link(f"{joint.name}_link", model.inertias[j])]
    return "\n".join([*lines, "</robot>", ""])


def described_joint(model: pin.Model, j: int) -> JointText:
    name, joint = str(model.names[j]), model.joints[j]
    kind = joint.shortname()
    if kind in ("JointModelFreeFlyer", "JointModelSpherical"):
        return JointText(name, "free" if "Free" in kind else "spherical", np.zeros(3), True)
    alone = pin.Model()
    alone.addJoint(0, joint, pin.SE3.Identity(), name)
    S = pin.computeJointJacobians(alone, alone.createData(), pin.neutral(alone))
    if model.nvs[j] == 1 and not (S[:3].any() and S[3:].any()):
        slides = bool(S[:3].any())
        i = int(model.idx_qs[j])
        low, high = float(model.lowerPositionLimit[i]), float(model.upperPositionLimit[i])
        free = model.nqs[j] == 2 or not (abs(low) < ANY_LIMIT and abs(high) < ANY_LIMIT)
        axis = np.asarray((S[:3] if slides else S[3:]).reshape(3))
        return JointText(name, "prismatic" if slides else "revolute", axis, bool(free))
    raise InputError(
        f"joint {name!r} is a {kind}, which cannot be written: joints of one coordinate, free and "
        "ball joints can"
    )


def urdf_link(name: str, inertia: pin.Inertia) -> Iterator[str]:
    if not inertia.mass and not inertia.inertia.any():
        yield f"  <link name={quoteattr(name)}/>"
        return
    yield f"  <link name={quoteattr(name)}>"
    yield f'    <inertial><origin xyz="{row_text(inertia.lever)}" rpy="0 0 0"/>'
    yield f'      <mass value="{inertia.mass:.17g}"/>'
    words = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), _six(inertia.inertia), strict=True)
    yield f"      <inertia {_attributes(words)}/></inertial>"
    yield "  </link>"


def _attributes(named: Iterable[tuple[str, float]]) -> str:
    return " ".join(f'{word}="{x:.17g}"' for word, x in named)


def _six(I: Array) -> list[float]:  # noqa: E741
    return [I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]]


def _urdf_limit(model: pin.Model, j: int, joint: JointText) -> Iterator[str]:
    iq, iv = int(model.idx_qs[j]), int(model.idx_vs[j])
    effort, velocity = float(model.upperEffortLimit[iv]), float(model.upperVelocityLimit[iv])
    given = [
        *(() if joint.turning else (("lower", float(model.lowerPositionLimit[iq])),
                                    ("upper", float(model.upperPositionLimit[iq])))),
        ("effort", effort if effort < ANY_LIMIT else 0.0),
        ("velocity", velocity if velocity < ANY_LIMIT else 0.0),
    ]  # fmt: skip
    yield f"    <limit {_attributes(given)}/>"
    if model.armature[iv]:
        yield f"    <!-- rotor inertia (armature): {model.armature[iv]:.12g} -->"


def link_names(model: pin.Model) -> list[str]:
    """Names of the bodies: that of the first link of a joint, else the joint's with ``_link``."""
    model = plain(model)
    links = [f"{name}_link" for name in model.names]
    for between in (True, False):  # links between joints in series only where there is no other
        for frame in reversed(model.frames):
            own = frame.type == pin.FrameType.BODY and frame.placement.isIdentity()
            if own and frame.name.endswith("].link") == between:
                links[int(frame.parentJoint)] = frame.name  # the first of each joint
    return links


def other_frames(model: pin.Model, links: list[str]) -> Iterator[tuple[str, pin.SE3, int]]:
    """All frames but those of joints and their first links; bodies before others of their name."""
    kinds = (pin.FrameType.BODY, pin.FrameType.FIXED_JOINT, pin.FrameType.OP_FRAME)
    for kind in kinds:
        for frame in model.frames[1:]:
            if frame.type == kind and frame.name not in links:
                yield frame.name, frame.placement, int(frame.parentJoint)


def row_text(x: Array) -> str:
    return " ".join(f"{float(a) + 0.0:.17g}" for a in x)
