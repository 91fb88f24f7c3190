"""Where laws of tasks meet others, and their own edges."""

from __future__ import annotations

import logging

import numpy as np
import pinocchio as pin
import pytest
from all_forces import every_force
from support import few
from task_mechanisms import WithoutTick
from zoo import ZOO, add_body, at, lump, slider_crank, triangle

import holoctl as hc

LIMITED = hc.Limits(effort=3.0, velocity=1.0)


def moving(mech, t=0.3):
    rng = np.random.default_rng(1)
    q, _ = hc.assemble(mech, t=t)
    P = hc.project(mech, q, np.zeros(mech.nv), t=t)
    return q, P.gamma @ rng.normal(size=P.k) * 0.5 + P.v_t


def with_motor_positions(name):
    mech = ZOO[name]()
    return mech.nu > 0 and len(mech.actuated) > 0 and not mech.motors.missing


@pytest.mark.parametrize("name", few(
    [name for name in ZOO if with_motor_positions(name)],
    ["floating_leg", "three_motors", "timed_arm"],
))  # fmt: skip
@pytest.mark.parametrize("forces", [False, True], ids=["", "forces"])
def test_a_posture_of_the_motors_is_computed_torque(name, forces):
    mech = ZOO[name]()
    if forces:
        mech = mech.with_forces(every_force(mech))
    q, v = moving(mech)
    rng = np.random.default_rng(0)
    wanted = mech.motor_positions(q) + 0.1, rng.normal(size=mech.nu), rng.normal(size=mech.nu)
    for options in (
        {}, {"friction_at": "measured"}, {"limits": hc.Limits(effort=3.0)},
        {"limits": LIMITED, "policy": "scale"},
    ):  # fmt: skip
        ours = hc.TaskSpaceControl(mech, hc.PostureTask(), 100.0, 20.0, **options)
        theirs = hc.ComputedTorque(mech, 100.0, 20.0, **options)
        try:
            expected = theirs.torque(q, v, *wanted, 0.3)
        except hc.HoloctlError as error:
            with pytest.raises(type(error)):
                ours.torque(q, v, wanted, 0.3)
            continue
        found = ours.torque(q, v, wanted, 0.3)
        assert np.abs(expected).max() > 0.0
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.fixture(scope="module")
def five_bar():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    return mech, hc.partition(mech, q), q, v


def along(axes):
    return hc.FrameTask("tip_right", axes)


def test_tasks_that_contradict_each_other_are_refused_or_damped(five_bar):
    mech, part, q, v = five_bar
    tasks, wanted = [along("x"), along("x")], [[0.1], [0.2]]
    with pytest.raises(hc.SingularityError, match=r"no motion that is left moves 'tip_right\.x'"):
        hc.TaskSpaceControl(mech, tasks, 400.0, 40.0, partition=part).torque(q, v, wanted)
    damped = hc.TaskSpaceControl(
        mech, tasks, 400.0, 40.0, partition=part, at_singular="damp"
    )  # fmt: skip
    alone = hc.TaskSpaceControl(mech, tasks[0], 400.0, 40.0, partition=part)
    np.testing.assert_allclose(
        damped.torque(q, v, wanted), alone.torque(q, v, wanted[0]), rtol=1e-9
    )


def test_weights_do_not_matter_where_tasks_agree(five_bar):
    mech, part, q, v = five_bar
    whole = hc.TaskSpaceControl(mech, along("x z"), 400.0, 40.0, partition=part)
    expected = whole.torque(q, v, [0.1, 0.2])
    for weights in ([1.0, 1e-9], [1e-7, 1.0], [1.0, 1.0]):
        for mode in ("raise", "damp"):
            ctl = hc.TaskSpaceControl(
                mech, [along("x"), along("z")], 400.0, 40.0, partition=part, task_weights=weights,
                at_singular=mode,
            )  # fmt: skip
            np.testing.assert_allclose(ctl.torque(q, v, [[0.1], [0.2]]), expected, rtol=1e-9)


