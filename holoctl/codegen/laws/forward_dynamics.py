"""Forward dynamics as expressions: the law of laws/response.py, with the independent coordinates in
the border."""

from __future__ import annotations

from typing import Any

from holoctl.codegen.casadi_extra import casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.motor_constraints import SymbolicTree, free_constraints
from holoctl.codegen.matrices import total
from holoctl.laws.response import forward

__all__ = ["forward_function"]


def forward_function(E: Expressions) -> Any:
    """``forward_dynamics(q, v, tau, t) -> a, doubt``, as `PreparedForwardDynamics.acceleration`."""
    ca, mech = casadi_module(), E.mech
    tau, K, tree = ca.SX.sym("tau", mech.nv), free_constraints(E), SymbolicTree(E)
    a = forward(K, tree, ca.SX.zeros(K.unit.size), tree.steps)(tau)
    doubt = [*E.doubt, *K.doubt, *tree.doubt]
    return ca.Function(
        "forward_dynamics", [E.q, E.v, tau, E.t], [a, total(doubt)],
        ["q", "v", "tau", "t"], ["a", "doubt"],
    )  # fmt: skip
