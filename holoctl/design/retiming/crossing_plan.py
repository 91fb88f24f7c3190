"""The plan of a motion through type-2 (actuation) singularities, along a path.

    sd^2 = b(s), of crossing_program.py        t(s) = integral ds / sqrt(b)
    q(t)   a curve of degree five through nodes (t, q, q' sd, q'' b + q' b'/2)

A singularity can be crossed where det A, A = gamma' B in the driven rows, changes its sign: there
one motion w is lost, and d(w' A)/ds is not zero. On the solution w' r = 0 is imposed once more, to
rounding: an error e would leave efforts e / (w' A) beside the singularity.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.optimize import brentq

from holoctl.base.checks import Array, Vector, counted
from holoctl.base.errors import LimitError, SingularityError
from holoctl.base.linalg import null_space_by_svd
from holoctl.closing.rank import scaled_jacobian
from holoctl.design.paths.closed_path import (
    CURVE_CLOSED,
    CURVE_SHORTEST,
    ClosedPath,
    between,
    with_nodes,
)
from holoctl.design.paths.curve import Curve, curve_through
from holoctl.design.paths.dynamics import Dynamics, dynamics_along, speed_forces
from holoctl.design.paths.inputs import REGULAR
from holoctl.design.paths.planned_crossing import PlannedCrossing
from holoctl.design.paths.regular_coordinates import regular_coordinates
from holoctl.design.paths.trajectory import Trajectory
from holoctl.design.paths.type_2 import Type2
from holoctl.design.retiming.crossing_program import (
    PathSingularity,
    excess_at,
    fastest_through,
    least_excess,
    usual_speed,
)
from holoctl.design.retiming.limit_rows import effort_range, joint_rows
from holoctl.design.retiming.result import RETIME_ACTIVE, fast, least_of_task
from holoctl.design.retiming.solve import (
    RETIME_OVER,
    RETIME_ROUNDS,
    RETIME_SETTLED,
    RETIME_SLOW,
    RetimingProblem,
)
from holoctl.dynamics.actuation_side import has_sides, hold_of_motors, least_held_motion
from holoctl.projector.partition import partition

__all__ = ["planned_crossing"]

APART = 1e-3
"""Nodes of the plan are at least this share of the path away from a singularity; two singularities
are at least ten times as far apart."""

LEAST_INTERVALS = 100
"""The plan has at least this number of intervals between nodes."""

MOST_INTERVALS = 400
"""If no motion is found with fewer intervals than this, twice as many are tried."""

BESIDE = np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0])
"""Places of more nodes of the trajectory beside a singularity, in units of `APART`: the third
derivative of its curve must be right there."""

CHECKED = (0.25, 0.5, 0.75)
"""Shares of the intervals between nodes at which limits are checked."""

TIGHTENED = 6
"""Largest number of times that limits are tightened where they are exceeded between nodes."""

KEPT = 2e-2
"""A motion that exceeds a limit between nodes by more than this share of it is none."""

TIGHTER = 0.5
"""Largest share by which limits are tightened at once."""

TWO_LOST = 1e-6
"""A further motion is lost if its singular value is below this share of the largest."""

QUADRATURE = 16
"""Order of the Gauss-Legendre quadrature of time in each interval."""

log = logging.getLogger(__name__)


class _Plan(NamedTuple):
    """The dynamics along a path with a node on each singularity, these, and the path at them."""

    dyn: Dynamics
    singular: list[PathSingularity]
    there: Dynamics

    @property
    def path(self) -> ClosedPath:
        """The path."""
        return self.dyn.path


def planned_crossing(task: RetimingProblem, path: ClosedPath, found: Type2) -> Trajectory:
    """The fastest motion along a path through the type-2 singularities that were found on it.

    Raises
    ------
    SingularityError
        If the path touches one or runs along it, or more than one motion is lost there.
    LimitError
        If no motion within the limits crosses it.
    """
    plan = _prepared(task, path, _places(path, found))
    while plan.path.s.size <= LEAST_INTERVALS:
        plan = _finer(task, plan)
    tight, best, over = np.zeros(plan.path.s.size), None, np.inf
    for _ in range(TIGHTENED):
        solved = _in_rounds(task, plan, tight)
        if solved is None and best is None and plan.path.s.size <= MOST_INTERVALS:
            plan = _finer(task, plan)
            tight = np.zeros(plan.path.s.size)
            solved = _in_rounds(task, plan, tight)
        if solved is None:
            break
        excess = _excess(task, plan, solved)
        if float(excess.max()) < over:
            over, best = float(excess.max()), solved
        if over <= RETIME_OVER:
            break
        more = np.where(excess > 0.5 * RETIME_OVER, np.minimum(excess, TIGHTER), 0.0)
        tight = tight + np.maximum(np.append(more, 0.0), np.append(0.0, more))
    if best is None or over > KEPT:
        raise _impossible(task, plan, over)
    return _trajectory(task, plan, best, over)


def _finer(task: RetimingProblem, plan: _Plan) -> _Plan:
    """The plan with a node half-way between two others of the path."""
    places = plan.there.path.s.tolist()
    away = np.abs(plan.path.s[:, None] - np.array(places)).min(axis=1) > 0.0
    nodes = plan.path.where(away)
    halves = 0.5 * (nodes.s[1:] + nodes.s[:-1])
    return _prepared(task, with_nodes(nodes, halves), places)


def _places(path: ClosedPath, found: Type2) -> list[float]:
    """The s at which det A changes its sign."""
    mech, part = path.system.mech, path.system.part
    if not has_sides(mech, part):
        raise _refused(
            path, found.places[0],
            "that is for as many motors as motions, which drive all of them; it has "
            f"{counted(mech.nu, 'motor')}, of which {part.actuation_rank} suffice for "
            f"{counted(mech.nv - part.rank, 'motion')}",
        )  # fmt: skip
    near = APART * float(path.s[-1] - path.s[0])

    def det(s: float) -> float:
        return float(np.linalg.det(_nodes_at(path, [s]).gamma[0].T @ mech.B))

    places, last = [], -np.inf
    crossed = [one != two for one, two in pairwise(found.sides)] or [False] * len(found.places)
    for s, crosses in zip(found.places, crossed, strict=True):
        low, high = s - near, s + near
        inside = path.s[0] + 10.0 * near < s < path.s[-1] - 10.0 * near
        if not (inside and s - last > 10.0 * near):
            raise _refused(path, s, "another one, or an end of the path, is too near")
        if not crosses or not det(low) * det(high) < 0.0:
            raise _refused(path, s, "the path touches it, or runs along it, and does not cross it")
        places.append(float(brentq(det, low, high, xtol=1e-15)))
        last = s
    return places


def _refused(path: ClosedPath, s: float, why: str) -> SingularityError:
    mech, q = path.system.mech, _nodes_at(path, [s]).q[0]
    lost = hold_of_motors(mech, path.system.part, q)
    return SingularityError(
        f"{mech.name}: no motion can be planned through the type-2 (actuation) singularity at "
        f"s = {s:.6g}: {why}; lead the path across it at an angle, from one side to the other, or "
        f"around it. There {lost.words}",
        names=lost.names, kind="type 2", value=lost.value, place=s, q=q, motion=lost.words,
    )  # fmt: skip


def _nodes_at(path: ClosedPath, s: list[float]) -> ClosedPath:
    """The path at these places alone."""
    whole = with_nodes(path, np.array([x for x in s if not (path.s == x).any()]))
    return whole.where(np.isin(whole.s, s))


def _prepared(task: RetimingProblem, path: ClosedPath, places: list[float]) -> _Plan:
    near = APART * float(path.s[-1] - path.s[0])
    away = np.abs(path.s[:, None] - np.array(places)).min(axis=1) > near
    nodes = with_nodes(path.where(away), np.array(places))
    there = dynamics_along(_nodes_at(nodes, places), task.f_ext, at_singular=True)
    singular = []
    for s, A in zip(places, there.A, strict=True):
        U, sizes, _ = np.linalg.svd(A)
        if sizes.size > 1 and sizes[-2] < TWO_LOST * sizes[0]:
            raise _refused(path, s, "the motors lose two motions at once")
        five = [s + sign * 0.1 * near * np.arange(5) for sign in (-1.0, 1.0)]
        before, after = (
            dynamics_along(_nodes_at(nodes, x.tolist()), task.f_ext, at_singular=True) for x in five
        )
        sides = _backwards(before), after
        singular.append(PathSingularity(int(np.searchsorted(nodes.s, s)), U[:, -1], sides))
    return _Plan(dynamics_along(nodes, task.f_ext, at_singular=True), singular, there)


def _backwards(dyn: Dynamics) -> Dynamics:
    p = dyn.path
    tables = (x[::-1] for x in (p.s, p.q, p.d1, p.d2, p.gamma))
    path = ClosedPath(p.system, p.path, *tables)
    return Dynamics(path, dyn.A[::-1], dyn.r1[::-1], dyn.r2[::-1], dyn.r3[::-1], dyn.speedy)


def _in_rounds(task: RetimingProblem, plan: _Plan, tight: Vector) -> BSpline | None:
    """The fastest motion, with forces and limits linearised near the last one."""
    s, usual = plan.path.s, np.sqrt(usual_speed(plan.dyn, task.bound))
    changes = plan.dyn.speedy or any(curve is not None for curve in task.bound.curves)

    def solved_near(sd: Vector) -> BSpline | None:
        return fastest_through(plan.dyn, task.bound, plan.singular, sd, tight)

    sd = np.full(s.size, usual)
    solved = solved_near(sd)
    while solved is None and changes and sd[0] > RETIME_SLOW**2 * usual:
        sd = RETIME_SLOW * sd
        solved = solved_near(sd)
    if solved is None:
        return None
    last = np.inf
    for turn in range(RETIME_ROUNDS if changes else 0):
        new, duration = np.sqrt(np.maximum(solved(s), 0.0)), float(_times(solved, s)[-1])
        if abs(duration - last) < RETIME_SETTLED * duration:
            break
        sd, last = (new if turn < RETIME_ROUNDS // 2 else 0.5 * (sd + new)), duration
        better = solved_near(sd)
        if better is None:
            break
        solved = better
    return _exact(plan, solved)


def _needed(dyn: Dynamics, b: BSpline, s: Vector) -> Array:
    """r (n, p) at n places."""
    rate = np.sqrt(np.maximum(b(s), 0.0))
    f = speed_forces(dyn.path, rate) if dyn.speedy else np.zeros_like(dyn.r1)
    return dyn.balance(0.5 * b.derivative()(s), rate**2, f)


def _exact(plan: _Plan, b: BSpline) -> BSpline:
    """The solution with ``w' r = 0`` to rounding, by the least change of the coefficients of b."""
    s, W = plan.there.path.s, np.array([one.w for one in plan.singular])
    unit = BSpline(b.t, np.eye(b.c.size), b.k)
    rise, value = 0.5 * unit.derivative()(s), unit(s)
    c = b.c.copy()
    c[[0, -1]] = 0.0
    by_c = (np.einsum("ip,ip->i", W, plan.there.r1)[:, None] * rise
            + np.einsum("ip,ip->i", W, plan.there.r2)[:, None] * value)  # fmt: skip
    by_c[:, [0, -1]] = 0.0
    for _ in range(5):
        off = np.einsum("ip,ip->i", W, _needed(plan.there, BSpline(b.t, c, b.k), s))
        c = c - np.linalg.lstsq(by_c, off, rcond=None)[0]
    return BSpline(b.t, c, b.k)


