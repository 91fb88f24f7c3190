"""The fast path of a control tick against the general one, which is its oracle."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
import zoo
from inside import fast_path, general_path
from shared_robots import SHARED_ROBOT_NAMES, shared_robot
from support import (
    ALWAYS_GENERAL,
    ANY_STATE,
    EPS,
    closed_states,
    few,
    mechanism,
    open_states,
    prepare,
    relative,
    shared_partition,
)
from zoo import ZOO

import holoctl as hc
import holoctl.rows.tick.fast_rows
from holoctl.base.linalg import cholesky
from holoctl.dynamics.actuation import actuation
from holoctl.dynamics.inverse import driven_acceleration
from holoctl.mechanism.open_tree import external_efforts
from holoctl.projector.coordinate_split import ordered


def conditions(prepared, q, v, target, t, efforts):
    """Condition numbers of what both paths do one after the other, cancellation included."""
    mech = prepared.mech
    P = hc.project(mech, q, v, partition=prepared.partition, t=t)
    act = actuation(P, prepared.weights)
    N, M = act.passive, pin.crba(mech.model, mech.model.createData(), q)
    passive = cholesky(N.T @ M @ N).condition if N.size else 1.0
    a = driven_acceleration(P, act, target, efforts, "project")
    w = pin.rnea(mech.model, mech.model.createData(), q, v, a) - efforts
    sums = np.abs(P.gamma.T @ w)  # gamma' w is a sum, whose terms may cancel
    cancelled = (np.abs(P.gamma.T) @ np.abs(w)).max() / sums.max()
    return P.condition * act.condition * passive * cancelled


def agree(prepared, states, least=0.9, t=0.3, seed=0):
    """Fast and general path over states, with random targets and known efforts."""
    mech, tick, rng = prepared.mech, fast_path(prepared), np.random.default_rng(seed)
    fast = 0
    for q, v in states:
        target, efforts = rng.normal(size=mech.nu), rng.normal(size=mech.nv)
        u = tick(q, v, target, t, efforts)
        if u is None:
            continue
        fast += 1
        expected = general_path(prepared, q, v, target, t, efforts)
        assert np.abs(expected).max() > 1e-6
        cond = conditions(prepared, q, v, target, t, efforts)
        assert relative(u, expected) < max(1e-12, 100.0 * EPS * cond)
    assert fast >= least * len(states)


# --------------------------------------------------------------------------------- the tick


@pytest.mark.parametrize(
    "which", few([slice(0, 30), slice(30, 100)], [slice(0, 30)]), ids=["first", "others"]
)
@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", few([n for n in ZOO if n not in ALWAYS_GENERAL]))
def test_the_fast_path_equals_the_general_one(name, where, which):
    states = (closed_states(name) if where == "closed" else open_states(name, 60))[which]
    prepared = prepare(name, inconsistent="project", **ANY_STATE)
    assert not prepared.general
    least = 0.9 if where == "closed" else 0.3  # far off the manifold, splits may be singular
    agree(prepared, states, least)


@pytest.mark.parametrize("name", hc.robot_names())
def test_the_fast_path_serves_our_robots(name):
    mech = hc.load(hc.robot_file(name))
    q0, _ = hc.assemble(mech)
    prepared = hc.PreparedInverseDynamics(mech, hc.partition(mech, q0))
    rng, states = np.random.default_rng(1), []
    for _ in range(10):
        guess = pin.integrate(mech.model, q0, 0.05 * rng.normal(size=mech.nv))
        states.append(hc.assemble(mech, guess, rng.normal(size=mech.nv)))
    assert not prepared.general
    agree(prepared, states)


@pytest.mark.parametrize("name", SHARED_ROBOT_NAMES)
def test_the_fast_path_serves_the_shared_robots(name):
    mech = hc.load(shared_robot(name) / "robot.urdf")
    q, v = hc.assemble(mech, None, np.random.default_rng(2).normal(size=mech.nv))
    prepared = hc.PreparedInverseDynamics(mech, hc.partition(mech, q))
    assert not prepared.general
    agree(prepared, [(q, v)])


@pytest.mark.parametrize("name", list(ALWAYS_GENERAL))
def test_what_the_fast_path_does_not_serve_is_said_and_still_right(name):
    prepared = prepare(name)
    assert ALWAYS_GENERAL[name] in prepared.general
    assert fast_path(prepared) is None
    for q, v in closed_states(name)[:5]:
        target = np.ones(prepared.mech.nu)
        res = hc.inverse_dynamics(prepared.mech, q, v, target, partition=prepared.partition)
        assert relative(prepared.torque(q, v, target), res.u) < 1e-12


def test_stabilised_constraints_take_the_general_path():
    base = mechanism("five_bar")
    loop = dataclasses.replace(base.constraints[0], t_stab=0.1)
    mech = dataclasses.replace(base, constraints=[loop])
    prepared = hc.PreparedInverseDynamics(mech)
    assert "stabilised" in prepared.general
    q, v = closed_states("five_bar")[0]
    q = q + 0.01
    plain = prepare("five_bar").torque(q, v, np.ones(2))
    stabilised = prepared.torque(q, v, np.ones(2))
    res = hc.inverse_dynamics(base, q, v, np.ones(2), partition=prepared.partition, t_stab=0.1)
    assert relative(stabilised, res.u) < 1e-12
    assert relative(stabilised, plain) > 1e-3


def test_torque_is_that_of_inverse_dynamics_with_external_forces():
    prepared = prepare("spatial_arms")
    mech, part = prepared.mech, prepared.partition
    for q, v in closed_states("spatial_arms")[:10]:
        f = {"b3": [1.0, -2.0, 3.0, 0.1, 0.2, -0.3]}
        res = hc.inverse_dynamics(mech, q, v, [1.0, 2.0, -1.0], f_ext=f, partition=part)
        P = hc.project(mech, q, v, partition=part)
        efforts = external_efforts(mech, P.kinematics, f)
        u = prepared.torque(q, v, [1.0, 2.0, -1.0], efforts=efforts)
        assert relative(u, res.u) < 1e-11
        assert relative(u, prepared.torque(q, v, [1.0, 2.0, -1.0])) > 1e-3


@pytest.mark.parametrize("n", [2, 8, 12])
def test_chains_of_loops_use_the_band(n):
    mech = zoo.in_series(n)
    q, v = hc.assemble(mech, None, np.random.default_rng(0).normal(size=mech.nv))
    part = hc.partition(mech, q)
    kept, dependent, lower, upper = ordered(mech, part)
    assert (lower, upper) == ((1, 1) if n >= 8 else (-1, -1))
    assert sorted(kept) == sorted(part.rows)
    assert sorted(dependent) == sorted(part.dependent)
    rng = np.random.default_rng(3)
    off = [(q + 0.02 * rng.normal(size=mech.nv), v) for _ in range(5)]
    agree(hc.PreparedInverseDynamics(mech, part, **ANY_STATE), [(q, v), *off])


def test_the_band_is_found_in_any_order_of_the_constraints():
    base = zoo.in_series(8)
    order = np.random.default_rng(1).permutation(8)
    gear = hc.Coupling({"crank_0": 1.0, "crank_7": 1.0}, offset=2.1, name="gear")
    mech = dataclasses.replace(
        base, constraints=[gear, *(base.constraints[i] for i in order)], actuated=base.actuated[:7]
    )
    q, v = hc.assemble(mech, None, np.random.default_rng(0).normal(size=mech.nv))
    part = hc.partition(mech, q)
    assert ordered(mech, part)[2] > 0
    agree(hc.PreparedInverseDynamics(mech, part), [(q, v)])


def test_motors_at_a_ratio_and_across_joints():
    """A general B, square: no coordinate is a motor's own."""
    base = mechanism("spatial_arms")
    rng = np.random.default_rng(4)
    B = np.zeros((base.nv, 3))
    B[:3] = rng.normal(size=(3, 3))
    B[4] = 0.3
    mech = dataclasses.replace(base, actuated=(), actuation=B)
    prepared = hc.PreparedInverseDynamics(mech)
    assert not prepared.general
    agree(prepared, closed_states("spatial_arms")[:30])


