"""Regulators: python-control is the oracle of the gains; simulation that of the law."""

from __future__ import annotations

import dataclasses
import pickle
from types import SimpleNamespace

import control
import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import quad_vec
from scipy.linalg import block_diag, expm
from support import mechanism
from zoo import add_body, at, bar, five_bar, lump, vertical

import holoctl as hc
from holoctl.design.feedback.riccati import held

Q, R = np.diag([100.0, 100.0, 1.0, 1.0]), 0.1 * np.eye(2)


@pytest.fixture(scope="module")
def five():
    mech = hc.load(hc.robot_file("five_bar"))
    eq = hc.equilibrium(mech)
    return eq, hc.linearize(mech, eq.q, u=eq.u)


def heavier(mech, by=1.1):
    model = mech.model.copy()
    for i in range(1, model.njoints):
        I = model.inertias[i]  # noqa: E741
        model.inertias[i] = pin.Inertia(by * I.mass, I.lever, by * I.inertia)
    return mech.with_model(model)


def off(mech, q, by):
    """A closed state at rest with the motors off q."""
    guess = q.copy()
    guess[[0, 2]] += by
    return hc.assemble(mech, guess, locked=mech.actuated)


def test_gains_are_those_of_python_control(five):
    _, lin = five
    law = hc.lqr(lin, Q, R)
    K, S, poles = control.lqr(lin.A, lin.B, Q, R)
    np.testing.assert_allclose(law.K, K, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(law.P, S, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.sort(law.poles.real), np.sort(poles.real), rtol=1e-10)

    ticks = lin.discretized(1e-3)
    K, S, _ = control.dlqr(ticks.A, ticks.B, Q, R)
    law = hc.lqr(ticks, Q, R)
    np.testing.assert_allclose(law.K, K, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(law.P, S, rtol=1e-9, atol=1e-9)

    whole = held(lin.A, lin.B, Q, R, 1e-3)
    K, S, _ = control.dlqr(whole.A, whole.B, whole.Q, whole.R, whole.N)
    law = hc.lqr(lin, Q, R, dt=1e-3)
    np.testing.assert_allclose(law.K, K, rtol=1e-9, atol=1e-9)
    assert law.dt == 1e-3


def test_model_and_cost_over_a_tick_are_exact():
    rng = np.random.default_rng(0)
    for size in (1.0, 1e2):
        A, B = size * (rng.normal(size=(4, 4)) - 3.0 * np.eye(4)), rng.normal(size=(4, 2))
        found = held(A, B, Q, R, 0.02)
        E = np.zeros((6, 6))
        E[:4] = np.hstack([A, B])
        C = block_diag(Q, R)
        W = quad_vec(lambda s: expm(E * s).T @ C @ expm(E * s), 0.0, 0.02, epsrel=1e-12)[0]  # noqa: B023
        np.testing.assert_allclose(found.A, expm(E * 0.02)[:4, :4], atol=1e-13)
        np.testing.assert_allclose(found.B, expm(E * 0.02)[:4, 4:], atol=1e-13)
        for mine, theirs in ((found.Q, W[:4, :4]), (found.R, W[4:, 4:]), (found.N, W[:4, 4:])):
            np.testing.assert_allclose(mine, theirs, atol=1e-13 * np.abs(W).max())


@pytest.mark.parametrize("ratio", [1e-12, 1e-8, 1e8])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_the_size_of_a_cost_is_none_of_the_gains(five, ratio, size):
    """Whatever it is: K stays, P goes with it; and Riccati's equation holds."""
    _, lin = five
    law, same = hc.lqr(lin, ratio * size * Q, size * R), hc.lqr(lin, ratio * Q, R)
    np.testing.assert_allclose(law.K, same.K, rtol=1e-9, atol=1e-10 * np.abs(same.K).max())
    np.testing.assert_allclose(law.P / size, same.P, rtol=1e-8, atol=1e-9 * np.abs(same.P).max())
    A, P = lin.A, same.P
    terms = [A.T @ P, P @ A, ratio * Q, -same.K.T @ R @ same.K]
    assert np.abs(sum(terms)).max() < 1e-9 * max(np.abs(x).max() for x in terms)


def test_efforts_of_very_different_worth(five):
    _, lin = five
    law = hc.lqr(lin, Q, [1e-8, 1e8])
    alone = control.lqr(lin.A, lin.B[:, :1], Q, [[1e-8]])[0]
    assert np.abs(law.K[1]).max() < 1e-8 * np.abs(law.K[0]).max()
    np.testing.assert_allclose(law.K[:1], alone, rtol=1e-3)  # the other one helps by 2e-5


@pytest.mark.parametrize("dt", [1e-6, 1e-5, 1e-3, 0.1, 1.0])
def test_what_the_motors_move_they_move_in_ticks_of_any_length(dt):
    """One motor, two falling motions, one of which it moves through the other."""
    mech = dataclasses.replace(five_bar(), actuated=["left"])
    eq = hc.equilibrium(mech)
    lin = hc.linearize(mech, eq.q, u=eq.u)
    law = hc.lqr(lin.discretized(dt), {lin.states[2]: 1.0}, 1.0)
    assert law.poles.real.max() < -0.1
    if dt < 1e-2:
        same = hc.lqr(lin, {lin.states[2]: 1.0}, 1.0).K
        np.testing.assert_allclose(law.K, same, rtol=30.0 * dt, atol=1e-4)


@pytest.mark.parametrize("dt", [10.0, 50.0])
def test_ticks_that_are_too_long_are_refused_as_such(five, dt):
    """In such a tick it falls by e^60 and more: what rounding left of its rate at rest is large."""
    _, lin = five
    assert lin.discretized(dt).at_equilibrium
    with pytest.raises(hc.SingularityError, match="a tick that is too long for an unstable motion"):
        hc.lqr(lin.discretized(dt), Q, R)
    with pytest.raises(hc.SingularityError, match="a tick that is too long for an unstable motion"):
        hc.lqr(lin, Q, R, dt=dt)
    off = dataclasses.replace(lin, rate=lin.rate + np.array([0.0, 0.0, 1e-3, 0.0]))
    assert not off.discretized(dt).at_equilibrium


def test_short_ticks_tend_to_the_continuous_regulator(five):
    _, lin = five
    K = hc.lqr(lin, Q, R).K
    off_by = [np.abs(hc.lqr(lin, Q, R, dt=dt).K - K).max() for dt in (1e-3, 1e-4)]
    assert off_by[1] == pytest.approx(0.1 * off_by[0], rel=0.05)


def test_a_five_bar_stays_upright_with_ten_percent_more_mass():
    """From three lines, at 1 kHz, from 0.1 rad off; without feedback it falls."""
    mech = hc.load(hc.robot_file("five_bar"))

    eq = hc.equilibrium(mech)
    lin = hc.linearize(mech, eq.q, u=eq.u)
    law = hc.lqr(lin, Q=[100.0, 100.0, 1.0, 1.0], R=0.1, dt=1e-3)

    assert eq.stable is False
    plant = heavier(mech)
    for by in ([0.1, -0.1], [0.1, 0.1]):
        q0, v0 = off(mech, eq.q, by)
        run = hc.simulate(mech, law.controller(), q0, v0, 0.7, plant=plant)
        assert np.abs(run.q[-1] - eq.q).max() < 0.015  # what 10 % of the weight bends it by
        assert np.abs(run.v[-1]).max() < 2e-3
        assert np.abs(run.u).max() < 20.0  # the limit of its motors
        if by == [0.1, 0.1]:
            alone = hc.simulate(mech, lambda t, q, v: eq.u, q0, v0, 0.4, frequency=100.0)
            assert np.abs(alone.q[-1] - eq.q).max() > 0.4


def test_fewer_motors_than_motions_are_held():
    """An acrobot with a loop: one motor, two motions, both falling."""
    mech = dataclasses.replace(five_bar(), actuated=["left"])
    eq = hc.equilibrium(mech)
    law = hc.lqr(hc.linearize(mech, eq.q, u=eq.u), 1.0, 1.0, dt=2e-3)
    assert law.poles.real.max() < -1.0
    guess = eq.q.copy()
    guess[2] += 2e-3
    q0, v0 = hc.assemble(mech, guess, locked=["left", "right"])
    run = hc.simulate(mech, law.controller(), q0, v0, 3.0, frequency=500.0)
    off_by = np.abs(run.q - eq.q).max(axis=1)
    assert off_by[-1] == pytest.approx(np.exp(law.poles.real.max()) * off_by[-501], rel=0.05)
    assert off_by.max() < 0.05


@pytest.mark.parametrize("name", ["standing_leg", "three_motors"])
def test_a_floating_base_and_redundant_motors(name):
    mech = mechanism(name)
    eq = hc.equilibrium(mech)
    lin = hc.linearize(mech, eq.q, u=eq.u)
    law = hc.lqr(lin, 1.0, 1.0, dt=1e-3)
    kicked = hc.assemble(mech, eq.q, 0.02 * np.ones(mech.nv))[1]
    run = hc.simulate(mech, law.controller(), eq.q, kicked, 0.2)
    ends = [pin.difference(mech.model, eq.q, q)[lin.partition.independent] for q in run.q]
    x = np.concatenate([ends[-1], run.v[-1][lin.partition.independent]])
    x0 = np.concatenate([np.zeros(len(ends[0])), kicked[lin.partition.independent]])
    assert x @ law.P @ x < 0.7 * (x0 @ law.P @ x0)
    u = eq.u - law.K @ x
    np.testing.assert_allclose(law.torque(run.q[-1], run.v[-1]), u, rtol=1e-12, atol=1e-12)


def idle(forces=()):
    """A driven arm, and beside it a wheel that nothing drives."""
    m = vertical(pin.Model())
    add_body(m, 0, pin.JointModelRZ(), at(), "arm", bar(0.3))
    wheel = pin.Inertia(1.0, np.zeros(3), 0.01 * np.eye(3))
    add_body(m, 0, pin.JointModelRZ(), at(1.0), "wheel", wheel)
    return hc.Mechanism(m, [], ["arm"], forces=forces, name="idle")


def test_modes_that_no_motor_moves():
    eq = hc.equilibrium(idle(), [np.pi / 2, 0.0])
    lin = hc.linearize(eq.mech, eq.q, u=eq.u)
    for model in (lin, lin.discretized(1e-2)):
        with pytest.raises(hc.NotActuatedError, match=r"'wheel': it drifts .* no motor moves it"):
            hc.lqr(model, 1.0, 1.0)
    law = hc.lqr(lin, {"arm": 1.0}, 1.0, ignore=["wheel"])
    assert not law.K[:, [1, 3]].any()
    K = control.lqr(lin.A[np.ix_([0, 2], [0, 2])], lin.B[[0, 2]], np.diag([1.0, 0.0]), [[1.0]])[0]
    np.testing.assert_allclose(law.K[:, [0, 2]], K, rtol=1e-9)
    with pytest.raises(hc.InputError, match="Q has weights for 'wheel'"):
        hc.lqr(lin, 1.0, 1.0, ignore=["wheel"])
    with pytest.raises(hc.InputError, match="all coordinates are left out"):
        hc.lqr(lin, 0.0, 1.0, ignore=["arm", "wheel"])

    def sprung(damping):
        mech = idle([hc.JointSpring("wheel", stiffness=3.0, damping=damping)])
        eq = hc.equilibrium(mech, [np.pi / 2, 0.0])
        return hc.linearize(mech, eq.q, u=eq.u)

    with pytest.raises(hc.NotActuatedError, match=r"'wheel': it oscillates undamped at 2\.757 Hz"):
        hc.lqr(sprung(0.0), 1.0, 1.0)
    law = hc.lqr(sprung(0.01), 1.0, 1.0)  # it comes to rest by itself
    assert np.abs(law.K[:, [1, 3]]).max() < 1e-9


def test_what_is_no_design_is_refused(five):
    eq, lin = five
    mech = lin.mech
    with pytest.raises(hc.InconsistentError, match=r"not about an equilibrium: there 'd motor_"):
        hc.lqr(hc.linearize(mech, eq.q), Q, R)
    moving = hc.assemble(mech, eq.q, [0.1, 0.0, 0.0, 0.0])[1]
    with pytest.raises(hc.InconsistentError, match=r"hc.lqr_along follows a motion"):
        hc.lqr(hc.linearize(mech, eq.q, moving, eq.u), Q, R)
    for weights, said in (
        ((-Q, R), "Q must be positive semidefinite"),
        ((Q, [0.0, 1.0]), "R must be positive definite"),
        ((Q, {"motor_left": 1.0}), "R must be positive definite"),
        ((Q + np.triu(np.ones((4, 4)), 1), R), "Q must be symmetric"),
        (({"motor_l": 1.0}, R), "no state called 'motor_l'.*did you mean"),
        ((np.eye(3), R), r"Q must be a number, a diagonal \(4,\)"),
        (
            (0.0, R),
            "the motion of .* has no weight in Q, and it diverges by a factor of e in 0.163 s",
        ),
        ((np.nan, R), "Q must be finite"),
        (
            (np.diag([1e9, 0.0, 1.0, 1.0]) + np.eye(4)[::-1] * [0, 1, 1, 0], R),
            "positive semidefinite",
        ),
    ):
        with pytest.raises(hc.InputError, match=said):
            hc.lqr(lin, *weights)
    with pytest.raises(hc.InputError, match=r"in ticks of 0\.001 s already"):
        hc.lqr(lin.discretized(1e-3), Q, R, dt=1e-3)
    by_name = dict(zip(lin.states, Q.diagonal(), strict=True))
    np.testing.assert_array_equal(hc.lqr(lin, by_name, 0.1).K, hc.lqr(lin, Q, R).K)


def test_the_law_in_a_tick(five):
    eq, lin = five
    law = hc.lqr(lin, Q, R, dt=1e-3)
    u, out = law.torque(eq.q, eq.v), np.zeros(2)
    np.testing.assert_allclose(u, eq.u, rtol=1e-14)
    assert law.torque(eq.q.tolist(), eq.v, out=out) is out
    for bad, said in (
        ((eq.q * np.nan, eq.v), "q must be finite"),
        (
            (eq.q, eq.v + np.array([0, np.inf, 0, 0])),
            "v must be finite",
        ),  # not even a measured state
        ((eq.q[:2], eq.v), r"q must have shape \(4,\)"),
    ):
        with pytest.raises(hc.InputError, match=said):
            law.torque(*bad, out=out)
    np.testing.assert_array_equal(out, u)
    again = pickle.loads(pickle.dumps(law))
    np.testing.assert_array_equal(again.torque(eq.q + 0.01, eq.v), law.torque(eq.q + 0.01, eq.v))
    said = "<StateFeedback of 'five_bar': 2 motions, 2 motors, in ticks of 0.001 s, about a point"
    assert repr(law).startswith(said)
    with pytest.raises(hc.InputError, match=r"whose controller\(\) makes one"):
        hc.simulate(lin.mech, law, eq.q, eq.v, 0.01)
    with pytest.raises(hc.InputError, match=r"whose controller\(\) makes one"):
        hc.simulate(lin.mech, law.torque, eq.q, eq.v, 0.01)
    with pytest.raises(hc.InputError, match=r"are for ticks of dt = 0\.001"):
        hc.simulate(lin.mech, law.controller(), eq.q, eq.v, 0.01, frequency=500.0)


def test_a_continuous_joint_takes_the_shorter_way_round():
    m = vertical(pin.Model())
    add_body(m, 0, pin.JointModelRUBZ(), at(), "link", bar(0.5))
    mech = hc.Mechanism(m, [], ["link"], name="wheel")
    eq = hc.equilibrium(mech, [np.cos(3.1), np.sin(3.1)])
    law = hc.lqr(hc.linearize(mech, eq.q, u=eq.u), 1.0, 1.0)
    beyond = law.torque([np.cos(-3.1), np.sin(-3.1)], [0.0])
    np.testing.assert_allclose(beyond - eq.u, -law.K[:, 0] * (2.0 * np.pi - 6.2), rtol=1e-9)


# ------------------------------------------------------------------------------- along a motion


def by_nodes(mech, move, duration, count=21):
    """From rest to rest, by states and efforts at nodes."""
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    ind, move = part.independent, np.array(move)
    start, table = q[ind].copy(), []
    for t in np.linspace(0.0, duration, count):
        s = t / duration
        x, xd = 10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / duration
        xdd = (60 * s - 180 * s**2 + 120 * s**3) / duration**2
        guess = q.copy()
        guess[ind] = start + x * move
        q, _ = hc.assemble(mech, guess, locked=[mech.coordinate_names[i] for i in ind])
        v = hc.project(mech, q, np.zeros(mech.nv), "split", partition=part).gamma @ (xd * move)
        P = hc.project(mech, q, v, "split", partition=part)
        a = P.gamma @ (xdd * move) + P.bias
        table.append((t, q, v, a, hc.inverse_dynamics(mech, q, v, mech.B.T @ a, projection=P).u))
    return hc.Trajectory(mech, *map(np.array, zip(*table, strict=True)), partition=part)


def deviations(run, trajectory, law):
    ind = law.partition.independent
    refs = [trajectory.state(t) for t in run.t]
    y = [pin.difference(law.mech.model, r[0], q)[ind] for r, q in zip(refs, run.q, strict=True)]
    yd = run.v[:, ind] - np.array([r[1][ind] for r in refs])
    return np.hstack([y, yd])


def test_along_a_motion_the_cost_is_what_was_promised():
    mech = hc.load(hc.robot_file("five_bar"))
    motion = by_nodes(mech, [0.4, -0.3], 0.2)
    law = hc.lqr_along(mech, motion, Q, R, dt=2e-3, models=11)
    assert law.terminal == "regulator"
    end = hc.lqr(hc.linearize(mech, motion.q[-1], u=law.u[-1]), Q, R, dt=2e-3)
    np.testing.assert_allclose(law.K[-1], end.K, rtol=1e-6, atol=1e-6)
    assert np.abs(law.K[0] - end.K).max() > 0.5

    exact = hc.simulate(mech, law.controller(), motion.q[0], motion.v[0], 0.2, frequency=500.0)
    assert np.abs(deviations(exact, motion, law)[:, :2]).max() < 2e-4

    q0, v0 = off(mech, motion.q[0], [2e-2, 1e-2])
    run = hc.simulate(mech, law.controller(), q0, v0, 1.0, frequency=500.0)
    x = deviations(run, motion, law)
    u = np.array([law.u[min(k, len(law.u) - 1)] for k in range(len(run.t))])
    cost = np.trapezoid(((x @ Q) * x).sum(axis=1), run.t)
    cost += 2e-3 * (((run.u - u) @ R) * (run.u - u))[:-1].sum()
    assert cost == pytest.approx(x[0] @ law.P @ x[0], rel=0.02)


def test_at_rest_a_motion_is_a_point():
    mech = mechanism("standing_leg")
    eq = hc.equilibrium(mech)
    rest = SimpleNamespace(duration=0.02, state=lambda t: (eq.q, eq.v, eq.v))
    law = hc.lqr_along(mech, rest, 1.0, 1.0, dt=2e-3, partition=eq.partition)
    point = hc.lqr(hc.linearize(mech, eq.q, u=eq.u, partition=eq.partition), 1.0, 1.0, dt=2e-3)
    for K in law.K:
        np.testing.assert_allclose(K, point.K, rtol=1e-5, atol=1e-5 * np.abs(point.K).max())
    np.testing.assert_allclose(law.torque(eq.q, eq.v, 0.013), eq.u, rtol=1e-9, atol=1e-9)
    given = hc.lqr_along(mech, rest, 1.0, 1.0, Qf=0.0, dt=2e-3)
    assert given.terminal == "given"
    assert np.abs(given.K[-1]).max() < 0.1 * np.abs(point.K).max()


@pytest.mark.parametrize("dt", [2e-3, 1.7e-2])
def test_motors_that_share_motions_follow_too(dt):
    """Mean accelerations of a tick are no motion of theirs quite."""
    mech = mechanism("three_motors")
    motion = by_nodes(mech, [0.3, 0.2], 0.2, count=11)
    law = hc.lqr_along(mech, motion, 1.0, 1.0, dt=dt, models=6)
    run = hc.simulate(mech, law.controller(), motion.q[0], motion.v[0], 0.2, frequency=1.0 / dt)
    assert np.abs(deviations(run, motion, law)[:, :2]).max() < 40.0 * dt**2


def test_a_motion_that_goes_on_at_its_end_is_refused():
    mech = hc.load(hc.robot_file("five_bar"))
    motion = by_nodes(mech, [0.4, -0.3], 0.2)
    for state, said in (
        (motion.state, r"must end at rest.*at t = 0\.1 s the rate of"),
        (lambda t: motion.state(t)[:2], r"must be \(q, v, a\)"),
        (lambda t: None, r"must be \(q, v, a\); got None"),
        (lambda t: (motion.q[0], motion.v[0], motion.v[0] * np.nan), "a of the state .* finite"),
    ):
        cut = SimpleNamespace(duration=0.1, state=state)
        with pytest.raises(hc.InputError, match=said):
            hc.lqr_along(mech, cut, Q, R, models=2)


@pytest.mark.slow
def test_a_free_body_is_led_along_a_turn():
    """A floating base with six thrusters: x is taken against a frame that turns."""
    m = pin.Model()
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "body", lump(np.random.default_rng(1)))
    mech = hc.Mechanism(m, [], actuation=np.eye(6), name="body")
    axis = np.array([0.3, -0.2, 0.1, 1.0, 0.5, -0.7])

    def state(t):
        x, xd = 10 * t**3 - 15 * t**4 + 6 * t**5, 30 * t**2 * (1 - t) ** 2
        xdd = 60 * t - 180 * t**2 + 120 * t**3
        q = pin.integrate(m, pin.neutral(m), 2.0 * x * axis)
        return q, 2.0 * xd * axis, 2.0 * xdd * axis

    motion = SimpleNamespace(duration=1.0, state=lambda t: state(min(t, 1.0)))
    law = hc.lqr_along(mech, motion, 10.0, 0.1, dt=5e-3)
    q0 = pin.integrate(m, state(0.0)[0], 0.01 * np.ones(6))
    run = hc.simulate(mech, law.controller(), q0, np.zeros(6), 3.0, frequency=200.0)
    x = deviations(run, motion, law)
    cost = np.trapezoid(10.0 * (x * x).sum(axis=1), run.t)
    u = np.array([law.u[min(k, len(law.u) - 1)] for k in range(len(run.t))])
    cost += 5e-3 * 0.1 * ((run.u - u) ** 2)[:-1].sum()
    assert cost == pytest.approx(x[0] @ law.P @ x[0], rel=0.01)


def test_what_is_no_motion_of_its_motors_is_refused():
    mech = hc.load(hc.robot_file("five_bar"))
    motion = by_nodes(mech, [0.1, 0.1], 0.1, count=5)
    other = dataclasses.replace(mech, actuated=["motor_left"], limits=None)
    part = hc.partition(other, motion.q[0])
    with pytest.raises(hc.InconsistentError, match="the motors cannot cause the motion"):
        hc.lqr_along(other, motion, Q, 0.1, models=2, partition=part)
    with pytest.raises(hc.InputError, match="trajectory must be a Trajectory"):
        hc.lqr_along(mech, motion.q, Q, R)
    with pytest.raises(hc.InputError, match="coordinates are not those of"):
        hc.lqr_along(mechanism("four_bar"), motion, 1.0, 1.0)
