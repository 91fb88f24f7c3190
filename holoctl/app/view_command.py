"""``holoctl view``: a robot in the browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from holoctl.app.robot_arguments import FLAG, out_files, robot_command, robot_held

__all__ = ["add_view"]


def add_view(commands: Any) -> None:
    """Add it to the subcommands of a parser."""
    robot_command(
        commands, "view", _view,
        "show a robot in the browser, and move it along its closed motions",
        "Serve a page with the robot: a slider for each motor, the efforts that hold it, the "
        "doctor's report, its motions; or a run with a time bar. Ends with Ctrl-C. By default only "
        "this computer can reach it; from another one: ssh -L 8080:localhost:8080. "
        "Needs holoctl[view].",
        "holoctl view stewart",
        [("--run", "a saved run (Run.save), which can be played",
          {"dest": "recording", "metavar": "NPZ", "type": Path}),
         *out_files({".html .htm": "a standalone page, in the place of a server: the run, or each "
                     "motion in turn"}, "--save"),
         ("--host", "the address to serve at: this computer alone (%(default)s); 0.0.0.0 for every "
          "computer that reaches it", {"default": "127.0.0.1"}),
         ("--port", "the port to serve at (%(default)s, or the next free one)",
          {"type": int, "default": 8080}),
         ("--browser", "also open the browser of this computer", FLAG)],
    )  # fmt: skip


def _view(given: argparse.Namespace) -> int:
    from holoctl.app.view.geometry import shapes_of
    from holoctl.app.view.view import save_view, view
    from holoctl.simulation.run import Run

    mech, q = robot_held(given)
    run = None if given.recording is None else Run.read(given.recording)
    if given.out:
        for word in shapes_of(mech, given.file).words:
            print(f"{mech.name}: {word}")
        for path in given.out:
            save_view(mech, path, run, q=q, geometry=given.file)
            print(f"{mech.name}: written: {path}")
        return 0
    with view(mech, run, q=q, geometry=given.file, host=given.host, port=given.port) as page:
        for word in page.words:
            print(f"{mech.name}: {word}")
        print(f"{mech.name}: {page.url} (ends with Ctrl-C)", flush=True)
        if given.browser:
            import webbrowser

            webbrowser.open(page.url)
        page.wait()
    return 0
