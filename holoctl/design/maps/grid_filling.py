"""The order in which a grid is filled: from point to neighbour, on one branch.

1. The point nearest to the start; from there along the first axis, in both directions.
2. From each point found, along the next axis; and so on. A line is an item of a sweep, and depends
   only on the point at which it begins, so the result does not depend on the workers.
3. Points that no line reached are tried from neighbours that were reached, in rounds.
4. Steps 2 and 3 stop at limits of positions; a point beyond them is tried from other sides too, as
   the same place may be reached with joints a turn away. They are then repeated past the limits.
5. Neighbours that were not reached from one another are compared: to first order, and if that does
   not decide, by a continuation from one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.base.errors import HoloctlError
from holoctl.base.linalg import largest, least_squares
from holoctl.design.maps.grid_coordinates import GridAxis
from holoctl.design.maps.neighbour_continuation import PartitionedConfiguration, PathEnd, reached
from holoctl.design.maps.point_quantities import MapPoint, MapRequest, point_at
from holoctl.projector.partition import Partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.evaluate import constraint_rows

__all__ = ["Filled", "GridLine", "GridPoint", "GridWorker", "Index", "NeighbourPairs", "filled"]


MAP_STARTS = 20
"""Number of points of a grid that are tried as the first one, the nearest to the start first."""

MAP_ALIKE = 0.3
"""Neighbours are on one branch if the step between them differs from the linear prediction by at
most this share of it."""

MAP_SAME = 1e-6  # scaled
"""Configurations are equal if they differ by at most this."""


Index = tuple[int, ...]


class PointFailure(NamedTuple):
    """Why a point of the grid was not reached, in words."""

    reason: str


class GridLine(NamedTuple):
    """A line of points to be reached from the point `at`, with configuration q, along an axis in
    both directions up to `ends`. It continues from points beyond limits of positions if
    `past_limits`."""

    axis: int
    at: Index
    q: Vector
    ends: tuple[int, int]
    past_limits: bool


class GridPoint(NamedTuple):
    """A point to be reached from one of several configurations."""

    at: Index
    starts: tuple[Vector, ...]


class NeighbourPairs(NamedTuple):
    """Neighbours that may be on different branches: index and configuration of each."""

    pairs: tuple[tuple[Index, Vector, Index, Vector], ...]


@dataclass(frozen=True, eq=False)
class GridWorker:
    """Evaluates an item (a line, a point or pairs) of the grid; it is sent to each worker once."""

    request: MapRequest
    axes: tuple[GridAxis, ...]
    part: Partition

    def __call__(self, item: Any) -> Any:
        if isinstance(item, GridLine):
            return self._line(item)
        if isinstance(item, GridPoint):
            return self._one(item)
        return [self._branch_remark(*pair) for pair in item.pairs]

    def partitioned(self, q: Vector) -> PartitionedConfiguration:
        """A configuration with a partition that is well-conditioned there."""
        mech = self.request.chart.mech
        return PartitionedConfiguration(
            q, repartitioned(mech, self.part, q, np.zeros(mech.nv), self.request.t)
        )

    def _line(self, line: GridLine) -> list[tuple[Index, Index, MapPoint | PointFailure]]:
        """For each step: the index of its start, that of its goal, and the result."""
        found = list[tuple[Index, Index, MapPoint | PointFailure]]()
        for direction, end in zip((-1, 1), line.ends, strict=True):
            here, near = self.partitioned(line.q), line.at
            for i in range(line.at[line.axis] + direction, end + direction, direction):
                index = _on_axis(line.at, line.axis, i)
                there = self.step(here, index)
                if isinstance(there, PointFailure):
                    found.append((near, index, there))
                    break
                point = self.point(there, index)
                found.append((near, index, point))
                if point.beyond and not line.past_limits:
                    break
                here, near = there, index
        return found

    def _one(self, one: GridPoint) -> list[tuple[int, MapPoint | PointFailure]]:
        """The index of each start and the result from there, up to a point within limits of
        positions."""
        found = list[tuple[int, MapPoint | PointFailure]]()
        for k, q in enumerate(one.starts):
            there = self.step(self.partitioned(q), one.at)
            if isinstance(there, PointFailure):
                found.append((k, there))
                continue
            point = self.point(there, one.at)
            found.append((k, point))
            if not point.beyond:
                break
        return found

    def step(
        self, here: PartitionedConfiguration, index: Index
    ) -> PartitionedConfiguration | PointFailure:
        """The configuration at a point of the grid, reached from a neighbour."""
        chart = self.request.chart
        try:
            found = reached(chart.mech, self.request.t, here, chart.at(self._values(index)))
        except HoloctlError as error:
            return PointFailure(str(error))
        if isinstance(found, PathEnd):
            return PointFailure(f"out of reach: {found.share:.0%} of the way there {found.why}")
        return found

    def point(self, at: PartitionedConfiguration, index: Index) -> MapPoint:
        """The quantities of the map at a configuration."""
        chart = self.request.chart
        kin, _ = constraint_rows(chart.mech, at.q, np.zeros(chart.mech.nv), self.request.t)
        D = chart.at(self._values(index))(kin)[1] * chart.mech.column_scale
        return point_at(self.request, at, D)

    def _values(self, index: Index) -> list[float]:
        return [float(axis.values[i]) for axis, i in zip(self.axes, index, strict=True)]

    def _branch_remark(self, one: Index, q: Vector, other: Index, x: Vector) -> str:
        """How two neighbours differ if they are on different branches; empty if they are on one, or
        if no continuation leads from one to the other."""
        mech, t = self.request.chart.mech, self.request.t
        c, here = mech.column_scale, self.partitioned(q)
        kin, rows = constraint_rows(mech, q, np.zeros(mech.nv), t)
        r, D = self.request.chart.at(self._values(other))(kin)
        kept = here.part.rows
        G = mech.row_scale[kept, None] * rows.jacobian[kept] * c
        expected = least_squares(np.vstack([G, D * c]), np.concatenate([np.zeros(kept.size), -r]))
        step = pin.difference(mech.model, q, x) / c
        if largest(step - expected) <= MAP_ALIKE * largest(expected) + MAP_SAME:
            return ""
        there = self.step(here, other)
        if isinstance(there, PointFailure):
            x, there = q, self.step(self.partitioned(x), one)
        if isinstance(there, PointFailure):
            return ""
        difference = pin.difference(mech.model, there.q, x)
        if largest(difference / c) <= MAP_SAME:
            return ""
        turns = 2.0 * np.pi * np.round(difference / (2.0 * np.pi))
        by_turns = largest(difference - turns) <= MAP_SAME
        return "whole turns apart from" if by_turns else "on another branch than"

    def nearest(self, q: Vector) -> list[Index]:
        """The `MAP_STARTS` points of the grid nearest to a configuration, the nearest first."""
        chart = self.request.chart
        kin, _ = constraint_rows(chart.mech, q, np.zeros(chart.mech.nv), self.request.t)
        row_of = {row.axis: i for i, row in enumerate(chart.rows) if row.axis >= 0}
        distance = np.zeros(())
        for k, axis in enumerate(self.axes):
            along = np.zeros(axis.values.size)
            for i in range(along.size):
                index = [0] * len(self.axes)
                index[k] = i
                along[i] = chart.at(self._values(tuple(index)))(kin)[0][row_of[k]] ** 2
            distance = distance[..., None] + along
        order = np.argsort(distance, axis=None, kind="stable")[:MAP_STARTS]
        return [tuple(int(i) for i in np.unravel_index(flat, distance.shape)) for flat in order]


MAP_PAIRS = 50
"""Number of pairs that are compared in one item."""


Run = Callable[[Sequence[Any]], list[Any]]
"""Calls a `GridWorker` for each of some items; the result of an item that fails is its error."""


@dataclass(eq=False)
class Filled:
    """The results at the points of a grid so far.

    Attributes
    ----------
    shape : tuple of int
    points : dict of index to MapPoint
        The points that were reached.
    reasons : dict of index to str
        Why a point was not reached.
    branch_remarks : dict of index to str
        Remarks about points on another branch than a neighbour.
    past_limits : set of index
        Points that were reached past limits of positions only.
    origin : index or None
        The first point of the map.
    tried : set of (index, index)
        Steps from a point to a neighbour that were tried.
    settled : set of (index, index)
        Steps whose result is that in `points`, or a failure.
    """

    shape: Index
    points: dict[Index, MapPoint] = field(default_factory=dict)
    reasons: dict[Index, str] = field(default_factory=dict)
    branch_remarks: dict[Index, str] = field(default_factory=dict)
    past_limits: set[Index] = field(default_factory=set)
    origin: Index | None = None
    tried: set[tuple[Index, Index]] = field(default_factory=set)
    settled: set[tuple[Index, Index]] = field(default_factory=set)

    def record(self, near: Index, index: Index, there: MapPoint | PointFailure) -> bool:
        """Record the result of a step; True if it is a point that is better than the known one."""
        self.tried.add((near, index))
        if isinstance(there, PointFailure):
            self.reasons.setdefault(index, there.reason)
            self.settled.add((near, index))
            return False
        known = self.points.get(index)
        if known is not None and (there.beyond or not known.beyond):
            return False
        self.points[index] = there
        for n in _neighbours(index, self.shape):  # steps from and to the replaced point
            self.settled -= {(n, index), (index, n)}
        self.settled.add((near, index))
        return True


def filled(worker: GridWorker, start: Vector, run: Run) -> Filled:
    """All points of the grid that are reached from the start."""
    found = Filled(tuple(axis.values.size for axis in worker.axes))
    _set_origin(worker, start, found)
    if found.origin is None:
        return found
    for past_limits in (False, True):
        within = _within(found)
        _spread(found, run, past_limits)
        if past_limits:
            found.past_limits = _within(found) - within
    _compare(found, run)
    return found


def _within(found: Filled) -> set[Index]:
    return {index for index, point in found.points.items() if not point.beyond}


def _set_origin(worker: GridWorker, start: Vector, found: Filled) -> None:
    """Set the first point: the nearest to the start that is reached from it, if possible within
    limits of positions."""
    here, reason = worker.partitioned(start), ""
    for index in worker.nearest(start):
        there = worker.step(here, index)
        if isinstance(there, PointFailure):
            reason = reason or there.reason
            continue
        point = worker.point(there, index)
        if found.origin is None or not point.beyond:
            found.origin, found.points = index, {index: point}
        if not point.beyond:
            return
    if found.origin is None:
        for index in product(*map(range, found.shape)):
            found.reasons[index] = f"from the start, {reason}"


def _spread(found: Filled, run: Run, past_limits: bool) -> None:
    """Continue from the known points to all that can be reached, by lines and then in rounds."""
    for axis in range(len(found.shape)):
        lines = [
            GridLine(axis, index, point.q, _ends(found, index, axis), past_limits)
            for index, point in sorted(found.points.items())
            if past_limits or not point.beyond
        ]
        lines = [x for x in lines if x.ends != (x.at[axis], x.at[axis])]
        for line, result in zip(lines, run(lines), strict=True):
            if isinstance(result, Exception):
                _line_failed(found, line, result)
                continue
            for near, index, there in result:
                found.record(near, index, there)
    while _round(found, run, past_limits):
        pass


def _ends(found: Filled, at: Index, axis: int) -> tuple[int, int]:
    """The ends of a line in both directions: before a known point, or its start if the first step
    was tried already."""
    ends = list[int]()
    for direction in (-1, 1):
        i, tried = at[axis], (at, _on_axis(at, axis, at[axis] + direction)) in found.tried
        while not tried and 0 <= i + direction < found.shape[axis]:
            if _on_axis(at, axis, i + direction) in found.points:
                break
            i += direction
        ends.append(i)
    return ends[0], ends[1]


def _line_failed(found: Filled, line: GridLine, error: Exception) -> None:
    """Record the error of a line whose worker ended or raised an error of another library."""
    for i in range(line.ends[0], line.ends[1] + 1):
        index = _on_axis(line.at, line.axis, i)
        if index not in found.points:
            found.reasons[index] = f"{type(error).__name__}: {error}"


def _round(found: Filled, run: Run, past_limits: bool) -> bool:
    """Try points next to those that were reached, from there; True if some were found."""
    items, starts = list[GridPoint](), list[list[Index]]()
    for index in product(*map(range, found.shape)):
        known = found.points.get(index)
        if known is not None and (past_limits or not known.beyond):
            continue
        near = [n for n in _neighbours(index, found.shape) if n in found.points]
        near = [n for n in near if past_limits or not found.points[n].beyond]
        near = [n for n in near if (n, index) not in found.tried]
        if near:
            found.tried.update((n, index) for n in near)
            items.append(GridPoint(index, tuple(found.points[n].q for n in near)))
            starts.append(near)
    more = False
    for item, near, result in zip(items, starts, run(items), strict=True):
        if isinstance(result, Exception):
            failure = PointFailure(f"{type(result).__name__}: {result}")
            found.record(near[0], item.at, failure)
            continue
        for k, there in result:
            more |= found.record(near[k], item.at, there)
    return more


def _compare(found: Filled, run: Run) -> None:
    """Record remarks for neighbours that are on different branches."""
    there = _within(found)
    pairs = [
        (one, found.points[one].q, other, found.points[other].q)
        for one in sorted(there)
        for other in _neighbours(one, found.shape)
        if one < other and other in there
        if (one, other) not in found.settled and (other, one) not in found.settled
    ]
    items = [
        NeighbourPairs(tuple(pairs[i : i + MAP_PAIRS])) for i in range(0, len(pairs), MAP_PAIRS)
    ]
    for item, result in zip(items, run(items), strict=True):
        failed = isinstance(result, Exception)
        remarks = ["perhaps on another branch than"] * len(item.pairs) if failed else result
        for (one, _, other, _), remark in zip(item.pairs, remarks, strict=True):
            if remark:
                found.branch_remarks.setdefault(other, f"{remark} its neighbour {one}")
                found.branch_remarks.setdefault(one, f"{remark} its neighbour {other}")


def _neighbours(index: Index, shape: Index) -> list[Index]:
    found = list[Index]()
    for axis, size in enumerate(shape):
        for i in (index[axis] - 1, index[axis] + 1):
            if 0 <= i < size:
                found.append(_on_axis(index, axis, i))
    return found


def _on_axis(index: Index, axis: int, i: int) -> Index:
    """The index with entry i for an axis."""
    return (*index[:axis], i, *index[axis + 1 :])
