"""All rows, as they are defined; and the terms of the equation of motion: M and h, and F."""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.matrices import column, dense, total
from holoctl.codegen.rows import SymbolicRows, symbolic_rows
from holoctl.codegen.tree_dynamics import mass_matrix, tree_efforts

__all__ = ["rows_function", "terms_function"]


def terms_function(E: Expressions) -> Any:
    """``terms(q, v, t) -> error, rate, G, drift, M, h[, F], guard``; F where there are forces.

    After t there are the parameters of E.
    """
    ca, mech = casadi_module(), E.mech
    rows, guard = _all_rows(E)
    h = tree_efforts(E.tree, E.v, ca.SX.zeros(mech.nv))
    outputs = [column(rows.error), column(rows.rate), dense(rows.jacobian, mech.nv)]
    outputs += [column(rows.drift), ca.densify(mass_matrix(E.tree)), h]
    names = ["error", "rate", "G", "drift", "M", "h"]
    if mech.forces:
        outputs.append(-E.forces.minus(ca.SX.zeros(mech.nv), E.v))
        names.append("F")
    names.append("guard")
    given = [E.q, E.v, *E.context.values()], [*outputs, guard]
    return ca.Function("terms", *given, ["q", "v", *E.context], names)


def rows_function(E: Expressions) -> Any:
    """``rows(q, v, t) -> scaled, guard``: the Jacobian of all rows, row by row, their errors and
    rates, in scaled rows and coordinates, to watch a motion by."""
    ca, mech = casadi_module(), E.mech
    rows, guard = _all_rows(E)
    G, r = dense(rows.jacobian, mech.nv) * mech.scale, mech.row_scale
    scaled = ca.vertcat(ca.vec(ca.densify(G).T), r * column(rows.error), r * column(rows.rate))
    given = [E.q, E.v, E.t], [scaled, guard]
    return ca.Function("rows", *given, ["q", "v", "t"], ["scaled", "guard"])


def _all_rows(E: Expressions) -> tuple[SymbolicRows, SX]:
    rows = symbolic_rows(E.mech, E.tree, E.v, E.t, np.arange(E.mech.row_scale.size))
    return rows, total([*rows.guard, *E.guard[len(E.rows.guard) :]])
