"""The system of constrained dynamics by the three methods that RBDL documents, in plain numpy.

    [H  G'] [  x ]   [f]        acceleration: x = q'', f = tau - C, k = gamma, l = lambda
    [G  0 ] [ -l ] = [k]        impact: x = q'+, f = H q'-, k = v+, l the impulses

Written from the equations of RBDL's documentation ("Solution of the Constraint System"); the null
space is that of a QR factorisation of G'.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Solved = tuple[Array, Array]
"""x and l."""


def direct(H: Array, G: Array, f: Array, k: Array) -> Solved:
    """All at once."""
    n, m = len(f), len(k)
    K = np.block([[H, G.T], [G, np.zeros((m, m))]])
    x = np.linalg.solve(K, np.concatenate([f, k]))
    return x[:n], -x[n:]


def range_space(H: Array, G: Array, f: Array, k: Array) -> Solved:
    """First the multipliers: G H^-1 G' l = k - G H^-1 f."""
    both = np.linalg.solve(H, np.column_stack([f, G.T]))
    free, response = both[:, 0], both[:, 1:]
    multipliers = np.linalg.solve(G @ response, k - G @ free)
    return free + response @ multipliers, multipliers


def null_space(H: Array, G: Array, f: Array, k: Array) -> Solved:
    """First x = Y xy + Z xz: G Y xy = k and Z' H Z xz = Z' (f - H Y xy)."""
    m = len(k)
    Q, R = np.linalg.qr(G.T, mode="complete")
    Y, Z = Q[:, :m], Q[:, m:]
    across = Y @ np.linalg.solve(R[:m].T, k)
    x = across + Z @ np.linalg.solve(Z.T @ H @ Z, Z.T @ (f - H @ across))
    return x, np.linalg.solve(R[:m], Y.T @ (H @ x - f))


METHODS = {"direct": direct, "range-space": range_space, "null-space": null_space}
