"""The same by toppra: two passes along the path, of linear programs with two variables.

Reference: H. Pham and Q.-C. Pham, "A new approach to time-optimal path parameterization based on
reachability analysis", IEEE Transactions on Robotics, 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.errors import InputError
from holoctl.base.tolerances import RETIME_CAP
from holoctl.design.retiming.by_cvxpy import IntervalRows

__all__ = ["by_toppra"]


def by_toppra(rows: IntervalRows) -> Vector | None:
    """b (N + 1,) of the fastest way, None where there is none; rows have no z.

    Raises
    ------
    InputError
        Where toppra is not installed.
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
        """Rows of the intervals, as toppra takes them: a u + b x + c <= 0, x at the start."""

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
