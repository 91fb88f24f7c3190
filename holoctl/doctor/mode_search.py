"""Closed configurations with the motors held, from many starts: there assembly modes are found.

Coordinates that no row depends on, such as those of a base that floats, stay at the reference.
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
    """Where a start ended.

    Attributes
    ----------
    q : (nq,) array
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
    """What was found.

    Attributes
    ----------
    problem : Problem
        The reference with the motors where they are to be, and the free coordinates.
    closed : list of ClosedStart
        Where starts closed, in their order.
    best : ClosedStart
        The one with the least error of those that did not; the last one of all where all did.
    """

    problem: Problem
    closed: list[ClosedStart]
    best: ClosedStart


def held(mech: Mechanism, q: Vector, t: float, free: Indices) -> Problem:
    """To be closed with all coordinates at q but the free ones."""
    weights = 1.0 / mech.column_scale**2
    return Problem(mech, q, t, MODE_CLOSED, MODE_ITERATIONS, weights, free)


def free_coordinates(mech: Mechanism) -> Indices:
    """Those that rows depend on and no motor drives."""
    touched = np.zeros(mech.nv, dtype=bool)
    for bound in mech.bound:
        touched |= np.asarray(bound.support, dtype=bool).any(axis=0)
    model = plain(mech.model)
    for j in range(1, model.njoints):  # parts of one rotation are held together or not at all
        if model.nqs[j] != model.nvs[j]:
            own = slice(model.idx_vs[j], model.idx_vs[j] + model.nvs[j])
            touched[own] = touched[own].any()
    return np.flatnonzero(touched & ~(mech.B != 0.0).any(axis=1)).astype(np.intp)


def starts(p: Problem, tries: int, seed: int) -> Iterator[Vector]:
    """The reference, and seeded random ones: every other one anywhere, the others nearer."""
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
    """Close from all starts."""
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
    """Where it ends; None where constraints of somebody's own are not defined on the way."""
    try:
        return closed_from(p, start, axis_signs)
    except HoloctlError:
        return None


def allowed(mech: Mechanism) -> float:
    """The scaled error that a closed configuration may have."""
    return max(MODE_CLOSED, mech.tolerance)


def closed_from(p: Problem, start: Vector, axis_signs: WrenchRows | None) -> ClosedStart:
    """Closed exactly, or where that is not possible, as rounded geometry is meant."""
    q = newton(p, start if axis_signs is None else newton(p, start, axis_signs), None)
    error, tau = largest(p.scaled_rows(q)[0]), p.mech.tolerance
    if error > MODE_CLOSED and tau > 0.0:
        q, error = _as_meant(p, *least_squares_point(p, q, tau))
    return ClosedStart(q, error, flipped(p.mech, q, p.t, axis_signs))


def _as_meant(p: Problem, q: Vector, error: float) -> tuple[Vector, float]:
    """The rows that decide the motion closed exactly, and how far all are open then."""
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
