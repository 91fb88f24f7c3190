"""Exported laws of tasks: built strictly, the torques of their controllers, and every refusal."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from exported import STRICT, Exported, compilers, run
from support import few, relative
from task_code import frame, laws, reference, robot, states
from test_task_code import limited_laws, on_the_way

import holoctl as hc
from holoctl.codegen.laws.task_rows import reference_value
from holoctl.codegen.task_law_options import TaskSubject


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A law of a robot, exported when it is first asked for."""
    return cache(
        lambda name, what: Exported(
            laws(name)[what], tmp_path_factory.mktemp(name) / "law", self_test=True
        )
    )


def given(controller, asked):
    """What C takes."""
    subject = TaskSubject(controller)
    (wanted,) = subject.own.wanted(asked)
    value = reference_value(subject.task, wanted.value)
    return value, wanted.rate, wanted.acceleration


def test_the_torque_of_a_task_is_not_held_for_ever(built):
    controller, c = laws("five_bar")["whole"], built("five_bar", "whole").again()
    rng = np.random.default_rng(5)
    q, v = states(robot("five_bar"), 1, rng)[0]
    asked = given(controller, reference(controller, q, v, rng))
    assert c.call("torque", q, v, *asked)[0] == "OK"
    found = [c.call("torque", np.nan * q, v, *asked) for _ in range(102)]
    assert [status for status, _ in found] == ["NOT_FINITE"] * 100 + ["EXPIRED"] * 2
    assert found[99][1].any()
    assert not found[100][1].any()


CASES = [("five_bar", "whole"), ("five_bar", "other axes"), ("five_bar", "damped, critical"),
         ("five_bar", "few, held"), ("delta", "natural"), ("stewart", "critical"),
         ("stewart", "whole"), ("leg", "few, braked"), ("geared_arm", "posture")]  # fmt: skip
SHORT_CASES = [("five_bar", "whole"), ("five_bar", "other axes")]


@pytest.mark.parametrize("case", few(CASES, SHORT_CASES), ids=str)
def test_torques_are_those_of_the_controller(case, built):
    name, what = case
    controller, c, rng = laws(name)[what], built(name, what), np.random.default_rng(5)
    good = 0
    for q, v in states(robot(name), 10, rng):
        asked = reference(controller, q, v, rng)
        status, u = c.call("torque", q, v, *given(controller, asked))
        try:
            expected = controller.torque(q, v, asked)
        except hc.SingularityError:
            assert status in ("SINGULAR", "PIVOT_GROWTH")
            continue
        if status == "OK":
            good += 1
            assert relative(u, expected) < 1e-9
    assert good >= 8


@pytest.mark.parametrize("case", few(CASES, SHORT_CASES[1:]), ids=str)
def test_it_builds_without_a_warning_and_its_self_test_passes(case, built, tmp_path):
    c = built(*case)
    sources = [x for x in c.paths if x.suffix == ".c"]
    for compiler in compilers():
        run(compiler, *STRICT, "-O1", *sources, "-o", tmp_path / "test", "-lm")
        assert "all is well" in run(tmp_path / "test")


@pytest.mark.parametrize("what", few(["whole", "damped, critical"], ["whole"]))
def test_singular_tasks_are_told_as_such(what, built):
    mech, rest, zero = robot("five_bar"), np.zeros(4), np.zeros(2)
    controller, c, told = laws("five_bar")[what], built("five_bar", what), set()
    for condition, q in on_the_way():
        status, u = c.call("torque", q, rest, [0.1, 0.5], zero, zero)
        told.add(status)
        if status == "OK":
            assert relative(u, controller.torque(q, rest, [0.1, 0.5])) < 1e-6
        if condition > 1e4 and what == "whole":
            assert status == "SINGULAR"
    assert "PIVOT_GROWTH" not in told or what != "whole"
    assert "OK" in told
    assert mech.nu == 2


def test_input_that_nothing_can_be_computed_from(built):
    controller, c = laws("five_bar")["other axes"], built("five_bar", "other axes")
    q, v = hc.assemble(controller.mech)
    pose = pin.SE3(np.eye(3), np.array([0.1, 0.0, 0.5]))
    value, rate, acceleration = given(controller, (pose, np.zeros(2), np.zeros(2)))
    c.reset()
    status, u = c.call("torque", q, v, value, rate, acceleration)
    assert status == "OK"
    for k in range(value.size):
        bad = value.copy()
        bad[k] = np.nan
        assert c.call("torque", q, v, bad, rate, acceleration)[0] == "NOT_FINITE"
    mirror = value.copy()
    mirror[3:] = -mirror[3:]
    for wrong in (mirror, np.r_[value[:3], 1.001 * value[3:]], np.r_[value[:3], np.zeros(9)]):
        status, held = c.call("torque", q, v, wrong, rate, acceleration)
        assert status == "NOT_NORMALISED"
        np.testing.assert_array_equal(held, u)
    bad = np.array([np.inf, 0.0])
    assert c.call("torque", q, v, value, bad, acceleration)[0] == "NOT_FINITE"
    assert c.call("torque", q, v, value, rate, bad)[0] == "NOT_FINITE"
    assert c.call("torque", q + 0.3, v, value, rate, acceleration)[0] == "OPEN"
    sliding = v + np.array([9.0, 0.0, 0.0, 0.0])
    assert c.call("torque", q, sliding, value, rate, acceleration)[0] == "SLIDING"


