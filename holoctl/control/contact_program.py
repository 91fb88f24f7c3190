"""The program of unilateral contacts: tasks as well as motors, friction and limits allow.

    min 1/2 |tasks du|^2 + REGULAR / 2 (|du|^2 + |dw|^2)        lower <= C s <= upper

s = (u, w2) are efforts and forces that balance each other (contact_motion.py), in units, d are
distances from the bilateral solution, and w are all wrenches of the ground. s_bilateral is the
solution without inequalities: the tasks first, then the smallest efforts, then the smallest forces.
Where it is feasible it is the optimum for every weight, so that the inequalities change nothing
where none is active. In d = s - s_bilateral this is the program of nearest_efforts.py. Where w2
alone can make it feasible, the motion is kept. The program is infeasible if and only if a ray
exists, with the bounds of C d,

    y >= 0        C' (y_upper - y_lower) = 0        y_upper' upper - y_lower' lower < 0

(Farkas). Its largest entries name the conditions that exclude each other.

Rows of limits of joints are softened, by slacks with the weight SOFT, where they cannot be kept.

Where contacts may slip ("nearest"), w are unknowns too, and the motion is x = A* u + J*' w - g*:

    min SLIP / 2 |Q1' x - xi|^2 + 1/2 |T* x - t|^2 + REGULAR / 2 |d|^2        s = (u, w)

|Q1' x - xi| is the distance from the motions that keep the contacts in the metric of the inertia.

References: J. Nocedal and S. Wright, Numerical Optimization, the chapter on quadratic programming;
docs/derivations-control.md, "Unilateral contacts".
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import linprog
from scipy.sparse import csc_array

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest
from holoctl.control.nearest_efforts import EffortsQP, Nearest, Solver

__all__ = [
    "OPTIMAL",
    "ContactProgram",
    "Optimum",
    "by_clarabel",
    "infeasibility_ray",
    "program_around",
    "softened",
    "solved_program",
]

CONTACT_REGULAR = 1e-6
"""Weight of the distance from the bilateral solution, relative to the largest weight of a task."""

SLIP = 1e4
"""Weight of the slip of contacts, relative likewise."""

SOFT = 1e3
"""Weight of the slack of limits of joints, relative likewise."""

OPTIMAL = 1e-8
"""Largest residual of the conditions of optimality, scaled."""

UNMOVED = 1e-18
"""Tasks whose squares are below this, relative to their rows, are not moved by any effort."""

RAY_CLEAR = 1e-9
"""The conditions exclude each other if they are violated by more than this, scaled."""

RAY_EXACT = 1e-3
"""Largest residual of a ray, relative to the violation that it proves: it then excludes all
unknowns up to some hundred times their units."""

CLARABEL_GAP = 1e-12
"""The tolerance of Clarabel for its gap and feasibility."""

ACTIVE_FOR_CLARABEL = 1e-9
"""Multipliers that Clarabel leaves below this, relative to the largest, are zero."""

CONSTANT_ROW = 1e-12
"""A condition that no unknown changes by more than this is constant."""


class ContactProgram(NamedTuple):
    """The program of the head of this module, around its bilateral solution.

    Attributes
    ----------
    H : (n, n) array
    C : (c, n) array
        The conditions by d, the change of the unknowns in units.
    lower, upper : (c,) arrays
        Bounds of ``C d``; infinite for none.
    """

    H: Array
    C: Array
    lower: Vector
    upper: Vector

    def violation(self, d: Vector) -> float:
        """The largest violation of a condition."""
        y = self.C @ d
        return float(np.maximum(self.lower - y, y - self.upper).max(initial=0.0))


class Optimum(NamedTuple):
    """A solution of a `ContactProgram`.

    Attributes
    ----------
    d : (n,) array
    multipliers : (c,) array
        Above zero at an upper bound, below at a lower one.
    residual : float
        The largest residual of the conditions of optimality.
    """

    d: Vector
    multipliers: Vector
    residual: float


def program_around(
    s: Vector, units: Vector, tasks: Array, scaled: Array,
    conditions: tuple[Array, Vector, Vector], slip: Array | None = None,
) -> ContactProgram:  # fmt: skip
    """The program of the head of this module in units; `tasks` are rows by s or by its first
    entries, `scaled` are (u, w) in units by s, and conditions are C, lower and upper by s."""
    moved, n = np.zeros((tasks.shape[0], s.size)), s.size
    moved[:, : tasks.shape[1]] = tasks * units[: tasks.shape[1]]
    H = moved.T @ moved
    size = float(np.vecdot(moved, moved).sum())
    H = H / size if size > UNMOVED * max(1.0, largest(tasks) ** 2) else np.zeros((n, n))
    if slip is not None:
        rows = slip * units
        H += SLIP / max(float(np.vecdot(rows, rows).sum()), UNMOVED) * (rows.T @ rows)
    rows = scaled * units
    H += CONTACT_REGULAR * (rows.T @ rows)
    C, lower, upper = conditions
    at = C @ s
    return ContactProgram(H, C * units, lower - at, upper - at)


# ------------------------------------------------------------------------------------ solution


def optimality(p: ContactProgram, d: Vector, y: Vector) -> float:
    """The largest residual of stationarity, signs and complementarity, relative to their terms."""
    gradient, force = p.H @ d, p.C.T @ y
    above, below = np.maximum(y, 0.0), np.maximum(-y, 0.0)
    value = p.C @ d
    with np.errstate(invalid="ignore"):
        at_upper = np.where(above > 0.0, above * np.abs(p.upper - value), 0.0)
        at_lower = np.where(below > 0.0, below * np.abs(value - p.lower), 0.0)
    size = 1.0 + largest(gradient)
    return max(largest(gradient + force), largest(at_upper), largest(at_lower)) / size


def softened(p: ContactProgram, rows: int) -> ContactProgram:
    """The program with slacks for its last rows; they follow the unknowns."""
    (c, n), at = p.C.shape, np.arange(rows)
    H, C = np.zeros((n + rows, n + rows)), np.zeros((c, n + rows))
    H[:n, :n], C[:, :n] = p.H, p.C
    H[n + at, n + at], C[c - rows + at, n + at] = SOFT, 1.0
    return ContactProgram(H, C, p.lower, p.upper)


def solved_program(p: ContactProgram, *solvers: Solver) -> Optimum | None:
    """The optimum; None if each solver finds none, or calls the program infeasible. The next one
    is asked where the residuals of the last are too large."""
    n = p.H.shape[0]
    if p.violation(np.zeros(n)) == 0.0:
        return Optimum(np.zeros(n), np.zeros(p.lower.size), 0.0)
    if n == 0:
        return None
    best: Optimum | None = None
    for solver in solvers:
        found = _by(solver, p)
        if found is not None and (best is None or found.residual < best.residual):
            best = found
        if best is not None and best.residual <= OPTIMAL:
            break
    return best


def by_clarabel(program: EffortsQP) -> Nearest | None:
    """The solution by Clarabel, an interior-point method; None if it finds none."""
    clarabel: Any = import_module("clarabel")
    H, _, _, _, Y, lower, upper = program
    above, below = np.flatnonzero(upper < np.inf), np.flatnonzero(lower > -np.inf)
    A = csc_array(np.concatenate([Y[above], -Y[below]]))
    b = np.concatenate([upper[above], -lower[below]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CLARABEL_GAP
    cones = [clarabel.NonnegativeConeT(b.size)]
    zero = np.zeros(H.shape[0])
    found = clarabel.DefaultSolver(csc_array(np.triu(H)), zero, A, b, cones, settings).solve()
    if str(found.status) not in ("Solved", "AlmostSolved"):
        return None
    z = np.array(found.z)
    z[z <= ACTIVE_FOR_CLARABEL * max(1.0, float(z.max(initial=0.0)))] = 0.0
    multipliers = np.zeros(zero.size + lower.size)
    multipliers[zero.size + above] += z[: above.size]
    multipliers[zero.size + below] -= z[above.size :]
    return Nearest(np.array(found.x), multipliers, False)


def _by(solver: Solver, p: ContactProgram) -> Optimum | None:
    """The optimum by one solver, with its residual, which includes violations."""
    root, _ = lapack.dpotrf(p.H, lower=1)
    rows, _ = lapack.dtrtrs(root, p.C.T, lower=1)
    size = np.sqrt((rows * rows).sum(axis=0))
    moves = size > CONSTANT_ROW
    moving, constant = np.flatnonzero(moves), np.flatnonzero(~moves)
    if (p.lower[constant] > RAY_CLEAR).any() or (p.upper[constant] < -RAY_CLEAR).any():
        return None
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
