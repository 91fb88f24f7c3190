"""Inverse dynamics within limits as most write it: a, u and the multipliers are all unknown.

    min 1/2 |B' a - target|^2
    M a + h = B u + G' lambda,   G a = -drift,   lower <= u <= upper

by DAQP and Clarabel themselves, and by cvxpy with parameters, whose problem is compiled once; and
the small program of `hc.limited_inverse_dynamics`, by cvxpy with parameters. M, h, G and drift are
Pinocchio's, as in the textbook column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import clarabel
import cvxpy as cp
import daqp
import numpy as np
from columns import Textbook
from numpy.typing import NDArray
from scipy import sparse

from holoctl.control.nearest_efforts import EffortsQP, Nearest

Array = NDArray[np.float64]
Terms = Callable[[Array, Array], tuple[Array, Array, Array, Array]]
Way = Callable[[Array, Array, Array], Array]
"""way(q, v, target) -> u"""


class Equations:
    """The equations of motion as rows ``A x = b``, x = (u, a, lambda), filled anew for every state;
    and the cost, which does not grow in all directions: solvers add what they need."""

    def __init__(self, textbook: Textbook, B: Array) -> None:
        nv, nu = B.shape
        self.terms, self.B, self.rank = textbook.terms, B, textbook.system.K.shape[0] - nv - nu
        self.A, self.b = np.zeros((nv + self.rank, nu + nv + self.rank)), np.zeros(nv + self.rank)
        self.A[:nv, :nu] = -B
        self.H, self.f = np.zeros((nu + nv + self.rank,) * 2), np.zeros(nu + nv + self.rank)
        self.H[nu : nu + nv, nu : nu + nv] = B @ B.T

    def fill(self, q: Array, v: Array, target: Array) -> None:
        """Everything at this state."""
        (nv, nu), A, b = self.B.shape, self.A, self.b
        M, h, G, drift = self.terms(q, v)
        A[:nv, nu : nu + nv], A[:nv, nu + nv :] = M, -G.T
        A[nv:, nu : nu + nv] = G
        b[:nv], b[nv:] = -h, -drift
        self.f[nu : nu + nv] = -self.B @ target


def by_daqp(E: Equations, lower: Array, upper: Array) -> Way:
    """DAQP, which takes dense matrices."""
    nu, rows = lower.size, E.b.size
    sense = np.concatenate([np.zeros(nu), np.full(rows, 5)]).astype(np.intc)

    def torque(q: Array, v: Array, target: Array) -> Array:
        E.fill(q, v, target)
        below, above = np.concatenate([lower, E.b]), np.concatenate([upper, E.b])
        x, _, flag, _ = daqp.solve(E.H, E.f, E.A, above, below, sense.copy(), primal_tol=1e-9)
        if flag < 1:
            raise RuntimeError(f"DAQP: {flag}")
        return np.asarray(x)[:nu]

    return torque


def by_clarabel(E: Equations, lower: Array, upper: Array) -> Way:
    """Clarabel, whose data are changed in place: the places of numbers stay."""
    nu, (rows, n) = lower.size, E.A.shape
    nv = n - nu - E.rank
    E.A[:, nu : nu + nv] = E.A[:nv, nu + nv :] = 1.0  # all that may be filled
    bounded = np.eye(nu, n)
    A = sparse.csc_matrix(np.vstack([E.A, bounded, -bounded]))
    places = A.nonzero()
    order = np.lexsort(places)
    at = places[0][order], places[1][order]
    whole = np.vstack([E.A, bounded, -bounded])
    settings = clarabel.DefaultSettings()
    settings.verbose = settings.presolve_enable = settings.chordal_decomposition_enable = False
    settings.input_sparse_dropzeros = False
    settings.max_threads = 1
    cones = [clarabel.ZeroConeT(rows), clarabel.NonnegativeConeT(2 * nu)]
    b = np.concatenate([E.b, upper, -lower])
    H = sparse.csc_matrix(np.triu(E.H))
    solver = clarabel.DefaultSolver(H, E.f, A, b, cones, settings)

    def torque(q: Array, v: Array, target: Array) -> Array:
        E.fill(q, v, target)
        whole[:rows] = E.A
        b[:rows] = E.b
        solver.update(q=E.f, A=whole[at], b=b)
        found = solver.solve()
        if str(found.status) != "Solved":
            raise RuntimeError(f"Clarabel: {found.status}")
        return np.array(found.x[:nu])

    return torque


def by_cvxpy(textbook: Textbook, B: Array, lower: Array, upper: Array) -> Way:
    """cvxpy, with everything that changes as a parameter."""
    nv, nu = B.shape
    rank = textbook.system.K.shape[0] - nv - nu
    M, h, wanted = cp.Parameter((nv, nv)), cp.Parameter(nv), cp.Parameter(nu)
    G, drift = cp.Parameter((rank, nv)), cp.Parameter(rank)
    a, u, force = cp.Variable(nv), cp.Variable(nu), cp.Variable(rank)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(B.T @ a - wanted)),
        [M @ a + h == B @ u + G.T @ force, G @ a == -drift, u >= lower, u <= upper],
    )

    def torque(q: Array, v: Array, target: Array) -> Array:
        M.value, h.value, G.value, drift.value = textbook.terms(q, v)
        wanted.value = target
        problem.solve(solver=cp.CLARABEL, enforce_dpp=True, max_threads=1)
        return np.asarray(u.value)

    return torque


def small_by_cvxpy(nu: int) -> Any:
    """A solver of the small program, of limits of efforts: cvxpy with parameters."""
    root, wanted = cp.Parameter((nu, nu)), cp.Parameter(nu)
    lower, upper, x = cp.Parameter(nu), cp.Parameter(nu), cp.Variable(nu)
    at_least, at_most = x >= lower, x <= upper
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(root @ x - wanted)), [at_least, at_most])

    def solve(p: EffortsQP) -> Nearest:
        L = np.linalg.cholesky(p.H).T
        root.value, wanted.value, lower.value, upper.value = L, L @ p.x_cmd, p.lower, p.upper
        problem.solve(solver=cp.CLARABEL, enforce_dpp=True, max_threads=1)
        return Nearest(np.asarray(x.value), at_most.dual_value - at_least.dual_value, False)

    return solve
