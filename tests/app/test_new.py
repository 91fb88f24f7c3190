"""``holoctl new``: the files load, close, move as counted by hand, and are never overwritten."""

from __future__ import annotations

import numpy as np
import pytest

import holoctl as hc
from holoctl.app.cli import main

FIVE_BAR = ["--chain", "left elbow_left", "--chain", "right elbow_right",
            "--loop", "elbow_left elbow_right"]  # fmt: skip


def new(tmp_path, *words):
    """The mechanism of the files that were written."""
    assert main(["new", "robot", "--out", str(tmp_path), *words]) == 0
    return hc.load(tmp_path / "robot.urdf")


@pytest.mark.parametrize(
    ("words", "motors", "motions"),
    [
        (FIVE_BAR, ("left", "right"), 2),
        (["--chain", "crank coupler", "--chain", "rocker", "--loop", "coupler rocker",
          "--motors", "crank"], ("crank",), 1),
        (["--chain", "crank rod", "--chain", "slide=prismatic", "--loop", "rod slide",
          "--motors", "crank"], ("crank",), 1),
        (["--chain", "hip knee ankle", "--chain", "hip: motor rod", "--loop", "rod knee=ball",
          "--motors", "hip, motor, ankle"], ("hip", "motor", "ankle"), 3),
        (["--chain", "a=ball b", "--chain", "c", "--loop", "b c=ball", "--motors", "c"], ("c",), 2),
        (["--chain", "hip knee"], ("hip",), 2),
        (["--chain", "crank rod=ball", "--chain", "rocker=revolute:x", "--loop", "rod rocker=ball",
          "--motors", "crank"], ("crank",), 2),
        (["--chain", "yaw=revolute:z hip", "--chain", "hip: slide=prismatic:y"],
         ("yaw",), 3),
    ],
    ids=["five_bar", "four_bar", "slider_crank", "leg", "ball", "serial", "rssr", "axes"],
)  # fmt: skip
def test_the_files_load_and_close(tmp_path, capsys, words, motors, motions):
    mech = new(tmp_path, *words)
    said = " ".join(capsys.readouterr().out.split())
    assert "It closes" in said or "--loop" not in words
    assert mech.actuated == motors
    q, _ = hc.assemble(mech)
    if "ball" not in " ".join(words):
        np.testing.assert_allclose(q, 0.0, atol=1e-9)  # the drawing is closed
    assert hc.partition(mech, q).independent.size == motions
    if len(motors) == motions:
        assert hc.inverse_dynamics(mech, q, 0 * q, np.zeros(mech.nu)).certificate.ok
    assert "holoctl view" in said


def test_it_asks_where_nothing_is_given(tmp_path, monkeypatch, capsys):
    answers = iter(["left elbow_left", "right elbow_right", "", "elbow_left elbow_right", "", ""])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked = new(tmp_path / "asked")
    given = new(tmp_path / "given", *FIVE_BAR)
    assert asked.coordinate_names == given.coordinate_names
    assert (tmp_path / "asked/robot.urdf").read_text() == (
        tmp_path / "given/robot.urdf"
    ).read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "--chain is needed"),
        (["--chain", ""], "names of joints are needed"),
        (["--chain", ": a"], "it has no name"),
        (["--chain", "a b", "--chain", "b"], "twice: 'b'"),
        (["--chain", "a-b"], "no name for a joint"),
        (["--chain", "a=hinge"], "'revolute'"),
        (["--chain", "a=ball:x"], "a type with an axis must be one of 'revolute'"),
        (["--chain", "a=revolute:w"], "the axis of 'a' must be one of 'x', 'y', 'z'"),
        (["--chain", "knee: a"], "there is no joint of a chain before it called 'knee'"),
        (["--chain", "a b", "--loop", "a b"], "both joints are in one chain"),
        (["--chain", "a", "--chain", "b", "--loop", "a"], "two joints whose bars meet"),
        (["--chain", "a", "--chain", "b", "--loop", "a c"], "there is no joint called 'c'"),
        (["--chain", "a", "--chain", "b", "--loop", "a b=glue"], "'ball'"),
        (["--chain", "a", "--motors", "c"], "motors: there is no joint called 'c'"),
    ],
)
def test_what_is_refused(tmp_path, capsys, words, why):
    assert main(["new", "robot", "--out", str(tmp_path), *words]) != 0
    assert why in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_files_are_not_overwritten(tmp_path, capsys):
    new(tmp_path, *FIVE_BAR)
    before = (tmp_path / "robot.urdf").read_text()
    assert main(["new", "robot", "--out", str(tmp_path), "--chain", "other"]) != 0
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "robot.urdf").read_text() == before
    assert main(["new", "../robot", "--chain", "a"]) != 0
