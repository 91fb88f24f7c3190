"""What the motors of a plant give of what they are told: what lies within their limits.

No position, velocity or acceleration of a joint is limited here: a plant has no end stops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.errors import InputError
from holoctl.control.effort_bounds import effort_bounds, effort_bounds_at_any_rate
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["PlantMotors", "motors_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlantMotors:
    """The motors of a plant.

    Attributes
    ----------
    bound : BoundLimits
    curved : bool
        Whether what they give depends on how fast they turn.
    """

    bound: BoundLimits
    curved: bool

    def given(self, plant: Mechanism, u: Vector, v: Vector) -> Vector:
        """The efforts that act where they are told u."""
        lower, upper = self.bound.effort
        if self.curved:
            lower, upper = effort_bounds(self.bound, plant.B.T @ v)
        acting: Vector = np.minimum(np.maximum(u, lower), upper)
        return acting

    def held(self, plant: Mechanism, u: Vector) -> Vector | Callable[[Vector], Vector]:
        """The same while u is held: efforts, or a function of v."""
        lower, upper = self.bound.effort
        if self.curved:
            lower, upper = effort_bounds_at_any_rate(self.bound)
        least: Vector = np.minimum(np.maximum(u, lower), upper)
        if not self.curved or (least == u).all():
            return least
        return lambda v: self.given(plant, u, v)


def motors_of(plant: Mechanism, limits: Any) -> PlantMotors:
    """The motors of a plant with these limits.

    Raises
    ------
    InputError
        For limits that do not fit the plant, or limit no motor.
    """
    bound = bound_limits(plant, limits)
    if not np.isfinite(bound.effort).any():
        raise InputError(
            f"{plant.name}: limits of a simulation are those of motors, by effort= or "
            f"speed_torque=, for a plant has no end stops; got {limits}"
        )
    return PlantMotors(bound, any(curve is not None for curve in bound.curves))
