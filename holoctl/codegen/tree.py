"""The kinematic tree as expressions: steps from body to body.

Every joint becomes one or more *steps*. A step carries its own axes from a parent step,

    pose in the parent   R(q), p(q)
    relative motion      omega = S_w v, velocity of the origin = S_v v, in its own axes

with constant S_w and S_v; a joint whose subspace moves (universal, spherical ZYX, composite) is
several steps, of which the last carries the body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array
from holoctl.base.errors import InputError
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.tree.frozen_model import plain
from holoctl.tree.position_rates import of_quaternion

__all__ = [
    "Column",
    "Step",
    "TreeSteps",
    "constant",
    "moments",
    "symbolic_tree",
]


@dataclass(frozen=True, eq=False)
class Column:
    """What one coordinate moves at unit rate: constant, in the axes of the step, at its origin."""

    coordinate: int
    angular: Array
    linear: Array


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the tree.

    Attributes
    ----------
    parent : int
        Index of the parent step; step 0 is the world.
    R, p : (3, 3), (3,) expressions
        Its axes and its origin in those of the parent.
    columns : tuple of Column
        One for each of its coordinates.
    mass, first, second : float, (3,) array, (3, 3) array
        Mass of the body, kg, and the integrals of r and of ``r r^T`` over it, about the origin;
        expressions with a payload.
    """

    parent: int
    R: SX
    p: SX
    columns: tuple[Column, ...]
    mass: float | SX
    first: Array | SX
    second: Array | SX


@dataclass(frozen=True, eq=False)
class TreeSteps:
    """The steps of a model, parents before children.

    Attributes
    ----------
    steps : tuple of Step
        The first is the world.
    of_joint : tuple of int
        The step that carries the body of each joint.
    q : (nq, 1) symbols
    gravity : (3,) array or expressions
        m/s^2, world axes.
    armature : (nv,) array
        Rotor inertia of each coordinate.
    unit_parts : tuple of tuple of int
        The entries of q that together have norm one: quaternions, cosine-sine pairs.
    """

    steps: tuple[Step, ...]
    of_joint: tuple[int, ...]
    q: SX
    gravity: Array | SX
    armature: Array
    unit_parts: tuple[tuple[int, ...], ...]

    @property
    def nv(self) -> int:
        """How many coordinates there are."""
        return int(self.armature.size)


# ---------------------------------------------------------------------------------- joints

_NO_BODY = (0.0, np.zeros(3), np.zeros((3, 3)))


