"""Paths through type-2 (actuation) singularities are refused, unless a crossing is asked for."""

from __future__ import annotations

import dataclasses
import json
import logging
import time
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import brentq
from support import shared
from zoo import add_body, at, bar, vertical

import holoctl as hc
from holoctl.app.cli import main
from holoctl.app.view.shown_posture import moved, opened
from holoctl.app.view.shown_quantities import singularity
from holoctl.control.tasks.task_terms import bound_to
from holoctl.design.paths.closed_path import closed_path, grid_of
from holoctl.design.paths.inputs import checked_path, start_of
from holoctl.design.paths.type_2 import smallest_along, type_2_along
from holoctl.dynamics.actuation_side import hold_of_motors

LIMITS = hc.Limits(effort=2.0)


def five_bar(ground=0.2, arm=0.2, rod=0.2, axes="x y", joint=pin.JointModelRZ):
    """Two driven arms and two rods, whose tip can pass the line through the elbows."""
    m = vertical(pin.Model())
    for name, x in (("left", -0.5 * ground), ("right", 0.5 * ground)):
        add_body(m, 0, joint(), at(x), name, bar(arm, 0.3))
        add_body(m, name, joint(), at(arm), f"{name}_rod", bar(rod, 0.3))
    loop = hc.Closure(("left_rod", at(rod)), ("right_rod", at(rod)), name="loop", axes=axes)
    m.addFrame(pin.Frame("tip", m.getJointId("left_rod"), 0, at(rod), pin.FrameType.OP_FRAME))
    start = np.array([2.0, -1.0, 1.1, 1.0])
    if m.nq != m.nv:
        start = np.column_stack([np.cos(start), np.sin(start)]).ravel()
    return hc.Mechanism(m, [loop], ["left", "right"], reference=start, name="five_bar")


def across(x=0.01, end=0.08, count=9):
    """Poses of the tip through the singularity near y = 0.17 m."""
    return hc.FrameTask("tip", "x y"), np.array([[x, y] for y in np.linspace(0.3, end, count)])


def crossing():
    """The fastest way through it."""
    return shared("type 2", lambda: hc.retime(five_bar(), across(), LIMITS, cross=True))


def by_place():
    """The same path by s, and the place of the singularity on it."""

    def made():
        mech = five_bar()
        curve, part = closed_along(mech, across()), hc.partition(mech, hc.assemble(mech)[0])
        return SimpleNamespace(
            mech=mech, curve=curve, partition=part, nu=2,
            place=type_2_along(mech, part, curve).places[0],
        )  # fmt: skip

    return shared("type 2 by place", made)


def determinant(mech, q):
    """Of [G; B'], scaled: of one sign on each side of the singularity."""
    rows = hc.project(mech, q, np.zeros(mech.nv)).terms.rows.jacobian
    return float(np.linalg.det(np.vstack([rows, mech.B.T])))


def moved_along(trajectory, s, sd, sdd, t, cross=True):
    """A trajectory along the same curve, at s with these derivatives."""
    nodes = [trajectory.curve.at(x) for x in s]
    v = [x.v * d for x, d in zip(nodes, sd, strict=True)]
    a = [x.a * d * d + x.v * dd for x, d, dd in zip(nodes, sd, sdd, strict=True)]
    u, part = np.zeros((len(t), trajectory.mech.nu)), trajectory.partition
    nodes = t, [x.q for x in nodes], v, a, u, part
    return hc.Trajectory(trajectory.mech, *nodes, cross=cross)


@pytest.mark.parametrize("points", [10, 57])
def test_retiming_poses_through_it_plans_the_crossing(points, caplog):
    mech = five_bar()
    with caplog.at_level(logging.WARNING):
        found = hc.retime(mech, across(), LIMITS, points=points, cross=True)
    assert "type-2" not in caplog.text
    (when,) = found.type_2_at
    assert f"{when:.6g} s" in repr(found)
    assert found.smallest_singular_value < 1e-6
    assert found.smallest_at == pytest.approx(when, abs=1e-9)
    sides = [determinant(mech, found.state(when + dt).q) for dt in (-1e-4, 0.0, 1e-4)]
    assert sides[0] * sides[2] < 0.0
    assert abs(sides[1]) < 1e-6 * abs(sides[0])
    assert found.sides == (1, -1)
    assert set(found.lost_motion.split("'")[1:4:2]) == {"left_rod", "right_rod"}


