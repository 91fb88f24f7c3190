"""`assemble` within the limits of joints, and who says where they are passed."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from refusals import refused

import holoctl as hc
from holoctl.app.cli import main
from holoctl.mechanism.limited_coordinates import beyond_limits


def limited(name, **position):
    return dataclasses.replace(hc.load(hc.robot_file(name)), limits=hc.Limits(position=position))


def test_what_is_within_is_as_without():
    mech = hc.load(hc.robot_file("five_bar"))
    for x, y in zip(hc.assemble(mech), hc.assemble(mech, within_limits=True), strict=True):
        assert np.array_equal(x, y)


def test_a_joint_beyond_is_held_at_its_limit():
    free = hc.load(hc.robot_file("five_bar"))
    q, _ = hc.assemble(free)
    left = float(q[0])
    mech = limited("five_bar", motor_left=(left - 1.0, left - 0.2))
    assert beyond_limits(mech, q)
    x, v = hc.assemble(mech, within_limits=True)
    assert x[0] == pytest.approx(left - 0.2, abs=1e-9)
    assert not beyond_limits(mech, x)
    found = hc.constraint_errors(mech, x, v)
    assert found.closure < 1e-12
    assert np.abs(x - q).max() < 1.0  # the same branch


def test_locked_joints_stay_and_rates_are_those_asked_for():
    free = hc.load(hc.robot_file("five_bar"))
    q, _ = hc.assemble(free)
    mech = limited("five_bar", motor_left=(q[0] - 1.0, q[0] - 0.2))
    wanted = np.array([0.4, 0.0, 0.0, 0.0])
    x, v = hc.assemble(mech, q, wanted, locked=["motor_right"], within_limits=True)
    assert x[2] == q[2]
    assert v[2] == 0.0
    assert np.abs(hc.constraint_errors(mech, x, v).velocity).max() < 1e-9


def test_cut_joints_have_limits_too_and_the_other_branch_is_found():
    free = hc.load(hc.robot_file("five_bar"))
    q, _ = hc.assemble(free)
    sign = np.sign(q[1])
    span = sorted((-0.05 * sign, -3.0 * sign))
    mech = limited("five_bar", elbow_left=tuple(span))  # the elbow on its other side
    x, v = hc.assemble(mech, within_limits=True, restarts=40)
    assert span[0] - 1e-8 <= x[1] <= span[1] + 1e-8
    assert hc.constraint_errors(mech, x, v).closure < 1e-12


def test_where_nothing_is_within_the_limits_they_are_named():
    free = hc.load(hc.robot_file("four_bar"))
    q, _ = hc.assemble(free)
    crank, coupler = free.coordinate_names[:2]
    mech = limited("four_bar", **{crank: (q[0], q[0] + 0.01), coupler: (q[1] + 0.4, q[1] + 0.41)})
    error = refused(
        lambda: hc.assemble(mech, within_limits=True, restarts=3), hc.LimitError, "four_bar",
        coupler, "its limits are", "within the limits of its joints",
    )  # fmt: skip
    assert error.names == (f"{coupler}.position",)
    assert hc.constraint_errors(mech, error.q).closure < 1e-12


def test_the_doctor_and_the_torque_command_say_so(tmp_path, capsys):
    mech = limited("five_bar", motor_left=(-0.1, 0.1))
    report = hc.mobility(mech)
    (told,) = report.beyond_limits
    assert told.startswith("'motor_left' is at ")
    assert "Outside the limits of its joints: 'motor_left' is at" in " ".join(str(report).split())
    inside = hc.mobility(hc.load(hc.robot_file("five_bar")))
    assert inside.beyond_limits == []
    text = hc.robot_file("five_bar").with_suffix(".yaml").read_text()
    sheet = tmp_path / "five_bar.yaml"
    sheet.write_text(text + "\nlimits:\n  position:\n    motor_left: [-0.1, 0.1]\n")
    arguments = ["torque", "five_bar", "--closures", str(sheet)]
    main(arguments)
    assert "outside the limits of its joints: 'motor_left' is at" in capsys.readouterr().out
    main([*arguments, "--json"])
    assert json.loads(capsys.readouterr().out)["beyond_limits"] == report.beyond_limits
    main(["torque", "five_bar"])
    assert "outside" not in capsys.readouterr().out
