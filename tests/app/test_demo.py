"""The main job: robots track their figures, and the command line tells about it."""

from __future__ import annotations

import re

import numpy as np
import pinocchio as pin
import pytest
from support import few

import holoctl as hc
from holoctl.app.cli import main
from holoctl.app.demo import DEMOS, demo


def check_figures(result, left_by_the_hold=1e-4):
    exact, continuous, encoders, heavier, limited = (
        s.worst_after(result.transient) for s in result.scenarios
    )
    assert exact < left_by_the_hold
    assert continuous < 1e-8
    assert 1e-7 < abs(encoders - exact) < 1e-3  # what 16 bits and noise cost
    assert max(1e-4, exact) < heavier < 1e-2  # guard: the heavier plant is really another one
    assert max(1e-4, exact) < limited < 1e-2
    last = result.scenarios[-1]
    assert last.error[-1] < 0.01 * limited  # it catches up
    assert np.abs(last.run.u).max() == last.most
    assert np.abs(result.scenarios[0].run.u).max() > 1.01 * last.most  # guard: that is too little
    assert all(s.error[0] > 1e-3 for s in result.scenarios)  # guard: there was a transient
    length = np.linalg.norm(np.diff(result.figure, axis=0), axis=1).sum()
    assert length > 0.3  # guard: something was drawn
    assert len(result.certificates) == 41
    assert all(c.ok for c in result.certificates)
    if "rx" in result.drawing.hold:
        data = result.mech.model.createData()
        pin.framesForwardKinematics(result.mech.model, data, result.scenarios[1].run.q[-1])
        tip = data.oMf[result.mech.model.getFrameId(result.drawing.tip)]
        assert np.abs(tip.rotation - np.eye(3)).max() < 1e-8


@pytest.mark.slow
def test_the_figures_of_the_main_job_in_half_the_time():
    """Drawn twice as fast as the demo does, which is harder."""
    check_figures(demo(duration=2.0))


@pytest.mark.parametrize("name", few(["five_bar", "delta", "stewart"], ["five_bar"]))
def test_robots_draw_in_a_hurry(name):
    """Much faster than the demo does, and with a hold of 5 ms, so that it takes little time."""
    check_figures(demo(name, duration=1.2, frequency=200.0), left_by_the_hold=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEMOS)
def test_the_figures_of_the_main_job(name):
    result = demo(name)
    assert result.scenarios[0].run.t[-1] == pytest.approx(4.0)
    check_figures(result)


@pytest.mark.parametrize("name", few(DEMOS, ["five_bar"]))
def test_the_command_writes_a_table_a_picture_and_the_data(name, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    assert main(["demo", name, "--duration", "0.1", "--out", str(out), "--no-progress"]) == 0
    text = capsys.readouterr().out
    unit = "N" if name == "stewart" else "N m"
    assert re.search(rf"motors up to \S+ {unit}, 1000 Hz", text)
    for word in (
        "exact plant",
        "motor encoders only",
        "10 % heavier",
        "certified: 41 of 41",
        f"{name}.png",
    ):
        assert word in text
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    run = hc.Run.read(out / f"{name}_heavier.npz")
    assert run.t.shape == (101,)
    assert "holoctl==" in run.versions


def test_the_help_lists_the_robots_that_draw(capsys):
    with pytest.raises(SystemExit):
        main(["demo", "--help"])
    text = capsys.readouterr().out
    assert all(name in text for name in DEMOS)


def test_the_command_explains_a_wrong_name(capsys):
    assert main(["demo", "six_bar"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "InputError" in err
    assert "'five_bar'" in err
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out
