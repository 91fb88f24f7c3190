"""The positions of the motors in a configuration.

    position = q[i]                       i = idx_q + (coordinate - idx_v) of the joint
    position = atan2(q[i + 1], q[i])      of a continuous motor

Names of coordinates refer to indices in v. In q a joint may have another index and more numbers
than coordinates: a continuous joint has the cosine and the sine of its angle, a spherical joint
four numbers of which none is a position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, read_only
from holoctl.tree.coordinates import coordinate_names, joint_of_coordinate
from holoctl.tree.frozen_model import plain

__all__ = ["MotorPlaces", "motor_places", "placed", "position_reader", "positions_of"]


@dataclass(frozen=True, eq=False)
class MotorPlaces:
    """The indices of the motors' positions in q.

    Attributes
    ----------
    where : (nu,) int array
        Index into q of each motor's position; for a continuous joint that of the cosine, which is
        followed by the sine.
    turning : (n,) int array
        The motors of continuous joints.
    missing : str
        The first motor without a position, and why; empty if all have one.
    """

    where: NDArray[np.intp]
    turning: NDArray[np.intp]
    missing: str


def motor_places(model: pin.Model, motors: Sequence[str]) -> MotorPlaces:
    """The indices of the motors with these coordinate names, in their order."""
    model = plain(model)
    names, joint_of = coordinate_names(model), joint_of_coordinate(model)
    where, turning, missing = np.zeros(len(motors), dtype=np.intp), [], ""
    for i, motor in enumerate(motors):
        coordinate = names.index(motor)
        joint = int(joint_of[coordinate])
        where[i] = model.idx_qs[joint] + coordinate - model.idx_vs[joint]
        if model.nqs[joint] != model.nvs[joint]:
            turning.append(i)
            if model.nvs[joint] > 1 and not missing:
                kind = model.joints[joint].shortname()
                missing = f"{motor!r} drives one coordinate of a {kind}"
    places = MotorPlaces(where, np.array(turning, dtype=np.intp), missing)
    read_only(places.where)
    read_only(places.turning)
    return places


def position_reader(places: MotorPlaces) -> Callable[[Vector], Vector]:
    """A function q -> positions (nu,), rad or m; of continuous joints in (-pi, pi]."""
    where, turning = places.where, places.turning
    if not turning.size:
        return lambda q: q.take(where)
    cosine, sine = where[turning], where[turning] + 1

    def positions(q: Vector) -> Vector:
        found = q.take(where)
        found[turning] = np.arctan2(q[sine], q[cosine])
        return found

    return positions


def positions_of(places: MotorPlaces, rows: Array) -> Array:
    """The positions (N, nu) of configurations (N, nq), as `position_reader` has them of one."""
    found, first = rows[:, places.where], places.where[places.turning]
    found[:, places.turning] = np.arctan2(rows[:, first + 1], rows[:, first])
    return found


def placed(places: MotorPlaces, q: Vector, positions: Vector) -> Vector:
    """A copy of q with the motors at these positions (nu,), rad or m."""
    x, where, turning = q.copy(), places.where, places.turning
    x[where] = positions
    x[where[turning]], x[where[turning] + 1] = (
        np.cos(positions[turning]),
        np.sin(positions[turning]),
    )
    return x
