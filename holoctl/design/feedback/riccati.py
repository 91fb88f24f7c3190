"""Linear-quadratic regulators: efforts held over a tick, and the Riccati equations.

    min sum  x' Qd x + 2 x' N u + u' Rd u        the cost  integral x' Q x + u' R u  between ticks

    [A B; 0 0] = E,  S(h) = exp(E h),  W(h) = integral over h of S' diag(Q, R) S
    S(2h) = S(h)^2,  W(2h) = W(h) + S(h)' W(h) S(h)

by doubling from a step so short that thirteen terms of the series are exact, so that only modes
that grow in the model grow here. W = [Qd N; N' Rd]. Reference: C. Van Loan, Computing integrals
involving the matrix exponential; B. Anderson and J. Moore, Optimal Control: Linear Quadratic
Methods.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_continuous_are, solve_continuous_lyapunov, solve_discrete_are

from holoctl.base.checks import Array
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import in_range, largest, one_norm

__all__ = ["Regulator", "TickModel", "backward", "continuous", "discrete", "held"]

FIRST_DOUBLING = 0.25
"""Norm of the first step of the doubling; for this norm thirteen terms of the series are exact."""

RICCATI_HOLDS = 1e-6
"""Largest residual of the Riccati equation, as a share of its largest term."""

POLISHED = 2
"""Number of refinement steps of a solution of the Riccati equation."""


class TickModel(NamedTuple):
    """``x+ = A x + B u`` from tick to tick, and its cost ``x' Q x + 2 x' N u + u' R u``."""

    A: Array
    B: Array
    Q: Array
    R: Array
    N: Array


class Regulator(NamedTuple):
    """``u = -K x``; the cost from x on is ``x' P x``."""

    K: Array
    P: Array


def held(A: Array, B: Array, Q: Array, R: Array, dt: float) -> TickModel:
    """The discretisation of a continuous model and its cost, with u held over a tick."""
    (n, m), whole = B.shape, np.zeros((A.shape[0] + B.shape[1],) * 2)
    whole[:n] = np.hstack([A, B])
    cost = np.zeros_like(whole)
    cost[:n, :n], cost[n:, n:] = Q, R
    long = float(in_range(np.array(one_norm(whole) * dt / FIRST_DOUBLING)))
    doublings = max(0, int(np.ceil(np.log2(max(long, 1.0)))))
    E = whole * (dt / 2.0**doublings)
    I = np.eye(n + m)  # noqa: E741
    S, term = I.copy(), I
    for k in range(1, 14):
        term = term @ E / k
        S += term
    W, power = np.zeros_like(cost), cost * (dt / 2.0**doublings)
    for k in range(1, 14):  # W = sum of E'^i C E^j h^(i+j+1) / (i! j! (i+j+1))
        W += power / k
        power = (E.T @ power + power @ E) / k
    for _ in range(doublings):
        W = W + S.T @ W @ S
        S = S @ S
    W = 0.5 * (W + W.T)
    return TickModel(S[:n, :n], S[:n, n:], W[:n, :n], W[n:, n:], W[:n, n:])


def continuous(A: Array, B: Array, Q: Array, R: Array) -> Regulator:
    """The regulator of a model in continuous time.

    Raises
    ------
    SingularityError
        If no stabilising solution of the equation is found.
    """
    try:
        P = np.asarray(solve_continuous_are(A, B, Q, R), dtype=float)
        for _ in range(POLISHED):  # Newton's method (Kleinman) on the residual of the equation
            K, left, _ = _left(A, B, Q, R, P)
            P = P + np.asarray(solve_continuous_lyapunov((A - B @ K).T, -left), dtype=float)
        K, left, size = _left(A, B, Q, R, P)
        growth = float(np.linalg.eigvals(A - B @ K).real.max(initial=-np.inf))
    except (np.linalg.LinAlgError, ValueError) as error:
        raise _unsolved(str(error)) from None
    _check(P, left, size, growth < 0.0)
    return Regulator(K, P)


def _left(A: Array, B: Array, Q: Array, R: Array, P: Array) -> tuple[Array, Array, float]:
    """K of a cost P, the residual of the continuous equation, and the size of its terms."""
    K: Array = np.asarray(np.linalg.solve(R, B.T @ P), dtype=float)
    terms = [A.T @ P, P @ A, Q, -K.T @ R @ K]
    left = terms[0] + terms[1] + terms[2] + terms[3]
    return K, 0.5 * (left + left.T), max(map(largest, terms))


def discrete(ticks: TickModel) -> Regulator:
    """The regulator of a model in discrete time.

    Raises
    ------
    SingularityError
        If no stabilising solution of the equation is found.
    """
    A, B, Q, R, N = ticks
    try:
        P = np.asarray(solve_discrete_are(A, B, Q, R, s=N), dtype=float)
        for _ in range(POLISHED):  # steps of the backward recursion
            found = backward(ticks, P)
            change, P = found.P - P, found.P
        radius = float(np.abs(np.linalg.eigvals(A - B @ found.K)).max(initial=0.0))
    except (np.linalg.LinAlgError, ValueError) as error:
        raise _unsolved(str(error)) from None
    _check(P, change, largest(P), radius < 1.0)
    return found


def backward(ticks: TickModel, P: Array) -> Regulator:
    """The regulator of one tick, after which the cost is ``x' P x``. P stays symmetric and
    positive semidefinite in spite of rounding."""
    A, B, Q, R, N = ticks
    K: Array = np.asarray(np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A + N.T), dtype=float)
    closed, crossed = A - B @ K, N @ K
    P = Q - crossed - crossed.T + K.T @ R @ K + closed.T @ P @ closed
    return Regulator(K, 0.5 * (P + P.T))


def _check(P: Array, left: Array, size: float, stable: bool) -> None:
    if not np.isfinite(P).all() or not stable or largest(left) > RICCATI_HOLDS * max(size, 1e-300):
        raise _unsolved("its solution leaves a pole that does not decay, or a residual")


def _unsolved(why: str) -> SingularityError:
    return SingularityError(
        f"no regulator was found: the Riccati equation could not be solved ({why}). Likely causes: "
        "a motion that the motors hardly move or that has hardly any weight in Q, weights of very "
        "different size, or a tick that is too long for an unstable motion"
    )
