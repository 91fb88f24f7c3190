"""What is done for an item of a grid: a line of it, a point, pairs of neighbours.

Each is reached from a configuration that is known, on its branch, and depends on that alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.base.errors import HoloctlError
from holoctl.base.linalg import largest, least_squares
from holoctl.design.maps.chart import GridAxis
from holoctl.design.maps.numbers import Asked, Point, point_at
from holoctl.design.maps.walk import PartitionedSpot, WayEnd, reached
from holoctl.projector.partition import Partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.evaluate import constraint_rows

__all__ = ["Index", "Line", "NeighbourPairs", "One", "Worker"]

MAP_STARTS = 20  # a count
"""So many points of a grid are tried as the first one, the nearest to the start first."""

MAP_ALIKE, MAP_SAME = 0.3, 1e-6  # a share; scaled
"""Neighbours are on one branch where the way between them is that of the slope to within the first;
and configurations are the same to within the second."""


Index = tuple[int, ...]


class Line(NamedTuple):
    """To be gone from a point along an axis, both ways, up to both ends; no way goes on from a
    point beyond limits of positions, but where it may: `past`."""

    axis: int
    at: Index
    q: Vector
    ends: tuple[int, int]
    past: bool


class One(NamedTuple):
    """A point to be reached from one of some configurations."""

    at: Index
    starts: tuple[Vector, ...]


class NeighbourPairs(NamedTuple):
    """Neighbours that may be on different branches: of each both indices and configurations."""

    pairs: tuple[tuple[Index, Vector, Index, Vector], ...]


@dataclass(frozen=True, eq=False)
class Worker:
    """What is done for an item; it is sent to each worker once."""

    asked: Asked
    axes: tuple[GridAxis, ...]
    part: Partition

    def __call__(self, item: Any) -> Any:
        if isinstance(item, Line):
            return self._line(item)
        if isinstance(item, One):
            return self._one(item)
        return [self._apart(*pair) for pair in item.pairs]

    def spot(self, q: Vector) -> PartitionedSpot:
        """A configuration with a partition that is good there."""
        mech = self.asked.chart.mech
        return PartitionedSpot(
            q, repartitioned(mech, self.part, q, np.zeros(mech.nv), self.asked.t)
        )

    def _line(self, line: Line) -> list[tuple[Index, Index, Point | str]]:
        """Where each step began, where to, and what is there."""
        found = list[tuple[Index, Index, Point | str]]()
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

    def _one(self, one: One) -> list[tuple[int, Point | str]]:
        """What one start after the other leads to, up to a point within limits of positions."""
        found = list[tuple[int, Point | str]]()
        for k, q in enumerate(one.starts):
            there = self.step(self.spot(q), one.at)
            found.append((k, there if isinstance(there, str) else self.point(there, one.at)))
            point = found[-1][1]
            if isinstance(point, Point) and not point.beyond:
                break
        return found

    def step(self, here: PartitionedSpot, index: Index) -> PartitionedSpot | str:
        """The spot of a point, from a neighbour; or why not."""
        chart = self.asked.chart
        try:
            found = reached(chart.mech, self.asked.t, here, chart.at(self._values(index)))
        except HoloctlError as error:
            return str(error)
        if isinstance(found, WayEnd):
            return f"out of reach: {found.share:.0%} of the way there {found.why}"
        return found

    def point(self, spot: PartitionedSpot, index: Index) -> Point:
        """What is to be told of a spot."""
        chart = self.asked.chart
        kin, _ = constraint_rows(chart.mech, spot.q, np.zeros(chart.mech.nv), self.asked.t)
        D = chart.at(self._values(index))(kin)[1] * chart.mech.column_scale
        return point_at(self.asked, spot, D)

    def _values(self, index: Index) -> list[float]:
        return [float(axis.values[i]) for axis, i in zip(self.axes, index, strict=True)]

    def _apart(self, one: Index, q: Vector, other: Index, x: Vector) -> str:
        """Why two neighbours are not on one branch; empty where they are, and where no way leads
        from one to the other."""
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
