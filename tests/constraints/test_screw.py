"""The screw, as a joint that closes and as one of the tree."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from support import mechanism, relative

import holoctl as hc
from holoctl.rows.tick.fast_rows import fast_rows
from holoctl.tree.live_motion import live_motion


def nut(pitch):
    """A nut that turns and slides, tied to a spindle along z by a screw."""
    link = hc.Linkage("nut")
    link.add_body("slider", 1.0, inertia=np.diag([0.01] * 3))
    link.add_body("nut", 2.0, (0.1, 0.0, 0.0), np.diag([0.02] * 3))
    link.add_joint("slide", "prismatic", "universe", "slider")
    link.add_joint("turn", "revolute", "slider", "nut")
    link.add_joint("thread", "screw", "universe", "nut", pitch=pitch)
    return link


@pytest.mark.parametrize("pitch", [0.02, -0.3])
def test_a_screw_counts_any_number_of_turns(pitch):
    mech = nut(pitch).mechanism(cut=["thread"], actuated=["turn"])
    for turns in (0.0, 0.4, 3.7, -25.2, 1000.3):
        q = np.zeros(2)
        q[mech.coordinate_names.index("turn")] = 2.0 * np.pi * turns
        q[mech.coordinate_names.index("slide")] = pitch * 2.0 * np.pi * turns
        T = hc.terms(mech, q, np.ones(2))
        assert np.abs(T.error).max() < 1e-10
        assert hc.partition(mech, q).rank == 1
        v = np.zeros(2)
        v[mech.coordinate_names.index("turn")] = 1.0
        v[mech.coordinate_names.index("slide")] = pitch
        assert np.abs(T.jacobian @ v).max() < 1e-12
        angle = hc.joint_motion(mech, "thread", q, v)
        assert np.cos(angle.value[0] - 2.0 * np.pi * turns) == pytest.approx(1.0)
        np.testing.assert_allclose(angle.rate, 1.0)


def test_a_screw_of_the_tree_is_the_screw_that_closes():
    """The same torque at the nut, cut or not, and upside down."""
    pitch, q_nut, target = 0.05, 0.7, 3.0
    closed = nut(pitch).mechanism(cut=["thread"], actuated=["turn"])
    q, v = hc.assemble(closed, np.array([pitch * q_nut, q_nut]), [2.0 * pitch, 2.0])
    expected = hc.inverse_dynamics(closed, q, v, [target]).raise_if_bad().u
    for upside in (False, True):
        link = hc.Linkage("tree")
        link.add_body("nut", 2.0, (0.1, 0.0, 0.0), np.diag([0.02] * 3))
        link.add_body("slider", 1.0, inertia=np.diag([0.01] * 3))
        ends = ("nut", "universe") if upside else ("universe", "nut")
        link.add_joint("thread", "screw", *ends, pitch=pitch)
        link.add_joint("turn", "revolute", "slider", "nut")
        link.add_joint("slide", "prismatic", "universe", "slider")
        mech = link.mechanism(cut=["slide"], actuated=["thread"])
        sign = -1.0 if upside else 1.0
        where = dict(zip(mech.coordinate_names, range(2), strict=True))
        q, v = np.zeros(2), np.zeros(2)
        q[where["thread"]], v[where["thread"]] = sign * q_nut, sign * 2.0
        q[where["turn"]], v[where["turn"]] = q_nut, 2.0
        u = hc.inverse_dynamics(mech, q, v, [sign * target]).raise_if_bad().u
        np.testing.assert_allclose(u, sign * expected, rtol=1e-9)


def test_screws_in_any_order_stay_apart():
    """Rows of a tick come in an order of their own: kept ones first, or along a band."""
    base = mechanism("screw_chain")
    loop = base.constraints[0]
    other = dataclasses.replace(loop, a=("j1", pin.SE3.Identity()), pitch=0.8, name="other")
    mech = base.with_constraints(other)
    m, data = mech.row_scale.size, mech.model.createData()
    order, wanted = np.arange(m)[::-1].copy(), np.arange(m * mech.nv)
    fast = fast_rows(mech, live_motion(mech.model, data), order, wanted)
    q, v = base.reference, np.linspace(-1.0, 1.0, mech.nv)
    assert fast.evaluate(q, v, 0.0)
    T = hc.terms(mech, q, v)
    G, right = mech.row_scale[:, None] * T.jacobian, -mech.row_scale * T.drift
    assert relative(fast.entries.reshape(m, -1), G[order]) < 1e-13
    assert relative(fast.right, right[order]) < 1e-13
    screws = [i for i, label in enumerate(mech.row_names) if label.endswith(".screw")]
    assert len(screws) == 2
    assert abs(right[screws[0]] - right[screws[1]]) > 1e-3


@pytest.mark.parametrize("pitch", [0.0, np.nan, np.inf, "1", None])
def test_a_screw_needs_a_pitch(pitch):
    link = nut(0.1)
    with pytest.raises(hc.InputError, match="pitch"):
        link.add_joint("other", "screw", "universe", "nut", pitch=pitch)
    with pytest.raises(hc.InputError, match="pitch"):
        hc.Closure("a", "b", joint="screw", pitch=pitch)
    with pytest.raises(hc.InputError, match="no other joint, has a pitch"):
        hc.Closure("a", "b", joint="revolute", pitch=0.1)
