"""Arguments that commands on a robot share: its file, positions of held joints, numbers."""

from __future__ import annotations

import argparse
import csv
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, known_name, listing, number
from holoctl.base.errors import InputError
from holoctl.base.tolerances import GEOMETRY_OF_FILES
from holoctl.closing.assembly import assemble
from holoctl.io.load import load, main_file, robot_file, robot_names
from holoctl.io.reader_limits import DECIMAL
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import has_joint

__all__ = [
    "FLAG",
    "FORMATS",
    "GAINS",
    "PICTURES",
    "Option",
    "add_options",
    "columns_of",
    "decimal",
    "folder",
    "former_option",
    "gains_of",
    "names_of",
    "numbers_of",
    "out_files",
    "positions",
    "robot_command",
    "robot_held",
    "robot_of",
    "table_of",
    "typed_number",
    "typed_whole",
]

TYPED_FARTHEST = 1e6  # rad, m
"""Positions of joints beyond this, rad or m, are refused as typing errors."""


log = logging.getLogger(__name__)


# ------------------------------------------------------------------------------ the parser


Option = tuple[str, str, dict[str, Any]]
"""An option of a command: its name, its help text, and its arguments for argparse."""

FLAG = {"action": "store_true"}

FORMATS: tuple[Option, ...] = (
    ("--json", "print as JSON, for programs", FLAG),
    ("--csv", "print as CSV, for spreadsheets", FLAG),
)

PICTURES = ".png .pdf .svg .jpg"
"""Endings of pictures, as a key of `out_files`."""


GAINS: tuple[Option, ...] = (
    ("--kp", "1/s^2; one number, or one for each motor, separated by commas", {"metavar": "GAIN"}),
    ("--kd", "1/s; likewise", {"metavar": "GAIN"}),
)


def robot_command(
    commands: Any, name: str, run: Any, short: str, description: str, example: str,
    options: Iterable[Option] = (), instead: Iterable[Option] = (), before: Iterable[Option] = (),
) -> None:  # fmt: skip
    """A command on a robot from a file, with options; of those in `instead` one at a time, and
    those in `before` in front of the file."""
    parser = commands.add_parser(
        name, help=short, description=description, epilog=f"example: {example}"
    )
    parser.set_defaults(run=run)
    add_options(parser, [
        *before,
        ("file", "a robot description (.urdf, .xml or .mjcf, .sdf), or the name of a shipped "
         f"robot: {', '.join(robot_names())}", {"type": _robot_path, "metavar": "FILE"}),
        ("--closures", "closures and motors (default: the YAML file next to it)",
         {"metavar": "YAML"}),
        ("--free-flyer", "the root floats; default: it is fixed", FLAG),
        ("--losses", "friction and springs of the file act; default: they are left out", FLAG),
        ("--tolerance", "tolerance of the geometry, scaled; 0: exact (default: that of the YAML "
         f"file, else {GEOMETRY_OF_FILES:g})", {"type": typed_number, "metavar": "SIZE"}),
        ("--set", "hold a joint at a position, rad or m; several numbers separated by commas; may "
         "be repeated", {"metavar": "JOINT=VALUE", "action": "append", "default": []}),
        *options,
    ])  # fmt: skip
    if instead:
        add_options(parser.add_mutually_exclusive_group(), instead)


def add_options(parser: Any, options: Iterable[Option]) -> None:
    for name, text, arguments in options:
        parser.add_argument(name, help=text, **arguments)


def out_files(endings: Mapping[str, str], *former: str) -> list[Option]:
    """The option ``--out`` of a command that writes files: endings, and what a file has that ends
    so; and its former names."""
    said = "; ".join(f"{ending}: {what}" for ending, what in endings.items())
    valid = tuple(ending for key in endings for ending in key.split())
    arguments = {"dest": "out", "action": "append", "default": []}
    shown = f"write a file, whose ending says what. {said}. May be repeated"
    return [
        ("--out", shown, {**arguments, "type": _out_file(valid), "metavar": "FILE"}),
        *(former_option(name, "--out", _out_file(valid), **arguments) for name in former),
    ]


def former_option(name: str, now: str, kind: Callable[[str], Any], **arguments: Any) -> Option:
    """An option that is not shown, and works for one version with a warning."""

    def typed(text: str) -> Any:
        log.warning("%s is called %s now, and this name goes with the next version", name, now)
        return kind(text)

    return name, argparse.SUPPRESS, {**arguments, "type": typed}


def _out_file(valid: tuple[str, ...]) -> Callable[[str], Path]:
    """The type of ``--out``: a path with a valid ending."""

    def checked(text: str) -> Path:
        path = Path(text)
        if not path.suffix and ".npz" in valid and path.name:
            log.warning("--out %s: the ending is missing; %s.npz is written", text, text)
            path = path.with_name(f"{path.name}.npz")
        if path.suffix.lower() not in valid:
            raise argparse.ArgumentTypeError(
                f"the ending of a file must be one of {', '.join(valid)}; got {text!r}"
            )
        return path

    return checked


