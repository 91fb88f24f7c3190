"""The drift that a law solves with: stabilised where a constraint asks for it, as on other paths.

G a = -(drift + stabilisation)
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Indices
from holoctl.codegen.casadi_import import SX
from holoctl.codegen.rows import SymbolicRows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.stabilisation import stabilisation, time_constants

__all__ = ["stabilised_drift"]


def stabilised_drift(mech: Mechanism, rows: SymbolicRows, which: Indices) -> list[SX]:
    """Drift and stabilisation of rows, which are those `which` of the mechanism."""
    parts = zip(rows.drift, rows.rate, rows.error, time_constants(mech)[which], strict=True)
    return [
        drift + stabilisation(rate, error, T) if np.isfinite(T) else drift
        for drift, rate, error, T in parts
    ]
