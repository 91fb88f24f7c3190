"""What holoctl asks of the kinematic tree: names, frames, supports, motion at (q, v).

Everything spatial is in world axes at the world origin, linear part first, as Pinocchio has
it: a motion is ``(velocity of the body point at the origin, angular velocity)``, a wrench is
``(force, moment about the origin)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pinocchio as pin
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing, suggestion
from holoctl.base.errors import InputError
from holoctl.tree.frozen_model import plain

__all__ = [
    "Frame",
    "FrameLike",
    "Kinematics",
    "LiveMotion",
    "check_joint",
    "check_placement",
    "coordinate_names",
    "default_pair_name",
    "joint_of_coordinate",
    "kinematics",
    "live_motion",
    "own_frame",
    "place",
    "renumbered",
    "resolve_frame",
    "support",
    "translational",
]

Array = NDArray[np.float64]
FrameLike = str | tuple[str, pin.SE3]
"""The name of a joint, body or frame, or (such a name or "universe", placement in it)."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame fixed to a body: the joint that moves it, and its placement in that joint."""

    joint: int
    placement: pin.SE3
    name: str


@dataclass(frozen=True, eq=False)
class Kinematics:
    """The motion of the tree at (q, v, t), computed once and shared by all constraints.

    Attributes
    ----------
    q, v, t : (nq,) array, (nv,) array, float
        Configuration, velocity, time in s.
    placements : sequence of pin.SE3
        World placement of every joint frame, index 0 the world ("universe").
    accelerations : sequence of pin.Motion
        Spatial acceleration of each joint frame at zero acceleration of the coordinates, in
        the joint's own axes.
    J : (6, nv) array
        World Jacobian: column i is the motion of what coordinate i moves at unit rate.
    """

    q: Vector
    v: Vector
    t: float
    placements: tuple[pin.SE3, ...]
    accelerations: tuple[pin.Motion, ...]
    J: Array

    def point(self, frame: Frame) -> Vector:
        """World position of the origin of a frame, m."""
        p: Vector = self.placements[frame.joint].act(frame.placement.translation)
        return p

    def bias_accelerations(self, frames: Sequence[Frame]) -> Array:
        """(n, 6): ``Jdot v`` of the bodies that carry the frames, spatial, world axes and origin.

        Not from Pinocchio's dJ, which leaves out that the axes of composite and universal
        joints move within the joint.
        """
        return np.array(
            [self.placements[f.joint].act(self.accelerations[f.joint]).vector for f in frames]
        )


def kinematics(model: pin.Model, data: pin.Data, q: Vector, v: Vector, t: float) -> Kinematics:
    """The kinematics of `model` at (q, v); `data` is a workspace and may be used again."""
    # Everything in data is a live view; tolist(True) copies in one call.
    if v.any():
        at_zero = np.zeros(model.nv)  # explicit: data.a is stale else
        pin.forwardKinematics(model, data, q, v, at_zero)
        accelerations = tuple(data.a.tolist(True))
    else:
        pin.forwardKinematics(model, data, q)
        accelerations = (pin.Motion.Zero(),) * model.njoints
    pin.computeJointJacobians(model, data)
    # With one coordinate the bindings give J as a vector, hence the shape.
    J = data.J.reshape(6, model.nv).copy()
    return Kinematics(q, v, t, tuple(data.oMi.tolist(True)), accelerations, J)


@dataclass(frozen=True, eq=False)
class LiveMotion:
    """Where a `pin.Data` keeps the motion of all bodies: views that change with it.

    Filled by ``pin.computeForwardKinematicsDerivatives``; world axes at the world origin.

    Attributes
    ----------
    placements : (4 njoints, 3) array
        ``[R p]^T`` of every joint frame, one below the other: the columns of R, then p.
    velocities, accelerations : (njoints, 6) arrays
        Spatial, linear part first.
    J : (6, nv) array
        World Jacobian.
    data : pin.Data
        What they are views of; it must live as long as they do.
    """

    placements: Array
    velocities: Array
    accelerations: Array
    J: Array
    data: pin.Data

    @property
    def bodies(self) -> int:
        """How many joints there are, the universe included."""
        return int(self.velocities.shape[0])


