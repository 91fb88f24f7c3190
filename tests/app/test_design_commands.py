"""`holoctl linearize`, `retime`, `excite` and `map`: what they print, and their exit codes."""

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


def test_linearize_prints_no_rounding(capsys):
    _, out = run(capsys, "linearize", "leg", "--dt", "0.001")
    assert "1.825e-09" in out.out  # small, and true
    assert "e-2" not in out.out


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
    code, _ = run(capsys, "linearize", "five_bar", "--out", str(picture))
    assert code == 0
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--effort", "1,two"], "--effort takes numbers"),
        (["--effort", "1,2,3"], "must have shape (2,)"),
        (["--outputs", "nobody"], "nobody"),
        (["--dt", "0"], "dt"),
        (["--out", f"{__file__}/x.png"], "cannot be written"),
        (["--out", f"{__file__}/x.json"], "cannot be written"),
    ],
)
def test_linearize_refuses(capsys, arguments, says):
    code, out = run(capsys, "linearize", "five_bar", *arguments)
    assert code == 1
    assert out.out == ""
    assert says in out.err


# ------------------------------------------------------------------------------------ retime

WAY = "motor_2,motor_1,motor_3\n0.2,0.2,0.2\n0.1,0.0,0.3\n0.0,0.3,0.1\n"


@pytest.fixture
def way(tmp_path):
    path = tmp_path / "way.csv"
    path.write_text(WAY)
    return str(path)


def test_retime_takes_columns_in_any_order_and_prints_limits(capsys, way, tmp_path):
    picture = tmp_path / "fast.png"
    code, out = run(
        capsys, "retime", "delta", "--path", way, "--points", "40", "--out", str(picture)
    )
    assert code == 0
    assert "at the limit" in out.out
    assert picture.stat().st_size > 1000


def test_retime_for_programs_and_for_spreadsheets(capsys, way):
    quick = "--path", way, "--points", "40", "--margin", "0.1"
    code, out = run(capsys, "retime", "delta", *quick, "--json")
    found = json.loads(out.out)
    assert code == 0
    points = np.array([[0.2, 0.2, 0.2], [0.0, 0.1, 0.3], [0.3, 0.0, 0.1]])
    mech = hc.load(hc.robot_file("delta"))
    again = hc.retime(mech, points, points=40, margin=0.1, start=mech.reference)
    assert found["duration"] == pytest.approx(again.duration, rel=1e-6)
    assert np.abs(found["u"]).max() == pytest.approx(18.0, rel=5e-3)
    code, out = run(capsys, "retime", "delta", *quick, "--csv", "--frequency", "500")
    rows = list(csv.reader(io.StringIO(out.out)))
    assert code == 0
    assert rows[0][:4] == ["t", "motor_1", "motor_2", "motor_3"]
    assert float(rows[2][0]) == 0.002
    assert np.allclose(np.array(rows[1][1:4], dtype=float), points[0], atol=1e-9)
    assert np.allclose(np.array(rows[-1][1:4], dtype=float), points[-1], atol=1e-9)
    assert float(rows[-1][0]) >= again.duration


def test_retime_along_positions_of_a_frame_with_a_payload(capsys, tmp_path):
    path = tmp_path / "way.csv"
    path.write_text("x,y,z\n-0.05,0,-0.35\n0,0,-0.32\n0.05,0,-0.35\n")
    frame = "--path", str(path), "--frame", "tip", "--points", "30"
    durations = []
    for more in ([], ["--payload", "tip=0.5"]):
        code, out = run(capsys, "retime", "delta", *frame, *more, "--json")
        assert code == 0
        durations.append(json.loads(out.out)["duration"])
    assert durations[1] > 1.05 * durations[0]


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ("motor_1,motor_2\n0,0\n0.1,0.1\n", [], "must have a column for each of"),
        ("motor_1,motor_2,motor_3\n0,0,much\n", [], "must be numbers"),
        ("motor_1,motor_2,motor_3\n0,0\n1,1,1\n", [], "numbers"),
        ("", [], "is empty"),
        (WAY, ["--payload", "tip"], "FRAME=MASS"),
        (WAY, ["--margin", "2"], "margin"),
        (WAY, ["--frame", "tip"], "must have a column"),
        (
            WAY,
            [
                "--set",
                "motor_1=0.2",
                "--set",
                "motor_2=0.2",
                "--set",
                "motor_3=0.2",
                "--set",
                "elbow_1a[0]=0.9",
                "--set",
                "elbow_1a[1]=0.9",
            ],
            "AssemblyError",
        ),
    ],
)
def test_retime_refuses(capsys, tmp_path, text, arguments, says):
    path = tmp_path / "way.csv"
    path.write_text(text)
    code, out = run(capsys, "retime", "delta", "--path", str(path), *arguments)
    assert code == 1
    assert out.out == ""
    assert says in out.err


