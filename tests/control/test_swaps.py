"""Laws that change their partition between ticks: the same torque before and after."""

from __future__ import annotations

import dataclasses
import pickle
import threading

import numpy as np
import overconstrained as oc
import pytest
from inside import prepared_of, workspace
from motions import along_motion
from refusals import refused
from support import few, mechanism
from zoo import slider_crank

import holoctl as hc

SAME = 1e-9  # relative to the torque, or to 1


def variants(name):
    """The motors as drawn; two more than needed, with weights; one alone; friction beside them."""
    mech = oc.drawn(name)[1]
    k = mech.nv - hc.partition(mech, hc.assemble(mech)[0]).rank
    many = dataclasses.replace(mech, actuated=mech.coordinate_names[: k + 2])
    weights = np.arange(1.0, k + 3.0)
    rubs = hc.JointFriction(viscous=0.1, coulomb=0.3)
    yield "as drawn", mech, None
    yield "with friction", mech.with_forces([rubs]), None
    yield "redundant motors", many, weights
    yield "redundant motors, friction", many.with_forces([rubs]), weights
    if k > 1:
        yield "passive", dataclasses.replace(mech, actuated=mech.actuator_names[:1]), None


def torque(law, q, v):
    """Of a reference near by, with other rates: friction is at these."""
    mech = law.mech
    rates = mech.motor_rates(v)
    return law.torque(q, v, mech.motor_positions(q) + 0.01, 0.9 * rates, np.ones(mech.nu))


def freshly(mech, law, q, v):
    """The same by the whole procedure: a partition decided here, and the general path."""
    rates = mech.motor_rates(v)
    target = 1.0 + law.kp * 0.01 - law.kd * 0.1 * rates
    part = hc.partition(mech, q)
    if mech.forces:  # at the reference: no argument of inverse_dynamics says so
        options = {"weights": law.weights, "partition": part}
        return torque(hc.ComputedTorque(mech, law.kp, law.kd, **options), q, v)
    return hc.inverse_dynamics(
        mech, q, v, target, partition=part, weights=law.weights, inconsistent="project"
    ).u


def assert_same(found, expected):
    size = max(1.0, float(np.abs(expected).max()))
    assert float(np.abs(found - expected).max()) <= SAME * size


@pytest.mark.parametrize(
    "name",
    few(["line_symmetric_bricard", "tripteron", "bennett", "locomotive_2", "wohlhart",
            "kaleidocycle_6", "bennett_chain_3"], ["line_symmetric_bricard", "tripteron"]),
)  # fmt: skip
def test_the_torque_is_the_same_before_and_after(name):
    states, swaps = list(along_motion(oc.drawn(name)[1], 400)), 0
    for what, mech, weights in variants(name):
        law = hc.ComputedTorque(mech, 20.0, 3.0, weights=weights)
        for i, (q, v, _) in enumerate(states):
            other = law.repartitioned(q, v)
            if other is not law:
                swaps += 1
                assert_same(torque(other, q, v), torque(law, q, v))
            if other is not law or i % 20 == 0:
                assert_same(torque(other, q, v), freshly(mech, law, q, v))
            law = other
        assert swaps, what


@pytest.mark.parametrize("name", few(["bennett", "kaleidocycle_6"], ["bennett"]))
def test_accelerations_are_the_same_before_and_after(name):
    mech, swaps = oc.drawn(name)[1], 0
    dynamics = first = hc.PreparedForwardDynamics(mech)
    rng = np.random.default_rng(4)
    for q, v, _ in along_motion(mech, 400):
        other, tau = dynamics.repartitioned(q, v), rng.normal(size=mech.nv)
        if other is not dynamics:
            swaps += 1
            assert_same(other.acceleration(q, v, tau), dynamics.acceleration(q, v, tau))
            fresh = hc.forward_dynamics(mech, q, v, tau, partition=hc.partition(mech, q)).a
            assert_same(other.acceleration(q, v, tau), fresh)
        dynamics = other
    assert swaps
    assert dynamics.mech is first.mech


def test_forward_dynamics_that_change_coordinates_only_keep_their_workspace():
    """Its tick knows no split: nothing is laid out anew."""
    mech = slider_crank(motor="slider")
    dynamics = hc.PreparedForwardDynamics(mech)
    rest = np.zeros(3)
    dynamics.acceleration(mech.reference, rest, rest)
    dead = np.array([1e-5, -1.4e-5, 0.7])
    other = dynamics.repartitioned(dead, rest)
    assert other is not dynamics
    assert not np.array_equal(other.partition.independent, dynamics.partition.independent)
    assert workspace(other) is workspace(dynamics)


def swapped_bricard(**options):
    """A law of Bricard's linkage, the one it gave way to, and the state where that was."""
    mech = oc.drawn("line_symmetric_bricard")[1]
    law = hc.ComputedTorque(mech, 20.0, 3.0, **options)
    for q, v, _ in along_motion(mech, 400):
        other = law.repartitioned(q, v)
        if other is not law:
            return law, other, (q, v)
    raise AssertionError("nothing was swapped")


