"""Model-predictive path integral control (MPPI) of a five-bar with a payload, within its efforts.

At each tick of 1 kHz many plans of efforts are tried on the exact dynamics, 0.1 s ahead, and
averaged with weights exp(-cost / temperature). 4,096 plans at 1 kHz are work for a GPU
(device="cuda"); here 256 on the cores of this computer. Draws what it does, and what it does with a
plan for no payload.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pinocchio as pin

import holoctl as hc

PLANS, STEPS, AHEAD = 256, 20, 5e-3  # s for each step of a plan
TICK, END = 1e-3, 0.8  # s
MOST = 8.0  # N m: less than half of what the motors have
MASS = 0.8  # kg at the tip
SPREAD, TEMPERATURE = 1.5, 0.02  # N m of the trials; of the costs
TARGETS = [(0.0, [0.4, -0.3]), (0.4, [-0.2, 0.2])]  # s; rad from the start

mech = hc.load(hc.robot_file("five_bar"))
start, still = hc.assemble(mech)
home = mech.motor_positions(start)
robots = hc.Rollouts(mech, AHEAD, payload="tip_right")


def loaded() -> hc.Mechanism:
    """The robot with its payload, for the simulation."""
    model = mech.model.copy()
    frame, inertias = model.frames[model.getFrameId("tip_right")], model.inertias
    load = frame.placement.act(pin.Inertia(MASS, np.zeros(3), np.zeros((3, 3))))
    inertias[frame.parentJoint] = inertias[frame.parentJoint] + load
    return mech.with_model(model)


def wanted(t: float) -> np.ndarray:
    """What the motors are to reach."""
    return home + [x for begin, x in TARGETS if t >= begin][-1]


def mppi(mass: float) -> tuple[hc.Run, list[float]]:
    """A run with plans for a payload of this mass, and what each tick took."""
    rng, plan, took = np.random.default_rng(0), np.zeros((STEPS, mech.nu)), list[float]()
    knots, steps = np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, STEPS)
    smooth = np.array([np.interp(steps, knots, row) for row in np.eye(5)])

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        nonlocal plan
        began = time.perf_counter()
        trials = np.einsum("nkm,ks->nsm", SPREAD * rng.normal(size=(PLANS, 5, mech.nu)), smooth)
        trials[0] = 0.0  # the plan as it is
        efforts = np.clip(plan + trials, -MOST, MOST)
        found = robots.run(q, v, efforts, plant={"payload_mass": mass})
        off = mech.motor_positions(found.q[:, 1:]) - wanted(t)
        cost = (4.0 * off**2 + 0.01 * mech.motor_rates(found.v[:, 1:]) ** 2).sum((1, 2))
        cost += 1e-4 * (np.diff(efforts, axis=1) ** 2).sum((1, 2))
        cost[found.status != 0] = np.inf  # singular, or out of reach
        if not np.isfinite(cost).any():  # no plan says anything: the last one goes on
            cost[0] = 0.0
        weights = np.exp(-(cost - cost.min()) / TEMPERATURE)
        plan = np.tensordot(weights / weights.sum(), efforts, 1)
        u = plan[0].copy()
        later = np.minimum(np.arange(STEPS) + TICK / AHEAD, STEPS - 1)
        plan = np.array([np.interp(later, np.arange(STEPS), x) for x in plan.T]).T
        took.append(time.perf_counter() - began)
        return u

    return hc.simulate(loaded(), law, start, still, END), took


runs = {}
for mass in (MASS, 0.0):
    run, took = mppi(mass)
    runs[mass] = run
    y = mech.motor_positions(run.q) - home
    for at, (_, target) in zip((0.4, END), TARGETS, strict=True):
        off = np.abs(y[run.t.searchsorted(at) - 1] - target).max()
        print(
            f"planned for {mass} kg: before {at} s the motors are {off:.3f} rad from their target"
        )
    print(f"largest effort {np.abs(run.u).max():.2f} of {MOST} N m")
    steps = PLANS * STEPS / np.median(took)
    print(f"a tick takes {1e3 * np.median(took):.1f} ms in the median: {steps:.2g} steps a second")

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="80 mm"):
    figure = Figure()
    angles, efforts_of = figure.subplots(2, 1, sharex=True)
    for (mass, run), line in zip(runs.items(), ("-", "--"), strict=True):
        y = mech.motor_positions(run.q) - home
        for i, motor in enumerate(mech.actuator_names):
            angles.plot(run.t, y[:, i], line, color=f"C{i}", label=f"{motor}, {mass} kg")
            efforts_of.step(run.t, run.u[:, i], line, where="post", color=f"C{i}", linewidth=0.8)
    goals = np.array([wanted(t) - home for t in run.t])
    angles.plot(run.t, goals, ":", color="0.5")
    for limit in (-MOST, MOST):
        efforts_of.axhline(limit, color="0.6", linewidth=1, zorder=0)
    angles.set(ylabel="from the start (rad)", title=f"targets (dotted), plans for {MASS} and 0 kg")
    efforts_of.set(xlabel="t (s)", ylabel="effort (N m)")
    angles.legend(loc="upper right", fontsize="small")
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/plan_by_rollouts.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
print(f"the picture: {path}")
