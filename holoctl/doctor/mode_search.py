"""Closed configurations with the motors held, from many starts: the search for assembly modes.

Coordinates that no row depends on, such as those of a floating base, stay at the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Indices, Vector
from holoctl.base.errors import HoloctlError
from holoctl.base.linalg import largest, pivoted_qr
from holoctl.base.progress import progress_bar
from holoctl.closing.axis_sign import axis_sign_rows, flipped
from holoctl.closing.least_squares import least_squares_point
from holoctl.closing.newton import Problem, newton
from holoctl.closing.rank import rank_within
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.tree.frozen_model import plain

__all__ = [
    "ClosedStart",
    "ModeSearch",
    "allowed",
    "closed_from",
    "free_coordinates",
    "held",
    "search",
    "tried",
]

MODE_CLOSED = 1e-10  # scaled
"""Closure error to which assembly modes are computed."""

MODE_ITERATIONS = 100
"""Newton steps for each start of the search for assembly modes; twice as many where axes are
pushed."""


class ClosedStart(NamedTuple):
    """The configuration in which a start ended.

    Attributes
    ----------
    q : (nq,) array
        Configuration.
    error : float
        Largest scaled error.
    opposite : tuple of str
        Rows of closures whose axes point in opposite directions there.
    """

    q: Vector
    error: float
    opposite: tuple[str, ...]


@dataclass(frozen=True)
class ModeSearch:
    """The results of all starts.

    Attributes
    ----------
    problem : Problem
        The reference with the given motor positions, and the free coordinates.
    closed : list of ClosedStart
        The starts that closed, in their order.
    best : ClosedStart
        The start with the least error of those that did not close; the last start if all closed.
    """

    problem: Problem
    closed: list[ClosedStart]
    best: ClosedStart


def held(mech: Mechanism, q: Vector, t: float, free: Indices) -> Problem:
    """The problem of closing the mechanism with all coordinates held at q except the free ones."""
    weights = 1.0 / mech.column_scale**2
    return Problem(mech, q, t, MODE_CLOSED, MODE_ITERATIONS, weights, free)


def free_coordinates(mech: Mechanism) -> Indices:
    """The coordinates that rows depend on and no motor drives."""
    touched = np.zeros(mech.nv, dtype=bool)
    for bound in mech.bound:
        touched |= np.asarray(bound.support, dtype=bool).any(axis=0)
    model = plain(mech.model)
    for j in range(1, model.njoints):  # the coordinates of one rotation are held all or none
        if model.nqs[j] != model.nvs[j]:
            own = slice(model.idx_vs[j], model.idx_vs[j] + model.nvs[j])
            touched[own] = touched[own].any()
    return np.flatnonzero(touched & ~(mech.B != 0.0).any(axis=1)).astype(np.intp)


def starts(p: Problem, tries: int, seed: int) -> Iterator[Vector]:
    """The reference, then seeded random starts: every other one anywhere, the others nearer."""
    yield p.guess
    rng, c = np.random.default_rng(seed), p.mech.column_scale[p.free]
    angles = np.setdiff1d(np.arange(p.mech.nv), p.mech.lengths[1])
    turning = np.isin(p.free, angles)
    for i in range(1, tries):
        reach = 1.0 if i % 2 else rng.uniform()
        step = np.where(turning, rng.uniform(-np.pi, np.pi, c.size), rng.normal(size=c.size))
        d = np.zeros(p.mech.nv)
        d[p.free] = reach * c * step
        q: Vector = pin.normalize(p.mech.model, pin.integrate(p.mech.model, p.guess, d))
        yield q


def search(p: Problem, tries: int, seed: int, progress: bool) -> ModeSearch:
    """Close the mechanism from all starts."""
    axis_signs, closed = axis_sign_rows(p.mech), list[ClosedStart]()
    best: ClosedStart | None = None
    with progress_bar(tries, "assembly modes", "starts", show=progress) as bar:
        for i, start in enumerate(starts(p, tries, seed)):
            found = tried(p, start, axis_signs) if i else closed_from(p, start, axis_signs)
            bar.update()
            if found is None:
                continue
            if found.error <= allowed(p.mech) and not found.opposite:
                closed.append(found)
            elif best is None or (found.error, found.opposite) < (best.error, best.opposite):
                best = found
    return ModeSearch(p, closed, best or closed[-1])


def tried(p: Problem, start: Vector, axis_signs: WrenchRows | None) -> ClosedStart | None:
    """`closed_from`; None if it leaves the domain of user-defined constraints."""
    try:
        return closed_from(p, start, axis_signs)
    except HoloctlError:
        return None


def allowed(mech: Mechanism) -> float:
    """The scaled error that a closed configuration may have."""
    return max(MODE_CLOSED, mech.tolerance)


def closed_from(p: Problem, start: Vector, axis_signs: WrenchRows | None) -> ClosedStart:
    """Close from a start exactly, or if that is not possible within the tolerance of rounded
    geometry."""
    q = newton(p, start if axis_signs is None else newton(p, start, axis_signs), None)
    error, tau = largest(p.scaled_rows(q)[0]), p.mech.tolerance
    if error > MODE_CLOSED and tau > 0.0:
        q, error = _within_tolerance(p, *least_squares_point(p, q, tau))
    return ClosedStart(q, error, flipped(p.mech, q, p.t, axis_signs))


def _within_tolerance(p: Problem, q: Vector, error: float) -> tuple[Vector, float]:
    """Close the rows that determine the motion exactly; q, and the largest error of all rows."""
    tau = p.mech.tolerance
    if error > tau:
        return q, error
    G = scaled_rows_at(p.mech, q, np.zeros(p.mech.nv), p.t).jacobian
    rank = rank_within(G, tau)
    kept = replace(p, rows=np.sort(pivoted_qr(G.T, rank).pivots[:rank]))
    x = newton(kept, q, None)
    if largest(kept.scaled_rows(x)[0]) > MODE_CLOSED:
        return q, float("inf")
    return x, largest(p.scaled_rows(x)[0])
