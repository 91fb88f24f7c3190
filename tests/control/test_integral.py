"""Integral action: no error is left, and none is wound up while something limits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from limited_situations import robot
from support import few

import holoctl as hc


def heavier(mech, factor=1.3):
    """The same robot with heavier links: what the model does not know."""
    model = mech.model.copy()
    for j in range(1, model.njoints):
        inertia = model.inertias[j]
        inertia.mass = factor * inertia.mass
        model.inertias[j] = inertia
    return dataclasses.replace(mech, model=model)


def held(mech, plant, ki, duration=3.0, limits=None, step=0.0, **options):
    """A run that holds the reference (or a step away from it), and the error of its motors."""
    q, v = hc.assemble(mech)
    home, rest = mech.motor_positions(q), np.zeros(mech.nu)
    wanted = home + step
    ctl = hc.ComputedTorque(mech, 400.0, 40.0, ki=ki, limits=limits, **options)
    follow = ctl.track(lambda t: (wanted, rest, rest))
    run = hc.simulate(mech, follow, q, v, duration, plant=plant)
    return np.array([wanted - mech.motor_positions(x) for x in run.q]), run, follow


@pytest.mark.parametrize("compensation", few(["full", "gravity"], ["full"]))
def test_no_error_is_left(compensation):
    mech = hc.load(hc.robot_file("five_bar"))
    plant = heavier(mech)
    gain = 2000.0 if compensation == "full" else 800.0
    duration = 1.5 if compensation == "full" else 3.0
    off, _, _ = held(mech, plant, 0.0, duration, compensation=compensation)
    e, _, follow = held(mech, plant, gain, duration, compensation=compensation)
    assert np.abs(off[-1]).max() > 1e-4
    assert np.abs(e[-1]).max() < 0.01 * np.abs(off[-1]).max()
    assert np.abs(follow.last.integral).max() > 0.0


def test_it_does_not_wind_up():
    """A far step with weak motors: the integral of what is limited waits, and nothing overshoots
    by more than without it."""
    mech = hc.load(hc.robot_file("five_bar"))
    q, _ = hc.assemble(mech)
    hold = hc.inverse_dynamics(mech, q, np.zeros(mech.nv), np.zeros(2)).u
    limits = hc.Limits(effort=2.0 * np.abs(hold).max())
    e, run, _ = held(mech, None, 3000.0, 2.0, limits, 0.25)
    assert np.isclose(np.abs(run.u), 2.0 * np.abs(hold).max()).any()
    assert np.abs(e[-1]).max() < 2e-3
    free, _, _ = held(mech, None, 3000.0, 2.0, None, 0.25)
    v, home, rest = np.zeros(mech.nv), mech.motor_positions(q), np.zeros(2)
    unaware = hc.ComputedTorque(mech, 400.0, 40.0, ki=3000.0)
    follow = unaware.track(lambda t: (home + 0.25, rest, rest))
    most = 2.0 * np.abs(hold).max()
    clipped = hc.simulate(mech, lambda *x: np.clip(follow(*x), -most, most), q, v, 2.0)
    wound = np.array([home + 0.25 - mech.motor_positions(x) for x in clipped.q])
    assert -e.min() < 1.5 * -free.min()
    assert -e.min() < 0.85 * -wound.min()


def test_loops_and_tracking_integrate_alike():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    home, rest = mech.motor_positions(q), np.zeros(2)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0, ki=50.0, dt=2e-3)
    wanted = home + np.array([0.1, -0.05])
    follow, loop, sensed = ctl.track(lambda t: (wanted, rest, rest)), ctl.loop(), ctl.loop()
    for k in range(5):
        u = follow(0.0, q, v)
        assert np.array_equal(u, loop.torque(q, v, wanted, rest, rest))
        assert np.allclose(u, sensed.torque_from_motors(home, rest, wanted, rest, rest), atol=1e-10)
        assert loop.last.integral == pytest.approx((k + 1) * 50.0 * 2e-3 * np.array([0.1, -0.05]))
    loop.reset(q)
    assert not loop.last.integral.any()


def test_a_torque_that_remembers_nothing_refuses_an_integral():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0, ki=1.0)
    with pytest.raises(hc.InputError, match="loop"):
        ctl.torque(q, v, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])


@pytest.mark.parametrize(("name", "value"), [("ki", -1.0), ("ki", [1.0]), ("dt", 0.0), ("dt", "a")])
def test_bad_gains(name, value):
    mech = hc.load(hc.robot_file("five_bar"))
    with pytest.raises(hc.InputError, match=name):
        hc.ComputedTorque(mech, 1.0, 1.0, **{name: value})


def test_an_error_leaves_the_integral_as_it_was():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    loop = hc.ComputedTorque(mech, 100.0, 20.0, ki=50.0).loop()
    loop.torque(q, v, [0.1, 0.1], [0.0, 0.0], [0.0, 0.0])
    before = loop.last.integral
    with pytest.raises(hc.InputError):
        loop.torque(q, v, [np.nan, 0.1], [0.0, 0.0], [0.0, 0.0])
    assert np.array_equal(loop.last.integral, before)


def test_a_tick_that_is_not_the_controllers_is_refused():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    home, rest = mech.motor_positions(q), np.zeros(2)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0, ki=1.0)
    follow = ctl.track(lambda t: (home, rest, rest))
    with pytest.raises(hc.InputError, match=r"dt=0\.005"):
        hc.simulate(mech, follow, q, v, 0.1, frequency=200.0)
    with pytest.raises(hc.InputError, match="hold"):
        hc.simulate(mech, follow, q, v, 0.1, integrator=hc.Integrator(hold=False))
    first = mech.coordinate_names[0]
    limits = hc.Limits(velocity={first: 5.0})
    other = hc.ComputedTorque(mech, 100.0, 20.0, limits=limits).track(lambda t: (home, rest, rest))
    with pytest.raises(hc.InputError, match=r"dt=0\.005"):
        hc.simulate(mech, other, q, v, 0.1, frequency=200.0)
    assert hc.simulate(mech, other, q, v, 0.01).ended == ""


def test_an_error_changes_no_integral():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    home, rest = mech.motor_positions(q), np.zeros(2)
    loop = hc.ComputedTorque(mech, 400.0, 40.0, ki=100.0).loop()
    loop.torque(q, v, home + 0.1, rest, rest)
    before = loop.last.integral
    with pytest.raises(hc.InputError, match="out"):
        loop.torque(q, v, home + 0.1, rest, rest, out=np.zeros(3))
    with pytest.raises(hc.InputError, match="out"):
        loop.torque_from_motors(home, rest, home + 0.1, rest, rest, out=np.zeros(3))
    assert np.array_equal(loop.last.integral, before)


def test_redundant_motors_have_no_integral():
    """Their errors contradict each other, and no motion takes that back."""
    mech, _ = robot("five_motors")
    with pytest.raises(hc.InputError, match="redundant"):
        hc.ComputedTorque(mech, 100.0, 20.0, ki=1.0)
