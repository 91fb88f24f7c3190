"""Load a closed-chain robot, close it, and ask which torques hold it against gravity."""

import numpy as np

import holoctl as hc

mech = hc.load(hc.robot_file("five_bar"))
q, v = hc.assemble(mech)
still = np.zeros(mech.nv)

# Holding torques: rest, and no acceleration of any coordinate.
result = hc.inverse_dynamics(mech, q, still, still, coordinates="all").raise_if_bad()

print(mech)
for motor, torque in zip(mech.actuated, result.u, strict=True):
    print(f"  {motor:<12} {torque:+.4f} N m")
print(result.certificate)
