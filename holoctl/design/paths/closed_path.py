"""A path on the closed mechanism: configurations and their derivatives by s at many nodes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.optimize import brentq

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import BranchError, InputError
from holoctl.base.tolerances import SETTLED_TICK
from holoctl.closing.idle.basis import idle_basis
from holoctl.design.paths.curve import Curve, curve_through
from holoctl.design.paths.inputs import CheckedPath
from holoctl.design.paths.path_continuation import (
    PATH_STALLED,
    Path,
    PathNode,
    System,
    ends_singular,
    filled_at,
    followed,
    gamma_of,
    moved,
    node_at,
    with_rows_of,
)
from holoctl.design.paths.path_singularity import check_sides

__all__ = [
    "ClosedPath",
    "apart",
    "between",
    "closed_curve",
    "closed_path",
    "every_second",
    "grid_of",
    "near_ends",
    "turning_points",
    "with_nodes",
]

CURVE_CLOSED = 1e-10  # scaled
"""A trajectory gets more nodes until its closure error between them is at most this."""


def grid_of(knots: Vector, points: int) -> Vector:
    """A grid of `points` intervals of about equal length from the first knot to the last, with all
    knots in it."""
    spans = np.diff(knots)
    each = np.maximum(1, np.round(points * spans / spans.sum()).astype(int))
    each[np.argmax(each)] = max(1, int(each.max() + points - each.sum()))
    parts = [
        np.linspace(a, b, n, endpoint=False)
        for a, b, n in zip(knots[:-1], knots[1:], each, strict=True)
    ]
    return np.append(np.concatenate(parts), knots[-1])


def every_second(grid: Vector, knots: Vector) -> NDArray[np.bool_]:
    """A mask of nodes, all knots among them, such that each other node is half-way between two of
    them."""
    keep = np.ones(grid.size, dtype=bool)
    for a, b in pairwise(np.searchsorted(grid, knots).tolist()):
        keep[a + 1 : b - (b - a) % 2 : 2] = False
    return keep


def near_ends(s: Vector) -> Vector:
    """Additional nodes in the first and in the last interval, at distances halved toward the
    ends."""
    parts = 0.5 ** np.arange(5, 0, -1)
    return np.concatenate([s[0] + parts * (s[1] - s[0]), s[-1] - parts[::-1] * (s[-1] - s[-2])])


def apart(s: Vector, least: float) -> NDArray[np.bool_]:
    """A mask of increasing numbers, both ends among them, at distances of at least `least`."""
    keep, last = np.zeros(s.size, dtype=bool), -np.inf
    for i, x in enumerate(s.tolist()):
        if x - last >= least and (s[-1] - x >= least or i in (0, s.size - 1)):
            keep[i], last = True, x
    keep[-1] = True
    return keep


PATH_HALVED = 1e-5  # scaled
"""Newton's method for a node half-way between two others starts from the interpolated configuration
if its residual is below this."""

CURVE_RATES = 1e-6  # scaled
"""Half-way between nodes the rates of a trajectory, times the interval, differ from those of the
path by at most this: whole turns that were missed show in rates, not in angles."""

CURVE_APART = 1e-4
"""Nodes of a trajectory that are nearer to each other than this share of its length are dropped:
the error of accelerations is the rounding of configurations over the distance squared."""

CURVE_SHORTEST = 1e-7
"""Smallest distance between nodes that are added to a trajectory, as a share of its length."""

PATH_MEETS = 1e-6  # scaled
"""Largest distance of a way-point from the path of the closed mechanism: a larger one means motors,
or joints, that contradict the others."""

PATH_STILL = 1e-7
"""A path stands still if its derivative is below this share of the largest."""

PATH_GAIN = 1e8  # scaled
"""At a dead point some coordinate moves by more than this times the driven ones."""

TURNS_APART = 0.02
"""A path gets a node at a turning point of a joint, unless a node is nearer than this share of the
distance between nodes."""


@dataclass(frozen=True, eq=False)
class ClosedPath:
    """Nodes of a path.

    Attributes
    ----------
    system : System
    path : function s -> PathReference
    s : (n,) array
    q : (n, nq) array
    d1, d2 : (n, nv) arrays
        q' and q'': ``v = q' sd``, ``a = q'' sd^2 + q' sdd``.
    gamma : (n, nv, p) array
        ``q'`` by the rates of the driven rows.
    """

    system: System
    path: Path
    s: Vector
    q: Array
    d1: Array
    d2: Array
    gamma: Array

    def curve(self) -> Curve:
        """The curve through the nodes."""
        return curve_through(self.system.mech, self.s, self.q, self.d1, self.d2)

    def where(self, keep: NDArray[np.bool_]) -> ClosedPath:
        """The path with the nodes of a mask."""
        tables = (x[keep] for x in (self.s, self.q, self.d1, self.d2, self.gamma))
        return ClosedPath(self.system, self.path, *tables)


def closed_path(given: CheckedPath, grid: Vector, still: bool = False) -> ClosedPath:
    """The nodes of a path at a grid; it may stand still if `still`.

    Raises
    ------
    BranchError
        If the path cannot be followed on this branch.
    SingularityError
        If it ends at a singularity of the motors or of the task, or configurations lie on both
        sides of one.
    InputError
        If the path stands still, or a way-point is not on it.
    """
    system, mech = given.system, given.system.mech
    first = node_at(system, given.path, given.q, float(grid[0]))
    gain = np.inf if first is None else _gain(system, first)
    if first is None or not gain <= PATH_GAIN:
        raise ends_singular(system, given.path, given.q, float(grid[0])) or BranchError(
            f"{mech.name}: at the start of the path {listing(system.drive.labels)} do not "
            "determine the motion of the mechanism: the start is a dead point or a singular "
            "configuration, or some of them can never move independently",
            why="dead point",
        )
    coarse = every_second(grid, given.knots)
    found = _table(system, given.path, followed(system, given.path, first, grid[coarse]))
    if not coarse.all():
        found = _filled_in(found, grid[~coarse])
    if not still:
        _check_moves(found)
    _check_points(found, given)
    return found


def _filled_in(path: ClosedPath, more: Vector) -> ClosedPath:
    """A path with more nodes, half-way between those it has: all at once, by Newton's method from
    the interpolated configurations; by `with_nodes` if these are not close enough."""
    system, mech, c = path.system, path.system.mech, path.system.mech.column_scale
    which = np.searchsorted(path.s, more) - 1
    q, wanted = path.curve().between()[0][which], [path.path(s) for s in more.tolist()]
    values, p, r = [w.value for w in wanted], path.gamma.shape[2], system.part.rank
    for _ in range(3):
        K, right, _ = filled_at(system, values, q)
        size = float(np.abs(right).max(initial=0.0))
        if size <= SETTLED_TICK or not size <= PATH_HALVED:
            break
        steps = c * np.linalg.solve(K, right[:, :, None])[:, :, 0]
        q = np.array([moved(mech, *x) for x in zip(q, steps, strict=True)])
        if mech.nq != mech.nv:
            q = np.array([pin.normalize(mech.model, x) for x in q])
    if not size <= PATH_STALLED:
        return with_nodes(path, more)
    gamma = gamma_of(system, K)
    d1 = np.einsum("ivp,ip->iv", gamma, np.array([w.rate for w in wanted]))
    right = np.zeros_like(right)
    for i, (w, x, v) in enumerate(zip(wanted, q, d1, strict=True)):
        right[i, :r] = system.rows.right(x, v)
        right[i, r : r + p] = system.drive.scale * (w.acceleration - system.drive.drift(x, v))
    d2 = c * np.linalg.solve(K, right[:, :, None])[:, :, 0]
    return _merged(path, ClosedPath(system, path.path, more, q, d1, d2, gamma))


def _merged(one: ClosedPath, two: ClosedPath) -> ClosedPath:
    order = np.argsort(np.concatenate([one.s, two.s]), kind="stable")
    pairs = ((one.s, two.s), (one.q, two.q), (one.d1, two.d1), (one.d2, two.d2),
             (one.gamma, two.gamma))  # fmt: skip
    return ClosedPath(one.system, one.path, *(np.concatenate(x)[order] for x in pairs))


def _gain(system: System, node: PathNode) -> float:
    """The largest derivative of a coordinate by the driven rows, scaled."""
    scaled = node.gamma / system.mech.column_scale[:, None] / system.drive.scale
    return float(np.abs(scaled).max(initial=0.0))


def with_nodes(path: ClosedPath, more: Vector) -> ClosedPath:
    """The same path with more nodes between those it has."""
    if not more.size:
        return path
    system, nodes = path.system, []
    for s in more.tolist():
        i = int(np.searchsorted(path.s, s)) - 1
        mid = curve_through(
            system.mech,
            path.s[i : i + 2],
            path.q[i : i + 2],
            path.d1[i : i + 2],
            path.d2[i : i + 2],
        ).at(s)
        node = node_at(system, path.path, mid.q, s)
        nodes.append(_from_before(path, i, s) if node is None else node)
    return _merged(path, _table(system, path.path, nodes))


def _from_before(path: ClosedPath, i: int, s: float) -> PathNode:
    """The node at s, followed from node i, if the interpolated configuration is too inaccurate."""
    begin = node_at(path.system, path.path, path.q[i], float(path.s[i]))
    if begin is None:
        at = path.q[i], float(path.s[i])
        raise ends_singular(path.system, path.path, *at) or BranchError(
            f"{path.system.mech.name}: the path cannot be followed at s = {s:.6g}: it comes to a "
            "dead point or a singular configuration, or it is not smooth",
            why="dead point",
        )
    return followed(path.system, path.path, begin, [begin.s, s])[-1]


def between(path: ClosedPath, curve: Curve, share: float = 0.5) -> tuple[ClosedPath, Vector]:
    """The curve at a share of each interval between nodes, and its errors there, scaled.

    The error is the largest of the closure error, the distance from the path and, with a smaller
    weight, the error of the rates times the interval.
    """
    system, middle = path.system, path.s[:-1] + share * np.diff(path.s)
    q, d1, d2 = curve.between(share)
    wanted = [path.path(s) for s in middle.tolist()]
    K, right, worst = filled_at(system, [w.value for w in wanted], q)
    errors = np.maximum(worst, np.abs(right).max(axis=1, initial=0.0))
    r, c, scale = system.part.rank, system.mech.column_scale, system.drive.scale
    rates = np.einsum("ipv,iv->ip", K[:, r : r + scale.size], d1 / c)
    turns = np.abs(rates - scale * np.array([w.rate for w in wanted])).max(axis=1, initial=0.0)
    errors = np.maximum(errors, turns * np.diff(path.s) * (CURVE_CLOSED / CURVE_RATES))
    gamma, expected = gamma_of(system, K), 0.5 * (path.gamma[1:] + path.gamma[:-1])
    away = np.abs(gamma - expected).max(axis=(1, 2))
    for i in np.flatnonzero(~(away <= 0.1 * np.abs(expected).max(axis=(1, 2)))).tolist():
        other = with_rows_of(system, q[i])  # the rows in use are ill-conditioned here
        K_i, _, _ = filled_at(other, [path.path(float(middle[i])).value], q[i : i + 1])
        gamma[i] = gamma_of(other, K_i)[0]
    return ClosedPath(system, path.path, middle, q, d1, d2, gamma), errors


def turning_points(path: ClosedPath) -> Vector:
    """The s between nodes, and not close to them, at which the rate of a coordinate changes
    sign."""
    curve, found = path.curve(), []
    fastest = np.abs(path.d1 / path.system.mech.column_scale).max(axis=0)
    moves = fastest > PATH_STILL * fastest.max()  # rates of resting coordinates are rounding
    turns = np.argwhere((path.d1[1:] * path.d1[:-1] < 0.0) & moves)
    for i, j in turns.tolist():
        h = float(path.s[i + 1] - path.s[i])
        if not curve.within(i, 0.0).v[j] * curve.within(i, h).v[j] < 0.0:
            continue

        def rate(x: float, i: int = i, j: int = j) -> float:
            return float(curve.within(i, x).v[j])

        x = float(brentq(rate, 0.0, h, xtol=1e-6 * h))
        if TURNS_APART < x / h < 1.0 - TURNS_APART:
            found.append(float(path.s[i]) + x)
    found = sorted(found)
    least = TURNS_APART * float(np.diff(path.s).mean())
    return np.array([x for k, x in enumerate(found) if not k or x - found[k - 1] > least])


def closed_curve(path: ClosedPath) -> tuple[Curve, ClosedPath]:
    """A curve that is closed everywhere, and the path half-way between its nodes.

    Nodes that are so close to each other that rounding matters are dropped, and others are added
    until the curve is closed between them.

    Raises
    ------
    InputError
        If the path is not differentiable somewhere.
    SingularityError
        If a singularity is the reason.
    """
    path = path.where(apart(path.s, CURVE_APART * float(path.s[-1] - path.s[0])))
    while True:
        curve = path.curve()
        middle, errors = between(path, curve)
        wide = errors > max(CURVE_CLOSED, path.system.part.tolerance)
        if not wide.any():
            return curve, middle
        length = np.diff(path.s)
        if float(length[wide].min()) < CURVE_SHORTEST * float(path.s[-1] - path.s[0]):
            i = int(np.flatnonzero(wide)[np.argmin(length[wide])])
            at = float(path.s[i])
            raise ends_singular(path.system, path.path, path.q[i], at) or InputError(
                f"{path.system.mech.name}: the path has no second derivative near s = {at:.6g}, or "
                "rates that do not match its values (for poses with one or two rotation axes: name "
                "all three, or none)"
            )
        path = with_nodes(path, (path.s[:-1] + 0.5 * length)[wide])


def _table(system: System, path: Path, nodes: list[PathNode]) -> ClosedPath:
    s = np.array([node.s for node in nodes])
    tables = (np.array([x[i] for x in nodes]) for i in (1, 2, 3, 6))
    return ClosedPath(system, path, s, *tables)


def _check_moves(path: ClosedPath) -> None:
    """Raise `InputError` if a path stands still."""
    mech = path.system.mech
    speed = np.linalg.norm(path.d1 / mech.column_scale, axis=1)
    slow = speed <= PATH_STILL * float(speed.max())
    if slow.any() or not speed.max() > 0.0:
        s = float(path.s[np.argmin(speed)])
        raise InputError(
            f"{mech.name}: the path stands still at s = {s:.4g}: its derivative vanishes there. A "
            "path gives positions only; the speed along it is computed. Give a function whose "
            "derivative is nowhere zero (s itself, not a smooth step of it), and no way-point "
            "twice; if the path reverses, give its parts one by one"
        )


def _check_points(path: ClosedPath, given: CheckedPath) -> None:
    """Raise `InputError` if a way-point is not on the path of the closed mechanism."""
    mech, part, before = path.system.mech, path.system.part, float(path.s[0])
    for s, point in given.points:
        q = path.q[int(np.argmin(np.abs(path.s - s)))]
        if point.size == mech.nu and mech.actuated:
            if mech.motors.missing:
                continue
            columns = [mech.coordinate_names.index(n) for n in mech.actuated]
            off = (point - mech.motor_positions(q)) / mech.column_scale[columns]
            turning = mech.motors.turning
            off[turning] = (off[turning] + np.pi) % (2.0 * np.pi) - np.pi
            names = mech.actuator_names
            why = "the motors contradict each other"
        else:
            off = pin.difference(mech.model, q, point) / mech.column_scale
            if path.system.idle.size:
                idle = np.hstack([path.system.idle, idle_basis(mech, q, 0.0, held=mech.B.T)])
                off[np.abs(idle).max(axis=1) > PATH_MEETS] = 0.0  # it spins
            names = mech.coordinate_names
            why = "it is not closed, or on another branch than the way-points before it"
        i = int(np.argmax(np.abs(off)))
        if not abs(off[i]) <= max(PATH_MEETS, 10.0 * part.tolerance):
            if point.size != mech.nu or not mech.actuated:
                last = path.q[int(np.argmin(np.abs(path.s - before)))]
                check_sides(mech, part, (before, last), (s, point))
            raise InputError(
                f"{mech.name}: path: the point at s = {s:.4g} is not on the path: {names[i]!r} "
                f"differs by {abs(off[i]):.2g} (scaled) when the others are as given; {why}"
            )
        before = s
