"""Laws of transmissions on three parallel joints, alone and in a floating robot."""

from __future__ import annotations

import dataclasses
import pickle
from contextlib import suppress
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from ankles import (
    PITCH_ROLL,
    alone,
    crank_angle,
    crank_of_knee,
    cranked,
    four_barred,
    humanoid,
    pushed,
    rod,
    stroke,
)
from inside import predictions
from scipy.spatial import ConvexHull
from zoo import add_body, at, bar

import holoctl as hc
from holoctl.forces.sum_of_forces import all_efforts
from holoctl.transmission.transmission import Transmission
from holoctl.tree.kinematics import kinematics

BUILDS = {"cranked": cranked, "pushed": pushed, "four_barred": four_barred}
JOINTS = {"cranked": PITCH_ROLL, "pushed": PITCH_ROLL, "four_barred": ["knee"]}
REACH = {"cranked": [0.42, 0.3], "pushed": [0.7, 0.5], "four_barred": [0.5]}
CLOSED_FORM = {
    "cranked": lambda y: [crank_angle(y, "left"), crank_angle(y, "right")],
    "pushed": lambda y: [stroke(y, "left"), stroke(y, "right")],
    "four_barred": lambda y: [crank_of_knee(y[0], -1.0)],
}
NAMES = sorted(BUILDS)


@cache
def transmission(name):
    return Transmission(alone(BUILDS[name]), JOINTS[name])


def postures(name, count=40, seed=0):
    reach = np.array(REACH[name])
    return np.random.default_rng(seed).uniform(-reach, reach, (count, reach.size))


def rates(name, seed=1):
    return np.random.default_rng(seed).normal(size=(40, len(JOINTS[name]))) * 3.0


@pytest.mark.parametrize("name", NAMES)
def test_positions_are_those_of_the_closed_form_there_and_back(name):
    tr = transmission(name)
    moved = 0.0
    for y in postures(name):
        q_m = tr.motor_positions(y)
        np.testing.assert_allclose(q_m, CLOSED_FORM[name](y), rtol=0, atol=2e-14)
        np.testing.assert_allclose(tr.joint_positions(q_m), y, rtol=0, atol=2e-14)
        moved = max(moved, np.abs(q_m - tr.motor_start).max())
    assert moved > 0.02


