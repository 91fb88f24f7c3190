"""The kept rows of a tick, split into dependent and independent coordinates, and factored:

    G_dep a_dep + G_ind a_ind = right

If each of many coordinates depends on few others, G_dep is ordered as a band matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_bipartite_matching, reverse_cuthill_mckee

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.linalg import in_place_band_lu, in_place_lu
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, most_condition
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.fast_rows import Beside, MoreRows, fast_rows, judged_rows
from holoctl.tree.live_motion import LiveMotion

__all__ = ["Split", "SplitMore", "ordered", "split_rows"]


BAND_FROM = 16
"""Number of dependent coordinates from which a band structure is searched."""


class Split(NamedTuple):
    """The scaled kept rows, ``G_dep a_dep + G_ind a_ind = right``, of one thread.

    `constrain` fills and factors them at a state; False if they are ill-conditioned there.
    """

    constrain: Callable[[Vector, Vector, float], bool]
    solve: Callable[[Array], None]
    solve_transposed: Callable[[Array], None]
    right: Vector
    G_ind: Array
    dependent: Indices
    independent: Indices
    data: pin.Data
    kept_by: Callable[[Vector, Vector], bool] | None
    more: SplitMore | None = None


class SplitMore(NamedTuple):
    """Rows that are not those of constraints, scaled: ``J_dep a_dep + J_ind a_ind = right + xdd``.

    Attributes
    ----------
    dep, ind : (m, r) and (m, k) arrays
        May be overwritten: they are filled together with G.
    rows : MoreRows
    """

    dep: Array
    ind: Array
    rows: MoreRows


def split_rows(
    mech: Mechanism,
    part: Partition,
    independent: Indices,
    motion: LiveMotion,
    guard: float,
    limits: StateLimits,
    more: Beside | None = None,
) -> Split:
    """Prepare the kept rows of a partition, and the additional rows `more`."""
    nv, r, k = mech.nv, part.rank, independent.size
    rows, dependent, lower, upper = ordered(mech, part)
    band = lower >= 0
    if band:
        i, j = np.indices((r, r))
        storage = np.full((2 * lower + upper + 1, r), -1)
        inside = (i - j <= lower) & (j - i <= upper)
        storage[(lower + upper + i - j)[inside], j[inside]] = (i * nv + dependent[j])[inside]
    else:
        storage = np.arange(r)[:, None] * nv + dependent
    others = np.arange(r)[:, None] * nv + independent
    extra = judged_rows(mech, rows).size + np.arange(0 if more is None else more.scale.size)
    of_more = [(extra[:, None] * nv + columns).reshape(-1) for columns in (dependent, independent)]
    parts = [storage.reshape(-1, order="F"), others.reshape(-1), *of_more]
    fast = fast_rows(
        mech, motion, rows, np.concatenate(parts).astype(np.intp), limits, part.tolerance, more
    )
    of_dep, of_ind, dep, ind = np.split(fast.entries, np.cumsum([x.size for x in parts])[:-1])
    G_dep, G_ind = of_dep.reshape(storage.shape, order="F"), of_ind.reshape(r, k)
    beside = None
    if fast.more is not None:
        m = extra.size
        beside = SplitMore(dep.reshape(m, r), ind.reshape(m, k), fast.more)
    unit = mech.column_scale[dependent]
    lu = in_place_band_lu(G_dep, lower, upper, unit) if band else in_place_lu(G_dep, unit)
    evaluate, factor, limit = fast.evaluate, lu.factor, min(guard, most_condition(part)) ** 2

    def constrain(q: Vector, v: Vector, t: float) -> bool:
        return evaluate(q, v, t) and factor() < limit

    return Split(
        constrain, lu.solve, lu.solve_transposed, fast.right, G_ind, dependent, independent,
        motion.data, fast.kept_by, beside,
    )  # fmt: skip


def ordered(mech: Mechanism, part: Partition) -> tuple[Indices, Indices, int, int]:
    """Rows and dependent coordinates, and the bandwidths of G_dep in their order (-1: none)."""
    dense = part.rows, part.dependent, -1, -1
    if part.rank < BAND_FROM:
        return dense
    support = np.concatenate([b.support for b in mech.bound])
    pattern = support[np.ix_(part.rows, part.dependent)]
    match = maximum_bipartite_matching(coo_array(pattern).tocsr(), perm_type="column")
    if (match < 0).any():
        return dense
    paired = pattern[:, match]  # row i is matched with column match[i]
    order = reverse_cuthill_mckee(coo_array(paired | paired.T).tocsr(), symmetric_mode=True)
    i, j = np.nonzero(paired[np.ix_(order, order)])
    lower, upper = int((i - j).max()), int((j - i).max())
    if 3 * (2 * lower + upper + 1) > part.rank:
        return dense
    return part.rows[order], part.dependent[match[order]], lower, upper
