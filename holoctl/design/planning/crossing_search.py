"""Ways across a type-2 singularity, at points where it is generic.

    z = -sign(f) df/dz / |df/dz|        f = det-signed smallest singular value of gamma' B

along the steepest descent of f, until f has the same size with the other sign: the way is
transversal. A point is generic if only one singular value vanishes there, and the constraints are
regular.
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.linalg import singular_values
from holoctl.design.planning.manifold_steps import ManifoldPlace, ManifoldSteps

__all__ = ["across", "crosses_once"]

ACROSS_STEP, ACROSS_MOST = 0.05, 120
"""Longest step across a singularity, scaled; the largest number of steps."""

DIFFERENCE = 1e-4  # scaled
"""Step of the differences for df/dz."""

GENERIC = 0.02  # scaled
"""The least second singular value of gamma' B, and the least of G, at a generic singularity."""

LEAST_SLOPE = 0.02
"""The least |df/dz| on a way across."""


def across(free: ManifoldSteps, here: ManifoldPlace, beyond: float) -> list[ManifoldPlace] | None:
    """Places from one side to the other, the last one with the smallest singular value `beyond`;
    None if the way down is not generic. `free` are steps without a margin."""
    path, side = [here], np.sign(here.signed)
    for _ in range(ACROSS_MOST):
        slope = _slope(free, here)
        steep = float(np.linalg.norm(slope))
        if not steep > LEAST_SLOPE or not (abs(here.signed) > beyond or _generic(here)):
            return None
        length = min(ACROSS_STEP, (abs(here.signed) + 0.5 * beyond) / steep)
        there = free.step(here, (-side * length / steep) * slope)
        if there is None or not side * there.signed < side * here.signed:
            return None
        here = there
        path.append(here)
        if side * here.signed <= -beyond:
            return path
    return None


def crosses_once(path: list[ManifoldPlace], margin: float) -> tuple[int, int] | None:
    """The stretch of a path below the margin, if that is one that passes a singularity once: the
    indices of the last place before it and of the first one after it. None otherwise."""
    f = np.array([place.signed for place in path])
    low = np.flatnonzero(np.abs(f) <= margin)
    flips = np.flatnonzero(f[1:] * f[:-1] <= 0.0)
    if f[0] * f[-1] >= 0.0 or not flips.size:
        return None
    first = int(low[0]) - 1 if low.size else int(flips[0])
    last = int(low[-1]) + 1 if low.size else int(flips[0]) + 1
    if first < 0 or last >= len(path):
        return None
    within = np.sign(f[0]) * f[first : last + 1]
    once = (np.diff(within) < 0.0).all() and all(_generic(x) for x in path[first : last + 1])
    outside = (f[: first + 1] * f[0] > 0.0).all() and (f[last:] * f[-1] > 0.0).all()
    return (first, last) if once and outside else None


def _generic(place: ManifoldPlace) -> bool:
    regular = not place.G.size or float(singular_values(place.G)[-1]) > GENERIC
    return regular and place.second > GENERIC


def _slope(free: ManifoldSteps, here: ManifoldPlace) -> Vector:
    found = np.zeros(here.N.shape[1])
    for i in range(found.size):
        z = np.zeros(found.size)
        z[i] = DIFFERENCE
        ends = [free.step(here, x) for x in (z, -z)]
        if ends[0] is None or ends[1] is None:
            return np.zeros(found.size)
        found[i] = (ends[0].signed - ends[1].signed) / (2.0 * DIFFERENCE)
    return found
