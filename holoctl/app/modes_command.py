"""``holoctl modes``: the assembly modes of a robot for given positions of its motors."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from holoctl.app.printing import answer, write_table
from holoctl.app.robot_arguments import (
    FORMATS,
    out_files,
    positions,
    robot_command,
    robot_of,
    typed_whole,
)
from holoctl.closing.assembly import assemble
from holoctl.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from holoctl.doctor.assembly_modes import AssemblyModes

__all__ = ["add_modes"]


def add_modes(commands: Any) -> None:
    """Add it to the subcommands of a parser."""
    robot_command(
        commands, "modes", _modes,
        "find the assembly modes: the ways to close with the motors where they are",
        "Close the robot next to its reference, hold the motors there and search for other closed "
        "configurations, from random starts. The sign is that of the determinant of the passive "
        "columns: modes of opposite signs are separated by a singularity. A search from random "
        "starts may miss modes.",
        "holoctl modes five_bar --set motor_left=2.0 --json",
        [("--tries", "random starts (%(default)s)", {"type": typed_whole, "default": 200}),
         ("--seed", "of the random starts (%(default)s)", {"type": typed_whole, "default": 0}),
         *out_files({".json": "all numbers", ".csv": "a row for each mode"})],
        FORMATS,
    )  # fmt: skip


def _modes(given: argparse.Namespace) -> int:
    from holoctl.doctor.assembly_modes import assembly_modes

    mech, q, held = robot_of(given)
    q, _ = assemble(mech, q, locked=held)
    found = assembly_modes(
        mech, mech.motor_positions(q), tries=given.tries, seed=given.seed,
        progress=sys.stderr.isatty(),
    )  # fmt: skip
    numbers = [_numbers(mech, mode.q) for mode in found.modes]

    def as_dict(found: AssemblyModes) -> dict[str, Any]:
        modes = [
            {"sign": mode.sign, "found": mode.found, "joints": positions(mech, mode.q)}
            for mode in found.modes
        ]
        motors = dict(zip(mech.actuator_names, found.motors.tolist(), strict=True))
        return {"name": mech.name, "motors": motors, "tries": found.tries, "modes": modes}

    def as_table(found: AssemblyModes) -> tuple[list[str], list[list[Any]]]:
        head = [[i, mode.sign, mode.found] for i, mode in enumerate(found.modes, start=1)]
        rows = [[*one, *x.values()] for one, x in zip(head, numbers, strict=True)]
        return ["mode", "sign", "found", *numbers[0]], rows

    def show(found: AssemblyModes) -> None:
        print(f"{mech.name}: {len(found.modes)} assembly modes from {found.tries} starts")
        for mode, x in zip(found.modes, numbers, strict=True):
            print(f"\nsign {'+' if mode.sign > 0 else '-'}, from {mode.found} starts:")
            write_table(list(x.items()))

    answer(given, found, as_dict, as_table, show)
    return 0


def _numbers(mech: Mechanism, q: Any) -> dict[str, float]:
    """Every coordinate of every joint by its name, ``joint[i]`` where it has several."""
    found: dict[str, float] = {}
    for name, x in positions(mech, q).items():
        several = [x] if isinstance(x, float) else x
        found |= {name if len(several) == 1 else f"{name}[{i}]": y for i, y in enumerate(several)}
    return found
