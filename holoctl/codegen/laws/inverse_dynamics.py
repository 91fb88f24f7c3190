"""Inverse dynamics as expressions: the law of laws/inverse.py over the constraints of
`motor_constraints`."""

from __future__ import annotations

from typing import Any

from holoctl.base.checks import Array
from holoctl.base.errors import InputError
from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.constraints_and_tree import SymbolicTree, motor_constraints
from holoctl.codegen.laws.residuals import redundant_guard, state_guard
from holoctl.codegen.matrices import total
from holoctl.laws.inverse import holding, inverse
from holoctl.rows.state_limits import StateLimits

__all__ = ["holding_function", "inverse_function"]


def inverse_function(
    E: Expressions,
    weights: Array | None = None,
    inconsistent: str = "raise",
    limits: StateLimits | None = None,
    at_reference: bool = False,
) -> Any:
    """``inverse_dynamics(q, v, target, t) -> u, a, guard``, as `PreparedInverseDynamics.torque`.

    With limits, guard includes the state and redundant rows. `at_reference` puts ``rates``
    (nu,) and ``share`` before t: with a share of 1 friction is that of the motion whose motors have
    these rates, see dynamics/friction_velocity.py, which is the oracle; with 0 that of v. After t
    there are the parameters of E.

    Raises
    ------
    NotActuatedError
        If the mechanism has no motors, cannot move, or its motors drive nothing.
    InputError
        If the motors drive fewer motions than there are motors and motions.
    """
    ca = casadi_module()
    mech = E.mech
    target = ca.SX.sym("target", mech.nu)
    at = (ca.SX.sym("rates", mech.nu), ca.SX.sym("share")) if at_reference else ()
    K = motor_constraints(E, weights, inconsistent)
    tree = SymbolicTree(E, *at[1:])
    u, a, _ = inverse(K, tree, K.of_motors(target), K.of_rates(at[0]) if at else None, None)
    guard = total([*E.guard, *K.guard, *tree.guard])
    if limits is not None:
        guard = total([guard, *state_guard(E, limits), *redundant_guard(E, a)])
    return ca.Function(
        "inverse_dynamics", [E.q, E.v, target, *at, *E.context.values()], [u, a, guard],
        ["q", "v", "target", *["rates", "share"][: len(at)], *E.context], ["u", "a", "guard"],
    )  # fmt: skip


def holding_function(E: Expressions, weights: Array | None = None) -> Any:
    """``holding(q, t) -> u, guard``, as `PreparedInverseDynamics.holding`, of any state; after t
    there are the parameters of E.

    Raises
    ------
    NotActuatedError, InputError
        As `inverse_function`; also where some motion is passive, which nothing may hold.
    """
    ca = casadi_module()
    K, tree = motor_constraints(E, weights, "project"), SymbolicTree(E)
    if K.undriven is not None:
        raise InputError(
            f"{E.mech.name}: some of its motions are passive, so nothing may hold it still and no "
            "law for that can be compiled; PreparedInverseDynamics.holding takes it"
        )
    u, guard = holding(K, tree), total([*E.guard, *K.guard, *tree.guard])
    u, guard = ca.substitute([u, guard], [E.v], [ca.SX.zeros(E.mech.nv)])
    inputs = [E.q, *E.context.values()]
    return ca.Function("holding", inputs, [u, guard], ["q", *E.context], ["u", "guard"])
