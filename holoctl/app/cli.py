"""The command line: ``holoctl doctor``, ``assemble``, ``torque``, ``export``, ``demo``,
``--version``.

Every command prints what a call of the public face returns, and nothing else.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import holoctl
from holoctl.app.units import motor_units
from holoctl.base.checks import Vector, known_name, number
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.tolerances import CLOSURE_LIMIT, GEOMETRY_OF_FILES, TYPED_FARTHEST, VELOCITY_LIMIT
from holoctl.closing.assembly import assemble
from holoctl.closing.rank import scaled_jacobian
from holoctl.closing.snapped import snapped
from holoctl.doctor.examination import mobility
from holoctl.doctor.report import plain
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.io.limits import DECIMAL
from holoctl.io.load import load, robot_file, robot_names
from holoctl.io.moved_sheet import moved_sheet
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code.

    0; or 1 after an error of holoctl's own family, for a mechanism that does not close, and for
    torques that are not certified. (2, by argparse, for a command line that cannot be read.)
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return 0
    try:
        return int(given.run(given))
    except HoloctlError as error:
        print(f"holoctl: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has had enough
        sys.stderr.close()
        return 1


# ---------------------------------------------------------------------------------- parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holoctl",
        description="Inverse dynamics and torque control of robots with holonomic constraints.",
    )
    parser.add_argument("--version", action="version", version=f"holoctl {holoctl.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    doctor = _command(
        commands, "doctor", _doctor,
        "explain a mechanism: mobility, redundant rows, locked joints, motors, sensors, "
        "contradictions",
        "Examine a robot at the configuration next to its reference. The exit code is 1 if it "
        "does not close, or only with axes in opposite directions.",
        "holoctl doctor five_bar.urdf",
    )  # fmt: skip
    doctor.add_argument(
        "--measured", metavar="NAMES",
        help="the sensors, joints with commas between (default: the motors): are they enough, and "
        "which one more would help most",
    )  # fmt: skip
    answers = doctor.add_mutually_exclusive_group()
    answers.add_argument("--json", action="store_true", help="for programs")
    answers.add_argument(
        "--snap", metavar="YAML", type=Path,
        help="instead, move rounded axes and points until they are exact, and write the YAML file "
        "that does so, for --closures; a file that is there is not overwritten",
    )  # fmt: skip

    close = _command(
        commands, "assemble", _assemble,
        "find the closed configuration next to the reference",
        "Close all loops and print where the joints then are. Joints named by --set stay there.",
        "holoctl assemble five_bar --set motor_left=2.0 --json",
    )  # fmt: skip
    _formats(close)

    torque = _command(
        commands, "torque", _torque,
        "print the motor efforts that hold the robot at rest, with their certificate",
        "Close the robot and hold it at rest against gravity. The exit code is 1 if the efforts "
        "are not certified, such as where gravity works on a motion without motor.",
        "holoctl torque robot.urdf --closures robot.yaml --set hip=0.3 --csv",
    )  # fmt: skip
    _formats(torque)

    export = _command(
        commands, "export", _export,
        "write a controller as a C library that needs nothing but libm",
        "Write computed torque with these gains (without gains: the inverse dynamics alone) as "
        "C99, with a self-test. The library chooses its pivots around the configuration next to "
        "the reference; --set moves that. Files of another origin are not overwritten.",
        "holoctl export five_bar --out five_bar_c --kp 400 --kd 40",
    )  # fmt: skip
    export.add_argument("--out", type=_folder, required=True, metavar="FOLDER", help="to write to")
    export.add_argument("--kp", metavar="GAIN", help="1/s^2; commas between one for each motor")
    export.add_argument("--kd", metavar="GAIN", help="1/s; likewise")
    export.add_argument(
        "--compensation", choices=["full", "gravity"], default="full",
        help="of the whole dynamics (default), or of gravity alone: gains in N m/rad, N m s/rad",
    )  # fmt: skip
    export.add_argument(
        "--friction-at", choices=["reference", "measured"], default="reference",
        help="where friction of the robot's forces is compensated (default: %(default)s)",
    )  # fmt: skip
    export.add_argument("--name", help="of the library (default: that of the robot)")
    export.add_argument(
        "--closure-limit", type=_number, default=CLOSURE_LIMIT, metavar="ERROR",
        help="scaled closure error above which there is no torque (%(default)s)",
    )  # fmt: skip
    export.add_argument(
        "--velocity-limit", type=_number, default=VELOCITY_LIMIT, metavar="ERROR",
        help="likewise for rates, as a share of the speed (%(default)s)",
    )  # fmt: skip
    export.add_argument(
        "--in-trouble", choices=["hold", "zero"], default="hold",
        help="what to give where there is no torque: the last good one (default), or zero",
    )  # fmt: skip
    export.add_argument(
        "--measured", metavar="WHAT",
        help="what the robot measures: motors (default where it has other joints, and they tell "
        "where these are), all, or names of joints with commas between; C then finds the others",
    )  # fmt: skip
    export.add_argument("--plant", action="store_true", help="also the plant, for trials")

    demo = commands.add_parser(
        "demo",
        help="draw a figure with a closed-chain robot under torque control",
        description="Load a robot, close it, draw a figure with it under torque control at "
        "1 kHz for 4 s: against an exact plant, against one 10 % heavier, from its motor encoders "
        "alone, and with motors that are too weak for it; print a table and write a picture and "
        "the data.",
        epilog="example: holoctl demo delta --out results",
    )
    demo.set_defaults(run=_demo)
    demo.add_argument(
        "robot", nargs="?", default="five_bar", help="five_bar (default), delta or stewart"
    )
    demo.add_argument("--out", type=_folder, default=Path("out"), help="folder to write to (out)")
    demo.add_argument("--duration", type=_number, default=4.0, help="seconds to draw for (4)")
    demo.add_argument("--no-progress", action="store_true", help="no progress bars")
    return parser


def _command(
    commands: Any, name: str, run: Any, short: str, description: str, example: str
) -> argparse.ArgumentParser:
    """A command on a robot from a file."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=short, description=description, epilog=f"example: {example}"
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a robot description (.urdf, .xml or .mjcf, .sdf), or the name of a robot that is "
        f"shipped: {', '.join(robot_names())}",
    )
    parser.add_argument(
        "--closures", metavar="YAML", help="closures and motors (default: the file beside it)"
    )
    parser.add_argument(
        "--free-flyer", action="store_true", help="the root floats; default: it is fixed"
    )
    parser.add_argument(
        "--losses", action="store_true",
        help="friction and springs of the file act; default: they are left out",
    )  # fmt: skip
    parser.add_argument(
        "--tolerance", type=_number, metavar="SIZE",
        help="how exactly the geometry is meant, scaled; 0: exactly (default: as the YAML file "
        f"says, else {GEOMETRY_OF_FILES:g})",
    )  # fmt: skip
    parser.add_argument(
        "--set",
        metavar="JOINT=VALUE",
        action="append",
        default=[],
        help="hold a joint there, rad or m; commas between several numbers; may be repeated",
    )
    return parser


