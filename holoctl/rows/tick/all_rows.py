"""All rows of a mechanism at a state, scaled: to watch it, and to put it back on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import rows_at

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


def scaled_rows_at(mech: Mechanism, q: Vector, v: Vector, t: float) -> ScaledRows:
    """All rows at a state whose shapes are right; not finite where the state is out of range."""
    r, rows = mech.row_scale, rows_at(mech, q, v, t, in_a_tick=True)
    return ScaledRows(rows.jacobian * mech.scale, r * rows.error, r * rows.rate)
