"""Limits along a path, as rows at its nodes:

    a sdd + b sd^2 + z sd + c <= 0        sd^2 <= most

With as many motors as motions each effort is a row. With more motors the rows are the facets of the
set of efforts on the motions that they can produce together: with A = gamma' B and n orthogonal to
p - 1 of its columns,

    sum_j min(n'A_j u_j) <= n' (r1 sdd + r2 sd^2 + r3 - f) <= sum_j max(n'A_j u_j)

which is equivalent to efforts as variables. The limit of a motor may depend on its speed,

    lower + rises sd <= u <= upper - falls sd        for each of several lines

with a polygon as its curve. Near a speed the rows are the piece of the polygon at that speed, and
those other pieces whose lines are above it there: a concave corner is exact, a convex one is cut by
the line of its side. Rows are scaled by the range of the limited quantity.
Reference: docs/derivations.md, "Trajectories"; on zonotopes, G. Ziegler, Lectures on Polytopes.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError
from holoctl.design.paths.closed_path import ClosedPath
from holoctl.design.paths.dynamics import Dynamics, speed_forces
from holoctl.mechanism.bound_limits import BoundLimits
from holoctl.mechanism.limited_coordinates import coordinates_at

__all__ = [
    "Box",
    "RetimingRows",
    "effort_boxes",
    "effort_range",
    "effort_rows",
    "joined",
    "joint_rows",
    "limited_along",
    "no_rows",
]


MOST_FACETS = 1000
"""With more motors than motions the set of their common efforts may have twice this number of
facets."""

SAME_COLUMN = 1e-9
"""An effort does not act on a motion if its entry is below this share of the largest."""


class RetimingRows(NamedTuple):
    """The rows of limits, see the head of this module: n nodes, m rows.

    Attributes
    ----------
    a, b, z, c : (n, m) arrays
    size : (n, m) array
        Divisors of the rows, N m or N, or rad/s^2 or m/s^2.
    most : (n,) array
        Upper bounds of sd^2; inf without one.
    names : tuple of m str
        Names of the limited motors or joints.
    """

    a: Array
    b: Array
    z: Array
    c: Array
    size: Array
    most: Vector
    names: tuple[str, ...]


def joined(one: RetimingRows, two: RetimingRows) -> RetimingRows:
    """The rows of both."""
    a, b, z, c, size = (np.hstack([x, y]) for x, y in zip(one[:5], two[:5], strict=True))
    return RetimingRows(a, b, z, c, size, np.minimum(one.most, two.most), one.names + two.names)


def no_rows(n: int) -> RetimingRows:
    """A value without rows at n nodes."""
    none = np.zeros((n, 0))
    return RetimingRows(none, none, none, none, none, np.full(n, np.inf), ())


# ----------------------------------------------------------------------------------------- efforts


class FrictionTerms(NamedTuple):
    """f = at + slope sd, near a speed, (n, p) each."""

    at: Array
    slope: Array


def friction_near(dyn: Dynamics, sd: Vector, step: float = 1e-4) -> FrictionTerms:
    """The forces that change with the speed, linearised in sd."""
    none = np.zeros_like(dyn.r1)
    if not dyn.speedy:
        return FrictionTerms(none, none)
    size = np.maximum(sd, 1e-9)
    low, high = (speed_forces(dyn.path, x * size) for x in (1.0 - step, 1.0 + step))
    slope = (high - low) / (2.0 * step * size)[:, None]
    return FrictionTerms(0.5 * (low + high) - slope * size[:, None], slope)


def effort_rows(dyn: Dynamics, bound: BoundLimits, sd: Vector) -> RetimingRows:
    """The rows of efforts near the speeds sd, exact there."""
    n, p, nu = dyn.A.shape
    friction = friction_near(dyn, sd)
    names = dyn.path.system.mech.actuator_names
    terms = np.stack([dyn.r1, dyn.r2, dyn.r3, *friction], axis=2)
    if nu == p:
        found, EA = np.linalg.solve(dyn.A, terms), np.broadcast_to(np.eye(p), (n, p, p))
        labels: tuple[str, ...] = names
    else:
        E, labels = _normals(dyn.A, names)
        found, EA = E @ terms, E @ dyn.A
    *rates, at, slope = np.moveaxis(found, 2, 0)
    found_rows = no_rows(n)
    for box in effort_boxes(dyn.path, bound, sd):
        for side in (1.0, -1.0):
            most, falls = _support(side * EA, box)
            use = np.isfinite(most)
            size = np.where(use, _range(EA, box), 1.0)
            a, b, c = (np.where(use, side * x / size, 0.0) for x in rates)
            c = np.where(use, c - (side * at + most) / size, -1.0)
            z = np.where(use, (falls - side * slope) / size, 0.0)
            found_rows = joined(found_rows, RetimingRows(a, b, z, c, size, found_rows.most, labels))
    return found_rows


def _support(EA: Array, box: Box) -> tuple[Array, Array]:
    """The maximum of ``EA u``, as ``most - falls sd`` (n, m)."""
    up, down = np.maximum(EA, 0.0), np.maximum(-EA, 0.0)
    with np.errstate(invalid="ignore"):
        none = SAME_COLUMN * np.abs(EA).max(axis=2, keepdims=True)
        most = np.where(up > none, up * box.upper[:, None], 0.0)
        most = most + np.where(down > none, -down * box.lower[:, None], 0.0)
    falls = up * box.falls[:, None] + down * box.rises[:, None]
    return most.sum(axis=2), falls.sum(axis=2)


def _range(EA: Array, box: Box) -> Array:
    """Divisors of rows of efforts: half the range, or the finite side of a one-sided range."""
    high, low = _support(EA, box)[0], _support(-EA, box)[0]
    with np.errstate(invalid="ignore"):
        size = 0.5 * (high + low)
    size = np.where(np.isfinite(size), size, np.where(np.isfinite(high), np.abs(high), np.abs(low)))
    return np.where(np.isfinite(size) & (size > 0.0), size, 1.0)


def _normals(A: Array, names: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """The normals of facets (n, m, p), and the motors that are at their limits there."""
    n, p, nu = A.shape
    if comb(nu, p - 1) > MOST_FACETS:
        raise InputError(
            f"{nu} motors for {p} motions are too many for retime: the set of their common efforts "
            f"has {2 * comb(nu, p - 1)} facets (at most {2 * MOST_FACETS})"
        )
    sizes = np.linalg.norm(A, axis=(0, 1))
    subsets = list(combinations(range(nu), p - 1))
    E, labels = np.zeros((n, len(subsets), p)), []
    for m, subset in enumerate(subsets):
        if not subset:
            E[:, m] = 1.0
        else:
            U, s, _ = np.linalg.svd(A[:, :, list(subset)] / sizes[list(subset)])
            good = s[:, -1] > SAME_COLUMN * s[:, 0]
            E[:, m] = np.where(good[:, None], U[:, :, -1], 0.0)
        labels.append("+".join(names[i] for i in range(nu) if i not in subset))
    return E, tuple(labels)


# ------------------------------------------------------------------------------------------ joints


def limited_along(path: ClosedPath, bound: BoundLimits) -> tuple[Array, Array, Array]:
    """Positions of the limited coordinates, and their first and second derivative by s, (n, l)
    each."""
    if not bound.cut:
        found = np.where(bound.places < 0, 0.0, path.q[:, bound.places])
        return found, path.d1[:, bound.columns], path.d2[:, bound.columns]
    found, rates, bias = np.zeros((3, path.s.size, len(bound.names)))
    for i in range(path.s.size):
        here = coordinates_at(path.system.mech, bound, path.q[i], path.d1[i], 0.0)
        found[i], rates[i] = here.positions, here.velocities
        bias[i] = here.accelerations(path.d2[i])
    return found, rates, bias


def joint_rows(path: ClosedPath, bound: BoundLimits) -> RetimingRows:
    """The rows of accelerations, and the bounds of sd^2 by the rates of joints."""
    n = path.s.size
    none = no_rows(n)
    if not bound.names:
        return none
    _, rates, bias = limited_along(path, bound)
    lower, upper = bound.velocity
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = np.where(rates > 0.0, upper, -lower)
        fastest = np.where(rates != 0.0, limit / np.abs(rates), np.inf)
    most = fastest.min(axis=1) ** 2
    use = np.flatnonzero(np.isfinite(bound.acceleration).any(axis=0))
    parts = none._replace(most=most)
    for side, limits in ((1.0, bound.acceleration[1]), (-1.0, -bound.acceleration[0])):
        k = use[np.isfinite(limits[use])]
        zeros = np.zeros((n, k.size))
        size, names = zeros + limits[k], tuple(f"{bound.names[i]}.acceleration" for i in k)
        a, b = side * rates[:, k] / size, side * bias[:, k] / size
        rows = RetimingRows(a, b, zeros, zeros - 1.0, size, most, names)
        parts = joined(parts, rows)
    return parts


class Box(NamedTuple):
    """Bounds of efforts, ``lower + rises sd <= u <= upper - falls sd``; (n, nu) each, with falls
    and rises at least 0."""

    lower: Array
    upper: Array
    rises: Array
    falls: Array


def effort_boxes(path: ClosedPath, bound: BoundLimits, sd: Vector) -> list[Box]:
    """The bounds of efforts near the speeds sd (n,), which all hold; their number does not depend
    on sd."""
    n, nu = path.s.size, bound.effort.shape[1]
    lower, upper = (np.broadcast_to(x, (n, nu)) for x in bound.effort)
    whole = Box(lower, upper, *np.zeros((2, n, nu)))
    pieces = max((curve.shape[1] for curve in bound.curves if curve is not None), default=0)
    return [whole, *(_box(path, bound, sd, piece) for piece in range(pieces))]


def effort_range(path: ClosedPath, bound: BoundLimits, sd: Vector) -> tuple[Array, Array]:
    """Lower and upper bounds (n, nu) at these speeds."""
    box, (lower, upper) = _box(path, bound, sd, None), bound.effort
    return (
        np.maximum(lower, box.lower + box.rises * sd[:, None]),
        np.minimum(upper, box.upper - box.falls * sd[:, None]),
    )


def _box(path: ClosedPath, bound: BoundLimits, sd: Vector, piece: int | None) -> Box:
    """The bounds by the line of a piece if it is above the curve at sd, else by the piece at sd."""
    n, nu = path.s.size, bound.effort.shape[1]
    lower, upper = (np.broadcast_to(x, (n, nu)).copy() for x in bound.effort)
    rises, falls = np.zeros((2, n, nu))
    rates = path.d1 @ path.system.mech.B
    for j, curve in enumerate(bound.curves):
        if curve is None:
            continue
        speeds, efforts = curve
        rate = np.abs(rates[:, j])
        slopes = np.append(-np.diff(efforts) / np.diff(speeds), 0.0)
        firsts = efforts + slopes * speeds
        here = np.searchsorted(speeds, rate * sd, side="right") - 1
        at, slope = firsts[here], slopes[here] * rate
        if piece is not None and piece < speeds.size:
            other = firsts[piece] - slopes[piece] * rate * sd >= at - slope * sd
            at = np.where(other, firsts[piece], at)
            slope = np.where(other, slopes[piece] * rate, slope)
        up, down = rates[:, j] > 0.0, rates[:, j] < 0.0
        upper[up, j], falls[up, j] = at[up], slope[up]
        lower[down, j], rises[down, j] = -at[down], slope[down]
    return Box(lower, upper, rises, falls)