def _folder(text: str) -> Path:
    """A folder to write to: without a name it would be the one that the shell is in."""
    if not text.strip():
        raise argparse.ArgumentTypeError("a folder is needed, and its name is empty")
    return Path(text)


def _decimal(text: str) -> float:
    """A number as files have it, or one that is not finite; a `ValueError` for what Python takes
    besides: 1_0, digits of other scripts."""
    word = text.strip()
    if not DECIMAL.fullmatch(word) and word.lower().lstrip("+-") not in ("nan", "inf", "infinity"):
        raise ValueError(f"{text!r} is no number")
    return float(word)


def _number(text: str) -> float:
    try:
        return _decimal(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _formats(parser: argparse.ArgumentParser) -> None:
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--json", action="store_true", help="for programs")
    chosen.add_argument("--csv", action="store_true", help="for spreadsheets")


# ----------------------------------------------------------------------------- the robot


def _file(given: argparse.Namespace) -> Path:
    path = Path(given.file)
    if not path.exists() and given.file in robot_names():
        path = robot_file(given.file)
    return path


def _robot(given: argparse.Namespace) -> tuple[Mechanism, Vector, list[str]]:
    """The mechanism, the guess with the joints of ``--set`` in place, and those joints."""
    mech = load(
        _file(given), closures=given.closures, free_flyer=given.free_flyer,
        tolerance=given.tolerance, losses=given.losses,
    )  # fmt: skip
    q, held = mech.reference.copy(), list[str]()
    for text in given.set:
        name, equals, numbers = text.partition("=")
        if not equals:
            raise InputError(f"--set: expected JOINT=VALUE; got {text!r}")
        if name in mech.constraint_names and not mech.model.existJointName(name):
            raise InputError(f"--set: {name!r} is cut and has no coordinate; set another joint")
        known_name(name, list(mech.model.names)[1:], "joint", "--set")
        try:
            values = [number(f"--set: {name}", _decimal(n)) for n in numbers.split(",")]
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"--set: {name} takes numbers; got {numbers!r}") from None
        if max(map(abs, values)) > TYPED_FARTHEST:
            raise InputError(
                f"--set: {name} takes rad or m, {TYPED_FARTHEST:g} at most, so that digits are "
                f"left for closing; got {numbers!r}"
            )
        if name in held:
            raise InputError(f"--set: joint {name!r} is set twice")
        _put(mech.model, q, name, values)
        q = check_configuration(mech, q, f"--set {text}")
        held.append(name)
    return mech, q, held


