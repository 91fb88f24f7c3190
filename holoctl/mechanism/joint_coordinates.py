"""Position and rate of any joint in its own coordinates, also where it closes a loop.

A joint of the tree has coordinates; a joint that was cut has none, but its angle or length can
still be read off its two frames A and B, and a motor on it acts through the Jacobian of its rate:

    X = A^-1 B                        frame b seen from frame a: the value is read off X
    T = Ad(B)^-1 (J_b - J_a)          twist of b against a by v; axes and origin of b
    jacobian = S^T T                  its parts along the axes of the joint, S
    rate = jacobian v
    efforts = jacobian^T tau          of a motor tau on the joint: the same power
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, known_name, quiet
from holoctl.constraints.closure import Closure
from holoctl.mechanism.checks import check_mechanism, check_state
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.coordinates import support
from holoctl.tree.frames import Frame, resolve_frame
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = ["JointMotion", "child_frame", "joint_motion", "part_names"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Where a joint is, how fast it moves, and how the coordinates move it.

    Attributes
    ----------
    value : (p,) array
        Position of frame b against frame a, in the coordinates of the joint, rad and m: see
        `joint_motion`. p = n, but for the four numbers of a quaternion.
    rate : (n,) array
        ``jacobian @ v``, rad/s and m/s.
    jacobian : (n, nv) array
        The rate by the velocity of the mechanism. A motor of efforts ``tau`` (n,) on the joint,
        N m or N, acts on the coordinates as ``jacobian.T @ tau``.
    """

    value: Vector
    rate: Vector
    jacobian: Array


@quiet
def joint_motion(mech: Mechanism, name: str, q: Any, v: Any = None, t: float = 0.0) -> JointMotion:
    """Position and rate of a joint: one of the tree, or a `Closure` that is a joint.

    A cut joint has the numbers that its own coordinates have where another joint is cut: those
    of frame b against frame a.

    ===========  ======================================================================
    type         value and rate
    ===========  ======================================================================
    revolute     angle about z of a; of a cut joint in (-pi, pi]
    prismatic    length along z of a
    cylindrical  length along z, angle about z
    universal    angle about x of a, then about y of b
    planar       x and y in axes of a, angle about z
    spherical    quaternion x y z w (of a cut joint: w >= 0); angular velocity in axes of b
    free         position in axes of a, quaternion; velocity, angular velocity in axes of b
    screw        angle about z of a; of a cut joint in (-pi, pi]
    weld         nothing: arrays of size zero
    ===========  ======================================================================

    Parameters
    ----------
    mech : Mechanism
    name : str
        A joint of the tree (of several joints ``name[0]``, ``name[1]`` in series: ``name``), or
        a `Closure` with ``joint=``. A joint of the tree is looked up first.
    q : (nq,) array_like
        Configuration. The numbers of a cut joint mean something where it is closed.
    v : (nv,) array_like, optional
        Velocity. Default: zero.
    t : float, optional
        Time, s. No joint depends on it.

    Returns
    -------
    JointMotion
        The rate of a cut joint is the exact derivative of its value where the mechanism is
        closed and moves along its constraints.

    Raises
    ------
    InputError
        For a name that is no joint, wrong shapes, numbers that are not finite.

    Notes
    -----
    A tree joint of a model that was not made by `Linkage` keeps Pinocchio's own numbers, except
    that a continuous joint gives its angle in place of cosine and sine.
    """
    check_mechanism(mech)
    q, v, t = check_state(mech, q, np.zeros(mech.nv) if v is None else v, t)
    closures = {
        label: c
        for c, label in zip(mech.constraints, mech.constraint_names, strict=True)
        if isinstance(c, Closure) and c.joint is not None
    }
    parts = part_names(mech.model, name)
    if parts:
        upper = _upside_down(mech.model, parts)
        if upper is not None:
            lower = resolve_frame(mech.model, name, "joint_motion")
            kin = kinematics(mech.model, workspace(mech), q, v, t)
            kind = "free" if plain(mech.model).nvs[lower.joint] == 6 else "spherical"
            return _between(mech, kin, lower, upper, kind)
        return _of_tree(mech, parts, q, v)
    welds = {f.name for f in plain(mech.model).frames[1:] if f.type == pin.FrameType.FIXED_JOINT}
    if isinstance(name, str) and name in welds:
        return JointMotion(np.zeros(0), np.zeros(0), np.zeros((0, mech.nv)))
    valid = sorted({*plain(mech.model).names[1:], *_series(mech.model), *closures})
    known_name(name, valid, "joint", f"{mech.name}: joint_motion")
    closure = closures[name]
    a, b = (resolve_frame(mech.model, f, name) for f in (closure.a, closure.b))
    kin = kinematics(mech.model, workspace(mech), q, v, t)
    return _between(mech, kin, a, b, str(closure.joint))