def live_motion(model: pin.Model, data: pin.Data) -> LiveMotion | None:
    """The live views of `data`, or None if this build of Pinocchio lays them out otherwise.

    To read them one by one through the bindings costs more than all else in a control tick.
    """
    placements = _one_block([X.rotation.T for X in data.oMi], 12)
    velocities = _one_block([V.vector for V in data.ov], 6)
    accelerations = _one_block([A.vector for A in data.oa], 6)
    if placements is None or velocities is None or accelerations is None:
        return None
    here = data.oMi[0]
    if _address(here.translation) != _address(here.rotation) + 9 * 8:
        return None
    J = data.J.reshape(6, model.nv, order="F")  # a vector where nv = 1
    if J.dtype != np.float64 or _address(J) != _address(data.J):
        return None  # a copy, which would not change with the workspace
    return LiveMotion(placements.reshape(-1, 3), velocities, accelerations, J, data)


def _one_block(items: list[Array], size: int) -> Array | None:
    """The array that these views, `size` numbers apart, are parts of; None if they are not."""
    starts = np.array([_address(item) for item in items])
    if not np.array_equal(starts, starts[0] + 8 * size * np.arange(len(items))):
        return None
    if any(item.dtype != np.float64 or not item.flags.c_contiguous for item in items):
        return None
    return as_strided(items[0], shape=(len(items), size), strides=(8 * size, 8))


def _address(x: Array) -> int:
    return int(x.__array_interface__["data"][0])


# -------------------------------------------------------------------------------- names


def coordinate_names(model: pin.Model) -> tuple[str, ...]:
    """Names of the nv coordinates: the joint's, or ``joint[i]`` where it has several."""
    model = plain(model)
    names: list[str] = []
    for j in range(1, model.njoints):
        name, n = model.names[j], model.nvs[j]
        names += [name] if n == 1 else [f"{name}[{i}]" for i in range(n)]
    return tuple(names)


def joint_of_coordinate(model: pin.Model) -> NDArray[np.intp]:
    """Joint index of each of the nv coordinates."""
    model = plain(model)
    return np.repeat(np.arange(model.njoints), list(model.nvs)).astype(np.intp)


def resolve_frame(model: pin.Model, frame: Any, owner: str) -> Frame:
    """Find a frame by name (a joint first, then a body, then any other frame), or check a pair."""
    model = plain(model)
    if isinstance(frame, tuple) and len(frame) == 2 and isinstance(frame[1], pin.SE3):
        name, placement = frame
        if not isinstance(name, str):
            raise InputError(f"{owner}: {name!r} is no name of a joint, body or frame")
        base = resolve_frame(model, name, owner)
        check_placement(f"{owner}: the placement given in {name!r}", placement)
        return Frame(base.joint, base.placement * placement, name)
    if not isinstance(frame, str):
        raise InputError(
            f"{owner}: a frame is the name of a joint, body or frame of the model, or "
            f"(such a name, pin.SE3); got {frame!r}"
        )
    if model.existJointName(frame):
        return Frame(model.getJointId(frame), pin.SE3.Identity(), frame)
    named = [f for f in model.frames if f.name == frame]
    found = [f for f in named if f.type == pin.FrameType.BODY] or named
    if len(found) > 1:
        raise InputError(
            f"{owner}: {frame!r} names {len(found)} frames of the model; "
            "give (joint name, pin.SE3) instead"
        )
    if not found:
        names = list(dict.fromkeys([*model.names, *(f.name for f in model.frames)]))
        raise InputError(
            f"{owner}: there is no joint or frame called {frame!r}"
            f"{suggestion(frame, names)}; valid names: {listing(names)}"
        )
    return Frame(found[0].parentJoint, found[0].placement.copy(), frame)


def check_placement(what: str, placement: pin.SE3) -> None:
    """Raise `InputError` for numbers that are not finite, or a rotation that is none."""
    if not np.isfinite(placement.homogeneous).all():
        raise InputError(f"{what} is not finite")
    error = np.abs(placement.rotation.T @ placement.rotation - np.eye(3)).max()
    if error > 1e-9 or np.linalg.det(placement.rotation) < 0.0:
        raise InputError(
            f"{what} has a rotation that is not orthogonal with determinant 1 (off by {error:.1e})"
        )


