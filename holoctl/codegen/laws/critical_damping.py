"""Critical damping as an expression: forces ``D ed`` with the damping ratio one.

    D = 2 L Y^(1/2) L'        Y = L^-1 K L^-T        inertia = L L'

The mobility, the inverse of the inertia, is ``C C'``, so that L = C^-T and Y = C' K C. Its square
root comes of Jacobi's rotations, in sweeps of a fixed number, applied to the vector alone: what is
not diagonal at the end shows whether they were enough. The oracle is `critical_damping` of
control/task_space/law.py.

Reference: G. Golub, C. Van Loan, Matrix Computations, "Jacobi methods".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.matrices import total

__all__ = ["critically_damped"]

JACOBI_LEFT, JACOBI_STAYS = 1e-12, 1e-18
"""Rotations that make a matrix diagonal are enough where the rest is the first share of its trace;
an entry of the second share is left as it is."""


SWEEPS = (0, 0, 1, 4, 5, 6, 6)
"""The largest number of rows."""


def critically_damped(
    stiffness: NDArray[np.float64], mobility: list[list[SX]], ed: list[SX]
) -> tuple[list[SX], list[SX]]:
    """``D ed`` and guard; all in scaled rows.

    Parameters
    ----------
    stiffness : (n, n) array
    mobility : (n, n) lists, symmetric
    ed : (n,) list
    """
    ca, n = casadi_module(), len(ed)
    C = _cholesky(mobility)
    Y = [[ca.SX(0.0)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            terms = (
                float(stiffness[a, b]) * C[a][i] * C[b][j]
                for a in range(i, n)
                for b in range(j, n)
                if stiffness[a, b] != 0.0
            )
            Y[i][j] = total(terms)
    z = list(ed)
    for i in range(n):  # z = C^-1 ed
        z[i] = (z[i] - total(C[i][j] * z[j] for j in range(i))) / C[i][i]
    z, guard = _times_root(Y, z)
    for i in reversed(range(n)):  # C^-T z
        z[i] = (z[i] - total(C[j][i] * z[j] for j in range(i + 1, n))) / C[i][i]
    return [2.0 * x for x in z], guard


def _cholesky(A: list[list[SX]]) -> list[list[SX]]:
    ca, n = casadi_module(), len(A)
    C = [[ca.SX(0.0)] * n for _ in range(n)]
    for j in range(n):
        C[j][j] = ca.sqrt(A[j][j] - total(C[j][k] * C[j][k] for k in range(j)))
        for i in range(j + 1, n):
            C[i][j] = (A[i][j] - total(C[i][k] * C[j][k] for k in range(j))) / C[j][j]
    return C


def _times_root(Y: list[list[SX]], z: list[SX]) -> tuple[list[SX], list[SX]]:
    """``Y^(1/2) z`` of a symmetric matrix, given by its upper half, and guard."""
    ca, n = casadi_module(), len(z)
    turns = list[tuple[int, int, SX, SX]]()
    size = total(Y[i][i] for i in range(n))
    for _ in range(SWEEPS[min(n, len(SWEEPS) - 1)]):
        for p in range(n):
            for q in range(p + 1, n):
                c, s = _rotate(Y, p, q, size)
                turns.append((p, q, c, s))
                z[p], z[q] = c * z[p] - s * z[q], s * z[p] + c * z[q]
    z = [x * ca.sqrt(ca.fmax(Y[i][i], 0.0)) for i, x in enumerate(z)]
    for p, q, c, s in reversed(turns):
        z[p], z[q] = c * z[p] + s * z[q], c * z[q] - s * z[p]
    off = total(Y[i][j] * Y[i][j] for i in range(n) for j in range(i + 1, n))
    return z, [off / (JACOBI_LEFT * size) ** 2] if n > 2 else []


def _rotate(Y: list[list[SX]], p: int, q: int, trace: SX) -> tuple[SX, SX]:
    """Turn the axes p and q so that ``Y[p][q]`` is zero; cosine and sine. What is far below the
    trace stays: its squares would become subnormal numbers, which processors are slow with."""
    ca, n = casadi_module(), len(Y)
    between, apart = 2.0 * Y[p][q], Y[q][q] - Y[p][p]
    size = ca.fabs(apart) + ca.sqrt(apart * apart + between * between)
    turned = ca.fabs(between) > JACOBI_STAYS * trace
    t = ca.if_else(turned, ca.if_else(apart >= 0.0, between, -between) / size, 0.0)
    c = 1.0 / ca.sqrt(1.0 + t * t)
    s = t * c
    Y[p][p], Y[q][q] = Y[p][p] - t * Y[p][q], Y[q][q] + t * Y[p][q]
    Y[p][q] = ca.if_else(turned, 0.0, Y[p][q])
    for k in range(n):
        if k in (p, q):
            continue
        (i, j), (a, b) = sorted((k, p)), sorted((k, q))
        Y[i][j], Y[a][b] = c * Y[i][j] - s * Y[a][b], s * Y[i][j] + c * Y[a][b]
    return c, s
