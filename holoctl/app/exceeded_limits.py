"""What exceeds the limits of a robot's file, in words."""

from __future__ import annotations

import numpy as np

from holoctl.app.units import motor_units
from holoctl.base.checks import Array, Vector
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.limited_coordinates import coordinates_at
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["exceeded_efforts", "exceeded_on_the_way"]


def exceeded_efforts(mech: Mechanism, u: Array) -> list[str]:
    """Motors whose effort limits, at standstill, are exceeded in u (nu,) or (n, nu), with the
    largest effort."""
    effort = bound_limits(mech, limits_of(mech)).effort
    units = [f" {unit}" for unit in motor_units(mech)]
    return _beyond("effort", mech.actuator_names, np.atleast_2d(u), effort, units)


def exceeded_on_the_way(mech: Mechanism, t: Vector, q: Array, v: Array, u: Array) -> list[str]:
    """Likewise with positions and velocities of all joints, cut ones too, at n instants."""
    bound, found = bound_limits(mech, limits_of(mech)), exceeded_efforts(mech, u)
    if not bound.names:
        return found
    states = [coordinates_at(mech, bound, *state) for state in zip(q, v, t.tolist(), strict=True)]
    units = [""] * len(bound.names)
    for what, x in (
        ("velocity", np.array([state.velocities for state in states])),
        ("position", np.array([state.positions for state in states])),
    ):
        found += _beyond(what, bound.names, x, getattr(bound, what), units)
    return found


def _beyond(
    what: str, names: tuple[str, ...], x: Array, bounds: Array, units: list[str]
) -> list[str]:
    found = list[str]()
    for i, name in enumerate(names):
        lower, upper = bounds[:, i].tolist()
        past = np.maximum(lower - x[:, i], x[:, i] - upper)
        most = int(past.argmax())
        if past[most] > 1e-6 * max(1e-3, abs(x[most, i])):
            found.append(
                f"{what} of {name!r}: {x[most, i]:.4g}{units[i]}, its limits are {lower:.4g} to "
                f"{upper:.4g}"
            )
    return found
