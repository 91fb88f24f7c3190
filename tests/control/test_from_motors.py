"""Torque from the motors alone: the same as that of the closed state."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from support import ZOO, few, mechanism, relative

import holoctl as hc


def moving(assembly, count=25):
    """What the sensors of a slow motion read, from the start."""
    x, u = assembly.readings.at(assembly.q), assembly.readings.unit
    if x.size > u.size:  # a floating base rests
        u = np.concatenate([np.zeros(7), u[6:]])
    w = np.cos(np.arange(x.size))
    m = assembly.readings.columns.size
    if x.size == m:  # slow in all coordinates: else a first reading may come from a dead point
        mech, columns = assembly.mech, assembly.readings.columns
        gamma = hc.project(mech, assembly.q, np.zeros(mech.nv)).gamma
        v = gamma @ np.linalg.lstsq(gamma[columns], u * w, rcond=None)[0]
        w = w / max(1.0, np.abs(v / mech.column_scale).max())
    rates = (u * w)[-m:] if x.size == m else np.concatenate([np.zeros(6), (u * w)[7:]])
    for k in range(count):
        yield x + 1e-3 * k * u * w, rates


def seen_by_motors(name):
    mech = mechanism(name)
    try:
        hc.ClosedStateEstimator(mech)
        hc.PreparedInverseDynamics(mech).torque(*hc.assemble(mech), np.zeros(mech.nu))
    except hc.HoloctlError:
        return False
    return True


@pytest.mark.parametrize("name", few(ZOO))
@pytest.mark.parametrize("compensation", ["full", "gravity"])
def test_it_is_the_torque_of_the_closed_state(name, compensation):
    if not seen_by_motors(name):
        pytest.skip("its motors do not see its motion, or do not drive it")
    mech = mechanism(name)
    ctl = hc.ComputedTorque(mech, kp=100.0, kd=10.0, compensation=compensation)
    loop, assembly = ctl.loop(), ctl.loop().estimator
    zero, compared = np.zeros(mech.nu), 0
    q_ref = hc.assemble(mech)[0]
    for x, rates in moving(assembly):
        try:
            q, v = assembly.state(x, rates)
        except hc.HoloctlError as error:
            with pytest.raises(type(error)):
                loop.torque_from_motors(x, rates, q_ref, zero, zero)
            break
        u = loop.torque_from_motors(x, rates, q_ref, zero, zero)
        assert relative(u, ctl.torque(q, v, q_ref, zero, zero)) < 1e-11
        compared += 1
    assert compared >= 3


def five_bar_controller(**options):
    mech = hc.load(hc.robot_file("five_bar"))
    return mech, hc.ComputedTorque(mech, kp=400.0, kd=40.0, **options)


def test_inverse_dynamics_from_motors():
    mech, _ = five_bar_controller()
    prepared, assembly = hc.PreparedInverseDynamics(mech), hc.ClosedStateEstimator(mech)
    out = np.zeros(2)
    for x, rates in moving(assembly):
        u = prepared.torque_from_motors(x, rates, [1.0, -2.0], out=out)
        assert u is out
        assert (
            relative(u, prepared.torque(*assembly.state(x, rates), np.array([1.0, -2.0]))) < 1e-11
        )


def test_every_thread_has_a_loop_of_its_own():
    mech, ctl = five_bar_controller()
    x0, found = mech.motor_positions(mech.reference), {}

    def run(sign):
        u = None
        for k in range(200):
            x = x0 + sign * 1e-3 * k
            u = ctl.torque_from_motors(x, [0.0, 0.0], x, [0.0, 0.0], [0.0, 0.0])
        found[sign] = u

    threads = [threading.Thread(target=run, args=(sign,)) for sign in (1.0, -1.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = hc.ClosedStateEstimator(mech)
    start = alone.q
    for sign, u in found.items():
        alone.reset(start)
        for k in range(200):
            q, v = alone.state(x0 + sign * 1e-3 * k)
        assert relative(u, ctl.torque(q, v, x0 + sign * 0.199, [0.0, 0.0], [0.0, 0.0])) < 1e-11


def test_another_start_and_other_sensors():
    mech, _ = five_bar_controller()
    names = [mech.coordinate_names[0], mech.coordinate_names[1]]
    q, _ = hc.assemble(mech)
    ctl = hc.ComputedTorque(
        mech, kp=400.0, kd=40.0, estimator=hc.ClosedStateEstimator(mech, names, start=q)
    )
    loop = ctl.loop()
    assert loop.measured == tuple(names)
    home = mech.motor_positions(q)
    u = loop.torque_from_motors(q[:2], [0.0, 0.0], home, [0.0, 0.0], [0.0, 0.0])
    assert relative(u, ctl.torque(q, np.zeros(4), home, [0.0, 0.0], [0.0, 0.0])) < 1e-9
    assert isinstance(pickle.loads(pickle.dumps(ctl)).estimator, hc.ClosedStateEstimator)
    assert np.array_equal(
        loop.torque(q, np.zeros(4), home, [0.0, 0.0], [0.0, 0.0]),
        ctl.torque(q, np.zeros(4), home, [0.0, 0.0], [0.0, 0.0]),
    )


def test_a_refusal_leaves_the_state_and_the_result_alone():
    mech, ctl = five_bar_controller()
    loop, out = ctl.loop(), np.array([7.0, 7.0])
    x, zero, before = mech.motor_positions(mech.reference), [0.0, 0.0], loop.estimator.q
    for bad in ([np.nan, 0.0], x + np.array([2.9, -2.9]), [0.0]):
        with pytest.raises(hc.HoloctlError):
            loop.torque_from_motors(bad, zero, x, zero, zero, out=out)
        assert np.array_equal(out, [7.0, 7.0])
        assert np.array_equal(loop.estimator.q, before)
    with pytest.raises(hc.InputError, match="a_ref"):
        loop.torque_from_motors(x, zero, x, zero, [np.nan, 0.0], out=out)
    assert np.array_equal(out, [7.0, 7.0])
    loop.torque_from_motors(x, zero, x, zero, zero, out=out)
    loop.reset(before)


def test_a_general_actuation_matrix_has_no_positions():
    mech = hc.load(hc.robot_file("five_bar"))
    mixed = hc.Mechanism(
        mech.model, mech.constraints, actuation=mech.B @ np.array([[1.0, 1.0], [1.0, -1.0]]),
        reference=mech.reference,
    )  # fmt: skip
    ctl = hc.ComputedTorque(mixed, kp=1.0, kd=1.0)
    with pytest.raises(hc.InputError, match="actuation matrix"):
        ctl.loop()
    with pytest.raises(hc.InputError, match="actuation matrix"):
        hc.PreparedInverseDynamics(mixed).torque_from_motors([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])


def test_an_assembly_of_another_mechanism_is_refused():
    _, other = five_bar_controller()
    mech, _ = five_bar_controller()
    with pytest.raises(hc.InputError, match="another mechanism"):
        hc.ComputedTorque(mech, kp=1.0, kd=1.0, estimator=hc.ClosedStateEstimator(other.mech))
    with pytest.raises(hc.InputError, match="ClosedStateEstimator"):
        hc.ComputedTorque(mech, kp=1.0, kd=1.0, estimator="motors")


def test_a_swap_of_the_partition_keeps_the_place():
    mech, ctl = five_bar_controller()
    q, _ = hc.assemble(mech)
    tracking = ctl.track_from_motors(lambda t: (mech.motor_positions(q), [0.0, 0.0], [0.0, 0.0]))
    x = mech.motor_positions(q) + 0.01
    u = tracking(0.0, x, np.zeros(2))
    again = tracking.repartitioned(q, np.zeros(4))
    assert relative(again(0.001, x, np.zeros(2)), u) < 1e-12
