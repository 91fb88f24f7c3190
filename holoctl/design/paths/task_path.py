"""Poses of a frame, or values of another task, along a path.

    p(s) a cubic spline in chord length        R(s) a cubic spline of rotations
    rates of the rows:  p' and w               of a frame itself:  R'p' and R'w

w is the angular velocity by s, in the axes in which poses are given.
Reference: scipy.spatial.transform.RotationSpline, whose rates are along the axes of the frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation, RotationSpline

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.control.reach.inverse_kinematics import inverse_kinematics
from holoctl.control.reach.targets import Target, targets_of
from holoctl.control.tasks.frame_task import BoundFrameTask, Pose
from holoctl.design.paths.path_system import PathReference
from holoctl.design.paths.splines import chord_lengths, through_points
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.kinematics import kinematics

__all__ = ["TaskDrive", "TaskPath", "is_task_path", "task_path"]


class TaskPath(NamedTuple):
    """A path of a task.

    Attributes
    ----------
    drive : TaskDrive
    path : function s -> PathReference
    knots : (n,) array
    q : (nq,) array
        A closed configuration at its start.
    """

    drive: TaskDrive
    path: Callable[[float], PathReference]
    knots: Vector
    q: Vector


@dataclass(frozen=True, eq=False)
class TaskDrive:
    """The rows of a task as driven rows; see `Drive`.

    Attributes
    ----------
    mech : Mechanism
    target : Target
        The target of the first value; those of other values are made from it.
    labels : tuple of p str
    scale : (p,) array
    """

    mech: Mechanism
    target: Target
    labels: tuple[str, ...]
    scale: Vector

    def left(self, q: Vector, value: Any) -> tuple[Vector, Array]:
        """The difference of a value from that at q, and the rows, scaled."""
        mech, target = self.mech, self.target
        kin = kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), 0.0)
        here = Target(target.key, target.name, target.task, value, target.lengths)
        away, _ = here.left(kin)
        J = target.task.at(kin).jacobian
        return -self.scale * away, self.scale[:, None] * J * mech.column_scale

    def drift(self, q: Vector, v: Vector) -> Vector:
        """``Jd v``."""
        kin = kinematics(self.mech.model, workspace(self.mech), q, v, 0.0)
        found: Vector = self.target.task.at(kin).drift
        return found


def is_task_path(path: Any) -> bool:
    """Whether a path is a pair (task, values)."""
    return (
        isinstance(path, tuple)
        and len(path) == 2
        and (hasattr(path[0], "bind") or isinstance(path[0], str))
    )


def task_path(mech: Mechanism, path: Any, q: Vector, count: int, owner: str) -> TaskPath:
    """A path of a task, checked; `count` motions are driven, q is on the branch.

    Raises
    ------
    InputError
        For values that the task does not accept, fewer than two values, or fewer rows than motions.
    NotActuatedError
        For more rows than motions.
    AssemblyError, LimitError
        If the first value is not reached.
    """
    key, given = path
    values = _listed(given, owner)
    targets = [targets_of(mech, [(key, value)], None, "universe") for value in values]
    first = targets[0].each[0]
    wanted = [t.each[0].wanted for t in targets]
    rows, labels = first.lengths.size, tuple(targets[0].labels)
    if rows != count:
        what = f"{owner}: the task {first.name!r} has {rows} rows, and {count} motions are driven"
        if rows > count:
            raise NotActuatedError(
                f"{what}: name as many axes as there are motions; the others follow"
            )
        raise InputError(
            f"{what}: the path does not determine some of them. Name more axes, or give "
            "configurations (from inverse_kinematics, for example) as way-points"
        )
    size = targets[0].scale
    drive = TaskDrive(mech, first, labels, size)
    lengths = float(np.max(size)) if not first.lengths.any() else float(size[first.lengths][0])
    if isinstance(first.task, BoundFrameTask):
        along, knots = _of_poses(first.task, wanted, lengths, owner)
    else:
        table = np.array([np.asarray(x, dtype=float) for x in wanted])
        if table.shape[1:] != (rows,):
            raise InputError(f"{owner}: values of {first.name!r} must be {rows} numbers each")
        steps = np.linalg.norm(np.diff(table, axis=0) * size, axis=1)
        knots = chord_lengths(steps, owner)
        along = through_points(knots, table)
    start = inverse_kinematics(mech, [(key, values[0])], q, limits=None)[0]
    return TaskPath(drive, along, knots, start)


def _listed(given: Any, owner: str) -> list[Any]:
    if isinstance(given, pin.SE3) or not hasattr(given, "__len__") or len(given) < 2:
        raise InputError(f"{owner}: a task needs a list of two or more of its values")
    return list(given)


def _of_poses(
    task: BoundFrameTask, poses: list[Pose], per_length: float, owner: str
) -> tuple[Callable[[float], PathReference], Vector]:
    """The function of s, and its knots."""
    position = np.array([pose.position for pose in poses])
    steps = np.linalg.norm(np.diff(position, axis=0) * per_length, axis=1)
    rotation = None
    matrices = [pose.rotation for pose in poses if pose.rotation is not None]
    if matrices:
        rotation = Rotation.from_matrix(np.array(matrices))
        pairs = pairwise(matrices)
        turns = np.array([np.linalg.norm(pin.log3(one.T @ two)) for one, two in pairs])
        if float(turns.max()) > 3.0:
            raise InputError(
                f"{owner}: pose {int(np.argmax(turns))} and the next differ by half a turn, whose "
                "direction is ambiguous; give a pose between them"
            )
        steps = np.hypot(steps, turns)
    s = chord_lengths(steps, owner)
    places = through_points(s, position)
    names = ("x", "y", "z", "rx", "ry", "rz")
    rows = np.array([names.index(axis) for axis in task.axes], dtype=np.intp)
    columns = _columns(task, position.shape[1])
    if rotation is None:

        def line(s: float) -> PathReference:
            here = places(s)
            rates = (_six(here.rate, columns)[rows], _six(here.acceleration, columns)[rows])
            return PathReference(Pose(here.value, None), *rates)

        return line, s
    spline = RotationSpline(s, rotation)

    def along(s: float) -> PathReference:
        here, R = places(s), spline(s).as_matrix()
        v, a = _six(here.rate, columns), _six(here.acceleration, columns)
        w, ww = spline(s, 1), spline(s, 2)  # in the axes of the frame itself
        if task.local:
            v[:3], v[3:] = R.T @ v[:3], w
            a[:3], a[3:] = R.T @ a[:3] - np.cross(w, v[:3]), ww
        else:
            v[3:], a[3:] = R @ w, R @ ww
        return PathReference(Pose(here.value, R), v[rows], a[rows])

    return along, s


def _columns(task: BoundFrameTask, width: int) -> Indices:
    """The indices of the position's axes in x y z."""
    if width == 3:
        return np.arange(3)
    return np.array(["xyz".index(axis) for axis in task.axes if axis in "xyz"], dtype=np.intp)


def _six(x: Vector, columns: Indices) -> Vector:
    found = np.zeros(6)
    found[columns] = x
    return found
