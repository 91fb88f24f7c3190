"""What an exported controller computes, and the states that its self-test knows.

The laws of `expressions` with a certificate beside them: closure, velocity, and how well the
solution keeps the constraints. Torques of the states come from the Python path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.errors import AssemblyError, HoloctlError, InconsistentError, SingularityError
from holoctl.closing.assembly import assemble
from holoctl.codegen.entries import dense
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.extra import SX, casadi_module
from holoctl.codegen.laws.bordered import eliminated
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.laws.inverse_dynamics import holding_function, inverse_function
from holoctl.codegen.laws.measures import broken_rows, measures
from holoctl.codegen.laws.torque import errors_function
from holoctl.codegen.tree import tangent
from holoctl.control.computed_torque import ComputedTorque
from holoctl.dynamics.inverse import effort_scales, inverse_dynamics
from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.consistency import CLOSURE_LIMIT, VELOCITY_LIMIT, StateLimits

__all__ = ["STATES", "Laws", "States", "exported_laws", "golden_states", "plant_functions"]

Array = NDArray[np.float64]

STATES = 64
"""States of the self-test."""

NEAR = 16
"""So many of them are near the manifold, not on it."""


@dataclass(frozen=True, eq=False)
class Laws:
    """CasADi functions, and what the code around them depends on.

    Attributes
    ----------
    controller : ComputedTorque or None
        None also where its motors have no positions of their own.
    law : ``law(q, v, target[, t]) -> u, doubt, closed, moved, speed, kept, size, missed``
        Errors, rates and what they are compared with, the acceleration likewise, over all rows.
    matrix : ``matrix(q[, t]) -> A``
    errors : ``errors(q, v, q_ref, v_ref) -> e, rate``, or None without a controller
    hold : ``hold(q, v[, t]) -> u, doubt, closed, moved, speed``, or None where it is not needed
    timed : bool
        Whether there is a t.
    """

    controller: ComputedTorque | None
    law: Any
    matrix: Any
    errors: Any
    hold: Any
    timed: bool


def exported_laws(E: Expressions, controller: ComputedTorque | None, weights: Array | None) -> Laws:
    ca, mech = casadi_module(), E.mech
    errors = None if controller is None else errors_function(mech)
    controller = None if errors is None else controller
    target = ca.SX.sym("target", mech.nu)
    u, a, doubt = inverse_function(E, weights, "project").call([E.q, E.v, target, E.t], True, False)
    off = measures(E)
    state = [_dense(off.errors), _dense(off.rates), off.speed]
    kept, redundant, size = broken_rows(E, a)
    outputs = [u, doubt, *state, _dense([*kept, *redundant]), size, ca.SX(mech.B.T) @ a - target]
    holding: list[SX] = []
    if controller is not None and controller.compensation == "gravity":
        holding = holding_function(E, weights).call([E.q, E.t], True, False)
        holding += state
    A = _matrix(E)
    timed = any(bool(ca.depends_on(ca.vec(x), E.t)) for x in [*outputs, *holding, A])
    t, label = ([E.t], ["t"]) if timed else ([], [])
    results = ["u", "doubt", "closed", "moved", "speed", "kept", "size", "missed"]
    return Laws(
        controller,
        ca.Function("law", [E.q, E.v, target, *t], outputs, ["q", "v", "target", *label], results),
        ca.Function("matrix", [E.q, *t], [A], ["q", *label], ["A"]),
        errors,
        ca.Function("hold", [E.q, E.v, *t], holding, ["q", "v", *label], results[:5])
        if holding
        else None,
        timed,
    )


def _dense(entries: list[SX]) -> SX:
    """A column of them, with at least one entry."""
    ca = casadi_module()
    return ca.densify(ca.vertcat(*entries)) if entries else ca.SX.zeros(1)


def _matrix(E: Expressions) -> SX:
    """The kept rows above those of the motors, scaled: singular where the law is."""
    mech = E.mech
    u_scale, _ = effort_scales(mech)
    rows = [
        {k: float(unit * mech.column_scale[k]) * x for k, x in row.items()}
        for unit, row in zip(mech.row_scale[E.partition.rows], E.rows.jacobian, strict=True)
    ]
    for unit, column in zip(u_scale, mech.B.T, strict=True):
        driven = np.flatnonzero(column).tolist()
        rows.append({k: float(unit * column[k] * mech.column_scale[k]) for k in driven})
    return dense(rows, mech.nv)


# ----------------------------------------------------------------------------- the plant


def plant_functions(E: Expressions, timed: bool) -> tuple[Any, Any]:
    """``motion(q, v, u[, t]) -> qdot, a, doubt``, ``correction(q, v[, t]) -> dq, dv, doubt, off``.

    Of them `off` is the largest error of the kept rows before the correction, scaled.
    """
    ca, mech = casadi_module(), E.mech
    u = ca.SX.sym("u", mech.nu)
    a, doubt = forward_function(E).call([E.q, E.v, ca.SX(mech.B) @ u, E.t], True, False)
    T = tangent(mech.model, E.q)
    t, label = ([E.t], ["t"]) if timed else ([], [])
    motion = ca.Function(
        "motion", [E.q, E.v, u, *t], [ca.densify(T @ E.v), ca.densify(a), doubt],
        ["q", "v", "u", *label], ["qdot", "a", "doubt"],
    )  # fmt: skip
    dq, dv, doubt, off = _correction(E)
    correction = ca.Function(
        "correction", [E.q, E.v, *t], [ca.densify(T @ dq), dv, doubt, off], ["q", "v", *label],
        ["dq", "dv", "doubt", "off"],
    )  # fmt: skip
    return motion, correction


def _correction(E: Expressions) -> tuple[SX, SX, SX, SX]:
    """Steps of the dependent coordinates that take errors and rates of the kept rows to zero."""
    ca, mech, part = casadi_module(), E.mech, E.partition
    dependent = part.dependent.tolist()
    dq, dv, doubt = ca.SX.zeros(mech.nv), ca.SX.zeros(mech.nv), ca.SX(0.0)
    if not dependent:
        return dq, dv, doubt, ca.SX(0.0)
    rows = [{j: row[k] for j, k in enumerate(dependent) if k in row} for row in E.rows.jacobian]
    row_unit = mech.row_scale[part.rows]
    factors = eliminated(E, rows, row_unit, mech.column_scale[part.dependent])
    for k, x, y in zip(
        dependent,
        factors.solve([-e for e in E.rows.error]),
        factors.solve([-e for e in E.rows.rate]),
        strict=True,
    ):
        dq[k], dv[k] = x, y
    off = ca.SX(0.0)
    for unit_of_row, e in zip(row_unit.tolist(), E.rows.error, strict=True):
        off = ca.fmax(off, ca.fabs(unit_of_row * e))
    return dq, dv, sum(factors.doubt, ca.SX(0.0)), off


# --------------------------------------------------------------------------- the self-test


@dataclass(frozen=True, eq=False)
class States:
    """What the self-test knows: a row for each state."""

    q: Array
    v: Array
    t: Array
    target: Array
    q_ref: Array
    v_ref: Array
    a_ref: Array
    inverse: Array
    torque: Array
    tolerance: Array
    open: Array | None = None
    sliding: Array | None = None
    overflow: bool = field(default=False, kw_only=True)
    """Whether fast motion is sure to give a torque that is not finite."""


def golden_states(E: Expressions, laws: Laws, weights: Array | None, limits: StateLimits) -> States:
    """States with torques by the Python path, where the guard trusts them."""
    limit, slow = limits.closure or CLOSURE_LIMIT, limits.velocity or VELOCITY_LIMIT
    mech, rng = E.mech, np.random.default_rng(64)
    python = PreparedInverseDynamics(
        mech, E.partition, weights, "project", limits.closure, limits.velocity
    )
    rows: list[tuple[Any, ...]] = []
    size, beyond, doubtful = min(1e-4, 0.01 * limit, 0.01 * slow), 0, 0
    for closed_q, closed_v, t in _closed_states(E, laws, rng):
        off = size if len(rows) >= STATES - NEAR else 0.0
        q, v = _nearby(mech, closed_q, closed_v, rng, off)
        target = 5.0 * rng.normal(size=mech.nu)
        asked = (q, v, target, t) if laws.timed else (q, v, target)
        _, doubt, closed, moved, speed, *_ = (
            np.array(x).ravel() for x in laws.law.call(list(asked))
        )
        if not doubt[0] < 0.5:
            doubtful += 1
            continue
        if not (np.abs(closed).max() < 0.5 * limit and np.abs(moved).max() < 0.5 * slow * speed[0]):
            beyond += 1
            continue
        try:
            condition = inverse_dynamics(
                mech, q, v, target, inconsistent="project", weights=weights, t=t,
                partition=E.partition,
            ).certificate.condition  # fmt: skip
            inverse = python.torque(q, v, target, t)
        except (SingularityError, InconsistentError):
            doubtful += 1
            continue
        reference = _references(laws, q, v, rng)
        torque = np.zeros(mech.nu)
        if laws.controller is not None:
            torque = laws.controller.torque(q, v, *reference, t=t)
        tolerance = max(1e-12, 100.0 * np.finfo(float).eps * condition)
        rows.append((q, v, t, target, *reference, inverse, torque, tolerance))
        if len(rows) == STATES:
            columns = [np.array(column) for column in zip(*rows, strict=True)]
            found = States(*columns)
            return replace(
                found,
                open=_open(E, laws, found.q[0], limit, rng) if limits.closure else None,
                sliding=_sliding(E, laws, found, limits.velocity, rng) if limits.velocity else None,
                overflow=_overflows(laws, found),
            )
    cause = "the reference configuration may be close to a singular one"
    if beyond > doubtful:
        cause = (
            f"{beyond} closed states were past closure_limit {limit:g} or velocity_limit {slow:g} "
            "by rounding alone, so these limits are too narrow"
        )
    raise HoloctlError(
        f"{mech.name}: only {len(rows)} of {STATES} states for the self-test were found at which "
        f"the torque can be trusted; {cause}"
    )


def _closed_states(
    E: Expressions, laws: Laws, rng: np.random.Generator
) -> Iterator[tuple[Array, Array, float]]:
    """Random closed and moving states around the samples."""
    mech, most = E.mech, 20 * STATES
    for i in range(most):
        t = float(rng.uniform(0.0, 1.0)) if laws.timed else 0.0
        step = 0.1 * rng.normal(size=mech.nv) * mech.column_scale
        guess = pin.integrate(mech.model, E.samples[i % len(E.samples)], step)
        speed = rng.normal(size=mech.nv) * mech.column_scale
        try:
            q, v = assemble(mech, guess, speed, t=t, restarts=0, max_iter=50)
        except AssemblyError:
            continue
        yield q, v, t


def _nearby(
    mech: Mechanism, q: Array, v: Array, rng: np.random.Generator, size: float
) -> tuple[Array, Array]:
    """Off the manifold by about `size`, scaled."""
    if not size:
        return q, v
    off = size * rng.normal(size=(2, mech.nv)) * mech.column_scale
    return pin.integrate(mech.model, q, off[0]), v + off[1]


def _references(
    laws: Laws, q: Array, v: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """q_ref, v_ref, a_ref a little off the state."""
    if laws.errors is None:
        empty = np.zeros(0)
        return empty, empty, empty
    nu = laws.errors.numel_out(0)
    zero = np.zeros(nu)
    e, rate = (-np.array(x).ravel() for x in laws.errors.call([q, v, zero, zero]))
    off = rng.normal(size=(3, nu))
    return e + 0.05 * off[0], rate + 0.1 * off[1], 2.0 * off[2]


def _open(
    E: Expressions, laws: Laws, q: Array, limit: float, rng: np.random.Generator
) -> Array | None:
    """A configuration that is open by more than `limit`; None where none is found."""
    mech = E.mech
    for i in range(40):
        size = min(0.5, limit * 2.0 ** (i / 4))
        step = size * rng.normal(size=mech.nv) * mech.column_scale
        found: Array = pin.integrate(mech.model, q, step)
        inputs = [found, np.zeros(mech.nv), np.zeros(mech.nu), *([0.0] if laws.timed else [])]
        closed = np.array(laws.law.call(inputs)[2])
        if np.isfinite(closed).all() and np.abs(closed).max() > 2.0 * limit:
            return found
    return None


def _sliding(
    E: Expressions, laws: Laws, states: States, limit: float, rng: np.random.Generator
) -> Array | None:
    """A velocity at the first state that slides by more than `limit`; None where none is found."""
    mech = E.mech
    t = [states.t[0]] if laws.timed else []
    for i in range(40):
        step = 2.0 ** (i / 4) * rng.normal(size=mech.nv) * mech.column_scale
        found: Array = states.v[0] + step
        outputs = laws.law.call([states.q[0], found, np.zeros(mech.nu), *t])
        moved, speed = np.array(outputs[3]), float(outputs[4])
        if np.isfinite(moved).all() and np.abs(moved).max() > 2.0 * limit * speed:
            return found
    return None


def _overflows(laws: Laws, states: States) -> bool:
    """Whether most coordinates, each alone at 1e200, make a torque that is not finite.

    Then the self-test must see it: its storm has hundreds of such rates. Not asked of
    the law with gravity alone, which is linear in the rates.
    """
    if laws.hold is not None:
        return False
    t, over = [states.t[0]] if laws.timed else [], 0
    for k in range(laws.law.numel_in(1)):
        v = states.v[0].copy()
        v[k] = 1e200
        u, doubt, _, moved, speed, *_ = (
            np.array(x).ravel() for x in laws.law.call([states.q[0], v, states.target[0], *t])
        )
        judged = doubt[0] < 1.0 and np.isfinite(moved).all() and np.isfinite(speed).all()
        over += bool(judged and not np.isfinite(u).all())
    return bool(2 * over >= laws.law.numel_in(1))
