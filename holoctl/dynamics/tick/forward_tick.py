"""Forward dynamics in a tick, with all constants prepared once.

The whole system at once, scaled by constants, so that its pivots are of order one:

    [M   G'] [   a    ]   [tau + F - h]
    [G   0 ] [-lambda ] = [  -drift   ]        kept rows only

by Pinocchio's sparse factorisation if the rows are those of anchors (rows/pinocchio_rows.py), by a
dense LU otherwise, or if the sparse one is ill-conditioned. The general path, `accelerate`, gives
the same numbers, and is used if the dense one is ill-conditioned too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg import lapack

from holoctl.base.checks import Vector, as_given, finite, quiet, vector
from holoctl.base.errors import InputError
from holoctl.forces.sum_of_forces import all_in_a_tick
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import inertia
from holoctl.projector.partition import Partition, most_condition
from holoctl.rows.evaluate import rows_at
from holoctl.rows.pinocchio_rows import anchored, anchors, motion_of_rows
from holoctl.rows.tick.fast_rows import fast_rows, why_not
from holoctl.tree.live_motion import live_motion

__all__ = ["Response", "Tick", "prepare", "sparse_tick"]

HEAVY = 1e3
"""Inertias, relative to those at the reference, above which the general path is used: the pivots
are then not comparable."""

FORWARD_DOUBT = 1e6
"""The general path is used if a scaled pivot is smaller than one over this."""


Response = Callable[[Any], Vector]
"""a(tau): the acceleration at one state, for any efforts."""

Tick = Callable[[Vector | None, Vector | None, Vector | None, float], Vector | Response | None]
"""a of (q, v, tau, t); with None for tau the response; with None for q and v the acceleration at
the state of the last call, if that returned one. None if the result is in doubt."""

_SparseTick = Callable[[Vector | None, Vector | None, Vector, float], Vector | None]


def prepare(mech: Mechanism, part: Partition) -> Tick | None:
    """The tick of one thread, or None if only the general path can be used."""
    dense = _dense(mech, part)
    sparse = None if dense is None else sparse_tick(mech, part)
    if dense is None or sparse is None:
        return dense

    answered: Callable[..., Vector | Response | None] | None = None

    def tick(
        q: Vector | None, v: Vector | None, tau: Vector | None, t: float
    ) -> Vector | Response | None:
        nonlocal answered
        if q is None:
            return None if answered is None else answered(q, v, tau, t)
        answered = None
        a = None if tau is None else sparse(q, v, tau, t)
        if a is not None:
            answered = sparse
            return a
        found = dense(q, v, tau, t)
        answered = None if found is None else dense
        return found

    return tick


def sparse_tick(mech: Mechanism, part: Partition) -> _SparseTick | None:
    """The tick by Pinocchio's factorisation, if all rows are kept and are those of anchors.

    Its pivots are, up to the sign, parts of J M^-1 J' and of M. They are compared with the
    diagonals of these two at the reference.
    """
    model, n = mech.model, mech.nv
    found = anchors(mech)
    if not found or part.rank < len(mech.row_scale):
        return None
    held = anchored(model, found)
    models, datas, data, factors = held.models, held.datas, held.data, held.factors
    both = list(zip(models, datas, strict=True))
    rhs = np.zeros(len(mech.row_scale) + n)
    m = rhs.size - n
    extracted = [d.extract() for d in datas]
    ends = np.cumsum([anchor.rows.size for anchor in found])
    rights = [
        motion_of_rows(mech, anchor, at, rhs[end - anchor.rows.size : end])
        for anchor, at, end in zip(found, extracted, ends, strict=True)
    ]
    parts = [right for right in rights if right is not None]
    if len(parts) < len(rights):
        return None
    all_terms, h, f = pin.computeAllTerms, data.nle, rhs[m:]
    motion = live_motion(model, data)
    if motion is None:
        return None
    friction, others = all_in_a_tick(mech.bound_forces, model, motion)
    all_terms(model, data, mech.reference, np.zeros(n))
    for c, d in both:
        c.calc(model, data, d)
    factors.compute(model, data, models, datas)
    pivots, inertias = factors.D, np.diagonal(data.M)
    if not (pivots > 0.0)[m:].all() or not (pivots < 0.0)[:m].all():
        return None
    J = pin.getConstraintsJacobian(model, data, models, datas).reshape(m, n)
    mobility = (J * np.linalg.solve(inertia(mech, mech.reference), J.T).T).sum(axis=1)
    unit = 1.0 / np.concatenate([-mobility, inertias])
    unit_of_inertias, scaled, scaled_inertias = unit[m:].copy(), np.zeros(m + n), np.zeros(n)
    views = (factors.D, pivots), (data.nle, h), (np.diagonal(data.M), inertias)
    if not all(np.shares_memory(one, other) for one, other in views):
        return None  # a copy, which would not change with the workspace
    compute, solve = factors.compute, factors.solve

    loads = np.zeros(n)
    ready = False

    def factored(q: Vector, v: Vector, t: float) -> bool:
        all_terms(model, data, q, v)
        for c, d in both:
            c.calc(model, data, d)
        for fill in parts:
            if not fill():
                return False
        compute(model, data, models, datas)
        np.multiply(inertias, unit_of_inertias, scaled_inertias)
        np.multiply(pivots, unit, scaled)
        sizes = scaled.tolist()
        if not (scaled_inertias.dot(scaled_inertias) < HEAVY**2 and max(sizes) < HEAVY):
            return False
        if not min(sizes) > 1.0 / FORWARD_DOUBT:
            return False
        np.negative(h, loads)
        if friction is not None:
            np.add(loads, friction(q, v, t), loads)
        if others is not None:
            np.add(loads, others(q, v, t), loads)
        return True

    def tick(q: Vector | None, v: Vector | None, tau: Vector, t: float) -> Vector | None:
        nonlocal ready
        if q is not None and v is not None:
            ready = False
            ready = factored(q, v, t)
        if not ready:
            return None
        np.add(loads, tau, f)
        a: Vector = solve(rhs)[m:]
        return a

    return tick


def _dense(mech: Mechanism, part: Partition) -> Tick | None:
    """The tick for rows of any kind: LU of the whole system."""
    model, n, r = mech.model, mech.nv, part.rank
    motion = live_motion(model, model.createData())
    if motion is None or why_not(mech, motion):
        return None
    wanted = np.arange(n)[:, None] + n * np.arange(r)  # G'
    fast, data = fast_rows(mech, motion, part.rows, wanted), motion.data
    K, rhs = np.zeros((n + r, n + r), order="F"), np.zeros(n + r)
    M_here, G_here, GT_here, f, k = K[:n, :n], K[n:, :n], K[:n, n:], rhs[:n], rhs[n:]
    diagonal = np.diag(inertia(mech, mech.reference))
    least = 1e-9 * float(diagonal.max()) or 1.0
    scale = 1.0 / np.sqrt(np.maximum(diagonal, least))
    there = rows_at(mech, mech.reference, np.zeros(n))
    size = np.abs(mech.row_scale[:, None] * there.jacobian * scale)[part.rows].max(axis=1)
    # a row may vanish at the reference
    size = np.maximum(size, 1e-3 * size.max(initial=0.0) + 1e-300)
    unit = np.concatenate([scale, 1.0 / size])
    units = np.asfortranarray(unit * unit[:, None])
    units_of_M, units_of_GT = units[:n, :n], units[:n, n:]
    evaluate, GT, right = fast.evaluate, fast.entries, fast.right
    guard = min(FORWARD_DOUBT, most_condition(part))
    crba, nle = pin.crba, pin.nonLinearEffects
    getrf, getrs = lapack.dgetrf, lapack.dgetrs
    friction, others = all_in_a_tick(mech.bound_forces, model, motion)
    back, inverse, inertias = unit[:n].copy(), np.zeros(n + r), K.diagonal()[:n]

    last: tuple[NDArray[np.float64], NDArray[np.int32], Vector] | None = None

    def factored(
        q: Vector, v: Vector, t: float
    ) -> tuple[NDArray[np.float64], NDArray[np.int32], Vector] | None:
        """Returns the factors, their order, and h - F."""
        if not evaluate(q, v, t):
            return None
        np.multiply(crba(model, data, q), units_of_M, M_here)
        np.multiply(GT, units_of_GT, GT_here)
        G_here[:] = GT_here.T
        if not inertias.dot(inertias) < HEAVY**2:
            return None
        h = nle(model, data, q, v)
        if friction is not None:
            h -= friction(q, v, t)
        if others is not None:
            h -= others(q, v, t)
        factors, order, info = getrf(K)
        if info:
            return None
        np.divide(1.0, factors.diagonal(), inverse)
        if not inverse.dot(inverse) < guard**2:
            return None
        return factors, order, h

    def tick(
        q: Vector | None, v: Vector | None, tau: Vector | None, t: float
    ) -> Vector | Response | None:
        nonlocal last
        if q is not None and v is not None:
            last = None
            last = factored(q, v, t)
        if last is None:
            return None
        factors, order, h = last
        if tau is None:
            last = None
            if not (finite(h) and finite(right)):
                return None
            return response(factors, order, h, right * unit[n:])
        np.subtract(tau, h, f)
        k[:] = right
        np.multiply(rhs, unit, rhs)
        x, _ = getrs(factors, order, rhs)
        a: Vector = back * x[:n]
        return a

    def response(
        factors: NDArray[np.float64], order: NDArray[np.int32], h: Vector, scaled_right: Vector
    ) -> Response:
        """The response with its own arrays: later calls do not change them."""

        @quiet
        def a(tau: Any) -> Vector:
            b = np.concatenate([back * (as_given("tau", tau, n) - h), scaled_right])
            x, _ = getrs(factors, order, b, 0, 1)
            found: Vector = back * x[:n]
            if not finite(found):
                vector("tau", tau, n, "efforts on the coordinates")
                raise InputError("the acceleration is not finite: tau is out of range")
            return found

        return a

    return tick
