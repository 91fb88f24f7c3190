"""``holoctl excite``: a periodic motion from which masses and friction can be identified."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from holoctl.app.printing import answer, write_table
from holoctl.app.robot_arguments import (
    FLAG,
    FORMATS,
    PICTURES,
    out_files,
    robot_command,
    robot_held,
    typed_number,
    typed_whole,
)
from holoctl.base.checks import positive

if TYPE_CHECKING:
    from holoctl.identification.excitation import Excitation

__all__ = ["add_excite"]


def add_excite(commands: Any) -> None:
    """Add it to the subcommands of a parser."""
    count = {"type": typed_whole, "metavar": "COUNT"}
    robot_command(
        commands, "excite", _excite,
        "a periodic motion from which masses and friction can be identified",
        "Find a periodic motion of the motors, at rest at both ends, that tells the dynamic "
        "parameters apart as well as possible within the limits of the file. The start is the "
        "configuration next to the reference; --set changes it. --csv prints one period at "
        "--frequency.",
        "holoctl excite delta --friction motors --out motion.csv --out motion.png",
        [("--friction", "the joints with unknown friction (default: none)",
          {"choices": ["joints", "motors", "model"]}),
         ("--rotors", "rotor inertias are unknown too", FLAG),
         ("--offsets", "constant errors of the measured efforts are unknown too", FLAG),
         ("--period", "s (%(default)g)",
          {"type": typed_number, "default": 5.0, "metavar": "SECONDS"}),
         ("--harmonics", "number of harmonics (%(default)s)", {**count, "default": 5}),
         ("--margin", "share of the limits that is left to a controller (%(default)s)",
          {"type": typed_number, "default": 0.05, "metavar": "SHARE"}),
         ("--seed", "of the random motions (%(default)s)",
          {"type": typed_whole, "default": 0, "metavar": "NUMBER"}),
         ("--starts", "number of random motions (%(default)s)", {**count, "default": 16}),
         ("--iterations", "largest number of steps of the search (%(default)s)",
          {**count, "default": 30}),
         ("--frequency", "rows of the table per second, Hz (%(default)g)",
          {"type": typed_number, "default": 1000.0, "metavar": "HZ"}),
         *out_files({
             ".json": "all numbers", ".csv": "the motion, for a controller",
             PICTURES: "motors and efforts over a period, with their limits",
         })], FORMATS,
    )  # fmt: skip


def _excite(given: argparse.Namespace) -> int:
    from holoctl.identification.excitation import excitation
    from holoctl.identification.parameters import Parameters

    mech, q = robot_held(given)
    frequency = positive("--frequency", given.frequency, "Hz")
    model = Parameters(
        mech, friction=given.friction, rotors=given.rotors, offsets=given.offsets
    )  # fmt: skip
    plan = excitation(
        model, period=given.period, harmonics=given.harmonics, seed=given.seed, start=q,
        margin=given.margin, starts=given.starts, iterations=given.iterations,
        progress=sys.stderr.isatty(),
    )  # fmt: skip
    answer(given, plan, _numbers, partial(_motion, frequency=frequency), _print_plan)
    return 0


def _motion(plan: Excitation, frequency: float) -> tuple[list[str], list[list[float]]]:
    return plan.table(frequency)


def _numbers(plan: Excitation) -> dict[str, Any]:
    names = (
        "period", "information", "smallest_singular_value", "condition", "least_seen", "margin",
        "seed", "names", "coefficients", "t", "positions",
    )  # fmt: skip
    found = {"name": plan.model.mech.name} | {x: getattr(plan, x) for x in names}
    base = {"base_parameters": plan.base.expressions, "not_excited": plan.base.unseen}
    return found | base | {"u": plan.trajectory.u}


def _print_plan(plan: Excitation) -> None:
    print(f"{plan}\n\ndistance from limits, share of the range, less the margin:")
    write_table(sorted(plan.margin.items(), key=lambda x: x[1]))
