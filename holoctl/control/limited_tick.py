"""The law of limits behind a tick: nearly free where nothing limits.

Efforts within their box, and joints far from their limits, are seen at once; everything else goes
to limits_law.py, with what the tick has laid out, or by the general path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.tolerances import ALMOST_ONE
from holoctl.control.effort_bounds import effort_bounds_at_any_rate
from holoctl.control.limited_coordinates import coordinates_at, coordinates_of_tree
from holoctl.control.limits_law import Asked, LimitsLaw, Outcome
from holoctl.control.viability import safe_range
from holoctl.dynamics.effort_response import EffortResponse, response_at
from holoctl.dynamics.tick.inverse_tick import Behind
from holoctl.projector.partition import Partition

__all__ = ["LimitedTick", "Limiting"]

Array = NDArray[np.float64]


class Limiting(NamedTuple):
    """What limited a tick: names are only made when somebody looks."""

    law: LimitsLaw
    positions: Vector
    velocities: Vector
    outcome: Outcome

    @property
    def saturated(self) -> tuple[str, ...]:
        """What limits."""
        return self.law.names(self.positions, self.velocities, self.outcome.limiting)

    @property
    def softened(self) -> tuple[str, ...]:
        """Limits of joints that gave way."""
        return self.law.given_way(self.positions, self.velocities, self.outcome)


@dataclass(frozen=True, eq=False)
class LimitedTick:
    """Limits behind the ticks of a controller.

    Attributes
    ----------
    law : LimitsLaw
    partition : Partition
    weights : (nu,) array or None
        Of efforts, for the general path.
    """

    law: LimitsLaw
    partition: Partition
    weights: Vector | None
    _far: Callable[[Vector, Vector, Vector, Behind | None], bool] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_far", _far_from_limits(self.law))

    def limited(
        self, u: Vector, q: Vector, v: Vector, t: float, known: Vector | None,
        behind: Behind | None, moved: bool, base: Callable[[], Vector],
    ) -> tuple[Vector, Limiting | None]:  # fmt: skip
        """The efforts u within limits, and what limited them.

        `behind` is what may be asked behind the tick that gave u, `moved` whether it was for an
        acceleration; `base` the efforts of the motion without one.
        """
        if self._far(u, q, v, behind if moved else None):
            return u, None
        law = self.law
        if law.is_box and law.policy == "nearest" and behind is not None:
            H = behind.worth(q)
            if H is not None:
                found = law.nearest_in_box(u, H)
                return found.u, Limiting(law, _NONE, _NONE, found)
        asked = self._asked(u, q, v, t, known, behind, moved, base)
        found = law.outcome(asked)
        if found.scale == 1.0:
            return u, None
        return found.u, Limiting(law, asked.positions, asked.velocities, found)

    def _asked(
        self, u: Vector, q: Vector, v: Vector, t: float, known: Vector | None,
        behind: Behind | None, moved: bool, base: Callable[[], Vector],
    ) -> Asked:  # fmt: skip
        mech, bound = self.law.mech, self.law.bound

        def in_general() -> EffortResponse:
            return response_at(mech, self.partition, self.weights, q, v, t, known)

        def of_all() -> tuple[Array, Array]:
            found = None if behind is None else behind.response(q)
            return in_general()[:2] if found is None else found

        if not bound.names:
            return Asked(u, v, _NONE, _NONE, _NONE, of_all, base)
        here = coordinates_at(mech, bound, q, v, t)
        a = behind.acceleration() if behind is not None and moved else None
        if a is None:
            response = in_general()
            a = response.Y @ u + response.a0

        def of_limited() -> tuple[Array, Array]:
            H, Y = of_all()
            return H, here.J.dot(Y)

        return Asked(u, v, here.positions, here.velocities, here.accelerations(a), of_limited, base)


_NONE = np.zeros(0)


def _far_from_limits(
    law: LimitsLaw,
) -> Callable[[Vector, Vector, Vector, Behind | None], bool]:
    """A function (u, q, v, behind) that says whether all limits are far: True is certain."""
    bound = law.bound
    lower, upper = effort_bounds_at_any_rate(bound)
    middle, per_half = _ball(lower, upper)
    if not bound.names:

        def efforts_are_far(u: Vector, q: Vector, v: Vector, behind: Behind | None) -> bool:
            x = (u - middle) * per_half
            return bool(
                x.dot(x) < ALMOST_ONE or (np.minimum(np.maximum(u, lower), upper) == u).all()
            )

        return efforts_are_far
    safe = None if bound.cut else safe_range(bound, law.brakes, law.dt)
    if safe is None:
        return lambda u, q, v, behind: False
    middles, per_halves = _ball(*np.concatenate([[lower, upper], safe], axis=1))
    columns = bound.columns

    def all_are_far(u: Vector, q: Vector, v: Vector, behind: Behind | None) -> bool:
        if behind is None:
            return False
        a = behind.acceleration()
        if a is None:
            return False
        x = np.concatenate([u, *coordinates_of_tree(bound, q, v), a.take(columns)])
        x -= middles
        x *= per_halves
        return bool(np.abs(x).max() < ALMOST_ONE)

    return all_are_far


def _ball(lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Middles of ranges, and one over their halves: 0 where there is no limit, inf where nothing is
    within."""
    both = np.isfinite(lower) & np.isfinite(upper)
    a, b = np.where(both, lower, -1.0), np.where(both, upper, 1.0)
    one_sided = ~both & (np.isfinite(lower) | np.isfinite(upper))
    with np.errstate(divide="ignore"):
        per_half = np.where(both, 2.0 / np.maximum(b - a, 0.0), np.where(one_sided, np.inf, 0.0))
    return 0.5 * (a + b), per_half
