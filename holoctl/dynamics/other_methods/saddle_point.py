"""The saddle-point system of constrained dynamics, by three methods.

    [M  G^T] [  x     ]   [f]        M symmetric, positive definite where G x = 0;
    [G   0 ] [-lambda ] = [k]        G of full row rank

Forward dynamics has x = a, f = tau - h, k = -drift; an impact has x = v+, f = M v-, k = v_plus. All
quantities are scaled (M by the column scales, G by both). Each method has its use: direct needs no
definite M, range-space uses the sparsity of M, null-space is efficient for few motions.
References: R. Featherstone, Rigid Body Dynamics Algorithms, section 8.5 (direct and range-space
forms); M. Benzi, G. Golub, J. Liesen, Numerical solution of saddle point problems, on the
null-space method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import cholesky, pivoted_qr

__all__ = ["Solution", "direct", "null_space", "range_space"]


class Solution(NamedTuple):
    """x, lambda, and the condition number of the factored matrix."""

    x: Vector
    multipliers: Vector
    condition: float


def direct(M: Array, G: Array, f: Vector, k: Vector) -> Solution:
    """The whole system at once, by symmetric indefinite factorisation (Bunch and Kaufman).

    M is scaled to unit diagonal and G to entries of the same size, which is a change of units.
    """
    n, r = M.shape[0], G.shape[0]
    s = 1.0 / np.sqrt(np.maximum(np.diag(M), _least(M)))
    g = 1.0 / max(float(np.abs(G * s).max(initial=0.0)), _TINY)
    K = np.zeros((n + r, n + r), order="F")
    K[:n, :n], K[n:, :n] = M * s * s[:, None], g * G * s
    K[:n, n:] = K[n:, :n].T
    factors, pivots, x, info = lapack.dsysv(K, np.concatenate([s * f, g * k]), lower=1)
    rcond = 0.0
    if info == 0:
        rcond, _ = lapack.dsycon(factors, pivots, np.abs(K).sum(axis=0).max(), lower=1)
    condition = 1.0 / rcond if rcond > 0.0 else float("inf")
    return Solution(s * x[:n], -g * x[n:], condition)


def range_space(
    solve: Callable[[Array], Array], c: Vector, M: Array, G: Array, f: Vector, k: Vector
) -> Solution:
    """First lambda, from ``G M^-1 G^T lambda = k - G M^-1 f``, then x.

    `solve` applies the inverse of the unscaled inertia matrix to columns; `c` are the column
    scales. M is checked too, because the rows alone do not show whether it is singular.
    """
    columns = solve(np.column_stack([G.T, f]) / c[:, None]) / c[:, None]
    W, free = columns[:, :-1], columns[:, -1]  # M^-1 G^T, and x without constraints
    K = cholesky(G @ W)
    lam = K.solve(k - G @ free)
    return Solution(free + W @ lam, lam, max(K.condition, cholesky(M).condition))


def null_space(M: Array, G: Array, f: Vector, k: Vector) -> Solution:
    """First x = Y y + Z z, with Y spanning the range of G^T and Z the null space of G; then
    lambda from the equations along Y."""
    qr = pivoted_qr(G.T, G.shape[0])  # G^T P = [Y Z] [R; 0]
    Z = qr.q[:, G.shape[0] :]
    fixed = qr.shortest(k)  # Y y
    reduced = cholesky(Z.T @ M @ Z)
    x = fixed + Z @ reduced.solve(Z.T @ (f - M @ fixed))
    lam = qr.fitted(M @ x - f)  # Y^T G^T lambda = Y^T (M x - f)
    return Solution(x, lam, max(qr.condition, reduced.condition))


_TINY = float(np.finfo(float).tiny)


def _least(M: Array) -> float:
    """Lower bound for the scale of a coordinate with little or no inertia."""
    return max(1e-12 * float(np.diag(M).max(initial=0.0)), _TINY)
