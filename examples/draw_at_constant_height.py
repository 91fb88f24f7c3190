"""A Delta draws at constant height, from its motors alone: led by its tool, by its motors."""

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline

import holoctl as hc

RADIUS, HEIGHT, DURATION = 0.08, -0.36, 1.5  # m, m, s
POINTS = 12  # that the motors are taught, on the figure
GAINS = {"kp": 900.0, "kd": 60.0}

mech = hc.load(hc.robot_file("delta"))
data = mech.model.createData()
tool = hc.FrameTask("tip", "x y z")


def figure_at(phi: float) -> np.ndarray:
    """Position, and its first and second derivative: a clover with three leaves."""
    k, size = np.array([1, 4, -2]), RADIUS * np.array([0.7, 0.15, 0.15])
    z = ((1j * k) ** np.arange(3)[:, None] * size * np.exp(1j * k * phi)).sum(axis=1)
    return np.column_stack([z.real, z.imag, [HEIGHT, 0, 0]])


def phase(t: float) -> tuple[float, float, float]:
    """From rest once around to rest: angle, rate, acceleration."""
    s = min(t / DURATION, 1.0)
    turn = 2 * np.pi * np.array([1, 1 / DURATION, 1 / DURATION**2])
    return tuple(
        turn
        * [
            s**3 * (10 - 15 * s + 6 * s**2),
            30 * s**2 * (1 - s) ** 2,
            60 * s * (1 - s) * (1 - 2 * s),
        ]
    )


def along(p: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, rate and acceleration of what depends on the phase."""
    _, rate, acceleration = phase(t)
    return p[0], p[1] * rate, p[2] * rate**2 + p[1] * acceleration


# What the motors are taught: where they stand at some points, and smooth curves in between.
taught, there = np.linspace(0, 2 * np.pi, POINTS + 1), [mech.reference]
for phi in taught:
    there.append(hc.inverse_kinematics(mech, {tool: figure_at(phi)[0]}, there[-1])[0])
q0, places = there[1], [mech.motor_positions(q) for q in there[1:]]
curve = CubicSpline(taught, [*places[:-1], places[0]], bc_type="periodic")


def tool_reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return along(figure_at(phase(t)[0]), t)


def motor_reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return along(np.array([curve(phase(t)[0], n) for n in range(3)]), t)


def tool_position(q: np.ndarray) -> np.ndarray:
    pin.framesForwardKinematics(mech.model, data, q)
    return data.oMf[mech.model.getFrameId("tip")].translation.copy()


laws = {
    "by its tool": hc.TaskSpaceControl(mech, tool, **GAINS).track_from_motors(tool_reference),
    "by its motors": hc.ComputedTorque(mech, **GAINS).track_from_motors(motor_reference),
}
encoders = hc.Sensors(counts=2**17)  # of the motors, all that is measured
drawn = {}
for name, law in laws.items():
    law.loop.reset(q0)  # where the robot stands
    run = hc.simulate(
        mech,
        law,
        q0,
        np.zeros(mech.nv),
        DURATION,
        sensors=encoders,
        integrator=hc.Integrator(rtol=1e-7),
    )
    drawn[name] = np.array([tool_position(q) for q in run.q])
    wanted = np.array([figure_at(phase(t)[0])[0] for t in run.t])
    away = drawn[name] - wanted
    print(
        f"{name:<13} off height by {1e3 * np.abs(away[:, 2]).max():.4f} mm, off the figure by "
        f"{1e3 * np.linalg.norm(away, axis=1).max():.4f} mm at most"
    )

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="80 mm"):
    figure = Figure()
    above, beside = figure.subplots(1, 2, width_ratios=(1.0, 1.5))
    above.plot(1e3 * wanted[:, 0], 1e3 * wanted[:, 1], "k:", linewidth=1, label="wanted")
    corners = 1e3 * np.array([figure_at(phi)[0] for phi in taught])
    above.plot(corners[:, 0], corners[:, 1], "k.", label="taught to the motors")
    for (name, place), color in zip(drawn.items(), ("C0", "C1"), strict=True):
        above.plot(1e3 * place[:, 0], 1e3 * place[:, 1], color=color, label=name)
        beside.plot(run.t, 1e3 * (place[:, 2] - HEIGHT), color=color, label=name)
    above.set(aspect="equal", xlabel="x (mm)", ylabel="y (mm)", title="from above")
    above.legend()
    beside.set(xlabel="t (s)", ylabel="height above the plane (mm)", title="the tool's height")
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/draw_at_constant_height.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
print(f"the picture: {path}")
