"""Derivatives of a law by its inputs."""

from __future__ import annotations

from typing import Any

from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.tree.position_rates import tangent

__all__ = ["derivatives"]

DERIVED = 3.0
"""The factor between the pivots at which derivatives are in doubt and those of their function."""


def derivatives(E: Expressions, function: Any) -> Any:
    """Derivatives of the first output of a law by its inputs but t and the parameters of E.

    Along q they are by a step in the tangent space, nv columns, as `pin.integrate` takes it. The
    order of pivots is fixed, so the derivative is exact where the function is not in doubt.
    """
    ca = casadi_module()
    names = [function.name_in(i) for i in range(function.n_in())]
    inputs = [{"q": E.q, "v": E.v, **E.context}.get(n) for n in names]
    inputs = [
        ca.SX.sym(n, function.numel_in(i)) if x is None else x
        for i, (n, x) in enumerate(zip(names, inputs, strict=True))
    ]
    outputs = function.call(inputs, True, False)
    # a derivative goes with the square of what its function goes with: the guard trips earlier
    first, guard = ca.vec(outputs[0]), DERIVED**2 * outputs[-1]
    found, labels = [], []
    for n, x in zip(names, inputs, strict=True):
        if n in E.context:
            continue
        J = ca.jacobian(first, x)
        found.append(ca.densify(J @ tangent(E.mech.model, E.q) if n == "q" else J))
        labels.append(f"d{function.name_out(0)}_d{n}")
    return ca.Function(
        f"{function.name()}_derivatives", inputs, [*found, guard], names, [*labels, "guard"]
    )
