"""The surgical arms of the scoreboard: their mechanisms, how a model is chosen, what is kept."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import holoctl as hc

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from referee import arms_page, identified
from referee.surgical_arms import ACROSS, ARMS, CABLE, JAW, WRIST
from support import ROOT

PAGE = ROOT / "docs" / arms_page.PAGE
PSM, MTM = ARMS
BASE = {"psm": 49, "mtm": 73}
"""Published numbers of base parameters."""


def mechanism(arm, width=0.05):
    return arm.make(dict.fromkeys(arm.rates, width))


@pytest.fixture(scope="module")
def folder():
    """A clone that the user has fetched."""
    if not os.environ.get("DVRK"):
        pytest.skip(
            "no measurements of the surgical arms: set DVRK to a clone of "
            "WPI-AIM/dvrk_dynamics_identification"
        )
    return Path(os.environ["DVRK"])


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_all_coordinates_are_linear_in_the_motors(arm):
    mech = mechanism(arm)
    moved = identified.linear_in_motors(mech)
    part = hc.partition(mech, hc.assemble(mech)[0])
    for seed in range(5):
        motors = np.random.default_rng(seed).uniform(-0.7, 0.7, 7)
        q, v = moved @ motors, moved @ np.ones(7)
        P = hc.project(mech, q, v, partition=part)
        assert np.abs(P.terms.rows.error).max() < 1e-12
        assert np.abs(P.terms.rows.jacobian @ v).max() < 1e-12
        assert np.ptp(q) > 0.1


def test_the_bars_stay_level_and_cables_turn_the_tool():
    mech = mechanism(PSM)
    of = dict(zip(mech.coordinate_names, identified.linear_in_motors(mech), strict=True))
    for name, expected in {
        "front": [0, -1, 0, 0, 0, 0, 0], "rod": [0, -1, 0, 0, 0, 0, 0],
        "bottom": [0, 1, 0, 0, 0, 0, 0], "top": [0, 1, 0, 0, 0, 0, 0],
        "counterweight": [0, 0, 1, 0, 0, 0, 0], "wrist": [0, 0, 0, 0, WRIST, 0, 0],
        "jaw_1": [0, 0, 0, 0, ACROSS, JAW, 0], "jaw_2": [0, 0, 0, 0, ACROSS, 0, JAW],
    }.items():  # fmt: skip
        np.testing.assert_allclose(of[name], expected, atol=1e-12, err_msg=name)
    mech = mechanism(MTM)
    of = dict(zip(mech.coordinate_names, identified.linear_in_motors(mech), strict=True))
    for name, expected in {
        "elbow": [0, -1, 1, 0, 0, 0, 0], "rod": [0, 1, -1, 0, 0, 0, 0],
        "platform": [0, CABLE, -CABLE, 1, 0, 0, 0],
    }.items():  # fmt: skip
        np.testing.assert_allclose(of[name], expected, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_as_many_base_parameters_as_published(arm):
    base = hc.base_parameters(identified.parameters(arm, mechanism(arm)))
    assert base.rank == BASE[arm.name]
    assert base.decided


def test_lags_delay_the_rows_of_their_motor():
    t = np.arange(800) / identified.RATE
    W = np.sin(2.0 * np.pi * np.array([t, t])).T[:, :, None]
    at = np.arange(0, 800, 4)
    found = identified.delayed(W, (0.0125, -0.005), at)
    for k, lag in enumerate((0.0125, -0.005)):
        np.testing.assert_allclose(found[:, k, 0], np.sin(2 * np.pi * (t[at] - lag)), atol=2e-4)


def test_folds_see_what_is_not_in_the_model():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(300, 2, 4))
    exact = identified.Equations(W, W @ np.array([1.0, 2.0, -1.0, 3.0]))
    assert identified.fold_errors(exact).max() < 1e-5
    without = identified.Equations(W[:, :, :3], exact.y)
    assert identified.fold_errors(without).min() > 0.3


def test_files_that_are_no_measurements_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="one_results"):
        identified.motion(tmp_path, PSM, "one")
    file = tmp_path / "data/psm/measured_trajectory/one_results.csv"
    file.parent.mkdir(parents=True)
    np.savetxt(file, np.zeros((1000, 20)), delimiter=",")
    with pytest.raises(ValueError, match="21 finite columns"):
        identified.motion(tmp_path, PSM, "one")
    notebook = tmp_path / "main_mtm.ipynb"
    cells = [{"source": ["x = 1\n", "p = np.array([0.5, -1e-1])\n"]}]
    notebook.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    np.testing.assert_array_equal(identified.cable(notebook), [0.5, -0.1])
    notebook.write_text(json.dumps({"cells": []}), encoding="utf-8")
    with pytest.raises(ValueError, match="polynomial"):
        identified.cable(notebook)


def test_the_page_is_that_of_what_is_kept():
    found, note = arms_page.kept(PAGE.with_suffix(".json"))
    assert arms_page.page(found, note) == PAGE.read_text(encoding="utf-8")
    assert [x.arm for x in found] == ["psm", "mtm"]
    for arm, x in zip(ARMS, found, strict=True):
        assert x.base == BASE[arm.name]
        np.testing.assert_allclose(x.least_squares, arm.published, atol=1e-4)
        assert x.least_eigenvalue > 0.0
        assert x.fit_seconds < 5.0
    for limit, error in zip((0.092, 0.180, 0.195), found[0].consistent, strict=False):
        assert error <= limit


@pytest.mark.slow
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_published_least_squares_of_the_arm(arm, folder):
    model = identified.parameters(arm, mechanism(arm, identified.AT_ONCE))
    train, test = (
        identified.published_rows(arm, model, identified.motion(folder, arm, which))
        for which in (identified.TRAIN, identified.TEST)
    )
    weights = 1.0 / np.ptp(train.y, axis=0) if arm.weighted else np.ones(7)
    p = identified.least_squares(train, weights)
    np.testing.assert_allclose(test.errors(p, arm.period), arm.published, atol=1e-4)
