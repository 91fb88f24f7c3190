"""``holoctl new``: the files of a new robot, from the names of its joints, loops and motors."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from holoctl.app.robot_arguments import add_options, folder, names_of
from holoctl.app.robot_template import Chain, RobotTemplate, chain_of, loop_of
from holoctl.base.errors import InputError
from holoctl.doctor.mobility_analysis import mobility
from holoctl.io.load import load

__all__ = ["add_new"]


def add_new(commands: Any) -> None:
    """Add it to the subcommands of a parser."""
    parser = commands.add_parser(
        "new",
        help="write the URDF and the YAML file of a new robot, to be filled in",
        description="Write NAME.urdf and NAME.yaml, with comments, from the names of joints, loops "
        "and motors. The files load, and every loop closes; lengths and masses are placeholders. "
        "Without --chain it asks.",
        epilog='example: holoctl new my_robot --chain "motor_left elbow_left" '
        '--chain "motor_right elbow_right" --loop "elbow_left elbow_right"',
    )
    parser.set_defaults(run=_new)
    add_options(parser, [
        ("name", "of the robot", {}),
        ("--chain", "joints from the base to the tip: 'hip knee'; 'slide=prismatic' (revolute, "
         "continuous, prismatic, ball, universal); 'yaw=revolute:z' turns about z and not y; "
         "'knee: crank rod' for a chain on the bar of the "
         "joint knee; may be repeated",
         {"action": "append", "default": [], "metavar": "JOINTS"}),
        ("--loop", "two joints whose bars meet at their ends: 'rod knee', 'rod knee=ball' "
         "(revolute, ball, universal, weld); may be repeated",
         {"action": "append", "default": [], "metavar": "JOINTS"}),
        ("--motors", "joints with a motor, commas between (default: the first of each chain on the "
         "base)", {"metavar": "NAMES"}),
        ("--out", "folder to write to (default: NAME)", {"type": folder, "metavar": "FOLDER"}),
    ])  # fmt: skip


def _new(given: argparse.Namespace) -> int:
    chains = [chain_of(text) for text in given.chain]
    loops, motors = [loop_of(text) for text in given.loop], names_of(given.motors)
    if not chains:
        if not sys.stdin.isatty():
            raise InputError("--chain is needed: the joints from the base to the tip")
        chains, loops, motors = _asked()
    template = RobotTemplate(given.name, chains, loops, motors)
    out: Path = given.out or Path(template.name)
    urdf, sheet = (out / f"{template.name}{suffix}" for suffix in (".urdf", ".yaml"))
    for path in (urdf, sheet):
        if path.exists():
            raise InputError(f"{path} exists already; give another name or --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        urdf.write_text(template.urdf(), encoding="utf-8")
        sheet.write_text(template.yaml(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror or error}") from None
    print(f"written: {urdf}\nwritten: {sheet}\n")
    print(mobility(load(urdf)))
    print(
        f"\nnext: put lengths, masses and inertias into {urdf}, then\n"
        f"  holoctl doctor {urdf}\n  holoctl view {urdf}\n  holoctl torque {urdf}\n"
        f"  holoctl export {urdf} --out {template.name}_c --kp 400 --kd 40"
    )
    return 0


def _asked() -> tuple[list[Chain], list[tuple[str, str, str]], list[str] | None]:
    """What the options say, from questions at the terminal."""
    print("Chains of joints, from the base to the tip, one in a line; an empty line ends them.")
    print("  such as: motor_left elbow_left      or on the bar of a joint: knee: crank rod")
    chains = [chain_of(text) for text in _lines("chain")]
    print("Loops: two joints whose bars meet at their ends; an empty line ends them.")
    loops = [loop_of(text) for text in _lines("loop")]
    motors = input("Joints with a motor, commas between (empty: the first of each chain): ")
    return chains, loops, names_of(motors.strip() or None)


def _lines(what: str) -> list[str]:
    found: list[str] = []
    while text := input(f"{what} {len(found) + 1}: ").strip():
        found.append(text)
    return found
