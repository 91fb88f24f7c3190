"""How hard coordinates with a limit of position can be braked: what is said, else what motors give.

Where no limit of acceleration says it: the accelerations that the motors can cause at rest in the
reference configuration, all of them together, of both directions the lesser.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holoctl.base.errors import InputError
from holoctl.closing.assembly import assemble
from holoctl.control.limited_coordinates import coordinates_at
from holoctl.dynamics.actuation import actuation
from holoctl.dynamics.effort_response import effort_response
from holoctl.mechanism.limits import BoundLimits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import partition
from holoctl.projector.projection import projected

__all__ = ["brakes_of"]

Array = NDArray[np.float64]


def brakes_of(mech: Mechanism, bound: BoundLimits) -> Array:
    """(2, n): how hard each limited coordinate can be accelerated downwards and upwards, both above
    zero; inf where nothing asks for it.

    Raises
    ------
    InputError
        Where that is not known, or nothing.
    AssemblyError
        If it is needed and the reference configuration cannot be assembled.
    """
    said = np.abs(bound.acceleration)
    asked = np.isfinite(bound.position).any(axis=0) & ~np.isfinite(said).all(axis=0)
    if not asked.any():
        return said
    q, rest = assemble(mech)[0], np.zeros(mech.nv)
    P = projected(mech, q, rest, 0.0, partition(mech, q))
    response = effort_response(P, actuation(P), P.terms.F)
    here = coordinates_at(mech, bound, q, rest, 0.0)
    Y, a0 = here.J @ response.Y, here.accelerations(response.a0)
    lower, upper = bound.effort
    for i in np.flatnonzero(asked).tolist():
        y, used = Y[i], np.abs(Y[i]) > 0.0
        most, least = (
            a0[i] + sum(np.where(y[used] > 0.0, y[used] * a[used], y[used] * b[used]))
            for a, b in ((upper, lower), (lower, upper))
        )
        given = min(most, -least)
        name = bound.names[i]
        if not 0.0 < given < np.inf:
            why = (
                "the motors have no limits of effort that would say it"
                if given == np.inf
                else f"at the reference the motors cause {least:.3g} to {most:.3g} of it alone"
            )
            raise InputError(
                f"{mech.name}: limits: position of {name!r}: how hard it can be braked is not "
                f"known: {why}; give acceleration={{{name!r}: ...}}"
            )
        said[:, i] = np.minimum(said[:, i], given)
    return said
