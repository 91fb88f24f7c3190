"""Andrews' squeezer: seven bodies, three loops, a spring; data and solution at 0.03 s.

Both are of E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, section VII.7,
and of the Test Set for IVP Solvers, "Andrews' squeezing mechanism".
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from zoo import at

import holoctl as hc

SPRING, LENGTH, MOMENT = 4530.0, 0.07785, 0.033
START = {
    "beta": -0.0617138900142764496, "theta": 0.0, "gamma": 0.455279819163070380,
    "delta": 0.487364979543842550, "phi": 0.222668390165885885,
    "epsilon": 1.23054744454982119, "omega": -0.222668390165885885,
}  # fmt: skip
AFTER_30_MS = {
    "beta": 15.81077119629904, "theta": -15.75637105984298, "gamma": 0.04082224013073101,
    "phi": -0.5347301163226948, "delta": 0.5244099658805304, "omega": 0.5347301163226948,
    "epsilon": 1.048080741042263,
}  # fmt: skip


def body(mass, inertia, x, y):
    return pin.Inertia(mass, np.array([x, y, 0.0]), np.diag([0.0, inertia, inertia]))


def squeezer():
    """Angles and lengths as published; (sin, -cos) of an angle is -y of its frame."""
    model = pin.Model()
    model.gravity.linear = np.zeros(3)

    def add(parent, name, place, inertia):
        joint = model.addJoint(model.getJointId(parent), pin.JointModelRZ(), place, name)
        model.appendBodyToJoint(joint, inertia, at())

    A, B = at(-0.06934, -0.00227), at(-0.03635, 0.03273)
    add("universe", "beta", at(), body(0.04325, 2.194e-6, 0.00092, 0.0))
    add("beta", "theta", at(0.007), body(0.00365, 4.410e-7, -0.0115, 0.0))
    add("universe", "gamma", B, body(0.02373, 5.255e-6, 0.01043, -0.01874))
    add("universe", "delta", A, body(0.07050, 1.169e-5, 0.02308, 0.00916))
    add("delta", "phi", at(0.04), body(0.00706, 5.667e-7, 0.0, -(0.02 - 0.01421)))
    add("universe", "epsilon", A, body(0.05498, 1.912e-5, -0.00449, -0.01228))
    add("epsilon", "omega", at(0.0, -0.04), body(0.00706, 5.667e-7, 0.02 - 0.01421, 0.0))
    tip = ("theta", at(-0.028))
    ends = {"gamma": at(0.0, -0.035), "phi": at(0.0, -0.02), "omega": at(0.02)}
    loops = [hc.Closure((name, end), tip, axes="x y", name=name) for name, end in ends.items()]
    spring = hc.Spring(("gamma", at(0.02, -0.018)), ("universe", at(0.014, 0.072)), SPRING, LENGTH)
    names = list(model.names)[1:]
    return hc.Mechanism(
        model, loops, ["beta"], forces=[spring], reference=[START[n] for n in names]
    )
