"""Frames that are to be somewhere: what is left of the way, its slope, and how they move.

    X = A^-1 B = (R, p)          frame B seen from frame A, the one it is relative to
    pdot = R_A' (v_B - v_A)      w = R_A' (w_B - w_A)      v of the points at the origin of B

What is left vanishes where the frame is there, and its slope is exact, also far away:

    p - p_ref                                     along the axes of A; of B itself: R' (p - p_ref)
    log(E)              E = R R_ref'              all three turns; of B itself: E = R_ref' R
    angle of E about n                            one turn, about n
    from m to E m, at right angles to m           two turns, all but that about m

Reference: docs/task-space-ik.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, known_name, listing, numbers, suggestion, vector
from holoctl.base.errors import InputError
from holoctl.base.tolerances import HALF_TURN_LEFT
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.scales import sizes
from holoctl.tree.coordinates import support
from holoctl.tree.frames import Frame, resolve_frame
from holoctl.tree.joints import check_placement
from holoctl.tree.kinematics import Kinematics

__all__ = ["Target", "Targets", "rates_of", "targets_of"]

Array = NDArray[np.float64]

SIX = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, eq=False)
class Target:
    """One frame, and where it is to be.

    Attributes
    ----------
    key : object
        As it was given.
    frame, base : Frame
        The frame, and the one it is relative to.
    axes : tuple of str
        Its rows.
    local : bool
        Whether rows are along the axes of the frame itself.
    pose : pin.SE3
        In `base`; what no row asks for means nothing.
    supports : (2, nv) array
        1 for coordinates that move `base`, and `frame`.
    """

    key: Any
    frame: Frame
    base: Frame
    axes: tuple[str, ...]
    local: bool
    pose: pin.SE3
    supports: Array

    @property
    def name(self) -> str:
        """For messages."""
        return str(self.frame.name)

    @property
    def rows(self) -> list[int]:
        """Which of x y z rx ry rz, in their order here."""
        return [SIX.index(axis) for axis in self.axes]

    def left(self, kin: Kinematics) -> tuple[Vector, Array]:
        """What is left of the way, in m and rad, and its derivative by steps of q."""
        R, p, J = self._seen(kin)
        d, left, D = p - self.pose.translation, np.zeros(6), np.zeros((6, J.shape[1]))
        if self.local:
            left[:3], D[:3] = R.T @ d, R.T @ (J[:3] + pin.skew(d) @ J[3:])
        else:
            left[:3], D[:3] = d, J[:3]
        turns = [axis[1] for axis in SIX[3:] if axis in self.axes]
        if turns:
            R_ref = self.pose.rotation
            E = R_ref.T @ R if self.local else R @ R_ref.T
            angles, slope = _turned(E, turns, self.local)
            left[3:], D[3:] = angles, slope @ (R.T @ J[3:] if self.local else J[3:])
        return left[self.rows], D[self.rows]

    def rate(self, kin: Kinematics) -> tuple[Array, Vector]:
        """J and J_dot v of the rates of the rows: velocity along the axes, at the frame's origin."""
        A, B = (kin.placements[f.joint] * f.placement for f in (self.base, self.frame))
        J_a, J_b = (kin.J * moved for moved in self.supports)
        V_a, V_b = J_a @ kin.v, J_b @ kin.v
        A_a, A_b = kin.bias_accelerations([self.base, self.frame])
        C, w_C = (B.rotation, V_b[3:]) if self.local else (A.rotation, V_a[3:])
        p, p_dot = B.translation, V_b[:3] + np.cross(V_b[3:], B.translation)
        V, A_rel = V_b - V_a, A_b - A_a
        u = V[:3] + np.cross(V[3:], p)
        u_dot = A_rel[:3] + np.cross(A_rel[3:], p) + np.cross(V[3:], p_dot)
        J = J_b - J_a
        rates = np.vstack([C.T @ (J[:3] - pin.skew(p) @ J[3:]), C.T @ J[3:]])
        drift = [C.T @ (u_dot - np.cross(w_C, u)), C.T @ (A_rel[3:] - np.cross(w_C, V[3:]))]
        return rates[self.rows], np.concatenate(drift)[self.rows]

    def _seen(self, kin: Kinematics) -> tuple[Array, Vector, Array]:
        """R and p of the frame in `base`, and the Jacobian of (pdot, w)."""
        A, B = (kin.placements[f.joint] * f.placement for f in (self.base, self.frame))
        X = A.actInv(B)
        J = kin.J * (self.supports[1] - self.supports[0])
        R_A, p = A.rotation, B.translation
        seen = np.vstack([R_A.T @ (J[:3] - pin.skew(p) @ J[3:]), R_A.T @ J[3:]])
        return X.rotation, X.translation, seen


