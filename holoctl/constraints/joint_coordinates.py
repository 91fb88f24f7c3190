"""The coordinates of a joint, both of a joint in the tree and of a cut joint.

A joint of the tree has coordinates. A cut joint has none, but its angle or length follows from its
two frames A and B, and an effort on it acts through the Jacobian of its rate:

    X = A^-1 B                     frame b in frame a: the value is a function of X
    rate = w . (V_b - V_a)         w = (n, p x n) along an axis n through p, the origin of b,
                                   or (0, n) about it; V the motion of the bodies
    jacobian = w . (J_b - J_a)
    efforts = jacobian^T tau       of an effort tau on the joint: the same power

All spatial vectors in world axes about the world origin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, counted, known_name, read_only
from holoctl.base.errors import InputError
from holoctl.constraints.closure import Closure
from holoctl.constraints.wrench_rows import upright_quaternion
from holoctl.tree.coordinates import coordinate_names, joint_of_coordinate, support
from holoctl.tree.frames import Frame, resolve_frame
from holoctl.tree.frozen_model import has_joint, plain
from holoctl.tree.kinematics import Kinematics

__all__ = [
    "AXES_OF",
    "Axis",
    "Closures",
    "FramePair",
    "Joint",
    "JointMotion",
    "TreeJoint",
    "child_frame",
    "joint_called",
    "joints_of_tree",
    "part_names",
    "series",
]


Closures = Mapping[str, Closure | None]
"""The closures of a mechanism by name; None for one that is switched off."""


class Axis(NamedTuple):
    """One coordinate of a joint between frames a and b.

    Attributes
    ----------
    linear : bool
    of : str
        The frame of the axis: ``"a"`` or ``"b"``.
    axis : int
        0, 1, 2: x, y, z.
    """

    linear: bool
    of: str
    axis: int


_ALONG, _ABOUT = [
    {x: Axis(linear, x[0], "xyz".index(x[1])) for x in ("ax", "ay", "az", "bx", "by", "bz")}
    for linear in (True, False)
]

AXES_OF: dict[str, tuple[Axis, ...]] = {
    "revolute": (_ABOUT["az"],),
    "screw": (_ABOUT["az"],),
    "prismatic": (_ALONG["az"],),
    "cylindrical": (_ALONG["az"], _ABOUT["az"]),
    "planar": (_ALONG["ax"], _ALONG["ay"], _ABOUT["az"]),
    "universal": (_ABOUT["ax"], _ABOUT["by"]),
    "spherical": (_ABOUT["bx"], _ABOUT["by"], _ABOUT["bz"]),
    "free": tuple(kind[x] for kind in (_ALONG, _ABOUT) for x in ("bx", "by", "bz")),
    "weld": (),
}
"""The coordinates of each type of joint, of frame b relative to frame a."""


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Position, rate and Jacobian of a joint.

    Attributes
    ----------
    value : (p,) array
        Position of frame b relative to frame a, in the coordinates of the joint, rad and m: see
        `joint_motion`. p = n, except for the four numbers of a quaternion.
    rate : (n,) array
        ``jacobian @ v``, rad/s and m/s.
    jacobian : (n, nv) array
        Derivative of the rate by the velocity of the mechanism. A motor with efforts ``tau`` (n,)
        on the joint, N m or N, acts on the coordinates as ``jacobian.T @ tau``.

    See Also
    --------
    joint_motion : returns it.
    Closure : a joint that is cut.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech, v_guess=[1.0, 0.0, 0.0, 0.0])
    >>> hinge = hc.joint_motion(mech, "tip_hinge", q, v)
    >>> bool(abs(hinge.jacobian @ v - hinge.rate).max() < 1e-12)
    True
    """

    value: Vector
    rate: Vector
    jacobian: Array


@dataclass(frozen=True, eq=False)
class TreeJoint:
    """A joint whose coordinates are those of the mechanism, or one of them.

    Attributes
    ----------
    name : str
    columns : (n,) int array
        The indices of its coordinates in v.
    places : (p,) int array
        The indices of its numbers in q.
    turning : bool
        Whether it is a continuous joint, with two numbers in q and one coordinate.
    nv : int
        Coordinates of the tree.
    """

    name: str
    columns: NDArray[np.intp]
    places: NDArray[np.intp]
    turning: bool
    nv: int

    @property
    def count(self) -> int:
        """The number of coordinates."""
        return int(self.columns.size)

    def at(self, kin: Kinematics) -> JointMotion:
        """Its position, rate and Jacobian."""
        return JointMotion(self.value(kin), kin.v[self.columns], np.eye(self.nv)[self.columns])

    def value(self, kin: Kinematics) -> Vector:
        """Its numbers in q; the angle of a continuous joint."""
        x = kin.q[self.places]
        return np.arctan2(x[1:], x[:1]) if self.turning else x


