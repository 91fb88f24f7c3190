"""``holoctl linearize``: the linear model of a robot at rest."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.printing import answer, write_table
from holoctl.app.robot_arguments import (
    FORMATS,
    PICTURES,
    names_of,
    numbers_of,
    out_files,
    positions,
    robot_command,
    robot_of,
    typed_number,
)
from holoctl.app.units import motor_units
from holoctl.base.checks import Array
from holoctl.base.linalg import largest
from holoctl.base.tolerances import PRINTED_AS_ZERO

if TYPE_CHECKING:
    from holoctl.design.linear.model import Linearization

__all__ = ["add_linearize"]


def add_linearize(commands: Any) -> None:
    """Add it to the subcommands of a parser."""
    robot_command(
        commands, "linearize", _linearize,
        "print the linear model at rest: modes, and the matrices of controller design",
        "Close the robot, find an equilibrium and its efforts, and linearise it there in minimal "
        "coordinates, x = (y, yd). Joints named by --set keep their positions.",
        "holoctl linearize five_bar --set motor_left=2.0 --json",
        [("--effort", "motor efforts, N m or N, separated by commas: the equilibrium is then one "
          "that these hold (default: the efforts that hold the robot)", {"metavar": "NUMBERS"}),
         ("--outputs", "rows of C, separated by commas: joints, motors, 'd JOINT', 'force CLOSURE' "
          "(default: x)", {"metavar": "NAMES"}),
         ("--dt", "in discrete time, with this tick",
          {"type": typed_number, "metavar": "SECONDS"}),
         *out_files({
             ".json": "all numbers", ".csv": "A and B",
             PICTURES: "the modes in the complex plane",
         }, "--picture")], FORMATS,
    )  # fmt: skip


def _linearize(given: argparse.Namespace) -> int:
    from holoctl.design.equilibria.equilibrium import equilibrium
    from holoctl.design.linear.linearize import linearize

    mech, q, held = robot_of(given)
    effort = None if given.effort is None else numbers_of(given.effort, "--effort")
    found = equilibrium(mech, q, effort, locked=held)
    lin = linearize(mech, found.q, u=found.u, outputs=names_of(given.outputs, "--outputs"))
    if given.dt is not None:
        lin = lin.discretized(given.dt)
    answer(given, lin, _as_dict, _as_table, _print_model)
    return 0


def _as_dict(lin: Linearization) -> dict[str, Any]:
    matrices = {x: getattr(lin, x).tolist() for x in ("A", "B", "C", "D", "rate", "q", "v", "u")}
    modes = [
        {
            "value": [mode.value.real, mode.value.imag],
            "frequency": mode.frequency,
            "damping": mode.damping,
            "coordinates": list(mode.coordinates),
            "sentence": mode.sentence,
        }
        for mode in lin.modes()
    ]
    names = {x: list(getattr(lin, x)) for x in ("states", "inputs", "outputs")}
    joints = positions(lin.mech, lin.q)
    head = {"name": lin.mech.name, "dt": lin.dt, "joints": joints, "modes": modes}
    return head | names | matrices


def _as_table(lin: Linearization) -> tuple[list[str], list[list[Any]]]:
    rows = np.hstack([lin.A, lin.B]).tolist()
    header = ["state", *lin.states, *lin.inputs]
    return header, [[x, *row] for x, row in zip(lin.states, rows, strict=True)]


_WIDE = 8
"""Largest number of states of matrices that are printed in a terminal."""


def _print_model(lin: Linearization) -> None:
    mech = lin.mech
    print(f"{lin}\n\nefforts that hold it:")
    write_table(
        list(zip(mech.actuator_names, _for_people(lin.u).tolist(), strict=True)), motor_units(mech)
    )
    print("\nmodes:")
    for mode in lin.modes():
        print(f"  {mode.sentence}")
    if len(lin.states) > _WIDE:
        print("\n--csv and --json print the matrices.")
        return
    time = "d/dt x" if lin.dt is None else f"x after {lin.dt:g} s"
    print(f"\n{time} = A x + B u, with deviations x and u from this point; A | B:")
    for name, row in zip(
        lin.states, np.hstack(list(map(_for_people, (lin.A, lin.B)))), strict=True
    ):
        numbers = [f"{x + 0.0:10.4g}" for x in row]
        numbers.insert(lin.A.shape[1], " |")
        print(f"  {name:<{max(map(len, lin.states))}}  {' '.join(numbers)}")


def _for_people(x: Array) -> Array:
    """The numbers, with those that are rounding relative to the largest one set to zero."""
    return np.where(np.abs(x) < PRINTED_AS_ZERO * largest(x), 0.0, x)
