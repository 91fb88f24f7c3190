"""A mechanism with a payload: its inertia is added to that of the body of a frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import positive
from holoctl.base.errors import InputError
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import resolve_frame

__all__ = ["with_payload"]


def with_payload(mech: Mechanism, payload: Any) -> Mechanism:
    """The mechanism with a payload (frame, mass) or (frame, pin.Inertia); the same object for None.

    Raises
    ------
    InputError
        For another type of payload, an unknown frame, a frame of the world, a mass that is not
        positive.
    """
    if payload is None:
        return mech
    if not isinstance(payload, (tuple, list)) or len(payload) != 2:
        raise InputError(
            "payload must be a pair (frame, mass in kg) or (frame, pin.Inertia); got "
            f"{str(payload)[:60]!r}"
        )
    name, what = payload
    frame = resolve_frame(mech.model, name, "payload")
    if not frame.joint:
        raise InputError(f"payload: {name!r} is fixed to the world; name a frame of a moving body")
    if not isinstance(what, pin.Inertia):
        mass = positive("payload: mass", what, "kg")
        what = pin.Inertia(mass, np.zeros(3), np.zeros((3, 3)))
    model = mech.model.copy()
    inertias = model.inertias
    inertias[frame.joint] = inertias[frame.joint] + frame.placement.act(what)
    return mech.with_model(model)