@dataclass(frozen=True, eq=False)
class Targets:
    """All of them, one after the other.

    Attributes
    ----------
    each : tuple of Target
    scale : (rows,) array
        What makes each row a pure number: 1/L for lengths, L the size of the mechanism; 1 for
        angles.
    places : tuple of slice
        Where the rows of each stand among all.
    labels : tuple of str
        ``frame.axis``.
    """

    each: tuple[Target, ...]
    scale: Vector
    places: tuple[slice, ...]
    labels: tuple[str, ...]

    def left(self, kin: Kinematics) -> tuple[Vector, Array]:
        """What is left of the way, scaled, and its derivative by steps of q."""
        both = [target.left(kin) for target in self.each]
        r, D = np.concatenate([r for r, _ in both]), np.vstack([D for _, D in both])
        return self.scale * r, self.scale[:, None] * D

    def rate(self, kin: Kinematics) -> tuple[Array, Vector]:
        """J and J_dot v, scaled."""
        both = [target.rate(kin) for target in self.each]
        J, drift = np.vstack([J for J, _ in both]), np.concatenate([d for _, d in both])
        return self.scale[:, None] * J, self.scale * drift

    def told(self, left: Vector, per: str = "") -> str:
        """Scaled rows in words: how many m and rad they are, frame by frame."""
        words = []
        for target, place in zip(self.each, self.places, strict=True):
            own = left[place] / self.scale[place]
            along = np.array([axis in SIX[:3] for axis in target.axes])
            sizes_of = [(own[along], f"m{per}"), (own[~along], f"rad{per}")]
            parts = [f"{np.linalg.norm(x):.4g} {unit}" for x, unit in sizes_of if x.size]
            words.append(f"{target.name!r} by {' and '.join(parts)}")
        return ", ".join(words)


# -------------------------------------------------------------------------- turns that are left


def _turned(E: Array, turns: Sequence[str], local: bool) -> tuple[Vector, Array]:
    """The angles that are left of a rotation, and their derivative by the angular velocity w:
    ``Edot = [w] E``, or ``E [w]`` where it is in the axes of the frame itself."""
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
    """The rotation vector, at right angles to m, that carries m to c; c_w: the slope of c."""
    s, cosine = np.cross(m, c), float(m @ c)
    sine = float(np.linalg.norm(s))
    if sine < HALF_TURN_LEFT and cosine < 0.0:  # any axis serves
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
    """The angle of E about n, swing aside, and its slope by w."""
    quaternion = pin.Quaternion(E)
    u, w = quaternion.vec(), float(quaternion.w)
    s = float(n @ u)
    if s * s + w * w < HALF_TURN_LEFT**2:  # a half turn about an axis across: it has no part
        return np.pi, n.copy()
    angle = 2.0 * np.arctan2(s, w)
    slope = (w * w * n + w * side * np.cross(u, n) + s * u) / (s * s + w * w)
    return float((angle + np.pi) % (2.0 * np.pi) - np.pi), slope


# ------------------------------------------------------------------------------ what is asked for


def targets_of(mech: Mechanism, poses: Any, axes: Any, relative_to: Any) -> Targets:
    """Poses as a caller gives them, checked."""
    owner = f"{mech.name}: poses"
    pairs = _pairs(poses, owner)
    words = _axes_of(pairs, axes)
    each = tuple(
        _target(mech, key, pose, word, relative_to, owner)
        for (key, pose), word in zip(pairs, words, strict=True)
    )
    size = mech.per_thread(
        "size", lambda: sizes(mech.model, mech.reference, mech.bound, workspace(mech))[0]
    )
    names = [axis for target in each for axis in target.axes]
    ends = np.cumsum([len(target.axes) for target in each]).tolist()
    return Targets(
        each,
        np.array([1.0 / size if axis in SIX[:3] else 1.0 for axis in names]),
        tuple(slice(a, b) for a, b in zip([0, *ends], ends, strict=False)),
        tuple(f"{target.name}.{axis}" for target in each for axis in target.axes),
    )


