"""The units of what is printed."""

from __future__ import annotations

import numpy as np

from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.coordinates import translational

__all__ = ["motor_units"]


def motor_units(mech: Mechanism) -> list[str]:
    """The unit of each motor: N where it drives lengths alone, N m where angles, else none."""
    length = translational(mech.model)
    found = []
    for column in (mech.B != 0.0).T:
        kinds = set(np.where(length[column], "N", "N m").tolist())
        found.append(kinds.pop() if len(kinds) == 1 else "")
    return found
