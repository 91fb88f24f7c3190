"""The shipped leg crouches, jumps, lands on its sole and stands again: torques within the limits of
its motors and the friction of the ground, impacts by events. A boom keeps its pelvis upright."""

from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.interpolate import BPoly

import holoctl as hc

G, TICK, FRICTION = 9.81, 2e-3, 0.6  # m/s^2, s
LOW, TAKE_OFF, SPEED, LIFT = 0.57, 0.67, 1.2, 0.03  # heights of the centre of mass, m; m/s; m

boom = hc.Closure("pelvis", "universe", axes="y rx ry rz", name="boom")
leg = hc.load(hc.robot_file("leg"), free_flyer=True).with_constraints(boom)
corners = [(x, y, 0.0) for x in (0.10, -0.06) for y in (0.04, -0.04)]
foot = hc.UnilateralContact("sole", corners, friction=FRICTION, name="foot")
inner = [(0.8 * x, 0.8 * y, z) for x, y, z in corners]  # it plans with a smaller sole
planned = hc.UnilateralContact("sole", inner, friction=0.7 * FRICTION, name="foot")
mass, sole, level = hc.CenterOfMassTask(), hc.FrameTask("sole", "x z ry"), pin.SE3.Identity()
q, rest = hc.assemble(leg)
q[2] += 0.85
q = hc.inverse_kinematics(leg, {sole: level}, q, posture=q).q  # on the ground, z = 0
home = leg.motor_positions(q)


def centre_of_mass(q: np.ndarray) -> np.ndarray:
    return mass.bind(leg).at(hc.terms(leg, q, rest).kinematics).value


start = centre_of_mass(q)

# The wanted height of the centre of mass: the landing is the take-off backwards in time.
leaves = 0.7
apex = leaves + SPEED / G
lands, end = 2.0 * apex - leaves, 2.0 * apex
stands, low = (start[2], 0.0, 0.0), (LOW, 0.0, 0.0)
height = BPoly.from_derivatives(
    [-1.0, 0.1, 0.5, leaves, lands, end - 0.5, end - 0.1, end + 1.0],
    [stands, stands, low, (TAKE_OFF, SPEED, -G), (TAKE_OFF, -SPEED, -G), low, stands, stands],
)
up = (LIFT, 0.0, -8.0 * LIFT / (lands - leaves) ** 2)  # of the sole, in flight
lift = BPoly.from_derivatives([leaves, apex, lands], [(0.0, 0.0, 0.0), up, (0.0, -0.2, 0.0)])


def acting(t: float) -> list:
    """The contacts with which the controller plans."""
    return [] if leaves <= t < lands else ["foot"]


def wanted(t: float) -> list:
    """Centre of mass and sole, each with rate and acceleration, and the posture."""
    centre = np.outer([1.0, 0.0, 0.0], start)
    centre[:, 2] = [height(t, k) for k in range(3)]
    above, *rates = np.zeros((3, 3)) if acting(t) else [(0.0, lift(t, k), 0.0) for k in range(3)]
    return [tuple(centre), (pin.SE3(np.eye(3), np.array([0.0, 0.0, above[1]])), *rates), home]


control = hc.TaskSpaceControl(
    leg, [mass, sole, hc.PostureTask()], kp=[150.0, 400.0, 50.0], kd=[24.0, 40.0, 14.0],
    task_weights=[1.0, 1.0, 1e-4], contacts=planned, limits="model", dt=TICK,
)  # fmt: skip
run = hc.simulate(
    leg, control.track(wanted, active=acting), q, rest, end, frequency=1.0 / TICK, contacts=foot
)

events, force = run.contact_events, run.contact_forces["foot"].sum(axis=1)
off = events["t"][events["what"] == "leaves"].min()
back = events["t"][events["t"] > off].min()
weight = G * sum(inertia.mass for inertia in leg.model.inertias)
speed = G * TICK * np.sum(force[run.t < off, 2] / weight - 1.0)  # by the push of the ground
centre = np.array([centre_of_mass(x)[2] for x in run.q])
rise = centre[(run.t >= off) & (run.t <= back)].max() - np.interp(off, run.t, centre)
struck = events["impulse"][events["t"] >= back].sum(axis=0)
loaded, limits = force[force[:, 2] > 5.0], [hc.limits_of(leg).effort[x] for x in leg.actuator_names]
print(run)
print(f"it leaves the ground at {off:.3f} s, lands at {back:.3f} s, by {struck[2]:.2f} N s")
print(f"the ground has pushed it to v = {speed:.3f} m/s, v^2 / 2g = {5e2 * speed**2 / G:.1f} mm")
print(f"its centre of mass rises by {1e3 * rise:.1f} mm")
print(f"friction used: up to {(abs(loaded[:, 0]) / (FRICTION * loaded[:, 2])).max():.0%}")
for name, u, limit in zip(leg.actuator_names, abs(run.u).max(axis=0), limits, strict=True):
    print(f"  {name:<14} up to {u:4.1f} of {limit:.0f} N m")
print(f"at the end the ground bears {force[-1, 2]:.1f} N; the weight is {weight:.1f} N")

try:
    from matplotlib import pyplot as plt
except ImportError:  # the plot is extra
    plt = None
if plt is not None:
    fig, (above, middle, below) = plt.subplots(3, 1, sharex=True, figsize=(7.0, 6.0))
    above.plot(run.t, 1e3 * (centre - start[2]), label="centre of mass")
    above.plot(run.t, 1e3 * height(run.t) - 1e3 * start[2], "--", color="gray", label="wanted")
    above.set_ylabel("height, mm")
    middle.plot(run.t, force[:, 2], label="the ground")
    middle.axhline(weight, color="gray", linestyle="--", label="weight")
    middle.set_ylabel("force, N")
    for name, u in zip(leg.actuator_names[1:], run.u.T[1:], strict=True):
        below.plot(run.t, u, label=name)
    below.set_ylabel("torque, N m")
    below.set_xlabel("time, s")
    for ax in (above, middle, below):
        ax.legend(loc="upper right", fontsize=8)
        ax.axvspan(off, back, color="tab:orange", alpha=0.3)
    fig.tight_layout()
    Path("out").mkdir(exist_ok=True)
    fig.savefig("out/a_leg_jumps.png", dpi=100)
    print("out/a_leg_jumps.png")
