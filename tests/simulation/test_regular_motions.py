"""Motions on which nothing is singular, against independent integrations and energy."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from overconstrained import drawn, meant
from scipy.integrate import solve_ivp
from support import closed_states, mechanism, together
from zoo import four_bar, tip_height

import holoctl as hc


def at_rest():
    """A four-bar without gravity: it stays as it is."""
    mech = four_bar()
    model = mech.model.copy()
    model.gravity.linear = np.zeros(3)
    mech = dataclasses.replace(mech, model=model)
    return mech, hc.assemble(mech)[0], np.zeros(3)


def integrated(mech, q, v, efforts, instants):
    """By scipy between these instants, with no step longer than 5 ms."""
    prepared = hc.PreparedForwardDynamics(mech, hc.partition(mech, q))

    def rates(t, x):
        q, v = x[:3], x[3:]
        return np.concatenate([v, prepared.acceleration(q, v, efforts(t, q, v))])

    x = np.concatenate([q, v])
    for span in pairwise(instants):
        x = solve_ivp(rates, span, x, "DOP853", rtol=1e-10, atol=1e-12, max_step=5e-3).y[:, -1]
    return x


def bump(width):
    return lambda t, q, v: np.exp(-(((t - 1.3) / width) ** 2)) * np.array([1.0, 0.0, 0.0])


def step_for(width):
    return lambda t, q, v: np.full(3, 0.02 / width) * (1.3 <= t < 1.3 + width)


@pytest.mark.parametrize("method", ["auto", "RK45", "LSODA", "Radau"])
def test_a_load_that_acts_late_and_for_short_is_not_jumped_over(method):
    mech, q, v = at_rest()
    load = bump(0.02)
    run = hc.simulate(
        mech,
        None,
        q,
        v,
        2.0,
        integrator=hc.Integrator(method=method, rtol=1e-7),
        plant=hc.Plant(efforts=load),
        output=[2.0],
    )
    expected = integrated(mech, q, v, load, [0.0, 1.2, 1.4, 2.0])
    assert np.abs(expected[3:]).max() > 0.1
    assert np.append(run.q[-1], run.v[-1]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("width", [0.3, 0.02])
def test_nor_is_one_that_sets_in_at_once(width):
    mech, q, v = at_rest()
    load = step_for(width)
    run = hc.simulate(mech, None, q, v, 2.0, plant=hc.Plant(efforts=load), output=[2.0])
    expected = integrated(mech, q, v, load, [0.0, 1.3, 1.3 + width, 2.0])
    assert np.append(run.q[-1], run.v[-1]) == pytest.approx(expected, abs=1e-6)


def late(q, v, t):
    return bump(0.02)(t, q, v)


def test_nor_a_continuous_controller_or_a_force_of_its_own():
    mech, q, v = at_rest()
    expected = integrated(mech, q, v, bump(0.02), [0.0, 1.2, 1.4, 2.0])
    analog = hc.simulate(
        mech, lambda t, q, v: late(q, v, t)[:1], q, v, 2.0, integrator=hc.Integrator(hold=False)
    )
    own = hc.simulate(mech.with_forces([hc.CustomForce(late)]), None, q, v, 2.0, output=[2.0])
    for run in (analog, own):
        assert np.append(run.q[-1], run.v[-1]) == pytest.approx(expected, abs=1e-6)


def lifted(q, t):
    return [tip_height(q, 0.0)[0] - 0.1 * np.exp(-(((t - 1.3) / 0.02) ** 2))]


def test_nor_a_constraint_that_moves_for_short():
    model = mechanism("timed_arm").model.copy()
    model.gravity.linear = np.zeros(3)
    bench = hc.Custom(lifted, time=True, scale=1.0, name="bench")
    mech = hc.Mechanism(model, [bench], ["a", "b"], reference=[1.0, -0.8, 0.4])
    q, _ = hc.assemble(mech)
    run = hc.simulate(
        mech, None, q, np.zeros(3), 2.0, integrator=hc.Integrator(rtol=1e-6), output=[1.3, 2.0]
    )
    assert run.closure.max() < 1e-9
    assert tip_height(run.q[0], 0.0)[0] == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize(
    "name", ["wohlhart", "waldron", "plane_symmetric_bricard", "delta_hinged", "locomotive_2"]
)
def test_rounded_geometry_over_full_turns_keeps_its_energy(name):
    mech = meant(drawn(name)[1], 1e-7)
    v = np.random.default_rng(0).normal(size=mech.nv) * mech.column_scale
    q, v = hc.assemble(mech, hc.assemble(mech)[0], v)
    v *= 3.0 / np.abs(v / mech.column_scale).max()
    run = hc.simulate(mech, None, q, v, 1.3, frequency=20.0)
    assert len(run.repartitions) > 0
    energy = sum(run.energy.values())
    assert np.ptp(energy) < 3e-4 * run.energy["kinetic"].max()


@pytest.mark.parametrize("rtol", [1e-3, 1e-5])
@pytest.mark.parametrize("method", ["LSODA", "BDF"])
@pytest.mark.parametrize("name", ["four_bar", "bennett"])
def test_methods_of_many_steps_are_accurate_at_coarse_tolerances(name, method, rtol):
    mech = mechanism(name)
    q, v = closed_states(name)[0]
    fine, coarse = (
        hc.simulate(mech, None, q, v, 0.3, output=[0.3], **together(**options))
        for options in ({}, {"method": method, "rtol": rtol, "atol": 1e-2 * rtol})
    )
    assert coarse.steps < 1000
    assert coarse.q == pytest.approx(fine.q, abs=1e-5)
