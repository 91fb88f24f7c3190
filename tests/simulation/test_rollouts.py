"""Rollouts: each robot moves as the controller and the dynamics of Python say, whatever the others
do."""

from __future__ import annotations

import dataclasses
import pickle
import signal
import threading
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
import zoo
from exported import compilers, controller, robot
from support import Foreign, few

import holoctl as hc
from holoctl.codegen.c_text import filled
from holoctl.codegen.devices.host import on_cores
from holoctl.codegen.devices.kernels import Kernel, program

DT = 1e-3


@pytest.fixture(autouse=True)
def _needs_a_compiler():
    compilers()


@cache
def of_mechanism():
    return hc.Rollouts(robot("five_bar"), DT, payload="tip_right", gravity=True)


@cache
def of_controller():
    return hc.Rollouts(controller("five_bar"), DT, payload="tip_right", gravity=True)


@cache
def with_sensors(noise, counts):
    return hc.Rollouts(controller("five_bar"), DT, sensors=hc.Sensors(noise=noise, counts=counts))


def step(mech, q, v, u, dt=DT):
    """One step of Runge and Kutta by the forward dynamics of Python."""
    model = mech.model

    def slope(d, w):
        q_there = pin.integrate(model, q, d)
        return w, hc.forward_dynamics(mech, q_there, w, u=u).a

    d, w = np.zeros(mech.nv), v
    slopes = [slope(d, w)]
    for h in (0.5 * dt, 0.5 * dt, dt):
        slopes.append(slope(h * slopes[-1][0], v + h * slopes[-1][1]))
    weights = dt / 6.0 * np.array([1.0, 2.0, 2.0, 1.0])
    d = sum(x * s[0] for x, s in zip(weights, slopes, strict=True))
    return pin.integrate(model, q, d), v + sum(
        x * s[1] for x, s in zip(weights, slopes, strict=True)
    )


def states(mech, count, seed=0, size=0.2):
    rng, found = np.random.default_rng(seed), []
    start, _ = hc.assemble(mech)
    for _ in range(count):
        guess = pin.integrate(mech.model, start, size * rng.normal(size=mech.nv))
        found.append(hc.assemble(mech, guess, size * rng.normal(size=mech.nv)))
    return (np.array(x) for x in zip(*found, strict=True))


def test_efforts_move_robots_as_python_says():
    mech, rng = robot("five_bar"), np.random.default_rng(1)
    Q, V = states(mech, 3)
    U = rng.normal(size=(3, 20, 2))
    found = of_mechanism().run(Q, V, U)
    assert found.status.tolist() == [0, 0, 0]
    assert found.counts[:, 0].tolist() == [20, 20, 20]
    assert np.array_equal(found.u, U)
    assert np.allclose(found.t, DT * np.arange(21))
    for k in range(3):
        q, v = Q[k], V[k]
        for h in range(20):
            q, v = step(mech, q, v, U[k, h])
        assert np.abs(found.q[k, -1] - q).max() < 1e-10
        assert np.abs(found.v[k, -1] - v).max() < 1e-9
        assert np.abs(q - Q[k]).max() > 1e-3
    errors = [hc.terms(mech, q, np.zeros(4)).error for q in found.q[:, -1]]
    assert np.abs(errors).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delta", "leg", "ankle", "geared_arm"])
def test_other_robots_follow_their_controllers_too(name):
    mech = robot(name)
    law = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    Q, V = states(mech, 2, size=0.05)
    goal = np.array([mech.motor_positions(q) for q in Q])[:, None] + 0.02
    still = np.zeros(mech.nu)
    found = hc.Rollouts(law, DT, substeps=2).run(Q, V, np.repeat(goal, 10, 1), still, still)
    assert not found.status.any()
    for k in range(2):
        q, v = Q[k], V[k]
        for h in range(10):
            u = law.torque(q, v, goal[k, 0], still, still)
            assert np.abs(found.u[k, h] - u).max() < 1e-7 * (1.0 + np.abs(u).max())
            for _ in range(2):
                q, v = step(mech, q, v, u, DT / 2)
        assert np.abs(found.q[k, -1] - q).max() < 1e-8
        assert np.abs(found.v[k, -1]).max() > 1e-3


