"""Rows grouped for evaluation: those between bodies in one table, the others one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import read_only
from holoctl.constraints.constraint_protocol import BoundRows
from holoctl.constraints.wrench_rows import WrenchRows, stacked

__all__ = ["Block", "blocks_of"]


class Block(NamedTuple):
    """Rows that are evaluated together, and their indices among all, in increasing order."""

    rows: BoundRows
    where: NDArray[np.intp]

    @property
    def table(self) -> WrenchRows | None:
        """The rows as a table of rows between bodies; None if they are other rows."""
        return self.rows if type(self.rows) is WrenchRows else None


def blocks_of(bound: Sequence[BoundRows]) -> tuple[Block, ...]:
    """All rows between bodies as one table, the other constraints one by one."""
    starts = np.cumsum([0, *(len(b.labels) for b in bound)])
    where = [read_only(np.arange(start, stop)) for start, stop in pairwise(starts)]
    # a subclass may evaluate differently, so only this exact type is merged
    tables = {i: b for i, b in enumerate(bound) if type(b) is WrenchRows}
    others = [Block(b, where[i]) for i, b in enumerate(bound) if i not in tables]
    if not tables:
        return tuple(others)
    of_all = read_only(np.concatenate([where[i] for i in tables]))
    return (Block(stacked(tables.values()), of_all), *others)
