"""Computed torque: the error dynamics that the gains promise, in every case of actuation."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused, with_motors
from support import closed_states, few, mechanism, relative, shared_partition
from zoo import ZOO, one_of_each

import holoctl as hc


@pytest.mark.parametrize("name", few([n for n in ZOO if n != "three_motors"]))
def test_the_closed_loop_obeys_its_error_equation(name):
    """B' a = a_ref + kd (v_ref - B' v) + kp e, through the forward dynamics of the plant."""
    mech, part = mechanism(name), shared_partition(name)
    ctl = hc.ComputedTorque(mech, kp=100.0, kd=np.full(mech.nu, 20.0), partition=part)
    rng = np.random.default_rng(0)
    for q, v in closed_states(name, 20):
        q_ref = pin.integrate(mech.model, q, 0.1 * rng.normal(size=mech.nv))
        v_ref, a_ref = rng.normal(size=mech.nu), rng.normal(size=mech.nu)
        u = ctl.torque(q, v, q_ref, v_ref, a_ref)
        a = hc.forward_dynamics(mech, q, v, mech.B @ u, partition=part).a
        e = mech.B.T @ pin.difference(mech.model, q, q_ref)
        expected = a_ref + 20.0 * (v_ref - mech.B.T @ v) + 100.0 * e
        assert relative(mech.B.T @ a, expected) < 1e-8


def test_motor_positions_and_whole_configurations_are_the_same_reference():
    mech, part = mechanism("floating_leg"), shared_partition("floating_leg")
    ctl = hc.ComputedTorque(mech, 50.0, 10.0, partition=part)
    q, v = closed_states("floating_leg")[3]
    q_ref = pin.integrate(mech.model, q, 0.3 * np.ones(mech.nv))
    hip, crank, wheel = (mech.model.getJointId(n) for n in mech.actuated)
    iq = mech.model.idx_qs
    angle = np.arctan2(q_ref[iq[wheel] + 1], q_ref[iq[wheel]])
    for turns in (0.0, 2.0 * np.pi, -4.0 * np.pi):  # a continuous joint wraps
        motors = [q_ref[iq[hip]], q_ref[iq[crank]], angle + turns]
        u = ctl.torque(q, v, motors, np.zeros(3), np.zeros(3))
        whole = ctl.torque(q, v, q_ref, np.zeros(3), np.zeros(3))
        assert relative(u, whole) < 1e-10


def five_bar_with(motor):
    """The five-bar of the zoo with other motor joints, its passive joints as they are."""
    given = mechanism("five_bar").model
    m = pin.Model()
    m.gravity = given.gravity
    for j in range(1, given.njoints):
        joint = motor if given.parents[j] == 0 else pin.JointModelRZ()
        parent = m.getJointId(given.names[given.parents[j]]) if given.parents[j] else 0
        m.addJoint(parent, joint, given.jointPlacements[j], given.names[j])
        m.appendBodyToJoint(j, given.inertias[j], pin.SE3.Identity())
    return dataclasses.replace(mechanism("five_bar"), model=m, reference=None)


def test_continuous_motors_are_where_hinges_are():
    """Positions, rates, torques and the run of README's program, in angles beyond half a turn."""
    hinged, turning = five_bar_with(pin.JointModelRZ()), five_bar_with(pin.JointModelRUBZ())
    assert (turning.nq, turning.nv) == (6, 4)
    q, v = hc.assemble(hinged, mechanism("five_bar").reference, [0.3, 0.0, -0.2, 0.0])
    x = pin.integrate(turning.model, pin.neutral(turning.model), q)
    home = turning.motor_positions(x)
    np.testing.assert_allclose(home, hinged.motor_positions(q), atol=1e-14)
    assert home.tolist() == pytest.approx([q[0], q[2]])
    for a_turn_more in (2.0 * np.pi, -20.0 * np.pi):
        y = q + np.array([a_turn_more, 0.0, 0.0, 0.0])
        np.testing.assert_allclose(
            turning.motor_positions(pin.integrate(turning.model, pin.neutral(turning.model), y)),
            home, atol=1e-12,
        )  # fmt: skip
    assert turning.motor_rates(v).tolist() == hinged.motor_rates(v).tolist() == [v[0], v[2]]
    part = {m: hc.partition(m, z) for m, z in ((hinged, q), (turning, x))}
    one, two = (hc.ComputedTorque(m, 400.0, 40.0, partition=part[m]) for m in (hinged, turning))
    zero, off = np.zeros(2), np.array([0.05, -0.02])
    u = one.torque(q, v, hinged.motor_positions(q) + off, zero, zero)
    assert relative(two.torque(x, v, home + off, zero, zero), u) < 1e-12
    assert relative(two.torque(x, v, (home + off).tolist(), zero, zero), u) < 1e-12
    assert relative(two.torque(x, v, home + off + [0.0, 2.0 * np.pi], zero, zero), u) < 1e-12
    follow = two.track(lambda t: (home + 0.1 * t**3, np.full(2, 0.3 * t**2), np.full(2, 0.6 * t)))
    run = hc.simulate(turning, follow, x, 0.0 * v, duration=0.05)
    assert np.abs(turning.motor_positions(run.q[-1]) - home - 0.1 * 0.05**3).max() < 1e-6


