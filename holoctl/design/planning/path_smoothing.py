"""A path of closed configurations made short, then even, then smooth.

    short     a stretch between two places is replaced by a straight walk that gets there
    even      places at equal distances along it
    smooth    q_i <- q_i (+) N N' (q_i-1 - 2 q_i + q_i+1) / 4, which rounds corners

All places are on the manifold, and each step is proved again at the end (manifold_steps.py).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from holoctl.base.checks import Vector
from holoctl.design.planning.manifold_steps import ManifoldPlace, ManifoldSteps

__all__ = ["chained", "even", "shortened", "smoothed"]

SHORTER = 0.99
"""A stretch is replaced by one of less than this share of its length."""

CHAIN_STEPS = 8
"""Most steps from half-way to the next place of a path."""


def lengths(steps: ManifoldSteps, path: list[ManifoldPlace]) -> Vector:
    """The scaled distances between neighbours."""
    return np.array([np.linalg.norm(steps.left(a.q, b.q)) for a, b in pairwise(path)])


def shortened(
    steps: ManifoldSteps, path: list[ManifoldPlace], rng: np.random.Generator, tries: int
) -> list[ManifoldPlace]:
    """The path with stretches between random places replaced by shorter ones."""
    for _ in range(tries):
        if len(path) < 3:
            break
        i, j = sorted(rng.choice(len(path), 2, replace=False).tolist())
        if j < i + 2:
            continue
        length = float(lengths(steps, path[i : j + 1]).sum())
        if not np.linalg.norm(steps.left(path[i].q, path[j].q)) < SHORTER * length:
            continue
        walk = steps.walk(path[i], path[j].q, 2 * (j - i) + 4)
        if walk.arrived and lengths(steps, [path[i], *walk.stops]).sum() < SHORTER * length:
            path = path[: i + 1] + walk.stops[:-1] + path[j:]
    return path


def even(steps: ManifoldSteps, path: list[ManifoldPlace], count: int) -> list[ManifoldPlace]:
    """The path with `count` places at about equal distances; fewer where a step is not accepted."""
    if len(path) < 2:
        return path
    s = np.append(0.0, np.cumsum(lengths(steps, path)))
    found = [path[0]]
    for x in np.linspace(0.0, s[-1], count)[1:-1].tolist():
        i = int(np.searchsorted(s, x, side="right")) - 1
        here = path[i]
        share = (x - s[i]) / (s[i + 1] - s[i])
        there = steps.step(here, share * (here.N.T @ steps.left(here.q, path[i + 1].q)))
        if there is not None:
            found.append(there)
    return [*found, path[-1]]


def smoothed(steps: ManifoldSteps, path: list[ManifoldPlace], passes: int) -> list[ManifoldPlace]:
    """The path with rounded corners; a place stays where its step is not accepted."""
    path = list(path)
    for _ in range(passes):
        for i in range(1, len(path) - 1):
            here = path[i]
            away = steps.left(here.q, path[i - 1].q) + steps.left(here.q, path[i + 1].q)
            there = steps.step(here, 0.25 * (here.N.T @ away))
            path[i] = here if there is None else there
    return path


def chained(steps: ManifoldSteps, path: list[ManifoldPlace]) -> list[ManifoldPlace] | None:
    """The path with whole turns counted from its start on, each place by steps from the one before,
    by way of a place half-way; None if one does not get there."""
    found = [path[0]]
    for target in path[1:]:
        here = found[-1]
        middle = steps.step(here, 0.5 * (here.N.T @ steps.left(here.q, target.q)))
        if middle is None:
            return None
        walk = steps.walk(middle, target.q, CHAIN_STEPS)
        if not (walk.arrived and walk.stops):
            return None
        q = steps.moved(here.q, steps.left(here.q, walk.stops[-1].q))
        found.append(walk.stops[-1]._replace(q=q))
    return found
