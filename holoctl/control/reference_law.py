"""The law of a controller in the coordinates of its motors, wherever state and efforts come from.

e = q_ref - q_motors        wrapped to half a turn for motors that turn without end
command = kd (v_ref - B' v) + kp e + integral

full      a_ref + command is the target of the inverse dynamics
gravity   command is added to the efforts of holding
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.angles import wrapped
from holoctl.base.checks import Vector, as_given, finite, numbers, stored
from holoctl.base.errors import InputError
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motors import position_reader

__all__ = ["FRICTION_AT", "Efforts", "ReferenceLaw", "check_finite", "position_error"]

FRICTION_AT = ("reference", "measured")
"""Rates that friction may be compensated at."""

Efforts = Callable[[Vector, Vector, Vector | None, float, Vector | None, Vector | None], Vector]
"""efforts(q, v, target, t, out, rates) -> u of the inverse dynamics; those that hold still without
a target, and with rates of the motors, friction of the motion that has these."""


@dataclass(frozen=True, eq=False)
class ReferenceLaw:
    """See the head of this module.

    Attributes
    ----------
    mech : Mechanism
    kp, kd : (nu,) arrays
    compensation, friction_at : str
        As in `ComputedTorque`.
    error_of : function (q, q_ref) -> (nu,) array
        e.
    """

    mech: Mechanism
    kp: Vector
    kd: Vector
    compensation: str
    friction_at: str
    error_of: Callable[[Vector, Any], Vector] = field(init=False, repr=False)
    _command: Callable[[Vector, Vector, Any, Vector], Vector] = field(init=False, repr=False)
    _rest: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "error_of", position_error(self.mech))
        object.__setattr__(self, "_rest", np.zeros(self.mech.nu))
        object.__setattr__(self, "_command", _command(self.mech, self.kp, self.kd))

    def base(self, v_ref: Vector) -> tuple[Vector | None, Vector | None]:
        """Target and rates of the motion that leaves the motors as they are: without acceleration;
        where only gravity is compensated, at rest."""
        if self.compensation == "full":
            return self._rest, v_ref if self.friction_at == "reference" else None
        return None, None

    def torque(
        self, efforts: Efforts, q: Vector, v: Vector, q_ref: Any, v_ref: Vector, a_ref: Vector,
        t: float, out: Vector | None, integral: Vector | None = None,
    ) -> Vector:  # fmt: skip
        """The motor efforts at a state that was checked."""
        command = self._command(q, v, q_ref, v_ref)
        if integral is not None:
            command += integral
        if self.compensation == "full":
            rates = v_ref if self.friction_at == "reference" else None
            return efforts(q, v, a_ref + command, t, out, rates)
        u = efforts(q, v, None, t, None, None) + command
        if not (finite(u) and finite(a_ref)):  # all inputs, as on the other paths
            raise InputError("the torque is not finite")
        return u if out is None else stored("out", out, u)


def _command(
    mech: Mechanism, kp: Vector, kd: Vector
) -> Callable[[Vector, Vector, Any, Vector], Vector]:
    """A function (q, v, q_ref, v_ref) that gives ``kp e + kd (v_ref - B' v)``."""
    error_of = position_error(mech)
    if not mech.actuated:
        BT = np.ascontiguousarray(mech.B.T)
        return lambda q, v, q_ref, v_ref: kp * error_of(q, q_ref) + kd * (v_ref - BT.dot(v))
    motors = np.argmax(mech.B, axis=0)  # B selects
    places = mech.motors
    if places.turning.size:
        return lambda q, v, q_ref, v_ref: kp * error_of(q, q_ref) + kd * (v_ref - v.take(motors))
    at, nu, for_motors = position_reader(places), mech.nu, (mech.nu,)

    def law(q: Vector, v: Vector, q_ref: Any, v_ref: Vector) -> Vector:
        if type(q_ref) is np.ndarray and q_ref.shape == for_motors:  # one call less
            e = as_given("q_ref", q_ref, nu) - at(q)
        else:
            e = error_of(q, q_ref)
        command: Vector = kp * e + kd * (v_ref - v.take(motors))
        return command

    return law


def position_error(mech: Mechanism) -> Callable[[Vector, Any], Vector]:
    """A function (q, q_ref) that gives e (nu,), from the motors' positions at q to q_ref."""
    nu, places = mech.nu, mech.motors
    at, turning = position_reader(places), places.turning
    for_motors = (nu,) if mech.actuated else None

    def error_of(q: Vector, q_ref: Any) -> Vector:
        wanted = q_ref if type(q_ref) is np.ndarray else np.asarray(numbers("q_ref", q_ref))
        if wanted.shape == for_motors:
            if places.missing:
                raise InputError(
                    f"motor {places.missing}, which has no position of its own; give q_ref as a "
                    f"whole configuration, shape ({mech.nq},)"
                )
            e: Vector = as_given("q_ref", wanted, nu) - at(q)
            if turning.size:  # the shorter way round
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
    """Name the inputs that are not finite, if any is; what is no array has its own error."""
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