def _efforts(dyn: Dynamics, b: BSpline) -> Array:
    """u (n, nu) where A is regular."""
    found = np.linalg.solve(dyn.A, _needed(dyn, b, dyn.path.s)[:, :, None])[:, :, 0]
    return np.asarray(found, dtype=float)


def _efforts_at(plan: _Plan, k: int, b: BSpline) -> Array:
    """u (2, nu) just before and after singularity k, from A u = r and its derivative along the
    path."""
    one, i = plan.singular[k], plan.singular[k].node
    s = float(plan.path.s[i])
    rate, sdd = float(np.sqrt(b(s))), 0.5 * float(b.derivative()(s))
    (r1, r2, _), bend = one.along(rate), float(b.derivative(2)(s))
    held = null_space_by_svd(one.w[None], 1)[3].T  # motions that the motors hold
    given, found = held @ _needed(plan.there, b, plan.there.path.s)[k], []
    for by_A, by_r1, by_r2, by_r3 in one.derivatives(rate):
        by_s = by_r1 * sdd + 0.5 * r1 * bend + by_r2 * rate**2 + 2.0 * r2 * sdd + by_r3
        A = np.vstack([held @ plan.dyn.A[i], by_A])
        size = np.abs(A).max(axis=1)
        found.append(np.linalg.solve(A / size[:, None], np.append(given, by_s) / size))
    return np.array(found)


