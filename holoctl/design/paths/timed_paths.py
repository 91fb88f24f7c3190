"""Paths in time: a spline through way-points, and nodes that the user computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, numbers, quoted
from holoctl.base.errors import InputError
from holoctl.base.tolerances import CLOSED
from holoctl.closing.assembly import assemble
from holoctl.design.paths.closed_path import CURVE_CLOSED, closed_curve, closed_path, grid_of
from holoctl.design.paths.curve import Curve, curve_through
from holoctl.design.paths.dynamics import dynamics_along, shared_efforts, speed_forces
from holoctl.design.paths.inputs import (
    CheckedPath,
    PathStart,
    at_first,
    driven,
    motor_values,
    reached,
    start_of,
    way_points,
)
from holoctl.design.paths.path_continuation import system_of
from holoctl.design.paths.path_system import PathReference, partition_rows
from holoctl.design.paths.splines import at_rest_spline
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_partition, partition

__all__ = ["curve_of_nodes", "nodes_through"]

NODE_SLIPS = 1e-5  # scaled, 1/s, or of the fastest rate
"""Largest velocity error of the constraints at given nodes."""

THROUGH_NODES = 50
"""Number of intervals between two way-points of a trajectory through way-points in time."""


def nodes_through(
    mech: Mechanism, points: Any, times: Any, start: Any, part: Partition | None
) -> tuple[Any, ...]:
    """The arguments of `Trajectory` for `Trajectory.through`."""
    owner = f"{mech.name}: points"
    points, t = way_points(mech, points, owner), numbers("times", times)
    if t.shape != (points.shape[0],) or not np.isfinite(t).all():
        raise InputError(
            f"times must be one for each of {points.shape[0]} points; got {quoted(times)}"
        )
    if t[0] != 0.0 or not (np.diff(t) > 0.0).all():
        raise InputError(f"times must increase from 0; got {t.tolist()}")
    begin = at_first(start_of(mech, start, part), points[0], start is not None)
    drive = driven(begin, points.shape[1])
    values = motor_values(mech, drive, points)
    system = system_of(mech, begin.part, drive, begin.idle)
    q = reached(system, begin.q, values[0], owner)
    both = tuple((float(x), point) for x, point in zip(t, points, strict=True))
    given = CheckedPath(system, at_rest_spline(t, values), t, q, both)
    nodes = closed_path(given, grid_of(t, THROUGH_NODES * (t.size - 1)), still=True)
    curve, _ = closed_curve(nodes)
    one, none = np.ones(nodes.s.size), np.zeros(nodes.s.size)
    dyn = dynamics_along(nodes, None)
    f = speed_forces(nodes, one) if dyn.speedy else np.zeros_like(dyn.r1)
    open_box = np.full((nodes.s.size, mech.nu), np.inf)
    u = shared_efforts(dyn.A, dyn.balance(none, one, f), -open_box, open_box)
    return nodes.s, nodes.q, nodes.d1, nodes.d2, u, nodes.system.part, (), 0.0, curve


def curve_of_nodes(
    mech: Mechanism,
    part: Partition | None,
    t: Vector,
    q: Array,
    v: Array,
    a: Array,
    cross: bool = False,
) -> tuple[Curve, Partition]:
    """A curve through nodes that is also closed between them.

    If the polynomials are not closed, driven coordinates, first those of motors, or with `cross`
    those that are regular also at type-2 singularities, follow the polynomials, and the others
    follow from the constraints.

    Raises
    ------
    InputError
        For nodes that are not closed, or whose velocities contradict the constraints; for nodes too
        far apart if no coordinates determine the motion.
    """
    first = assemble(mech, q[0])[0]
    part = partition(mech, first) if part is None else part
    check_partition(mech, part)
    rows, curve = partition_rows(mech, part.rows), curve_through(mech, t, q, v, a)
    for i, x in enumerate(q):
        G, _, worst = rows.at(x)
        if not worst <= max(CLOSED, part.tolerance):
            raise InputError(
                f"Trajectory: the closure error of q[{i}], at t = {t[i]:.4g}, is {worst:.2g} "
                "(scaled); nodes must be closed configurations"
            )
        slip, fast = np.abs(G @ (v[i] / mech.column_scale)), np.abs(v[i] / mech.column_scale)
        if not slip.max(initial=0.0) <= NODE_SLIPS * max(1.0, float(fast.max(initial=0.0))):
            raise InputError(
                f"Trajectory: v[{i}], at t = {t[i]:.4g}, contradicts the constraints by "
                f"{slip.max():.2g} 1/s (scaled): passive joints must move with the others"
            )
    if max(rows.at(x)[2] for x in curve.between()[0]) <= max(CURVE_CLOSED, part.tolerance):
        return curve, part
    begin = PathStart(mech, first, part, np.zeros((mech.nv, 0)))
    try:
        drive = driven(begin, mech.nq, q if cross else None)
    except InputError as error:
        raise InputError(
            f"Trajectory: it is not closed between its nodes, and cannot be closed there: {error}; "
            "or give more nodes"
        ) from None
    system = system_of(mech, part, drive, begin.idle)

    def along(x: float) -> PathReference:
        there = curve.at(x)
        return PathReference(drive.at(there.q), drive.D @ there.v, drive.D @ there.a)

    return closed_curve(closed_path(CheckedPath(system, along, t, q[0]), t, still=True))[0], part
