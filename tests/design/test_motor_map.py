"""Motor maps: numbers against closed form, one branch, and the same whoever works."""

from __future__ import annotations

import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pinocchio as pin
import pytest
import zoo
from refusals import refused
from support import mechanism

import holoctl as hc
from holoctl.design.maps.grid_coordinates import chart_of
from holoctl.design.maps.grid_filling import GridWorker, filled
from holoctl.design.maps.point_quantities import MapPoint, MapRequest
from holoctl.rows.evaluate import constraint_rows

TIP = hc.FrameTask("tip_right", "x z")
GROUND, PROXIMAL, DISTAL = np.array([[-0.10, 0.0], [0.10, 0.0]]), 0.25, 0.35
EVERYTHING = ("torque", "condition", "velocity", "force")
ARRAYS = (*EVERYTHING, "velocity_directions", "force_directions", "reachable", "behind", "q")


@pytest.fixture(scope="module")
def five_bar():
    return hc.load(hc.robot_file("five_bar"))


@pytest.fixture(scope="module")
def over_tip(five_bar):
    """The whole plane, through the curve where the motors are singular."""
    xs, zs = np.linspace(-0.44, 0.44, 12), np.linspace(-0.38, 0.55, 14)
    return hc.motor_map(five_bar, (TIP, xs, zs), EVERYTHING, limits=None)


def jacobians(q, place):
    """Of the five-bar by hand: A xd = B thetad, with the rods as lines of constant length."""
    angles = q[[0, 2]]
    lever = PROXIMAL * np.column_stack([np.cos(angles), np.sin(angles)])
    rods = place - (GROUND + lever)
    across = np.column_stack([-lever[:, 1], lever[:, 0]])
    return rods, np.vecdot(rods, across)


def points(found):
    """Index, place and configuration of each point that is reachable."""
    for index in zip(*np.nonzero(found.reachable), strict=True):
        place = [axis.values[i] for axis, i in zip(found.axes, index, strict=True)]
        yield tuple(int(i) for i in index), np.array(place), found.q[index]


# ----------------------------------------------------------------------------- closed form


def test_condition_and_ellipsoids_are_those_of_the_closed_form(over_tip):
    conditions = list[float]()
    for index, place, q in points(over_tip):
        A, b = jacobians(q, place)
        np.testing.assert_allclose(np.linalg.norm(A, axis=1), DISTAL, rtol=1e-9)
        U, s, _ = np.linalg.svd(np.linalg.solve(A, np.diag(b)))
        np.testing.assert_allclose(over_tip.condition[index], s[0] / s[1], rtol=1e-7)
        np.testing.assert_allclose(over_tip.velocity[index], s, rtol=1e-7)
        np.testing.assert_allclose(over_tip.force[index], 1.0 / s[::-1], rtol=1e-7)
        cosine = abs(U[:, 0] @ over_tip.velocity_directions[index][:, 0])
        assert s[0] < 1.01 * s[1] or cosine > 1.0 - 1e-6
        conditions.append(s[0] / s[1])
    assert len(conditions) > 90
    assert max(conditions) > 8.0


def test_what_is_behind_the_curve_where_motors_are_singular_says_so(over_tip, five_bar):
    q0 = hc.assemble(five_bar)[0]
    kin, _ = constraint_rows(five_bar, q0, np.zeros(five_bar.nv), 0.0)
    A, b = jacobians(q0, TIP.bind(five_bar).at(kin).value)
    side = np.sign(np.linalg.det(A) * b.prod())
    behind = 0
    for index, place, q in points(over_tip):
        A, b = jacobians(q, place)
        there = np.sign(np.linalg.det(A) * b.prod()) == side
        assert over_tip.behind[index] == (not there)
        assert ("behind a singular" in over_tip.reasons[index]) == (not there)
        behind += not there
    assert behind >= 2


