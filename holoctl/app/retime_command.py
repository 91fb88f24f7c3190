"""``holoctl retime``: the fastest motion through way-points."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.printing import answer, write_table
from holoctl.app.robot_arguments import (
    FORMATS,
    PICTURES,
    columns_of,
    decimal,
    former_option,
    out_files,
    robot_command,
    robot_held,
    table_of,
    typed_number,
)
from holoctl.app.units import motor_units
from holoctl.base.checks import positive
from holoctl.base.errors import InputError
from holoctl.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from holoctl.design.paths.trajectory import Trajectory

__all__ = ["add_retime"]


def add_retime(commands: Any) -> None:
    """Add it to the subcommands of a parser."""
    robot_command(
        commands, "retime", _retime,
        "the fastest motion through way-points within the limits of the robot",
        "Find the fastest motion along a smooth path through way-points, at rest at both ends, "
        "within the limits of the file. The first row of the CSV file names its columns: the "
        "motors, or with --frame x, y, z of a frame (m). --csv prints the motion at --frequency.",
        "holoctl retime delta --path pick.csv --margin 0.03 --out pick.png",
        [("--path", "the way-points", {"metavar": "CSV", "type": Path, "required": True}),
         ("--frame", "the frame whose positions the way-points are", {"metavar": "NAME"}),
         ("--method", "a cone program (default), or toppra, which is faster",
          {"choices": ["cvxpy", "toppra"], "default": "cvxpy"}),
         ("--points", "number of intervals (%(default)s)",
          {"type": int, "default": 200, "metavar": "COUNT"}),
         ("--margin", "share of the limits that is left to a controller (%(default)s)",
          {"type": typed_number, "default": 0.0, "metavar": "SHARE"}),
         ("--cross", "plan through type-2 singularities that the path crosses, instead of an error",
          {"action": "store_true"}),
         ("--payload", "a mass at the origin of a frame, kg", {"metavar": "FRAME=MASS"}),
         ("--frequency", "rows of the table per second, Hz (%(default)g)",
          {"type": typed_number, "default": 1000.0, "metavar": "HZ"}),
         former_option("--rate", "--frequency", typed_number, dest="frequency", default=1000.0),
         *out_files({
             ".json": "all numbers", ".csv": "the motion, for a controller",
             PICTURES: "motors and efforts over time",
         }, "--picture")], FORMATS,
    )  # fmt: skip


def _retime(given: argparse.Namespace) -> int:
    from holoctl.design.retiming.retime import retime

    mech, q = robot_held(given)
    frequency = positive("--frequency", given.frequency, "Hz")
    trajectory = retime(
        mech, _path(mech, given.path, given.frame), points=given.points, method=given.method,
        start=q, payload=_payload(given.payload), margin=given.margin, cross=given.cross,
    )  # fmt: skip
    answer(given, trajectory, _nodes, partial(_motion, frequency=frequency), _print_trajectory)
    return 0


def _path(mech: Mechanism, file: Path, frame: str | None) -> Any:
    """Way-points of the motors, or a task and its values."""
    from holoctl.control.tasks.frame_task import FrameTask

    header, rows = table_of(file, "--path")
    if frame is None:
        hint = "; with --frame NAME they are x, y, z of a frame"
        return columns_of(header, rows, mech.actuator_names, f"--path: {file}", hint)
    axes = [axis for axis in "xyz" if axis in header] or list("xyz")
    return FrameTask(frame, axes=" ".join(axes)), columns_of(header, rows, axes, f"--path: {file}")


def _payload(text: str | None) -> tuple[str, float] | None:
    if text is None:
        return None
    frame, _, mass = text.rpartition("=")
    try:
        return frame, decimal(mass)
    except ValueError:
        raise InputError(f"--payload takes FRAME=MASS, kg; got {text!r}") from None


def _nodes(trajectory: Trajectory) -> dict[str, Any]:
    found = {x: getattr(trajectory, x).tolist() for x in ("t", "q", "v", "a", "u")}
    names = ("duration", "smallest_singular_value", "smallest_at", "type_2_at", "sides",
             "lost_motion")  # fmt: skip
    head = {"name": trajectory.mech.name} | {x: getattr(trajectory, x) for x in names}
    crossed = [
        {"t": one.t, "u": one.u.tolist(), "motion": one.motion.tolist()}
        for one in trajectory.crossings
    ]
    return head | {"at_limits": trajectory.at_limits, "crossings": crossed} | found


def _motion(trajectory: Trajectory, frequency: float) -> tuple[list[str], list[list[Any]]]:
    """The reference of a controller at every tick."""
    dt, names = 1.0 / frequency, trajectory.mech.actuator_names
    header = ["t", *names, *(f"d {x}" for x in names), *(f"dd {x}" for x in names)]
    rows = []
    for i in range(int(np.ceil(trajectory.duration / dt - 1e-9)) + 1):
        reference = np.concatenate(trajectory.reference(i * dt, dt))
        rows.append([i * dt, *reference.tolist()])
    return header, rows


def _print_trajectory(trajectory: Trajectory) -> None:
    mech = trajectory.mech
    print(f"{mech.name}: {trajectory.duration:.4g} s\n\nlargest efforts:")
    most = np.abs(trajectory.u).max(axis=0).tolist()
    write_table(list(zip(mech.actuator_names, most, strict=True)), motor_units(mech))
    least, at = trajectory.smallest_singular_value, trajectory.smallest_at
    print(f"\nsmallest singular value of gamma' B: {least:.3g} at {at:.4g} s", end="")
    print(", through a type-2 singularity" if trajectory.type_2_at else "")
    for one in trajectory.crossings:
        efforts = ", ".join(f"{u:.3g}" for u in one.u[1].tolist())
        print(f"crossed at {one.t:.6g} s with efforts {efforts}: {one.lost_motion}")
    print("\nat the limit, share of the time:")
    shares = sorted(trajectory.at_limits.items(), key=lambda x: -x[1])
    for name, share in shares:
        print(f"  {name}  {100.0 * share:.0f} %")