# ------------------------------------------------------------------------------------ excite


def test_excite_writes_a_motion_and_a_picture(capsys, tmp_path):
    quick = "--period", "2", "--harmonics", "2", "--starts", "1", "--iterations", "0"
    files = [tmp_path / name for name in ("motion.csv", "motion.png", "motion.json")]
    outs = [x for file in files for x in ("--out", str(file))]
    code, out = run(capsys, "excite", "four_bar", *quick, "--frequency", "100", *outs)
    assert code == 0
    assert "no motion excites: " in out.out
    assert "crank.velocity" in out.out
    header, *rows = csv.reader(files[0].open())
    assert header == ["t", "crank", "d crank", "dd crank"]
    motion = np.array(rows, dtype=float)
    assert motion.shape == (200, 4)
    assert np.allclose(np.gradient(motion[:, 1], 0.01)[1:-1], motion[1:-1, 2], atol=0.05)
    assert files[1].stat().st_size > 1000
    found = json.loads(files[2].read_text())
    assert min(found["margin"].values()) >= 0.0
    assert len(found["base_parameters"]) == 8


def test_excite_refuses(capsys):
    code, out = run(capsys, "excite", "four_bar", "--harmonics", "1")
    assert code == 1
    assert out.out == ""
    assert "at least 2" in out.err


# --------------------------------------------------------------------------------------- map

GRID = "--frame", "tip_right", "--grid", "x=-0.1:0.1:3", "--grid", "z=0.3:0.7:3"


def test_map_prints_what_it_takes_and_why_not(capsys, tmp_path):
    picture = tmp_path / "map.png"
    code, out = run(capsys, "map", "five_bar", *GRID, "--out", str(picture))
    assert code == 0
    assert "6 of 9 points reachable" in out.out
    assert "out of reach" in out.out
    assert picture.stat().st_size > 1000


def test_map_names_the_motor_and_takes_values_that_stay(capsys, tmp_path):
    picture = tmp_path / "map.png"
    grid = ["--frame", "tip", "--grid", "x=-0.4:0.4:5", "--grid", "y=0:0:1", "--grid", "z=-0.35"]
    code, out = run(capsys, "map", "delta", *grid, "--out", str(picture))
    assert code == 0
    assert picture.stat().st_size > 1000
    code, out = run(capsys, "map", "delta", "--grid", "motor_1=0:2:5")
    assert code == 0
    assert "x motor_1 = ..., limit ..." in out.out
    wide = ["--grid", "x=0:1:2", "--grid", "y=0:1:2", "--grid", "z=0:1:2", "--frame", "tip"]
    code, out = run(capsys, "map", "delta", *wide, "--out", str(picture))
    assert code != 0
    assert "one or two axes can be drawn" in out.err


def test_map_for_programs_and_for_spreadsheets(capsys):
    code, out = run(capsys, "map", "five_bar", *GRID, "--json")
    found = json.loads(out.out)
    assert code == 0
    mech = hc.load(hc.robot_file("five_bar"))
    task = hc.FrameTask("tip_right", "x z")
    grid = task, np.linspace(-0.1, 0.1, 3), np.linspace(0.3, 0.7, 3)
    again = hc.motor_map(mech, grid)
    torque = np.array(found["torque"], dtype=float)
    assert np.allclose(torque, again.torque, atol=1e-9, equal_nan=True)
    assert found["reachable"] == again.reachable.tolist()
    code, out = run(capsys, "map", "five_bar", *GRID, "--csv", "--what", "torque,velocity")
    rows = list(csv.reader(io.StringIO(out.out)))
    assert code == 0
    assert len(rows) == 10
    assert rows[0][3:7] == ["torque motor_left", "torque motor_right", "velocity 0", "velocity 1"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--grid", "x=1:2"], "NAME=FROM:TO:COUNT"),
        (["--grid", "motor_left=0:1:2", "--grid", "motor_left=0:1:2"], "twice"),
        (["--grid", "nobody=0:1:2"], "nobody"),
        (["--grid", "motor_left=0:1:2", "--what", "colour"], "colour"),
        (
            [
                "--grid",
                "motor_left=0:1:2",
                "--set",
                "motor_left=1",
                "--set",
                "elbow_left=0",
                "--set",
                "motor_right=1",
            ],
            "AssemblyError",
        ),
    ],
)
def test_map_refuses(capsys, arguments, says):
    code, out = run(capsys, "map", "five_bar", *arguments)
    assert code == 1
    assert out.out == ""
    assert says in out.err
