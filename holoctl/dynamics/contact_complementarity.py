"""Points on the ground with dry friction: which push, which slide, which leave.

    y = W x + c        W = J gamma H^-1 gamma' J'        H = gamma' M gamma
    0 <= x_n    y_n >= 0    x_n y_n = 0
    |x_t| <= mu x_n        x_t = -mu x_n y_t / |y_t|   where y_t is not zero
    x_t = -mu x_n s        at a point that slides already, in the direction s

x are forces and y accelerations, or x are impulses and y velocities after an impact. gamma is that
of the closed loops, so that loops are exact. With k directions d of friction instead of the circle
this is a linear complementarity problem, solved by Lemke's method:

    0 <= x_n,  y_n >= 0;    0 <= b,  D' y_t + r >= 0;    0 <= r,  mu x_n - sum b >= 0

each pair with product zero. Where a point begins to slide, the directions are turned until one is
opposite to y_t, where the pyramid touches the round cone: by repetition, or, from the points that
then stick, slide and leave, by Newton's method.
References: D. Stewart and J. Trinkle, An implicit time-stepping scheme for rigid body dynamics with
inelastic collisions and Coulomb friction; R. Cottle, J.-S. Pang and R. Stone, The Linear
Complementarity Problem, the sections on Lemke's method and on lexicographic degeneracy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import root

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.errors import InconsistentError
from holoctl.base.linalg import least_squares

__all__ = ["INDEPENDENT", "ComplementaritySolution", "complementarity_solution", "lemke"]

FACETS = 8
"""Directions of friction of a point."""

PIVOT = 1e-10
"""Smallest entry that is pivoted on, relative to a scaled matrix."""

TIE = 1e-11
"""Ratios that differ by less than this are equal; the lexicographic order then decides."""

PIVOTS_PER_ROW = 20
"""Largest number of pivots, per row of the problem."""

COVERS = 5
"""Number of covering vectors that are tried, the first of ones, the others random."""

SOLVED = 1e-8
"""Largest residual of a solution of the scaled problem, relative to 1 + its size."""

MOST_TURNS = 60
"""Largest number of times that directions of friction are turned."""

NEWTON_EVERY = 6
"""After this number of turns each time, Newton's method is tried."""

NEWTON_AFTER, MOST_PROJECTIONS = 50, 2000
"""Projections before Newton's method is tried each time, and their largest number."""

CONVERGED = 1e-15
"""Projections have converged if they change forces by less than this (scaled problem)."""

INDEPENDENT = 1e-11
"""Singular values below this share of the first belong to redundant forces."""

TURNED = 1e-11  # rad
"""Directions are turned until they change by less than this."""

HELD = 1e-9
"""Error of the conditions that is allowed to a result of Newton's method (scaled problem)."""

SLIDES = 1e-9
"""Points slide if y_t is larger than this, relative to the largest entry of c."""


class ComplementaritySolution(NamedTuple):
    """Forces x and accelerations y along (normal, tangent, tangent) of each point, (n, 3)."""

    x: Array
    y: Array


def complementarity_solution(
    W: Array, c: Vector, mu: Vector, direction: Array
) -> ComplementaritySolution | None:
    """The solution for n points; None if Lemke's method finds none.

    Parameters
    ----------
    W : (3n, 3n) array
        Response of accelerations to forces.
    c : (3n,) array
        Accelerations without contact forces.
    mu : (n,) array
        Coefficients of friction.
    direction : (n, 2) array
        Directions of sliding, of length one; nan for points that do not slide.

    Raises
    ------
    InconsistentError
        If the directions in which points begin to slide do not converge.
    """
    n = mu.size
    if n == 0:
        return ComplementaritySolution(np.zeros((0, 3)), np.zeros((0, 3)))
    unit = np.sqrt(np.maximum(W.diagonal().reshape(n, 3).max(axis=1), 1e-300)).repeat(3)
    size = float(np.abs(c / unit).max())
    if size == 0.0:
        return ComplementaritySolution(np.zeros((n, 3)), np.zeros((n, 3)))
    W, c = W / unit / unit[:, None], c / unit / size
    held = np.flatnonzero(np.isnan(direction[:, 0]) & (mu > 0.0))
    around = 2.0 * np.pi / FACETS * np.arange(FACETS)
    angles = np.zeros(held.size)
    scale = size / unit.reshape(n, 3), size * unit.reshape(n, 3)
    x: Vector | None = None
    for turn in range(MOST_TURNS):
        x = _with_directions(W, c, mu, direction, held, around + angles[:, None])
        if x is None:
            return None
        y = (W @ x + c).reshape(n, 3)
        slip = y[held, 1:]
        slides = np.hypot(*slip.T) > SLIDES
        change = np.where(slides, np.arctan2(-slip[:, 1], -slip[:, 0]) - angles, 0.0)
        step = 2.0 * np.pi / FACETS
        change -= step * np.round(change / step)  # any of the directions may be turned there
        if not (np.abs(change) > TURNED).any():
            return ComplementaritySolution(x.reshape(n, 3) * scale[0], y * scale[1])
        if turn % NEWTON_EVERY == NEWTON_EVERY - 1:
            found = _by_newton(W, c, mu, direction, x, y)
            if found is not None:
                y = (W @ found + c).reshape(n, 3)
                return ComplementaritySolution(found.reshape(n, 3) * scale[0], y * scale[1])
        angles = angles + (change if turn < NEWTON_EVERY else 0.5 * change)
    x = _by_projections(W, c, mu, direction, np.zeros(3 * n) if x is None else x)
    y = (W @ x + c).reshape(n, 3)
    return ComplementaritySolution(x.reshape(n, 3) * scale[0], y * scale[1])


