"""Scalars, columns, rows and matrices of expressions, from one to the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holoctl.codegen.casadi_import import SX, casadi_module

__all__ = ["column", "columns", "dense", "largest", "scalars", "total"]


def column(entries: Iterable[SX]) -> SX:
    """The column of these entries, (n, 1)."""
    ca = casadi_module()
    found = list(entries)
    return ca.vertcat(*found) if found else ca.SX.zeros(0)


def scalars(x: SX) -> list[SX]:
    """The entries of a column."""
    return [x[i] for i in range(x.numel())]


def columns(A: SX) -> list[list[SX]]:
    """The entries of each column of a matrix."""
    full = casadi_module().densify(A)
    return [[full[i, j] for i in range(A.shape[0])] for j in range(A.shape[1])]


def dense(rows: Sequence[Mapping[int, SX]], width: int) -> SX:
    """The matrix of rows that are given by their entries: column to entry."""
    A = casadi_module().SX.zeros(len(rows), width)
    for i, row in enumerate(rows):
        for k, x in row.items():
            A[i, k] = x
    return A


def total(terms: Iterable[SX]) -> SX:
    """The sum; zero where there are no terms."""
    found = casadi_module().SX(0.0)
    for x in terms:
        found = found + x
    return found


def largest(terms: Iterable[SX]) -> SX:
    """The largest magnitude; zero where there are no terms."""
    ca = casadi_module()
    found = ca.SX(0.0)
    for x in terms:
        found = ca.fmax(found, ca.fabs(x))
    return found
