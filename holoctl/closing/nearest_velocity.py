"""The velocity on the constraints nearest to a guess: one linear problem, solved at once.

    min (v - v0)' W (v - v0)        G v + phi_t = 0

The shortest step that meets the rows, then its part in the null space by weighted least squares.
Derivation: docs/derivations.md, "Assembly".
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.errors import AssemblyError
from holoctl.base.linalg import in_range, largest, least_squares, null_space_by_svd
from holoctl.base.tolerances import ALLOWANCE
from holoctl.closing.newton import Problem
from holoctl.closing.rank import manifold_rank
from holoctl.rows.evaluate import rows_at

__all__ = ["nearest_velocity"]


def nearest_velocity(p: Problem, q: Vector, v0: Vector) -> Vector:
    """argmin (v - v0)' W (v - v0) subject to G v + phi_t = 0 and locked rates kept."""
    mech, metric = p.mech, p.metric
    which = slice(None) if p.rows is None else p.rows
    r = mech.row_scale[which]
    rows = rows_at(mech, q, v0, p.t)
    error, rate = r * rows.error[which], r * rows.rate[which]
    if not rate.any() and p.rows is None:
        return v0.copy()
    G = r[:, None] * rows.jacobian[which][:, p.free] * metric
    U1, s, V1, Z = null_space_by_svd(G, manifold_rank(G, largest(error)))
    step = -V1 @ ((U1.T @ rate) / s)
    w = np.sqrt(p.weights[p.free] / p.weight_unit) * metric
    step += Z @ least_squares(w[:, None] * Z, -w * step, rcond=1e-12)
    v = v0.copy()
    v[p.free] += metric * step
    left = mech.row_scale * rows_at(mech, q, v, p.t).rate
    allowed, names = np.full(left.size, 1e-9 * (1.0 + largest(rate))), mech.row_names
    if p.rows is not None:  # the others slide, as far as the geometry is meant
        others = np.setdiff1d(np.arange(left.size), p.rows)
        speed = 1.0 + largest(rate) + largest(v / mech.column_scale)
        allowed[others] = ALLOWANCE * mech.tolerance * speed
    if not (np.abs(left) <= allowed).all():
        worst = [(names[i], float(abs(left[i]))) for i in np.argsort(-np.abs(left))[:5]]
        raise AssemblyError(
            f"{mech.name}: no velocity satisfies the constraints at this configuration with "
            f"the locked rates; worst rows: {', '.join(f'{n} {e:.2g}' for n, e in worst)}",
            residual=largest(left), worst=worst, q=q,
        )  # fmt: skip
    return in_range(v)