def _by_projections(W: Array, c: Vector, mu: Vector, direction: Array, x: Vector) -> Vector:
    """x by repeated projections onto the round cones, x <- P(x - r (y + mu |y_t| n)), until
    Newton's method has a solution.

    Raises
    ------
    InconsistentError
        If it has none after many projections.
    """
    n = mu.size
    slides = ~np.isnan(direction[:, 0])
    force = x.reshape(n, 3).copy()
    r = 1.0 / float(np.linalg.norm(W, 2))
    for k in range(1, MOST_PROJECTIONS + 1):
        before = force.reshape(-1).copy()
        y = (W @ before + c).reshape(n, 3)
        slip = np.hypot(y[:, 1], y[:, 2])
        normal = force[:, 0] - r * (y[:, 0] + np.where(slides, 0.0, mu * slip))
        tangent = force[:, 1:] - r * y[:, 1:]
        size = np.hypot(tangent[:, 0], tangent[:, 1])
        edge = np.maximum(normal + mu * size, 0.0) / (1.0 + mu * mu)
        inside = size <= mu * normal
        force[:, 0] = np.where(slides, np.maximum(normal, 0.0), np.where(inside, normal, edge))
        shorter = np.where(inside, 1.0, mu * edge / np.maximum(size, 1e-300))
        friction = np.where(slides[:, None], -mu[:, None] * direction, 0.0) * force[:, :1]
        force[:, 1:] = np.where(slides[:, None], friction, shorter[:, None] * tangent)
        change = float(np.abs(force.reshape(-1) - before).max())
        if change <= CONVERGED * (1.0 + float(np.abs(force).max())):
            return force.reshape(-1)
        if k % NEWTON_AFTER == 0:
            found = _by_newton(W, c, mu, direction, force.reshape(-1), y)
            if found is not None:
                return found
    raise InconsistentError(
        f"the directions in which some of {n} contact points begin to slide do not converge"
    )


def _by_newton(
    W: Array, c: Vector, mu: Vector, direction: Array, x: Vector, y: Array
) -> Vector | None:
    """x on the round cones, for the points that stick, slide and leave in (x, y); None if that is
    no solution. Redundant forces are the shortest ones, or else those nearest to x."""
    for near in (np.zeros(x.size), x):
        found = _newton_near(W, c, mu, direction, y, near)
        if found is not None:
            return found
    return None


def _newton_near(
    W: Array, c: Vector, mu: Vector, direction: Array, y: Array, near: Vector
) -> Vector | None:
    n = mu.size
    held = np.isnan(direction[:, 0]) & (mu > 0.0)
    open_ = y[:, 0] > SLIDES
    slides = held & ~open_ & (np.hypot(*y[:, 1:].T) > SLIDES)
    pushing = slides | (~open_ & ~held)
    unknown = np.repeat(held & ~open_ & ~slides, 3)
    unknown[::3] |= pushing
    columns, begins = np.flatnonzero(unknown), np.flatnonzero(slides)
    towards = np.nan_to_num(direction)

    def solved_for(angles: Vector) -> tuple[Vector, Array]:
        s = towards.copy()
        s[begins] = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        push = np.eye(3 * n)
        for i in np.flatnonzero(pushing):
            push[3 * i + 1 : 3 * i + 3, 3 * i] = -mu[i] * s[i]
        push = push[:, columns]
        A, z = (W @ push)[columns], near[columns]
        x = push @ (z + least_squares(A, -c[columns] - A @ z, INDEPENDENT))
        return x, s

    def across(angles: Vector) -> Vector:
        x, s = solved_for(angles)
        y_t = (W @ x + c).reshape(n, 3)[begins, 1:]
        s = s[begins]
        found: Vector = s[:, 0] * y_t[:, 1] - s[:, 1] * y_t[:, 0]
        return found

    start = np.arctan2(y[begins, 2], y[begins, 1])
    found = root(across, start, options={"xtol": 1e-14}).x if begins.size else start
    x, s = solved_for(found)
    force, y = x.reshape(n, 3), (W @ x + c).reshape(n, 3)
    size = 1.0 + float(np.abs(x).max())
    along = np.einsum("ij,ij->i", s, y[:, 1:])
    friction = np.hypot(*force[:, 1:].T) - mu * force[:, 0]
    off = [
        np.abs(np.minimum(force[:, 0], y[:, 0])).max(), friction[held].max(initial=0.0),
        np.abs(y[unknown.reshape(n, 3)]).max(initial=0.0), (-along[begins]).max(initial=0.0),
        np.abs(across(found)).max(initial=0.0),
    ]  # fmt: skip
    return x if max(off) <= HELD * size else None


