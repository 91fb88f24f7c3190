"""Units of efforts, and a sentence on unbalanced efforts."""

from __future__ import annotations

from holoctl.base.linalg import largest
from holoctl.dynamics.inverse import InverseDynamics
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motor_units import motor_units

__all__ = ["motor_units", "position_units", "unbalanced_words"]


def position_units(mech: Mechanism) -> list[str]:
    """The unit of the position of each motor: m, rad, or empty if it drives both."""
    return [{"N": "m", "N m": "rad"}.get(unit, "") for unit in motor_units(mech)]


def unbalanced_words(found: InverseDynamics) -> str:
    """A sentence on the effort that motions without motor need and the motors cannot produce."""
    left = largest(found.unbalanced)
    return f"On motions without motor {left:.2g} N m or N are left unbalanced."
