"""The torque of `ComputedTorque` as an expression.

e = q_ref - q_motors        wrapped to half a turn for motors that turn without end
command = kd (v_ref - B' v) + kp e

full      a_ref + command is the target of the inverse dynamics
gravity   command is added to the efforts of holding
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holoctl.base.angles import position_error
from holoctl.codegen.casadi_extra import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.law_options import Subject
from holoctl.codegen.laws.inverse_dynamics import holding_function, inverse_function
from holoctl.codegen.laws.measures import state_doubt
from holoctl.codegen.matrices import column, scalars
from holoctl.control.computed_torque import ComputedTorque
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["TickInputs", "at_reference", "errors_function", "given_to", "torque_function"]


def torque_function(E: Expressions, subject: Subject) -> Any:
    """``torque(q, v, q_ref, v_ref, a_ref, t) -> u, doubt``, as `ComputedTorque.torque`.

    None without a controller, and where `errors_function` gives none.

    Raises
    ------
    NotActuatedError, InputError
        As `inverse_function`, or for the compensation of gravity as `holding_function`.
    """
    ca, controller = casadi_module(), subject.controller
    given = None if controller is None else given_to(E, controller)
    if controller is None or given is None:
        return None
    if controller.compensation == "full":
        moved = at_reference(E, controller)
        options = subject.weights, subject.inconsistent, subject.limits
        law = inverse_function(E, *options, at_reference=moved)
        u, _, doubt = law.call(given.to_inverse(E, moved), True, False)
    else:
        law = holding_function(E, subject.weights)
        held, doubt = law.call([E.q, E.t], True, False)
        u = held + given.command
        doubt = sum(state_doubt(E, subject.limits), doubt)
    return ca.Function("torque", given.inputs, [u, doubt], given.names, ["u", "doubt"])


@dataclass(frozen=True, eq=False)
class TickInputs:
    """What a tick of a controller takes, and what it makes of it: ``kd (v_ref - B' v) + kp e``.

    Attributes
    ----------
    inputs, names : lists of symbols and their names
    v_ref, a_ref : (nu, 1) symbols
    command : (nu, 1) expression
    """

    inputs: list[SX]
    names: list[str]
    v_ref: SX
    a_ref: SX
    command: SX

    def to_inverse(self, E: Expressions, moved: bool) -> list[SX]:
        """What `inverse_function` takes, with rates or without."""
        rates = [self.v_ref, casadi_module().SX(1.0)] if moved else []
        return [E.q, E.v, self.command + self.a_ref, *rates, E.t]


def given_to(E: Expressions, controller: ComputedTorque) -> TickInputs | None:
    """The symbols of a tick; None where `errors_function` gives none."""
    ca, mech, errors = casadi_module(), E.mech, errors_function(E.mech)
    if errors is None:
        return None
    names = ["q_ref", "v_ref", "a_ref"]
    q_ref, v_ref, a_ref = (ca.SX.sym(x, mech.nu) for x in names)
    e, rate = errors.call([E.q, E.v, q_ref, v_ref], True, False)
    gains = zip(controller.kp.tolist(), controller.kd.tolist(), strict=True)
    feedback = zip(gains, scalars(e), scalars(rate), strict=True)
    command = column(kp * x + kd * y for (kp, kd), x, y in feedback)
    inputs = [E.q, E.v, q_ref, v_ref, a_ref, E.t]
    return TickInputs(inputs, ["q", "v", *names, "t"], v_ref, a_ref, command)


def at_reference(E: Expressions, controller: ComputedTorque) -> bool:
    """Whether the law takes friction at the rates of the reference."""
    full = controller.compensation == "full" and controller.friction_at == "reference"
    return full and E.forces.friction is not None


def errors_function(mech: Mechanism) -> Any:
    """``errors(q, v, q_ref, v_ref) -> e, rate``: what the gains are multiplied with.

    None where the motors have no positions of their own: for a general B, or a motor on one
    coordinate of a rotation.
    """
    ca, places = casadi_module(), mech.motors
    if not mech.actuated or places.missing:
        return None
    q, v = ca.SX.sym("q", mech.nq), ca.SX.sym("v", mech.nv)
    q_ref, v_ref = ca.SX.sym("q_ref", mech.nu), ca.SX.sym("v_ref", mech.nu)
    e, rate = [], []
    for i, motor in enumerate(mech.actuated):
        e.append(position_error(q, int(places.where[i]), i in places.turning, q_ref[i]))
        rate.append(v_ref[i] - v[mech.coordinate_names.index(motor)])
    return ca.Function(
        "errors", [q, v, q_ref, v_ref], [column(e), column(rate)],
        ["q", "v", "q_ref", "v_ref"], ["e", "rate"],
    )  # fmt: skip
