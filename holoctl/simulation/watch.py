"""What is watched at every accepted step: all rows, and how independent they are.

    s   the rank-th singular value of G', all rows        k   the smallest one of G'[rows]

k falls and s does not: rows are decided anew. s heads for zero: a singular configuration is ahead,
and no step may jump over it.
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
    "Course",
    "Look",
    "SingularPairs",
    "better_rows",
    "first_look",
    "looked",
    "singular_pairs",
    "turned_over",
    "usual_independence",
]

LOOK_AGAIN, STEPS_AHEAD = 0.1, 5.0
"""Singular values are taken anew where the scaled rows may have changed them by this share; and
where so many steps like the last could make one vanish, with their rates."""

TURNED_OVER, MOST_TURNED = 0.5, 24  # -; a count
"""A singular value that is larger than what the scaled rows change by, over this, does not go
through zero; so many of the smallest are asked whether they did."""

LOOK_STEP = 1e-4  # scaled
"""Rates of singular values are differences over this (scaled) to either side."""

NEARBY_LOOKS = 2
"""What is usual for the independence of rows is asked along so many directions, both ways."""


class Course(NamedTuple):
    """Where a singular value goes: itself, its rate and the rate of that."""

    value: float
    rate: float = 0.0
    curvature: float = 0.0

    @property
    def zero(self) -> float:
        """The time to its first zero ahead, s; inf where it has none."""
        inside = self.rate**2 - 2.0 * self.curvature * self.value
        if not inside >= 0.0:
            return float("inf")
        falls = sqrt(inside) - self.rate  # the form that does not cancel
        return 2.0 * self.value / falls if falls > 0.0 else float("inf")


class SingularPairs(NamedTuple):
    """Singular vectors and values that count, ``G' = U s W'``."""

    U: Array
    s: Vector
    W: Array


class Look(NamedTuple):
    """What the accepted states showed so far.

    Attributes
    ----------
    of_all, of_kept : Course
        s and k; those of an earlier state where the rows have not moved since by what matters, and
        without rates where no zero is near.
    seen, last : (m, nv) arrays
        The scaled Jacobian where s and k were taken, and at the last state.
    pairs : SingularPairs or None
        Those of the last state, where a zero may be near.
    """

    of_all: Course
    of_kept: Course
    seen: Array
    last: Array
    pairs: SingularPairs | None = None

    @property
    def close(self) -> bool:
        """Whether a zero may be near; then s and k are those of the last state, with rates."""
        return self.pairs is not None


def singular_pairs(G: Array, rank: int) -> SingularPairs:
    """Of a scaled Jacobian."""
    U, s, Wt = np.linalg.svd(in_range(G), full_matrices=False)
    return SingularPairs(U[:, :rank], s[:rank], Wt[:rank].T)


def turned_over(look: Look, part: Partition, G: Array) -> bool:
    """Whether a singular value went through zero on the way from the last state to one with this
    Jacobian: then ``U' G W`` has turned it over.

    Those that are larger than what the matrix changed by cannot have (Weyl).
    """
    change = _distance(G, look.last)
    if part.rank == 0 or change < TURNED_OVER * look.of_all.value:
        return False
    U, s, W = look.pairs or singular_pairs(look.last, part.rank)
    small = np.flatnonzero(s < change / TURNED_OVER)[-MOST_TURNED:]
    now = U[:, small].T @ G @ W[:, small] / s[small]
    return bool(np.linalg.eigvals(now).real.min(initial=1.0) <= 0.0)


def usual_independence(mech: Mechanism, part: Partition, q: Vector, t: float) -> float:
    """s where nothing is singular: the largest here and at configurations nearby."""
    rest, places = np.zeros(mech.nv), [q]
    if part.rank:
        places += nearby_configurations(mech, q, t, count=NEARBY_LOOKS)
    looks = [independence(scaled_rows_at(mech, x, rest, t).jacobian, part) for x in places]
    return max(x.of_all for x in looks)


def first_look(
    mech: Mechanism, part: Partition, q: Vector, v: Vector, a: Vector | None, t: float
) -> Look:
    """At the start of a motion, or of another partition."""
    G = scaled_rows_at(mech, q, v, t).jacobian
    return _closely(mech, part, independence(G, part), G, q, v, a, t, np.inf)


def looked(
    mech: Mechanism, part: Partition, before: Look, G: Array, q: Vector, v: Vector, a: Vector,
    t: float, h: float,
) -> Look:  # fmt: skip
    """After a step h to a state with acceleration a and scaled Jacobian G.

    Singular values change by no more than the norm of what the matrix changes by (Weyl), so most
    states need no decomposition.
    """
    if not before.close and _distance(G, before.seen) < LOOK_AGAIN * before.of_kept.value:
        return Look(before.of_all, before.of_kept, before.seen, G)
    step = _distance(G, before.last)
    if step == 0.0:
        return before
    here = independence(G, part)
    if here.of_kept > STEPS_AHEAD * step:
        return Look(Course(here.of_all), Course(here.of_kept), G, G)
    return _closely(mech, part, here, G, q, v, a, t, h)


def better_rows(mech: Mechanism, part: Partition, look: Look, h: float) -> Partition:
    """The partition with other rows where those kept get dependent and not the mechanism; else the
    same one."""
    k, s = look.of_kept, look.of_all
    ahead = k.zero < 2.0 * h and not s.zero < 2.0 * h
    if not ahead and not ill_conditioned(part, Independence(s.value, k.value)):
        return part
    return other_rows(mech, part, look.last, k.value) or part


def _closely(
    mech: Mechanism, part: Partition, here: Independence, G: Array, q: Vector, v: Vector,
    a: Vector | None, t: float, h: float,
) -> Look:  # fmt: skip
    """With rates, by a short step to either side along the motion."""
    speed = largest(v / mech.column_scale)
    if part.rank == 0 or speed == 0.0:
        return Look(Course(here.of_all), Course(here.of_kept), G, G)
    pairs = singular_pairs(G, part.rank)
    u, w = pairs.U[:, -1], pairs.W[:, -1]
    eps = min(LOOK_STEP / speed, h)
    sides = list[Independence]()
    for e in (eps, -eps):
        d = e * v if a is None else e * v + (0.5 * e * e) * a
        there = scaled_rows_at(mech, pin.integrate(mech.model, q, d), v, t + e).jacobian
        side = independence(there, part)
        over = float(u @ there @ w) < 0.0
        sides.append(Independence(-side.of_all if over else side.of_all, side.of_kept))
    after, before = sides
    s = _course(here.of_all, after.of_all, before.of_all, eps)
    k = _course(here.of_kept, after.of_kept, before.of_kept, eps)
    return Look(s, k, G, G, pairs)


def _course(here: float, after: float, before: float, eps: float) -> Course:
    return Course(here, (after - before) / (2.0 * eps), (after - 2.0 * here + before) / eps**2)


def _distance(G: Array, other: Array) -> float:
    change = (G - other).reshape(-1)
    return sqrt(change.dot(change))
