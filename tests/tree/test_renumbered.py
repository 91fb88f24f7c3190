"""Depth-first numbering: what is refused, and a model renumbered is the same model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from compare import PER_VELOCITY, ROUNDING, carried, closed_state, numbers, unlike
from zoo import (
    OP,
    SENSOR,
    add_body,
    at,
    bar,
    five_bar,
    floating_leg,
    four_bar,
    lump,
    one_of_each,
    two_hinges,
    vertical,
)

import holoctl as hc


def naive_four_bar():
    """A four-bar whose joints were added ground first: crank, rocker, coupler."""
    rng = np.random.default_rng(2)
    model = pin.Model()
    model.name = "naive"
    add_body(model, 0, pin.JointModelRZ(), at(0.0, 0.1), "crank", lump(rng))
    add_body(model, 0, pin.JointModelSpherical(), at(0.5), "rocker", lump(rng))
    add_body(model, "crank", pin.JointModelPX(), at(0.2), "coupler", lump(rng))
    add_body(model, "rocker", pin.JointModelRUBY(), at(0.1), "wheel", lump(rng))
    model.gravity.linear = np.array([1.0, -9.0, 2.0])
    for name in ("lowerPositionLimit", "upperPositionLimit", "positionLimitMargin"):
        setattr(model, name, rng.uniform(1.0, 2.0, model.nq))
    for name in PER_VELOCITY:
        setattr(model, name, rng.uniform(1.0, 2.0, model.nv))
    model.addFrame(pin.Frame("tip", model.getJointId("coupler"), 0, at(0.3, 0.1), OP))
    model.addFrame(pin.Frame("world mark", 0, 0, at(1.0), SENSOR))
    for name in ("home", "away"):
        model.referenceConfigurations[name] = pin.normalize(model, rng.normal(size=model.nq))
    return model


def test_joints_that_are_not_depth_first_are_refused_and_the_order_shown():
    model = naive_four_bar()
    assert not model.check(model.createData())  # the trap that the check is for
    valid = r"hc\.renumbered.*'crank', 'coupler', 'rocker', 'wheel'"
    with pytest.raises(hc.InputError, match=valid):
        hc.Mechanism(model)


def test_renumbered_mends_it():
    old = naive_four_bar()
    new = hc.renumbered(old)
    assert list(new.names) == ["universe", "crank", "coupler", "rocker", "wheel"]
    assert new.check(new.createData())
    assert hc.Mechanism(new).coordinate_names[:2] == ("crank", "coupler")
    assert list(old.names) == ["universe", "crank", "rocker", "coupler", "wheel"]


def test_renumbered_has_the_same_dynamics_entry_for_entry():
    old = naive_four_bar()
    new = hc.renumbered(old)
    rng = np.random.default_rng(3)
    for _ in range(5):
        q = pin.normalize(old, rng.normal(size=old.nq))
        v, a = rng.normal(size=(2, old.nv))
        expected = pin.rnea(old, old.createData(), q, v, a)
        tau = pin.rnea(new, new.createData(), *(carried(old, new, x) for x in (q, v, a)))
        assert unlike(tau, carried(old, new, expected)) < ROUNDING
        assert np.abs(tau).min() > 1e-3


def test_renumbered_has_the_right_inertia_matrix():
    """M by columns of rnea of the old model, which needs no numbering."""
    old = naive_four_bar()
    new = hc.renumbered(old)
    q = pin.normalize(old, np.random.default_rng(4).normal(size=old.nq))
    still = np.zeros(old.nv)
    data = old.createData()
    rest = pin.rnea(old, data, q, still, still).copy()
    M = np.array([
        carried(old, new, pin.rnea(old, data, q, still, e) - rest)
        for e in np.eye(old.nv)
    ])  # fmt: skip
    M = np.array([carried(old, new, column) for column in M.T])
    assert unlike(pin.crba(new, new.createData(), carried(old, new, q)), M) < ROUNDING


def test_renumbered_carries_gravity_limits_and_reference_configurations():
    old = naive_four_bar()
    new = hc.renumbered(old)
    assert new.name == old.name
    assert np.array_equal(new.gravity.vector, old.gravity.vector)
    for name in (*PER_VELOCITY, "lowerPositionLimit", "upperPositionLimit", "positionLimitMargin"):
        assert np.array_equal(getattr(new, name), carried(old, new, getattr(old, name))), name
    theirs = {e.key(): e.data() for e in old.referenceConfigurations}
    ours = {e.key(): e.data() for e in new.referenceConfigurations}
    assert ours.keys() == theirs.keys() == {"home", "away"}
    for name, q in theirs.items():
        assert np.array_equal(ours[name], carried(old, new, q))


def test_renumbered_carries_frames():
    old = naive_four_bar()
    new = hc.renumbered(old)
    q = pin.normalize(old, np.random.default_rng(6).normal(size=old.nq))
    data, moved = old.createData(), new.createData()
    pin.framesForwardKinematics(old, data, q)
    pin.framesForwardKinematics(new, moved, carried(old, new, q))
    assert [f.name for f in new.frames] == [f.name for f in old.frames]
    for f in old.frames:
        i, k = old.getFrameId(f.name, f.type), new.getFrameId(f.name, f.type)
        assert moved.oMf[k].isApprox(data.oMf[i], ROUNDING)
        assert new.names[new.frames[k].parentJoint] == old.names[f.parentJoint]


def test_renumbered_leaves_a_valid_model_as_it_is():
    for model in (floating_leg().model, five_bar().model, one_of_each()):
        q = pin.integrate(model, pin.neutral(model), np.linspace(-1.0, 1.0, model.nv))
        v = np.linspace(1.0, -2.0, model.nv)
        new = hc.renumbered(model)
        assert list(new.names) == list(model.names)
        expected = pin.rnea(model, model.createData(), q, v, v)
        assert unlike(pin.rnea(new, new.createData(), q, v, v), expected) < ROUNDING


def test_renumbered_closes_the_same_loop():
    """The four-bar of the zoo, its joints in the naive order, gives the torque of the zoo."""
    zoo = four_bar()
    naive = vertical(pin.Model())
    add_body(naive, 0, pin.JointModelRZ(), at(), "crank", bar(0.2))
    add_body(naive, 0, pin.JointModelRZ(), at(0.5), "rocker", bar(0.4, 1.5))
    add_body(naive, "crank", pin.JointModelRZ(), at(0.2), "coupler", bar(0.5, 2.0))
    model = zoo.model.copy()
    for j in (1, 2, 3):
        naive.inertias[naive.getJointId(model.names[j])] = model.inertias[j]
        naive.jointPlacements[naive.getJointId(model.names[j])] = model.jointPlacements[j]
    with pytest.raises(hc.InputError, match="renumbered"):
        dataclasses.replace(zoo, model=naive)
    mended = dataclasses.replace(zoo, model=hc.renumbered(naive))
    state = closed_state(zoo)
    one, two = numbers(zoo, *state), numbers(mended, *state)
    assert all(unlike(two[k], one[k]) < ROUNDING for k in one)


def mimicking():
    """A tree in which the second hinge mimics the first."""
    return pin.transformJointIntoMimic(two_hinges(), 1, 2, 2.0, 0.1)


@pytest.mark.parametrize("use", [hc.Mechanism, hc.renumbered])
def test_mimic_joints_are_refused(use):
    with pytest.raises(hc.InputError, match=r"mimic.*Coupling"):
        use(mimicking())
