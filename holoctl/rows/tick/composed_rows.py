"""Functions of rows along vectors in a tick."""

from __future__ import annotations

import math

import numpy as np

from holoctl.base.checks import Array, Indices, Vector
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.prepared_rows import PreparedRows, per_limit
from holoctl.rows.tick.vector_rows import along
from holoctl.tree.live_motion import LiveMotion

__all__ = ["composed"]


def composed(
    table: WrenchRows,
    i: Indices,
    scale: Vector,
    motion: LiveMotion,
    WJ: Array,
    limits: StateLimits | None,
) -> PreparedRows:
    """Functions of rows along vectors, by the chain rule: see constraints/kinds.py."""
    of_row = {row: (row, kind, at) for row, kind, at in table.composed}
    # in the order of i, which may differ from that of the table
    wanted = [of_row[row] for row in i.tolist()]
    parts, right, off = table.parts, np.zeros(i.size), np.zeros((2, i.size))
    count, flat_off = len(parts.labels), off.reshape(-1)
    WJ_x = np.zeros((count, WJ.shape[1]))
    unscaled = along(parts, np.arange(count), np.ones(count), motion, WJ_x, StateLimits(1.0, 1.0))
    per_velocity, per_closure = per_limit(limits)
    xdots, xs = unscaled.off
    gradients = [np.zeros(0)] * i.size
    atan2, floor = math.atan2, math.floor

    def evaluate(q: Vector, v: Vector, t: float) -> float:
        if not unscaled.evaluate(q, v, t) < np.inf:
            return np.nan
        for k, (row, kind, at) in enumerate(wanted):
            x, xdot, size = xs[at].tolist(), xdots[at].tolist(), float(table.size[row])
            try:
                if not kind.guard(x) < 1.0:
                    return np.nan
                f_x = gradients[k] = scale[k] * np.array(kind.gradient(x, size))
            except ZeroDivisionError:
                return np.nan
            WJ[k] = f_x.dot(WJ_x[at])
            right[k] = f_x.dot(unscaled.right[at]) - scale[k] * kind.curvature(x, xdot, size)
            off[0, k] = per_velocity * f_x.dot(xdots[at])
            off[1, k] = per_closure * scale[k] * kind.value(x, size, atan2, floor)
        return float(flat_off.dot(flat_off))

    def wrenches() -> Array:
        of_parts = unscaled.wrenches() if unscaled.wrenches else np.zeros((count, 6))
        found = [f.dot(of_parts[at]) for f, (_, _, at) in zip(gradients, wanted, strict=True)]
        return np.array(found)

    return PreparedRows(evaluate, right, off, wrenches=wrenches)
