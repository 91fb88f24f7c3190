"""Which points of unilateral contacts are open, slide and stick, and their impacts.

Impact (positions do not change; Newton's restitution, Coulomb's friction with the end velocity):

    u+ = u- + W p        0 <= p_n,  u_n+ + e min(u_n-, 0) >= 0,  product zero
    |p_t| <= mu p_n,  opposite to u_t+ where that is not zero

Then the points that touch and do not separate are the contacts, and the accelerations decide which
of them stick, slide and leave (dynamics/contact_complementarity.py).
Derivation: docs/derivations-dynamics.md, "Simulation with contacts".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.errors import InconsistentError
from holoctl.base.linalg import largest, least_squares
from holoctl.dynamics.contact_complementarity import INDEPENDENT, complementarity_solution
from holoctl.dynamics.contact_forces import (
    OPEN,
    SLIDES,
    STICKS,
    mode_forces,
    regularity,
    sliding_solutions,
)
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.simulation.contact_points import ContactPoints, FreeMotion

__all__ = [
    "REGULAR", "STOPPED", "TOUCHES", "ContactMode", "Contacting", "after_impact", "contacting",
    "decided_mode", "painleve", "plant_in_mode",
]  # fmt: skip

TOUCHES = 1e-9  # m
"""Points with at most this gap touch the ground."""

APPROACHES = 1e-10
"""Points approach the ground at more than this, relative to 1 + the largest velocity, m/s."""

REST_SPEED = 1e-3  # m/s
"""Points that separate more slowly than this, and are pressed back, rest: bounces do not go on for
ever."""

STOPPED = 1e-6  # m/s
"""Points that slide more slowly than this do not slide."""

STARTS = 1e-9
"""Accelerations of points above this, relative to those without contact forces, are not zero."""

REGULAR = 1e-6
"""Friction jams where `regularity` falls below this."""

MOST_SLIDING = 10
"""Number of sliding points up to which all sets of pushing points are tried."""

GAINED = 1e-12
"""An impact may increase the kinetic energy by this share of its size, by rounding."""

Flags = NDArray[np.bool_]

HALVINGS = 40
"""Number of bisections for the largest restitution that increases no energy."""


@dataclass(frozen=True, eq=False)
class ContactMode:
    """What every point does.

    Attributes
    ----------
    state : (n,) int array
        `OPEN`, `SLIDES` or `STICKS`; `SLIDES` also for a point without friction.
    direction : (n, 2) array
        Direction of sliding along the tangents, of length one; zero for points that do not slide.
    """

    state: Indices
    direction: Array

    @property
    def rubs(self) -> bool:
        """Whether a point slides with friction."""
        return bool(self.direction.any())


class Contacting(NamedTuple):
    """What happens at an instant: the velocity after it, impulses (n, 3) of the points, the mode,
    which points have approached the ground, and whether restitution was reduced."""

    v: Vector
    impulses: Array
    mode: ContactMode
    struck: Flags
    reduced: bool


def contacting(
    points: ContactPoints, plant: Mechanism, part: Partition, t: float, q: Vector, v: Vector,
    tau: Vector,
) -> Contacting:  # fmt: skip
    """The velocity and the mode after an instant at which points may land, stop or leave."""
    gap, u = points.motion(plant, q, v, t)
    touching: Flags = gap[:, 0] <= TOUCHES
    impulses, reduced = np.zeros_like(u), False
    struck = touching & (u[:, 0] < -APPROACHES * (1.0 + largest(u)))
    free = points.free(plant, part, q, v, t, tau)
    if struck.any():
        impulses, reduced = after_impact(points, plant, free, touching, struck)
        v = v + free.response(impulses.reshape(-1))
        u = points.motion(plant, q, v, t).velocity
    closed = touching & (u[:, 0] <= REST_SPEED)
    while True:
        calm = settled(points, free, closed, v, u)
        free = points.free(plant, part, q, calm, t, tau)
        mode = decided_mode(points, plant, free, closed)
        leaves = closed & (mode.state == OPEN) & (u[:, 0] > APPROACHES * (1.0 + largest(u)))
        if not leaves.any():
            return Contacting(calm, impulses, mode, struck, reduced)
        closed &= ~leaves  # pressed back by nothing: they keep their velocity


def settled(points: ContactPoints, free: FreeMotion, closed: Flags, v: Vector, u: Array) -> Vector:
    """v without the remaining normal velocities of closed points, and tangential ones of those that
    do not slide: up to `REST_SPEED` and `STOPPED`."""
    if not closed.any():
        return v
    rest = closed & (np.hypot(u[:, 1], u[:, 2]) <= STOPPED) & (points.friction > 0.0)
    rows = np.flatnonzero(np.stack([closed, rest, rest], axis=1))
    p = np.zeros(u.size)
    p[rows] = least_squares(free.W[np.ix_(rows, rows)], -u.reshape(-1)[rows], INDEPENDENT)
    return v + free.response(p)


def after_impact(
    points: ContactPoints,
    plant: Mechanism,
    free: FreeMotion,
    touching: Flags,
    struck: Flags,
) -> tuple[Array, bool]:
    """The impulses (n, 3) of an impact, and whether restitution was reduced, since Newton's law
    with friction would have increased the kinetic energy.

    Raises
    ------
    InconsistentError
        If no impulses are found.
    """
    u, some = free.velocity, np.flatnonzero(touching)
    rows = (3 * some[:, None] + np.arange(3)).reshape(-1)
    W, before = free.W[np.ix_(rows, rows)], u[some].reshape(-1)

    def impulse_with(share: float) -> tuple[Vector, float]:
        c = u[some].copy()
        c[:, 0] += share * points.restitution[some] * np.where(struck[some], c[:, 0], 0.0)
        x = _impulses(W, c.reshape(-1), points.friction[some])
        if x is None:
            raise InconsistentError(
                f"{plant.name}: no impulses are found for the impact of "
                + ", ".join(points.name(i) for i in np.flatnonzero(struck).tolist())
            )
        p = x.reshape(-1)
        return p, float(p @ before + 0.5 * p @ W @ p)

    def gains(p: Vector, energy: float) -> bool:
        return energy > GAINED * float(np.abs(p) @ np.abs(before))

    p, energy = impulse_with(1.0)
    reduced = gains(p, energy)
    if reduced:
        low, high = 0.0, 1.0
        p, _ = impulse_with(0.0)
        for _ in range(HALVINGS):
            share = 0.5 * (low + high)
            tried, energy = impulse_with(share)
            low, high, p = (low, share, p) if gains(tried, energy) else (share, high, tried)
    found = np.zeros_like(u)
    found[some] = p.reshape(-1, 3)
    return found, reduced


def _impulses(W: Array, c: Vector, mu: Vector) -> Array | None:
    """x of the impact, the shortest one with the same points that stick, slide and leave."""
    n = mu.size
    found = complementarity_solution(W, c, mu, np.full((n, 2), np.nan))
    if found is None:
        return None
    mode = _mode_of(found.y, mu, np.full((n, 2), np.nan), STARTS * largest(c))
    try:
        shortest = mode_forces(W, c, mu, mode.state, mode.direction)
    except InconsistentError:
        return found.x
    return shortest.x if shortest.margin >= -STARTS else found.x


def _mode_of(y: Array, mu: Vector, direction: Array, zero: float) -> ContactMode:
    """The mode of the points by their accelerations; `direction` is nan where they do not slide."""
    state = np.full(mu.size, STICKS)
    slip = np.hypot(y[:, 1], y[:, 2])
    slides = ~np.isnan(direction[:, 0])
    begins = ~slides & (mu > 0.0) & (slip > zero)
    towards = np.where(slides[:, None], direction, 0.0)
    towards[begins] = y[begins, 1:] / slip[begins, None]
    state[slides | begins | (mu == 0.0)] = SLIDES
    state[y[:, 0] > zero] = OPEN
    towards[state == OPEN] = 0.0
    return ContactMode(state, towards)


def decided_mode(
    points: ContactPoints, plant: Mechanism, free: FreeMotion, closed: Flags,
    velocity: Array | None = None,
) -> ContactMode:  # fmt: skip
    """The mode of closed points, by the accelerations of a state.

    Raises
    ------
    InconsistentError
        Where friction leaves no forces, or several.
    """
    u = free.velocity if velocity is None else velocity
    n, some = points.friction.size, np.flatnonzero(closed)
    mode = ContactMode(np.full(n, OPEN), np.zeros((n, 2)))
    if not some.size:
        return mode
    mu, slip = points.friction[some], u[some, 1:]
    speed = np.hypot(slip[:, 0], slip[:, 1])
    slides = (speed > STOPPED) & (mu > 0.0)
    direction = np.full((some.size, 2), np.nan)
    direction[slides] = slip[slides] / speed[slides, None]
    rows = (3 * some[:, None] + np.arange(3)).reshape(-1)
    W, c = free.W[np.ix_(rows, rows)], free.c[rows]
    if (slides | (mu == 0.0)).all() and some.size <= MOST_SLIDING:
        each = sliding_solutions(W, c, mu, np.nan_to_num(direction))
        if len(each) != 1:
            raise painleve(points, plant, some[slides], len(each))
        y = (W @ each[0].reshape(-1) + c).reshape(-1, 3)
    else:
        found = complementarity_solution(W, c, mu, direction)
        if found is None:
            raise painleve(points, plant, some, 0)
        y = found.y
    here = _mode_of(y, mu, direction, STARTS * largest(c))
    if not regularity(W, mu, here.state, here.direction) > REGULAR:
        raise painleve(points, plant, some)
    mode.state[some], mode.direction[some] = here.state, here.direction
    return mode


def painleve(
    points: ContactPoints, plant: Mechanism, some: Indices, count: int | None = None
) -> InconsistentError:
    """The error where Coulomb's friction has no forces for a rigid body, or several."""
    at = ", ".join(points.name(i) for i in some.tolist())
    none = "no forces satisfy all conditions: an impact without collision is due, which"
    then = {None: f"there are several motions, or {none}", 0: none}.get(
        count, f"{count} motions satisfy all conditions, between which"
    )
    mu = max(points.friction[some], default=0.0)
    return InconsistentError(
        f"{plant.name}: at {at} friction ({mu:g}) grows faster with the normal force than the "
        f"normal force can hold the points (Painleve's paradox): {then} rigid bodies do not "
        "determine; take less friction, or a compliant part"
    )


def plant_in_mode(
    points: ContactPoints, plant: Mechanism, mode: ContactMode, position: Array
) -> Mechanism:
    """The plant with the rows of the points in contact, where they are."""
    rows = []
    for i in np.flatnonzero(mode.state > OPEN).tolist():
        row = points.rows[i]
        at = np.array(row.ground) + position[i] @ points.axes[i]
        holds = mode.state[i] == STICKS
        rows.append(
            replace(row, ground=tuple(at.tolist()), tangents=row.tangents if holds else False)
        )
    return plant.with_constraints(*rows) if rows else plant
