"""How a grid is filled: from point to neighbour, on one branch, in a fixed order.

1. The point nearest to the start; from there along the first axis, both ways.
2. From each point found, along the next axis; and so on. A line is an item of a sweep, and depends
   on the point that it begins at alone: so who works does not change the result.
3. What lines did not reach is tried from neighbours that were, round by round.
4. Neighbours that were reached on different ways are compared: to first order, and where that does
   not tell, by going from one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.errors import HoloctlError
from holoctl.base.linalg import largest, least_squares
from holoctl.base.tolerances import MAP_ALIKE, MAP_PAIRS, MAP_SAME, MAP_STARTS
from holoctl.design.motor_map_chart import GridAxis
from holoctl.design.motor_map_numbers import Asked, Point, point_at
from holoctl.design.motor_map_walk import Spot, Stop, reached
from holoctl.projector.partition import Partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.evaluate import constraint_rows

__all__ = ["Filled", "Worker", "filled"]

Array = NDArray[np.float64]
Index = tuple[int, ...]
Run = Callable[[Sequence[Any]], list[Any]]
"""Calls a `Worker` for each of some items; what fails is its error."""


class _Line(NamedTuple):
    """To be gone from a point along an axis, both ways."""

    axis: int
    at: Index
    q: Vector


class _One(NamedTuple):
    """A point to be reached from one of some configurations."""

    at: Index
    starts: tuple[Vector, ...]


class _Pairs(NamedTuple):
    """Neighbours that may be on different branches: of each both indices and configurations."""

    pairs: tuple[tuple[Index, Vector, Index, Vector], ...]


@dataclass(frozen=True, eq=False)
class Worker:
    """What is done for an item; it is sent to each worker once."""

    asked: Asked
    axes: tuple[GridAxis, ...]
    part: Partition

    def __call__(self, item: Any) -> Any:
        if isinstance(item, _Line):
            return self._line(item)
        if isinstance(item, _One):
            return self._one(item)
        return [self._apart(*pair) for pair in item.pairs]

    def spot(self, q: Vector) -> Spot:
        """A configuration with a partition that is good there."""
        mech = self.asked.chart.mech
        return Spot(q, repartitioned(mech, self.part, q, np.zeros(mech.nv), self.asked.t))

    def _line(self, line: _Line) -> list[tuple[Index, Point | str]]:
        found = list[tuple[Index, Point | str]]()
        for way in (1, -1):
            here, i = self.spot(line.q), line.at[line.axis] + way
            while 0 <= i < self.axes[line.axis].values.size:
                index = (*line.at[: line.axis], i, *line.at[line.axis + 1 :])
                there = self.step(here, index)
                found.append((index, there if isinstance(there, str) else self.point(there, index)))
                if isinstance(there, str):
                    break
                here, i = there, i + way
        return found

    def _one(self, one: _One) -> Point | str:
        why = ""
        for q in one.starts:
            there = self.step(self.spot(q), one.at)
            if isinstance(there, Spot):
                return self.point(there, one.at)
            why = why or there
        return why

    def step(self, here: Spot, index: Index) -> Spot | str:
        """The spot of a point, from a neighbour; or why not."""
        chart = self.asked.chart
        try:
            found = reached(chart.mech, self.asked.t, here, chart.at(self._values(index)))
        except HoloctlError as error:
            return str(error)
        if isinstance(found, Stop):
            return f"out of reach: {found.share:.0%} of the way there {found.why}"
        return found

    def point(self, spot: Spot, index: Index) -> Point:
        """What is to be told of a spot."""
        chart = self.asked.chart
        kin, _ = constraint_rows(chart.mech, spot.q, np.zeros(chart.mech.nv), self.asked.t)
        D = chart.at(self._values(index))(kin)[1] * chart.mech.column_scale
        return point_at(self.asked, spot, D)

    def _values(self, index: Index) -> list[float]:
        return [float(axis.values[i]) for axis, i in zip(self.axes, index, strict=True)]

    def _apart(self, one: Index, q: Vector, other: Index, x: Vector) -> str:
        """Why two neighbours are not, or not known to be, on one branch; empty where they are."""
        mech, t = self.asked.chart.mech, self.asked.t
        c, spot = mech.column_scale, self.spot(q)
        kin, rows = constraint_rows(mech, q, np.zeros(mech.nv), t)
        r, D = self.asked.chart.at(self._values(other))(kin)
        kept = spot.part.rows
        G = mech.row_scale[kept, None] * rows.jacobian[kept] * c
        ahead = least_squares(np.vstack([G, D * c]), np.concatenate([np.zeros(kept.size), -r]))
        way = pin.difference(mech.model, q, x) / c
        if largest(way - ahead) <= MAP_ALIKE * largest(ahead) + MAP_SAME:
            return ""
        there = self.step(spot, other)
        if isinstance(there, str):
            return "perhaps on another branch than"
        off = pin.difference(mech.model, there.q, x)
        if largest(off / c) <= MAP_SAME:
            return ""
        turns = 2.0 * np.pi * np.round(off / (2.0 * np.pi))
        by_turns = largest(off - turns) <= MAP_SAME
        return "whole turns apart from" if by_turns else "on another branch than"

    def nearest(self, q: Vector) -> list[Index]:
        """Some points of the grid, the nearest to a configuration first, axis by axis."""
        chart = self.asked.chart
        kin, _ = constraint_rows(chart.mech, q, np.zeros(chart.mech.nv), self.asked.t)
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


@dataclass(eq=False)
class Filled:
    """What is known of each point of the grid.

    Attributes
    ----------
    points : dict of index to Point
    why : dict of index to str
        Why a point was not reached.
    apart : dict of index to str
        What is to be said of its branch.
    begun : index or None
        Where the map began.
    """

    points: dict[Index, Point] = field(default_factory=dict)
    why: dict[Index, str] = field(default_factory=dict)
    apart: dict[Index, str] = field(default_factory=dict)
    begun: Index | None = None


def filled(worker: Worker, start: Vector, run: Run) -> Filled:
    """All points of the grid that are reached from the start."""
    found, walked = Filled(), set[tuple[Index, Index]]()
    shape = tuple(axis.values.size for axis in worker.axes)
    _begin(worker, start, found)
    if found.begun is None:
        return found
    for axis in range(len(shape)):
        begin = sorted(found.points)
        lines = [_Line(axis, index, found.points[index].q) for index in begin]
        for line, result in zip(lines, run(lines), strict=True):
            before = line.at
            for index, there in [] if isinstance(result, Exception) else result:
                near = line.at if _adjacent(line.at, index) else before
                walked.add((near, index))
                before = index
                _note(found, index, there)
            if isinstance(result, Exception):
                _blame(found, line, shape, result)
    while _round(found, shape, walked, run):
        pass
    _compare(found, shape, walked, run)
    return found


def _begin(worker: Worker, start: Vector, found: Filled) -> None:
    """The first point: the nearest to the start that is reached from there."""
    here, why = worker.spot(start), ""
    for index in worker.nearest(start):
        there = worker.step(here, index)
        if isinstance(there, Spot):
            found.begun = index
            found.points[index] = worker.point(there, index)
            return
        why = why or there
    for index in product(*(range(axis.values.size) for axis in worker.axes)):
        found.why[index] = f"from the start, {why}"


def _note(found: Filled, index: Index, there: Point | str) -> None:
    if isinstance(there, str):
        found.why.setdefault(index, there)
    else:
        found.points[index] = there


def _blame(found: Filled, line: _Line, shape: Index, error: Exception) -> None:
    """A line that was lost, or raised what is none of ours."""
    for i in range(shape[line.axis]):
        index = (*line.at[: line.axis], i, *line.at[line.axis + 1 :])
        if index not in found.points:
            found.why[index] = f"{type(error).__name__}: {error}"


def _round(
    found: Filled, shape: Index, walked: set[tuple[Index, Index]], run: Run
) -> bool:  # fmt: skip
    """Try points beside those that were reached, from there; whether that found some."""
    items = list[_One]()
    for index in product(*map(range, shape)):
        if index in found.points:
            continue
        near = [n for n in _neighbours(index, shape) if n in found.points]
        near = [n for n in near if (n, index) not in walked]
        if near:
            walked.update((n, index) for n in near)
            items.append(_One(index, tuple(found.points[n].q for n in near)))
    more = False
    for item, there in zip(items, run(items), strict=True):
        lost = isinstance(there, Exception)
        _note(found, item.at, f"{type(there).__name__}: {there}" if lost else there)
        more |= isinstance(there, Point)
    return more


def _compare(
    found: Filled, shape: Index, walked: set[tuple[Index, Index]], run: Run
) -> None:  # fmt: skip
    """Note neighbours that are on different branches."""
    pairs = [
        (one, found.points[one].q, other, found.points[other].q)
        for one in sorted(found.points)
        for other in _neighbours(one, shape)
        if one < other and other in found.points
        if (one, other) not in walked and (other, one) not in walked
    ]
    items = [_Pairs(tuple(pairs[i : i + MAP_PAIRS])) for i in range(0, len(pairs), MAP_PAIRS)]
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
                found.append((*index[:axis], i, *index[axis + 1 :]))
    return found


def _adjacent(one: Index, other: Index) -> bool:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1