def test_a_trajectory_of_nodes_is_told(caplog):
    """The singularity lies between two nodes."""
    there = by_place()
    s = np.linspace(0.5, 0.65, 6)
    with caplog.at_level(logging.WARNING):
        found = moved_along(there, s, np.ones(6), np.zeros(6), s - 0.5)
    place = there.place
    assert found.type_2_at == pytest.approx([place - 0.5], abs=1e-6)
    assert not found.crossings
    assert found.sides == (1, -1)
    assert "type-2" in caplog.text


@pytest.mark.parametrize("off", [0.0, 0.013])
def test_where_it_is_touched_and_left_again_is_told(off, caplog):
    """A double zero: the determinant keeps its sign."""
    there = by_place()
    place = there.place
    t = np.linspace(0.0, 0.6, 14)
    away = t - 0.3 - off
    with caplog.at_level(logging.WARNING):
        found = moved_along(there, place - away**2, -2.0 * away, np.full(14, -2.0), t)
    assert found.type_2_at == pytest.approx([0.3 + off], abs=1e-3)
    assert found.sides == (1, 1)
    assert "type-2" in caplog.text


def test_configurations_on_both_sides_are_refused():
    there = by_place()
    place = there.place
    t = np.linspace(0.0, 1.0, 9)
    two, many = there.curve.q[[0, -1]], np.array([there.curve.at(x).q for x in t])
    ways = [
        lambda: hc.retime(there.mech, two, LIMITS),
        lambda: hc.retime(there.mech, many, LIMITS),
        lambda: hc.retime(there.mech, lambda s: there.curve.at(s).q, LIMITS),
        lambda: hc.Trajectory.through(there.mech, two, [0.0, 1.0]),
        lambda: hc.Trajectory.through(there.mech, many, t, cross=True),
    ]
    for way in ways:
        with pytest.raises(hc.SingularityError, match="type-2") as no:
            way()
        told = no.value
        assert told.kind == "type 2"
        assert told.names == ("left_rod", "right_rod")
        assert told.value < 1e-2
        assert told.place == pytest.approx(place, abs=0.12)
        assert told.motion in str(told)
        assert told.q.shape == (4,)
    for way in ways[3:]:
        with pytest.raises(hc.SingularityError) as no:
            way()
        assert no.value.time == no.value.place


def test_a_path_of_motors_ends_there():
    """The arms move apart until the rods are stretched."""
    mech = five_bar()
    here = mech.motor_positions(hc.assemble(mech)[0])
    apart = [here, here + np.array([0.8, -0.8])]
    for way in (lambda: hc.retime(mech, apart, LIMITS),
                lambda: hc.retime(mech, lambda s: here + s * np.subtract(*apart[::-1]), LIMITS),
                lambda: hc.Trajectory.through(mech, apart, [0.0, 1.0])):  # fmt: skip
        with pytest.raises(hc.SingularityError, match=r"type-2 .* as at the end of the work") as no:
            way()
        left, right = mech.motor_positions(no.value.q)
        across_elbows = [0.2 + 0.2 * (np.cos(right) - np.cos(left)),
                         0.2 * (np.sin(right) - np.sin(left))]  # fmt: skip
        assert np.linalg.norm(across_elbows) == pytest.approx(0.4, abs=1e-4)


def test_the_refusal_of_poses_says_where_what_and_what_to_do():
    """The trial of a user: nine positions of the tip, motors of 2 N m."""
    there = by_place()
    for method in ("cvxpy", "toppra"):
        with pytest.raises(hc.SingularityError) as no:
            hc.retime(five_bar(), across(), LIMITS, method=method)
    told = no.value
    place = there.place
    assert told.place == pytest.approx(place, abs=1e-7)
    assert told.value < 1e-9
    assert (told.kind, told.names) == ("type 2", ("left_rod", "right_rod"))
    assert np.isnan(told.time)  # no times yet
    assert determinant(there.mech, told.q) == pytest.approx(0.0, abs=1e-9)
    for words in ("goes through a type-2", f"s = {place:.6g}", "while all motors hold",
                  "lead the path around it", "cross=True"):  # fmt: skip
        assert words in str(told)
    with pytest.raises(hc.SingularityError) as no:
        moved_along(there, np.linspace(0.5, 0.65, 6), np.ones(6), np.zeros(6),
                    np.linspace(0.0, 0.15, 6), cross=False)  # fmt: skip
    assert no.value.time == pytest.approx(place - 0.5, abs=1e-6)