def test_redundant_motors_with_weights():
    mech = mechanism("three_motors")
    for weights in (None, [5.0, 1.0, 0.1]):
        prepared = hc.PreparedInverseDynamics(mech, shared_partition("three_motors"), weights)
        for q, v in closed_states("three_motors")[:20]:
            target = mech.B.T @ hc.inverse_dynamics(
                mechanism("five_bar"), q, v, [1.0, -2.0], partition=shared_partition("five_bar")
            ).a  # fmt: skip
            res = hc.inverse_dynamics(
                mech, q, v, target, weights=weights, partition=prepared.partition
            )
            assert fast_path(prepared)(q, v, target, 0.0, None) is not None
            assert relative(prepared.torque(q, v, target), res.u) < 1e-11
            with pytest.raises(hc.InconsistentError, match="contradict the constraints"):
                prepared.torque(q, v, [1.0, 2.0, 3.0])


def test_passive_motions_that_are_not_beside_the_motors_take_the_general_path():
    base = mechanism("floating_leg")
    B = base.B.copy()
    B[:, 0] += B[:, 1]
    mech = dataclasses.replace(base, actuated=(), actuation=B)
    with pytest.raises(hc.InputError, match="other motors"):
        hc.PreparedInverseDynamics(mech, shared_partition("floating_leg"))
    prepared = hc.PreparedInverseDynamics(mech)
    assert "passive" in prepared.general
    q, v = closed_states("floating_leg")[0]
    res = hc.inverse_dynamics(mech, q, v, np.ones(3), partition=prepared.partition)
    assert relative(prepared.torque(q, v, np.ones(3)), res.u) < 1e-12


@pytest.mark.parametrize("name", few([n for n in ZOO if n not in ALWAYS_GENERAL]))
def test_holding_is_that_of_the_general_path_in_any_order(name):
    """Far off and closed states in turn: nothing is left over from the tick before."""
    prepared, compared = prepare(name, **ANY_STATE), 0
    rest = np.zeros(prepared.mech.nv)
    turns = zip(open_states(name, 40), closed_states(name)[:40], strict=True)
    for q in [q for pair in turns for q, _ in pair]:
        try:
            expected = general_path(prepared, q, rest, None, 0.0, None)
        except hc.SingularityError:
            with pytest.raises(hc.SingularityError):
                prepared.holding(q)
            continue
        size = np.abs(
            pin.rnea(prepared.mech.model, prepared.mech.model.createData(), q, rest, rest)
        )
        P = hc.project(prepared.mech, q, rest, partition=prepared.partition)
        terms = max(np.abs(expected).max(), (np.abs(P.gamma.T) @ size).max())
        assert np.abs(prepared.holding(q) - expected).max() < 1e-10 * P.condition * terms
        compared += 1
    assert compared > 40


@pytest.mark.parametrize("name", ["five_bar", "spatial_arms", "three_motors", "standing_leg"])
def test_holding_is_the_statics(name):
    prepared = prepare(name)
    mech = prepared.mech
    for q, _ in closed_states(name)[:10]:
        rest = np.zeros(mech.nv)
        res = hc.inverse_dynamics(
            mech, q, rest, rest, coordinates="all", partition=prepared.partition
        )
        assert relative(prepared.holding(q), res.u) < 1e-10
        assert np.abs(res.u).max() > 0.1
