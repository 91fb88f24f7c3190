"""Controllers of tasks in a simulation: what they are shown, and when they are asked."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from support import together

import holoctl as hc

TIP = hc.FrameTask("tip_right", "x z")


@pytest.fixture(scope="module")
def robot():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    return mech, q, v, part, hc.task_terms(hc.project(mech, q, v, partition=part), TIP).value


LAWS = {
    "TaskSpaceControl": lambda mech, **o: hc.TaskSpaceControl(mech, TIP, 400.0, 40.0, **o),
    "Impedance": lambda mech, **o: hc.Impedance(mech, TIP, 400.0, "critical", **o),
}


def circle(home):
    def reference(t):
        w, r = 6.0, 0.02
        c, s = np.cos(w * t), np.sin(w * t)
        return (home + r * np.array([1.0 - c, s - w * t]), r * w * np.array([s, c - 1.0]),
                r * w**2 * np.array([c, -s]))  # fmt: skip

    return reference


@pytest.mark.parametrize("kind", LAWS)
def test_a_tool_follows_by_the_motors_alone(robot, kind):
    """As exactly as by the whole state."""
    mech, q, v, part, home = robot
    ctl, reference = LAWS[kind](mech, partition=part), circle(home)
    exact = hc.simulate(mech, ctl.track(reference), q, v, 0.1)
    own = ctl.track_from_motors(reference)
    own.loop.reset(q)
    run = hc.simulate(mech, own, q, v, 0.1, sensors=hc.Sensors())
    np.testing.assert_allclose(run.q, exact.q, atol=1e-9)
    np.testing.assert_allclose(run.u, exact.u, atol=1e-7 * np.abs(exact.u).max())
    P = hc.project(mech, exact.q[-1], exact.v[-1], partition=part)
    assert np.abs(hc.task_terms(P, TIP).value - reference(0.1)[0]).max() < 1e-4


@pytest.mark.parametrize("kind", LAWS)
def test_a_controller_is_told_what_it_is_made_for(robot, kind):
    mech, q, v, part, home = robot
    ctl = LAWS[kind](mech, partition=part)
    whole, own = ctl.track(lambda t: home), ctl.track_from_motors(lambda t: home)

    def refuses(controller, sensors, *words, **options):
        options = together(**options)
        refused(
            lambda: hc.simulate(mech, controller, q, v, 0.01, sensors=sensors, **options),
            hc.InputError, *words,
        )  # fmt: skip

    refuses(whole, hc.Sensors(), "whole state", "motor_left", "track_from_motors")
    refuses(own, None, "hc.Sensors", "motor_left", "ctl.track(reference)")
    refuses(own, None, "hc.Sensors", hold=False)
    refuses(own, hc.Sensors("all"), "hc.Sensors(measured)")
    refuses(own, hc.Sensors(["motor_right", "motor_left"]), "in this order")
    assert hc.simulate(mech, whole, q, v, 0.002, sensors=hc.Sensors("all")).ended == ""


@pytest.mark.parametrize("kind", LAWS)
def test_what_is_no_function_of_time_and_state_is_refused(robot, kind):
    """The law itself, its methods, and its loop; with what to take instead."""
    mech, q, v, part, _ = robot
    ctl = LAWS[kind](mech, partition=part)
    by_state = "ctl.track(reference)", "the reference argument of torque"
    by_motors = ("ctl.track_from_motors(reference)",)
    for junk, words in (
        (ctl, (kind, *by_state)),
        (ctl.torque, (f"{kind}.torque", *by_state)),
        (ctl.loop(), ("a Loop", *by_motors)),
        (ctl.loop().torque_from_motors, ("Loop.torque_from_motors", *by_motors)),
        (ctl.torque_from_motors, (f"{kind}.torque_from_motors", *by_motors)),
        (ctl.track, (f"{kind}.track",)),
    ):
        refused(lambda junk=junk: hc.simulate(mech, junk, q, v, 0.01), hc.InputError, *words)


@pytest.mark.parametrize("kind", LAWS)
def test_a_tick_that_is_not_the_controllers_is_refused(robot, kind):
    """Limits of joints are kept by the tick; without such, any tick will do."""
    mech, q, v, part, home = robot
    limits = hc.Limits(velocity={mech.coordinate_names[0]: 5.0})
    follow = LAWS[kind](mech, partition=part, limits=limits).track(lambda t: home)
    e = refused(lambda: hc.simulate(mech, follow, q, v, 0.1, frequency=200.0), hc.InputError,
                "dt=0.005", f"hc.{kind}", "frequency=1000")  # fmt: skip
    assert "integrates" not in str(e)
    assert hc.simulate(mech, follow, q, v, 0.01).ended == ""
    other = LAWS[kind](mech, partition=part, limits=limits, dt=5e-3).track(lambda t: home)
    assert hc.simulate(mech, other, q, v, 0.01, frequency=200.0).ended == ""
    free = LAWS[kind](mech, partition=part).track(lambda t: home)
    assert hc.simulate(mech, free, q, v, 0.02, frequency=200.0).ended == ""
    assert hc.simulate(mech, free, q, v, 0.01, integrator=hc.Integrator(hold=False)).ended == ""


@pytest.mark.parametrize("kind", LAWS)
def test_limits_of_joints_hold(robot, kind):
    """A tool that is to go where a motor must not: the motor stops at its limit, and it is told."""
    mech, q, v, part, home = robot
    limits = hc.Limits(position={"motor_left": (q[0] - 0.1, q[0] + 0.1)}, effort=5.0,
                       acceleration=20.0)  # fmt: skip
    ctl, told = LAWS[kind](mech, partition=part, limits=limits), set()
    follow = ctl.track(lambda t: home + np.array([0.2, -0.05]))

    def controller(t, q, v):
        u = follow(t, q, v)
        told.update(follow.last.saturated)
        return u

    run = hc.simulate(mech, controller, q, v, 0.5)
    assert 0.099 < np.abs(run.q[:, 0] - q[0]).max() < 0.1
    assert np.abs(run.u).max() <= 5.0
    assert "motor_left.position" in told


def test_an_error_of_a_task_has_its_time():
    """A reference that is no pose, in the middle of a run."""
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    home = hc.task_terms(hc.project(mech, q, v), TIP).value
    follow = hc.TaskSpaceControl(mech, TIP, 400.0, 40.0).track(
        lambda t: home if t < 0.003 else [0.0]
    )
    e = refused(lambda: hc.simulate(mech, follow, q, v, 0.01), hc.InputError, "shape")
    assert e.time >= 0.003
    assert "t = 0.003 s" in e.__notes__[0]
