"""Tasks as expressions: rows J, Jd v and J v, and the error that a reference leaves.

Rows of a frame are seen from a body above both frames (codegen/relative_motion.py), with U the
velocity of p2 seen from body 1, D the acceleration likewise, and e_i the axes of frame 1, or of
frame 2 where the task is local:

    along i    e_i . U                           D . e_i + (dw x e_i) . U, the latter if local
    about i    e_i . dw                          e_i . (dalpha - omega1 x dw)

The errors are those of control/tasks, which are the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.errors import InputError
from holoctl.base.tolerances import NOT_A_ROTATION
from holoctl.codegen.casadi_extra import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.position_error import position_error
from holoctl.codegen.matrices import scalars
from holoctl.codegen.relative_motion import (
    Pair,
    Seen,
    moved,
    pair_between,
    point_motion,
    see,
    turns,
)
from holoctl.codegen.tree import constant
from holoctl.control.tasks.center_of_mass_task import BoundCenterOfMassTask
from holoctl.control.tasks.contract import BoundTask
from holoctl.control.tasks.frame_task import BoundFrameTask, Pose
from holoctl.control.tasks.posture_task import BoundPostureTask
from holoctl.tree.frames import LETTERS
from holoctl.tree.frozen_model import plain

__all__ = ["TaskRows", "of_a_pose", "opaque", "reference_size", "reference_value", "task_rows"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TaskRows:
    """A task as expressions.

    Attributes
    ----------
    jacobian : (rows,) list of dict
        Coordinate to entry of J; what is not there is zero.
    drift, rate, error : (rows,) lists
        ``Jd v``, ``J v`` and e.
    doubt : list
        Each is below one where the reference is one.
    """

    jacobian: list[dict[int, SX]]
    drift: list[SX]
    rate: list[SX]
    error: list[SX]
    doubt: list[SX]


def reference_size(task: BoundTask) -> int:
    """Of the value that a reference gives: positions, or of a pose its position and, row by row,
    its rotation.

    Raises
    ------
    InputError
        For a task that has no expressions, by name.
    """
    if isinstance(task, BoundFrameTask):
        if task.of_poses:
            return 12
        return 3 if task.local else len(task.axes)
    if isinstance(task, (BoundPostureTask, BoundCenterOfMassTask)):
        return len(task.labels)
    raise InputError(opaque(task))


def opaque(task: BoundTask) -> str:
    """That a task has no expressions, by name."""
    kind = type(task).__name__.removeprefix("Bound")
    why = getattr(task, "opaque", "") or f"a {kind} has no expressions"
    return (
        f"task {', '.join(task.labels)} cannot be compiled: {why}; FrameTask, PostureTask and "
        "CenterOfMassTask have"
    )


def reference_value(task: BoundTask, wanted: Any) -> Vector:
    """The value of a reference that the task has checked, as the code takes it."""
    if not isinstance(wanted, Pose):
        return np.array(wanted, dtype=float)
    if not isinstance(task, BoundFrameTask) or wanted.rotation is None:
        return np.array(wanted.position, dtype=float)
    position = np.zeros(3)
    position[slice(None) if task.local else _places(task)] = wanted.position
    return np.concatenate([position, np.asarray(wanted.rotation, dtype=float).ravel()])


def of_a_pose(task: BoundTask) -> tuple[tuple[int, ...], bool]:
    """What of a pose is read: coordinates of its position, in the order of the value, and whether
    its rotation follows."""
    if not isinstance(task, BoundFrameTask):
        return (), False
    if task.local or task.of_poses:
        return (0, 1, 2), task.of_poses
    return tuple(_places(task)), False


def task_rows(E: Expressions, task: BoundTask, value: SX) -> TaskRows:
    """The rows of a task, in its order; `value` is that of a reference."""
    given = scalars(value)
    if isinstance(task, BoundFrameTask):
        return _of_a_frame(E, task, given)
    if isinstance(task, BoundPostureTask):
        return _of_positions(E, task, given)
    if isinstance(task, BoundCenterOfMassTask):
        return _of_all_mass(E, task, given)
    raise InputError(opaque(task))


def _of_positions(E: Expressions, task: BoundPostureTask, value: list[SX]) -> TaskRows:
    ca, columns = casadi_module(), np.argmax(task.jacobian, axis=1).tolist()
    error = [
        position_error(E.q, int(at), i in task.places.turning, value[i])
        for i, at in enumerate(task.places.where)
    ]
    rows = [{k: ca.SX(1.0)} for k in columns]
    return TaskRows(rows, [ca.SX(0.0)] * len(rows), [E.v[k] for k in columns], error, [])


def _of_all_mass(E: Expressions, task: BoundCenterOfMassTask, value: list[SX]) -> TaskRows:
    """The mean of the centres of mass of all bodies, by their masses."""
    ca, model = casadi_module(), plain(E.mech.model)
    zero, seen = ca.SX.zeros(3), dict[tuple[int, int], Seen]()
    center, velocity, acceleration = zero, zero, zero
    columns: dict[int, SX] = {}
    bodies = [j for j in range(1, model.njoints) if model.inertias[j].mass > 0.0]
    whole = sum(model.inertias[j].mass for j in bodies)
    for j in bodies:
        s, part = see(E.tree, (0, 0), E.tree.of_joint[j], E.v, seen), model.inertias[j].mass / whole
        p = s.o + s.R @ constant(model.inertias[j].lever)
        v, a = point_motion(s, p)
        center, velocity = center + part * p, velocity + part * v
        acceleration = acceleration + part * a
        for c, angular, linear, origin in s.columns:
            columns[c] = columns.get(c, zero) + part * (linear + ca.cross(angular, p - origin))
    along = [LETTERS.index(axis) for axis in task.axes]
    rows = [{c: x[i] for c, x in columns.items() if not x[i].is_zero()} for i in along]
    error = [x - center[i] for x, i in zip(value, along, strict=True)]
    return TaskRows(rows, [acceleration[i] for i in along], [velocity[i] for i in along], error, [])


# -------------------------------------------------------------------------------- frames


def _of_a_frame(E: Expressions, task: BoundFrameTask, value: list[SX]) -> TaskRows:
    ca = casadi_module()
    pair = pair_between(E.tree, task.table.frames1[0], task.table.frames2[0], E.v, {})
    rows, drift, rate = list[dict[int, SX]](), list[SX](), list[SX]()
    axes = pair.R2 if task.local else pair.R1
    motion = _relative(pair)
    dw, dalpha = motion.angular
    for axis in task.axes:
        n = axes[:, LETTERS.index(axis[-1])]
        if axis in LETTERS:
            U, D = motion.linear
            columns = moved(pair, pair.p2, pair.p2)
            more = ca.dot(ca.cross(dw, n), U) if task.local else 0.0
            rate.append(ca.dot(n, U))
            drift.append(ca.dot(n, D) + more)
        else:
            columns = turns(pair)
            rate.append(ca.dot(n, dw))
            drift.append(ca.dot(n, dalpha))
        entries = ((c, ca.dot(n, g)) for c, g in columns)
        rows.append({c: x for c, x in entries if not x.is_zero()})
    error, doubt = _pose_error(task, pair, value)
    return TaskRows(rows, drift, rate, error, doubt)


@dataclass(frozen=True, eq=False)
class _Relative:
    """Frame 2 seen from frame 1: rates and accelerations, along the axes of `Pair`."""

    linear: tuple[SX, SX]
    angular: tuple[SX, SX]


def _relative(pair: Pair) -> _Relative:
    ca = casadi_module()
    v1, a1 = point_motion(pair.one, pair.p2)
    v2, a2 = point_motion(pair.two, pair.p2)
    w1, U, dw = pair.one.omega, v2 - v1, pair.two.omega - pair.one.omega
    D = a2 - a1 - 2.0 * ca.cross(w1, U)
    return _Relative((U, D), (dw, pair.two.alpha - pair.one.alpha - ca.cross(w1, dw)))


def _places(task: BoundFrameTask) -> list[int]:
    """Axes of positions, in the order of the task."""
    return [LETTERS.index(axis) for axis in task.axes if axis in LETTERS]


def _pose_error(task: BoundFrameTask, pair: Pair, value: list[SX]) -> tuple[list[SX], list[SX]]:
    ca = casadi_module()
    along = _places(task)
    about = [LETTERS.index(axis[1]) for axis in task.axes if axis not in LETTERS]
    seen = pair.R1.T @ (pair.p2 - pair.p1)
    whole = task.local or task.of_poses
    wanted = ca.vertcat(*value[:3]) if whole else None
    away = list[SX]()
    if wanted is None:
        away = [x - seen[i] for x, i in zip(value, along, strict=True)]
    elif task.local:
        own = (pair.R2.T @ pair.R1) @ (wanted - seen)
        away = [own[i] for i in along]
    else:
        away = [wanted[i] - seen[i] for i in along]
    turned, doubt = list[SX](), list[SX]()
    if about:
        R_ref = ca.vertcat(*(ca.horzcat(*value[i : i + 3]) for i in (3, 6, 9)))
        doubt = _no_rotation(R_ref)
        RT = pair.R2.T @ pair.R1
        D = RT @ R_ref if task.local else R_ref @ RT
        turned = _turned_by(about, task.local)(D)
    linear, angular = iter(away), iter(turned)
    return [next(linear if axis in LETTERS else angular) for axis in task.axes], doubt


def _no_rotation(R: SX) -> list[SX]:
    """As `check_rotation`."""
    ca = casadi_module()
    off = [ca.sumsqr(R) - 3.0, ca.dot(R[0, :].T, ca.cross(R[1, :].T, R[2, :].T)) - 1.0]
    return [(x / NOT_A_ROTATION) ** 2 for x in off]


def _turned_by(axes: list[int], local: bool) -> Callable[[SX], list[SX]]:
    """As control/tasks/orientation_error.py; the length of the quaternion cancels out."""
    ca = casadi_module()
    if len(axes) == 3:

        def of_all(D: SX) -> list[SX]:
            w, *x = _quaternion(D)
            e = _rotation_vector(w, x)
            return [e[i] for i in axes]

        return of_all
    if len(axes) == 1:

        def twist(D: SX) -> list[SX]:
            found = _quaternion(D)
            return [2.0 * ca.atan2(found[1 + axes[0]], found[0])]

        return twist
    (k,) = {0, 1, 2} - set(axes)
    side = 1.0 if local else -1.0

    def swing(D: SX) -> list[SX]:
        w, *x = _quaternion(D)
        n = ca.sqrt(w * w + x[k] * x[k])
        c = ca.if_else(n > 0.0, w / n, 1.0)
        s = ca.if_else(n > 0.0, x[k] / n, 0.0)
        i, j = (k + 1) % 3, (k + 2) % 3
        y = [ca.SX(0.0)] * 3
        y[i] = c * x[i] - side * s * x[j]
        y[j] = c * x[j] + side * s * x[i]
        e = _rotation_vector(n, y)
        return [e[i] for i in axes]

    return swing


def _rotation_vector(w: SX, x: list[SX]) -> list[SX]:
    ca = casadi_module()
    n = ca.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    per = ca.if_else(n > 0.0, 2.0 * ca.atan2(n, w) / n, 0.0)
    return [per * x[0], per * x[1], per * x[2]]


def _quaternion(R: SX) -> list[SX]:
    """Along (w, x, y, z) of a rotation matrix, w >= 0, of a length from 1 to 2.

    The rows of 4 q q' are all along q; that of an entry which is large enough is taken.
    """
    ca = casadi_module()
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = ([R[i, j] for j in range(3)] for i in range(3))
    trace = xx + yy + zz
    turn, across = [zy - yz, xz - zx, yx - xy], [yz + zy, xz + zx, xy + yx]
    rows = [
        [1.0 + trace, *turn],
        [turn[0], 1.0 + xx - yy - zz, across[2], across[1]],
        [turn[1], across[2], 1.0 + yy - xx - zz, across[0]],
        [turn[2], across[1], across[0], 1.0 + zz - xx - yy],
    ]
    along_x, along_y = ca.logic_and(xx >= yy, xx >= zz), yy >= zz
    found = [
        ca.if_else(
            trace > 0.0, first, ca.if_else(along_x, second, ca.if_else(along_y, third, fourth))
        )
        for first, second, third, fourth in zip(*rows, strict=True)
    ]
    sign = ca.if_else(found[0] >= 0.0, 1.0, -1.0)
    return [sign * x for x in found]