@pytest.mark.parametrize("name", NAMES)
def test_rates_and_accelerations_are_the_derivatives(name):
    tr, h = transmission(name), 1e-5
    for y, yd in zip(postures(name), rates(name), strict=True):
        q = [tr.motor_positions(y + s * h * yd) for s in (-1.0, 0.0, 1.0)]
        np.testing.assert_allclose(tr.motor_rates(y, yd), (q[2] - q[0]) / (2 * h), atol=1e-7)
        Js = [tr.jacobian(y + s * h * yd) for s in (-1.0, 1.0)]
        curvature = (Js[1] - Js[0]) @ yd / (2 * h)
        np.testing.assert_allclose(tr.curvature(y, yd), curvature, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(tr.joint_rates(y, tr.motor_rates(y, yd)), yd, atol=1e-11)
        assert np.abs(curvature).max() > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_power_is_the_same_on_both_sides(name):
    tr = transmission(name)
    for y, yd, u in zip(postures(name), rates(name), rates(name, 2), strict=True):
        there = tr.joint_efforts(u, y) @ yd
        np.testing.assert_allclose(u @ tr.motor_rates(y, yd), there, rtol=1e-12, atol=1e-13)
        back = tr.motor_efforts(tr.joint_efforts(u, y), y)
        np.testing.assert_allclose(back.u, u, rtol=1e-11, atol=1e-11)
        assert np.abs(back.residual).max() < 1e-11


def test_the_order_is_that_of_the_names():
    tr = transmission("cranked")
    other = Transmission(tr.mech, PITCH_ROLL[::-1])
    y = np.array([0.3, -0.2])
    np.testing.assert_allclose(other.motor_positions(y[::-1]), tr.motor_positions(y), atol=1e-13)
    np.testing.assert_allclose(other.jacobian(y[::-1])[:, ::-1], tr.jacobian(y), atol=1e-12)
    np.testing.assert_allclose(
        other.linkage_efforts(y[::-1], [1, 2], [3, 4])[::-1],
        tr.linkage_efforts(y, [2, 1], [4, 3]),
        atol=1e-11,
    )


def serial_robot(mech, linkage):
    """The same tree with weightless rods, cranks and rotors."""
    model = mech.model.copy()
    for j in range(1, model.njoints):
        if model.names[j] in linkage:
            model.inertias[j] = pin.Inertia.Zero()
    model.armature = np.zeros(model.nv)
    return model


def own_joints(tr):
    return [n for n in tr.mech.model.names if n != "universe" and n not in tr.joints]


@pytest.mark.parametrize("name", NAMES)
def test_serial_and_linkage_are_the_whole(name):
    tr = transmission(name)
    mech = tr.mech.with_forces([
        hc.JointFriction(viscous=0.3, coulomb=0.2), hc.JointSpring(tr.joints[0], 3.0, rest=0.1)
    ])  # fmt: skip
    tr = Transmission(mech, tr.joints)
    columns = [mech.coordinate_names.index(n) for n in tr.joints]
    serial = serial_robot(mech, own_joints(tr))
    data = serial.createData()
    part = hc.partition(mech, tr.configuration(tr.y_start), independent=tr.joints)
    for y, yd, ydd in zip(postures(name), rates(name), rates(name, 2), strict=True):
        q = tr.configuration(y)
        P = hc.project(mech, q, np.zeros(mech.nv), partition=part)
        order = np.argsort(np.argsort(columns))
        v = P.gamma[:, order] @ yd
        whole = hc.inverse_dynamics(
            mech, q, v, target=ydd[np.argsort(columns)], coordinates="independent", partition=part
        )
        own = np.zeros((2, mech.nv))
        own[0, columns], own[1, columns] = yd, ydd
        tau = pin.rnea(serial, data, q, *own)[columns]
        link = tr.linkage_efforts(y, yd, ydd)
        np.testing.assert_allclose(tr.joint_efforts(whole.u, y), tau + link, rtol=1e-9, atol=1e-9)
        assert np.abs(link).max() > 1e-2


@cache
def robot():
    mech = humanoid()
    return mech, hc.assemble(mech)[0]


CHAINS = [["leg0 pitch", "leg0 roll"], ["leg1 pitch", "leg1 roll"], ["leg0 knee"], ["leg1 knee"]]


FORCES = [
    hc.Counterbalance(("leg0 coupler", at(0.02, 0.01)), 2.0, name="inside"),
    hc.Counterbalance("leg1 roll", 1.5),
    hc.Spring(("leg0 hip", at(0.1)), ("leg0 coupler", at(0.1)), 50.0, 0.1, damping=3.0),
]


@pytest.mark.parametrize("forces", [[], FORCES], ids=["bare", "forces"])
def test_serial_and_linkages_are_the_whole_afloat(forces):
    """All parallel joints of a robot in free flight, each on the moving body that carries it."""
    mech, start = robot()
    mech = mech.with_forces(forces)
    trs = [Transmission(mech, names, start) for names in CHAINS]
    linkage = {n for tr in trs for n in own_joints(tr)}
    serial = serial_robot(mech, linkage)
    names = [n for n in mech.coordinate_names if n not in linkage]
    columns = np.array([mech.coordinate_names.index(n) for n in names])
    part = hc.partition(mech, start, independent=names)
    rng, worst = np.random.default_rng(4), 0.0
    data = serial.createData()
    for _ in range(5):
        q = start.copy()
        q[:7] = [0.3, -0.2, 0.9, *(x := rng.normal(size=4)) / np.linalg.norm(x)]
        own = dict(zip(names, rng.uniform(-0.25, 0.25, len(names)), strict=True))
        for tr in trs:
            y = [own[n] for n in tr.joints]
            found = dict(zip(tr.mech.model.names, [0, *tr.configuration(y)], strict=True))
            own |= {n: found[n] for n in own_joints(tr)} | {n: found[n] for n in tr.joints}
        q[7:] = [own[n] for n in mech.coordinate_names[6:]]
        P = hc.project(mech, q, np.zeros(mech.nv), partition=part)
        yd, ydd = rng.normal(size=(2, len(names)))
        v = P.gamma @ yd
        P = hc.project(mech, q, v, partition=part)
        assert np.abs(P.terms.rows.error).max() < 1e-12
        a = P.gamma @ ydd + P.bias
        moving = kinematics(mech.model, mech.model.createData(), q, v, 0.0)
        F = all_efforts(mech.bound_forces, moving).total
        needed = P.gamma.T @ (pin.rnea(mech.model, mech.model.createData(), q, v, a) - F)
        rest = np.zeros((2, mech.nv))
        rest[:, columns] = yd, ydd
        tau = pin.rnea(serial, data, q, *rest)
        pin.forwardKinematics(serial, data, q, *rest)
        total = tau.copy()
        for tr in trs:
            j = serial.getJointId(tr.base)
            base = (data.v[j].vector, data.a[j].vector,
                    data.oMi[j].rotation.T @ serial.gravity.linear)  # fmt: skip
            at = [mech.coordinate_names.index(n) for n in tr.joints]
            link = tr.linkage_efforts(q[[i + 1 for i in at]], rest[0, at], rest[1, at], base)
            wrench = tr.linkage_wrench(q[[i + 1 for i in at]], rest[0, at], rest[1, at], base)
            total[at] += link
            J = pin.computeJointJacobian(serial, serial.createData(), q, j)
            total += J.T @ wrench
            worst = max(worst, np.abs(link).max())
        np.testing.assert_allclose(total[columns], needed, rtol=1e-9, atol=1e-8)
    assert worst > 0.1


def test_a_mechanism_of_a_robot_is_that_mechanism_alone():
    mech, start = robot()
    whole, own = Transmission(mech, CHAINS[0], start), transmission("cranked")
    assert whole.base == "leg0 knee"
    assert whole.mech.name == "humanoid leg0 pitch+leg0 roll"
    for y, yd, ydd in zip(postures("cranked", 5), rates("cranked"), rates("cranked", 2)):  # noqa: B905
        for what in ("motor_positions", "jacobian", "reflected_inertia"):
            found, wanted = (getattr(tr, what)(y) for tr in (whole, own))
            np.testing.assert_allclose(found, wanted, atol=1e-12)
        np.testing.assert_allclose(
            whole.linkage_efforts(y, yd, ydd, (np.zeros(6), np.zeros(6), [0, 0, -9.81])),
            own.linkage_efforts(y, yd, ydd),
            atol=1e-11,
        )


@pytest.mark.parametrize("name", NAMES)
def test_inertia_and_velocity_effort_are_parts_of_the_linkage(name):
    tr = transmission(name)
    p = len(tr.joints)
    still = np.zeros(p)
    for y, yd in zip(postures(name, 10), rates(name), strict=False):
        rest = tr.linkage_efforts(y, still, still)
        M = np.array([tr.linkage_efforts(y, still, e) - rest for e in np.eye(p)]).T
        np.testing.assert_allclose(tr.reflected_inertia(y), M, atol=1e-11)
        moving = tr.linkage_efforts(y, yd, still) - rest
        np.testing.assert_allclose(tr.velocity_effort(y, yd), moving, atol=1e-11)
        J, rotors = tr.jacobian(y), tr.mech.B.T @ tr.mech.model.armature
        np.testing.assert_allclose(
            tr.reflected_inertia(y, rotors=True), J.T @ np.diag(rotors) @ J, atol=1e-13
        )
        assert (np.linalg.eigvalsh(tr.reflected_inertia(y)) > 0.0).all()


@pytest.mark.parametrize("name", NAMES)
def test_gains_are_derivatives_of_efforts(name):
    tr, h = transmission(name), 1e-6
    n = len(tr.motors)
    for y, u in zip(postures(name, 10), rates(name, 5), strict=False):
        K, D = np.diag(np.arange(50.0, 50.0 + n)), 2.0 * np.eye(n)
        q0 = tr.motor_positions(y) + np.linalg.solve(K, u)  # u = K (q0 - q)

        def tau(x):
            return tr.joint_efforts(K @ (q0 - tr.motor_positions(x)), x)  # noqa: B023

        slope = [(tau(y + h * e) - tau(y - h * e)) / (2 * h) for e in np.eye(len(y))]
        found = tr.joint_gains(y, K, D, u)
        np.testing.assert_allclose(found.stiffness, -np.array(slope).T, rtol=1e-5, atol=1e-5)
        bare = tr.joint_gains(y, K)
        assert np.abs(bare.stiffness - found.stiffness).max() > 1e-4
        back = tr.motor_gains(y, found.stiffness, found.damping, u)
        np.testing.assert_allclose(back.stiffness, K, atol=1e-9)
        np.testing.assert_allclose(back.damping, D, atol=1e-10)
        assert back.misfit < 1e-10
        if n > 1:
            assert tr.motor_gains(y, [60.0, 40.0], 1.0, u).misfit > 0.01


def corners(lower, upper):
    return np.array(np.meshgrid(*zip(lower, upper, strict=True))).reshape(len(lower), -1).T


@pytest.mark.parametrize("name", NAMES)
def test_polytopes_are_hulls_of_corners(name):
    tr = transmission(name)
    lower, upper = (-30.0, -50.0)[: len(tr.motors)], (40.0, 45.0)[: len(tr.motors)]
    limits = hc.Limits(effort=list(zip(lower, upper, strict=True)), velocity=dict.fromkeys(
        tr.motors, 12.0), speed_torque=[(0.0, 40.0), (5.0, 20.0)])  # fmt: skip
    for y, yd in zip(postures(name, 10), rates(name), strict=False):
        J = tr.jacobian(y)
        found = tr.effort_polytope(y, limits=hc.Limits(effort=limits.effort))
        images = corners(lower, upper) @ J
        volume = np.ptp(images) if len(J) == 1 else ConvexHull(images).volume
        assert found.volume == pytest.approx(volume, rel=1e-8)
        assert all(found.contains(x) for x in images)
        assert not found.contains(1.01 * images[0] - 0.01 * found.center)
        fast = tr.effort_polytope(y, 10.0 * yd / np.abs(tr.motor_rates(y, yd)).min(), limits)
        assert fast.volume < 0.9 * tr.effort_polytope(y, limits=limits).volume
        speeds = tr.rate_polytope(y, limits).vertices
        assert np.abs(speeds @ J.T).max() == pytest.approx(12.0, rel=1e-9)
        low, high = found.box()
        assert all(found.contains(x, 1e-6) for x in corners(low, high))
        center, shape = found.ellipsoid()
        ring = np.random.default_rng(0).normal(size=(50, len(y)))
        ring /= np.linalg.norm(ring, axis=1)[:, None]
        assert all(found.contains(center + shape @ x, 1e-6) for x in ring)
        assert np.prod(high - low) < found.volume * (1 + 1e-6)


def redundant():
    """A knee with a second motor of its own beside the crank."""
    mech = alone(four_barred)
    return hc.Mechanism(mech.model, mech.constraints, actuated=["crank", "coupler"], name="two")


def test_more_motors_than_joints_share_an_effort_about_a_preload():
    tr = Transmission(redundant(), ["knee"])
    y, J = [0.2], Transmission(redundant(), ["knee"]).jacobian([0.2])
    least = tr.motor_efforts([5.0], y).u
    np.testing.assert_allclose(least, (J / (J.T @ J)).ravel() * 5.0, atol=1e-12)
    loaded = tr.motor_efforts([5.0], y, preload=[2.0, -3.0])
    np.testing.assert_allclose(J.T @ loaded.u, 5.0, atol=1e-12)
    assert np.abs(loaded.u - least).max() > 0.3
    null = np.array([-J[1, 0], J[0, 0]])
    assert (loaded.u - [2.0, -3.0]) @ null == pytest.approx(0.0, abs=1e-12)
    q_m = tr.motor_positions(y)
    np.testing.assert_allclose(tr.joint_positions(q_m), y, atol=1e-12)
    with pytest.raises(hc.BranchError, match="contradict each other"):
        tr.joint_positions([*q_m[:1], q_m[1] + 0.1])


def test_fewer_motors_than_joints_leave_a_residual():
    whole = alone(cranked)
    tr = Transmission(
        hc.Mechanism(whole.model, whole.constraints, actuated=["left"], name="one"), PITCH_ROLL
    )
    found = tr.motor_efforts([1.0, 2.0], [0.1, 0.1])
    assert np.linalg.norm(found.residual) > 0.5
    np.testing.assert_allclose(tr.jacobian([0.1, 0.1]) @ found.residual, 0.0, atol=1e-12)
    flat = tr.effort_polytope([0.1, 0.1], limits=hc.Limits(effort=10.0))
    assert len(flat.d) == 1
    assert flat.volume == 0.0
    assert len(flat.vertices) == 2
    for wrong in (lambda: tr.joint_positions([0.1]), lambda: tr.joint_rates([0.1, 0.1], [1.0])):
        with pytest.raises(hc.InputError, match="determine"):
            wrong()
    with pytest.raises(hc.LimitError, match="flat"):
        flat.box()


def test_rods_that_spin_idle_change_nothing_at_the_joints():
    tr, ball = transmission("cranked"), Transmission(alone(cranked, ball=True), PITCH_ROLL)
    assert ball.mech.nv > tr.mech.nv
    for y, yd, ydd in zip(postures("cranked", 10), rates("cranked"), rates("cranked", 2)):  # noqa: B905
        np.testing.assert_allclose(ball.motor_positions(y), tr.motor_positions(y), atol=1e-13)
        np.testing.assert_allclose(ball.curvature(y, yd), tr.curvature(y, yd), atol=1e-10)
        # the spin that the dynamics choose is not that of the universal joint: 1e-6 kg m^2
        np.testing.assert_allclose(
            ball.linkage_efforts(y, yd, ydd), tr.linkage_efforts(y, yd, ydd), atol=1e-4
        )
    mech = ball.mech
    q = ball.configuration([0.2, 0.1])
    u = hc.inverse_dynamics(mech, q, np.zeros(mech.nv), np.zeros(2)).u
    serial = serial_robot(mech, own_joints(ball))
    rest = np.zeros(mech.nv)
    tau = pin.rnea(serial, serial.createData(), q, rest, rest)
    columns = [mech.coordinate_names.index(n) for n in PITCH_ROLL]
    link = ball.linkage_efforts([0.2, 0.1], [0, 0], [0, 0])
    np.testing.assert_allclose(ball.joint_efforts(u, [0.2, 0.1]), tau[columns] + link, atol=1e-9)


def test_results_do_not_depend_on_what_was_asked_before():
    one, other = (Transmission(alone(cranked), PITCH_ROLL) for _ in range(2))
    for y in postures("cranked", 30):
        one.motor_positions(y)
        with suppress(hc.BranchError):
            one.motor_positions(y * 10.0)
        other.jacobian(0.5 * y)
        np.testing.assert_array_equal(one.motor_positions(y), other.motor_positions(y))
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(copy.motor_start, one.motor_start)
    np.testing.assert_allclose(copy.motor_positions(y), one.motor_positions(y), atol=1e-13)


@pytest.mark.parametrize("name", [*NAMES, "balls", "two motors"])
def test_the_first_prediction_is_of_second_order(name):
    """Its error decreases with the third power of the step, for joints and for motors."""
    if name == "balls":
        tr = Transmission(alone(cranked, ball=True), PITCH_ROLL)
    else:
        tr = Transmission(redundant(), ["knee"]) if name == "two motors" else transmission(name)
    direction = np.array([1.0, -0.7])[: len(tr.joints)]
    far, near = (predictions(tr, tr.y_start + h * direction) for h in (0.04, 0.02))
    for (first, second, whole), (half, bent, step) in zip(far, near, strict=True):
        error = np.abs(first + second - whole).max()
        assert np.abs(half + bent - step).max() < error / 5.5
        assert error < 0.2 * np.abs(second).max()


PLATFORM = np.array([[0.0, 0.0], [17.04, 0.0], [13.227, 16.106]])
GROUND = np.array([[0.0, 0.0], [15.91, 0.0], [0.0, 10.0]])


def platform_in_the_plane(pose):
    """The 3-RPR of Innocenti and Parenti-Castelli, whose modes are joined around cusps."""
    m, loops = pin.Model(), []
    add_body(m, 0, pin.JointModelPX(), at(), "x", pin.Inertia.Zero())
    add_body(m, "x", pin.JointModelPY(), at(), "y", pin.Inertia.Zero())
    add_body(m, "y", pin.JointModelRZ(), at(), "turn", bar(1.0))
    ends = pose[:2] + PLATFORM @ pin.utils.rotate("z", pose[2])[:2, :2].T - GROUND
    q = list(pose)
    for i, (foot, ball, d) in enumerate(zip(GROUND, PLATFORM, ends, strict=True)):
        add_body(m, 0, pin.JointModelRZ(), at(*foot), f"leg{i}", bar(1.0))
        add_body(m, f"leg{i}", pin.JointModelPX(), at(), f"stroke{i}", bar(1.0))
        loops.append(hc.Closure(f"stroke{i}", ("turn", at(*ball)), axes="x y", name=f"pin{i}"))
        q += [np.arctan2(d[1], d[0]), np.hypot(*d)]
    motors = [f"stroke{i}" for i in range(3)]
    mech = hc.Mechanism(m, loops, actuated=motors, reference=q, name="3-RPR")
    return Transmission(mech, ["x", "y", "turn"])


def test_joints_do_not_depend_on_the_way_around_a_cusp():
    first, other = np.array([-8.715, 12.183, -0.987]), np.array([-13.3727, -6.7489, 0.59])
    tr = platform_in_the_plane(first)
    goal = tr.motor_positions(first)
    s = np.linspace(0.0, 1.0, 60)[:, None]
    path = first + s * (other - first) + 4.0 * s * (1.0 - s) * np.array([0.0, 0.0, -0.5])
    here, sizes, q_m = tr, [], []
    for y in path:
        sizes.append(np.linalg.det(here.jacobian(y)) / np.linalg.det(tr.jacobian(first)))
        q_m.append(here.motor_positions(y))
        here = Transmission(tr.mech, tr.joints, here.configuration(y))
    assert min(sizes) > 0.2  # no singular configuration on the way to the same motor positions
    assert np.abs(q_m[-1] - goal).max() < 0.02
    for x in q_m:
        with suppress(hc.BranchError):
            tr.joint_positions(x)
    np.testing.assert_allclose(tr.joint_positions(goal), first, atol=1e-9)


def test_control_that_is_lost_twice_on_the_way_is_lost():
    """A crank drives a slide: dq_m / dy is zero at both ends of the stroke, and its sign after a
    turn is that at the start."""
    m = pin.Model()
    add_body(m, 0, pin.JointModelRY(), at(), "crank", bar(0.1))
    add_body(m, "crank", pin.JointModelRY(), at(0.1), "rod", bar(0.3))
    add_body(m, 0, pin.JointModelPX(), at(), "slide", bar(0.1))
    pin_joint = hc.Closure(("rod", at(0.3)), "slide", axes="x z", name="pin")
    reference = [1.0, -1.28, 0.05 + 0.29]
    mech = hc.Mechanism(m, [pin_joint], actuated=["slide"], reference=reference)
    start = hc.assemble(mech, locked=["crank"])[0]
    tr = Transmission(mech, ["crank"], start)
    slide = lambda a: 0.1 * np.cos(a) + np.sqrt(0.3**2 - (0.1 * np.sin(a)) ** 2)  # noqa: E731
    for a in (0.1, 1.0, 3.0):
        assert tr.motor_positions([a])[0] == pytest.approx(slide(a), abs=1e-13)
    for a in (-0.1, 3.3, 5.0, 1.0 + 2.0 * np.pi, 1.0 - 2.0 * np.pi):
        with pytest.raises(hc.BranchError, match="lose control") as raised:
            tr.motor_positions([a])
        assert raised.value.why == "control"


def screwed(motor):
    """A nut that a motor on the same line lifts."""
    m = pin.Model()
    add_body(m, 0, motor, at(), "motor", bar(0.1))
    add_body(m, 0, pin.JointModelPZ(), at(), "nut", bar(0.1))
    thread = hc.Closure("motor", "nut", joint="screw", pitch=-0.01, name="thread")
    return hc.Mechanism(m, [thread], actuated=["motor"])


def test_turns_of_a_screw_count():
    tr = Transmission(screwed(pin.JointModelRZ()), ["nut"])
    for z in (0.02, 0.13, -0.4):  # up to six turns
        assert tr.motor_positions([z])[0] == pytest.approx(z / 0.01, abs=1e-10)
        assert tr.joint_positions([z / 0.01])[0] == pytest.approx(z, abs=1e-12)
    with pytest.raises(hc.InputError, match="'motor' of a continuous joint and the screw 'thread'"):
        Transmission(screwed(pin.JointModelRUBZ()), ["nut"])


def test_rates_of_joints_within_limits_of_all_coordinates():
    """Those of cut joints too; the spin of a rod between balls bounds no rate of the joints."""
    mech = hc.load(hc.robot_file("four_bar"))
    tr, h, y = Transmission(mech, ["rocker"]), 1e-6, float(mech.reference[2]) + 0.1
    turned = [hc.joint_motion(mech, "pin", tr.configuration([y + s])).value for s in (h, -h)]
    ratio = (turned[0] - turned[1]).item() / (2 * h)
    limits = hc.Limits(velocity={"pin": 3.0, "crank": 1e3})
    found = tr.rate_polytope([y], limits).vertices
    assert np.abs(found).max() == pytest.approx(3.0 / abs(ratio), rel=1e-6)
    assert abs(ratio) > 0.1
    balls = Transmission(alone(cranked, ball=True), PITCH_ROLL)
    for name in ("left rod", "left rod[2]"):
        with pytest.raises(hc.LimitError, match="do not determine the rates of 'left rod"):
            balls.rate_polytope([0.1, 0.1], hc.Limits(velocity={"left": 9.0, name: 1.0}))
    slow = balls.rate_polytope([0.1, 0.1], hc.Limits(velocity={"left": 9.0, "left rod[0]": 0.01}))
    assert len(slow.b) == 4
    with pytest.raises(hc.LimitError, match="'left', 'right' have no velocity limit"):
        balls.rate_polytope([0.1, 0.1])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_walk_ends_on_another_branch(name):
    tr = transmission(name)
    rng, reached = np.random.default_rng(11), 0
    for _ in range(10_000):
        y = rng.uniform(-1.5, 1.5, len(tr.joints))
        try:
            q_m = tr.motor_positions(y)
        except hc.BranchError:
            continue
        reached += 1
        np.testing.assert_allclose(q_m, CLOSED_FORM[name](y), rtol=0, atol=1e-12)
    assert reached > 1000


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda: Transmission(alone(cranked), ["pitch"]), hc.InputError, "do not determine"),
        (lambda: Transmission(alone(cranked), ["pich", "roll"]), hc.InputError, "pitch"),
        (lambda: Transmission(alone(cranked), []), hc.InputError, "one serial joint"),
        (lambda: Transmission(alone(cranked), ["pitch", "pitch"]), hc.InputError, "twice"),
        (lambda: Transmission(robot()[0], ["arm0 1"]), hc.InputError, "no loop contains"),
        (lambda: Transmission(robot()[0], ["leg0 pitch", "leg0 roll", "leg0 knee"], robot()[1]),
         hc.InputError, "make a transmission of each"),
        (lambda: Transmission(alone(cranked), PITCH_ROLL, np.ones(8) * 0.5),
         hc.InconsistentError, "not closed"),
        (lambda: Transmission(hc.Mechanism(alone(cranked).model, alone(cranked).constraints),
                              PITCH_ROLL), hc.NotActuatedError, "no motor"),
        (lambda: transmission("cranked").motor_positions([1.5, 0.0]), hc.BranchError,
         "not reached"),
        (lambda: transmission("cranked").motor_positions([1.0]), hc.InputError, "positions of"),
        (lambda: transmission("cranked").motor_positions([np.nan, 0.0]), hc.InputError, "finite"),
        (lambda: transmission("cranked").joint_positions([3.0, 0.0]), hc.BranchError, "branch"),
        (lambda: transmission("cranked").effort_polytope([0, 0]), hc.LimitError, "no effort limit"),
        (lambda: transmission("cranked").rate_polytope([0, 0]), hc.LimitError, "no velocity limit"),
        (lambda: transmission("cranked").joint_gains([0, 0], [1, 2, 3]), hc.InputError, "finite"),
        (lambda: transmission("cranked").linkage_efforts([0, 0], [0, 0], [0, 0], base=1),
         hc.InputError, "twist"),
        (lambda: transmission("cranked").joint_gains([0, 0], "stiff"), hc.InputError, "real"),
        (lambda: transmission("cranked").joint_gains([0, 0], 1j), hc.InputError, "real"),
        (lambda: transmission("cranked").report([-0.1, -0.1], [0.1, 0.1], 2, seed=-1),
         hc.InputError, "seed"),
        (lambda: transmission("cranked").effort_polytope([0, 0], limits=hc.Limits(1.0)).contains(1),
         hc.InputError, "shape"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong()


def test_motors_of_idle_motions_are_refused():
    """A rod on three hinges: no joint determines its spin."""
    mech = alone(cranked)
    m = mech.model.copy()
    add_body(m, "left rod", pin.JointModelRZ(), at(), "spin", rod(0.2))
    ball = hc.Closure(("spin", at(0, 0, -0.2)), ("roll", at(-0.06, 0.04)), axes="x y z")
    loops = [ball, *mech.constraints[1:]]
    driven = hc.Mechanism(hc.renumbered(m), loops, actuated=["left", "right", "spin"], name="spun")
    with pytest.raises(hc.InputError, match="'spin' moves while 'pitch', 'roll' are at rest"):
        Transmission(driven, PITCH_ROLL)
    passive = hc.Mechanism(driven.model, driven.constraints, actuated=["left", "right"])
    np.testing.assert_allclose(
        Transmission(passive, PITCH_ROLL).motor_positions([0.2, 0.1]),
        transmission("cranked").motor_positions([0.2, 0.1]), atol=1e-12,
    )  # fmt: skip


def test_joints_that_rods_on_hinges_lock_are_named():
    """Rods that turn about y alone hold the roll."""
    mech = alone(cranked)
    m = mech.model.copy()
    for name in ("left rod x", "right rod x"):
        m = pin.buildReducedModel(m, [m.getJointId(name)], np.zeros(m.nq))
    hinges = [dataclasses.replace(c, axes="x y z rx rz") for c in mech.constraints]
    locked = hc.Mechanism(m, hinges, actuated=["left", "right"], name="hinges")
    with pytest.raises(hc.InputError, match=r"do not let 'roll' move.* rod on a hinge"):
        Transmission(locked, PITCH_ROLL)
    welded = [*mech.constraints, hc.Coupling({"pitch": 1.0}), hc.Coupling({"roll": 1.0})]
    with pytest.raises(hc.InputError, match=r"loops cannot move.* rod on a hinge"):
        Transmission(hc.Mechanism(mech.model, welded, actuated=["left", "right"]), PITCH_ROLL)


def test_joints_that_hang_on_a_rod_have_no_serial_robot():
    tr = Transmission(alone(four_barred), ["coupler"])
    assert tr.jacobian([float(tr.y_start[0])]).shape == (1, 1)
    with pytest.raises(hc.InputError, match="cut the loops at the ends of the rods"):
        tr.linkage_efforts(tr.y_start, [0.0], [0.0])


BOXES = {"cranked": [0.3, 0.2], "pushed": [0.6, 0.4], "four_barred": [0.4]}


@pytest.mark.parametrize(
    ("name", "count"),
    [(n, 300) for n in NAMES] + [pytest.param(n, 100_000, marks=pytest.mark.slow) for n in NAMES],
)
def test_tables_are_within_their_bounds(name, count):
    tr, box = transmission(name), np.array(BOXES[name])
    ys = np.random.default_rng(8).uniform(-box, box, (count, box.size))
    wanted = np.array([CLOSED_FORM[name](y) for y in ys])
    few, yd = ys[:50], rates(name)[:1].repeat(50, 0)
    J = np.array([tr.jacobian(y) for y in few])
    curvature = np.array([tr.curvature(y, d) for y, d in zip(few, yd, strict=True)])
    sizes = []
    for error in (1e-4, 1e-6, 1e-8):
        table = tr.table(error, -box, box)
        assert (table.error <= 1.2 * error).all()
        off = np.abs(table.motor_positions(ys) - wanted).max(axis=0)
        assert (off <= table.error).all()
        reached = 0.05 if name == "cranked" and count < 1000 else 0.5  # largest at its corners
        assert off.max() > reached * table.error.max()
        assert (np.abs(table.jacobian(few) - J) <= table.jacobian_error + 1e-11).all()
        by_rates = np.einsum("mij,ni,nj->nm", table.curvature_error, np.abs(yd), np.abs(yd))
        assert (np.abs(table.curvature(few, yd) - curvature) <= by_rates + 1e-9).all()
        sizes.append(table.coefficients.size)
    assert sizes == sorted(sizes)
    assert table.motor_positions(ys[0]).shape == (len(tr.motors),)


@cache
def close_to_singular():
    """Postures of the knee up to a singular configuration, motor positions and J there."""
    tr, low, high = transmission("four_barred"), -0.62766, -0.5277
    ys = (low + np.geomspace(1e-7, high - low, 2000))[:, None]
    found = [(tr.motor_positions(y), tr.jacobian(y)) for y in ys]
    return low, high, ys, *map(np.array, zip(*found, strict=True))


@pytest.mark.parametrize("error", [pytest.param(3e-3, marks=pytest.mark.slow), 1e-1])
def test_bounds_hold_up_to_a_singular_configuration(error):
    """Coefficients decay slowly there, and those past the interpolant count."""
    tr, (low, high, ys, exact, J) = transmission("four_barred"), close_to_singular()
    table = tr.table(error, [low], [high])
    assert np.abs(J).max() > 20.0
    assert (np.abs(table.motor_positions(ys) - exact) <= table.error).all()
    assert (np.abs(table.jacobian(ys) - J) <= table.jacobian_error).all()
    assert np.isinf(table.curvature_error).all()
    with pytest.raises(hc.InputError, match="not converged"):
        tr.table(1e-2, [low], [0.0])


def test_tables_that_cannot_be_made_are_refused():
    tr = transmission("cranked")
    for error, box, text in [
        (1e-6, None, "no position limits"), (1e-13, [0.3, 0.2], "at least"),
        (1e-6, [-0.3, 0.2], "below"), (1e-10, [0.42, 0.29], "not converged"),
    ]:  # fmt: skip
        with pytest.raises(hc.InputError, match=text):
            tr.table(error, *([] if box is None else [-np.array(box), np.array(box)]))
    with pytest.raises(hc.BranchError, match="not reached"):
        tr.table(1e-6, [-1.4, -0.1], [1.4, 0.1])
    table = tr.table(1e-4, [-0.1, -0.1], [0.1, 0.1])
    for wrong, text in [
        (lambda: table.motor_positions([0.2, 0.0]), "outside of the domain"),
        (lambda: table.motor_positions([np.nan, 0.0]), "not finite"),
        (lambda: table.motor_positions("far"), "real numbers"),
        (lambda: table.curvature(np.zeros((3, 2)), np.ones(3)), "rates of"),
    ]:
        with pytest.raises(hc.InputError, match=text):
            wrong()
    np.testing.assert_allclose(
        table.curvature([0.05, 0.0], [1, 2]), table.curvature(np.array([0.05, 0]), np.array([1, 2]))
    )


@pytest.mark.parametrize("kind", ["torch", "jax.numpy"])
def test_tables_of_a_learner(kind):
    """Arrays of torch and JAX, in single precision; skipped where they are not installed."""
    xp = pytest.importorskip(kind)
    tr = transmission("pushed")
    table = tr.table(1e-8, [-0.3, -0.3], [0.3, 0.3])
    ys = np.random.default_rng(2).uniform(-0.3, 0.3, (5, 4, 2))
    given = xp.asarray(ys, dtype=xp.float32)
    for name, *more in (("motor_positions",), ("jacobian",), ("curvature", given)):
        found = getattr(table, name)(given, *more)
        assert found.dtype == xp.float32
        wanted = getattr(table, name)(ys, *([ys] * len(more)))
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=2e-6)
    outside = table.motor_positions(xp.asarray([[0.0, 0.0], [0.4, 0.0]], dtype=xp.float32))
    assert np.isfinite(np.asarray(outside[0])).all()
    assert np.isnan(np.asarray(outside[1])).all()
