"""Computed torque: feedback in the coordinates of the motors, through the inverse dynamics.

    e = q_ref - q_motors        wrapped to half a turn for continuous motors
    c = kp e + kd (v_ref - B' v) + integral

    full      u = inverse(a_ref + c)        friction at the rates v_ref, or at those measured
    gravity   u = holding + c               the efforts at rest, without friction

Reference: docs/derivations.md, "Computed torque". Tests compare with the same law over
`inverse_dynamics`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["MotorEfforts", "TorqueLaw", "base", "computed_torque", "feedback"]

MotorEfforts = Callable[..., Any]
"""efforts(target, rates, *state) -> u (nu,) of the inverse dynamics, with friction at these rates
of the motors, or at the measured ones for None; without a target, the efforts that hold at rest."""


class TorqueLaw(NamedTuple):
    """Gains and options.

    Attributes
    ----------
    kp, kd : (nu,)
    gravity : bool
        Whether gravity alone is compensated.
    at_reference : bool
        Whether friction is evaluated at the rates of the reference.
    """

    kp: Any
    kd: Any
    gravity: bool
    at_reference: bool


def feedback(law: TorqueLaw, e: Any, rate: Any, integral: Any = None) -> Any:
    """c (nu,) from the errors of positions and rates."""
    c = law.kp * e + law.kd * rate
    return c if integral is None else c + integral


def computed_torque(
    law: TorqueLaw, efforts: MotorEfforts, c: Any, v_ref: Any, a_ref: Any, *state: Any
) -> Any:
    """The efforts of the motors u (nu,), at a state in the form of the backend."""
    if law.gravity:
        return efforts(None, None, *state) + c
    return efforts(a_ref + c, v_ref if law.at_reference else None, *state)


def base(law: TorqueLaw, v_ref: Any, rest: Any) -> tuple[Any, Any]:
    """Target and rates of the inverse dynamics to which feedback is added: no acceleration of the
    motors, and rest if gravity alone is compensated."""
    return (None, None) if law.gravity else (rest, v_ref if law.at_reference else None)
