"""The closed state from what is measured: exported and compiled C agree with Python, and refuse
what it refuses."""

from __future__ import annotations

import pickle
import threading
from functools import cache

import numpy as np
import overconstrained_loops
import pinocchio as pin
import pytest
import zoo
from exported import STRICT, Exported, build_and_test, cmake, compilers, robot, run
from expressed import with_expression
from support import few, mechanism

import holoctl as hc

pytest.importorskip("casadi")


def floating(name):
    return hc.load(hc.robot_file(name), free_flyer=True)


CASES = {
    "five_bar": (lambda: robot("five_bar"), None),
    "four_bar": (lambda: robot("four_bar"), None),
    "continuous": (lambda: mechanism("floating_leg"), ("hip", "motor_crank", "wheel", "head")),
    "delta": (lambda: robot("delta"), None),
    "stewart": (lambda: robot("stewart"), None),
    "leg, floating": (lambda: floating("leg"), None),
    "geared_arm": (lambda: robot("geared_arm"), None),
    "idle": (lambda: mechanism("idle_rod"), None),
    "redundant": (lambda: mechanism("three_motors"), None),
    "redundant, floating": (lambda: mechanism("standing_leg"), None),
    "cut": (lambda: robot("five_bar"), ("motor_left", "tip_hinge")),
    "cut, redundant": (lambda: robot("five_bar"), ("motor_left", "motor_right", "tip_hinge")),
    "passive": (lambda: robot("five_bar"), ("elbow_left", "elbow_right")),
    "timed": (lambda: with_expression("timed_arm"), None),
    "rows repeat": (lambda: mechanism("third_bar"), None),
    "screw": (lambda: mechanism("screw_chain"), None),
}
QUICK = ("five_bar", "leg, floating", "redundant")
REST = np.zeros(2)


@cache
def case(name):
    """The mechanism, and what is measured."""
    make, measured = CASES[name]
    return make(), measured


@cache
def machine_code(mech):
    """What finds the state of a mechanism from its motors; each loop of it has its own memory."""
    return hc.compile(mech, ["state"], flags=["-O0"])


def walk(assembly, count, size, seed=0, dt=0.0):
    """What is measured along random closed configurations, which follow from where `assembly` is:
    the next is made when it is asked for."""
    mech, rng, t = assembly.mech, np.random.default_rng(seed), 0.0
    rates = rng.normal(size=mech.nv)
    for _ in range(count):
        rates, t = 0.97 * rates + 0.25 * rng.normal(size=mech.nv), t + dt
        near = pin.integrate(mech.model, assembly.q, size * rates * mech.column_scale)
        try:
            q, _ = hc.assemble(mech, near, restarts=0, max_iter=50, t=t)
        except hc.AssemblyError:
            continue
        # slow enough that a first reading after a reset is not refused for the way it came
        yield assembly.readings.at(q), 0.03 * rng.normal(size=assembly.readings.columns.size), t


def answer(ask, *given):
    """What comes, or the sentence of the error."""
    try:
        return ask(*given)
    except hc.HoloctlError as error:
        return f"{type(error).__name__}: {error}"


def assert_same(found, expected, gain=1.0):
    """States by C and by Python: rows are closed to 2e-13, which a gain may amplify."""
    for x, y in zip(found, expected, strict=True):
        allowed = 1e-11 * max(1.0, np.abs(y).max()) * max(1.0, gain)
        np.testing.assert_allclose(x, y, rtol=0.0, atol=allowed)


@pytest.mark.parametrize("name", few(CASES, QUICK))
def test_exported_c_follows_as_python_does(name, tmp_path):
    mech, measured = case(name)
    options = {} if measured is None else {"measured": measured}
    exported, python = Exported(mech, tmp_path, **options), hc.ClosedStateEstimator(mech, measured)
    timed, followed, refused = name == "timed", 0, 0
    for x, rates, t in walk(python, 80, 2e-2, dt=1e-3 * timed):
        expected = answer(python.state, x, rates, t)
        status, *state = exported.state(x, rates, *([t] if timed else []))
        if isinstance(expected, str):
            refused += 1
            assert status == "LOST", expected
            python.reset(python.q, t)
            assert exported.begin(python.q, *([t] if timed else [])) == "OK"
            continue
        followed += 1
        assert status == "OK"
        assert_same(state, expected, python.last.gain)
    assert followed > 10 * refused
    assert followed > 60


