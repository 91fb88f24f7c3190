"""What holds a posture, and what is shown of a run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import zoo

import holoctl as hc
from holoctl.app.cli import main
from holoctl.app.palette import RED
from holoctl.app.view.holding_efforts import holding_efforts
from holoctl.app.view.panel import holding_table
from holoctl.app.view.recorded_run import frames, recorded
from holoctl.app.view.shown_posture import dragged, opened


@pytest.mark.parametrize("name", ["five_bar", "delta", "stewart", "leg"])
def test_holding_is_what_the_inverse_dynamics_say(name):
    start = opened(hc.load(hc.robot_file(name)))
    at = dragged(start, 0, start.motors[0] + 0.02)
    rest = np.zeros(at.mech.nv)
    found = holding_efforts(at.mech, at.q, at.part)
    right = hc.inverse_dynamics(at.mech, at.q, rest, rest, coordinates="all")
    assert found.certified
    assert not found.words
    assert [row.effort for row in found.rows] == pytest.approx(right.u.tolist(), abs=1e-9)
    assert [row.motor for row in found.rows] == list(at.mech.actuator_names)
    assert {row.unit for row in found.rows} == {"N" if name == "stewart" else "N m"}
    assert not any(row.past for row in found.rows)


def test_limits_are_shown_on_the_side_of_the_effort():
    start = opened(zoo.four_bar())
    free = holding_efforts(start.mech, start.q)
    u = free.rows[0].effort
    assert free.rows[0].limit is None
    for limits, limit, past in (
        ((-5.0 * abs(u), 5.0 * abs(u)), 5.0 * u, False),
        ((-0.5 * abs(u), 0.5 * abs(u)), 0.5 * u, True),
        ((u + 1.0, u + 2.0), u + 1.0, True),
        ((u - 2.0, u - 1.0), u - 1.0, True),
    ):
        mech = dataclasses.replace(start.mech, limits=hc.Limits(effort={"crank": limits}))
        row = holding_efforts(mech, start.q).rows[0]
        assert row.limit == pytest.approx(limit)
        assert row.past == past


def test_what_is_not_held_is_told():
    under = opened(dataclasses.replace(zoo.five_bar(), actuated=("left",)))
    found = holding_efforts(under.mech, under.q, under.part)
    assert not found.certified
    assert found.unbalanced > 0.1
    assert "NOT certified (dynamics)" in found.words
    assert "On motions without motor" in found.words
    assert "They move 'right" in found.words
    dead = opened(zoo.slider_crank(reference=zoo.DEAD_CENTRE))
    found = holding_efforts(dead.mech, dead.q, dead.part)
    assert found.rows == ()
    assert "dead point" in found.words
    flat = opened(dataclasses.replace(zoo.parallelogram(), reference=[0.0, 0.0, 0.0]))
    assert "singular configuration" in holding_efforts(flat.mech, flat.q).words
    with pytest.raises(hc.InputError):
        holding_efforts(dead.mech, [0.0])


def test_the_command_says_the_same(capsys):
    mech = hc.load(hc.robot_file("stewart"))
    assert main(["torque", "stewart", "--csv"]) == 0
    lines = capsys.readouterr().out.split()[1:]
    efforts = [row.effort for row in holding_efforts(mech, opened(mech).q).rows]
    assert [float(line.split(",")[1]) for line in lines[: mech.nu]] == pytest.approx(efforts)


@pytest.fixture(scope="module")
def fall():
    mech = hc.load(hc.robot_file("five_bar"))
    return mech, hc.simulate(mech, None, *hc.assemble(mech), 0.2)


def long_run(run, seconds=60.0, step=1e-3):
    """A run of many instants, whose numbers nobody simulated."""
    n, rng = round(seconds / step) + 1, np.random.default_rng(0)
    which = np.arange(n) % run.t.size
    return dataclasses.replace(
        run, t=step * np.arange(n), q=run.q[which], v=run.v[which], u=rng.normal(size=(n, 2)),
        closure=run.closure[which], tick_time=np.zeros(n),
        energy={kind: x[which] for kind, x in run.energy.items()},
        events=np.array([[2.5, 1.0]]), crossings=np.array([1.0]), ended="Ctrl-C",
    )  # fmt: skip


def test_a_run_is_shown_at_its_nearest_instants(fall):
    mech, run = fall
    shown = recorded(mech, run)
    assert (shown.start, shown.end) == (run.t[0], run.t[-1])
    assert shown.names == mech.actuator_names
    assert shown.unit == "N m"
    assert shown.limits.tolist() == [[-20.0, -20.0], [20.0, 20.0]]
    for t in (-1.0, 0.0, 0.1, 0.1234, 0.2, 9.0):
        i = int(np.argmin(np.abs(run.t - t)))
        assert np.abs(shown.run.t[shown.index(t)] - t) == np.abs(run.t[i] - t)
        assert (shown.at(t) == run.q[shown.index(t)]).all()
    assert shown.status(0.1) == "t = 0.100 s: motor_left +0 N m, motor_right +0 N m"
    weak = recorded(mech, run, hc.Limits(effort={"motor_left": 1.0}))
    assert weak.limits.tolist() == [[-1.0, -np.inf], [1.0, np.inf]]
    assert recorded(mech, run, hc.Limits()).limits is None
    times, which, q = frames(shown)
    assert times[0] == 0.0
    assert times[-1] == run.t[-1]
    assert np.diff(times)[:-1] == pytest.approx(1.0 / 30.0)
    assert (q == run.q[which]).all()
    with pytest.raises(hc.InputError, match="another mechanism"):
        recorded(zoo.four_bar(), run)
    with pytest.raises(hc.InputError, match="rate"):
        frames(shown, 0.0)


def test_of_a_minute_at_1_khz_no_peak_is_lost(fall):
    mech, run = fall
    run = long_run(run)
    shown = recorded(mech, run)
    times, _, q = frames(shown)
    assert times.size == q.shape[0] == 1801
    assert shown.t.size <= 600
    assert (np.diff(shown.t) >= 0.0).all()
    assert (shown.u.max(axis=0) == run.u.max(axis=0)).all()
    assert (shown.u.min(axis=0) == run.u.min(axis=0)).all()
    for text in ("ended by Ctrl-C", "Events: 1", "event 1 at 2.500 s", "crossed at 1.000 s"):
        assert text in shown.words
    assert "event 1" in shown.status(2.4)
    assert "event 1" not in shown.status(30.0)
    assert "ended by Ctrl-C" in shown.status(59.9)


def test_a_limit_on_the_other_side_keeps_its_sign():
    start = opened(zoo.four_bar())  # takes +1.91 N m
    for limits, told in (((-5.0, 1.0), ">of 1<"), ((-5.0, -1.0), ">limit \N{MINUS SIGN}1<")):
        mech = dataclasses.replace(start.mech, limits=hc.Limits(effort={"crank": limits}))
        table = holding_table(holding_efforts(mech, start.q))
        assert told in table
        assert RED in table
