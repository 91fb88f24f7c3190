"""How a grid is filled: from point to neighbour, on one branch, in a fixed order.

1. The point nearest to the start; from there along the first axis, both ways.
2. From each point found, along the next axis; and so on. A line is an item of a sweep, and depends
   on the point that it begins at alone: so who works does not change the result.
3. What lines did not reach is tried from neighbours that were, round by round.
4. All this ends at limits of positions, and a point beyond them is tried from other sides too: the
   same place may be a turn away. What is left is then sought past the limits.
5. Neighbours that were reached on different ways are compared: to first order, and where that does
   not tell, by going from one to the other.
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


MAP_STARTS = 20  # a count
"""So many points of a grid are tried as the first one, the nearest to the start first."""

MAP_ALIKE, MAP_SAME = 0.3, 1e-6  # a share; scaled
"""Neighbours are on one branch where the way between them is that of the slope to within the first;
and configurations are the same to within the second."""


Index = tuple[int, ...]


class GridLine(NamedTuple):
    """To be gone from a point along an axis, both ways, up to both ends; no way goes on from a
    point beyond limits of positions, but where it may: `past`."""

    axis: int
    at: Index
    q: Vector
    ends: tuple[int, int]
    past: bool


class GridPoint(NamedTuple):
    """A point to be reached from one of some configurations."""

    at: Index
    starts: tuple[Vector, ...]


class NeighbourPairs(NamedTuple):
    """Neighbours that may be on different branches: of each both indices and configurations."""

    pairs: tuple[tuple[Index, Vector, Index, Vector], ...]


@dataclass(frozen=True, eq=False)
class GridWorker:
    """What is done for an item; it is sent to each worker once."""

    request: MapRequest
    axes: tuple[GridAxis, ...]
    part: Partition

    def __call__(self, item: Any) -> Any:
        if isinstance(item, GridLine):
            return self._line(item)
        if isinstance(item, GridPoint):
            return self._one(item)
        return [self._apart(*pair) for pair in item.pairs]

    def spot(self, q: Vector) -> PartitionedConfiguration:
        """A configuration with a partition that is good there."""
        mech = self.request.chart.mech
        return PartitionedConfiguration(
            q, repartitioned(mech, self.part, q, np.zeros(mech.nv), self.request.t)
        )

    def _line(self, line: GridLine) -> list[tuple[Index, Index, MapPoint | str]]:
        """Where each step began, where to, and what is there."""
        found = list[tuple[Index, Index, MapPoint | str]]()
        for way, end in zip((-1, 1), line.ends, strict=True):
            here, near = self.spot(line.q), line.at
            for i in range(line.at[line.axis] + way, end + way, way):
                index = (*line.at[: line.axis], i, *line.at[line.axis + 1 :])
                there = self.step(here, index)
                point = there if isinstance(there, str) else self.point(there, index)
                found.append((near, index, point))
                if isinstance(there, str) or isinstance(point, str):
                    break
                if point.beyond and not line.past:
                    break
                here, near = there, index
        return found

    def _one(self, one: GridPoint) -> list[tuple[int, MapPoint | str]]:
        """What one start after the other leads to, up to a point within limits of positions."""
        found = list[tuple[int, MapPoint | str]]()
        for k, q in enumerate(one.starts):
            there = self.step(self.spot(q), one.at)
            found.append((k, there if isinstance(there, str) else self.point(there, one.at)))
            point = found[-1][1]
            if isinstance(point, MapPoint) and not point.beyond:
                break
        return found

    def step(self, here: PartitionedConfiguration, index: Index) -> PartitionedConfiguration | str:
        """The spot of a point, from a neighbour; or why not."""
        chart = self.request.chart
        try:
            found = reached(chart.mech, self.request.t, here, chart.at(self._values(index)))
        except HoloctlError as error:
            return str(error)
        if isinstance(found, PathEnd):
            return f"out of reach: {found.share:.0%} of the way there {found.why}"
        return found

    def point(self, spot: PartitionedConfiguration, index: Index) -> MapPoint:
        """What is to be told of a spot."""
        chart = self.request.chart
        kin, _ = constraint_rows(chart.mech, spot.q, np.zeros(chart.mech.nv), self.request.t)
        D = chart.at(self._values(index))(kin)[1] * chart.mech.column_scale
        return point_at(self.request, spot, D)

    def _values(self, index: Index) -> list[float]:
        return [float(axis.values[i]) for axis, i in zip(self.axes, index, strict=True)]

    def _apart(self, one: Index, q: Vector, other: Index, x: Vector) -> str:
        """Why two neighbours are not on one branch; empty where they are, and where no way leads
        from one to the other."""
        mech, t = self.request.chart.mech, self.request.t
        c, spot = mech.column_scale, self.spot(q)
        kin, rows = constraint_rows(mech, q, np.zeros(mech.nv), t)
        r, D = self.request.chart.at(self._values(other))(kin)
        kept = spot.part.rows
        G = mech.row_scale[kept, None] * rows.jacobian[kept] * c
        ahead = least_squares(np.vstack([G, D * c]), np.concatenate([np.zeros(kept.size), -r]))
        way = pin.difference(mech.model, q, x) / c
        if largest(way - ahead) <= MAP_ALIKE * largest(ahead) + MAP_SAME:
            return ""
        there = self.step(spot, other)
        if isinstance(there, str):
            x, there = q, self.step(self.spot(x), one)
        if isinstance(there, str):
            return ""
        off = pin.difference(mech.model, there.q, x)
        if largest(off / c) <= MAP_SAME:
            return ""
        turns = 2.0 * np.pi * np.round(off / (2.0 * np.pi))
        by_turns = largest(off - turns) <= MAP_SAME
        return "whole turns apart from" if by_turns else "on another branch than"

    def nearest(self, q: Vector) -> list[Index]:
        """Some points of the grid, the nearest to a configuration first, axis by axis."""
        chart = self.request.chart
        kin, _ = constraint_rows(chart.mech, q, np.zeros(chart.mech.nv), self.request.t)
        row_of = {row.axis: i for i, row in enumerate(chart.rows) if row.axis >= 0}
        far = np.zeros(())
        for k, axis in enumerate(self.axes):
            off = np.zeros(axis.values.size)
            for i in range(off.size):
                index = [0] * len(self.axes)
                index[k] = i
                off[i] = chart.at(self._values(tuple(index)))(kin)[0][row_of[k]] ** 2
            far = far[..., None] + off
        order = np.argsort(far, axis=None, kind="stable")[:MAP_STARTS]
        return [tuple(int(i) for i in np.unravel_index(flat, far.shape)) for flat in order]


MAP_PAIRS = 50  # a count
"""Pairs that are compared in one item."""


Run = Callable[[Sequence[Any]], list[Any]]
"""Calls a `GridWorker` for each of some items; what fails is its error."""


@dataclass(eq=False)
class Filled:
    """What is known of each point of the grid.

    Attributes
    ----------
    shape : tuple of int
    points : dict of index to MapPoint
    why : dict of index to str
        Why a point was not reached.
    apart : dict of index to str
        What is to be said of its branch.
    past : set of index
        Points that were reached past limits of positions only.
    begun : index or None
        Where the map began.
    tried, told : set of (index, index)
        Ways from a point to a neighbour: those that were tried; and those of which it is known
        that they led there, or that they ended before.
    """

    shape: Index
    points: dict[Index, MapPoint] = field(default_factory=dict)
    why: dict[Index, str] = field(default_factory=dict)
    apart: dict[Index, str] = field(default_factory=dict)
    past: set[Index] = field(default_factory=set)
    begun: Index | None = None
    tried: set[tuple[Index, Index]] = field(default_factory=set)
    told: set[tuple[Index, Index]] = field(default_factory=set)

    def note(self, near: Index, index: Index, there: MapPoint | str) -> bool:
        """Take what a way led to; whether it is a point that is better than what was known."""
        self.tried.add((near, index))
        if isinstance(there, str):
            self.why.setdefault(index, there)
            self.told.add((near, index))
            return False
        known = self.points.get(index)
        if known is not None and (there.beyond or not known.beyond):
            return False
        self.points[index] = there
        for n in _neighbours(index, self.shape):  # of what was known there
            self.told -= {(n, index), (index, n)}
        self.told.add((near, index))
        return True


def filled(worker: GridWorker, start: Vector, run: Run) -> Filled:
    """All points of the grid that are reached from the start."""
    found = Filled(tuple(axis.values.size for axis in worker.axes))
    _begin(worker, start, found)
    if found.begun is None:
        return found
    for past in (False, True):
        within = _within(found)
        _spread(found, run, past)
        if past:
            found.past = _within(found) - within
    _compare(found, run)
    return found


def _within(found: Filled) -> set[Index]:
    return {index for index, point in found.points.items() if not point.beyond}


def _begin(worker: GridWorker, start: Vector, found: Filled) -> None:
    """The first point: the nearest to the start that is reached from there, within limits."""
    here, why = worker.spot(start), ""
    for index in worker.nearest(start):
        there = worker.step(here, index)
        if isinstance(there, str):
            why = why or there
            continue
        point = worker.point(there, index)
        if found.begun is None or not point.beyond:
            found.begun, found.points = index, {index: point}
        if not point.beyond:
            return
    if found.begun is None:
        for index in product(*map(range, found.shape)):
            found.why[index] = f"from the start, {why}"


def _spread(found: Filled, run: Run, past: bool) -> None:
    """From the points that are known to all that are reached; `past`: past limits too."""
    for axis in range(len(found.shape)):
        lines = [
            GridLine(axis, index, point.q, _ends(found, index, axis), past)
            for index, point in sorted(found.points.items())
            if past or not point.beyond
        ]
        lines = [x for x in lines if x.ends != (x.at[axis], x.at[axis])]
        for line, result in zip(lines, run(lines), strict=True):
            if isinstance(result, Exception):
                _blame(found, line, result)
                continue
            for near, index, there in result:
                found.note(near, index, there)
    while _round(found, run, past):
        pass


def _ends(found: Filled, at: Index, axis: int) -> tuple[int, int]:
    """How far a line goes, both ways: up to what is known, or was tried from there."""
    ends = list[int]()
    for way in (-1, 1):
        i, tried = at[axis], (at, _beside(at, axis, at[axis] + way)) in found.tried
        while not tried and 0 <= i + way < found.shape[axis]:
            if _beside(at, axis, i + way) in found.points:
                break
            i += way
        ends.append(i)
    return ends[0], ends[1]


def _blame(found: Filled, line: GridLine, error: Exception) -> None:
    """A line that was lost, or raised what is none of ours."""
    for i in range(line.ends[0], line.ends[1] + 1):
        index = _beside(line.at, line.axis, i)
        if index not in found.points:
            found.why[index] = f"{type(error).__name__}: {error}"


def _round(found: Filled, run: Run, past: bool) -> bool:
    """Try points beside those that were reached, from there; whether that found some."""
    items, ways = list[GridPoint](), list[list[Index]]()
    for index in product(*map(range, found.shape)):
        known = found.points.get(index)
        if known is not None and (past or not known.beyond):
            continue
        near = [n for n in _neighbours(index, found.shape) if n in found.points]
        near = [n for n in near if past or not found.points[n].beyond]
        near = [n for n in near if (n, index) not in found.tried]
        if near:
            found.tried.update((n, index) for n in near)
            items.append(GridPoint(index, tuple(found.points[n].q for n in near)))
            ways.append(near)
    more = False
    for item, near, result in zip(items, ways, run(items), strict=True):
        lost = isinstance(result, Exception)
        for k, there in [(0, f"{type(result).__name__}: {result}")] if lost else result:
            more |= found.note(near[k], item.at, there)
    return more


def _compare(found: Filled, run: Run) -> None:
    """Note neighbours that are on different branches."""
    there = _within(found)
    pairs = [
        (one, found.points[one].q, other, found.points[other].q)
        for one in sorted(there)
        for other in _neighbours(one, found.shape)
        if one < other and other in there
        if (one, other) not in found.told and (other, one) not in found.told
    ]
    items = [
        NeighbourPairs(tuple(pairs[i : i + MAP_PAIRS])) for i in range(0, len(pairs), MAP_PAIRS)
    ]
    for item, said in zip(items, run(items), strict=True):
        lost = isinstance(said, Exception)
        for pair, words in zip(
            item.pairs, ["perhaps on another branch than"] * len(item.pairs) if lost else said,
            strict=True,
        ):  # fmt: skip
            if words:
                one, other = pair[0], pair[2]
                found.apart.setdefault(other, f"{words} its neighbour {one}")
                found.apart.setdefault(one, f"{words} its neighbour {other}")


def _neighbours(index: Index, shape: Index) -> list[Index]:
    found = list[Index]()
    for axis, size in enumerate(shape):
        for i in (index[axis] - 1, index[axis] + 1):
            if 0 <= i < size:
                found.append(_beside(index, axis, i))
    return found


def _beside(index: Index, axis: int, i: int) -> Index:
    return (*index[:axis], i, *index[axis + 1 :])
