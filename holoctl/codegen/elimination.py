"""Gaussian elimination of a matrix of expressions, with an order of pivots fixed beforehand.

The order is decided on numbers, at several configurations: of the pivots that are large enough
at all of them, the one that fills in least (Markowitz' count). What was large there may be small
at another state, so the elimination has a measure of its accuracy:

    guard = sum (multiplier / GROWTH)^2 + sum (least pivot / scaled pivot)^2

Below one, multipliers and inverse pivots are bounded, and with them the loss of digits. Not a
number counts as above. Reference: I. Duff, A. Erisman, J. Reid, Direct Methods for Sparse
Matrices, the chapter on threshold pivoting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Array
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.matrices import total

__all__ = [
    "Elimination",
    "Factors",
    "eliminate",
    "factored",
    "least_squares",
    "lower_solve",
    "pivot_order",
    "upper_solve",
]

LEAST_PIVOT = 1e-4
"""A scaled pivot of this size puts a result in doubt."""


GROWTH = 50.0
"""A scaled multiplier of this size puts the result in doubt."""

PIVOT_THRESHOLD = 0.15
"""A pivot is acceptable if it is this large, compared with the entries below it."""


@dataclass(frozen=True, eq=False)
class Elimination:
    """``A = L U`` up to the orders of rows and columns.

    Attributes
    ----------
    order : tuple of (int, int)
        Row and column of the pivots, first to last.
    below : tuple of dict
        For each pivot: row to multiplier.
    right : tuple of dict
        For each pivot: column to entry of the pivot row, without the pivot.
    inverses : tuple of expressions
        One over each pivot.
    determinant : expression
        That of the scaled matrix.
    guard : list of expressions
    """

    order: tuple[tuple[int, int], ...]
    below: tuple[dict[int, SX], ...]
    right: tuple[dict[int, SX], ...]
    inverses: tuple[SX, ...]
    determinant: SX
    guard: list[SX]

    def solve(self, b: list[SX]) -> list[SX]:
        """x with ``A x = b``."""
        b, x = list(b), list(b)
        for (i, _), below in zip(self.order, self.below, strict=True):
            for k, multiplier in below.items():
                b[k] = b[k] - multiplier * b[i]
        for p in reversed(range(len(self.order))):
            i, j = self.order[p]
            x[j] = (b[i] - total(u * x[k] for k, u in self.right[p].items())) * self.inverses[p]
        return x

    def solve_transposed(self, c: list[SX]) -> list[SX]:
        """y with ``A' y = c``."""
        c, y = list(c), list(c)
        z = []
        for p, (_, j) in enumerate(self.order):
            z.append(c[j] * self.inverses[p])
            for k, u in self.right[p].items():
                c[k] = c[k] - u * z[p]
        for p in reversed(range(len(self.order))):
            y[self.order[p][0]] = z[p] - total(m * y[k] for k, m in self.below[p].items())
        return y


def pivot_order(samples: Array) -> tuple[tuple[int, int], ...]:
    """Rows and columns of the pivots, from scaled matrices at several configurations.

    Parameters
    ----------
    samples : (s, n, n) array
        An entry that is zero in all of them is taken to be zero always.
    """
    A = np.array(samples, dtype=float)
    n = A.shape[1]
    rows, columns = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
    filled = (A != 0.0).any(axis=0)
    order = []
    for _ in range(n):
        live = filled & rows[:, None] & columns
        in_row, in_column = live.sum(axis=1), live.sum(axis=0)
        size = np.abs(np.where(live, A, 0.0))
        largest = size.max(axis=1, keepdims=True)  # of each column, in each sample
        ratio = (size / np.where(largest > 0.0, largest, 1.0)).min(axis=0)
        least = size.min(axis=0)
        # a pivot alone in its row or column spoils nothing, whatever its neighbours are
        alone = (in_row[:, None] == 1) | (in_column == 1)
        quality = np.where(alone, np.minimum(1.0, least / 0.05), ratio)
        cost = (in_row[:, None] - 1.0) * (in_column - 1.0)
        good = live & (quality >= PIVOT_THRESHOLD) & (least > 10.0 * LEAST_PIVOT)
        if good.any():
            rank = np.where(good, cost - 1e-3 * np.minimum(ratio, 1.0), np.inf)
            i, j = np.unravel_index(int(np.argmin(rank)), rank.shape)
        else:
            rank = np.where(live, ratio * np.minimum(1.0, least / 1e-2), -1.0)
            i, j = np.unravel_index(int(np.argmax(rank)), rank.shape)
        order.append((int(i), int(j)))
        rows[i], columns[j] = False, False
        pivots = A[:, i, j]
        pivots = np.where(pivots == 0.0, 1e-300, pivots)
        multipliers = np.where(rows, A[:, :, j], 0.0) / pivots[:, None]
        with np.errstate(all="ignore"):
            A -= multipliers[:, :, None] * np.where(columns, A[:, i, :], 0.0)[:, None, :]
        A = np.nan_to_num(A, posinf=1e300, neginf=-1e300)
        below, right = filled[:, j] & rows, filled[i] & columns
        filled |= np.outer(below, right)
    return tuple(order)


