"""Joints that the sheet replaces, and mimic joints."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from documents import MIMIC, URDF, YAML, placement, replaced, some_q
from inside import with_balls

import holoctl as hc
from holoctl.io.reader_limits import FREE


def turned(axis, angle):
    return pin.SE3(pin.AngleAxis(angle, np.eye(3)["xyz".index(axis)]).matrix(), np.zeros(3))


def test_spherical(robot):
    mech, before = robot(yaml=replaced("elbow", "SPHERICAL")), robot().model
    model = mech.model
    assert mech.coordinate_names == ("a", "elbow[0]", "elbow[1]", "elbow[2]", "b")
    assert (model.nq, model.nv) == (7, 5)
    assert [f.name for f in model.frames] == [f.name for f in before.frames]
    assert list(model.upperEffortLimit[:4]) == [11, 7, 7, 7]
    assert list(model.upperVelocityLimit[:4]) == [3, 5, 5, 5]
    assert list(model.damping[:4]) == [0.4, 0.2, 0.2, 0.2]
    assert list(model.upperPositionLimit[:5]) == [2, 1.01, 1.01, 1.01, 1.01]
    q = some_q(model)
    ball = pin.SE3(pin.Quaternion(q[1:5]).matrix(), np.zeros(3))
    at_zero = pin.neutral(before)
    at_zero[0] = q[0]
    link = placement(before, at_zero, "fore_a")
    assert placement(model, q, "fore_a").isApprox(link * ball)
    tip = link.actInv(placement(before, at_zero, "tip_a"))
    assert placement(model, q, "tip_a").isApprox(link * ball * tip)
    half_turn = robot(
        yaml=replaced("elbow", "SPHERICAL") + "reference: {elbow: [0, 0.707, 0, 0.707]}"
    )
    assert half_turn.reference[1:5] == pytest.approx([0, np.sqrt(0.5), 0, np.sqrt(0.5)])


@pytest.mark.parametrize("word", ["ball", "spherical"])
@pytest.mark.parametrize("axis", ['<axis xyz="0 3 4"/>', '<axis xyz="0 0 0"/>', ""])
def test_a_ball_of_a_dialect_is_one_without_an_entry(robot, word, axis):
    urdf = URDF.replace('name="elbow" type="revolute"', f'name="elbow" type="{word}"')
    urdf = urdf.replace('<axis xyz="0 3 4"/>', axis)
    asked = robot(yaml=replaced("elbow", "SPHERICAL"))
    assert robot(urdf).model == asked.model
    assert robot(urdf, replaced("elbow", "SPHERICAL")).model == asked.model
    assert robot(urdf, replaced("elbow", "FIXED")).coordinate_names == ("a", "b")
    assert robot(urdf, replaced("elbow", "UJOINT_XY")).coordinate_names[1:3] == (
        "elbow[0]",
        "elbow[1]",
    )


def test_rebuilding_without_a_ball_changes_nothing(robot):
    for free_flyer in (False, True):
        model = robot(free_flyer=free_flyer).model
        again = with_balls(model, [])
        again_and_again = with_balls(again, [])
        assert again == again_and_again
        assert list(again.frames) == list(model.frames)
        assert list(again.inertias) == list(model.inertias)
        for limits in (
            "lowerPositionLimit",
            "upperEffortLimit",
            "damping",
            "upperDryFrictionLimit",
        ):
            assert np.array_equal(getattr(again, limits), getattr(model, limits))


@pytest.mark.parametrize("by", ["UJOINT_XY", "UJOINT_xy", "ujoint_ZX", "UJOINT_yx", "UJOINT_YZ"])
def test_universal(robot, by):
    mech, before = robot(yaml=replaced("elbow", by)), robot().model
    model = mech.model
    assert mech.coordinate_names == ("a", "elbow[0]", "elbow[1]", "b")
    assert (model.nq, model.nv) == (5, 4)
    assert {"elbow", "fore_a", "tip_a", "mount"} <= {f.name for f in model.frames}
    assert list(model.upperEffortLimit[1:3]) == [7, 7]
    assert list(model.damping[1:3]) == [0.2, 0.2]
    assert list(model.upperPositionLimit[1:3]) == [FREE, FREE]
    q = some_q(model)
    at_zero = pin.neutral(before)
    at_zero[0] = q[0]
    first, second = by[-2:].lower()
    turn = turned(first, q[1]) * turned(second, q[2])
    link = placement(before, at_zero, "fore_a")
    assert placement(model, q, "fore_a").isApprox(link * turn)
    assert placement(model, q, "elbow").isApprox(link * turn)
    tip = link.actInv(placement(before, at_zero, "tip_a"))
    assert placement(model, q, "tip_a").isApprox(link * turn * tip)
    yaml = replaced("elbow", by).replace("tip_a", "elbow").replace("[b, a]", "['elbow[1]', a]")
    mech = robot(yaml=yaml + "reference: {elbow: [0.1, 0.2]}\n")
    assert mech.actuated == ("elbow[1]", "a")
    assert mech.reference[:3] == pytest.approx([0.0, 0.1, 0.2])
    mech = robot(yaml=replaced("elbow", by) + "reference: {'elbow[1]': 0.2}\n")
    assert mech.reference[:3] == pytest.approx([0.0, 0.0, 0.2])


@pytest.mark.parametrize("by", ["SPHERICAL", "UJOINT_XY", "UJOINT_ZY"])
def test_the_jacobian_of_a_replaced_joint_has_the_right_derivative(robot, by):
    """Pinocchio's composite joint fails this test, and closure rows need the derivative."""
    model = robot(yaml=replaced("elbow", by)).model
    data = model.createData()
    q, v, h = some_q(model), np.random.default_rng(1).normal(size=model.nv), 1e-5
    J = [
        pin.computeJointJacobians(model, data, pin.integrate(model, q, s * v)).copy()
        for s in (h, -h)
    ]
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    assert np.abs(data.dJ).max() > 0.1
    assert np.abs((J[0] - J[1]) / (2 * h) - data.dJ).max() < 1e-8


