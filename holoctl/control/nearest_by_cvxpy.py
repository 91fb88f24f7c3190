"""The program of nearest_efforts.py as it reads, in cvxpy, for any solver of it: the reference."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from holoctl.base.errors import InputError
from holoctl.base.tolerances import SOFT_ROWS
from holoctl.control.nearest_efforts import Nearest, Program, Solver, checked

__all__ = ["by_cvxpy"]


def by_cvxpy(solver: str | None = None, **options: Any) -> Solver:
    """A solver of programs: by one of those that cvxpy has, Clarabel by default.

    Raises
    ------
    InputError
        For one that is not installed.
    """
    cp: Any = import_module("cvxpy")
    name = "CLARABEL" if solver is None else solver.upper()
    if name not in (known := cp.installed_solvers()):
        raise InputError(f"cvxpy has no solver {solver!r} here; it has {', '.join(sorted(known))}")

    def solve(p: Program) -> Nearest | None:
        below, above = np.concatenate([p.lower, p.y_lower]), np.concatenate([p.upper, p.y_upper])
        has_lower, has_upper = np.flatnonzero(below > -np.inf), np.flatnonzero(above < np.inf)
        nu, n = p.x_cmd.size, p.y_upper.size
        for soft in (False, True) if n else (False,):
            x, slack = cp.Variable(nu), cp.Variable(n)
            rows = p.Y @ x + slack if soft else p.Y @ x
            limited = cp.hstack([x, rows]) if n else x
            at_least = limited[has_lower] >= below[has_lower]
            at_most = limited[has_upper] <= above[has_upper]
            cost = 0.5 * cp.quad_form(x - p.x_cmd, cp.psd_wrap(p.H))
            if soft:
                cost += 0.5 / SOFT_ROWS * cp.sum_squares(slack)
            problem = cp.Problem(cp.Minimize(cost), [at_least, at_most])
            problem.solve(solver=name, **options)
            if problem.status in ("optimal", "optimal_inaccurate"):
                multipliers = np.zeros(nu + n)
                multipliers[has_upper] += at_most.dual_value
                multipliers[has_lower] -= at_least.dual_value
                return checked(p, np.asarray(x.value), multipliers, soft)
        return None

    return solve
