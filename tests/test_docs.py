"""Commands and programs in the documentation print what the documentation says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
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


def programs():
    """Every python block that is followed by the text it prints."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        found = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", text, flags=re.DOTALL)
        for i, (program, printed) in enumerate(found):
            yield pytest.param(program, printed, id=f"{page.stem}-{i}")


@pytest.mark.parametrize(("program", "printed"), list(programs()))
def test_a_program_prints_what_the_page_says(program, printed, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert rounded(done.stdout) == rounded(printed)


def test_the_accelerations_are_those_of_sympy():
    """By KanesMethod of SymPy 1.14, as the page says, at the state that our program prints."""
    page = (DOCS / "from-sympy.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (sentence,) = re.findall(r"precision: (.*)\.\n", page)
    names: dict = {}
    exec(re.sub(r"^print.*$", "", program, flags=re.MULTILINE), names)  # our own page
    kane = np.array([float(x) for x in sentence.split(",")])
    assert names["mech"].coordinate_names == ("motor", "elbow", "pivot")
    np.testing.assert_allclose(names["a"], kane, rtol=1e-12)


PROGRAMS = [
    *DOCS.glob("*.md"), *(DOCS.parent / "examples").glob("*.py"), DOCS.parent / "README.md",
]  # fmt: skip


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_no_program_looks_up_positions_by_places_in_v(path):
    """With continuous joints q and v differ in length; names of coordinates are places in v."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"coordinate_names\.index|B\.T @ \(?(run\.)?q\b", text)
