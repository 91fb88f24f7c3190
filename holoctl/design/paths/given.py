"""A path as a caller gives it, checked: what is driven, where along s, and where it starts.

A path is a function of s in [0, 1], way-points, or poses of a frame; numbers of motors or whole
configurations. What is driven are as many coordinates of the tree as motors drive motions, motors
first; or the rows of a task (task.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector, numbers
from holoctl.base.errors import InputError
from holoctl.design.paths.following import Path, System, followed, node_at, system_of
from holoctl.design.paths.rows import Coordinates, Wanted
from holoctl.design.paths.splines import chord_lengths, sampled, through_points
from holoctl.design.paths.start import Start, at_first, driven
from holoctl.design.paths.task import is_task_path, task_path
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["CheckedPath", "given_path", "motor_values", "reached", "way_points"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class CheckedPath:
    """A path that was checked.

    Attributes
    ----------
    system : System
    path : function s -> Wanted
    knots : array
        Where its third derivative jumps, 0 and 1 among them.
    q : (nq,) array
        Close to its first configuration, on the branch.
    points : tuple of (s, numbers)
        What whole way-points are to be: motors (nu,) or configurations (nq,).
    """

    system: System
    path: Path
    knots: Vector
    q: Vector
    points: tuple[tuple[float, Vector], ...] = ()


# ---------------------------------------------------------------------------------- what is given


def given_path(start: Start, path: Any, has_start: bool) -> CheckedPath:
    """A path of `retime`, checked.

    Raises
    ------
    InputError
        For what is no path, wrong shapes, way-points that repeat, contradict each other, or are
        not closed; functions that are not smooth.
    """
    owner = f"{start.mech.name}: path"
    if is_task_path(path):
        count = start.mech.nv - start.part.rank - start.idle.shape[1]
        task, along, knots, q = task_path(start.mech, path, start.q, count, owner)
        return CheckedPath(system_of(start.mech, start.part, task, start.idle), along, knots, q)
    if callable(path):
        return _of_function(start, path, owner)
    points = way_points(start.mech, path, owner)
    start = at_first(start, points[0], has_start)
    drive = driven(start, points.shape[1])
    values = motor_values(start.mech, drive, points)
    s = chord_lengths(np.linalg.norm(np.diff(values, axis=0) * drive.scale, axis=1), owner)
    system = system_of(start.mech, start.part, drive, start.idle)
    q = reached(system, start.q, values[0], owner)
    both = tuple((float(x), point) for x, point in zip(s, points, strict=True))
    return CheckedPath(system, through_points(s, values), s, q, both)


def way_points(mech: Mechanism, path: Any, owner: str) -> Array:
    """Way-points (n, nu) or (n, nq), two or more."""
    points = numbers(owner, path)
    widths = ([mech.nu] if mech.actuated else []) + [mech.nq]
    if points.ndim != 2 or points.shape[0] < 2 or points.shape[1] not in widths:
        motors = f"(n, {mech.nu}), positions of the motors, or " if mech.actuated else ""
        raise InputError(
            f"{owner} must be a function of s in [0, 1], two way-points or more of shape {motors}"
            f"(n, {mech.nq}), configurations, or (hc.FrameTask(...), poses); got shape "
            f"{points.shape}"
        )
    if not np.isfinite(points).all():
        raise InputError(f"{owner}: way-points must be finite")
    if points.shape[1] != mech.nu or not mech.actuated:
        points = np.array(
            [check_configuration(mech, q, f"way-point {i}") for i, q in enumerate(points)]
        )
    return points


def motor_values(mech: Mechanism, drive: Coordinates, points: Array) -> Array:
    """The numbers of what is driven, turns counted on."""
    if points.shape[1] == mech.nu and mech.actuated:
        order = [mech.actuated.index(name) for name in drive.labels]
        found: Array = points[:, order]
        return found
    values = np.array([drive.at(q) for q in points])
    values[:, drive.turning] = np.unwrap(values[:, drive.turning], axis=0)
    return values


def _of_function(start: Start, path: Callable[[float], Any], owner: str) -> CheckedPath:
    mech = start.mech
    first = path(0.0)
    sizes = (mech.nu, mech.nq) if mech.actuated else (mech.nq,)
    whole = isinstance(first, tuple) and len(first) == 3 and np.size(first[0]) in sizes
    size = np.size(first[0] if whole else first)
    if size not in sizes or np.ndim(first[0] if whole else first) > 1:
        raise InputError(
            f"{owner}: the function must return ({mech.nu},), positions of the motors, or "
            f"({mech.nq},), a configuration; or these with two derivatives by s, as a tuple (value,"
            f" d, dd), each (nu,); got {size} numbers at s = 0"
        )
    of_motors = size == mech.nu and bool(mech.actuated)
    drive = driven(start, size)
    if not of_motors:
        start = at_first(start, numbers(owner, first[0] if whole else first), False)
    order = [mech.actuated.index(n) for n in drive.labels] if of_motors else []

    def value(s: float) -> Vector:
        x = _numbers(path(s), size, s, owner)
        return x[order] if of_motors else drive.at(x)

    along: Path = (
        _with_derivatives(path, order, size, owner) if whole else _unwrapped(value, drive, owner)
    )
    system = system_of(mech, start.part, drive, start.idle)
    q = reached(system, start.q, along(0.0).value, owner)
    checks = [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]
    points = tuple((s, numbers(owner, path(s)[0] if whole else path(s))) for s in checks)
    return CheckedPath(system, along, np.array(checks), q, points)


def _unwrapped(value: Callable[[float], Vector], drive: Coordinates, owner: str) -> Path:
    """The spline of a function; angles that turn without end are counted on."""
    if not drive.turning.any():
        return sampled(value, drive.scale, owner)
    last: dict[str, Vector] = {}

    def counted_on(s: float) -> Vector:
        x = value(s)
        near = last.get("x", x)
        x = np.where(drive.turning, near + (x - near + np.pi) % (2.0 * np.pi) - np.pi, x)
        last["x"] = x
        return x

    table = np.array([counted_on(s) for s in np.linspace(0.0, 1.0, 401).tolist()])

    def from_table(s: float) -> Vector:
        last["x"] = table[round(400.0 * s)]
        return counted_on(s)

    return sampled(from_table, drive.scale, owner)


def _numbers(given: Any, size: int, s: float, owner: str) -> Vector:
    """What a function returns at s, checked."""
    x = numbers(f"{owner}: at s = {s:.6g}", given)
    if x.size != size or x.ndim > 1 or not np.isfinite(x).all():
        raise InputError(f"{owner}: the function must return {size} finite numbers; at s = "
                         f"{s:.6g} it returns {str(given)[:80]}")  # fmt: skip
    return x.reshape(size)


def _with_derivatives(
    path: Callable[[float], Any], order: list[int], size: int, owner: str
) -> Path:  # fmt: skip
    """A function that brings its derivatives, compared with differences at some places."""
    if not order:
        raise InputError(f"{owner}: derivatives are taken with positions of the motors alone")

    def along(s: float) -> Wanted:
        given = path(s)
        if not isinstance(given, tuple) or len(given) != 3:
            raise InputError(f"{owner}: the function must return (value, d, dd) everywhere; at s = "
                             f"{s:.6g} it returns {str(given)[:80]}")  # fmt: skip
        return Wanted(*(_numbers(x, size, s, owner)[order] for x in given))

    h = 1e-4
    for s in (0.1, 0.35, 0.6, 0.85):
        before, here, after = along(s - h), along(s), along(s + h)
        fast = 1.0 + float(np.abs(here.rate).max())
        off = np.abs((after.value - before.value) / (2.0 * h) - here.rate).max() / fast
        off2 = np.abs((after.rate - before.rate) / (2.0 * h) - here.acceleration).max()
        off2 /= fast + float(np.abs(here.acceleration).max())
        if max(off, off2) > 1e-3:
            which = "first" if off > 1e-3 else "second"
            raise InputError(
                f"{owner}: the {which} derivative that the function returns is not that of its "
                f"value near s = {s}; leave derivatives out, and they are found"
            )
    return along


def reached(system: System, q: Vector, value: Any, owner: str) -> Vector:
    """On the branch of q, the configuration where what is driven is at a value."""
    drive = system.drive
    away, _ = drive.left(q, value)
    if not np.abs(away).max(initial=0.0) > 1e-9:
        return q

    way = away / drive.scale

    def line(s: float) -> Wanted:
        return Wanted(value + (s - 1.0) * way, way, np.zeros(way.size))

    begin = node_at(system, line, q, 0.0)
    if begin is None:
        raise InputError(f"{owner}: the start is singular; give another one, start=")
    try:
        return followed(system, line, begin, np.linspace(0.0, 1.0, 11))[-1].q
    except Exception as error:
        raise type(error)(
            f"{owner}: on the way from the start to its first point: {error}"
        ) from None
