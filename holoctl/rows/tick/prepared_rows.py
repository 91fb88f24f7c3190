"""Rows of one sort in a tick: the arrays that they fill, and the scale of their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holoctl.base.checks import Array, Vector
from holoctl.base.tolerances import UNLIMITED
from holoctl.rows.state_limits import StateLimits

__all__ = ["PreparedRows", "per_limit"]


class PreparedRows(NamedTuple):
    """Rows of one sort: (m,) -drift and (2, m) rates and errors over their limits, scaled.

    `evaluate` fills them and the rows of WJ of this part. It returns the sum of the squares of
    `off`, or nan if the evaluation fails. `place`, if not None, fills only the errors and WJ, from
    placements and J. `unchecked`, if not None, are rates and errors of the last rows, which are not
    compared with limits: not scaled, and zero in `off`. `wrenches`, if all rows are wrenches,
    returns those (m, 6) that were multiplied with J, scaled; the next evaluation may overwrite
    them.
    """

    evaluate: Callable[[Vector, Vector, float], float]
    right: Vector
    off: Array
    place: Callable[[], None] | None = None
    unchecked: Array | None = None
    wrenches: Callable[[], Array] | None = None


def per_limit(limits: StateLimits | None) -> tuple[float, float]:
    """Factors of rates and errors: one over their limits."""
    if limits is None:
        return 0.0, 0.0
    return 1.0 / (limits.velocity or UNLIMITED), 1.0 / (limits.closure or UNLIMITED)
