"""The command line: ``holoctl COMMAND``; each command has a file of its own, or is here.

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
from holoctl.app.exceeded_limits import exceeded_efforts
from holoctl.app.excite_command import add_excite
from holoctl.app.identify_command import add_identify
from holoctl.app.linearize_command import add_linearize
from holoctl.app.map_command import add_map
from holoctl.app.modes_command import add_modes
from holoctl.app.new_command import add_new
from holoctl.app.printing import answer, write_table
from holoctl.app.retime_command import add_retime
from holoctl.app.robot_arguments import (
    FLAG,
    FORMATS,
    GAINS,
    Option,
    add_options,
    folder,
    gains_of,
    names_of,
    out_files,
    positions,
    robot_command,
    robot_held,
    robot_of,
    typed_number,
    typed_whole,
)
from holoctl.app.simulate_command import add_simulate
from holoctl.app.transmission_command import add_transmission
from holoctl.app.units import motor_units, unbalanced_words
from holoctl.app.view_command import add_view
from holoctl.base.checks import Vector, listing, positive
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.tolerances import CLOSURE_LIMIT, HOLD_LIMIT, VELOCITY_LIMIT
from holoctl.closing.assembly import assemble
from holoctl.closing.rank import scaled_jacobian
from holoctl.closing.repaired_geometry import repaired_geometry
from holoctl.control.controller_limits import limits_law_of
from holoctl.doctor.mobility_analysis import mobility
from holoctl.dynamics.inverse import InverseDynamics, inverse_dynamics
from holoctl.io.repaired_yaml import repaired_yaml
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.limited_coordinates import beyond_limits
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["main"]

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code.

    0; 1 after a `HoloctlError`, for a mechanism that does not close, and for torques that are not
    certified. (2, by argparse, for a command line that cannot be parsed.)
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
    except BrokenPipeError:  # the reader, such as `head`, has ended
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

    robot_command(
        commands, "doctor", _doctor,
        "explain a mechanism: mobility, redundant rows, locked joints, motors, sensors, "
        "contradictions",
        "Examine a robot at the configuration next to its reference. The exit code is 1 if it "
        "does not close, or only with axes in opposite directions.",
        "holoctl doctor five_bar.urdf",
        [("--measured", "the sensors, joints separated by commas (default: the motors): are they "
          "sufficient, and which additional one would help most", {"metavar": "NAMES"}),
         ("--json", "print as JSON, for programs", FLAG),
         *out_files({
             ".json": "the report", ".yaml .yml": "in the place of the report: the YAML file, for "
             "--closures, that moves rounded axes and points until they are exact (an existing "
             "file is not overwritten)",
         }, "--snap")],
    )  # fmt: skip
    robot_command(
        commands, "assemble", _assemble,
        "find the closed configuration next to the reference",
        "Close all loops and print the positions of the joints. Joints named by --set keep them.",
        "holoctl assemble five_bar --set motor_left=2.0 --json", _TABLE, FORMATS,
    )  # fmt: skip
    robot_command(
        commands, "torque", _torque,
        "print the motor efforts that hold the robot at rest, with their certificate",
        "Close the robot and hold it at rest against gravity. The exit code is 1 if the efforts "
        "are not certified, for example if gravity acts on a motion without motor.",
        "holoctl torque robot.urdf --closures robot.yaml --set hip=0.3 --csv", _TABLE, FORMATS,
    )  # fmt: skip
    robot_command(
        commands, "export", _export,
        "write a controller as a C library that needs nothing but libm",
        "Write computed torque with these gains (without gains: the inverse dynamics alone) as "
        "C99, with a self-test. The library chooses its pivots around the configuration next to "
        "the reference; --set changes it. Files of another origin are not overwritten.",
        "holoctl export five_bar --out five_bar_c --kp 400 --kd 40", _EXPORT,
    )  # fmt: skip
    for add in (
        add_modes, add_simulate, add_linearize, add_retime, add_excite, add_identify, add_map,
        add_transmission, add_view, add_new,
    ):  # fmt: skip
        add(commands)
    demo = commands.add_parser(
        "demo",
        help="draw a figure with a closed-chain robot under torque control",
        description="Load a robot, close it, draw a figure with it under torque control at "
        "1 kHz for 4 s: with an exact plant, with one 10 % heavier, with its motor encoders alone, "
        "and with motors that are too weak for it; print a table and write a picture and the data.",
        epilog="example: holoctl demo delta --out results",
    )
    demo.set_defaults(run=_demo)
    add_options(demo, [
        ("robot", "five_bar (default), delta or stewart", {"nargs": "?", "default": "five_bar"}),
        ("--out", "folder to write to (out)", {"type": folder, "default": Path("out")}),
        ("--duration", "duration of the drawing, s (4)", {"type": typed_number, "default": 4.0}),
        ("--no-progress", "no progress bars", FLAG),
    ])  # fmt: skip
    return parser


_TABLE = out_files({".json": "all numbers", ".csv": "the table"})

_EXPORT: list[Option] = [
    ("--out", "folder to write to", {"type": folder, "required": True, "metavar": "FOLDER"}),
    *GAINS,
    ("--compensation", "of the whole dynamics (default), or of gravity alone: gains in N m/rad, "
     "N m s/rad", {"choices": ["full", "gravity"]}),
    ("--friction-at", "where friction of the robot's forces is compensated (default: reference)",
     {"choices": ["reference", "measured"]}),
    ("--no-limits", "leave out the limits of the file; default: the torque is kept within them",
     FLAG),
    ("--policy", "motion at a limit: the nearest one (default), or the same motion, slower",
     {"choices": ["nearest", "scale"]}),
    ("--dt", "the tick of the loop, over which limits of joints are kept (default: 0.001)",
     {"type": typed_number, "metavar": "SECONDS"}),
    ("--name", "name of the library (default: that of the robot)", {}),
    ("--closure-limit", "scaled closure error above which there is no torque (%(default)s)",
     {"type": typed_number, "default": CLOSURE_LIMIT, "metavar": "ERROR"}),
    ("--velocity-limit", "likewise for rates, as a share of the speed (%(default)s)",
     {"type": typed_number, "default": VELOCITY_LIMIT, "metavar": "ERROR"}),
    ("--in-trouble", "output if there is no torque: the last good one (default), or zero",
     {"choices": ["hold", "zero"], "default": "hold"}),
    ("--hold-limit", "number of consecutive ticks for which the last good one is held, followed by "
     "zero (%(default)s)", {"type": typed_whole, "default": HOLD_LIMIT, "metavar": "TICKS"}),
    ("--measured", "the measured joints: motors (default if there are other joints, and the motors "
     "determine them), all, or names of joints separated by commas; the C computes the others",
     {"metavar": "WHAT"}),
    ("--plant", "also export the plant, for simulation", FLAG),
    ("--functions", "parts of the model instead of a law, separated by commas: kinematics (of the "
     "frames of --frames), inertia, bias, constraints, forward_dynamics, linearize",
     {"metavar": "PARTS"}),
    ("--frames", "the frames of kinematics, separated by commas", {"metavar": "NAMES"}),
    ("--payload", "frame where a payload may be mounted, whose numbers may change in the C",
     {"metavar": "FRAME"}),
    ("--gravity", "gravity may change in the C, too", FLAG),
    ("--single", "numbers of single precision, for processors that compute in float", FLAG),
]  # fmt: skip


# ---------------------------------------------------------------------------------- commands


def _doctor(given: argparse.Namespace) -> int:
    mech, q = robot_held(given)
    measured = names_of(given.measured)
    repaired = [path for path in given.out if path.suffix.lower() in (".yaml", ".yml")]
    if repaired:
        if measured is not None or given.json or len(given.out) > 1:
            raise InputError(
                f"--out {repaired[0]} replaces the report, which --measured, --json and other "
                "files of --out are for: leave one out"
            )
        return _write_repaired(given, mech, q, repaired[0])
    large = sys.stderr.isatty() and mech.nv > _LARGE
    report = mobility(mech, q, progress=large, measured=measured)
    text = json.dumps(report.to_dict(), indent=2)
    for path in given.out:
        _write(path, f"{text}\n", "w")
    print(text if given.json else report)
    for path in () if given.json else given.out:
        print(f"\nwritten: {path}")
    return 0 if report.ok else 1


def _write(path: Path, text: str, mode: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"--out: {path} cannot be written: {error.strerror or error}") from None


_LARGE = 60
"""The examination of mechanisms with more coordinates shows a progress bar."""


def _write_repaired(given: argparse.Namespace, mech: Mechanism, q: Vector, path: Path) -> int:
    repaired_yaml(given.file, (), given.closures)  # refuses wrong files before the computation
    if path.exists():
        raise InputError(f"--out: {path} exists already; give the name of a new file")
    result = repaired_geometry(mech, q)
    _write(path, repaired_yaml(given.file, result.moves, given.closures), "x")
    print(f"{result}\n\nwritten: {path}")
    return 0


def _assemble(given: argparse.Namespace) -> int:
    mech, q, held = robot_of(given)
    q, _ = assemble(mech, q, locked=held)
    error = float(np.abs(scaled_jacobian(mech, q, 0.0)[1]).max(initial=0.0))
    joints = {name: np.atleast_1d(x).tolist() for name, x in positions(mech, q).items()}

    def show(q: Vector) -> None:
        print(f"{mech.name}: closed, largest error {error:.1e} (scaled)")
        write_table([(name, *x) for name, x in joints.items()])

    answer(
        given, q,
        lambda q: {"name": mech.name, "joints": positions(mech, q), "q": q, "error": error},
        lambda q: (["joint", "position"], [[name, *x] for name, x in joints.items()]), show,
    )  # fmt: skip
    return 0


def _torque(given: argparse.Namespace) -> int:
    mech, q, held = robot_of(given)
    q, _ = assemble(mech, q, locked=held)
    rest = np.zeros(mech.nv)
    result = inverse_dynamics(mech, q, rest, rest, coordinates="all")
    names, units, u = mech.actuator_names, motor_units(mech), result.u.tolist()
    outside, certificate = [str(one) for one in beyond_limits(mech, q)], result.certificate
    exceeded = exceeded_efforts(mech, result.u)

    def as_dict(result: InverseDynamics) -> dict[str, Any]:
        return {
            "name": mech.name,
            "efforts": dict(zip(names, u, strict=True)),
            "units": dict(zip(names, units, strict=True)),
            "unbalanced": float(np.abs(result.unbalanced).max(initial=0.0)),
            "joints": positions(mech, q),
            "beyond_limits": outside + exceeded,
            "certificate": vars(certificate) | {"ok": certificate.ok},
        }

    def as_table(result: InverseDynamics) -> tuple[list[str], list[list[Any]]]:
        rows = zip(names, u, units, [certificate.ok] * len(u), strict=True)
        return ["motor", "effort", "unit", "certified"], [list(row) for row in rows]

    def show(result: InverseDynamics) -> None:
        print(f"{mech.name}: efforts that hold it at rest")
        write_table(list(zip(names, u, strict=True)), units)
        if not certificate.ok and result.unbalanced.any():
            print(f"\n{unbalanced_words(result)}")
            if given.free_flyer:
                print(
                    "The root floats, and nothing holds it. Without --free-flyer it is fixed; in a "
                    "program, a Closure or a Contact puts a foot on the ground."
                )
        if exceeded:
            print(f"\nbeyond the limits of its motors: {'; '.join(exceeded)}")
        if outside:
            print(f"\noutside the limits of its joints: {'; '.join(outside)}")
        print(f"\n{certificate}")

    answer(given, result, as_dict, as_table, show)
    return 0 if certificate.ok else 1


def _export_functions(given: argparse.Namespace, mech: Mechanism) -> int:
    from holoctl.codegen.exported.export import export_c

    of_a_law = "kp", "kd", "compensation", "friction_at", "policy", "dt", "measured", "plant"
    if names := [f"--{x.replace('_', '-')}" for x in of_a_law if getattr(given, x)]:
        raise InputError(f"--functions writes no law, so {listing(names)} must be left out")
    paths = export_c(
        mech, given.out, name=given.name, precision="single" if given.single else "double",
        functions=names_of(given.functions), frames=names_of(given.frames) or (),
        payload=given.payload, gravity=given.gravity,
    )  # fmt: skip
    print(f"{mech.name}: {given.functions} as C functions, written:")
    for path in paths:
        print(f"  {path}")
    return 0


def _export(given: argparse.Namespace) -> int:
    from holoctl.codegen.exported.export import export_c
    from holoctl.control.computed_torque import ComputedTorque
    from holoctl.control.limited_inverse_dynamics import WithinLimits

    mech, q = robot_held(given)
    if given.set:
        mech = dataclasses.replace(mech, reference=q)
    if given.functions or given.frames:
        return _export_functions(given, mech)
    gains = gains_of(given)
    law = {
        name: x
        for name in ("compensation", "friction_at")
        if (x := getattr(given, name)) is not None
    }
    if law and not gains:
        option = min(law).replace("_", "-")
        raise InputError(f"--{option} needs a controller: give --kp and --kd too, or leave it out")
    what: Mechanism | ComputedTorque = mech
    kept = _exported_limits(mech, given)
    options: dict[str, Any] = {
        "closure_limit": given.closure_limit, "velocity_limit": given.velocity_limit,
    }  # fmt: skip
    if gains:
        what = ComputedTorque(mech, **gains, **law, **kept, **options)
        options = {}
    elif kept:
        options["limits"] = WithinLimits(**kept)
    paths = export_c(
        what, given.out, name=given.name, in_trouble=given.in_trouble, plant=given.plant,
        precision="single" if given.single else "double",
        payload=given.payload, gravity=given.gravity,
        hold_limit=given.hold_limit, **options, **_exported_sensors(mech, given.measured),
    )  # fmt: skip
    controlled = gains and mech.actuated and not mech.motors.missing
    print(f"{mech.name}: {'computed torque' if controlled else 'inverse dynamics'} as C, written:")
    for path in paths:
        print(f"  {path}")
    if kept:
        print(
            "torques are within the limits of the file, which the header lists, by the policy "
            f"{kept['policy']!r}, for ticks of {kept['dt']:g} s"
        )
    if given.friction_at and not any(force.friction for force in mech.bound_forces):
        log.warning("--friction-at: there is no friction; --losses takes that of the file")
    for text in given.set:
        log.warning(
            "--set %s: the exported C does not lock this joint; its value is used to choose "
            "pivots, and as the start of the state estimation", text,
        )  # fmt: skip
    return 0


def _exported_limits(mech: Mechanism, given: argparse.Namespace) -> dict[str, Any]:
    """The limits of the file and their options; empty without limits."""
    from holoctl.codegen.may_change import check_braking

    policy = "nearest" if given.policy is None else given.policy
    dt = positive("--dt", 1e-3 if given.dt is None else given.dt, "s")
    limits = Limits() if given.no_limits else limits_of(mech)
    try:
        law = limits_law_of(mech, limits, policy, dt)
        check_braking(law, given.payload is not None, given.gravity)
    except InputError as error:  # for example files with limits of positions, but not of efforts
        log.warning("%s; no limit of position is in the C", error)
        limits = dataclasses.replace(limits, position=None)
    if limits != Limits():
        return {"limits": limits, "policy": policy, "dt": dt}
    if given.policy is not None or given.dt is not None:
        why = "--no-limits leaves them out" if given.no_limits else "the file has none"
        raise InputError(f"--policy and --dt are options of limits, and {why}")
    return {}


def _exported_sensors(mech: Mechanism, text: str | None) -> dict[str, Any]:
    """The argument `measured` of `export_c`: by default the motors, or "all" without other
    joints."""
    if text is None:
        return {"measured": "all"} if set(mech.actuated) == set(mech.coordinate_names) else {}
    if text == "motors":
        if not mech.actuated:
            raise InputError(
                f"--measured motors: no joint of {mech.name} is a motor; name joints, or give all"
            )
        return {"measured": mech.actuated}
    return {"measured": text if text == "all" else names_of(text)}


def _demo(given: argparse.Namespace) -> int:
    from holoctl.app.demo import demo
    from holoctl.app.demo_files import make_folder, write

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
