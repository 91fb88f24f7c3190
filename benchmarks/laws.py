"""Laws beside computed torque: friction, tasks and the momentum observer; a tick in Python and
compiled.

All ways run in turn, in blocks of ticks over the same states around the reference; the median of
the blocks counts. References of tasks are tuples of a pose or an array, a rate and an acceleration,
and the torque is stored in an array that is there. The observer follows a motion at 1 kHz.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

import encoders
import numpy as np
import pinocchio as pin
from figures import in_turn, judged, table
from mechanisms import robot

import holoctl as hc

ROBOTS: dict[str, tuple[str, str] | None] = {
    "five_bar": ("tip_right", "x z"),
    "delta": ("platform", "x y z"),
    "stewart": ("platform", "x y z rx ry rz"),
    "biped": None,
}
"""Name to the frame and axes of its task."""

STATES, ROUNDS, MOST = 32, 21, {"compiled": 1.5, "in Python": 1.3}
FRICTION = hc.JointFriction(viscous=0.02, coulomb=0.1)
GAIN, SWING = 50.0, 0.01
"""Of the observer, 1/s; of the motion that it follows, rad or parts of the size."""


def laws(mech: hc.Mechanism, task: tuple[str, str] | None) -> dict[str, Any]:
    """Name to controller; the first is what the others are compared with."""
    rough = mech.with_forces([FRICTION])
    found: dict[str, Any] = {
        "computed torque": hc.ComputedTorque(mech, kp=400.0, kd=40.0),
        "friction": hc.ComputedTorque(rough, kp=400.0, kd=40.0),
    }
    if task is None:
        return found
    whole, one = hc.FrameTask(*task), hc.FrameTask(task[0], "z")
    return found | {
        "task space": hc.TaskSpaceControl(mech, whole, 400.0, 40.0),
        "impedance": hc.Impedance(mech, whole, 400.0, 40.0),
        "critical": hc.Impedance(mech, whole, 400.0, "critical"),
        "wanted inertia": hc.Impedance(mech, whole, 400.0, 40.0, 3.0),
        "one axis": hc.TaskSpaceControl(mech, one, 400.0, 40.0),
        "damp": hc.TaskSpaceControl(mech, whole, 400.0, 40.0, at_singular="damp"),
    }


def states(mech: hc.Mechanism) -> list[tuple[Any, Any]]:
    """Closed states around the reference."""
    rng, found = np.random.default_rng(0), []
    while len(found) < STATES:
        step, speed = 0.1 * rng.normal(size=(2, mech.nv)) * mech.column_scale
        q = pin.integrate(mech.model, mech.reference, step)
        try:
            found.append(hc.assemble(mech, q, speed, restarts=0))
        except hc.AssemblyError:
            continue
    return found


def calls(mech: hc.Mechanism, controller: Any, given: list[tuple[Any, Any]]) -> list[tuple]:
    """The arguments of each tick."""
    found, zero = [], np.zeros(mech.nu)
    for q, v in given:
        if isinstance(controller, hc.ComputedTorque):
            found.append((q, v, mech.motor_positions(q), mech.motor_rates(v), zero))
            continue
        tasks = getattr(controller, "tasks", None) or (controller.task,)
        value = hc.task_terms(hc.project(mech, q, v), tasks[0]).value
        rows = len(tasks[0].axes)
        found.append((q, v, (value, np.zeros(rows), np.zeros(rows))))
    return found


def block(torque: Callable[..., Any], given: list[tuple], out: Any, repeats: int) -> float:
    """Time of a tick, us."""
    start = time.process_time()
    for _ in range(repeats):
        for x in given:
            torque(*x, out=out)
    return 1e6 * (time.process_time() - start) / (repeats * len(given))


def observers(mech: hc.Mechanism, task: tuple[str, str] | None) -> dict[str, Callable[[], float]]:
    """Time of a tick of the observer along a motion, us, and of one with the wrench at a frame."""
    assembly = hc.ClosedStateEstimator(mech)
    motion = [
        assembly.state(x, rate) for x, rate in zip(*encoders.motion(assembly, SWING), strict=True)
    ]
    u = np.zeros(mech.nu)

    def way(wrench: bool) -> Callable[[], float]:
        observer, ticks = hc.MomentumObserver(mech, GAIN), cycle(motion)

        def run() -> float:
            given = [next(ticks) for _ in range(STATES)]
            start = time.process_time()
            for q, v in given:
                observer.update(q, v, u)
                if wrench:
                    observer.wrench(*task)
            return 1e6 * (time.process_time() - start) / STATES

        return run

    return {"observer": way(False)} | ({"and wrench": way(True)} if task else {})


def measured(name: str, rounds: int) -> dict[str, dict[str, float]]:
    """Median time of a tick by law, in Python and compiled, us."""
    mech, task = robot(name), ROBOTS[name]
    given, out = states(mech), np.zeros(mech.nu)
    ways: dict[tuple[str, str], Callable[[], float]] = {
        ("in Python", what): run for what, run in observers(mech, task).items()
    }
    for law, controller in laws(mech, task).items():
        asked, fast = calls(mech, controller, given), hc.compile(controller, ["torque"])
        for how, torque, repeats in (
            ("in Python", controller.torque, 1), ("compiled", fast.torque, 20)
        ):  # fmt: skip
            ways[how, law] = lambda f=torque, x=asked, n=repeats: block(f, x, out, n)
    for run in ways.values():
        run()
    times = in_turn(ways, rounds)
    return {how: {law: t for (h, law), t in times.items() if h == how} for how in MOST}


def section(quick: bool) -> str:
    """The section of the results."""
    rows, targets = [], []
    names = [*laws(robot("five_bar"), ROBOTS["five_bar"]), "observer", "and wrench"]
    for name in ROBOTS:
        with hc.realtime():
            found = measured(name, 3 if quick else ROUNDS)
        for how in ("in Python", "compiled"):
            times = found[how]
            base = times["computed torque"]
            cells = [f"{times[x]:.2f} ({times[x] / base:.2f} x)" if x in times else "-"
                     for x in names[1:]]  # fmt: skip
            rows.append([f"{name}, {how}", f"{base:.2f}", *cells])
            targets += [
                judged(f"{name}: {law}, {how}", times[law] / base, MOST[how], " x")
                for law in ("task space", "impedance")
                if law in times
            ]
    return "\n\n".join([
        "## Friction, tasks, and the observer",
        "Median time of a tick, us, and how many times that of `ComputedTorque` by the same way. "
        "*Friction*: viscous and Coulomb friction in all joints of the tree, at the reference. "
        "Whole tasks: the tip of the five-bar along x z, the platform of the Delta along x y z, "
        "that of the Stewart platform along and about all axes; *one axis*: z alone, and a posture "
        'that brakes the rest. *Critical*: an impedance with `damping="critical"` of the natural '
        'inertia; *damp*: `at_singular="damp"`, away from there. *Observer*: `MomentumObserver`, '
        "beside any law, along a motion at 1 kHz; *and wrench*: with that of the frame of the task "
        "at every tick.",
        table(["robot, way", *names], rows),
        "Targets:",
        "\n".join(targets),
    ])  # fmt: skip
