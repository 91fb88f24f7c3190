"""Rows that can be open: the others are zero at every configuration."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import read_only
from holoctl.base.tolerances import RANDOM_CONFIGURATIONS
from holoctl.constraints.kinds import Composed
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.kinematics import kinematics

__all__ = ["rows_that_open"]

ALWAYS_CLOSED = 1e-11  # scaled
"""A row between bodies whose scaled error is below this at random configurations is always zero."""


def rows_that_open(mech: Mechanism) -> NDArray[np.bool_]:
    """Mask (m,) of the rows that can be open; the others are zero at every configuration.

    For example, a hinge has rows that keep a planar loop in its plane, which are zero. Rows between
    bodies are analytic functions of q: one that vanishes at several random q vanishes everywhere.
    User-defined kinds need not be analytic. Computed once; read-only.
    """
    return mech.per_thread("rows_that_open", lambda: read_only(_opening(mech)))


def _opening(mech: Mechanism) -> NDArray[np.bool_]:
    opens = np.ones(mech.row_scale.size, dtype=bool)
    tables = [(block.table, block.where) for block in mech.blocks if block.table is not None]
    if not tables:
        return opens
    rng, (table, where) = np.random.default_rng(0), tables[0]
    may_dwell = [isinstance(kind, Composed) and not kind.analytic for kind in table.kinds]
    largest, data = np.zeros(where.size), mech.model.createData()
    for _ in range(RANDOM_CONFIGURATIONS):
        step = rng.normal(size=mech.nv) * mech.column_scale
        q = pin.integrate(mech.model, pin.neutral(mech.model), step)
        error = table.rows(kinematics(mech.model, data, q, np.zeros(mech.nv), 0.0)).error
        largest = np.maximum(largest, np.abs(mech.row_scale[where] * error))
    opens[where] = (largest > ALWAYS_CLOSED) | np.array(may_dwell)
    return opens
