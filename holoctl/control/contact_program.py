"""The program of unilateral contacts: tasks as well as motors, friction and limits allow.

    min 1/2 |tasks du|^2 + REGULAR / 2 (|du|^2 + |dw|^2)        lower <= C s <= upper

s = (u, w2) are efforts and forces that balance each other (contact_motion.py), in units, d are
distances from the bilateral solution, and w are all wrenches of the ground. s_bilateral is the
solution without inequalities: the tasks first, then the smallest efforts, then the smallest forces.
Where it is feasible it is the optimum for every weight, so that the inequalities change nothing
where none is active. Elsewhere it is solved once more, with the distance from this solution, which
is then the optimum of the tasks (the proximal point method). In d = s - s_bilateral this is the
program of nearest_efforts.py. Where w2 alone can make it feasible, the motion is kept. The program
is infeasible if and only if a ray exists, with the bounds of C d,

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

from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import linprog
from scipy.sparse import csc_array

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest
from holoctl.control.nearest_efforts import (
    EffortsQP,
    Nearest,
    Solver,
    by_daqp,
    multipliers_of_slack,
)

__all__ = [
    "BY_DAQP",
    "OPTIMAL",
    "ContactProgram",
    "Optimum",
    "by_clarabel",
    "infeasibility_ray",
    "program_around",
    "softened",
    "solved_program",
]

CONTACT_REGULAR = 3e-9
"""Weight of the distance from the bilateral solution, relative to all tasks. The accelerations that
an effort causes, of a light foot or of the trunk, differ by some 1e-8 in their squares: a weight of
1e-6 moves the optimum of the tasks by some percent. At 1e-11 DAQP takes conditions for parallel
ones, and efforts are repeatable to 1e-8 only."""

STRENGTHENED = 300.0
"""The factor of this weight where no solver finds an optimum."""

SLIP = 1e4
"""Weight of the slip of contacts, relative likewise."""

SOFT = 1e3
"""Weight of the slack of limits of joints, relative likewise."""

REGULAR_OF_SLIP = 1e-6
"""As `CONTACT_REGULAR`, in the program with slip: it is 1e-10 of its largest weight."""

OPTIMAL = 1e-8
"""Largest relative duality gap, and largest violation of a condition, scaled."""

NO_COST = 1e-20
"""Duality gaps of this size, for tasks of size one, do not matter."""

UNMOVED = 1e-18
"""Tasks whose squares are below this, relative to their rows, are not moved by any effort."""

RAY_CLEAR = 1e-9
"""The conditions exclude each other if they are violated by more than this, scaled."""

EXCLUDED = 1e-7
"""Conditions exclude each other beyond all doubt if they are violated by more than this, scaled: no
solver then finds an optimum that violates them by `OPTIMAL`."""

RAY_OF_DAQP = 1e-8
"""As `RAY_EXACT`, for the proof that saves further solvers."""

SLACK = 1e-15
"""The squares of slacks cost by one over this as much as those of the unknowns, in units: the
multipliers are then a ray but for some 1e-12."""

RAY_EXACT = 1e-3
"""Largest residual of a ray, relative to the violation that it proves: it then excludes all
unknowns up to some hundred times their units."""

LOOSELY = 1e-6
"""Violations that DAQP may leave at the second try: with its closer tolerance of the first it calls
one in some thousand programs infeasible that are not."""

CLARABEL_GAP = 1e-12
"""The tolerance of Clarabel for its gap and feasibility."""

CONSTANT_ROW = 1e-12
"""A condition that no unknown changes by more than this is constant."""


class ContactProgram(NamedTuple):
    """The program of the head of this module, around its bilateral solution.

    Attributes
    ----------
    root : (n, n) array
        Upper triangular; the cost is ``1/2 |root d|^2``.
    regular : (r, n) array
        The part of the cost that is no task is ``1/2 |regular d|^2``.
    C : (c, n) array
        The conditions by d, the change of the unknowns in units.
    lower, upper : (c,) arrays
        Bounds of ``C d``; infinite for none.
    """

    root: Array
    regular: Array
    C: Array
    lower: Vector
    upper: Vector

    def violation(self, d: Vector) -> float:
        """The largest violation of a condition."""
        return self.over(self.C @ d)

    def over(self, value: Vector) -> float:
        """The largest violation of a bound of ``C d``."""
        return float(np.maximum(self.lower - value, value - self.upper).max(initial=0.0))


class Optimum(NamedTuple):
    """A solution of a `ContactProgram`.

    Attributes
    ----------
    d : (n,) array
    multipliers : (c,) array
        Above zero at an upper bound, below at a lower one.
    residual : float
        The relative duality gap, or the largest violation of a condition.
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
    moved = np.zeros((tasks.shape[0], s.size))
    moved[:, : tasks.shape[1]] = tasks * units[: tasks.shape[1]]
    size = float(np.vecdot(moved, moved).sum())
    weight = CONTACT_REGULAR if slip is None else REGULAR_OF_SLIP
    rows = [np.sqrt(weight) * (scaled * units)]
    if size > UNMOVED * max(1.0, largest(tasks) ** 2):
        rows.append(moved / np.sqrt(size))
    if slip is not None:
        slips = slip * units
        size = max(float(np.vecdot(slips, slips).sum()), UNMOVED)
        rows.append(np.sqrt(SLIP / size) * slips)
    root, _, _, _ = lapack.dgeqrf(np.concatenate(rows), 65 * s.size)
    C, lower, upper = conditions
    at = C @ s
    return ContactProgram(np.triu(root[: s.size]), rows[0], C * units, lower - at, upper - at)


