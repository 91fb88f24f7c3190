"""Whole steps and rows in machine code, as a simulation asks for them."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from expressed import EXPRESSED, case, compiled, states
from support import closed_states, few, mechanism, relative, together

import holoctl as hc
from holoctl.codegen.compiled import extension
from holoctl.codegen.compiled.simulation_steps import rows_of, step_of
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws.tangent_step import placed_function
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.simulation import simulate as driver
from holoctl.simulation.explicit_steps import (
    DOP853,
    DORMAND_PRINCE,
    by_slopes,
    in_tangent_space,
)

FORWARD = ("forward_dynamics",)


def efforts(mech):
    return 0.3 * np.cos(np.arange(mech.nu))


def simulated(name, **more):
    mech, _ = case(name)
    q, v = states(name, "closed", 1)[0]
    u = efforts(mech)
    return hc.simulate(mech, lambda t, q, v: u * np.cos(20.0 * t), q, v, 0.02, **together(**more))


QUICK = (
    "four_bar", "five_bar", "floating_leg", "standing_leg", "screw_chain",
    "timed_arm_expressed", "weighted",
)  # fmt: skip


@pytest.mark.parametrize("name", few(EXPRESSED, ["four_bar", "floating_leg"]))
def test_a_simulation_is_the_same_with_and_without(name):
    plain = simulated(name)
    f = compiled(name, FORWARD)
    quick = simulated(name, dynamics=f)
    assert np.abs(quick.q - plain.q).max() < 1e-9
    assert relative(quick.v, plain.v) < 1e-9
    assert quick.closure.max() < 1e-9
    assert quick.steps == plain.steps


@pytest.mark.parametrize("method", [DORMAND_PRINCE, DOP853], ids=lambda m: m.name)
@pytest.mark.parametrize("name", few(EXPRESSED, QUICK))
def test_a_step_is_that_of_its_stages(name, method):
    mech, _ = case(name)
    f = compiled(name, FORWARD)
    step, before = step_of(f), f.fallbacks
    tau, nv, h = mech.B @ efforts(mech), mech.nv, 0.003
    stages = by_slopes(in_tangent_space(mech)(lambda t, q, v: f.forward_dynamics(q, v, tau, t)))
    for q, v in states(name, "closed", 3):
        expected = stages(method, 0.1, q, v, None, h)
        for first in (None, expected[2][0].copy()):
            x, last = np.full((2, 2 * nv), np.nan)
            K = np.full((method.C.size + 1, 2 * nv), np.nan)
            good = step(q, v, tau, 0.1, h, method.A, method.B, method.C, first, x, last, K)
            assert good == (f.fallbacks == before)
            if good:
                for found, wanted in zip((x, last, K), expected, strict=True):
                    assert relative(found, wanted) < 1e-9


@pytest.mark.parametrize("name", few(EXPRESSED, QUICK))
@pytest.mark.parametrize("where", ["closed", "open"])
def test_rows_are_those_of_python(name, where):
    mech, _ = case(name)
    rows = rows_of(compiled(name, FORWARD))
    for q, v in states(name, where, 5):
        found, expected = rows(q, v, 0.3), scaled_rows_at(mech, q, v, 0.3)
        for x, y in zip(found, expected, strict=True):
            assert x.shape == y.shape
            assert np.abs(x - y).max(initial=0.0) < 1e-11 * (1.0 + np.abs(y).max(initial=0.0))


@pytest.mark.parametrize("size", few([0.0, 1e-12, 1e-8, 1e-4, 1e-2, 0.3, 1.0], [0.0, 1e-8, 0.3]))
def test_where_a_step_leads_is_that_of_pinocchio(size):
    mech, _ = case("every_joint")
    place, rng = placed_function(symbolic(mech)), np.random.default_rng(4)
    for q0, _ in states("every_joint", "open", 5):
        d, v = size * rng.uniform(-1.0, 1.0, mech.nv), rng.normal(size=mech.nv)
        q, rate, guard = (np.array(x).ravel() for x in place(q0, np.concatenate([d, v])))
        assert guard < 1.0
        assert np.abs(q - pin.integrate(mech.model, q0, d)).max() < 1e-14
        ahead, behind = (
            pin.difference(mech.model, q, pin.integrate(mech.model, q0, d + e * rate)) / e
            for e in (1e-5, -1e-5)
        )
        assert np.abs(0.5 * (ahead + behind) - v).max() < 1e-8


def test_a_turn_that_is_too_far_is_in_doubt():
    mech, _ = case("every_joint")
    place = placed_function(symbolic(mech))
    d = np.zeros(2 * mech.nv)
    d[mech.coordinate_names.index("j12[0]")] = 2.5
    assert float(place(mech.reference, d)[2]) > 1.0


# ----------------------------------------------------------------------------------------- guard


def dead(mech):
    """The four-bar with its partition at a dead point of the crank's."""
    rocker = dataclasses.replace(mech, actuated=["rocker"])
    return rocker, hc.assemble(rocker, [0.9, 0.0, 1.6], locked=["coupler"])[0]


def stepped(f, q, v, tau):
    K, x, last = np.empty((7, 2 * v.size)), np.empty(2 * v.size), np.empty(2 * v.size)
    m = DORMAND_PRINCE
    return step_of(f)(q, v, tau, 0.0, 1e-3, m.A, m.B, m.C, None, x, last, K)