@pytest.mark.parametrize("name", ["five_bar", "floating_leg", "three_motors"])
def test_positions_and_rates_of_many_are_those_of_one_by_one(name):
    """Coordinates are no places in q of a robot with a base, a ball and a continuous wheel."""
    mech, given = mechanism(name), closed_states(name)[:6]
    Q, V = (np.array([s[k] for s in given]) for k in range(2))
    one = [np.array(x) for x in (
        [mech.motor_positions(q) for q in Q], [mech.motor_rates(v) for v in V]
    )]  # fmt: skip
    for form in ((6,), (2, 3), (3, 1, 2)):
        for x, read, expected in zip((Q, V), (mech.motor_positions, mech.motor_rates), one,
                                     strict=True):  # fmt: skip
            found = read(x.reshape(*form, -1))
            assert found.shape == (*form, mech.nu)
            assert np.abs(found).min() > 1e-6
            np.testing.assert_allclose(found.reshape(6, -1), expected, rtol=1e-15, atol=1e-15)
            np.testing.assert_array_equal(read(x.reshape(*form, -1).tolist()), found)
    wide = np.tile(Q, 2)[:, : mech.nq].T.copy().T  # other strides
    np.testing.assert_array_equal(mech.motor_positions(wide), one[0])
    assert mech.motor_positions(Q[:0]).shape == mech.motor_rates(V[:0]).shape == (0, mech.nu)
    assert mech.motor_positions(np.zeros((0, 4, mech.nq))).shape == (0, 4, mech.nu)


def test_of_many_a_lost_robot_is_nan_and_a_wrong_one_is_named():
    mech, given = mechanism("floating_leg"), closed_states("floating_leg")[:4]
    Q, V = (np.array([s[k] for s in given]) for k in range(2))
    places = [mech.motor_positions(q) for q in Q]
    Q[1, 0], V[2, 5], V[3, 0] = np.nan, np.inf, -np.inf  # none of them of a motor
    with np.errstate(all="raise"):
        found, rates = mech.motor_positions(Q), mech.motor_rates(V)
    assert np.isnan(found).all(axis=1).tolist() == [False, True, False, False]
    assert np.isnan(rates).all(axis=1).tolist() == [False, False, True, True]
    np.testing.assert_allclose(found[[0, 2, 3]], [places[i] for i in (0, 2, 3)], rtol=1e-15)
    assert np.isfinite(rates[:2]).all()
    head = mech.model.joints[mech.model.getJointId("head")].idx_q
    wheel = mech.model.joints[mech.model.getJointId("wheel")].idx_q
    for at, kind, joint in ((head, "quaternion", "head"), (wheel, "cosine-sine pair", "wheel")):
        wrong = np.array([Q[[0, 2]], Q[[2, 3]]])
        wrong[1, 0, at] += 1.0
        with pytest.raises(hc.InputError, match=rf"^q\[1, 0\]: the {kind} of joint '{joint}'"):
            mech.motor_positions(wrong)
    for shape in (4, mech.nq + 1), (2, 2, 0):
        with pytest.raises(hc.InputError, match=r"^q .* must have shape \(\.\.\., 17\)"):
            mech.motor_positions(np.zeros(shape))
        with pytest.raises(hc.InputError, match=r"^v .* must have shape \(\.\.\., 14\)"):
            mech.motor_rates(np.zeros(shape))
    with pytest.raises(hc.InputError, match="must be an array of real numbers"):
        mech.motor_positions(np.array([["1"] * mech.nq]))


