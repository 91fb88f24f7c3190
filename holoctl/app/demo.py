"""The demo: a closed-chain robot draws a figure under torque control.

    description -> Mechanism -> assemble -> reference motion -> ComputedTorque -> simulate

`holoctl demo` runs it. It is also a long example: every step is a call of a public function.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.app.units import motor_units
from holoctl.base.checks import Array, Vector, known_name, positive
from holoctl.base.errors import InputError
from holoctl.base.tolerances import TOLERANCES
from holoctl.closing.assembly import assemble
from holoctl.constraints.closure import Closure
from holoctl.control.computed_torque import ComputedTorque, Reference
from holoctl.dynamics.certificate import Certificate
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.io.load import load, robot_file
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.simulation.plant import Integrator, Plant
from holoctl.simulation.run import Run
from holoctl.simulation.sensors import Sensors
from holoctl.simulation.simulate import simulate
from holoctl.tree.frames import resolve_frame
from holoctl.tree.kinematics import place

__all__ = [
    "DEMOS",
    "Demo",
    "Scenario",
    "demo",
]


PointAt = Callable[[float], Vector]
"""A function of the time, s: the point of the figure, m."""

DURATIONS = 0.1, 600.0
"""The shortest and the longest figure, s."""

ENCODERS = Sensors(counts=2**16, noise=(2e-5, 5e-3))
"""Encoders of the motors: 16 bits per turn (or metre), and noise, rad and rad/s (m and m/s)."""

KP, KD = 900.0, 60.0  # natural frequency 30 rad/s, critically damped

BETWEEN_HOLDING_AND_MOVING = 0.8
"""Effort limit of motors that are too weak, as a share of the interval from the largest holding
effort to the largest effort along the figure."""

STATES = 41
"""Number of states of a run that are checked."""


@dataclass(frozen=True)
class DrawnFigure:
    """A figure in a plane of two world axes, lengths in m.

    `hold` are the axes of the tip that the reference determines; they leave the robot no freedom.
    `start` is the error of the first motor at the start, rad or m.
    """

    tip: str
    plane: tuple[int, int]
    centre: tuple[float, float, float]
    radius: float
    hold: str
    start: float


DEMOS = {
    "five_bar": DrawnFigure("tip", (0, 2), (0, 0, 0.40), radius=0.07, hold="x z", start=0.03),
    "delta": DrawnFigure("tip", (0, 1), (0, 0, -0.36), radius=0.08, hold="x y z", start=0.03),
    "stewart": DrawnFigure(
        "tip", (0, 1), (0, 0, 0.32), radius=0.05, hold="x y z rx ry rz", start=0.005
    ),
}


@dataclass(frozen=True)
class Scenario:
    """One simulated run and its tracking error; `most` is the effort limit of the motors."""

    label: str
    run: Run
    tip: Array
    error: Vector
    most: float = np.inf

    def worst_after(self, transient: float) -> float:
        """Largest distance between tip and figure after the transient, m."""
        return float(self.error[self.run.t >= transient].max())


@dataclass(frozen=True)
class Demo:
    """The results of the demo."""

    mech: Mechanism
    figure: Array
    scenarios: tuple[Scenario, ...]
    certificates: tuple[Certificate, ...]
    transient: float
    drawing: DrawnFigure

    def table(self) -> str:
        """Tracking errors, tick times and the worst certificate numbers, as text."""
        lines = [
            f"{'tracking':<34}{'worst error':>13}{'rms error':>13}"
            f"{'tick median':>13}{'tick p99':>11}",
            "-" * 84,
        ]
        for s in self.scenarios:
            settled = s.error[s.run.t >= self.transient]
            median, p99 = np.percentile(s.run.tick_time, [50, 99]) * 1e6
            lines.append(
                f"{s.label:<34}{settled.max():>11.2e} m{np.sqrt((settled**2).mean()):>11.2e} m"
                f"{median:>10.0f} us{p99:>8.0f} us"
            )
        lines += [
            f"(errors of the tip after the transient of {self.transient:g} s)",
            "",
            f"{'certificate, worst of ' + str(len(self.certificates)) + ' states':<34}"
            f"{'value':>13}{'tolerance':>13}",
            "-" * 84,
        ]
        for name, tolerance in TOLERANCES.items():
            value = max(getattr(c, name) for c in self.certificates)
            lines.append(f"{name:<34}{value:>13.1e}{tolerance:>13.0e}")
        ok = sum(c.ok for c in self.certificates)
        lines.append(f"certified: {ok} of {len(self.certificates)} states")
        return "\n".join(lines)


def demo(
    name: str = "five_bar",
    *,
    duration: float = 4.0,
    frequency: float = 1000.0,
    progress: bool = False,
) -> Demo:
    """Draw a figure with a robot in five scenarios: exact plant at `frequency`; exact plant with a
    continuous controller; exact plant with the encoders of the motors alone; a plant with masses
    10 % larger; and one whose motors are too weak for the figure, which the controller knows.

    Parameters
    ----------
    name : str
        One of `DEMOS`.
    duration, frequency : float
        s, ticks per s.
    progress : bool
        Show progress bars.

    Raises
    ------
    InputError
        For an unknown name, a duration outside `DURATIONS`, a frequency that is not positive.
    """
    duration = positive("duration", duration, "s")
    frequency = positive("frequency", frequency, "ticks per s")
    if not DURATIONS[0] <= duration <= DURATIONS[1]:
        shortest, longest = DURATIONS
        raise InputError(
            f"duration must be from {shortest:g} to {longest:g} s; got {duration:g}: a faster "
            "motion exceeds the motors of a model, and a slower one shows nothing more"
        )
    drawing = DEMOS[known_name(name, list(DEMOS), "demo", "demo")]
    mech = load(robot_file(name))
    figure_at = clover(drawing, duration)
    reference, start = motion(mech, drawing, figure_at, duration)
    q0, v0 = displaced(mech, start, drawing.start)
    ctl = ComputedTorque(mech, KP, KD)
    from_motors = ComputedTorque(mech, KP, KD, estimator=ClosedStateEstimator(mech, start=q0))
    frame = resolve_frame(mech.model, drawing.tip, "demo")

    def drawn(
        label: str, law: ComputedTorque, plant: Mechanism | Plant = mech, hold: bool = True,
        sensors: Sensors | None = None, most: float = np.inf,
    ) -> Scenario:  # fmt: skip
        track = law.track_from_motors if sensors else law.track
        run = simulate(
            mech, track(reference), q0, v0, duration, plant=plant, frequency=frequency,
            integrator=Integrator(hold=hold), sensors=sensors, progress=progress,
        )  # fmt: skip
        tip = np.array([place(mech.model, q, frame).translation for q in run.q])
        wanted = np.array([figure_at(t) for t in run.t])
        return Scenario(label, run, tip, np.linalg.norm(tip - wanted, axis=1), most)

    scenarios = [
        drawn(f"exact plant, {frequency:g} Hz", ctl),
        drawn("exact plant, continuous", ctl, hold=False),
        drawn(f"its motor encoders only, {frequency:g} Hz", from_motors, sensors=ENCODERS),
        drawn(f"plant 10 % heavier, {frequency:g} Hz", ctl, heavier(mech, 1.10)),
    ]
    transient = min(1.0, duration / 2)
    most = too_little(mech, scenarios[0].run, transient)
    limits = Limits(effort=most)
    limited = ComputedTorque(mech, KP, KD, limits=limits, dt=1.0 / frequency)
    unit = " or ".join(sorted(set(motor_units(mech))))
    label = f"motors up to {most:.3g} {unit}, {frequency:g} Hz"
    scenarios.append(drawn(label, limited, Plant(limits=limits), most=most))
    return Demo(
        mech, np.array([figure_at(t) for t in np.linspace(0.0, duration, 400)]), tuple(scenarios),
        certificates(mech, ctl, scenarios[-2].run, reference), transient, drawing,
    )  # fmt: skip


# ---------------------------------------------------------------------------- the reference


def clover(drawing: DrawnFigure, duration: float) -> PointAt:
    """A three-leaved figure, traversed once, at rest at both ends."""

    def point(t: float) -> Vector:
        s = min(max(t / duration, 0.0), 1.0)
        angle = 2.0 * np.pi * s**4 * (35.0 - 84.0 * s + 70.0 * s**2 - 20.0 * s**3)
        r = drawing.radius * (1.0 + 0.35 * np.cos(3.0 * angle))
        p = np.array(drawing.centre, dtype=float)
        p[list(drawing.plane)] += r * np.sin(angle), r * np.cos(angle)
        return p

    return point


def motion(
    mech: Mechanism, drawing: DrawnFigure, figure_at: PointAt, duration: float
) -> tuple[Reference, Vector]:
    """Motor positions, rates and accelerations that draw the figure, and the first configuration.

    Inverse kinematics is assembly with one more closure, which holds the tip at a point. A spline
    of degree 7 through the motor positions at the knots, 200 per second, is differentiated.
    """
    from scipy.interpolate import make_interp_spline

    knots = max(101, round(200 * duration) + 1)
    times = np.linspace(0.0, duration, knots)
    guess, motors = mech.reference, np.empty((knots, mech.nu))
    for i, t in enumerate(times):
        q = reach(mech, drawing, figure_at(float(t)), guess)
        if i == 0:
            start = q
        guess, motors[i] = q, mech.motor_positions(q)
    motors = np.unwrap(motors, axis=0)  # count the turns of continuous joints
    position = make_interp_spline(times, motors, k=7)
    rate, acceleration = position.derivative(1), position.derivative(2)

    def reference(t: float) -> tuple[Vector, Vector, Vector]:
        return position(t), rate(t), acceleration(t)

    return reference, start


def reach(mech: Mechanism, drawing: DrawnFigure, point: Vector, guess: Vector) -> Vector:
    """The configuration near `guess` with the tip at `point`, along the axes that are held."""
    world = ("universe", pin.SE3(np.eye(3), point))
    hold = Closure(world, drawing.tip, axes=drawing.hold, name="hold tip")
    held = Mechanism(mech.model, [*mech.constraints, hold])
    return assemble(held, guess, restarts=0)[0]  # no restart: it might end in another posture


def displaced(mech: Mechanism, q: Vector, by: float) -> tuple[Vector, Vector]:
    """A start at rest with an error of the first motor, so that there is a transient."""
    step = by * mech.B[:, 0]
    return assemble(mech, pin.integrate(mech.model, q, step), locked=mech.actuated, restarts=0)


def heavier(mech: Mechanism, factor: float) -> Mechanism:
    """The same mechanism with all masses and inertias multiplied."""
    model = mech.model.copy()
    for j in range(1, model.njoints):
        body = model.inertias[j]
        model.inertias[j] = pin.Inertia(body.mass * factor, body.lever, body.inertia * factor)
    return dataclasses.replace(mech, model=model, name=f"{mech.name} x {factor:g}")


def too_little(mech: Mechanism, run: Run, transient: float) -> float:
    """An effort limit that allows holding the robot anywhere along a run, but not moving it along
    the figure."""
    rest, still = np.zeros(mech.nv), np.zeros(mech.nu)
    places = run.q[np.linspace(0, len(run.q) - 1, STATES).astype(int)]
    holding = max(np.abs(inverse_dynamics(mech, q, rest, still).u).max() for q in places)
    moving = np.abs(run.u[run.t >= transient]).max()
    return float(holding + BETWEEN_HOLDING_AND_MOVING * (moving - holding))


def certificates(
    mech: Mechanism, ctl: ComputedTorque, run: Run, reference: Reference, count: int = STATES
) -> tuple[Certificate, ...]:
    """Certificates of the model's torques at states along a run."""
    found = []
    for i in np.linspace(0, len(run.t) - 1, count).astype(int):
        _, _, a_ref = reference(float(run.t[i]))
        solution = inverse_dynamics(mech, run.q[i], run.v[i], a_ref, partition=ctl.partition)
        found.append(solution.certificate)
    return tuple(found)
