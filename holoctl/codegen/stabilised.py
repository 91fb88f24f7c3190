"""The drift that a law solves with: stabilised where a constraint asks for it.

G a = -(drift + (2 / T) rate + error / T^2)        T: t_stab of the constraint, s
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holoctl.codegen.extra import SX
from holoctl.codegen.rows import SymbolicRows
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["stabilised_drift"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


def stabilised_drift(mech: Mechanism, rows: SymbolicRows, which: Indices) -> list[SX]:
    """Drift and stabilisation of rows, which are those `which` of the mechanism."""
    parts = zip(rows.drift, rows.rate, rows.error, time_constants(mech)[which], strict=True)
    return [stabilised(*part) for part in parts]


def stabilised(drift: SX, rate: SX, error: SX, T: float) -> SX:
    """``drift + (2 / T) rate + error / T^2``; T is inf for none."""
    if not np.isfinite(T):
        return drift
    return drift + (2.0 / T) * rate + error / (T * T)


def time_constants(mech: Mechanism) -> Array:
    """t_stab of each row, s; inf for none."""
    times = [
        np.full(len(b.labels), np.inf if c.t_stab is None else c.t_stab)
        for b, c in zip(mech._bound, mech.constraints, strict=True)
    ]
    return np.concatenate([np.zeros(0), *times])
