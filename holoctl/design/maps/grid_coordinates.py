"""The coordinates of a grid: coordinates of joints or rows of a task, and held coordinates.

    r(q) = s(q) - x        vanishes if the mechanism is at the point x of the grid

scaled: rad, and m over a length. The constraints and r = 0 together leave the mechanism idle
motions only: bodies that spin between two joints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, listing, name_list, numbers, plain_name, read_only
from holoctl.base.errors import InputError
from holoctl.base.linalg import null_space_by_svd
from holoctl.base.tolerances import UNSEEN_MOTION
from holoctl.closing.idle.basis import idle_basis
from holoctl.closing.rank import rank_within, scaled_jacobian
from holoctl.control.reach.targets import Target
from holoctl.control.tasks.frame_task import BoundFrameTask
from holoctl.control.tasks.task_protocol import BoundTask
from holoctl.control.tasks.task_terms import bound_to
from holoctl.estimation.measurement_model import MeasurementModel, measurement_model
from holoctl.estimation.observability import moved_by, observability_of
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.tree.kinematics import Kinematics

__all__ = ["GridAxis", "GridRow", "MapChart", "Rows", "chart_of", "lengths_of"]

Rows = Callable[[Kinematics], tuple[Vector, Array]]
_LETTERS = "xyz"


class GridAxis(NamedTuple):
    """One direction of a grid: its name, its unit, and its values (n,)."""

    name: str
    unit: str
    values: Vector


class GridRow(NamedTuple):
    """A coordinate of the chart: an axis of the grid, or a constant.

    Attributes
    ----------
    name : str
    axis : int
        Index of the axis of the grid; -1 for a constant.
    value : float
        The constant; not used for an axis.
    """

    name: str
    axis: int
    value: float


@dataclass(frozen=True, eq=False)
class MapChart:
    """The coordinates of a grid, of a mechanism.

    The task and the sensors bound to the mechanism are made when first used, once in each process.

    Attributes
    ----------
    mech : Mechanism
    start : (nq,) array
        The configuration that gives held coordinates their values.
    task : Task or None
        Its rows are the first coordinates of the chart; None: these are coordinates of joints.
    rows : tuple of GridRow
    held : tuple of str
        Coordinates that keep their values at the start.
    """

    mech: Mechanism
    start: Vector
    task: Any
    rows: tuple[GridRow, ...]
    held: tuple[str, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return MapChart, (self.mech, self.start, self.task, self.rows, self.held)

    @cached_property
    def bound(self) -> BoundTask | None:
        """The task bound to the mechanism."""
        return None if self.task is None else bound_to(self.mech, self.task)

    @cached_property
    def sensors(self) -> MeasurementModel | None:
        """The coordinates of joints in the grid (if it has no task), and the held ones."""
        names = [*(() if self.task is not None else (row.name for row in self.rows)), *self.held]
        try:
            return measurement_model(self.mech, names) if names else None
        except InputError as error:
            text = str(error).replace(f"{self.mech.name}: measured", "motor_map: grid or locked", 1)
            raise InputError(text) from None

    @property
    def base(self) -> str:
        """A floating base that neither grid nor locked names, so that it is not held; or ``""``."""
        names = (*(row.name for row in self.rows), *self.held)
        first = "" if self.sensors is None else self.sensors.names[0]
        return "" if first in names else first

    @cached_property
    def _beginning(self) -> Vector:
        return np.zeros(0) if self.sensors is None else self.sensors.at(self.start)

    def at(self, point: Sequence[float]) -> Rows:
        """r and its derivative by steps of q, for a point of the grid."""
        x = np.array([row.value if row.axis < 0 else point[row.axis] for row in self.rows])
        parts = list[Rows]()
        if self.task is not None:
            parts.append(self._of_task(x))
        if self.sensors is not None:
            wanted = self._beginning.copy()
            if self.task is None:
                first = 7 if self.sensors.names[0] != self.rows[0].name else 0  # after a base
                wanted[first : first + x.size] = x
            parts.append(_of_sensors(self.sensors, wanted, self.base))
        if len(parts) == 1:
            return parts[0]

        def both(kin: Kinematics) -> tuple[Vector, Array]:
            one, two = parts[0](kin), parts[1](kin)
            return np.append(one[0], two[0]), np.vstack([one[1], two[1]])

        return both

    def _of_task(self, x: Vector) -> Rows:
        task = self.bound
        if task is None:
            raise InputError("a chart without a task has no rows of one")
        lengths = lengths_of(task)
        target = Target(None, "", task, task.wanted(_wanted(task, x)), lengths)
        scale = task.scale

        def left(kin: Kinematics) -> tuple[Vector, Array]:
            r, D = target.left(kin)
            return scale * r, scale[:, None] * D

        return left


def lengths_of(task: BoundTask) -> NDArray[np.bool_]:
    """Which rows of a task are lengths; the others are angles or other numbers."""
    if isinstance(task, BoundFrameTask):
        return np.array([axis in _LETTERS for axis in task.axes])
    return np.array([scale != 1.0 for scale in task.scale])


def _wanted(task: BoundTask, x: Vector) -> Any:
    """The reference of a task for values x of its rows; rotations are rotation vectors."""
    if not isinstance(task, BoundFrameTask) or not task.of_poses:
        return x
    place, turn = np.zeros(3), np.zeros(3)
    for axis, value in zip(task.axes, x, strict=True):
        (place if axis in _LETTERS else turn)[_LETTERS.index(axis[-1])] = value
    return pin.SE3(pin.exp3(turn), place)


def _of_sensors(sensors: MeasurementModel, wanted: Vector, base: str) -> Rows:
    differ, unit = sensors.differences(), sensors.unit
    first = 6 if base else 0

    def left(kin: Kinematics) -> tuple[Vector, Array]:
        J = np.zeros((sensors.columns.size, sensors.mech.nv))
        own = np.flatnonzero(sensors.columns >= 0)
        J[own, sensors.columns[own]] = 1.0
        cut = np.zeros(0)
        if sensors.of_cut.size:
            cut, J[sensors.columns < 0] = sensors.cut_values(kin), sensors.cut_jacobian(kin)
        r, D = -differ(kin.q, wanted, cut) / unit, J / unit[:, None]
        return r[first:], D[first:]

    return left


# ------------------------------------------------------------------- the grid of the caller


def chart_of(
    mech: Mechanism, part: Partition, start: Vector, grid: Any, locked: Any, kin: Kinematics
) -> tuple[MapChart, tuple[GridAxis, ...]]:
    """The chart and the axes of a caller's grid, checked at the start.

    Raises
    ------
    InputError
        If `grid` has the wrong type, a name is unknown, or the grid does not determine the motion.
    """
    if isinstance(grid, Mapping):
        task, names, values = None, [plain_name(name) for name in grid], list(grid.values())
    elif isinstance(grid, (tuple, list)) and grid and hasattr(grid[0], "bind"):
        task, values = grid[0], list(grid[1:])
        bound = bound_to(mech, task)
        if getattr(bound, "local", False):
            raise InputError("motor_map: the axes of a grid are fixed; this task is local")
        names = list(bound.labels)
        if len(values) != len(names):
            raise InputError(
                f"motor_map: the task has {len(names)} rows, {listing(names)}; give values for "
                f"each, or one number for a row that stays constant; got {len(values)}"
            )
    else:
        raise InputError(
            "motor_map: grid must be a mapping from coordinates to values, or a tuple of a task "
            f"and the values of its rows, (FrameTask(...), xs, ys); got {type(grid).__name__}"
        )
    rows, found = list[GridRow](), list[tuple[str, Vector]]()
    for name, given in zip(names, values, strict=True):
        x = numbers(f"motor_map: values of {name!r}", given)
        if x.ndim > 1 or not x.size or not np.isfinite(x).all():
            got = f"shape {x.shape}" if x.ndim > 1 or not x.size else f"{x[~np.isfinite(x)][0]}"
            raise InputError(
                f"motor_map: values of {name!r} must be a finite number or an (n,) array of them; "
                f"got {got}"
            )
        if x.ndim == 0:
            rows.append(GridRow(name, -1, float(x)))
            continue
        if x.size > 1 and not ((np.diff(x) > 0.0).all() or (np.diff(x) < 0.0).all()):
            raise InputError(f"motor_map: values of {name!r} must be increasing or decreasing")
        rows.append(GridRow(name, len(found), 0.0))
        found.append((name, x))
    if not found:
        raise InputError("motor_map: no axis of the grid has values: give an array for one or more")
    given_held = () if locked is None else tuple(name_list("motor_map: locked", locked))
    chart = MapChart(mech, start, task, tuple(rows), given_held)
    if task is None and chart.sensors is not None and chart.sensors.turns.size:
        _check_single(chart)
    if task is None and locked is None:
        chart = _with_held(chart, part, kin)
    _check_determined(chart, part, kin)
    return chart, tuple(
        GridAxis(name, _unit(chart, name), read_only(np.array(x))) for name, x in found
    )  # fmt: skip


def _unit(chart: MapChart, name: str) -> str:
    if chart.bound is not None:
        row = list(chart.bound.labels).index(name)
        return "m" if lengths_of(chart.bound)[row] else "rad"
    sensors = chart.sensors
    linear = sensors is not None and sensors.unit[sensors.labels.index(name)] != 1.0
    return "m" if linear else "rad"


def _check_single(chart: MapChart) -> None:
    sensors = chart.sensors
    labels = () if sensors is None else sensors.labels
    for row in chart.rows:
        if row.name not in labels:
            raise InputError(
                f"motor_map: {row.name!r} has several coordinates; name one, such as "
                f"{row.name + '[0]'!r}"
            )


def _seen(chart: MapChart, part: Partition, kin: Kinematics) -> tuple[Array, Array]:
    """An orthonormal basis of the motions at the start, scaled, and the rows of the chart."""
    mech = chart.mech
    G, _ = scaled_jacobian(mech, kin.q, kin.t, part.rows)
    first = [0.0 for row in chart.rows if row.axis >= 0]
    D = chart.at(first)(kin)[1] * mech.column_scale
    return null_space_by_svd(G, part.rank)[3], D


def _with_held(chart: MapChart, part: Partition, kin: Kinematics) -> MapChart:
    """The chart with motors, and if need be other coordinates, held until no motion is left."""
    mech = chart.mech
    T, D = _seen(chart, part, kin)
    rank = rank_within(D @ T, UNSEEN_MOTION)
    motors = [str(name) for name in mech.actuated if not mech.motors.missing]
    others = [mech.coordinate_names[i] for i in part.independent]
    named = {row.name for row in chart.rows}
    for name in dict.fromkeys([*motors, *others, *([chart.base] if chart.base else [])]):
        if rank == T.shape[1]:
            break
        if name in named:
            continue
        try:
            more = replace(chart, held=(*chart.held, name))
            T, D = _seen(more, part, kin)
        except InputError:  # not a single coordinate
            continue
        if rank_within(D @ T, UNSEEN_MOTION) == D.shape[0]:  # each of its rows adds one to the rank
            chart, rank = more, D.shape[0]
    return chart


def _check_determined(chart: MapChart, part: Partition, kin: Kinematics) -> None:
    """Raise `InputError` if rows are dependent, or leave a motion that is not idle."""
    mech = chart.mech
    T, D = _seen(chart, part, kin)
    here = observability_of(T, D)
    names = [*(row.name for row in chart.rows), *chart.held]
    if here.observed.shape[1] < D.shape[0]:
        raise InputError(
            f"motor_map: at the start, {listing(names)} are {D.shape[0]} coordinates of only "
            f"{here.observed.shape[1]} motions: leave some of them out, unless the start is a "
            "singular configuration"
        )
    if not here.unobserved.shape[1]:
        return
    idle = idle_basis(mech, kin.q, kin.t, held=D / mech.column_scale)
    left = here.unobserved - idle @ (idle.T @ here.unobserved)
    if (np.linalg.norm(left, axis=0) > UNSEEN_MOTION).any():
        count = int((np.linalg.norm(left, axis=0) > UNSEEN_MOTION).sum())
        raise InputError(
            f"motor_map: {listing(names)} leave {count} motions open, of "
            f"{'; '.join(moved_by(mech, left[:, np.linalg.norm(left, axis=0) > UNSEEN_MOTION]))}: "
            "lock coordinates by locked=[...], or name more rows, with one number for rows that "
            "stay constant"
        )