def symbolic_tree(model: pin.Model, q: SX) -> TreeSteps:
    """The steps of `model` at the symbols `q`.

    Raises
    ------
    InputError
        For a kind of joint that has no expression here, by name.
    """
    model = plain(model)
    ca = casadi_module()
    steps = [Step(0, ca.SX.eye(3), ca.SX.zeros(3), (), *_NO_BODY)]
    of_joint, unit_parts = [0], []
    placements, inertias = model.jointPlacements, model.inertias
    for j in range(1, model.njoints):
        at = of_joint[model.parents[j]]
        pieces = _pieces(model.joints[j], model.names[j], placements[j])
        for i, piece in enumerate(pieces):
            body = moments(inertias[j]) if i == len(pieces) - 1 else _NO_BODY
            here = q[list(piece.entries)]
            R, p = piece.motion(here)
            R0, p0 = constant(piece.placement.rotation), constant(piece.placement.translation)
            steps.append(Step(at, R0 @ R, p0 + R0 @ p, piece.columns, *body))
            at = len(steps) - 1
            if piece.unit:
                unit_parts.append(tuple(piece.entries[piece.unit]))
        of_joint.append(at)
    return TreeSteps(
        tuple(steps), tuple(of_joint), q, np.array(model.gravity.linear, dtype=float),
        np.array(model.armature, dtype=float), tuple(unit_parts),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _JointPart:
    """A joint, or a part of one: entries of q, constant columns, ``motion(q) -> R, p``."""

    placement: pin.SE3
    entries: tuple[int, ...]
    columns: tuple[Column, ...]
    motion: Callable[[SX], tuple[SX, SX]]
    unit: slice | None = None


def _pieces(joint: Any, name: str, placement: pin.SE3) -> list[_JointPart]:
    """The steps of one joint; `joint` knows where its entries of q and v are."""
    kind = joint.shortname().removeprefix("JointModel")
    iq, iv, zero = joint.idx_q, joint.idx_v, np.zeros(3)
    if kind == "Composite":
        found: list[_JointPart] = []
        joint = joint.extract() if hasattr(joint, "extract") else joint
        for part, at in zip(joint.joints, joint.jointPlacements, strict=True):
            found += _pieces(part, name, placement * at)
            placement = pin.SE3.Identity()
        return found
    if joint.nv == 1 and kind in _ONE_DOF:
        S = _subspace(joint)
        column = (Column(iv, S[3:], S[:3]),)
        if kind.startswith("RevoluteUnbounded") or kind.startswith("RUB"):
            turn = _turn_by_pair(S[3:])
            return [_JointPart(placement, (iq, iq + 1), column, turn, slice(0, 2))]
        return [_JointPart(placement, (iq,), column, _screw(S[3:], S[:3]))]
    if kind in ("Universal", "SphericalZYX"):
        axes = np.eye(3)[::-1]
        if kind == "Universal":
            bare = joint.extract() if hasattr(joint, "extract") else joint
            axes = np.array([bare.axis1, bare.axis2])
        places = [placement] + [pin.SE3.Identity()] * (len(axes) - 1)
        return [
            _JointPart(at, (iq + i,), (Column(iv + i, axis, zero),), _screw(axis, zero))
            for i, (axis, at) in enumerate(zip(axes, places, strict=True))
        ]
    e = np.eye(3)
    if kind == "Translation":
        slides = tuple(Column(iv + i, zero, e[i]) for i in range(3))
        return [_JointPart(placement, (iq, iq + 1, iq + 2), slides, _shift)]
    if kind == "Spherical":
        turns = tuple(Column(iv + i, e[i], zero) for i in range(3))
        entries = tuple(range(iq, iq + 4))
        return [_JointPart(placement, entries, turns, _ball, slice(0, 4))]
    if kind == "FreeFlyer":
        free = tuple(Column(iv + i, zero, e[i]) for i in range(3))
        free += tuple(Column(iv + 3 + i, e[i], zero) for i in range(3))
        return [_JointPart(placement, tuple(range(iq, iq + 7)), free, _free, slice(3, 7))]
    if kind == "Planar":
        slide = tuple(Column(iv + i, zero, e[i]) for i in range(2))
        plane = (*slide, Column(iv + 2, e[2], zero))
        return [_JointPart(placement, tuple(range(iq, iq + 4)), plane, _plane, slice(2, 4))]
    raise InputError(
        f"no expressions for joint {name!r}: a {joint.shortname()} cannot be compiled; emulate it "
        "by simpler joints"
    )


_ONE_DOF = (
    "RX", "RY", "RZ", "RUBX", "RUBY", "RUBZ", "PX", "PY", "PZ", "HX", "HY", "HZ",
    "RevoluteUnaligned", "RevoluteUnboundedUnaligned", "PrismaticUnaligned", "HelicalUnaligned",
)  # fmt: skip


def _subspace(joint: Any) -> Array:
    """(6,) S of a joint of one coordinate, linear part first; it does not depend on q."""
    model = pin.Model()
    model.addJoint(0, joint, pin.SE3.Identity(), "joint")
    data = model.createData()
    S: Array = pin.computeJointJacobians(model, data, pin.neutral(model)).reshape(6)
    return np.where(np.abs(S) < 1e-15, 0.0, S)


def _screw(axis: Array, along: Array) -> Callable[[SX], tuple[SX, SX]]:
    """A turn by q about `axis`, and a shift by q along `along`; either may be zero."""

    def motion(q: SX) -> tuple[SX, SX]:
        ca = casadi_module()
        shift = constant(along) * q
        if not axis.any():
            return ca.SX.eye(3), shift
        return _rotation(axis, ca.cos(q), ca.sin(q)), shift

    return motion


def _turn_by_pair(axis: Array) -> Callable[[SX], tuple[SX, SX]]:
    return lambda q: (_rotation(axis, q[0], q[1]), casadi_module().SX.zeros(3))


def _rotation(axis: Array, c: SX, s: SX) -> SX:
    """``c I + s skew(n) + (1 - c) n n^T``; along an axis of coordinates without the last term."""
    ca = casadi_module()
    n = axis / np.linalg.norm(axis)
    if np.count_nonzero(n) == 1:
        along = np.diag(np.abs(n))
        return constant(along) + c * constant(np.eye(3) - along) + s * constant(pin.skew(n))
    return c * ca.SX.eye(3) + s * constant(pin.skew(n)) + (1.0 - c) * constant(np.outer(n, n))


def _shift(q: SX) -> tuple[SX, SX]:
    return casadi_module().SX.eye(3), q


def _ball(q: SX) -> tuple[SX, SX]:
    return of_quaternion(q), casadi_module().SX.zeros(3)


def _free(q: SX) -> tuple[SX, SX]:
    return of_quaternion(q[3:]), q[:3]


def _plane(q: SX) -> tuple[SX, SX]:
    ca = casadi_module()
    return _rotation(np.array([0.0, 0.0, 1.0]), q[2], q[3]), ca.vertcat(q[0], q[1], 0.0)


def moments(inertia: pin.Inertia) -> tuple[float, Array, Array]:
    """Mass, and the integrals of r and ``r r^T``: ``J = tr(I) / 2 - I`` about the origin."""
    c = np.array(inertia.lever)
    about_origin = inertia.inertia + inertia.mass * ((c @ c) * np.eye(3) - np.outer(c, c))
    second = 0.5 * np.trace(about_origin) * np.eye(3) - about_origin
    size = np.abs(second).max()
    return inertia.mass, inertia.mass * c, np.where(np.abs(second) < 1e-16 * size, 0.0, second)


def constant(x: Array | SX) -> SX:
    """Expressions of constants; what is zero or one to rounding is so exactly, and folds.
    Expressions stay as they are."""
    ca = casadi_module()
    if isinstance(x, ca.SX):
        return x
    x = np.array(x, dtype=float)
    near = np.round(x)
    return ca.SX(ca.DM(np.where(np.abs(x - near) < 1e-15, near, x)))
