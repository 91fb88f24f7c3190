"""The doctor on rounded geometry: the verdict of the exact mechanism, and what to do."""

from __future__ import annotations

import dataclasses
import functools

import pytest
from examined import bars
from overconstrained import GENERIC, OVERCONSTRAINED, drawn, meant, misfit, rounded
from support import few

import holoctl as hc

REGULAR = OVERCONSTRAINED | GENERIC
SLOW = [pytest.param(s, marks=pytest.mark.slow) for s in (1, 2, 3, 4)]
FEW = ["bennett", "sarrus", "four_bar", "jansen"]


def verdict(report):
    """Counts and kinds: what must not depend on rounding."""
    return {
        "closed": report.closed,
        "dof": report.dof,
        "finite": report.finite_dof,
        "redundant": len(report.redundant),
        "latent": len(report.latent),
        "idle": report.idle,
        "locked": report.locked_joints,
        "actuation": report.actuation,
        "singular": report.singular,
        "reason": report.gruebler_reason,
        "far": report.far,
        "crossed": report.crossed,
    }


@functools.cache
def verdict_on_exact(name):
    return verdict(hc.mobility(drawn(name)[1]))


@pytest.mark.parametrize("seed", [0, *SLOW])
@pytest.mark.parametrize("eps", few([1e-11, 1e-9, 1e-7, 1e-6, 1e-5], [1e-6]))
@pytest.mark.parametrize("name", few(REGULAR, [*FEW, *list(REGULAR)[::12]]))
def test_the_verdict_on_rounded_geometry_is_that_on_exact_geometry(name, eps, seed):
    drawing, exact = drawn(name)
    report = hc.mobility(meant(exact, eps, seed))
    assert verdict(report) == verdict_on_exact(name)
    assert report.finite_dof == drawing.truth.dof
    assert len(report.redundant) == drawing.truth.redundant
    assert len(report.idle_motions) == drawing.truth.idle
    if eps > 1e-11 or not drawing.truth.redundant:  # else it may close exactly by chance
        assert report.tolerance == (100 * eps if drawing.truth.redundant else 0.0)
        said = " ".join(str(report).split())
        assert ("redundant to within" in said) == bool(drawing.truth.redundant)
    assert not report.wanted_tolerance


@pytest.mark.parametrize("eps", few([1e-9, 1e-7, 1e-5, 1e-4], [1e-5]))
@pytest.mark.parametrize("name", few(OVERCONSTRAINED, FEW))
def test_beyond_the_tolerance_the_one_that_serves_is_told(name, eps):
    """Taken exactly, or to less than the rounding, a sentence says what to do; and that works."""
    drawing, exact = drawn(name)
    mech = rounded(exact, eps)
    report = hc.mobility(mech)
    assert not report.closed or report.far or report.finite_dof < drawing.truth.dof
    assert eps < report.wanted_tolerance < 300 * eps
    assert f"tolerance={report.wanted_tolerance:g}" in " ".join(str(report).split())
    better = hc.mobility(dataclasses.replace(mech, tolerance=report.wanted_tolerance))
    assert better.closed
    assert better.finite_dof == drawing.truth.dof
    assert len(better.redundant) == drawing.truth.redundant


@pytest.mark.parametrize("amount", few([1e-1, 1e-2], [1e-2]))
@pytest.mark.parametrize("name", few(OVERCONSTRAINED, FEW))
def test_a_real_misfit_stays_one(name, amount):
    drawing, exact = drawn(name)
    report = hc.mobility(dataclasses.replace(misfit(exact, amount), tolerance=1e-4))
    assert not report.closed or report.finite_dof < drawing.truth.dof


@pytest.mark.parametrize("name", few(OVERCONSTRAINED, ["bennett", "four_bar"]))
def test_the_verdict_degrades_in_one_direction(name):
    """Exact, rounded, inconsistent: never back."""
    drawing, exact = drawn(name)
    kinds = []
    for amount in (0.0, 1e-9, 1e-7, 1e-6, 1e-5, 1e-2, 1e-1):
        bent = misfit(exact, amount, 1) if amount else exact
        report = hc.mobility(dataclasses.replace(bent, tolerance=1e-4))
        good = report.closed and report.finite_dof == drawing.truth.dof
        kinds.append((1 if report.tolerance else 0) if good else 2)
    assert kinds == sorted(kinds)
    assert kinds[0] == 0
    assert kinds[3] == 1
    assert kinds[-1] == 2


@pytest.mark.parametrize("gap", [0.01, 0.003])
def test_a_bar_too_long_is_a_contradiction(gap):
    """Two bars that end short of the ground, and a frame with a brace that does not fit."""
    short = bars("short", [0.3, 0.4], 0.7 + gap).mechanism(["last"], tolerance=1e-4)
    report = hc.mobility(short)
    assert not report.closed
    assert report.contradictions
    assert not report.wanted_tolerance
    _, exact = drawn("four_bars_3")
    report = hc.mobility(dataclasses.replace(misfit(exact, gap, 0), tolerance=1e-4))
    assert not report.closed or report.finite_dof == 0


@pytest.mark.parametrize("axis", few(["1e-6 -1 0", "1e-5 -1 1e-5"], ["1e-5 -1 1e-5"]))
def test_one_axis_of_a_file_rounded(tmp_path, axis):
    text = hc.robot_file("four_bar").read_text()
    assert 'xyz="0 -1 0"' in text
    (tmp_path / "arm.urdf").write_text(text.replace('xyz="0 -1 0"', f'xyz="{axis}"', 1))
    sheet = hc.robot_file("four_bar").with_suffix(".yaml").read_text()
    (tmp_path / "arm.yaml").write_text(sheet)
    mech = hc.load(tmp_path / "arm.urdf")
    assert mech.tolerance == 1e-4
    report = hc.mobility(mech)
    assert (report.closed, report.dof, report.actuation) == (True, 1, "fully")
    said = " ".join(str(report).split())
    assert "'pin.z', 'pin.ry' and 'pin.rx' are redundant to within" in said
    assert "The mechanism then has 1 motion." in said
    q, v = hc.assemble(mech)
    assert hc.inverse_dynamics(mech, q, v, [1.0]).certificate.ok
    strict = hc.mobility(hc.load(tmp_path / "arm.urdf", tolerance=0.0))
    assert strict.wanted_tolerance
    (tmp_path / "arm.yaml").write_text(sheet + "\ntolerance: 1.0e-9\n")
    assert hc.load(tmp_path / "arm.urdf").tolerance == 1e-9
    assert hc.load(tmp_path / "arm.urdf", tolerance=1e-6).tolerance == 1e-6
    (tmp_path / "arm.yaml").write_text(sheet + "\ntolerance: 1\n")
    with pytest.raises(hc.LoadError, match="tolerance"):
        hc.load(tmp_path / "arm.urdf")