def test_of_many_a_composite_joint_is_checked_too():
    model = one_of_each()
    mech = hc.Mechanism(model, [], ["hinge", "wheel"], name="one_of_each")
    rng = np.random.default_rng(3)
    Q = np.array([
        pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv)) for _ in range(3)
    ])  # fmt: skip
    expected = [mech.motor_positions(q) for q in Q]
    np.testing.assert_allclose(mech.motor_positions(Q), expected, rtol=1e-15)
    Q[2, model.joints[model.getJointId("wrist")].idx_q + 1] += 0.5
    with pytest.raises(hc.InputError, match=r"^q\[2\]: the quaternion or .* joint 'wrist'"):
        mech.motor_positions(Q)


def reference_law(mech, part):
    """A function of (q, v, q_ref, v_ref): what a gain of one adds to the torque against gravity."""
    limits = {"closure_limit": None, "velocity_limit": None}
    weak, strong = (hc.ComputedTorque(mech, kp, 0.0, "gravity", part, **limits) for kp in (0, 1))
    rest = np.zeros(mech.nu)
    return lambda *state: strong.torque(*state, rest) - weak.torque(*state, rest)


@pytest.mark.parametrize("name", few([n for n in ZOO if n != "hung_plate"]))
def test_a_controller_reads_positions_where_the_mechanism_does(name):
    """No error at its own positions, as with the whole q. (Motors of the hung plate push along a
    free joint.)"""
    mech = mechanism(name)
    law = reference_law(mech, shared_partition(name))
    for q, v in closed_states(name)[:3]:
        there = mech.motor_positions(q)
        assert there.shape == (mech.nu,)
        assert np.abs(law(q, v, there, np.zeros(mech.nu))).max() < 1e-12
        to = pin.integrate(mech.model, q, 0.1 * mech.B.sum(axis=1))
        e = law(q, v, mech.motor_positions(to), np.zeros(mech.nu))
        np.testing.assert_allclose(e, law(q, v, to, np.zeros(mech.nu)), atol=1e-12)


def refused_motors():
    leg = mechanism("floating_leg")
    general = dataclasses.replace(
        mechanism("five_bar"), actuated=[], actuation=mechanism("five_bar").B
    )
    yield dataclasses.replace(leg, actuated=["hip", "head[1]"]), "'head.1.' .*Spherical"
    yield dataclasses.replace(leg, actuated=["base[0]"]), "'base.0.' .*FreeFlyer"
    yield general, "by a matrix"


@pytest.mark.parametrize(("mech", "words"), list(refused_motors()))
def test_motors_without_a_position_of_their_own_are_told(mech, words):
    v = np.arange(1.0, 1.0 + mech.nv)
    with pytest.raises(hc.InputError, match=words):
        mech.motor_positions(mech.reference)
    with pytest.raises(hc.InputError, match=words):
        mech.motor_positions(np.array([mech.reference, mech.reference]))
    np.testing.assert_allclose(mech.motor_rates(v), mech.B.T @ v)
    np.testing.assert_allclose(mech.motor_rates([v, 2.0 * v]), [mech.B.T @ v, mech.B.T @ v * 2.0])