def check_joint(what: str, joint: pin.JointModel) -> None:
    """Raise `InputError` for a joint, or a part of a composite one, that no motion belongs to.

    Pinocchio's constructors take an axis as it is, and its formulas hold for those of norm 1; its
    default constructors leave axis and pitch as the memory was.
    """
    own = joint.extract() if isinstance(joint, pin.JointModel) else joint
    if isinstance(own, pin.JointModelComposite):
        parts = list(own.joints)
        if not parts:
            raise InputError(f"{what} is a composite joint without parts")
        for i, (part, placement) in enumerate(zip(parts, own.jointPlacements, strict=True)):
            check_placement(f"{what}: the placement of part {i}", placement)
            check_joint(f"{what}: part {i}", part)
        return
    axes = {a: getattr(own, a) for a in ("axis", "axis1", "axis2") if hasattr(own, a)}
    if isinstance(own, pin.JointModelRevoluteUnboundedUnaligned):  # does not show its axis
        axes["axis"] = _turning_axis(own)
    for name, axis in axes.items():
        norm = float(np.linalg.norm(axis))
        if not abs(norm - 1.0) <= UNIT:
            raise InputError(
                f"{what}: {name} must be finite and have norm 1, and Pinocchio does not see to "
                f"that; got {np.asarray(axis).tolist()}, norm {norm:.6g}; give "
                f"{name} / np.linalg.norm({name})"
            )
    if "axis2" in axes and abs(float(axes["axis1"] @ axes["axis2"])) > UNIT:
        raise InputError(
            f"{what}: axis1 and axis2 must be at right angles; got {axes['axis1'].tolist()} and "
            f"{axes['axis2'].tolist()}; two revolute joints turn about any axes"
        )
    pitch = float(getattr(own, "pitch", 1.0))
    if not 1e-100 < abs(pitch) < np.inf:
        raise InputError(
            f"{what}: the pitch must be finite and not zero, m/rad; got {pitch:.6g}; a revolute "
            "joint turns without it"
        )


def _turning_axis(joint: Any) -> Vector:
    """The axis of a revolute joint, from its motion alone."""
    alone = pin.Model()
    alone.addJoint(0, joint, pin.SE3.Identity(), "joint")
    J = pin.computeJointJacobians(alone, alone.createData(), pin.neutral(alone))
    return np.asarray(J.reshape(6)[3:])


UNIT = 1e-9
"""Norms of axes, and cosines of right angles, may be off by so much."""


def own_frame(frame: FrameLike) -> FrameLike:
    """The frame, with a placement that nobody can change any more."""
    if isinstance(frame, tuple) and len(frame) == 2 and isinstance(frame[1], pin.SE3):
        return (frame[0], FrozenPlacement(frame[1]))
    return frame


class FrozenPlacement(pin.SE3):  # type: ignore[misc]
    """A placement of a description, which does not change; ``copy()`` gives one that can."""

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise InputError(_PLACED.format(name))

    def setIdentity(self) -> NoReturn:
        """Refused."""
        raise InputError(_PLACED.format("setIdentity"))

    def setRandom(self) -> NoReturn:
        """Refused."""
        raise InputError(_PLACED.format("setRandom"))

    @property
    def rotation(self) -> Array:
        """(3, 3), read-only."""
        return _read_only(pin.SE3.rotation.fget(self))

    @property
    def translation(self) -> Vector:
        """(3,), m, read-only."""
        return _read_only(pin.SE3.translation.fget(self))

    def __copy__(self) -> FrozenPlacement:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenPlacement:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _placed, (np.array(self.rotation), np.array(self.translation))


_PLACED = (
    "{}: the placement of a constraint does not change, for mechanisms are made from it: make "
    "another constraint with dataclasses.replace"
)


def _placed(rotation: Array, translation: Vector) -> FrozenPlacement:
    return FrozenPlacement(pin.SE3(rotation, translation))


def _read_only(x: NDArray[np.float64]) -> NDArray[np.float64]:
    x.setflags(write=False)
    return x


def default_pair_name(*frames: Any) -> str:
    """``a-b`` from the names of frames, or of the joints that they are placed in."""
    return "-".join(str(f[0] if isinstance(f, tuple) and f else f) for f in frames)


def place(model: pin.Model, q: Vector, frame: Frame) -> pin.SE3:
    """World placement of a frame at q."""
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    return data.oMi[frame.joint] * frame.placement


# ----------------------------------------------------------------------------- structure


