"""Efforts of motors: of as many as motions the only ones, of more those of least squares in a box.

A u = r      lower <= u <= upper      min sum (u_j / size_j)^2
"""

from __future__ import annotations

import daqp
import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.linalg import least_squares
from holoctl.base.tolerances import DAQP_FEASIBLE

__all__ = ["shared_efforts"]

Array = NDArray[np.float64]


def shared_efforts(A: Array, r: Array, lower: Array, upper: Array) -> Array:
    """u (n, nu) at n nodes: A (n, p, nu), r (n, p), bounds (n, nu)."""
    n, p, nu = A.shape
    if nu == p:
        return np.asarray(np.linalg.solve(A, r[:, :, None])[:, :, 0], dtype=float)
    size = np.maximum(np.abs(lower), np.abs(upper)).max(axis=0)
    strongest = float(size[np.isfinite(size)].max(initial=0.0))
    size = np.where(np.isfinite(size), size, strongest or 1.0)
    return np.array(
        [_one(A[i] * size, r[i], lower[i] / size, upper[i] / size) * size for i in range(n)]
    )


def _one(A: Array, r: Vector, lower: Vector, upper: Vector) -> Vector:
    p, nu = A.shape
    u = least_squares(A, r)
    if (u >= lower).all() and (u <= upper).all():
        return u
    room = 1e-6 * (1.0 + np.abs(u))  # the program ends on the limits, and a solver beside them
    low, high = np.concatenate([lower - room, r]), np.concatenate([upper + room, r])
    sense = np.zeros(nu + p, dtype=np.intc)
    sense[nu:] = 5  # an equality
    H, f = np.eye(nu), np.zeros(nu)
    x, _, flag, _ = daqp.solve(H, f, A, high, low, sense, primal_tol=DAQP_FEASIBLE)
    return np.asarray(x) if flag >= 1 else u
