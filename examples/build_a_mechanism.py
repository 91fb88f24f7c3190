"""Describe a mechanism in code: a four-bar whose closing pin is a real hinge, five rows of which
three are redundant, and a wheel geared to the crank. Forward dynamics undoes inverse dynamics."""

import numpy as np
import pinocchio as pin

import holoctl as hc


def bar(length: float, mass: float) -> pin.Inertia:
    """A slender bar along x, from the joint to x = length."""
    return pin.Inertia(
        mass, np.array([length / 2, 0.0, 0.0]), mass * length**2 / 12 * np.diag([0.01, 1.0, 1.0])
    )


def at(x: float) -> pin.SE3:
    """A point on the x axis."""
    return pin.SE3(np.eye(3), np.array([x, 0.0, 0.0]))


model = pin.Model()
model.gravity.linear = np.array([0.0, -9.81, 0.0])  # the plane of motion is x-y
crank = model.addJoint(0, pin.JointModelRZ(), at(0.0), "crank")
coupler = model.addJoint(crank, pin.JointModelRZ(), at(0.1), "coupler")
rocker = model.addJoint(0, pin.JointModelRZ(), at(0.3), "rocker")
wheel = model.addJoint(0, pin.JointModelRZ(), at(-0.1), "wheel")
for joint, length, mass in ((crank, 0.1, 0.3), (coupler, 0.3, 0.8), (rocker, 0.25, 0.6)):
    model.appendBodyToJoint(joint, bar(length, mass), pin.SE3.Identity())
model.appendBodyToJoint(wheel, bar(0.05, 0.2), pin.SE3.Identity())

mech = hc.Mechanism(
    model,
    constraints=[
        hc.Closure(("coupler", at(0.3)), ("rocker", at(0.25)), joint="revolute", name="pin"),
        hc.Coupling({"wheel": 1.0, "crank": 2.0}, name="gear"),
    ],
    actuated=["wheel"],
    reference=[1.0, -0.5, 1.5, -2.0],
)

q, v = hc.assemble(mech, v_guess=[1.0, 0.0, 0.0, 0.0])
part = hc.partition(mech, q)
print(mech)
print(f"rank {part.rank} of {len(mech.row_scale)} rows; kept: {part.rows.tolist()}")
print("independent:", [mech.coordinate_names[i] for i in part.independent])

P = hc.project(mech, q, v, partition=part)  # once, for both directions
inverse = hc.inverse_dynamics(mech, q, v, target=[5.0], projection=P)
forward = hc.forward_dynamics(mech, q, v, u=inverse.u, projection=P)
print(f"torque {inverse.u[0]:+.4f} N m; acceleration of the wheel {forward.a[3]:+.6f} rad/s^2")
print("multipliers:", np.round(forward.multipliers, 3), "unique:", forward.unique)
print(inverse.certificate)
