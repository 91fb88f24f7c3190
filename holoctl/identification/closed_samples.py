"""Closed states along the branch of the reference, far enough apart to tell parameters apart.

A random walk: from a closed configuration by a step along the admissible motions, then onto the
manifold. A step is accepted if the correction is short and redundant rows close too, so the walk
does not change its branch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.base.errors import InconsistentError, InputError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import LEFT_OPEN, TIGHT
from holoctl.closing.manifold_projection import TrustRegion, newton_projection
from holoctl.mechanism.limited_coordinates import beyond_limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.projection import Projection, project
from holoctl.tree.coordinates import translational

__all__ = ["closed_samples", "motion_scale"]

LONGEST, SHORTEST = 1.0, 0.01
"""The longest and the shortest step of the walk, in the units of `motion_scale`."""

REFUSED, RESTARTS = 100, 10
"""After this many steps in a row that are not possible the walk begins again at its start, at most
so many times."""

FAR = 10.0
"""Translations farther than this from the start are refused (scaled): levers of such a length would
hide all others."""

APART, TRIED = 1.0, 10
"""A sample is taken after this length of the walk, in the units of `motion_scale`, or after this
many trials of a step: narrow limits allow only short ones."""

CURVED = 0.1
"""The longest correction of a step, relative to it (scaled)."""

WORST_CONDITION = 1e3
"""Samples at which the kept rows or gamma have a larger condition number are left out: near a
singular configuration parameters seem to have more influence than they have."""

RATE, ACCELERATION = 3.0, 10.0
"""Standard deviations of random rates and accelerations, in the units of `motion_scale`, per s and
per s^2."""

SLOW, DECADES = 4, 3.0
"""Every so many samples is slow, by a random factor of up to so many decades: dry friction of two
joints that always turn together differs only where it changes its sign."""


def motion_scale(P: Projection) -> Vector:
    """The unit (k,) of each independent rate: the geometric mean of the rates that it causes is 1,
    scaled. A motor with a gear of 100 then turns by 10 rad, its link by 0.1 rad."""
    scaled = np.abs(P.gamma / P.mechanism.column_scale[:, None])
    moved = scaled > 1e-6 * scaled.max(axis=0)
    logs = np.where(moved, np.log(np.where(moved, scaled, 1.0)), 0.0)
    found: Vector = np.exp(-logs.sum(axis=0) / moved.sum(axis=0))
    return found


def closed_samples(
    mech: Mechanism, part: Partition, q: Vector, count: int, rng: np.random.Generator,
    slow: bool = False,
) -> Iterator[tuple[Projection, Vector]]:  # fmt: skip
    """`count` states along a walk from a closed q: (projection, a) with random admissible
    velocities and accelerations; with `slow` some are slow. Fewer states if the walk cannot go
    on."""
    home = P = project(mech, q, np.zeros(mech.nv), partition=part)
    step, heading, refused, restarts = LONGEST, rng.normal(size=P.k), 0, 0
    for i in range(count):
        gone, tried = 0.0, 0
        while gone < APART and tried < TRIED:
            tried += 1
            found = _walked(P, heading * (step / np.linalg.norm(heading)), part, home.q)
            if found is not None:
                P, gone, step, refused = found, gone + step, min(2.0 * step, LONGEST), 0
                continue
            step, heading, refused = max(0.5 * step, SHORTEST), rng.normal(size=P.k), refused + 1
            if refused == REFUSED:
                if restarts == RESTARTS:
                    return
                P, step, refused, restarts = home, LONGEST, 0, restarts + 1
        if P.condition > WORST_CONDITION:
            continue
        unit = motion_scale(P)
        rate = RATE * 10.0 ** -rng.uniform(0.0, DECADES) if slow and i % SLOW == 0 else RATE
        try:
            at = project(mech, P.q, P.gamma @ (rate * unit * rng.normal(size=P.k)), partition=part)
        except InputError:  # rates beyond those that numbers can tell apart
            continue
        yield at, at.gamma @ (ACCELERATION * unit * rng.normal(size=P.k)) + at.bias
        heading = heading / np.linalg.norm(heading) + rng.normal(size=P.k)


def _walked(P: Projection, step: Vector, part: Partition, home: Vector) -> Projection | None:
    """The projection a step further; None if the correction is long, redundant rows open, or limits
    are exceeded."""
    mech, rest = P.mechanism, np.zeros(P.mechanism.nv)
    dq = P.gamma @ (motion_scale(P) * step)
    size = CURVED * largest(dq / mech.column_scale)
    try:
        found = newton_projection(
            mech, part.rows, pin.integrate(mech.model, P.q, dq), rest, 0.0, TIGHT,
            TrustRegion(first=size, contraction=0.5),
        )  # fmt: skip
        if largest(found.rows.error) > max(LEFT_OPEN, part.tolerance):
            return None
        if mech.limits is not None and beyond_limits(mech, found.q):
            return None
        away = pin.difference(mech.model, home, found.q) / mech.column_scale
        if largest(away[translational(mech.model)]) > FAR:
            return None
        return project(mech, found.q, rest, partition=part)
    except (SingularityError, InconsistentError, InputError):
        return None