@pytest.mark.parametrize("name", few(CASES, ["five_bar", "timed"]))
def test_compiled_loops_follow_as_python_does(name):
    mech, measured = case(name)
    fast, python = (
        hc.compile(mech, ["state"], measured=measured, flags=["-O0"]),
        hc.ClosedStateEstimator(mech, measured),
    )
    loop, followed = fast.loop(), 0
    assert loop.measured == python.measured
    for x, rates, t in walk(python, 60, 2e-2, seed=1, dt=1e-3 * (name == "timed")):
        expected = answer(python.state, x, rates, t)
        for ask in (fast.state, loop.state):
            found = answer(ask, x, rates, t)
            if isinstance(expected, str):
                assert found == expected
            else:
                assert_same(found, expected, python.last.gain)
        if isinstance(expected, str):
            for what in (python, fast, loop):
                what.reset(python.q, t)
        else:
            followed += 1
    assert followed > 40
    if name == "five_bar":
        assert fast.fallbacks == 0


# ------------------------------------------------------------------------------ the torque


@pytest.mark.parametrize("name", few(["five_bar", "stewart", "leg"], ["five_bar"]))
def test_the_torque_is_that_of_the_state_that_is_found(name, tmp_path):
    mech = floating(name) if name == "leg" else robot(name)
    ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    fast, python = hc.compile(ctl, ["torque", "state"], flags=["-O0"]), ctl.loop()
    exported = Exported(ctl, tmp_path)
    assembly, rng = hc.ClosedStateEstimator(mech, partition=ctl.partition), np.random.default_rng(2)
    for x, rates, _ in walk(assembly, 30, 1e-2):
        assembly.state(x)
        references = rng.normal(size=(3, mech.nu))
        expected = python.torque_from_motors(x, rates, *references)
        u = np.zeros(mech.nu)
        assert fast.torque_from_motors(x, rates, *references, out=u) is u
        np.testing.assert_allclose(u, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())
        status, u = exported.call("torque_from_motors", x, rates, *references)
        if status == "OK":
            np.testing.assert_allclose(u, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())
        else:
            assert status == "PIVOT_GROWTH"


def test_a_mechanism_alone_has_no_torque():
    fast = hc.compile(robot("five_bar"), ["state"], flags=["-O0"])
    with pytest.raises(hc.InputError, match=r"torque was not compiled; hc.compile\(controller\)"):
        fast.torque_from_motors(*np.zeros((5, 2)))


def test_no_rates_no_torque():
    ctl = hc.ComputedTorque(robot("five_bar"), kp=400.0, kd=40.0)
    fast, x = hc.compile(ctl, ["torque"], flags=["-O0"]), hc.assemble(ctl.mech)[0][[0, 2]]
    u = np.full(2, 7.0)
    for ask in (fast.torque_from_motors, fast.loop().torque_from_motors):
        with pytest.raises(hc.InputError, match="v_motors must be given: without rates"):
            ask(x, None, x, REST, REST, out=u)
    assert (u == 7.0).all()
    np.testing.assert_array_equal(fast.state(x)[1], np.zeros(4))  # a state needs none


@pytest.mark.parametrize(
    "out",
    [
        (np.zeros(4),),
        (np.zeros(4), np.zeros(4), np.zeros(4)),
        (np.zeros(4), np.zeros(3)),
        (np.zeros(4), [0.0] * 4),
        (np.zeros(4), np.zeros(4, np.float32)),
        (*[np.zeros(4)] * 2,),
        np.zeros((2, 4)),
        4,
    ],
)
def test_what_cannot_take_a_state_is_refused(out):
    mech = robot("five_bar")
    python, loop = hc.ClosedStateEstimator(mech), machine_code(mech).loop()
    x = python.readings.at(python.q) + 1e-2
    before = loop.state(python.readings.at(python.q))
    expected = answer(lambda: python.state(x, out=out))
    assert expected.startswith("InputError: out")
    assert answer(lambda: loop.state(x, out=out)) == expected
    assert_same(loop.state(python.readings.at(python.q)), before)  # nothing was remembered
    good = np.full(4, 7.0), np.full(4, 7.0)
    assert loop.state(x, REST, out=good)[0] is good[0]
    assert_same(good, python.state(x, REST))


# ---------------------------------------------------------------------------------- far ways


