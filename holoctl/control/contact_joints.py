"""Limits of joints beside contacts: bounds of accelerations, which the law keeps if it can.

    least <= S y + a0 <= most        of the n limited coordinates, by the motion y

The bounds are those of limited inverse dynamics: laws/acceleration_bounds.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.control.limit_policies import LimitsLaw
from holoctl.control.viability_kernel import acceleration_bounds
from holoctl.laws.acceleration_bounds import LimitedCoordinates

__all__ = ["JointRows", "joint_rows"]


class JointRows(NamedTuple):
    """The bounds at a state.

    Attributes
    ----------
    law : LimitsLaw
    at : LimitedCoordinates
    S : (n, k) array
    least, most : (n,) arrays
        Of ``S y``.
    """

    law: LimitsLaw
    at: LimitedCoordinates
    S: Array
    least: Vector
    most: Vector

    def names(self, limiting: Vector) -> tuple[str, ...]:
        """The names of the limits whose entry (n,) is not zero."""
        none = np.zeros(self.law.mech.nu)
        return self.law.names(
            self.at.positions, self.at.velocities, np.concatenate([none, limiting])
        )


def joint_rows(law: LimitsLaw, at: LimitedCoordinates, N: Array, a0: Vector) -> JointRows:
    """The bounds, for the motions ``a = N y + a0``."""
    least, most = acceleration_bounds(law.bound, law.braking, at.positions, at.velocities, law.dt)
    here = at.accelerations(a0)
    return JointRows(law, at, at.moved(N), least - here, most - here)
