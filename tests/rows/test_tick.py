"""The rows of a control tick against those of the constraints."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from inside import general_path
from support import (
    ALWAYS_GENERAL,
    ANY_STATE,
    assert_rows_close,
    closed_states,
    few,
    mechanism,
    open_states,
    prepare,
    relative,
    rows,
    shared_partition,
)
from zoo import ZOO

import holoctl as hc
import holoctl.rows.tick.fast_rows
from holoctl.base.tolerances import HALF_TURN
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.dynamics.tick import inverse_tick as module
from holoctl.rows.evaluate import rows_at
from holoctl.rows.tick.fast_rows import fast_rows
from holoctl.tree.kinematics import kinematics
from holoctl.tree.live_motion import live_motion


@pytest.mark.parametrize("name", few([n for n in ZOO if n not in ALWAYS_GENERAL]))
def test_rows_are_those_of_the_constraints(name):
    """All rows in a random order, on and off the manifold: G and drift to rounding."""
    mech, rng = mechanism(name), np.random.default_rng(5)
    data = mech.model.createData()
    m = len(mech.row_scale)
    order = rng.permutation(m)
    labels = np.array(mech.row_names)[order]
    wanted = np.append(np.arange(m * mech.nv), -1)
    fast = fast_rows(mech, live_motion(mech.model, data), order, wanted)
    largest = 0.0
    for q, v in [*closed_states(name, 20), *open_states(name, 20)]:
        t = rng.uniform()
        assert fast.evaluate(q, v, t)
        r = rows(mech, q, v, t)
        G = (mech.row_scale[:, None] * r.jacobian)[order]
        tol = 1e-14 * max(1, np.abs(G).max())
        found = fast.entries[:-1].reshape(m, -1)
        assert_rows_close(mech, found, G, tol, (q, v), what="G", labels=labels)
        right = -(mech.row_scale * r.drift)[order]
        tol = 1e-13 * (1.0 + np.abs(right).max())
        assert_rows_close(mech, fast.right, right, tol, (q, v), what="-drift", labels=labels)
        assert fast.entries[-1] == 0.0
        largest = max(largest, np.abs(right).max())
    assert largest > 0.1 or name in ("sine_gear",)


@pytest.mark.parametrize("name", few(ZOO))
def test_all_rows_are_those_of_the_constraints_anywhere(name):
    """As terms have them: on and off the manifold, at rest, and where a tick has no answer."""
    mech, rng = mechanism(name), np.random.default_rng(3)
    near = [*closed_states(name, 20)[:4], *open_states(name, 20)[:6]]
    far = [(pin.integrate(mech.model, mech.reference, 2.5 * rng.normal(size=mech.nv)),
            3.0 * rng.normal(size=mech.nv)) for _ in range(10)]  # fmt: skip
    for q, v in [*near, *far, *((q, 0.0 * v) for q, v in [*near, *far])]:
        t = rng.uniform()
        found, expected = rows_at(mech, q, v, t), rows(mech, q, v, t)
        for of in ("error", "rate", "jacobian", "drift"):
            x, y = getattr(found, of), getattr(expected, of)
            tol = 1e-12 * (1.0 + np.abs(y).max())
            assert_rows_close(mech, x, y, tol, (q, v), what=of)
            assert not x.flags.writeable
        assert not found.jacobian[expected.jacobian == 0.0].any()
        if all(type(bound) is WrenchRows for bound in mech.bound):
            kin = kinematics(mech.model, mech.model.createData(), q, v, t)
            W = np.concatenate([bound.rows(kin).wrenches for bound in mech.bound])
            assert_rows_close(mech, found.wrenches, W, 1e-12, (q, v), what="wrenches")


def test_rows_do_not_change_behind_the_caller():
    mech = mechanism("five_bar")
    states = closed_states("five_bar", 2)
    (q, v), (q2, v2) = states[0], states[1]
    T = hc.terms(mech, q, v)
    kept = [x.copy() for x in (T.error, T.rate, T.jacobian, T.drift, T.rows.wrenches)]
    J = T.kinematics.J.copy()
    hc.terms(mech, q2, v2)
    now = [T.error, T.rate, T.jacobian, T.drift, T.rows.wrenches, T.kinematics.J]
    assert all((x == y).all() for x, y in zip([*kept, J], now, strict=True))


def test_orientation_rows_have_no_answer_at_half_a_turn():
    """Where the quaternion's w vanishes; and then nothing is left over from the tick before."""
    mech, prepared = mechanism("weld_chain"), prepare("weld_chain", **ANY_STATE)
    data = mech.model.createData()
    fast = fast_rows(mech, live_motion(mech.model, data), np.arange(6), np.arange(6))
    rng, seen = np.random.default_rng(0), 0
    closed, _ = closed_states("weld_chain")[0]
    for _ in range(2000):
        q = mech.reference + 2.0 * rng.normal(size=mech.nv)
        sine = np.linalg.norm(rows(mech, q, q).error[3:]) / 2.0  # of half the angle
        there = fast.evaluate(q, q, 0.0)
        if sine > np.sqrt(1.0 - 0.99 * HALF_TURN**2):
            assert not there
            seen += 1
            try:
                expected = general_path(prepared, q, 0.0 * q, None, 0.0, None)
            except hc.SingularityError:
                continue
            prepared.holding(closed)
            assert relative(prepared.holding(q), expected) < 1e-9
        if sine < np.sqrt(1.0 - 1.01 * HALF_TURN**2):
            assert there
    assert seen > 3


