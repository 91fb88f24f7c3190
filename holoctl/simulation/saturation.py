"""Which motors are at their limits, and for how long, in a simulation.

A motor is saturated from one instant to the next if its command there is at or beyond a limit of
the plant's motors, or at one of its controller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.control.effort_bounds import effort_bounds
from holoctl.control.loop import Tracking, in_python
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits

__all__ = ["Saturation", "limits_of_controller"]

AT_LIMIT = 1.0 - 1e-9
"""An effort of this share of its limit is at it: controllers compute efforts with rounding."""


@dataclass
class Saturation:
    """The saturated motors of a run.

    Attributes
    ----------
    bounds : tuple of BoundLimits
        The limits of the plant's motors and of the controller, as far as there are any.
    since : dict of int to float
        Of the motors that are saturated now: since when, s.
    over : list of (int, float, float)
        Motor, first and last instant, s, of what is over.
    """

    bounds: tuple[BoundLimits, ...]
    since: dict[int, float] = field(default_factory=dict)
    over: list[tuple[int, float, float]] = field(default_factory=list)

    def note(self, t: float, u: Vector, rates: Vector) -> None:
        """The command u (nu,) and the rates of the motors (nu,) from the instant t on."""
        if not self.bounds:
            return
        now = set[int]()
        for bound in self.bounds:
            lower, upper = effort_bounds(bound, rates)
            at = (u >= upper - (1.0 - AT_LIMIT) * np.abs(upper)) & (upper < np.inf)
            at |= (u <= lower + (1.0 - AT_LIMIT) * np.abs(lower)) & (lower > -np.inf)
            now |= set(np.flatnonzero(at).tolist())
        for i in now - self.since.keys():
            self.since[i] = t
        for i in self.since.keys() - now:
            self.over.append((i, self.since.pop(i), t))

    def until(self, t: float) -> Array:
        """(k, 3): motor, first and last instant, s, in a run that ends at t; by the first."""
        last = [(i, start, t) for i, start in self.since.items() if t > start]
        found = sorted([*self.over, *last], key=lambda x: (x[1], x[0]))
        return np.array(found, dtype=float).reshape(-1, 3)


def limits_of_controller(controller: Any) -> BoundLimits | None:
    """The limits of motors that a controller of the library keeps; None if there are none."""
    if not isinstance(controller, Tracking):
        return None
    law = in_python(controller.controller)
    if law.limits is None:
        return None
    bound = bound_limits(law.mech, law.limits)
    return bound if np.isfinite(bound.effort).any() else None