def test_where_two_ways_around_the_hole_meet_motors_are_turns_apart(over_tip):
    told = np.array(["whole turns apart" in reason for reason in over_tip.reasons.flat])
    told = told.reshape(over_tip.reasons.shape)
    q = over_tip.q
    steps = np.abs(np.diff(q, axis=0)).max(axis=-1) > 3.0  # beside each other, and far
    assert steps.any()
    np.testing.assert_array_equal(np.argwhere(told[:-1] & told[1:]), np.argwhere(steps))
    assert (over_tip.good == (over_tip.reachable & ~told & ~over_tip.behind)).all()


@pytest.mark.parametrize("what", ["task", "motors"])
def test_condition_grows_towards_the_curve(over_tip, five_bar, what):
    """The elbows come together at (0, z): the curve is the circle of the tip around them."""
    x, index = 0.03, (6, 2)
    curve = np.sqrt(PROXIMAL**2 - 0.1**2) - np.sqrt(DISTAL**2 - x**2)
    near = 10.0 ** np.linspace(-1.0, -4.0, 7)
    zs = np.concatenate([curve - near, curve + near[:2:-1]])
    line = hc.motor_map(
        five_bar, (TIP, x, zs), "condition", start=over_tip.q[index], limits=None,
        task=TIP if what == "task" else hc.PostureTask(["motor_left", "motor_right"]),
    )  # fmt: skip
    assert line.reachable.all()
    assert line.behind.tolist() == [False] * 7 + [True] * 4
    if what == "motors":  # what they do is determined everywhere but on the curve
        np.testing.assert_allclose(line.condition, 1.0, rtol=1e-9)
        return
    left, right = line.condition[:7] * near, line.condition[7:] * near[:2:-1]
    np.testing.assert_allclose(left[4:], left[-1], rtol=1e-2)  # as one over the distance
    np.testing.assert_allclose(right[:2], left[-1], rtol=1e-2)
    for (index, _, q), z in zip(points(line), zs, strict=True):
        A, b = jacobians(q, np.array([x, z]))
        s = np.linalg.svd(np.linalg.solve(A, np.diag(b)), compute_uv=False)
        np.testing.assert_allclose(line.condition[index], s[0] / s[1], rtol=1e-6)


def test_condition_of_coordinates_is_that_of_the_motors_by_the_motions():
    mech = hc.load(hc.robot_file("stewart"))
    found = hc.motor_map(mech, {"leg_1": np.linspace(0.02, 0.15, 3)}, "condition")
    for index, _, q in points(found):
        P, c = hc.project(mech, q, np.zeros(mech.nv)), mech.column_scale[:, None]
        N, B = np.linalg.qr(P.gamma / c)[0], c * mech.B
        s = np.linalg.svd(N.T @ (B / np.linalg.norm(B, axis=0)), compute_uv=False)
        np.testing.assert_allclose(found.condition[index], s[0] / s[-1], rtol=1e-9)


def test_holding_efforts_are_those_of_inverse_dynamics(over_tip, five_bar):
    for index, _, q in list(points(over_tip))[::9]:
        u = hc.inverse_dynamics(five_bar, q, np.zeros(4), np.zeros(4), coordinates="all").u
        np.testing.assert_allclose(over_tip.torque[index], u, rtol=1e-9, atol=1e-12)


def test_points_are_closed_and_where_they_should_be(over_tip, five_bar):
    bound = TIP.bind(five_bar)
    for _, place, q in points(over_tip):
        kin, rows = constraint_rows(five_bar, q, np.zeros(5 - 1), 0.0)
        assert np.abs(five_bar.row_scale * rows.error).max() < 1e-10
        np.testing.assert_allclose(bound.at(kin).value, place, atol=1e-11)
    there = over_tip.reachable
    assert (over_tip.reasons[~there] != "").all()
    for name in (*EVERYTHING, "q"):
        array = getattr(over_tip, name)
        assert np.isfinite(array[there]).all()
        assert np.isnan(array[~there]).all()
        assert not array.flags.writeable


# ---------------------------------------------------------------- who works, and what is said


