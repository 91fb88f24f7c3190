"""The terms of the equation of motion: all rows, M and h, and F."""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.codegen.casadi_extra import casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.matrices import column, dense, total
from holoctl.codegen.rows import symbolic_rows
from holoctl.codegen.tree_dynamics import mass_matrix, tree_efforts

__all__ = ["terms_function"]


def terms_function(E: Expressions) -> Any:
    """``terms(q, v, t) -> error, rate, G, drift, M, h[, F], doubt``: all rows, as they are defined.

    F where the mechanism has forces.
    """
    ca = casadi_module()
    mech, m = E.mech, E.mech.row_scale.size
    rows = symbolic_rows(mech, E.tree, E.v, E.t, np.arange(m))
    G = dense(rows.jacobian, mech.nv)
    h = tree_efforts(E.tree, E.v, ca.SX.zeros(mech.nv))
    M = ca.densify(mass_matrix(E.tree))
    norms = E.doubt[len(E.rows.doubt) :]
    outputs = [column(rows.error), column(rows.rate), G, column(rows.drift), M, h]
    names = ["error", "rate", "G", "drift", "M", "h"]
    if mech.forces:
        outputs.append(-E.forces.minus(ca.SX.zeros(mech.nv), E.v))
        names.append("F")
    return ca.Function(
        "terms", [E.q, E.v, E.t], [*outputs, total([*rows.doubt, *norms])],
        ["q", "v", "t"], [*names, "doubt"],
    )  # fmt: skip
