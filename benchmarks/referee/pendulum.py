"""A01: a point mass on a massless bar, with Cartesian coordinates."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.special import ellipj, ellipk

import holoctl as hc
from referee.planar import plane_model
from referee.problem import Problem, at

Array = NDArray[np.float64]
TIMES = np.linspace(0.0, 10.0, 101)


def make() -> tuple[hc.Mechanism, Array, Array]:
    """Two slides and a rod: two coordinates, one row."""
    model = plane_model("simple_pendulum")
    x = model.addJoint(0, pin.JointModelPX(), at(), "x")
    y = model.addJoint(x, pin.JointModelPY(), at(), "y")
    model.appendBodyToJoint(y, pin.Inertia(1.0, np.zeros(3), np.zeros((3, 3))), at())
    mech = hc.Mechanism(model, [hc.Rod("universe", "y", 1.0)], reference=[-1.0, 0.0])
    return mech, np.array([-1.0, 0.0]), np.zeros(2)


def reference(times: Array = TIMES) -> Array:
    """Jacobi's elliptic functions: released from an amplitude of a right angle.

    sin(angle / 2) = k sn(K - w t), k^2 = 1/2; the angle is from below, and -pi/2 at the start.
    """
    k2 = 0.5
    sn = ellipj(ellipk(k2) - np.sqrt(9.81) * times, k2)[0]
    angle = -2.0 * np.arcsin(np.sqrt(k2) * sn)
    return np.stack([np.sin(angle), -np.cos(angle), 0.0 * angle], axis=1)[:, None]


A01 = Problem(
    "A01, simple pendulum",
    "Data: IFToMM benchmark A01 (1 kg, 1 m, released at x = -1 m, 10 s), read in "
    "RehabEngGroup/MBSbenchmarksInOpenSim. Reference: elliptic functions.",
    make, ("y",), TIMES, reference, steps={"Exudyn": 1e-3, "MuJoCo": 1e-3},
)  # fmt: skip
