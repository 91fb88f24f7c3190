"""Parts of a model as C functions: their self-tests, which hold results of Pinocchio and Python."""

from __future__ import annotations

import re

import numpy as np
import pytest
from exported import STRICT, compilers, last_line, robot, self_test
from support import few, mechanism

import holoctl as hc
from holoctl.app.cli import main
from holoctl.codegen.exported.functions import PARTS

pytest.importorskip("casadi")

ROBOTS = {
    "five_bar": ["tip", "elbow_left"], "leg": ["sole", "pelvis"], "delta": ["tip"],
    "stewart": ["tip"], "geared_arm": ["elbow"],
}  # fmt: skip


@pytest.mark.parametrize("name", few(ROBOTS, ["five_bar"]))
def test_parts_pass_their_self_tests_in_both_precisions(name, tmp_path):
    for precision in ("double", "single") if name != "five_bar" else ("double",):
        folder = tmp_path / precision
        paths = hc.export_c(
            robot(name), folder, functions=PARTS, frames=ROBOTS[name], precision=precision
        )
        program, said = self_test(folder, paths, compilers()[0], *STRICT[1:], "-O1")
        assert program is not None, said
        assert last_line(program) == (0, "all is well")
        known = paths[2].read_text()
        for result in (
            "kinematics_J",
            "inertia_M",
            "bias_h",
            "constraints_G",
            "forward_dynamics_a",
        ):
            numbers = re.findall(rf"{result}\[20\]\[\d+\] = \{{(.*?)\}};", known, re.DOTALL)[0]
            found = np.array([float(x) for x in re.findall(r"[-\d.]+(?:e[-+]\d+)?", numbers)])
            assert np.abs(found).max() > 0.01


@pytest.mark.slow
def test_a_part_takes_the_time_where_its_constraints_do(tmp_path):
    base = mechanism("sine_gear")
    height = hc.Custom(
        lambda q, t: [0.5 * q[0] + q[1] ** 2 - 0.05 * t], time=True,
        casadi=lambda q, t: 0.5 * q[0] + q[1] ** 2 - 0.05 * t, name="height",
    )  # fmt: skip
    mech = hc.Mechanism(base.model, [height], ["shoulder"], reference=[0.3, -0.3])
    paths = hc.export_c(mech, tmp_path, functions=["constraints"])
    assert "double t, double *phi" in paths[0].read_text()
    program, said = self_test(tmp_path, paths, compilers()[0], "-O1")
    assert program is not None, said
    assert last_line(program) == (0, "all is well")


def test_parts_that_are_not_there_are_named(tmp_path):
    mech = robot("five_bar")
    for given, said in (
        ({"functions": ["inertias"]}, "functions must be one of 'kinematics'"),
        ({"functions": ["kinematics"]}, "belong together"),
        ({"functions": ["inertia"], "frames": ["tip"]}, "belong together"),
        ({"functions": ["kinematics"], "frames": ["tipp"]}, "tip"),
        ({"functions": ["inertia"], "plant": True}, "exported without 'plant'"),
        ({"functions": []}, "parts of a Mechanism"),
        ({"frames": ["tip"]}, "parts of a Mechanism"),
    ):
        with pytest.raises(hc.InputError, match=said):
            hc.export_c(mech, tmp_path, **given)
    with pytest.raises(hc.InputError, match="parts of a Mechanism"):
        hc.export_c(hc.ComputedTorque(mech, 1.0, 1.0), tmp_path, functions=["inertia"])
    assert not any(tmp_path.iterdir())


def test_the_command_writes_parts(tmp_path, capsys):
    made = ["--functions", "inertia,bias", "--out", str(tmp_path), "--name", "arm", "--single"]
    assert main(["export", "five_bar", *made]) == 0
    assert "holoctl_arm.h" in capsys.readouterr().out
    assert (
        "int holoctl_arm_inertia(const float *q, float *M);"
        in (tmp_path / "holoctl_arm.h").read_text()
    )
