"""The torque of `ComputedTorque` as an expression: the law of laws/computed_torque.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from holoctl.base.angles import position_error
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.law_options import Subject
from holoctl.codegen.laws.inverse_dynamics import holding_function, inverse_function
from holoctl.codegen.laws.residuals import state_guard
from holoctl.codegen.matrices import column, total
from holoctl.control.computed_torque import ComputedTorque
from holoctl.laws.computed_torque import TorqueLaw, base, computed_torque, feedback
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["TorqueExpressions", "at_reference", "errors_function", "torque", "torque_function"]


def torque_function(E: Expressions, subject: Subject) -> Any:
    """``torque(q, v, q_ref, v_ref, a_ref, t) -> u, guard``, as `ComputedTorque.torque`; after t
    there are the parameters of E.

    None without a controller, and where `errors_function` gives none.

    Raises
    ------
    NotActuatedError, InputError
        As `inverse_function`, or for the compensation of gravity as `holding_function`.
    """
    found = torque(E, subject)
    if found is None:
        return None
    outputs = [found.u, found.guard]
    return casadi_module().Function("torque", found.inputs, outputs, found.names, ["u", "guard"])


class TorqueExpressions(NamedTuple):
    """The law of a controller.

    Attributes
    ----------
    inputs, names : lists of symbols and their names
    u, a : (nu, 1), (nv, 1) expressions
        The efforts, and the acceleration that they cause; None if that is not the commanded one,
        because gravity alone is compensated, or friction at the reference.
    guard : expression
    base : function () -> u, a
        The same of the motion that does not accelerate the motors.
    """

    inputs: list[SX]
    names: list[str]
    u: SX
    a: SX | None
    guard: SX
    base: Callable[[], tuple[SX, SX | None]]


def torque(E: Expressions, subject: Subject) -> TorqueExpressions | None:
    """None without a controller, and where `errors_function` gives none."""
    ca, mech, controller = casadi_module(), E.mech, subject.controller
    errors = errors_function(mech)
    if controller is None or errors is None:
        return None
    names = ["q_ref", "v_ref", "a_ref"]
    q_ref, v_ref, a_ref = (ca.SX.sym(x, mech.nu) for x in names)
    at, gravity = at_reference(E, controller), controller.compensation == "gravity"
    law = TorqueLaw(ca.SX(controller.kp), ca.SX(controller.kd), gravity, at)
    solved = list[tuple[SX, SX | None, SX]]()

    @cache  # the same expressions serve the base
    def held() -> list[SX]:
        found: list[SX] = holding_function(E, subject.weights).call(
            [E.q, *E.context.values()], True, False
        )
        return found

    def efforts(target: SX | None, rates: SX | None) -> SX:
        if target is None:
            u, guard = held()
            solved.append((u, None, total([guard, *state_guard(E, subject.limits)])))
            return u
        options = subject.weights, subject.inconsistent, subject.limits
        inverse = inverse_function(E, *options, at_reference=rates is not None)
        moved = [] if rates is None else [rates, ca.SX(1.0)]
        given = [E.q, E.v, target, *moved, *E.context.values()]
        u, a, guard = inverse.call(given, True, False)
        solved.append((u, None if moved else a, guard))
        return u

    def base_motion() -> tuple[SX, SX | None]:
        efforts(*base(law, v_ref, ca.SX.zeros(mech.nu)))
        return solved[-1][:2]

    c = feedback(law, *errors.call([E.q, E.v, q_ref, v_ref], True, False))
    u = computed_torque(law, efforts, c, v_ref, a_ref)
    _, a, guard = solved[-1]
    inputs = [E.q, E.v, q_ref, v_ref, a_ref, *E.context.values()]
    return TorqueExpressions(inputs, ["q", "v", *names, *E.context], u, a, guard, base_motion)


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
