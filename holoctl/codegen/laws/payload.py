"""What the equations of a payload take from a state, as expressions.

    dynamics    needed = M a + h - F, gamma, and W = gamma' M gamma if rates have noise
    carried     J, acceleration at a = 0 less gravity, and angular rate of the frame, in its axes

The rest of the law, estimation/payload_estimator.py, is arithmetic of small matrices, and stands in
codegen/templates/payload.c.in.
"""

from __future__ import annotations

from typing import Any

from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.constraints_and_tree import free_constraints
from holoctl.codegen.matrices import total
from holoctl.codegen.relative_motion import jacobian_at, placed, point_motion, see
from holoctl.codegen.tree import constant
from holoctl.codegen.tree_dynamics import mass_matrix
from holoctl.tree.frames import Frame

__all__ = ["payload_functions"]


def payload_functions(E: Expressions, frame: Frame, rates: bool) -> tuple[Any, Any]:
    """``dynamics(q, v, a, t) -> needed, gamma, W, guard`` and ``carried(q, v) -> J, drift, w``.

    W has one entry, zero, without `rates`: noise of rates.
    """
    ca = casadi_module()
    K, a = free_constraints(E), ca.SX.sym("a", E.mech.nv)
    gamma = K.basis()
    W = gamma.T @ (mass_matrix(E.tree) @ gamma) if rates else ca.SX.zeros(1)
    dynamics = ca.Function(
        "dynamics", [E.q, E.v, a, E.t],
        [ca.densify(E.needed(a)), ca.densify(gamma), ca.densify(W), total([*E.guard, *K.guard])],
        ["q", "v", "a", "t"], ["needed", "gamma", "W", "guard"],
    )  # fmt: skip
    s = see(E.tree, (0, 0), E.tree.of_joint[frame.joint], E.v, {})
    R, p = placed(s, frame)
    in_world = jacobian_at(s, p, E.mech.nv)
    J = ca.vertcat(R.T @ in_world[:3, :], R.T @ in_world[3:, :])
    linear = R.T @ (point_motion(s, p)[1] - constant(E.tree.gravity))
    carried = ca.Function(
        "carried", [E.q, E.v],
        [ca.densify(J), ca.densify(ca.vertcat(linear, R.T @ s.alpha)), ca.densify(R.T @ s.omega)],
        ["q", "v"], ["J", "drift", "w"],
    )  # fmt: skip
    return dynamics, carried
