"""A five-bar goes through a type-2 singularity, from one side to the other, as planned."""

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin

import holoctl as hc


def at(x):
    return pin.SE3(np.eye(3), np.array([x, 0.0, 0.0]))


def five_bar(mass):
    """Arms and rods of 0.2 m, motors 0.2 m apart."""
    link = hc.Linkage("five_bar", gravity=(0, -9.81, 0))
    for side, x in (("left", -0.1), ("right", 0.1)):
        for body in (f"arm_{side}", f"rod_{side}"):
            link.add_body(body, mass, [0.1, 0, 0], np.diag([1e-5, 1e-3, 1e-3]))
        link.add_joint(f"motor_{side}", "revolute", "universe", f"arm_{side}", at(x))
        link.add_joint(f"elbow_{side}", "revolute", f"arm_{side}", f"rod_{side}", at(0.2))
    link.add_joint("hinge", "revolute", "rod_left", "rod_right", at(0.2), at(0.2))
    link.add_body("tip", 0.0)
    link.add_joint("mount", "weld", "rod_left", "tip", at(0.2))
    angles = {"motor_left": 2.0, "elbow_left": -1.0, "motor_right": 1.1, "elbow_right": 1.0}
    return link.mechanism(
        cut=["hinge"],
        actuated=["motor_left", "motor_right"],
        reference=angles,
        limits=hc.Limits(effort=2.0),  # N m
    )


mech, tip = five_bar(0.3), hc.FrameTask("tip", "x y")
down = (tip, [[0.01, y] for y in np.linspace(0.3, 0.08, 9)])

# The plan leaves 15 % of the limits to the controller.
plan = hc.retime(mech, down, cross=True, margin=0.15)
print(plan)
print(plan.crossings[0])

# The robot is 5 % heavier, has friction in its motors, and starts 2 mrad off. Its encoders have 16
# bits; one of them is on a passive joint, for the motors do not tell the side.
friction = hc.JointFriction(coulomb={"motor_left": 0.17, "motor_right": 0.17})
robot = five_bar(1.05 * 0.3).with_forces([friction])
measured = ["motor_left", "motor_right", "elbow_left"]
control = hc.CrossingControl(mech, plan, "model", measured=measured)
begin = plan.q[0] + np.array([0.002, 0.0, -0.002, 0.0])
run = hc.simulate(
    robot,
    control,
    hc.assemble(robot, begin, locked=["motor_left", "motor_right"])[0],
    plan.v[0],
    plan.duration + 0.3,
    frequency=1000,
    sensors=hc.Sensors(measured, counts=2**16, rate_bandwidth=1500.0),
    integrator=hc.Integrator(at_actuation_singularity="record"),
)
print(f"crossed at {run.type_2_at[0]:.4f} s; at the end {control.last}")
print(f"largest error at the end: {1e3 * abs(run.q[-1] - plan.q[-1]).max():.2f} mrad")

path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/cross_a_singularity.png")
path.parent.mkdir(parents=True, exist_ok=True)
try:
    from matplotlib import pyplot as plt

    from holoctl.app.draw import draw_mechanism
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None
with hc.style():
    fig, (robot_ax, ax) = plt.subplots(
        1, 2, figsize=(9.0, 3.6), width_ratios=(2, 3), layout="constrained"
    )
    when = plan.crossings[0].t
    for t, color in ((0.0, "0.75"), (plan.duration, "0.55"), (when, "tab:red")):
        draw_mechanism(robot_ax, mech, plan.state(t).q, (0, 1), color=color)
    robot_ax.set_title("start, end, and the singularity (red)")
    ax.step(run.t[: len(run.u)], run.u, where="post", label=["left", "right"])
    ax.set_prop_cycle(None)
    ax.plot(plan.t, plan.u, linestyle=":")
    ax.axvline(when, color="tab:red", linewidth=0.8)
    ax.set(xlim=(0.0, plan.duration + 0.05), xlabel="time, s", ylabel="effort, N m")
    ax.set_title("efforts: run, plan (dotted)")
    ax.legend(loc="lower right")
    sides = ax.twinx()
    sides.plot(run.t, run.smallest_singular_value, color="0.6")
    sides.set(ylabel="smallest singular value", ylim=(0.0, None))
    fig.savefig(path, dpi=100)
print(f"the picture: {path}")
