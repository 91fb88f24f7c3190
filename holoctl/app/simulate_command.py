"""``holoctl simulate``: a robot that falls, or that a controller moves, for some seconds."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.exceeded_limits import exceeded_on_the_way
from holoctl.app.printing import answer, write_table
from holoctl.app.robot_arguments import (
    FORMATS,
    GAINS,
    PICTURES,
    decimal,
    gains_of,
    out_files,
    robot_command,
    robot_of,
    typed_number,
)
from holoctl.app.units import motor_units
from holoctl.base.checks import Vector, known_name, positive
from holoctl.base.errors import InputError
from holoctl.closing.assembly import assemble
from holoctl.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from holoctl.simulation.run import Run

__all__ = ["add_simulate"]


def add_simulate(commands: Any) -> None:
    """Add it to the subcommands of a parser."""
    robot_command(
        commands, "simulate", _simulate,
        "simulate the robot, without a controller or under computed torque",
        "Close the robot and simulate it from rest: without --kp and --kd its motors give nothing, "
        "so it falls; with them computed torque holds it, or moves motors to where --to says, in "
        "the whole time, by a polynomial of fifth degree.",
        "holoctl simulate five_bar --kp 400 --kd 40 --to motor_left=2.4 --out run.png",
        [("--duration", "s (%(default)g)",
          {"type": typed_number, "default": 2.0, "metavar": "SECONDS"}),
         *GAINS,
         ("--to", "where a motor goes, rad or m; may be repeated",
          {"metavar": "MOTOR=VALUE", "action": "append", "default": []}),
         ("--frequency", "of the controller, Hz (%(default)g)",
          {"type": typed_number, "default": 1000.0, "metavar": "HZ"}),
         *out_files({
             ".npz": "the whole run (numpy, holoctl view --run)", ".json": "all numbers",
             ".csv": "the run as a table", PICTURES: "a picture",
         }, "--picture")], FORMATS,
    )  # fmt: skip


def _simulate(given: argparse.Namespace) -> int:
    from holoctl.app.plot_run import plot_run
    from holoctl.control.computed_torque import ComputedTorque
    from holoctl.simulation.simulate import simulate

    mech, q, held = robot_of(given)
    q, v = assemble(mech, q, locked=held)
    duration = positive("--duration", given.duration, "s")
    frequency = positive("--frequency", given.frequency, "Hz")
    gains = gains_of(given)
    if given.to and not gains:
        raise InputError("--to is for a controller: give --kp and --kd too")
    controller = None
    if gains:
        start = mech.motor_positions(q)
        law = ComputedTorque(mech, **gains, dt=1.0 / frequency)
        controller = law.track(_point_to_point(start, _goal(mech, start, given.to), duration))
    run = simulate(
        mech, controller, q, v, duration, frequency=frequency, progress=sys.stderr.isatty()
    )
    motors = np.array([mech.motor_positions(x) for x in run.q])
    names = list(mech.actuator_names)
    exceeded = exceeded_on_the_way(mech, run.t, run.q, run.v, run.u)

    def as_dict(run: Run) -> dict[str, Any]:
        found = {x: getattr(run, x).tolist() for x in ("t", "q", "v", "u", "closure")}
        return {"name": mech.name, "ended": run.ended, "beyond_limits": exceeded} | found

    def as_table(run: Run) -> tuple[list[str], list[list[Any]]]:
        table = run.table(mech)
        return list(table), np.column_stack(list(table.values())).tolist()

    def show(run: Run) -> None:
        print(f"{mech.name}: {run.t[-1]:.4g} s simulated; {run.ended or 'it ran to the end'}")
        print(f"largest closure error: {run.closure.max():.1e} (scaled)\n\nlargest efforts:")
        most = np.abs(run.u).max(axis=0, initial=0.0).tolist()
        write_table(list(zip(names, most, strict=True)), motor_units(mech))
        print("\nmotors at the end:")
        write_table(list(zip(names, motors[-1].tolist(), strict=True)))
        if exceeded:
            print("\nbeyond the limits of the file, which this simulation does not keep:")
            print("\n".join(f"  {line}" for line in exceeded))

    answer(given, run, as_dict, as_table, show, lambda run: plot_run(mech, run))
    return 1 if run.ended else 0


def _goal(mech: Mechanism, start: Vector, texts: list[str]) -> Vector:
    goal, names = start.copy(), list(mech.actuator_names)
    for text in texts:
        name, _, value = text.partition("=")
        known_name(name, names, "motor", "--to")
        try:
            goal[names.index(name)] = decimal(value)
        except ValueError:
            raise InputError(f"--to takes MOTOR=VALUE, rad or m; got {text!r}") from None
    return goal


def _point_to_point(start: Vector, goal: Vector, duration: float) -> Any:
    """A reference of `ComputedTorque.track`, at rest at both ends with no acceleration."""

    def reference(t: float) -> tuple[Vector, Vector, Vector]:
        s = min(max(t / duration, 0.0), 1.0)
        way = goal - start
        return (
            start + way * s**3 * (10.0 + s * (6.0 * s - 15.0)),
            way * 30.0 * s**2 * (1.0 - s) ** 2 / duration,
            way * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / duration**2,
        )

    return reference
