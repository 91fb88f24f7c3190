"""The main job: the five-bar tracks its figure, and the command line tells about it."""

from __future__ import annotations

import numpy as np
import pytest

import holoctl as hc
from holoctl.cli import main
from holoctl.demo import demo


def check_figures(result):
    exact, continuous, heavier = (s.worst_after(result.transient) for s in result.scenarios)
    assert exact < 1e-4  # what the hold of 1 ms leaves
    assert continuous < 1e-8
    assert 1e-4 < heavier < 1e-2  # guard: the heavier plant is really another one
    assert all(s.error[0] > 1e-3 for s in result.scenarios)  # guard: there was a transient
    length = np.linalg.norm(np.diff(result.figure, axis=0), axis=1).sum()
    assert length > 0.3  # guard: something was drawn
    assert len(result.certificates) == 41
    assert all(c.ok for c in result.certificates)


def test_the_figures_of_the_main_job_in_half_the_time():
    """Drawn twice as fast as the demo does, which is harder."""
    check_figures(demo(duration=2.0))


@pytest.mark.slow
def test_the_figures_of_the_main_job():
    result = demo()
    assert result.scenarios[0].run.t[-1] == pytest.approx(4.0)
    check_figures(result)


def test_the_command_writes_a_table_a_picture_and_the_data(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main(["demo", "--duration", "0.1", "--out", str(tmp_path / "out"), "--no-progress"]) == 0
    text = capsys.readouterr().out
    for word in ("exact plant", "10 % heavier", "certified: 41 of 41", "five_bar.png"):
        assert word in text
    picture = (tmp_path / "out" / "five_bar.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    run = hc.Run.read(tmp_path / "out" / "five_bar_heavier.npz")
    assert run.t.shape == (101,)
    assert "holoctl==" in run.versions


def test_the_command_explains_a_wrong_name(capsys):
    assert main(["demo", "six_bar"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "InputError" in err
    assert "'five_bar'" in err
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out
