"""All rows of a mechanism at a state, quickly: to watch it, and to put it back on its constraints.

Laid out once for each thread; where rows cannot be laid out, they are evaluated as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.tolerances import UNLIMITED
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.closure_limits import StateLimits
from holoctl.rows.evaluate import constraint_rows
from holoctl.rows.tick.fast_rows import fast_rows
from holoctl.tree.live_motion import live_motion

__all__ = ["ScaledRows", "scaled_rows_at"]

Array = NDArray[np.float64]


class ScaledRows(NamedTuple):
    """All m rows at a state, in scaled rows and coordinates.

    Attributes
    ----------
    jacobian : (m, nv) array
        ``Dr G Dc``; a new array.
    error, rate : (m,) arrays
        ``Dr phi`` and ``Dr (G v + phi_t)``.
    """

    jacobian: Array
    error: Vector
    rate: Vector


_Evaluate = Callable[[Vector, Vector, float], ScaledRows]


def scaled_rows_at(mech: Mechanism, q: Vector, v: Vector, t: float) -> ScaledRows:
    """All rows at a state whose shapes are right; not finite where the state is out of range."""
    return mech.per_thread("all_rows", lambda: _laid_out(mech))(q, v, t)


def _laid_out(mech: Mechanism) -> _Evaluate:
    m, nv, c, r = mech.row_scale.size, mech.nv, mech.column_scale, mech.row_scale

    def in_general(q: Vector, v: Vector, t: float) -> ScaledRows:
        _, rows = constraint_rows(mech, q, v, t)
        return ScaledRows(rows.jacobian * mech.scale, r * rows.error, r * rows.rate)

    motion = live_motion(mech.model, mech.model.createData())
    if motion is None or mech.chart is not None or m == 0:
        return in_general
    wanted = np.arange(m * nv).reshape(m, nv)
    fast = fast_rows(mech, motion, np.arange(m), wanted, StateLimits(None, None))
    evaluate, entries, off = fast.evaluate, fast.entries, fast.off

    def in_a_tick(q: Vector, v: Vector, t: float) -> ScaledRows:
        if not evaluate(q, v, t):
            return in_general(q, v, t)
        rates, errors = off() * UNLIMITED
        return ScaledRows(entries * c, errors, rates)

    return in_a_tick
