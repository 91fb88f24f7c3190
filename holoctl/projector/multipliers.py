"""Multipliers: the efforts of the constraints, row by row.

    G^T lambda = M a + h - B u - J^T f

Kept rows have one solution. Redundant rows are combinations of them, ``G = E G_keep``, so that
``G^T l = G_keep^T (E^T l)``: the shortest l with ``E^T l = lambda_keep``, and an entry is unique if
the row of E has leverage one, so that no other row can replace it.
Derivation: docs/derivations.md, "Multipliers".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.linalg import orthonormal_columns
from holoctl.projector.partition import Partition
from holoctl.rows.terms import Terms

__all__ = ["constraint_effort", "multipliers"]

UNIQUE = 1e-9
"""A multiplier is unique if its leverage differs from one by no more than this."""


def multipliers(T: Terms, part: Partition, force: Vector) -> tuple[Vector, NDArray[np.bool_]]:
    """lambda with ``G^T lambda = force``, and which entries are unique.

    With redundant rows, lambda is the solution of least norm in scaled rows, and entries that
    redundancy leaves undetermined are not unique.

    Parameters
    ----------
    T : Terms
    part : Partition
    force : (nv,) array
        Effort of the constraints on the coordinates, ``M a + h - B u - J^T f``.

    Returns
    -------
    lambda : (m,) array
        N for linear rows, N m for angular ones; of unscaled rows.
    unique : (m,) bool array
    """
    mech, G, rank = T.mechanism, T.scaled, part.rank
    m = mech.row_scale.size
    qr = T.factored(part.rows)  # G_keep^T P = Q [R1; 0]
    on_kept = qr.fitted(mech.column_scale * force)
    if m == rank:
        return mech.row_scale * on_kept, np.ones(m, dtype=bool)
    # Redundant rows: G = E G_keep on the manifold, so G^T l = G_keep^T (E^T l). One l with
    # E^T l = on_kept is on_kept on the kept rows; the shortest is what E = Qe Re spans of it.
    E = np.zeros((m, rank))
    E[:, qr.pivots] = qr.solve_r1(G.dot(qr.q[:, :rank]).T).T
    Qe = orthonormal_columns(E)
    shortest: Vector = Qe.dot(on_kept.dot(Qe.take(part.rows, 0)))
    return mech.row_scale * shortest, np.vecdot(Qe, Qe) > 1.0 - max(UNIQUE, part.tolerance)


def constraint_effort(T: Terms, part: Partition, force: Vector) -> Vector:
    """The part of `force` (nv,) that the kept rows can exert, ``G_keep^T lambda``, by least
    squares."""
    c, Q = T.mechanism.column_scale, T.factored(part.rows).q[:, : part.rank]
    effort: Vector = Q.dot((c * force).dot(Q)) / c
    return effort
