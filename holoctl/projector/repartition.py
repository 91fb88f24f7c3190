"""A partition decided anew on the way: other rows and coordinates, the same rank.

    s   the rank-th singular value of G', all rows        k   the smallest one of G'[rows]

A partition is decided at one configuration. Elsewhere its rows may get dependent (k falls, s does
not) although the mechanism is as regular as before; other rows then say the same, better. Where s
falls too the mechanism itself gets singular, and no other choice helps.
Derivation: docs/derivations.md, "Deciding anew".
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.linalg import lu, pivoted_qr, singular_values
from holoctl.closing.rank import scaled_size
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, preferred_dependents

__all__ = ["Independence", "decided_anew", "independence"]

Array = NDArray[np.float64]


class Independence(NamedTuple):
    """The least singular values that count: of all rows, and of those that are kept."""

    of_all: float
    of_kept: float


def independence(G: Array, partition: Partition) -> Independence:
    """What a scaled Jacobian of all rows says of a partition where it was taken."""
    if partition.rank == 0:
        return Independence(1.0, 1.0)
    of_kept = float(singular_values(G.take(partition.rows, 0))[-1])
    if partition.rank == G.shape[0]:
        return Independence(of_kept, of_kept)
    return Independence(float(singular_values(G)[partition.rank - 1]), of_kept)


def decided_anew(mech: Mechanism, partition: Partition, G: Array) -> Partition:
    """Rows and coordinates by the pivots of a scaled Jacobian; rank and all else as they are.

    Also the same rows as before where they are the best.
    """
    rank = partition.rank
    rows = np.sort(pivoted_qr(G.T, rank).pivots[:rank])  # G'^T P = Q R
    kept = G[rows]
    dependent = preferred_dependents(mech, kept, rank)
    free = np.setdiff1d(np.arange(mech.nv), dependent)
    condition = lu(kept[:, dependent], scaled_size(kept)).condition
    return replace(partition, rows=rows, independent=free, dependent=dependent, condition=condition)
