"""The pose of a frame, or some axes of it: the pose of a platform, the position of a tool.

Its rates are rows between two bodies, as those of a closure (constraints/wrench_rows.py), and are
evaluated by the same functions: with frame 1 that of `relative_to`, frame 2 the frame, and e_i the
axes of frame 1, or of frame 2 if the task is local,

    along i    e_i . (v2 - v1)         at the origin of frame 2
    about i    e_i . (omega2 - omega1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, finite, flag, numbers, quoted, read_only
from holoctl.base.errors import InputError
from holoctl.base.tolerances import NOT_A_ROTATION
from holoctl.constraints.kinds import Along, Row
from holoctl.constraints.wrench_rows import WrenchRows, rows_between
from holoctl.control.tasks.orientation_error import (
    Operators,
    check_rotation,
    rotation_off,
    turned_by,
)
from holoctl.control.tasks.task_protocol import (
    FrameMotion,
    Show,
    TaskExpression,
    TaskMotion,
    TaskTick,
    mechanism_size,
)
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.tick.fast_rows import MoreRows
from holoctl.rows.tick.vector_rows import along
from holoctl.tree.frames import (
    AXES,
    LETTERS,
    POSE_AXES,
    Frame,
    FrameLike,
    named_axes,
    own_frame,
    resolve_frame,
)
from holoctl.tree.kinematics import Kinematics, kinematics
from holoctl.tree.live_motion import LiveMotion, add_vector

__all__ = ["BoundFrameTask", "FrameTask", "Pose"]


_NO_ROTATION = np.eye(3)


@dataclass(frozen=True)
class FrameTask:
    """The pose of a frame, or some axes of it, relative to another frame.

    Parameters
    ----------
    frame : str or (str, pin.SE3)
        The name of a joint (looked up first), body or frame, or such a name and a placement in it.
    axes : str or sequence of str, optional
        Any of ``"x y z rx ry rz"``, which become rows in the order written: velocities along, and
        angular velocities about, the axes.
    relative_to : str or (str, pin.SE3), optional
        The frame in which the pose is expressed; its axes are those of the rows. Default: the
        world.
    local : bool, optional
        Whether rows are along and about the axes of the frame itself, as those of a tool.

    Raises
    ------
    InputError
        For unknown axes, or axes named twice; by `bind` for unknown frames.

    See Also
    --------
    CenterOfMassTask : the centre of mass.
    PostureTask : positions of coordinates.
    task_terms : value, Jacobian and inertia at a state.
    inverse_kinematics : the state for a pose.

    Notes
    -----
    A reference is a `pin.SE3`, the pose of the frame in `relative_to`; without angular axes also a
    position: the coordinates of the named axes, or all three if the task is local. Rates are those
    of the frame relative to `relative_to`, at the origin of the frame, rad/s and m/s.

    Rates and accelerations of a reference are the desired ones of the rows of this frame:
    accelerations are the derivatives of the rates, along axes that may turn (an acceleration in
    local axes is ``R' a - w x v``). If one or two angular axes are named, and the frame is turned
    about the others, they are along the axes of the rows, not along those of the reference.

    The error of rotation is the rotation vector from the frame to the reference; for two angular
    axes, that of the shortest rotation which aligns the third one; for one, the angle about it
    (docs/task-space.md).

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> tip = hc.FrameTask("tip_right", "x z")
    >>> P = hc.project(mech, *hc.assemble(mech, [2.0, -1.2, 0.9, 1.4]))
    >>> hc.task_terms(P, tip).value.round(3).tolist()
    [0.05, 0.47]
    """

    frame: FrameLike
    axes: str | tuple[str, ...] = "x y z rx ry rz"
    relative_to: FrameLike = "universe"
    local: bool = False

    def __post_init__(self) -> None:
        owner = _owner(self.frame)
        object.__setattr__(self, "frame", own_frame(self.frame))
        object.__setattr__(self, "relative_to", own_frame(self.relative_to))
        object.__setattr__(self, "axes", named_axes(owner, self.axes, POSE_AXES))
        flag(f"{owner}: local", self.local)

    def bind(self, mech: Mechanism) -> BoundFrameTask:
        """The task on a mechanism.

        Parameters
        ----------
        mech : Mechanism

        Returns
        -------
        BoundFrameTask

        Raises
        ------
        InputError
            For frames that the mechanism does not have, or that do not move relative to each other.
        """
        check_mechanism(mech)
        owner = _owner(self.frame)
        one = resolve_frame(mech.model, self.relative_to, f"{owner}: relative_to")
        two = resolve_frame(mech.model, self.frame, owner)
        if one.joint == two.joint:
            raise InputError(
                f"{owner}: {two.name!r} and {one.name!r} are fixed to the same body, so one never "
                "moves relative to the other"
            )
        rows = [_row(axis, self.local) for axis in self.axes]
        table = rows_between(mech.model, one, two, rows, two.name)
        size = max(mechanism_size(mech), _reach(mech, one, two))
        scale = np.array([1.0 / size if axis in LETTERS else 1.0 for axis in self.axes])
        return BoundFrameTask(table, tuple(self.axes), self.local, read_only(scale))


def _reach(mech: Mechanism, one: Frame, two: Frame) -> float:
    """The diagonal of the box around the joints and the frames at the reference, m."""
    kin = kinematics(mech.model, mech.model.createData(), mech.reference, np.zeros(mech.nv), 0.0)
    points = [X.translation for X in kin.placements[1:]]
    points += [kin.point(frame) for frame in (one, two) if frame.joint]
    return float(np.linalg.norm(np.ptp(np.array(points), axis=0)))


def _owner(frame: FrameLike) -> str:
    return f"FrameTask {quoted(frame[0] if isinstance(frame, tuple) else frame)}"


def _row(axis: str, local: bool) -> Row:
    """The row of an axis: along n at the origin of frame 2, or about ``s x n`` with n and s
    orthogonal."""
    if axis in LETTERS:
        return Row(Along(2 if local else 1, True, local), axis, a=AXES[axis])
    i = LETTERS.index(axis[1])
    s, n = AXES[LETTERS[(i + 1) % 3]], AXES[LETTERS[(i + 2) % 3]]
    return Row(Along(2 if local else 1, False, True), axis, a=n, b=s)


class Pose(NamedTuple):
    """A reference pose: a position (3,), or the coordinates of the axes, and a rotation."""

    position: Vector
    rotation: Array | None


@dataclass(frozen=True, eq=False)
class BoundFrameTask:
    """A `FrameTask` of one mechanism; see `BoundTask`.

    Attributes
    ----------
    table : WrenchRows
        Its rows.
    axes : tuple of str
    local : bool
    scale : (rows,) array
    """

    table: WrenchRows
    axes: tuple[str, ...]
    local: bool
    scale: Vector
    _along: NDArray[np.intp] = field(init=False, repr=False)
    _all_along: bool = field(init=False, repr=False)
    _turned: Callable[[Sequence[float]], list[float]] | None = field(init=False, repr=False)
    _places: NDArray[np.intp] | None = field(init=False, repr=False)
    _mixed: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        along_axes = [LETTERS.index(axis) for axis in self.axes if axis in LETTERS]
        about = [LETTERS.index(axis[1]) for axis in self.axes if axis not in LETTERS]
        order = [axis for axis in self.axes if axis in LETTERS]
        order += [axis for axis in self.axes if axis not in LETTERS]
        places = [order.index(axis) for axis in self.axes]
        in_order = places == sorted(places)
        object.__setattr__(self, "_along", np.array(along_axes, dtype=np.intp))
        object.__setattr__(self, "_all_along", along_axes == [0, 1, 2])
        object.__setattr__(self, "_turned", turned_by(about, self.local) if about else None)
        object.__setattr__(self, "_places", None if in_order else np.array(places))
        object.__setattr__(self, "_mixed", bool(about) or not in_order)

    @property
    def labels(self) -> tuple[str, ...]:
        """``frame.axis`` of each row."""
        return self.table.labels

    @property
    def of_poses(self) -> bool:
        """Whether a reference must be a pose."""
        return self._turned is not None

    def at(self, kin: Kinematics) -> TaskMotion:
        """Value, Jacobian and drift at a state; the value is a pose for angular axes, or if the
        task is local."""
        rows = self.table.rows(kin)
        one, two = self.table.frames1[0], self.table.frames2[0]
        X1 = kin.placements[one.joint] * one.placement
        pose = X1.actInv(kin.placements[two.joint] * two.placement)
        value = pose if self.of_poses or self.local else pose.translation[self._along]
        return TaskMotion(value, rows.jacobian, rows.drift)

    def wanted(self, value: Any) -> Pose:
        """The reference pose of a `pin.SE3`, or without angular axes of a position."""
        if isinstance(value, pin.SE3):
            position, R = value.translation, None
            if self._turned is not None:
                R = value.rotation
                check_rotation(R.T.ravel().tolist())  # the transpose is a rotation as well
            if not (self.local or self._all_along):
                position = position.take(self._along)
        elif self.of_poses:
            raise InputError(
                f"{self.labels[0]}: the reference of a task with angular axes is a pin.SE3; got "
                f"{type(value).__name__} {str(value)[:60]!r}"
            )
        else:
            position, R = numbers("reference", value), None
            count = 3 if self.local else self._along.size
            if position.shape != (count,):
                what = "x y z" if self.local else " ".join(self.axes)
                raise InputError(
                    f"{self.labels[0]}: the reference must be a pin.SE3, or a position ({what}) of "
                    f"shape ({count},); got shape {position.shape}"
                )
        if not finite(position):
            raise InputError(f"{self.labels[0]}: the position of the reference is not finite")
        return Pose(position, R)

    def error(self, value: Any, wanted: Pose) -> Vector:
        """e: the reference position less the position, and the rotation error."""
        if not isinstance(value, pin.SE3):
            return self._joined(wanted.position - value, _NO_ROTATION, wanted)
        return self._error_at(value.rotation.T, value.translation, wanted)

    def _error_at(self, RT: Array, p: Vector, wanted: Pose) -> Vector:
        """e from the transposed rotation, and the position, of the frame."""
        away: Vector
        if self.local:
            away = RT.dot(wanted.position - p).take(self._along)
        else:
            away = wanted.position - p.take(self._along)
        return self._joined(away, RT, wanted) if self._mixed else away

    def _joined(self, away: Vector, RT: Array, wanted: Pose) -> Vector:
        """Errors of positions and of the rotation, in the order of the rows."""
        R, turned = wanted.rotation, self._turned
        if turned is not None and R is not None:
            D = RT.dot(R) if self.local else R.dot(RT)
            away = np.array([*away.tolist(), *turned(D.ravel().tolist())])
        if self._places is not None:
            away = np.asarray(away[self._places])
        return away

    @property
    def rows(self) -> WrenchRows:
        """The rows of its rates."""
        return self.table

    @property
    def pose(self) -> tuple[tuple[int, ...], bool]:
        """The coordinates of a reference position that are used, and whether its rotation is."""
        if self.local or self.of_poses:
            return (0, 1, 2), self.of_poses
        return tuple(self._along.tolist()), False

    def numbers(self, wanted: Pose) -> Vector:
        """The numbers of a reference: a position; with angular axes a whole position (3,) and its
        rotation, row by row."""
        if wanted.rotation is None:
            return np.array(wanted.position, dtype=float)
        position = np.zeros(3)
        position[slice(None) if self.local else self._along] = wanted.position
        return np.concatenate([position, np.asarray(wanted.rotation, dtype=float).ravel()])

    def expression(self, q: Any, v: Any, t: Any, show: Show, value: Any) -> TaskExpression:
        """The task as expressions.

        With U the velocity of frame 2 seen from body 1 and D its acceleration, dw and dalpha
        the angular ones, and e_i the axes of frame 1, or of frame 2 if the task is local,

            along i    e_i . U         D . e_i + (dw x e_i) . U, the second term if local
            about i    e_i . dw        e_i . dalpha
        """
        import casadi as ca

        motion = show(self.table.frames1[0], self.table.frames2[0])
        rows, drift, rate = list[dict[int, Any]](), list[Any](), list[Any]()
        axes, (U, D), (dw, dalpha) = (
            motion.R2 if self.local else motion.R1, motion.linear, motion.angular,
        )  # fmt: skip
        for axis in self.axes:
            n = axes[:, LETTERS.index(axis[-1])]
            if axis in LETTERS:
                rate.append(ca.dot(n, U))
                drift.append(ca.dot(n, D) + (ca.dot(ca.cross(dw, n), U) if self.local else 0.0))
            else:
                rate.append(ca.dot(n, dw))
                drift.append(ca.dot(n, dalpha))
            columns = motion.moves if axis in LETTERS else motion.turns
            entries = ((c, ca.dot(n, g)) for c, g in columns)
            rows.append({c: x for c, x in entries if not x.is_zero()})
        error, guard = self._error_of(motion, [value[i] for i in range(value.numel())])
        return TaskExpression(rows, drift, rate, error, guard)

    def _error_of(self, motion: FrameMotion, value: list[Any]) -> tuple[list[Any], list[Any]]:
        """e as expressions, and the guards of a reference that is no rotation."""
        import casadi as ca

        seen, along = motion.R1.T @ (motion.p2 - motion.p1), self._along.tolist()
        if self.local:
            own = (motion.R2.T @ motion.R1) @ (ca.vertcat(*value[:3]) - seen)
            away = [own[i] for i in along]
        elif self.of_poses:
            away = [value[i] - seen[i] for i in along]
        else:
            away = [x - seen[i] for x, i in zip(value, along, strict=True)]
        if not self.of_poses:
            return away, []
        R = ca.vertcat(*(ca.horzcat(*value[i : i + 3]) for i in (3, 6, 9)))
        RT = motion.R2.T @ motion.R1
        D = RT @ R if self.local else R @ RT
        about = [LETTERS.index(axis[1]) for axis in self.axes if axis not in LETTERS]

        def first(conditions: Any, functions: Any, x: Any) -> list[Any]:
            found: list[Any] = functions[-1](x)
            for c, function in zip(reversed(conditions), reversed(functions[:-1]), strict=True):
                found = [ca.if_else(c, a, b) for a, b in zip(function(x), found, strict=True)]
            return found

        def upright(x: list[Any]) -> list[Any]:
            sign = ca.if_else(x[0] >= 0.0, 1.0, -1.0)
            return [sign * a for a in x]

        def ratio(a: Any, b: Any, otherwise: float) -> Any:
            return ca.if_else(b > 0.0, a / b, otherwise)

        do = Operators(ca.atan2, ca.sqrt, first, upright, ratio)
        turned = turned_by(about, self.local, do)([D[i, j] for i in range(3) for j in range(3)])
        both = [*away, *turned]
        e = both if self._places is None else [both[i] for i in self._places.tolist()]
        return e, [(x / NOT_A_ROTATION) ** 2 for x in rotation_off(value[3:])]

    def tick(self, motion: LiveMotion, beside: MoreRows | None) -> TaskTick:
        """The task in a tick: rows as those of constraints, and the pose by one product; errors of
        rows along axes of frame 1 are differences of positions."""
        table, rows = self.table, len(self.axes)
        J, S = np.zeros((rows, motion.J.shape[1])), np.asarray(table.S[table.pair])
        pose, error_at = _pose_reader(table, motion), self._error_at

        def by_pose(q: Vector, wanted: Pose) -> Vector:
            RT, p = pose()
            return error_at(RT, p, wanted)

        if beside is not None:
            at = beside.errors

            def difference(q: Vector, wanted: Pose) -> Vector:
                return wanted.position - at

            straight = not (self.local or self._mixed)
            return TaskTick(_nothing, J, beside.right, difference if straight else by_pose)
        part = along(table, np.arange(rows), np.ones(rows), motion, J, None)
        rows_at = part.evaluate

        def evaluate(q: Vector, v: Vector, t: float) -> None:
            rows_at(q, v, t)
            np.multiply(J, S, J)

        return TaskTick(evaluate, J, part.right, by_pose)


def _nothing(q: Vector, v: Vector, t: float) -> None:
    """No evaluation: the rows are evaluated together with those of constraints."""


def _pose_reader(table: WrenchRows, motion: LiveMotion) -> Any:
    """A function () -> (R', p) of frame 2 in frame 1, as `LiveMotion` has them."""
    one, two = table.frames1[0], table.frames2[0]
    frames = (two,) if one.joint == 0 else (two, one)
    choice = np.zeros((4 * len(frames), motion.placements.shape[0]))
    for k, frame in enumerate(frames):
        for i, axis in enumerate(LETTERS):
            add_vector(choice[4 * k + i], frame, [*AXES[axis], 0.0])
        add_vector(choice[4 * k + 3], frame, [0.0, 0.0, 0.0, 1.0])
    X, placements = np.zeros((4 * len(frames), 3)), motion.placements
    R2T, p2 = X[:3], X[3]
    if len(frames) == 2:
        R1T, p1 = X[4:7], X[7]

        def relative() -> tuple[Array, Vector]:
            choice.dot(placements, X)
            return R2T.dot(R1T.T), R1T.dot(p2 - p1)

        return relative
    fixed = one.placement
    if np.array_equal(fixed.homogeneous, np.eye(4)):

        def in_world() -> tuple[Array, Vector]:
            choice.dot(placements, X)
            return R2T, p2

        return in_world
    R1, origin = fixed.rotation.copy(), fixed.translation.copy()
    R1T_fixed = np.ascontiguousarray(R1.T)

    def in_fixed() -> tuple[Array, Vector]:
        choice.dot(placements, X)
        return R2T.dot(R1), R1T_fixed.dot(p2 - origin)

    return in_fixed
