"""The laws that hold with forces, over the zoo: every force on every mechanism."""

from __future__ import annotations

import pickle

import numpy as np
import pinocchio as pin
import pytest
from all_forces import AT_T, forced, wind
from inside import fast_path, general_path
from scipy.linalg import null_space
from support import (
    ALWAYS_GENERAL,
    ANY_STATE,
    closed_states,
    few,
    mechanism,
    open_states,
    relative,
)
from zoo import ZOO

import holoctl as hc
from holoctl.tree.kinematics import kinematics

NAMES = list(ZOO)
FEW = ("four_bar", "five_bar_revolute", "universal_rods", "standing_leg", "three_motors", "bricard")
METHODS = ("direct", "range_space", "null_space")


@pytest.fixture(params=few(NAMES))
def mech(request):
    return forced(request.param)


def states(mech, name, count=4):
    return closed_states(name, 20)[:count]


def at_states(request_name, count=4):
    return closed_states(request_name)[:count]


@pytest.fixture
def name(request):
    return request.node.callspec.params["mech"]


def test_every_force_acts(mech, name):
    """Guard: what is compared below is not zero."""
    q, v = closed_states(name, 20)[0]
    kin = kinematics(mech.model, mech.model.createData(), q, v, AT_T)
    for force, label in zip(mech.bound_forces, mech.force_names, strict=True):
        if label != "rope":  # it may be slack
            assert np.abs(force.at(kin).total).max() > 1e-3, label


def test_springs_are_the_gradient_of_what_they_store(mech, name):
    data = mech.model.createData()
    for q, v in closed_states(name, 20)[:4]:
        kin = kinematics(mech.model, data, q, v, AT_T)
        for force, label in zip(mech.bound_forces, mech.force_names, strict=True):

            def stored(s, force=force, q=q, v=v):
                there = pin.integrate(mech.model, q, s * v)
                return force.energy(kinematics(mech.model, data, there, v, AT_T))

            h = 1e-3 / max(1.0, np.abs(v).max())
            rate = (8 * (stored(h) - stored(-h)) - (stored(2 * h) - stored(-2 * h))) / (12 * h)
            springs = force.at(kin).springs
            size = 1.0 + np.abs(springs) @ np.abs(v)
            assert abs(rate + springs @ v) < 1e-9 * size, label


def test_losses_take_energy(mech, name):
    for q, v in closed_states(name, 20)[:4]:
        kin = kinematics(mech.model, mech.model.createData(), q, v, AT_T)
        for force, label in zip(mech.bound_forces, mech.force_names, strict=True):
            assert force.at(kin).losses @ v <= 0.0, label


def test_derivative_by_velocity(mech, name):
    for q, v in closed_states(name, 20)[:2]:
        T, h = hc.terms(mech, q, v, t=AT_T), 1e-5
        if mech.chart is not None:
            continue  # it moves v
        columns = [
            (hc.terms(mech, q, v + h * e, t=AT_T).F - hc.terms(mech, q, v - h * e, t=AT_T).F)
            / (2.0 * h)
            for e in np.eye(mech.nv)
        ]
        assert relative(T.F_v, np.column_stack(columns)) < 1e-6


def test_forward_is_the_inverse_of_inverse(mech, name):
    for q, v in closed_states(name, 20)[:4]:
        P = hc.project(mech, q, v, partition=hc.partition(mech, q), t=AT_T)
        target = np.linspace(-1.0, 2.0, mech.nu)
        there = hc.inverse_dynamics(
            mech, q, v, target, inconsistent="project", projection=P, t=AT_T
        )
        back = hc.forward_dynamics(mech, q, v, mech.B @ there.u, projection=P, t=AT_T)
        condition = max(there.certificate.condition, back.certificate.condition)
        assert relative(back.a, there.a) < 1e-12 * max(1.0, 1e-2 * condition)
        if name != "timed_arm":  # its states are closed at t = 0
            assert there.certificate.ok, there.certificate
            assert back.certificate.ok, back.certificate


def test_every_method_gives_the_same(mech, name):
    for q, v in closed_states(name, 20)[:3]:
        part, tau = hc.partition(mech, q), np.linspace(-3.0, 2.0, mech.nv)
        T = hc.terms(mech, q, v, t=AT_T)
        a = hc.forward_dynamics(mech, q, v, tau, partition=part, terms=T, t=AT_T).a
        for method in METHODS:
            other = hc.forward_dynamics(
                mech, q, v, tau, partition=part, terms=T, t=AT_T, method=method
            )
            assert relative(other.a, a) < 1e-10, method


