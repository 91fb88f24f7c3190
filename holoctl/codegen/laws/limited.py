"""The quantities of a law that limits need, as expressions: command, and response to efforts.

    asked      commanded u, and a of the coordinates that are limited        (nu + n,)
    base       the same of the motion that does not accelerate the motors
    x, x_rate  positions and velocities of these coordinates
    motor_rates of the motors, B' v
    a          of all coordinates, where velocities are limited
    H, Y       the Hessian of efforts, and the accelerations by them: H = A' W^-1 A, a = a0 + Y u
    gamma, per_effort
               gamma and W^-1 A, whose product is Y of all coordinates, where velocities are limited

with W = gamma' M gamma and A = gamma' B. `asked` is needed at every tick, the others beyond a
limit or near one of velocity: then the law is also evaluated a tick later, at a state that
`tick_on` gives. The oracles are control/limit_policies.py, mechanism/limited_coordinates.py and
dynamics/effort_response.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.law_options import Subject
from holoctl.codegen.laws.computed_torque import torque
from holoctl.codegen.laws.constraints_and_tree import SymbolicTree, motor_constraints
from holoctl.codegen.laws.measurement_model import JointReading, joint_readings
from holoctl.codegen.laws.tangent_step import placed_function
from holoctl.codegen.laws.task import NAMES, TaskEfforts, guarded_efforts
from holoctl.codegen.matrices import column, total
from holoctl.codegen.task_law_options import TaskSubject
from holoctl.control.limit_policies import LimitsLaw
from holoctl.laws.acceleration_bounds import (
    LimitedCoordinates,
    Operations,
    a_tick_on,
    at_both_ends,
    by_position,
    by_velocity,
    caused,
    led_back,
)
from holoctl.laws.forward import forward
from holoctl.laws.forward import response as responding
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = [
    "LimitedLaw",
    "as_it_moves",
    "bounding_functions",
    "caused_by",
    "limited",
    "limited_efforts",
    "limited_task",
    "limited_torque",
]


@dataclass(frozen=True, eq=False)
class LimitedLaw:
    """A law with limits.

    Attributes
    ----------
    function : casadi.Function
        Its last outputs are ``asked, x, x_rate, motor_rates`` and, where velocities are limited,
        ``a``; then, where there is a use for them, ``base`` and ``H, Y, gamma, per_effort,
        response_guard``.
    first, response : tuples of str
        The outputs that are needed at every tick, and those of the response to efforts, if any.
    ahead : tuple of casadi.Function
        Where velocities are limited: ``tick_on(q, v, asked, a, gamma, per_effort, u) ->
        late_q, late_v, turned``, and ``caused(asked, Y, u) -> a`` of limited coordinates;
        matrices by rows.
    """

    function: Any
    first: tuple[str, ...]
    response: tuple[str, ...]
    ahead: tuple[Any, ...]


def limited_torque(E: Expressions, subject: Subject, law: LimitsLaw) -> LimitedLaw | None:
    """``torque(q, v, q_ref, v_ref, a_ref, t) -> guard, ...``; None where `torque_function` is.

    Raises
    ------
    NotActuatedError, InputError
        As `torque_function`.
    """
    found = torque(E, subject)
    if found is None:
        return None
    u, a, guard, base = found.u, found.a, found.guard, found.base()
    if a is None:
        a, base, guard = as_it_moves(E, law, u, base[0], guard)
    given = found.inputs, found.names
    return limited(E, law, "torque", given, {"guard": guard}, (u, a), base)


def limited_task(E: Expressions, subject: TaskSubject, law: LimitsLaw) -> LimitedLaw:
    """``torque(q, v, value, rate, acceleration, t) -> guard, ...``, of a law of one task.

    Raises
    ------
    NotActuatedError, InputError, SingularityError
        As `task_function`.
    """
    asked, found, guard = guarded_efforts(E, subject)
    given = [E.q, E.v, *asked.inputs, *E.context.values()], ["q", "v", *NAMES, *E.context]
    return limited_efforts(E, subject, law, "torque", given, found, {"guard": guard})


def limited_efforts(
    E: Expressions,
    subject: TaskSubject,
    law: LimitsLaw,
    name: str,
    given: tuple[list[SX], list[str]],
    found: TaskEfforts,
    more: dict[str, SX],
) -> LimitedLaw:
    """The efforts of a law of one task as `limited` takes them; one of `more` is its guard."""
    u, a, base, guard = found.u, found.a, found.base(), more["guard"]
    if subject.at_reference or subject.law.natural:  # not what these efforts cause
        a, base, guard = as_it_moves(E, law, u, base[0], guard)
    return limited(E, law, name, given, {**more, "guard": guard}, (u, a), base)


def limited(
    E: Expressions,
    law: LimitsLaw,
    name: str,
    given: tuple[list[SX], list[str]],
    more: dict[str, SX],
    asked: tuple[SX, SX],
    base: tuple[SX, SX],
) -> LimitedLaw:
    """A law of these inputs, with outputs of its own in front of those for the limits.

    `asked` and `base` are efforts and the acceleration of the coordinates.
    """
    ca, at = casadi_module(), limited_coordinates(E, law.bound)

    def both(efforts: SX, a: SX) -> SX:
        return ca.densify(ca.vertcat(efforts, at.accelerations(a)))

    first = {
        **more, "asked": both(*asked), "x": at.positions, "x_rate": at.velocities,
        "motor_rates": ca.densify(ca.SX(E.mech.B.T) @ E.v),
    }  # fmt: skip
    if law.fast:
        first["a"] = ca.densify(asked[1])
    found = dict(first)
    if law.policy == "scale":
        found["base"] = both(*base)
    responding = {}
    if law.policy != "raise" or law.fast:
        responding = response(E, at, law.fast)
    found |= responding
    inputs, names = given
    function = ca.Function(name, inputs, list(found.values()), names, list(found))
    ahead = _ahead(E, law, name) if law.fast else ()
    return LimitedLaw(function, tuple(first), tuple(responding), ahead)


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


def response(E: Expressions, at: LimitedCoordinates, all_too: bool) -> dict[str, SX]:
    """H (nu, nu), Y (n, nu), those of all coordinates if they are wanted, and guard."""
    ca, K, tree = casadi_module(), motor_constraints(E), SymbolicTree(E)
    H, gamma, per_effort = responding(K, tree)
    found = {"H": H, "Y": at.moved(gamma) @ per_effort}
    if all_too:
        found |= {"gamma": gamma, "per_effort": per_effort}
    found["response_guard"] = total([*K.bordered.guard, *tree.guard])
    return {name: ca.densify(x) for name, x in found.items()}


def _ahead(E: Expressions, law: LimitsLaw, name: str) -> tuple[Any, Any]:
    """`LimitedLaw.ahead`."""
    ca, mech, n, k = casadi_module(), E.mech, len(law.bound.names), E.partition.independent.size
    asked, u = ca.SX.sym("asked", mech.nu + n), ca.SX.sym("u", mech.nu)
    a, gamma = ca.SX.sym("a", mech.nv), ca.SX.sym("gamma", k, mech.nv)
    per_effort = ca.SX.sym("per_effort", mech.nu, k)
    nothing = ca.SX.zeros(k)
    moved = caused(nothing, per_effort.T, u, asked[: mech.nu])
    step, late_v = a_tick_on(E.v, caused(a, gamma.T, moved, nothing), law.dt)
    late_q, _, turned = placed_function(E).call([E.q, ca.vertcat(step, E.v)], True, False)
    tick_on = ca.Function(
        f"{name}_tick_on", [E.q, E.v, asked, a, gamma, per_effort, u], [late_q, late_v, turned],
        ["q", "v", "asked", "a", "gamma", "per_effort", "u"], ["late_q", "late_v", "turned"],
    )  # fmt: skip
    Y = ca.SX.sym("Y", mech.nu, n)
    reached = caused(asked[mech.nu :], Y.T, u, asked[: mech.nu])
    of_limited = ca.Function(f"{name}_caused", [asked, Y, u], [reached], ["asked", "Y", "u"], ["a"])
    return tick_on, of_limited


def bounding_functions(tick: float) -> list[Any]:
    """The bounds of laws/acceleration_bounds.py as functions of scalars: ``by_velocity``,
    ``led_back``, ``by_position`` and ``at_both_ends``."""
    ca = casadi_module()
    n = Operations(ca.fmin, ca.fmax, ca.logic_and, ca.sqrt, lambda c, x, y: ca.if_else(c, x(), y()))

    def function(law: Callable[..., SX], names: str) -> Any:
        symbols = [ca.SX.sym(name) for name in names.split()]
        found = law(n, *symbols, tick)
        return ca.Function(law.__name__, symbols, [found], names.split(), ["most_allowed"])

    return [
        function(by_velocity, "v v_max size"),
        function(led_back, "room v v_min size"),
        function(by_position, "room v v_min brake size"),
        function(at_both_ends, "least most v change"),
    ]


def as_it_moves(
    E: Expressions, law: LimitsLaw, u: SX, base: SX, guard: SX
) -> tuple[SX, tuple[SX, SX], SX]:
    """The accelerations that efforts u and base cause, and guard, where these were not found for
    them: where gravity alone is compensated, or friction at the reference, which is not what
    acts."""
    motion, more = caused_by(E, law)
    return motion(u), (base, motion(base)), total([guard, *more])


def caused_by(E: Expressions, law: LimitsLaw) -> tuple[Callable[[SX], SX], list[SX]]:
    """A function u -> a, the acceleration of the coordinates, and its guard; zero if no joint has
    limits."""
    ca, B = casadi_module(), casadi_module().SX(E.mech.B)
    if not law.bound.names:
        return lambda u: ca.SX.zeros(E.mech.nv), []
    K, tree = motor_constraints(E), SymbolicTree(E)
    motion = forward(K, tree, ca.SX.zeros(K.unit.size), 1)
    return lambda u: motion(B @ u), [*K.bordered.guard, *tree.guard]
