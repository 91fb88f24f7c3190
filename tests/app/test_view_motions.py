"""Motions of the view: as many as there are, each played on closed configurations."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pinocchio as pin
import pytest
import zoo

import holoctl as hc
from holoctl.app.view.shown_motions import motions, played
from holoctl.app.view.shown_posture import opened
from holoctl.closing.rank import scaled_jacobian

NAMES = (
    "five_bar", "floating_leg", "universal_rods", "idle_rod", "three_motors", "standing_leg",
    "bennett", "sine_chart", "timed_arm", "screw_chain",
)  # fmt: skip
ALL = {name: zoo.ZOO[name] for name in NAMES}
ALL |= {
    name: lambda name=name: hc.load(hc.robot_file(name))
    for name in ("delta", "stewart", "leg", "geared_arm")
}
ALL["without_motors"] = lambda: dataclasses.replace(zoo.five_bar(), actuated=())
ALL["under"] = lambda: dataclasses.replace(zoo.five_bar(), actuated=("left",))
ALL["dead_centre"] = lambda: zoo.slider_crank(reference=zoo.DEAD_CENTRE)


def moved(mech, a, b):
    return np.abs(pin.difference(mech.model, a, b) / mech.column_scale).max()


def gap(mech, q):
    return np.abs(scaled_jacobian(mech, q, 0.0)[1]).max(initial=0.0)


SHORT = ("five_bar", "idle_rod", "three_motors", "stewart", "under", "without_motors")
EACH = [n if n in SHORT else pytest.param(n, marks=pytest.mark.slow) for n in ALL]


@pytest.mark.parametrize("name", EACH)
def test_motions_are_as_many_as_there_are_and_play_in_closed_loops(name):
    mech = ALL[name]()
    q = opened(mech).q
    report = hc.mobility(mech, q)
    found = motions(mech, q, report)
    assert len(found) == report.dof
    assert sum(one.idle for one in found) == len(report.idle)
    velocities = np.array([one.v for one in found]) / mech.column_scale
    assert np.linalg.matrix_rank(velocities, 1e-6) == len(found)
    G = scaled_jacobian(mech, q, 0.0)[0]
    for one in found:
        assert one.finite
        x = one.v / mech.column_scale
        assert np.abs(G @ x).max(initial=0.0) < 1e-9 * np.linalg.norm(x)
        film = played(mech, q, one, 24)
        assert film.shape == (25, mech.nq)
        assert (film[0] == q).all()
        assert (film[-1] == q).all()
        assert max(gap(mech, x) for x in film) < 1e-9
        steps = [moved(mech, a, b) for a, b in itertools.pairwise(film)]
        far = max(moved(mech, q, x) for x in film)
        if name != "geared_arm":  # of which the rotors turn far
            assert max(steps) < 0.5
        assert far > 0.1
        first = pin.difference(mech.model, q, film[1]) / mech.column_scale  # that way it goes
        assert first @ x > 0.98 * np.linalg.norm(first) * np.linalg.norm(x)


def test_an_idle_spin_goes_once_round_and_moves_nothing_else():
    mech = zoo.idle_rod()
    q = opened(mech).q
    idle = motions(mech, q)[-1]
    assert idle.idle
    assert idle.words == "idle: rod"
    film = played(mech, q, idle)
    hinges = [0, mech.nq - 1]
    assert np.abs(film[:, hinges] - q[hinges]).max() < 1e-9
    turns = [pin.difference(mech.model, a, b) for a, b in itertools.pairwise(film)]
    assert np.abs(np.sum(np.linalg.norm(turns, axis=1)) - 2.0 * np.pi) < 1e-3


def test_words_name_motors_and_what_has_none():
    under = ALL["under"]()
    words = [one.words for one in motions(under, opened(under).q)]
    assert words[0] == "motor left"
    assert words[1].startswith("no motor: 'right")
    assert words[1].endswith("loaded by gravity")
    free = ALL["without_motors"]()
    assert all("motor" not in one.words for one in motions(free, opened(free).q))
    assert motions(zoo.triangle(), opened(zoo.triangle()).q) == ()


def test_a_motion_shrinks_to_where_it_stops():
    start = opened(zoo.slider_crank(reference=[0.1, -0.15, 0.69]))
    one = motions(start.mech, start.q)[0]
    film = played(start.mech, start.q, one)
    assert film[:, 2].max() < 0.7  # the dead centre
    assert 0.9 < (film[:, 2].max() - start.q[2]) / (0.7 - start.q[2]) < 0.96
    assert film[:, 2].min() < start.q[2] - 5e-3  # 0.3 rad of the crank
    limited = dataclasses.replace(zoo.five_bar(), limits=hc.Limits(position={"left": (2.0, 2.2)}))
    start = opened(limited)
    film = played(limited, start.q, motions(limited, start.q)[0])
    assert film[:, 0].max() <= 2.2
    assert film[:, 0].min() >= 2.0


def test_what_does_not_go_on_is_told_and_not_played():
    flat = dataclasses.replace(zoo.parallelogram(), reference=[0.0, 0.0, 0.0])
    q = opened(flat).q
    found = motions(flat, q)
    assert len(found) == 2
    for one in found:
        assert not one.finite
        assert "singular here" in one.words
        assert (played(flat, q, one) == q).all()
    bars = zoo.vertical(pin.Model())
    zoo.add_body(bars, 0, pin.JointModelRZ(), zoo.at(), "a", zoo.bar(0.3))
    zoo.add_body(bars, "a", pin.JointModelRZ(), zoo.at(0.3), "b", zoo.bar(0.3))
    wall = hc.Closure(("universe", zoo.at(0.6)), ("b", zoo.at(0.3)), axes="x y", name="wall")
    shaky = hc.Mechanism(bars, [wall], ["a"], name="shaky")
    start = opened(shaky)
    for one in motions(shaky, start.q):
        assert not one.finite
        assert "infinitesimal only" in one.words or "singular" in one.words
        assert (played(shaky, start.q, one) == start.q).all()


def test_what_is_no_motion_of_it_is_refused():
    mech, other = zoo.five_bar(), zoo.four_bar()
    q = opened(mech).q
    with pytest.raises(hc.InputError, match="does not belong to"):
        played(mech, q, motions(other, opened(other).q)[0])
    with pytest.raises(hc.InputError, match="frames"):
        played(mech, q, motions(mech, q)[0], 3)