def test_the_slider_goes_through_its_dead_centre_without_a_jump():
    mech = slider_crank(motor="crank")
    task = hc.PostureTask(("slider",))
    angles = [0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9, -1e-9, -1e-6, -1e-4, -1e-3, -1e-2]

    def posture(angle):
        b = np.arcsin(0.2 / 0.5 * np.sin(angle))
        return np.array([angle, -b - angle, 0.2 * np.cos(angle) + 0.5 * np.cos(b)])

    part = hc.partition(mech, posture(0.1))
    strict = hc.TaskSpaceControl(mech, task, 100.0, 20.0, partition=part)
    damped = hc.TaskSpaceControl(mech, task, 100.0, 20.0, partition=part, at_singular="damp")
    v = np.zeros(3)
    with pytest.raises(hc.SingularityError, match="singular here"):
        strict.torque(posture(1e-6), v, posture(1e-6)[2:] - 0.01)
    track = {}
    for angle in angles:
        q = posture(angle)
        follow = damped.track(lambda t, x=q[2:] - 0.01: x)
        track[angle] = follow(0.0, q, v), follow.last.damping
    assert all(np.abs(u).max() < 30.0 for u, _ in track.values())
    np.testing.assert_allclose(track[1e-9][0], track[-1e-9][0], rtol=1e-3)
    assert track[0.1][1] == 0.0 < track[1e-3][1] < track[1e-6][1]


def test_what_damping_takes_from_a_task_the_posture_gets(five_bar):
    """Out of the plane nothing moves: the motion that is left is braked as if that row were not."""
    mech, part, q, _ = five_bar
    P = hc.project(mech, q, np.zeros(mech.nv), partition=part)
    v = 0.5 * P.gamma @ np.array([1.0, -0.4])
    one = hc.TaskSpaceControl(mech, along("x"), 100.0, 20.0, partition=part)
    for tasks, wanted in ((along("x y"), [0.0, 0.0]), ([along("x"), along("y")], [[0.0], [0.0]])):
        both = hc.TaskSpaceControl(
            mech, tasks, 100.0, 20.0, partition=part, at_singular="damp"
        )  # fmt: skip
        np.testing.assert_allclose(both.torque(q, v, wanted), one.torque(q, v, [0.0]), rtol=1e-3)


@pytest.mark.parametrize("policy", ["nearest", "scale"])
def test_limits_know_what_pushes_an_impedance(policy):
    mech = hc.load(hc.robot_file("delta"))
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    P = hc.project(mech, q, np.zeros(mech.nv), partition=part)
    v = P.gamma @ np.array([0.3, -0.2, 0.4])
    task, push = hc.FrameTask("tip", "x y z"), {"tip": ([12.0, -9.0, 20.0], [0.0, 0.0, 0.0])}
    here = hc.task_terms(P, task).value
    limits = hc.Limits(effort=2.5, acceleration=30.0, velocity=0.5)
    for inertia in (None, 2.0):
        free = hc.Impedance(mech, task, 900.0, 90.0, inertia, partition=part)
        u = free.torque(q, v, here + 0.02, f_ext=push)
        a = hc.forward_dynamics(mech, q, v, mech.B @ u, f_ext=push, partition=part).a
        expected = hc.limited_inverse_dynamics(
            mech, q, v, mech.B.T @ a, hc.WithinLimits(limits, policy), f_ext=push, partition=part
        ).u
        ctl = hc.Impedance(
            mech, task, 900.0, 90.0, inertia, partition=part, limits=limits, policy=policy
        )  # fmt: skip
        found = ctl.torque(q, v, here + 0.02, f_ext=push)
        assert np.abs(found - u).max() > 0.1
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_measured_forces_reach_a_loop():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    ctl = hc.Impedance(mech, along("x z"), 900.0, 90.0, inertia=2.0)
    push = {"tip_right": ([3.0, 0.0, -4.0], [0.0, 0.0, 0.0])}
    x = hc.task_terms(hc.project(mech, q, v), along("x z")).value
    loop = ctl.loop()
    found = loop.torque_from_motors(mech.motor_positions(q), [0.0, 0.0], x, f_ext=push)
    np.testing.assert_allclose(found, ctl.torque(q, v, x, f_ext=push), rtol=1e-7)
    without = loop.torque_from_motors(mech.motor_positions(q), [0.0, 0.0], x)
    assert np.abs(found - without).max() > 0.1


