"""Motions that cross a type-2 (actuation) singularity: plans, and their control."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from scipy.interpolate import CubicSpline
from support import shared
from test_type_2 import LIMITS, across, five_bar
from zoo import add_body, at, bar, slider_crank, vertical

import holoctl as hc


def driven_at_its_rod():
    """A slider-crank whose motor turns the rod against the slider: the crank is lost on top."""
    m = vertical(pin.Model())
    add_body(m, 0, pin.JointModelRZ(), at(), "crank", bar(0.2))
    add_body(m, 0, pin.JointModelPX(), at(), "slider", bar(0.1, 2.0))
    add_body(m, "slider", pin.JointModelRZ(), at(), "rod", bar(0.5))
    loop = hc.Closure(("rod", at(0.5)), ("crank", at(0.2)), axes="x y", name="pin")
    return hc.Mechanism(m, [loop], ["rod"], reference=[0.6, 0.65, 2.9], name="slider_crank")


def closed_at(mech, name, values):
    """Closed configurations at values of a coordinate."""
    i, q, found = mech.coordinate_names.index(name), hc.assemble(mech)[0], []
    for value in values:
        guess = q.copy()
        guess[i] = value
        q = hc.assemble(mech, guess, locked=[name])[0]
        found.append(q)
    return np.array(found)


def wide():
    """Another five-bar."""
    return five_bar(0.4, 0.25, 0.3), (
        hc.FrameTask("tip", "x y"),
        [[0.03 + 0.05 * k / 8, y] for k, y in enumerate(np.linspace(0.35, 0.08, 9))],
    )


def planned(name, points=120):
    """A plan and its limit."""

    def made():
        if name == "five_bar":
            return hc.retime(five_bar(), across(), LIMITS, points, cross=True), 2.0
        if name == "wide":
            mech, path = wide()
            return hc.retime(mech, path, hc.Limits(effort=3.0), points, cross=True), 3.0
        mech = driven_at_its_rod()
        ways = closed_at(mech, "crank", np.linspace(0.8, 2.4, 33))[::4]
        return hc.retime(mech, ways, hc.Limits(effort=8.0), points, cross=True), 8.0

    return shared(f"planned crossing {name} {points}", made)


PLANS = ["five_bar", "rod", pytest.param("wide", marks=pytest.mark.slow)]


def tip(there):
    """The place of the tip at the crossing."""
    model, data = there.mech.model, there.mech.model.createData()
    pin.framesForwardKinematics(model, data, there.crossings[0].q)
    return data.oMf[model.getFrameId("tip")].translation[:2]


def efforts(there, t):
    """By all accelerations, of a partition that is regular at the singularity."""
    q, v, a = there.state(t)
    return hc.inverse_dynamics(
        there.mech, q, v, a, coordinates="all", inconsistent="project", partition=there.partition
    ).u


@pytest.mark.parametrize("name", PLANS)
def test_efforts_of_a_plan_are_within_limits_up_to_the_crossing(name):
    there, most = planned(name)
    (one,) = there.crossings
    assert one.t == there.type_2_at[0]
    assert there.sides == (1, -1)
    beside = np.concatenate(
        [one.t - np.geomspace(1e-6, 1e-2, 12), one.t + np.geomspace(1e-6, 1e-2, 12)]
    )
    dense = np.concatenate([np.linspace(1e-6, there.duration - 1e-6, 150), beside])
    found = np.array([efforts(there, t) for t in dense])
    assert np.abs(found).max() <= 1.005 * most
    assert np.abs(found).max() > 0.9 * most  # it is the fastest
    for side, sign in ((0, -1.0), (1, 1.0)):
        near = 2.0 * efforts(there, one.t + sign * 1e-6) - efforts(there, one.t + sign * 2e-6)
        assert near == pytest.approx(one.u[side], abs=1e-4 * most)
    assert np.abs(one.u).max() > 1e-2 * most
    assert set(there.at_limits) <= set(there.mech.actuated)
    assert max(there.at_limits.values()) > 0.5  # mostly at a limit


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_a_smooth_closed_motion(name):
    there, _ = planned(name)
    for t in np.linspace(0.0, there.duration, 40):
        q, v, a = there.state(t)
        state = hc.constraint_errors(there.mech, q, v)
        assert max(np.abs(state.position).max(), np.abs(state.velocity).max()) < 1e-7
        if 1e-5 < t < there.duration - 1e-5:
            h = 1e-6
            (q0, v0, _), (q1, v1, _) = there.state(t - h), there.state(t + h)
            assert (q1 - q0) / (2.0 * h) == pytest.approx(v, rel=1e-5, abs=1e-5)
            assert (v1 - v0) / (2.0 * h) == pytest.approx(a, rel=1e-3, abs=1e-3 * np.abs(a).max())
    assert np.abs(there.v[[0, -1]]).max() == 0.0


@pytest.mark.parametrize("name", PLANS)
def test_what_the_motors_lose_at_a_crossing(name):
    there, _ = planned(name)
    mech, one = there.mech, there.crossings[0]
    P = hc.project(mech, one.q, one.v)
    assert np.abs(P.terms.rows.jacobian @ one.motion).max() < 1e-8  # admissible
    assert np.abs(mech.B.T @ one.motion).max() < 1e-7  # with all motors at rest
    assert np.abs(one.motion / mech.column_scale).max() == pytest.approx(1.0)
    assert "while all motors hold" in one.lost_motion
    q, v, a = there.state(one.t)
    tree = pin.rnea(mech.model, mech.model.createData(), q, v, a)
    assert one.motion @ tree == pytest.approx(0.0, abs=1e-6 * np.abs(tree).max())
    assert np.abs(tree).max() > 0.1


def test_the_motion_of_a_plan_follows_from_its_efforts():
    """The plant moves as planned, without feedback, from before the crossing to behind it."""
    there, _ = planned("five_bar", 200)
    begin, end = there.crossings[0].t - 0.01, there.crossings[0].t + 0.01
    q, v, _ = there.state(begin)

    def held(t, q, v):
        away = t + begin - there.crossings[0].t
        return efforts(there, t + begin) if abs(away) > 1e-7 else there.crossings[0].u.mean(axis=0)

    run = hc.simulate(
        there.mech, held, q, v, end - begin, frequency=1e4,
        integrator=hc.Integrator(at_actuation_singularity="record", rtol=1e-9),
    )  # fmt: skip
    assert run.type_2_at == pytest.approx([0.01], abs=1e-5)
    assert run.q[-1] == pytest.approx(there.state(end).q, abs=1e-5)
    assert np.abs(run.q[-1] - q).max() > 0.1


def test_friction_is_in_the_plan_or_named():
    mech, way = wide()
    rubbed = mech.with_forces([hc.JointFriction(coulomb={"left_rod": 0.1, "right_rod": 0.1})])
    smooth, _ = planned("wide")
    found = hc.retime(rubbed, way, hc.Limits(effort=3.0), 120, cross=True)
    assert abs(found.duration - smooth.duration) > 1e-3
    dense = np.linspace(0.0, found.duration, 200)
    assert np.abs([efforts(found, t) for t in dense]).max() < 1.005 * 3.0
    rough = mech.with_forces([hc.JointFriction(coulomb={"left_rod": 2.9, "right_rod": 2.9})])
    with pytest.raises(hc.LimitError, match=r"crosses the type-2 .* friction is too large"):
        hc.retime(rough, wide()[1], hc.Limits(effort=3.0), 60, cross=True)


def test_what_cannot_be_crossed_is_told():
    mech = five_bar()
    with pytest.raises(
        hc.LimitError, match=r"no motion within the limits crosses the type-2 .*efforts exceed"
    ) as no:
        hc.retime(mech, across(), hc.Limits(effort=0.2), 60, cross=True)
    assert no.value.residual > 0.1
    (x, y), u = tip(planned("five_bar")[0]), np.linspace(-1.0, 1.0, 9)
    poses = np.column_stack([x + 0.05 * u, y + 0.1 * u * u])  # and back again
    with pytest.raises(hc.SingularityError, match=r"no motion can be planned .*(touches|too near)"):
        hc.retime(mech, (hc.FrameTask("tip", "x y"), poses), LIMITS, 60, cross=True)


def test_a_way_point_on_the_singularity_has_two_efforts():
    there, _ = planned("five_bar")
    x, y = tip(there)
    poses = np.array([[0.0, 0.3], [0.02, 0.24], [x, y], [0.02, 0.12], [0.0, 0.07]])
    way = hc.FrameTask("tip", "x y"), poses
    found = hc.retime(there.mech, way, hc.Limits(effort=2.5), cross=True)
    one = found.crossings[0]
    assert np.abs(one.u[1] - one.u[0]).max() > 1e-3
    assert np.abs(one.u).max() <= 1.005 * 2.5


# ---------------------------------------------------------------------------------------- control


def perturbed(mech, rng, share=0.05):
    """Masses, inertias and centres of mass that differ from the model."""
    model = mech.model.copy()
    for i in range(1, model.njoints):
        inertia, scale = model.inertias[i], 1.0 + share * rng.uniform(-1.0, 1.0)
        lever = inertia.lever * (1.0 + share * rng.uniform(-1.0, 1.0))
        model.inertias[i] = pin.Inertia(inertia.mass * scale, lever, inertia.inertia * scale)
    return mech.with_model(model)


def crossed(there, control, measured="all", seed=0, friction=0.1, wait=0.3):
    """A run with errors of the model, friction, encoders and the start."""
    mech, rng = there.mech, np.random.default_rng(seed)
    amount = dict(zip(mech.actuated, friction * np.abs(there.u).max(axis=0), strict=True))
    plant = perturbed(mech, rng).with_forces([hc.JointFriction(coulomb=amount)])
    free = there.partition.independent
    guess = there.q[0].copy()
    guess[free] += 2e-3 * rng.uniform(-1.0, 1.0, free.size)
    q0 = hc.assemble(plant, guess, locked=[mech.coordinate_names[i] for i in free])[0]
    return hc.simulate(
        plant, control, q0, np.zeros(mech.nv), there.duration + wait, frequency=1000.0,
        sensors=hc.Sensors(measured, counts=2**16, rate_bandwidth=1500.0),
        integrator=hc.Integrator(at_actuation_singularity="record"),
    )  # fmt: skip


def room(there, share=1.2):
    """Limits above those of the plan."""
    return hc.Limits(
        effort=dict(zip(there.mech.actuated, share * np.abs(there.u).max(axis=0), strict=True))
    )


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("five_bar", None),
        ("five_bar", ["left", "right", "left_rod"]),
        ("wide", None),
        ("rod", None),
    ],
)
def test_it_crosses_with_errors_of_model_sensors_and_start(name, measured):
    there, _ = planned(name)
    control = hc.CrossingControl(there.mech, there, room(there), measured=measured)
    run = crossed(there, control, "all" if measured is None else measured)
    assert len(run.type_2_at) == 1
    off = (run.q[-1] - there.q[-1]) / there.mech.column_scale
    assert np.abs(off).max() < 3e-4
    assert np.abs(run.u).max() <= 1.2 * np.abs(there.u).max() + 1e-12
    assert control.last.side == -1
    assert not control.last.blind


def test_motors_alone_are_refused_or_blind():
    there, _ = planned("five_bar")
    with pytest.raises(
        hc.InputError, match=r"do not determine the state .*'left_rod'.*blind="
    ) as no:
        hc.CrossingControl(there.mech, there, measured=["left", "right"])
    least = float(str(no.value).split("blind=")[1].split(" s")[0])
    with pytest.raises(hc.InputError, match=r"blind = 0.002 s is too short"):
        hc.CrossingControl(there.mech, there, blind=0.002)
    control = hc.CrossingControl(there.mech, there, room(there), blind=2.0 * least)
    run = crossed(there, control, ["left", "right"])
    assert len(run.type_2_at) == 1
    assert np.abs(run.q[-1] - there.q[-1]).max() < 3e-4
    control.reset()
    state = there.state(there.crossings[0].t)
    control(there.crossings[0].t, state.q[[0, 2]], state.v[[0, 2]])
    assert control.last.blind
    assert control.last.side == 0


def test_the_wrong_side_is_an_error():
    """Friction of passive joints that no one knew of."""
    there, most = planned("rod")
    control = hc.CrossingControl(there.mech, there, room(there))
    heavy = there.mech.with_forces([hc.JointFriction(coulomb={"crank": 2.0 * most})])
    with pytest.raises(hc.SingularityError, match="did not cross") as no:
        hc.simulate(
            heavy, control, there.q[0], there.v[0], there.duration + 0.2, frequency=1000.0,
            integrator=hc.Integrator(at_actuation_singularity="record"),
        )  # fmt: skip
    assert no.value.kind == "type 2"


def test_feed_forward_of_a_regulator_is_right_beside_the_crossing():
    there, most = planned("five_bar")
    law = hc.lqr_along(there.mech, there, 100.0, 1.0, models=11)
    for k, t in enumerate(law.times[:-2]):
        expected = efforts(there, t + 0.5e-3)
        assert law.u[k] == pytest.approx(expected, abs=1e-6 * most)


def at_top_speed():
    """A slider-crank, driven at its slider, over both dead points within 35 ms."""

    def made():
        mech = slider_crank("slider")
        ways = closed_at(mech, "crank", np.linspace(0.5, 0.5 + 2.0 * np.pi, 73))[::3]
        return hc.retime(mech, ways, hc.Limits(effort=2000.0), 120, cross=True)

    return shared("planned crossing at top speed", made)


def followed(there, control, plant, wait):
    return hc.simulate(
        plant, control, there.q[0], there.v[0], there.duration + wait, frequency=1000.0,
        integrator=hc.Integrator(at_actuation_singularity="record"),
    )  # fmt: skip


def test_two_crossings_within_a_short_time_are_told_apart():
    there = at_top_speed()
    assert np.diff([one.t for one in there.crossings]) < 0.05
    control = hc.CrossingControl(there.mech, there, room(there))
    run = followed(there, control, there.mech, 0.1)
    assert len(run.type_2_at) == 2
    assert control.last.side == 1


def test_the_wrong_side_is_an_error_at_the_end_and_in_every_run():
    mech = five_bar()
    path = hc.FrameTask("tip", "x y"), [[0.01, y] for y in np.linspace(0.3, 0.15, 9)]
    there = hc.retime(mech, path, hc.Limits(effort=8.0), 60, cross=True)
    assert there.duration - there.crossings[0].t < 0.05
    control = hc.CrossingControl(mech, there, room(there))
    stiff = mech.with_forces([hc.JointFriction(coulomb={"left_rod": 6.0, "right_rod": 6.0})])
    for _ in range(2):  # without a reset
        with pytest.raises(hc.SingularityError, match="did not cross"):
            followed(there, control, stiff, 0.0)


def test_a_robot_that_comes_back_is_told():
    there, _ = planned("five_bar")
    control = hc.CrossingControl(there.mech, there, room(there))
    for t in np.arange(0.0, there.duration + 0.1, 1e-3):
        control(t, *there.state(t)[:2])
    with pytest.raises(hc.SingularityError, match="or came back"):
        control(there.duration + 0.2, there.q[0], there.v[0])
    control(0.0, there.q[0], there.v[0])  # another run


def test_a_control_is_of_the_model_and_the_crossings_of_the_plan():
    there, _ = planned("five_bar")
    mech = there.mech
    with pytest.raises(hc.InputError, match="cannot be copied or pickled"):
        pickle.dumps(hc.CrossingControl(mech, there))
    laden = hc.retime(mech, across(), hc.Limits(effort=4.0), 60, payload=("tip", 0.3), cross=True)
    assert hc.CrossingControl(laden.mech, laden).measured == ()
    with pytest.raises(hc.InputError, match="planned for another model"):
        hc.CrossingControl(mech, laden)
    slow = dataclasses.replace(
        there, t=2.0 * there.t, v=0.5 * there.v, a=0.25 * there.a, curve=None, law=None
    )
    assert slow.crossings == ()
    assert len(slow.type_2_at) == 1
    with pytest.raises(hc.InputError, match="1 type-2 singularity, of which 0 are planned"):
        hc.CrossingControl(mech, slow)


def test_few_nodes_of_a_motion_through_a_singularity_are_closed_between():
    there, _ = planned("five_bar")
    t = np.linspace(0.0, there.duration, 24)
    q, v, a = (np.array(x) for x in zip(*map(there.state, t), strict=True))
    found = hc.Trajectory(there.mech, t, q, v, a, np.zeros((24, 2)), there.partition, cross=True)
    assert found.type_2_at == pytest.approx(there.type_2_at, abs=1e-5)


def test_a_function_of_configurations_crosses_too():
    there, _ = planned("five_bar")
    s = np.linspace(*there.curve.x[[0, -1]], 41)
    along = CubicSpline(np.linspace(0.0, 1.0, 41), [there.curve.at(x).q for x in s])
    found = hc.retime(there.mech, along, LIMITS, 60, cross=True)
    assert found.duration == pytest.approx(there.duration, rel=0.1)  # it stands at its ends
    assert len(found.crossings) == 1


def test_more_motors_than_motions_are_told():
    base = five_bar().model.copy()
    add_body(base, 0, pin.JointModelRZ(), at(-0.3), "wheel", bar(0.1, 0.2))
    mech = hc.Mechanism(
        base, [*five_bar().constraints, hc.Coupling({"wheel": 1.0, "left": -3.0}, name="gear")],
        ["wheel", "left", "right"], reference=np.append(five_bar().reference, 6.0), name="geared",
    )  # fmt: skip
    with pytest.raises(hc.SingularityError, match="as many motors as motions"):
        hc.retime(mech, across(), LIMITS, 60, cross=True)


def test_feed_forward_of_an_ordinary_motion_is_that_of_mean_accelerations():
    """With which velocities agree at the end of each tick, also if accelerations jump within it."""
    mech = hc.load(hc.robot_file("five_bar"))
    here = mech.motor_positions(hc.assemble(mech)[0])
    ways = here + np.array([[0.0, 0.0], [0.2, -0.1], [-0.1, 0.15]])
    there = hc.retime(mech, ways, hc.Limits(acceleration=20.0))
    law, middle = hc.lqr_along(mech, there, 100.0, 1.0, models=5), []
    for k, u in enumerate(law.u[:-2]):
        q, v, a = there.state((k + 0.5) * 1e-3)
        mean = (there.state((k + 1) * 1e-3).v - there.state(k * 1e-3).v) / 1e-3
        expected = hc.inverse_dynamics(mech, q, v, mean, coordinates="all", inconsistent="project")
        assert u == pytest.approx(expected.u, abs=1e-7)
        middle.append(np.abs(mean - a).max())
    assert max(middle) > 0.1


def test_what_a_crossing_control_refuses():
    there, _ = planned("five_bar")
    with pytest.raises(hc.InputError, match="trajectory must be a Trajectory"):
        hc.CrossingControl(there.mech, lambda t: None)
    with pytest.raises(hc.InputError, match="'left', 'right' are below the planned"):
        hc.CrossingControl(there.mech, there, hc.Limits(effort=0.5))
    with pytest.raises(hc.InputError, match="blind must be"):
        hc.CrossingControl(there.mech, there, blind=-1.0)
    control = hc.CrossingControl(there.mech, there)
    out = np.full(2, 7.0)
    with pytest.raises(hc.InputError, match="finite"):
        control.torque([np.nan] * 4, np.zeros(4), 0.0, out=out)
    assert (out == 7.0).all()
    assert "CrossingControl" in repr(control)


@pytest.mark.slow
def test_a_stewart_platform_names_joints_that_can_have_an_encoder():
    """Not the coordinates of its free joint, which is measured whole."""
    mech, task = hc.load(hc.robot_file("stewart")), hc.FrameTask("platform")

    def pose(height, yaw):
        return pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw), np.array([0.0, 0.0, height]))

    q = hc.assemble(mech)[0]
    for x in np.linspace(0.0, 1.0, 41):
        q = hc.inverse_kinematics(mech, [(task, pose(0.3 - 0.08 * x, np.deg2rad(70.0) * x))], q)[0]
    ways = [pose(0.22 - 0.04 * x, np.deg2rad(70.0 + 40.0 * x)) for x in np.linspace(0.0, 1.0, 8)]
    there = hc.retime(mech, (task, ways), "model", cross=True, start=q)
    assert len(there.crossings) == 1
    with pytest.raises(hc.InputError, match=r"measure one joint more \('foot_.*blind="):
        hc.CrossingControl(mech, there, measured=mech.actuated)