def closed_along(mech, path, count=200):
    """The closed curve of a path, by s, without times."""
    wanted = checked_path(start_of(mech, None, None), path, False)
    return closed_path(wanted, grid_of(wanted.knots, count)).curve()


@pytest.mark.parametrize("least", [1e-1, 1e-2, 2e-3, 5e-4, 1e-4, 1e-5, 1e-6])
def test_paths_that_pass_it_at_a_distance(least):
    """Refused below 0.001, for every way of giving the path; otherwise the value is right."""
    there = by_place()
    mech, place = there.mech, there.place

    def size(off):
        return hold_of_motors(mech, there.partition, there.curve.at(place - off).q).value

    off = float(brentq(lambda x: size(x) - least, 0.0, 0.5, xtol=1e-13))
    x, y = tip(mech, there.curve.at(place - off).q)
    u = np.linspace(-1.0, 1.0, 9)
    poses = np.column_stack([x + 0.05 * u, y + 0.1 * u * u])  # the lowest, as at the line of sides
    way = hc.FrameTask("tip", "x y"), poses
    curve = closed_along(mech, way)
    found = type_2_along(mech, there.partition, curve)
    dense = np.append(np.linspace(0.0, 1.0, 201), np.linspace(-0.01, 0.01, 101) + found.at)
    oracle = min(hold_of_motors(mech, there.partition, curve.at(s).q).value for s in dense)
    assert found.least <= oracle * (1.0 + 1e-9)
    assert found.least == pytest.approx(oracle, rel=0.05, abs=1e-4)
    if found.least < 1e-3:
        for path in (way, lambda s: curve.at(s).q):
            with pytest.raises(hc.SingularityError, match="type-2"):
                hc.retime(mech, path, LIMITS)
    t = np.linspace(0.0, 0.6, 14)
    away = t - 0.3
    nodes = place - off - away**2, -2.0 * away, np.full(14, -2.0), t
    assert found.least < 1e-3 or least > 1e-3
    if least > 1e-3:
        near = moved_along(there, *nodes, cross=False)
        assert near.smallest_singular_value == pytest.approx(least, rel=1e-3)
        assert near.smallest_at == pytest.approx(0.3, abs=1e-3)
        assert near.type_2_at == ()
        assert near.sides == (1,)
        return
    with pytest.raises(hc.SingularityError) as no:
        moved_along(there, *nodes, cross=False)
    assert no.value.value == pytest.approx(least, rel=1e-2)
    assert no.value.time == pytest.approx(0.3, abs=1e-3)
    back = [there.curve.at(s).q for s in nodes[0]]
    for points in (back, [mech.motor_positions(q) for q in back]):
        with pytest.raises(hc.SingularityError, match="type-2"):
            hc.Trajectory.through(mech, points, t, start=back[0])


def tip(mech, q):
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    return data.oMf[mech.model.getFrameId("tip")].translation[:2]


def elbows_apart(mech, ground, left):
    """The angle of the right arm for stretched rods, and the tip between the elbows."""
    one = np.array([-0.5 * ground + 0.2 * np.cos(left), 0.2 * np.sin(left)])

    def other(right):
        return np.array([0.5 * ground + 0.2 * np.cos(right), 0.2 * np.sin(right)])

    right = brentq(lambda b: np.linalg.norm(other(b) - one) - 0.4, -1.0, 1.5)
    return right, 0.5 * (one + other(right))


def test_a_path_along_it():
    """Both rods in line all the way."""
    mech = five_bar()
    ends = [elbows_apart(mech, 0.2, a) for a in np.linspace(1.7, 2.2, 15)]
    poses = hc.FrameTask("tip", "x y"), np.array([place for _, place in ends])
    with pytest.raises(hc.SingularityError, match="type-2") as no:
        hc.retime(mech, poses, LIMITS)
    assert no.value.value < 1e-3
    curve = closed_along(mech, poses)
    found = type_2_along(mech, hc.partition(mech, curve.q[0]), curve)
    assert found.places
    assert found.least < 1e-6


