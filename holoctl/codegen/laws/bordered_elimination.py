"""The kept rows and one row for each independent motion make a square matrix,

    K = [G; C']        K a = [-drift; c]        c: what is known of the acceleration

with C the actuation matrix B, or a selection of coordinates. One elimination of K solves for the
motion, and its transpose for the efforts: ``K' (y; x) = w`` gives x beside the multipliers of the
kept rows, so that neither gamma nor X is formed. Where C selects the actuated coordinates, the
elimination of K is that of G_dep, entry by entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Array, Indices
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.elimination import Elimination, eliminate, pivot_order
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.matrices import column, dense, scalars, total
from holoctl.codegen.precision import Precision
from holoctl.codegen.stabilised_drift import stabilised_drift
from holoctl.projector.partition import most_condition

__all__ = ["Bordered", "bordered", "eliminated", "selection"]


GOLDEN = 0.6180339887498949
"""Multiples of it modulo one are spread evenly, and none repeats."""


@dataclass(frozen=True, eq=False)
class Bordered:
    """``K = [G; C']`` eliminated.

    Attributes
    ----------
    elimination : Elimination
    right : list of expressions
        ``-drift`` of the kept rows, stabilisation included.
    moving : list of expressions
        ``-phi_t`` of the kept rows.
    """

    elimination: Elimination
    right: list[SX]
    moving: list[SX]

    @property
    def guard(self) -> list[SX]:
        """Of the elimination."""
        return self.elimination.guard

    def motion(self, c: SX) -> SX:
        """a with ``G a = -drift`` and ``C' a = c``."""
        return column(self.elimination.solve([*self.right, *scalars(c)]))

    def velocity(self, c: SX) -> SX:
        """v with ``G v = -phi_t`` and ``C' v = c``."""
        return column(self.elimination.solve([*self.moving, *scalars(c)]))

    def along(self, w: SX) -> SX:
        """x with ``[G' C] (y; x) = w``."""
        return column(self.elimination.solve_transposed(scalars(w))[len(self.right) :])

    def rows(self, J: SX) -> tuple[SX, SX, SX]:
        """J_c, and the J a and J v of ``c = 0``: each row gives ``K' (y; x) = J_i'``."""
        r, width = len(self.right), J.shape[1]
        solved = [self.elimination.solve_transposed([row[i] for i in range(width)])
                  for row in casadi_module().vertsplit(J)]  # fmt: skip
        known = (self.right, self.moving)
        Ja, Jv = (column(_dot(row, x) for row in solved) for x in known)
        return dense([dict(enumerate(row[r:])) for row in solved], width - r), Ja, Jv

    def basis(self, count: int) -> SX:
        """The motions that the last `count` rows of C' alone measure, a column each."""
        ca = casadi_module()
        n = len(self.elimination.order)
        columns = []
        for k in range(n - count, n):
            unit = [ca.SX(float(i == k)) for i in range(n)]
            columns.append(ca.sparsify(column(self.elimination.solve(unit))))
        return ca.horzcat(ca.SX(n, 0), *columns)


def _dot(y: list[SX], x: list[SX]) -> SX:
    """Of as many entries as the shorter one has."""
    return total(a * b for a, b in zip(y, x, strict=False))


def bordered(E: Expressions, C: Array, unit: Array) -> Bordered:
    """Eliminate ``[G; C']``; `unit` scales the rows of C'."""
    ca = casadi_module()
    mech, kept = E.mech, E.partition.rows
    rows: list[dict[int, SX]] = [dict(row) for row in E.rows.jacobian]
    rows += [{int(i): ca.SX(float(c[i])) for i in np.flatnonzero(c)} for c in C.T]
    row_unit = np.concatenate([mech.row_scale[kept], unit])
    needed = [-x for x in stabilised_drift(mech, E.rows, kept)]
    at_rest = ca.SX.zeros(mech.nv)
    moving = [-ca.substitute(rate, E.v, at_rest) for rate in E.rows.rate]
    return Bordered(eliminated(E, rows, row_unit, mech.column_scale), needed, moving)


def eliminated(
    E: Expressions, rows: Sequence[dict[int, SX]], row_unit: Array, column_unit: Array,
    least: float | None = None,
) -> Elimination:  # fmt: skip
    """Eliminate a square matrix, given by rows, with pivots that are large at all samples of E; a
    scaled pivot of the size `least` is in doubt, by default where the kept rows are."""
    ca = casadi_module()
    evaluate = ca.Function("A", [E.q, E.t], [dense(rows, len(rows))])
    scale = row_unit[:, None] * column_unit
    samples = np.array([scale * np.array(evaluate(q, 0.0)) for q in E.samples])
    order = pivot_order(samples[np.isfinite(samples).all(axis=(1, 2))])
    if least is None:
        least = max(E.precision.least_pivot, 1.0 / most_condition(E.partition))
    found = eliminate(rows, order, row_unit, column_unit, least)
    if E.precision.most_condition < np.inf:
        found.guard.extend(_ill_conditioned(found, row_unit, column_unit, E.precision))
    return found


def _ill_conditioned(
    A: Elimination, row_unit: Array, column_unit: Array, precision: Precision
) -> list[SX]:
    """Terms of the guard that bound the condition number: small pivots do not tell of all that is
    lost where several follow each other. The inverse of the scaled matrix is tried on a vector
    without relations between its entries, from both sides."""
    ca, n = casadi_module(), row_unit.size
    tried = 0.5 + np.mod(GOLDEN * np.arange(1, n + 1), 1.0)
    tried[1::2] *= -1.0
    x = A.solve([ca.SX(z) for z in tried / row_unit])
    y = A.solve_transposed([ca.SX(z) for z in tried / column_unit])
    scaled = [*(a / c for a, c in zip(x, column_unit, strict=True))]
    scaled += [b / r for b, r in zip(y, row_unit, strict=True)]
    return [(z / precision.most_condition) ** 2 for z in scaled]


def selection(nv: int, coordinates: Indices) -> Array:
    """C whose columns are those of the identity for these coordinates."""
    chosen: Array = np.eye(nv)[:, coordinates]
    return chosen
