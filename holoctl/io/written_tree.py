"""A tree as text: URDF and MJCF of a `pin.Model` without loops.

Joints of one coordinate, free and (MJCF only) spherical ones; what URDF has no word for, such as
rotor inertias, is written as a comment. Limits that are infinite are left out.
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

__all__ = ["described_joint", "row_text", "urdf_link", "written_mjcf", "written_urdf"]

ANY_LIMIT = 1e6
"""A limit at least as large is none."""


class _JointText(NamedTuple):
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


def written_mjcf(model: pin.Model, name: str) -> str:
    """An MJCF of a model, with rotor inertias and a motor for each joint that has an effort limit.

    Raises
    ------
    InputError
        For joints that are not of one coordinate, free or spherical, by name.
    """
    model = plain(model)
    lines = [
        f"<mujoco model={quoteattr(name)}>",
        '  <compiler angle="radian" autolimits="true"/>',
        f'  <option gravity="{row_text(model.gravity.linear)}"/>',
        "  <worldbody>",
        *_mjcf_bodies(model, 0, "    "),
        "  </worldbody>",
    ]
    motors = []
    for j in range(1, model.njoints):
        joint, i = described_joint(model, j), int(model.idx_vs[j])
        low, high = float(model.lowerEffortLimit[i]), float(model.upperEffortLimit[i])
        if joint.kind in ("revolute", "prismatic") and 0.0 < high < ANY_LIMIT:
            motors.append(
                f"    <motor name={quoteattr(joint.name)} joint={quoteattr(joint.name)} "
                f'ctrlrange="{low if low < 0.0 else -high:.12g} {high:.12g}"/>'
            )
    if motors:
        lines += ["  <actuator>", *motors, "  </actuator>"]
    return "\n".join([*lines, "</mujoco>", ""])


def described_joint(model: pin.Model, j: int) -> _JointText:
    name, joint = str(model.names[j]), model.joints[j]
    kind = joint.shortname()
    if kind in ("JointModelFreeFlyer", "JointModelSpherical"):
        return _JointText(name, "free" if "Free" in kind else "spherical", np.zeros(3), True)
    alone = pin.Model()
    alone.addJoint(0, joint, pin.SE3.Identity(), name)
    S = pin.computeJointJacobians(alone, alone.createData(), pin.neutral(alone))
    if model.nvs[j] == 1 and not (S[:3].any() and S[3:].any()):
        slides = bool(S[:3].any())
        i = int(model.idx_qs[j])
        low, high = float(model.lowerPositionLimit[i]), float(model.upperPositionLimit[i])
        free = model.nqs[j] == 2 or not (abs(low) < ANY_LIMIT and abs(high) < ANY_LIMIT)
        axis = np.asarray((S[:3] if slides else S[3:]).reshape(3))
        return _JointText(name, "prismatic" if slides else "revolute", axis, bool(free))
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


def _urdf_limit(model: pin.Model, j: int, joint: _JointText) -> Iterator[str]:
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


def _mjcf_bodies(model: pin.Model, parent: int, indent: str) -> Iterator[str]:
    for j in range(1, model.njoints):
        if model.parents[j] != parent:
            continue
        joint, place, iv = described_joint(model, j), model.jointPlacements[j], int(model.idx_vs[j])
        x, y, z, w = pin.Quaternion(place.rotation).coeffs()
        yield (
            f"{indent}<body name={quoteattr(joint.name + '_link')} "
            f'pos="{row_text(place.translation)}" quat="{row_text(np.array([w, x, y, z]))}">'
        )
        rotor = f' armature="{model.armature[iv]:.17g}"' if model.armature[iv] else ""
        if joint.kind == "free":
            yield f"{indent}  <freejoint name={quoteattr(joint.name)}/>"
        elif joint.kind == "spherical":
            yield f'{indent}  <joint name={quoteattr(joint.name)} type="ball"{rotor}/>'
        else:
            iq = int(model.idx_qs[j])
            bounds = model.lowerPositionLimit[iq], model.upperPositionLimit[iq]
            limit = "" if joint.turning else f' range="{row_text(np.array(bounds))}"'
            kind = "slide" if joint.kind == "prismatic" else "hinge"
            yield (
                f'{indent}  <joint name={quoteattr(joint.name)} type="{kind}" '
                f'axis="{row_text(joint.axis)}"{limit}{rotor}/>'
            )
        if model.inertias[j].mass:
            own = model.inertias[j]
            order = [own.inertia[i, k] for i, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
            yield (
                f'{indent}  <inertial pos="{row_text(own.lever)}" mass="{own.mass:.17g}" '
                f'fullinertia="{row_text(np.array(order))}"/>'
            )
        yield from _mjcf_bodies(model, j, indent + "  ")
        yield f"{indent}</body>"


def row_text(x: Array) -> str:
    return " ".join(f"{float(a) + 0.0:.17g}" for a in x)
