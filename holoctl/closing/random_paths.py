"""Configurations along the motions of a mechanism whose geometry may be rounded.

    step = Z Z' direction        Z: null space of G' to within the tolerance

Each step is followed by a least-squares solution of all rows, over a length of a few radians. A
path ends where the rank falls, or nearly falls, or where rows open by more than the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import in_range
from holoctl.base.tolerances import LOOKED_AROUND, REACHED, WELL_ABOVE
from holoctl.closing.least_squares import least_squares_point
from holoctl.closing.newton import Problem

__all__ = ["MotionPath", "random_paths"]

PATH_WEAKENS = 0.02
"""A random path ends where the smallest counted singular value is below this fraction of its value
at the start."""


PATH_STEPS = (0.3, 0.1, 0.03)  # scaled
"""Largest entry of a step (rad, or sizes of the loop) on paths along a motion; shorter where paths
end early."""

FEWEST_PATHS_END = 0.5
"""Paths that give less than this fraction of the requested configurations are tried again."""

MOST_PATHS = 6
"""Most directions of paths, each forwards and backwards: one for a single motion, else one more
than motions."""

FEWEST_ALONG, ALONG_UNKNOWN = 30, 2
"""Least number of configurations along the motion at which rows must close; least number of
equations for each unknown."""


@dataclass(frozen=True, eq=False)
class MotionPath:
    """Configurations along the motions.

    Attributes
    ----------
    configurations : tuple of (nq,) arrays
        All of the same rank, and least-squares solutions of all rows.
    rank : int
        Of G, to within the tolerance.
    """

    configurations: tuple[Vector, ...]
    rank: int


@dataclass(frozen=True, eq=False)
class _PathConfiguration:
    q: Vector
    rank: int
    weakest: float  # smallest singular value that counts
    Z: Array  # motions, scaled coordinates


def random_paths(p: Problem, q: Vector, tau: float, unknowns: int, seed: int) -> MotionPath:
    """Configurations on random paths from q; only q for a rigid structure.

    Parameters
    ----------
    p : Problem
        With all rows, and all coordinates free.
    q : (nq,) array
        From `least_squares_point`.
    tau : float
        Tolerance of the geometry, above zero.
    unknowns : int
        Number of unknowns that the redundant combinations of rows at these configurations must
        determine, several times over.
    seed : int
    """
    rng = np.random.default_rng(seed)
    start = _start(p, q, tau, rng)
    dof = start.Z.shape[1]
    count = FEWEST_ALONG + unknowns * ALONG_UNKNOWN // max(1, p.mech.row_scale.size - start.rank)
    if dof == 0:
        return MotionPath((start.q,), start.rank)
    paths = 1 if dof == 1 else min(dof + 1, MOST_PATHS)
    most: list[Vector] = []
    for step in PATH_STEPS:
        found = [start.q]
        for _ in range(paths):
            direction = rng.normal(size=p.mech.nv)
            for z in (direction, -direction):
                found += _path(p, start, z, step, tau, -(-count // (2 * paths)))
        most = max(most, found, key=len)
        if len(most) > FEWEST_PATHS_END * count:
            break
    return MotionPath(tuple(most), start.rank)


def _start(p: Problem, q: Vector, tau: float, rng: np.random.Generator) -> _PathConfiguration:
    """q, or if the rank is larger nearby, because q is singular, the best configuration there."""
    here = _place(p, q, tau)
    found = [here]
    for _ in range(LOOKED_AROUND if here.Z.shape[1] else 0):
        z = here.Z @ rng.normal(size=here.Z.shape[1])
        for step in (REACHED, -REACHED):
            x, error = least_squares_point(p, p.moved(q, step * z / np.linalg.norm(z)), tau)
            if error <= tau:
                found.append(_place(p, x, tau))
    best = max(found, key=lambda place: (place.rank, place.weakest))
    return here if best.rank == here.rank else best


def _place(p: Problem, q: Vector, tau: float) -> _PathConfiguration:
    _, s, vt = np.linalg.svd(in_range(p.scaled_rows(q)[1]), full_matrices=True)
    rank = int(np.count_nonzero(s > tau))
    return _PathConfiguration(q, rank, float(s[rank - 1]) if rank else 1.0, vt[rank:].T)


def _path(
    p: Problem, start: _PathConfiguration, z: Vector, step: float, tau: float, count: int
) -> list[Vector]:
    """Up to `count` configurations along a path, each about `step` from the last."""
    found: list[Vector] = []
    here, floor = start, max(WELL_ABOVE * tau, PATH_WEAKENS * start.weakest)
    while len(found) < count:
        z = here.Z @ (here.Z.T @ z)
        size = float(np.abs(z).max(initial=0.0))
        if size == 0.0:
            break
        x, error = least_squares_point(p, p.moved(here.q, step / size * z), tau)
        ahead = _place(p, x, tau)
        z = pin.difference(p.mech.model, here.q, x) / p.mech.column_scale
        went_on = 0.3 * step < float(np.abs(z).max()) < 3.0 * step
        if not went_on or error > tau or ahead.rank != here.rank or ahead.weakest < floor:
            break
        here = ahead
        found.append(x)
    return found
