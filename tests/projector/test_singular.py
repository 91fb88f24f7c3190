"""Close to singular: told, never passed on as a plausible number."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from support import mechanism
from zoo import DEAD_CENTRE, add_body, at, bar, four_bar, parallelogram, slider_crank

import holoctl as hc


@pytest.mark.parametrize("angle", [1e-3, 1e-6, 1e-9, 1e-11, 1e-13])
def test_the_condition_number_grows_towards_a_dead_point(angle):
    mech = slider_crank("slider", (0.3, 1.0), (0.8, -1.1, 1.1))
    part = hc.partition(mech, hc.assemble(mech)[0])
    q = np.array([angle, -angle - np.arcsin(0.3 * np.sin(angle)), 0.0])
    q[2] = 0.3 * np.cos(angle) + np.cos(np.arcsin(0.3 * np.sin(angle)))
    ctl = hc.ComputedTorque(mech, 1.0, 1.0, partition=part)
    if angle < 5e-11:
        for call in (
            lambda: hc.inverse_dynamics(mech, q, np.zeros(3), [1.0], partition=part),
            lambda: ctl.torque(q, np.zeros(3), [q[2]], [0.0], [1.0]),
        ):
            with pytest.raises(hc.SingularityError, match="dead point"):
                call()
        return
    res = hc.inverse_dynamics(mech, q, np.zeros(3), [1.0], partition=part)
    assert 0.1 / angle < res.certificate.condition < 100.0 / angle
    assert res.certificate.ok == (res.certificate.condition <= 1e8)


def test_a_motor_on_a_locked_coordinate_drives_nothing():
    """A welded arm: gamma' B is rounding noise, of rank 0."""
    mech = four_bar()
    m = mech.model.copy()
    rng = np.random.default_rng(0)
    add_body(m, 0, pin.JointModelRZ(), at(1.0), "locked", bar(0.2))
    add_body(m, 0, pin.JointModelRY(), at(2.0), "free", bar(0.2))
    R = pin.exp3(rng.normal(size=3))
    data = m.createData()
    q0 = np.append(mech.reference, [0.7, 0.2])
    pin.forwardKinematics(m, data, q0)
    tip = data.oMi[4] * at(0.2, R=R)
    weld = hc.Closure(("universe", tip), ("locked", at(0.2, R=R)), joint="weld")
    held = hc.Mechanism(m, [*mech.constraints, weld], ["locked"], reference=q0)
    q, v = hc.assemble(held)
    assert hc.partition(held, q).actuation_rank == 0
    with pytest.raises(hc.NotActuatedError, match="drive none"):
        hc.inverse_dynamics(held, q, v, [1.0])


def test_a_split_on_one_row_is_judged_by_the_whole_row():
    """a + b + sin(c - 1) = 0.5 with c dependent, where cos(c - 1) vanishes: QR instead."""
    m = pin.Model()
    for name in "abc":
        add_body(m, 0, pin.JointModelPX(), at(), name, pin.Inertia(1.0, np.zeros(3), np.eye(3)))

    def phi(q):
        return [q[0] + q[1] + np.sin(q[2] - 1.0) - 0.5]

    mech = hc.Mechanism(m, [hc.Custom(phi)], ["a", "b"])
    part = hc.partition(mech, hc.assemble(mech)[0], independent=["a", "b"])
    e = 1e-6
    q = np.array([0.0, 0.5 - np.cos(e), 1.0 + np.pi / 2 - e])
    P = hc.project(mech, q, np.zeros(3), partition=part)
    assert P.method == "qr"
    assert hc.project(mech, q, np.zeros(3), "split", partition=part).condition > 1e5
    a = hc.forward_dynamics(mech, q, np.zeros(3), [0.0, 1.0, 3.0], partition=part).a
    assert a == pytest.approx([-0.5, 0.5, 3.0], abs=1e-5)