@pytest.mark.slow
def test_each_robot_has_gains_of_its_own():
    mech, law = robot("five_bar"), controller("five_bar")
    q, v = hc.assemble(mech)
    goal, still, kp = (
        mech.motor_positions(q) + 0.1,
        np.zeros(2),
        np.array([[100.0, 50.0], [400.0, 400.0]]),
    )
    found = of_controller().run(q, v, goal, still, still, ticks=5, controller={"kp": kp})
    for k in range(2):
        own, at, rate = hc.ComputedTorque(mech, kp=kp[k], kd=law.kd), q, v
        for h in range(5):
            u = own.torque(at, rate, goal, still, still)
            assert np.abs(found.u[k, h] - u).max() < 1e-9
            at, rate = step(mech, at, rate, u)
    assert np.abs(found.u[0] - found.u[1]).max() > 1.0


def test_payload_and_gravity_of_plants_are_those_of_the_loaded_robot():
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    model = mech.model.copy()
    frame = model.frames[model.getFrameId("tip_right")]
    inertia = np.array([[2e-3, 1e-4, 2e-4], [1e-4, 3e-3, 3e-4], [2e-4, 3e-4, 4e-3]])
    centre = np.array([0.01, 0.02, -0.03])
    inertias = model.inertias
    load = frame.placement.act(pin.Inertia(0.7, centre, inertia))
    inertias[frame.parentJoint] = inertias[frame.parentJoint] + load
    model.gravity = pin.Motion(np.array([1.0, 0.0, -3.0]), np.zeros(3))
    loaded = mech.with_model(model)
    own = {
        "payload_mass": [0.0, 0.7], "payload_centre": centre,
        "payload_inertia": np.array([np.zeros(6), inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]]),
        "gravity": [[0.0, 0.0, -9.81], [1.0, 0.0, -3.0]],
    }  # fmt: skip
    found = of_mechanism().run(q, v, np.zeros(2), ticks=10, plant=own)
    for k, other in enumerate((mech, loaded)):
        at, rate = q, v
        for _ in range(10):
            at, rate = step(other, at, rate, np.zeros(2))
        assert np.abs(found.v[k, -1] - rate).max() < 1e-9
    assert np.abs(found.v[0, -1] - found.v[1, -1]).max() > 1e-2
    knows = of_controller().run(
        q, v, mech.motor_positions(q), np.zeros(2), np.zeros(2), ticks=1, plant=own, controller=own
    )
    expected = hc.ComputedTorque(loaded, kp=400.0, kd=40.0).torque(
        q, v, mech.motor_positions(q), np.zeros(2), np.zeros(2)
    )
    assert np.abs(knows.u[1, 0] - expected).max() < 1e-10


def test_no_order_of_pivots_stops_a_regular_robot():
    """The order that was chosen at the reference is inaccurate at these, which are regular."""
    mech = robot("five_bar")
    start, _ = hc.assemble(mech)
    many = hc.compile(mech, ["forward_dynamics"], device="cpu")
    found = []
    for away in ([1.0, -0.9], [1.1, -0.2], [1.2, 0.3]):
        guess = pin.integrate(mech.model, start, mech.B @ away)
        found.append(hc.assemble(mech, guess, locked=list(mech.actuator_names))[0])
    Q = np.array(found)
    _, status = many.forward_dynamics(Q, np.zeros(4), np.zeros(4))
    assert [hc.results.BatchStatus(x).name for x in status] == ["IN_DOUBT"] * 3
    moved = of_mechanism().run(Q, np.zeros(4), np.zeros(2), ticks=20)
    assert moved.status.tolist() == [0, 0, 0]
    for k in range(3):
        q, v = Q[k], np.zeros(4)
        for _ in range(20):
            q, v = step(mech, q, v, np.zeros(2))
        assert np.abs(moved.q[k, -1] - q).max() < 1e-9
        assert np.abs(q - Q[k]).max() > 1e-3


