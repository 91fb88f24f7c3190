"""The fastest way along a path as a second-order cone program, by cvxpy.

    min sum 2 h_i r_i      r_i (y_i + y_i+1) >= 1,   y_i^2 <= b_i,   b_0 = b_n = 0
    a_i (b_i+1 - b_i) / 2 h_i + b_j' b_j + z_j y_j + c_j <= 0        at both ends j = i, i + 1

b = sd^2, y its root, r h the time an interval takes. Rows whose z is above zero, which are not
convex, were given their tangents before. Compiled once for each size, in each thread.
Reference: D. Verscheure et al., "Time-optimal path tracking for robots: a convex optimization
approach", IEEE Transactions on Automatic Control, 2009.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.tolerances import RETIME_CAP

__all__ = ["IntervalRows", "by_cvxpy"]

RETIME_GAPS = (1e-9, 1e-7)
"""What Clarabel is asked for on the fastest way, gap and feasibility: the first it attains."""


Array = NDArray[np.float64]


class IntervalRows(NamedTuple):
    """``left b_i + right b_i+1 + z y_j + c <= 0``: N intervals, m rows at each end of each.

    Attributes
    ----------
    left, right, z, c : (2, N, m) arrays
        First those at the start of each interval, j = i, then those at its end.
    most : (N + 1,) array
        Of b.
    h : (N,) array
    """

    left: Array
    right: Array
    z: Array
    c: Array
    most: Vector
    h: Vector


_LOCAL, _KEPT = threading.local(), 8
"""Compiled programs of a thread, the last ones used."""

_Solve = Callable[[IntervalRows], Vector | None]


def by_cvxpy(rows: IntervalRows) -> Vector | None:
    """b (N + 1,) of the fastest way, None where there is none; rows are of size one."""
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
        for gap in RETIME_GAPS:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that it is inaccurate: the status says so too
                    problem.solve(
                        solver=cp.CLARABEL, tol_gap_abs=gap, tol_gap_rel=gap, tol_feas=gap
                    )
            except cp.error.SolverError:
                continue
            if problem.status == cp.OPTIMAL:
                return np.concatenate([[0.0], np.maximum(x.value, 0.0), [0.0]])
        return None

    return solve
