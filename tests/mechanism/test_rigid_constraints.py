"""Pinocchio's constraint models of a mechanism give its accelerations, and the mechanism again."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from support import closed_states, mechanism, relative
from zoo import at, feet

import holoctl as hc

LOCAL, WORLD_AXES = pin.ReferenceFrame.LOCAL, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
POINT, WHOLE = pin.ContactType.CONTACT_3D, pin.ContactType.CONTACT_6D


@cache
def shipped(name):
    return hc.load(hc.robot_file(name))


def closed_state(mech, seed):
    rng = np.random.default_rng(seed)
    return hc.assemble(mech, mech.reference, rng.normal(size=mech.nv))


def theirs(model, models, q, v, tau):
    datas, data = pin.StdVec_RigidConstraintData(), model.createData()
    for one in models:
        datas.append(one.createData())
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-13, 1e-10, 30)
    return pin.constraintDynamics(model, data, q, v, tau, models, datas, settings).copy()


def in_axes(model, models, axes, reverse=False):
    """The same constraints with multipliers along other axes, and the joints exchanged."""
    found = pin.StdVec_RigidConstraintModel()
    for one in models:
        ends = [(one.joint1_id, one.joint1_placement), (one.joint2_id, one.joint2_placement)]
        (j, A), (k, B) = ends[::-1] if reverse else ends
        found.append(pin.RigidConstraintModel(one.type, model, j, A, k, B, axes))
    return found


LOOPS = sorted({*hc.robot_names()} - {"geared_arm"})


@pytest.mark.parametrize("name", LOOPS)
def test_accelerations_of_pinocchio_are_ours(name):
    mech = shipped(name)
    model, models = mech.to_pinocchio()
    for seed in range(2):
        q, v = closed_state(mech, seed)
        tau = np.random.default_rng(seed).normal(size=mech.nv)
        a = hc.forward_dynamics(mech, q, v, tau).raise_if_bad().a
        assert np.abs(a).max() > 1.0
        for axes in (LOCAL, WORLD_AXES):
            found = theirs(model, in_axes(model, models, axes), q, v, tau)
            assert relative(found, a) < 1e-9


@pytest.mark.parametrize("name", LOOPS)
def test_there_and_back(name):
    mech = shipped(name)
    model, models = mech.to_pinocchio()
    back = hc.Mechanism.from_pinocchio(model, models, mech.actuated, reference=mech.reference)
    assert back.row_names == mech.row_names
    assert [c.joint for c in back.constraints] == [c.joint for c in mech.constraints]
    q, v = closed_state(mech, 3)
    one, two = hc.terms(mech, q, v), hc.terms(back, q, v)
    for what in ("M", "h", "jacobian", "drift", "error"):
        np.testing.assert_allclose(getattr(two, what), getattr(one, what), rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["welded_arms", "spatial_arms", "foot"])
@pytest.mark.parametrize("axes", [LOCAL, WORLD_AXES])
@pytest.mark.parametrize("reverse", [False, True])
def test_welds_and_contacts_of_either_order(name, axes, reverse):
    mech = feet(1, 3) if name == "foot" else mechanism(name)
    model, models = mech.to_pinocchio()
    models = in_axes(model, models, axes, reverse and name != "foot")  # the world is joint 2
    back = hc.Mechanism.from_pinocchio(model, models, reference=mech.reference)
    again = back.to_pinocchio()[1]
    for one, other in zip(models, again, strict=True):
        assert (one.type, one.joint1_id, one.joint2_id) == (
            other.type, other.joint1_id, other.joint2_id,
        )  # fmt: skip
        assert one.joint1_placement.isApprox(other.joint1_placement, 1e-15)
        assert one.joint2_placement.isApprox(other.joint2_placement, 1e-15)
    for q, v in (closed_state(mech, seed) for seed in range(2)):
        tau = np.linspace(-1.0, 2.0, mech.nv)
        a = hc.forward_dynamics(mech, q, v, tau).a
        assert np.abs(a).max() > 0.1
        assert relative(hc.forward_dynamics(back, q, v, tau).a, a) < 1e-9
        assert relative(theirs(model, models, q, v, tau), a) < 1e-8


def test_stabilisation_is_the_same_to_first_order():
    mech = mechanism("spatial_arms")
    (tips,) = mech.constraints
    soft = hc.Mechanism(
        mech.model, [hc.Closure(tips.a, tips.b, "spherical", name="tips", t_stab=0.1)]
    )
    model, models = soft.to_pinocchio()
    assert models[0].m_baumgarte_parameters.Kp == pytest.approx(100.0)
    assert models[0].m_baumgarte_parameters.Kd == pytest.approx(20.0)
    back = hc.Mechanism.from_pinocchio(model, models)
    assert back.constraints[0].t_stab == pytest.approx(0.1)
    q, v = closed_states("spatial_arms")[0]
    v = 1e-4 * np.linspace(-1.0, 1.0, mech.nv)  # the loop opens
    tau = np.ones(mech.nv)
    wanted = hc.forward_dynamics(soft, q, v, tau).a
    effect = np.abs(wanted - hc.forward_dynamics(mech, q, v, tau).a).max()
    assert np.abs(theirs(model, models, q, v, tau) - wanted).max() < 1e-4 * effect
    models[0].m_baumgarte_parameters.Kd = 5.0
    with pytest.raises(hc.InputError, match=r"Kp = 100 and Kd = 5: .* or Kd = 20"):
        hc.Mechanism.from_pinocchio(model, models)


def test_where_a_contact_with_one_joint_is_held():
    mech = feet(1, 3)
    model, foot = mech.model.copy(), mech.to_pinocchio()[1][0]
    bare = pin.RigidConstraintModel(POINT, model, foot.joint1_id, foot.joint1_placement, LOCAL)
    q = mech.reference

    def read(one, ground=None):
        return hc.Mechanism.from_pinocchio(model, [one], reference=q, ground=ground)

    with pytest.raises(hc.InputError, match="ground='reference' holds it there"):
        read(bare)
    held = read(bare, "reference")
    assert np.abs(hc.terms(held, q, np.zeros(mech.nv)).error).max() < 1e-12
    there = held.to_pinocchio()[1][0].joint2_placement.translation
    np.testing.assert_allclose(there, foot.joint2_placement.translation, rtol=0, atol=1e-12)
    pulled = read(bare, "placement")
    assert np.abs(hc.terms(pulled, q, np.zeros(mech.nv)).error).max() > 1e-2
    assert not read(foot).to_pinocchio()[1][0].joint2_placement.isIdentity()


def test_what_the_other_side_does_not_have_is_refused_by_name():
    mech = shipped("five_bar")
    for part, words in (
        (hc.Closure("tip_left", "tip_right", "planar", name="flat"), "'flat': cut this loop at"),
        (hc.Rod("elbow_left", "elbow_right", name="tie"), "'tie': make the rod a body"),
        (hc.Contact("tip_right", tangents=False, name="table"), "'table': give it both tangents"),
        (hc.Custom(lambda q: q[:1] + q[2:3] - 3.0, name="even"), "'even': hc.forward_dynamics"),
    ):
        with pytest.raises(hc.InputError, match=words):
            mech.with_constraints(part).to_pinocchio()
    with pytest.raises(hc.InputError, match="'belt_elbow', 'belt_wrist': a relation"):
        shipped("geared_arm").to_pinocchio()
    model = mech.model.copy()

    def refused(words, **changes):
        one = pin.RigidConstraintModel(WHOLE, model, 1, at(0.1), 3, at(0.2), LOCAL)
        for name, value in changes.items():
            setattr(one, name, value)
        with pytest.raises(hc.InputError, match=words):
            hc.Mechanism.from_pinocchio(model, [one])

    refused(r"joint2_id is 9, but the model has the joints 0 to 4", joint2_id=9)
    refused("a target that moves", desired_contact_velocity=pin.Motion(np.ones(6)))
    with pytest.raises(hc.InputError, match=r"a list of pin\.RigidConstraintModel"):
        hc.Mechanism.from_pinocchio(model, [at(0.1)])
    with pytest.raises(hc.InputError, match="ground must be one of"):
        hc.Mechanism.from_pinocchio(model, [], ground="place")
