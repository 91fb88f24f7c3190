"""A Stewart platform rises level with one weak leg: clipped, nearest, slowed down. Draws them."""

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.interpolate import make_interp_spline

import holoctl as hc

WEAK = 11.0  # N, of leg_1; standing still takes each leg 10.1 N
RISE, PERIOD = 0.05, 2 / 3  # m, s: up, down and up again

mech = hc.load(hc.robot_file("stewart"))
q0, v0 = hc.assemble(mech)
data = mech.model.createData()
pin.framesForwardKinematics(mech.model, data, q0)
home = data.oMf[mech.model.getFrameId("tip")]


def legs_at(height: float, guess: np.ndarray) -> np.ndarray:
    """The configuration in which the platform is level, so much above where it starts."""
    place = ("universe", pin.SE3(home.rotation, home.translation + np.array([0, 0, height])))
    hold = hc.Closure(place, "tip", axes="x y z rx ry rz", name="hold")
    return hc.assemble(hc.Mechanism(mech.model, [*mech.constraints, hold]), guess)[0]


heights, there = np.linspace(-0.01, RISE + 0.01, 15), [q0]
for z in heights:
    there.append(legs_at(z, there[-1]))
length = make_interp_spline(heights, [mech.motor_positions(q) for q in there[1:]], k=5)


def height(t: float) -> float:
    """Of the level platform, m."""
    return 0.5 * RISE * (1 - np.cos(2 * np.pi / PERIOD * t))


def reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lengths of the legs, their rates and accelerations."""
    w = 2 * np.pi / PERIOD
    z, v, a = height(t), 0.5 * RISE * w * np.sin(w * t), 0.5 * RISE * w**2 * np.cos(w * t)
    slope = length(z, nu=1)
    return length(z), slope * v, slope * a + length(z, nu=2) * v**2


limits = hc.Limits(effort={"leg_1": WEAK})
kinds = {
    "clipped": hc.ComputedTorque(mech, 400.0, 40.0),  # the plant clips what this asks for
    "nearest": hc.ComputedTorque(mech, 400.0, 40.0, limits=limits),
    "scaled": hc.ComputedTorque(mech, 400.0, 40.0, limits=limits, policy="scale"),
}
runs, tilts = {}, {}
for kind, ctl in kinds.items():
    run = hc.simulate(
        mech,
        ctl.track(reference),
        q0,
        v0,
        duration=1.0,
        plant=hc.Plant(limits=limits),
        integrator=hc.Integrator(rtol=1e-7),
    )
    half_turn = np.linalg.norm(run.q[:, -4:-1], axis=1)  # of the platform's quaternion
    runs[kind], tilts[kind] = run, np.degrees(2 * np.arcsin(half_turn))
    late = height(run.t[-1]) - (run.q[-1, -5] - q0[-5])
    print(
        f"{kind}: tilts up to {tilts[kind].max():7.3f} degrees, leg_1 pushes with up to "
        f"{run.u[:, 0].max():.1f} N, {1e3 * late:.1f} mm behind at the end"
    )

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure

    from holoctl.app.draw import draw_mechanism
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="120 mm"):
    figure = Figure()
    grid = figure.add_gridspec(2, 3, height_ratios=(1.25, 1.0))
    colors = {"clipped": "C1", "nearest": "C0", "scaled": "C2"}
    for i, (kind, run) in enumerate(runs.items()):
        axes, worst = figure.add_subplot(grid[0, i]), int(tilts[kind].argmax())
        draw_mechanism(axes, mech, q0, (1, 2), color="0.9")
        draw_mechanism(axes, mech, run.q[worst], (1, 2), color=colors[kind])
        axes.set(
            aspect="equal",
            xlim=(-0.28, 0.28),
            ylim=(-0.02, 0.39),
            xlabel="y (m)",
            title=f"{kind}: {tilts[kind].max():.2f} degrees",
        )
    curves = [figure.add_subplot(grid[1, i]) for i in range(3)]
    for kind, run in runs.items():
        look = {"color": colors[kind], "label": kind, "linewidth": 1.3}
        curves[0].plot(run.t, tilts[kind], **look)
        curves[1].plot(run.t, run.u[:, 0], **look)
        curves[2].plot(run.t, 1e3 * (run.q[:, -5] - q0[-5]), **look)
    curves[1].axhline(WEAK, color="k", linestyle=":", linewidth=1)
    curves[2].plot(run.t, [1e3 * height(t) for t in run.t], "k:", linewidth=1, label="wanted")
    for axes, what in zip(curves, ("tilt (degrees)", "leg_1 (N)", "height (mm)"), strict=True):
        axes.set(xlabel="t (s)", ylabel=what)
    curves[2].legend(loc="lower left")
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/stay_within_limits.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
print(f"the picture: {path}")
