"""``holoctl simulate`` and ``holoctl modes``: the same numbers as the functions behind them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import holoctl as hc
from holoctl.app.cli import main

GAINS = ["--kp", "400", "--kd", "40"]


def said(capsys, *words, code=0):
    assert main([*words]) == code
    return capsys.readouterr().out


def test_without_gains_it_falls(capsys):
    found = json.loads(said(capsys, "simulate", "five_bar", "--duration", "0.1", "--json"))
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    run = hc.simulate(mech, None, q, v, 0.1)
    np.testing.assert_array_equal(found["q"], run.q)
    assert not np.any(found["u"])
    assert np.abs(run.v[-1]).max() > 0.1


def test_with_gains_motors_arrive(tmp_path, capsys):
    words = ["--to", "motor_left=2.4", "--duration", "0.5"]
    files = ["--out", str(tmp_path / "run.npz"), "--out", str(tmp_path / "run.png")]
    rows = said(capsys, "simulate", "five_bar", *GAINS, *words, *files, "--csv").splitlines()
    assert rows[0] == "t,motor_left,motor_right,u motor_left,u motor_right"
    last = np.array([float(x) for x in rows[-1].split(",")])
    start = hc.load(hc.robot_file("five_bar"))
    right = start.motor_positions(hc.assemble(start)[0])[1]
    np.testing.assert_allclose(last[:3], [0.5, 2.4, right], atol=2e-3)
    assert np.abs(last[3:]).max() > 0.1
    assert np.load(tmp_path / "run.npz")["q"].shape == (501, 4)
    assert (tmp_path / "run.png").stat().st_size > 10000


def test_modes_are_those_of_the_library(capsys):
    found = json.loads(said(capsys, "modes", "five_bar", "--tries", "30", "--json"))
    mech = hc.load(hc.robot_file("five_bar"))
    modes = hc.assembly_modes(mech, found["motors"], tries=30).modes
    assert [x["sign"] for x in found["modes"]] == [mode.sign for mode in modes] == [-1, 1]
    table = said(capsys, "modes", "five_bar", "--tries", "30", "--csv").splitlines()
    assert table[0].startswith("mode,sign,found,motor_left")
    assert len(table) == 3
    assert "2 assembly modes from 30 starts" in said(capsys, "modes", "five_bar", "--tries", "30")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--kp", "1"], "belong together"),
        (["--to", "motor_left=1"], "give --kp and --kd too"),
        ([*GAINS, "--to", "elbow=1"], "there is no motor called 'elbow'"),
        ([*GAINS, "--to", "motor_left=far"], "MOTOR=VALUE"),
        (["--duration", "-1"], "--duration"),
    ],
)
def test_what_is_refused(capsys, words, why):
    assert main(["simulate", "five_bar", *words]) != 0
    assert why in " ".join(capsys.readouterr().err.split())
