"""Names of limits that act: motors plainly, those of joints with what is limited."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.control.viability_kernel import acceleration_bounds
from holoctl.mechanism.bound_limits import BoundLimits
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["joint_limit_names", "limit_names", "passed_names"]

Array = NDArray[np.float64]


def limit_names(
    mech: Mechanism, bound: BoundLimits, braking: Array, tick: float,
    positions: Vector, velocities: Vector, limiting: Vector,
) -> tuple[str, ...]:  # fmt: skip
    """The names of the limits whose entry of `limiting` (nu + n,) is not zero."""
    motors = [mech.actuator_names[i] for i in np.flatnonzero(limiting[: mech.nu]).tolist()]
    of_joints = limiting[mech.nu :]
    return *motors, *joint_limit_names(bound, braking, tick, positions, velocities, of_joints)


def passed_names(bound: BoundLimits, positions: Vector, velocities: Vector) -> tuple[str, ...]:
    """``name.position`` and ``name.velocity`` of the limits that are passed at this state."""
    found = []
    for what, x in (("position", positions), ("velocity", velocities)):
        limits = zip(bound.names, x.tolist(), *getattr(bound, what).tolist(), strict=True)
        found += [f"{name}.{what}" for name, at, low, high in limits if at < low or at > high]
    return tuple(found)


def joint_limit_names(
    bound: BoundLimits, braking: Array, tick: float,
    positions: Vector, velocities: Vector, limiting: Vector,
) -> tuple[str, ...]:  # fmt: skip
    """``name.position``, ``name.velocity`` or ``name.acceleration`` of the entries of `limiting`
    (n,) that are not zero: above zero the upper side acts, below the lower one."""
    if not limiting.any():
        return ()
    anywhere = np.full(bound.position.shape, np.inf) * [[-1.0], [1.0]]
    every, of_speed = (
        acceleration_bounds(replace(bound, position=x), braking, positions, velocities, tick)
        for x in (bound.position, anywhere)
    )
    found = []
    for i in np.flatnonzero(limiting).tolist():
        side = int(limiting[i] > 0.0)
        what = "position"
        if every[side][i] == bound.acceleration[side, i]:
            what = "acceleration"
        elif every[side][i] == of_speed[side][i]:
            what = "velocity"
        found.append(f"{bound.names[i]}.{what}")
    return tuple(found)