def same(one, other):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert (one.reasons == other.reasons).all()
    assert repr(one) == repr(other)


def test_the_result_does_not_depend_on_who_works(five_bar):
    grid = (TIP, np.linspace(-0.44, 0.44, 6), np.linspace(-0.38, 0.55, 5))
    here = hc.motor_map(five_bar, grid, EVERYTHING)
    for executor in (1, 2):
        same(here, hc.motor_map(five_bar, grid, EVERYTHING, executor=executor))
    with ThreadPoolExecutor(2) as threads:
        same(here, hc.motor_map(five_bar, grid, EVERYTHING, executor=threads))


def test_a_map_is_a_value_and_prints_a_sentence(over_tip, capsys):
    copied = pickle.loads(pickle.dumps(over_tip))
    same(over_tip, copied)
    assert over_tip == over_tip  # noqa: PLR0124
    said = repr(over_tip)
    assert said.startswith("<MotorMap of 'five_bar': 12 x 14 = 168 points over tip_right.x, tip_")
    assert "with reservations" in said
    assert "array" not in said


def test_positions_and_efforts_beyond_limits_are_told(five_bar):
    tight = hc.Limits(effort=2.0, position={"motor_left": (2.0, 3.0)}, velocity={"motor_left": 2.0})
    grid = {"motor_left": np.linspace(1.8, 2.4, 7), "motor_right": np.linspace(0.4, 1.2, 5)}
    free = hc.motor_map(five_bar, grid, EVERYTHING, task=TIP, limits=None)
    found = hc.motor_map(five_bar, grid, EVERYTHING, task=TIP, limits=tight)
    assert free.good.all()
    assert free.scaled == (False, False)
    assert found.scaled == (False, True)  # one motor has no limit of its rate
    np.testing.assert_array_equal(found.reachable, (grid["motor_left"] >= 2.0)[:, None] | (
        np.zeros((7, 5), dtype=bool)
    ))  # fmt: skip
    assert "motor_left = 1.8, limit 2" in found.reasons[0, 0]
    weak = found.reachable & (np.abs(free.torque) > 2.0).any(axis=-1)
    assert weak.any()
    assert not weak.all()
    np.testing.assert_array_equal(weak, found.reachable & ~found.good)
    assert all("effort of motor_" in word for word in found.reasons[weak])
    np.testing.assert_allclose(found.force[found.reachable], 2.0 * free.force[found.reachable])
    np.testing.assert_allclose(found.velocity[found.reachable], free.velocity[found.reachable])


def test_no_two_elbows_turn_over_at_one_point(five_bar):
    """On the symmetry line both arms fold at the origin: the determinant keeps its sign there.

    Below the pivots the ways around them meet too, whole turns apart: one is within limits.
    """
    grid = (TIP, np.linspace(-0.4, 0.4, 7), np.linspace(-0.5, 0.4, 9))
    limits = hc.Limits(position={"motor_left": (-0.5, 7.0), "motor_right": (-1.0, 5.0)})
    free = hc.motor_map(five_bar, grid, "reach", limits=None)
    found = hc.motor_map(five_bar, grid, "reach", limits=limits)
    turned = 0
    for each in (free, found):
        for index, place, q in points(each):
            np.testing.assert_allclose(np.linalg.norm(jacobians(q, place)[0], axis=1), DISTAL)
            assert np.sin(q[1]) < 0.0 < np.sin(q[3])
            assert each is free or (-0.5 <= q[0] <= 7.0 and -1.0 <= q[2] <= 5.0)
            turned += each is found and abs(q[0] - free.q[index][0]) > 6.0
    assert turned > 3
    assert found.reachable.sum() == 45


