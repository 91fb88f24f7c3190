"""The readings of the self-test of an exported library, tick by tick, with the states by Python."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array
from holoctl.base.errors import HoloctlError
from holoctl.base.tolerances import SELF_TEST_STATES
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator

__all__ = ["Ticks", "golden_ticks"]


LONGEST_STEP, SHORTEST_STEP = 0.02, 1e-6
"""Of a coordinate from tick to tick, scaled."""


@dataclass(frozen=True, eq=False)
class Ticks:
    """The readings at each tick, and the closed state; a row for each tick."""

    start: Array
    measured_q: Array
    measured_v: Array
    t: Array
    q: Array
    v: Array


def golden_ticks(estimator: ClosedStateEstimator, timed: bool) -> Ticks:
    """A walk of small steps from the start, each along the rates that were measured before.

    Python is called as C will be: where bodies spin that no sensor sees depends on the way.
    """
    size = LONGEST_STEP
    while True:
        try:
            return _walk(estimator.fresh(), timed, size)
        except HoloctlError:  # by shorter steps and slower, for a dead point is close
            size = 0.5 * size
            if size < SHORTEST_STEP:
                raise


def _walk(own: ClosedStateEstimator, timed: bool, size: float) -> Ticks:
    mech, sensors, start = own.mech, own.readings, own.q
    m, rng, rows = sensors.columns.size, np.random.default_rng(64), []
    direction, along = np.zeros(m), np.zeros(mech.nv)
    for k in range(SELF_TEST_STATES):
        long = float(np.abs(along / mech.column_scale).max(initial=0.0))
        x = sensors.at(pin.integrate(mech.model, own.q, size / max(long, 1.0) * along))
        direction, t = 0.8 * direction + 0.6 * rng.normal(size=m), 1e-3 * k * timed
        rates = (size / LONGEST_STEP) * direction * sensors.unit
        q, along = own.state(x, rates, t)
        rows.append((x, rates, t, q, along))
    measured_q, measured_v, times, *states = (np.array(x) for x in zip(*rows, strict=True))
    return Ticks(start, measured_q, measured_v, times, *states)
