"""What a page does when it is touched, without a browser: its sliders and buttons called."""

from __future__ import annotations

import dataclasses
import html
import json
import re
import time

import numpy as np
import pinocchio as pin
import pytest
import zoo
from inside import Hand
from support import few

import holoctl as hc
from holoctl.app.cli import main
from holoctl.app.view import panel
from holoctl.app.view.holding_efforts import holding_efforts
from holoctl.app.view.shown_motions import motions
from holoctl.app.view.shown_posture import opened
from holoctl.closing.rank import scaled_jacobian

pytest.importorskip("viser")


@pytest.fixture
def hand():
    with hc.view(zoo.five_bar(), port=0) as view:
        yield Hand(view)


@pytest.mark.parametrize("typed", [1e5, -1e5, 1e300, float("inf"), -float("inf")])
def test_a_number_past_the_end_of_a_slider_goes_to_its_end_at_once(hand, typed):
    slider = hand.slider(0)
    low, high = slider.min, slider.max
    start = time.perf_counter()
    hand.slide(0, typed)
    assert time.perf_counter() - start < 2.0
    if not hand.posture.words:
        assert hand.posture.motors[0] == pytest.approx(high if typed > 0.0 else low)
    assert slider.value == pytest.approx(hand.posture.motors[0])
    assert hand.posture.gap < 1e-11


def test_no_number_is_told(hand):
    before = hand.posture.q
    hand.slide(0, float("nan"))
    assert np.array_equal(hand.posture.q, before)
    assert "finite" in hand.told
    hand.slide(0, 1.5)
    assert hand.posture.motors[0] == 1.5
    assert "finite" not in hand.told


def test_a_motion_that_cannot_be_played_says_so():
    hinge = zoo.vertical(pin.Model())
    zoo.add_body(hinge, 0, pin.JointModelRZ(), zoo.at(), "one", zoo.bar(0.3))
    limits = hc.Limits(position={"one": (0.0, 1e-9)})
    with hc.view(hc.Mechanism(hinge, [], ["one"], limits=limits), port=0) as view:
        hand = Hand(view)
        hand.play(motions(hand.posture.mech, view.q)[0])
        assert "No motion is possible here by motor one" in hand.told


def fall(mech, seconds=0.2):
    return hc.simulate(mech, None, *hc.assemble(mech), seconds)


def test_a_drag_ends_the_run_and_its_button_plays_again():
    mech = zoo.five_bar()
    run = fall(mech)
    with hc.view(mech, run, port=0) as view:
        hand = Hand(view)
        hand.play_or_pause()
        assert hand.button == "Pause"
        hand.slide(0, hand.posture.motors[0] + 0.1)
        assert hand.button == "Play"
        assert not hand.plays
        data = mech.model.createData()
        pin.forwardKinematics(mech.model, data, view.q)
        assert hand.places() == pytest.approx(np.array([X.translation for X in data.oMi]), abs=1e-6)
        hand.play_or_pause()
        assert hand.button == "Pause"
        hand.play_or_pause()
        for typed, end in ((99.0, run.t[-1]), (-99.0, run.t[0])):
            hand.wind(typed)
            assert f"t = {end:.3f} s" in hand.time_told


def test_a_run_of_one_instant_is_shown():
    mech = zoo.five_bar()
    run = fall(mech, 0.01)
    names = ("t", "q", "v", "u", "closure", "tick_time")
    one = dataclasses.replace(
        run, **{x: getattr(run, x)[:1] for x in names},
        energy={kind: x[:1] for kind, x in run.energy.items()},
    )  # fmt: skip
    with hc.view(mech, one, port=0) as view:
        hand = Hand(view)
        hand.play_or_pause()
        time.sleep(0.2)
        assert "t = 0.000 s" in hand.time_told


def test_what_of_a_run_is_open_is_red_there_and_only_there():
    mech = zoo.five_bar()
    run = fall(mech)
    q, closure = run.q.copy(), run.closure.copy()
    q[-1, 0] += 0.3
    closure[-1] = 0.1
    with hc.view(mech, dataclasses.replace(run, q=q, closure=closure), port=0) as view:
        hand = Hand(view)
        assert "1, largest closure error 1.0e-01" in hand.words_of_the_run
        for t, red in ((0.0, False), (run.t[-1], True), (0.05, False)):
            hand.wind(t)
            assert bool(hand.red) == red


def until(ready, seconds=20.0):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.02)


def told_of(hand):
    """The configuration that the words above the sliders are of."""
    return np.array(json.loads(html.unescape(re.search(r'data-q="([^"]*)"', hand.told)[1])))


