"""The derivative of the slope of a motion, for implicit methods:

    x = (d, v)        d slope / d x = [0  I; A_q  A_v]        A_v = P (F_v - h_v)

P = da/dtau, by the efforts on the coordinates, on which the acceleration depends linearly. F_v,
which is what is stiff in friction and dampers, is known; what the constraints turn by the velocity
is left out, for an implicit method needs no exact derivative. A_q is by differences.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.forces.together import change_by_velocity
from holoctl.mechanism.mechanism import workspace
from holoctl.simulation.motion import PlantMotion
from holoctl.tree.kinematics import kinematics

__all__ = ["slope_derivative"]

SLOPE_STEP = 1e-7  # scaled
"""Accelerations are differenced by positions over this, for implicit methods."""


Array = NDArray[np.float64]


def slope_derivative(motion: PlantMotion) -> Callable[[float, Vector], Array]:
    """A function (t, x) of states in the tangent space of where the motion is."""
    plant, q0, tau, acceleration = motion.plant, motion.q, motion.tau, motion.dynamics.acceleration
    model, nv, tally = plant.model, plant.nv, motion.tally
    data = workspace(plant)

    def efforts(t: float, q: Vector, v: Vector) -> Vector:
        return tau if isinstance(tau, np.ndarray) else tau(t, q, v)

    def derivative(t: float, x: Vector) -> Array:
        d, v = x[:nv], x[nv:]
        q = pin.integrate(model, q0, d)
        u = efforts(t, q, v)
        a = acceleration(q, v, u, t)
        by_effort, by_position = np.empty((nv, nv)), np.empty((nv, nv))
        for i, unit in enumerate(np.eye(nv)):
            by_effort[:, i] = acceleration(q, v, u + unit, t) - a
            step = SLOPE_STEP * plant.column_scale[i]
            there = pin.integrate(model, q0, d + step * unit)
            by_position[:, i] = (acceleration(there, v, efforts(t, there, v), t) - a) / step
        tally.evaluations += 2 * nv + 1
        F_v = change_by_velocity(plant.bound_forces, kinematics(model, data, q, v, t))
        h_v = np.array(pin.computeRNEADerivatives(model, data, q, v, np.zeros(nv))[1])
        found = np.zeros((2 * nv, 2 * nv))
        found[:nv, nv:] = np.eye(nv)
        found[nv:, :nv] = by_position
        found[nv:, nv:] = by_effort @ (F_v - h_v.reshape(nv, nv))
        return found

    return derivative