def test_everything_else_carries_over():
    options = {
        "compensation": "gravity", "weights": [2.0], "closure_limit": 2e-3, "velocity_limit": None,
        "friction_at": "measured",
    }  # fmt: skip
    law, other, _ = swapped_bricard(**options)
    for field in dataclasses.fields(law):
        if field.name not in ("partition", "_prepared", "_law", "_local"):
            assert np.array_equal(getattr(other, field.name), getattr(law, field.name)), field.name
    before, after = prepared_of(law), prepared_of(other)
    for name in ("mech", "weights", "inconsistent", "closure_limit", "velocity_limit", "limits"):
        assert getattr(before, name) == getattr(after, name), name
    assert other.partition is after.partition is not law.partition


def test_the_new_one_is_laid_out_before_its_first_tick():
    law, other, (q, v) = swapped_bricard()
    assert workspace(prepared_of(other)) is not None
    u = torque(other, q, v)
    assert_same(torque(pickle.loads(pickle.dumps(other)), q, v), u)
    found = []
    thread = threading.Thread(target=lambda: found.append(torque(other, q, v)))
    thread.start()
    thread.join()
    assert np.array_equal(found[0], u)
    assert_same(torque(law, q, v), u)  # the old one serves as before


def test_a_prepared_one_gives_way_alone_too():
    law, other, (q, v) = swapped_bricard()
    for inconsistent in ("raise", "project"):
        prepared = hc.PreparedInverseDynamics(
            law.mech, law.partition, [3.0], inconsistent, closure_limit=None
        )
        swapped = prepared.repartitioned(q, v)
        assert swapped is not prepared
        assert (swapped.inconsistent, swapped.closure_limit) == (inconsistent, None)
        assert swapped.weights.tolist() == [3.0]
        assert np.array_equal(swapped.partition.rows, other.partition.rows)
        assert_same(swapped.torque(q, v, [1.0]), prepared.torque(q, v, [1.0]))
        assert swapped.repartitioned(q, v) is swapped


@pytest.mark.parametrize("bad", [np.zeros(2), None, "q", np.zeros((1, 5))])
def test_states_of_a_wrong_shape_are_refused(bad):
    law, _, (q, v) = swapped_bricard()
    dynamics = hc.PreparedForwardDynamics(law.mech, law.partition)
    follow = law.track(lambda t: (np.zeros(1), np.zeros(1), np.zeros(1)))
    for subject in (law, prepared_of(law), dynamics, follow):
        refused(lambda subject=subject: subject.repartitioned(bad, v), hc.InputError, "q")
        refused(lambda subject=subject: subject.repartitioned(q, bad), hc.InputError, "v")


# ------------------------------------------------------------------------------------- tracking


def standing(t):
    """A reference that can be pickled."""
    return np.array([0.1]), np.zeros(1), np.zeros(1)


def test_tracking_is_a_value():
    mech = mechanism("four_bar")
    law = hc.ComputedTorque(mech, 100.0, 20.0)
    follow = law.track(standing)
    assert isinstance(follow, hc.results.Tracking)
    assert follow.controller is law
    assert follow.reference is standing
    q, v = hc.assemble(mech)
    u = follow(0.0, q, v)
    assert np.array_equal(u, law.torque(q, v, *standing(0.0)))
    assert np.array_equal(pickle.loads(pickle.dumps(follow))(0.0, q, v), u)
    assert follow.repartitioned(q, v) is follow
    with pytest.raises(dataclasses.FrozenInstanceError):
        follow.reference = None  # type: ignore[misc]
    refused(
        lambda: hc.results.Tracking(mech, standing), hc.InputError, "controller", "ComputedTorque"
    )
    refused(lambda: hc.results.Tracking(law, 5), hc.InputError, "reference")


def test_tracking_gives_way_with_its_controller():
    law, other, (q, v) = swapped_bricard()
    follow = law.track(standing)
    swapped = follow.repartitioned(q, v)
    assert swapped is not follow
    assert swapped.reference is standing
    assert np.array_equal(swapped.controller.partition.rows, other.partition.rows)
    assert_same(swapped(0.0, q, v), follow(0.0, q, v))


def test_a_simulation_takes_it_and_hints_at_it():
    mech = mechanism("four_bar")
    law = hc.ComputedTorque(mech, 100.0, 20.0)
    q, v = hc.assemble(mech)
    home = mech.motor_positions(q)
    follow = law.track(lambda t: (home, np.zeros(1), np.zeros(1)))
    run = hc.simulate(mech, follow, q, v, 0.01)
    assert np.abs(run.q - q).max() < 1e-6
    for wrong in (law, law.torque, law.repartitioned):
        refused(lambda wrong=wrong: hc.simulate(mech, wrong, q, v, 0.01), hc.InputError,
                "controller", "track")  # fmt: skip