def numbers_held(text):
    found = re.findall(r">([+\u2212][^<]*)<", text)
    return np.array([float(x.replace("\u2212", "-")) for x in found])


def check_all_that_is_told(hand, home):
    """Each value on the page against what the library computes from the shown posture."""
    mech, q, t = hand.posture.mech, hand.posture.q, hand.time
    errors = hc.constraint_errors(mech, q, t=t)
    assert np.array_equal(told_of(hand), q)
    assert f"largest error {errors.closure:.1e} (scaled)" in hand.told
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    assert hand.places() == pytest.approx(np.array([X.translation for X in data.oMi]), abs=1e-9)
    assert hand.values == pytest.approx(mech.motor_positions(q), abs=1e-9)
    closed = errors.closure <= 1e-8
    assert hand.posture.closed == closed
    assert [hand.slider(i).disabled for i in range(mech.nu)] == [not closed] * mech.nu
    assert bool(hand.red) != closed
    for name, row in hc.methods.by_constraint(mech, errors.position).items():
        if not closed and len(row) == 2:  # a pin in a plane
            assert f"{name}: {1e3 * np.linalg.norm(row):.3g} mm" in hand.told
    if closed:
        rest = np.zeros(mech.nv)
        wanted = hc.inverse_dynamics(mech, q, rest, rest, coordinates="all").u
        assert numbers_held(hand.held)[: mech.nu] == pytest.approx(wanted, rel=2e-3, abs=1e-9)
        part = hc.partition(mech, q)
        _, side, _ = found = hand.singular
        assert found[0] == pytest.approx(hc.mobility(mech, q).actuation_margin, abs=1e-9)
        signs = [sign_of_motors(mech, x, part) for x in (q, home)]
        assert side == signs[0] * signs[1]
    else:
        assert "no holding efforts" in hand.held
        assert hand.singular == [None, 0, None]
    assert ("Out of date" in hand.doctor) == (not np.array_equal(hand.examined, q))
    if hand.cursor is not None:
        film = hand.film
        i = int(np.argmin(np.abs(film.run.t - film.start - hand.cursor * (film.end - film.start))))
        assert np.array_equal(film.run.q[i], q)
        assert f"t = {film.run.t[i]:.3f} s" in hand.time_told


def sign_of_motors(mech, q, part):
    """Of the determinant of the rows and the motors."""
    G = scaled_jacobian(mech, q, 0.0, part.rows)[0]
    return round(np.linalg.slogdet(np.vstack([G, mech.B.T]))[0])


@pytest.mark.slow
def test_all_that_is_told_is_of_what_is_shown_at_each_step_of_drag_motion_and_run():
    mech = zoo.five_bar()
    run = fall(mech, 0.4)
    q, closure = run.q.copy(), run.closure.copy()
    q[50, 0] += 0.3  # an instant that is open
    closure[50] = 0.1
    with hc.view(mech, dataclasses.replace(run, q=q, closure=closure), port=0) as view:
        hand = Hand(view)
        until(lambda: len(hand.motions))
        home = hand.posture.q
        for t in (0.0, 0.1, run.t[50], 0.3, run.t[-1], 0.2):
            with hand.lock:
                hand.wind(t)
                check_all_that_is_told(hand, home)
                assert hand.cursor is not None
        with hand.lock:
            hand.slide(1, hand.values[1] + 0.1)
            check_all_that_is_told(hand, home)
            assert hand.cursor is None
            hand.back()
            for way in (0.1, -0.2, 0.3, 5.0):
                hand.slide(0, hand.values[0] + way)
                check_all_that_is_told(hand, home)
            hand.back()
        for motion in hand.motions:
            hand.play(motion)
            shown = set()
            while hand.plays:
                time.sleep(0.2)
                with hand.lock:
                    check_all_that_is_told(hand, home)
                    shown.add(hand.posture.q.tobytes())
            assert len(shown) > 5


def test_the_stop_reason_is_shown_at_the_posture_where_a_drag_stopped_and_nowhere_else():
    with hc.view(zoo.slider_crank("slider", (0.2, 0.5)), port=0) as view:
        hand = Hand(view)
        until(lambda: len(hand.motions))
        home = hand.posture.q
        with hand.lock:
            hand.slide(0, float("inf"))
            assert "stops before a dead point" in html.unescape(hand.told)
            assert 0.0 < hand.singular[0] < 0.1
            check_all_that_is_told(hand, home)
            hand.slide(0, hand.values[0] - 0.05)
            assert "stops" not in hand.told
            check_all_that_is_told(hand, home)


