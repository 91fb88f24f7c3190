"""A mechanism from its bodies and joints: the library finds the loops. Bennett's four hinges
in space move, though counting says that they cannot; and any joint may be the one that is cut."""

import numpy as np
import pinocchio as pin

import holoctl as hc


def along(a: float, alpha: float) -> pin.SE3:
    """The far end of a link: `a` along x, then a twist about x."""
    return pin.SE3(pin.rpy.rpyToMatrix(alpha, 0.0, 0.0), np.array([a, 0.0, 0.0]))


a, b, alpha = 0.4, 0.6, 0.5
beta = np.arcsin(b / a * np.sin(alpha))  # Bennett's condition
short, long = along(a, alpha), along(b, beta)

link = hc.Linkage("bennett")
link.add_joint("hinge_1", "revolute", "universe", "short_arm")
link.add_joint("hinge_2", "revolute", "short_arm", "coupler", short)
link.add_joint("hinge_3", "revolute", "coupler", "far_arm", long)
link.add_joint("hinge_4", "revolute", "far_arm", "universe", short, long.inverse())
for name, mass, length in (("short_arm", 0.4, a), ("coupler", 0.6, b), ("far_arm", 0.4, a)):
    inertia = mass * length**2 / 12 * np.diag([0.01, 1.0, 1.0])
    link.add_body(name, mass, com=(length / 2, 0.0, 0.0), inertia=inertia)
print(link, "around:", *link.loops)

guess = {"hinge_1": 1.2, "hinge_2": 2.8, "hinge_3": -1.2}
mech = link.mechanism(cut=["hinge_4"], actuated=["hinge_1"], reference=guess)
q, v = hc.assemble(mech, v_guess=[1.0, 0.0, 0.0])
part = hc.partition(mech, q)
rows = len(mech.row_scale)
print(f"{mech.nv} open degrees of freedom, {rows} rows: {mech.nv - rows} by counting")
print(f"rank {part.rank}: {mech.nv - part.rank} in truth")

angles = {name: hc.joint_motion(mech, name, q, v) for name in link.joints}
print("angles:", {name: round(float(m.value[0]), 4) for name, m in angles.items()})
print("rates: ", {name: round(float(m.rate[0]), 4) for name, m in angles.items()})
print(f"torque {hc.inverse_dynamics(mech, q, v, [2.0]).u[0]:+.6f} N m at hinge_1")

# Another cut: other coordinates, the same mechanism.
other = link.mechanism(
    cut=["hinge_2"],
    actuated=["hinge_1"],
    reference={name: angles[name].value for name in link.joints if name != "hinge_2"},
)
x, w = hc.assemble(other, v_guess=[angles[n].rate[0] for n in other.coordinate_names])
print(f"torque {hc.inverse_dynamics(other, x, w, [2.0]).u[0]:+.6f} N m with hinge_2 cut")
