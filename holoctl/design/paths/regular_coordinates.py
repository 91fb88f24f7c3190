"""Coordinates that determine the motion everywhere along a path, type-2 singularities included.

With N(q) an orthonormal basis of the admissible velocities, coordinates C are regular at q if the
square matrix N[C] is: its smallest singular value is then above zero, and on a path without a
singularity of C the sign of det [G; E_C'] = sign det [G; N'] sign det N[C] is the same everywhere
(redundant rows have no such sign). Those with the largest least value along the path are chosen.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from holoctl.base.checks import Array
from holoctl.base.linalg import null_space_by_svd, pivoted_qr
from holoctl.closing.rank import scaled_jacobian
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["regular_coordinates"]

ALL_CHOICES = 500
"""Up to this number, all choices of coordinates are compared; else those of pivoted QR at each
configuration."""

NO_ROW = 1e-11  # scaled
"""A row that is smaller at all configurations constrains nothing."""

MOST_PLACES = 200
"""Largest number of configurations of a path at which coordinates are compared."""


def regular_coordinates(
    mech: Mechanism, part: Partition, q: Array, among: list[int], count: int
) -> tuple[list[int], float]:
    """Indices of `count` coordinates among those given that are regular at all configurations q
    (n, nq), and the least smallest singular value; none and 0 if there are not so many, 0 if all
    choices pass a singularity of their own."""
    if len(among) < count or not count:
        return [], 0.0
    places = np.unique(np.linspace(0, len(q) - 1, min(len(q), MOST_PLACES)).round().astype(int))
    rows = [scaled_jacobian(mech, x, 0.0)[0] for x in q[places]]
    bases = [null_space_by_svd(G, part.rank)[3] for G in rows]
    pairs = zip(rows, bases, strict=True)
    turn = np.array([np.linalg.slogdet(np.vstack([G[part.rows], N.T]))[0] for G, N in pairs])
    if np.count_nonzero(np.abs(rows).max(axis=(0, 2), initial=0.0) > NO_ROW) > part.rank:
        turn[:] = 0.0  # redundant rows
    motions = np.array(bases)[:, among]
    if comb(len(among), count) <= ALL_CHOICES:
        choices = list(combinations(range(len(among)), count))
    else:
        pivots = (pivoted_qr(N.T, count).pivots[:count].tolist() for N in motions)
        choices = list(dict.fromkeys(tuple(sorted(x)) for x in pivots))
    least = [_least(motions[:, choice], turn) for choice in choices]
    best = int(np.argmax(np.round(least, 9)))  # the first of equal ones
    return [among[i] for i in choices[best]], least[best]


def _least(own: Array, turn: Array) -> float:
    """The least smallest singular value of N[C], 0 if the sign of its determinant changes."""
    signs = turn * np.sign(np.linalg.det(own))
    kept = (signs == signs[0]).all()
    return float(np.linalg.svd(own, compute_uv=False)[:, -1].min()) if kept else 0.0
