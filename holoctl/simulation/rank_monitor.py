"""The rank monitor of a simulation: singular values of the rows after every accepted step.

    s   the rank-th singular value of G', all rows        k   the smallest one of G'[rows]

If k falls and s does not, other rows are selected. If s goes to zero, a singular configuration is
ahead, and no step may jump over it.
Derivation: docs/derivations.md, "Simulation".
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import in_range, largest
from holoctl.closing.nearby_configurations import nearby_configurations
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.repartition import Independence, ill_conditioned, independence
from holoctl.projector.repartition import better_rows as other_rows
from holoctl.rows.evaluate import scaled_rows_at

__all__ = [
    "RankMonitor",
    "SingularPairs",
    "SingularValueTrend",
    "after_step",
    "better_rows",
    "monitor_at",
    "passed_zero",
    "singular_pairs",
    "usual_independence",
]

DECOMPOSE_AGAIN = 0.1
"""Singular values are computed again if the change of the scaled rows may have changed them by this
share."""

STEPS_AHEAD = 5.0
"""Rates of singular values are computed if this number of steps like the last one could make a
singular value vanish."""

PASSED_ZERO = 0.5
"""A singular value larger than the change of the scaled rows divided by this has not passed
zero."""

MOST_PASSED = 24
"""Largest number of singular values, the smallest ones, that are checked for having passed zero."""

RATE_STEP = 1e-4  # scaled
"""Rates of singular values are differences over a step of this to either side."""

NEARBY_CONFIGURATIONS = 2
"""The usual independence of the rows is evaluated along this number of directions, both ways."""


class SingularValueTrend(NamedTuple):
    """A singular value along the motion: its value and its first and second derivative by time."""

    value: float
    rate: float = 0.0
    curvature: float = 0.0

    @property
    def zero(self) -> float:
        """The time until its first zero, s; inf if it has no zero ahead."""
        inside = self.rate**2 - 2.0 * self.curvature * self.value
        if not inside >= 0.0:
            return float("inf")
        falls = sqrt(inside) - self.rate  # the root in the form without cancellation
        return 2.0 * self.value / falls if falls > 0.0 else float("inf")


class SingularPairs(NamedTuple):
    """The first `rank` singular vectors and values of the scaled rows, ``G' = U s W'``."""

    U: Array
    s: Vector
    W: Array


class RankMonitor(NamedTuple):
    """Singular values of the rows, as of the last accepted state.

    Attributes
    ----------
    of_all, of_kept : SingularValueTrend
        s and k; those of an earlier state if the rows have hardly changed since, and without rates
        if no zero is near.
    decomposed, last : (m, nv) arrays
        The scaled Jacobian from which s and k were computed, and that at the last state.
    pairs : SingularPairs or None
        Those of the last state if a zero may be near, else None.
    """

    of_all: SingularValueTrend
    of_kept: SingularValueTrend
    decomposed: Array
    last: Array
    pairs: SingularPairs | None = None

    @property
    def near_zero(self) -> bool:
        """Whether a zero may be near; s and k are then those of the last state, with rates."""
        return self.pairs is not None


def singular_pairs(G: Array, rank: int) -> SingularPairs:
    """Singular pairs of a scaled Jacobian of a known rank."""
    U, s, Wt = np.linalg.svd(in_range(G), full_matrices=False)
    return SingularPairs(U[:, :rank], s[:rank], Wt[:rank].T)


def passed_zero(monitor: RankMonitor, part: Partition, G: Array) -> bool:
    """Whether a singular value went through zero between the last state and one with the Jacobian
    G: an eigenvalue of ``U' G W / s`` is then negative.

    A singular value larger than the change of the matrix cannot have passed zero (Weyl).
    """
    change = _distance(G, monitor.last)
    if part.rank == 0 or change < PASSED_ZERO * monitor.of_all.value:
        return False
    U, s, W = monitor.pairs or singular_pairs(monitor.last, part.rank)
    small = np.flatnonzero(s < change / PASSED_ZERO)[-MOST_PASSED:]
    now = U[:, small].T @ G @ W[:, small] / s[small]
    return bool(np.linalg.eigvals(now).real.min(initial=1.0) <= 0.0)


def usual_independence(mech: Mechanism, part: Partition, q: Vector, t: float) -> float:
    """The usual value of s: the largest at this configuration and at configurations nearby."""
    rest, places = np.zeros(mech.nv), [q]
    if part.rank:
        places += nearby_configurations(mech, q, t, count=NEARBY_CONFIGURATIONS)
    found = [independence(scaled_rows_at(mech, x, rest, t).jacobian, part) for x in places]
    return max(x.of_all for x in found)


def monitor_at(
    mech: Mechanism, part: Partition, q: Vector, v: Vector, a: Vector | None, t: float
) -> RankMonitor:
    """The monitor at the start of a motion, or after a change of the partition."""
    G = scaled_rows_at(mech, q, v, t).jacobian
    return _with_rates(mech, part, independence(G, part), G, q, v, a, t, np.inf)


def after_step(
    mech: Mechanism, part: Partition, before: RankMonitor, G: Array, q: Vector, v: Vector,
    a: Vector, t: float, h: float,
) -> RankMonitor:  # fmt: skip
    """The monitor after a step h to a state with acceleration a and scaled Jacobian G.

    Singular values change by no more than the norm of the change of the matrix (Weyl), so most
    states need no decomposition.
    """
    moved = _distance(G, before.decomposed)
    if not before.near_zero and moved < DECOMPOSE_AGAIN * before.of_kept.value:
        return RankMonitor(before.of_all, before.of_kept, before.decomposed, G)
    step = _distance(G, before.last)
    if step == 0.0:
        return before
    here = independence(G, part)
    if here.of_kept > STEPS_AHEAD * step:
        return RankMonitor(SingularValueTrend(here.of_all), SingularValueTrend(here.of_kept), G, G)
    return _with_rates(mech, part, here, G, q, v, a, t, h)


def better_rows(mech: Mechanism, part: Partition, monitor: RankMonitor, h: float) -> Partition:
    """A partition with other rows if those kept become dependent and all rows together do not; else
    the same object."""
    k, s = monitor.of_kept, monitor.of_all
    ahead = k.zero < 2.0 * h and not s.zero < 2.0 * h
    if not ahead and not ill_conditioned(part, Independence(s.value, k.value)):
        return part
    return other_rows(mech, part, monitor.last, k.value) or part


def _with_rates(
    mech: Mechanism, part: Partition, here: Independence, G: Array, q: Vector, v: Vector,
    a: Vector | None, t: float, h: float,
) -> RankMonitor:  # fmt: skip
    """The monitor with rates of s and k, by a short step to either side along the motion."""
    speed = largest(v / mech.column_scale)
    if part.rank == 0 or speed == 0.0:
        return RankMonitor(SingularValueTrend(here.of_all), SingularValueTrend(here.of_kept), G, G)
    pairs = singular_pairs(G, part.rank)
    u, w = pairs.U[:, -1], pairs.W[:, -1]
    eps = min(RATE_STEP / speed, h)
    sides = list[Independence]()
    for e in (eps, -eps):
        d = e * v if a is None else e * v + (0.5 * e * e) * a
        there = scaled_rows_at(mech, pin.integrate(mech.model, q, d), v, t + e).jacobian
        side = independence(there, part)
        over = float(u @ there @ w) < 0.0
        sides.append(Independence(-side.of_all if over else side.of_all, side.of_kept))
    after, before = sides
    s = _trend(here.of_all, after.of_all, before.of_all, eps)
    k = _trend(here.of_kept, after.of_kept, before.of_kept, eps)
    return RankMonitor(s, k, G, G, pairs)


def _trend(here: float, after: float, before: float, eps: float) -> SingularValueTrend:
    return SingularValueTrend(
        here, (after - before) / (2.0 * eps), (after - 2.0 * here + before) / eps / eps
    )


def _distance(G: Array, other: Array) -> float:
    change = (G - other).reshape(-1)
    return sqrt(change.dot(change))