def test_a_body_that_is_measured_whole_may_turn_far():
    """And with sensors more than motions; in C too half of the way is half of the angle."""
    mech, measured = mechanism("universal_rods"), ("turntable", "rod_1[0]", "rod_1[1]", "plate")
    fast, python = (
        hc.compile(mech, ["state"], measured=measured, flags=["-O0"]),
        hc.ClosedStateEstimator(mech, measured),
    )
    loop, guide, home, far = fast.loop(), python.fresh(), python.q, 0
    for x, rates, _ in walk(guide, 60, 3e-2, seed=4):
        guide.state(x)
        for what in (loop, python):
            what.reset(home)
        assert_same(loop.state(x, rates), python.state(x, rates), python.last.gain)
        turn = np.linalg.norm(pin.difference(mech.model, home, guide.q)[3:6])  # of the ball
        far += turn > 0.8 and python.last.substeps > 1
    assert far > 5
    assert fast.fallbacks == 0


# ---------------------------------------------------------------------------------- refusals


def start(exported):
    """At the start; what is measured there."""
    exported.reset()
    return hc.assemble(exported.mech)[0][[0, 2]]


def test_a_jump_is_refused_and_the_state_comes_back_after_a_glitch(five_bar):
    x = start(five_bar)
    references = [x, REST, REST]
    _, before = five_bar.call("torque_from_motors", x, REST, *references)
    _, q, _ = five_bar.state(x, REST)
    status, u = five_bar.call("torque_from_motors", x + np.array([2.5, -2.5]), REST, *references)
    assert status == "LOST"
    np.testing.assert_array_equal(u, before)
    status, there, v = five_bar.state(x + np.array([2.5, -2.5]), REST + 1.0)
    assert status == "LOST"
    np.testing.assert_array_equal(there, q)
    assert not v.any()
    assert five_bar.c.memory.refused == 2
    assert not five_bar.c.memory.latched
    assert five_bar.state(x, REST)[0] == "OK"
    assert five_bar.c.memory.refused == 0
    assert five_bar.c.count[10] == 1  # of torques


def approach(mech, ask, reset):
    """Toward a dead point of the five-bar, motor by motor, until nothing comes any more."""
    q, _ = hc.assemble(mech)
    reset(q)
    x, found = q[[0, 2]], []
    for _ in range(2000):
        x = x + np.array([4e-3, -4e-3])  # the elbows stretch
        found.append(ask(x.copy()))
        if isinstance(found[-1], str):
            return x, found
    pytest.fail("no dead point was met")


def test_a_dead_point_latches_until_reset(five_bar):
    mech = five_bar.mech

    def ask(x):
        status, q, v = five_bar.state(x, REST)
        return (q, v) if status == "OK" else status

    _, found = approach(mech, ask, five_bar.begin)
    python = hc.ClosedStateEstimator(mech)
    _, expected = approach(mech, lambda x: answer(python.state, x, REST), python.reset)
    assert len(found) == len(expected)
    assert_same(found[-2], expected[-2], 100.0)
    assert five_bar.c.memory.latched
    q, _ = hc.assemble(mech)
    for _ in range(3):
        assert five_bar.state(q[[0, 2]], REST)[0] == "LOST"
    assert five_bar.begin(q) == "OK"
    assert five_bar.state(q[[0, 2]], REST)[0] == "OK"


def near_a_dead_point():
    """A slider-crank by its slider: where it is told to be, the state at the first reading after
    that, and whether this is beyond the dead point."""
    mech = zoo.slider_crank("slider")
    by_crank = hc.ClosedStateEstimator(mech, ["crank"])

    def at(angle, rate):
        by_crank.reset(by_crank.start)
        by_crank.resynchronise([angle])
        return by_crank.state([angle], [rate], 1e-6)

    found = []
    for before, now, tick in (
        (0.2, -0.1, 1e-3), (0.1, -0.05, 1e-3), (0.06, -0.04, 1e-3), (0.05, -0.1, 1e-2),
        (0.1, -0.1, 1e-3), (-0.3, 0.2, 4e-3), (0.3, 0.29, 1e-3), (0.3, 0.31, 1e-3),
        (0.05, 0.049, 1e-3), (0.9, 0.9, 1.0), (0.2, 0.15, 1e-3),
        (0.3, -0.3, 2e-2), (-0.22, 0.22, 2e-2), (0.3, 0.31, 2e-2), (0.5, -0.5, 0.2),
    ):  # fmt: skip
        q, v = at(now, (now - before) / tick)
        found.append((at(before, 0.0)[0], q, v, before * now < 0.0, tick))
    return mech, found