def folder(text: str) -> Path:
    """An output folder; an empty name, which would be the working directory, is refused."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name of the folder is empty")
    return Path(text)


def decimal(text: str) -> float:
    """A number in the syntax of files, also nan and inf; a `ValueError` for other syntax that
    Python accepts: 1_0, digits of other scripts."""
    word = text.strip()
    if not DECIMAL.fullmatch(word) and word.lower().lstrip("+-") not in ("nan", "inf", "infinity"):
        raise ValueError(f"{text!r} is not a number")
    return float(word)


def typed_number(text: str) -> float:
    try:
        return decimal(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def typed_whole(text: str) -> int:
    x = typed_number(text)
    if not x.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(x)


# ------------------------------------------------------------------------------- the robot


def _robot_path(text: str) -> Path:
    """The path of a robot. If the name is that of a shipped robot, a local file or folder of this
    name is taken only if it is a description, or contains one; a warning says which is read."""
    if text not in robot_names():
        return Path(text)
    own, shipped = main_file(text), robot_file(text)
    if os.path.isfile(own):
        log.warning("%s: %s is read, and not the shipped robot, %s", text, own, shipped)
        return own
    if os.path.lexists(text):
        log.warning("%s: the shipped robot is read; the local folder has no %s", text, own)
    return shipped


def robot_of(given: argparse.Namespace) -> tuple[Mechanism, Vector, list[str]]:
    """The mechanism, the guess with the joints of ``--set`` at their positions, and these
    joints."""
    mech = load(
        given.file, closures=given.closures, free_flyer=given.free_flyer,
        tolerance=given.tolerance, losses=given.losses,
    )  # fmt: skip
    q, held = mech.reference.copy(), list[str]()
    for text in given.set:
        name, equals, numbers = text.partition("=")
        if not equals:
            raise InputError(f"--set: expected JOINT=VALUE; got {text!r}")
        if name in mech.constraint_names and not has_joint(mech.model, name):
            raise InputError(f"--set: {name!r} is cut and has no coordinate; set another joint")
        known_name(name, list(mech.model.names)[1:], "joint", "--set")
        try:
            values = [number(f"--set: {name}", decimal(n)) for n in numbers.split(",")]
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"--set: {name} takes numbers; got {numbers!r}") from None
        if max(map(abs, values)) > TYPED_FARTHEST:
            raise InputError(
                f"--set: {name} takes at most {TYPED_FARTHEST:g} rad or m, as larger numbers lose "
                f"the digits needed for closing; got {numbers!r}"
            )
        if name in held:
            raise InputError(f"--set: joint {name!r} is set twice")
        _put(mech.model, q, name, values)
        q = check_configuration(mech, q, f"--set {text}")
        held.append(name)
    return mech, q, held


def robot_held(given: argparse.Namespace) -> tuple[Mechanism, Vector]:
    """The mechanism and the guess; if joints are set, the closed configuration with these joints at
    their positions."""
    mech, q, held = robot_of(given)
    return mech, assemble(mech, q, locked=held)[0] if held else q


def _put(model: pin.Model, q: Vector, name: str, values: list[float]) -> None:
    j = model.getJointId(name)
    continuous = (model.nqs[j], model.nvs[j]) == (2, 1)
    expected = 1 if continuous else model.nqs[j]
    if len(values) != expected:
        raise InputError(f"--set: joint {name!r} takes {expected} numbers; got {len(values)}")
    place = slice(model.idx_qs[j], model.idx_qs[j] + model.nqs[j])
    q[place] = [np.cos(values[0]), np.sin(values[0])] if continuous else values


def positions(mech: Mechanism, q: Vector) -> dict[str, Any]:
    """The position of each joint: one number for a joint of one coordinate (the angle of a
    continuous one)."""
    found: dict[str, float | list[float]] = {}
    for j in range(1, mech.model.njoints):
        x = q[mech.model.idx_qs[j] : mech.model.idx_qs[j] + mech.model.nqs[j]]
        if mech.model.nvs[j] == 1:
            found[mech.model.names[j]] = float(x[0] if x.size == 1 else np.arctan2(x[1], x[0]))
        else:
            found[mech.model.names[j]] = x.tolist()
    return found


def names_of(text: str | None, option: str = "--measured") -> list[str] | None:
    """Names separated by commas; None for None."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"{option} takes names of joints separated by commas; got {text!r}")
    return names


def numbers_of(text: str, option: str, what: str = "numbers separated by commas") -> list[float]:
    try:
        return [decimal(x) for x in text.split(",")]
    except ValueError:
        raise InputError(f"{option} takes {what}; got {text!r}") from None


def table_of(file: Path, option: str) -> tuple[list[str], Array]:
    """Names of the columns of a CSV file, and their numbers."""
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            header, *rows = [row for row in csv.reader(lines) if any(x.strip() for x in row)]
    except OSError as error:
        raise InputError(f"{option}: {file} cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise InputError(f"{option}: {file} is empty, or not a text file") from None
    header = [name.strip() for name in header]
    try:
        found = np.array([[decimal(x) for x in row] for row in rows])
    except ValueError as error:
        raise InputError(
            f"{option}: {file}: all rows after the names of the columns must be numbers: {error}"
        ) from None
    if found.ndim != 2 or found.shape[1] != len(header):
        raise InputError(f"{option}: {file} must have {len(header)} numbers in each row")
    return header, found


def columns_of(
    header: list[str], rows: Array, expected: Iterable[str], owner: str, hint: str = ""
) -> Array:
    """The columns of a table in the expected order, of which it must have all and no other."""
    names = list(expected)
    if sorted(header) != sorted(names):
        raise InputError(
            f"{owner} must have a column for each of {listing(names)}{hint}; got {listing(header)}"
        )
    return rows[:, [header.index(name) for name in names]]


def gains_of(given: argparse.Namespace) -> dict[str, Any]:
    """kp and kd of `GAINS` by name; empty if there are none."""
    if (given.kp is None) != (given.kd is None):
        raise InputError("--kp and --kd belong together: give both, or none")
    if given.kp is None:
        return {}
    gains = {
        name: numbers_of(getattr(given, name), f"--{name}", "a number, or one for each motor")
        for name in ("kp", "kd")
    }
    return {name: found[0] if len(found) == 1 else found for name, found in gains.items()}
