"""Rows of one sort in a tick: what they fill in, and what their errors are counted by."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holoctl.base.checks import Array, Vector
from holoctl.base.tolerances import UNLIMITED
from holoctl.rows.state_limits import StateLimits

__all__ = ["PreparedRows", "per_limit"]


class PreparedRows(NamedTuple):
    """Rows of one kind: (m,) -drift and (2, m) rates and errors over their limits, scaled.

    `evaluate` fills them and the part's rows of WJ. It returns the sum of the squares of `off`,
    or what is not a number where it cannot evaluate. `place`, where there is one, fills the errors
    and WJ alone, from placements and J. `told`, where there are such, are rates and errors of the
    last rows, which are not judged: not scaled, and zero in `off`. `wrenches` (m, 6), where all
    rows are such, gives what was multiplied with J, scaled; it may change with the next evaluation.
    """

    evaluate: Callable[[Vector, Vector, float], float]
    right: Vector
    off: Array
    place: Callable[[], None] | None = None
    told: Array | None = None
    wrenches: Callable[[], Array] | None = None


def per_limit(limits: StateLimits | None) -> tuple[float, float]:
    """Factors of rates and errors: one over their limits."""
    if limits is None:
        return 0.0, 0.0
    return 1.0 / (limits.velocity or UNLIMITED), 1.0 / (limits.closure or UNLIMITED)