# ------------------------------------------------------------------------------------ solution


def optimality(p: ContactProgram, rows: Array, x: Vector, y: Vector, value: Vector) -> float:
    """The duality gap, relative to the cost: the error of the cost is not larger,

        1/2 |x|^2 - optimum <= 1/2 |x + rows y|^2 + |y|' |slack|        x = root d

    with `rows` = root'^-1 C', and the `value` C d. Residuals of the terms alone would say nothing
    where a motion costs little."""
    rest = x + rows.dot(y)
    at = np.where(y > 0.0, p.upper, np.where(y < 0.0, p.lower, value))
    gap = 0.5 * float(rest.dot(rest)) + float(np.abs(y).dot(np.abs(value - at)))
    return gap / (0.5 * float(x.dot(x)) + NO_COST)


def softened(p: ContactProgram, rows: int) -> ContactProgram:
    """The program with slacks for its last rows; they follow the unknowns."""
    (c, n), at = p.C.shape, np.arange(rows)
    root, C = np.zeros((n + rows, n + rows)), np.zeros((c, n + rows))
    regular = np.zeros((p.regular.shape[0], n + rows))
    root[:n, :n], regular[:, :n], C[:, :n] = p.root, p.regular, p.C
    root[n + at, n + at], C[c - rows + at, n + at] = np.sqrt(SOFT), 1.0
    return ContactProgram(root, regular, C, p.lower, p.upper)


def solved_program(p: ContactProgram, *solvers: Solver, recentre: bool = True) -> Optimum | None:
    """The optimum; None if each solver finds none that is `OPTIMAL`, or the program is infeasible.
    If `recentre`, the weight of the distance is next to nothing, and may be made stronger where no
    solver finds an optimum."""
    n = p.root.shape[0]
    if p.violation(np.zeros(n)) == 0.0:
        return Optimum(np.zeros(n), np.zeros(p.lower.size), 0.0)
    if n == 0:
        return None
    found = _by_first(p, solvers[:1], recentre)
    if found is not None or _excluded(p):
        return found
    found = _by_first(p, solvers[1:], recentre)
    if found is None and recentre:
        found = _by_first(_strengthened(p), BY_DAQP, recentre)
    return found


def _by_first(p: ContactProgram, solvers: tuple[Solver, ...], recentre: bool) -> Optimum | None:
    """The optimum by the first solver that finds one; None if there is none."""
    scaled = _scaled(p)
    if scaled is None:
        return None
    for solver in solvers:
        found = _by(solver, p, scaled)
        if found is not None and found.residual <= OPTIMAL:
            return _recentred(solver, p, scaled, found) if recentre else found
    return None


def _strengthened(p: ContactProgram) -> ContactProgram:
    """The program with more weight on the distance: for contacts with next to no friction, where
    conditions are all but parallel."""
    rows = [p.root, np.sqrt(STRENGTHENED - 1.0) * p.regular]
    root, _, _, _ = lapack.dgeqrf(np.concatenate(rows), 65 * p.root.shape[0])
    n = p.root.shape[0]
    return p._replace(root=np.triu(root[:n]), regular=np.sqrt(STRENGTHENED) * p.regular)