def test_a_constraint_derived_from_a_coupling_is_asked_for_its_rows():
    base = mechanism("geared_slider")
    bound = base.constraints[1].bind(base.model, "gear", base.reference)

    class Bound(type(bound)):
        def rows(self, kin):
            r = super().rows(kin)
            return dataclasses.replace(
                r, error=r.error + 1.5 * kin.t**2, rate=r.rate + 3.0 * kin.t, drift=r.drift + 3.0
            )

    class Derived(hc.Coupling):
        def bind(self, model, name, reference):
            plain = super().bind(model, name, reference)
            return Bound(plain.labels, plain.of_q, plain.offset, plain.jacobian)

    gear = Derived({"wheel": 1.0, "crank": -2.0}, offset=0.1, name="gear")
    mech = dataclasses.replace(base, constraints=[base.constraints[0], gear, base.constraints[2]])
    part = shared_partition("geared_slider")
    q, v = closed_states("geared_slider")[0]
    res = hc.inverse_dynamics(mech, q, v, [1.0], partition=part)
    assert relative(hc.PreparedInverseDynamics(mech, part).torque(q, v, [1.0]), res.u) < 1e-12
    assert relative(res.u, prepare("geared_slider").torque(q, v, [1.0])) > 1e-6


def test_live_motion_is_where_pinocchio_writes():
    mech = mechanism("floating_leg")
    q, v = closed_states("floating_leg")[0]
    data = mech.model.createData()
    live = live_motion(mech.model, data)
    for a in (np.zeros(mech.nv), np.ones(mech.nv)):
        pin.computeForwardKinematicsDerivatives(mech.model, data, q, v, a)
        X = live.placements.reshape(-1, 4, 3)
        for j in range(mech.model.njoints):
            assert (data.oMi[j].rotation == X[j, :3].T).all()
            assert (data.oMi[j].translation == X[j, 3]).all()
            assert (live.velocities[j] == data.oMi[j].act(data.v[j]).vector).all()
            assert relative(live.accelerations[j], data.oMi[j].act(data.a[j]).vector) < 1e-14
        assert (live.J == data.J).all()
        assert np.shares_memory(live.J, data.J)
    assert live.bodies == mech.model.njoints
    assert live.data is data


def test_another_layout_of_pinocchio_takes_the_general_path(monkeypatch):
    prepared = prepare("five_bar")
    q, v = closed_states("five_bar")[0]
    u = prepared.torque(q, v, np.ones(2))
    for place in (module, holoctl.rows.tick.fast_rows):
        monkeypatch.setattr(place, "live_motion", lambda model, data: None)
    other = prepare("five_bar")
    assert "another layout" in other.general
    assert relative(other.torque(q, v, np.ones(2)), u) < 1e-12
