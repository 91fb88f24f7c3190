"""The forces of points that stick and slide, while none of them changes: a linear system.

    sticks:  n, t1, t2 . (W x + c) = 0        slides:  n . (W x + c) = 0,  x_t = -mu x_n s

Four points of a foot are redundant: the motion determines only the resultant of their forces. The
shortest x is taken, if need be without the points that would pull, else any x in the cones; whether
there is one is a problem of non-negative least squares over the edges of the cones.
References: C. Lawson and R. Hanson, Solving Least Squares Problems (NNLS);
docs/derivations-dynamics.md, "Simulation with contacts".
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.errors import InconsistentError
from holoctl.base.linalg import largest, least_squares, singular_values, solved
from holoctl.dynamics.contact_complementarity import INDEPENDENT

__all__ = [
    "OPEN",
    "SLIDES",
    "STICKS",
    "ModeForces",
    "mode_forces",
    "regularity",
    "sliding_solutions",
]

OPEN, SLIDES, STICKS = 0, 1, 2
"""A point has no contact; its normal is held; its normal and its tangents are held."""

CONSISTENT = 1e-7
"""Largest error of the accelerations of the points, relative to those without contact forces."""

INSIDE = 1e-10
"""Distance from the cones that counts as inside, relative to the accelerations without forces."""

FEASIBLE = 1e-6
"""Margin of forces in the cones that are not the shortest ones."""

EDGES, MOST_EDGES = 8, 40
"""Edges of a cone at first; number of times that the nearest edge is added."""

ZERO, SAME = 1e-10, 1e-7
"""Signs of accelerations that count as zero, and accelerations that count as the same, relative to
those without forces."""


class ModeForces(NamedTuple):
    """Forces x (n, 3) of the points, and by how much they are inside their cones, relative to
    their sum: negative if no forces keep the points as they are."""

    x: Array
    margin: float


def mode_forces(
    W: Array, c: Vector, mu: Vector, state: Indices, direction: Array, judge: bool = True
) -> ModeForces:
    """The forces of points in given states; `judge` False: the shortest ones, without a margin.

    Raises
    ------
    InconsistentError
        If no forces, of any sign, hold the points, and none are judged.
    """
    push, rows, owner = _columns(mu, state, direction)
    if not rows.size:
        return ModeForces(np.zeros((mu.size, 3)), 1.0)
    A, b = (W @ push)[rows], -c[rows]
    z = least_squares(A, b, INDEPENDENT)
    allowed = CONSISTENT * largest(c[np.repeat(state > OPEN, 3)])
    if not largest(A @ z - b) <= allowed:
        if judge:
            return ModeForces((push @ z).reshape(-1, 3), -1.0)
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


def regularity(W: Array, mu: Vector, state: Indices, direction: Array) -> float:
    """The determinant of the system of `mode_forces` over that without friction; inf if no point
    slides with friction.

    Where it is zero friction grows as fast with the normal force as the force can hold the point.
    """
    push, rows, _owner = _columns(mu, state, direction)
    if not ((state == SLIDES) & (mu > 0.0)).any():
        return float("inf")
    d = np.sqrt(np.maximum(W.diagonal()[rows], 1e-300))
    A, B = (x[rows] / d / d[:, None] for x in (W @ push, W[:, rows]))
    s, U = np.linalg.eigh(B)
    kept = s > INDEPENDENT * s[-1]
    U, s = U[:, kept], s[kept]
    return float(np.linalg.det(U.T @ A @ U / s))


def sliding_solutions(W: Array, c: Vector, mu: Vector, direction: Array) -> list[Array]:
    """An x of each motion of points that all slide, or have no friction: every set of pushing
    points is tried.

    Solutions with the same points on the ground are convex combinations of each other: the forces
    of redundant points, of which one choice is as good as another. So they count as one motion.
    """
    n = mu.size
    found, accelerations = list[Array](), list[Vector]()
    push, rows, _ = _columns(mu, np.full(n, SLIDES), direction)
    A, b = (W @ push)[rows], -c[rows]
    zero = ZERO * max(largest(c), 1e-300)
    for chosen in product((False, True), repeat=n):
        some = np.flatnonzero(chosen)
        x = np.zeros(n)
        if some.size:
            B = A[np.ix_(some, some)]
            s = singular_values(B)
            if not s[-1] > INDEPENDENT * s[0]:
                continue  # the same forces are those of a smaller set
            x[some] = solved(B, b[some])
        y = A @ x - b
        pulls = (np.minimum(x, 0.0) * W.diagonal()[rows]).min() < -zero
        if pulls or y.min() < -zero:
            continue
        if not any(
            np.array_equal(y > zero, other > zero) or largest(y - other) <= SAME * largest(c)
            for other in accelerations
        ):
            accelerations.append(y)
            found.append((push @ x).reshape(-1, 3))
    return found


def _columns(mu: Vector, state: Indices, direction: Array) -> tuple[Array, Indices, Indices]:
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


def _margin(x: Array, mu: Vector, state: Indices) -> float:
    """The least normal force, or friction left, of the points in contact."""
    sticks = (state == STICKS) & (mu > 0.0)
    left = mu * x[:, 0] - np.hypot(x[:, 1], x[:, 2])
    return float(min(x[state > OPEN, 0].min(), left[sticks].min(initial=np.inf)))


def _without_pulling(
    A: Array, b: Vector, push: Array, owner: Indices, x: Array, allowed: float
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
    W: Array, c: Vector, mu: Vector, state: Indices, push: Array, rows: Indices
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
            found: Array = x
            return found
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


def _single(row: int, mu: Vector, state: Indices) -> bool:
    return bool(state[row // 3] == SLIDES or mu[row // 3] == 0.0)


def _edge(mu: Vector, i: int, angle: float) -> Vector:
    """A force on the edge of the cone of a point."""
    f = np.zeros(3 * mu.size)
    f[3 * i : 3 * i + 3] = 1.0, mu[i] * np.cos(angle), mu[i] * np.sin(angle)
    return f