def test_both_kinds_at_once():
    """The left arm is stretched where the rods are in line."""
    mech = five_bar(ground=0.5)
    angle = float(np.arccos((0.6**2 + 0.5**2 - 0.2**2) / (2.0 * 0.6 * 0.5)))
    end = np.array([-0.25, 0.0]) + 0.4 * np.array([np.cos(angle), np.sin(angle)])
    begin = tip(mech, hc.assemble(mech)[0])
    poses = np.linspace(0.0, 1.2, 7)[:, None] * (end - begin) + begin
    with pytest.raises(hc.SingularityError, match=r"type-1 .* and a type-2") as no:
        hc.retime(mech, (hc.FrameTask("tip", "x y"), poses), LIMITS, points=60)
    assert no.value.kind == "type 1 and type 2"
    assert no.value.value < 0.02
    assert no.value.place == pytest.approx(1.0 / 1.2, abs=1e-2)
    assert hold_of_motors(mech, hc.partition(mech, no.value.q), no.value.q).value < 0.02


def test_a_task_that_loses_rank():
    """The tip leaves the workspace with an arm stretched; before it, its least value is told."""
    mech, task = five_bar(), hc.FrameTask("tip", "x y")
    with pytest.raises(hc.SingularityError, match=r"type-1 .* of the task") as no:
        hc.retime(mech, (task, [[0.01, 0.3], [0.01, 0.5]]), LIMITS)
    assert no.value.kind == "type 1"
    assert "while the task (tip.x, tip.y) holds" in no.value.motion
    assert set(no.value.names) <= {"left", "left_rod"}  # the arm that is stretched
    stretched = tip(mech, no.value.q) - [-0.1, 0.0]
    assert np.linalg.norm(stretched) == pytest.approx(0.4, abs=1e-4)
    found = hc.retime(mech, (task, [[0.01, 0.3], [0.01, 0.37]]), LIMITS, points=20)
    P = hc.project(mech, found.state(found.task_place).q, np.zeros(4))
    N = np.linalg.qr(P.gamma / mech.column_scale[:, None])[0]
    data = mech.model.createData()
    J = pin.computeFrameJacobian(
        mech.model, data, P.q, mech.model.getFrameId("tip"), pin.LOCAL_WORLD_ALIGNED
    )[:2]
    unscaled = np.linalg.svd(J @ (mech.column_scale[:, None] * N))[1][-1]
    assert found.task_place == pytest.approx(found.duration)
    assert found.task_value == pytest.approx(bound_to(mech, task).scale[0] * unscaled)


def test_a_path_on_one_side_tells_its_smallest_value(caplog):
    mech = five_bar()
    with caplog.at_level(logging.WARNING):
        found = hc.retime(mech, across(end=0.2, count=5), hc.Limits(effort=20.0))
    assert found.type_2_at == ()
    assert "type-2" not in caplog.text
    values = []
    for t in np.linspace(0.0, found.duration, 400):
        P = hc.project(mech, found.state(t).q, np.zeros(mech.nv))
        N = np.linalg.qr(P.gamma / mech.column_scale[:, None])[0]
        unit = mech.column_scale[:, None] * mech.B
        values.append(np.linalg.svd(N.T @ (unit / np.linalg.norm(unit, axis=0)))[1][-1])
    assert found.smallest_singular_value == pytest.approx(min(values), rel=1e-3)
    assert found.smallest_at == pytest.approx(found.duration, abs=1e-2 * found.duration)


@pytest.mark.parametrize(
    "mech", [five_bar(axes="x y z"), five_bar(joint=pin.JointModelRUBZ)], ids=["rows", "turns"]
)
def test_rows_that_repeat_others_and_joints_without_end_change_nothing(mech, caplog):
    plain = crossing()
    with caplog.at_level(logging.WARNING):
        found = hc.retime(mech, across(), LIMITS, cross=True)
    assert not caplog.records
    with pytest.raises(hc.SingularityError, match="type-2"):
        hc.retime(mech, across(), LIMITS)
    assert found.type_2_at == pytest.approx(plain.type_2_at, rel=1e-3)