def test_what_is_reached_past_a_limit_only_says_so():
    mech = zoo.slider_crank()
    limits = hc.Limits(position={"slider": (0.5, 1.0)})
    found = hc.motor_map(mech, {"crank": np.linspace(0.0, 6.2, 32)}, limits=limits)
    there = np.flatnonzero(found.reachable)
    told = np.array(["reached past limits of positions only" in x for x in found.reasons])
    assert (np.diff(there) > 1).sum() == 1  # two ranges, and the start is in the first one
    np.testing.assert_array_equal(told[there], there > 16)
    assert not told[~found.reachable].any()
    elsewhere = hc.motor_map(mech, {"crank": np.linspace(2.5, 6.2, 8)}, limits=limits)
    np.testing.assert_array_equal(elsewhere.reachable, np.arange(8) > 4)  # begun beyond others


def test_motors_that_do_not_hold_say_so(five_bar):
    one = dataclasses.replace(five_bar, actuated=("motor_left",), limits=None)
    grid = {"motor_left": [1.9, 2.1], "motor_right": [1.0, 1.1]}
    found = hc.motor_map(one, grid, EVERYTHING, task=TIP)
    assert found.reachable.all()
    assert np.isnan(found.torque).all()
    assert np.isinf(found.condition).all()
    assert all("cannot hold it" in x and "do not determine" in x for x in found.reasons.ravel())


def test_a_lost_line_costs_its_points(five_bar):
    chart, axes, worker, q = parts(five_bar)

    def run(items):
        results = [worker(item) for item in items]
        if len(items) > 3 and not run.lost:
            run.lost, results[2] = True, hc.results.SweepError("its worker process ended")
        return results

    run.lost = False
    found = filled(worker, q, run)
    assert len(found.points) == axes[0].values.size * axes[1].values.size  # from neighbours
    assert not found.branch_remarks
    assert chart.held == ()


def parts(mech, grid=None):
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    kin, _ = constraint_rows(mech, q, v, 0.0)
    grid = grid or (TIP, np.linspace(-0.1, 0.1, 5), np.linspace(0.3, 0.5, 4))
    chart, axes = chart_of(mech, part, q, grid, None, kin)
    request = MapRequest(chart, ("reach",), None, None, 0.0)
    return chart, axes, GridWorker(request, axes, part), q


def test_a_point_on_another_branch_is_told(five_bar):
    """A worker that cheats: one line of the map has the other elbow."""
    _, axes, worker, q = parts(five_bar)
    cheated = list[tuple[int, ...]]()

    def run(items):
        results = [worker(item) for item in items]
        if len(items) == axes[0].values.size and not cheated:
            near, index, point = results[2][0]
            place = np.array([axis.values[i] for axis, i in zip(axes, index, strict=True)])
            to = np.arctan2(*(place - GROUND[1])[::-1])
            mirrored = point.q.copy()
            mirrored[2:] = 2.0 * to - point.q[2], -point.q[3]
            other = hc.assemble(five_bar, mirrored, restarts=0)[0]
            np.testing.assert_allclose(other, mirrored, atol=1e-9)
            results[2][0] = (near, index, MapPoint(other, {}, "", (), point.side))
            cheated.append(index)
        return results

    found = filled(worker, q, run)
    (index,) = cheated
    assert "on another branch than its neighbour" in found.branch_remarks[index]


# ------------------------------------------------------------------------- grids of every kind


def test_a_grid_of_one_coordinate_holds_the_other_motors():
    mech = hc.load(hc.robot_file("stewart"))
    q0 = hc.assemble(mech)[0]
    found = hc.motor_map(mech, {"leg_1": np.linspace(0.02, 0.15, 4)})
    assert found.good.all()
    for i, x in enumerate(found.axes[0].values):
        motors = mech.motor_positions(found.q[i])
        np.testing.assert_allclose(motors[0], x, atol=1e-12)
        np.testing.assert_allclose(motors[1:], mech.motor_positions(q0)[1:], atol=1e-12)
    assert found.axes[0].unit == "m"