@dataclass(frozen=True, eq=False)
class FramePair:
    """A joint given by two frames: one that was cut, or is reversed in the tree.

    Attributes
    ----------
    name : str
        That of the whole joint, even if `axes` has only some of its coordinates.
    a, b : Frame
    kind : str
        Of `AXES_OF`.
    axes : tuple of Axis
        All its coordinates, or some of them.
    moved : (nv,) array
        1 for coordinates that move b alone, -1 for those that move a alone.
    supports : (2, nv) array
        1 for coordinates that move a, and b.
    """

    name: str
    a: Frame
    b: Frame
    kind: str
    axes: tuple[Axis, ...]
    moved: Vector
    supports: Array

    @property
    def count(self) -> int:
        """The number of coordinates."""
        return len(self.axes)

    def at(self, kin: Kinematics) -> JointMotion:
        """Position, rate and Jacobian of frame b relative to frame a."""
        jacobian = self.jacobian(kin)
        return JointMotion(self.value(kin), jacobian @ kin.v, jacobian)

    def jacobian(self, kin: Kinematics) -> Array:
        """``w . (J_b - J_a)``, an axis a row."""
        A, B = (kin.placements[f.joint] * f.placement for f in (self.a, self.b))
        wrenches = np.zeros((len(self.axes), 6))
        for w, x in zip(wrenches, self.axes, strict=True):
            n = (A if x.of == "a" else B).rotation[:, x.axis]
            if x.linear:
                w[:3], w[3:] = n, np.cross(B.translation, n)
            else:
                w[3:] = n
        found: Array = wrenches @ (kin.J * self.moved)
        return found

    def bias(self, kin: Kinematics) -> Vector:
        """The derivative of the rate at zero acceleration of all coordinates:

        w . (A_b - A_a) + wdot . (V_b - V_a)        ndot = omega x n,  w of a length (n, p x n)
        """
        J_a, J_b = (kin.J * support for support in self.supports)
        V_a, V_b = J_a @ kin.v, J_b @ kin.v
        A, B = (kin.placements[f.joint] * f.placement for f in (self.a, self.b))
        A_a, A_b = kin.bias_accelerations([self.a, self.b])
        p = B.translation
        p_dot = V_b[:3] + np.cross(V_b[3:], p)
        found = []
        for x in self.axes:
            n = (A if x.of == "a" else B).rotation[:, x.axis]
            n_dot = np.cross((V_a if x.of == "a" else V_b)[3:], n)
            if x.linear:
                w = np.concatenate([n, np.cross(p, n)])
                w_dot = np.concatenate([n_dot, np.cross(p_dot, n) + np.cross(p, n_dot)])
            else:
                w, w_dot = np.concatenate([np.zeros(3), n]), np.concatenate([np.zeros(3), n_dot])
            found.append(w @ (A_b - A_a) + w_dot @ (V_b - V_a))
        return np.array(found)

    def value(self, kin: Kinematics) -> Vector:
        """The coordinates of the joint, those in `axes`; all of a rotation or free joint."""
        A, B = (kin.placements[f.joint] * f.placement for f in (self.a, self.b))
        X = A.actInv(B)
        R, p = X.rotation, X.translation
        if self.kind == "spherical" and len(self.axes) == 3:
            return upright_quaternion(R)
        if self.kind == "free":
            return np.concatenate([p, upright_quaternion(R)])
        found = [p[x.axis] if x.linear else np.arctan2(*self.sine_cosine(x, R)) for x in self.axes]
        return np.array(found, dtype=float)

    def sine_cosine(self, x: Axis, R: Any) -> tuple[Any, Any]:
        """Sine and cosine of the angle about an axis, as numbers or expressions; R (3, 3) are the
        axes of b in those of a."""
        if self.kind != "universal":  # the only angle: about z of a
            return R[1, 0], R[0, 0]
        # R = Rx(first) Ry(second): x of a, y of b at right angles
        return (R[2, 1], R[1, 1]) if x.of == "a" else (R[0, 2], R[0, 0])


Joint = TreeJoint | FramePair


def joint_called(model: pin.Model, name: Any, closures: Closures, owner: str) -> Joint | None:
    """A joint of the tree, one of its coordinates, or a closure that is a joint.

    A joint of the tree is looked up first (of several joints ``name[0]``, ``name[1]`` in series:
    ``name``), then coordinates, then closures and ``closure[i]``, one coordinate of such.

    Returns
    -------
    Joint or None
        None for a closure that is switched off.

    Raises
    ------
    InputError
        For a name that is not a joint.
    """
    model = plain(model)
    if parts := part_names(model, name):
        return _reversed(model, name, parts) or _of_tree(model, name, parts)
    names = coordinate_names(model)
    if isinstance(name, str) and name in names:
        return _coordinate(model, name, names.index(name))
    cut = {n: c for n, c in closures.items() if c is None or c.joint is not None}
    whole, place = _indexed(name, cut)
    if whole is None:
        valid = sorted({*model.names[1:], *series(model), *names, *cut})
        axes = isinstance(name, str) and name in closures
        hint = f" ({name!r} is a closure by axes, which is not a joint)" if axes else ""
        known_name(name, valid, "joint", owner + hint)
        raise InputError(f"{owner}: there is no joint called {name!r}")
    closure = cut[whole]
    if closure is None:
        return None
    kind = str(closure.joint)
    if place is not None and not place < len(AXES_OF[kind]):
        raise InputError(
            f"{owner}: {name!r}: a {kind} joint has {counted(len(AXES_OF[kind]), 'coordinate')}, "
            "numbered from 0"
        )
    a, b = (resolve_frame(model, f, owner) for f in (closure.a, closure.b))
    return frame_pair(model, whole, a, b, kind, place)


