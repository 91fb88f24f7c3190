"""Impacts: rows close, energy is lost, and what cannot be is told."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from support import (
    GENERAL,
    assert_coordinates_close,
    assert_rows_close,
    closed_states,
    few,
    mechanism,
    relative,
    shared_partition,
)
from zoo import ZOO, add_body, at, feet, lump, standing_leg

import holoctl as hc


@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize("name", few(ZOO))
def test_impacts_close_the_rows_and_lose_energy(name, method):
    """G v+ = 0, momentum balance, no gain of energy, and the multiplier's sign."""
    mech, part = mechanism(name), shared_partition(name)
    rng = np.random.default_rng(3)
    lost = 0.0
    for q, _ in closed_states(name, 20):
        v = rng.normal(size=mech.nv)
        T = hc.terms(mech, q, v)
        phi_t = T.rate - T.jacobian @ T.v
        hit = hc.impulse(mech, q, v, method=method, partition=part)
        left = mech.row_scale * (T.jacobian @ hit.v + phi_t)
        assert_rows_close(mech, left, 0.0, 1e-9, (q, v), what="rate afterwards")
        assert hit.balance < 1e-10
        change = T.M @ (hit.v - v)
        assert_coordinates_close(
            mech, change, T.jacobian.T @ hit.impulses, 1e-8, (q, v), what="momentum", by_size=True
        )
        if name != "timed_arm":  # there the bench pushes
            assert hit.energy < 1e-12
        lost = min(lost, hit.energy)
        again = hc.impulse(mech, q, hit.v, method=method, partition=part)
        assert relative(again.v, hit.v) < 1e-9
        assert np.abs(again.impulses).max() < 1e-6 * (1.0 + np.abs(hit.impulses).max())
    assert lost < -1e-5 or name == "timed_arm"


def test_impacts_to_given_rates_and_restitution():
    mech = standing_leg()
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    v = np.random.default_rng(0).normal(size=mech.nv)
    v[2] = -5.0  # downwards
    T = hc.terms(mech, q, v)
    assert (T.rate[[0, 3]] < 0.0).all()
    wanted = np.array([0.1, -0.2, 0.3, 0.0, 0.5])
    for method in GENERAL:
        hit = hc.impulse(mech, q, v, wanted, method=method, partition=part)
        assert np.abs(T.jacobian @ hit.v - wanted).max() < 1e-10
    back = hc.impulse(mech, q, v, restitution={"heel": 0.4, "toe": 0.4}, partition=part)
    rate = T.jacobian @ back.v
    assert rate[[0, 3]] == pytest.approx(-0.4 * T.rate[[0, 3]])
    assert np.abs(rate[[1, 2, 4]]).max() < 1e-10
    assert back.energy < 0.0
    v_plus = np.where(np.isin(np.arange(5), [0, 3]), -0.4 * T.rate, 0.0)
    assert relative(hc.impulse(mech, q, v, v_plus, partition=part).v, back.v) < 1e-12


def test_impacts_that_cannot_be_are_told():
    mech = feet(1, 4)
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    v = np.random.default_rng(1).normal(size=mech.nv)
    v[2] = -9.0
    with pytest.raises(hc.InconsistentError, match="contradict each other"):
        hc.impulse(mech, q, v, np.arange(12.0), partition=part)
    with pytest.raises(hc.InconsistentError, match="contradict each other"):
        hc.impulse(mech, q, v, restitution={"corner_0_0": 1.0}, partition=part)
    two, q = standing_leg(), hc.assemble(standing_leg())[0]
    part = hc.partition(two, q)
    T = hc.terms(two, q, np.zeros(two.nv))
    v = -np.linalg.solve(T.M, T.jacobian[0])  # as after a kick downwards on the heel alone
    with pytest.raises(hc.InconsistentError, match="raise the kinetic energy"):
        hc.impulse(two, q, v, restitution={"heel": 1.0}, partition=part)
    assert hc.impulse(two, q, v, restitution={"heel": 0.8, "toe": 0.8}, partition=part).energy < 0
    for given, word in (
        ({"heel": 1.5}, "0 to 1"),
        ({"hell": 0.5}, "did you mean 'heel'"),
        ([0.5], "mapping"),
    ):
        with pytest.raises(hc.InputError, match=word):
            hc.impulse(two, q, v, restitution=given, partition=part)
    with pytest.raises(hc.InputError, match="not both"):
        hc.impulse(two, q, v, np.zeros(5), restitution={"heel": 0.5}, partition=part)


def test_a_full_stop_is_an_ordinary_impact():
    """v in the range of M^-1 G': everything stops, and rounding is no contradiction."""
    for name in ("standing_leg", "four_bar", "five_bar", "spatial_arms", "floating_leg", "bennett"):
        mech, part = mechanism(name), shared_partition(name)
        q, _ = closed_states(name, 20)[0]
        T = hc.terms(mech, q, np.zeros(mech.nv))
        for seed in range(5):
            kick = np.random.default_rng(seed).normal(size=len(T.error))
            v = np.linalg.solve(T.M, T.jacobian.T @ kick)
            for method in GENERAL:
                hit = hc.impulse(mech, q, v, method=method, partition=part)
                assert np.abs(hit.v).max() < 1e-9 * np.abs(v).max()
                assert hit.balance < 1e-10


def test_a_contact_that_separates_does_not_hit():
    mech = standing_leg()
    q, _ = hc.assemble(mech)
    rising = np.zeros(mech.nv)
    rising[2] = 1.0
    with pytest.raises(hc.InconsistentError, match="'heel' separates"):
        hc.impulse(mech, q, rising, restitution={"heel": 0.3})


def test_inertia_that_rows_do_not_show_is_missed_by_no_method():
    m = pin.Model()
    add_body(m, 0, pin.JointModelRZ(), at(), "light", pin.Inertia.Zero())
    add_body(m, "light", pin.JointModelRZ(), at(), "twin", lump(np.random.default_rng(0)))
    mech = hc.Mechanism(m, [], ["twin"])
    for method in ("projection", *GENERAL, "kokkevis"):
        with pytest.raises(hc.SingularityError):
            hc.forward_dynamics(mech, [0.1, 0.2], [0.3, 0.4], [1.0, 2.0], method=method)
    for method in GENERAL:
        with pytest.raises(hc.SingularityError):
            hc.impulse(mech, [0.1, 0.2], [0.3, 0.4], method=method)
    with pytest.raises(hc.SingularityError):
        hc.PreparedForwardDynamics(mech).acceleration([0.1, 0.2], [0.3, 0.4], [1.0, 2.0])


def test_mass_does_not_cost_digits():
    """The same leg, light and heavy: every method, to rounding."""
    base = feet(1, 4)
    q, v = hc.assemble(base, None, np.random.default_rng(1).normal(size=base.nv))
    part = hc.partition(base, q)
    for factor in (1e-4, 1.0, 1e4, 1e8):
        model = base.model.copy()
        for i in range(1, model.njoints):
            old = model.inertias[i]
            model.inertias[i] = pin.Inertia(factor * old.mass, old.lever, factor * old.inertia)
        mech = base.with_model(model)
        tau = factor * np.random.default_rng(2).normal(size=mech.nv)
        expected = hc.forward_dynamics(mech, q, v, tau, partition=part).a
        for method in (*GENERAL, "kokkevis", "proximal"):
            res = hc.forward_dynamics(mech, q, v, tau, method=method, partition=part)
            assert relative(res.a, expected) < 1e-9, (factor, method)
