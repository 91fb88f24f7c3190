"""Trajectories: closed at every instant, their rates and accelerations those of their positions."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pinocchio as pin
import pytest
from support import EPS, mechanism

import holoctl as hc


def robot(name):
    return hc.load(hc.robot_file(name))


def motors_at(mech, seed=0, count=4):
    """Way-points of the motors near the reference, the first one there."""
    here = mech.motor_positions(hc.assemble(mech)[0])
    size = 0.02 if mech.name == "stewart" else 0.3
    points = here + size * np.random.default_rng(seed).uniform(-1.0, 1.0, (count, mech.nu))
    points[0] = here
    return np.maximum(points, 0.01) if mech.name == "stewart" else points


def through(name):
    mech = robot(name)
    points = motors_at(mech)
    return hc.Trajectory.through(mech, points, np.linspace(0.0, 0.9, len(points))), points


@pytest.mark.parametrize("name", ["five_bar", "delta"])
def test_a_trajectory_is_closed_and_consistent_at_every_instant(name):
    there, _ = through(name)
    mech, h = there.mech, 1e-5
    for t in np.random.default_rng(1).uniform(2.0 * h, there.duration - 2.0 * h, 25):
        q, v, a = there.state(t)
        errors = hc.constraint_errors(mech, q, v)
        assert errors.closure < 1e-9, t
        assert errors.velocity_residual < 1e-7, t
        before, after = there.state(t - h), there.state(t + h)
        rate = pin.difference(mech.model, before.q, after.q) / (2.0 * h)
        np.testing.assert_allclose(rate, v, atol=1e-7 * np.abs(v).max())
        slope = (after.v - before.v) / (2.0 * h)
        np.testing.assert_allclose(slope, a, atol=1e-5 * (1.0 + np.abs(a).max()))
        q_ref, v_ref, a_ref = there.reference(t)
        np.testing.assert_allclose(q_ref, mech.motor_positions(q), atol=1e-12)
        np.testing.assert_allclose(v_ref, mech.motor_rates(v), atol=1e-12 * np.abs(v).max())
        np.testing.assert_allclose(a_ref, mech.B.T @ a, atol=1e-12 * (1.0 + np.abs(a).max()))


def test_it_leads_through_its_points_and_rests_at_both_ends():
    there, points = through("five_bar")
    for t, point in zip(np.linspace(0.0, 0.9, len(points)), points, strict=True):
        np.testing.assert_allclose(there.reference(t)[0], point, atol=1e-10)
    for t in (0.0, 0.9):
        assert np.abs(there.state(t).v).max() < 1e-9
        assert np.abs(there.state(t).a).max() < 1e-6
    for t, point in ((-1.0, points[0]), (2.0, points[-1])):
        q_ref, v_ref, a_ref = there.reference(t, 1e-3)
        np.testing.assert_allclose(q_ref, point, atol=1e-10)
        assert not v_ref.any()
        assert not a_ref.any()


def test_the_mean_acceleration_of_a_tick_ends_where_the_rates_do():
    there, _ = through("five_bar")
    dt, t = 1e-3, 0.0
    v = there.reference(-0.5 * dt)[1]
    for i in range(1000):  # over the end
        t = (i - 0.5) * dt
        _, v_ref, a_ref = there.reference(t, dt)
        np.testing.assert_allclose(v_ref, v, atol=1e-12)
        v = v_ref + dt * a_ref
    assert t > there.duration
    assert np.abs(v).max() < 1e-12


def test_efforts_are_those_of_the_inverse_dynamics():
    there, _ = through("five_bar")
    mech = there.mech
    for i in range(0, len(there.t), 17):
        given = mech, there.q[i], there.v[i], mech.B.T @ there.a[i]
        u = hc.inverse_dynamics(*given, partition=there.partition).u
        np.testing.assert_allclose(there.u[i], u, atol=1e-10 * (1.0 + np.abs(u).max()))


def test_a_controller_follows_it_in_three_lines():
    there, _ = through("five_bar")
    controller = hc.ComputedTorque(there.mech, kp=900.0, kd=60.0)
    run = hc.simulate(
        there.mech, controller.track(there.sampled(1e-3)), there.q[0], there.v[0], 0.3
    )
    off = there.mech.motor_positions(run.q[-1]) - there.reference(0.3)[0]
    assert np.abs(off).max() < 1e-4


def test_nodes_of_somebody_else_are_closed_between_them():
    there, _ = through("five_bar")
    some = slice(None, None, 25)
    nodes = there.t[some], there.q[some], there.v[some], there.a[some], there.u[some]
    other = hc.Trajectory(there.mech, *nodes)
    assert len(other.t) == 7
    assert other.duration == there.t[some][-1]
    for t in np.random.default_rng(2).uniform(0.0, other.duration, 20):
        q, v, _ = other.state(t)
        assert hc.constraint_errors(there.mech, q, v).closure < 1e-9
        np.testing.assert_allclose(q, there.state(t).q, atol=1e-3)
    for i, t in enumerate(other.t):
        np.testing.assert_allclose(other.state(t).q, other.q[i], atol=1e-11)
        np.testing.assert_allclose(other.state(t).v, other.v[i], atol=1e-9)


def test_motions_that_no_motor_drives_can_be_nodes_too():
    mech = mechanism("standing_leg")
    q = hc.assemble(mech)[0]
    falls = hc.simulate(mech, None, q, np.zeros(mech.nv), 0.05, frequency=500.0)
    part, u = hc.partition(mech, q), np.zeros((len(falls.t), mech.nu))
    fall = hc.PreparedForwardDynamics(mech, part).acceleration
    a = [fall(x, v, np.zeros(mech.nv)) for x, v in zip(falls.q, falls.v, strict=True)]
    there = hc.Trajectory(mech, falls.t, falls.q, falls.v, a, u, part)
    middle = there.state(0.0237)
    assert hc.constraint_errors(mech, middle.q, middle.v).closure < 1e-9


def test_it_prints_pickles_and_cannot_be_written_to():
    there, _ = through("delta")
    assert repr(there).startswith("<Trajectory of 'delta': 0.9 s in ")
    again = pickle.loads(pickle.dumps(there))
    for one, two in zip(there.reference(0.4, 1e-3), again.reference(0.4, 1e-3), strict=True):
        np.testing.assert_array_equal(one, two)
    sampled = pickle.loads(pickle.dumps(there.sampled(2e-3)))
    np.testing.assert_array_equal(sampled(0.4)[2], there.reference(0.4, 2e-3)[2])
    with pytest.raises(ValueError, match="read-only"):
        there.q[0] = 0.0
    with pytest.raises(AttributeError):
        there.duration = 1.0


def test_a_reference_is_quick():
    there, _ = through("delta")
    there.reference(0.1, 1e-3)
    taken = []
    for _ in range(7):
        begun = time.process_time()
        for i in range(200):
            there.reference(0.004 * i, 1e-3)
        taken.append((time.process_time() - begun) / 200.0)
    assert min(taken) < 1e-4


def test_curves_of_balls_and_free_joints_are_exact():
    from holoctl.design.paths.curve import brackets, curve_through, moved_by, seen_from

    mech = mechanism("floating_leg")
    rng = np.random.default_rng(4)
    w, d, dd = 0.3 * rng.normal(size=(3, 5, mech.nv))
    v, a = moved_by(brackets(mech), w, d, dd)
    argument = pin.ArgumentPosition.ARG1
    for i in range(5):
        W = pin.dIntegrate(mech.model, mech.reference, w[i], argument)
        np.testing.assert_allclose(v[i], W @ d[i], atol=1e-13)
    d1, dd1 = seen_from(brackets(mech), w, v, a)
    np.testing.assert_allclose(d1, d, atol=1e-12)
    np.testing.assert_allclose(dd1, dd, atol=1e-12)
    q = np.array([pin.integrate(mech.model, mech.reference, x) for x in 0.1 * w[:2]])
    curve = curve_through(mech, np.array([0.0, 0.5]), q, d[:2], dd[:2])
    for i, x in enumerate((0.0, 0.5)):
        np.testing.assert_allclose(curve.at(x).q, q[i], atol=100.0 * EPS)
        np.testing.assert_allclose(curve.at(x).v, d[i], atol=1e-12)
        np.testing.assert_allclose(curve.at(x).a, dd[i], atol=1e-10)
    h, here = 1e-5, curve.at(0.2)
    before, after = curve.at(0.2 - h), curve.at(0.2 + h)
    rate = pin.difference(mech.model, before.q, after.q) / (2.0 * h)
    np.testing.assert_allclose(rate, here.v, atol=1e-7)
    np.testing.assert_allclose((after.v - before.v) / (2.0 * h), here.a, atol=1e-6)


def test_what_is_no_trajectory_is_refused():
    mech = robot("five_bar")
    q = hc.assemble(mech)[0]
    two = np.array([q, q])
    rest, none = np.zeros((2, mech.nv)), np.zeros((2, mech.nu))
    with pytest.raises(hc.InputError, match="t must increase from 0"):
        hc.Trajectory(mech, [0.0, 0.0], two, rest, rest, none)
    with pytest.raises(hc.InputError, match=r"q must have shape \(2, 4\)"):
        hc.Trajectory(mech, [0.0, 1.0], two[:, 1:], rest, rest, none)
    with pytest.raises(hc.InputError, match="the closure error of q"):
        hc.Trajectory(mech, [0.0, 1.0], np.array([q + 0.1, q]), rest, rest, none)
    here = mech.motor_positions(q)
    for times in ([0.0, 1.0], [0.0, 0.5, 0.5], [0.1, 0.5, 0.7]):
        with pytest.raises(hc.InputError, match="times must"):
            hc.Trajectory.through(mech, [here, here + 0.1, here], times)
    there = hc.Trajectory.through(mech, [here, here + 0.1], [0.0, 0.5])
    with pytest.raises(hc.InputError, match="dt"):
        there.sampled(0.0)
    with pytest.raises(hc.InputError, match="t "):
        there.state(float("nan"))