def _excess(task: RetimingProblem, plan: _Plan, b: BSpline) -> Vector:
    """The largest excess over a limit in each interval, as a share of it."""
    curve = plan.path.curve()
    over = np.full(plan.path.s.size - 1, -1.0)
    for share in CHECKED:
        place = between(plan.path, curve, share)[0]
        dyn = dynamics_along(place, task.f_ext, at_singular=True)
        over = np.maximum(over, _over(task, place, b, _efforts(dyn, b)))
    for k, one in enumerate(plan.singular):
        there = plan.path.where(np.arange(plan.path.s.size) == one.node)
        found = [_over(task, there, b, u[None])[0] for u in _efforts_at(plan, k, b)]
        over[one.node - 1 : one.node + 1] = np.maximum(over[one.node - 1 : one.node + 1], found)
    return over


def _over(task: RetimingProblem, place: ClosedPath, b: BSpline, u: Array) -> Vector:
    """The largest excess over a limit at n places, as a share of it; inf where b is not above 0."""
    x, slope = b(place.s), 0.5 * b.derivative()(place.s)
    sd = np.sqrt(np.maximum(x, 0.0))
    lower, upper = effort_range(place, task.bound, sd)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.fmax(np.abs(task.bound.effort[0]), np.abs(task.bound.effort[1]))
        by_effort = np.fmax((u - upper) / size, (lower - u) / size)
        rows = joint_rows(place, task.bound)
        by_joint = rows.a * slope[:, None] + rows.b * x[:, None] + rows.c
        by_rate = sd / np.sqrt(rows.most) - 1.0
    worst = np.nanmax(np.column_stack([by_effort, by_joint, by_rate]), axis=1, initial=-1.0)
    return np.where(x > 0.0, worst, np.inf)


