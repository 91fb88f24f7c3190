"""``holoctl transmission``: motors of a closed mechanism seen from serial joints."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.printing import answer
from holoctl.app.robot_arguments import (
    FORMATS,
    PICTURES,
    columns_of,
    decimal,
    folder,
    names_of,
    out_files,
    robot_command,
    robot_of,
    table_of,
    typed_whole,
)
from holoctl.base.checks import Vector, known_name, listing
from holoctl.base.errors import InputError
from holoctl.closing.assembly import assemble
from holoctl.tree.coordinates import translational

if TYPE_CHECKING:
    from holoctl.transmission.check import TransmissionCheck
    from holoctl.transmission.report import TransmissionReport
    from holoctl.transmission.robot import RobotTransmissions
    from holoctl.transmission.transmission import Transmission

__all__ = ["add_transmission"]

MOST_DRAWN = 2
"""The largest number of joints of a picture."""


def add_transmission(commands: Any) -> None:
    """Add it to the subcommands of a parser."""
    robot_command(
        commands, "transmission", _transmission,
        "report parallel joints (ankle, knee): reach, singular postures, errors of approximations",
        "With --joints: report the transmission between these serial joints and the motors that "
        "drive them through loops, over a range of joint positions, on the branch of the reference "
        "(--set changes it). Without: list the transmissions of the robot.",
        "holoctl transmission ankle --joints ankle_pitch,ankle_roll --out ankle.png",
        [("--joints", "the serial joints, separated by commas", {"metavar": "NAMES"}),
         ("--range", "the range of a joint, rad or m (default: its position limits); may be "
          "repeated", {"metavar": "JOINT=FROM:TO", "action": "append", "default": []}),
         ("--samples", "number of postures for the errors (%(default)s)",
          {"type": typed_whole, "default": 300, "metavar": "COUNT"}),
         ("--measured", "a CSV file with a column for each joint and motor, rad or m: compare the "
          "model with these readings, and explain what differs",
          {"type": Path, "metavar": "FILE.csv"}),
         ("--c", "a folder, for the transmission of --joints as C99 that needs nothing but libm",
          {"type": folder, "metavar": "FOLDER"}),
         ("--ros2", "a folder, for a ROS 2 package of it; its name is that of the folder",
          {"type": folder, "metavar": "FOLDER"}),
         *out_files({
             ".json": "all numbers", ".csv": "a row for each posture, or each transmission",
             PICTURES: "workspace, effort polytopes and errors, for one or two joints",
         })], FORMATS,
    )  # fmt: skip


def _transmission(given: argparse.Namespace) -> int:
    from holoctl.app.transmission_plot import draw_transmission
    from holoctl.transmission.robot import transmissions
    from holoctl.transmission.transmission import Transmission

    mech, q, held = robot_of(given)
    start = assemble(mech, q, locked=held)[0]
    joints = names_of(given.joints, "--joints")
    drawn = [path for path in given.out if path.suffix.lower() in PICTURES.split()]
    if joints is None:
        found = transmissions(mech, start)
        options = {
            "out": drawn, "range": given.range, "measured": given.measured, "c": given.c,
            "ros2": given.ros2,
        }  # fmt: skip
        if option := next((name for name, value in options.items() if value), None):
            raise InputError(
                f"--{option}: name the joints of one transmission too, --joints; {_listed(found)}"
            )
        answer(given, found, _found_as_dict, _found_as_table, _print_found)
        return 0
    if drawn and len(joints) > MOST_DRAWN:
        raise InputError(
            f"--out {drawn[0]}: a picture has one or two joints; got {len(joints)}: "
            f"{listing(joints)}. Without it the report is printed"
        )
    tr = Transmission(mech, joints, start)
    if given.measured is not None:
        return _check(given, tr)
    report = tr.report(*_box(tr, given.range), samples=given.samples)
    columns = [tr.mech.coordinate_names.index(name) for name in joints]
    lengths = translational(tr.mech.model)[columns].tolist()

    def draw(report: TransmissionReport) -> Any:
        return draw_transmission(report, lengths)

    paths = _export(tr, given.c, given.ros2)
    answer(given, report, _report_as_dict, _report_as_table, print, draw)
    for path in () if given.json or given.csv else paths:
        print(f"written: {path}")
    return 0


def _check(given: argparse.Namespace, tr: Transmission) -> int:
    pictures = [path for path in given.out if path.suffix.lower() in PICTURES.split()]
    if given.range or given.c or given.ros2 or pictures:
        raise InputError(
            "--measured compares readings alone: leave out --range, --c, --ros2 and pictures"
        )
    names, file = [*tr.joints, *tr.motors], given.measured
    rows = columns_of(*table_of(file, "--measured"), names, f"--measured: {file}")
    found = tr.check(rows[:, : len(tr.joints)], rows[:, len(tr.joints) :])

    def as_dict(found: TransmissionCheck) -> dict[str, Any]:
        return {x: getattr(found, x) for x in ("joints", "motors", "misfit", "explanations")}

    answer(given, found, as_dict, lambda found: (list(found.motors), found.misfit.tolist()), print)
    return 0


def _export(tr: Transmission, of_c: Path | None, of_ros: Path | None) -> tuple[Path, ...]:
    paths: tuple[Path, ...] = ()
    if of_c is not None:
        from holoctl.codegen.exported.export import export_c  # needs CasADi

        paths += export_c(tr, of_c)
    if of_ros is not None:
        from holoctl.codegen.exported.ros2 import export_ros2  # needs CasADi

        paths += export_ros2(tr, of_ros, package=of_ros.absolute().name)
    return paths


def _box(tr: Transmission, texts: Sequence[str]) -> tuple[Vector | None, Vector | None]:
    """Lower and upper positions of the joints; None for their limits."""
    ranges = dict[str, tuple[float, float]]()
    for text in texts:
        name, _, numbers = text.partition("=")
        known_name(name, tr.joints, "joint", "--range")
        if name in ranges:
            raise InputError(f"--range: {name!r} is given twice")
        try:
            low, high = map(decimal, numbers.split(":"))
        except ValueError:
            raise InputError(f"--range takes JOINT=FROM:TO; got {text!r}") from None
        ranges[name] = low, high
    if not ranges:
        return None, None
    whole = all(name in ranges for name in tr.joints)
    limits = [] if whole else np.transpose(tr.domain()).tolist()
    rows = [ranges[n] if n in ranges else limits[i] for i, n in enumerate(tr.joints)]
    lower, upper = np.transpose(rows)
    return lower, upper


# ------------------------------------------------------------------------------ one transmission


def _report_as_dict(report: TransmissionReport) -> dict[str, Any]:
    given = {
        name: getattr(report, name)
        for name in ("joints", "motors", "lower", "upper", "samples", "reached")
    }
    errors = {n: {"median": m, "worst": w} for n, (m, w) in report.errors.items()}
    polytopes = [{"posture": y, "vertices": polytope.vertices} for y, polytope in report.polytopes]
    grid = {name: getattr(report, name) for name in ("status", "determinant", "noise_gain")}
    return given | {"errors": errors, "polytopes": polytopes} | grid


def _report_as_table(report: TransmissionReport) -> tuple[list[str], list[list[Any]]]:
    """A row for each posture of the grid."""
    shape = report.status.shape
    axes = [
        np.linspace(low, high, n)
        for low, high, n in zip(report.lower, report.upper, shape, strict=True)
    ]
    rows = [
        [*(axis[k] for axis, k in zip(axes, i, strict=True)), report.status[i],
         report.determinant[i], report.noise_gain[i]]
        for i in np.ndindex(shape)
    ]  # fmt: skip
    return [*report.joints, "status", "determinant", "noise gain"], rows


# -------------------------------------------------------------------------------- of a whole robot


def _found_as_dict(found: RobotTransmissions) -> dict[str, Any]:
    return {
        "transmissions": [
            {"joints": tr.joints, "motors": tr.motors, "base": tr.base, "start": tr.y_start}
            for tr in found
        ],
        "serial_joints": found.serial_joints,
        "unresolved": [
            {"coordinates": names, "reason": why} for names, why in found.unresolved.items()
        ],
    }


def _found_as_table(found: RobotTransmissions) -> tuple[list[str], list[list[Any]]]:
    rows: list[list[Any]] = [
        [" ".join(tr.joints), " ".join(tr.motors), tr.base, ""] for tr in found
    ]
    rows += [[" ".join(names), "", "", why] for names, why in found.unresolved.items()]
    return ["joints", "motors", "base", "unresolved"], rows


def _print_found(found: RobotTransmissions) -> None:
    for tr in found:
        print(f"{', '.join(tr.joints)}: driven by {', '.join(tr.motors)}, on {tr.base}")
    for names, why in found.unresolved.items():
        print(f"unresolved: {', '.join(names)}: {why}")
    print(f"serial joints: {', '.join(found.serial_joints) or 'none'}")
    if len(found):
        print(f"\nreport of one: --joints {','.join(found.found[0].joints)}")


def _listed(found: RobotTransmissions) -> str:
    return "found: " + ("; ".join(",".join(tr.joints) for tr in found) or "none")
