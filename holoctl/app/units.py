"""Units of efforts, and a sentence on unbalanced efforts."""

from __future__ import annotations

from holoctl.base.linalg import largest
from holoctl.dynamics.inverse import InverseDynamics
from holoctl.mechanism.motor_units import motor_units

__all__ = ["motor_units", "unbalanced_words"]


def unbalanced_words(found: InverseDynamics) -> str:
    """A sentence on the effort that motions without motor need and the motors cannot produce."""
    left = largest(found.unbalanced)
    return f"On motions without motor {left:.2g} N m or N are left unbalanced."
