"""Misfits and singular values that the page shows, and its charts and numbers."""

from __future__ import annotations

import csv
import dataclasses
import re

import numpy as np
import pinocchio as pin
import pytest
import zoo

import holoctl as hc
from holoctl.app.palette import RED
from holoctl.app.view import panel
from holoctl.app.view.recorded_run import csv_text, filmed, recorded
from holoctl.app.view.scene import Scene
from holoctl.app.view.shown_motions import motions, played
from holoctl.app.view.shown_posture import dragged, moved, opened
from holoctl.app.view.shown_quantities import misfits, points, singularity


def test_misfits_are_distances_and_angles_of_the_ends():
    mech = hc.load(hc.robot_file("five_bar"))
    q = opened(mech).q.copy()
    q[0] += 0.01
    (found,) = misfits(mech, q)
    (rows,) = mech.bound
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    ends = [data.oMi[f.joint] * f.placement for f in (rows.frames1[0], rows.frames2[0])]
    apart = ends[0].translation - ends[1].translation
    assert found.name == "tip_hinge"
    assert found.distance == pytest.approx(np.linalg.norm(apart))
    assert found.angle == pytest.approx(0.0, abs=1e-12)
    told = panel.pose(moved(opened(mech), q))
    assert f"tip_hinge: {1e3 * np.linalg.norm(apart):.3g} mm" in told


@pytest.mark.parametrize("angle", [0.02, 0.7])
def test_a_misfit_of_axes_is_an_angle(angle):
    m = zoo.vertical(pin.Model())
    zoo.add_body(m, 0, pin.JointModelRX(), zoo.at(), "a", zoo.bar(0.2))
    weld = hc.Closure(("universe", zoo.at()), ("a", zoo.at()), joint="weld", name="weld")
    mech = hc.Mechanism(m, [weld], [])
    (found,) = misfits(mech, np.array([angle]))
    assert found.angle == pytest.approx(angle)
    hinge = hc.Closure(("universe", zoo.at()), ("a", zoo.at()), axes="x y z rx ry", name="hinge")
    (found,) = misfits(hc.Mechanism(m, [hinge], []), np.array([angle]))
    assert found.angle == pytest.approx(angle)


@pytest.mark.parametrize("robot", ["five_bar", "delta", "stewart", "leg", "geared_arm"])
def test_type_2_is_the_margin_of_the_doctor(robot):
    start = opened(hc.load(hc.robot_file(robot)))
    here = dragged(start, 0, start.motors[0] + 0.02)
    found = singularity(here, start)
    assert found.type_2 == pytest.approx(hc.mobility(here.mech, here.q).actuation_margin)
    assert found.side == 1
    assert np.isnan(found.type_1)


def test_the_side_changes_beyond_a_dead_point():
    start = opened(zoo.slider_crank(reference=[0.3, -0.43, 0.69]))
    beyond = opened(start.mech, start.q * [-1.0, -1.0, 1.0])
    assert beyond.closed
    assert singularity(beyond, start).side == -singularity(start, start).side == -1
    dead = opened(zoo.slider_crank(reference=zoo.DEAD_CENTRE))
    found = singularity(dead, start)
    assert found.type_2 == pytest.approx(0.0, abs=1e-9)
    assert found.side == 0
    assert RED in panel.singular(found, "")
    apart = opened(zoo.four_bar(lengths=(0.2, 0.5, 0.4, 2.0)))
    found = singularity(apart, apart)
    assert np.isnan(found.type_2)
    assert "\N{EN DASH}" in panel.singular(found, "")


def test_a_stretched_arm_is_at_a_type_1_singularity_of_its_end():
    m = zoo.vertical(pin.Model())
    zoo.add_body(m, 0, pin.JointModelRZ(), zoo.at(), "upper", zoo.bar(0.3))
    zoo.add_body(m, "upper", pin.JointModelRZ(), zoo.at(0.3), "lower", zoo.bar(0.3))
    m.addFrame(pin.Frame("tip", 2, 0, zoo.at(0.3), pin.FrameType.BODY))
    start = opened(hc.Mechanism(m, [], ["upper", "lower"], reference=[0.2, 1.0]))
    assert next(iter(points(start.mech))) == "tip"
    point = points(start.mech)["tip"]
    bent, straight = (opened(start.mech, [0.2, x]) for x in (0.5, 0.0))
    assert singularity(bent, start, point).type_1 > 0.05
    found = singularity(straight, start, point)
    assert found.type_1 == pytest.approx(0.0, abs=1e-12)
    assert found.type_2 == pytest.approx(1.0)