def test_torque_from_motors(built):
    controller, c = laws("five_bar")["whole"], built("five_bar", "whole")
    mech, loop, rng = controller.mech, controller.loop(), np.random.default_rng(6)
    start = mech.motor_positions(hc.assemble(mech)[0])
    c.reset()
    for k in range(5):
        x, rates = start + 0.02 * k, rng.normal(size=2)
        asked = np.array([0.1, 0.5]), rng.normal(size=2), rng.normal(size=2)
        status, u = c.call("torque_from_motors", x, rates, *asked)
        assert status == "OK"
        assert relative(u, loop.torque_from_motors(x, rates, asked)) < 1e-9
    status, u = c.call("inverse_dynamics", *hc.assemble(mech), [1.0, 2.0])
    assert status == "OK"
    expected = hc.PreparedInverseDynamics(mech).torque(*hc.assemble(mech), [1.0, 2.0])
    assert relative(u, expected) < 1e-9


# ----------------------------------------------------------------------------------- limits


POLICIES = ("nearest", "scale")


def limited_law(robot_name, limits, friction, policy, which):
    """One of `limited_laws`: 0 an impedance with the natural inertia, 1 another law."""
    return list(limited_laws(robot_name, policy, limits, friction))[which]


LIMITED = [("ankle", "joints", True, 0), ("ankle", "joints", False, 1), ("ankle", "rates", True, 1),
           ("ankle", "efforts", False, 0), ("five_bar", "rates", True, 0),
           ("five_bar", "joints", False, 1)]  # fmt: skip


def in_python(controller, q, v, asked):
    """The torque, and ``scale`` as C has it."""
    loop = controller.track(lambda t: asked)
    u, scale = loop(0.0, q, v), loop.last.scale
    return u, -1.0 if np.isnan(scale) else scale


@pytest.fixture(scope="module")
def within_limits(tmp_path_factory):
    """A law with limits, exported when it is first asked for."""

    @cache
    def exported(case, policy):
        controller = limited_law(*case[:3], policy, case[3])
        return controller, Exported(controller, tmp_path_factory.mktemp("limited"))

    return exported


@pytest.mark.parametrize("policy", few(POLICIES, ["scale"]))
@pytest.mark.parametrize("case", few(LIMITED, LIMITED[:1]), ids=str)
def test_a_law_within_limits_is_that_of_the_controller(case, policy, within_limits):
    controller, c = within_limits(case, policy)
    mech, rng, seen = controller.mech, np.random.default_rng(8), Counter()
    c.reset()
    for k, (q, fast) in enumerate(states(mech, 36, rng)):
        near = (1.0, 0.1, 0.01)[k % 3]
        v = near * fast
        value, rate, acceleration = reference(controller, q, v, rng)
        here = TaskSubject(controller).task.at(hc.project(mech, q, v).kinematics).value
        asked = here + near * (value - here), near * rate, 10.0 * near * acceleration
        status, u = c.call("torque", q, v, *given(controller, asked))
        expected, scale = in_python(controller, q, v, asked)
        assert relative(u, expected) < 1e-11
        assert (status, c.c.scale) == (
            "OK" if scale == 1.0 else "LIMITED", pytest.approx(scale, abs=1e-9)
        )  # fmt: skip
        seen[status, scale > 0.0] += 1
    assert seen["OK", True] > 3
    assert seen["LIMITED", True] + seen["LIMITED", False] > 4
    if case == LIMITED[0]:  # the efforts of others are scaled always or, as they fall, never
        assert seen["LIMITED", False] > 3
        assert policy == "nearest" or seen["LIMITED", True] > 3


@pytest.mark.parametrize("policy", few(POLICIES, ["scale"]))
@pytest.mark.parametrize("case", few(LIMITED, LIMITED[:1]), ids=str)
def test_within_limits_it_builds_strictly_and_its_self_test_is_limited(
    case, policy, within_limits, tmp_path
):
    _, c = within_limits(case, policy)
    header, source, test = c.paths[:3]
    assert "LIMITED] > 0" in test.read_text()
    assert "the commanded motion exceeds" in header.read_text()
    for compiler in compilers():
        run(compiler, *STRICT, "-O1", source, test, "-o", tmp_path / "test", "-lm")
        assert "all is well" in run(tmp_path / "test")


