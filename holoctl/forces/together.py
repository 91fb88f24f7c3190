"""All forces of a mechanism at a state: their sum F, what they store, and F in a control loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.constraints.contract import offered
from holoctl.forces.contract import Add, BoundForce, Efforts
from holoctl.forces.user_forces import checked_efforts
from holoctl.tree.kinematics import Kinematics, kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["Fill", "all_efforts", "all_in_a_tick", "change_by_velocity", "stored_energy"]

Array = NDArray[np.float64]

Fill = Callable[[Vector, Vector, float, Vector], Vector]
"""fill(q, v, t, rates) -> F (nv,), the same array at every call: friction at the velocity `rates`,
everything else at v."""


def all_efforts(bound: Sequence[BoundForce], kin: Kinematics) -> Efforts:
    """The sum of all forces at a state."""
    springs, losses, external = np.zeros((3, kin.v.size))
    for force in bound:
        found = checked_efforts(force, force.at(kin), kin.v.size)
        springs += found.springs
        losses += found.losses
        external += found.external
    return Efforts(springs, losses, external)


def stored_energy(bound: Sequence[BoundForce], kin: Kinematics) -> float:
    """What all springs store, J."""
    return sum((force.energy(kin) for force in bound if force.stores), 0.0)


def change_by_velocity(bound: Sequence[BoundForce], kin: Kinematics) -> Array:
    """(nv, nv): dF/dv."""
    return sum((force.by_velocity(kin) for force in bound), np.zeros((kin.v.size, kin.v.size)))


def all_in_a_tick(bound: Sequence[BoundForce], model: pin.Model, motion: LiveMotion) -> Fill | None:
    """F for a control loop of one thread; None without forces.

    `motion` is that of the tick, at its q. Forces that offer no tick are evaluated as on the
    general path, which takes the kinematics once more.
    """
    if not bound:
        return None
    adds = [(force, tick_of(force, motion)) for force in bound]
    of_rates = [add for force, add in adds if add is not None and force.friction]
    of_state = [add for force, add in adds if add is not None and not force.friction]
    asked = [force for force, add in adds if add is None]
    efforts, data = np.zeros(model.nv), model.createData() if asked else None
    clear = efforts.fill

    def fill(q: Vector, v: Vector, t: float, rates: Vector) -> Vector:
        clear(0.0)
        for add in of_rates:
            add(q, rates, t, efforts)
        for add in of_state:
            add(q, v, t, efforts)
        for force in asked:
            kin = kinematics(model, data, q, rates if force.friction else v, t)
            np.add(efforts, checked_efforts(force, force.at(kin), v.size).total, efforts)
        return efforts

    return fill


def tick_of(force: BoundForce, motion: LiveMotion) -> Add | None:
    """The tick that a force offers; None where there is none."""
    tick = offered(force, "tick", "at")
    add: Add | None = None if tick is None else tick(motion)
    return add
