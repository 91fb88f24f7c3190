"""Controllers on contacts that only push, the nearest motion, and contacts between bodies."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from standing import NAMES, sole, standing
from zoo import add_body, at

import holoctl as hc


def controller(case, policy="raise", kp=0.0, kd=0.0, **options):
    limits = hc.Limits(effort=case.effort)
    return hc.ComputedTorque(
        case.mech, kp, kd, limits=limits, contacts=case.contacts, partition=case.part,
        policy=policy, **options,
    )  # fmt: skip


def commanded(ctl, q, v, target, **options):
    mech = ctl.mech
    home, rest = mech.motor_positions(q), np.zeros(mech.nu)
    return ctl.torque(q, v, home, rest, target, **options)


@pytest.mark.parametrize("states", [9, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_a_controller_gives_the_efforts_of_the_single_call(name, states):
    case, rng, active = standing(name), np.random.default_rng(1), 0
    ctl = controller(case)
    for i in range(states):
        q, v = case.state(rng)
        target = (0.01, 3.0, 30.0)[i % 3] * rng.normal(size=case.mech.nu)
        try:
            found = case.solved(q, v, target, ctl.limits)
        except hc.LimitError:
            with pytest.raises(hc.LimitError):
                commanded(ctl, q, v, target)
            continue
        active += bool(found.saturated)
        u = commanded(ctl, q, v, target)
        assert abs(u - found.u).max() < 1e-9 * (1.0 + abs(found.u).max())
    assert active


def test_contacts_act_by_name():
    case, rng = standing("biped"), np.random.default_rng(3)
    ctl = controller(case, policy="nearest")
    q, v = case.state(rng, speed=0.0)
    target = 0.1 * rng.normal(size=12)
    for active in ["left"], ["right"], []:
        kept = [one for one in case.contacts if one.name in active]
        alone = hc.contact_inverse_dynamics(
            case.mech, q, v, target, kept, ctl.limits, partition=case.part, policy="nearest"
        )
        u = commanded(ctl, q, v, target, active=active)
        assert abs(u - alone.u).max() < 1e-9 * (1.0 + abs(alone.u).max())
    both = commanded(ctl, q, v, target)
    assert abs(both - commanded(ctl, q, v, target, active=["left"])).max() > 0.1
    with pytest.raises(hc.InputError, match="did you mean 'left'"):
        commanded(ctl, q, v, target, active=["lefft"])
    tracking = ctl.track(lambda t: (case.mech.motor_positions(q), np.zeros(12), target),
                         active=lambda t: "left" if t > 1.0 else ["left", "right"])  # fmt: skip
    assert np.array_equal(tracking(0.0, q, v), both)
    left = commanded(ctl, q, v, target, active="left")
    assert np.array_equal(tracking(2.0, q, v), left)
    assert tracking.last.saturated == hc.contact_inverse_dynamics(
        case.mech, q, v, target, case.contacts[:1], ctl.limits, partition=case.part,
        policy="nearest",
    ).saturated  # fmt: skip
    again = pickle.loads(pickle.dumps(ctl))
    assert np.array_equal(commanded(again, q, v, target), both)


def test_where_nothing_acts_conditions_do_not_change_a_bit():
    case, rng, seen = standing("biped"), np.random.default_rng(5), 0
    wide = [sole(c.frame, c.name, friction=5.0) for c in case.contacts]
    for _ in range(10):
        q, v = case.state(rng, speed=0.02, away=0.02)
        target = 0.02 * rng.normal(size=12)
        found = case.solved(q, v, target, hc.Limits(effort=case.effort))
        if found.saturated:
            continue
        seen += 1
        free = hc.contact_inverse_dynamics(case.mech, q, v, target, wide, partition=case.part)
        assert np.array_equal(found.u, free.u)
    assert seen > 2


# -------------------------------------------------------------------------- the nearest motion


@pytest.mark.parametrize("states", [4, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_the_nearest_motion_keeps_cones_and_slips_least(name, states):
    case, rng, slipped = standing(name), np.random.default_rng(7), 0
    limits = hc.Limits(effort=0.1 * case.effort)
    frame = case.contacts[-1].frame
    for _ in range(states):
        q, v = case.state(rng)
        pull = {frame: (*(60.0 * rng.normal(size=2)), 400.0 * rng.uniform(), 0.0, 0.0, 0.0)}
        found = case.solved(q, v, np.zeros(case.mech.nu), limits, f_ext=pull, policy="nearest")
        assert found.certificate.ok, found.certificate
        slip = max(abs(s).max() for s in found.slip.values())
        try:
            kept = case.solved(q, v, np.zeros(case.mech.nu), limits, f_ext=pull)
        except hc.LimitError:
            slipped += 1
            assert slip > 1e-6
            assert found.saturated
        else:
            assert slip == 0.0
            assert np.array_equal(kept.u, found.u)
        for contact in case.contacts:
            f, n = found.forces[contact.name], np.array(contact.normal)
            sideways = np.linalg.norm(f - np.outer(f @ n, n), axis=1)
            assert (sideways <= contact.friction * (f @ n) + 1e-5).all()
        assert abs(found.u).max() <= 0.1 * case.effort
    assert slipped


def test_a_block_that_cannot_hold_slides_down():
    m = pin.Model()
    add_body(
        m, 0, pin.JointModelFreeFlyer(), at(), "block", pin.Inertia.FromBox(4.0, 0.4, 0.4, 0.1)
    )
    add_body(m, "block", pin.JointModelRX(), at(), "wheel", pin.Inertia.FromSphere(1e-9, 0.01))
    slope, friction = 0.6, 0.5
    turned = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, slope, 0.0)).coeffs()
    q = np.array([0.0, 0.0, 1.0, *turned, 0.0])
    mech = hc.Mechanism(m, [], ["wheel"], reference=q)
    corners = [(x, y, -0.05) for x in (0.2, -0.2) for y in (0.2, -0.2)]
    normal = (np.sin(slope), 0.0, np.cos(slope))
    foot = hc.UnilateralContact("block", corners, normal, friction, name="base")
    with pytest.raises(hc.LimitError):
        hc.contact_inverse_dynamics(mech, q, np.zeros(7), [0.0], foot)
    found = hc.contact_inverse_dynamics(mech, q, np.zeros(7), [0.0], foot, policy="nearest")
    assert found.saturated == ("base.slides",)
    assert found.certificate.ok
    down = found.slip["base"] @ np.array([np.cos(slope), 0.0, -np.sin(slope)])
    assert (down > 0.5).all()


# ----------------------------------------------------------------------------- between bodies


@cache
def gripper():
    """Two fingers that press a free box from both sides."""
    m = pin.Model()
    add_body(m, 0, pin.JointModelPX(), at(-0.1), "left", pin.Inertia.FromSphere(0.2, 0.02))
    add_body(m, 0, pin.JointModelPX(), at(0.1), "right", pin.Inertia.FromSphere(0.2, 0.02))
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "box", pin.Inertia.FromBox(2.0, 0.2, 0.1, 0.1))
    return hc.Mechanism(m, [], ["left", "right"], name="gripper")


def pads(friction=0.5):
    pad = [(0.0, y, z) for y in (0.01, -0.01) for z in (0.01, -0.01)]
    sides = ("left", (1.0, 0.0, 0.0)), ("right", (-1.0, 0.0, 0.0))
    return [
        hc.UnilateralContact(
            name, pad, tuple(-x for x in inward), friction, relative_to="box", name=name
        )
        for name, inward in sides
    ]


def test_a_gripper_holds_a_box_by_friction():
    mech, friction = gripper(), 0.5
    q, v = pin.neutral(mech.model), np.zeros(8)
    least = 2.0 * 9.81 / (2.0 * friction * np.cos(np.pi / 4))
    held = hc.contact_inverse_dynamics(
        mech, q, v, [0.0, 0.0], pads(), hc.Limits(effort=1.001 * least)
    )
    assert held.certificate.ok
    assert abs(held.a).max() < 1e-9
    assert held.u[0] == pytest.approx(-held.u[1], rel=1e-6)
    assert least * 0.999 < held.u[0] < least * 1.0011
    for name, side in ("left", -1.0), ("right", 1.0):
        total = held.forces[name].sum(axis=0)
        assert total == pytest.approx([side * held.u[0], 0.0, -9.81], abs=1e-5)
    with pytest.raises(hc.LimitError) as told:
        hc.contact_inverse_dynamics(mech, q, v, [0.0, 0.0], pads(), hc.Limits(effort=0.999 * least))
    assert {"left", "right", "left.slides", "right.slides"} == set(told.value.names)
    lifted = hc.ComputedTorque(mech, 0.0, 0.0, contacts=pads(), policy="raise")
    assert lifted.torque(q, v, q[:2], [0, 0], [0, 0])[0] == pytest.approx(least, rel=1e-6)


# ---------------------------------------------------------------------------- limits of joints


@pytest.mark.parametrize("name", ["leg", "biped"])
def test_limits_of_joints_are_kept_beside_cones(name):
    case, rng, acted = standing(name), np.random.default_rng(4), 0
    motors = case.mech.actuator_names
    limits = hc.Limits(effort=case.effort, acceleration=dict.fromkeys(motors, 2.0))
    ctl = hc.ComputedTorque(
        case.mech, 0.0, 0.0, limits=limits, contacts=case.contacts, partition=case.part
    )
    for _ in range(8):
        q, v = case.state(rng, speed=0.0)
        target = 10.0 * rng.normal(size=case.mech.nu)
        found = case.solved(q, v, target, limits)
        assert found.certificate.ok
        assert abs(case.mech.B.T @ found.a).max() <= 2.0 + 1e-6
        acted += any(x.endswith(".acceleration") for x in found.saturated)
        u = commanded(ctl, q, v, target)
        assert abs(u - found.u).max() < 1e-8 * (1.0 + abs(found.u).max())
    assert acted > 4


def test_limits_of_joints_that_cannot_be_kept_are_softened():
    """Motors that are too weak to hold the leg: it sinks, as slowly as they can."""
    case = standing("leg")
    q, v = case.state(np.random.default_rng(4), speed=0.0)
    motors = case.mech.actuator_names
    slow = dict.fromkeys(motors, 1e-3)
    found = case.solved(q, v, np.zeros(4), hc.Limits(effort=3.0, acceleration=slow))
    assert found.certificate.ok
    assert any(x.endswith(".acceleration") for x in found.saturated)
    assert set(found.saturated) & set(motors)
    softly = abs(case.mech.B.T @ found.a).max()
    assert softly > 0.1
    free = case.solved(q, v, np.zeros(4), hc.Limits(effort=3.0))
    assert softly <= abs(case.mech.B.T @ free.a).max() * (1.0 + 1e-3)


def test_a_joint_stops_at_its_limit_while_the_robot_squats():
    case = standing("biped")
    q, v = hc.assemble(case.held)
    home = case.mech.motor_positions(q)
    deeper = home + 0.4 * np.tile([0.0, 0.0, -1.0, 1.5, -0.5, 0.0], 2)
    hips = ("hip_left", "hip_right")
    low = float(q[case.mech.model.joints[case.mech.model.getJointId("hip_left")].idx_q]) - 0.1
    seen = {}
    for kept in False, True:
        more = {"position": dict.fromkeys(hips, (low, 2.0))} if kept else {}
        ctl = hc.ComputedTorque(
            case.mech, 100.0, 20.0, limits=hc.Limits(effort=case.effort, **more),
            contacts=case.contacts, partition=case.part, dt=0.002,
        )  # fmt: skip
        track = ctl.track(lambda t: (deeper, np.zeros(12), np.zeros(12)))
        run = hc.simulate(case.held, track, q, v, 0.5, frequency=500.0)
        at = [case.mech.model.joints[case.mech.model.getJointId(x)].idx_q for x in hips]
        seen[kept] = run.q[:, at].min()
    assert seen[False] < low - 0.02
    assert seen[True] > low - 1e-4
    assert seen[True] < low + 0.02


# ------------------------------------------------------------------------------------- tasks


def standing_controller(case, weights=(1.0, 1e-3), **options):
    tasks = [hc.CenterOfMassTask(), hc.PostureTask()]
    return hc.TaskSpaceControl(
        case.mech, tasks, 100.0, 20.0, task_weights=weights, contacts=case.contacts,
        limits=hc.Limits(effort=case.effort), partition=case.part, **options,
    )  # fmt: skip


def test_tasks_on_contacts_are_those_of_the_single_call():
    case, rng = standing("biped"), np.random.default_rng(8)
    ctl = standing_controller(case, policy="raise")
    assert ctl.general == ""
    for _ in range(6):
        q, v = case.state(rng)
        P = hc.project(case.mech, q, v, partition=case.part)
        com = hc.CenterOfMassTask().bind(case.mech).at(P.kinematics)
        home = case.mech.motor_positions(case.held.reference)
        lifted = com.value + np.array([0.0, 0.0, 0.02])
        u = ctl.torque(q, v, [lifted, home])
        wanted = 100.0 * (lifted - com.value) - 20.0 * com.jacobian @ v
        of_motors = 100.0 * (home - case.mech.motor_positions(q)) - 20.0 * case.mech.B.T @ v
        braked = -20.0 * case.mech.B.T @ v
        found = case.solved(
            q, v,
            [(hc.CenterOfMassTask(), wanted), (hc.PostureTask(), of_motors, 1e-3),
             (hc.PostureTask(), braked, 1e-4)], ctl.limits,
        )  # fmt: skip
        assert abs(u - found.u).max() < 1e-7 * (1.0 + abs(found.u).max())


def test_a_biped_squats_within_its_cones():
    case = standing("biped")
    ctl = standing_controller(case, weights=(1.0, 1e-5))
    q, v = hc.assemble(case.held)
    P = hc.project(case.mech, q, v, partition=case.part)
    com = hc.CenterOfMassTask().bind(case.mech)
    start, home = com.at(P.kinematics).value, case.mech.motor_positions(q)
    goal = start + np.array([0.01, 0.0, -0.03])
    run = hc.simulate(
        case.held, ctl.track(lambda t: [goal, home]), q, v, 0.6, frequency=250.0,
        output=[0.0, 0.3, 0.6],
    )  # fmt: skip
    P = hc.project(case.mech, run.q[-1], run.v[-1], partition=case.part)
    assert abs(com.at(P.kinematics).value - goal).max() < 3e-3
    for i in range(3):
        a = hc.forward_dynamics(case.held, run.q[i], run.v[i], u=run.u[i])
        up = a.multipliers[-24:].reshape(-1, 3)
        for foot in up[:4], up[4:]:
            assert foot[:, 0].sum() > 10.0
            assert abs(foot[:, 1:].sum(axis=0)).max() < 0.8 * foot[:, 0].sum()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"policy": "scale"}, "scale"),
        ({"compensation": "gravity"}, "gravity"),
        ({"ki": 1.0}, "integral"),
        ({"weights": np.ones(4)}, "weights"),
        ({"margin": 0.1}, "margin"),
        ({"limits": hc.Limits(velocity={"no": 1.0})}, "no"),
        ({"contacts": [hc.UnilateralContact("sloe")]}, "did you mean 'sole'"),
        ({"contacts": "sole"}, "hc.UnilateralContact"),
    ],
)
def test_options_that_contacts_exclude_are_refused(options, told):
    case = standing("leg")
    given = {"contacts": case.contacts, "partition": case.part} | options
    with pytest.raises(hc.InputError, match=told):
        hc.ComputedTorque(case.mech, 100.0, 20.0, **given)


def test_other_refusals():
    case = standing("leg")
    ctl = controller(case)
    q, v = hc.assemble(case.held)
    with pytest.raises(hc.InputError, match="whole state"):
        ctl.loop()
    with pytest.raises(hc.InputError, match="Python"):
        hc.compile(ctl)
    with pytest.raises(hc.InputError, match="task_weights"):
        hc.TaskSpaceControl(
            case.mech, [hc.CenterOfMassTask(), hc.PostureTask()], 1.0, 1.0, contacts=case.contacts
        )
    plain = hc.ComputedTorque(hc.load(hc.robot_file("five_bar")), 1.0, 1.0)
    q5, v5 = hc.assemble(plain.mech)
    with pytest.raises(hc.InputError, match="no contacts"):
        plain.torque(q5, v5, [0, 0], [0, 0], [0, 0], active=["foot"])
    with pytest.raises(hc.InputError, match="active must be a function"):
        ctl.track(lambda t: None, active=["foot"])
    with pytest.raises(hc.InputError, match="one plane"):
        hc.UnilateralContact("sole", [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0.1)])
    tilted = pin.rpy.rpyToMatrix(0.0, 0.2, 0.0) @ np.array(case.contacts[0].normal)
    with pytest.raises(hc.InconsistentError, match=r"tilted by 11\.5 degrees"):
        hc.contact_inverse_dynamics(
            case.mech, q, v, np.zeros(4), sole("sole", z=0.0, normal=tilted)
        )
    upright = sole("sole", z=0.0, normal=(1.0, 0.0, 0.0))
    with pytest.raises(hc.InputError, match="right angles"):
        hc.contact_inverse_dynamics(case.mech, q, v, np.zeros(4), upright)
