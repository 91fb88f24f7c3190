"""A partition decided anew on the way: other rows and coordinates, the same rank.

    s   the rank-th singular value of G', all rows        k   the smallest one of G'[rows]

A partition is decided at one configuration. Elsewhere its rows may get dependent (k falls, s does
not) although the mechanism is as regular as before; other rows then say the same, better. Where s
falls too the mechanism itself gets singular, and no other choice helps. Rows may stay good and
the split of the coordinates get bad all the same: then others are independent.
Derivation: docs/derivations.md, "Deciding anew".
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.linalg import lu, singular_values
from holoctl.base.tolerances import (
    LOOKED_AROUND,
    REACHED,
    SPLIT_LIMIT,
    WELL_ABOVE,
)
from holoctl.closing.rank import pivot_rows, scaled_size
from holoctl.closing.toleranced_rows import independence as least_independence
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, preferred_dependents
from holoctl.rows.evaluate import scaled_rows_at

__all__ = [
    "Independence",
    "better_rows",
    "decided_anew",
    "ill_conditioned",
    "independence",
    "repartitioned",
]

ROWS_ILL, ROWS_ILL_ROUNDED, ROWS_BETTER = 0.2, 0.5, 1.5
"""Kept rows are ill-conditioned on the way where their smallest singular value, over that of all
rows, falls below the first number times what it was, or the second where geometry is rounded: such
rows then tell another motion; others are taken that are so many times better as the third says."""

SPLIT_LOOKED_AT = 2.0
"""On the way, rows and coordinates are looked at where the condition number of the split is so many
times what it was where they were decided."""

SPLIT_ILL = (1e2, 1e3)
"""Rows are looked at above the first of these in any case; coordinates above it only, and above the
second in any case: ticks leave a split at `PASSIVE_DOUBT` or `INVERSE_DOUBT`."""

SPLIT_BETTER, MOTORS_AGAIN = 5.0, 20.0
"""Other coordinates are taken on the way where their split is conditioned so many times better; all
motors are independent again, by `PREFERENCE`, where it is at most the second number times worse."""


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


def ill_conditioned(partition: Partition, here: Independence) -> bool:
    """Whether the kept rows get dependent although the mechanism is as regular as before."""
    least = ROWS_ILL_ROUNDED if partition.tolerance > 0.0 else ROWS_ILL
    return here.of_kept < least * partition.independence * here.of_all


def better_rows(
    mech: Mechanism, partition: Partition, G: Array, of_kept: float
) -> Partition | None:
    """`decided_anew`, where its rows are clearly less dependent than the kept ones; else None."""
    found = decided_anew(mech, partition, G)
    return found if independence(G, found).of_kept > ROWS_BETTER * of_kept else None


def repartitioned(
    mech: Mechanism, partition: Partition, q: Vector, v: Vector, t: float = 0.0
) -> Partition:
    """A partition that is good at a state: the very same one where it is.

    No configuration is closed and no rank decided; states may be off the manifold by as much as
    encoders are. Where the state decides nothing, as close to a singular configuration, or out of
    range, the same one is returned: what follows from it is judged where it is used.

    Parameters
    ----------
    mech : Mechanism
    partition : Partition
        Of this mechanism.
    q, v : (nq,) and (nv,) arrays
        State, of these shapes.
    t : float, optional
        Time, s.

    Returns
    -------
    Partition
        `partition`, or one with other rows, or other independent coordinates, or both.
    """
    G = scaled_rows_at(mech, q, v, t).jacobian
    kept = G.take(partition.rows, 0)
    condition = _condition(kept, partition.dependent)
    grown, (early, late) = SPLIT_LOOKED_AT * partition.condition, SPLIT_ILL
    ill_split = condition > min(max(grown, early), late)
    of_rows = partition.rank < G.shape[0] and (
        condition > min(grown, early) or partition.tolerance > 0.0
    )
    if not (ill_split or of_rows or partition.motors_left_out) or not np.isfinite(G).all():
        return partition
    found = _better_rows(mech, partition, G, q, v, t) if of_rows else None
    if found is not None:
        rows, its_own = found
        kept = G.take(rows, 0)
        condition = _condition(kept, partition.dependent)
        partition = replace(partition, rows=rows, condition=condition, independence=its_own)
        ill_split = condition > early
    if not (ill_split or partition.motors_left_out):
        return partition
    split = _better_split(mech, partition, kept, condition)
    return partition if split is None else _with_split(partition, *split)


def decided_anew(mech: Mechanism, partition: Partition, G: Array) -> Partition:
    """Rows and coordinates by the pivots of a scaled Jacobian; rank and all else as they are.

    Also the same rows as before where they are the best.
    """
    rows = pivot_rows(G, partition.rank)
    kept = G[rows]
    dependent = preferred_dependents(mech, kept, partition.rank)
    found = _with_split(replace(partition, rows=rows), dependent, _condition(kept, dependent))
    of_all, of_kept = independence(G, found)
    return replace(found, independence=of_kept / of_all if of_all > 0.0 else 1.0)


# ------------------------------------------------------------------------------------------ rows


def _better_rows(
    mech: Mechanism, partition: Partition, G: Array, q: Vector, v: Vector, t: float
) -> tuple[Indices, float] | None:
    """Other rows and their independence, where the kept ones are ill-conditioned and others clearly
    better; else None."""
    rank, exact = partition.rank, partition.tolerance == 0.0
    s = singular_values(G)
    of_kept = float(singular_values(G.take(partition.rows, 0))[-1])
    here = Independence(float(s[rank - 1]), of_kept)
    if not ill_conditioned(partition, here) or not _decides(s, partition):
        return None
    if exact:
        rows = pivot_rows(G, rank)
    else:
        places = [G, *_around(mech, partition, G, q, v, t)]
        sets = [pivot_rows(place, rank) for place in places]
        worth = [least_independence(places, rows) for rows in sets]
        if max(worth) <= ROWS_BETTER * least_independence(places, partition.rows):
            return None
        rows = sets[int(np.argmax(worth))]
    found = float(singular_values(G.take(rows, 0))[-1])
    return (rows, float(found / s[rank - 1])) if found > ROWS_BETTER * of_kept else None


def _decides(s: Vector, partition: Partition) -> bool:
    """Whether singular values at a state tell the rows that count: those that do not, and the
    rounding of the geometry, are far below those that do."""
    lost = float(s[partition.rank]) if partition.rank < s.size else 0.0
    return bool(s[partition.rank - 1] > WELL_ABOVE * max(lost, partition.tolerance))


def _around(
    mech: Mechanism, partition: Partition, G: Array, q: Vector, v: Vector, t: float
) -> list[Array]:
    """Jacobians a little along the motions, both ways, where they decide rows: to first order, for
    no configuration is closed."""
    motions = np.linalg.svd(G, full_matrices=True)[2][partition.rank :]
    found = []
    for motion in motions[:LOOKED_AROUND]:
        for step in (REACHED, -REACHED):
            there = pin.integrate(mech.model, q, step * mech.column_scale * motion)
            try:
                place = scaled_rows_at(mech, there, v, t).jacobian
            except Exception:  # a function that somebody else wrote, where it is not defined
                continue
            if np.isfinite(place).all() and _decides(singular_values(place), partition):
                found.append(place)
    return found


# ----------------------------------------------------------------------------------- coordinates


def _better_split(
    mech: Mechanism, partition: Partition, kept: Array, condition: float
) -> tuple[Indices, float] | None:
    """Other dependent coordinates and their condition number, where that is clearly better, or they
    leave the motors independent once more; else None."""
    dependent = preferred_dependents(mech, kept, partition.rank)
    if np.array_equal(dependent, partition.dependent):
        return None
    other = _condition(kept, dependent)
    if other > SPLIT_LIMIT:
        return None
    again = partition.motors_left_out and not mech.B[dependent].any()
    as_good = again and other <= MOTORS_AGAIN * condition
    return (dependent, other) if as_good or SPLIT_BETTER * other <= condition else None


def _condition(kept: Array, dependent: Indices) -> float:
    return lu(kept.take(dependent, 1), scaled_size(kept)).condition


def _with_split(partition: Partition, dependent: Indices, condition: float) -> Partition:
    """The partition with other coordinates; those that the caller chose are so while they stay."""
    if np.array_equal(dependent, partition.dependent):
        return replace(partition, condition=condition)
    free = np.setdiff1d(np.concatenate([partition.independent, partition.dependent]), dependent)
    return replace(
        partition, independent=free, dependent=dependent, condition=condition, chosen=False
    )
