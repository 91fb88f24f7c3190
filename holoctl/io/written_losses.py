"""Friction and springs of a mechanism as attributes of joints and as tendons of an MJCF.

    JointFriction    damping (viscous), frictionloss (Coulomb); no Stribeck friction
    JointSpring      stiffness, springref, damping
    Spring           a spatial tendon: stiffness, springlength, damping

MuJoCo holds a joint by dry friction where the smooth law here lets it creep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pinocchio as pin

from holoctl.forces.joint_friction import JointFriction
from holoctl.forces.joint_spring import JointSpring
from holoctl.forces.spring import Spring
from holoctl.io.written_tree import described_joint
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import Frame, resolve_frame
from holoctl.tree.frozen_model import has_joint, plain

__all__ = ["MjcfLosses", "losses_of"]


@dataclass
class MjcfLosses:
    """Forces as MJCF has them.

    Attributes
    ----------
    joints : dict of int to dict of str to float
        Attributes by the index of the joint.
    lines : list of (str, (Frame, Frame), str)
        Springs between points: name, ends, attributes.
    refused : list of str
        Forces without a counterpart, in words.
    """

    joints: dict[int, dict[str, float]] = field(default_factory=dict)
    lines: list[tuple[str, tuple[Frame, Frame], str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, joint: int, **more: float) -> None:
        of = self.joints.setdefault(joint, {})
        for word, x in more.items():
            if x:
                of[word] = of.get(word, 0.0) + x


def losses_of(mech: Mechanism) -> MjcfLosses:
    """The forces of a mechanism."""
    model, found = plain(mech.model), MjcfLosses()
    for force, name in zip(mech.forces, mech.force_names, strict=True):
        if isinstance(force, JointFriction):
            why = _friction(model, force, found)
        elif isinstance(force, JointSpring):
            why = _joint_spring(model, force, found)
        elif isinstance(force, Spring):
            why = _spring(mech, force, name, found)
        else:
            why = type(force).__name__
        if why:
            found.refused.append(f"force {name!r} ({why})")
    return found


def _friction(model: pin.Model, force: JointFriction, found: MjcfLosses) -> str:
    """Why a friction cannot be written; empty if it was."""
    if force.stribeck is not None:
        return "Stribeck friction"
    for word, given in (("damping", force.viscous), ("frictionloss", force.coulomb)):
        by_joint: Mapping[str, Any] = (
            given
            if isinstance(given, Mapping)
            else {
                str(model.names[j]): given
                for j in range(1, model.njoints)
                if model.joints[j].shortname() != "JointModelFreeFlyer"
            }
        )
        for name, x in by_joint.items():
            if not has_joint(model, name):
                return f"on {name!r}, which is not a joint of the tree"
            j = int(model.getJointId(name))
            if described_joint(model, j).kind == "free":
                return f"on the free joint {name!r}"
            found.add(j, **{word: float(x)})
    return ""


def _joint_spring(model: pin.Model, force: JointSpring, found: MjcfLosses) -> str:
    """Why a spring cannot be written; empty if it was."""
    if not has_joint(model, force.joint):
        return f"on {force.joint!r}, which is not a joint of the tree"
    j = int(model.getJointId(force.joint))
    ball = described_joint(model, j).kind == "spherical"
    if model.nqs[j] == 2:
        return "on a continuous joint, where it acts within half a turn"
    resting = not any(force.rest) if isinstance(force.rest, tuple) else not force.rest
    if ball and not resting:
        return "on a ball joint, at rest elsewhere than at zero"
    own = found.joints.get(j, {})
    before = own.get("stiffness", 0.0) * own.get("springref", 0.0)
    found.add(j, stiffness=force.stiffness, damping=force.damping)
    if not ball and force.stiffness:  # springs side by side are one
        own = found.joints[j]
        own["springref"] = (before + force.stiffness * float(force.rest)) / own["stiffness"]
    return ""


def _spring(mech: Mechanism, force: Spring, name: str, found: MjcfLosses) -> str:
    """Why a spring cannot be written; empty if it was."""
    if force.unilateral and force.damping:
        return "a rope with damping, which MuJoCo damps while it is slack"
    if force.unilateral and not force.length:
        return "a rope of length zero"
    a, b = (resolve_frame(mech.model, x, f"Spring {name!r}") for x in (force.a, force.b))
    length = f"0 {force.length:.17g}" if force.unilateral else f"{force.length:.17g}"
    damping = f' damping="{force.damping:.17g}"' if force.damping else ""
    attributes = f' stiffness="{force.stiffness:.17g}" springlength="{length}"{damping}'
    found.lines.append((name, (a, b), attributes))
    return ""
