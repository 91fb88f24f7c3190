"""The trajectory of a solution: its check between nodes, its efforts and its active limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.design.paths.closed_path import ClosedPath
from holoctl.design.paths.curve import Curve
from holoctl.design.paths.dynamics import Dynamics, dynamics_along, shared_efforts, speed_forces
from holoctl.design.paths.task_path import TaskDrive
from holoctl.design.paths.trajectory import TimeLaw, Trajectory
from holoctl.design.retiming.limit_rows import effort_range, limited_along
from holoctl.design.retiming.solve import Profile, RetimingProblem, at_both_ends, rows_at
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = ["RETIME_ACTIVE", "CheckedSolution", "checked", "fast", "least_of_task", "trajectory_of"]

RETIME_ACTIVE = 2e-3
"""A limit is active if the value is within this share of it."""


class CheckedSolution(NamedTuple):
    """A solution, and the excess over limits between its nodes.

    Attributes
    ----------
    profile : Profile
    curve : Curve
        The curve of its path.
    over : (n - 1,) array
        Largest excess in each interval, as a share of the limit; negative if none is reached.
    """

    profile: Profile
    curve: Curve
    over: Vector


def checked(
    task: RetimingProblem, profile: Profile, curve: Curve, places: dict[float, ClosedPath]
) -> CheckedSolution:
    """A solution with its excess over limits at shares of the intervals between its nodes."""
    over = np.full(profile.sdd.size, -np.inf)
    for share, place in places.items():
        b = profile.b[:-1] + share * np.diff(profile.b)
        dyn = dynamics_along(place, task.f_ext)
        over = np.maximum(over, _over(task, dyn, profile.sdd, b).max(axis=1))
    return CheckedSolution(profile, curve, over)


def _over(task: RetimingProblem, dyn: Dynamics, sdd: Vector, b: Vector) -> Array:
    """The relative excess of each row (n, m + 1); the last is that of velocities."""
    sd = np.sqrt(b)
    rows = rows_at(task, dyn, sd)
    over = rows.a * sdd[:, None] + rows.b * b[:, None] + rows.z * sd[:, None] + rows.c
    with np.errstate(divide="ignore", invalid="ignore"):
        fast = np.where(np.isfinite(rows.most), sd / np.sqrt(rows.most) - 1.0, -1.0)
    return np.column_stack([over, fast])


def trajectory_of(task: RetimingProblem, found: CheckedSolution, cross: bool) -> Trajectory:
    """The trajectory of a solution."""
    profile, path = found.profile, found.profile.path
    b, sdd, sd = profile.b, profile.sdd, np.sqrt(profile.b)
    t = np.concatenate([[0.0], np.cumsum(2.0 * np.diff(path.s) / (sd[1:] + sd[:-1]))])
    law = TimeLaw(t, path.s, sd, sdd)
    from_node = np.append(sdd, sdd[-1])
    v = path.d1 * sd[:, None]
    a = path.d2 * b[:, None] + path.d1 * from_node[:, None]
    f = speed_forces(path, sd) if profile.dyn.speedy else np.zeros_like(profile.dyn.r1)
    lower, upper = effort_range(path, task.bound, sd)
    u = shared_efforts(profile.dyn.A, profile.dyn.balance(from_node, b, f), lower, upper)
    return Trajectory(
        path.system.mech, t, path.q, v, a, u, path.system.part, _active(task, profile),
        max(0.0, float(found.over.max())), found.curve, law, cross, *least_of_task(path, t),
    )  # fmt: skip


def least_of_task(path: ClosedPath, t: Vector) -> tuple[float, float]:
    """The smallest singular value of the task at the nodes, scaled, and its time; inf for paths of
    coordinates. With X = N (D N)^-1, the scaled rates by those of the task, it is 1 / |X|."""
    system = path.system
    if not isinstance(system.drive, TaskDrive):
        return np.inf, np.nan
    X = path.gamma / system.mech.column_scale[:, None] / system.drive.scale
    sizes = 1.0 / np.linalg.norm(X, ord=2, axis=(1, 2))
    return float(sizes.min()), float(t[np.argmin(sizes)])


def _active(task: RetimingProblem, profile: Profile) -> tuple[tuple[str, ...], ...]:
    """Names of the limits that are active at one of the ends of each interval."""
    dyn, sd = profile.dyn, np.sqrt(profile.b)
    rows = rows_at(task, dyn, sd)
    first, last = at_both_ends(rows, profile.b, profile.sdd)
    at = np.maximum(first, last) >= -RETIME_ACTIVE
    rates = fast(dyn.path, task.bound, sd)
    at_most = np.maximum(rates[:-1], rates[1:]) >= 1.0 - RETIME_ACTIVE
    bound, found = task.bound, []
    for i in range(profile.sdd.size):
        names = [name for k in np.flatnonzero(at[i]) for name in rows.names[k].split("+")]
        names += [f"{bound.names[k]}.velocity" for k in np.flatnonzero(at_most[i])]
        found.append(tuple(dict.fromkeys(names)))
    return tuple(found)


def fast(path: ClosedPath, bound: BoundLimits, sd: Vector) -> Array:
    """Rates over their limits (n, l)."""
    _, rates, _ = limited_along(path, bound)
    lower, upper = bound.velocity
    found: Array = np.maximum(rates * sd[:, None] / upper, rates * sd[:, None] / lower)
    return found
