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
    text = said(capsys, "simulate", "five_bar", *GAINS, *words, *files, "--csv")
    assert text.startswith("t [s],motor_left.q [rad],")
    (tmp_path / "run.csv").write_text(text, "utf-8")
    start = hc.load(hc.robot_file("five_bar"))
    log = hc.Measurements.load(tmp_path / "run.csv", measured=start.actuated)
    right = start.motor_positions(hc.assemble(start)[0])[1]
    assert log.t[-1] == 0.5
    np.testing.assert_allclose(log.positions[-1], [2.4, right], atol=2e-3)
    assert np.abs(log.efforts[-1]).max() > 0.1
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


def five_bar_with(tmp_path, limits):
    """The five-bar with other limits in its YAML file."""
    main = tmp_path / "five_bar.urdf"
    main.write_text(hc.robot_file("five_bar").read_text())
    sheet = hc.robot_file("five_bar").with_suffix(".yaml").read_text()
    main.with_suffix(".yaml").write_text(f"{sheet}\nlimits: {limits}\n")
    return str(main)


def test_what_exceeds_the_limits_of_the_file_is_named(tmp_path, capsys):
    limits = "{effort: {motor_left: [-0.5, 90]}, velocity: {elbow_left: 0.3}, "
    file = five_bar_with(tmp_path, limits + "position: {motor_right: [-3, 1.0]}}")
    words = ["simulate", file, *GAINS, "--to", "motor_right=1.2", "--duration", "0.5"]
    found = json.loads(said(capsys, *words, "--json"))
    text = said(capsys, *words)
    assert "beyond the limits of the file, which this simulation does not keep:" in text
    assert all(f"  {line}\n" in text for line in found["beyond_limits"])
    assert [line.split(":")[0] for line in found["beyond_limits"]] == [
        "effort of 'motor_left'",
        "velocity of 'elbow_left'",
        "position of 'motor_right'",
    ]
    u, column = np.array(found["u"]), hc.load(file).coordinate_names.index("elbow_left")
    fastest = max(np.array(found["v"])[:, column], key=abs)
    assert found["beyond_limits"][0].endswith(f"{u[:, 0].min():.4g} N m, its limits are -0.5 to 90")
    assert f": {fastest:.4g}, its limits are -0.3 to 0.3" in found["beyond_limits"][1]


def test_within_the_limits_nothing_is_named(tmp_path, capsys):
    words = [five_bar_with(tmp_path, "{effort: 90}"), *GAINS, "--duration", "0.05"]
    assert json.loads(said(capsys, "simulate", *words, "--json"))["beyond_limits"] == []
    assert "beyond" not in said(capsys, "simulate", *words)


def test_without_motors_limits_of_joints_count(tmp_path, capsys):
    file = five_bar_with(tmp_path, "{velocity: {elbow_left: 0.1}}")
    sheet = tmp_path / "five_bar.yaml"
    sheet.write_text(
        sheet.read_text().replace("name_mot: [motor_left, motor_right]", "name_mot: []")
    )
    text = said(capsys, "simulate", file, "--duration", "0.2")
    assert "velocity of 'elbow_left'" in text


def test_holding_efforts_beyond_the_limits_are_named(tmp_path, capsys):
    file = five_bar_with(tmp_path, "{effort: {motor_left: 1.5, motor_right: 90}}")
    assert (
        "beyond the limits of its motors: effort of 'motor_left': -2.302 N m, its limits are -1.5 "
        "to 1.5\n" in said(capsys, "torque", file)
    )
    (line,) = json.loads(said(capsys, "torque", file, "--json"))["beyond_limits"]
    assert "'motor_left'" in line


def test_a_root_that_floats_is_the_cause_of_efforts_that_do_not_hold(capsys):
    assert "The root floats, and nothing holds it." in said(
        capsys, "torque", "leg", "--free-flyer", code=1
    )
    assert "floats" not in said(capsys, "torque", "leg")
