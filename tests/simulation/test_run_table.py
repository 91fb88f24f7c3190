"""Runs as tables: each column is that of its joint, and measurements read the file."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from zoo import lump

import holoctl as hc


@pytest.fixture(scope="module")
def five_bar():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    hold = hc.inverse_dynamics(mech, q, v, target=[0.0, 0.0]).u

    def push(t, q, v):
        swing = np.array([0.2 * np.sin(30.0 * t), -0.2 * np.cos(21.0 * t)])
        return hold + swing - 0.02 * mech.motor_rates(v)

    return mech, hc.simulate(mech, push, q, v, 0.3)


def test_columns_have_the_names_and_units_of_joints_and_motors(five_bar):
    mech, run = five_bar
    table = run.table(mech)
    np.testing.assert_array_equal(table["t [s]"], run.t)
    for i, name in enumerate(mech.coordinate_names):
        np.testing.assert_array_equal(table[f"{name}.q [rad]"], run.q[:, i])
        np.testing.assert_array_equal(table[f"{name}.v [rad/s]"], run.v[:, i])
    for i, name in enumerate(mech.actuated):
        np.testing.assert_array_equal(table[f"{name}.u [N m]"], run.u[:, i])
        assert np.ptp(run.u[:, i]) > 0.1
    np.testing.assert_array_equal(table["kinetic energy [J]"], run.energy["kinetic"])
    forces = np.arange(run.t.size * 6.0).reshape(-1, 2, 3)
    pushed = dataclasses.replace(run, contact_forces={"foot": forces}).table(mech)
    np.testing.assert_array_equal(pushed["foot[1].fy [N]"], forces[:, 1, 1])
    assert not any(np.shares_memory(x, run.q) for x in table.values())
    with pytest.raises(hc.InputError, match="is of another mechanism than 'stewart'"):
        run.table(hc.load(hc.robot_file("stewart")))


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_a_written_run_is_read_as_measurements(five_bar, suffix, tmp_path):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    mech, run = five_bar
    path = run.save_table(mech, tmp_path / "new" / f"run{suffix}")
    data = hc.Measurements.load(path)
    assert data.measured == mech.coordinate_names
    assert data.motors == mech.actuated
    np.testing.assert_array_equal(data.t, run.t)
    np.testing.assert_array_equal(data.positions, run.q)
    np.testing.assert_array_equal(data.rates, run.v)
    np.testing.assert_array_equal(data.efforts, run.u)
    if suffix == ".csv":
        driven = hc.Measurements.load(path, measured=mech.actuated)
        model = hc.Parameters(mech)
        found = hc.regression(model, driven, cutoff=40.0, lag=5e-4)  # u is held between ticks
        errors = found.W @ model.values - found.y
        assert np.abs(errors).max() < 0.02 * np.abs(found.y).max()


def test_all_joints_have_columns():
    rng, model = np.random.default_rng(0), pin.Model()
    for j, (joint, name) in enumerate(((pin.JointModelFreeFlyer(), "base"),
                                       (pin.JointModelSpherical(), "ball"),
                                       (pin.JointModelRUBZ(), "wheel"),
                                       (pin.JointModelPX(), "rail"))):  # fmt: skip
        k = model.addJoint(j, joint, pin.SE3.Identity(), name)
        model.appendBodyToJoint(k, lump(rng), pin.SE3.Identity())
    B = np.zeros((model.nv, 2))
    B[-1, 0], B[-2:, 1] = 1.0, 1.0
    mech = hc.Mechanism(model, actuation=B)
    v = np.zeros(mech.nv)
    v[9] = 150.0
    run = hc.simulate(mech, lambda t, q, v: np.zeros(2), mech.reference, v, 0.3)
    turned = np.trapezoid(run.v[:, 9], run.t)
    table = run.table(mech)
    names = list(table)
    assert names[:9] == [
        "t [s]", "base.x [m]", "base.y [m]", "base.z [m]", "base.qx [1]", "base.qy [1]",
        "base.qz [1]", "base.qw [1]", "ball.qx [1]",
    ]  # fmt: skip
    assert {"rail.q [m]", "rail.v [m/s]", "base[0].v [m/s]", "base[3].v [rad/s]"} <= {*names}
    assert {"u[0].u [N]", "u[1].u"} <= {*names}
    assert np.ptp(table["wheel.q [rad]"]) > 2.0 * np.pi
    assert table["wheel.q [rad]"][-1] == pytest.approx(turned, abs=1e-3)  # turns are counted
    assert all(x.shape == run.t.shape for x in table.values())


def test_units_that_are_not_si_are_refused(five_bar, tmp_path):
    mech, run = five_bar
    path = run.save_table(mech, tmp_path / "run.csv")
    text = path.read_text("utf-8")
    for unit, words in (("deg", "must be in rad or m; got 'deg'"), ("rad/s", "got 'rad/s'")):
        path.write_text(text.replace("motor_left.q [rad]", f"motor_left.q [{unit}]"), "utf-8")
        with pytest.raises(hc.LoadError, match=words):
            hc.Measurements.load(path)
        if unit == "deg":  # named by the user, it is taken as it is
            data = hc.Measurements.load(path, columns={"motor_left.q": "motor_left.q [deg]"})
            assert "motor_left" in data.measured
    path.write_text(text.replace("closure error [1]", "motor_left.q"), "utf-8")
    with pytest.raises(hc.LoadError, match=r"two columns are called .motor_left.q."):
        hc.Measurements.load(path)
    for wrong, words in (("run.txt", "must end with .csv or .parquet or .npz"),):
        with pytest.raises(hc.InputError, match=words):
            run.save_table(mech, tmp_path / wrong)


def test_parquet_needs_pyarrow(five_bar, tmp_path, monkeypatch):
    mech, run = five_bar
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(hc.InputError, match=r"pip install 'holoctl\[parquet\]'"):
        run.save_table(mech, tmp_path / "run.parquet")