def support(model: pin.Model, joint: int) -> NDArray[np.bool_]:
    """Mask of the nv coordinates that move the body of `joint`."""
    model = plain(model)
    mask = np.zeros(model.nv, dtype=bool)
    while joint > 0:
        mask[model.idx_vs[joint] : model.idx_vs[joint] + model.nvs[joint]] = True
        joint = model.parents[joint]
    return mask


def translational(model: pin.Model) -> NDArray[np.bool_]:
    """Mask of the nv coordinates that translate without turning (unit: m)."""
    J = pin.computeJointJacobians(model, model.createData(), pin.neutral(model))
    turns: NDArray[np.bool_] = (np.abs(J.reshape(6, model.nv)[3:]) > 1e-12).any(axis=0)
    return ~turns


def depth_first_order(model: pin.Model) -> list[int]:
    """Joint indices in a valid depth-first order, the world first, siblings as they stand."""
    model = plain(model)
    children: list[list[int]] = [[] for _ in range(model.njoints)]
    for j in range(1, model.njoints):
        children[model.parents[j]].append(j)
    order: list[int] = []
    stack = [0]
    while stack:
        j = stack.pop()
        order.append(j)
        stack += reversed(children[j])
    return order


def is_depth_first(model: pin.Model) -> bool:
    """Whether the descendants of every joint follow it without a gap."""
    return depth_first_order(model) == list(range(model.njoints))


def renumbered(model: pin.Model) -> pin.Model:
    """A copy of `model` with its joints numbered depth-first.

    Pinocchio's composite-rigid-body algorithm, its sparse factorisations and its constraint
    Jacobians need that numbering and give wrong numbers without it, silently. Joints keep
    their names, siblings their order; inertias, limits, gains, frames, gravity and reference
    configurations move along. The entries of q and v are those of the new order.

    Parameters
    ----------
    model : pin.Model
        Any kinematic tree. It is not changed.

    Returns
    -------
    pin.Model
        The renumbered copy.

    Raises
    ------
    InputError
        If `model` is not a pin.Model, or has mimic joints.
    """
    if not isinstance(model, pin.Model):
        raise InputError(f"renumbered: a pin.Model is needed; got {type(model).__name__}")
    if len(model.mimicking_joints):
        raise InputError(
            "renumbered: the model has mimic joints; build it without (mimic=False) and "
            "impose each as a hc.Coupling"
        )
    order = depth_first_order(model)
    new = pin.Model()
    new.name, new.gravity = model.name, model.gravity.copy()
    place = {0: 0}
    for j in order[1:]:
        place[j] = new.addJoint(
            place[model.parents[j]], model.joints[j], model.jointPlacements[j], model.names[j]
        )
        new.inertias[place[j]] = model.inertias[j]
    new.inertias[0] = model.inertias[0]
    of_v = np.concatenate(
        [np.arange(model.nvs[j]) + model.idx_vs[j] for j in order[1:]] or [np.zeros(0)]
    ).astype(int)
    of_q = np.concatenate(
        [np.arange(model.nqs[j]) + model.idx_qs[j] for j in order[1:]] or [np.zeros(0)]
    ).astype(int)
    for per_v in _PER_VELOCITY:
        setattr(new, per_v, getattr(model, per_v)[of_v])
    for per_q in _PER_CONFIGURATION:
        setattr(new, per_q, getattr(model, per_q)[of_q])
    frame_place: dict[int, int] = {0: 0}
    for i, f in enumerate(model.frames):
        if i:
            moved = pin.Frame(
                f.name, place[f.parentJoint], frame_place.get(f.parentFrame, 0), f.placement,
                f.type, f.inertia,
            )  # fmt: skip
            frame_place[i] = new.addFrame(moved, False)
    for entry in model.referenceConfigurations:
        new.referenceConfigurations[entry.key()] = entry.data()[of_q]
    return new


_PER_VELOCITY = (
    "armature", "damping", "rotorInertia", "rotorGearRatio",
    "lowerEffortLimit", "upperEffortLimit", "lowerVelocityLimit", "upperVelocityLimit",
    "lowerDryFrictionLimit", "upperDryFrictionLimit",
)  # fmt: skip
_PER_CONFIGURATION = ("lowerPositionLimit", "upperPositionLimit", "positionLimitMargin")
