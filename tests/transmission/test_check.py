"""Readings of a mechanism that differs from the model in one way are explained by that."""

from __future__ import annotations

import ankles
import numpy as np
import pinocchio as pin
import pytest
from ankles import PITCH_ROLL, alone, cranked, four_barred, pushed
from support import few
from zoo import add_body, at, lump

import holoctl as hc

POSTURES = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 2)) * [0.38, 0.26]


def ankle(build=cranked):
    return hc.Transmission(alone(build), PITCH_ROLL)


def readings(tr, ys=POSTURES):
    return np.array([tr.motor_positions(y) for y in ys])


def roll_first(m, base, side="", x=ankles.ORIGIN):
    """The joints of `ankles.serial_ankle`, with the roll in the shank and the pitch in the foot."""
    rng = np.random.default_rng(5)
    add_body(m, base, pin.JointModelRX(), x, f"{side}first", lump(rng, 0.1))
    add_body(m, f"{side}first", pin.JointModelRY(), at(), f"{side}roll", lump(rng, 0.8))


def only(found):
    assert len(found.explanations) == 1
    return next(iter(found.explanations.items()))


@pytest.mark.parametrize("build", [cranked, pushed])
def test_an_exchanged_order_of_the_gimbal_is_told(build, monkeypatch):
    tr = ankle(build)
    monkeypatch.setattr(ankles, "serial_ankle", roll_first)
    real = hc.Transmission(alone(build), ["first", "roll"])
    q_m = readings(real, POSTURES[:, ::-1])
    found = tr.check(POSTURES, q_m)
    text, left = only(found)
    assert text == "the order of 'pitch' and 'roll' exchanged in the tree"
    assert left < 1e-12
    assert found.residual > (0.02 if build is cranked else 1e-3)
    noise = 0.01 * found.residual * np.random.default_rng(1).normal(size=q_m.shape)
    text, left = only(tr.check(POSTURES, q_m + noise))
    assert "exchanged in the tree" in text
    assert left <= np.abs(noise).max() + 1e-12


def test_a_joint_elsewhere_is_told_with_its_offset():
    tr = ankle()
    model = tr.mech.model.copy()
    j = model.getJointId("roll")
    model.jointPlacements[j] = at(0, 0, -0.016)
    mech = tr.mech.with_model(model)
    real = hc.Transmission(mech, PITCH_ROLL, hc.assemble(mech, locked=PITCH_ROLL)[0])
    found = tr.check(0.7 * POSTURES, readings(real, 0.7 * POSTURES))
    text, left = only(found)
    assert text == "the origin of 'roll' displaced in the axes of its parent, z -0.016"
    assert left < 1e-9
    assert found.residual > 0.1


OFFSETS = np.array([0.016, 0.0]), np.array([0.01, -0.02])
CASES = {
    "constant offsets of the motors, 'left' +0.016": lambda y, q: (y, q + OFFSETS[0]),
    "constant offsets of the joints, 'pitch' +0.01, 'roll' -0.02": lambda y, q: (y + OFFSETS[1], q),
    "the axis of 'left' reversed": lambda y, q: (y, q * [-1.0, 1.0]),
    "the axis of 'roll' reversed": lambda y, q: (y * [1.0, -1.0], q),
    "the readings of 'left' and 'right' exchanged": lambda y, q: (y, q[:, ::-1]),
    "the readings of 'pitch' and 'roll' exchanged": lambda y, q: (y[:, ::-1], q),
}


@pytest.mark.parametrize("text", few(CASES, list(CASES)[::2]))
def test_errors_of_readings_are_told(text):
    tr, ys = ankle(), 0.6 * POSTURES
    found = tr.check(*CASES[text](ys, readings(tr, ys)))
    assert only(found)[0] == text
    assert found.residual > 0.005
    assert f"\n  {text}: residual below 1e-9" in str(found)


def test_right_readings_and_unknown_errors_have_no_explanation():
    tr = ankle()
    q_m = readings(tr)
    assert tr.check(POSTURES, q_m).residual == 0.0
    found = tr.check(POSTURES, q_m + 1e-3 * np.random.default_rng(0).normal(size=q_m.shape))
    assert not found.explanations
    assert "No usual error of a model or of sensors explains this." in str(found)
    assert not tr.check(POSTURES[0], q_m[0] + [0.01, 0.0]).explanations  # any offsets would fit


def test_what_readings_do_not_tell_apart_is_said():
    """Linear motors that are each other's mirror image."""
    tr = ankle(pushed)
    found = tr.check(POSTURES, readings(tr)[:, ::-1])
    assert len(found.explanations) == 2
    assert str(found).endswith("do not tell these apart: take some at larger angles.")


def test_readings_of_one_joint_and_of_wrong_shape():
    tr = hc.Transmission(alone(four_barred), ["knee"])
    ys = np.array([[-0.3], [0.1], [0.4]])
    assert "'crank' +0.1" in only(tr.check(ys, readings(tr, ys) + 0.1))[0]
    for wrong, text in (((ys.T, ys), "row for each reading"), ((ys[:2], ys), "got 2 and 3"),
                        ((ys, ys * np.nan), "finite"), (("far", ys), "real")):  # fmt: skip
        with pytest.raises(hc.InputError, match=text):
            tr.check(*wrong)
    with pytest.raises(hc.BranchError, match="not reached"):
        tr.check([[40.0]], [[0.0]])
