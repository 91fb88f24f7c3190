"""What limits need to know of a law, as expressions: what is asked for, and what may be done.

    asked      u and a, of the coordinates that are limited        (nu + n,)
    base       the same of the motion that leaves the rates of the motors as they are
    x, x_rate  positions and velocities of these coordinates
    motor_rates of the motors, B' v
    H, Y       what efforts are worth, what they do: H = A' W^-1 A, a = a0 + Y u

    change     by how much a changes within a tick under held efforts

with W = gamma' M gamma and A = gamma' B. `asked` is needed at every tick, `change` near limits
of velocity, the others where it is past a limit. The oracles are control/limits_law.py,
mechanism/limited_coordinates.py and dynamics/effort_response.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.codegen.casadi_extra import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.law_options import Subject
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.laws.inverse_dynamics import (
    holding_function,
    inverse_function,
)
from holoctl.codegen.laws.measures import state_doubt
from holoctl.codegen.laws.motor_constraints import SymbolicTree, motor_constraints
from holoctl.codegen.laws.placed import placed_function
from holoctl.codegen.laws.readings import JointReading, joint_readings
from holoctl.codegen.laws.torque import at_reference, given_to
from holoctl.codegen.matrices import column, total
from holoctl.control.limits_law import LimitsLaw
from holoctl.laws.response import forward
from holoctl.laws.response import response as responding
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = [
    "Limited",
    "as_it_moves",
    "caused_by",
    "change_function",
    "limited",
    "limited_torque",
]


@dataclass(frozen=True, eq=False)
class Limited:
    """A law with limits.

    Attributes
    ----------
    function : casadi.Function
        Its last outputs are ``asked, x, x_rate, motor_rates`` and, where the policy has a use for
        them, ``base`` and ``H, Y, response_doubt``.
    first : tuple of str
        The outputs that are needed at every tick.
    """

    function: Any
    first: tuple[str, ...]


def limited_torque(E: Expressions, subject: Subject, law: LimitsLaw) -> Limited | None:
    """``torque(q, v, q_ref, v_ref, a_ref, t) -> doubt, ...``; None where `torque_function` is.

    Raises
    ------
    NotActuatedError, InputError
        As `torque_function`.
    """
    ca, controller = casadi_module(), subject.controller
    given = None if controller is None else given_to(E, controller)
    if controller is None or given is None:
        return None
    if controller.compensation == "full":
        moved = at_reference(E, controller)
        options = subject.weights, subject.inconsistent
        inverse = inverse_function(E, *options, subject.limits, at_reference=moved)
        wanted = given.to_inverse(E, moved)
        u, a, doubt = inverse.call(wanted, True, False)
        wanted[2] = ca.SX.zeros(E.mech.nu)
        base = inverse_function(E, *options, at_reference=moved).call(wanted, True, False)[:2]
        if moved:
            a, base, doubt = as_it_moves(E, law, u, a, base, doubt)
    else:
        held, doubt = holding_function(E, subject.weights).call([E.q, E.t], True, False)
        motion, more = caused_by(E, law)
        u = held + given.command
        a, base = motion(u), (held, motion(held))
        doubt = total([doubt, *state_doubt(E, subject.limits), *more])
    return limited(E, law, "torque", (given.inputs, given.names), {"doubt": doubt}, (u, a), base)


def limited(
    E: Expressions,
    law: LimitsLaw,
    name: str,
    given: tuple[list[SX], list[str]],
    more: dict[str, SX],
    asked: tuple[SX, SX],
    base: tuple[SX, SX],
) -> Limited:
    """A law of these inputs, with outputs of its own in front of those for the limits.

    `asked` and `base` are efforts and the acceleration of the coordinates.
    """
    ca, at = casadi_module(), limited_coordinates(E, law.bound)

    def both(efforts: SX, a: SX) -> SX:
        return ca.densify(ca.vertcat(efforts, at.accelerations(a)))

    first = {
        **more, "asked": both(*asked), "x": at.x, "x_rate": at.x_rate,
        "motor_rates": ca.densify(ca.SX(E.mech.B.T) @ E.v),
    }  # fmt: skip
    found = dict(first)
    if law.policy == "scale":
        found["base"] = both(*base)
    if law.policy != "raise":
        found["H"], found["Y"], found["response_doubt"] = response(E, at)
    inputs, names = given
    function = ca.Function(name, inputs, list(found.values()), names, list(found))
    return Limited(function, tuple(first))


@dataclass(frozen=True, eq=False)
class LimitedCoordinates:
    """The n coordinates of `BoundLimits`.

    Attributes
    ----------
    x, x_rate : (n, 1) expressions
        A position without a number of its own, which has no limit, is 0.
    J : (n, nv) expression
    bias : (n, 1) expression
        ``d x_rate / dt = J a + bias``
    """

    x: SX
    x_rate: SX
    J: SX
    bias: SX

    def accelerations(self, a: SX) -> SX:
        """d x_rate / dt where the mechanism accelerates by a."""
        return self.J @ a + self.bias


def limited_coordinates(E: Expressions, bound: BoundLimits) -> LimitedCoordinates:
    """Those of the tree, then those of cut joints."""
    ca, zero = casadi_module(), casadi_module().SX(0.0)
    found = [
        JointReading(E.q[int(at)] if at >= 0 else zero, {int(k): ca.SX(1.0)}, E.v[int(k)], zero)
        for k, at in zip(bound.columns, bound.places, strict=True)
    ]
    found += joint_readings(E, bound.cut)
    J = ca.SX(len(found), E.mech.nv)
    for i, reading in enumerate(found):
        for k, entry in reading.row.items():
            J[i, k] = entry
    return LimitedCoordinates(
        column(r.value for r in found), column(r.rate for r in found), J,
        column(r.bias for r in found),
    )  # fmt: skip


def response(E: Expressions, at: LimitedCoordinates) -> tuple[SX, SX, SX]:
    """H (nu, nu), Y (n, nu) and doubt."""
    ca, K, tree = casadi_module(), motor_constraints(E), SymbolicTree(E)
    H, Y = responding(K, tree)
    return ca.densify(H), ca.densify(at.J @ Y), total([*K.bordered.doubt, *tree.doubt])


def change_function(E: Expressions, law: LimitsLaw) -> Any:
    """``change_in_a_tick(q, v, u, t) -> change, doubt``, as mechanism/limited_coordinates.py has
    it; None where no velocity is limited."""
    if not np.isfinite(law.bound.velocity).any():
        return None
    ca, at, dt = casadi_module(), limited_coordinates(E, law.bound), law.dt
    forward, u = forward_function(E), ca.SX.sym("u", E.mech.nu)
    tau = ca.SX(E.mech.B) @ u
    a, doubt = forward.call([E.q, E.v, tau, E.t], True, False)
    step, v = dt * E.v + (0.5 * dt * dt) * a, E.v + dt * a
    q, _, turned = placed_function(E).call([E.q, ca.vertcat(step, E.v)], True, False)
    then, doubt_then = forward.call([q, v, tau, E.t + dt], True, False)
    rates = ca.Function("rates", [E.q, E.v, E.t], [at.J, at.bias])
    J, bias = rates.call([q, v, E.t + dt], True, False)
    change = J @ then + bias - at.accelerations(a)
    return ca.Function(
        "change_in_a_tick", [E.q, E.v, u, E.t],
        [ca.densify(change), total([doubt, turned, doubt_then])],
        ["q", "v", "u", "t"], ["change", "doubt"],
    )  # fmt: skip


def as_it_moves(
    E: Expressions, law: LimitsLaw, u: SX, a: SX, base: tuple[SX, SX], doubt: SX
) -> tuple[SX, tuple[SX, SX], SX]:
    """The acceleration, base and doubt where friction is compensated at the reference, which is not
    what acts: the motion is that of the friction at v."""
    if not law.bound.names:
        return a, base, doubt
    motion, more = caused_by(E, law)
    return motion(u), (base[0], motion(base[0])), total([doubt, *more])


def caused_by(E: Expressions, law: LimitsLaw) -> tuple[Callable[[SX], SX], list[SX]]:
    """A function u -> a, the acceleration of the coordinates, and its doubt; zero where nobody asks
    for it, for no joint has limits."""
    ca, B = casadi_module(), casadi_module().SX(E.mech.B)
    if not law.bound.names:
        return lambda u: ca.SX.zeros(E.mech.nv), []
    K, tree = motor_constraints(E), SymbolicTree(E)
    motion = forward(K, tree, ca.SX.zeros(K.unit.size), 1)
    return lambda u: motion(B @ u), [*K.bordered.doubt, *tree.doubt]