def test_compiled_first_readings_are_those_of_python_where_the_time_is_told():
    mech, cases = near_a_dead_point()
    python = hc.ClosedStateEstimator(mech)
    loop = machine_code(mech).loop()
    at = [*mech.coordinate_names].index("slider")
    taken = 0
    for before, q, v, beyond, tick in cases:
        for later in (0.5 * tick, tick, 0.04, 0.3):
            for what in (python, loop):
                what.reset(before, 5.0)
            expected = answer(python.state, q[[at]], v[[at]], 5.0 + later)
            found = answer(loop.state, q[[at]], v[[at]], 5.0 + later)
            if isinstance(expected, str):
                assert found == expected
            else:
                assert later < tick or not beyond
                assert_same(found, expected, 30.0)
                taken += not beyond
    assert taken


def test_compiled_loops_refuse_another_run_and_ask_again_after_a_gap_as_python():
    mech, cases = near_a_dead_point()
    python = hc.ClosedStateEstimator(mech)
    loop = machine_code(mech).loop()
    at, said = [*mech.coordinate_names].index("slider"), set[str]()
    for before, q, v, _, _ in cases:
        for t in (0.0, 0.09, 5.0995, 5.3, 5.4, 9.0):
            for what in (python, loop):
                what.reset(before, 5.0)
            for k in range(1, 101):
                for what in (python, loop):
                    what.state(before[[at]], v[[at]] * (k < 3) * 1e-9, 5.0 + 1e-3 * k)
            expected = answer(python.state, q[[at]], v[[at]], t)
            found = answer(loop.state, q[[at]], v[[at]], t)
            if isinstance(expected, str):
                assert found == expected
                said.add(expected.split(": ", 2)[2][:11])
                expected = answer(python.state, before[[at]], 0.0 * v[[at]], 5.1)
                found = answer(loop.state, before[[at]], 0.0 * v[[at]], 5.1)
            if isinstance(expected, str):
                assert found == expected
            else:
                assert_same(found, expected, 30.0)
    assert "t went back" in said
    assert len(said) > 1


def test_exported_code_that_takes_the_time_refuses_another_run(tmp_path):
    mech, _ = case("timed")
    exported, python = Exported(mech, tmp_path), hc.ClosedStateEstimator(mech)
    x, rest = python.readings.at(python.q), np.zeros(python.readings.columns.size)
    for t in (0.01, 0.02, 0.03, 0.025):  # a clock may be a little off
        expected = answer(python.state, x, rest, t)
        assert exported.state(x, rest, t)[0] == "OK"
    assert not isinstance(expected, str)
    assert "t went back, from 0.025 to 0 s" in answer(python.state, x, rest, 0.0)
    for t in (0.0, 0.04):
        assert exported.state(x, rest, t)[0] == "LOST"
        assert exported.c.memory.latched
    assert exported.begin(exported.c.memory.position[:], 0.025) == "OK"
    assert exported.state(x, rest, 0.03)[0] == "OK"


def test_first_readings_are_those_of_python_or_refused(tmp_path):
    """Exported, compiled, and in Python alike; what is not a number counts as a tick."""
    mech, cases = near_a_dead_point()
    exported, python = Exported(mech, tmp_path), hc.ClosedStateEstimator(mech)
    loop = machine_code(mech).loop()
    at = [*mech.coordinate_names].index("slider")
    for before, q, v, beyond, tick in cases:
        x, rates = q[[at]], v[[at]]
        for bad in range(2):
            for what in (python, loop):
                what.reset(before)
            assert exported.begin(before) == "OK"
            for _ in range(bad):
                answer(python.state, [np.nan], rates)
                answer(loop.state, [np.nan], rates)
                assert exported.state([np.nan], rates)[0] == "NOT_FINITE"
            expected = answer(python.state, x, rates)
            assert isinstance(expected, str) >= (beyond and tick <= 0.05)  # more is to be told
            status, *state = exported.state(x, rates)
            if beyond and tick > 0.05:
                assert (status == "LOST") == isinstance(expected, str)
            elif isinstance(expected, str):
                assert status == "LOST"
                assert exported.c.memory.latched
                assert answer(loop.state, x, rates) == expected
            else:
                assert status == "OK"
                assert_same(expected, (q, v), 30.0)
                assert_same(state, expected, 30.0)
                assert_same(loop.state(x, rates), expected, 30.0)