def test_what_is_held_may_be_a_joint_of_several_coordinates_or_nothing_of_a_base():
    mech = hc.load(hc.robot_file("stewart"))
    q0 = hc.assemble(mech)[0]
    hold = ["foot_2", "leg_2", "leg_3", "leg_4"]
    found = hc.motor_map(mech, {"leg_1": [0.08, 0.1]}, "reach", locked=hold)
    assert found.good[0]
    at = [mech.coordinate_names.index(name) for name in ("foot_2[0]", "foot_2[1]", "leg_4")]
    apart = pin.difference(mech.model, q0, found.q[0])
    np.testing.assert_allclose(apart[at], 0.0, atol=1e-12)
    np.testing.assert_allclose(mech.motor_positions(found.q[0])[0], 0.08, atol=1e-12)
    foot = mechanism("held_foot")  # hangs by its foot, and its base floats
    line = hc.motor_map(foot, {"leg_0": [-0.1, 0.1]}, "reach")
    assert line.good.all()
    np.testing.assert_allclose(line.q[:, 7], [-0.1, 0.1], atol=1e-12)
    others = np.broadcast_to(hc.assemble(foot)[0][8:], (2, 5))
    np.testing.assert_allclose(line.q[:, 8:], others, atol=1e-12)


def test_ellipsoids_of_redundant_motors():
    """Rates of three motors that two motions leave, and the least efforts, by eigenvalues."""
    mech = mechanism("three_motors")
    task = hc.FrameTask(("left_rod", pin.SE3(np.eye(3), np.array([0.4, 0.0, 0.0]))), "x y")
    names = [mech.coordinate_names[i] for i in hc.partition(mech, hc.assemble(mech)[0]).independent]
    q0 = hc.assemble(mech)[0]
    grid = {n: hc.joint_motion(mech, n, q0).value[0] + np.array([-0.1, 0.1]) for n in names}
    found = hc.motor_map(mech, grid, EVERYTHING, task=task, limits=None)
    assert found.good.all()
    for index, _, q in points(found):
        P = hc.project(mech, q, np.zeros(mech.nv))
        S, A = hc.task_terms(P, task).jacobian, mech.B.T @ P.gamma
        assert A.shape == (3, 2)
        sizes, ways = np.linalg.eigh(S @ np.linalg.solve(A.T @ A, S.T))
        np.testing.assert_allclose(found.velocity[index], np.sqrt(sizes[::-1]), rtol=1e-8)
        np.testing.assert_allclose(found.force[index], 1.0 / np.sqrt(sizes), rtol=1e-8)
        f = ways[:, 1] / np.sqrt(sizes[1])  # the least of the semi-axes: efforts of norm one
        u = np.linalg.lstsq(A.T, S.T @ f, rcond=None)[0]
        np.testing.assert_allclose(np.linalg.norm(u), 1.0, rtol=1e-8)


def test_other_tasks_make_grids_too(five_bar):
    task = hc.CenterOfMassTask("x z")
    grid = (task, np.linspace(-0.02, 0.02, 3), np.linspace(0.15, 0.17, 2))
    found = hc.motor_map(five_bar, grid, "condition")
    for _, place, q in points(found):
        there = pin.centerOfMass(five_bar.model, five_bar.model.createData(), q)
        np.testing.assert_allclose(there[[0, 2]], place, atol=1e-11)
    assert found.good.all()


def test_a_pose_with_numbers_that_stay():
    mech = hc.load(hc.robot_file("stewart"))
    task = hc.FrameTask("platform")
    found = hc.motor_map(
        mech, (task, [0.0, 0.05], 0.02, 0.3, 0.0, [-0.1, 0.1], 0.2), ["velocity", "condition"]
    )  # fmt: skip
    assert found.q.shape == (2, 2, mech.nq)
    assert [axis.name for axis in found.axes] == ["platform.x", "platform.ry"]
    assert found.rows == ("platform.x", "platform.y", "platform.z")
    for i, j in np.ndindex(2, 2):
        P = hc.project(mech, found.q[i, j], np.zeros(mech.nv))
        pose = hc.task_terms(P, task).value
        np.testing.assert_allclose(pose.translation, [[0.0, 0.05][i], 0.02, 0.3], atol=1e-10)
        turn = pin.log3(pose.rotation)
        np.testing.assert_allclose(turn, [0.0, [-0.1, 0.1][j], 0.2], atol=1e-10)
        motion = pin.Motion(np.eye(6)[0])  # unit rates along x: what the legs must do
        rates = hc.inverse_kinematics(mech, {task: pose}, found.q[i, j], v={task: motion})[1]
        assert rates.shape == (mech.nv,)
    assert found.scaled[0]


