"""An explicit constraint in spatial_v2's convention: a two-link arm with q2 = 2 sin q1, driven at
the shoulder by 1 N m. The torque works on q1 alone, so from rest at q1 = 0 the kinetic energy is
q1. Then the same constraint as a chart of a mechanism, and as a row."""

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

import holoctl as hc

T = 0.1  # s, time constant of the stabilisation


def gamma_q(
    model: pin.Model, q0: np.ndarray, v0: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The state with the same shoulder on the constraint, G, and the bias."""
    y, yd = q0[0], v0[0]
    s, c = np.sin(y), np.cos(y)
    q = np.array([y, 2 * s])
    G = np.array([[1.0], [2 * c]])
    v = G[:, 0] * yd
    g = np.array([0.0, -2 * s * yd**2])  # dG/dt yd
    return q, v, G, g + (2 / T) * (v - v0) + (q - q0) / T**2


def phi(q: np.ndarray) -> float:
    """The same constraint, implicit: zero where it holds."""
    return float(q[1] - 2 * np.sin(q[0]))


# Two slender links of 1 m and 1 kg in the x-y plane, without gravity.
model = pin.Model()
model.gravity.setZero()
link = pin.Inertia(1.0, np.array([0.5, 0.0, 0.0]), np.diag([0.1, 1.0, 1.0]) / 12)
shoulder = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "shoulder")
elbow = model.addJoint(
    shoulder, pin.JointModelRZ(), pin.SE3(np.eye(3), np.array([1.0, 0.0, 0.0])), "elbow"
)
for joint in (shoulder, elbow):
    model.appendBodyToJoint(joint, link, pin.SE3.Identity())
tau = np.array([1.0, 0.0])


def derivative(t: float, x: np.ndarray) -> np.ndarray:
    """(q, v)' from fdgq: the stabilisation is the one in gamma_q."""
    return np.concatenate([x[2:], hc.methods.fdgq(model, gamma_q, x[:2], x[2:], tau)])


end = solve_ivp(derivative, (0.0, 5.0), np.zeros(4), method="DOP853", rtol=1e-10, atol=1e-10)
q, v = end.y[:2, -1], end.y[2:, -1]
kinetic = pin.computeKineticEnergy(model, model.createData(), q, v)
print(f"after 5 s: work of the torque {q[0]:.9f} J, kinetic energy {kinetic:.9f} J")
print(f"constraint violated by {abs(phi(q)):.0e} rad")

# The same constraint in a mechanism: as a chart (the stabilisation is now t_stab's), as a row.
chart = hc.Mechanism(model, [hc.GammaQ(gamma_q, ["shoulder"], name="sine")], ["shoulder"])
row = hc.Mechanism(model, [hc.Custom(phi, name="sine")], ["shoulder"])
q, v = hc.assemble(chart, [0.4, 0.0], [1.5, 0.0], locked=["shoulder"])
print("accelerations at q =", q.round(4), "v =", v.round(4))
print("  fdgq  ", hc.methods.fdgq(model, gamma_q, q, v, tau).round(6))
print("  GammaQ", hc.forward_dynamics(chart, q, v, tau).a.round(6))
print("  Custom", hc.forward_dynamics(row, q, v, tau).a.round(6))

# Beside the constraint, and stabilised: the chart moves the state on it, as fdgq does.
beside = q + np.array([0.0, 0.01])
print("0.01 rad off, stabilised:")
print("  fdgq  ", hc.methods.fdgq(model, gamma_q, beside, v, tau).round(6))
print("  GammaQ", hc.forward_dynamics(chart, beside, v, tau, t_stab=T).a.round(6))
moved = hc.project(chart, beside, v).q - beside
print("  moved by", moved.round(6), "rad")
