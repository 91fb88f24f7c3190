"""Compiled forward dynamics for a simulation: whole steps, and all rows, in one call each.

If the guard is in doubt, Python computes them: stage by stage, or by the prepared rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.codegen.compiled.compiled import Compiled
from holoctl.rows.evaluate import ScaledRows, scaled_rows_at

__all__ = ["Step", "rows_of", "step_of"]


Step = Callable[..., bool]
"""step(q, v, tau, t, h, A, B, C, first, x, last, K): the stages of an explicit step h with efforts
tau held; False where the guard is in doubt.

A (s, s), B, C are the coefficients. `first` is the slope where the step starts, or None. Filled are
the slopes K (s + 1, 2 nv), the last at the end, x = (d, v) there, and that of the stage `last`."""


def step_of(compiled: Compiled) -> Step:
    """Whole steps by compiled forward dynamics."""
    module, _ = compiled._law("forward_dynamics")
    step: Step = module.step
    return step


def rows_of(compiled: Compiled) -> Callable[[Vector, Vector, float], ScaledRows]:
    """All rows of its mechanism, as `scaled_rows_at`."""
    mech = compiled.mech
    m, nv = mech.row_scale.size, mech.nv
    if not m:
        return lambda q, v, t: scaled_rows_at(mech, q, v, t)
    module, _ = compiled._law("rows")
    entries = m * nv

    def in_python(q: Vector, v: Vector, t: float) -> Array:
        rows = scaled_rows_at(mech, q, v, t)
        return np.concatenate([rows.jacobian.reshape(-1), rows.error, rows.rate])

    def doubtful(*state: Any) -> Array:
        compiled._fell_back("rows")
        return in_python(*state)

    scaled = module.bind(in_python, doubtful)

    def rows(q: Vector, v: Vector, t: float) -> ScaledRows:
        x = scaled(q, v, t)
        return ScaledRows(x[:entries].reshape(m, nv), x[entries : entries + m], x[entries + m :])

    return rows