def test_a_chart_does_not_hide_that_the_state_is_off():
    def gamma_q(model, q0, v0):
        q, v = np.array([q0[0], q0[0] ** 2]), np.array([v0[0], 2 * q0[0] * v0[0]])
        return q, v, [[1.0], [2 * q0[0]]], [0.0, 2 * v0[0] ** 2]

    m = pin.Model()
    for name in "ab":
        add_body(m, 0, pin.JointModelPX(), at(), name, bar(0.1))
    mech = hc.Mechanism(m, [hc.GammaQ(gamma_q, ["a"])], ["a"])
    on = hc.inverse_dynamics(mech, [0.5, 0.25], [1.0, 1.0], [1.0])
    off = hc.inverse_dynamics(mech, [0.5, 2.0], [1.0, -7.0], [1.0])
    assert on.certificate.ok
    assert set(off.certificate.failures) == {"closure", "velocity_residual"}


def test_targets_that_agree_are_never_refused_for_rounding():
    """Redundant motors at nearly constant rates: target and bias cancel."""
    mech = dataclasses.replace(mechanism("four_bar"), actuated=("crank", "rocker"))
    rng = np.random.default_rng(0)
    part = hc.partition(mech, hc.assemble(mech)[0])
    for _ in range(20):
        q, v = hc.assemble(mech, [rng.uniform(0.5, 1.5), -0.5, 1.4], rng.normal(size=3))
        P = hc.project(mech, q, v, partition=part)
        a = P.gamma @ np.array([1e-13]) + P.bias
        res = hc.inverse_dynamics(mech, q, v, mech.B.T @ a, projection=P)
        assert res.certificate.ok


@pytest.mark.parametrize("speed", [0.0, 1e-15, 1e-6, 1.0, 1e2, 1e4, 1e5])
def test_the_power_balance_has_no_false_alarms(speed):
    mech = mechanism("four_bar")
    q, v = hc.assemble(mech, v_guess=[1.0, 0.0, 0.0])
    for tau in (np.zeros(3), np.array([2.0, 0.0, -1.0])):
        res = hc.forward_dynamics(mech, q, speed * v, tau)
        assert res.certificate.ok, str(res.certificate)


@pytest.mark.parametrize(("duration", "rate"), [(0.0104, 1000.0), (1e-4, 1000.0), (0.1, 33.0)])
def test_a_run_is_as_long_as_it_was_asked_to_be(duration, rate):
    mech = mechanism("four_bar")
    q, v = hc.assemble(mech)
    run = hc.simulate(mech, lambda t, q, v: [0.0], q, v, duration, frequency=rate)
    assert run.t[-1] == duration
    assert (np.diff(run.t) <= 1.0 / rate + 1e-12).all()


def test_a_tick_may_be_longer_than_a_turn():
    """A spinning free body, one tick of two seconds: the same as many short ones."""
    m = pin.Model()
    add_body(m, 0, pin.JointModelSpherical(), at(), "top", bar(0.3))
    add_body(m, "top", pin.JointModelRUBY(), at(0.1), "wheel", bar(0.1))
    mech = hc.Mechanism(m, actuated=["wheel"])
    q, v = pin.neutral(m), np.array([0.1, 10.0, 0.0, 2.0])
    long = hc.simulate(mech, lambda t, q, v: [0.0], q, v, 2.0, frequency=0.5)
    short = hc.simulate(mech, lambda t, q, v: [0.0], q, v, 2.0, frequency=50.0)
    assert np.abs(pin.difference(m, long.q[-1], short.q[-1])).max() < 1e-5


def test_couplings_that_contradict_each_other_are_called_that():
    m = mechanism("four_bar").model
    both = [hc.Coupling({"crank": 1.0, "rocker": -1.0}, c, name=f"gear {c}") for c in (0.0, 0.1)]
    with pytest.raises(hc.AssemblyError, match="couplings that contradict"):
        hc.assemble(hc.Mechanism(m, both))
    with pytest.raises(hc.AssemblyError, match="every coordinate is locked"):
        hc.assemble(mechanism("four_bar"), locked=["crank", "coupler", "rocker"])


