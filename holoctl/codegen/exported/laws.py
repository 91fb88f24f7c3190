"""The functions of an exported controller.

The laws of `holoctl.codegen.laws` with a certificate: closure and velocity error, and the residual
of the solution in the constraints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Array
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.exported.standing import StandingExport, standing_export
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.border_expressions import Sensing
from holoctl.codegen.laws.closed_state import ClosedStateLaw, closed_state
from holoctl.codegen.laws.computed_torque import at_reference, errors_function
from holoctl.codegen.laws.inverse_dynamics import holding_function, inverse_function
from holoctl.codegen.laws.limited import (
    LimitedLaw,
    as_it_moves,
    caused_by,
    limited,
    limited_efforts,
)
from holoctl.codegen.laws.residuals import broken_rows, measures
from holoctl.codegen.laws.task import NAMES, TaskEfforts, task_efforts, task_reference
from holoctl.codegen.matrices import dense, total
from holoctl.codegen.task_law_options import TaskSubject
from holoctl.control.computed_torque import ComputedTorque
from holoctl.control.limit_policies import LimitsLaw
from holoctl.dynamics.actuation import effort_scales
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Laws", "TaskExport", "exported_laws"]


@dataclass(frozen=True, eq=False)
class TaskExport:
    """A law of one task.

    Attributes
    ----------
    subject : TaskSubject
    function : ``task(q, v, value, rate, acceleration[, t])``
        ``-> u, guard, closed, moved, speed, kept, size, missed, singular``, as `Laws.law`; missed
        is of the rows of the task, singular their part of the guard.
    limited : LimitedLaw or None
        With limits, its replacement, as `Laws.limited_law`.
    """

    subject: TaskSubject
    function: Any
    limited: LimitedLaw | None


@dataclass(frozen=True, eq=False)
class Laws:
    """CasADi functions, and what the code around them depends on.

    Attributes
    ----------
    controller : ComputedTorque or None
        None also where its motors have no positions of their own.
    law : ``law(q, v, target[, rates, share][, t])``
        ``-> u, guard, closed, moved, speed, kept, size, missed``. Errors, rates and what they are
        compared with, the acceleration likewise, over all rows. Where there are rates of motors,
        friction is that of the motion that has these for a share of 1, that of v for 0.
    matrix : ``matrix(q[, t]) -> A``
    errors : ``errors(q, v, q_ref, v_ref) -> e, rate``, or None without a controller
    hold : ``hold(q, v[, t]) -> u, guard, closed, moved, speed``, or None if it is not needed
    timed : bool
        Whether there is a t.
    at_reference : bool
        Whether there are rates.
    closed_state : ClosedStateLaw or None
        The estimator of the closed state; None without.
    limits : LimitsLaw or None
        Of the controller; None without.
    limited_law, limited_hold : LimitedLaw or None
        With limits, the replacements of `law` and `hold`, whose outputs are those that limits need
        instead of u. The efforts of holding then have a ``command`` added, the third input.
    task : TaskExport or None
        The torque of a law of one task; there is no controller then.
    standing : StandingExport or None
        The law of a controller on unilateral contacts, which replaces the others.
    parameters : dict of str to array
        The last inputs of the laws, after t, with their values here.
    """

    controller: ComputedTorque | None
    law: Any
    matrix: Any
    errors: Any
    hold: Any
    timed: bool
    at_reference: bool
    closed_state: ClosedStateLaw | None
    limits: LimitsLaw | None
    limited_law: LimitedLaw | None
    limited_hold: LimitedLaw | None
    task: TaskExport | None
    standing: StandingExport | None = None
    parameters: dict[str, Array] = field(default_factory=dict)

    @property
    def controlled(self) -> bool:
        """Whether there is the torque of a controller."""
        return self.controller is not None or self.tasked is not None

    @property
    def tasked(self) -> Any:
        """The function of tasks; None for a controller of motors."""
        if self.standing is not None:
            return self.standing.of_tasks
        return None if self.task is None else self.task.function

    @property
    def references(self) -> tuple[str, ...]:
        """What a torque follows."""
        return ("q_ref", "v_ref", "a_ref") if self.tasked is None else tuple(NAMES)

    def measures(self, asked: list[Any]) -> list[Array]:
        """Guard, closed, moved and speed at the inputs of `measured`."""
        law = self.law if self.standing is None else self.standing.terms
        found = dict(zip(law.name_out(), law.call(asked), strict=True))
        return [np.array(found[x]).ravel() for x in ("guard", "closed", "moved", "speed")]

    def measured(self, mech: Mechanism, q: Array, v: Array, target: Array, t: float) -> list[Any]:
        """What the law takes for friction at the measured rates."""
        at = [np.zeros(mech.nu), 0.0] if self.at_reference else []
        return [q, v, target, *at, *self.context(t)]

    def context(self, t: float) -> list[Any]:
        """The last inputs of the laws: time, if there is one, and parameters."""
        return [*([t] if self.timed else []), *self.parameters.values()]


def exported_laws(
    E: Expressions,
    controller: ComputedTorque | None,
    weights: Array | None,
    sensing: Sensing | None,
    limits: LimitsLaw | None,
    of_task: TaskSubject | None = None,
) -> Laws:
    ca, mech = casadi_module(), E.mech
    errors = None if controller is None else errors_function(mech)
    controller = None if errors is None else controller
    target = ca.SX.sym("target", mech.nu)
    on_ground = of_task is not None and of_task.own.standing is not None
    on_ground |= controller is not None and controller._standing is not None
    moved = controller is not None and at_reference(E, controller) and not on_ground
    at = [ca.SX.sym("rates", mech.nu), ca.SX.sym("share")] if moved else []
    named = ["rates", "share"][: len(at)]
    given = [E.q, E.v, target, *at]
    inverse = inverse_function(E, weights, "project", at_reference=moved)
    u, a, guard = inverse.call([*given, *E.context.values()], True, False)
    off = measures(E)
    state = [_dense(off.errors), _dense(off.rates), off.speed]
    kept, redundant, size = broken_rows(E, a)
    outputs = [u, guard, *state, _dense([*kept, *redundant]), size, ca.SX(mech.B.T) @ a - target]
    holding: list[SX] = []
    if controller is not None and controller.compensation == "gravity":
        holding = holding_function(E, weights).call([E.q, *E.context.values()], True, False)
        holding += state
    A = _matrix(E)
    forces = [x for x in (E.forces.friction, E.forces.others) if x is not None]
    of_a_task = None if of_task is None or on_ground else _task(E, of_task)
    everything = [*outputs, *holding, *forces, A]
    everything += [] if of_a_task is None else of_a_task.outputs.values()
    timed = any(bool(ca.depends_on(ca.vec(x), E.t)) for x in everything)
    t, label = ([E.t], ["t"]) if timed else ([], [])
    more = {x: y for x, y in E.context.items() if timed or x != "t"}
    results = ["u", "guard", "closed", "moved", "speed", "kept", "size", "missed"]
    names = ["q", "v", "target", *named, *more]
    limited_law = limited_hold = None
    if limits is not None:
        still = [E.q, E.v, ca.SX.zeros(mech.nu), *at, *E.context.values()]
        base = inverse.call(still, True, False)[:2]
        if moved:
            a, base, guard = as_it_moves(E, limits, u, base[0], guard)
        own = dict(zip(results[1:], [guard, *outputs[2:]], strict=True))
        inputs = [*given, *more.values()], names
        limited_law = limited(E, limits, "law", inputs, own, (u, a), base)
    if limits is not None and holding:
        limited_hold = _limited_hold(E, limits, dict(zip(results, holding, strict=False)), more)
    return Laws(
        controller,
        ca.Function("law", [*given, *more.values()], outputs, names, results),
        ca.Function("matrix", [E.q, *t], [A], ["q", *label], ["A"]),
        errors,
        ca.Function("hold", [E.q, E.v, *more.values()], holding, ["q", "v", *more], results[:5])
        if holding
        else None,
        timed,
        moved,
        None if sensing is None else closed_state(E, sensing),
        limits,
        limited_law,
        limited_hold,
        None if of_a_task is None else _task_export(E, of_a_task, limits, more),
        standing_export(E, controller, of_task, timed),
        E.parameters.usual,
    )


class _TaskOutputs(NamedTuple):
    """A law of one task: its reference, efforts, and the outputs of the function ``task``."""

    subject: TaskSubject
    asked: list[SX]
    found: TaskEfforts
    outputs: dict[str, SX]


def _task(E: Expressions, subject: TaskSubject) -> _TaskOutputs:
    asked, off = task_reference(subject), measures(E)
    found = task_efforts(E, subject, asked)
    kept, redundant, size = broken_rows(E, found.a)
    return _TaskOutputs(subject, asked.inputs, found, {
        "u": found.u, "guard": found.guard, "closed": _dense(off.errors),
        "moved": _dense(off.rates), "speed": off.speed, "kept": _dense([*kept, *redundant]),
        "size": size, "missed": _dense(found.missed), "singular": found.singular,
    })  # fmt: skip


def _task_export(
    E: Expressions, task: _TaskOutputs, limits: LimitsLaw | None, more: dict[str, SX]
) -> TaskExport:
    given = [E.q, E.v, *task.asked, *more.values()], ["q", "v", *NAMES, *more]
    results, own = list(task.outputs), {x: y for x, y in task.outputs.items() if x != "u"}
    outputs = list(task.outputs.values())
    function = casadi_module().Function("task", given[0], outputs, given[1], results)
    if limits is None:
        return TaskExport(task.subject, function, None)
    kept = limited_efforts(E, task.subject, limits, "task", given, task.found, own)
    return TaskExport(task.subject, function, kept)


def _limited_hold(
    E: Expressions, limits: LimitsLaw, holding: dict[str, SX], more: dict[str, SX]
) -> LimitedLaw:
    """The efforts of holding with a command."""
    command = casadi_module().SX.sym("command", E.mech.nu)
    held, own = holding["u"], {x: y for x, y in holding.items() if x != "u"}
    motion, guard = caused_by(E, limits)
    own["guard"] = total([own["guard"], *guard])
    given = [E.q, E.v, command, *more.values()], ["q", "v", "command", *more]
    u = held + command
    return limited(E, limits, "hold", given, own, (u, motion(u)), (held, motion(held)))


def _matrix(E: Expressions) -> SX:
    """The kept rows above those of the motors, scaled: singular where the law is."""
    mech = E.mech
    u_scale, _ = effort_scales(mech)
    rows = [
        {k: float(unit * mech.column_scale[k]) * x for k, x in row.items()}
        for unit, row in zip(mech.row_scale[E.partition.rows], E.rows.jacobian, strict=True)
    ]
    for unit, column in zip(u_scale, mech.B.T, strict=True):
        driven = np.flatnonzero(column).tolist()
        rows.append({k: float(unit * column[k] * mech.column_scale[k]) for k in driven})
    return dense(rows, mech.nv)


def _dense(entries: list[SX]) -> SX:
    """A column of them, with at least one entry."""
    ca = casadi_module()
    return ca.densify(ca.vertcat(*entries)) if entries else ca.SX.zeros(1)
