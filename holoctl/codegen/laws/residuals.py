"""The constraint errors of a state and a motion, as expressions, and the guard by them.

    closure       max |r phi|
    velocity      max |r rate| / (1 + max |r G| |v|)
    acceleration  max |r (G a + drift)| / (1 + max |r G| |a| + max |r drift|)

r scales the rows. These are measures of the certificate; see rows/state_limits.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from holoctl.base.checks import Indices
from holoctl.base.tolerances import ALLOWANCE
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.constraints_and_tree import motor_constraints
from holoctl.codegen.matrices import largest, scalars, total
from holoctl.codegen.stabilised_drift import stabilised_drift
from holoctl.dynamics.actuation import effort_scales
from holoctl.rows.stabilisation import stiffness
from holoctl.rows.state_limits import StateLimits

__all__ = [
    "Measures",
    "broken_at_least",
    "broken_rows",
    "earlier",
    "left_out_rows",
    "measures",
    "noise",
    "redundant_guard",
    "state_guard",
]

TURNED = 3.0
"""The largest sum of magnitudes along three axes, ``max_k sum_j |e_k . w_j|``, changes by so
much at most when the axes are turned: it is at least a third of the sum of all ``|w_j|``, and no
more than that sum."""


@dataclass(frozen=True, eq=False)
class Measures:
    """What a certificate is made of, as expressions; scaled, an entry for each row.

    The kept rows of the law may stand along other axes than those of the constraint. Errors and
    rates are of the rows as they are defined; what they are compared with is taken along the axes
    of the law, for which it is computed already, and divided by `TURNED` as a safety factor.

    Attributes
    ----------
    errors, rates : lists
    speed : expression
        What the largest rate is compared with.
    """

    errors: list[SX]
    rates: list[SX]
    speed: SX

    @property
    def closure(self) -> SX:
        """`closure` of the certificate."""
        return largest(self.errors)

    @property
    def velocity(self) -> SX:
        """`velocity_residual` of the certificate, or up to `earlier` times it."""
        return largest(self.rates) / self.speed


def measures(E: Expressions) -> Measures:
    """The measures of the state, over all rows."""
    scales, rows = E.mech.row_scale[E.open], E.every
    return Measures(
        [float(s) * e for s, e in zip(scales, rows.error, strict=True)],
        [float(s) * r for s, r in zip(scales, rows.rate, strict=True)],
        1.0 + largest(_row_sums(_terms(E, scalars(E.v)))) / _safety(E),
    )


def _safety(E: Expressions) -> float:
    return TURNED if E.rows.turned else 1.0


def earlier(E: Expressions) -> float:
    """How many times `velocity_residual` and `acceleration` may exceed those of the certificate."""
    return _safety(E) ** 2


def broken_rows(E: Expressions, a: SX) -> tuple[list[SX], list[SX], SX]:
    """``G a + drift`` of kept and of redundant rows, scaled, and what it is compared with.

    Stabilisation is added where a constraint asks for it.
    """
    mech, kept, redundant = E.mech, E.partition.rows, left_out_rows(E)
    every = stabilised_drift(mech, E.every, E.open)
    needed = [*stabilised_drift(mech, E.rows, kept), *(every[i] for i in redundant)]
    scales = mech.row_scale[np.concatenate([kept, E.open[redundant]])]
    needed = [float(s) * x for s, x in zip(scales, needed, strict=True)]
    terms = _terms(E, scalars(a))
    size = largest(_row_sums(terms)) + largest(needed)
    left = [total(row) + x for row, x in zip(terms, needed, strict=True)]
    safe = 1.0 + size / _safety(E)
    return left[: len(kept)], left[len(kept) :], safe


def state_guard(E: Expressions, limits: StateLimits) -> list[SX]:
    """Terms whose sum is below one only where the state is within its limits."""
    found, off = [], measures(E)
    if limits.closure is not None:
        found += [(e / limits.closure) ** 2 for e in off.errors]
    if limits.velocity is not None:
        found += [(r / (limits.velocity * off.speed)) ** 2 for r in off.rates]
    if limits.margin is not None:
        found += [(limits.margin**2 * x) ** 2 for x in scalars(_inverse_squares(E))]
    return found


def _inverse_squares(E: Expressions) -> SX:
    """X' X, whose largest eigenvalue is one over the square of the smallest singular value of
    gamma' B; its Frobenius norm is not less. See dynamics/tick/margin.py."""
    ca, mech = casadi_module(), E.mech
    X = ca.SX(np.diag(1.0 / mech.column_scale)) @ motor_constraints(E).basis()
    X = X @ ca.SX(np.diag(1.0 / effort_scales(mech)[0]))
    return ca.vec(X.T @ X)


def redundant_guard(E: Expressions, a: SX) -> list[SX]:
    """Likewise where the motion keeps the redundant rows, as far as the state allows."""
    if not left_out_rows(E).size:
        return []
    _, left, size = broken_rows(E, a)
    allowed = casadi_module().fmax(broken_at_least(E), ALLOWANCE * noise(E))
    return [(x / (allowed * size)) ** 2 for x in left]


def broken_at_least(E: Expressions) -> float:
    """How much of the acceleration may break redundant rows at a state that is not off."""
    return max(E.precision.acceleration, E.partition.tolerance * stiffness(E.mech))


def noise(E: Expressions) -> SX:
    """The error of the state: in all rows, or, if the geometry is rounded, in the kept ones."""
    off = measures(E)
    if E.partition.tolerance > 0.0:
        kept = np.flatnonzero(np.isin(E.open, E.partition.rows)).tolist()
        off = replace(off, errors=[off.errors[i] for i in kept], rates=[off.rates[i] for i in kept])
    return off.closure + off.velocity / earlier(E)


def left_out_rows(E: Expressions) -> Indices:
    """Places, among the rows that can be off, of those that are not kept."""
    return np.flatnonzero(~np.isin(E.open, E.partition.rows))


def _terms(E: Expressions, x: list[SX]) -> list[list[SX]]:
    """Products of the entries of kept and redundant rows, scaled, with those of a vector."""
    kept, redundant = E.partition.rows, left_out_rows(E)
    rows = [*E.rows.jacobian, *(E.every.jacobian[i] for i in redundant)]
    scales = E.mech.row_scale[np.concatenate([kept, E.open[redundant]])]
    return [
        [float(s) * g * x[k] for k, g in row.items()] for s, row in zip(scales, rows, strict=True)
    ]


def _row_sums(terms: list[list[SX]]) -> list[SX]:
    return [total(map(casadi_module().fabs, row)) for row in terms]