def test_compiled_loops_say_what_python_says_of_a_dead_point():
    mech = robot("five_bar")
    loop, python = machine_code(mech).loop(), hc.ClosedStateEstimator(mech)
    _, found = approach(mech, lambda x: answer(loop.state, x, REST), loop.reset)
    _, expected = approach(mech, lambda x: answer(python.state, x, REST), python.reset)
    assert found[-1] == expected[-1]
    assert "dead point" in found[-1]
    assert len(found) == len(expected)
    x = hc.assemble(mech)[0][[0, 2]]
    assert answer(loop.state, x, REST) == answer(python.state, x, REST)  # lost
    for what in (loop, python):
        what.reset(hc.assemble(mech)[0])
    assert_same(loop.state(x, REST), python.state(x, REST))


def test_sensors_that_contradict_each_other(tmp_path):
    mech = mechanism("three_motors")
    exported, python = Exported(mech, tmp_path), hc.ClosedStateEstimator(mech)
    fast = hc.compile(mech, ["state"], flags=["-O0"])
    x = python.readings.at(python.q)
    rest = np.zeros(x.size)
    off = x + np.eye(x.size)[2] * 0.3
    with pytest.raises(hc.InconsistentError, match="contradict each other"):
        python.state(off, rest)
    with pytest.raises(hc.InconsistentError, match="contradict each other"):
        fast.state(off, rest)
    assert exported.state(off, rest)[0] == "CONTRADICTORY"
    assert not exported.c.memory.latched
    assert_same(exported.state(x, rest)[1:], python.state(x, rest))
    assert_same(fast.state(x, rest), python.state(x, rest))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_changes_nothing(five_bar, bad):
    x = start(five_bar)
    _, q, _ = five_bar.state(x, REST)
    for i in range(4):
        given = np.concatenate([x, REST])
        given[i] = bad
        status, there, v = five_bar.state(given[:2], given[2:])
        assert status == "NOT_FINITE"
        np.testing.assert_array_equal(there, q)
        assert not v.any()
    assert five_bar.begin(np.full(4, bad)) == "NOT_FINITE"
    assert five_bar.state(x, REST)[0] == "OK"


@pytest.mark.parametrize("size", [1e3, 1e22, 1e200, 1.7e308])
def test_huge_readings_never_give_a_number_that_is_not_finite(five_bar, size):
    x = start(five_bar)
    for sign in (1.0, -1.0):
        for i in range(2):
            away, fast = x + sign * size * np.eye(2)[i], sign * size * np.eye(2)[i]
            for given in ((away, REST), (x, fast)):
                assert five_bar.begin(hc.assemble(robot("five_bar"))[0]) == "OK"
                for _ in range(2):  # behind two readings in motion the past tells
                    assert five_bar.state(x, 1e-3 * np.ones(2))[0] == "OK"
                status, q, v = five_bar.state(*given)
                assert np.isfinite(q).all()
                assert np.isfinite(v).all()
                _, u = five_bar.call("torque_from_motors", *given, x, REST, REST)
                assert np.isfinite(u).all()
                assert status == ("LOST" if given[0] is away else "OK") or size > 1e300
    assert five_bar.state(x, REST)[0] == "OK"


@pytest.mark.slow
def test_whole_turns_of_a_continuous_joint_are_the_same(tmp_path):
    mech, measured = case("continuous")
    exported, fast = (
        Exported(mech, tmp_path, measured=measured),
        hc.compile(mech, ["state"], measured=measured, flags=["-O0"]),
    )
    sensors = hc.ClosedStateEstimator(mech, measured).readings
    x, rates = sensors.at(hc.assemble(mech)[0]), np.zeros(sensors.columns.size)
    _, q, _ = exported.state(x, rates)
    wheel = 2.0 * np.pi * np.eye(x.size)[sensors.of_places[sensors.turning[0]]]
    status, turned, _ = exported.state(x + 20.0 * wheel, rates)
    assert status == "OK"
    np.testing.assert_allclose(turned, q, atol=1e-12)
    np.testing.assert_allclose(fast.state(x - 3.0 * wheel)[0], q, atol=1e-12)


def test_reset_refuses_what_is_open(five_bar):
    x = start(five_bar)
    q, _ = hc.assemble(five_bar.mech)
    assert five_bar.begin(q + 1e-3 * np.eye(4)[1]) == "OPEN"
    assert five_bar.state(x, REST)[0] == "OK"


