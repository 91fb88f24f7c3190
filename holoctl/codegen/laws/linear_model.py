"""The linear model along a motion as expressions, in minimal coordinates: x = (y, yd).

    f(q, yd, u) = S a(q, V, u)        V(q, yd): the velocity that the constraints allow, S V = yd

    A11 = -S ad_V gamma    A12 = 1    A21 = f_q T gamma    A22 = f_yd    B2 = f_u

S selects the independent rows, T v is the rate of q. As V is inside of f, the dependent rates
change with y. The model is that of design/linear/linearize.py, ``along="motion"``, which tests
compare; in self-tests of C it is that of differences, see linear_model_by_differences.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.constraints_and_tree import free_constraints
from holoctl.codegen.laws.derivatives import DERIVED
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.matrices import column, total
from holoctl.tree.lie_bracket import adjoint_velocity
from holoctl.tree.position_rates import tangent

__all__ = ["linear_model_function"]


def linear_model_function(E: Expressions) -> Any:
    """``linearize(q, v, u, t) -> A, B, ydd, guard``: (2n, 2n), (2n, nu), (n, 1).

    The guard includes closure and velocity errors of all rows: off the manifold there is no linear
    model.

    Raises
    ------
    InputError
        For a joint whose steps do not commute in a way that is known.
    """
    ca, mech, free = casadi_module(), E.mech, E.partition.independent
    n, K = free.size, free_constraints(E)
    yd, u = ca.SX.sym("yd", n), ca.SX.sym("u", mech.nu)
    V = K.velocity(yd)
    a, guard = forward_function(E).call([E.q, V, ca.SX(mech.B) @ u, E.t], True, False)
    f = a[free]
    slopes = ca.jacobian(f, ca.vertcat(E.q, yd, u))
    by_q, by_yd, by_u = ca.horzsplit(slopes, [0, mech.nq, mech.nq + n, mech.nq + n + mech.nu])
    gamma = K.basis()
    turned = -_turning(E, V)[free, :] @ gamma
    A = ca.blockcat([[turned, ca.SX.eye(n)], [by_q @ tangent(mech.model, E.q) @ gamma, by_yd]])
    B = ca.vertcat(ca.SX.zeros(n, mech.nu), by_u)
    known = ca.Function(
        "known", [E.q, yd, u, E.t], [ca.densify(x) for x in (A, B, f, DERIVED**2 * guard)]
    )
    *found, sure = known.call([E.q, E.v[free], u, E.t], True, False)
    return ca.Function(
        "linearize", [E.q, E.v, u, E.t], [*found, total([sure, *_closed(E)])],
        ["q", "v", "u", "t"], ["A", "B", "ydd", "guard"],
    )  # fmt: skip


def _turning(E: Expressions, V: SX) -> SX:
    """ad_V (nv, nv), linear in V."""
    ca, nv = casadi_module(), E.mech.nv
    found = ca.SX(nv, nv)
    for k, unit in enumerate(np.eye(nv)):
        part = adjoint_velocity(E.mech.model, unit)
        if part.any():
            found += V[k] * ca.sparsify(ca.SX(part))
    return found


def _closed(E: Expressions) -> list[SX]:
    """Each below one where a state is closed: errors of rows, and their rates beside the speed."""
    ca, closed = casadi_module(), E.precision.closed
    scale = E.mech.row_scale[E.open]
    speed = 1.0 + ca.sumsqr(E.v / ca.SX(column(E.mech.column_scale)))
    off = [(float(s) / closed * x) ** 2 for s, x in zip(scale, E.every.error, strict=True)]
    return off + [
        (float(s) / closed * x) ** 2 / speed for s, x in zip(scale, E.every.rate, strict=True)
    ]