# --------------------------------------------------------------------------------- the trajectory


def _times(b: BSpline, s: Vector) -> Vector:
    """The times at increasing s, from 0; with s = s0 + h x^2 at the start, likewise at the end."""
    x, weights = np.polynomial.legendre.leggauss(QUADRATURE)
    x, weights = 0.5 * (x + 1.0), 0.5 * weights
    h = np.diff(s)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        spans = h[:, 0] * ((1.0 / np.sqrt(b(s[:-1, None] + h * x))) @ weights)
        spans[0] = h[0, 0] * (2.0 * x / np.sqrt(b(s[0] + h[0] * x * x))) @ weights
        spans[-1] = h[-1, 0] * (2.0 * x / np.sqrt(b(s[-1] - h[-1] * x * x))) @ weights
    return np.concatenate([[0.0], np.cumsum(spans)])


def _timed(path: ClosedPath, b: BSpline) -> tuple[ClosedPath, Curve]:
    """The curve in time, with more nodes until it is closed between them."""
    system = path.system
    while True:
        t, slope = _times(b, path.s), 0.5 * b.derivative()(path.s)
        x = np.maximum(b(path.s), 0.0)[:, None]
        v, a = path.d1 * np.sqrt(x), path.d2 * x + path.d1 * slope[:, None]
        curve = curve_through(system.mech, t, path.q, v, a)
        errors = np.array([system.rows.at(q)[2] for q in curve.between()[0]])
        wide = errors > max(CURVE_CLOSED, system.part.tolerance)
        length = np.diff(path.s)
        if not wide.any() or float(length[wide].min()) < CURVE_SHORTEST * float(length.sum()):
            return path, curve  # `Trajectory` checks that it is closed
        path = with_nodes(path, (0.5 * (path.s[1:] + path.s[:-1]))[wide])


