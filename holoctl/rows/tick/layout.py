"""Prepares all rows of each sort together, and records their order in the result.

In: rows of a mechanism by their indices, and views of the motion of the bodies. Out: values of
`PreparedRows`, one for each sort of row, that fill one matrix W J and one vector each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Indices, Vector
from holoctl.constraints.constraint_protocol import BoundRows
from holoctl.constraints.kinds import Along, Composed, Orientation
from holoctl.constraints.wrench_rows import WrenchRows, stacked
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.composed_rows import composed
from holoctl.rows.tick.orientation_rows import turning
from holoctl.rows.tick.prepared_rows import PreparedRows
from holoctl.rows.tick.user_rows import BlockRows, rows_of_blocks
from holoctl.rows.tick.vector_rows import along
from holoctl.tree.live_motion import LiveMotion

__all__ = ["Beside", "Layout", "layout"]


_Prepare = Callable[
    [WrenchRows, Indices, Vector, LiveMotion, Array, StateLimits | None], PreparedRows
]

PREPARED: dict[type, _Prepare] = {Along: along, Orientation: turning, Composed: composed}
"""The function that prepares the rows between two bodies, for each sort. Other rows are evaluated
by their `rows`."""


class Layout(NamedTuple):
    """Rows prepared for one thread.

    Attributes
    ----------
    parts : list of PreparedRows
        One for each sort of row, to be evaluated in this order.
    order : (n,) int array
        The index of each row among the requested ones: the rows of a part are contiguous.
    WJ, S : (n, nv) arrays
        In this order; ``G = WJ * S``. The first is filled by the parts, the second is constant.
    """

    parts: list[PreparedRows]
    order: Indices
    WJ: Array
    S: Array


class Beside(NamedTuple):
    """Rows along vectors that are evaluated together with those of constraints.

    Attributes
    ----------
    table : WrenchRows
    scale : (m,) array
        Their factors in G.
    """

    table: WrenchRows
    scale: Vector


def layout(
    mech: Mechanism,
    motion: LiveMotion,
    rows: Indices,
    scale: Vector,
    limits: StateLimits | None,
    more: Beside | None = None,
    without_ticks: bool = False,
) -> Layout:
    """Prepare rows of a mechanism, with a factor for each; rows `more` come last.

    Parameters
    ----------
    limits : StateLimits or None
        Rates and errors are divided by these; None if they are not used.
    without_ticks : bool, optional
        Whether user-defined rows are evaluated by their `rows` even if they offer a `tick`.
    """
    groups, others = _groups(mech, rows)
    own_scale = np.zeros(0) if more is None else more.scale
    if more is not None:
        groups = _with_more(groups, more.table, rows.size)
        scale = np.concatenate([scale, own_scale])
    places = [*(g.here for g in others), *(g.here for g in groups)]
    order = np.concatenate([np.zeros(0, dtype=np.intp), *places])
    WJ, S = np.zeros((order.size, mech.nv)), np.ones((order.size, mech.nv))
    parts: list[PreparedRows] = []
    stop = sum(g.here.size for g in others)
    if others:
        blocks = [BlockRows(g.block, g.which, scale[g.here]) for g in others]
        parts.append(rows_of_blocks(mech, motion, blocks, WJ[:stop], limits, without_ticks))
    for table, here, which, prepare in groups:
        at, stop = slice(stop, stop + here.size), stop + here.size
        S[at] = table.S[table.pair[which]]
        arguments = table, which, scale[here], motion, WJ[at], limits
        last = more is not None and stop == order.size
        parts.append(along(*arguments, own_scale) if last else prepare(*arguments))
    return Layout(parts, order, WJ, S)


def _with_more(groups: list[_RowsOfSort], more: WrenchRows, count: int) -> list[_RowsOfSort]:
    """With rows that are not those of constraints last, in one table with rows along vectors."""
    beside = [g for g in groups if g.prepare is along]
    which, here = np.arange(len(more.labels)), count + np.arange(len(more.labels))
    rest = [g for g in groups if g.prepare is not along]
    if not beside:
        return [*rest, _RowsOfSort(more, here, which, along)]
    own = beside[-1]
    table = stacked([own.table, more])
    both = np.concatenate([own.which, len(own.table.labels) + which])
    last = _RowsOfSort(table, np.concatenate([own.here, here]), both, along)
    return [*rest, *beside[:-1], last]


class _RowsOfSort(NamedTuple):
    """Rows of one sort in the table of rows between bodies; `here` are their indices among all."""

    table: WrenchRows
    here: Indices
    which: Indices
    prepare: _Prepare


class _Other(NamedTuple):
    """Rows of a block that is not a table of rows between bodies."""

    block: BoundRows
    here: Indices
    which: Indices


def _groups(mech: Mechanism, rows: Indices) -> tuple[list[_RowsOfSort], list[_Other]]:
    """The rows, grouped by sort."""
    groups, others = list[_RowsOfSort](), list[_Other]()
    for block in mech.blocks:
        here = np.flatnonzero(np.isin(rows, block.where))
        which = np.searchsorted(block.where, rows[here])
        if block.table is None:
            others += [_Other(block.rows, here, which)] if here.size else []
            continue
        sorts = [type(block.table.kinds[i]) for i in which.tolist()]
        for sort in dict.fromkeys(sorts):
            own = np.array([one is sort for one in sorts])
            if sort in PREPARED:
                groups.append(_RowsOfSort(block.table, here[own], which[own], PREPARED[sort]))
            else:
                others.append(_Other(block.table, here[own], which[own]))
    return groups, others
