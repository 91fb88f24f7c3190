"""The closed configuration nearest to a guess, and the nearest velocity that satisfies the rows.

    step = -Z (Z^T H Z)^-1 Z^T g        G' Z = 0        G'^T l = g (least squares)
    min (v - v0)' W (v - v0)            G v + phi_t = 0

g is the gradient of half the squared weighted distance, H the second derivative of that distance
minus l . e: Newton's method within the tangent space, each step closed again. The velocity is one
linear problem: the shortest step that satisfies the rows, then its part in the null space by
weighted least squares.
References: J. Nocedal and S. Wright, Numerical Optimization, the chapter on equality-constrained
problems; docs/derivations.md, "Assembly".
"""

from __future__ import annotations

import logging

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import AssemblyError
from holoctl.base.linalg import in_range, largest, least_squares, null_space_by_svd
from holoctl.base.tolerances import ALLOWANCE
from holoctl.closing.axis_sign import axis_sign_rows, flipped
from holoctl.closing.newton import LONGEST_STEP, Problem, newton
from holoctl.closing.rank import manifold_rank
from holoctl.rows.evaluate import rows_at

__all__ = ["nearest_configuration", "nearest_velocity"]

log = logging.getLogger(__name__)


def nearest_configuration(p: Problem, q: Vector) -> Vector:
    """Move along the manifold to a local minimum of the weighted distance from the guess."""
    axis_signs = axis_sign_rows(p.mech)
    distance = _distance(p, q)
    for _ in range(min(p.max_iter, 100)):
        Z, slope, multipliers = _reduced_gradient(p, q)
        if Z.shape[1] == 0 or np.linalg.norm(slope) <= 1e-11 * (1.0 + np.sqrt(distance)):
            return q
        values, vectors = np.linalg.eigh(in_range(_reduced_hessian(p, q, Z, multipliers)))
        values = np.maximum(np.abs(values), 1e-8 * max(1.0, float(np.abs(values).max())))
        step = -Z @ (vectors @ ((vectors.T @ slope) / values))
        step *= min(1.0, LONGEST_STEP / float(np.linalg.norm(step)))
        for fraction in 0.5 ** np.arange(20):
            trial = newton(p, p.moved(q, fraction * step), None)
            new = _distance(p, trial)
            closed = largest(p.scaled_rows(trial)[0]) <= p.tol
            if closed and new < distance and not flipped(p.mech, trial, p.t, axis_signs):
                q, distance = trial, new
                break
        else:
            break
    slope = _reduced_gradient(p, q)[1]
    if np.linalg.norm(slope) > 1e-6 * (1.0 + np.sqrt(distance)):
        log.warning(
            "%s: closed, but the distance to the guess is not quite minimal (slope %.1e)",
            p.mech.name, float(np.linalg.norm(slope)),
        )  # fmt: skip
    return q


def _distance(p: Problem, q: Vector) -> float:
    d = pin.difference(p.mech.model, p.guess, q)
    return float(d @ (p.weights * d)) / p.weight_unit


def _gradient(p: Problem, q: Vector) -> Vector:
    """Derivative of half the squared distance by steps in the metric."""
    d = pin.difference(p.mech.model, p.guess, q)
    D = pin.dDifference(p.mech.model, p.guess, q, pin.ArgumentPosition.ARG1)
    g: Vector = (D.T @ (p.weights * d))[p.free] * p.metric / p.weight_unit
    return g


def _reduced_gradient(p: Problem, q: Vector) -> tuple[Array, Vector, Vector]:
    error, G = p.scaled_rows(q)
    rank = manifold_rank(G, largest(error))
    U1, s, V1, Z = null_space_by_svd(G, rank)
    g = _gradient(p, q)
    return Z, Z.T @ g, U1 @ ((V1.T @ g) / s)


def _reduced_hessian(
    p: Problem, q: Vector, Z: Array, multipliers: Vector, h: float = 1e-5
) -> Array:
    """Second derivative of distance - multipliers . error along Z, by central differences."""

    def slope(step: Vector) -> Vector:
        x = p.moved(q, step)
        return _gradient(p, x) - p.scaled_rows(x)[1].T @ multipliers

    H = np.column_stack([(slope(h * z) - slope(-h * z)) / (2.0 * h) for z in Z.T])
    reduced = Z.T @ H
    return 0.5 * (reduced + reduced.T)


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
    # the others may have velocity errors within the tolerance of the geometry
    if p.rows is not None:
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
