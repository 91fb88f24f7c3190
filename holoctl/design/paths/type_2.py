"""Type-2 (actuation) singularities along a curve, at which motors do not determine the motion.

    E = N' B        N: a basis of the admissible velocities, orthonormal in scaled coordinates;
                    columns of B of norm one there

The smallest singular value of E is that of gamma' B for an orthonormal gamma: 0 at a type-2
singularity. With as many motors as motions det E, with N continued along the curve, changes its
sign at a crossing, also if that is between two places at which it is evaluated.
Reference: C. Gosselin and J. Angeles, "Singularity analysis of closed-loop kinematic chains", IEEE
Transactions on Robotics and Automation, 1990.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import SingularityError
from holoctl.design.paths.curve import Curve
from holoctl.design.paths.path_singularity import ADVICE
from holoctl.design.paths.path_system import partition_rows
from holoctl.dynamics.actuation import scaled_motors
from holoctl.dynamics.actuation_side import has_sides, hold_of_motors
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import scaled_rows_at

__all__ = ["Type2", "smallest_along", "type_2_along", "type_2_error"]


TYPE_2 = 1e-3
"""A trajectory goes through a type-2 singularity if the smallest singular value of gamma' B along
it, scaled, is below this."""


TYPE_2_SIGN = 1e-9
"""The sign of the determinant counts where the smallest singular value is above this; below it is
rounding."""


MOST_TIMES = 3
"""The number of places that an error lists."""


class Type2(NamedTuple):
    """The distance of a curve from type-2 singularities.

    Attributes
    ----------
    least : float
        The smallest singular value of gamma' B, scaled; inf without motors or motions.
    at : float
        Its x on the curve.
    places : tuple of float
        x of the singularities that are crossed or touched, increasing.
    sides : tuple of int
        The sign of det E in each stretch between them, with N continued, 1 in the first: a change
        of the sign is a crossing. Empty without as many motors as motions.
    """

    least: float
    at: float
    places: tuple[float, ...]
    sides: tuple[int, ...]


def type_2_along(mech: Mechanism, part: Partition, curve: Curve) -> Type2:
    """The smallest singular value along a curve: at nodes, half-way between them, and at minima
    next to these at which it may vanish."""
    if not part.actuation_rank:
        return Type2(np.inf, float(curve.x[0]), (), ())
    if "type 2" not in curve.known:
        curve.known["type 2"] = _found(mech, part, curve)
    found: Type2 = curve.known["type 2"]
    return found


def _found(mech: Mechanism, part: Partition, curve: Curve) -> Type2:
    span = float(curve.x[-1] - curve.x[0])
    evaluated = smallest_along(mech, part)
    x, q = np.zeros(2 * curve.x.size - 1), np.zeros((2 * curve.x.size - 1, mech.nq))
    x[::2], x[1::2] = curve.x, 0.5 * (curve.x[1:] + curve.x[:-1])
    q[::2], q[1::2] = curve.q, curve.between()[0]
    sizes, signs = evaluated(q)

    def continued(s: float, i: int) -> float:
        size, sign = evaluated(np.array([q[i], curve.at(s).q]))
        return float(size[1] * sign[0] * sign[1])

    places = list[float]()
    sure = np.flatnonzero((sizes > TYPE_2_SIGN) & (signs != 0.0)).tolist()
    for i, j in pairwise(sure):
        if signs[i] * signs[j] < 0.0:
            one = float(x[i + 1 + int(np.argmin(sizes[i + 1 : j]))]) if j > i + 1 else None
            places.append(float(brentq(continued, x[i], x[j], args=(i,))) if one is None else one)
    crossed = set(places)
    known = [(float(sizes.min()), float(x[np.argmin(sizes)])), *((0.0, place) for place in places)]
    for i, vanishes in _minima(sizes):
        low, high = float(x[max(i - 1, 0)]), float(x[min(i + 1, x.size - 1)])
        found: Any = minimize_scalar(
            lambda s: float(evaluated(curve.at(s).q[None])[0][0]), bounds=(low, high),
            method="bounded", options={"xatol": 1e-9 * span if vanishes else 1e-3 * (high - low)},
        )  # fmt: skip
        known.append((float(found.fun), float(found.x)))
        if found.fun < TYPE_2 and not any(low <= place <= high for place in places):
            places.append(float(found.x))
    smallest, at = min(known)
    turns = [-1 if place in crossed else 1 for place in sorted(places)]
    sides = np.cumprod([1, *turns]).tolist() if sure else []
    return Type2(smallest, at, tuple(sorted(places)), tuple(sides))


def type_2_error(
    mech: Mechanism, part: Partition, curve: Curve, found: Type2, times: tuple[float, ...] = ()
) -> SingularityError | None:
    """The error for a curve that meets type-2 singularities, at these times if they are known; None
    if it meets none."""
    if not found.places:
        return None
    first = found.places[0]
    q = curve.at(first).q
    lost = hold_of_motors(mech, part, q)
    value = min(lost.value, found.least)
    unit = "t = {:.6g} s" if times else "s = {:.6g}"
    where = ", ".join(unit.format(x) for x in (times or found.places)[:MOST_TIMES])
    more = f" and {len(found.places) - MOST_TIMES} more" if len(found.places) > MOST_TIMES else ""
    meets = "goes through" if len(set(found.sides)) > 1 else "meets"
    return SingularityError(
        f"{mech.name}: the path {meets} a type-2 (actuation) singularity at {where}{more}: the "
        f"smallest singular value of gamma' B is {value:.1g} (scaled), and {lost.words}. So the "
        "motors do not determine the motion there, and the efforts that track it are unbounded "
        f"close to it, whatever u is at the nodes; {ADVICE}; or cross=True, which accepts the path "
        "as it is, with a warning",
        names=lost.names, kind="type 2", value=value, place=first,
        time=times[0] if times else np.nan, q=q, motion=lost.words,
    )  # fmt: skip


def smallest_along(mech: Mechanism, part: Partition) -> Callable[[Array], tuple[Vector, Vector]]:
    """A function of configurations (n, nq), neighbours along a curve: the smallest singular values
    of E, and the signs of det E, continued from the first one on; 0 if E is not square."""
    rank, m, k, nv = part.actuation_rank, mech.row_scale.size, mech.nv - part.rank, mech.nv
    motors, rest = scaled_motors(mech), np.zeros(nv)
    square, kept = has_sides(mech, part), partition_rows(mech, part.rows)

    def by_bases(q: Array) -> tuple[Vector, Vector]:
        rows = np.array([scaled_rows_at(mech, x, rest, 0.0).jacobian for x in q])
        whole = rows if m else np.zeros((len(q), 1, nv))
        N = np.linalg.svd(whole)[2][:, part.rank :]
        E = N @ motors
        sizes = np.asarray(np.linalg.svd(E, compute_uv=False)[:, rank - 1], dtype=float)
        if not square:
            return sizes, np.zeros(len(q))
        turns = np.sign(np.linalg.det(N[:-1] @ np.swapaxes(N[1:], 1, 2)))
        return sizes, np.sign(np.linalg.det(E)) * np.cumprod(np.append(1.0, turns))

    def by_motors(q: Array) -> tuple[Vector, Vector]:
        """K X = [0; I] with K = [G; B']: X = N E'^-1, and det K = 0 if and only if det E = 0."""
        K = np.empty((len(q), nv, nv))
        K[:, part.rank :] = motors.T
        for i, x in enumerate(q):
            K[i, : part.rank] = kept.at(x)[0]
        try:
            X = np.linalg.solve(K, np.broadcast_to(np.eye(nv)[:, part.rank :], (len(q), nv, k)))
        except np.linalg.LinAlgError:  # exactly at a singularity
            return by_bases(q)
        largest = np.linalg.eigvalsh(np.swapaxes(X, 1, 2) @ X)[:, -1]
        return 1.0 / np.sqrt(largest), np.linalg.slogdet(K)[0]

    return by_motors if square and m == part.rank else by_bases  # m == rank: no row is redundant


def _minima(sizes: Vector) -> list[tuple[int, bool]]:
    """Indices of the smallest value, and of local minima that may reach zero between the places, by
    their change to the next places; and whether they may."""
    before, after = np.append(np.inf, sizes[:-1]), np.append(sizes[1:], np.inf)
    change = np.maximum(*(np.where(np.isfinite(y), y - sizes, 0.0) for y in (before, after)))
    vanish = (sizes <= before) & (sizes <= after) & (sizes <= change)
    which = np.union1d(np.flatnonzero(vanish), np.argmin(sizes))
    return [(int(i), bool(vanish[i])) for i in which]
