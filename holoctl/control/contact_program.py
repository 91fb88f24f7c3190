"""The program of unilateral contacts: tasks as well as motors, friction and limits allow.

    min 1/2 |T x - t|^2 + REGULAR / 2 |x - x_bilateral|^2    E x = e    lower <= C x <= upper

x are motions, efforts and forces of contacts in scaled units. x_bilateral is the solution without
inequalities: the tasks first, then the smallest efforts, then the smallest forces. Where it is
feasible it is the optimum for every weight, so that the inequalities change nothing where none is
active. With W an orthonormal basis of the null space of E, x = x_bilateral + W s leaves

    min 1/2 s' H s        H = (T W)' T W + REGULAR I        lower <= C (x_bilateral + W s) <= upper

which is the program of nearest_efforts.py. Directions W that change forces alone are tried first:
where some forces of the ground cause the bilateral motion, it is kept. The program is infeasible if
and only if a ray exists, with the bounds of C W s,

    y >= 0        (C W)' (y_upper - y_lower) = 0        y_upper' upper - y_lower' lower < 0

(Farkas). Its largest entries name the conditions that exclude each other.
References: J. Nocedal and S. Wright, Numerical Optimization, the chapter on quadratic programming;
docs/derivations-control.md, "Unilateral contacts".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.optimize import linprog

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest, null_space_by_svd, singular_values
from holoctl.control.nearest_efforts import EffortsQP, Nearest, Solver

__all__ = [
    "OPTIMAL",
    "SAME_RANK",
    "ContactProgram",
    "Optimum",
    "bilateral_solution",
    "infeasibility_ray",
    "program_around",
    "solved_program",
]

CONTACT_REGULAR = 1e-6
"""Weight of the distance from the bilateral solution, relative to the largest weight of a task."""

OPTIMAL = 1e-8
"""Largest residual of the conditions of optimality, scaled."""

SAME_RANK = 1e-9
"""A direction that changes a task by less, relative to the largest change, leaves it unchanged."""

RAY_CLEAR = 1e-9
"""The conditions exclude each other if they are violated by more than this, scaled."""

RAY_EXACT = 1e-3
"""Largest residual of a ray, relative to the violation that it proves: it then excludes all
unknowns up to some hundred times their units."""

CONSTANT_ROW = 1e-12
"""A condition that no unknown changes by more than this is constant."""


class ContactProgram(NamedTuple):
    """The program of the head of this module, around its bilateral solution.

    Attributes
    ----------
    H : (n, n) array
    C : (c, n) array
        The conditions by the unknowns s: ``C W`` of the head.
    lower, upper : (c,) arrays
        Bounds of ``C s``; infinite for none.
    """

    H: Array
    C: Array
    lower: Vector
    upper: Vector

    def violation(self, s: Vector) -> float:
        """The largest violation of a condition."""
        y = self.C @ s
        return float(np.maximum(self.lower - y, y - self.upper).max(initial=0.0))


class Optimum(NamedTuple):
    """A solution of a `ContactProgram`.

    Attributes
    ----------
    s : (n,) array
    multipliers : (c,) array
        Above zero at an upper bound, below at a lower one.
    residual : float
        The largest residual of the conditions of optimality.
    """

    s: Vector
    multipliers: Vector
    residual: float


# ---------------------------------------------------------------------------------- equations


def bilateral_solution(
    E: Array, e: Vector, levels: list[tuple[Array, Vector]]
) -> tuple[Vector, list[Array]]:
    """x_bilateral; W, and the directions that each level leaves free, (n, n_free) each.

    Parameters
    ----------
    E, e : arrays
        Independent equations.
    levels : list of (A, b)
        ``A x = b`` is met level by level, each in least squares, as well as those before allow.
    """
    rows = e.size
    q, r = qr(E.T)
    x: Vector = q[:, :rows] @ solve_triangular(r[:rows], e, trans="T")
    free = [np.asarray(q[:, rows:], dtype=float)]
    for A, b in levels:
        moved = A @ free[-1]
        rank = int((singular_values(moved) > SAME_RANK * np.linalg.norm(A)).sum())
        u, sizes, kept, left = null_space_by_svd(moved, rank)
        x = x + free[-1] @ (kept @ ((u.T @ (b - A @ x)) / sizes))
        free.append(free[-1] @ left)
    return x, free


def program_around(
    x: Vector, W: Array, tasks: Array, conditions: tuple[Array, Vector, Vector]
) -> ContactProgram:
    """The program of the head of this module in the directions W; C, lower and upper in x.
    Where W leaves the tasks unchanged, only the distance is measured."""
    moved, every = tasks @ W, np.eye(W.shape[1])
    H = moved.T @ moved
    size = float(np.abs(H).max(initial=0.0))
    some = size > (SAME_RANK * np.linalg.norm(tasks)) ** 2
    H = H / size + CONTACT_REGULAR * every if some else every
    C, lower, upper = conditions
    at = C @ x
    return ContactProgram(H, C @ W, lower - at, upper - at)


# ------------------------------------------------------------------------------------ solution


def optimality(p: ContactProgram, s: Vector, y: Vector) -> float:
    """The largest residual of stationarity, signs and complementarity, relative to their terms."""
    gradient, force = p.H @ s, p.C.T @ y
    above, below = np.maximum(y, 0.0), np.maximum(-y, 0.0)
    value = p.C @ s
    with np.errstate(invalid="ignore"):
        at_upper = np.where(above > 0.0, above * np.abs(p.upper - value), 0.0)
        at_lower = np.where(below > 0.0, below * np.abs(value - p.lower), 0.0)
    size = 1.0 + largest(gradient)
    return max(largest(gradient + force), largest(at_upper), largest(at_lower)) / size


def solved_program(p: ContactProgram, *solvers: Callable[[], Solver]) -> Optimum | None:
    """The optimum; None if each solver finds none, or calls the program infeasible.

    Each is made when it is asked: the next one where the residuals of the last are too large.
    """
    n = p.H.shape[0]
    if p.violation(np.zeros(n)) == 0.0:
        return Optimum(np.zeros(n), np.zeros(p.lower.size), 0.0)
    if n == 0:
        return None
    best: Optimum | None = None
    for make in solvers:
        found = _by(make(), p)
        if found is not None and (best is None or found.residual < best.residual):
            best = found
        if best is not None and best.residual <= OPTIMAL:
            break
    return best


def _by(solver: Solver, p: ContactProgram) -> Optimum | None:
    """The optimum by one solver, with its residual, which includes violations."""
    root = np.linalg.cholesky(p.H)
    size = np.linalg.norm(solve_triangular(root, p.C.T, lower=True), axis=0)
    moving = np.flatnonzero(size > CONSTANT_ROW)
    r = 1.0 / size[moving]
    free = np.full(p.H.shape[0], np.inf)
    program = EffortsQP(
        p.H, np.zeros(free.size), -free, free,
        r[:, None] * p.C[moving], r * p.lower[moving], r * p.upper[moving],
    )  # fmt: skip
    found: Nearest | None = solver(program)
    if found is None or found.soft:
        return None
    y = np.zeros(p.lower.size)
    y[moving] = r * found.multipliers[free.size :]
    return Optimum(found.x, y, max(optimality(p, found.x, y), p.violation(found.x)))


def infeasibility_ray(p: ContactProgram) -> Vector | None:
    """Multipliers (c,), signed as in `Optimum`, that prove that no s satisfies all conditions; None
    if there are none. Their magnitudes add to one."""
    above, below = np.flatnonzero(p.upper < np.inf), np.flatnonzero(p.lower > -np.inf)
    C = np.concatenate([p.C[above], -p.C[below]])
    d = np.concatenate([p.upper[above], -p.lower[below]])
    n = p.H.shape[0]
    cost, A = np.append(np.zeros(n), 1.0), np.hstack([C, -np.ones((d.size, 1))])
    found = linprog(cost, A, d, bounds=[(None, None)] * n + [(0.0, None)], method="highs")
    excess = float(found.fun) if found.status == 0 and found.fun is not None else 0.0
    if not excess > RAY_CLEAR:
        return None
    y = np.maximum(-found.ineqlin.marginals, 0.0)
    y /= y.sum()
    if not (largest(C.T @ y) <= RAY_EXACT * excess and d @ y < -0.5 * excess):
        return None
    ray = np.zeros(p.lower.size)
    ray[above] += y[: above.size]
    ray[below] -= y[above.size :]
    return ray
