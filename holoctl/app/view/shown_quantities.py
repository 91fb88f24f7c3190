"""What the page says of a posture beside its efforts: the misfit of its closures, and how near it
is to singularities.

    type 2 (parallel)    the smallest singular value of gamma' B, scaled
    side                 the sign of det [G; B'], with the rows that were kept at the start
    type 1 (serial)      the smallest singular value of J T, scaled

J is the Jacobian of the velocity of a point over the size of the loop. T has the motions as
orthonormal columns in scaled coordinates. At a type-2 singularity the mechanism moves while all
motors are at rest; at a type-1 singularity it moves, and the point does not move in some direction
in which it moves at the start.
Reference: C. Gosselin and J. Angeles, "Singularity analysis of closed-loop kinematic chains", IEEE
Transactions on Robotics and Automation, 1990.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.app.view.dragging import motions_at
from holoctl.app.view.shown_posture import Posture
from holoctl.base.checks import Array, Vector, quiet
from holoctl.base.linalg import largest, singular_values
from holoctl.base.tolerances import UNSEEN_MOTION
from holoctl.closing.rank import rank_within, scaled_jacobian
from holoctl.constraints.kinds import Along, Orientation
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.dynamics.actuation import scaled_motors
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.rows.constraint_errors import constraint_errors
from holoctl.rows.evaluate import by_constraint
from holoctl.tree.coordinates import support
from holoctl.tree.frames import Frame, resolve_frame
from holoctl.tree.kinematics import kinematics

__all__ = ["ClosureMisfit", "Singularity", "misfits", "points", "singularity"]


class ClosureMisfit(NamedTuple):
    """How far the two ends of a closure are apart.

    Attributes
    ----------
    name : str
        That of the constraint.
    distance : float
        m, in the directions that the closure keeps.
    angle : float
        rad, about the axes that the closure keeps.
    """

    name: str
    distance: float
    angle: float


class Singularity(NamedTuple):
    """How near a posture is to singularities.

    Attributes
    ----------
    type_2 : float
        The smallest singular value of gamma' B, scaled: 0 at a type-2 singularity, at most 1 with
        one motor for each motion. nan if the posture is open or its constraints are singular, and
        if the motors drive no motion.
    side : int
        1 on the side of the type-2 singularity on which the page started, -1 on the other one; 0 if
        the number of motors is not that of the motions, and exactly at a singularity.
    type_1 : float
        That of the velocity of a point: 0 at a type-1 singularity. nan without a point that moves.
    """

    type_2: float
    side: int
    type_1: float


@quiet
def misfits(mech: Mechanism, q: Vector, t: float = 0.0) -> tuple[ClosureMisfit, ...]:
    """The misfit of each closure and rod at q and t; couplings have none in m and rad."""
    errors = by_constraint(mech, constraint_errors(mech, q, t=t).position)
    return tuple(
        ClosureMisfit(
            name,
            *map(
                max,
                zip(
                    *(_misfit(rows, errors[name], i) for i in set(rows.pair.tolist())), strict=True
                ),
            ),
        )
        for name, rows in zip(mech.constraint_names, mech.bound, strict=True)
        if isinstance(rows, WrenchRows)
    )


def _misfit(rows: WrenchRows, errors: Vector, pair: int) -> tuple[float, float]:
    """Distance and angle between a pair of frames."""
    here = rows.pair == pair
    turned = np.flatnonzero(here & ~rows.is_length)
    angle = size = float(np.linalg.norm(errors[turned]))
    kinds = {type(rows.kinds[i]) for i in turned.tolist()}
    if kinds == {Orientation}:  # 2 sin of half the angle
        angle = 2.0 * float(np.arcsin(min(0.5 * size, 1.0)))
    elif kinds == {Along}:  # cosines of right angles
        angle = float(np.arcsin(min(size, 1.0)))
    return float(np.linalg.norm(errors[here & rows.is_length])), angle


def points(mech: Mechanism) -> dict[str, Frame]:
    """Points for type-1 singularities by name: the frame ``tip``, ends of closures, then bodies."""
    ends = [f for rows in mech.bound for f in rows.anchors if f.joint]
    body = pin.FrameType.BODY
    names = [f.name for f in mech.model.frames if f.parentJoint and f.type == body]
    names = sorted(dict.fromkeys(names), key=lambda name: name != "tip")
    bodies = [resolve_frame(mech.model, name, "view") for name in names]
    first = bodies[:1] if names[:1] == ["tip"] else []
    found = dict[str, Frame]()
    for f in (*first, *ends, *bodies):
        found.setdefault(f.name, f)
    return found


@quiet
def singularity(here: Posture, start: Posture, point: Frame | None = None) -> Singularity:
    """How near a posture is to singularities, compared with the posture of the start."""
    mech, part = here.mech, here.part
    if part is None or not here.closed or here.singular:
        return Singularity(np.nan, 0, np.nan)
    T, rank, side = motions_at(mech, part, here.q), part.actuation_rank, 0
    motors = scaled_motors(mech)
    type_2 = float(singular_values(T.T @ motors)[rank - 1]) if rank else np.nan
    if start.part is not None and mech.nu == T.shape[1] == rank:
        side = int(_sign(here.q, start, motors) * _sign(start.q, start, motors))
    type_1 = np.nan
    if point is not None and start.part is not None:
        seen = _velocity(mech, start.q, point) @ motions_at(mech, start.part, start.q)
        most = rank_within(seen, UNSEEN_MOTION) if largest(seen) > UNSEEN_MOTION else 0
        if most:
            type_1 = float(singular_values(_velocity(mech, here.q, point) @ T)[most - 1])
    return Singularity(type_2, side, type_1)


def _sign(q: Vector, start: Posture, motors: Array) -> float:
    """The sign of det [G; B'] at q with the rows kept at the start."""
    rows = start.part.rows if start.part is not None else None
    G, _ = scaled_jacobian(start.mech, q, 0.0, rows)
    return float(np.linalg.slogdet(np.vstack([G, motors.T]))[0])


def _velocity(mech: Mechanism, q: Vector, point: Frame) -> Array:
    """(3, nv): the Jacobian of the velocity of a point over the size of the loop, scaled."""
    kin = kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), 0.0)
    moved = kin.J[:3] + np.cross(kin.J[3:].T, kin.point(point)).T
    moved = moved * support(mech.model, point.joint) * mech.column_scale
    return moved / _loop_size(mech)


def _loop_size(mech: Mechanism) -> float:
    """The size of the largest loop, m; 1 without closures."""
    scales = by_constraint(mech, mech.row_scale)
    lengths = [
        scales[name][rows.is_length]
        for name, rows in zip(mech.constraint_names, mech.bound, strict=True)
        if isinstance(rows, WrenchRows)
    ]
    smallest = min((float(x.min()) for x in lengths if x.size), default=1.0)
    return 1.0 / smallest
