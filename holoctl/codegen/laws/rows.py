"""All rows, to watch a motion by."""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.codegen.casadi_extra import casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.matrices import column, dense, total
from holoctl.codegen.rows import symbolic_rows

__all__ = ["rows_function"]


def rows_function(E: Expressions) -> Any:
    """``rows(q, v, t) -> scaled, doubt``: the Jacobian of all rows, row by row, their errors and
    rates, in scaled rows and coordinates."""
    ca = casadi_module()
    mech = E.mech
    rows = symbolic_rows(mech, E.tree, E.v, E.t, np.arange(mech.row_scale.size))
    norms = E.doubt[len(E.rows.doubt) :]
    G = dense(rows.jacobian, mech.nv) * mech.scale
    r = mech.row_scale
    scaled = ca.vertcat(ca.vec(ca.densify(G).T), r * column(rows.error), r * column(rows.rate))
    return ca.Function(
        "rows", [E.q, E.v, E.t], [scaled, total([*rows.doubt, *norms])],
        ["q", "v", "t"], ["scaled", "doubt"],
    )  # fmt: skip