def test_a_robot_that_fails_stops_no_other_one():
    mech, rng = robot("five_bar"), np.random.default_rng(3)
    Q, V = states(mech, 6, seed=4)
    U = rng.normal(size=(6, 12, 2))
    good = of_mechanism().run(Q, V, U, every=3)
    Q[1], V[2, 0], U[3, 7, 1], U[4] = np.nan, np.inf, np.nan, 1e9
    mass = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -1.0])
    robots = of_mechanism()
    found = robots.run(Q, V, U, every=3, plant={"payload_mass": mass})
    names = [robots.statuses[int(x)] for x in found.status]
    finite = "NOT_FINITE"
    assert names == ["OK", finite, finite, finite, "PLANT_REFUSED", finite]
    assert found.counts[:, 0].tolist() == [12, 0, 0, 7, 0, 0]
    assert np.array_equal(found.q[0], good.q[0])
    assert np.array_equal(found.u[0], good.u[0])
    assert np.isfinite(found.q[3, :3]).all()
    assert np.isnan(found.q[3, 3:]).all()
    assert np.array_equal(found.q[3, :3], good.q[3, :3])
    assert np.isfinite(found.u[3, :3]).all()
    assert np.isnan(found.u[3, 3:]).all()
    for k in (1, 2, 4, 5):
        assert np.isnan(found.q[k, 1:]).all()
        assert np.isnan(found.u[k]).all()


def test_a_start_that_breaks_the_constraints_is_refused_as_that():
    mech, robots = robot("five_bar"), of_mechanism()
    q, v = hc.assemble(mech)
    Q, V = np.tile(q, (5, 1)), np.tile(v, (5, 1))
    Q[1, 1] += 0.1
    V[2, 1] += 1.0
    Q[3, 1] += 1e-5
    V[4, 1] += 1e-5
    for kind in (robots, with_sensors((0.0, 1e-3), None)):
        given = [np.zeros(2)] if kind is robots else [mech.motor_positions(q), *np.zeros((2, 2))]
        found = kind.run(Q[:3], V[:3], *given, ticks=3)
        names = [kind.statuses[int(x)] for x in found.status]
        assert names == ["OK", "OPEN", "SLIDING"]
        assert found.counts[:, 0].tolist() == [3, 0, 0]
        assert np.isnan(found.q[1:, 1:]).all()
    assert not robots.run(Q[3:], V[3:], np.zeros(2), ticks=3).status.any()


@pytest.mark.slow
def test_a_start_that_breaks_redundant_rows_is_refused_too():
    mech = zoo.third_bar()
    q, v = hc.assemble(mech)
    Q = np.tile(q, (5, 1))
    Q[np.arange(4), np.arange(4)] += 0.01
    robots = hc.Rollouts(mech, DT)
    found = robots.run(Q, v, np.zeros(1), ticks=2)
    assert [robots.statuses[int(x)] for x in found.status] == [*4 * ["OPEN"], "OK"]


@pytest.mark.slow
def test_a_quaternion_that_is_none_is_refused_as_that():
    mech = robot("leg")
    q, v = hc.assemble(mech)
    Q = np.tile(q, (3, 1))
    Q[1, 3:7] *= 1.01
    Q[2, 3:7] = 0.0
    robots = hc.Rollouts(mech, DT)
    found = robots.run(Q, v, np.zeros(mech.nu), ticks=2)
    names = [robots.statuses[int(x)] for x in found.status]
    assert names == ["OK", "NOT_NORMALISED", "NOT_NORMALISED"]


def test_parameters_that_are_no_numbers_stop_their_robot_as_that():
    q, v = hc.assemble(robot("five_bar"))
    gravity = np.array([[0.0, 0.0, -9.81], [0.0, np.nan, 0.0], [np.inf, 0.0, 0.0]])
    found = of_mechanism().run(q, v, np.zeros(2), ticks=2, plant={"gravity": gravity})
    assert found.status.tolist() == [0, 1, 1]
    kp = np.array([[1.0, 2.0], [np.nan, 1.0], [1.0, np.inf]])
    still = np.zeros(2)
    found = of_controller().run(q, v, still, still, still, ticks=2, controller={"kp": kp})
    assert found.status.tolist() == [0, 1, 1]


