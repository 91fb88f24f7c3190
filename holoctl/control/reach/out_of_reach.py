"""Why a pose is out of reach: the remaining distance, and its cause.

At the end of a path with residual r, Z' D' r = 0 except for active limits: a limit stops it, or its
motions move fewer combinations of the rows than there are, everywhere or only here (singular).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Vector, listing
from holoctl.base.errors import AssemblyError, HoloctlError, LimitError
from holoctl.base.linalg import largest, null_space_by_svd, singular_values
from holoctl.base.tolerances import WITHIN_LIMIT
from holoctl.closing.newton import Problem, newton
from holoctl.closing.rank import manifold_rank
from holoctl.control.reach.constrained_least_squares import (
    REACH_CLOSED,
    REACH_KICK,
    Descent,
    PositionBounds,
    kinematics_at,
)
from holoctl.control.reach.targets import Target, Targets
from holoctl.rows.evaluate import constraint_rows

__all__ = ["Shortfall", "out_of_reach"]

REACH_WEAK = 1e-3  # scaled
"""Combinations of rows that the motions move by less count as not moved at the end of a path."""


class Shortfall(NamedTuple):
    """A path that ended before the pose.

    Attributes
    ----------
    start : (nq,) array
        The closed start of the path.
    way : Descent
        The end of the path.
    inside : bool
        False if positions could not be brought within their limits.
    beyond : (nq,) array or None
        A configuration with the frames at their poses, but beyond the limits.
    """

    start: Vector
    way: Descent
    inside: bool = True
    beyond: Vector | None = None


def out_of_reach(
    p: Problem, targets: Targets, bounds: PositionBounds, short: Shortfall
) -> HoloctlError:
    """The error that states the remaining distance, and its cause."""
    mech, way = p.mech, short.way
    if not short.inside:
        over = bounds.excess(kinematics_at(p, way.q))
        names = [bounds.names[i] for i in np.flatnonzero(np.abs(over) > WITHIN_LIMIT)]
        return LimitError(
            f"{mech.name}: no closed configuration near the guess is within the limits of "
            f"{listing(names)} (beyond by {largest(over):.2g}, scaled); give a guess that is, or "
            "limits=None",
            names=names, residual=largest(over), q=way.q,
        )  # fmt: skip
    near = targets.described(way.left)
    frames = " and ".join(_named(target) for target in targets.each)
    if way.stopped_by and short.beyond is not None:
        return LimitError(
            f"{mech.name}: {frames} cannot be there within the limits of positions: the nearest "
            f"from this guess misses {near}, where {listing(way.stopped_by)} "
            f"stop{'s' * (len(way.stopped_by) == 1)} it; it would take "
            f"{_beyond(p, bounds, short.beyond)}",
            names=way.stopped_by, residual=largest(way.left), q=way.q,
        )  # fmt: skip
    labels = targets.labels
    worst = [(labels[i], float(abs(way.left[i]))) for i in np.argsort(-np.abs(way.left))[:5]]
    return AssemblyError(
        f"{mech.name}: {frames} cannot be there from this guess: the nearest that the closed "
        f"mechanism comes misses {near}; {_why(p, targets, bounds, short)}",
        residual=largest(way.left), worst=worst, q=way.q,
    )  # fmt: skip


def _named(target: Target) -> str:
    axes = getattr(target.task, "axes", None)
    return f"{target.name!r} ({' '.join(axes)})" if axes else repr(target.name)


def _beyond(p: Problem, bounds: PositionBounds, q: Vector) -> str:
    """Positions that are beyond their limits at q, with the limits."""
    kin = kinematics_at(p, q)
    over, x = bounds.excess(kin), bounds.at(kin)[0]
    words = []
    for i in np.flatnonzero(np.abs(over) > WITHIN_LIMIT):
        bound = bounds.upper[i] if over[i] > 0.0 else bounds.lower[i]
        unit = bounds.units[i]
        words.append(f"{bounds.names[i]} = {x[i] * unit:.4g} (limit {bound * unit:.4g})")
    return ", ".join(words)


def _why(p: Problem, targets: Targets, bounds: PositionBounds, short: Shortfall) -> str:
    """Why the mechanism does not reach a pose."""
    way = short.way
    rank, n, words = _moved_rows(p, targets, way.q), targets.scale.size, list[str]()
    rank_before = max(_moved_rows(p, targets, q) for q in (short.start, *_nearby(p, way.q)))
    if not way.ended:
        words.append("the path to it was given up because it took too many steps")
    if way.stopped_by:
        words.append(f"limits stop it there: {listing(way.stopped_by)}")
    if rank_before < n:
        words.append(
            f"{n} rows are requested, and its motions move {rank_before} of them independently: "
            "the values of the others must be compatible"
        )
    elif rank < n:
        words.append(
            f"it is singular there (stretched, or folded): of {n} rows its motions move {rank}, "
            "and the remaining distance is across these motions"
        )
    if p.mech.tolerance > 0.0 and largest(way.left) < REACH_WEAK:
        words.append("for rounded geometry, a larger tol= accepts this distance")
    words.append("other branches may come nearer: try another guess, or restarts=")
    return "; ".join(words)


def _nearby(p: Problem, q: Vector) -> list[Vector]:
    """Some closed configurations near q, and q itself."""
    rng, found = np.random.default_rng(0), [q]
    for size in REACH_KICK:
        x = newton(p, p.moved(q, size * rng.normal(size=p.free.size)), None)
        if largest(p.scaled_rows(x)[0]) <= REACH_CLOSED:
            found.append(x)
    return found


def _moved_rows(p: Problem, targets: Targets, q: Vector) -> int:
    """The number of combinations of rows that the motions clearly move at q."""
    kin, rows = constraint_rows(p.mech, q, np.zeros(p.mech.nv), p.t)
    error, G = p.scaled(kin, rows)
    Z = null_space_by_svd(G, manifold_rank(G, largest(error)))[3]
    JZ = targets.left(kin)[1] * p.metric @ Z
    return int(np.count_nonzero(singular_values(JZ) > REACH_WEAK))