@pytest.mark.parametrize("bad", [[1.0], [np.nan] * 4, "2.2", None])
def test_motor_positions_and_rates_check_what_they_are_given(bad):
    mech = mechanism("five_bar")
    with pytest.raises(hc.InputError, match=r"^q "):
        mech.motor_positions(bad)
    with pytest.raises(hc.InputError, match=r"^v "):
        mech.motor_rates(bad)


def test_motor_order_is_that_of_actuated():
    mech = mechanism("five_bar")
    swapped = dataclasses.replace(mech, actuated=mech.actuated[::-1])
    q, v = closed_states("five_bar")[0]
    args = (q, v, q, [0.1, -0.2], [1.0, 2.0])
    u = hc.ComputedTorque(mech, 10.0, 2.0).torque(*args)
    back = (q, v, q, [-0.2, 0.1], [2.0, 1.0])
    assert relative(hc.ComputedTorque(swapped, 10.0, 2.0).torque(*back), u[::-1]) < 1e-12
    assert abs(u[0] - u[1]) > 1e-3


def test_redundant_motors_share_the_effort_and_track():
    """Three motors on two motions: least norm, and the same motion as with two."""
    mech = mechanism("five_bar")
    three = dataclasses.replace(mech, actuated=("left", "right", "left_rod"))
    part = hc.partition(three, hc.assemble(three)[0])
    assert part.actuation_rank == 2
    q, v = closed_states("five_bar")[0]
    two = hc.inverse_dynamics(mech, q, v, [1.0, -2.0])
    res = hc.inverse_dynamics(three, q, v, three.B.T @ two.a, partition=part)
    assert relative(res.a, two.a) < 1e-10
    assert res.certificate.ok
    assert (res.u**2).sum() < (two.u**2).sum()
    P = hc.project(three, q, v, partition=part)
    null = np.linalg.svd(P.gamma.T @ three.B)[2][-1]
    assert abs(null @ res.u) < 1e-10 * np.abs(res.u).max()  # least norm: nothing in the null space
    with pytest.raises(hc.InconsistentError, match="contradict the constraints"):
        hc.inverse_dynamics(three, q, v, [1.0, 2.0, 3.0], partition=part)
    ctl = hc.ComputedTorque(three, 100.0, 20.0, partition=part)
    assert np.isfinite(ctl.torque(q, v, q, [0.0, 0.0, 0.1], np.zeros(3))).all()


def test_gravity_compensation_holds_still():
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    ctl = hc.ComputedTorque(mech, 40.0, 4.0, "gravity", part)
    q, _ = closed_states("five_bar")[1]
    rest = np.zeros(mech.nv)
    u = ctl.torque(q, rest, q, [0.0, 0.0], [0.0, 0.0])
    a = hc.forward_dynamics(mech, q, rest, mech.B @ u, partition=part).a
    assert np.abs(u).max() > 0.1
    assert np.abs(a).max() < 1e-10
    pushed = ctl.torque(q, rest, q + 0.1, [0.0, 0.0], [0.0, 0.0])
    assert relative(pushed - u, [4.0, 4.0]) < 1e-10


def test_a_controller_is_a_frozen_value_that_copies():

    mech = mechanism("spatial_arms")
    ctl = hc.ComputedTorque(mech, 10.0, 1.0)
    q, v = closed_states("spatial_arms")[0]
    u = ctl.torque(q, v, q, np.ones(3), np.ones(3))
    for twin in (pickle.loads(pickle.dumps(ctl)), copy.deepcopy(ctl)):
        assert (twin.torque(q, v, q, np.ones(3), np.ones(3)) == u).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        ctl.kp = 3.0


