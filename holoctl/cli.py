"""The command line: ``holoctl demo``, ``holoctl --version``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import holoctl
from holoctl.errors import HoloctlError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0, or 1 after an error of holoctl's own family."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return 0
    try:
        return _demo(given)
    except HoloctlError as error:
        print(f"holoctl: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holoctl",
        description="Inverse dynamics and torque control of robots with holonomic constraints.",
    )
    parser.add_argument("--version", action="version", version=f"holoctl {holoctl.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="draw a figure with a closed-chain robot under torque control",
        description="Load a robot, close it, draw a figure with it under torque control at "
        "1 kHz for 4 s, against an exact plant and one 10 %% heavier; print a table and write "
        "a picture and the data.",
        epilog="example: holoctl demo delta --out results",
    )
    demo.add_argument(
        "robot", nargs="?", default="five_bar", help="five_bar (default), delta or stewart"
    )
    demo.add_argument("--out", type=Path, default=Path("out"), help="folder to write to (out)")
    demo.add_argument("--duration", type=float, default=4.0, help="seconds to draw for (4)")
    demo.add_argument("--no-progress", action="store_true", help="no progress bars")
    return parser


def _demo(given: argparse.Namespace) -> int:
    from holoctl.demo import demo, write

    start = time.perf_counter()
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
