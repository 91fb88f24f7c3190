"""Units of motors: those of their efforts, and of their positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.coordinates import translational

__all__ = ["common_unit", "motor_units"]


def motor_units(mech: Mechanism) -> list[str]:
    """The unit of each motor: N if it drives lengths alone, N m for angles alone, else empty."""
    length = translational(mech.model)
    found = []
    for column in (mech.B != 0.0).T:
        kinds = set(np.where(length[column], "N", "N m").tolist())
        found.append(kinds.pop() if len(kinds) == 1 else "")
    return found


def common_unit(units: Sequence[str]) -> str:
    """The unit of all of these motors, as a label has it; both if they differ."""
    return units[0] if len({*units}) == 1 and units[0] else "N m or N"