def _recentred(solver: Solver, p: ContactProgram, scaled: _Scaled, found: Optimum) -> Optimum:
    """The optimum with its distance taken from the last one (the proximal point method): closer to
    that of the tasks alone. The last one if the solver finds none."""
    pulled = p.regular.T.dot(p.regular.dot(found.d))
    x, _ = lapack.dtrtrs(p.root, pulled, trans=1)
    centre = lapack.dtrtrs(p.root, x)[0]
    at = p.C.dot(centre)
    again = _by(solver, p._replace(lower=p.lower - at, upper=p.upper - at), scaled)
    if again is None or again.residual > OPTIMAL:
        return found
    return again._replace(d=centre + again.d)


BY_DAQP: tuple[Solver, ...] = (
    partial(by_daqp, soften=False),
    partial(by_daqp, tolerance=LOOSELY, soften=False),
)


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
    z[z <= np.array(found.s)] = 0.0  # strictly complementary, both in units of the cost
    multipliers = np.zeros(zero.size + lower.size)
    multipliers[zero.size + above] += z[: above.size]
    multipliers[zero.size + below] -= z[above.size :]
    return Nearest(np.array(found.x), multipliers, False)


class _Scaled(NamedTuple):
    """Conditions on x = root d: the program of |x|^2 without any, their rows root'^-1 C' (n, c),
    those that move with x, and, of these, factors and rows of length one."""

    free: EffortsQP
    rows: Array
    moving: Vector
    constant: Vector
    factors: Vector
    unit_rows: Array


def _scaled(p: ContactProgram) -> _Scaled | None:
    """None if root is singular."""
    rows, singular = lapack.dtrtrs(p.root, p.C.T, trans=1)
    if singular:
        return None
    size = np.sqrt((rows * rows).sum(axis=0))
    moves = size > CONSTANT_ROW
    moving, constant = moves.nonzero()[0], (~moves).nonzero()[0]
    factors = 1.0 / size[moving]
    unit_rows = np.ascontiguousarray((rows[:, moving] * factors).T)
    n = p.root.shape[0]
    none, far = np.zeros(0), np.full(n, np.inf)
    free = EffortsQP(np.eye(n), np.zeros(n), -far, far, np.zeros((0, n)), none, none)
    return _Scaled(free, rows, moving, constant, factors, unit_rows)


def _by(solver: Solver, p: ContactProgram, scaled: _Scaled) -> Optimum | None:
    """The optimum by one solver, with its residual, which includes violations.

    The solver gets x = root d / far, rows of length one, and the largest
    violation at x = 0 scaled to one: then 1/2 |x|^2 is the cost, and |x| >= 1 at the optimum.
    """
    free, rows, moving, constant, r, unit_rows = scaled
    if (p.lower[constant] > RAY_CLEAR).any() or (p.upper[constant] < -RAY_CLEAR).any():
        return None
    lower, upper = r * p.lower[moving], r * p.upper[moving]
    far = max(float(lower.max(initial=0.0)), -float(upper.min(initial=0.0)))
    if far == 0.0:
        return None
    program = free._replace(Y=unit_rows, y_lower=lower / far, y_upper=upper / far)
    found: Nearest | None = solver(program)
    if found is None or found.soft:
        return None
    x, y = far * found.x, np.zeros(p.lower.size)
    y[moving] = far * r * found.multipliers[x.size :]
    d = lapack.dtrtrs(p.root, x)[0]
    value = p.C.dot(d)
    return Optimum(d, y, max(optimality(p, rows, x, y, value), p.over(value)))


def _excluded(p: ContactProgram) -> bool:
    """Whether a ray proves, beyond all doubt, that the program is infeasible. Multipliers of

        min 1/2 |d|^2 + 1/2 |slack|^2 / SLACK        lower <= C d + slack <= upper

    are slack / SLACK with C' y = -d, and so a ray where no d satisfies all conditions."""
    y = multipliers_of_slack(p.C, p.lower, p.upper, SLACK)
    if y is None:
        return False
    above, below = y > 0.0, y < 0.0
    excess = -float(y[above].dot(p.upper[above]) + y[below].dot(p.lower[below]))
    total = float(np.abs(y).sum())
    return excess > EXCLUDED * total and largest(p.C.T.dot(y)) <= RAY_OF_DAQP * excess


def infeasibility_ray(p: ContactProgram) -> Vector | None:
    """Multipliers (c,), signed as in `Optimum`, that prove that no s satisfies all conditions; None
    if there are none. Their magnitudes add to one."""
    above, below = np.flatnonzero(p.upper < np.inf), np.flatnonzero(p.lower > -np.inf)
    C = np.concatenate([p.C[above], -p.C[below]])
    d = np.concatenate([p.upper[above], -p.lower[below]])
    n = p.root.shape[0]
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