@pytest.mark.parametrize("where", ["closed", "open"])
def test_prepared_equals_general(mech, name, where):
    if name in ALWAYS_GENERAL:
        pytest.skip(ALWAYS_GENERAL[name])
    part = hc.partition(mech, closed_states(name, 20)[0][0])
    inverse = hc.PreparedInverseDynamics(mech, part, inconsistent="project", **ANY_STATE)
    forward = hc.PreparedForwardDynamics(mech, part)
    rng, fast = np.random.default_rng(0), 0
    tick, of_tau = fast_path(inverse), fast_path(forward)
    found = closed_states(name, 20)[:10] if where == "closed" else open_states(name)[:10]
    for q, v in found:
        target, rates = rng.normal(size=(2, mech.nu))
        tau, known = rng.normal(size=(2, mech.nv))
        for at in (None, rates):
            u = tick(q, v, target, AT_T, known, at)
            if u is not None:
                fast += 1
                assert relative(u, general_path(inverse, q, v, target, AT_T, known, at)) < 1e-9
        a = of_tau(q, v, tau, AT_T)
        if a is not None:
            fast += 1
            assert relative(a, general_path(forward, q, v, tau, AT_T)) < 1e-9
        response = forward.at(q, v, AT_T)
        assert relative(response(tau), forward.acceleration(q, v, tau, AT_T)) < 1e-9
    assert fast >= (20 if name != "timed_arm" else 10)


def test_friction_is_compensated_at_the_reference(mech, name):
    """By the definition: the motors have the rates asked for, what no motor drives stays."""
    if not mech.nu or mech.chart is not None:
        return
    part = hc.partition(mech, closed_states(name, 20)[0][0])
    prepared = hc.PreparedInverseDynamics(mech, part, inconsistent="project", **ANY_STATE)
    of_rates = [f for f in mech.bound_forces if f.friction]
    data = mech.model.createData()
    for q, v in closed_states(name, 20)[:3]:
        P = hc.project(mech, q, v, "orthonormal", partition=part, t=AT_T)
        gamma, c = P.gamma, mech.column_scale
        rates = mech.B.T @ v + 0.3
        u_scale = 1.0 / np.linalg.norm(c[:, None] * mech.B, axis=0)
        A = (mech.B.T @ gamma) * u_scale[:, None]
        y = np.linalg.pinv(A, rcond=1e-9) @ (u_scale * (rates - mech.B.T @ P.v_t))
        N = gamma @ null_space(A, rcond=1e-9)  # what no motor drives
        M = P.terms.M
        there = P.v_t + gamma @ y
        there = there + N @ np.linalg.solve(N.T @ M @ N, N.T @ M @ (v - there))

        def friction(v, q=q):
            kin = kinematics(mech.model, data, q, v, AT_T)
            return sum(f.at(kin).total for f in of_rates)

        target = np.linspace(-1.0, 1.0, mech.nu)
        change = friction(there) - friction(v)
        expected = general_path(prepared, q, v, target, AT_T, change)
        found = general_path(prepared, q, v, target, AT_T, None, rates)
        assert relative(found, expected) < 1e-9
        assert np.abs(change).max() > 1e-3


@pytest.mark.parametrize("mech", FEW, indirect=True)
def test_springs_hold_and_friction_does_not(mech, name):
    part = hc.partition(mech, closed_states(name, 20)[0][0])
    prepared = hc.PreparedInverseDynamics(mech, part, **ANY_STATE)
    q, _ = closed_states(name, 20)[0]
    held = prepared.holding(q, AT_T)
    names = [n for n, f in zip(mech.force_names, mech.bound_forces, strict=True) if f.friction]
    slippery = mech.without(*names)
    other = hc.PreparedInverseDynamics(slippery, hc.partition(slippery, q), **ANY_STATE)
    assert relative(other.holding(q, AT_T), held) < 1e-10
    rest = np.zeros(mech.nv)
    balance = hc.inverse_dynamics(
        mech, q, rest, rest, coordinates="all", inconsistent="project", partition=part, t=AT_T
    )
    assert relative(balance.u, held) < 1e-10


@pytest.mark.parametrize("mech", FEW, indirect=True)
def test_power_is_the_rate_of_energy(mech, name):
    """Along the motion that the forward dynamics gives, by differences."""
    part, rng = hc.partition(mech, closed_states(name, 20)[0][0]), np.random.default_rng(1)
    for q, v in closed_states(name, 20)[:4]:
        u = rng.normal(size=mech.nu)
        a = hc.forward_dynamics(mech, q, v, mech.B @ u, partition=part, t=AT_T).a

        def total(s, q=q, v=v, a=a):
            # a path with this velocity and acceleration: second order in s suffices
            there = pin.integrate(mech.model, q, s * v + 0.5 * s * s * a)
            return hc.energy(mech, there, v + s * a).total

        h = 1e-3 / max(1.0, np.abs(v).max())
        weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
        rate = sum(w * (total(k * h) - total(-k * h)) for k, w in weights.items()) / h
        power = hc.power(mech, q, v, u, t=AT_T)
        size = abs(power.motors) + power.losses + abs(power.external) + 1.0
        assert power.losses > 0.0
        assert abs(rate - power.total) < 1e-9 * size


def test_a_pickle_is_the_same(mech, name):
    copy = pickle.loads(pickle.dumps(mech))
    assert copy.force_names == mech.force_names
    q, v = closed_states(name, 20)[0]
    assert np.array_equal(hc.terms(copy, q, v, t=AT_T).F, hc.terms(mech, q, v, t=AT_T).F)