def rates_of(targets: Targets, given: Any, name: str) -> Vector | None:
    """Twists, or their accelerations, as a caller gives them: all rows, scaled; None for none."""
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
            f"with an entry for each of the {len(each)} poses; got {str(given)[:60]!r}"
        )
    for i, x in entries:
        if x is None:
            continue
        target, place = each[i], targets.places[i]
        numbers_of = x.vector if isinstance(x, pin.Motion) else x
        meaning = f"along {' '.join(target.axes)}"
        own = vector(f"{name} of {target.name!r}", numbers_of, len(target.axes), meaning)
        found[place] = targets.scale[place] * own
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
    return all(hasattr(key, x) for x in ("frame", "axes", "relative_to", "local"))


def _axes_of(pairs: list[tuple[Any, Any]], axes: Any) -> list[Any]:
    """What is said of the axes of each frame that is no task; None where nothing is."""
    if not isinstance(axes, Mapping):
        if axes is not None and all(_is_task(key) for key, _ in pairs):
            raise InputError("axes: each frame is given by a FrameTask, which has its own axes")
        return [axes] * len(pairs)
    names = [key for key, _ in pairs if isinstance(key, str)]
    for name in axes:
        known_name(name, names, "frame by that name alone among the poses", "axes")
    return [axes.get(key) if isinstance(key, str) else None for key, _ in pairs]


def _target(
    mech: Mechanism, key: Any, pose: Any, axes: Any, relative_to: Any, owner: str
) -> Target:
    local = False
    if _is_task(key):
        where, axes, relative_to, local = key.frame, key.axes, key.relative_to, bool(key.local)
    else:
        where = key
    frame = resolve_frame(mech.model, where, owner)
    base = resolve_frame(mech.model, relative_to, f"{mech.name}: relative_to")
    supports = np.array([support(mech.model, f.joint) for f in (base, frame)], dtype=float)
    if frame.joint == base.joint:
        raise InputError(
            f"{owner}: {frame.name!r} and {base.name!r} are fixed to the same body, so no motion "
            "changes where one is in the other"
        )
    what = f"{owner}: that of {frame.name!r}"
    if axes is None:
        axes = "x y z rx ry rz" if isinstance(pose, pin.SE3) else "x y z"
    words = _words(axes, what)
    return Target(
        key, frame, base, words, local, _placement(pose, words, local, what), supports
    )  # fmt: skip


def _words(axes: Any, what: str) -> tuple[str, ...]:
    words = tuple(axes.split()) if isinstance(axes, str) else ()
    if not words or set(words) - set(SIX) or len(set(words)) != len(words):
        raise InputError(
            f"{what}: axes must be one or more of 'x y z rx ry rz', each once; got {axes!r}"
        )
    return words


def _placement(pose: Any, axes: tuple[str, ...], local: bool, what: str) -> pin.SE3:
    if isinstance(pose, pin.SE3):
        check_placement(what, pose)
        return pin.SE3(pose)
    turning = [axis for axis in axes if axis not in SIX[:3]]
    if turning or local:
        why = f"turns about {listing(turning)}" if turning else "is along axes of its own"
        hint = ""
        if isinstance(pose, np.ndarray) and pose.shape == (4, 4):
            hint = "; pin.SE3(matrix) makes one of a homogeneous matrix"
        raise InputError(f"{what} must be a pin.SE3, for it {why}; got {str(pose)[:60]!r}{hint}")
    if np.shape(numbers(what, pose, "position")) == (4, 4):
        raise InputError(f"{what} must be a pin.SE3 or a position; pin.SE3(matrix) makes one")
    at = np.zeros(3)
    at[[SIX.index(axis) for axis in axes]] = vector(
        what, pose, len(axes), f"position along {' '.join(axes)}, or a pin.SE3"
    )
    return pin.SE3(np.eye(3), at)


def _index(each: tuple[Target, ...], key: Any, name: str) -> int:
    """Which target a key of velocities or accelerations means."""
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
