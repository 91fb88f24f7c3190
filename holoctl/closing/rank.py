"""The rank of G at a closed configuration, in scaled rows and columns.

    G' = Dr G Dc        sigma_i > max(1e-8, 10 sqrt(e)) max(sigma_1, 1)        e: scaled error

is the condition for a singular value to count. Overconstrained loops are rank-deficient on the
manifold only: at a closure error e, singular values that vanish there are as large as sqrt(e).
Derivation: docs/derivations.md, "Scaling and rank".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import one_norm, pivoted_qr, singular_values
from holoctl.base.tolerances import RANK, RANK_OPEN, UNIT
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import rows_at

__all__ = [
    "first_independent",
    "manifold_rank",
    "pivot_rows",
    "rank_within",
    "scaled_jacobian",
    "scaled_size",
]


def manifold_rank(G: Array, error: float, tolerance: float = 0.0) -> int:
    """Rank of a scaled matrix at a configuration closed to within `error` (scaled).

    With a tolerance, for rounded geometry: the result of `rank_within`, independent of the error.

    Overconstrained loops lose rank only when closed: at a closure error e, a vanishing singular
    value grows like sqrt(e) or e, so the threshold is `RANK_OPEN` sqrt(e), at least `RANK`, times
    the largest singular value. That is taken as at least 1, the size of scaled rows, because all of
    them may vanish together.
    """
    if G.size == 0:
        return 0
    if tolerance > 0.0:
        return rank_within(G, tolerance)
    s = singular_values(G)
    threshold = max(RANK, RANK_OPEN * np.sqrt(error)) * max(float(s[0]), 1.0)
    return int(np.count_nonzero(s > threshold))


def rank_within(G: Array, tolerance: float) -> int:
    """Rank of a scaled matrix: the number of singular values above a tolerance."""
    return int(np.count_nonzero(singular_values(G) > max(tolerance, RANK)))


def scaled_jacobian(
    mech: Mechanism, q: Vector, t: float, rows: NDArray[np.intp] | None = None
) -> tuple[Array, Vector]:
    """G in scaled rows and scaled coordinates, and the scaled error, at q."""
    found = rows_at(mech, q, np.zeros(mech.nv), t)
    r = mech.row_scale
    G, error = r[:, None] * found.jacobian * mech.column_scale, r * found.error
    return (G, error) if rows is None else (G[rows], error[rows])


def pivot_rows(G: Array, rank: int) -> NDArray[np.intp]:
    """`rank` independent rows, in ascending order, by ``G'^T P = Q R``."""
    return np.sort(pivoted_qr(G.T, rank).pivots[:rank])


def scaled_size(G: Array) -> float:
    """1-norm of scaled rows, at least 1: they are of order one by their scaling."""
    return max(one_norm(G), UNIT)


def first_independent(places: Sequence[Array], rank: int) -> NDArray[np.intp]:
    """The first `rank` rows that are independent at all these places, in the order of the rows.

    A row whose axis turns with a body may be independent at one place and dependent at another:
    then a later row is chosen. The tolerance is the largest one with which enough rows are found.
    """
    for tol in 10.0 ** np.arange(-3.0, -10.0, -1.0):
        kept, bases = list[int](), [np.zeros((0, G.shape[1])) for G in places]
        for i in range(places[0].shape[0]):
            rests = [_rest(G[i], basis) for G, basis in zip(places, bases, strict=True)]
            sizes = [float(np.linalg.norm(rest)) for rest in rests]
            if min(sizes) > tol:
                kept.append(i)
                new = zip(bases, rests, sizes, strict=True)
                bases = [np.vstack([basis, rest / size]) for basis, rest, size in new]
        if len(kept) == rank:
            return np.array(kept, dtype=np.intp)
    return pivot_rows(places[0], rank)


def _rest(row: Vector, basis: Array) -> Vector:
    """The part of a row orthogonal to a basis, computed twice against rounding."""
    rest = row - basis.T @ (basis @ row)
    return rest - basis.T @ (basis @ rest)
