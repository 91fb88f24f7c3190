"""What the self-test of an exported library measures, tick by tick, with the states by Python."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.errors import HoloctlError
from holoctl.base.tolerances import SELF_TEST_STATES
from holoctl.estimation.prepared_assembly import PreparedAssembly

__all__ = ["Ticks", "golden_ticks"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ticks:
    """What is measured at each tick, and the closed state then; a row for each tick."""

    start: Array
    measured_q: Array
    measured_v: Array
    t: Array
    q: Array
    v: Array


def golden_ticks(assembly: PreparedAssembly, timed: bool) -> Ticks:
    """A walk of small steps from the start."""
    mech, rng = assembly.mech, np.random.default_rng(64)
    own = assembly.fresh()
    start, sensors, size = own.q, own.readings, 0.02
    rows: list[tuple[Array, Array, float, Array, Array]] = []
    direction, t = rng.normal(size=sensors.columns.size), 0.0
    while len(rows) < SELF_TEST_STATES:
        direction = 0.8 * direction + 0.6 * rng.normal(size=direction.size)
        _, along = own.state(sensors.at(own.q), direction * sensors.unit, t)
        long = float(np.abs(along / mech.column_scale).max())
        x = sensors.at(pin.integrate(mech.model, own.q, size / max(long, 1.0) * along))
        rates, later = rng.normal(size=direction.size), t + 1e-3 * timed
        try:
            q, v = own.state(x, rates, later)
        except HoloctlError:  # shorter steps from the start, for this is close to a dead point
            size, t, rows, own = 0.5 * size, 0.0, [], assembly.fresh()
            if size < 1e-6:
                raise
            continue
        t = later
        rows.append((x, rates, t, q, v))
    measured_q, measured_v, times, q, v = (np.array(x) for x in zip(*rows, strict=True))
    return Ticks(start, measured_q, measured_v, times, q, v)
