"""Positions and motions of the limited coordinates, of the tree and of cut joints.

rate = J v        d rate / dt = J a + bias

Constant efforts do not cause a constant acceleration: after a tick it has changed by
`change_in_a_tick`, see laws/acceleration_bounds.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, read_only
from holoctl.base.errors import HoloctlError
from holoctl.base.tolerances import WITHIN_LIMIT
from holoctl.laws.acceleration_bounds import LimitedCoordinates, a_tick_on
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = [
    "LimitViolation",
    "beyond_limits",
    "change_in_a_tick",
    "coordinates_at",
    "coordinates_of_tree",
    "positions_at",
]


def coordinates_of_tree(bound: BoundLimits, q: Vector, v: Vector) -> tuple[Vector, Vector]:
    """Positions and velocities of the limited coordinates of the tree."""
    x = q.take(bound.places)
    x[bound.places < 0] = 0.0
    return x, v.take(bound.columns)


def coordinates_at(
    mech: Mechanism, bound: BoundLimits, q: Vector, v: Vector, t: float,
    kin: Kinematics | None = None,
) -> LimitedCoordinates:  # fmt: skip
    """All limited coordinates; `kin` of this state is computed if it is needed and not given."""
    x, rates = coordinates_of_tree(bound, q, v)
    if not bound.cut:
        return LimitedCoordinates(x, rates, *_selected(mech, bound), bound.columns)
    J, bias = _selected(mech, bound)
    if kin is None:
        kin = kinematics(mech.model, workspace(mech), q, v, t)
    motions = [(joint.at(kin), joint.bias(kin), i) for joint, i in bound.cut]
    here = [m.value[i] if m.value.size == m.rate.size else 0.0 for m, _, i in motions]
    return LimitedCoordinates(
        np.concatenate([x, here]),
        np.concatenate([rates, [m.rate[i] for m, _, i in motions]]),
        np.vstack([J, [m.jacobian[i] for m, _, i in motions]]),
        np.concatenate([bias, [b[i] for _, b, i in motions]]),
        None,
    )


def positions_at(mech: Mechanism, bound: BoundLimits, q: Vector, t: float = 0.0) -> Vector:
    """The positions of all limited coordinates, without their motion."""
    rest = np.zeros(mech.nv)
    x, _ = coordinates_of_tree(bound, q, rest)
    if not bound.cut:
        return x
    kin = kinematics(mech.model, workspace(mech), q, rest, t)
    here = [(joint.at(kin), i) for joint, i in bound.cut]
    cut = [m.value[i] if m.value.size == m.rate.size else 0.0 for m, i in here]
    return np.concatenate([x, cut])


def _selected(mech: Mechanism, bound: BoundLimits) -> tuple[Array, Vector]:
    """J and bias of the coordinates of the tree."""
    known: dict[bytes, tuple[Array, Vector]] = mech.per_thread("limited coordinates", dict)
    key = bound.columns.tobytes()
    if key not in known:
        columns = bound.columns
        known[key] = read_only(np.eye(mech.nv)[columns]), read_only(np.zeros(columns.size))
    return known[key]


def change_in_a_tick(
    accelerate: Callable[[Vector, Vector, Vector, float], Vector],
    mech: Mechanism, bound: BoundLimits, q: Vector, v: Vector, a: Vector, tau: Vector, t: float,
    dt: float,
) -> Vector:  # fmt: skip
    """The change (n,) of the accelerations of the limited coordinates within a tick dt, s, under
    constant efforts tau (nv,) on all coordinates, which cause a at its start. `accelerate` are the
    forward dynamics (q, v, tau, t) -> a. Zero if the mechanism would come to a singular state
    within the tick, or out of reach: the change is unknown then.
    """
    step, late = a_tick_on(v, a, dt)
    try:
        there = pin.integrate(mech.model, q, step)
        then = accelerate(there, late, tau, t + dt)
    except HoloctlError:
        return np.zeros(len(bound.names))
    found: Vector
    if not bound.cut:
        found = (then - a)[bound.columns]
        return found
    found = coordinates_at(mech, bound, there, late, t + dt).accelerations(then)
    found -= coordinates_at(mech, bound, q, v, t).accelerations(a)
    return found


class LimitViolation(NamedTuple):
    """A coordinate that is beyond its position limits.

    Attributes
    ----------
    name : str
    column, place : int
        Its indices in v and in q; -1 for a cut joint.
    position, lower, upper : float
        rad or m.
    """

    name: str
    column: int
    place: int
    position: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return (
            f"{self.name!r} is at {self.position:.4g}, its limits are {self.lower:.4g} to "
            f"{self.upper:.4g}"
        )


def beyond_limits(mech: Mechanism, q: Vector, t: float = 0.0) -> tuple[LimitViolation, ...]:
    """The coordinates, cut joints too, that are outside ``hc.limits_of(mech).position`` at q."""

    def positions() -> BoundLimits:
        return bound_limits(mech, Limits(position=limits_of(mech).position))

    bound = mech.per_thread("position_limits", positions)
    if not bound.names:
        return ()
    x = positions_at(mech, bound, q, t)
    lower, upper = bound.position
    far = WITHIN_LIMIT * bound.units
    none = np.full(x.size - bound.columns.size, -1)
    columns, places = np.append(bound.columns, none), np.append(bound.places, none)
    return tuple(
        LimitViolation(
            bound.names[i],
            int(columns[i]),
            int(places[i]),
            *map(float, (x[i], *bound.position[:, i])),
        )
        for i in np.flatnonzero((x < lower - far) | (x > upper + far))
    )
