"""Correction: a state that is off the constraints by little goes back to them.

    q <- q (+) -c G'^+ e        v <- v - c G'^+ rate        G'^+ x: the shortest solution

on rows that do not depend on each other, in scaled coordinates: where nothing has to be decided
or found, as in a simulation or behind sensors. From farther away there is assembly.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.base.linalg import in_range, largest, pivoted_qr
from holoctl.base.tolerances import CORRECTED, CORRECTIONS, SINGULAR, UNIT
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import constraint_rows

__all__ = ["corrected"]

Indices = NDArray[np.intp]


def corrected(
    mech: Mechanism, keep: Indices, q: Vector, v: Vector, t: float, tol: float = 1e-13
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
    c, r = mech.column_scale, mech.row_scale[keep]
    error = np.inf
    for _ in range(CORRECTIONS):
        _, rows = constraint_rows(mech, q, v, t)
        qr = pivoted_qr((r[:, None] * rows.jacobian[keep] * c).T, keep.size, size=UNIT)
        if qr.condition > SINGULAR:
            raise SingularityError(
                f"{mech.name}: the kept rows are singular here (condition number "
                f"{qr.condition:.1e})",
                condition=qr.condition,
            )
        off = r * rows.error[keep]
        last, error = error, largest(off)
        if error <= tol or (error <= CORRECTED and error > 0.5 * last):
            return q, in_range(v - c * qr.shortest(r * rows.rate[keep]))
        q = pin.normalize(mech.model, pin.integrate(mech.model, q, -c * qr.shortest(off)))
    raise InconsistentError(
        f"{mech.name}: the state is too far off the constraints to correct (scaled error "
        f"{error:.1e}); call hc.assemble",
        residual=error,
    )