def test_three_axes_are_cut():
    mech = hc.load(hc.robot_file("delta"))  # its rods spin: idle motions
    grid = {f"motor_{i}": np.linspace(0.0, 0.8, 3) for i in (1, 2, 3)}
    found = hc.motor_map(mech, grid)
    assert found.good.all()
    assert found.torque.shape == (3, 3, 3, 3)
    np.testing.assert_allclose(found.torque[1, 1, 1], found.torque[1, 1, 1][0], rtol=1e-6)
    flat = found.cut("motor_2", 0.39)
    assert [axis.name for axis in flat.axes] == ["motor_1", "motor_3"]
    np.testing.assert_array_equal(flat.torque, found.torque[:, 1])
    assert flat.reasons.shape == (3, 3)
    refused(found.plot, hc.InputError, "cut it first")
    refused(lambda: found.cut("motor_4", 0.0), hc.InputError, "motor_3")
    refused(lambda: found.cut("motor_1", 0.9), hc.InputError, "0.8")
    refused(lambda: flat.cut("motor_1", 0.4).cut("motor_3", 0.4), hc.InputError, "one axis only")


def test_a_dead_point_ends_the_map():
    """A rocker that turns the crank: past its ends there is nothing, and no jump on the way."""
    mech = hc.load(hc.robot_file("four_bar"))
    found = hc.motor_map(mech, {"rocker": np.linspace(0.0, 3.0, 61)}, "reach", limits=None)
    there = np.flatnonzero(found.reachable)
    assert 10 < there.size < 60
    assert (np.diff(there) == 1).all()
    steps = np.abs(np.diff(found.q[there], axis=0)).max(axis=1)
    assert steps.max() < 0.5
    beyond = found.reasons[[there[0] - 1, there[-1] + 1]]
    assert all("comes to a singular configuration" in x for x in beyond)
    whole = hc.motor_map(mech, {"crank": np.linspace(-6.2, 6.2, 40)}, "reach", limits=None)
    assert whole.good.all()


def test_nothing_in_reach(five_bar):
    found = hc.motor_map(five_bar, (TIP, [3.0, 4.0], [3.0, 4.0]))
    assert not found.reachable.any()
    assert all("from the start, out of reach" in x for x in found.reasons.ravel())
    assert "0 reachable>" in repr(found)
    far = hc.motor_map(zoo.slider_crank(), {"crank": [900.0]}, "reach")
    assert "too many steps" in far.reasons[0]


# ------------------------------------------------------------------------------------- pictures


def test_pictures(over_tip, five_bar):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for what in (None, *EVERYTHING, "reach", "motor_left"):
        ax = over_tip.plot(what)
        assert ax.get_xlabel() == "tip_right.x (m)"
        assert len(ax.collections) == 1
        assert bool(ax.patches) == (what in ("velocity", "force"))
        pyplot.close(ax.figure)
    line = hc.motor_map(five_bar, {"motor_left": np.linspace(2.0, 2.4, 4)}, EVERYTHING, task=TIP)
    for what, curves in (("torque", 2), ("condition", 1), ("force", 2), ("reach", 1)):
        ax = pyplot.figure().add_subplot()
        assert line.plot(what, ax) is ax
        assert len(ax.lines) == curves
        pyplot.close(ax.figure)
    refused(lambda: line.plot("speed"), hc.InputError, "condition", "motor_right")


