"""The functions of an exported controller on unilateral contacts, and its torques by Python."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, listing
from holoctl.base.errors import InputError
from holoctl.codegen.c_text import comment, number
from holoctl.codegen.contacts_c import ContactSizes, contact_values
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.contact_terms import (
    broken_function,
    contact_terms,
    motor_rows,
    rows_of_tasks,
)
from holoctl.codegen.laws.residuals import left_out_rows
from holoctl.codegen.laws.task_rows import reference_pose, reference_size
from holoctl.codegen.task_law_options import TaskSubject
from holoctl.control.computed_torque import ComputedTorque
from holoctl.control.contact_motion import ReducedTerms, contact_motion
from holoctl.control.contact_paths import ContactPaths
from holoctl.control.contact_paths import motor_rows as rows_in_numbers
from holoctl.control.contact_rows import TILT, BoundContact
from holoctl.mechanism.mechanism import Mechanism

__all__ = [
    "StandingExport",
    "contacts_table",
    "standing_export",
    "standing_values",
]

MOST_CONTACTS = 31
"""A bit for each, in what C makes an unsigned long everywhere."""


@dataclass(frozen=True, eq=False)
class StandingExport:
    """A law on contacts.

    Attributes
    ----------
    paths : ContactPaths
        The law in Python, for accelerations of the motors.
    terms : ``terms(q, v, target[, t])``
        See `contact_terms`.
    of_tasks : ``task_terms(q, v, value, rate, acceleration[, t])``, or None
        Of a controller of tasks.
    broken : ``broken(q, v, y[, t]) -> kept, size``, or None
        The residual of a motion in all rows, and what it is compared with; None without redundant
        rows.
    subject : TaskSubject or None
        That controller.
    """

    paths: ContactPaths
    terms: Any
    of_tasks: Any
    broken: Any
    subject: TaskSubject | None

    @property
    def held(self) -> Mechanism:
        """The mechanism on bilateral contacts."""
        contacts = [one.contact for one in self.paths.contacts]
        return self.paths.mech.with_constraints(*(x for one in contacts for x in one.bilateral))

    def inverse(self, q: Vector, v: Vector, target: Vector, t: float) -> Vector:
        """The efforts for accelerations of the motors."""
        return self.paths.efforts(target, None, q, v, t, None)


def standing_export(
    E: Expressions, controller: ComputedTorque | None, subject: TaskSubject | None, timed: bool
) -> StandingExport | None:
    """The law of a controller; None if it has no contacts.

    Raises
    ------
    InputError
        For too many contacts, a partition of another mechanism, or tasks without expressions.
    """
    paths = subject.own.standing if subject is not None else getattr(controller, "_standing", None)
    if paths is None:
        return None
    _check(E, paths)
    rows, asked, count = motor_rows(E), None, E.mech.nu
    if subject is not None:
        asked = rows_of_tasks(E, subject.own.law, subject.held)
        count = max(count, asked.right.numel())
    return StandingExport(
        replace(paths, tasks=rows_in_numbers(E.mech)),
        contact_terms(E, paths, rows, "terms", count, timed, subject is None),
        None if asked is None else contact_terms(E, paths, asked, "task_terms", count, timed),
        broken_function(E, timed) if left_out_rows(E).size else None,
        subject,
    )


def _check(E: Expressions, paths: ContactPaths) -> None:
    """Raise `InputError` for what C on contacts does not have."""
    name = E.mech.name
    if len(paths.contacts) > MOST_CONTACTS:
        raise InputError(
            f"{name}: exported C has a bit for each contact, {MOST_CONTACTS} at most; got "
            f"{len(paths.contacts)}"
        )
    if paths.law.bound.names:
        raise InputError(
            f"{name}: exported C keeps limits of efforts on contacts, not those of joints "
            f"({listing(paths.law.bound.names, 6)}): give the controller limits="
            "hc.Limits(effort=..., speed_torque=...)"
        )


def standing_values(
    E: Expressions, standing: StandingExport, prefix: str, timed: bool
) -> dict[str, object]:
    """The values of the templates for contacts."""
    paths, terms = standing.paths, standing.terms
    size = {terms.name_out(i): terms.numel_out(i) for i in range(terms.n_out())}
    given = contact_values(
        E.mech, paths.contacts, paths.law.bound,
        ContactSizes(E.partition.independent.size, size["wanted"], _dependent(E, standing, timed)),
        paths.policy, prefix, standing.subject is None,
    )  # fmt: skip
    count = len(paths.contacts)
    given |= {
        "redundant": standing.broken is not None, "flat": number(float(np.cos(TILT))),
        "every_contact": f"{(1 << count) - 1}UL",
        "contacts_table": contacts_table(paths.contacts), "contacts_or_one": max(count, 1),
    }  # fmt: skip
    if standing.subject is not None:
        given |= _tasks(standing.subject)
    return given


def _dependent(E: Expressions, standing: StandingExport, timed: bool) -> int:
    """How many rows of contacts depend on others at the configuration of the export."""
    mech, t = E.mech, [0.0] if timed else []
    outputs = standing.terms.call([E.samples[0], np.zeros(mech.nv), np.zeros(mech.nu), *t])
    W, Z, c = (np.array(x) for x in outputs[:3])
    m = sum(one.scale.size for one in standing.paths.contacts)
    nu = mech.nu
    given, none = Z.shape[1] - m, np.zeros((0, W.shape[0]))
    J = Z[:, given:].T
    reduced = ReducedTerms(W, Z[:, given - 1], Z[:, :nu], J, c.ravel()[:m], none, np.zeros(0))
    found = contact_motion(reduced)
    return m if found is None else found.Y.shape[1] - nu


def contacts_table(contacts: tuple[BoundContact, ...]) -> str:
    """Contact by contact, what its forces are."""
    lines, first = [], 0
    for i, one in enumerate(contacts):
        last = first + one.scale.size - 1
        rubs = one.contact.friction > 0.0
        what = f"of {len(one.rows)} points, in the axes of the ground: " + (
            "x y z" if rubs else "z"
        )
        if one.sole is not None:
            what = "of a sole, in its axes, at the middle of its points: " + (
                "force x y z, moment x y z" if rubs else "force z, moment x y"
            )
        lines.append(f" *   {i}  force[{first}..{last}] {what}: {comment(one.name)}")
        first = last + 1
    return "\n".join(lines)


def _tasks(subject: TaskSubject) -> dict[str, object]:
    """The references of several tasks, one after the other."""
    lines, rotations, value, row = list[str](), list[str](), 0, 0
    for task in subject.own.law.tasks:
        along, turns = reference_pose(task)
        size = reference_size(task)
        what = f"position {' '.join('xyz'[i] for i in along)}" if along else "numbers, by rows"
        what = f"{what}, rotation matrix by rows" if turns else what
        labels = ", ".join(task.labels)
        lines.append(
            f" *   value[{value}..{value + size - 1}] {what}; rows {row} to "
            f"{row + len(task.labels) - 1}: {comment(labels)}"
        )
        if turns:
            rotations.append(f"value + {value + len(along)}")
        value, row = value + size, row + len(task.labels)
    return {
        "value_size": value, "task_rows": row, "tasks_table": "\n".join(lines),
        "rotations": " || ".join(f"!is_rotation({x})" for x in rotations) or "0",
        "turns": bool(rotations),
        "positions": int(rotations[0].removeprefix("value + ")) if rotations else 0,
    }  # fmt: skip