def eliminate(
    rows: Sequence[dict[int, SX]],
    order: tuple[tuple[int, int], ...],
    row_unit: Array,
    column_unit: Array,
    least_pivot: float = LEAST_PIVOT,
) -> Elimination:
    """Eliminate in a given order.

    Parameters
    ----------
    rows : n dicts, column to entry
        The matrix A.
    order : tuple of (int, int)
        From `pivot_order`.
    row_unit, column_unit : (n,) arrays
        ``row_unit[i] A[i, j] column_unit[j]`` is the scaled entry.
    least_pivot : float, optional
        A scaled pivot of this size puts the result in doubt.
    """
    left = [dict(row) for row in rows]
    below, right, inverses, guard = [], [], [], []
    determinant = casadi_module().SX(_sign([i for i, _ in order]) * _sign([j for _, j in order]))
    open_rows = set(range(len(rows)))
    for i, j in order:
        open_rows.discard(i)
        entries = left[i]
        pivot = entries.pop(j)
        inverse = 1.0 / pivot
        determinant = determinant * (float(row_unit[i] * column_unit[j]) * pivot)
        multipliers: dict[int, SX] = {}
        for k in sorted(open_rows):
            if j in left[k]:
                multipliers[k] = left[k].pop(j) * inverse
                for c, u in entries.items():
                    update = multipliers[k] * u
                    left[k][c] = left[k][c] - update if c in left[k] else -update
        below.append(multipliers)
        right.append(entries)
        inverses.append(inverse)
        if not pivot.is_constant():
            guard.append(_square(least_pivot / (row_unit[i] * column_unit[j]), inverse))
        if entries:  # else there is nothing that could grow
            for k, m in multipliers.items():
                if not m.is_constant():
                    guard.append(_square(row_unit[k] / row_unit[i] / GROWTH, m))
    return Elimination(order, tuple(below), tuple(right), tuple(inverses), determinant, guard)


def _sign(order: Sequence[int]) -> float:
    """Of a permutation."""
    sign, left = 1.0, list(order)
    for i in range(len(left)):
        while left[i] != i:
            j = left[i]
            left[i], left[j], sign = left[j], j, -sign
    return sign


# ------------------------------------------------------- symmetric and rectangular matrices


@dataclass(frozen=True, eq=False)
class Factors:
    """``A = L D L'`` of a symmetric positive definite matrix."""

    lower: tuple[dict[int, SX], ...]
    inverses: tuple[SX, ...]
    guard: list[SX]

    def solve(self, b: list[SX]) -> list[SX]:
        """x with ``A x = b``."""
        x = list(b)
        for j, column in enumerate(self.lower):
            for i, entry in column.items():
                x[i] = x[i] - entry * x[j]
        for j in reversed(range(len(x))):
            x[j] = x[j] * self.inverses[j] - total(e * x[i] for i, e in self.lower[j].items())
        return x


def factored(A: SX, most: float, sizes: list[SX] | None = None) -> Factors:
    """Factor; in doubt where a pivot is less than one over `most` of its size, by default the
    diagonal entry."""
    n = A.shape[0]
    sizes = [A[j, j] for j in range(n)] if sizes is None else sizes
    left = {(i, j): A[i, j] for j in range(n) for i in range(j, n) if not A[i, j].is_zero()}
    lower, inverses, guard = [], [], []
    for j in range(n):
        pivot = left[j, j]
        inverse = 1.0 / pivot
        column = {i: left[i, j] for i in range(j + 1, n) if (i, j) in left}
        multipliers = {i: entry * inverse for i, entry in column.items()}
        for i, entry in column.items():
            for k, m in multipliers.items():
                if k <= i:
                    update = entry * m
                    left[i, k] = left[i, k] - update if (i, k) in left else -update
        lower.append(multipliers)
        inverses.append(inverse)
        guard.append(_square(1.0 / most, sizes[j] * inverse))
        guard.append(casadi_module().if_else(pivot > 0.0, 0.0, 2.0))  # the square hides the sign
    return Factors(tuple(lower), tuple(inverses), guard)


def least_squares(
    A: list[list[SX]], least_pivot: float = LEAST_PIVOT
) -> tuple[list[list[SX]], list[list[SX]], list[SX]]:
    """Q (by columns), R (by rows) and guard of a tall matrix given by columns: ``A = Q R``.

    By the modified Gram-Schmidt process.
    """
    ca = casadi_module()
    k = len(A)
    left, Q = [list(column) for column in A], []
    R: list[list[SX]] = [[ca.SX(0.0)] * k for _ in range(k)]
    guard = []
    for j in range(k):
        size = ca.sqrt(total(x * x for x in left[j]))
        inverse = 1.0 / size
        R[j][j] = size
        Q.append([x * inverse for x in left[j]])
        for i in range(j + 1, k):
            R[j][i] = total(x * y for x, y in zip(Q[j], left[i], strict=True))
            left[i] = [y - R[j][i] * x for x, y in zip(Q[j], left[i], strict=True)]
        guard.append(_square(10.0 * least_pivot, inverse))
    return Q, R, guard


def upper_solve(R: list[list[SX]], b: list[SX]) -> list[SX]:
    """x with ``R x = b``."""
    x = list(b)
    for j in reversed(range(len(b))):
        x[j] = x[j] / R[j][j]
        for i in range(j):
            x[i] = x[i] - R[i][j] * x[j]
    return x


def lower_solve(R: list[list[SX]], b: list[SX]) -> list[SX]:
    """x with ``R' x = b``."""
    x = list(b)
    for j in range(len(b)):
        x[j] = x[j] / R[j][j]
        for i in range(j + 1, len(b)):
            x[i] = x[i] - R[j][i] * x[j]
    return x


def _square(factor: float, x: SX) -> SX:
    scaled = factor * x
    return scaled * scaled
