"""Trajectories through type-2 (actuation) singularities: never without a word."""

from __future__ import annotations

import dataclasses
import json
import logging
import time

import numpy as np
import pinocchio as pin
import pytest
from support import shared
from zoo import add_body, at, bar, vertical

import holoctl as hc
from holoctl.app.cli import main
from holoctl.design.paths.type_2 import type_2_along

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
    return shared("type 2", lambda: hc.retime(five_bar(), across(), LIMITS))


def determinant(mech, q):
    """Of [G; B'], scaled: of one sign on each side of the singularity."""
    rows = hc.project(mech, q, np.zeros(mech.nv)).terms.rows.jacobian
    return float(np.linalg.det(np.vstack([rows, mech.B.T])))


def moved_along(trajectory, s, sd, sdd, t):
    """A trajectory along the same curve, at s with these derivatives."""
    nodes = [trajectory.curve.at(x) for x in s]
    v = [x.v * d for x, d in zip(nodes, sd, strict=True)]
    a = [x.a * d * d + x.v * dd for x, d, dd in zip(nodes, sd, sdd, strict=True)]
    u = np.zeros((len(t), trajectory.mech.nu))
    return hc.Trajectory(trajectory.mech, t, [x.q for x in nodes], v, a, u, trajectory.partition)


@pytest.mark.parametrize("points", [10, 57])
def test_retiming_poses_through_it_is_told(points, caplog):
    mech = five_bar()
    with caplog.at_level(logging.WARNING):
        found = hc.retime(mech, across(), LIMITS, points=points)
    assert "type-2 (actuation) singularity" in caplog.text
    (when,) = found.type_2_at
    assert f"{when:.6g} s" in caplog.text
    assert f"{when:.6g} s" in repr(found)
    assert found.smallest_singular_value < 1e-6
    assert found.smallest_at == when
    sides = [determinant(mech, found.state(when + dt).q) for dt in (-1e-4, 0.0, 1e-4)]
    assert sides[0] * sides[2] < 0.0
    assert abs(sides[1]) < 1e-6 * abs(sides[0])


def test_tracking_it_asks_for_what_it_warned_of():
    there = crossing()
    follow = hc.ComputedTorque(there.mech, 400.0, 40.0).track(there.sampled(1e-3))
    asked = []

    def controller(t, q, v):
        asked.append(np.abs(follow(t, q, v)).max())
        return follow(t, q, v)

    until = there.type_2_at[0] + 0.01
    hc.simulate(there.mech, controller, there.q[0], there.v[0], until, frequency=1000.0)
    assert max(asked) > 10.0 * np.abs(there.u).max()


def test_a_trajectory_of_nodes_is_told(caplog):
    """The singularity lies between two nodes."""
    there = crossing()
    s = np.linspace(0.5, 0.65, 6)
    with caplog.at_level(logging.WARNING):
        found = moved_along(there, s, np.ones(6), np.zeros(6), s - 0.5)
    place = float(there.law.at(there.type_2_at[0])[0])
    assert found.type_2_at == pytest.approx([place - 0.5], abs=1e-6)
    assert "type-2" in caplog.text


@pytest.mark.parametrize("off", [0.0, 0.013])
def test_where_it_is_touched_and_left_again_is_told(off, caplog):
    """A double zero: the determinant keeps its sign."""
    there = crossing()
    place = float(there.law.at(there.type_2_at[0])[0])
    t = np.linspace(0.0, 0.6, 14)
    away = t - 0.3 - off
    with caplog.at_level(logging.WARNING):
        found = moved_along(there, place - away**2, -2.0 * away, np.full(14, -2.0), t)
    assert found.type_2_at == pytest.approx([0.3 + off], abs=1e-3)
    assert "type-2" in caplog.text


def test_motors_alone_do_not_lead_through_it():
    there = crossing()
    q = there.q[[0, -1]]
    for way in (lambda: hc.retime(there.mech, q, LIMITS),
                lambda: hc.Trajectory.through(there.mech, q, [0.0, 1.0])):  # fmt: skip
        with pytest.raises(hc.InputError, match="another branch"):
            way()


def test_a_function_through_it_is_told_or_refused(caplog):
    """Configurations by a function: its motors do not say on which side the rods go on."""
    there = crossing()
    with caplog.at_level(logging.WARNING), pytest.raises((hc.InputError, hc.BranchError)):
        hc.retime(there.mech, lambda s: there.curve.at(s).q, LIMITS)


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
        found = hc.retime(mech, across(), LIMITS)
    assert "type-2" in caplog.text
    there, here = (x.law.at(x.type_2_at[0])[0] for x in (plain, found))
    assert here == pytest.approx(there, abs=1e-6)


@pytest.mark.parametrize("name", ["delta", "stewart"])
def test_the_search_takes_a_small_share_of_retiming(name, monkeypatch):
    mech, took = hc.load(hc.robot_file(name)), []

    def timed(*given):
        begin = time.process_time()
        found = type_2_along(*given)
        took.append(time.process_time() - begin)
        return found

    monkeypatch.setattr("holoctl.design.paths.trajectory.type_2_along", timed)
    here, shares = mech.motor_positions(hc.assemble(mech)[0]), []
    for _ in range(4):
        begin = time.process_time()
        hc.retime(mech, [here, here + 0.02], hc.Limits(effort=50.0, velocity=2.0))
        shares.append(took[-1] / (time.process_time() - begin - took[-1]))
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
    assert main(command) == 0
    assert "through a type-2 singularity" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["type_2_at"]) == 1
    assert told["smallest_singular_value"] < 1e-6
