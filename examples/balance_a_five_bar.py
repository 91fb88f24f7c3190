"""A five-bar stands upright by a linear regulator, 10 % heavier than its model. Draws it."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pinocchio as pin

import holoctl as hc

OFF = 0.1  # rad, of both motors at the start
RATE = 1000.0  # ticks per s

mech = hc.load(hc.robot_file("five_bar"))
rest = hc.equilibrium(mech)  # where it stands, and the efforts that hold it
model = hc.linearize(mech, rest.q, u=rest.u)
regulator = hc.lqr(model, Q=[100, 100, 1, 1], R=[1, 1], dt=1 / RATE)

print(f"it stands at {rest.q.round(3)} with {rest.u.round(2)} N m")
for mode in model.modes():
    print(f"by itself it {mode.sentence}")
print(regulator)

heavy = mech.model.copy()
for i in range(1, heavy.njoints):
    body = heavy.inertias[i]
    heavy.inertias[i] = pin.Inertia(1.1 * body.mass, body.lever, 1.1 * body.inertia)
plant = dataclasses.replace(mech, model=heavy)

ahead = pin.integrate(mech.model, rest.q, mech.B.sum(axis=1) * OFF)
q0, v0 = hc.assemble(mech, ahead, locked=mech.actuated)
runs = {
    "held by its efforts alone": hc.simulate(
        mech, lambda t, q, v: rest.u, q0, v0, duration=0.25, plant=plant, frequency=RATE
    ),
    "regulated": hc.simulate(
        mech, regulator.controller(), q0, v0, duration=1.5, plant=plant, frequency=RATE
    ),
}
angles = {
    name: np.array([mech.motor_positions(q) - mech.motor_positions(rest.q) for q in run.q])
    for name, run in runs.items()
}
for name, off in angles.items():
    last = runs[name].t[-1]
    print(f"{name}: off by {np.abs(off[0]).max():.3f} rad, after {last:.3g} s by", end=" ")
    print(f"{np.abs(off[-1]).max():.4f} rad")

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure

    from holoctl.app.draw import draw_mechanism
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="80 mm"):
    figure = Figure()
    side, curve = figure.subplots(1, 2, width_ratios=(1.0, 1.5))
    draw_mechanism(side, mech, runs["held by its efforts alone"].q[-1], (0, 2), color="0.85")
    draw_mechanism(side, mech, q0, (0, 2), color="C1")
    draw_mechanism(side, mech, rest.q, (0, 2), color="C0")
    side.set(aspect="equal", xlabel="x (m)", ylabel="z (m)", title="start, and upright (blue)")
    for (name, off), style in zip(angles.items(), ("--", "-"), strict=True):
        for i, motor in enumerate(mech.actuator_names):
            curve.plot(runs[name].t, off[:, i], style, color=f"C{i}", label=f"{motor}, {name}")
    curve.set(xlabel="t (s)", ylabel="off the equilibrium (rad)", ylim=(-0.15, 0.4))
    curve.set(title="10 % heavier than the model, sampled at 1 kHz")
    curve.legend()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/balance_a_five_bar.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
print(f"the picture: {path}")
