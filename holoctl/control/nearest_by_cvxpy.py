"""The program of nearest_efforts.py written out in cvxpy, for any of its solvers: the reference."""

from __future__ import annotations

import warnings
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from holoctl.base.errors import InputError
from holoctl.base.tolerances import SOFT_ROWS
from holoctl.control.nearest_efforts import EffortsQP, Nearest, Solver, checked

__all__ = ["by_cvxpy"]

ACTIVE_FOR_REFERENCE = 1e-9  # scaled
"""Multipliers that the reference, Clarabel, leaves below this are zero."""

CLARABEL_GAPS = (1e-13, 1e-11, 1e-9)
"""The tolerances of gap and feasibility of the reference, Clarabel: the first that it attains is
taken."""


def by_cvxpy(solver: str | None = None, **options: Any) -> Solver:
    """A solver of programs by one of the solvers of cvxpy, Clarabel by default.

    Raises
    ------
    InputError
        For a solver that is not installed.
    """
    cp: Any = import_module("cvxpy")
    name = "CLARABEL" if solver is None else solver.upper()
    tries = [options]
    if name == "CLARABEL":
        words = "tol_gap_abs", "tol_gap_rel", "tol_feas"
        tries = [dict.fromkeys(words, gap) | options for gap in CLARABEL_GAPS]
    if name not in (known := cp.installed_solvers()):
        raise InputError(f"cvxpy has no solver {solver!r} here; it has {', '.join(sorted(known))}")

    def solve(p: EffortsQP) -> Nearest | None:
        below, above = np.concatenate([p.lower, p.y_lower]), np.concatenate([p.upper, p.y_upper])
        equal = below == above  # two inequalities would have no interior
        has_lower = np.flatnonzero((below > -np.inf) & ~equal)
        has_upper = np.flatnonzero((above < np.inf) & ~equal)
        equal = np.flatnonzero(equal)
        nu, n, root = p.x_cmd.size, p.y_upper.size, np.linalg.cholesky(p.H)
        for soft in (False, True) if n else (False,):
            x, slack = cp.Variable(nu), cp.Variable(n)
            rows = p.Y @ x + slack if soft else p.Y @ x
            limited = cp.hstack([x, rows]) if n else x
            at_least = limited[has_lower] >= below[has_lower]
            at_most = limited[has_upper] <= above[has_upper]
            exactly = limited[equal] == above[equal]
            cost = 0.5 * cp.sum_squares(root.T @ (x - p.x_cmd))
            if soft:
                cost += 0.5 / SOFT_ROWS * cp.sum_squares(slack)
            problem = cp.Problem(cp.Minimize(cost), [at_least, at_most, exactly])
            for closely in tries:
                with suppress(cp.SolverError), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the status shows an inaccurate solution
                    problem.solve(solver=name, **closely)
                if problem.status in (cp.OPTIMAL, cp.INFEASIBLE):
                    break
            if problem.status == cp.OPTIMAL:
                multipliers = np.zeros(nu + n)
                multipliers[equal] += exactly.dual_value
                multipliers[has_upper] += at_most.dual_value
                multipliers[has_lower] -= at_least.dual_value
                sizes = np.abs(multipliers)
                least = ACTIVE_FOR_REFERENCE * max(1.0, float(sizes.max(initial=0.0)))
                multipliers[sizes <= least] = 0.0
                return checked(p, np.asarray(x.value), multipliers, soft)
        return None

    return solve
