"""The exact plant as functions of symbols: its motion, and the correction of its state."""

from __future__ import annotations

from typing import Any

from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.bordered_elimination import eliminated
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.matrices import dense, largest, total
from holoctl.codegen.tree_dynamics import mass_matrix
from holoctl.tree.position_rates import tangent

__all__ = ["plant_functions", "plant_terms"]


def plant_functions(E: Expressions, timed: bool) -> tuple[Any, Any]:
    """``motion(q, v, u[, t]) -> qdot, a, guard``, ``correction(q, v[, t]) -> dq, dv, guard, off``.

    The motion has the parameters of E last; `off` is the largest error of the kept rows before the
    correction, scaled.
    """
    ca, mech = casadi_module(), E.mech
    u = ca.SX.sym("u", mech.nu)
    given = E.context
    a, guard = forward_function(E).call([E.q, E.v, ca.SX(mech.B) @ u, *given.values()], True, False)
    T = tangent(mech.model, E.q)
    t, label = ([E.t], ["t"]) if timed else ([], [])
    more = {x: y for x, y in given.items() if timed or x != "t"}
    motion = ca.Function(
        "motion", [E.q, E.v, u, *more.values()], [ca.densify(T @ E.v), ca.densify(a), guard],
        ["q", "v", "u", *more], ["qdot", "a", "guard"],
    )  # fmt: skip
    dq, dv, guard, off = _correction(E)
    correction = ca.Function(
        "correction", [E.q, E.v, *t], [ca.densify(T @ dq), dv, guard, off], ["q", "v", *label],
        ["dq", "dv", "guard", "off"],
    )  # fmt: skip
    return motion, correction


def plant_terms(E: Expressions, timed: bool) -> Any:
    """``terms(q, v, u[, t]) -> G, M, f, guard``: scaled, for an elimination with complete pivoting.

    G has the kept rows, by rows, and beside them what they ask of the coordinates: against drift,
    error and rate; M the inertia; f the efforts but those of constraints and accelerations. After t
    there are the parameters of E.
    """
    ca, mech = casadi_module(), E.mech
    u, rows, unit = ca.SX.sym("u", mech.nu), E.rows, ca.SX(mech.column_scale)
    given = {x: y for x, y in E.context.items() if timed or x != "t"}
    asked = [ca.vertcat(*x) for x in (rows.drift, rows.error, rows.rate)]
    G = ca.horzcat(dense(rows.jacobian, mech.nv) @ ca.diag(unit), *(-x for x in asked))
    G = ca.diag(ca.SX(mech.row_scale[E.partition.rows])) @ G
    f = ca.SX(mech.B) @ u - E.needed(ca.SX.zeros(mech.nv))
    M = ca.diag(unit) @ mass_matrix(E.tree) @ ca.diag(unit)
    return ca.Function(
        "terms", [E.q, E.v, u, *given.values()],
        [ca.densify(G), ca.densify(M), ca.densify(unit * f), total(E.guard)],
        ["q", "v", "u", *given], ["G", "M", "f", "guard"],
    )  # fmt: skip


def _correction(E: Expressions) -> tuple[SX, SX, SX, SX]:
    """Steps of the dependent coordinates that take errors and rates of the kept rows to zero."""
    ca, mech, part = casadi_module(), E.mech, E.partition
    dependent = part.dependent.tolist()
    dq, dv, guard = ca.SX.zeros(mech.nv), ca.SX.zeros(mech.nv), ca.SX(0.0)
    if not dependent:
        return dq, dv, guard, ca.SX(0.0)
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
    off = largest(float(x) * e for x, e in zip(row_unit, E.rows.error, strict=True))
    return dq, dv, total(factors.guard), off