def test_a_film_is_played_again_and_again_only_with_loop():
    mech = zoo.five_bar()
    with hc.view(mech, fall(mech, 0.1), port=0) as view:
        hand = Hand(view)
        hand.loop(True)
        hand.play_or_pause()
        time.sleep(0.5)
        assert hand.plays
        hand.loop(False)
        until(lambda: not hand.plays, 2.0)
        assert hand.cursor == 1.0
        until(lambda: len(hand.motions))
        hand.play(hand.motions[0])
        assert hand.film.run.t[-1] == pytest.approx(4.0)
        hand.choose("the run")
        assert hand.film.run.t[-1] == pytest.approx(0.1)
        assert hand.plays


@pytest.mark.parametrize("robot", few(["stewart", "leg"], ["stewart"]))
def test_while_a_motion_plays_all_that_is_told_is_of_what_is_shown(robot):
    mech = hc.load(hc.robot_file(robot))
    with hc.view(mech, port=0) as view:
        hand = Hand(view)
        until(lambda: len(hand.motions))
        home, first = view.q, hand.motions[1]
        hand.play(first)
        seen = []
        while hand.plays:
            time.sleep(0.3)
            with hand.lock:
                q = view.q
                assert np.array_equal(told_of(hand), q)
                assert hand.values == pytest.approx(mech.motor_positions(q), abs=1e-9)
                seen.append((abs(q - home).max(), hand.held))
        assert max(far for far, _ in seen) > 0.05
        assert len({text for _, text in seen}) > 3
        assert np.array_equal(view.q, home)


def test_the_efforts_that_are_told_hold_what_is_shown(hand):
    until(lambda: len(hand.motions))
    hand.play(hand.motions[0])
    time.sleep(0.7)
    hand.slide(0, hand.values[0] + 1e-3)  # stops it there
    time.sleep(0.4)
    wanted = holding_efforts(hand.posture.mech, hand.posture.q)
    efforts = numbers_held(hand.held)[: len(wanted.rows)]
    assert efforts == pytest.approx([row.effort for row in wanted.rows], rel=1e-3)


def test_a_drag_takes_over_from_where_a_motion_is(hand):
    until(lambda: len(hand.motions))
    begin = hand.values.copy()
    hand.play(hand.motions[0])
    until(lambda: abs(hand.values[0] - begin[0]) > 0.1)
    with hand.lock:
        at = hand.values[0]
        hand.slide(1, hand.values[1] + 0.01)
    assert not hand.plays
    assert hand.posture.motors == pytest.approx([at, begin[1] + 0.01], abs=1e-9)


@pytest.mark.slow
def test_another_motion_begins_where_the_first_began(hand):
    until(lambda: len(hand.motions))
    home = hand.posture.q
    hand.play(hand.motions[0])
    time.sleep(0.5)
    hand.play(hand.motions[1])
    until(lambda: not hand.plays)
    assert np.array_equal(hand.posture.q, home)


def test_the_doctor_follows_a_drag_and_is_out_of_date_until_then():
    with hc.view(hc.load(hc.robot_file("stewart")), port=0) as view:
        hand = Hand(view)
        until(lambda: "It closes" in hand.doctor)
        assert "Out of date" not in hand.doctor
        before = hand.doctor
        hand.slide(0, hand.values[0] + 0.1)
        until(lambda: "Out of date" in hand.doctor, 1.0)
        until(lambda: "Out of date" not in hand.doctor)
        report = hc.mobility(hand.posture.mech, view.q)
        assert np.array_equal(view.q, hand.posture.q)
        assert first_number(hand.doctor) == first_number(panel.words(str(report)))
        hand.back()
        until(lambda: "Out of date" in hand.doctor, 1.0)
        until(lambda: hand.doctor == before)


def first_number(text):
    return re.search(r"the largest error is ([^ ]+)|the largest is ([^ ]+)", text)[0]


@pytest.mark.slow
def test_while_a_motion_plays_the_doctor_is_out_of_date(hand):
    until(lambda: "It closes" in hand.doctor)
    hand.play(hand.motions[0])
    time.sleep(0.6)
    assert "Out of date" in hand.doctor
    until(lambda: not hand.plays)
    until(lambda: "Out of date" not in hand.doctor, 1.0)  # it came back: nothing is looked for


