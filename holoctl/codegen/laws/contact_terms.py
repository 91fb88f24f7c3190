"""The terms of the law of unilateral contacts as expressions; their oracle is `ContactPaths`.

    W = N' M N    g = N' (M a0 + h - F)    A = N' B    J N, c of contacts    T N, t of tasks

with a = N y + a0, and N the motions that the independent coordinates measure. The law is the
template contacts.c (codegen/contacts_c.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Array
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.computed_torque import errors_function
from holoctl.codegen.laws.constraints_and_tree import SymbolicTree, free_constraints
from holoctl.codegen.laws.residuals import broken_rows, measures
from holoctl.codegen.laws.task_rows import reference_size, shown, task_rows
from holoctl.codegen.matrices import column, dense, total
from holoctl.control.contact_paths import ContactPaths
from holoctl.control.contact_rows import BoundContact
from holoctl.control.task_space.law import TaskLaw
from holoctl.control.task_space.tasks_on_contacts import POSTURE, row_factor
from holoctl.dynamics.actuation import effort_scales

__all__ = [
    "RESULTS",
    "RowTerms",
    "broken_function",
    "contact_terms",
    "motor_rows",
    "rows_of_tasks",
]

RESULTS = ("W", "Z", "c", "wanted", "tilt", "rates", "guard", "closed", "moved", "speed")
"""The outputs of a function of terms."""


@dataclass(frozen=True, eq=False)
class RowTerms:
    """The weighted rows of tasks: symbols of a reference, T (n, nv), t (n, 1) without the part of
    a0, and their guard."""

    names: tuple[str, ...]
    symbols: tuple[SX, ...]
    jacobian: SX
    right: SX
    guard: tuple[SX, ...] = ()


def motor_rows(E: Expressions) -> RowTerms:
    """The rows of accelerations of the motors."""
    ca, mech = casadi_module(), E.mech
    target, scale = ca.SX.sym("target", mech.nu), ca.SX(effort_scales(mech)[0])
    return RowTerms(("target",), (target,), ca.diag(scale) @ ca.SX(mech.B.T), scale * target)


def rows_of_tasks(E: Expressions, law: TaskLaw, held: Array | None) -> RowTerms:
    """The rows of a law of tasks, each reference after the other, and of its posture; `held` are
    positions of motors.

    Raises
    ------
    InputError
        As `task_rows`.
    """
    ca, mech = casadi_module(), E.mech
    sizes = [reference_size(task) for task in law.tasks]
    counts = [task.scale.size for task in law.tasks]
    value, rate = ca.SX.sym("value", sum(sizes)), ca.SX.sym("rate", sum(counts))
    acceleration = ca.SX.sym("acceleration", sum(counts))
    values = ca.vertsplit(value, np.cumsum([0, *sizes]).tolist())
    rates, accelerations = (
        ca.vertsplit(x, np.cumsum([0, *counts]).tolist()) for x in (rate, acceleration)
    )
    J, right, guard = [], [], list[SX]()
    for i, task in enumerate(law.tasks):
        found, factor = task_rows(E, task, values[i]), ca.SX(row_factor(law, i))
        damping = law.damping[i]
        command = _times(law.stiffness[i], column(found.error)) + _times(
            np.zeros(counts[i]) if damping is None else damping, rates[i] - column(found.rate)
        )
        J.append(ca.diag(factor) @ dense(found.jacobian, mech.nv))
        right.append(factor * (accelerations[i] + command - column(found.drift)))
        guard += found.guard
    scale, posture = ca.SX(np.sqrt(POSTURE) * effort_scales(mech)[0]), law.posture
    braked = -posture.kd * (ca.SX(mech.B.T) @ E.v)
    if held is not None:
        none = ca.SX.zeros(mech.nu)
        e = errors_function(mech).call([E.q, E.v, ca.SX(held), none], True, False)[0]
        braked = braked + posture.kp * e
    J.append(ca.diag(scale) @ ca.SX(mech.B.T))
    right.append(scale * braked)
    return RowTerms(
        ("value", "rate", "acceleration"), (value, rate, acceleration), ca.vertcat(*J),
        ca.vertcat(*right), tuple(guard),
    )  # fmt: skip


def _times(gain: Array, x: SX) -> SX:
    """Of a diagonal or a matrix."""
    ca = casadi_module()
    return ca.SX(gain) * x if gain.ndim == 1 else ca.SX(gain) @ x


def contact_terms(
    E: Expressions,
    standing: ContactPaths,
    rows: RowTerms,
    name: str,
    count: int,
    timed: bool,
    short: bool = False,
) -> Any:
    """``name(q, v, reference[, t])`` -> `RESULTS`, with `count` rows of tasks, zeros after the
    given ones. `timed` is whether there is a t; `short`: the rows are those of motors, not in Z.

    ``Z = [A, T', g, J']``, or ``[A, g, J']``, has a row for each motion; tilt are the cosines
    between soles and their grounds, one for contacts without a sole; the other outputs are those of
    the state.

    Raises
    ------
    InputError
        As `task_rows`.
    """
    ca, mech, tree = casadi_module(), E.mech, SymbolicTree(E)
    K = free_constraints(E)
    N, B = K.basis(), ca.SX(mech.B)
    a0 = K.motion(ca.SX.zeros(N.shape[1]))
    W = N.T @ tree.inertia_times(N)
    g = K.along(tree.needed(a0, None))
    J, drift = _rows_of_contacts(E, standing.contacts)
    missing = count - rows.right.numel()
    T = ca.vertcat(rows.jacobian, ca.SX.zeros(missing, mech.nv))
    wanted = ca.vertcat(rows.right, ca.SX.zeros(missing)) - T @ a0
    Z = ca.horzcat(N.T @ B, *([] if short else [(T @ N).T]), g, (J @ N).T)
    off = measures(E)
    found = [
        W, Z, _filled(-(drift + J @ a0)), wanted, _filled(_tilts(E, standing.contacts)),
        B.T @ E.v, total([*E.guard, *K.guard, *tree.guard, *rows.guard]),
        _filled(column(off.errors)), _filled(column(off.rates)), off.speed,
    ]  # fmt: skip
    t, label = ([E.t], ["t"]) if timed else ([], [])
    return ca.Function(
        name, [E.q, E.v, *rows.symbols, *t], [ca.densify(x) for x in found],
        ["q", "v", *rows.names, *label], list(RESULTS),
    )  # fmt: skip


def broken_function(E: Expressions, timed: bool) -> Any:
    """``broken(q, v, y[, t]) -> kept, size``: the residual of the motion ``a = N y + a0`` in the
    kept and the redundant rows, and what it is compared with."""
    ca, K = casadi_module(), free_constraints(E)
    y = ca.SX.sym("y", K.unit.size)
    kept, redundant, size = broken_rows(E, K.motion(y))
    t, label = ([E.t], ["t"]) if timed else ([], [])
    return ca.Function(
        "broken", [E.q, E.v, y, *t], [ca.densify(column([*kept, *redundant])), size],
        ["q", "v", "y", *label], ["kept", "size"],
    )  # fmt: skip


def _filled(x: SX) -> SX:
    """A column with at least one entry."""
    return x if x.numel() else casadi_module().SX.zeros(1)


def _rows_of_contacts(E: Expressions, contacts: Sequence[BoundContact]) -> tuple[SX, SX]:
    """J (m, nv) and the drift (m, 1) of all contacts, scaled."""
    ca, J, drift = casadi_module(), [], []
    for one in contacts:
        for task in one.rows:
            found = task_rows(E, task, ca.SX.zeros(reference_size(task)))
            scale = ca.SX(task.scale)
            J.append(ca.diag(scale) @ dense(found.jacobian, E.mech.nv))
            drift.append(scale * column(found.drift))
    return ca.vertcat(ca.SX(0, E.mech.nv), *J), ca.vertcat(ca.SX(0, 1), *drift)


def _tilts(E: Expressions, contacts: Sequence[BoundContact]) -> SX:
    """The cosines of the angles between soles and their grounds; one without a sole."""
    ca, show, found = casadi_module(), shown(E.tree, E.v), []
    for one in contacts:
        if one.sole is None:
            found.append(ca.SX(1.0))
            continue
        seen = show(one.ground, one.frame)
        z = seen.R2 @ ca.SX(one.sole.placement.rotation[:, 2])
        found.append(ca.dot(seen.R1[:, 2], z))
    return column(found)
