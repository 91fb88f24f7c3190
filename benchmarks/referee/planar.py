"""Pieces that several problems share: bars in the plane of x and y."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import holoctl as hc
from referee.problem import at

Array = NDArray[np.float64]
GRAVITY = np.array([0.0, -9.81, 0.0])


def bar(length: float, mass: float) -> pin.Inertia:
    """A thin bar from the origin along x."""
    inertia = np.diag([0.0, 1.0, 1.0]) * mass * length**2 / 12.0
    return pin.Inertia(mass, np.array([0.5 * length, 0.0, 0.0]), inertia)


def plane_model(name: str) -> pin.Model:
    """An empty model with gravity along -y."""
    model = pin.Model()
    model.name, model.gravity.linear = name, GRAVITY
    return model


def hinge(model: pin.Model, parent: str, name: str, place: pin.SE3, body: pin.Inertia) -> None:
    """A body on a hinge about z."""
    joint = model.addJoint(model.getJointId(parent), pin.JointModelRZ(), place, name)
    model.appendBodyToJoint(joint, body, at())


def pose(x: float, y: float, angle: float) -> tuple[Array, Array]:
    """Of a body in the plane."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([x, y, 0.0]), np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def started(mech: hc.Mechanism, rates: dict[str, float]) -> tuple[hc.Mechanism, Array, Array]:
    """The reference configuration, closed, and the velocity with exactly these rates."""
    guess = np.array([rates.get(name, 0.0) for name in mech.coordinate_names])
    q, v = hc.assemble(mech, v_guess=guess, locked=tuple(rates))
    return mech, q, v
