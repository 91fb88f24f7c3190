"""The limits law of a controller, made once, and its warnings at the reference."""

from __future__ import annotations

import logging

import numpy as np

from holoctl.base.checks import listing
from holoctl.base.errors import HoloctlError
from holoctl.closing.assembly import assemble
from holoctl.control.braking_limits import braking_limits
from holoctl.control.limit_policies import LimitsLaw
from holoctl.control.limited_inverse_dynamics import limited_inverse_dynamics
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.limited_coordinates import coordinates_at
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["limits_law", "limits_law_of"]

HELD_STILL = 1e-4  # rad/s^2, m/s^2
"""Limits exclude holding still if they leave more than this acceleration."""


log = logging.getLogger(__name__)


def limits_law_of(mech: Mechanism, limits: Limits, policy: str, dt: float) -> LimitsLaw:
    """The law of these limits; a warning is logged if they exclude holding still at the reference.

    Raises
    ------
    InputError
        For limits that do not fit the mechanism, or of positions that the motors cannot brake.
    AssemblyError
        If a position is limited, no acceleration, and the reference cannot be assembled.
    """
    warned: set[object] = mech.per_thread("limits that were looked at", set)
    law, key = limits_law(mech, limits, policy, dt), (limits, policy, dt)
    if key not in warned:
        _warn_of_the_reference(law, limits)
        warned.add(key)
    return law


def limits_law(mech: Mechanism, limits: Limits, policy: str, dt: float) -> LimitsLaw:
    """The law of these limits, made once.

    Raises
    ------
    InputError, AssemblyError
        As `limits_law_of`.
    """
    known: dict[object, LimitsLaw] = mech.per_thread("limits", dict)
    bound, key = bound_limits(mech, limits), (limits, policy, dt)
    if key not in known:
        known[key] = LimitsLaw(mech, bound, braking_limits(mech, bound), policy, None, dt)
    return known[key]


def _warn_of_the_reference(law: LimitsLaw, limits: Limits) -> None:
    """Log which limits exclude holding still at the reference."""
    mech, bound = law.mech, law.bound
    rest, still = np.zeros(mech.nv), np.zeros(mech.nu)
    try:
        q = assemble(mech)[0]
        here = coordinates_at(mech, bound, q, rest, 0.0).positions
        out = (here < bound.position[0]) | (here > bound.position[1])
        for i in np.flatnonzero(out).tolist():
            lower, upper = bound.position[:, i]
            log.warning(
                "%s: limits: at the reference %r is at %.4g, outside its limits of position, %.4g "
                "to %.4g", mech.name, bound.names[i], here[i], lower, upper,
            )  # fmt: skip
        held = inverse_dynamics(mech, q, rest, still, inconsistent="project")
        found = limited_inverse_dynamics(
            mech, q, rest, still, Limits(effort=limits.effort, speed_torque=limits.speed_torque),
            inconsistent="project",
        )  # fmt: skip
    except HoloctlError:
        return  # the error is raised where it matters, by the controller
    missed = float(np.abs(found.a - held.a).max())
    if missed > HELD_STILL:
        log.warning(
            "%s: limits: %s cannot hold the mechanism still at the reference, which takes efforts "
            "of %s: it accelerates by up to %.3g rad/s^2 or m/s^2",
            mech.name, listing(found.saturated), np.round(held.u, 4).tolist(), missed,
        )  # fmt: skip
