"""Whether payload, gravity and friction may be parameters of a law."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from holoctl.base.checks import flag, listing, quoted
from holoctl.base.errors import InputError
from holoctl.control.limit_policies import LimitsLaw
from holoctl.control.tasks.center_of_mass_task import CenterOfMassTask
from holoctl.control.tasks.task_protocol import Task
from holoctl.forces.counterbalance import Counterbalance
from holoctl.forces.joint_friction import BoundFriction
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import Frame, resolve_frame

__all__ = ["check_braking", "check_friction", "payload_frame"]


def payload_frame(
    what: Any,
    mech: Mechanism,
    payload: Any,
    gravity: Any,
    law: LimitsLaw | None,
    tasks: Iterable[Task] = (),
) -> Frame | None:
    """The frame of a payload, checked with gravity; None without. `tasks` are those beside a law.

    Raises
    ------
    InputError
        For an unknown frame, or one that is fixed to the world, by name; for what depends on
        payload or gravity by constants of the model, with what to do.
    """
    flag("gravity", gravity)
    if payload is None and not gravity:
        return None
    owner = _owner(mech, payload is not None, gravity)
    if getattr(what, "contacts", None) is not None:
        raise InputError(f"{owner}: a controller on contacts has no such parameters; leave it out")
    if law is not None:
        check_braking(law, payload is not None, gravity)
    if gravity and (found := [x for x in mech.forces if isinstance(x, Counterbalance)]):
        raise InputError(
            f"{owner}: the counterbalance {quoted(found[0].default_name)} has the gravity of the "
            "model; leave out gravity=True, or the counterbalance"
        )
    return None if payload is None else _mounted(what, mech, payload, tasks)


def check_friction(mech: Mechanism, friction: Any) -> None:
    """Raise `InputError` unless there is one joint friction whose coefficients can change."""
    if not flag("friction", friction):
        return
    found = [x for x in mech.bound_forces if isinstance(x, BoundFriction)]
    if len(found) != 1 or not found[0].acting:
        has = "one without friction" if len(found) == 1 else f"{len(found)} of them"
        raise InputError(
            f"{mech.name}: friction: the inputs are coefficients of its JointFriction, but it has "
            f"{has}; give it one, with some friction in the joints whose coefficients may change: "
            "mech.with_forces([hc.JointFriction(viscous=0.1, coulomb=0.1)])"
        )


def check_braking(law: LimitsLaw, payload: bool, gravity: bool) -> None:
    """Raise `InputError` for a limit of position whose braking was found from the inertia and the
    gravity of the model, if one of them may change."""
    bound = law.bound
    known = np.isfinite(bound.acceleration).all(axis=0) | ~np.isfinite(bound.position).any(axis=0)
    names = [bound.names[i] for i in np.flatnonzero(~known)]
    if names and (payload or gravity):
        raise InputError(
            f"{_owner(law.mech, payload, gravity)}: limits of position of {listing(names)}: how "
            "hard they can be braked is known for the model alone; give acceleration= for them, of "
            "what the motors can do with every payload and gravity to come"
        )


def _owner(mech: Mechanism, payload: bool, gravity: bool) -> str:
    return f"{mech.name}: {' and '.join(['payload'] * payload + ['gravity'] * gravity)}"


def _mounted(what: Any, mech: Mechanism, payload: Any, beside: Iterable[Task]) -> Frame:
    if not isinstance(payload, str):
        raise InputError(f"payload must be the name of a frame; got {quoted(payload)}")
    frame = resolve_frame(mech.model, payload, "payload")
    if not frame.joint:
        raise InputError(f"payload: {payload!r} is fixed to the world; name one of a moving body")
    if getattr(what, "at_singular", "raise") == "damp":
        raise InputError(
            f"{mech.name}: payload: a damped task is damped by the inertia of the model; leave out "
            "at_singular='damp' or the payload"
        )
    tasks = getattr(what, "tasks", None) or (getattr(what, "task", None),)
    if any(isinstance(task, CenterOfMassTask) for task in (*tasks, *beside)):
        raise InputError(
            f"{mech.name}: payload: the centre of mass of the task is that of the model, without a "
            "payload; leave one of them out"
        )
    return frame
