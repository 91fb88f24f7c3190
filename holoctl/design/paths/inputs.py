"""Checks of a caller's path: its driven coordinates, its values along s, and its start.

A path is a function of s in [0, 1], way-points, or poses of a frame; values are positions of the
motors or whole configurations. Motions that no motor drives must be idle. The number of driven
coordinates is the number of motions that motors drive. They are those of the motors, if these have
positions and determine the motion, otherwise the best conditioned others; or the rows of a task
(task_path.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Indices, Vector, counted, listing, numbers
from holoctl.base.errors import HoloctlError, InputError, NotActuatedError, SingularityError
from holoctl.base.linalg import null_space_by_svd, pivoted_qr
from holoctl.base.tolerances import UNSEEN_MOTION
from holoctl.closing.assembly import assemble
from holoctl.closing.idle.basis import idle_basis
from holoctl.closing.rank import rank_within, scaled_jacobian
from holoctl.design.paths.path_continuation import Path, System, followed, node_at, system_of
from holoctl.design.paths.path_system import Coordinates, PathReference
from holoctl.design.paths.regular_coordinates import regular_coordinates
from holoctl.design.paths.splines import chord_lengths, sampled, through_points
from holoctl.design.paths.task_path import is_task_path, task_path
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_motors, check_partition, partition
from holoctl.rows.evaluate import may_depend_on_time
from holoctl.tree.frozen_model import plain

__all__ = [
    "REGULAR",
    "CheckedPath",
    "PathStart",
    "at_first",
    "checked_path",
    "coordinates_at",
    "driven",
    "motor_values",
    "reached",
    "start_of",
    "way_points",
]


@dataclass(frozen=True, eq=False)
class PathStart:
    """A possible start of a path: a closed configuration on its branch.

    Attributes
    ----------
    mech : Mechanism
    q : (nq,) array
    part : Partition
    idle : (nv, i) array
        Idle motions that no motor drives, scaled.
    """

    mech: Mechanism
    q: Vector
    part: Partition
    idle: Array


def start_of(mech: Mechanism, start: Any, part: Partition | None) -> PathStart:
    """The start of a path on the branch of `start`, with all motions driven or idle.

    Raises
    ------
    NotActuatedError
        If the mechanism has motions that no motor drives, or no motors.
    InputError
        For constraints that depend on time, a partition of another mechanism.
    AssemblyError
        If the reference, or the start, does not close.
    """
    if mech.nu == 0:
        raise NotActuatedError(f"{mech.name} has no motors, so it follows no path")
    if may_depend_on_time(mech):
        raise InputError(
            f"{mech.name} has constraints that depend on time, or may: the place on a path would "
            "not determine its configuration; switch them off, or build the mechanism without them"
        )
    if start is None and part is None:
        home: PathStart = mech.per_thread("path start", lambda: _decided(mech, None, None))
        return home
    return _decided(mech, start, part)


def _decided(mech: Mechanism, start: Any, part: Partition | None) -> PathStart:
    guess = None if start is None else check_configuration(mech, start, "start")
    q = assemble(mech, guess)[0]
    if part is None:
        part = partition(mech, q)
    check_partition(mech, part)
    check_motors(mech, part)
    k = mech.nv - part.rank
    if not part.actuation_rank:
        raise NotActuatedError(
            f"{mech.name}: the motors {listing(mech.actuator_names)} drive none of its {k} motions"
        )
    idle = np.zeros((mech.nv, 0))
    if part.actuation_rank < k:
        G, _ = scaled_jacobian(mech, q, 0.0, part.rows)
        motions = null_space_by_svd(G, part.rank)[3]
        driven = motions.T @ (mech.column_scale[:, None] * mech.B)
        rank = rank_within(driven.T, UNSEEN_MOTION)
        passive = motions @ null_space_by_svd(driven.T, rank)[3]
        known = idle_basis(mech, q, 0.0, held=mech.B.T)
        left = passive - known @ (known.T @ passive)
        if left.size and float(np.linalg.norm(left, axis=0).max()) > UNSEEN_MOTION:
            raise NotActuatedError(
                f"{mech.name} has {counted(k, 'motion')}, and its motors drive "
                f"{part.actuation_rank} of them: the dynamics determine the others, so it cannot "
                "follow a given path"
            )
        idle = passive
    return PathStart(mech, q, part, idle)


def at_first(start: PathStart, first: Vector, has_start: bool) -> PathStart:
    """The start on the branch of the first way-point, if that is a whole configuration."""
    mech = start.mech
    if has_start or (first.size == mech.nu and mech.actuated):
        return start
    return replace(start, q=assemble(mech, first)[0])


def driven(start: PathStart, width: int, across: Array | None = None) -> Coordinates:
    """The driven coordinates: those of the motors, or others if motors have no single position; for
    a path across a type-2 singularity, with configurations (n, nq), those that are regular along
    it.

    Raises
    ------
    NotActuatedError, InputError
        If there are not enough of them.
    """
    mech, part = start.mech, start.part
    count = mech.nv - part.rank - start.idle.shape[1]
    places, _ = _places(mech)
    motors = [mech.coordinate_names.index(n) for n in mech.actuated]
    own = [c for c in motors if places[c] >= 0]
    if across is not None:
        single = [c for c in range(mech.nv) if places[c] >= 0]
        columns, least = regular_coordinates(mech, part, across, single, count)
        columns = columns if least > REGULAR else []
        if not columns:
            raise InputError(
                f"{mech.name}: path: no {counted(count, 'single coordinate')} determine its motion "
                "on the whole way across the singularity; give only the stretch about the "
                "crossing, at rest at both of its ends, or poses of a frame, (hc.FrameTask(...), "
                "poses)"
            )
        own = columns
    elif mech.actuated and len(own) == count == len(motors):
        columns = own
    else:
        others = [c for c in range(mech.nv) if places[c] >= 0 and c not in own]
        columns = _independent(start, own, count)
        if len(columns) < count and width == mech.nu and mech.actuated and width != mech.nq:
            raise InputError(
                f"{mech.name}: path: positions of the motors do not determine its "
                f"{counted(count, 'motion')}; give configurations, shape (n, {mech.nq})"
            )
        if len(columns) < count:
            columns = _independent(start, own + others, count)
        if len(columns) < count:
            raise InputError(
                f"{mech.name}: path: no {count} single coordinates determine its motion; a "
                "floating base that moves freely, for example, has none; give poses of a frame"
            )
    return coordinates_at(mech, sorted(columns) if columns != own else columns)


def coordinates_at(mech: Mechanism, columns: list[int]) -> Coordinates:
    """Driven coordinates by their columns; each must have one position.

    Raises
    ------
    InputError
        If one has none.
    """
    (places, turning), c = _places(mech), np.array(columns, dtype=np.intp)
    names = tuple(mech.coordinate_names[i] for i in columns)
    if (places[c] < 0).any():
        none = [name for name, place in zip(names, places[c].tolist(), strict=True) if place < 0]
        raise InputError(f"{mech.name}: {listing(none, 4)} have no single position")
    D = np.zeros((c.size, mech.nv))
    D[range(c.size), c] = 1.0
    return Coordinates(names, c, places[c], turning[c], 1.0 / mech.column_scale[c], D)


def _places(mech: Mechanism) -> tuple[Indices, NDArray[np.bool_]]:
    """The index in q of each coordinate, -1 if it has no single position; and whether it is that of
    a continuous joint."""
    model, places = plain(mech.model), np.full(mech.nv, -1)
    turning = np.zeros(mech.nv, dtype=bool)
    for j in range(1, model.njoints):
        flat, at = model.nqs[j] == model.nvs[j], range(model.nvs[j])
        for i in at if flat or model.nvs[j] == 1 else ():
            places[model.idx_vs[j] + i] = model.idx_qs[j] + i
            turning[model.idx_vs[j] + i] = not flat
    return places, turning


def _independent(start: PathStart, columns: list[int], count: int) -> list[int]:
    """A choice of coordinates that determine the motion, well-conditioned; if several do, those of
    the partition."""
    mech, part = start.mech, start.part
    G, _ = scaled_jacobian(mech, start.q, 0.0, part.rows)
    motions = null_space_by_svd(np.vstack([G, start.idle.T]), mech.nv - count)[3]
    preferred = [c for c in part.independent.tolist() if c in columns]
    for choice in (preferred, columns):
        qr = pivoted_qr(motions[choice].T, tol=UNSEEN_MOTION)
        if qr.rank >= count:
            return [choice[i] for i in qr.pivots[:count].tolist()]
    return []


@dataclass(frozen=True, eq=False)
class CheckedPath:
    """A path that was checked.

    Attributes
    ----------
    system : System
    path : function s -> PathReference
    knots : array
        The s at which its third derivative jumps, 0 and 1 among them.
    q : (nq,) array
        A configuration on the branch, close to the first of the path.
    points : tuple of (s, numbers)
        Values of whole way-points: positions of motors (nu,) or configurations (nq,).
    """

    system: System
    path: Path
    knots: Vector
    q: Vector
    points: tuple[tuple[float, Vector], ...] = ()


# --------------------------------------------------------------------------- the path of the caller


REGULAR = 1e-2  # scaled
"""Coordinates are driven across a type-2 singularity if the smallest singular value with which they
determine the motion is at least this at all way-points."""


FUNCTION_PLACES = 25
"""Places at which a function of s is evaluated to choose them."""


def checked_path(start: PathStart, path: Any, has_start: bool, cross: bool = False) -> CheckedPath:
    """A path of `retime`, checked; with `cross` configurations may lie on both sides of a type-2
    singularity.

    Raises
    ------
    InputError
        For a wrong type of path, wrong shapes, way-points that repeat, contradict each other, or
        are not closed; functions that are not smooth.
    """
    owner = f"{start.mech.name}: path"
    if is_task_path(path):
        count = start.mech.nv - start.part.rank - start.idle.shape[1]
        task, along, knots, q = task_path(start.mech, path, start.q, count, owner)
        return CheckedPath(system_of(start.mech, start.part, task, start.idle), along, knots, q)
    if callable(path):
        return _of_function(start, path, owner, cross)
    points = way_points(start.mech, path, owner)
    mech = start.mech
    start = at_first(start, points[0], has_start)
    whole = points.shape[1] != mech.nu or not mech.actuated
    drive = driven(start, points.shape[1], points if cross and whole else None)
    values = motor_values(mech, drive, points)
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
    """Values of the driven coordinates, with whole turns counted."""
    if points.shape[1] == mech.nu and mech.actuated:
        order = [mech.actuated.index(name) for name in drive.labels]
        found: Array = points[:, order]
        return found
    values = np.array([drive.at(q) for q in points])
    values[:, drive.turning] = np.unwrap(values[:, drive.turning], axis=0)
    return values


def _of_function(
    start: PathStart, path: Callable[[float], Any], owner: str, cross: bool
) -> CheckedPath:
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
    across = None
    if cross and not (of_motors or whole):
        places = np.linspace(0.0, 1.0, FUNCTION_PLACES).tolist()
        across = np.array([_numbers(path(s), size, s, owner) for s in places])
    drive = driven(start, size, across)
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
    """The spline of a function; the turns of continuous joints are counted."""
    if not drive.turning.any():
        return sampled(value, drive.scale, owner)
    last: dict[str, Vector] = {}

    def with_turns(s: float) -> Vector:
        x = value(s)
        near = last.get("x", x)
        x = np.where(drive.turning, near + (x - near + np.pi) % (2.0 * np.pi) - np.pi, x)
        last["x"] = x
        return x

    table = np.array([with_turns(s) for s in np.linspace(0.0, 1.0, 401).tolist()])

    def from_table(s: float) -> Vector:
        last["x"] = table[round(400.0 * s)]
        return with_turns(s)

    return sampled(from_table, drive.scale, owner)


def _numbers(given: Any, size: int, s: float, owner: str) -> Vector:
    """The checked result of a function at s."""
    x = numbers(f"{owner}: at s = {s:.6g}", given)
    if x.size != size or x.ndim > 1 or not np.isfinite(x).all():
        raise InputError(f"{owner}: the function must return {size} finite numbers; at s = "
                         f"{s:.6g} it returns {str(given)[:80]}")  # fmt: skip
    return x.reshape(size)


def _with_derivatives(
    path: Callable[[float], Any], order: list[int], size: int, owner: str
) -> Path:  # fmt: skip
    """A function that returns its derivatives, compared with differences at some s."""
    if not order:
        raise InputError(
            f"{owner}: derivatives are accepted only for positions of the motors; leave them out"
        )

    def along(s: float) -> PathReference:
        given = path(s)
        if not isinstance(given, tuple) or len(given) != 3:
            raise InputError(f"{owner}: the function must return (value, d, dd) everywhere; at s = "
                             f"{s:.6g} it returns {str(given)[:80]}")  # fmt: skip
        return PathReference(*(_numbers(x, size, s, owner)[order] for x in given))

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
                f"value near s = {s}; leave derivatives out, and they are computed"
            )
    return along


def reached(system: System, q: Vector, value: Any, owner: str) -> Vector:
    """The configuration on the branch of q at which the driven coordinates have a value."""
    drive = system.drive
    away, _ = drive.left(q, value)
    if not np.abs(away).max(initial=0.0) > 1e-9:
        return q

    step = away / drive.scale

    def line(s: float) -> PathReference:
        return PathReference(value + (s - 1.0) * step, step, np.zeros(step.size))

    begin = node_at(system, line, q, 0.0)
    if begin is None:
        raise InputError(f"{owner}: the start is singular; give another one, start=")
    try:
        return followed(system, line, begin, np.linspace(0.0, 1.0, 11))[-1].q
    except HoloctlError as error:
        error.args = (f"{owner}: on the way from the start to its first point: {error}",)
        if isinstance(error, SingularityError):
            error.place = np.nan  # that is not on the path
        raise