def test_more_rows_than_motions_have_no_inertia(five_bar):
    mech, part, *_ = five_bar
    for options in ({"damping": "critical"}, {"damping": 20.0, "inertia": 1.0}):
        with pytest.raises(hc.InputError, match="has no inertia where the motors drive 2 motions"):
            hc.Impedance(mech, along("x z ry"), 400.0, partition=part, **options)


def test_more_rows_than_motions_are_told_once(caplog):
    mech = hc.load(hc.robot_file("five_bar"))
    with caplog.at_level(logging.WARNING, "holoctl"):
        for _ in range(3):
            hc.TaskSpaceControl(mech, along("x z ry"), 400.0, 40.0)
    assert [record.message for record in caplog.records if "least squares" in record.message] == [
        "five_bar: the tasks have 3 rows, and the motors drive 2 motions: they are solved by "
        "least squares, those of higher priority first"
    ]


def test_gains_are_those_that_were_given(five_bar):
    mech, part, q, _ = five_bar
    kp, posture = np.array([400.0, 300.0]), mech.motor_positions(q) + 0.1
    ctl = hc.TaskSpaceControl(mech, along("x z"), kp, 40.0, posture, partition=part)
    again = hc.TaskSpaceControl(
        mech, along("x z"), kp.copy(), 40.0, posture.copy(), partition=part
    )  # fmt: skip
    kp *= 10.0
    posture += 1.0
    assert ctl.kp.tolist() == [400.0, 300.0]
    np.testing.assert_array_equal(ctl.posture, again.posture)


def test_a_loop_of_something_else_is_refused(five_bar):
    mech, part, *_ = five_bar
    ctl = hc.TaskSpaceControl(mech, along("x z"), 400.0, 40.0, partition=part)
    other = hc.load(hc.robot_file("delta"))
    theirs = hc.TaskSpaceControl(other, hc.FrameTask("tip", "x y z"), 400.0, 40.0).loop()
    for loop in (3, theirs, hc.ComputedTorque(mech, 1.0, 1.0, partition=part).loop()):
        with pytest.raises(hc.InputError, match="loop must be a Loop of the controller"):
            hc.results.Tracking(ctl, lambda t: np.zeros(2), loop)


def test_a_tool_far_away_is_not_singular():
    mech = hc.load(hc.robot_file("stewart"))
    q, v = hc.assemble(mech)
    far = hc.FrameTask(("tip", pin.SE3(np.eye(3), np.array([0.0, 0.0, 30.0]))))
    terms = hc.task_terms(hc.project(mech, q, v), far)
    assert terms.condition < 1e3
    assert np.isfinite(hc.TaskSpaceControl(mech, far, 100.0, 20.0).torque(q, v, terms.value)).all()


def test_a_controller_says_why_it_is_slow(five_bar):
    mech, part, *_ = five_bar
    tasks = [along("x"), along("z")]
    assert hc.TaskSpaceControl(mech, tasks, 1.0, 1.0, partition=part).general == ""
    damped = hc.TaskSpaceControl(mech, tasks, 1.0, 1.0, partition=part, at_singular="damp")
    assert damped.general == "several tasks are damped together"
    floating = ZOO["floating_leg"]()
    passive = hc.Impedance(floating, hc.PostureTask(), 1.0, 1.0)
    assert passive.general == "some motion is passive"
    slow = WithoutTick(along("x z"))
    assert "has no tick" in hc.TaskSpaceControl(mech, slow, 1.0, 1.0, partition=part).general


