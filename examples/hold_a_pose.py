"""A Stewart platform holds a pose against a push: as a spring, and heavier than it is. Draws it."""

import sys
from pathlib import Path

import numpy as np

import holoctl as hc

PUSH = np.array([15.0, 0.0, 0.0])  # N on the tip, from 0.1 s on
STIFFNESS = [1000.0, 1000.0, 2000.0, 40.0, 40.0, 40.0]  # N/m, N m/rad
HEAVY = [8.0, 8.0, 8.0, 0.1, 0.1, 0.1]  # kg, kg m^2: the inertia that is wanted
RATIO = 0.4  # of damping, of the heavy one: it swings

mech = hc.load(hc.robot_file("stewart"))
q0, v0 = hc.assemble(mech)
tip = hc.FrameTask("tip")  # all six axes
here = hc.task_terms(hc.project(mech, q0, v0), tip)
home = here.value
print("inertia of the tip along x y z:", here.inertia.diagonal()[:3].round(2), "kg")


def push(t: float) -> dict:
    """What pushes the platform: a force and a moment, at the tip."""
    return {"tip": (PUSH if t >= 0.1 else 0 * PUSH, np.zeros(3))}


# The natural inertia: nobody needs to know the push. A wanted one: the law is given the push, here
# by an observer of the momentum in the place of a force sensor.
swinging = 2 * RATIO * np.sqrt(np.multiply(STIFFNESS, HEAVY))
natural = hc.Impedance(mech, tip, STIFFNESS, "critical")
wanted = hc.Impedance(mech, tip, STIFFNESS, swinging, inertia=HEAVY)
observer = hc.MomentumObserver(mech, gain=300.0, dt=1e-3)
u = np.zeros(mech.nu)


def heavy(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """One tick: what the last one was pushed with, and the efforts for that."""
    observer.update(q, v, u, t)
    found = observer.wrench("tip").wrench
    return wanted.torque(q, v, home, t, f_ext={"tip": (found[:3], found[3:])}, out=u)


laws = {"natural inertia": natural.track(lambda t: home), "inertia 8 kg": heavy}
runs, moved = {}, {}
for name, law in laws.items():
    run = hc.simulate(
        mech,
        law,
        q0,
        v0,
        duration=1.2,
        plant=hc.Plant(f_ext=lambda t, q, v: push(t)),
        integrator=hc.Integrator(rtol=1e-7),
    )
    moved[name] = run.q[:, -7] - q0[-7]  # x of the platform
    runs[name] = run

# The second one is m x'' + d x' + k x = F, of which the answer is known.
t, k, m = runs["inertia 8 kg"].t, STIFFNESS[0], HEAVY[0]
w = np.sqrt(k / m)
s, wd = np.maximum(t - 0.1, 0.0), w * np.sqrt(1 - RATIO**2)
fading = np.exp(-RATIO * w * s) * (np.cos(wd * s) + RATIO * w / wd * np.sin(wd * s))
answer = PUSH[0] / k * (1 - fading)

print(f"K^-1 F: {1e3 * PUSH[0] / k:.4f} mm")
for name, x in moved.items():
    print(f"{name}: moves by {1e3 * x[-1]:.4f} mm in the end, {1e3 * x.max():.2f} mm at most")
off = np.abs(moved["inertia 8 kg"] - answer).max()
print(f"the second is off a mass with spring and damper by {1e3 * off:.2f} mm at most")

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure

    from holoctl.app.draw import draw_mechanism
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="80 mm"):
    figure = Figure()
    side, curve = figure.subplots(1, 2, width_ratios=(1.0, 1.5))
    last = runs["natural inertia"].q[-1]
    draw_mechanism(side, mech, q0, (0, 2), color="0.8")
    draw_mechanism(side, mech, last, (0, 2), color="C0")
    x, z = home.translation[[0, 2]]
    side.annotate("15 N", (x, z + 0.03), (x - 0.12, z + 0.024), arrowprops={"arrowstyle": "->"})
    side.set(
        aspect="equal", xlabel="x (m)", ylabel="z (m)", title="before and after", ylim=(-0.02, 0.36)
    )
    for name, x in moved.items():
        curve.plot(runs[name].t, 1e3 * x, label=name)
    curve.plot(t, 1e3 * answer, "k:", linewidth=1, label="mass, spring, damper")
    curve.axhline(1e3 * PUSH[0] / k, color="0.6", linewidth=1, zorder=0)
    curve.set(xlabel="t (s)", ylabel="x of the platform (mm)", title="pushed from 0.1 s on")
    curve.legend()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/hold_a_pose.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
print(f"the picture: {path}")
