"""Frames of many robots in one call: the numbers of Pinocchio, in the axes of the world."""

from __future__ import annotations

import pickle
from functools import cache as kept

import numpy as np
import pinocchio as pin
import pytest
from exported import robot
from expressed import with_expression
from support import few, mechanism
from task_code import frame
from test_cuda import cache, device, pretended  # noqa: F401
from zoo import one_of_each

import holoctl as hc

Status = hc.results.BatchStatus

FRAMES = {
    "five_bar": ["tip_right", "tip", "proximal_left"], "floating_leg": ["wheel", "base", "head"],
    "leg": ["sole", "pelvis"], "stewart": ["tip"],
    "one_of_each": ["sled", "universe", "wrist", "hinge"],
    "timed_arm": ["c"],
}  # fmt: skip


@kept
def made(name):
    if name == "one_of_each":
        return hc.Mechanism(one_of_each(), [], ["hinge", "wheel"], name=name)
    if name == "timed_arm":
        return with_expression(name)
    return mechanism(name) if name == "floating_leg" else robot(name)


@kept
def many(name):
    return hc.compile(made(name), ["kinematics"], frames=FRAMES[name], device="cpu", workers=2)


def states(name, count=7):
    """Configurations, open or not: placements do not depend on loops."""
    mech, rng = made(name), np.random.default_rng(2)
    steps = rng.normal(size=(count, mech.nv))
    return np.array([pin.integrate(mech.model, mech.reference, x) for x in steps])


def of_pinocchio(mech, q, frames):
    data, found = mech.model.createData(), []
    pin.computeJointJacobians(mech.model, data, q)
    for name in frames:
        x = hc.protocols.resolve_frame(mech.model, name, "test")
        at = data.oMi[x.joint] * x.placement
        J = np.zeros((6, mech.nv))
        if x.joint:
            world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
            J = pin.getFrameJacobian(mech.model, data, x.joint, x.placement, world)
        found.append((at.translation, at.rotation, J))
    return [np.array(x) for x in zip(*found, strict=True)]


@pytest.mark.parametrize("name", few(FRAMES, ["five_bar", "floating_leg", "one_of_each"]))
def test_frames_are_where_pinocchio_has_them(name):
    mech, frames, Q = made(name), FRAMES[name], states(name)
    p, R, J, status = many(name).kinematics(Q)
    F = len(frames)
    assert (p.shape, R.shape, J.shape) == ((7, F, 3), (7, F, 3, 3), (7, F, 6, mech.nv))
    assert not status.any()
    assert many(name).frames == tuple(frames)
    assert np.abs(R - np.swapaxes(R, 2, 3)).max() > 0.1  # else a transposed one would pass
    for i, q in enumerate(Q):
        for found, expected in zip((p, R, J), of_pinocchio(mech, q, frames), strict=True):
            assert np.abs(expected).max() > 0.1
            np.testing.assert_allclose(found[i], expected, rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(many(name).kinematics(Q[3])[2][0], J[3])


def test_a_bad_robot_is_nan_and_the_others_are_not():
    Q, one = states("floating_leg"), many("floating_leg")
    good = one.kinematics(Q)
    head = made("floating_leg").model.joints[made("floating_leg").model.getJointId("head")].idx_q
    Q[1, 0], Q[4, 3], Q[5, head] = np.nan, np.inf, Q[5, head] + 0.1
    *found, status = one.kinematics(Q)
    assert status.tolist() == [0, Status.NOT_FINITE, 0, 0, Status.NOT_FINITE, Status.IN_DOUBT, 0]
    for x, y in zip(found, good, strict=False):
        assert np.isnan(x[[1, 4, 5]]).all()
        np.testing.assert_array_equal(x[[0, 2, 3, 6]], y[[0, 2, 3, 6]])
    empty = one.kinematics(Q[:0])
    assert [x.shape for x in empty] == [(0, 3, 3), (0, 3, 3, 3), (0, 3, 6, 14), (0,)]


def test_beside_other_functions_of_controllers_and_pickled():
    mech, frames = made("five_bar"), ["tip"]
    motors = hc.ComputedTorque(mech, 100.0, 20.0)
    task = hc.TaskSpaceControl(mech, frame(mech, "x z"), 400.0, 40.0)
    Q = states("five_bar")
    expected = many("five_bar").kinematics(Q)
    for controller in motors, task:
        built = hc.compile(
            controller, ["kinematics", "torque"], frames=frames, device="cpu", workers=1
        )
        for x in built, pickle.loads(pickle.dumps(built)):
            found = x.kinematics(Q)
            assert x.frames == ("tip",)
            for y, z in zip(found[:3], expected[:3], strict=True):
                np.testing.assert_allclose(y[:, 0], z[:, 1], rtol=0.0, atol=1e-14)
    rest = np.zeros(2)
    q = hc.assemble(mech)[0]
    u, status = built.torque(q, np.zeros(4), built.kinematics(q)[0][:, 0, ::2])
    assert status.tolist() == [0]
    assert np.abs(u).max() > 0.1
    assert np.isfinite(motors.torque(q, np.zeros(4), mech.motor_positions(q), rest, rest)).all()


def test_what_does_not_fit_is_refused():
    mech = made("five_bar")
    task = hc.TaskSpaceControl(mech, frame(mech, "x z"), 400.0, 40.0)
    many_, one = {"device": "cpu"}, {"machine": "vm"}
    for given, words in (
        (
            dict(functions=["kinematics"], **many_),
            "belong together; .*'kinematics' and frames none",
        ),
        (
            dict(functions=["terms"], frames=["tip"], **many_),
            "belong together; .*'terms' and frames 'tip'",
        ),
        (dict(frames=["tip"], **many_), "belong together"),
        (dict(functions=["kinematics"], frames=["tipp"], **many_), "compile: frames.*tipp"),
        (dict(functions=["kinematics"], frames="tip", **many_), "frames must be a list of names"),
        (dict(functions=["kinematics"], frames=["tip"], **one), "for many robots: give device"),
        (dict(frames=["tip"], **one), "for many robots: give device"),
        (dict(functions=["kinematics"], **one), "for many robots: give device"),
    ):
        with pytest.raises(hc.InputError, match=words):
            hc.compile(mech, **given)
    with pytest.raises(hc.InputError, match="for many robots: give device"):
        hc.compile(task, ["torque", "kinematics"], machine="vm")
    without = hc.compile(mech, ["terms"], device="cpu", workers=1)
    with pytest.raises(hc.InputError, match="kinematics"):
        without.kinematics(np.zeros(4))


@pytest.mark.slow
def test_a_gpu_gives_the_numbers_of_the_cores(device):  # noqa: F811
    Q = states("floating_leg")
    Q[2, 0] = np.nan
    options = {"functions": ["kinematics"], "frames": FRAMES["floating_leg"]}
    there = hc.compile(made("floating_leg"), device="cuda", **options)
    expected = many("floating_leg").kinematics(Q)
    assert (expected[-1] == 0).sum() == 6
    for x, y in zip(there.kinematics(Q), expected, strict=True):
        assert type(x) is np.ndarray
        np.testing.assert_allclose(x, y, rtol=0.0, atol=1e-12)
    for x, y in zip(there.kinematics(device.array("q", Q)), expected, strict=True):
        assert type(x) is type(device.empty((1,)))
        np.testing.assert_allclose(device.numpy(x), y, rtol=0.0, atol=1e-12)
