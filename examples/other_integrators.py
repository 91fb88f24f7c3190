"""Integrators of one's own: scipy's, or Runge and Kutta's by hand, on a four-bar.

Forward dynamics keeps the acceleration on the constraints, not what an integrator makes of it:
positions drift off. `hc.corrected` puts the state back after each step, on the branch where it is.
Then: the ways in which a five-bar closes for the same positions of its motors.
"""

import numpy as np
from scipy.integrate import solve_ivp

import holoctl as hc

mech = hc.load(hc.robot_file("four_bar"))
q0, v0 = hc.assemble(mech)
part = hc.partition(mech, q0)
dynamics = hc.PreparedForwardDynamics(mech, part)
no_effort = np.zeros(mech.nv)  # it swings by its weight


def rates(t, x):
    """d/dt of (q, v); where nq and nv differ, integrate steps of q by pinocchio.integrate."""
    q, v = x[: mech.nq], x[mech.nq :]
    return np.concatenate([v, dynamics.acceleration(q, v, no_effort, t)])


def runge_kutta(x, t, h):
    """One step of the classical method, order four."""
    k1 = rates(t, x)
    k2 = rates(t + h / 2, x + h / 2 * k1)
    k3 = rates(t + h / 2, x + h / 2 * k2)
    k4 = rates(t + h, x + h * k3)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def put_back(x):
    """The same state on the constraints."""
    return np.concatenate(hc.corrected(mech, x[: mech.nq], x[mech.nq :], partition=part))


h, steps = 5e-3, 2000
free, held = np.concatenate([q0, v0]), np.concatenate([q0, v0])
for i in range(steps):
    free = runge_kutta(free, i * h, h)
    held = put_back(runge_kutta(held, i * h, h))
start = hc.energy(mech, q0, v0).total
for name, x in (("left alone", free), ("put back", held)):
    q, v = x[: mech.nq], x[mech.nq :]
    print(f"{name:>10}: {hc.constraint_errors(mech, q, v)}")
    print(f"            energy changed by {1e3 * (hc.energy(mech, q, v).total - start):.2g} mJ")
off = hc.constraint_errors(mech, free[: mech.nq])
for name, rows in hc.methods.by_constraint(mech, off.position).items():
    print(f"rows of {name}, left alone: {np.round(1e6 * rows, 3)} micrometres or microradians")

# scipy in pieces: within each its events and its dense output work, then the state is put back
x = np.concatenate([q0, v0])
for start in np.linspace(0.0, 9.5, 20):
    piece = solve_ivp(rates, (start, start + 0.5), x, method="DOP853", rtol=1e-10, atol=1e-12)
    x = put_back(piece.y[:, -1])
print(f"after {steps * h:g} s Runge and Kutta's is {np.abs(x - held).max():.1e} from DOP853")

robot = hc.load(hc.robot_file("five_bar"))
q, _ = hc.assemble(robot)
found = hc.assembly_modes(robot, robot.motor_positions(q), tries=40)
print(found)
for mode in found.modes:
    print(f"{mode.kind}: {np.round(mode.q, 4)}")
