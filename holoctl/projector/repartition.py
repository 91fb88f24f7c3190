"""Reselection of the rows and coordinates of a partition at another state, at the same rank.

    s   the rank-th singular value of G', all rows        k   the smallest one of G'[rows]

A partition is determined at one configuration. Elsewhere its rows may become nearly dependent (k
falls, s does not) although the mechanism is as regular as before; then other rows are equivalent
and better conditioned. If s falls too, the mechanism itself becomes singular, and no other choice
helps. The split of the coordinates may become ill-conditioned even with good rows: then other
coordinates are chosen as independent.
Derivation: docs/derivations.md, "Reselecting coordinates".
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.linalg import lu, singular_values
from holoctl.base.tolerances import LOOKED_AROUND, REACHED, WELL_ABOVE
from holoctl.closing.rank import pivot_rows, scaled_size
from holoctl.closing.toleranced_rows import independence as least_independence
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import SPLIT_LIMIT, Partition, preferred_dependents
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
"""Kept rows are ill-conditioned if their smallest singular value, relative to that of all rows,
falls below the first number times its initial value; with rounded geometry the second, because such
rows then determine another motion. Other rows must be better by the third factor."""

SPLIT_LOOKED_AT = 2.0
"""Rows and coordinates are reconsidered if the condition number of the split has grown by this
factor."""

SPLIT_ILL = (1e2, 1e3)
"""Condition numbers of the split: above the first, rows are always reconsidered; coordinates only
above the first, and always above the second: ticks leave a split at `PASSIVE_DOUBT` or
`INVERSE_DOUBT`."""

SPLIT_BETTER, MOTORS_AGAIN = 5.0, 20.0
"""Other coordinates are chosen if their split is better conditioned by the first factor; all motors
become independent again, by `PREFERENCE`, if that is worse by at most the second factor."""


class Independence(NamedTuple):
    """The smallest singular values that count: of all rows, and of the kept rows."""

    of_all: float
    of_kept: float


def independence(G: Array, partition: Partition) -> Independence:
    """The independence of the rows of a partition, from the scaled Jacobian of all rows at a
    state."""
    if partition.rank == 0:
        return Independence(1.0, 1.0)
    of_kept = float(singular_values(G.take(partition.rows, 0))[-1])
    if partition.rank == G.shape[0]:
        return Independence(of_kept, of_kept)
    return Independence(float(singular_values(G)[partition.rank - 1]), of_kept)


def ill_conditioned(partition: Partition, here: Independence) -> bool:
    """Whether the kept rows become nearly dependent although the mechanism is as regular as
    before."""
    least = ROWS_ILL_ROUNDED if partition.tolerance > 0.0 else ROWS_ILL
    return here.of_kept < least * partition.independence * here.of_all


def better_rows(
    mech: Mechanism, partition: Partition, G: Array, of_kept: float
) -> Partition | None:
    """The result of `decided_anew` if its rows are clearly better conditioned than the kept ones;
    else None."""
    found = decided_anew(mech, partition, G)
    return found if independence(G, found).of_kept > ROWS_BETTER * of_kept else None


def repartitioned(
    mech: Mechanism, partition: Partition, q: Vector, v: Vector, t: float = 0.0
) -> Partition:
    """A partition that is well-conditioned at a state: the same object if it is.

    No configuration is closed and no rank determined; states may have the errors of encoders. If
    the state is not suitable for a choice, being close to a singular configuration or out of range,
    the same partition is returned: functions that use it check their results.

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
    """Rows and coordinates by the pivots of a scaled Jacobian; rank and other fields are unchanged.

    The rows may be the same as before.
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
    """Other rows and their independence if the kept ones are ill-conditioned and others clearly
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
    """Whether the singular values at a state separate the rows that count: those that do not count,
    and the rounding of the geometry, are far below those that do."""
    lost = float(s[partition.rank]) if partition.rank < s.size else 0.0
    return bool(s[partition.rank - 1] > WELL_ABOVE * max(lost, partition.tolerance))


def _around(
    mech: Mechanism, partition: Partition, G: Array, q: Vector, v: Vector, t: float
) -> list[Array]:
    """Jacobians at small steps along the motions, forwards and backwards, if they are suitable for
    a choice of rows. To first order, because no configuration is closed."""
    motions = np.linalg.svd(G, full_matrices=True)[2][partition.rank :]
    found = []
    for motion in motions[:LOOKED_AROUND]:
        for step in (REACHED, -REACHED):
            there = pin.integrate(mech.model, q, step * mech.column_scale * motion)
            try:
                place = scaled_rows_at(mech, there, v, t).jacobian
            except Exception:  # user code may raise anything where it is not defined
                continue
            if np.isfinite(place).all() and _decides(singular_values(place), partition):
                found.append(place)
    return found


# ----------------------------------------------------------------------------------- coordinates


def _better_split(
    mech: Mechanism, partition: Partition, kept: Array, condition: float
) -> tuple[Indices, float] | None:
    """Other dependent coordinates and their condition number if that is clearly better, or if they
    make the motors independent again; else None."""
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
    """The partition with other coordinates; `chosen` remains True only if they are the same."""
    if np.array_equal(dependent, partition.dependent):
        return replace(partition, condition=condition)
    free = np.setdiff1d(np.concatenate([partition.independent, partition.dependent]), dependent)
    return replace(
        partition, independent=free, dependent=dependent, condition=condition, chosen=False
    )