def part_names(model: pin.Model, name: Any) -> tuple[str, ...]:
    """The joints of the model that make up a joint: itself, or ``name[0], name[1], ...``."""
    model = plain(model)
    if not isinstance(name, str):
        return ()
    if name != "universe" and model.existJointName(name):
        return (name,)
    found: list[str] = []
    while model.existJointName(f"{name}[{len(found)}]"):
        found.append(f"{name}[{len(found)}]")
    return tuple(found)


def child_frame(name: str) -> str:
    """The frame in the child body of a joint that hangs upside down in the tree.

    A spherical or free joint whose parent body hangs from the child body has other coordinates
    than the joint as it was described; this frame says that it is so, and where.
    """
    return f"{name}.child"


def _upside_down(model: pin.Model, parts: tuple[str, ...]) -> Frame | None:
    """The frame in the child body, where a spherical or free joint hangs upside down."""
    model = plain(model)
    j = model.getJointId(parts[0])
    if model.joints[j].shortname() not in ("JointModelSpherical", "JointModelFreeFlyer"):
        return None
    named = [f for f in model.frames if f.name == child_frame(parts[0])]
    for f in named:  # a frame that only happens to have this name is somewhere else
        there = f.parentJoint == model.parents[j] and f.placement == model.jointPlacements[j]
        if there and f.type == pin.FrameType.OP_FRAME:
            return Frame(f.parentJoint, f.placement.copy(), f.name)
    return None


def _series(model: pin.Model) -> list[str]:
    model = plain(model)
    return [name[:-3] for name in model.names if name.endswith("[0]")]


def _of_tree(mech: Mechanism, parts: tuple[str, ...], q: Vector, v: Vector) -> JointMotion:
    """A joint whose coordinates are those of the mechanism."""
    model = plain(mech.model)
    values: list[Vector] = []
    columns: list[int] = []
    for part in parts:
        j = model.getJointId(part)
        x = q[model.idx_qs[j] : model.idx_qs[j] + model.nqs[j]]
        if (model.nqs[j], model.nvs[j]) == (2, 1):
            x = np.arctan2(x[1:], x[:1])
        values.append(x)
        columns += range(model.idx_vs[j], model.idx_vs[j] + model.nvs[j])
    return JointMotion(np.concatenate(values), v[columns], np.eye(mech.nv)[columns])


def _quaternion(R: Array) -> Vector:
    """x y z w of a rotation; of the two that mean it, the one with w >= 0."""
    xyzw: Vector = pin.Quaternion(R).coeffs()
    return xyzw if xyzw[3] >= 0.0 else -xyzw


def _between(mech: Mechanism, kin: Kinematics, a: Frame, b: Frame, kind: str) -> JointMotion:
    """Frame b against frame a, in the coordinates of a joint of this kind."""
    A, B = (kin.placements[f.joint] * f.placement for f in (a, b))
    X = A.actInv(B)
    R, p = X.rotation, X.translation
    moved = support(mech.model, b.joint).astype(float) - support(mech.model, a.joint)
    T = B.toActionMatrixInverse() @ (kin.J * moved)  # twist of b against a; axes, origin of b
    linear, angular = R @ T[:3], R @ T[3:]  # the same in axes of a
    angle = np.arctan2(R[1, 0], R[0, 0])
    value: Any
    if kind in ("revolute", "screw"):
        value, rows = [angle], angular[2:]
    elif kind == "prismatic":
        value, rows = p[2:], linear[2:]
    elif kind == "cylindrical":
        value, rows = [p[2], angle], np.vstack([linear[2], angular[2]])
    elif kind == "planar":
        value, rows = [p[0], p[1], angle], np.vstack([linear[:2], angular[2]])
    elif kind == "universal":  # R = Rx(first) Ry(second); x of a and y of b stay at right angles
        value = [np.arctan2(R[2, 1], R[1, 1]), np.arctan2(R[0, 2], R[0, 0])]
        rows = np.vstack([angular[0], T[4]])
    elif kind == "spherical":
        value, rows = _quaternion(R), T[3:]
    elif kind == "free":
        value, rows = np.concatenate([p, _quaternion(R)]), T
    else:
        value, rows = [], T[:0]
    jacobian = np.array(rows)
    return JointMotion(np.array(value, dtype=float), jacobian @ kin.v, jacobian)
