"""Laws of tasks beside computed torque: a tick in Python, compiled, and in C.

    .venv/bin/python benchmarks/task_space.py      prints the section of RESULTS.md

All ways run in turn, in blocks of ticks over the same states of a motion around the reference; the
median of the blocks counts. References of tasks are tuples of a pose or an array, a rate and an
acceleration, and the torque is stored in an array that is there.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: matrices are small

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

import holoctl as hc

ROBOTS = {
    "five_bar": ("tip_right", "x z"),
    "delta": ("platform", "x y z"),
    "stewart": ("platform", "x y z rx ry rz"),
}
STATES, ROUNDS, MOST = 32, 41, {"compiled": 1.5, "in Python": 1.3}


def laws(mech: hc.Mechanism, frame: str, axes: str) -> dict[str, Any]:
    """Name to controller; the first is what the others are compared with."""
    task = hc.FrameTask(frame, axes)
    return {
        "computed torque": hc.ComputedTorque(mech, kp=400.0, kd=40.0),
        "task space": hc.TaskSpaceControl(mech, task, 400.0, 40.0),
        "impedance": hc.Impedance(mech, task, 400.0, 40.0),
        "critical": hc.Impedance(mech, task, 400.0, "critical"),
        "wanted inertia": hc.Impedance(mech, task, 400.0, 40.0, 3.0),
        "one axis": hc.TaskSpaceControl(mech, hc.FrameTask(frame, "z"), 400.0, 40.0),
        "damp": hc.TaskSpaceControl(mech, task, 400.0, 40.0, at_singular="damp"),
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
            found.append((q, v, mech.motor_positions(q), zero, zero))
            continue
        tasks = getattr(controller, "tasks", None) or (controller.task,)
        value = hc.task_terms(hc.project(mech, q, v), tasks[0]).value
        rows = len(tasks[0].axes)
        found.append((q, v, (value, np.zeros(rows), np.zeros(rows))))
    return found


def block(torque: Callable[..., Any], given: list[tuple], out: Any, repeats: int) -> float:
    """Time of a tick, us."""
    start = time.perf_counter()
    for _ in range(repeats):
        for x in given:
            torque(*x, out=out)
    return 1e6 * (time.perf_counter() - start) / (repeats * len(given))


def measured(name: str) -> tuple[dict[str, float], dict[str, float]]:
    """Median time of a tick by law, in Python and compiled."""
    mech = hc.load(hc.robot_file(name))
    table, given, out = laws(mech, *ROBOTS[name]), states(mech), np.zeros(mech.nu)
    ways = {}
    for law, controller in table.items():
        asked = calls(mech, controller, given)
        fast = hc.compile(controller, ["torque"])
        ways[law, "in Python"] = controller.torque, asked, 1
        ways[law, "compiled"] = fast.torque, asked, 20
    times: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, (torque, asked, repeats) in ways.items():
            times[way].append(block(torque, asked, out, repeats))
    found = {way: float(np.median(x[1:])) for way, x in times.items()}
    return tuple({law: found[law, how] for law in table} for how in ("in Python", "compiled"))


def main() -> None:
    """Print the section."""
    rows, targets, names = [], [], None
    for name in ROBOTS:
        python, compiled = measured(name)
        names = list(python)
        for how, times in (("in Python", python), ("compiled", compiled)):
            base = times["computed torque"]
            cells = [f"{base:.2f}"]
            cells += [f"{times[law]:.2f} ({times[law] / base:.2f} x)" for law in names[1:]]
            rows.append(f"| {name} | {how} | {' | '.join(cells)} |")
            for law in names[1:3]:
                ratio, most = times[law] / base, MOST[how]
                met = "met" if ratio <= most else "NOT met"
                targets.append(f"- {name}: {law}, {how} <= {most} x: {ratio:.2f} x, {met}")
    head = f"| robot | way | {' | '.join(names or [])} |"
    print("\n".join([head, "|---" * (2 + len(names or [])) + "|", *rows, ""]))
    print(f"Load of the machine meanwhile: {os.getloadavg()[0]:.1f}, on {os.cpu_count()} cores.\n")
    print("\n".join(["Targets:", "", *targets]))


if __name__ == "__main__":
    main()
