"""All forces of a mechanism at a state: their sum F, stored energy, and F in a control loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.constraints.constraint_protocol import offered
from holoctl.forces.force_protocol import BoundForce, Efforts, Tick
from holoctl.forces.user_forces import checked_efforts
from holoctl.tree.kinematics import Kinematics, kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["TickForces", "all_efforts", "all_in_a_tick", "change_by_velocity", "stored_energy"]


class TickForces(NamedTuple):
    """F in a control loop, in two parts; None for a part without forces.

    Attributes
    ----------
    friction : function (q, v, t) -> (nv,), or None
        The part that a controller may compensate at rates other than those measured.
    others : function (q, v, t) -> (nv,), or None
    """

    friction: Tick | None
    others: Tick | None


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
    """The energy stored in all springs, J."""
    return sum((force.energy(kin) for force in bound if force.stores), 0.0)


def change_by_velocity(bound: Sequence[BoundForce], kin: Kinematics) -> Array:
    """(nv, nv): dF/dv."""
    return sum((force.by_velocity(kin) for force in bound), np.zeros((kin.v.size, kin.v.size)))


def all_in_a_tick(bound: Sequence[BoundForce], model: pin.Model, motion: LiveMotion) -> TickForces:
    """F for a control loop of one thread.

    `motion` is that of the tick, at its q. Forces without a `tick` are evaluated as on the general
    path, which computes the kinematics again.
    """
    ticks = [(force.friction, _tick_of(force, model, motion)) for force in bound]
    return TickForces(
        _sum_of([tick for friction, tick in ticks if friction], model.nv),
        _sum_of([tick for friction, tick in ticks if not friction], model.nv),
    )


def _tick_of(force: BoundForce, model: pin.Model, motion: LiveMotion) -> Tick:
    """The `tick` of a force, or a function that evaluates its `at`."""
    offer = offered(force, "tick", "at")
    tick: Tick | None = None if offer is None else offer(motion)
    if tick is not None:
        return tick
    data = model.createData()

    def as_at(q: Vector, v: Vector, t: float) -> Vector:
        kin = kinematics(model, data, q, v, t)
        return checked_efforts(force, force.at(kin), model.nv).total

    return as_at


def _sum_of(ticks: Sequence[Tick], nv: int) -> Tick | None:
    """The sum of several; None for no force."""
    if len(ticks) < 2:
        return ticks[0] if ticks else None
    efforts, (first, *others) = np.zeros(nv), ticks

    def tick(q: Vector, v: Vector, t: float) -> Vector:
        efforts[:] = first(q, v, t)
        for other in others:
            np.add(efforts, other(q, v, t), efforts)
        return efforts

    return tick
