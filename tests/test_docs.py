"""Commands in the documentation print what the documentation says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from shared_robots import SHARED_ROBOT_NAMES, shared_robot

from holoctl.cli import main

DOCS = Path(__file__).resolve().parents[1] / "docs"


def sessions():
    """Every ``$ holoctl`` line of a console block, with the file and what is printed below it."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
            first, _, printed = block.partition("\n")
            yield pytest.param(first, printed, id=f"{page.stem}: {first}")


def rounded(text):
    """Sizes of rounding errors, and gaps above them, differ between machines."""
    text = re.sub(r"\d(\.\d)?e-1\d", "~0", text)
    return re.sub(r"\de\+1\d", "~inf", text).split()


@pytest.mark.parametrize(("command", "printed"), list(sessions()))
def test_a_command_prints_what_the_page_says(command, printed, capsys):
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "holoctl"
    for i, argument in enumerate(arguments):
        robot = argument.split("/")[0]
        if robot in SHARED_ROBOT_NAMES:
            arguments[i] = str(shared_robot(robot) / "robot.urdf")
    main(arguments)
    assert rounded(capsys.readouterr().out) == rounded(printed)


def test_there_are_such_commands():
    assert len(list(sessions())) >= 4
