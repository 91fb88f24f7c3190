"""The optimisation problems of time-optimal motion along a path, and the cause of infeasibility.

    min sum 2 h_i r_i      r_i (y_i + y_i+1) >= 1,   y_i^2 <= b_i,   b_0 = b_n = 0
    a_i (b_i+1 - b_i) / 2 h_i + b_j' b_j + z_j y_j + c_j <= 0        at both ends j = i, i + 1

b = sd^2, y is its root, r h the time of an interval. Rows with z > 0, which are not convex, were
replaced by their tangents before. With cvxpy this is a second-order cone program, compiled once for
each size in each thread; with toppra, for rows without z, two passes along the path. If there is no
solution, a linear program, min e with all rows at most e, finds the rows that prevent it.
References: D. Verscheure et al., "Time-optimal path tracking for robots: a convex optimization
approach", IEEE Transactions on Automatic Control, 2009; H. Pham and Q.-C. Pham, "A new approach to
time-optimal path parameterization based on reachability analysis", IEEE Transactions on Robotics,
2018.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError, LimitError
from holoctl.design.paths.dynamics import Dynamics
from holoctl.design.retiming.limit_rows import RetimingRows

__all__ = ["IntervalRows", "by_cvxpy", "by_toppra", "infeasible", "solved"]

RETIME_CAP = 1e6
"""Squared speeds along a path count as unlimited above this multiple of the usual ones."""


RETIME_GAPS = (1e-9, 1e-7)
"""Tolerances of gap and feasibility for Clarabel, tried in this order until one is attained."""


class IntervalRows(NamedTuple):
    """``left b_i + right b_i+1 + z y_j + c <= 0``: N intervals, m rows at each end of each.

    Attributes
    ----------
    left, right, z, c : (2, N, m) arrays
        First those at the start of each interval, j = i, then those at its end.
    most : (N + 1,) array
        Upper bounds of b.
    h : (N,) array
        Lengths of the intervals.
    """

    left: Array
    right: Array
    z: Array
    c: Array
    most: Vector
    h: Vector


_LOCAL, _KEPT = threading.local(), 8
"""Storage of the compiled programs of a thread, and the number of programs that are kept."""

_Solve = Callable[[IntervalRows], Vector | None]


def by_cvxpy(rows: IntervalRows) -> Vector | None:
    """b (N + 1,) of the fastest motion, None if there is none; rows are scaled to size one."""
    N, m = rows.left.shape[1:]
    rooted = bool((rows.z < 0.0).any())
    problems: OrderedDict[Any, _Solve] = _LOCAL.__dict__.setdefault("problems", OrderedDict())
    key = N, m, rooted
    if key not in problems:
        problems[key] = _compiled(N, m, rooted)
    problems.move_to_end(key)
    while len(problems) > _KEPT:
        problems.popitem(last=False)
    return problems[key](rows)


def _compiled(N: int, m: int, rooted: bool) -> _Solve:
    cp: Any = import_module("cvxpy")

    x = cp.Variable(N - 1, nonneg=True)
    y, r = cp.Variable(N - 1), cp.Variable(N)
    b, root = cp.hstack([0.0, x, 0.0]), cp.hstack([0.0, y, 0.0])
    h, most = cp.Parameter(N, nonneg=True), cp.Parameter(N - 1, nonneg=True)
    tables = [[cp.Parameter((N, m)) for _ in range(2)] for _ in range(4 if rooted else 3)]
    start, end = np.ones((1, m)), np.ones((1, m))
    b0 = cp.reshape(b[:-1], (N, 1), order="C") @ start
    b1 = cp.reshape(b[1:], (N, 1), order="C") @ end
    constraints = [x <= most]
    for j in range(2):
        total = cp.multiply(tables[0][j], b0) + cp.multiply(tables[1][j], b1) + tables[2][j]
        if rooted:
            at = root[:-1] if j == 0 else root[1:]
            total += cp.multiply(tables[3][j], cp.reshape(at, (N, 1), order="C") @ start)
        constraints.append(total <= 0.0)
    pair = root[:-1] + root[1:]
    constraints.append(cp.SOC(x + 1.0, cp.vstack([2.0 * y, x - 1.0])))  # y^2 <= x
    two = np.full(N, 2.0)
    constraints.append(cp.SOC(r + pair, cp.vstack([two, r - pair])))  # r pair >= 1
    problem = cp.Problem(cp.Minimize(h @ r), constraints)

    def solve(rows: IntervalRows) -> Vector | None:
        h.value, most.value = rows.h / rows.h.mean(), np.minimum(rows.most[1:-1], RETIME_CAP)
        given = (rows.left, rows.right, rows.c, np.minimum(rows.z, 0.0))
        for both, table in zip(tables, given, strict=False):
            for parameter, values in zip(both, table, strict=True):
                parameter.value = values
        if not solved(problem):
            return None
        return np.concatenate([[0.0], np.maximum(x.value, 0.0), [0.0]])

    return solve


def solved(problem: Any) -> bool:
    """Whether Clarabel finds the optimum of a problem of cvxpy."""
    cp: Any = import_module("cvxpy")
    for gap in RETIME_GAPS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "inaccurate", which the status reports too
                problem.solve(solver=cp.CLARABEL, tol_gap_abs=gap, tol_gap_rel=gap, tol_feas=gap)
        except cp.error.SolverError:
            continue
        if problem.status == cp.OPTIMAL:
            return True
    return False


def by_toppra(rows: IntervalRows) -> Vector | None:
    """b (N + 1,) of the fastest motion, None if there is none; rows have no z.

    Raises
    ------
    InputError
        If toppra is not installed.
    """
    try:
        import toppra
        from toppra.algorithm import TOPPRA
        from toppra.constraint import LinearConstraint
    except ImportError:
        raise InputError(
            "method='toppra' needs the package toppra: pip install 'holoctl[design]'; or take "
            "method='cvxpy'"
        ) from None
    toppra.setup_logging("ERROR")
    h = rows.h
    s = np.concatenate([[0.0], np.cumsum(h)])

    class ToppraRows(LinearConstraint):  # type: ignore[misc]
        """Rows of the intervals in the form of toppra: a u + b x + c <= 0, with x at the start."""

        def __init__(self) -> None:
            super().__init__()
            self.identical = True  # the same F and g everywhere

        def compute_constraint_params(self, path: Any, gridpoints: Any) -> Any:
            a = 2.0 * h[:, None] * np.hstack([rows.right[0], rows.right[1]])
            b = np.hstack([rows.left[j] + rows.right[j] for j in range(2)])
            c = np.hstack([rows.c[0], rows.c[1]])
            a, b, c = (np.vstack([x, np.zeros_like(x[:1])]) for x in (a, b, c))
            c[-1] = -1.0
            F, g = np.eye(c.shape[1]), np.zeros(c.shape[1])
            most = np.minimum(rows.most, RETIME_CAP)
            return a, b, c, F, g, None, np.stack([np.zeros_like(most), most], axis=1)

    line = toppra.SplineInterpolator([0.0, s[-1]], [[0.0], [1.0]])
    found = TOPPRA([ToppraRows()], line, gridpoints=s, solver_wrapper="seidel")
    result = found.compute_parameterization(0.0, 0.0, return_data=True)
    rates = result[1]
    if rates is None or not np.isfinite(rates).all():
        return None
    b: Vector = np.asarray(rates, dtype=float) ** 2
    return b


def infeasible(dyn: Dynamics, rows: RetimingRows) -> LimitError:
    """The error for a path without a solution: the limits that prevent it, and where."""
    mech, s = dyn.path.system.mech, dyn.path.s
    n, m = rows.c.shape
    known = rows.most[np.isfinite(rows.most)]
    size = float(np.median(known)) if known.size else 1.0
    h = np.diff(s)[:, None] / size
    i, k = (x.ravel() for x in np.indices((n - 1, m)))
    row, column, value, right = [], [], [], []
    for j in range(2):
        a, b, c = rows.a[j : n - 1 + j], rows.b[j : n - 1 + j] * size, rows.c[j : n - 1 + j]
        at = j * (n - 1) * m + i * m + k
        by_first, by_last = -a / (2.0 * h), a / (2.0 * h)
        by_first, by_last = (by_first + b, by_last) if j == 0 else (by_first, by_last + b)
        row += [at, at, at]
        column += [i, i + 1, np.full(at.size, n)]
        value += [by_first.ravel(), by_last.ravel(), np.full(at.size, -1.0)]
        right.append(-c.ravel())
    table = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
    A = coo_array(table, shape=(2 * (n - 1) * m, n + 1)).tocsr()
    lower, upper = np.zeros(n + 1), np.append(rows.most / size, np.inf)
    upper[[0, n - 1]], lower[n] = 0.0, -np.inf
    cost = np.append(np.zeros(n), 1.0)
    solve: Any = linprog
    found = solve(
        cost, A_ub=A, b_ub=np.concatenate(right), bounds=np.stack([lower, upper], axis=1),
        method="highs",
    )  # fmt: skip
    if found.status != 0 or found.x[-1] <= 0.0:
        return LimitError(
            f"{mech.name}: no motion along the path within its limits was found, although there "
            "may be one that is very slow somewhere, or hard to compute: relax the limits a "
            "little, give more points, or take the other method"
        )
    force = np.abs(np.asarray(found.ineqlin.marginals))
    worst = int(np.argmax(force))
    j, at, which = worst // ((n - 1) * m), (worst // m) % (n - 1), worst % m
    share = np.bincount(np.tile(k, 2), weights=force, minlength=m)
    names = tuple(dict.fromkeys(rows.names[x] for x in np.argsort(-share) if share[x] > 0.05))
    place = float(s[at + j])
    missing = found.x[-1] * rows.size[at + j, which]
    unit = "rad/s^2 or m/s^2" if rows.names[which].endswith(".acceleration") else "N m or N"
    how = "at any speed" if place not in (s[0], s[-1]) else "at rest"
    return LimitError(
        f"{mech.name}: the path cannot be followed within its limits, {how}: at s = {place:.4g} "
        f"{rows.names[which]!r} would have to exceed its limit by at least {missing:.4g} {unit}; "
        "take another path, less payload, or other limits",
        names=names, residual=float(found.x[-1]),
    )  # fmt: skip