def test_of_a_run_sliders_efforts_and_doctor_are_of_the_instant():
    mech = zoo.five_bar()
    run = fall(mech)
    with hc.view(mech, run, port=0) as view:
        hand = Hand(view)
        for t in (run.t[0], run.t[-1], 0.1):
            hand.wind(t)
            q = run.q[np.argmin(abs(run.t - t))]
            assert np.array_equal(view.q, q)
            until(lambda: np.array_equal(told_of(hand), view.q), 1.0)
            assert hand.values == pytest.approx(mech.motor_positions(q), abs=1e-9)
            until(lambda: "It closes" in hand.doctor and "Out of date" not in hand.doctor)
        hand.slide(0, hand.values[0] + 0.05)
        assert hand.posture.gap < 1e-11
        assert "not an instant of the run" in hand.time_told
        assert hand.posture.motors[0] == pytest.approx(mech.motor_positions(q)[0] + 0.05)
        hand.wind(0.1)
        assert "t = 0.100 s" in hand.time_told


def test_a_slider_tells_where_a_motor_is_beyond_its_end():
    mech = hc.load(hc.robot_file("five_bar"))
    run = fall(mech, 1.0)
    assert np.abs(run.q[-1]).max() > np.pi
    with hc.view(mech, run, port=0) as view:
        hand = Hand(view)
        hand.wind(run.t[-1])
        until(lambda: np.array_equal(told_of(hand), run.q[-1]), 2.0)
        assert hand.values == pytest.approx(mech.motor_positions(run.q[-1]), abs=1e-9)


def test_an_instant_that_is_open_is_not_told_to_be_closed():
    mech = zoo.five_bar()
    run = fall(mech)
    q, closure = run.q.copy(), run.closure.copy()
    q[-1, 0] += 0.3
    closure[-1] = 0.1
    with hc.view(mech, dataclasses.replace(run, q=q, closure=closure), port=0) as view:
        hand = Hand(view)
        hand.wind(run.t[-1])
        until(lambda: "It does not close" in hand.told, 2.0)
        assert all(hand.slider(i).disabled for i in range(mech.nu))
        until(lambda: "no holding efforts" in hand.held, 2.0)
        hand.wind(0.0)
        until(lambda: "Closed" in hand.told, 2.0)
        assert not any(hand.slider(i).disabled for i in range(mech.nu))


def test_what_is_touched_after_the_end_does_nothing(recwarn):
    with hc.view(zoo.five_bar(), port=0) as view:
        hand = Hand(view)
    before = hand.posture
    hand.slide(0, 1.5)
    hand.play(motions(before.mech, before.q)[0])
    hand.back()
    assert hand.posture is before
    assert not hand.plays
    assert not [w for w in recwarn.list if "closed connection" in str(w.message)]


def test_rods_are_bars_that_move_with_their_ends():
    m = zoo.vertical(pin.Model())
    zoo.add_body(m, 0, pin.JointModelRZ(), zoo.at(), "crank", zoo.bar(0.2))
    zoo.add_body(m, 0, pin.JointModelRZ(), zoo.at(0.5), "rocker", zoo.bar(0.4))
    rod = hc.Rod(("crank", zoo.at(0.2)), ("rocker", zoo.at(0.4)), name="coupler")
    mech = hc.Mechanism(m, [rod], ["crank"], reference=[1.0, 1.2])
    with hc.view(mech, port=0) as view:
        hand = Hand(view)
        for way in (0.0, 0.2):
            hand.slide(0, hand.posture.motors[0] + way)
            data = mech.model.createData()
            pin.forwardKinematics(mech.model, data, view.q)
            a, b = (data.oMi[j].act(np.array([x, 0.0, 0.0])) for j, x in ((1, 0.2), (2, 0.4)))
            (bar,) = hand.rods
            assert np.array(bar.position) == pytest.approx((a + b) / 2.0, abs=1e-6)
            w, x, y, z = bar.wxyz
            along = pin.Quaternion(w, x, y, z).matrix()[:, 2]
            assert np.linalg.norm(np.cross(along, b - a)) < 1e-6


def test_the_command_holds_the_joints_that_are_set(tmp_path, capsys, monkeypatch):
    from holoctl.app.view import view as door

    shown = []

    def write_page(mech, path, run=None, *, q=None, geometry=None):
        shown.append(opened(mech, q))
        return path, ()

    monkeypatch.setattr(door, "write_page", write_page)
    to = ["--out", str(tmp_path / "page.html")]
    assert main(["view", "five_bar", *to, "--set", "motor_left=1.9"]) == 0
    assert shown[0].closed
    assert shown[0].motors[0] == pytest.approx(1.9, abs=1e-12)
    apart = [f"--set={x}" for x in ("motor_left=1.9", "elbow_left=0.1", "motor_right=-2")]
    assert main(["view", "five_bar", *to, *apart]) != 0
    assert "AssemblyError" in capsys.readouterr().err
    assert len(shown) == 1