def _with_directions(
    W: Array, c: Vector, mu: Vector, direction: Array, held: Indices, angles: Array
) -> Vector | None:
    """x of the linear complementarity problem with directions of friction at given angles."""
    n, (points, each) = mu.size, angles.shape
    k = points * each
    N = np.zeros((3 * n, n))
    N[3 * np.arange(n), np.arange(n)] = 1.0
    push = N.copy()
    for i in np.flatnonzero(~np.isnan(direction[:, 0])):
        push[3 * i + 1 : 3 * i + 3, i] = -mu[i] * direction[i]
    D, E, mus = np.zeros((3 * n, k)), np.zeros((k, points)), np.zeros((points, n))
    for j, i in enumerate(held.tolist()):
        here = slice(j * each, (j + 1) * each)
        D[3 * i + 1, here], D[3 * i + 2, here] = np.cos(angles[j]), np.sin(angles[j])
        E[here, j], mus[j, i] = 1.0, mu[i]
    M = np.zeros((n + k + points,) * 2)
    M[:n, :n], M[:n, n : n + k] = N.T @ W @ push, N.T @ W @ D
    M[n : n + k, :n], M[n : n + k, n : n + k], M[n : n + k, n + k :] = (
        D.T @ W @ push,
        D.T @ W @ D,
        E,
    )
    M[n + k :, :n], M[n + k :, n : n + k] = mus, -E.T
    z = lemke(M, np.concatenate([N.T @ c, D.T @ c, np.zeros(points)]))
    return None if z is None else push @ z[:n] + D @ z[n : n + k]


# ------------------------------------------------------------------------------------- Lemke


def lemke(M: Array, q: Vector) -> Vector | None:
    """z with ``z >= 0``, ``w = M z + q >= 0`` and ``z' w = 0``; None if none is found.

    Lemke's method with lexicographic ratios, and several covering vectors. Every result is checked.
    """
    if q.size == 0 or q.min() >= 0.0:
        return np.zeros(q.size)
    rng = np.random.default_rng(0)
    for trial in range(COVERS):
        cover = np.ones(q.size) if trial == 0 else rng.uniform(0.5, 2.0, q.size)
        z = _pivoted(M, q, cover)
        if z is not None:
            w, allowed = M @ z + q, SOLVED * (1.0 + float(np.abs(z).max()))
            if w.min() >= -allowed and np.abs(np.minimum(w, z)).max() <= allowed:
                return z
    return None


def _pivoted(M: Array, q: Vector, cover: Vector) -> Vector | None:
    """z after complementary pivots; None if a ray is reached, or too many pivots are needed."""
    n = q.size
    T = np.hstack([np.eye(n), -M, -cover[:, None], q[:, None]])  # w - M z - cover z0 = q
    basis = np.arange(n)
    entering = 2 * n
    row = _first_row(T, q / cover)
    for _ in range(PIVOTS_PER_ROW * n):
        leaving = int(basis[row])
        T[row] /= T[row, entering]
        column = T[:, entering].copy()
        column[row] = 0.0
        T -= column[:, None] * T[row]
        basis[row] = entering
        if leaving == 2 * n:
            z = np.zeros(2 * n + 1)
            z[basis] = np.maximum(T[:, -1], 0.0)
            return z[n : 2 * n]
        entering = leaving + n if leaving < n else leaving - n
        row = _leaving_row(T, T[:, entering], basis)
        if row < 0:
            return None
    return None


def _first_row(T: Array, ratios: Vector) -> int:
    """The row whose artificial variable must enter: the smallest ratio, lexicographically."""
    ties = np.flatnonzero(ratios <= ratios.min() + TIE)
    return int(ties[-1])  # the rows of the identity: the last one is the smallest


def _leaving_row(T: Array, column: Vector, basis: Indices) -> int:
    """The row with the lexicographically smallest ratio; -1 if no entry is positive. The artificial
    variable leaves first where it ties."""
    n = len(T)
    rows = np.flatnonzero(column > PIVOT)
    if not rows.size:
        return -1
    for j in (2 * n + 1, *range(n)):
        ratios = T[rows, j] / column[rows]
        rows = rows[ratios <= ratios.min() + TIE * (1.0 + abs(ratios.min()))]
        if j == 2 * n + 1 and (artificial := np.flatnonzero(basis[rows] == 2 * n)).size:
            return int(rows[artificial[0]])
        if rows.size == 1:
            break
    return int(rows[0])
