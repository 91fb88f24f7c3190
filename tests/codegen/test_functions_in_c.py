"""Parts of a model as C functions: their self-tests, which hold results of Pinocchio and Python."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pinocchio as pin
import pytest
import zoo
from exported import STRICT, compilers, last_line, library, robot, self_test
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
            "linearize_A",
            "linearize_B",
        ):
            numbers = re.findall(rf"{result}\[20\]\[\d+\] = \{{(.*?)\}};", known, re.DOTALL)[0]
            found = np.array([float(x) for x in re.findall(r"[-\d.]+(?:e[-+]\d+)?", numbers)])
            assert np.abs(found).max() > 0.01


LINEAR = {
    "five_bar": lambda: robot("five_bar"), "leg": lambda: robot("leg"),
    "delta": lambda: robot("delta"), "spatial_arms": zoo.spatial_arms,
    "slider_crank": zoo.slider_crank,
}  # fmt: skip


@pytest.mark.parametrize("name", few(LINEAR, ["five_bar"]))
def test_linear_models_are_those_of_python(name, tmp_path):
    mech = LINEAR[name]()
    mech = mech.with_forces([hc.JointFriction(0.3, 0.2, transition=0.5, name="more")])
    part = hc.partition(mech, hc.assemble(mech)[0])
    paths = hc.export_c(mech, tmp_path, name="m", functions=["linearize"], partition=part)
    shared = ctypes.CDLL(str(library(paths, tmp_path)))
    n, nu, rng = part.independent.size, mech.nu, np.random.default_rng(5)
    made = [np.ones(k) for k in (4 * n * n, 2 * n * nu, n)]
    compared = 0

    def found(q, v, u):
        given = [np.ascontiguousarray(x) for x in (q, v, u)]
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*given, *made)]
        return shared.holoctl_m_linearize(*pointers)

    for _ in range(4):
        step = 0.1 * rng.normal(size=mech.nv) * mech.column_scale
        guess = pin.integrate(mech.model, hc.assemble(mech)[0], step)
        q, v = hc.assemble(mech, guess, rng.normal(size=mech.nv))
        u = rng.normal(size=nu)
        lin = hc.linearize(mech, q, v, u, partition=part, along="motion")
        if not found(q, v, u):
            continue
        for x, right in zip(made, (lin.A, lin.B, lin.rate[n:]), strict=True):
            size = max(1.0, np.abs(right).max())
            assert np.abs(x - right.ravel()).max() < 1e-9 * size
        assert min(np.abs(lin.A[n:, :n]).max(), np.abs(lin.B).max()) > 1e-3
        compared += 1
        if mech.row_scale.size:  # off the manifold there is no linear model
            assert not found(pin.integrate(mech.model, q, 1e-3 * np.ones(mech.nv)), v, u)
            assert not any(x.any() for x in made)
            assert not found(q, v + 1e-2 * rng.normal(size=mech.nv), u)
    assert compared > 1


def base_with_a_ball(tmp_path, precision):
    """The placement of the tip of a free body with an arm on a ball joint, as C has it."""
    model = pin.Model()
    base = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    arm = model.addJoint(base, pin.JointModelSpherical(), zoo.at(0.3), "arm")
    slide = model.addJoint(arm, pin.JointModelPZ(), pin.SE3.Identity(), "slide")
    for joint in (base, arm, slide):
        model.addJointFrame(joint)
        model.appendBodyToJoint(joint, pin.Inertia.FromBox(2.0, 0.3, 0.2, 0.1), pin.SE3.Identity())
    model.addFrame(pin.Frame("tip", slide, 0, zoo.at(0.1, 0.4, 0.2), pin.FrameType.OP_FRAME))
    mech, dtype = hc.Mechanism(model, [], ["slide"]), {"double": float, "single": np.float32}
    paths = hc.export_c(
        mech, tmp_path, name="b", functions=["kinematics"], frames=["tip", "base"],
        precision=precision,
    )  # fmt: skip
    shared = ctypes.CDLL(str(library(paths, tmp_path)))

    def placed(q):
        made = [np.ones(n, dtype=dtype[precision]) for n in (6, 18, 12 * mech.nv)]
        arrays = [np.ascontiguousarray(q, dtype=dtype[precision]), *made]
        found = shared.holoctl_b_kinematics(*(x.ctypes.data_as(ctypes.c_void_p) for x in arrays))
        return found, made[0]

    return model, paths, placed


@pytest.mark.parametrize("precision", ["double", "single"])
def test_quaternions_are_normalised_or_refused_and_every_input_is_looked_at(precision, tmp_path):
    model, paths, placed = base_with_a_ball(tmp_path, precision)
    program, said = self_test(tmp_path, paths, compilers()[0], *STRICT[1:], "-O1")
    assert program is not None, said
    assert last_line(program) == (0, "all is well")
    q, data = pin.randomConfiguration(model, -np.ones(12), np.ones(12)), model.createData()
    off_by = 1e-12 if precision == "double" else 5e-6
    pin.framesForwardKinematics(model, data, q)
    tip = data.oMf[model.getFrameId("tip")].translation
    assert np.abs(tip).max() > 0.1
    for off, good in ((0.0, 1), (4e-7, 1), (1e-5, 0), (4e-4, 0)):
        found, p = placed(np.concatenate([q[:7], (1.0 + off) * q[7:11], q[11:]]))
        assert found == good
        np.testing.assert_allclose(p[:3], tip if good else 0.0, atol=off_by)
    q[-1] = np.nan
    assert placed(q)[0] == 0


def test_a_part_without_a_state_refuses_what_is_not_finite(tmp_path):
    model = pin.Model()
    slide = model.addJoint(0, pin.JointModelPZ(), pin.SE3.Identity(), "slide")
    model.addJointFrame(slide)
    model.appendBodyToJoint(slide, pin.Inertia.FromBox(2.0, 0.3, 0.2, 0.1), pin.SE3.Identity())
    mech = hc.Mechanism(model, [], ["slide"])
    for parts in (["inertia"], ["bias", "constraints"]):  # none of them depends on q
        folder = tmp_path / parts[0]
        paths = hc.export_c(mech, folder, functions=parts)
        program, said = self_test(folder, paths, compilers()[0], *STRICT[1:], "-O1")
        assert program is not None, said
        assert last_line(program) == (0, "all is well")


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
    knee = hc.Transmission(robot("leg"), ["knee"])
    with pytest.raises(hc.InputError, match="a Transmission is exported without 'functions'"):
        hc.export_c(knee, tmp_path, functions=["inertia"])
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
