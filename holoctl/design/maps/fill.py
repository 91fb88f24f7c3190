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
from typing import Any

from holoctl.base.checks import Vector
from holoctl.design.maps.numbers import Point
from holoctl.design.maps.worker import Index, Line, NeighbourPairs, One, Worker

__all__ = ["Filled", "filled"]

MAP_PAIRS = 50  # a count
"""Pairs that are compared in one item."""


Run = Callable[[Sequence[Any]], list[Any]]
"""Calls a `Worker` for each of some items; what fails is its error."""


@dataclass(eq=False)
class Filled:
    """What is known of each point of the grid.

    Attributes
    ----------
    shape : tuple of int
    points : dict of index to Point
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
    points: dict[Index, Point] = field(default_factory=dict)
    why: dict[Index, str] = field(default_factory=dict)
    apart: dict[Index, str] = field(default_factory=dict)
    past: set[Index] = field(default_factory=set)
    begun: Index | None = None
    tried: set[tuple[Index, Index]] = field(default_factory=set)
    told: set[tuple[Index, Index]] = field(default_factory=set)

    def note(self, near: Index, index: Index, there: Point | str) -> bool:
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


def filled(worker: Worker, start: Vector, run: Run) -> Filled:
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


def _begin(worker: Worker, start: Vector, found: Filled) -> None:
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
            Line(axis, index, point.q, _ends(found, index, axis), past)
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


def _blame(found: Filled, line: Line, error: Exception) -> None:
    """A line that was lost, or raised what is none of ours."""
    for i in range(line.ends[0], line.ends[1] + 1):
        index = _beside(line.at, line.axis, i)
        if index not in found.points:
            found.why[index] = f"{type(error).__name__}: {error}"


def _round(found: Filled, run: Run, past: bool) -> bool:
    """Try points beside those that were reached, from there; whether that found some."""
    items, ways = list[One](), list[list[Index]]()
    for index in product(*map(range, found.shape)):
        known = found.points.get(index)
        if known is not None and (past or not known.beyond):
            continue
        near = [n for n in _neighbours(index, found.shape) if n in found.points]
        near = [n for n in near if past or not found.points[n].beyond]
        near = [n for n in near if (n, index) not in found.tried]
        if near:
            found.tried.update((n, index) for n in near)
            items.append(One(index, tuple(found.points[n].q for n in near)))
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
