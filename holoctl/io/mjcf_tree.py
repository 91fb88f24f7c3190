"""Bodies, joints and sites of a compiled MJCF as a `pin.Model`, in the order of MuJoCo's."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.io.mjcf_compiled import CompiledMjcf, MjcfObject
from holoctl.io.reader_limits import FREE
from holoctl.io.rotations import quaternion
from holoctl.tree.coordinates import coordinate_names
from holoctl.tree.inertia_checks import rigid_body

__all__ = ["SINGLE", "MjcfTree", "Placed", "range_of", "tree_of"]

_GROUND = "universe"  # Pinocchio's name for MuJoCo's world
_MOST = sys.float_info.max  # bound of an effort or velocity without limits, as of Pinocchio
_LEAST = 2e-15  # kg, kg m^2: MuJoCo's minimum for moving bodies, zero here
_KINDS = ("free", "ball", "slide", "hinge")
SINGLE = ("hinge", "slide")
"""Joints of one coordinate, whose position is a number."""

Placed = tuple[int, pin.SE3]
"""A joint of the model, and a placement in it."""


@dataclass
class MjcfTree:
    """The model, and the places of the parts of the file in it.

    Joints have their type and name by MuJoCo's index; index j is the joint j + 1 of the model.
    `home` is the initial configuration of the file.
    """

    model: pin.Model = field(default_factory=pin.Model)
    bodies: list[Placed] = field(default_factory=list)
    body_names: list[str] = field(default_factory=list)
    sites: list[Placed] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    drawn: list[Vector] = field(default_factory=list)
    home: Vector = field(default_factory=lambda: np.zeros(0))

    def joint(self, j: int) -> str:
        """The name of a joint by MuJoCo's index."""
        return str(self.model.names[int(j) + 1])

    def columns(self, j: int) -> slice:
        """The coordinates of velocity of a joint by MuJoCo's index."""
        first = int(self.model.idx_vs[int(j) + 1])
        return slice(first, first + int(self.model.nvs[int(j) + 1]))

    def from_qpos(self, qpos: Vector, qpos0: Vector) -> Vector:
        """A configuration from MuJoCo's qpos: quaternions reordered, and ref subtracted."""
        q = np.array(qpos, dtype=float)
        for j, kind in enumerate(self.kinds):
            first, n = self.model.idx_qs[j + 1], self.model.nqs[j + 1]
            if kind in SINGLE:
                q[first] -= qpos0[first]
            else:
                turn = q[first + n - 4 : first + n]
                turn[:] = np.roll(turn, -1) / np.linalg.norm(turn)
        return q

    def quaternions(self, qpos: Vector) -> list[Vector]:
        """The quaternions in MuJoCo's qpos."""
        ends = [self.model.idx_qs[j + 1] + self.model.nqs[j + 1] for j in range(len(self.kinds))]
        return [qpos[e - 4 : e] for e, k in zip(ends, self.kinds, strict=True) if k not in SINGLE]


def tree_of(found: CompiledMjcf) -> MjcfTree:
    """The tree of a compiled MJCF.

    Raises
    ------
    LoadError
        For reserved names, ranges with lower above upper, and an armature that is not that of a
        coordinate.
    """
    m, tree = found.model, MjcfTree()
    tree.model.name = found.text.root.attributes.get("model", "") or "mujoco"
    tree.model.gravity.linear = np.zeros(3) if found.off("GRAVITY") else np.array(m.opt.gravity)
    names = _Names(found)
    for i, body in enumerate(found.bodies):
        pose = pin.SE3(quaternion(*m.body_quat[i].tolist()), np.array(m.body_pos[i]))
        if i:
            name = names.of(body, f"body_{i}")
            above, at = tree.bodies[m.body_parentid[i]]
            joints = range(m.body_jntadr[i], m.body_jntadr[i] + m.body_jntnum[i])
            here = _joints(found, tree, joints, name, (above, at * pose), names)
            _frame(tree.model, name, here, pin.FrameType.BODY)
            _append_inertia(tree.model, m, i, here)
        else:
            name, here = "world", (0, pin.SE3.Identity())
        tree.bodies.append(here)
        tree.body_names.append(name)
        for k in np.flatnonzero(m.site_bodyid == i):
            pose = pin.SE3(quaternion(*m.site_quat[k].tolist()), np.array(m.site_pos[k]))
            tree.sites.append((here[0], here[1] * pose))
            if found.sites[k].name:
                names.check(found.sites[k])
                _frame(tree.model, found.sites[k].name, tree.sites[-1], pin.FrameType.OP_FRAME)
    tree.home = np.concatenate(tree.drawn) if tree.drawn else np.zeros(0)
    coordinates = coordinate_names(tree.model)
    twice = next((name for name in coordinates if coordinates.count(name) > 1), None)
    if twice is not None:
        place = next((p.place for p in found.joints if p.name == twice), found.text.root)
        raise place.error(
            f"the coordinate {twice!r} of a ball or free joint has this name; choose another"
        )
    return tree


