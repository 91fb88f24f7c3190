"""The fastest motion along a path with limits that may change with the speed.

    z sqrt(b) <= z (sqrt(b0) + b / sqrt(b0)) / 2        z > 0: the tangent at b0 is above

Terms that change with the speed are linearised in sd, first near a slow motion and then near the
last solution. Rows with z < 0 are convex. The solution of each round satisfies the limits of the
next one, so durations decrease.
Reference: D. Verscheure et al., "Time-optimal path tracking for robots: a convex optimization
approach", IEEE Transactions on Automatic Control, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError
from holoctl.design.paths.closed_path import ClosedPath
from holoctl.design.paths.dynamics import Dynamics, dynamics_along
from holoctl.design.retiming.convex_programs import (
    RETIME_CAP,
    IntervalRows,
    by_cvxpy,
    by_toppra,
    infeasible,
)
from holoctl.design.retiming.limit_rows import RetimingRows, effort_rows, joined, joint_rows
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = ["Profile", "RetimingProblem", "at_both_ends", "fastest", "rows_at"]

RETIME_OVER = 5e-3  # a share
"""An excess over a limit by at most this share of it is accepted."""

RETIME_ROUNDS = 12
"""Largest number of times that forces that change with the speed are linearised."""

RETIME_SETTLED = 1e-3
"""The rounds end if the duration falls by less than this share."""

RETIME_SLOW = 0.2
"""The speed of the first linearisation, as a share of the usual speed within the limits."""


@dataclass(frozen=True, eq=False)
class RetimingProblem:
    """Limits and options of the search for the fastest motion.

    Attributes
    ----------
    bound : BoundLimits
    f_ext : object
        External forces.
    method : str
        ``"cvxpy"`` or ``"toppra"``.
    tight : (n - 1,) array or None
        Share by which limits are tightened in each interval.
    """

    bound: BoundLimits
    f_ext: Any
    method: str
    tight: Vector | None = None


class Profile(NamedTuple):
    """A solution: n nodes.

    Attributes
    ----------
    dyn : Dynamics
    b : (n,) array
        sd^2.
    sdd : (n - 1,) array
    """

    dyn: Dynamics
    b: Vector
    sdd: Vector

    @property
    def path(self) -> ClosedPath:
        """The path of the solution."""
        return self.dyn.path


def fastest(task: RetimingProblem, path: ClosedPath) -> Profile:
    """The fastest motion along the nodes of a path.

    Raises
    ------
    LimitError
        If there is none: the message states the limit, and where.
    """
    dyn = dynamics_along(path, task.f_ext)
    of_joints = joint_rows(path, task.bound)
    curved = dyn.speedy or any(curve is not None for curve in task.bound.curves)
    solve = _in_rounds if curved else _at_once
    b = solve(task, dyn, of_joints)
    if b is None and task.method == "toppra":  # its programs are solved to fixed tolerances
        b = solve(replace(task, method="cvxpy"), dyn, of_joints)
    if b is None:
        raise infeasible(dyn, rows_at(task, dyn, np.zeros(path.s.size), of_joints))
    return Profile(dyn, b, np.diff(b) / (2.0 * np.diff(path.s)))


def _at_once(task: RetimingProblem, dyn: Dynamics, of_joints: RetimingRows) -> Vector | None:
    """b, if no limit or force changes with the speed."""
    rest = np.zeros(dyn.path.s.size)
    return _solved(task, rows_at(task, dyn, rest, of_joints), np.diff(dyn.path.s), rest)


def _in_rounds(task: RetimingProblem, dyn: Dynamics, of_joints: RetimingRows) -> Vector | None:
    """b, with rows linearised near a slow motion first, and then near the last solution."""
    n, h = dyn.path.s.size, np.diff(dyn.path.s)
    sd, best, last = np.zeros(n), None, np.inf
    usual = float(np.sqrt(_usual(rows_at(task, dyn, sd, of_joints), h)))
    sd[1:-1] = RETIME_SLOW * usual
    for turn in range(RETIME_ROUNDS):
        b = _solved(task, rows_at(task, dyn, sd, of_joints), h, sd)
        if b is None and best is None and float(sd.max()) > RETIME_SLOW**4 * usual:
            sd = RETIME_SLOW * sd
            continue
        if b is None:
            break
        now = _duration_of(b, h)
        if _over(rows_at(task, dyn, np.sqrt(b), of_joints), b, h) <= RETIME_OVER:
            if now >= (1.0 - RETIME_SETTLED) * last:
                best = b if now < last else best
                break
            best, last = b, now
        sd = np.sqrt(b) if turn < RETIME_ROUNDS // 2 else 0.5 * (sd + np.sqrt(b))
    return best


def _over(rows: RetimingRows, b: Vector, h: Vector) -> float:
    """The largest relative excess of the rows at the nodes."""
    return max(float(x.max()) for x in at_both_ends(rows, b, np.diff(b) / (2.0 * h)))


def at_both_ends(rows: RetimingRows, b: Vector, sdd: Vector) -> tuple[Array, Array]:
    """The rows at both ends of each interval, (n - 1, m) each; a positive one is violated."""
    steady = rows.b * b[:, None] + rows.z * np.sqrt(b)[:, None] + rows.c
    rise = sdd[:, None]
    return steady[:-1] + rows.a[:-1] * rise, steady[1:] + rows.a[1:] * rise


def _duration_of(b: Vector, h: Vector) -> float:
    root = np.sqrt(b)
    return float((2.0 * h / (root[1:] + root[:-1])).sum())


def rows_at(
    task: RetimingProblem, dyn: Dynamics, sd: Vector, of_joints: RetimingRows | None = None
) -> RetimingRows:
    """All rows, exact at the speeds sd and linearised in sd near them."""
    joints = joint_rows(dyn.path, task.bound) if of_joints is None else of_joints
    return joined(effort_rows(dyn, task.bound, sd), joints)


def _usual(rows: RetimingRows, h: Vector) -> float:
    """A typical squared speed: the median bound at constant speed, or that reached half-way with
    the median acceleration from rest, whichever is less."""
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where((rows.b > 0.0) & (rows.c < 0.0), -rows.c / rows.b, np.inf).min(axis=1)
        gains = np.where((rows.a > 0.0) & (rows.c < 0.0), -rows.c / rows.a, np.inf).min(axis=1)
    most, gains = np.minimum(most, rows.most)[1:-1], gains[np.isfinite(gains)]
    most = most[np.isfinite(most)]
    reached = float(np.median(gains)) * float(h.sum()) if gains.size else np.inf
    usual = min(float(np.median(most)) if most.size else np.inf, reached)
    return usual if np.isfinite(usual) and usual > 0.0 else 1.0


def _solved(task: RetimingProblem, rows: RetimingRows, h: Vector, sd: Vector) -> Vector | None:
    """b, or None if there is no solution; rows are those linearised near sd."""
    size = _usual(rows, h)
    root = np.sqrt(size)
    z, c, b = rows.z * root, rows.c, rows.b * size
    tangents = (z > 0.0) | (task.method == "toppra")
    near = np.maximum(sd / root, 1e-12)[:, None]
    moving = (sd > 0.0)[:, None]
    c = c + np.where(tangents & moving, 0.5 * z * near, 0.0)
    b = b + np.where(tangents & moving, 0.5 * z / near, 0.0)
    z = np.where(tangents, 0.0, z)
    most, tight = rows.most / size, np.zeros(h.size) if task.tight is None else task.tight
    slower = (1.0 + np.maximum(np.append(tight, 0.0), np.append(0.0, tight))) ** 2
    a = rows.a[:-1] * size / (2.0 * h[:, None]), rows.a[1:] * size / (2.0 * h[:, None])
    both = IntervalRows(
        left=np.array([b[:-1] - a[0], -a[1]]),
        right=np.array([a[0], b[1:] + a[1]]),
        z=np.array([z[:-1], z[1:]]),
        c=np.array([c[:-1], c[1:]]) + tight[:, None],
        most=most / slower,
        h=h,
    )
    found = by_toppra(both) if task.method == "toppra" else by_cvxpy(both)
    if found is None or not (found[1:-1] > 0.0).all():
        return None
    if float(found.max()) > 0.5 * RETIME_CAP:
        i = int(np.argmax(found))
        raise InputError(
            f"retime: the speed along the path is not limited near node {i} of {found.size}: no "
            "motor or joint with a limit moves or acts there; give more limits"
        )
    return found * size
