"""Constraint residuals of a state, as in a certificate.

closure     max |r phi|
velocity    max |r (G v + phi_t)| / (1 + max |r G| |v|)
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Indices, Vector
from holoctl.base.linalg import largest
from holoctl.rows.terms import Terms

__all__ = ["constraint_residuals", "of_state", "with_chart", "worst"]


def constraint_residuals(T: Terms, rows: Indices | None = None) -> tuple[float, float]:
    """`closure` and `velocity_residual` of a certificate: of the state alone, all rows or some."""
    error, rate = of_state(T)
    return with_chart(T, worst(error, rows), worst(rate, rows))


def of_state(T: Terms) -> tuple[Vector, Vector]:
    """(m,) ``r phi``, and ``r (G v + phi_t)`` over the size of its terms."""
    r = T.mechanism.row_scale
    return r * T.rows.error, r * T.rows.rate / _speed(T)


def with_chart(T: Terms, closure: float, velocity: float) -> tuple[float, float]:
    """The residuals, or the distances by which an explicit chart has moved the state if those are
    larger."""
    mech, c = T.mechanism, T.mechanism.column_scale
    if mech.chart is None:
        return closure, velocity
    moved = pin.difference(mech.model, T.given[0], T.q) / c
    pushed = (T.v - T.given[1]) / c
    return max(closure, largest(moved)), max(velocity, largest(pushed) / _speed(T))


def worst(x: Vector, rows: Indices | None) -> float:
    """The largest size of some entries, or of all."""
    return largest(x if rows is None else x[rows])


def _speed(T: Terms) -> float:
    return 1.0 + largest(T.sizes.dot(np.abs(T.v)))