@pytest.mark.parametrize("level", few(["-O1", "-O2", "-O3"], ["-O2"]))
def test_a_law_of_one_motor_within_limits_builds_without_a_warning(level, tmp_path):
    """Of arrays of one number, a compiler believes to know more."""
    mech = robot("four_bar")
    limits = hc.Limits(effort=3.0, velocity=2.0)
    controller = hc.ComputedTorque(mech, 400.0, 40.0, limits=limits)
    c = Exported(controller, tmp_path, measured="all")
    for compiler in compilers():
        run(compiler, *STRICT, level, "-c", c.paths[1], "-o", tmp_path / "law.o")


def test_what_is_held_is_within_limits_too(within_limits):
    controller, c = within_limits(LIMITED[0], "scale")
    mech, rng = controller.mech, np.random.default_rng(9)
    most = controller.limits.effort
    c.reset()
    q, v = states(mech, 1, rng)[0]
    value, rate, _ = given(controller, reference(controller, q, v, rng))
    status, u = c.call("torque", q, v, value, rate, [1e4, -1e4])
    assert status == "LIMITED"
    assert np.abs(u).max() == most
    held = [c.call("torque", q, np.nan * v, value, rate, [0.0, 0.0]) for _ in range(101)]
    assert [status for status, _ in held] == ["NOT_FINITE"] * 100 + ["EXPIRED"]
    np.testing.assert_array_equal([found for _, found in held[:100]], [u] * 100)
    assert not held[100][1].any()
    assert c.c.scale == np.inf
    c.reset()
    assert c.call("torque", q, v, value, rate, [1e12, 0.0])[0] == "OVERFLOW"
    with pytest.raises(hc.InputError, match="times their limits"):
        controller.torque(q, v, (value, rate, [1e12, 0.0]))


@pytest.mark.slow
@pytest.mark.parametrize("policy", few(POLICIES, ["scale"]))
def test_wild_input_never_leaves_the_limits(policy, within_limits):
    controller, c = within_limits(LIMITED[0], policy)
    mech, rng, seen = controller.mech, np.random.default_rng(10), Counter()
    c = c.again()
    c.c.closure_limit = c.c.velocity_limit = np.inf
    known = [
        (q, v, *given(controller, reference(controller, q, v, rng)))
        for q, v in states(mech, 20, rng)
    ]
    for k in range(4000):
        asked = [np.array(x) for x in known[k % 20]]
        for x in asked[k % 2 * 2 :]:
            if rng.uniform() < 0.5:
                x[rng.integers(x.size)] = rng.normal() * 10.0 ** rng.uniform(-300.0, 300.0)
        if k % 7 == 0:
            asked[rng.integers(5)][0] = rng.choice([np.nan, np.inf, -np.inf])
        status, u = c.call("torque", *asked)
        seen[status] += 1
        assert (np.abs(u) <= controller.limits.effort).all()
        assert np.isfinite(np.concatenate(asked)).all() or status in ("NOT_FINITE", "EXPIRED")
    assert {"LIMITED", "NOT_FINITE", "OVERFLOW"} <= seen.keys()


@pytest.mark.slow
def test_torque_from_motors_within_limits(within_limits):
    controller, c = within_limits(LIMITED[1], "scale")
    mech, loop, rng = controller.mech, controller.loop(), np.random.default_rng(6)
    c.reset()
    start, seen = mech.motor_positions(hc.assemble(mech)[0]), set()
    for k in range(12):
        x, rates = start + 0.02 * k, 0.3 * rng.normal(size=2)
        asked = np.zeros(2), rng.normal(size=2), 10.0 ** (k % 4) * rng.normal(size=2)
        status, u = c.call("torque_from_motors", x, rates, *asked)
        seen.add(status)
        assert relative(u, loop.torque_from_motors(x, rates, asked)) < 1e-9
    assert seen == {"OK", "LIMITED"}


# ------------------------------------------------------------------------------------ its files


def test_the_header_says_what_is_what(built):
    plane = built("five_bar", "whole").paths[0].read_text()
    assert "*   0  tip_right.x" in plane
    assert "value[2]" in plane
    assert "position x z to follow, m" in plane
    assert "double kp[" not in plane
    pose = built("five_bar", "other axes").paths[0].read_text()
    assert "value[12]" in pose
    assert "row by row" in pose


def test_the_same_law_gives_the_same_bytes(built, tmp_path):
    first = built("five_bar", "whole")
    again = hc.export_c(hc.TaskSpaceControl(robot("five_bar"), frame(robot("five_bar"), "x z"),
                                            400.0, 40.0), tmp_path)  # fmt: skip
    for one, two in zip(first.paths, again, strict=True):
        assert one.read_bytes() == two.read_bytes()
