"""Exported laws of tasks: built strictly, the torques of their controllers, and every refusal."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from exported import STRICT, Exported, compilers, run
from support import few, relative
from task_code import frame, laws, reference, robot, states
from test_task_code import on_the_way

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