@pytest.mark.parametrize("name", ["delta", "stewart"])
def test_the_search_takes_a_small_share_of_retiming(name, monkeypatch):
    mech, took = hc.load(hc.robot_file(name)), []

    def timed(*given):
        begin = time.process_time()
        found = type_2_along(*given)
        took.append(time.process_time() - begin)
        return found

    for user in ("paths.trajectory", "retiming.retime"):
        monkeypatch.setattr(f"holoctl.design.{user}.type_2_along", timed)
    here, shares = mech.motor_positions(hc.assemble(mech)[0]), []
    for _ in range(4):
        begin = time.process_time()
        took.clear()
        hc.retime(mech, [here, here + 0.02], hc.Limits(effort=50.0, velocity=2.0))
        assert len(took) == 2
        shares.append(sum(took) / (time.process_time() - begin - sum(took)))
    assert min(shares) < 1.0 / 3.0


@pytest.mark.parametrize("name", ["stewart", "delta"])
def test_robots_away_from_it(name, caplog):
    mech = hc.load(hc.robot_file(name))
    here = mech.motor_positions(hc.assemble(mech)[0])
    with caplog.at_level(logging.WARNING):
        found = hc.Trajectory.through(mech, [here, here + 0.01], [0.0, 0.5])
    assert found.smallest_singular_value > 0.05
    assert not caplog.records


def test_the_command_tells_it(tmp_path, capsys, monkeypatch):
    mech, way = dataclasses.replace(five_bar(), limits=LIMITS), tmp_path / "way.csv"
    monkeypatch.setattr("holoctl.app.retime_command.robot_held", lambda _: (mech, mech.reference))
    way.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in across()[1].tolist()))
    command = ["retime", "five_bar", "--path", str(way), "--frame", "tip", "--points", "20"]
    assert main(command) == 1
    assert "SingularityError" in capsys.readouterr().err
    assert main([*command, "--cross"]) == 0
    assert "through a type-2 singularity" in capsys.readouterr().out
    assert main([*command, "--cross", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["type_2_at"]) == len(told["crossings"]) == 1
    assert told["crossings"][0]["t"] == told["type_2_at"][0]
    assert told["smallest_singular_value"] < 1e-6
    assert told["sides"] == [1, -1]


@pytest.mark.parametrize("name", ["five_bar", "four_bar", "delta", "stewart", "leg", "geared_arm"])
def test_one_definition_of_the_smallest_singular_value(name):
    """Of the doctor, the view, maps, trajectories and errors, away from the reference."""
    mech = hc.load(hc.robot_file(name))
    q = hc.assemble(mech)[0]
    motors = list(mech.actuated)
    values = mech.motor_positions(q)
    spot = hc.motor_map(mech, {m: [x] for m, x in zip(motors, values, strict=True)}, "reach")
    part = hc.partition(mech, q)
    at = spot.q.reshape(mech.nq)
    told = [
        hold_of_motors(mech, part, at).value,
        float(spot.smallest_singular_value.item()),
        hc.mobility(mech, at).actuation_margin,
        singularity(moved(opened(mech), at), opened(mech)).type_2,
        float(smallest_along(mech, part)(at[None])[0][0]),
    ]
    assert min(told) > 1e-3
    assert told == pytest.approx([told[0]] * len(told), rel=1e-9)


def test_a_map_shows_both_sides():
    """Over angles of the left arm and of its rod, which are regular where the rods are in line."""
    mech = five_bar()
    grid = {"left": np.linspace(1.8, 2.2, 3), "left_rod": np.linspace(-2.6, -1.2, 8)}
    found = hc.motor_map(mech, grid, "condition", start=crossing().q[0])
    assert {-1, 1} <= set(found.side[found.reachable].tolist())
    values = found.smallest_singular_value
    for index in np.argwhere(found.reachable):
        expected = hold_of_motors(mech, crossing().partition, found.q[tuple(index)]).value
        assert values[tuple(index)] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    signs = [np.sign(determinant(mech, q)) for q in found.q[found.reachable]]
    assert abs(np.dot(signs, found.side[found.reachable])) == len(signs)
    i, j = (int(np.argmin(abs(a.values - x)))
            for a, x in zip(found.axes, found.smallest_at, strict=True))  # fmt: skip
    assert values[i, j] == np.nanmin(values)