def test_what_is_not_finite_is_in_doubt():
    f = compiled("four_bar", FORWARD)
    q, v = closed_states("four_bar")[0]
    tau = np.ones(3)
    assert stepped(f, q, v, tau) is True
    for i in range(3):
        for wrong in (np.nan, np.inf, 1e200):
            given = [q.copy(), v.copy(), tau.copy()]
            given[i][1] = wrong
            assert stepped(f, *given) is False


def test_rows_in_doubt_come_from_python_and_are_counted():
    mech, _ = case("floating_leg")
    f = pickle.loads(pickle.dumps(compiled("floating_leg", FORWARD)))
    rows, (q, v) = rows_of(f), states("floating_leg", "closed", 1)[0]
    rows(q, v, 0.0)
    assert f.fallbacks == 0
    v = np.full(mech.nv, np.nan)
    assert np.isnan(rows(q, v, 0.0).rate).any()
    assert f.fallbacks == 1


def test_near_a_dead_point_of_the_split_python_steps():
    mech, q = dead(mechanism("four_bar"))
    part = dataclasses.replace(
        hc.partition(mech, q),
        independent=np.array([2]), dependent=np.array([0, 1]), chosen=True,
    )  # fmt: skip
    f = hc.compile(mech, FORWARD, partition=part, flags=["-O0"])
    coupler = np.array([0.0, 1.0, 0.0])
    near, v = hc.assemble(mech, q + 1e-7 * coupler, coupler, locked=["coupler"])
    assert stepped(f, near, v, np.zeros(3)) is False


def test_a_simulation_through_doubt_is_the_same(monkeypatch):
    """Every third step is in doubt: the stages one by one give the same."""
    calls, of_compiled = [], driver.step_of

    def doubtful(f):
        step = of_compiled(f)

        def sometimes(*given):
            calls.append(given)
            return len(calls) % 3 != 0 and step(*given)

        return sometimes

    f = compiled("five_bar", FORWARD)
    plain = simulated("five_bar", dynamics=f)
    monkeypatch.setattr(driver, "step_of", doubtful)
    other = simulated("five_bar", dynamics=f)
    assert len(calls) == 20
    assert np.abs(other.q - plain.q).max() < 1e-14
    assert (other.steps, other.evaluations) == (plain.steps, plain.evaluations)


def test_arrays_that_do_not_fit_are_refused():
    f = compiled("four_bar", FORWARD)
    q, v = closed_states("four_bar")[0]
    with pytest.raises(TypeError, match="contiguous and large enough"):
        stepped(f, q[:2], v, np.ones(3))
    with pytest.raises(TypeError, match="takes q, v, tau"):
        step_of(f)(q, v)


# -------------------------------------------------------------------------------- other efforts


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("hold", [False, True])
def test_loads_and_continuous_controllers_are_the_same_with_and_without(loads, hold):
    more = {"hold": hold, "frequency": 100.0}
    if loads:
        more["efforts"] = lambda t, q, v: -0.1 * v
    plain, quick = (
        simulated("five_bar", **more, **d)
        for d in ({}, {"dynamics": compiled("five_bar", FORWARD)})
    )
    assert np.abs(quick.q - plain.q).max() < 1e-9


def test_other_efforts_on_the_way_are_seen_by_the_next_step():
    """The first slope of a tick is the last one's with the new efforts, solved for again."""
    name = "five_bar"
    mech, _ = case(name)
    q, v = states(name, "closed", 1)[0]
    push = [np.array([1.0, -2.0]), np.array([-40.0, 30.0])]

    def controller(t, q, v):
        return push[round(t * 1000.0) % 2]

    run = hc.simulate(mech, controller, q, v, 0.01)
    slow = hc.simulate(
        mech, controller, q, v, 0.01, plant=hc.Plant(efforts=lambda t, q, v: np.zeros(mech.nv))
    )
    assert np.abs(run.q - slow.q).max() < 1e-13
    assert run.evaluations < slow.evaluations


# ------------------------------------------------------------------------------------- building


def test_it_pickles_and_copies():
    f = compiled("four_bar", FORWARD)
    run = simulated("four_bar", dynamics=f)
    assert run.t.size == 21
    for twin in (copy.copy(f), copy.deepcopy(f)):
        assert (simulated("four_bar", dynamics=twin).q == run.q).all()
    twin = pickle.loads(pickle.dumps(f))
    q, v = closed_states("four_bar")[0]
    again = hc.simulate(
        twin.mech, lambda t, q, v: efforts(twin.mech) * np.cos(20.0 * t), q, v, 0.02, plant=twin
    )
    q, v = states("four_bar", "closed", 1)[0]
    assert (again.q == run.q).all()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", few(["four_bar", "floating_leg"], ["four_bar"]))
def test_compilers_agree(monkeypatch, compiler, name):
    if extension.shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    plain = simulated(name)
    monkeypatch.setenv("CC", compiler)
    mech, part = case(name)
    f = hc.compile(mech, FORWARD, partition=part)
    assert np.abs(simulated(name, dynamics=f).q - plain.q).max() < 1e-9