def test_reset_refuses_what_is_out_of_norm(tmp_path):
    leg = Exported(floating("leg"), tmp_path)
    q, _ = hc.assemble(leg.mech)
    q[3:7] *= 1.0 + 1e-4
    assert leg.begin(q) == "NOT_NORMALISED"
    assert leg.state(q[:11], np.zeros(10))[0] == "NOT_NORMALISED"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["five_bar", "redundant", "idle", "timed"])
def test_sanitizers_find_nothing(name, tmp_path):
    cmake()
    mech, measured = case(name)
    hc.export_c(mech, tmp_path, **({} if measured is None else {"measured": measured}))
    assert "closed states" in build_and_test(tmp_path, compilers()[0], "-DHOLOCTL_SANITIZE=ON")


@pytest.mark.parametrize("name", few(CASES, ["idle"]))
@pytest.mark.parametrize("which", few([0, -1], [-1]))
def test_every_variant_builds_without_a_warning(name, which, tmp_path):
    mech, measured = case(name)
    paths = hc.export_c(mech, tmp_path, **({} if measured is None else {"measured": measured}))
    sources = [x for x in paths if x.suffix == ".c"]
    run(compilers()[which], *STRICT, "-O2", *sources, "-o", tmp_path / "test", "-lm")
    assert "all is well" in run(tmp_path / "test")


def agree(loop, python, x, rates):
    """One answer by both."""
    expected, found = answer(python.state, x, rates), answer(loop.state, x, rates)
    if not isinstance(expected, str):
        assert_same(found, expected, python.last.gain)
        return
    assert found == expected
    if "branch is unproven" in expected:
        loop.reset(python.q)
        python.reset(python.q)


@pytest.mark.parametrize("name", few(["redundant", "idle", "cut"], ["redundant", "cut"]))
def test_what_is_known_goes_from_c_to_python_and_back(name):
    """Glitches are judged by Python, and a far way is gone by it; C then goes on as Python does."""
    mech, measured = case(name)
    python, loop = (
        hc.ClosedStateEstimator(mech, measured),
        hc.compile(mech, ["state"], measured=measured, flags=["-O0"]).loop(),
    )
    glitch = 3.0 * np.random.default_rng(0).normal(size=python.readings.numbers)
    for k, (x, rates, _) in enumerate(walk(python, 60, 2e-2, seed=3)):
        if k % 10 == 5:
            loop.resynchronise(x)
            python.resynchronise(x)
        if k % 7 == 3:
            agree(loop, python, x + glitch, rates)
        agree(loop, python, x, rates)


def test_after_other_rows_were_kept_reset_goes_back_to_machine_code():
    mech = overconstrained_loops.line_symmetric_bricard().mechanism()
    fast = hc.compile(mech, ["state"], flags=["-O0"])
    loop, home = fast.loop(), hc.assemble(mech)[0]
    x = hc.ClosedStateEstimator(mech).readings.at(home)
    guess = [-0.75126786, 0.47899531, 1.25033294, 1.25033294, 0.47899531]
    loop.reset(hc.assemble(mech, np.array(guess))[0])
    loop.state(np.array([0.14281090]), np.zeros(1))
    count = fast.fallbacks
    assert count == 1
    loop.state(np.array([0.14281090]), np.zeros(1))
    assert fast.fallbacks == 2  # Python, which keeps other rows, answers alone
    loop.reset(home)
    loop.state(x, np.zeros(1))
    assert fast.fallbacks == 2


def test_readings_that_contradict_each_other_are_no_usual_step(tmp_path):
    mech = mechanism("three_motors")
    exported, python = Exported(mech, tmp_path), hc.ClosedStateEstimator(mech)
    x = python.readings.at(python.q)
    rest = np.zeros(x.size)
    off = x + np.eye(x.size)[2] * 0.3
    assert answer(python.state, off, rest).startswith("InconsistentError")
    assert exported.state(off, rest)[0] == "CONTRADICTORY"
    assert exported.c.memory.size == 0.0


# ---------------------------------------------------------------------------- what is measured


def test_all_measured_is_without_states(tmp_path):
    ctl = hc.ComputedTorque(robot("five_bar"), kp=1.0, kd=1.0)
    exported = Exported(ctl, tmp_path, measured="all")
    assert not exported.has_state
    assert "memory" not in exported.paths[0].read_text()
    with pytest.raises(hc.InputError, match="measured"):
        hc.export_c(ctl, tmp_path / "other", measured="some")