def _put(model: pin.Model, q: Vector, name: str, values: list[float]) -> None:
    j = model.getJointId(name)
    continuous = (model.nqs[j], model.nvs[j]) == (2, 1)
    expected = 1 if continuous else model.nqs[j]
    if len(values) != expected:
        raise InputError(f"--set: joint {name!r} takes {expected} numbers; got {len(values)}")
    place = slice(model.idx_qs[j], model.idx_qs[j] + model.nqs[j])
    q[place] = [np.cos(values[0]), np.sin(values[0])] if continuous else values


def _positions(mech: Mechanism, q: Vector) -> dict[str, float | list[float]]:
    """Where each joint is: one number for a joint of one coordinate, an angle if it turns on."""
    found: dict[str, float | list[float]] = {}
    for j in range(1, mech.model.njoints):
        x = q[mech.model.idx_qs[j] : mech.model.idx_qs[j] + mech.model.nqs[j]]
        if mech.model.nvs[j] == 1:
            found[mech.model.names[j]] = float(x[0] if x.size == 1 else np.arctan2(x[1], x[0]))
        else:
            found[mech.model.names[j]] = x.tolist()
    return found


def _largest_error(mech: Mechanism, q: Vector) -> float:
    return float(np.abs(scaled_jacobian(mech, q, 0.0)[1]).max(initial=0.0))


# ---------------------------------------------------------------------------------- commands


def _doctor(given: argparse.Namespace) -> int:
    mech, q, held = _robot(given)
    if held:
        q, _ = assemble(mech, q, locked=held)
    measured = _names(given.measured)
    if given.snap is not None:
        if measured is not None:
            raise InputError("--measured is for the report, which --snap takes the place of")
        return _snap(given, mech, q)
    large = sys.stderr.isatty() and mech.nv > _LARGE
    report = mobility(mech, q, progress=large, measured=measured)
    print(json.dumps(report.to_dict(), indent=2) if given.json else report)
    return 0 if report.ok else 1


