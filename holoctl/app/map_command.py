"""``holoctl map``: efforts and other quantities of the motors over a grid."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holoctl.app.printing import answer, write_table
from holoctl.app.robot_arguments import (
    FORMATS,
    PICTURES,
    decimal,
    out_files,
    robot_command,
    robot_held,
)
from holoctl.base.checks import Array, listing, whole
from holoctl.base.errors import InputError

if TYPE_CHECKING:
    from holoctl.design.maps.result import MotorMap

__all__ = ["add_map"]


def add_map(commands: Any) -> None:
    """Add it to the subcommands of a parser."""
    robot_command(
        commands, "map", _map,
        "print efforts, condition and reach over a grid of the workspace",
        "Map holding efforts, condition number and reach over a grid of joints, or with --frame "
        "over x, y, z of a frame, on the branch of the reference (--set changes it).",
        "holoctl map five_bar --frame tip_right --grid x=-0.4:0.4:21 --grid z=0.1:0.6:16",
        [("--grid", "an axis of the grid, rad or m; may be repeated; NAME=VALUE for a constant",
          {"metavar": "NAME=FROM:TO:COUNT", "action": "append", "required": True}),
         ("--frame", "the frame whose x, y, z the axes are", {"metavar": "NAME"}),
         ("--what", "some of torque, condition, velocity, force, reach, separated by commas "
          "(%(default)s)", {"metavar": "WORDS", "default": "torque,condition"}),
         ("--jobs", "number of worker processes (default: this process alone)",
          {"type": int, "metavar": "COUNT"}),
         *out_files({
             ".json": "all numbers", ".csv": "a row for each point",
             PICTURES: "the map, if the grid has one or two axes",
         }, "--picture")], FORMATS,
    )  # fmt: skip


_NUMBER = re.compile(r"(?<![\w.])[-+]?[0-9][-+0-9.e]*%?")
"""A number that is not part of a name."""


def _map(given: argparse.Namespace) -> int:
    from holoctl.control.tasks.frame_task import FrameTask
    from holoctl.design.maps.motor_map import motor_map

    mech, q = robot_held(given)
    axes = dict(_axis(text) for text in given.grid)
    if len(axes) < len(given.grid):
        raise InputError("--grid: an axis is given twice")
    grid: Any = axes
    if given.frame is not None:
        grid = FrameTask(given.frame, axes=" ".join(axes)), *axes.values()
    wide = [name for name, values in axes.items() if np.size(values) > 1]
    if len(wide) > 2 and any(path.suffix.lower() in PICTURES.split() for path in given.out):
        raise InputError(f"--out: one or two axes can be drawn, not {listing(wide)}")
    what = [word.strip() for word in given.what.split(",")]
    jobs = None if given.jobs is None else whole("--jobs", given.jobs, 1)
    found = motor_map(mech, grid, what, start=q, executor=jobs)
    answer(given, found, _map_as_dict, _map_as_table, _print_map)
    return 0


def _axis(text: str) -> tuple[str, Array | float]:
    name, _, numbers = text.partition("=")
    try:
        if ":" not in numbers:
            return name, decimal(numbers)
        start, stop, count = numbers.split(":")
        return name, np.linspace(decimal(start), decimal(stop), whole("COUNT", int(count), 1))
    except ValueError:
        raise InputError(f"--grid takes NAME=FROM:TO:COUNT or NAME=VALUE; got {text!r}") from None


def _map_as_dict(found: MotorMap) -> dict[str, Any]:
    axes = [{"name": x.name, "unit": x.unit, "values": x.values.tolist()} for x in found.axes]
    arrays: dict[str, Any] = {"reachable": found.reachable, "q": found.q, "reasons": found.reasons}
    arrays |= {what: getattr(found, what) for what in found.what if what != "reach"}
    return {"name": found.mechanism, "axes": axes, "motors": list(found.motors)} | arrays


def _map_as_table(found: MotorMap) -> tuple[list[str], list[list[Any]]]:
    """A row for each point."""
    header = [x.name for x in found.axes] + ["reachable"]
    columns: list[NDArray[Any]] = [found.reachable]
    for what in found.what:
        if what != "reach":
            of = found.motors if what == "torque" else [str(i) for i in range(len(found.rows))]
            values = getattr(found, what)
            one = values.ndim == found.reachable.ndim
            header += [what] if one else [f"{what} {name}" for name in of]
            columns += [values] if one else list(np.moveaxis(values, -1, 0))
    rows = []
    for i in np.ndindex(found.reachable.shape):
        at = [x.values[k] for x, k in zip(found.axes, i, strict=True)]
        rows.append([*at, *(column[i] for column in columns), found.reasons[i]])
    return [*header, "reason"], rows


def _print_map(found: MotorMap) -> None:
    print(f"{found.mechanism}: {found.reachable.sum()} of {found.reachable.size} points reachable")
    if found.torque is not None and found.reachable.any():
        print("\nlargest holding efforts, N m or N:")
        most = np.nanmax(np.abs(found.torque), axis=tuple(range(found.reachable.ndim)))
        write_table(list(zip(found.motors, most.tolist(), strict=True)))
    if found.condition is not None and found.reachable.any():
        known = found.condition[found.reachable]
        print(f"\ncondition number: {np.min(known):.4g} to {np.max(known):.4g}")
    given = filter(None, found.reasons.reshape(-1).tolist())
    reasons = [_NUMBER.sub("...", reason) for reason in given]
    if reasons:
        print("\nreasons and reservations (--csv prints the numbers):")
        for reason, count in Counter(reasons).most_common():
            print(f"  {count} x {reason}")
