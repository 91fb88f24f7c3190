"""Projection of a state with small errors onto the constraint manifold.

    q <- q (+) -c G'^+ e        v <- v - c G'^+ rate        G'^+ x: the shortest solution

on independent rows, in scaled coordinates. It is for states close to the manifold, as in a
simulation or from sensors, at which no branch or rank has to be determined. For larger errors use
assembly.

If the state has moved by s since G' was factored, a step of size x has an error of about s x. If
that is below the tolerance, the factors are used again, so a nearly closed state takes two
evaluations of the rows and one factorisation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Indices, Vector
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.base.linalg import in_range, largest, row_qr
from holoctl.base.tolerances import CORRECTED, SINGULAR, TIGHT, UNIT
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import ScaledRows, scaled_rows_at

__all__ = ["Correction", "TrustRegion", "newton_projection", "projected_onto_manifold"]

CORRECTIONS = 8
"""Most Newton steps of the projection of a state onto the constraint manifold."""


class TrustRegion(NamedTuple):
    """Limits of the steps of a projection.

    Attributes
    ----------
    condition : float
        Condition number of the kept rows above which no correction is made.
    first : float
        Longest first step, scaled.
    contraction : float
        Each step is at most this fraction of the one before.
    """

    condition: float = SINGULAR
    first: float = float("inf")
    contraction: float = float("inf")


class Correction(NamedTuple):
    """A projected state, with its rows.

    Attributes
    ----------
    q, v : (nq,) and (nv,) arrays
    rows : ScaledRows
        All rows at q, with the rates of v.
    condition : float
        Largest condition number of the kept rows in the iteration.
    """

    q: Vector
    v: Vector
    rows: ScaledRows
    condition: float


def projected_onto_manifold(
    mech: Mechanism, keep: Indices, q: Vector, v: Vector, t: float, tol: float = TIGHT
) -> tuple[Vector, Vector]:
    """A state on the manifold close to a nearby (q, v), by Newton on the rows `keep`.

    The rows must be independent, such as those of a partition. Steps are the shortest in scaled
    coordinates. For small errors from integration or measurement; for larger ones use `assemble`.

    Raises
    ------
    SingularityError
        If the kept rows lose rank during the iteration.
    InconsistentError
        If the state is too far off for Newton's method.
    """
    if keep.size == 0:
        return q, in_range(v)
    found = newton_projection(mech, keep, q, v, t, tol, TrustRegion())
    return found.q, found.v


def newton_projection(
    mech: Mechanism, keep: Indices, q: Vector, v: Vector, t: float, tol: float, trust: TrustRegion
) -> Correction:
    """`projected_onto_manifold` of one or more rows, within a trust region."""
    c, model, flat = mech.column_scale, mech.model, mech.nq == mech.nv
    factors, moved, error, condition, before = None, 0.0, np.inf, 0.0, np.inf
    for i in range(CORRECTIONS + 1):
        G, errors, rates = scaled_rows_at(mech, q, v, t)
        off = errors.take(keep)
        last, error = error, largest(off)
        if not error < np.inf:
            break
        closed = error <= tol or (error <= CORRECTED and error > 0.5 * last)
        closed |= i == CORRECTIONS and error <= TIGHT  # it still falls, but is small enough
        wanted = rates.take(keep) if closed else off
        step = None if factors is None else factors.shortest(wanted)
        if step is None or not moved * largest(step) <= tol:
            factors, moved = row_qr(G.take(keep, 0)), 0.0
            condition = max(condition, factors.condition(UNIT))
            if condition > trust.condition:
                raise SingularityError(
                    f"{mech.name}: the kept rows are singular here (condition number "
                    f"{condition:.1e})",
                    condition=condition,
                )
            step = factors.shortest(wanted)
        if closed:
            return Correction(
                q, in_range(v - c * step), ScaledRows(G, errors, rates - G.dot(step)), condition
            )
        size = largest(step)
        if not size <= min(trust.contraction * before, trust.first) and error > CORRECTED:
            raise _not_told(mech, error, size, before)
        q, moved, before = pin.integrate(model, q, -c * step), moved + size, size
        if not flat:
            q = pin.normalize(model, q)
    raise InconsistentError(
        f"{mech.name}: the state is too far off the constraints to correct (scaled error "
        f"{error:.1e}); call hc.assemble",
        residual=error,
    )


def _not_told(mech: Mechanism, error: float, size: float, before: float) -> InconsistentError:
    how = f"a first step of {size:.1e}"
    if before < np.inf:
        how = f"a step of {size:.1e} after one of {before:.1e}"
    return InconsistentError(
        f"{mech.name}: the constraints are open by {error:.1e} and closing them takes {how} "
        "(scaled, rad): too long for its error, so the branch of the state is not determined. "
        "Take shorter steps of integration, keep away from singular configurations, or call "
        "hc.assemble, which may change the branch",
        residual=error,
    )