def test_masked_arrays_and_what_is_no_mass_are_refused():
    robots, u = of_mechanism(), np.ones((2, 2))
    q, v = hc.assemble(robot("five_bar"))
    masked = np.ma.masked_array(u, u > 0.0)
    for given in (masked, [masked[0], masked[1]]):
        with pytest.raises(hc.InputError, match="u has masked entries"):
            robots.run(q, v, given)
    for mass in ("1.5", np.array([1.0 + 2.0j]), True, None, [[1.0], [1.0, 2.0]]):
        with pytest.raises(hc.InputError, match="payload_mass must be an array of real numbers"):
            robots.run(q, v, u, plant={"payload_mass": mass})
    with pytest.raises(hc.InputError, match="payload_mass has masked entries"):
        robots.run(q, v, u, plant={"payload_mass": np.ma.masked_array([1.0, 2.0], [True, False])})
    usual = np.ma.masked_array(u, u < 0.0)
    assert np.array_equal(robots.run(q, v, usual).q, robots.run(q, v, u).q)


@pytest.mark.parametrize("name", few(["日本", "typedef enum", "*/ int x; /*"], ["typedef enum"]))
def test_any_name_of_a_mechanism_will_do(name):
    mech = dataclasses.replace(robot("five_bar"), name=name)
    q, v = hc.assemble(mech)
    robots = hc.Rollouts(mech, DT)
    assert robots.statuses == of_mechanism().statuses
    u = np.ones((3, 2))
    assert np.allclose(robots.run(q, v, u).q, of_mechanism().run(q, v, u).q, rtol=0.0, atol=1e-14)


@pytest.mark.slow
def test_after_ctrl_c_no_thread_computes_on():
    q, v = hc.assemble(robot("five_bar"))
    robots = hc.Rollouts(of_mechanism().what, DT, payload="tip_right", gravity=True, workers=2)
    Q = np.tile(q, (100_000, 1))
    threads = threading.active_count()
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        robots.run(Q, v, np.zeros(2), ticks=100, every=100)
    timer.join()
    assert threading.active_count() == threads


@pytest.mark.slow
def test_a_chain_with_long_code_is_compiled_right():
    mech = zoo.closed_chain("weld", 0)
    Q, V = states(mech, 2, size=0.05)
    found = hc.Rollouts(mech, DT).run(Q, V, np.ones(2), ticks=5)
    assert not found.status.any()
    for k in range(2):
        q, v = Q[k], V[k]
        for _ in range(5):
            q, v = step(mech, q, v, np.ones(2))
        assert np.abs(found.q[k, -1] - q).max() < 1e-10


def test_bits_do_not_depend_on_the_others():
    mech, rng = robot("five_bar"), np.random.default_rng(5)
    Q, V = states(mech, 7, seed=6)
    goal = np.array([mech.motor_positions(q) for q in Q])[:, None] + 0.1 * rng.normal(
        size=(7, 9, 2)
    )
    still = np.zeros(2)
    robots = with_sensors((1e-4, 1e-2), 2.0**14)
    whole = robots.run(Q, V, goal, still, still, seed=11)
    assert not whole.status.any()
    alone = hc.Rollouts(robots.what, DT, sensors=robots.sensors, workers=1)
    again = alone.run(Q, V, goal, still, still, seed=11)
    part = robots.run(Q[3:], V[3:], goal[3:], still, still, seed=11, first_robot=3)
    strided = robots.run(
        np.asfortranarray(Q), V, np.ascontiguousarray(goal.T).T, still, np.zeros((9, 2)), seed=11
    )
    for x in ("q", "v", "u"):
        assert np.array_equal(getattr(whole, x), getattr(again, x))
        assert np.array_equal(getattr(whole, x), getattr(strided, x))
        assert np.array_equal(getattr(whole, x)[3:], getattr(part, x))
    other = robots.run(Q, V, goal, still, still, seed=12)
    assert not np.array_equal(whole.u, other.u)


