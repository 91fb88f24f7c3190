"""The reference law of `ComputedTorque` as expressions: what the motors are to do.

e = q_ref - q_motors (continuous motors: wrapped), or B' difference(q, q_ref)

full      a_ref + kd (v_ref - B' v) + kp e
gravity            kd (v_ref - B' v) + kp e, efforts that are added to those of holding
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.codegen.expressions import Expressions
from holoctl.codegen.extra import casadi_module
from holoctl.codegen.laws.inverse_dynamics import holding_function, inverse_function
from holoctl.codegen.laws.measures import state_doubt
from holoctl.control.computed_torque import ComputedTorque
from holoctl.rows.consistency import StateLimits

__all__ = ["command_function", "torque_function"]


def command_function(controller: ComputedTorque) -> Any:
    """``command(q, v, q_ref, v_ref, a_ref) -> command``, with q_ref of shape (nu,).

    None where the motors have no positions of their own: for a general B, or a motor on one
    coordinate of a rotation.
    """
    ca, mech = casadi_module(), controller.mech
    places = mech._motors
    if not mech.actuated or places.missing:
        return None
    q, v = ca.SX.sym("q", mech.nq), ca.SX.sym("v", mech.nv)
    q_ref, v_ref = ca.SX.sym("q_ref", mech.nu), ca.SX.sym("v_ref", mech.nu)
    a_ref = ca.SX.sym("a_ref", mech.nu)
    found = []
    for i, motor in enumerate(mech.actuated):
        k, where = mech.coordinate_names.index(motor), int(places.where[i])
        if i in places.turning:  # the shorter way round
            d = q_ref[i] - ca.atan2(q[where + 1], q[where]) + np.pi
            e = d - 2.0 * np.pi * ca.floor(d / (2.0 * np.pi)) - np.pi
        else:
            e = q_ref[i] - q[where]
        law = float(controller.kp[i]) * e + float(controller.kd[i]) * (v_ref[i] - v[k])
        found.append(law + a_ref[i] if controller.compensation == "full" else law)
    return ca.Function(
        "command", [q, v, q_ref, v_ref, a_ref], [ca.vertcat(*found)],
        ["q", "v", "q_ref", "v_ref", "a_ref"], ["command"],
    )  # fmt: skip


def torque_function(E: Expressions, controller: ComputedTorque, limits: StateLimits) -> Any:
    """``torque(q, v, q_ref, v_ref, a_ref, t) -> u, doubt``, as `ComputedTorque.torque`.

    None where `command_function` gives none.

    Raises
    ------
    NotActuatedError, InputError
        As `inverse_function`, or for the compensation of gravity as `holding_function`.
    """
    ca, command = casadi_module(), command_function(controller)
    if command is None:
        return None
    names = [command.name_in(i) for i in range(command.n_in())]
    refs = [ca.SX.sym(n, controller.mech.nu) for n in names[2:]]
    c = command.call([E.q, E.v, *refs], True, False)[0]
    if controller.compensation == "full":
        law = inverse_function(E, controller.weights, "project", limits)
        u, _, doubt = law.call([E.q, E.v, c, E.t], True, False)
    else:
        law = holding_function(E, controller.weights)
        held, doubt = law.call([E.q, E.t], True, False)
        u = held + c
        doubt = sum(state_doubt(E, limits), doubt)
    return ca.Function("torque", [E.q, E.v, *refs, E.t], [u, doubt], [*names, "t"], ["u", "doubt"])
