"""Where a path starts, and what is driven along it.

Motions that no motor drives must be idle. Driven are as many coordinates of the tree as motors
drive motions: motors where these have positions, and tell the motion; else the best of others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector, counted, listing
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.base.linalg import null_space_by_svd, pivoted_qr
from holoctl.base.tolerances import UNSEEN_MOTION
from holoctl.closing.assembly import assemble
from holoctl.closing.idle.basis import idle_basis
from holoctl.closing.rank import rank_within, scaled_jacobian
from holoctl.design.paths.rows import Coordinates
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_motors, check_partition, partition
from holoctl.rows.evaluate import may_depend_on_time
from holoctl.tree.frozen_model import plain

__all__ = ["Start", "at_first", "driven", "start_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Start:
    """Where a path may begin: a closed configuration on the branch that is meant.

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


def start_of(mech: Mechanism, start: Any, part: Partition | None) -> Start:
    """A branch to start on, where all motions are driven or idle.

    Raises
    ------
    NotActuatedError
        Where the mechanism has motions that no motor drives, or no motors.
    InputError
        For constraints that depend on time, a partition of another mechanism.
    AssemblyError
        Where the reference, or the start, does not close.
    """
    if mech.nu == 0:
        raise NotActuatedError(f"{mech.name} has no motors, so it follows no path")
    if may_depend_on_time(mech):
        raise InputError(
            f"{mech.name} has constraints that depend on time, or may: where it is on a path would "
            "not tell its configuration; switch them off, or build the mechanism without"
        )
    if start is None and part is None:
        home: Start = mech.per_thread("path start", lambda: _decided(mech, None, None))
        return home
    return _decided(mech, start, part)


def _decided(mech: Mechanism, start: Any, part: Partition | None) -> Start:
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
                f"{part.actuation_rank} of them: where the others go is up to the dynamics, so it "
                "follows no path that is given beforehand"
            )
        idle = passive
    return Start(mech, q, part, idle)


def at_first(start: Start, first: Vector, has_start: bool) -> Start:
    """On the branch of the first way-point, where that is a whole configuration."""
    mech = start.mech
    if has_start or (first.size == mech.nu and mech.actuated):
        return start
    return replace(start, q=assemble(mech, first)[0])


def driven(start: Start, width: int) -> Coordinates:
    """As many coordinates as motors drive motions: motors, or where these have no positions others.

    Raises
    ------
    NotActuatedError, InputError
        Where there are none of this kind.
    """
    mech, part = start.mech, start.part
    count = mech.nv - part.rank - start.idle.shape[1]
    model, places = plain(mech.model), np.full(mech.nv, -1)
    turning = np.zeros(mech.nv, dtype=bool)
    for j in range(1, model.njoints):
        flat, at = model.nqs[j] == model.nvs[j], range(model.nvs[j])
        for i in at if flat or model.nvs[j] == 1 else ():
            places[model.idx_vs[j] + i] = model.idx_qs[j] + i
            turning[model.idx_vs[j] + i] = not flat
    motors = [mech.coordinate_names.index(n) for n in mech.actuated]
    own = [c for c in motors if places[c] >= 0]
    if mech.actuated and len(own) == count == len(motors):
        columns = own
    else:
        others = [c for c in range(mech.nv) if places[c] >= 0 and c not in own]
        columns = _independent(start, own, count)
        if len(columns) < count and width == mech.nu and mech.actuated and width != mech.nq:
            raise InputError(
                f"{mech.name}: path: positions of the motors do not tell its "
                f"{counted(count, 'motion')}; give configurations, shape (n, {mech.nq})"
            )
        if len(columns) < count:
            columns = _independent(start, own + others, count)
        if len(columns) < count:
            raise InputError(
                f"{mech.name}: path: no {count} coordinates that are numbers tell its motion, such "
                "as where a floating base moves freely; give poses of a frame"
            )
    c = np.array(sorted(columns) if columns != own else columns, dtype=np.intp)
    D = np.zeros((c.size, mech.nv))
    D[range(c.size), c] = 1.0
    names = tuple(mech.coordinate_names[i] for i in c.tolist())
    return Coordinates(names, c, places[c], turning[c], 1.0 / mech.column_scale[c], D)


def _independent(start: Start, columns: list[int], count: int) -> list[int]:
    """Those of some coordinates that tell the motion best, the first ones where several do."""
    mech, part = start.mech, start.part
    G, _ = scaled_jacobian(mech, start.q, 0.0, part.rows)
    motions = null_space_by_svd(np.vstack([G, start.idle.T]), mech.nv - count)[3]
    preferred = [c for c in part.independent.tolist() if c in columns]
    for choice in (preferred, columns):
        qr = pivoted_qr(motions[choice].T, tol=UNSEEN_MOTION)
        if qr.rank >= count:
            return [choice[i] for i in qr.pivots[:count].tolist()]
    return []