def test_fixed(robot):
    model, before = robot(yaml=replaced("elbow", "FIXED")).model, robot().model
    expected = pin.buildReducedModel(before, [before.getJointId("elbow")], pin.neutral(before))
    assert list(model.names) == ["universe", "a", "b"]
    assert (model.nq, model.nv) == (3, 2)
    q, v = some_q(model), np.array([0.3, -0.4])
    tau = [pin.rnea(m, m.createData(), q, v, v) for m in (model, expected)]
    assert tau[0] == pytest.approx(tau[1])
    for frame in ("elbow", "fore_a", "tip_a"):
        assert placement(model, q, frame).isApprox(placement(expected, q, frame))
    (c,) = robot(yaml=replaced("elbow", "FIXED").replace("tip_a", "elbow")).constraints
    assert c.a == "elbow"


def test_several_replacements_and_a_free_flyer(robot):
    yaml = YAML.replace("b, a", "") + "joint_name: [elbow, a, b]\n"
    mech = robot(yaml=yaml + "joint_type: [SPHERICAL, FIXED, UJOINT_ZX]\n", free_flyer=True)
    assert mech.coordinate_names[6:] == ("elbow[0]", "elbow[1]", "elbow[2]", "b[0]", "b[1]")
    mech = robot(yaml=yaml + "joint_type: [UJOINT_xz, SPHERICAL, SPHERICAL]\n")
    assert (mech.nq, mech.nv) == (10, 8)
    hc.assemble(mech)


def test_a_fixed_joint_may_become_a_ball(robot):
    yaml = YAML.replace("tip_a", "fore_a") + "joint_name: [mount]\njoint_type: [SPHERICAL]\n"
    assert "mount[2]" in robot(yaml=yaml).coordinate_names


def test_mimic_becomes_a_coupling(robot):
    mech = robot(MIMIC)
    (_, mimic) = mech.constraints
    assert mech.constraint_names == ("tip_a-arm_b", "elbow-mimic")
    assert (mimic.coefficients, mimic.offset) == ({"elbow": 1.0, "b": 2.0}, 0.3)
    assert (mech.nq, mech.nv) == (3, 3), "the continuous joint counts its turns"
    b = mech.model.getJointId("b")
    i = mech.model.idx_qs[b]
    assert mech.model.lowerPositionLimit[i] == -FREE
    assert mech.model.upperPositionLimit[i] == FREE
    assert mech.model.upperEffortLimit[mech.model.idx_vs[b]] > 1e300
    assert np.isfinite(pin.randomConfiguration(mech.model)).all()


def test_mimic_defaults_to_one_to_one(robot):
    (_, mimic) = robot(MIMIC.replace(' multiplier="-2" offset="0.3"', "")).constraints
    assert (mimic.coefficients, mimic.offset) == ({"elbow": 1.0, "b": -1.0}, 0.0)
    (_, mimic) = robot(MIMIC.replace('"-2"', '"0"')).constraints
    assert (mimic.coefficients, mimic.offset) == ({"elbow": 1.0}, 0.3)


def test_mimic_holds_when_assembled(robot):
    mech = robot(MIMIC, "closed_loop: []\ntype: []\nname_mot: [b]\n")
    q, _ = hc.assemble(mech, [0.1, 0.2, 0.4])
    assert q[1] == pytest.approx(-2 * q[2] + 0.3)