def gantry(lead, wheel=None):
    """x by a screw, y direct, both driven; and a wheel on a motor of its own."""
    m = pin.Model()
    add_body(m, 0, pin.JointModelRX(), at(), "screw", pin.Inertia.FromSphere(1e-2, 0.05))
    add_body(m, 0, pin.JointModelPX(), at(), "bridge", lump(np.random.default_rng(1), 20.0))
    add_body(m, "bridge", pin.JointModelPY(), at(), "tool", lump(np.random.default_rng(2), 5.0))
    motors = ["screw", "tool"]
    if wheel is not None:
        body = pin.Inertia(1e-3, np.zeros(3), wheel * np.eye(3))
        add_body(m, 0, pin.JointModelRZ(), at(1.0), "wheel", body)
        motors.append("wheel")
    gear = hc.Coupling({"bridge": 1.0, "screw": -lead / (2.0 * np.pi)}, name="gear")
    return hc.Mechanism(m, [gear], motors, name="gantry")


@pytest.mark.parametrize("lead", [0.5, 1e-3, 1e-5])
@pytest.mark.parametrize("wheel", [None, 1e-2, 1e-6])
@pytest.mark.parametrize("mode", ["raise", "damp"])
def test_transmissions_are_not_singular(lead, wheel, mode):
    mech = gantry(lead, wheel)
    task, q, v = hc.FrameTask("tool", "x y"), pin.neutral(mech.model), np.zeros(mech.nv)
    P = hc.project(mech, q, v)
    terms = hc.task_terms(P, task)
    assert terms.condition < 2.0
    ctl = hc.TaskSpaceControl(mech, task, 100.0, 20.0, at_singular=mode)
    u = ctl.torque(q, v, (terms.value, np.zeros(2), np.array([1.0, -2.0])))
    a = hc.forward_dynamics(mech, q, v, mech.B @ u).a
    np.testing.assert_allclose(a[[1, 2]], [1.0, -2.0], rtol=1e-9)


def test_a_twist_is_not_taken_for_rows(five_bar):
    mech, part, q, v = five_bar
    ctl = hc.TaskSpaceControl(mech, along("x z"), 1.0, 1.0, partition=part)
    with pytest.raises(hc.InputError, match=r"a pin\.Motion has six, in its own: give arrays"):
        ctl.torque(q, v, (np.zeros(2), pin.Motion.Zero(), np.zeros(2)))


@pytest.mark.parametrize("axes", ["rx", "x", "rx x"])
@pytest.mark.parametrize("local", [False, True])
def test_rows_that_the_tree_does_not_move_either_are_refused(axes, local):
    """A rod in a plane: what is across is rounding, along all coordinates."""
    mech = hc.load(hc.robot_file("geared_arm"))
    q, v = hc.assemble(mech)
    P = hc.project(mech, q, v)
    turned = ("hand", pin.SE3(pin.exp3(np.array([0.3, -0.7, 0.4])), np.zeros(3)))
    task = hc.FrameTask("hand" if local else turned, axes, local=local)
    terms = hc.task_terms(P, task)
    rows = np.linalg.norm(terms.jacobian, axis=1)
    ctl = hc.TaskSpaceControl(mech, task, 100.0, 20.0)
    if rows.min() > 1e-6:
        assert np.abs(ctl.torque(q, v, terms.value)).max() < 1e4
        return
    assert terms.condition > 1e4
    with pytest.raises(hc.SingularityError, match="no motion moves"):
        ctl.torque(q, v, terms.value)


@pytest.mark.parametrize("task", [hc.FrameTask("right", "rz"), hc.CenterOfMassTask("x y")])
def test_a_task_of_what_has_no_motion_is_refused_by_the_torque(task):
    """A rigid mechanism with a motor: as its inverse dynamics are refused."""
    mech = triangle()
    q, v = hc.assemble(mech)
    value = hc.task_terms(hc.project(mech, q, v), task).value
    laws = hc.TaskSpaceControl(mech, task, 100.0, 20.0), hc.Impedance(mech, task, 100.0, 20.0)
    for law in laws:
        with pytest.raises(hc.NotActuatedError, match="no degree of freedom"):
            law.torque(q, v, value)
