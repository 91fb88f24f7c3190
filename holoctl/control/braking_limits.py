"""Braking accelerations of coordinates with a limit of position: as given, else from the motors.

Without a limit of acceleration, they are the accelerations that the motors can cause at rest in the
reference configuration. A coordinate that brakes alone can use all motors,

    alone = min over both directions of  a0 + sum of the contributions of the motors

but several may have to brake at once, in any directions, so each gets the same fraction of that:

    part = min over motors of  room / (|X| alone)        Y X Y = Y,  room = distance of the efforts
                                                         that hold all of them still to their limits
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import InputError
from holoctl.base.tolerances import RANK
from holoctl.closing.assembly import assemble
from holoctl.control.effort_bounds import least_efforts
from holoctl.dynamics.actuation import actuation
from holoctl.dynamics.effort_response import effort_response
from holoctl.mechanism.bound_limits import BoundLimits
from holoctl.mechanism.limited_coordinates import coordinates_at
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import partition
from holoctl.projector.projection import projected

__all__ = ["braking_limits"]

LEAST_PART = 1e-2
"""The least fraction `part` with which coordinates count as able to brake together."""

NO_SHARE = 1e-12
"""A motor without a limit brakes a coordinate only if its effort accelerates it by more than this
fraction of the acceleration by the same effort of another motor."""


def braking_limits(mech: Mechanism, bound: BoundLimits) -> Array:
    """The accelerations (2, n) that each limited coordinate can have downwards and upwards, rad/s^2
    or m/s^2, both above zero; inf if they are not needed.

    Raises
    ------
    InputError
        If they are not known, or zero.
    AssemblyError, SingularityError
        If it is needed, and the reference configuration cannot be assembled, or is singular.
    """
    braking = np.abs(bound.acceleration)
    needed = np.isfinite(bound.position).any(axis=0) & ~np.isfinite(braking).all(axis=0)
    if not needed.any():
        return braking
    q, rest = assemble(mech)[0], np.zeros(mech.nv)
    P = projected(mech, q, rest, 0.0, partition(mech, q))
    response = effort_response(P, actuation(P), P.terms.F)
    here = coordinates_at(mech, bound, q, rest, 0.0)
    Y, a0 = here.J @ response.Y, here.accelerations(response.a0)
    lower, upper = bound.effort
    alone = np.zeros(needed.size)
    for i in np.flatnonzero(needed).tolist():
        y, size = Y[i], np.abs(Y[i])
        finite = np.isfinite(lower) & np.isfinite(upper)
        used = size > np.where(finite, 0.0, NO_SHARE * size.max())
        most, least = (
            a0[i] + sum(np.where(y[used] > 0.0, y[used] * a[used], y[used] * b[used]))
            for a, b in ((upper, lower), (lower, upper))
        )
        given = min(most, -least)
        name = bound.names[i]
        if not 0.0 < given < np.inf:
            why = (
                "the motors have no limits of effort that determine it"
                if given == np.inf
                else "at the reference the motors can accelerate this coordinate alone by "
                f"{least:.3g} to {most:.3g}"
            )
            raise InputError(
                f"{mech.name}: limits: position of {name!r}: how hard it can be braked is not "
                f"known: {why}; give acceleration={{{name!r}: ...}}"
            )
        alone[i] = given
    part = _together(Y[needed], a0[needed], alone[needed], bound)
    if not part >= LEAST_PART:
        names = [bound.names[i] for i in np.flatnonzero(needed)]
        raise InputError(
            f"{mech.name}: limits: positions of {listing(names)}: how hard they can be braked "
            "together is not known: the motors hardly hold the mechanism still at the reference; "
            "give acceleration={...}"
        )
    braking[:, needed] = np.minimum(braking[:, needed], part * alone[needed])
    return braking


def _together(Y: Array, a0: Vector, alone: Vector, bound: BoundLimits) -> float:
    """The fraction of their accelerations alone that all coordinates can have at once."""
    if alone.size == 1:
        return 1.0
    lower, upper = bound.effort
    finite = np.isfinite(lower) & np.isfinite(upper)
    middle = least_efforts(bound)
    middle[finite] = 0.5 * (lower[finite] + upper[finite])
    S = np.where(finite, 0.5 * (upper - lower), 1.0)
    X = S[:, None] * np.linalg.lstsq(Y * S, np.eye(a0.size), rcond=RANK)[0]
    still = middle - X @ (a0 + Y @ middle)
    room, needed = np.minimum(upper - still, still - lower), np.abs(X) @ alone
    return float(np.min(room[needed > 0.0] / needed[needed > 0.0], initial=1.0))