class _Names:
    """Names of the file, and new ones for parts without a name."""

    def __init__(self, found: CompiledMjcf) -> None:
        self.given = {part.name for part in (*found.bodies, *found.joints)}
        self.given |= {e.attributes.get("name", "") for e in found.text.root.each()}

    def check(self, part: MjcfObject) -> None:
        if part.name == _GROUND:
            raise part.place.error(f"{part.place}: the name {part.name!r} is that of the world")
        if not part.name.isprintable():
            raise part.place.error(
                f"a name must have printable characters only; got {part.name[:60]!r}"
            )

    def of(self, part: MjcfObject, first: str) -> str:
        """The name of a part; without one `first`, with a number if that is taken."""
        self.check(part)
        label, i = part.name or first, 1
        while not part.name and label in self.given:
            i += 1
            label = f"{first}_{i}"
        self.given.add(label)
        return label


def _frame(model: pin.Model, name: str, place: Placed, kind: Any) -> None:
    joint = model.names[place[0]]
    above = model.getFrameId(joint, pin.FrameType.JOINT) if place[0] else 0
    model.addFrame(pin.Frame(name, place[0], above, place[1], kind), False)


def _joints(
    found: CompiledMjcf, tree: MjcfTree, joints: Sequence[int], body: str, at: Placed, names: _Names
) -> Placed:
    """Add the joints of a body in series; returns the last one, and the placement of the body in
    it."""
    above, here = at
    for j in joints:
        kind, part = _KINDS[found.model.jnt_type[j]], found.joints[j]
        label = names.of(part, f"{body}.{kind}")
        if kind == "free":  # its configuration is the pose of the body in the world
            tree.drawn.append(pin.SE3ToXYZQUAT(here))
            model, to_anchor, here = (
                pin.JointModelFreeFlyer(),
                pin.SE3.Identity(),
                pin.SE3.Identity(),
            )
        else:
            tree.drawn.append(np.array([0.0, 0.0, 0.0, 1.0]) if kind == "ball" else np.zeros(1))
            to_anchor = pin.SE3(np.eye(3), np.array(found.model.jnt_pos[j]))
            model = (
                pin.JointModelSpherical()
                if kind == "ball"
                else _along(kind, found.model.jnt_axis[j])
            )
        above = _add(found, tree, j, kind, label, above, model, here * to_anchor)
        here = to_anchor.inverse()
    return above, here


def _add(
    found: CompiledMjcf, tree: MjcfTree, j: int, kind: str, label: str, above: int,
    joint: pin.JointModel, placement: pin.SE3,
) -> int:  # fmt: skip
    """Add a joint with its limits, rotor inertia and losses to the model."""
    m, part, n = found.model, found.joints[j], joint.nv
    dof, ref = m.jnt_dofadr[j], m.qpos0[m.jnt_qposadr[j]]
    bounds = range_of(part, "range", "limited", m.jnt_limited[j], m.jnt_range[j])
    effort = range_of(
        part, "actuatorfrcrange", "actfrclimited", m.jnt_actfrclimited[j], m.jnt_actfrcrange[j]
    )
    if kind in SINGLE:
        lower, upper = (-FREE, FREE) if bounds is None else np.subtract(bounds, ref)
        widest = [np.array([x if np.isfinite(x) else np.sign(x) * FREE]) for x in (lower, upper)]
    else:
        size = np.array([FREE] * (joint.nq - 4) + [1.01] * 4)
        widest = [-size, size]
    rotor, friction = m.dof_armature[dof], m.dof_frictionloss[dof]
    if rotor and kind == "free":  # MuJoCo adds it in world axes: another equation of motion
        raise part.place.error("armature of a free joint is not read; MuJoCo advises <freejoint>")
    limits = [np.full(n, x) for x in (*(effort or (-_MOST, _MOST)), -_MOST, _MOST)]
    losses = [np.full(n, x) for x in (-friction, friction, max(m.dof_damping[dof], 0.0))]
    index = tree.model.addJoint(above, joint, placement, label, *limits, *widest, *losses)
    tree.model.addJointFrame(index)
    first = tree.model.idx_vs[index]
    tree.model.armature[first : first + n] = rotor
    tree.kinds.append(kind)
    return int(index)


def range_of(
    part: MjcfObject, name: str, switch: str, limited: bool, values: Sequence[float]
) -> tuple[float, float] | None:
    """A range that applies; None without one. A range with lower above upper is an error here:
    MuJoCo would ignore it."""
    lower, upper = (float(x) for x in values)
    if limited:
        return lower, upper
    if int(getattr(part.spec, switch)) == 2 and lower >= upper and (lower or upper):  # "auto"
        raise part.place.error(f"{part.place}: {name}: {lower} must be less than {upper}")
    return None


def _append_inertia(model: pin.Model, m: Any, i: int, here: Placed) -> None:
    """Add the inertia of a body, if it moves."""
    mass, *moments = (x if x > _LEAST else 0.0 for x in (m.body_mass[i], *m.body_inertia[i]))
    if here[0] and mass + sum(moments):
        R = quaternion(*m.body_iquat[i].tolist())
        inertia = rigid_body(mass, np.array(m.body_ipos[i]), R @ np.diag(moments) @ R.T)
        model.appendBodyToJoint(here[0], inertia, here[1])


def _along(kind: str, axis: Vector) -> pin.JointModel:
    """A rotation about, or a translation along, a unit vector."""
    letter, name = ("R", "Revolute") if kind == "hinge" else ("P", "Prismatic")
    for i, coordinate in enumerate("XYZ"):
        if axis[i] == 1.0:
            return getattr(pin, f"JointModel{letter}{coordinate}")()
    return getattr(pin, f"JointModel{name}Unaligned")(np.array(axis))
