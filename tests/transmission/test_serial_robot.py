"""Serial robots: as texts they are the same trees, and their errors are those that are told."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from ankles import alone, cranked, humanoid

import holoctl as hc
from holoctl.io.written_mjcf import written_mjcf
from holoctl.io.written_tree import written_urdf


@pytest.fixture(scope="module")
def robot():
    return hc.serial_model(humanoid(legs=2, arms=1))


def same_dynamics(one, other, seed=0):
    rng = np.random.default_rng(seed)
    q = pin.randomConfiguration(one, -np.ones(one.nq), np.ones(one.nq))
    v, a = rng.normal(size=(2, one.nv))
    there = [np.zeros(other.nq), np.zeros(other.nv), np.zeros(other.nv)]
    in_v = np.zeros(one.nv, dtype=int)
    for j, name in enumerate(one.names):  # readers order joints by name
        k, iq, iv = other.getJointId(name), one.idx_qs[j], one.idx_vs[j]
        own = q[iq : iq + one.nqs[j]]
        if other.nqs[k] > one.nqs[j]:  # without limits: continuous
            own = [np.cos(own[0]), np.sin(own[0])]
        there[0][other.idx_qs[k] : other.idx_qs[k] + other.nqs[k]] = own
        at = slice(other.idx_vs[k], other.idx_vs[k] + other.nvs[k])
        for x, of in zip(there[1:], (v, a), strict=True):
            x[at] = of[iv : iv + one.nvs[j]]
        in_v[iv : iv + one.nvs[j]] = np.arange(at.start, at.stop)
    found = pin.rnea(other, other.createData(), *there)[in_v]
    wanted = pin.rnea(one, one.createData(), q, v, a)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_urdf_is_the_same_tree(robot):
    bare = robot.model.copy()
    bare.armature = np.zeros(bare.nv)
    again = pin.buildModelFromXML(robot.urdf())
    same_dynamics(bare, again)
    i = again.idx_vs[again.getJointId("leg0 knee")]
    assert np.isfinite(again.upperVelocityLimit[i])


def test_mjcf_is_the_same_tree(robot):
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_string(robot.mjcf())
    data, model = mujoco.MjData(m), robot.model
    rng = np.random.default_rng(3)
    q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    v = rng.normal(size=model.nv)
    R = pin.Quaternion(q[3:7]).toRotationMatrix()
    data.qpos[:] = q
    data.qpos[3:7] = q[[6, 3, 4, 5]]
    data.qvel[:] = v
    data.qvel[:3] = R @ v[:3]  # MuJoCo has the linear velocity of a free joint in world axes
    mujoco.mj_forward(m, data)
    M = np.zeros((model.nv, model.nv))
    try:
        mujoco.mj_fullM(m, data, M)
    except TypeError:  # before 3.5
        mujoco.mj_fullM(m, M, data.qM)
    T = np.eye(model.nv)
    T[:3, :3] = R
    wanted = T @ pin.crba(model, model.createData(), q) @ T.T
    np.testing.assert_allclose(M, wanted, rtol=1e-9, atol=1e-9)
    assert np.abs(M[:3, 6:]).max() > 0.1


def test_lumped_masses_keep_the_weight_of_the_robot(robot):
    whole = humanoid(legs=2, arms=1)
    assert pin.computeTotalMass(robot.model) == pytest.approx(pin.computeTotalMass(whole.model))
    light = hc.serial_model(whole, masses="none", rotors="none", joint_limits="none")
    assert pin.computeTotalMass(light.model) < pin.computeTotalMass(robot.model) - 0.3
    assert not light.model.armature.any()
    assert light.errors["rotors"][0] > 2.0 * robot.errors["rotors"][0] > 0.0
    knee = robot.transmissions[0]
    i = robot.model.idx_vs[robot.model.getJointId(knee.joints[0])]
    J = knee.jacobian(knee.y_start)
    assert robot.model.armature[i] == pytest.approx(float(J[0, 0] ** 2 * knee.rotor_inertias[0]))


def test_limits_are_a_box_that_the_motors_can_give_at_the_start():
    mech = hc.load(hc.robot_file("ankle"))
    robot = hc.serial_model(mech)
    (tr,) = robot.transmissions
    low, high = robot.model.lowerEffortLimit, robot.model.upperEffortLimit
    allowed = tr.effort_polytope(tr.y_start)
    for corner in ([low[0], low[1]], [low[0], high[1]], [high[0], high[1]]):
        assert allowed.contains(corner, 1e-6)
        assert not allowed.contains(np.multiply(corner, 1.01))
    assert 0.0 <= robot.errors["infeasible limits"][0] < 0.5
    assert 0.3 < robot.errors["unused limits"][0] < 0.9
    assert "armature" in robot.urdf()
    assert 'ctrlrange="' in robot.mjcf()
    assert "errors" in repr(robot)


def test_what_has_no_serial_robot_is_refused():
    with pytest.raises(hc.InputError, match="no serial joints to replace them"):
        hc.serial_model(hc.load(hc.robot_file("stewart")))
    with pytest.raises(hc.InputError, match="masses"):
        hc.serial_model(alone(cranked), masses="heavy")
    model = pin.Model()
    model.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "ball")
    with pytest.raises(hc.InputError, match="no ball joints"):
        written_urdf(model, "one")
    assert 'type="ball"' in written_mjcf(hc.Mechanism(model))
    model.addJoint(1, pin.JointModelPlanar(), pin.SE3.Identity(), "plane")
    with pytest.raises(hc.InputError, match="cannot be written"):
        written_mjcf(hc.Mechanism(model))
