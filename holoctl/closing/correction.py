"""Correction: a state that is off the constraints by little goes back to them.

    q <- q (+) -c G'^+ e        v <- v - c G'^+ rate        G'^+ x: the shortest solution

on rows that do not depend on each other, in scaled coordinates: where nothing has to be decided
or found, as in a simulation or behind sensors. From farther away there is assembly.

A state that was moved by s since G' was factored makes a step of size x wrong by about s x. Where
that is less than what counts, the factors serve once more, so a state that is nearly closed takes
two evaluations of the rows and one factorisation.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.base.linalg import in_range, largest, row_qr
from holoctl.base.tolerances import CORRECTED, CORRECTIONS, SINGULAR, TIGHT, UNIT
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.tick.all_rows import scaled_rows_at

__all__ = ["put_back"]

Indices = NDArray[np.intp]


def put_back(
    mech: Mechanism, keep: Indices, q: Vector, v: Vector, t: float, tol: float = TIGHT
) -> tuple[Vector, Vector]:
    """A state on the manifold close to a nearby (q, v), by Newton on the rows `keep`.

    They must not depend on each other: as many rows as their rank, such as those of a partition.
    Steps are the shortest in scaled coordinates. For states that integration or measurement
    moved off by little; from farther away use `assemble`.

    Raises
    ------
    SingularityError
        If the kept rows lose rank on the way.
    InconsistentError
        If the state is too far off for Newton's method.
    """
    if keep.size == 0:
        return q, in_range(v)
    c, model = mech.column_scale, mech.model
    factors, moved, error = None, 0.0, np.inf
    for i in range(CORRECTIONS):
        G, errors, rates = scaled_rows_at(mech, q, v, t)
        off = errors.take(keep)
        last, error = error, largest(off)
        if not error < np.inf:
            break
        closed = error <= tol or (error <= CORRECTED and error > 0.5 * last)
        closed |= i == CORRECTIONS - 1 and error <= TIGHT  # it falls, but for no use
        wanted = rates.take(keep) if closed else off
        step = None if factors is None else factors.shortest(wanted)
        if step is None or not moved * largest(step) <= tol:
            factors, moved = row_qr(G.take(keep, 0)), 0.0
            condition = factors.condition(UNIT)
            if condition > SINGULAR:
                raise SingularityError(
                    f"{mech.name}: the kept rows are singular here (condition number "
                    f"{condition:.1e})",
                    condition=condition,
                )
            step = factors.shortest(wanted)
        if closed:
            return q, in_range(v - c * step)
        q = pin.integrate(model, q, -c * step)
        if mech.nq != mech.nv:
            q = pin.normalize(model, q)
        moved += largest(step)
    raise InconsistentError(
        f"{mech.name}: the state is too far off the constraints to correct (scaled error "
        f"{error:.1e}); call hc.assemble",
        residual=error,
    )