def joints_of_tree(model: pin.Model) -> list[Joint]:
    """Every joint of the tree, one by one."""
    model = plain(model)
    return [
        _reversed(model, name, (name,)) or _of_tree(model, name, (name,))
        for name in model.names[1:]
    ]


def frame_pair(
    model: pin.Model, name: str, a: Frame, b: Frame, kind: str, place: int | None = None
) -> FramePair:
    """A joint between two frames, or one of its coordinates."""
    supports = np.array([support(model, f.joint) for f in (a, b)], dtype=float)
    axes = AXES_OF[kind]
    axes = axes if place is None else axes[place : place + 1]
    moved = supports[1] - supports[0]
    return FramePair(name, a, b, kind, axes, read_only(moved), read_only(supports))


def _indexed(name: Any, cut: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The closure that ``name`` or ``name[i]`` refers to, and the index of the coordinate."""
    if not isinstance(name, str):
        return None, None
    if name in cut:
        return name, None
    whole, _, place = name.removesuffix("]").rpartition("[")
    if name.endswith("]") and whole in cut and place.isdecimal():
        return whole, int(place)
    return None, None


def part_names(model: pin.Model, name: Any) -> tuple[str, ...]:
    """The joints of the model that make up a joint: itself, or ``name[0], name[1], ...``."""
    model = plain(model)
    if not isinstance(name, str):
        return ()
    if name != "universe" and has_joint(model, name):
        return (name,)
    found: list[str] = []
    while has_joint(model, f"{name}[{len(found)}]"):
        found.append(f"{name}[{len(found)}]")
    return tuple(found)


def child_frame(name: str) -> str:
    """The name of the frame in the child body of a joint that is reversed in the tree.

    In a reversed joint the parent body is carried by the child body, so a spherical or free joint
    has other coordinates than described; this frame marks such a joint and its placement.
    """
    return f"{name}.child"


def _reversed(
    model: pin.Model, name: str, parts: Sequence[str], place: int | None = None
) -> FramePair | None:
    """A reversed spherical or free joint, between the frames of its bodies, or one of its
    coordinates; None for any other joint."""
    j = model.getJointId(parts[0])
    if model.joints[j].shortname() not in ("JointModelSpherical", "JointModelFreeFlyer"):
        return None
    named = [f for f in model.frames if f.name == child_frame(parts[0])]
    for f in named:  # a frame that only happens to have this name is somewhere else
        there = f.parentJoint == model.parents[j] and f.placement == model.jointPlacements[j]
        if there and f.type == pin.FrameType.OP_FRAME:
            upper = Frame(f.parentJoint, f.placement.copy(), f.name)
            lower = resolve_frame(model, name, "joint")
            kind = "free" if model.nvs[j] == 6 else "spherical"
            return frame_pair(model, name, lower, upper, kind, place)
    return None


def series(model: pin.Model) -> list[str]:
    """Names of joints that consist of several in series, ``name[0]``, ``name[1]``, ..."""
    return [name[:-3] for name in model.names if name.endswith("[0]")]


def _of_tree(model: pin.Model, name: str, parts: Sequence[str]) -> TreeJoint:
    """A joint whose coordinates are those of the mechanism."""
    columns, places, turning = list[int](), list[int](), False
    for j in map(model.getJointId, parts):
        columns += range(model.idx_vs[j], model.idx_vs[j] + model.nvs[j])
        places += range(model.idx_qs[j], model.idx_qs[j] + model.nqs[j])
        turning |= (model.nqs[j], model.nvs[j]) == (2, 1)
    return TreeJoint(name, _fixed(columns), _fixed(places), turning, model.nv)


def _coordinate(model: pin.Model, name: str, column: int) -> Joint:
    """One coordinate of a joint with several; with its index in q only if its position is a
    number."""
    j = int(joint_of_coordinate(model)[column])
    whole, place = model.names[j], column - int(model.idx_vs[j])
    if reversed_joint := _reversed(model, whole, (whole,), place):
        return reversed_joint
    flat = model.nqs[j] == model.nvs[j]
    places = [model.idx_qs[j] + column - model.idx_vs[j]] if flat else []
    return TreeJoint(name, _fixed([column]), _fixed(places), False, model.nv)


def _fixed(places: Sequence[int]) -> NDArray[np.intp]:
    return read_only(np.array(places, dtype=np.intp))
