"""Every example runs, says something, and warns of nothing."""

from __future__ import annotations

import runpy
import subprocess
import sys
import warnings

import pytest
from support import ROOT, few

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LONG = (
    "a_biped_stands", "a_leg_hops", "a_leg_is_pushed", "a_leg_jumps", "stay_within_limits",
    "hold_a_pose", "leg_as_a_spring", "realtime_loop", "draw_at_constant_height",
    "export_a_controller", "map_a_workspace", "pick_and_place", "look_in_the_browser",
    "identify_five_bar", "cross_a_singularity", "predict_a_five_bar",
    "plan_by_rollouts", "train_an_ankle", "map_many_postures",
)  # fmt: skip
QUICK = [x for x in EXAMPLES if x.stem not in LONG]
"""The short run's: the others simulate for long what tests/simulation and tests/control do too."""


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("path", few(EXAMPLES, QUICK), ids=lambda p: p.stem)
def test_example_runs(path, tmp_path, monkeypatch, capfd):
    """In this process, which has imported already what an example imports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(path), run_name="__main__")
    out, err = capfd.readouterr()
    assert out.strip()
    assert err == ""
    assert {x.name for x in tmp_path.iterdir()} <= {"out"}


@pytest.mark.parametrize(
    "path", few(EXAMPLES, [x for x in QUICK if x.stem == "track_a_motion"]), ids=lambda p: p.stem
)
def test_example_runs_as_a_program(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""
