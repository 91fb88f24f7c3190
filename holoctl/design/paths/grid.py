"""Where the nodes of a path are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector

__all__ = ["apart", "every_second", "grid_of", "near_ends"]


def grid_of(knots: Vector, points: int) -> Vector:
    """So many intervals from the first knot to the last, knots among them, about equally long."""
    spans = np.diff(knots)
    each = np.maximum(1, np.round(points * spans / spans.sum()).astype(int))
    each[np.argmax(each)] = max(1, int(each.max() + points - each.sum()))
    parts = [
        np.linspace(a, b, n, endpoint=False)
        for a, b, n in zip(knots[:-1], knots[1:], each, strict=True)
    ]
    return np.append(np.concatenate(parts), knots[-1])


def every_second(grid: Vector, knots: Vector) -> NDArray[np.bool_]:
    """Nodes that are followed one after the other, knots among them; each of the others is half-way
    between two of them."""
    keep = np.ones(grid.size, dtype=bool)
    for a, b in pairwise(np.searchsorted(grid, knots).tolist()):
        keep[a + 1 : b - (b - a) % 2 : 2] = False
    return keep


def near_ends(s: Vector) -> Vector:
    """More nodes in the first interval and in the last one, nearer and nearer to the ends."""
    parts = 0.5 ** np.arange(5, 0, -1)
    return np.concatenate([s[0] + parts * (s[1] - s[0]), s[-1] - parts[::-1] * (s[-1] - s[-2])])


def apart(s: Vector, least: float) -> NDArray[np.bool_]:
    """Those of ascending numbers that are not nearer to each other; both ends among them."""
    keep, last = np.zeros(s.size, dtype=bool), -np.inf
    for i, x in enumerate(s.tolist()):
        if x - last >= least and (s[-1] - x >= least or i in (0, s.size - 1)):
            keep[i], last = True, x
    keep[-1] = True
    return keep