def test_pictures_of_few_points_show_something(five_bar):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    column = hc.motor_map(five_bar, (TIP, [0.0], [0.3, 0.35, 0.4]), ["torque", "condition"])
    ax = column.plot()  # colours of no width would show nothing
    assert ax.get_xlabel() == "tip_right.z (m)"
    assert "tip_right.x = 0 m" in ax.get_title()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), column.torque[0, :, 0])
    pyplot.close(ax.figure)
    one = hc.motor_map(five_bar, (TIP, [0.0], [0.3]), "torque").plot()
    assert one.lines[0].get_marker() == "."
    pyplot.close(one.figure)
    flat = hc.motor_map(five_bar, {"motor_left": [2.1, 2.2], "motor_right": [0.9, 0.90001]})
    ax = flat.plot("condition")
    assert ax.get_aspect() == "auto"  # to scale it would be a line
    pyplot.close(ax.figure)
    none = hc.motor_map(five_bar, (TIP, [3.0, 4.0], [3.0, 4.0]), ["torque", "condition"])
    for what in ("torque", "condition", "reach"):
        ax = none.plot(what)
        assert [text.get_text() for text in ax.texts] == ["no point is reached"]
        pyplot.close(ax.figure)


# ------------------------------------------------------------------------------------- refusals

WRONG = {
    "grid must be a mapping": [3],
    "values for each": [(TIP, [0.0, 0.1])],
    "no axis of the grid": [{"motor_left": 1.0}],
    "increasing or decreasing": [{"motor_left": [1.0, 1.0]}],
    "a finite number": [{"motor_left": [np.nan]}],
    "motor_map: grid or locked: there is no joint called 'motor_lef'": [{"motor_lef": [1.0]}],
    "'velocity'": [{"motor_left": [2.2]}, "velocities"],
    "ellipsoids need a task": [{"motor_left": [2.2]}, "force"],
    "what is empty": [{"motor_left": [2.2]}, []],
    "leave 1 motions open": [(hc.FrameTask("tip_right", "x"), [0.0])],
    "3 coordinates of only 2 motions": [(hc.FrameTask("tip_right", "x y z"), [0.0], 0.0, [0.4])],
    "local": [(hc.FrameTask("tip_right", "x z", local=True), [0.0], [0.4])],
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_refused(five_bar, words):
    refused(lambda: hc.motor_map(five_bar, *WRONG[words]), hc.InputError, words)


def test_more_refusals(five_bar):
    grid = {"motor_left": [2.2]}
    no_motors = dataclasses.replace(five_bar, actuated=(), limits=None)
    refused(lambda: hc.motor_map(no_motors, grid), hc.NotActuatedError, "what='reach'")
    held = hc.motor_map(no_motors, grid, "reach", locked=["motor_right"], limits=None)
    assert held.good.all()
    refused(lambda: hc.motor_map(five_bar, grid, limits=3), hc.InputError, "hc.Limits")
    refused(lambda: hc.motor_map(five_bar, grid, executor="two"), hc.InputError, "motor_map:")
    refused(lambda: hc.motor_map(five_bar, grid, start=[0.0]), hc.InputError, "start")
    refused(lambda: hc.motor_map(five_bar, grid, locked="motor_right"), hc.InputError, "locked")
    refused(lambda: hc.motor_map("five_bar", grid), hc.InputError, "Mechanism")


def test_labels_have_the_unit_of_the_motors(five_bar, over_tip):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert over_tip.units == ("N m", "N m")
    assert over_tip.plot("motor_left").get_title() == "five_bar: holding effort of motor_left"
    legs = hc.load(hc.robot_file("stewart"))
    at = legs.motor_positions(hc.assemble(legs)[0])
    grid = dict(zip(legs.actuator_names, at.tolist(), strict=True))
    grid["leg_1"] = [at[0], at[0] + 0.01]
    line = hc.motor_map(legs, grid, "torque")
    assert set(line.units) == {"N"}
    ax = line.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("leg_1 (m)", "holding effort (N)")
    assert dataclasses.replace(line, units=("", *line.units[1:])).plot().get_ylabel() == (
        "holding effort (N m or N)"
    )
    pyplot.close("all")
