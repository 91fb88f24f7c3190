"""The command line: ``holoctl doctor``, ``assemble``, ``torque``, ``export``, ``linearize``,
``retime``, ``map``, ``view``, ``demo``, ``--version``.

Every command prints what a call of the public face returns, and nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import holoctl
from holoctl.app.linearize_command import add_linearize
from holoctl.app.map_command import add_map
from holoctl.app.printing import write_csv, write_table
from holoctl.app.retime_command import add_retime
from holoctl.app.robot_arguments import (
    decimal,
    folder,
    formats,
    names_of,
    positions,
    robot_command,
    robot_held,
    robot_of,
    typed_number,
    typed_whole,
)
from holoctl.app.units import motor_units, unbalanced_words
from holoctl.app.view_command import add_view
from holoctl.base.checks import Vector, positive
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.tolerances import CLOSURE_LIMIT, HOLD_LIMIT, VELOCITY_LIMIT
from holoctl.closing.assembly import assemble
from holoctl.closing.rank import scaled_jacobian
from holoctl.closing.snapped import snapped
from holoctl.control.controller_limits import limits_law_of
from holoctl.doctor.examination import mobility
from holoctl.doctor.report import plain
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.io.moved_sheet import moved_sheet
from holoctl.mechanism.limited_coordinates import beyond_limits
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.limits_of import limits_of
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["main"]

log = logging.getLogger(__name__)


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

    doctor = robot_command(
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

    close = robot_command(
        commands, "assemble", _assemble,
        "find the closed configuration next to the reference",
        "Close all loops and print where the joints then are. Joints named by --set stay there.",
        "holoctl assemble five_bar --set motor_left=2.0 --json",
    )  # fmt: skip
    formats(close)

    torque = robot_command(
        commands, "torque", _torque,
        "print the motor efforts that hold the robot at rest, with their certificate",
        "Close the robot and hold it at rest against gravity. The exit code is 1 if the efforts "
        "are not certified, such as where gravity works on a motion without motor.",
        "holoctl torque robot.urdf --closures robot.yaml --set hip=0.3 --csv",
    )  # fmt: skip
    formats(torque)

    export = robot_command(
        commands, "export", _export,
        "write a controller as a C library that needs nothing but libm",
        "Write computed torque with these gains (without gains: the inverse dynamics alone) as "
        "C99, with a self-test. The library chooses its pivots around the configuration next to "
        "the reference; --set moves that. Files of another origin are not overwritten.",
        "holoctl export five_bar --out five_bar_c --kp 400 --kd 40",
    )  # fmt: skip
    export.add_argument("--out", type=folder, required=True, metavar="FOLDER", help="to write to")
    export.add_argument("--kp", metavar="GAIN", help="1/s^2; commas between one for each motor")
    export.add_argument("--kd", metavar="GAIN", help="1/s; likewise")
    export.add_argument(
        "--compensation", choices=["full", "gravity"],
        help="of the whole dynamics (default), or of gravity alone: gains in N m/rad, N m s/rad",
    )  # fmt: skip
    export.add_argument(
        "--friction-at", choices=["reference", "measured"],
        help="where friction of the robot's forces is compensated (default: reference)",
    )  # fmt: skip
    export.add_argument(
        "--no-limits", action="store_true",
        help="leave out the limits of the file; default: the torque is kept within them",
    )  # fmt: skip
    export.add_argument(
        "--policy", choices=["nearest", "scale"],
        help="what to do past a limit: the nearest motion (default), or the same motion, slower",
    )  # fmt: skip
    export.add_argument(
        "--dt", type=typed_number, metavar="SECONDS",
        help="the tick of the loop, over which limits of joints are kept (default: 0.001)",
    )  # fmt: skip
    export.add_argument("--name", help="of the library (default: that of the robot)")
    export.add_argument(
        "--closure-limit", type=typed_number, default=CLOSURE_LIMIT, metavar="ERROR",
        help="scaled closure error above which there is no torque (%(default)s)",
    )  # fmt: skip
    export.add_argument(
        "--velocity-limit", type=typed_number, default=VELOCITY_LIMIT, metavar="ERROR",
        help="likewise for rates, as a share of the speed (%(default)s)",
    )  # fmt: skip
    export.add_argument(
        "--in-trouble", choices=["hold", "zero"], default="hold",
        help="what to give where there is no torque: the last good one (default), or zero",
    )  # fmt: skip
    export.add_argument(
        "--hold-limit", type=typed_whole, default=HOLD_LIMIT, metavar="TICKS",
        help="for how many ticks in a row the last good one is held; zero behind (%(default)s)",
    )  # fmt: skip
    export.add_argument(
        "--measured", metavar="WHAT",
        help="what the robot measures: motors (default where it has other joints, and they tell "
        "where these are), all, or names of joints with commas between; C then finds the others",
    )  # fmt: skip
    export.add_argument("--plant", action="store_true", help="also the plant, for trials")

    for add in (add_linearize, add_retime, add_map, add_view):
        add(commands)

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
    demo.add_argument("--out", type=folder, default=Path("out"), help="folder to write to (out)")
    demo.add_argument("--duration", type=typed_number, default=4.0, help="seconds to draw for (4)")
    demo.add_argument("--no-progress", action="store_true", help="no progress bars")
    return parser


def _largest_error(mech: Mechanism, q: Vector) -> float:
    return float(np.abs(scaled_jacobian(mech, q, 0.0)[1]).max(initial=0.0))


# ---------------------------------------------------------------------------------- commands


def _doctor(given: argparse.Namespace) -> int:
    mech, q = robot_held(given)
    measured = names_of(given.measured)
    if given.snap is not None:
        if measured is not None:
            raise InputError("--measured is for the report, which --snap takes the place of")
        return _snap(given, mech, q)
    large = sys.stderr.isatty() and mech.nv > _LARGE
    report = mobility(mech, q, progress=large, measured=measured)
    print(json.dumps(report.to_dict(), indent=2) if given.json else report)
    return 0 if report.ok else 1


_LARGE = 60
"""Mechanisms with more coordinates take a while to be examined."""


def _snap(given: argparse.Namespace, mech: Mechanism, q: Vector) -> int:
    moved_sheet(given.file, (), given.closures)  # refused here, not after the work
    if given.snap.exists():
        raise InputError(f"--snap: {given.snap} is there already; give the name of a new file")
    result = snapped(mech, q)
    text = moved_sheet(given.file, result.moves, given.closures)
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
    mech, q, held = robot_of(given)
    q, _ = assemble(mech, q, locked=held)
    joints = positions(mech, q)
    if given.json:
        found = {"name": mech.name, "joints": joints, "q": q.tolist()}
        print(json.dumps(found | {"error": _largest_error(mech, q)}, indent=2))
    elif given.csv:
        write_csv(["joint", "position"], [[n, *np.atleast_1d(x)] for n, x in joints.items()])
    else:
        print(f"{mech.name}: closed, largest error {_largest_error(mech, q):.1e} (scaled)")
        write_table([(n, *np.atleast_1d(x).tolist()) for n, x in joints.items()])
    return 0


def _torque(given: argparse.Namespace) -> int:
    mech, q, held = robot_of(given)
    q, _ = assemble(mech, q, locked=held)
    rest = np.zeros(mech.nv)
    result = inverse_dynamics(mech, q, rest, rest, coordinates="all")
    units = motor_units(mech)
    outside = [str(one) for one in beyond_limits(mech, q)]
    efforts = dict(zip(mech.actuator_names, result.u.tolist(), strict=True))
    certificate = result.certificate
    if given.json:
        found = {
            "name": mech.name,
            "efforts": efforts,
            "units": dict(zip(efforts, units, strict=True)),
            "unbalanced": float(np.abs(result.unbalanced).max(initial=0.0)),
            "joints": positions(mech, q),
            "beyond_limits": outside,
            "certificate": vars(certificate) | {"ok": certificate.ok},
        }
        print(json.dumps(plain(found), indent=2))
    elif given.csv:
        rows = [
            [n, u, unit, certificate.ok]
            for (n, u), unit in zip(efforts.items(), units, strict=True)
        ]
        write_csv(["motor", "effort", "unit", "certified"], rows)
    else:
        print(f"{mech.name}: efforts that hold it at rest")
        write_table(list(efforts.items()), units)
        if not certificate.ok and result.unbalanced.any():
            print(f"\n{unbalanced_words(result)}")
        if outside:
            print(f"\noutside the limits of its joints: {'; '.join(outside)}")
        print(f"\n{certificate}")
    return 0 if certificate.ok else 1


def _export(given: argparse.Namespace) -> int:
    from holoctl.codegen.exported.export import export_c
    from holoctl.control.computed_torque import ComputedTorque

    mech, q = robot_held(given)
    if given.set:
        mech = dataclasses.replace(mech, reference=q)
    if (given.kp is None) != (given.kd is None):
        raise InputError("--kp and --kd belong together: give both, or none")
    law = {
        name: x
        for name in ("compensation", "friction_at")
        if (x := getattr(given, name)) is not None
    }
    if given.kp is None and law:
        option = min(law).replace("_", "-")
        raise InputError(f"--{option} is of a controller: give --kp and --kd too, or leave it out")
    what: Mechanism | ComputedTorque = mech
    kept = _exported_limits(mech, given)
    options: dict[str, Any] = kept | {
        "closure_limit": given.closure_limit, "velocity_limit": given.velocity_limit,
    }  # fmt: skip
    if given.kp is not None:
        kp, kd = _gain("--kp", given.kp), _gain("--kd", given.kd)
        what = ComputedTorque(mech, kp=kp, kd=kd, **law, **options)
        options = {}
    paths = export_c(
        what, given.out, name=given.name, in_trouble=given.in_trouble, plant=given.plant,
        hold_limit=given.hold_limit, **options, **_exported_sensors(mech, given.measured),
    )  # fmt: skip
    controlled = given.kp is not None and mech.actuated and not mech.motors.missing
    print(f"{mech.name}: {'computed torque' if controlled else 'inverse dynamics'} as C, written:")
    for path in paths:
        print(f"  {path}")
    if kept:
        print(
            f"within the limits of the file, which the header lists, by the policy "
            f"{kept['policy']!r}, for ticks of {kept['dt']:g} s"
        )
    if given.friction_at and not any(force.friction for force in mech.bound_forces):
        log.warning("--friction-at: no friction acts; that of the file does with --losses")
    for text in given.set:
        log.warning(
            "--set %s: in the C this joint is as free as others; pivots are chosen around there, "
            "and the state is followed from there", text,
        )  # fmt: skip
    return 0


def _exported_limits(mech: Mechanism, given: argparse.Namespace) -> dict[str, Any]:
    """The limits of the file with the options that belong to them; empty without."""
    policy = "nearest" if given.policy is None else given.policy
    dt = positive("--dt", 1e-3 if given.dt is None else given.dt, "s")
    limits = Limits() if given.no_limits else limits_of(mech)
    try:
        limits_law_of(mech, limits, policy, dt)
    except InputError as error:  # such as files that tell positions, and no efforts
        log.warning("%s; no limit of position is in the C", error)
        limits = dataclasses.replace(limits, position=None)
    if limits != Limits():
        return {"limits": limits, "policy": policy, "dt": dt}
    if given.policy is not None or given.dt is not None:
        why = "--no-limits leaves them out" if given.no_limits else "there are none"
        raise InputError(f"--policy and --dt are of limits, and {why}")
    return {}


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
    return {"measured": text if text == "all" else names_of(text)}


def _gain(name: str, text: str) -> float | list[float]:
    try:
        found = [decimal(x) for x in text.split(",")]
    except ValueError:
        raise InputError(f"{name} takes a number, or one for each motor; got {text!r}") from None
    return found[0] if len(found) == 1 else found


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