def test_a_controller_that_sees_motors_gets_the_state_of_the_estimator():
    mech, law = robot("five_bar"), controller("five_bar")
    (q,), (v,) = states(mech, 1, seed=8)
    goal, still = mech.motor_positions(q) + 0.1, np.zeros(2)
    counts = 2.0**10
    found = with_sensors((0.0, 0.0), counts).run(q, v, goal, still, still, ticks=8)
    loop = law.loop()
    loop.reset(q)
    size = 2.0 * np.pi / counts
    for h in range(8):
        seen = size * np.rint(mech.motor_positions(q) / size)
        u = loop.torque_from_motors(seen, mech.B.T @ v, goal, still, still)
        assert np.abs(found.u[0, h] - u).max() < 1e-8
        q, v = step(mech, q, v, u)
    exact = of_controller().run(q, v, goal, still, still, ticks=8)
    assert np.abs(found.u - exact.u).max() > 1e-3


@pytest.mark.slow
def test_noise_has_its_size_and_differs():
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    goal, still, N = mech.motor_positions(q), np.zeros(2), 4000
    found = with_sensors((0.0, 1e-2), None).run(np.tile(q, (N, 1)), v, goal, still, still, ticks=1)
    quiet = of_controller().run(q, v, goal, still, still, ticks=1)
    off = found.u[:, 0] - quiet.u[0, 0]
    assert len(np.unique(off[:, 0])) == N
    assert np.abs(off.mean(axis=0)).max() < 4.0 * off.std(axis=0).max() / np.sqrt(N)
    pinned = np.linalg.lstsq(
        np.array([
            controller("five_bar").torque(q, v, goal, x, still) - quiet.u[0, 0] for x in np.eye(2)
        ]).T, off.T, rcond=None,
    )[0]  # fmt: skip
    assert np.allclose(pinned.std(axis=1), 1e-2, rtol=0.05)
    assert abs(np.corrcoef(pinned)[0, 1]) < 0.06


def test_random_numbers_are_those_of_random123():
    body = """  unsigned int given[6], found[4];
  for (int i = 0; i < 6; i++) given[i] = (unsigned int)words.at[k * words.robot + i * words.entry];
  philox(given, given[4], given[5], found);
  for (int i = 0; i < 4; i++) x.at[k * x.robot + i * x.entry] = (double)found[i];"""
    kernel = Kernel("words", (("table", "words"), ("table", "x")), body)
    module = on_cores(1).build(program(filled("philox.c"), [kernel]))
    given = np.array([[0.0] * 6, [2.0**32 - 1.0] * 6])
    found = np.empty((2, 4))
    module.run("words", 2, given, found)
    assert [[f"{int(x):08x}" for x in row] for row in found] == [
        ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"],
        ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"],
    ]


@pytest.mark.slow
def test_laws_of_tasks_and_limits_are_followed():
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    bounded = controller("five_bar", limits=hc.Limits(effort=3.0), policy="scale")
    goal, still = mech.motor_positions(q) + 0.3, np.zeros(2)
    found = hc.Rollouts(bounded, DT).run(q, v, goal, still, still, ticks=30)
    assert found.status.tolist() == [0]
    assert found.counts[0, 0] == 30
    assert found.counts[0, 1] > 0
    assert np.abs(found.u).max() <= 3.0
    assert np.abs(found.u[0, 0] - bounded.torque(q, v, goal, still, still)).max() < 1e-9
    law = hc.TaskSpaceControl(mech, hc.FrameTask("tip_right", "x z"), 400.0, 40.0)
    robots = hc.Rollouts(law, DT)
    assert list(robots.followed) == ["value", "rate", "acceleration"]
    there = hc.task_terms(hc.project(mech, q, v), law.tasks[0]).value + 0.01
    found = robots.run(q, v, there, still, still, ticks=5)
    u = law.torque(q, v, (there, still, still))
    assert np.abs(found.u[0, 0] - u).max() < 1e-8
    assert np.abs(u).max() > 0.1


def test_arrays_of_other_libraries_are_taken_as_they_are():
    mech = robot("five_bar")
    Q, V = states(mech, 2)
    U = np.ones((2, 4, 2))
    found = of_mechanism().run(Foreign(Q), Foreign(V), Foreign(U))
    assert np.array_equal(found.q, of_mechanism().run(Q, V, U).q)


