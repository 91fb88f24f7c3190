"""Position errors and rates of the motors, which the feedback of computed torque multiplies."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.angles import wrapped
from holoctl.base.checks import Vector, as_given, numbers
from holoctl.base.errors import InputError
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motors import position_reader

__all__ = ["FRICTION_AT", "check_finite", "motor_rates", "position_error"]

FRICTION_AT = ("reference", "measured")
"""The rates at which friction may be compensated."""


def motor_rates(mech: Mechanism) -> Callable[[Vector], Vector]:
    """A function (v) that gives ``B' v`` (nu,)."""
    if not mech.actuated:
        return np.ascontiguousarray(mech.B.T).dot
    return itemgetter(np.argmax(mech.B, axis=0))  # B selects


def position_error(mech: Mechanism) -> Callable[[Vector, Any], Vector]:
    """A function (q, q_ref) that gives e (nu,), from the motors' positions at q to q_ref."""
    nu, places = mech.nu, mech.motors
    at, turning, missing = position_reader(places), places.turning, places.missing
    turns = bool(turning.size)
    for_motors = (nu,) if mech.actuated else None

    def error_of(q: Vector, q_ref: Any) -> Vector:
        wanted = q_ref if type(q_ref) is np.ndarray else np.asarray(numbers("q_ref", q_ref))
        if wanted.shape == for_motors:
            if missing:
                raise InputError(
                    f"motor {missing}, which has no position of its own; give q_ref as a "
                    f"whole configuration, shape ({mech.nq},)"
                )
            e: Vector = as_given("q_ref", wanted, nu) - at(q)
            if turns:  # the shorter way round
                e[turning] = wrapped(e[turning])
            return e
        if wanted.shape == (mech.nq,):
            if mech.nq != mech.nv:
                wanted = check_configuration(mech, wanted, "q_ref")
            difference: Vector = pin.difference(mech.model, q, numbers("q_ref", wanted))
            whole: Vector = mech.B.T.dot(difference)
            return whole
        motors = f"({nu},), motor positions, or " if for_motors else ""
        raise InputError(
            f"q_ref must have shape {motors}({mech.nq},), a configuration; got {wanted.shape}"
        )

    return error_of


def check_finite(**inputs: Any) -> None:
    """Raise `InputError` with the names of inputs that are not finite; other checks report inputs
    that are no arrays."""
    bad = []
    for name, x in inputs.items():
        try:
            numbers_of_x = numbers(name, x)
        except InputError:
            continue
        if not np.isfinite(numbers_of_x).all():
            bad.append(name)
    if bad:
        raise InputError(f"{', '.join(bad)} must be finite, so no torque is given") from None