def film_of(name):
    start = opened(hc.load(hc.robot_file(name)))
    return start, filmed(
        start, played(start.mech, start.q, motions(start.mech, start.q)[0]), "film"
    )


@pytest.mark.parametrize("name", ["five_bar", "stewart"])
def test_a_motion_is_a_film_of_holding_efforts_and_positions(name):
    start, film = film_of(name)
    mech = start.mech
    rest = np.zeros(mech.nv)
    for i in range(0, len(film.run.q), 20):
        q = film.run.q[i]
        u = hc.inverse_dynamics(mech, q, rest, rest, coordinates="all").u
        assert film.run.u[i] == pytest.approx(u, abs=1e-6)
        assert film.positions[i] == pytest.approx(mech.motor_positions(q), abs=1e-9)
        assert film.run.closure[i] < 1e-9
    assert film.positions[0] == pytest.approx(start.motors)
    drawn = panel.charts(film)
    assert drawn.count("<polyline") == 2 * mech.nu
    assert drawn.count("holoctl-cursor") == 2


def test_turns_of_a_continuous_joint_are_counted():
    m = zoo.vertical(pin.Model())
    zoo.add_body(m, 0, pin.JointModelRUBZ(), zoo.at(), "wheel", zoo.bar(0.3))
    mech = hc.Mechanism(m, [], ["wheel"])
    angles = np.linspace(0.0, 15.0, 60)
    turning = np.column_stack([np.cos(angles), np.sin(angles)])
    film = filmed(opened(mech), turning, "")
    assert film.positions[:, 0] == pytest.approx(angles)
    last = opened(mech)
    for q in turning:
        last = moved(last, q)
    assert filmed(last, turning[::-1], "").positions[-1, 0] == pytest.approx(0.0, abs=1e-9)


def test_numbers_of_a_film_are_all_its_instants():
    start, film = film_of("stewart")
    head, *lines = csv.reader(csv_text(film).splitlines())
    assert head[:2] == ["t (s)", "position of leg_1 (m)"]
    assert head[7] == "effort of leg_1 (N)"
    table = np.array(lines, dtype=float)
    assert table.shape == (film.run.t.size, 1 + 2 * 6 + 1 + start.mech.nq)
    assert np.array_equal(table[:, 0], film.run.t)
    assert np.array_equal(table[:, 7:13], film.run.u)
    assert np.array_equal(table[:, 14:], film.run.q)


def test_the_cursor_of_a_chart_is_hidden_for_another_pose():
    assert "--holoctl-cursor: hidden" in panel.marker(None, "Another pose")
    assert "--holoctl-share: 0.25000" in panel.marker(0.25, "t")
    mech = hc.load(hc.robot_file("five_bar"))
    run = recorded(mech, hc.simulate(mech, None, *hc.assemble(mech), 0.2))
    for saved in (False, True):
        found = re.search(r'data-start="([^"]*)" data-end="([^"]*)"', panel.charts(run, saved))
        assert (float(found[1]), float(found[2])) == (0.0, 0.2)


def test_a_saved_run_is_red_at_its_open_instants_alone(tmp_path, monkeypatch):
    mech = hc.load(hc.robot_file("five_bar"))
    run = hc.simulate(mech, None, *hc.assemble(mech), 0.5)
    q, closure = run.q.copy(), run.closure.copy()
    q[200:300, 0] += 0.3
    closure[200:300] = 0.1
    renewed = []
    monkeypatch.setattr(Scene, "show_open", lambda _, q, t=0.0: renewed.append((q.copy(), t)))
    hc.save_view(mech, tmp_path / "run.html", dataclasses.replace(run, q=q, closure=closure))
    off = [np.abs(hc.constraint_errors(mech, x).position).max() > 1e-3 for x, _ in renewed]
    times = [t for _, t in renewed]
    assert off[:2] == [False, False]  # the first picture, from which it starts again
    assert off[2:-1] == [True] * (len(off) - 3)
    assert 0.19 < min(times[2:]) < 0.24
    assert not off[-1]
    assert 0.29 < times[-1] < 0.34
