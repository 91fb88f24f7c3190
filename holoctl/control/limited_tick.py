"""The limits law applied in a tick of a controller, at little cost if no limit is active.

Efforts within their bounds, and joints far from their limits, are detected by a few comparisons; in
all other cases limit_policies.py is applied, with the factors of the tick, or by the general path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector, finite
from holoctl.control.effort_bounds import effort_bounds_at_any_rate
from holoctl.control.limit_policies import LimitRequest, LimitsLaw, LimitsOutcome
from holoctl.control.viability_kernel import safe_range
from holoctl.dynamics.effort_response import EffortResponse, response_at
from holoctl.dynamics.tick.inverse_tick import LastSolve
from holoctl.dynamics.tick.inverse_with_fallback import Paths
from holoctl.dynamics.tick.prepared_forward import PreparedForwardDynamics, at_once
from holoctl.dynamics.tick.thread_workspace import prepared_now
from holoctl.laws.acceleration_bounds import caused
from holoctl.mechanism.bound_limits import BoundLimits
from holoctl.mechanism.limited_coordinates import (
    change_in_a_tick,
    coordinates_at,
    coordinates_of_tree,
)
from holoctl.projector.partition import Partition

__all__ = ["LimitedTick", "Limiting"]

FAR_SIDE = 1e4  # rad, m, rad/s, m/s, rad/s^2, m/s^2
"""The assumed width of a range with a limit on one side only, in the quick check."""

ALMOST_ONE = 1.0 - 1e-12
"""A value below this fraction of its limit is within it, also with rounding errors."""


class Limiting(NamedTuple):
    """The active limits of a tick; their names are made only when they are read.

    Attributes
    ----------
    law : LimitsLaw
    positions, velocities : (n,) arrays
        Of the limited coordinates.
    outcome : LimitsOutcome
    """

    law: LimitsLaw
    positions: Vector
    velocities: Vector
    outcome: LimitsOutcome

    @property
    def scale(self) -> float:
        """The fraction of the commanded motion; nan for the nearest efforts."""
        return self.outcome.scale

    @property
    def saturated(self) -> tuple[str, ...]:
        """The names of the active limits."""
        return self.law.names(self.positions, self.velocities, self.outcome.limiting)

    @property
    def softened(self) -> tuple[str, ...]:
        """The names of limits of joints that were softened, or are exceeded already."""
        return self.law.softened(self.positions, self.velocities, self.outcome)


@dataclass(frozen=True, eq=False)
class LimitedTick:
    """The limits of a controller, applied in each tick.

    Attributes
    ----------
    law : LimitsLaw
    partition : Partition
    within : function (u) -> bool
        Whether u is within limits at any state; always False if joints are limited.
    """

    law: LimitsLaw
    partition: Partition
    within: Callable[[Vector], bool] = field(init=False, repr=False)
    _allowed: Callable[[Vector], bool] = field(init=False, repr=False)
    _far: Callable[[Vector, Vector, Vector], bool] = field(init=False, repr=False)
    _accelerate: Callable[[Vector, Vector, Vector, float], Vector] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        allowed = _allowed_at_any_rate(self.law.bound)
        within = _no if self.law.bound.names else allowed
        object.__setattr__(self, "within", within)
        object.__setattr__(self, "_allowed", allowed)
        object.__setattr__(self, "_far", _far_from_limits(self.law))
        forward = PreparedForwardDynamics(self.law.mech, self.partition)
        if self.law.fast:  # prepared before the first tick that needs it
            prepared_now(forward._local, forward._prepared_tick)
        object.__setattr__(self, "_accelerate", at_once(forward))

    def kept(
        self, u: Vector, paths: Paths, q: Vector, v: Vector, t: float, known: Vector | None,
        target: Vector | None, rates: Vector | None,
    ) -> tuple[Vector, Limiting | None]:  # fmt: skip
        """The efforts u, which the paths have just computed, within limits, and the active limits;
        `target` and `rates` are those of the motion that does not accelerate the motors."""
        law, last = self.law, paths.last()

        def base() -> Vector:
            found = None
            if last is not None and target is not None:
                found = last.efforts(q, v, target, t, known, rates)
            if found is not None and finite(found):
                return found
            return paths.efforts(target, rates, q, v, t, known)

        a = None
        if last is not None and target is not None and law.bound.names:
            a = last.acceleration(q, v, t)
        if last is not None and (a is not None or not law.bound.names):
            far = a is None or self._far(q, v, a)
            if far and self._allowed(u):
                return u, None
            if far and law.policy == "nearest" and not law.curved:
                nearest = self._far_from_joints(u, a, q, v, last)
                if nearest is not None:
                    return nearest.outcome.u, nearest
        request = self._request(u, a, q, v, t, known, last, base)
        found = law.outcome(request)
        limiting = Limiting(law, *request.here, found)
        if found.scale == 1.0:  # unchanged, although a limit may be exceeded
            return u, limiting if law.passed(*request.here) else None
        return found.u, limiting

    def _far_from_joints(
        self, u: Vector, a: Vector | None, q: Vector, v: Vector, last: LastSolve
    ) -> Limiting | None:
        """The nearest efforts without limits of joints; None if the motion that these cause may be
        near a limit of a joint."""
        law = self.law
        if a is None:
            H = last.mobility(q)
            return None if H is None else Limiting(law, _NONE, _NONE, law.nearest_in_box(u, H))
        response = last.response(q)
        if response is None:
            return None
        H, Y = response
        found = law.nearest_in_box(u, H)
        if not self._far(q, v, caused(a, Y, found.u, u)):
            return None
        return Limiting(law, *coordinates_of_tree(law.bound, q, v), found)

    def _request(
        self, u: Vector, a: Vector | None, q: Vector, v: Vector, t: float, known: Vector | None,
        last: LastSolve | None, base: Callable[[], Vector],
    ) -> LimitRequest:  # fmt: skip
        mech, bound = self.law.mech, self.law.bound

        def in_general() -> EffortResponse:
            return response_at(mech, self.partition, q, v, t, known)

        known_response: tuple[Array, Array] | None = None

        def of_all() -> tuple[Array, Array]:
            nonlocal known_response
            if known_response is None:
                found = None if last is None else last.response(q)
                known_response = in_general()[:2] if found is None else found
            return known_response

        def change(u: Vector, a: Vector) -> Vector:
            tau = mech.B @ u if known is None else mech.B @ u + known
            return change_in_a_tick(self._accelerate, mech, bound, q, v, a, tau, t, self.law.dt)

        if not bound.names:
            return LimitRequest(u, v, None, None, of_all, base, change)
        if a is None:
            response = in_general()
            a = caused(response.a0, response.Y, u, 0.0)
        at = coordinates_at(mech, bound, q, v, t)
        # `base` solves again, which overwrites a
        return LimitRequest(u, v, a.copy(), at, of_all, base, change)


_NONE = np.zeros(0)


def _no(u: Vector) -> bool:
    return False


def _allowed_at_any_rate(bound: BoundLimits) -> Callable[[Vector], bool]:
    """A function (u): whether the motors can give u at any speed."""
    lowest, highest = (limits.tolist() for limits in effort_bounds_at_any_rate(bound))

    def allowed(u: Vector) -> bool:
        for x, lower, upper in zip(u.tolist(), lowest, highest, strict=True):  # faster than arrays
            if not lower <= x <= upper:
                return False
        return True

    return allowed


def _far_from_limits(law: LimitsLaw) -> Callable[[Vector, Vector, Vector], bool]:
    """A function (q, v, a): True only if all limits of joints are certainly far."""
    bound = law.bound
    safe = None if bound.cut or not bound.names else safe_range(bound, law.braking, law.dt)
    if safe is None:
        return lambda q, v, a: False
    (middles, per_halves), (nq, nv) = _ball(*safe), (law.mech.nq, law.mech.nv)
    positions = np.maximum(bound.places, 0)  # coordinates without a position have no limit of it
    places = np.concatenate([positions, nq + bound.columns, nq + nv + bound.columns])

    def far(q: Vector, v: Vector, a: Vector) -> bool:
        x = np.concatenate((q, v, a)).take(places)
        x -= middles
        x *= per_halves
        return bool(x.dot(x) < ALMOST_ONE or np.abs(x).max() < ALMOST_ONE)

    return far


def _ball(lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """The middles of ranges, and one over their half widths: 0 without a limit, inf for an empty
    range. A range with a limit on one side gets the width `FAR_SIDE`."""
    below, above = np.isfinite(lower), np.isfinite(upper)
    a = np.where(below, lower, np.where(above, upper, 0.0) - FAR_SIDE)
    b = np.where(above, upper, np.where(below, lower, 0.0) + FAR_SIDE)
    with np.errstate(divide="ignore"):
        per_half = np.where(below | above, 2.0 / np.maximum(b - a, 0.0), 0.0)
    return 0.5 * (a + b), per_half
