"""A Delta robot picks and places as fast as its motors allow, with a margin. Draws it."""

import sys
from pathlib import Path

import numpy as np

import holoctl as hc

RATE, MARGIN = 1000.0, 0.05  # ticks per s; a share of the limits that is left to the controller
CARRIED = 0.2  # kg

mech = hc.load(hc.robot_file("delta"))
tip = hc.FrameTask("tip", "x y z")
q, _ = hc.assemble(mech)
home = hc.task_terms(hc.project(mech, q, np.zeros(mech.nv)), tip).value
lifted = [[-0.08, 0.0, 0.0], [-0.07, 0.0, 0.05], [0.07, 0.04, 0.05], [0.08, 0.05, 0.0]]
path = home + np.array(lifted)

there = hc.retime(mech, (tip, path), payload=("tip", CARRIED), margin=MARGIN)
print(f"with {CARRIED} kg: {there}")
for name, share in sorted(there.at_limits.items()):
    print(f"  at the limit of {name} for {100 * share:.0f} % of the time")

robot = there.mech  # with what it carries
controller = hc.ComputedTorque(robot, kp=2500.0, kd=100.0)
run = hc.simulate(
    robot, controller.track(there.sampled(1 / RATE)), there.q[0], there.v[0], there.duration,
    frequency=RATE,
)  # fmt: skip
most = hc.limits_of(mech).effort["motor_1"]
print(f"in a simulation the motors give {np.abs(run.u).max() / most:.3f} of their limit at most")

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure

    from holoctl.app.draw import draw_mechanism
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

where = np.array([
    hc.task_terms(hc.project(robot, q, v, partition=there.partition), tip).value
    for q, v in zip(run.q, run.v, strict=True)
])  # fmt: skip
with hc.style("page", height="80 mm"):
    figure = Figure()
    side, curve = figure.subplots(1, 2, width_ratios=(1.0, 1.5))
    draw_mechanism(side, robot, run.q[0], (0, 2), color="0.85")
    draw_mechanism(side, robot, run.q[-1], (0, 2), color="0.55")
    side.plot(where[:, 0], where[:, 2], color="C1")
    side.plot(path[:, 0], path[:, 2], "o", color="C1", markersize=4)
    side.set(aspect="equal", xlabel="x (m)", ylabel="z (m)", title="through four points")
    for i, motor in enumerate(mech.actuator_names):
        curve.step(run.t[:-1], run.u[: run.t.size - 1, i], where="post", label=motor)
    for limit in (most, -most):
        curve.axhline(limit, color="k", linewidth=1, linestyle=":")
        curve.axhline((1 - MARGIN) * limit, color="0.6", linewidth=1, linestyle=":")
    curve.set(
        xlabel="t (s)", ylabel="efforts (N m)", title=f"{there.duration:.3f} s, at the limits"
    )
    curve.legend()
    picture = Path(sys.argv[1] if len(sys.argv) > 1 else "out/pick_and_place.png")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=150)
print(f"the picture: {picture}")