def test_weights_decide_how_redundant_motors_share():
    """Least sum w u^2 among all u that move alike: checked against a general solution."""
    mech = mechanism("five_bar")
    three = dataclasses.replace(mech, actuated=("left", "right", "left_rod"))
    part = hc.partition(three, hc.assemble(three)[0])
    q, v = closed_states("five_bar")[0]
    P = hc.project(three, q, v, partition=part)
    target = three.B.T @ hc.inverse_dynamics(mech, q, v, [1.0, -2.0]).a
    plain = hc.inverse_dynamics(three, q, v, target, projection=P)
    for w in ([1.0, 1.0, 1.0], [5.0, 1.0, 0.1], [1e-4, 1.0, 1e4]):
        res = hc.inverse_dynamics(three, q, v, target, weights=w, projection=P)
        A = P.gamma.T @ three.B
        W = np.diag(1.0 / np.array(w))
        u = W @ A.T @ np.linalg.solve(A @ W @ A.T, A @ plain.u)
        assert relative(res.u, u) < 1e-9
        assert relative(res.a, plain.a) < 1e-9
        ctl = hc.ComputedTorque(three, 0.0, 0.0, partition=part, weights=w)
        assert relative(ctl.torque(q, v, q, np.zeros(3), target), u) < 1e-9
    assert relative(res.u, plain.u) > 0.1
    with pytest.raises(hc.InputError, match="above zero"):
        hc.inverse_dynamics(three, q, v, target, weights=[1.0, 0.0, 1.0])


def test_a_general_actuation_matrix():
    """Tendons: columns of B that pull on several joints, in both directions of the law."""
    base = mechanism("spatial_arms")
    rng = np.random.default_rng(4)
    B = np.zeros((base.nv, 3))
    B[:3] = rng.normal(size=(3, 3))
    B[4] = 0.3
    tendons = dataclasses.replace(base, actuated=(), actuation=B)
    q, v = closed_states("spatial_arms")[0]
    res = hc.inverse_dynamics(tendons, q, v, [1.0, 2.0, 3.0])
    assert res.certificate.ok
    assert relative(B.T @ res.a, [1.0, 2.0, 3.0]) < 1e-9
    assert relative(hc.forward_dynamics(tendons, q, v, B @ res.u).a, res.a) < 1e-8


def test_fewer_motions_driven_than_motors_and_than_motions():
    """rho < min(nu, k): two motors geared to the same motion, and a passive one beside it."""
    mech = mechanism("floating_leg")
    B = np.zeros((mech.nv, 2))
    hip = mech.coordinate_names.index("hip")
    B[hip] = 1.0, 2.0  # two motors on one joint
    double = dataclasses.replace(mech, actuated=(), actuation=B)
    q, v = closed_states("floating_leg")[2]
    part = hc.partition(double, hc.assemble(double)[0])
    assert part.actuation_rank == 1
    res = hc.inverse_dynamics(double, q, v, [3.0, 6.0], partition=part)
    assert res.certificate.ok
    assert res.a[hip] == pytest.approx(3.0)
    assert relative(hc.forward_dynamics(double, q, v, B @ res.u, partition=part).a, res.a) < 1e-8
    assert abs(res.u[0]) > 1e-3
    with pytest.raises(hc.InconsistentError):
        hc.inverse_dynamics(double, q, v, [3.0, 5.0], partition=part)
    near = hc.inverse_dynamics(double, q, v, [3.0, 5.0], partition=part, inconsistent="project")
    assert 2.5 < near.a[hip] < 3.0


# ---------------------------------------------------------------- references that must be whole


def test_motors_without_a_position_need_a_whole_reference(s):
    mech = with_motors(s.floating, "base[5]")
    ctl = hc.ComputedTorque(mech, 1.0, 1.0)
    refused(lambda: ctl.torque(s.fq, np.zeros(14), [0.0], [0.0], [0.0]), hc.InputError,
            "'base[5]'", f"({mech.nq},)")  # fmt: skip
    assert np.isfinite(ctl.torque(s.fq, np.zeros(14), s.fq, [0.0], [0.0])).all()


def test_a_general_actuation_needs_a_whole_reference(s):
    mech = hc.Mechanism(s.mech.model, s.mech.constraints, actuation=s.B, reference=s.q)
    ctl = hc.ComputedTorque(mech, 1.0, 1.0)
    refused(lambda: ctl.torque(s.q, s.v, [1.0], [0.0], [0.0]), hc.InputError, "q_ref", "(3,)")