def test_without_forces_nothing_acts():
    mech = forced("five_bar")
    free = mech.without(*mech.force_names)
    assert free.forces == ()
    assert free.force_names == ()
    q, v = closed_states("five_bar")[0]
    T = hc.terms(free, q, v)
    assert not T.F.any()
    assert not T.F_v.any()
    assert hc.energy(free, q, v).springs == 0.0
    assert hc.power(free, q, v, np.zeros(free.nu)).losses == 0.0


def test_on_another_model():
    mech = forced("five_bar")
    heavier = mech.with_model(mech.model)
    assert heavier.force_names == mech.force_names
    q, v = closed_states("five_bar")[0]
    assert np.array_equal(hc.terms(heavier, q, v).F, hc.terms(mech, q, v).F)


def test_efforts_besides_are_those_of_the_coordinates():
    mech, (q, v) = forced("five_bar"), closed_states("five_bar")[0]
    part, known = hc.partition(mech, q), wind(q, v, 1.0)
    target = np.array([1.0, -2.0])
    u = hc.inverse_dynamics(mech, q, v, target, efforts=known, partition=part)
    assert u.certificate.ok
    more = mech.with_forces([hc.CustomForce(lambda q, v, t: known, name="known")])
    assert relative(hc.inverse_dynamics(more, q, v, target, partition=part).u, u.u) < 1e-12


def test_the_relaxed_inverse_knows_forces():
    mech, (q, v) = forced("five_bar"), closed_states("five_bar")[0]
    target = np.array([1.0, -2.0])
    part = hc.partition(mech, q)
    exact = hc.inverse_dynamics(mech, q, v, target, partition=part).u
    relaxed = hc.methods.inverse_dynamics_relaxed(
        mech, q, v, target, partition=part, stiffness=1e7 * np.eye(2)
    )
    assert relaxed.certificate.ok
    assert relative(relaxed.u, exact) < 1e-5
    known = np.linspace(-1.0, 1.0, mech.nv)
    loaded = hc.inverse_dynamics(mech, q, v, target, efforts=known, partition=part).u
    stiff = {"partition": part, "stiffness": 1e7 * np.eye(2)}
    relaxed = hc.methods.inverse_dynamics_relaxed(mech, q, v, target, efforts=known, **stiff)
    assert relaxed.certificate.ok
    assert relative(relaxed.u, loaded) < 1e-5
    assert relative(loaded, exact) > 1e-2


def test_pinocchios_own_algorithm_knows_forces():
    mech, (q, v) = forced("spatial_arms"), closed_states("spatial_arms")[0]
    part, tau = hc.partition(mech, q), np.linspace(-1.0, 2.0, mech.nv)
    a = hc.forward_dynamics(mech, q, v, tau, partition=part).a
    other = hc.forward_dynamics(mech, q, v, tau, partition=part, method="proximal").a
    assert relative(other, a) < 1e-7


def test_impacts_know_no_forces():
    mech, (q, v) = forced("five_bar"), closed_states("five_bar")[0]
    free = mech.without(*mech.force_names)
    struck = [hc.impulse(m, q, v + 0.1, partition=hc.partition(m, q)).v for m in (mech, free)]
    assert np.array_equal(*struck)


@pytest.mark.parametrize("friction_at", ["measured", "reference"])
def test_loads_act_where_a_chart_moves_the_state(friction_at):
    base = forced("sine_chart")
    model = base.model.copy()
    tip = pin.SE3(np.eye(3), np.array([0.3, 0.2, 0.1]))
    model.addFrame(pin.Frame("tip", model.njoints - 1, tip, pin.FrameType.OP_FRAME))
    mech = base.with_model(model)
    q, v = closed_states("sine_chart")[0]
    part = hc.partition(mech, q)
    q, v = np.add(q, [0.0, 0.05]), np.add(v, [0.0, 0.03])
    load = {"tip": ([10.0, 20.0, 30.0], [1.0, 2.0, 3.0])}
    law = hc.ComputedTorque(mech, 0.0, 0.0, partition=part, friction_at=friction_at, **ANY_STATE)
    u = law.torque(q, v, q, mech.motor_rates(v), [0.7], f_ext=load)
    there = hc.inverse_dynamics(mech, q, v, [0.7], f_ext=load, partition=part).u
    assert relative(u, there) < 1e-12


@np.errstate(all="raise")
def test_friction_is_quiet_and_its_derivative_finite():
    mech = mechanism("five_bar")
    v = np.array([1.0, -30.0, 1e-3, 0.0])
    for speed in (1e-200, 1e-2, 1e200):
        T = hc.terms(
            mech.with_forces([hc.JointFriction(0.1, 0.2, (0.3, speed), 1e-9)]), mech.reference, v
        )
        assert np.isfinite(T.F).all()
        assert np.isfinite(T.F_v).all()
