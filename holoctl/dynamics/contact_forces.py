"""The forces of points that stick and slide, while none of them changes: a linear system.

    sticks:  n, t1, t2 . (W x + c) = 0        slides:  n . (W x + c) = 0,  x_t = -mu x_n s

Four points of a foot are redundant: the motion determines only the sum of their forces. The shortest
x is taken, if need be without the points that would pull, else any x in the cones; whether there is
one is a problem of non-negative least squares over the edges of the cones.
References: C. Lawson and R. Hanson, Solving Least Squares Problems (NNLS);
docs/derivations-dynamics.md, "Simulation with contacts".
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InconsistentError
from holoctl.base.linalg import largest, least_squares, singular_values

__all__ = ["OPEN", "SLIDES", "STICKS", "ModeForces", "least_minor", "mode_forces"]

OPEN, SLIDES, STICKS = 0, 1, 2
"""A point has no contact; its normal is held; its normal and its tangents are held."""

INDEPENDENT = 1e-11
"""Singular values below this share of the first belong to redundant forces."""

CONSISTENT = 1e-7
"""Largest error of the accelerations of the points, relative to those without contact forces."""

INSIDE = 1e-10
"""Distance from the cones that counts as inside, relative to the accelerations without forces."""

FEASIBLE = 1e-6
"""Margin of forces in the cones that are not the shortest ones."""

EDGES, MOST_EDGES = 8, 40
"""Edges of a cone at first; number of times that the nearest edge is added."""

MOST_SUBSETS = 10
"""Number of sliding points up to which all minors are computed; of more, those of three."""


class ModeForces(NamedTuple):
    """Forces x (n, 3) of the points, and by how much they are inside their cones, relative to
    their sum: negative if no forces keep the points as they are."""

    x: Array
    margin: float


def mode_forces(
    W: Array, c: Vector, mu: Vector, state: Array, direction: Array, judge: bool = True
) -> ModeForces:
    """The forces of points in given states; `judge` False: the shortest ones, without a margin.

    Raises
    ------
    InconsistentError
        If no forces, of any sign, hold the points.
    """
    push, rows, owner = _columns(mu, state, direction)
    if not rows.size:
        return ModeForces(np.zeros((mu.size, 3)), 1.0)
    A, b = (W @ push)[rows], -c[rows]
    z = least_squares(A, b, INDEPENDENT)
    allowed = CONSISTENT * largest(c[np.repeat(state > OPEN, 3)])
    if not largest(A @ z - b) <= allowed:
        raise InconsistentError(
            "no forces hold the contact points that stick and slide: friction grows as fast as "
            "the normal force that it needs (Painleve), or the points wedge",
            residual=largest(A @ z - b),
        )
    x = (push @ z).reshape(-1, 3)
    weight = float(np.abs(x[:, 0]).sum() + np.abs(b / np.maximum(W.diagonal()[rows], 1e-300)).sum())
    margin = _margin(x, mu, state) / max(weight, 1e-300)
    if margin >= 0.0:
        return ModeForces(x, margin)
    shorter = _without_pulling(A, b, push, owner, x, allowed)
    if not judge:
        return ModeForces(x if shorter is None else shorter, margin)
    s = singular_values(A)
    if s[-1] > INDEPENDENT * s[0]:
        return ModeForces(x, margin)
    if shorter is not None and _margin(shorter, mu, state) >= -1e-14 * weight:
        return ModeForces(shorter, FEASIBLE)
    inside = _in_cones(W, c, mu, state, push, rows)
    return ModeForces(x, margin) if inside is None else ModeForces(inside, FEASIBLE)


def least_minor(W: Array, mu: Vector, state: Array, direction: Array) -> float:
    """The smallest principal minor of the sliding points, over that without friction; inf if none
    slides.

    If it is not positive, forces do not exist for some accelerations, or are not unique.
    """
    slides = np.flatnonzero((state == SLIDES) & (mu > 0.0))
    if not slides.size:
        return float("inf")
    push, rows, owner = _columns(mu, state, direction)
    with_friction, without = (W @ push)[rows], W[rows][:, rows]
    sticks = np.flatnonzero(state[owner] == STICKS)
    at = np.array([int(np.flatnonzero(owner == i)[0]) for i in slides])
    reduced = list[Array]()
    for A in (with_friction, without):
        B = A[np.ix_(at, at)]
        if sticks.size:
            shares = least_squares(A[np.ix_(sticks, sticks)], A[np.ix_(sticks, at)], INDEPENDENT)
            B = B - A[np.ix_(at, sticks)] @ shares
        reduced.append(B)
    d = np.sqrt(np.maximum(W.diagonal()[3 * slides], 1e-300))
    A, B = (x / d / d[:, None] for x in reduced)
    most = slides.size if slides.size <= MOST_SUBSETS else 3
    least = float("inf")
    for size in range(1, most + 1):
        for some in combinations(range(slides.size), size):
            usual = float(np.linalg.det(B[np.ix_(some, some)]))
            if usual > 1e-9:  # else they are redundant
                least = min(least, float(np.linalg.det(A[np.ix_(some, some)])) / usual)
    return least


def _columns(mu: Vector, state: Array, direction: Array) -> tuple[Array, Array, Array]:
    """Unit forces (3n, u), the rows that are held, and the point that each belongs to."""
    n = mu.size
    held = np.zeros((n, 3), dtype=bool)
    held[state > OPEN, 0] = True
    held[(state == STICKS) & (mu > 0.0), 1:] = True
    push = np.eye(3 * n)
    for i in np.flatnonzero((state == SLIDES) & (mu > 0.0)):
        push[3 * i + 1 : 3 * i + 3, 3 * i] = -mu[i] * direction[i]
    rows = np.flatnonzero(held)
    return push[:, rows], rows, rows // 3


def _margin(x: Array, mu: Vector, state: Array) -> float:
    """The least normal force, or friction left, of the points in contact."""
    sticks = (state == STICKS) & (mu > 0.0)
    left = mu * x[:, 0] - np.hypot(x[:, 1], x[:, 2])
    return float(min(x[state > OPEN, 0].min(), left[sticks].min(initial=np.inf)))


def _without_pulling(
    A: Array, b: Vector, push: Array, owner: Array, x: Array, allowed: float
) -> Array | None:
    """The shortest forces without the points that pull, one after the other; None if others cannot
    hold the points."""
    left = np.ones(owner.size, dtype=bool)
    while x[:, 0].min() < 0.0:
        left &= owner != int(np.argmin(x[:, 0]))
        z = least_squares(A[:, left], b, INDEPENDENT)
        if not largest(A[:, left] @ z - b) <= allowed:
            return None
        x = (push[:, left] @ z).reshape(-1, 3)
    return x


def _in_cones(
    W: Array, c: Vector, mu: Vector, state: Array, push: Array, rows: Array
) -> Array | None:
    """Forces in the round cones; None if there are none. The edge of a cone that is nearest to the
    remaining acceleration is added until there is none beyond those that are there."""
    around = 2.0 * np.pi / EDGES * np.arange(EDGES)
    edges = [push[:, k] for k, row in enumerate(rows) if row % 3 == 0 and _single(row, mu, state)]
    sticks = np.flatnonzero((state == STICKS) & (mu > 0.0)).tolist()
    edges += [_edge(mu, i, angle) for i in sticks for angle in around.tolist()]
    b = -c[rows]
    size = max(float(np.linalg.norm(b)), 1e-300)
    for _ in range(MOST_EDGES):
        columns = np.array(edges).T
        A = (W @ columns)[rows]
        scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
        z, off = nnls(A / scale, b / size)
        x = (columns @ (z / scale) * size).reshape(-1, 3)
        if off <= INSIDE:
            return x
        left = np.zeros(c.size)
        left[rows] = b / size - A / scale @ z
        pull = (W @ left).reshape(-1, 3)
        added = False
        for i in sticks:
            edge = _edge(mu, i, float(np.arctan2(pull[i, 2], pull[i, 1])))
            if left @ W @ edge > INSIDE * off * float(np.linalg.norm((W @ edge)[rows])):
                edges.append(edge)
                added = True
        if not added:
            return None
    return None


def _single(row: int, mu: Vector, state: Array) -> bool:
    return bool(state[row // 3] == SLIDES or mu[row // 3] == 0.0)


def _edge(mu: Vector, i: int, angle: float) -> Vector:
    """A force on the edge of the cone of a point."""
    f = np.zeros(3 * mu.size)
    f[3 * i : 3 * i + 3] = 1.0, mu[i] * np.cos(angle), mu[i] * np.sin(angle)
    return f