def _trajectory(task: RetimingProblem, plan: _Plan, b: BSpline, over: float) -> Trajectory:
    mech, part = plan.path.system.mech, plan.path.system.part
    near = APART * float(plan.path.s[-1] - plan.path.s[0])
    more = (plan.there.path.s[:, None] + near * BESIDE).ravel()
    apart = np.abs(plan.path.s - more[:, None]).min(axis=1) > 0.9 * near
    path, curve = _timed(with_nodes(plan.path, np.sort(more[apart])), b)
    x, slope = np.maximum(b(path.s), 0.0)[:, None], 0.5 * b.derivative()(path.s)[:, None]
    v, a = path.d1 * np.sqrt(x), path.d2 * x + path.d1 * slope
    places = np.searchsorted(path.s, plan.there.path.s)
    regular = ~np.isin(np.arange(path.s.size), places)
    sides = [_efforts_at(plan, k, b) for k in range(places.size)]
    u = np.zeros((path.s.size, mech.nu))
    u[regular] = _efforts(dynamics_along(path.where(regular), task.f_ext, at_singular=True), b)
    u[places] = [two[1] for two in sides]
    excess = max(0.0, over)
    if excess > RETIME_OVER:
        log.warning("retime: limits are exceeded by %.2g %% between nodes", 100.0 * excess)
    crossings = []
    for i, two in zip(places.tolist(), sides, strict=True):
        q, words = path.q[i], hold_of_motors(mech, part, path.q[i]).words
        motion = least_held_motion(mech, part, scaled_jacobian(mech, q, 0.0)[0])[1]
        crossings.append(PlannedCrossing(float(curve.x[i]), q, v[i], two, motion, words))
    columns, least = regular_coordinates(mech, part, path.q, list(range(mech.nv)), mech.nu)
    names = [mech.coordinate_names[i] for i in columns]
    chosen = partition(mech, path.q[0], independent=names) if least > REGULAR else part
    value, place = least_of_task(path, curve.x)
    return Trajectory(
        mech, curve.x, path.q, v, a, u, chosen, _active(task, path, b, u), excess, curve,
        cross=True, task_value=value, task_place=place, crossings=tuple(crossings),
    )  # fmt: skip


def _active(
    task: RetimingProblem, path: ClosedPath, b: BSpline, u: Array
) -> tuple[tuple[str, ...], ...]:
    """Names of the limits that are active at both ends of each interval."""
    mech, bound, x = path.system.mech, task.bound, np.maximum(b(path.s), 0.0)
    sd, slope, rows = np.sqrt(x), 0.5 * b.derivative()(path.s), joint_rows(path, bound)
    lower, upper = effort_range(path, bound, sd)
    with np.errstate(invalid="ignore"):
        size = RETIME_ACTIVE * np.fmax(np.abs(bound.effort[0]), np.abs(bound.effort[1]))
        at = np.hstack([
            (u >= upper - size) | (u <= lower + size),
            rows.a * slope[:, None] + rows.b * x[:, None] + rows.c >= -RETIME_ACTIVE,
            fast(path, bound, sd) >= 1.0 - RETIME_ACTIVE,
        ])  # fmt: skip
    names = [*mech.actuator_names, *rows.names, *(f"{name}.velocity" for name in bound.names)]
    both = at[1:] & at[:-1]
    return tuple(tuple(dict.fromkeys(names[k] for k in np.flatnonzero(x))) for x in both)


def _impossible(task: RetimingProblem, plan: _Plan, over: float) -> LimitError:
    """The error for a path that no motion within the limits crosses: what prevents it; `over` is
    the excess of the best that was found, inf without one."""
    mech, usual = plan.path.system.mech, float(np.sqrt(usual_speed(plan.dyn, task.bound)))
    at = np.full(plan.path.s.size, usual)
    found = np.isfinite(over)
    excess = over if found else least_excess(plan.dyn, task.bound, plan.singular, at)
    alone = [excess_at(plan.dyn, task.bound, one, usual) for one in plan.singular]
    worst = int(np.argmax([np.inf if e is None else e for e in alone]))
    there = alone[worst]
    without = None
    if plan.dyn.speedy:
        smooth = replace(plan.dyn, speedy=False)
        without = least_excess(smooth, task.bound, _smooth(plan.singular), at)
    if excess is None:
        why = "limits of joints prevent it"
    elif without is not None and without <= RETIME_OVER < excess:
        why = "friction is too large: without friction it could be crossed"
    elif there is None or there > RETIME_OVER:
        why = "at no speed do the motors deliver the efforts that the motion needs there"
    else:
        why = (
            "the speed that it needs there cannot be reached and left within the limits: a longer "
            "path, or another place of the crossing on it, may allow it"
        )
    what = "the best that was found exceeds limits" if found else "efforts exceed their limits"
    more = "" if excess is None else f" ({what} by {100.0 * excess:.3g} %)"
    return LimitError(
        f"{mech.name}: no motion within the limits crosses the type-2 (actuation) singularity at "
        f"s = {plan.there.path.s[worst]:.6g}: {why}{more}; take a path that crosses elsewhere or "
        "in another direction, or stronger motors",
        names=mech.actuator_names, residual=np.nan if excess is None else excess,
    )  # fmt: skip


def _smooth(singular: list[PathSingularity]) -> list[PathSingularity]:
    """Singularities without the forces that change with the speed."""
    found = []
    for one in singular:
        before, after = (replace(side, speedy=False) for side in one.sides)
        found.append(one._replace(sides=(before, after)))
    return found
