"""The fastest way along a path: within all limits, at one of them nearly all the way."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pinocchio as pin
import pytest
from support import few, mechanism

import holoctl as hc
from holoctl.design.paths.closed_path import closed_path, grid_of
from holoctl.design.paths.dynamics import dynamics_along
from holoctl.design.paths.inputs import checked_path, start_of

METHODS = ["cvxpy", "toppra"]


def robot(name):
    return hc.load(hc.robot_file(name))


def motors_at(mech, seed=0, count=5):
    """Way-points of the motors near the reference, the first one there."""
    here = mech.motor_positions(hc.assemble(mech)[0])
    size = 0.02 if mech.name == "stewart" else 0.3
    points = here + size * np.random.default_rng(seed).uniform(-1.0, 1.0, (count, mech.nu))
    points[0] = here
    return np.maximum(points, 0.01) if mech.name == "stewart" else points


def simulated(trajectory, limits=None, dt=1e-3):
    """Efforts (ticks, nu) of a loop that follows it, and the run."""
    mech, efforts = trajectory.mech, []
    follow = hc.ComputedTorque(mech, kp=900.0, kd=60.0, limits=limits)
    follow = follow.track(trajectory.sampled(dt))

    def controller(t, q, v):
        efforts.append(follow(t, q, v).copy())
        return efforts[-1]

    run = hc.simulate(mech, controller, trajectory.q[0], trajectory.v[0], trajectory.duration)
    return np.array(efforts), run


def at_limits(trajectory):
    """The share of the time in which something is at its limit."""
    lengths = np.diff(trajectory.t)
    return float(lengths[[bool(names) for names in trajectory.active]].sum() / lengths.sum())


# ------------------------------------------------------------------------------------ the equations


@pytest.mark.parametrize("name", ["five_bar", "delta", "three_motors"])
def test_efforts_along_a_path_are_affine_in_the_acceleration_and_the_squared_speed(name):
    mech = mechanism(name) if name == "three_motors" else robot(name)
    start = start_of(mech, None, None)
    goal = hc.assemble(mech, start.q + 0.1 * (mech.nq == mech.nv))[0]
    path = motors_at(mech) if mech.nu < 3 or name == "delta" else np.array([start.q, goal])
    given = checked_path(start, path, False)
    nodes = closed_path(given, grid_of(given.knots, 20))
    dyn, rng = dynamics_along(nodes, None), np.random.default_rng(5)
    for i in range(0, 21, 4):
        sd, sdd = rng.uniform(0.5, 3.0), rng.normal()
        q, v, a = nodes.q[i], sd * nodes.d1[i], sd**2 * nodes.d2[i] + sdd * nodes.d1[i]
        P = hc.project(mech, q, v, partition=start.part)
        np.testing.assert_allclose(P.rows.jacobian @ a + P.rows.drift, 0.0, atol=1e-9)
        found = hc.inverse_dynamics(mech, q, v, a, coordinates="all", projection=P).u
        balance = dyn.r1[i] * sdd + dyn.r2[i] * sd**2 + dyn.r3[i]
        size = np.abs(balance).max() + np.abs(dyn.r2[i] * sd**2).max()
        np.testing.assert_allclose(dyn.A[i] @ found, balance, atol=1e-12 * (1.0 + size))


# ------------------------------------------------------------------------------------- the solution


@pytest.mark.parametrize("name", few(["five_bar", "delta", "stewart"], ["five_bar", "delta"]))
def test_both_methods_find_the_same_way_within_limits(name):
    mech = robot(name)
    path, limit = motors_at(mech), np.array(list(hc.limits_of(mech).effort.values()))
    one, two = (hc.retime(mech, path, method=method) for method in METHODS)
    assert abs(one.duration - two.duration) < 5e-3 * one.duration
    for found in (one, two):
        assert np.abs(found.u / limit).max() < 1.0 + 1e-4
        assert found.excess < 5e-3
        assert at_limits(found) > 0.95
        assert len(found.active) == len(found.t) - 1
        lengths = np.diff(found.t) / found.duration
        for limit_name, share in found.at_limits.items():
            within = [limit_name in names for names in found.active]
            assert share == pytest.approx(lengths[within].sum())
        assert set(found.at_limits) == set().union(*found.active)
        q = found.state(0.5 * found.duration).q
        assert hc.constraint_errors(mech, q).closure < 1e-9
        np.testing.assert_allclose(found.reference(found.duration)[0], path[-1], atol=1e-9)


def test_efforts_stay_within_their_limits_in_a_loop_of_1_khz():
    mech = robot("five_bar")
    path = motors_at(mech, count=3)
    efforts, run = simulated(hc.retime(mech, path))
    assert np.abs(efforts).max() < 1.005 * 20.0
    assert np.abs(mech.motor_positions(run.q[-1]) - path[-1]).max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delta", "stewart"])
@pytest.mark.parametrize("margin", [0.0, 0.03])
def test_efforts_of_robots_in_space_stay_within_their_limits_too(name, margin):
    mech = robot(name)
    limit = np.array(list(hc.limits_of(mech).effort.values()))
    efforts, _ = simulated(hc.retime(mech, motors_at(mech), margin=margin))
    assert np.abs(efforts / limit).max() < (1.005 if not margin else 1.0)


def test_a_straight_move_of_a_single_bar_is_bang_bang():
    """Without gravity: T = 2 sqrt(x I / u)."""
    model = pin.Model()
    model.gravity = pin.Motion.Zero()
    joint = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "bar")
    inertia = 0.2
    model.appendBodyToJoint(
        joint, pin.Inertia(1.0, np.zeros(3), inertia * np.eye(3)), pin.SE3.Identity()
    )
    mech = hc.Mechanism(model, [], ["bar"])
    for method in METHODS:
        found = hc.retime(mech, [[0.0], [1.0]], hc.Limits(effort=5.0), 60, method)
        assert abs(found.duration - 2.0 * np.sqrt(inertia / 5.0)) < 1e-4 * found.duration
        fast = hc.retime(mech, [[0.0], [1.0]], hc.Limits(effort=5.0, velocity=2.0), 60, method)
        exact = 1.0 / 2.0 + 2.0 * inertia / 5.0  # x / v + v I / u
        assert abs(fast.duration - exact) < 1e-3 * exact
        assert "bar.velocity" in fast.active[30]


@pytest.mark.parametrize("method", METHODS)
def test_more_motors_than_motions_are_faster_together(method):
    mech, two = mechanism("three_motors"), mechanism("five_bar")
    q = hc.assemble(mech)[0]
    goal = hc.assemble(mech, q + np.array([0.5, 0.0, -0.4, 0.0]))[0]
    limits = hc.Limits(effort=5.0)
    found = hc.retime(mech, [q, goal], limits, 80, method)
    assert np.abs(found.u).max() < 5.0 + 1e-3
    assert found.duration < 0.95 * hc.retime(two, [q, goal], limits, 80, method).duration
    for i in range(0, 81, 8):
        P = hc.project(mech, found.q[i], found.v[i], partition=found.partition)
        u = hc.inverse_dynamics(
            mech, found.q[i], found.v[i], found.a[i], coordinates="all", projection=P
        ).u
        np.testing.assert_allclose(P.gamma.T @ mech.B @ (found.u[i] - u), 0.0, atol=1e-9)
    of_motors = [mech.motor_positions(x) for x in (q, goal)]
    again = hc.retime(mech, of_motors, limits, 80, method)
    assert abs(again.duration - found.duration) < 1e-2 * found.duration
    with pytest.raises(hc.InputError, match="the motors contradict each other"):
        hc.retime(mech, [of_motors[0], of_motors[1] + np.array([0, 0, 0.1])], limits, 80, method)


@pytest.mark.slow
def test_facets_are_the_same_as_efforts_that_are_variables():
    import cvxpy as cp

    mech, N = mechanism("three_motors"), 60
    q = hc.assemble(mech)[0]
    goal = hc.assemble(mech, q + np.array([0.5, 0.0, -0.4, 0.0]))[0]
    start = start_of(mech, None, None)
    given = checked_path(start, np.array([q, goal]), False)
    nodes = closed_path(given, grid_of(given.knots, N))
    dyn = dynamics_along(nodes, None)
    b, y, h = cp.Variable(N + 1), cp.Variable(N + 1), np.diff(nodes.s)
    rows = [b[0] == 0.0, b[N] == 0.0, y[0] == 0.0, y[N] == 0.0, cp.square(y) <= b]
    for i in range(N):
        sdd = (b[i + 1] - b[i]) / (2.0 * h[i])
        for j in (i, i + 1):
            u = cp.Variable(mech.nu)
            rows += [dyn.A[j] @ u == dyn.r1[j] * sdd + dyn.r2[j] * b[j] + dyn.r3[j]]
            rows += [u <= 5.0, u >= -5.0]
    cost = sum(2.0 * h[i] * cp.inv_pos(y[i] + y[i + 1]) for i in range(N))
    cp.Problem(cp.Minimize(cost), rows).solve(solver=cp.CLARABEL)
    found = hc.retime(mech, [q, goal], hc.Limits(effort=5.0), N)
    assert abs(found.duration - cost.value) < 1e-4 * found.duration


# ------------------------------------------------------------------------- what changes with speed


def braked(**friction):
    return dataclasses.replace(robot("five_bar"), forces=[hc.JointFriction(**friction)])


def test_viscous_friction_counts_and_takes_longer():
    mech, path = braked(viscous=0.3), motors_at(robot("five_bar"), count=3)
    one, two = (hc.retime(mech, path, "model", 100, method) for method in METHODS)
    free = hc.retime(robot("five_bar"), path, "model", 100)
    assert abs(one.duration - two.duration) < 5e-3 * one.duration
    assert one.duration > 1.002 * free.duration
    for found in (one, two):
        assert np.abs(found.u).max() < 20.0 * 1.005
        assert at_limits(found) > 0.9
    for i in range(0, len(one.t), 9):
        given = mech, one.q[i], one.v[i], mech.B.T @ one.a[i]
        u = hc.inverse_dynamics(*given, partition=one.partition).u
        np.testing.assert_allclose(one.u[i], u, atol=1e-9 * (1.0 + np.abs(u).max()))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "friction", [{"viscous": 0.1, "coulomb": 1.5}, {"coulomb": 1.0, "stribeck": (1.5, 1.0)}]
)
def test_dry_friction_counts_too(friction, method):
    mech = braked(**friction)
    found = hc.retime(mech, motors_at(mech), method=method, margin=0.05)
    efforts, _ = simulated(found)
    assert np.abs(efforts).max() < 20.0
    assert found.excess < 6e-3
    assert at_limits(found) > 0.9


@pytest.mark.parametrize(
    "points", [[(0, 20), (8, 20), (14, 0)], [(0, 20), (12, 5)], [(0, 20), (3, 8), (15, 6)]]
)
def test_the_speed_torque_lines_are_kept(points):
    mech = robot("five_bar")
    path, limits = motors_at(mech), hc.Limits(effort=18.0, speed_torque=points)
    found = hc.retime(mech, path, limits, 100, "toppra")
    rates = found.v @ mech.B
    most = np.minimum(np.interp(np.abs(rates), *np.array(points, dtype=float).T), 18.0)
    drives = rates * found.u > 0.0
    assert (np.abs(found.u) - most)[drives].max() < 0.02
    assert np.abs(found.u).max() < 18.01
    assert found.duration > hc.retime(mech, path, hc.Limits(effort=18.0), 100, "toppra").duration


# ------------------------------------------------------------------------------------------- paths


def test_a_function_with_and_without_its_derivatives_is_the_same_path():
    mech = robot("five_bar")
    here, way = mech.motor_positions(hc.assemble(mech)[0]), np.array([0.4, -0.3])

    def place(s):
        return here + way * np.sin(2.0 * s)

    def with_derivatives(s):
        return place(s), 2.0 * way * np.cos(2.0 * s), -4.0 * way * np.sin(2.0 * s)

    one = hc.retime(mech, place, "model", 60, "toppra")
    two = hc.retime(mech, with_derivatives, "model", 60, "toppra")
    assert abs(one.duration - two.duration) < 1e-6 * one.duration
    with pytest.raises(hc.InputError, match="first derivative that the function returns"):
        hc.retime(mech, lambda s: (place(s), way, way))


def test_configurations_are_way_points_where_their_motors_are():
    mech = robot("delta")
    one = hc.retime(mech, motors_at(mech, count=3), "model", 60, "toppra")
    knots = one.q[[0, 20, -1]]
    two = hc.retime(mech, knots, "model", 60, "toppra")
    np.testing.assert_allclose(two.q[-1], one.q[-1], atol=1e-10)


@pytest.mark.parametrize("local", [False, True])
def test_a_frame_follows_its_poses(local):
    mech = robot("stewart")
    task = hc.FrameTask("tip", local=local)
    rng, q = np.random.default_rng(0), hc.assemble(mech)[0]
    here = hc.task_terms(hc.project(mech, q, np.zeros(mech.nv)), task).value
    steps = 0.02 * rng.normal(size=(2, 6)) * [1, 1, 1, 4, 4, 4]
    poses = [here, *(here * pin.exp6(pin.Motion(step)) for step in steps)]
    found = hc.retime(mech, (task, poses), "model", 40, "toppra")
    for i, pose in ((0, poses[0]), (-1, poses[-1])):
        at = hc.task_terms(hc.project(mech, found.q[i], found.v[i]), task).value
        assert np.abs(pin.log6(at.actInv(pose)).vector).max() < 1e-9
    middle = found.state(0.4 * found.duration)
    assert hc.constraint_errors(mech, middle.q, middle.v).closure < 1e-9


def test_the_tip_of_a_five_bar_follows_a_curve():
    mech = robot("five_bar")
    task = hc.FrameTask("tip_right", "x z")
    q = hc.assemble(mech)[0]
    here = hc.task_terms(hc.project(mech, q, np.zeros(mech.nv)), task).value
    goal = here + np.array([0.05, -0.05])
    found = hc.retime(
        mech, (task, [here, here + np.array([0.05, 0.0]), goal]), "model", 60, "toppra"
    )
    there = hc.task_terms(hc.project(mech, found.q[-1], found.v[-1]), task).value
    np.testing.assert_allclose(there, goal, atol=1e-10)
    with pytest.raises(hc.InputError, match="does not determine some of them"):
        hc.retime(mech, (hc.FrameTask("tip_right", "x"), [here[:1], goal[:1]]))
    with pytest.raises(hc.NotActuatedError, match="name as many axes"):
        hc.retime(mech, (hc.FrameTask("tip_right", "x z ry"), [pin.SE3.Identity()] * 2))


def test_a_payload_takes_longer_and_external_forces_count():
    mech = robot("delta")
    path = motors_at(mech, count=3)
    free, loaded = (
        hc.retime(mech, path, "model", 60, "toppra", payload=payload)
        for payload in (None, ("tip", 1.0))
    )
    assert loaded.duration > 1.2 * free.duration
    assert loaded.mech is not mech
    weight = {"tip": ([0.0, 0.0, -9.81], [0.0, 0.0, 0.0])}
    pulled = hc.retime(mech, path, "model", 60, "toppra", f_ext=weight)
    i = 20
    given = mech, pulled.q[i], pulled.v[i], mech.B.T @ pulled.a[i]
    u = hc.inverse_dynamics(*given, f_ext=weight, partition=pulled.partition).u
    np.testing.assert_allclose(pulled.u[i], u, atol=1e-9)
    held = hc.inverse_dynamics(
        loaded.mech, loaded.q[i], loaded.v[i], mech.B.T @ loaded.a[i], partition=loaded.partition
    )
    np.testing.assert_allclose(loaded.u[i], held.u, atol=1e-9)


# ---------------------------------------------------------------------------------------- refusals


def test_paths_that_cannot_be_followed_say_where_and_why():
    mech = robot("delta")
    path = motors_at(mech)
    for method in METHODS:
        with pytest.raises(
            hc.LimitError, match=r"at s = 0\.\d+ 'motor_1' would have to exceed"
        ) as no:
            hc.retime(mech, path, method=method, payload=("tip", 30.0), points=60)
        assert no.value.names == ("motor_1",)
        assert no.value.residual > 0.1
    most = float(path[:, 1].max()) - 0.05
    with pytest.raises(hc.LimitError, match="leads past a limit: at s = ") as no:
        hc.retime(mech, path, hc.Limits(effort=20.0, position={"motor_2": most}), 60)
    assert no.value.names == ("motor_2.position",)
    with pytest.raises(hc.BranchError, match="cannot be followed beyond s = "):
        hc.retime(mech, [path[0], path[0] + 4.0], hc.Limits(effort=20.0))
    with pytest.raises(hc.InputError, match="nothing limits how fast"):
        hc.retime(mech, path, hc.Limits(position={"motor_1": 1.5}))


def test_two_arms_do_not_turn_over_at_once():
    """On the symmetry line both arms fold at the origin, and the determinant keeps its sign."""
    mech, tip = robot("five_bar"), hc.FrameTask("tip_right", "x z")
    through = (tip, [[0.0, 0.3], [0.0, 0.1], [0.0, -0.1], [0.0, -0.3]])
    limits = hc.Limits(effort={"motor_left": 50.0, "motor_right": 50.0})
    with pytest.raises(hc.BranchError, match=r"s = 0\.49.*singular"):
        hc.retime(mech, through, limits)


def test_mechanisms_that_move_by_themselves_follow_no_path():
    for name in ("standing_leg", "floating_leg"):
        mech = mechanism(name)
        with pytest.raises(hc.NotActuatedError, match="cannot follow a given path"):
            hc.retime(mech, [mech.reference, mech.reference], hc.Limits(effort=100.0))
    timed = mechanism("timed_arm")
    with pytest.raises(hc.InputError, match="depend on time"):
        hc.retime(timed, [timed.reference, timed.reference], hc.Limits(effort=100.0))


def test_rods_may_spin_where_that_hardly_matters():
    heavy = mechanism("idle_rod")
    here = heavy.motor_positions(hc.assemble(heavy)[0])
    with pytest.raises(hc.NotActuatedError, match="would start to spin"):
        hc.retime(heavy, [here, here + 0.4], hc.Limits(effort=20.0), 40, "toppra")
    model = heavy.model.copy()
    rod = pin.Inertia(1.0, np.array([0.35, 0.0, 0.0]), np.diag([1e-4, 0.02, 0.02]))
    model.inertias[model.getJointId("rod")] = rod
    mech = heavy.with_model(model)
    found = hc.retime(mech, [here, here + 0.4], hc.Limits(effort=20.0), 40, "toppra")
    i = 15
    given = mech, found.q[i], found.v[i], mech.B.T @ found.a[i]
    u = hc.inverse_dynamics(*given, partition=found.partition).u
    np.testing.assert_allclose(found.u[i], u, atol=1e-3 * np.abs(u).max())


def test_bad_paths_are_refused():
    mech = robot("five_bar")
    here, way = mech.motor_positions(hc.assemble(mech)[0]), np.array([0.3, -0.2])
    for path, said in (
        ([here, here], "are the same"),
        ([here], "two way-points or more"),
        (np.zeros((3, 7)), "two way-points or more"),
        ([here, here * np.nan], "must be finite"),
        (lambda s: here + way * abs(s - 0.4), "not smooth near s = 0.[34]"),
        (lambda s: here + way * s * s * (3.0 - 2.0 * s), "stands still at s = [01]"),
        (lambda s: [0.0], "must return"),
        ((hc.FrameTask("tip_right", "x z"), [[0.0, 0.4]]), "two or more"),
    ):
        with pytest.raises(hc.InputError, match=said):
            hc.retime(mech, path)
    for options, said in (
        ({"margin": 1.0}, "margin"),
        ({"points": 2}, "points"),
        ({"method": "ecos"}, "method"),
        ({"payload": ("tip_right", -1.0)}, "mass"),
        ({"payload": "tip_right"}, "pair"),
        ({"payload": ("universe", 1.0)}, "fixed to the world"),
    ):
        with pytest.raises(hc.InputError, match=said):
            hc.retime(mech, [here, here + way], **options)


# --------------------------------------------------------------------------------------------- time


@pytest.mark.slow
def test_two_hundred_points_of_a_delta_are_quick():
    mech = robot("delta")
    path = motors_at(mech)
    for method, most in (("cvxpy", 0.5), ("toppra", 0.2)):
        hc.retime(mech, path, method=method)
        taken = []
        for _ in range(5):
            begun = time.process_time()
            hc.retime(mech, path, method=method)
            taken.append(time.process_time() - begun)
        assert min(taken) < most