@pytest.mark.slow
def test_motors_that_do_not_tell_the_state_are_left_out(tmp_path):
    mech = mechanism("floating_leg")
    assert not Exported(mech, tmp_path).has_state
    with pytest.raises(hc.InputError, match="do not determine how"):
        hc.export_c(mech, tmp_path / "told", measured=list(mech.actuated))
    with pytest.raises(hc.InputError, match="do not determine how"):
        hc.compile(mech, ["forward_dynamics"]).state(np.zeros(3))


def test_an_assembly_of_the_controller_says_what_is_measured(tmp_path):
    mech = robot("five_bar")
    q, _ = hc.assemble(mech)
    other = hc.assemble(mech, q + 0.1 * (np.eye(4)[0] - np.eye(4)[1]))[0]
    assembly = hc.ClosedStateEstimator(mech, ["elbow_left", "motor_left"], start=other)
    ctl = hc.ComputedTorque(mech, kp=1.0, kd=1.0, estimator=assembly)
    exported, fast = Exported(ctl, tmp_path), hc.compile(ctl, ["state"], flags=["-O0"])
    x = other[[1, 0]]
    np.testing.assert_allclose(exported.state(x, REST)[1], other, atol=1e-12)
    np.testing.assert_allclose(fast.state(x)[0], other, atol=1e-12)
    assert "elbow_left" in exported.paths[0].read_text().split("What is measured")[1][:100]


# ------------------------------------------------------------------------ loops and arguments


def test_each_thread_and_each_loop_has_a_memory_of_its_own():
    mech = robot("five_bar")
    fast = hc.compile(mech, ["state"], flags=["-O0"])
    x = hc.assemble(mech)[0][[0, 2]]
    loop, found = fast.loop(), []
    for k in range(20):
        fast.state(x + 0.01 * k)
    thread = threading.Thread(target=lambda: found.append(fast.state(x)[0]))
    thread.start()
    thread.join()
    here = loop.state(x)[0]
    np.testing.assert_array_equal(here, found[0])
    assert np.abs(fast.state(x + 0.2)[0] - here).max() > 0.1


def test_arguments_in_any_form():
    mech = robot("five_bar")
    fast, python = hc.compile(mech, ["state"], flags=["-O0"]), hc.ClosedStateEstimator(mech)
    x = hc.assemble(mech)[0][[0, 2]]
    expected = python.state(x, [0.1, 0.2])
    assert_same(fast.state(x.tolist(), [0.1, 0.2]), expected)
    assert_same(fast.state(x.astype(np.float32), (0.1, 0.2), 0), expected, 1e5)
    assert not fast.state(x)[1].any()
    out = np.zeros(4), np.zeros(4)
    q, v = fast.state(x, np.array([0.1, 0.2]), out=out)
    assert q is out[0]
    assert v is out[1]
    assert_same(out, expected)
    for bad in (np.zeros(3), "no", None):
        with pytest.raises(hc.InputError, match="q_measured"):
            fast.state(bad, REST)
    with pytest.raises(hc.InputError, match="out"):
        fast.state(x, REST, out=(np.zeros(3), np.zeros(4)))
    with pytest.raises(hc.InputError, match="finite"):
        fast.state(x, np.array([np.nan, 0.0]))


def test_resynchronise_goes_far_and_c_goes_on_from_there():
    mech = robot("five_bar")
    fast = hc.compile(mech, ["state"], flags=["-O0"])
    loop, python = fast.loop(), hc.ClosedStateEstimator(mech)
    x = hc.assemble(mech)[0][[0, 2]]
    for what in (loop, python):
        what.resynchronise(x + np.array([0.5, 0.4]))
    count = fast.fallbacks
    assert_same(
        loop.state(x + np.array([0.501, 0.4]), REST),
        python.state(x + np.array([0.501, 0.4]), REST),
        10.0,
    )
    assert fast.fallbacks == count


def test_a_pickle_follows_too():
    mech = robot("five_bar")
    fast = hc.compile(mech, ["state"], measured=["motor_left", "elbow_right"], flags=["-O0"])
    again = pickle.loads(pickle.dumps(fast))
    x = hc.assemble(mech)[0][[0, 3]]
    np.testing.assert_array_equal(again.state(x)[0], fast.state(x)[0])