def test_what_does_not_fit_is_refused_by_name():
    mech, robots = robot("five_bar"), of_controller()
    q, v = hc.assemble(mech)
    z = np.zeros(2)
    cases = [
        ((q, v, z, z), {"ticks": 1}, "run takes q, v, q_ref, v_ref, a_ref; got 2 arrays"),
        ((q[:3], v, z, z, z), {"ticks": 1}, r"q must have shape \(4,\) or \(N, 4\); got \(3,\)"),
        ((q, v, z, z, z), {}, "the number of ticks is not known: give ticks="),
        ((q, v, np.zeros((3, 2)), np.zeros((4, 2)), z), {}, "ticks must agree; got 3 of q_ref, 4"),
        ((np.tile(q, (2, 1)), np.tile(v, (3, 1)), z, z, z), {"ticks": 1}, "robots must agree"),
        ((q, v, z, z, z), {"ticks": 10, "every": 3}, "every must divide"),
        ((q, v, z, z, z), {"ticks": 0}, "ticks"),
        ((np.tile(q, (3, 1)), v, np.zeros((3, 2)), z, z), {}, "are these 3 rows ticks, or robots"),
        ((q, v, z, z, z), {"ticks": 1, "plant": {"kp": 1.0}}, "plant: 'kp' is no parameter"),
        ((q, v, "a", z, z), {"ticks": 1}, "q_ref must be an array of real numbers"),
    ]  # fmt: skip
    for given, options, message in cases:
        with pytest.raises(hc.InputError, match=message):
            robots.run(*given, **options)
    law = controller("five_bar")
    for options, message in (
        ({"device": "gpu"}, "device must be.*cpu.*cuda"), ({"workers": 0}, "workers"),
        ({"sensors": hc.Sensors(delay=1e-3)}, "without delay"), ({"substeps": 0}, "substeps"),
        ({"sensors": hc.Sensors("all")}, "leave out"),
        ({"sensors": 3}, "must be Sensors; got a int"),
        ({"payload": "tip_left_"}, "no joint or frame called"),
    ):  # fmt: skip
        with pytest.raises(hc.InputError, match=message):
            hc.Rollouts(law, DT, **options)
    with pytest.raises(hc.InputError, match="dt"):
        hc.Rollouts(law, 0.0)
    with pytest.raises(hc.InputError, match="reads no sensors"):
        hc.Rollouts(mech, DT, sensors=hc.Sensors())
    passive = hc.ComputedTorque(zoo.floating_leg(), kp=400.0, kd=40.0)
    with pytest.raises(hc.InputError, match="floating_leg: the motors do not determine"):
        hc.Rollouts(passive, DT, sensors=hc.Sensors())
    with pytest.raises(hc.InputError, match="what must be a Mechanism"):
        hc.Rollouts(mech.model, DT)


def test_a_row_of_one_tick_is_held():
    mech = robot("five_bar")
    Q, V = states(mech, 3)
    U = np.random.default_rng(2).normal(size=(3, 1, 2))
    held = of_mechanism().run(Q, V, U, ticks=4)
    each = of_mechanism().run(Q, V, np.repeat(U, 4, axis=1))
    assert np.array_equal(held.q, each.q)
    assert repr(held) == "<RolloutResult of 3 robots, 5 instants>"
    assert of_mechanism().run(Q, V, U).q.shape == (3, 2, 4)
    Q[2] = np.nan
    said = of_mechanism().run(Q, V, U).describe()
    assert said == "2 of 3 robots came to the end; 1 robot (2, after 0 ticks): NOT_FINITE"


@pytest.mark.slow
def test_a_pickle_is_built_again():
    q, v = hc.assemble(robot("five_bar"))
    robots = of_mechanism()
    again = pickle.loads(pickle.dumps(robots))
    assert repr(again) == "<Rollouts 'five_bar' on cpu>"
    assert np.array_equal(again.run(q, v, np.ones((5, 2))).q, robots.run(q, v, np.ones((5, 2))).q)