def test_a_pendulum_that_hangs_needs_no_torque_and_that_is_certified():
    """All efforts are rounding there: what is 6e-16 N m is compared with weight times size."""
    m = pin.Model()
    j = m.addJoint(0, pin.JointModelRY(), pin.SE3.Identity(), "hang")
    m.appendBodyToJoint(j, pin.Inertia(1.0, np.array([0, 0, -0.3]), np.eye(3)), pin.SE3.Identity())
    j = m.addJoint(0, pin.JointModelPX(), pin.SE3.Identity(), "slide")
    m.appendBodyToJoint(j, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    mech = hc.Mechanism(m, actuated=["slide"])
    for angle, ok in ((0.0, True), (2.0 * np.pi, True), (1e-6, False)):
        q = np.array([angle, 0.0])
        held = hc.inverse_dynamics(mech, q, np.zeros(2), np.zeros(2), coordinates="all")
        assert held.certificate.ok == ok


# ---------------------------------------------------------------- the errors of singular states


@pytest.mark.parametrize("given_partition", [True, False])
def test_inverse_dynamics_at_the_dead_centre(given_partition):
    mech = slider_crank("slider")
    part = hc.partition(mech, hc.assemble(mech)[0]) if given_partition else None
    e = refused(
        lambda: hc.inverse_dynamics(mech, DEAD_CENTRE, np.zeros(3), [1.0], partition=part),
        hc.SingularityError, "slider_crank", "'slider'", "condition", "dead point",
    )  # fmt: skip
    assert e.condition > 1e10
    assert e.names == ("slider",)


def test_inverse_dynamics_at_the_dead_centre_is_fine_from_the_crank():
    mech = slider_crank("crank")
    assert hc.inverse_dynamics(mech, DEAD_CENTRE, np.zeros(3), [1.0]).certificate.ok


@pytest.mark.parametrize("law", ["full", "gravity"])
def test_computed_torque_at_the_dead_centre(law):
    ctl = hc.ComputedTorque(slider_crank("slider"), 100.0, 20.0, law)
    q = np.array(DEAD_CENTRE)
    e = refused(lambda: ctl.torque(q, np.zeros(3), [0.7], [0.0], [0.0]), hc.SingularityError,
                "slider_crank", "'slider'", "condition")  # fmt: skip
    assert e.condition > 1e10
    assert "slider" in e.names
    assert q.tolist() == DEAD_CENTRE


def test_a_split_that_is_singular_at_a_state():
    mech = slider_crank("slider")
    part = hc.partition(mech, hc.assemble(mech)[0])
    e = refused(
        lambda: hc.project(mech, DEAD_CENTRE, np.zeros(3), method="split", partition=part),
        hc.SingularityError, "'crank'", "'rod'", "'slider'", "condition", "method='qr'",
    )  # fmt: skip
    assert e.names == ("crank", "rod")
    assert e.condition > 1e12
    for method in ("auto", "qr", "orthonormal"):
        P = hc.project(mech, DEAD_CENTRE, np.zeros(3), method=method, partition=part)
        assert P.rank == 2


def test_independent_coordinates_that_do_not_determine_the_others():
    mech = slider_crank("crank")
    e = refused(lambda: hc.partition(mech, DEAD_CENTRE, independent=["slider"]),
                hc.SingularityError, "'slider'", "'crank'", "'rod'", "condition")  # fmt: skip
    assert e.names == ("crank", "rod")


def test_partition_of_a_folded_parallelogram():
    mech = parallelogram()
    e = refused(lambda: hc.partition(mech, [0.0, 0.0, 0.0]), hc.SingularityError, "four_bar",
                "rank 1", "2 nearby", "singular configuration")  # fmt: skip
    assert e.names == ("pin.x",)
    assert hc.partition(mech, hc.assemble(mech, [1.0, -1.0, 1.0])[0]).rank == 2


@pytest.mark.parametrize("method", ["auto", "split", "qr", "orthonormal"])
def test_projection_of_a_folded_parallelogram(method):
    """With a decision from elsewhere: the kept rows themselves are singular."""
    mech = parallelogram()
    part = hc.partition(mech, hc.assemble(mech, [1.0, -1.0, 1.0])[0])
    e = refused(
        lambda: hc.project(mech, np.zeros(3), np.zeros(3), method=method, partition=part),
        hc.SingularityError, "condition", "four_bar",
    )  # fmt: skip
    assert e.condition > 1e12
    assert e.names


def test_a_body_without_inertia():
    model = pin.Model()
    model.addJoint(0, pin.JointModelRX(), at(), "ghost")
    mech = hc.Mechanism(model, actuated=["ghost"])
    refused(lambda: hc.forward_dynamics(mech, [0.0], [0.0], [1.0]), hc.SingularityError,
            "no inertia")  # fmt: skip
