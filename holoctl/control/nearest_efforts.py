"""The efforts nearest to the commanded ones, within limits.

    min 1/2 (x - x_cmd)' H (x - x_cmd)        lower <= x <= upper,   y_lower <= Y x <= y_upper

in scaled efforts. The Hessian H measures efforts by the accelerations that they cause: Gauss's
principle of least constraint with u as the only variable. The box is hard. If no x within the box
satisfies the rows, they are softened, at the cost of 1/2 |slack|^2 / SOFT_ROWS.

DAQP solves it; `solver="cvxpy"`, the reference, is nearest_by_cvxpy.py.
References: docs/derivations.md, "Limits"; J. Nocedal and S. Wright, Numerical Optimization, the
chapter on quadratic programming.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import daqp
import numpy as np

from holoctl.base.checks import Array, Vector, finite
from holoctl.base.tolerances import DAQP_FEASIBLE, SOFT_ROWS

__all__ = ["EffortsQP", "Nearest", "Solver", "by_daqp", "checked", "multipliers_of_slack"]


_SOFT = 8  # the constraint type of DAQP for a soft constraint


class EffortsQP(NamedTuple):
    """The quadratic program of the head of this module.

    Attributes
    ----------
    H : (nu, nu) array
        The Hessian: symmetric, positive definite.
    x_cmd, lower, upper : (nu,) arrays
        The commanded efforts, and their bounds, which may be infinite.
    Y : (n, nu) array
        Rows y with ``y H^-1 y' = 1``, which define the units of the slack.
    y_lower, y_upper : (n,) arrays
        The bounds of Y x, which may be infinite.
    """

    H: Array
    x_cmd: Vector
    lower: Vector
    upper: Vector
    Y: Array
    y_lower: Vector
    y_upper: Vector


class Nearest(NamedTuple):
    """A solution of an `EffortsQP`.

    Attributes
    ----------
    x : (nu,) array
        The nearest efforts.
    multipliers : (nu + n,) array
        Of the bounds of efforts and of rows: above zero at an upper bound, below at a lower one.
    soft : bool
        Whether rows were softened.
    """

    x: Vector
    multipliers: Vector
    soft: bool


Solver = Callable[[EffortsQP], Nearest | None]
"""solver(program) -> the solution; None if it found none."""


def by_daqp(
    program: EffortsQP, tolerance: float = DAQP_FEASIBLE, soften: bool = True
) -> Nearest | None:
    """The solution by DAQP, a dual active-set method; rows may be violated by `tolerance`."""
    H, x_cmd, lower, upper, Y, below, above = program
    if above.size:
        below, above = np.concatenate([lower, below]), np.concatenate([upper, above])
    else:
        below, above = lower, upper
    f = H.dot(-x_cmd)
    sense = np.zeros(above.size, dtype=np.intc)
    x, _, flag, info = daqp.solve(H, f, Y, above, below, sense, primal_tol=tolerance)
    # infeasible, or more equalities than efforts
    soft = soften and flag < 1 and above.size > lower.size
    if soft:
        sense = np.zeros(above.size, dtype=np.intc)
        sense[lower.size :] = _SOFT
        x, _, flag, info = daqp.solve(
            H, f, Y, above, below, sense, primal_tol=DAQP_FEASIBLE, rho_soft=SOFT_ROWS
        )
    if flag < 1:
        return None
    return checked(program, x, info["lam"], soft)


def multipliers_of_slack(Y: Array, lower: Vector, upper: Vector, slack: float) -> Vector | None:
    """Multipliers of ``lower <= Y x + e <= upper`` with the cost ``1/2 |x|^2 + 1/2 |e|^2 / slack``,
    by DAQP: above zero at an upper bound, below at a lower one. None if it finds none."""
    n = Y.shape[1]
    sense = np.full(lower.size, _SOFT, dtype=np.intc)
    _, _, flag, info = daqp.solve(
        np.eye(n), np.zeros(n), np.ascontiguousarray(Y), upper, lower, sense,
        primal_tol=DAQP_FEASIBLE, rho_soft=slack,
    )  # fmt: skip
    y: Vector = info["lam"]
    return y if flag >= 1 and finite(y) else None


def checked(program: EffortsQP, x: Vector, multipliers: Vector, soft: bool) -> Nearest | None:
    """The solution if it is finite, else None."""
    return Nearest(x, multipliers, soft) if finite(x) else None