def _names(text: str | None) -> list[str] | None:
    """Names with commas between; None where nothing was given."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"--measured takes names of joints, commas between; got {text!r}")
    return names


_LARGE = 60
"""Mechanisms with more coordinates take a while to be examined."""


def _snap(given: argparse.Namespace, mech: Mechanism, q: Vector) -> int:
    moved_sheet(_file(given), (), given.closures)  # refused here, not after the work
    if given.snap.exists():
        raise InputError(f"--snap: {given.snap} is there already; give the name of a new file")
    result = snapped(mech, q)
    text = moved_sheet(_file(given), result.moves, given.closures)
    try:
        with given.snap.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InputError(
            f"--snap: {given.snap} cannot be written: {error.strerror or error}"
        ) from None
    print(f"{result}\n\nwritten: {given.snap}")
    return 0


def _assemble(given: argparse.Namespace) -> int:
    mech, q, held = _robot(given)
    q, _ = assemble(mech, q, locked=held)
    joints = _positions(mech, q)
    if given.json:
        found = {"name": mech.name, "joints": joints, "q": q.tolist()}
        print(json.dumps(found | {"error": _largest_error(mech, q)}, indent=2))
    elif given.csv:
        _write_csv(["joint", "position"], [[n, *np.atleast_1d(x)] for n, x in joints.items()])
    else:
        print(f"{mech.name}: closed, largest error {_largest_error(mech, q):.1e} (scaled)")
        _write_table([(n, *np.atleast_1d(x).tolist()) for n, x in joints.items()])
    return 0


def _torque(given: argparse.Namespace) -> int:
    mech, q, held = _robot(given)
    q, _ = assemble(mech, q, locked=held)
    rest = np.zeros(mech.nv)
    result = inverse_dynamics(mech, q, rest, rest, coordinates="all")
    units = motor_units(mech)
    efforts = dict(zip(mech.actuator_names, result.u.tolist(), strict=True))
    certificate = result.certificate
    if given.json:
        found = {
            "name": mech.name,
            "efforts": efforts,
            "units": dict(zip(efforts, units, strict=True)),
            "unbalanced": float(np.abs(result.unbalanced).max(initial=0.0)),
            "joints": _positions(mech, q),
            "certificate": vars(certificate) | {"ok": certificate.ok},
        }
        print(json.dumps(plain(found), indent=2))
    elif given.csv:
        rows = [
            [n, u, unit, certificate.ok]
            for (n, u), unit in zip(efforts.items(), units, strict=True)
        ]
        _write_csv(["motor", "effort", "unit", "certified"], rows)
    else:
        print(f"{mech.name}: efforts that hold it at rest")
        _write_table(list(efforts.items()), units)
        if not certificate.ok and result.unbalanced.any():
            left = np.abs(result.unbalanced).max()
            print(f"\nOn motions without motor {left:.2g} N m or N are left unbalanced.")
        print(f"\n{certificate}")
    return 0 if certificate.ok else 1


def _export(given: argparse.Namespace) -> int:
    from holoctl.codegen.exported.export import export_c
    from holoctl.control.computed_torque import ComputedTorque

    mech, q, held = _robot(given)
    if held:
        q, _ = assemble(mech, q, locked=held)
        mech = dataclasses.replace(mech, reference=q)
    if (given.kp is None) != (given.kd is None):
        raise InputError("--kp and --kd belong together: give both, or none")
    what: Mechanism | ComputedTorque = mech
    limits = {"closure_limit": given.closure_limit, "velocity_limit": given.velocity_limit}
    if given.kp is not None:
        kp, kd = _gain("--kp", given.kp), _gain("--kd", given.kd)
        what = ComputedTorque(
            mech, kp=kp, kd=kd, compensation=given.compensation, friction_at=given.friction_at,
            **limits,
        )  # fmt: skip
        limits = {}
    measured = _exported_sensors(mech, given.measured)
    paths = export_c(
        what, given.out, name=given.name, in_trouble=given.in_trouble, plant=given.plant,
        **limits, **measured,
    )  # fmt: skip
    print(f"{mech.name}: {'computed torque' if given.kp else 'inverse dynamics'} as C, written:")
    for path in paths:
        print(f"  {path}")
    return 0


def _exported_sensors(mech: Mechanism, text: str | None) -> dict[str, Any]:
    """What C is told of sensors; the motors by default, unless there are no other joints."""
    if text is None:
        return {"measured": "all"} if set(mech.actuated) == set(mech.coordinate_names) else {}
    if text == "motors":
        if not mech.actuated:
            raise InputError(
                f"--measured motors: no joint of {mech.name} is a motor; name joints, or give all"
            )
        return {"measured": mech.actuated}
    return {"measured": text if text == "all" else _names(text)}


def _gain(name: str, text: str) -> float | list[float]:
    try:
        found = [_decimal(x) for x in text.split(",")]
    except ValueError:
        raise InputError(f"{name} takes a number, or one for each motor; got {text!r}") from None
    return found[0] if len(found) == 1 else found


def _write_csv(header: list[str], rows: list[list[Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def _write_table(rows: Sequence[tuple[Any, ...]], units: Sequence[str] = ()) -> None:
    width = max((len(row[0]) for row in rows), default=0)
    for i, (name, *numbers) in enumerate(rows):
        unit = f" {units[i]}" if units else ""
        print(f"  {name:<{width}}" + "".join(f"  {x + 0.0:12.6g}" for x in numbers) + unit)


def _demo(given: argparse.Namespace) -> int:
    from holoctl.app.demo import demo, make_folder, write

    start = time.perf_counter()
    make_folder(given.out)
    progress = not given.no_progress and sys.stderr.isatty()
    result = demo(given.robot, duration=given.duration, progress=progress)
    paths = write(result, given.out)
    print(f"{result.mech}\n")
    print(result.table())
    print(f"\nwritten in {time.perf_counter() - start:.0f} s:")
    for path in paths:
        print(f"  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
