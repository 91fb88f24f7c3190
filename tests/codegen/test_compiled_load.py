"""Payload and gravity that may change in compiled laws, beside mechanisms that have them built
in."""

from __future__ import annotations

import logging
import pickle
import threading
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from expressed import ca
from support import closed_states, few, mechanism, relative
from test_load_in_c import LAWS, loaded, states

import holoctl as hc

pytestmark = pytest.mark.skipif(ca is None, reason="needs casadi")

MASS, CENTRE = 0.8, (0.05, -0.02, 0.08)
XX, YY, ZZ, XY, XZ, YZ = 4e-3, 3e-3, 3.5e-3, 4e-4, -5e-4, 6e-4
PAYLOAD = pin.Inertia(MASS, np.array(CENTRE), np.array([[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]))
"""That of tests/codegen/test_load_in_c.py."""

WALL = (9.81, 0.0, 0.0)
SAME = 1e-12

FRAMES = {
    "five_bar": "tip_right", "delta": "tip", "stewart": "tip", "leg": "ankle",
    "floating_leg": "wheel", "three_motors": "right_rod", "universal_rods": "rod_2",
}  # fmt: skip
"""Robots, then mechanisms of the zoo: a floating base with a continuous joint, redundant motors,
and balls with composite joints."""

FUNCTIONS = ["inverse_dynamics", "forward_dynamics", "terms"]


def robot(name):
    return hc.load(hc.robot_file(name)) if name in hc.robot_names() else mechanism(name)


def states_of(name, mech, n):
    if name in hc.robot_names():
        yield from ((q, v) for q, v, _ in states(mech, n))
    else:
        yield from closed_states(name)[:n]


@cache
def plain_and_loads(name, machine):
    """A compiled law that may carry something, and the same mechanism with loads built in."""
    mech = robot(name)
    fast = hc.compile(
        mech, FUNCTIONS, machine=machine, inconsistent="project", payload=FRAMES[name],
        gravity=True, flags=["-O0"],
    )  # fmt: skip
    return fast, [
        (fast, mech),
        (fast.loaded(PAYLOAD), loaded(mech, FRAMES[name])),
        (fast.loaded(PAYLOAD, WALL), loaded(mech, FRAMES[name], wall=True)),
    ]


CASES = [f"{name} {machine}" for name in FRAMES for machine in ("vm", "c")]


@pytest.mark.parametrize("case", few(CASES, ["five_bar vm", "floating_leg vm", "five_bar c"]))
def test_the_laws_are_those_of_a_model_with_the_load(case):
    name, machine = case.split()
    fast, cases = plain_and_loads(name, machine)
    found = []
    for heavy, built_in in cases:
        rng = np.random.default_rng(5)
        part = fast.partition
        # the share of redundant motors is that of the scales
        mech = heavy.mech if name == "three_motors" else built_in
        inverse = hc.PreparedInverseDynamics(mech, part, inconsistent="project")
        found.append([])
        for q, v in states_of(name, mech, 6):
            target = rng.normal(size=mech.nu)
            u = heavy.inverse_dynamics(q, v, target)
            assert relative(u, inverse.torque(q, v, target)) < SAME
            T, got = hc.terms(mech, q, v), heavy.terms(q, v)
            assert relative(got.M, T.M) < SAME
            assert relative(got.h, T.h) < SAME
            a = hc.forward_dynamics(mech, q, v, np.zeros(mech.nv), partition=part).a
            assert relative(heavy.forward_dynamics(q, v, np.zeros(mech.nv)), a) < 10.0 * SAME
            found[-1].append(np.r_[u, a])  # in free fall gravity takes no efforts
    assert fast.fallbacks == 0
    plain, heavy, wall = np.array(found)
    assert relative(plain, heavy) > 1e-2
    assert relative(wall, heavy) > 1e-2


@pytest.mark.parametrize("machine", ["vm", "c"])
def test_batches_and_their_certificates_have_the_load(machine):
    fast, cases = plain_and_loads("five_bar", machine)
    rng = np.random.default_rng(2)
    for heavy, mech in cases:
        Q, V = (np.array(x) for x in zip(*states_of("five_bar", mech, 8), strict=True))
        T, TAU = rng.normal(size=(8, 2)), rng.normal(size=(8, 4))
        U, of_u = heavy.inverse_dynamics_batch(Q, V, T, certificate=True)
        A, of_a = heavy.forward_dynamics_batch(Q, V, TAU, certificate=True)
        assert relative(heavy.inverse_dynamics_batch(Q, V, T), U) < SAME
        assert relative(heavy.forward_dynamics_batch(Q, V, TAU), A) < 10.0 * SAME
        assert of_u.ok.all()
        assert of_a.ok.all()
        for q, v, target, u, dynamics in zip(Q, V, T, U, of_u.dynamics, strict=True):
            right = hc.inverse_dynamics(mech, q, v, target, partition=fast.partition)
            assert relative(u, right.u) < SAME
            assert abs(dynamics - right.certificate.dynamics) < 1e-14
            assert heavy.certificate(q, v, target).dynamics < 1e-12


NEARLY_SINGULAR = np.array([2.2, -1.4, 0.9, 4.438])
"""Of five_bar, next to a closed configuration whose condition number is above 100."""


@pytest.mark.parametrize("machine", ["vm", "c"])
def test_near_singular_states_python_answers_with_the_load(machine):
    fast, cases = plain_and_loads("five_bar", machine)
    rng, found = np.random.default_rng(4), []
    for heavy, mech in cases:
        q, v = hc.assemble(mech, NEARLY_SINGULAR, 0.1 * np.ones(4), restarts=0)
        target, tau, count = rng.normal(size=2), rng.normal(size=4), fast.fallbacks
        u, a = heavy.inverse_dynamics(q, v, target), heavy.forward_dynamics(q, v, tau)
        (batched,) = heavy.forward_dynamics_batch([q], [v], [tau])
        assert fast.fallbacks == count + 3 == heavy.fallbacks
        right = hc.PreparedInverseDynamics(mech, fast.partition).torque(q, v, target)
        assert relative(u, right) < 1e-10
        forward = hc.forward_dynamics(mech, q, v, tau, partition=fast.partition)
        assert relative(a, forward.a) < 1e-10
        assert relative(batched, forward.a) < 1e-10
        with pytest.raises(hc.InconsistentError):
            heavy.inverse_dynamics(q + 0.1, v, target)
        found.append(u)
    assert min(np.abs(np.diff(found, axis=0)).max(axis=1)) > 0.1


# -------------------------------------------------------------------------------- controllers


def requests(mech, q, v, rng):
    at = mech.motor_positions(q) + 0.05 * rng.normal(size=mech.nu)
    return (q, v, at, *rng.normal(size=(2, mech.nu)))


def of_a_task(law, q, v, rng):
    task = law.task if isinstance(law, hc.Impedance) else law.tasks[0]
    at = hc.task_terms(hc.project(law.mech, q, v), task)
    rows = at.rate.size
    value, rate = at.value + 0.02 * rng.normal(size=rows), 0.1 * rng.normal(size=rows)
    return q, v, (value, at.rate + rate, 100.0 * rng.normal(size=rows))


LIMITED = ("nearest", "scale", "held_scale", "limited_task")
SEVERAL = [f"{x} {'c' if x in LIMITED else 'vm'}" for x in LAWS if x != "inverse"]


@pytest.mark.parametrize(
    "case", few([*SEVERAL, "torque c", "task c"], ["torque vm", "task vm", "scale c"])
)
def test_torques_of_controllers_have_the_load(case):
    which, machine = case.split()
    mech, rng, moved, limited = robot("five_bar"), np.random.default_rng(6), 0.0, 0
    fast = hc.compile(
        LAWS[which](mech), ["torque"], machine=machine, payload="tip_right", gravity=True,
        flags=["-O0"],
    )  # fmt: skip
    for heavy, other in (
        (fast, mech),
        (fast.loaded(PAYLOAD), loaded(mech, "tip_right")),
        (fast.loaded(PAYLOAD).loaded(gravity=WALL), loaded(mech, "tip_right", wall=True)),
    ):
        law = LAWS[which](other)
        of_task = not isinstance(law, hc.ComputedTorque)
        for q, v, _ in states(mech, 12):
            given = of_a_task(law, q, v, rng) if of_task else requests(mech, q, v, rng)
            u, right = heavy.torque(*given), law.torque(*given)
            assert relative(u, right) < 10.0 * SAME
            moved = max(moved, relative(u, fast.torque(*given)))
            limited += which in LIMITED and bool((np.abs(u) > 8.0 - 1e-6).any())
    assert fast.fallbacks == 0
    assert moved > 1e-2
    assert (limited > 0) == (which in LIMITED)


def test_derivatives_have_the_load():
    mech = robot("five_bar")
    functions = ["forward_dynamics", *(f"{x}_dynamics_derivatives" for x in ("inverse", "forward"))]
    fast = hc.compile(mech, functions, machine="vm", payload="tip_right", gravity=True)
    heavy, other = fast.loaded(PAYLOAD, WALL), loaded(mech, "tip_right", wall=True)
    right = hc.compile(other, functions, machine="vm", partition=fast.partition)
    for q, v, rng in states(mech, 3):
        target, tau = rng.normal(size=2), rng.normal(size=4)
        for name, given in (("inverse", target), ("forward", tau)):
            found = getattr(heavy, f"{name}_dynamics_derivatives")(q, v, given)
            expected = getattr(right, f"{name}_dynamics_derivatives")(q, v, given)
            for x, y in zip(found, expected, strict=True):
                assert relative(x, y) < 10.0 * SAME
        model = hc.linearize(heavy, q)
        assert relative(model.A, hc.linearize(right, q).A) < 1e-9
    assert fast.fallbacks == 0


def test_a_simulation_and_a_tracking_have_the_load():
    """The plant carries a load, and a controller that knows it stays on its way."""
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    plant = hc.compile(mech, ["forward_dynamics"], machine="vm", payload="tip_right").loaded(2.0)
    fast = hc.compile(
        hc.ComputedTorque(mech, kp=400.0, kd=40.0), ["torque"], machine="vm", payload="tip_right"
    )
    home, rest = mech.motor_positions(q), np.zeros(2)
    off = [
        np.abs(hc.simulate(x.mech, x.track(lambda t: (home, rest, rest)), q, v, 0.1, plant=plant)
               .q[-1] - q).max()
        for x in (fast, fast.loaded(2.0))
    ]  # fmt: skip
    assert off[0] > 1e-3
    assert off[1] < 1e-9
    free = hc.simulate(plant.mech, None, q, v, 0.1, plant=plant)
    right = hc.simulate(plant.mech, None, q, v, 0.1)
    assert relative(free.q, right.q) < 1e-8
    assert plant.fallbacks == fast.fallbacks == 0


# --------------------------------------------------------------------------------------- loops


@pytest.fixture(scope="module")
def in_a_loop():
    ctl = hc.ComputedTorque(robot("five_bar"), kp=400.0, kd=40.0, ki=2000.0)
    return hc.compile(ctl, ["torque", "state"], payload="tip_right", flags=["-O0"])


@pytest.fixture(scope="module")
def without_integral():
    ctl = hc.ComputedTorque(robot("five_bar"), kp=400.0, kd=40.0)
    return hc.compile(ctl, ["torque", "state"], payload="tip_right", flags=["-O0"])


@pytest.mark.parametrize("kind", ["in_a_loop", "without_integral"])
def test_a_loop_continues_with_another_load(kind, request):
    """From the state that the mechanism has, far from the reference, and with its integral."""
    fast = request.getfixturevalue(kind)
    home = fast.mech.motor_positions(hc.assemble(fast.mech)[0])
    heavy = fast.loaded(PAYLOAD)
    empty = fast.controller.loop()
    right = heavy.controller.loop()
    loop, rest = fast.loop(), np.zeros(2)
    for i in range(60):
        at = home + np.array([-0.01, 0.01]) * i
        given = at, rest, at + 0.01, rest, rest
        u = loop.torque_from_motors(*given)
        assert relative(u, empty.torque_from_motors(*given)) < 1e-11
        right.torque_from_motors(*given)
    before, old = u, loop
    loop = heavy.loop(after=old)
    u, expected = loop.torque_from_motors(*given), right.torque_from_motors(*given)
    assert relative(u, expected) < 1e-11
    assert relative(u, before) > 1e-2
    np.testing.assert_allclose(loop.estimator.q, right.estimator.q, atol=1e-12)
    # that of before keeps its law, here with a little more integral
    assert relative(old.torque_from_motors(*given), before) < 0.1 * relative(u, before)
    # the loop of a thread goes on by itself
    fast.reset(loop.estimator.q)
    fast.torque_from_motors(*given)
    again = fast.loaded(PAYLOAD)
    assert again.torque_from_motors(*given).shape == (2,)
    np.testing.assert_allclose(again.state(given[0])[0], loop.estimator.q, atol=1e-12)
    assert fast.fallbacks == 0


def test_loops_of_other_laws_are_not_continued(in_a_loop, without_integral):
    for other in (without_integral.loop(), in_a_loop.controller.loop(), "loop"):
        with pytest.raises(hc.InputError, match=r"fast\.loaded\(\.\.\.\)\.loop\(after=loop\)"):
            in_a_loop.loop(after=other)
    with pytest.raises(hc.InputError, match="same compiled law"):
        in_a_loop.controller.loop(after=in_a_loop.loop())


@pytest.mark.slow
def test_tasks_and_sensors_of_a_controller_keep_theirs():
    mech = robot("five_bar")
    sensors = hc.ClosedStateEstimator(mech, measured=["motor_left", "elbow_left"])
    for ctl in (
        hc.ComputedTorque(mech, kp=400.0, kd=40.0, estimator=sensors),
        hc.TaskSpaceControl(
            mech, hc.FrameTask("tip_left", "x z"), kp=400.0, kd=40.0, estimator=sensors
        ),
    ):
        fast = hc.compile(ctl, payload="tip_right", flags=["-O0"])
        heavy = fast.loaded(PAYLOAD)
        assert heavy.controller.estimator.measured == sensors.measured
        assert heavy.loop().measured == sensors.measured
        q, _ = hc.assemble(mech)
        given = (
            (mech.motor_positions(q), np.zeros(2), np.zeros(2))
            if isinstance(ctl, hc.ComputedTorque) else (np.array([0.0, 0.4]),)
        )  # fmt: skip
        u = heavy.loop().torque_from_motors(q[:2], np.zeros(2), *given)
        right = heavy.controller.loop().torque_from_motors(q[:2], np.zeros(2), *given)
        assert relative(u, right) < 1e-11
        assert relative(u, fast.loop().torque_from_motors(q[:2], np.zeros(2), *given)) > 1e-2


# ------------------------------------------------------------------------- values and threads


@pytest.mark.parametrize("machine", ["vm", "c"])
def test_loads_change_between_ticks_and_share_the_code(machine):
    fast, _ = plain_and_loads("five_bar", machine)
    q, v = hc.assemble(fast.mech, v_guess=np.ones(4))
    target = np.ones(2)
    expected = {}
    for mass in (0.0, 0.5, 1.0, 2.0):
        expected[mass] = fast.loaded(mass).inverse_dynamics(q, v, target)
    change = np.diff([expected[x] for x in (0.0, 0.5, 1.0)], axis=0)
    assert relative(*change) < 1e-12  # efforts are linear in the mass
    assert relative(expected[0.0], fast.inverse_dynamics(q, v, target)) < SAME
    laws = {mass: fast.loaded(mass) for mass in expected}
    wrong = []

    def work(mass):
        for _ in range(300):
            if not np.array_equal(laws[mass].inverse_dynamics(q, v, target), expected[mass]):
                wrong.append(mass)

    threads = [threading.Thread(target=work, args=(mass,)) for mass in laws]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("machine", ["vm", "c"])
def test_a_pickle_has_the_load(machine):
    fast, _ = plain_and_loads("five_bar", machine)
    q, v = hc.assemble(fast.mech, v_guess=np.ones(4))
    for heavy in (fast, fast.loaded(PAYLOAD), fast.loaded(PAYLOAD, WALL)):
        again = pickle.loads(pickle.dumps(heavy))
        u = heavy.inverse_dynamics(q, v, np.ones(2))
        assert np.array_equal(again.inverse_dynamics(q, v, np.ones(2)), u)
        assert relative(hc.inverse_dynamics(again.mech, q, v, np.ones(2)).u, u) < SAME
        lighter = again.loaded(0.0).inverse_dynamics(q, v, np.ones(2))
        plain = fast.loaded(gravity=again.mech.model.gravity.linear)
        assert relative(lighter, plain.inverse_dynamics(q, v, np.ones(2))) < SAME


def test_what_no_body_has_is_refused():
    fast, _ = plain_and_loads("five_bar", "vm")
    body = pin.Inertia(PAYLOAD)
    body.mass = -0.1
    long = pin.Inertia(PAYLOAD)
    long.inertia = np.diag([1e-3, 1e-3, 1.0])
    lost = pin.Inertia(PAYLOAD)
    lost.lever = np.array([0.0, np.nan, 0.0])
    for given, message in (
        ({"payload": -1.0}, r"payload: mass \(kg\) must not be negative; got -1"),
        ({"payload": np.nan}, "payload.*must be finite"),
        ({"payload": body}, "must not be negative; got -0.1"),
        ({"payload": long}, "payload: inertia: no body has it"),
        ({"payload": lost}, "centre of mass.*must be finite"),
        ({"payload": "2 kg"}, "payload.*must be a number"),
        ({"payload": ("tip", 1.0)}, "its mass, kg, or a pin.Inertia"),
        ({"gravity": [0.0, 0.0]}, r"gravity.*must have shape \(3,\)"),
        ({"gravity": [0.0, 0.0, np.inf]}, "gravity.*must be finite"),
    ):
        with pytest.raises(hc.InputError, match=message):
            fast.loaded(**given)


def test_what_was_not_compiled_is_named():
    mech = robot("five_bar")
    plain = hc.compile(mech, ["inverse_dynamics"], machine="vm")
    held = hc.compile(mech, ["inverse_dynamics"], machine="vm", payload="tip_right")
    falling = hc.compile(mech, ["inverse_dynamics"], machine="vm", gravity=True)
    task = hc.compile(LAWS["task"](mech), machine="vm")
    for law, given, message in (
        (plain, {"payload": 1.0}, "payload or gravity was not compiled"),
        (plain, {}, "payload or gravity was not compiled"),
        (task, {"payload": 1.0}, "payload or gravity was not compiled"),
        (held, {"gravity": WALL}, r"gravity was not compiled; hc.compile\(..., gravity=True\)"),
        (falling, {"payload": 1.0}, "payload was not compiled.*name of a frame"),
    ):
        with pytest.raises(hc.InputError, match=message):
            law.loaded(**given)
    q, v = hc.assemble(mech)
    for law, given in ((held, {"payload": 2.0}), (falling, {"gravity": WALL})):
        u = law.loaded(**given).inverse_dynamics(q, v, np.zeros(2))
        assert relative(u, law.inverse_dynamics(q, v, np.zeros(2))) > 0.1


def test_what_cannot_have_them_is_refused_as_in_exported_c(tmp_path):
    mech = robot("five_bar")
    bounded = hc.ComputedTorque(
        mech, 400.0, 40.0, limits=hc.Limits(effort=8.0, position={"elbow_left": (-3.0, 0.5)})
    )
    centre = hc.TaskSpaceControl(mech, hc.CenterOfMassTask("x z"), kp=100.0, kd=20.0)
    damped = hc.TaskSpaceControl(
        mech, hc.FrameTask("tip", "x z"), kp=100.0, kd=20.0, at_singular="damp"
    )
    carried = mech.with_forces([hc.Counterbalance("tip_right", mass=0.5)])
    for what, options in (
        (mech, {"payload": "tip_rigth"}), (mech, {"payload": "universe"}),
        (mech, {"payload": ("tip", 1.0)}), (mech, {"gravity": "yes"}),
        (bounded, {"payload": "tip"}), (bounded, {"gravity": True}), (centre, {"payload": "tip"}),
        (damped, {"payload": "tip"}), (carried, {"gravity": True}),
    ):  # fmt: skip
        with pytest.raises(hc.InputError) as exported:
            hc.export_c(what, tmp_path, **options)
        with pytest.raises(hc.InputError) as refused:
            hc.compile(what, **options)
        assert str(refused.value) == str(exported.value)


def test_a_load_that_limits_cannot_hold_is_reported(caplog):
    mech = robot("five_bar")
    ctl = hc.ComputedTorque(mech, 400.0, 40.0, limits=hc.Limits(effort=8.0))
    fast = hc.compile(ctl, ["torque"], payload="tip_right", flags=["-O0"])
    with caplog.at_level(logging.WARNING, logger="holoctl"):
        fast.loaded(1.0)
        assert not caplog.records
        fast.loaded(20.0)
    assert "cannot hold the mechanism still" in caplog.text
