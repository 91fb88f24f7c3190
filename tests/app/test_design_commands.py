"""`holoctl linearize`, `retime` and `map`: what they print, and their exit codes."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import holoctl as hc
from holoctl.app.cli import main


def run(capsys, *arguments):
    code = main(list(arguments))
    return code, capsys.readouterr()


def test_linearize_prints_efforts_and_modes(capsys):
    code, out = run(capsys, "linearize", "five_bar")
    assert code == 0
    mech = hc.load(hc.robot_file("five_bar"))
    found = hc.equilibrium(mech)
    for mode in hc.linearize(mech, found.q, u=found.u).modes():
        assert mode.sentence in out.out
    assert "N m" in out.out


def test_linearize_for_programs(capsys):
    code, out = run(
        capsys, "linearize", "five_bar", "--json", "--outputs", "motors", "--dt", "0.01"
    )
    found = json.loads(out.out)
    assert code == 0
    mech = hc.load(hc.robot_file("five_bar"))
    lin = hc.linearize(mech, found["q"], u=found["u"], outputs="motors").discretized(0.01)
    for name in "ABCD":
        assert np.allclose(found[name], getattr(lin, name), rtol=0.0, atol=1e-12)
    assert np.abs(found["A"]).max() > 1.0
    assert found["states"] == list(lin.states)
    assert found["outputs"] == list(lin.outputs)
    assert found["dt"] == 0.01
    assert len(found["modes"]) == 4


def test_linearize_for_spreadsheets(capsys):
    code, out = run(capsys, "linearize", "delta", "--csv")
    rows = list(csv.reader(io.StringIO(out.out)))
    assert code == 0
    assert rows[0][1:] == [
        *(f"{d}motor_{i}" for d in ("", "d ") for i in (1, 2, 3)), "motor_1", "motor_2", "motor_3",
    ]  # fmt: skip
    assert np.array([row[1:] for row in rows[1:]], dtype=float).shape == (6, 9)


def test_linearize_where_joints_are_held(capsys):
    code, out = run(capsys, "linearize", "five_bar", "--set", "motor_left=2.0", "--json")
    assert code == 0
    assert json.loads(out.out)["joints"]["motor_left"] == 2.0


def test_linearize_draws(capsys, tmp_path):
    picture = tmp_path / "modes.png"
    code, _ = run(capsys, "linearize", "five_bar", "--picture", str(picture))
    assert code == 0
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--effort", "1,two"], "--effort takes numbers"),
        (["--effort", "1,2,3"], "must have shape (2,)"),
        (["--outputs", "nobody"], "nobody"),
        (["--dt", "0"], "dt"),
        (["--picture", "no/such/folder/x.png"], "cannot be written"),
    ],
)
def test_linearize_refuses(capsys, arguments, says):
    code, out = run(capsys, "linearize", "five_bar", *arguments)
    assert code == 1
    assert out.out == ""
    assert says in out.err
