"""Target poses of frames: the residual of a pose, its derivative, and the rates of frames.

    X = A^-1 B = (R, p)          frame B seen from frame A, the one it is relative to
    pdot = R_A' (v_B - v_A)      w = R_A' (w_B - w_A)      v of the points at the origin of B

The residual vanishes at the pose, and its derivative is exact, also far away:

    p - p_ref                                     along the axes of A; of B itself: R' (p - p_ref)
    log(E)              E = R R_ref'              all three turns; of B itself: E = R_ref' R
    angle of E about n                            one turn, about n
    from m to E m, at right angles to m           two turns, all but that about m

Reference: docs/inverse-kinematics.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, known_name, listing, shown, suggestion, vector
from holoctl.base.errors import InputError
from holoctl.control.tasks.frame_task import BoundFrameTask, FrameTask
from holoctl.control.tasks.task_protocol import BoundTask
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.supported_joints import check_placement

__all__ = ["Target", "Targets", "rates_of", "targets_of"]

HALF_TURN_LEFT = 1e-7
"""If the sine of the remaining rotation is smaller, a frame counts as turned by half a turn, so
that any axis leads back; or as not turned, if the cosine is positive."""


_SIX = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, eq=False)
class Target:
    """A task, usually of a frame, and its reference value.

    Attributes
    ----------
    key : object
        The key that the caller gave.
    name : str
        The name for messages.
    task : BoundTask
    wanted : object
        The checked reference value, as the task returns it.
    lengths : (rows,) bool array
        Which rows are lengths.
    """

    key: Any
    name: str
    task: BoundTask
    wanted: Any
    lengths: NDArray[np.bool_]

    def left(self, kin: Kinematics) -> tuple[Vector, Array]:
        """The residual, and its derivative by steps of q."""
        if isinstance(self.task, BoundFrameTask):
            return _frame_left(self.task, self.wanted, kin)
        there = self.task.at(kin)  # its Jacobian is that of the error if the error is small
        return -self.task.error(there.value, self.wanted), there.jacobian


@dataclass(frozen=True, eq=False)
class Targets:
    """All targets, with their rows stacked.

    Attributes
    ----------
    each : tuple of Target
    scale : (rows,) array
        The factor of each row: 1/L for lengths, L the size of the mechanism; 1 for angles.
    places : tuple of slice
        The rows of each target among all.
    labels : tuple of str
        ``frame.axis``.
    """

    each: tuple[Target, ...]
    scale: Vector
    places: tuple[slice, ...]
    labels: tuple[str, ...]

    def left(self, kin: Kinematics) -> tuple[Vector, Array]:
        """The scaled residual, and its derivative by steps of q."""
        both = [target.left(kin) for target in self.each]
        r, D = np.concatenate([r for r, _ in both]), np.vstack([D for _, D in both])
        return self.scale * r, self.scale[:, None] * D

    def rate(self, kin: Kinematics) -> tuple[Array, Vector]:
        """J and J_dot v, scaled."""
        motions = [target.task.at(kin) for target in self.each]
        J = np.vstack([m.jacobian for m in motions])
        return self.scale[:, None] * J, self.scale * np.concatenate([m.drift for m in motions])

    def described(self, left: Vector, per: str = "") -> str:
        """Scaled rows in words: their size in m and rad, frame by frame."""
        words = []
        for target, place in zip(self.each, self.places, strict=True):
            own, along = left[place] / self.scale[place], target.lengths
            both = [(own[along], f"m{per}"), (own[~along], f"rad{per}")]
            parts = [f"{np.linalg.norm(x):.4g} {unit}" for x, unit in both if x.size]
            words.append(f"{target.name!r} by {' and '.join(parts)}")
        return ", ".join(words)


def _frame_left(task: BoundFrameTask, wanted: Any, kin: Kinematics) -> tuple[Vector, Array]:
    """The residual of a frame, with its exact derivative."""
    one, two = task.table.frames1[0], task.table.frames2[0]
    A, B = (kin.placements[f.joint] * f.placement for f in (one, two))
    X, R_A, p_B = A.actInv(B), A.rotation, B.translation
    R, J = X.rotation, kin.J * task.table.S[task.table.pair[0]]
    V, W = R_A.T @ (J[:3] - pin.skew(p_B) @ J[3:]), R_A.T @ J[3:]
    left, D = np.zeros(6), np.zeros((6, J.shape[1]))
    along = [_SIX.index(axis) for axis in task.axes if axis in _SIX[:3]]
    if task.local:
        d = X.translation - wanted.position
        left[:3], D[:3] = R.T @ d, R.T @ (V + pin.skew(d) @ W)
    else:
        left[along], D[along] = X.translation[along] - wanted.position, V[along]
    turns = [axis[1] for axis in _SIX[3:] if axis in task.axes]
    if turns:
        E = wanted.rotation.T @ R if task.local else R @ wanted.rotation.T
        left[3:], slope = _turned(E, turns, task.local)
        D[3:] = slope @ (R.T @ W if task.local else W)
    rows = [_SIX.index(axis) for axis in task.axes]
    return left[rows], D[rows]


# ------------------------------------------------------------------- residuals of rotations


def _turned(E: Array, turns: Sequence[str], local: bool) -> tuple[Vector, Array]:
    """The remaining angles of a rotation, and their derivative by the angular velocity w:
    ``Edot = [w] E``, or ``E [w]`` if w is in the axes of the frame itself."""
    if len(turns) == 3:
        return pin.log3(E), pin.Jlog3(E) if local else pin.Jlog3(E).T
    if len(turns) == 2:
        m = np.eye(3)["xyz".index(next(axis for axis in "xyz" if axis not in turns))]
        c = E @ m
        return _swing(m, c, -E @ pin.skew(m) if local else -pin.skew(c))
    angles, slope, i = np.zeros(3), np.zeros((3, 3)), "xyz".index(turns[0])
    angles[i], slope[i] = _twist(np.eye(3)[i], E, -1.0 if local else 1.0)
    return angles, slope


def _swing(m: Vector, c: Vector, c_w: Array) -> tuple[Vector, Array]:
    """The rotation vector, at right angles to m, that turns m to c, and its derivative; c_w is the
    derivative of c."""
    s, cosine = np.cross(m, c), float(m @ c)
    sine = float(np.linalg.norm(s))
    if sine < HALF_TURN_LEFT and cosine < 0.0:  # any axis is valid
        across = np.roll(m, 1)
        return np.pi * across, -np.outer(across, np.cross(across, m) @ c_w)
    angle = float(np.arctan2(sine, cosine))
    if sine < HALF_TURN_LEFT:
        f, f_c = 1.0, 1.0 / 3.0
    else:
        f, f_c = angle / sine, (sine - angle * cosine) / sine**3
    slope: Array = f * pin.skew(m) @ c_w - f_c * np.outer(s, m @ c_w)
    return f * s, slope


def _twist(n: Vector, E: Array, side: float) -> tuple[float, Vector]:
    """The twist angle of E about n, without its swing, and its derivative by w."""
    quaternion = pin.Quaternion(E)
    u, w = quaternion.vec(), float(quaternion.w)
    s = float(n @ u)
    if s * s + w * w < HALF_TURN_LEFT**2:  # a half turn about an axis across n has no twist
        return np.pi, n.copy()
    angle = 2.0 * np.arctan2(s, w)
    slope = (w * w * n + w * side * np.cross(u, n) + s * u) / (s * s + w * w)
    return float((angle + np.pi) % (2.0 * np.pi) - np.pi), slope


# -------------------------------------------------------------------------- requested poses


def targets_of(mech: Mechanism, poses: Any, axes: Any, relative_to: Any) -> Targets:
    """The targets of given poses, checked."""
    owner = f"{mech.name}: poses"
    pairs = _pairs(poses, owner)
    if all(_is_task(key) for key, _ in pairs) and not _is_world(relative_to):
        raise InputError("relative_to: each pose is that of a task, which has its own relative_to")
    words = _axes_of(pairs, axes)
    each = tuple(
        _target(mech, key, pose, word, relative_to)
        for (key, pose), word in zip(pairs, words, strict=True)
    )
    ends = np.cumsum([target.lengths.size for target in each]).tolist()
    return Targets(
        each,
        np.concatenate([target.task.scale for target in each]),
        tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False)),
        sum((tuple(target.task.labels) for target in each), ()),
    )


def rates_of(targets: Targets, given: Any, name: str) -> Vector | None:
    """The given twists, or accelerations, of all rows, scaled; None if none are given."""
    each = targets.each
    found = np.zeros(targets.scale.size)
    if given is None:
        return None
    if isinstance(given, Mapping):
        entries = [(_index(each, key, name), x) for key, x in given.items()]
    elif len(each) == 1 and not (_is_list(given) and len(given) == 1 and not _is_number(given[0])):
        entries = [(0, given)]
    elif _is_list(given) and len(given) == len(each):
        entries = list(enumerate(given))
    else:
        raise InputError(
            f"{name} must be a mapping of the same frames to numbers along their axes, or a list "
            f"with an entry for each of the {len(each)} poses; got {shown(given)!r}"
        )
    for i, x in entries:
        if x is None:
            continue
        target, place = each[i], targets.places[i]
        own = _of_motion(target, x, name) if isinstance(x, pin.Motion) else x
        rows = ", ".join(target.task.labels)
        own = vector(f"{name} of {target.name!r}", own, target.lengths.size, rows)
        found[place] = targets.scale[place] * own
    return found


def _of_motion(target: Target, x: pin.Motion, name: str) -> Vector:
    """The entries of a motion for the rows of a frame, by their axes."""
    if not isinstance(target.task, BoundFrameTask):
        rows = ", ".join(target.task.labels)
        raise InputError(f"{name} of {target.name!r} ({rows}): a pin.Motion is that of a frame")
    found: Vector = x.vector[[_SIX.index(axis) for axis in target.task.axes]]
    return found


def _is_list(given: Any) -> bool:
    return isinstance(given, (list, tuple))


def _is_number(given: Any) -> bool:
    return isinstance(given, (int, float, np.integer, np.floating))


def _pairs(poses: Any, owner: str) -> list[tuple[Any, Any]]:
    if isinstance(poses, Mapping):
        pairs = list(poses.items())
    elif isinstance(poses, (list, tuple)) and all(
        isinstance(x, (list, tuple)) and len(x) == 2 for x in poses
    ):
        pairs = [(key, pose) for key, pose in poses]
    else:
        raise InputError(
            f"{owner} must be a mapping {{frame: pose}}, or a list of pairs (frame, pose); got "
            f"{type(poses).__name__} {str(poses)[:60]!r}"
        )
    if not pairs:
        raise InputError(f"{owner} is empty: give {{frame: pose}}, one or more")
    return pairs


def _is_task(key: Any) -> bool:
    return hasattr(key, "bind")


def _is_world(frame: Any) -> bool:
    return isinstance(frame, str) and frame == "universe"


def _axes_of(pairs: list[tuple[Any, Any]], axes: Any) -> list[Any]:
    """The given axes of each frame that is no task; None if none are given."""
    if not isinstance(axes, Mapping):
        if axes is not None and all(_is_task(key) for key, _ in pairs):
            raise InputError("axes: each pose is that of a task, which has its own axes")
        return [axes] * len(pairs)
    names = [key for key, _ in pairs if isinstance(key, str)]
    for name in axes:
        known_name(name, names, "frame among the poses", "axes")
    return [axes.get(key) if isinstance(key, str) else None for key, _ in pairs]


def _target(mech: Mechanism, key: Any, pose: Any, axes: Any, relative_to: Any) -> Target:
    task = key
    if not _is_task(key):
        if axes is None:
            axes = "x y z rx ry rz" if isinstance(pose, pin.SE3) else "x y z"
        task = FrameTask(key, axes, relative_to)
    frame = getattr(task, "frame", None)
    label = frame[0] if isinstance(frame, tuple) else frame
    name = label if isinstance(label, str) else type(task).__name__
    if isinstance(pose, pin.SE3):
        check_placement(f"the pose of {name!r}", pose)
    elif isinstance(pose, np.ndarray) and pose.shape == (4, 4):
        raise InputError(
            f"the pose of {name!r} must be a pin.SE3 or a position; pin.SE3(matrix) makes one of a "
            "homogeneous matrix"
        )
    elif isinstance(pose, tuple) and any(isinstance(x, pin.SE3) for x in pose):
        raise InputError(
            f"the pose of {name!r} must be a pin.SE3 or a position alone; rates and accelerations "
            "are given by v= and a="
        )
    bound = task.bind(mech)
    lengths = np.asarray(bound.scale) != 1.0
    if isinstance(bound, BoundFrameTask):
        lengths = np.array([axis in _SIX[:3] for axis in bound.axes])
    try:
        return Target(key, str(name), bound, bound.wanted(pose), lengths)
    except InputError as error:
        raise InputError(f"the pose of {name!r}: {error}") from None


def _index(each: tuple[Target, ...], key: Any, name: str) -> int:
    """The index of the target that a key of velocities or accelerations names."""
    same = [i for i, t in enumerate(each) if t.key is key or _equal(t.key, key)]
    same = same or [i for i, t in enumerate(each) if isinstance(key, str) and t.name == key]
    if len(same) == 1:
        return same[0]
    names = [t.name for t in each]
    if same:
        raise InputError(
            f"{name}: {key!r} names {len(same)} of the poses; give a list with an entry for each"
        )
    raise InputError(
        f"{name}: {str(key)[:60]!r} has no pose{suggestion(key, names)}; the poses are those of "
        f"{listing(names)}"
    )


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
