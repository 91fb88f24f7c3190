"""The doctor and the partition on the zoo of overconstrained mechanisms, drawn exactly."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from examined import walk
from overconstrained import (
    EVERY,
    GENERIC,
    OVERCONSTRAINED,
    SINGULAR,
    drawn,
    in_digits,
    misfit,
    rounded,
    size,
)
from support import few, rows
from zoo import ZOO

import holoctl as hc

REGULAR = OVERCONSTRAINED | GENERIC
FEW = ("four_bar", "bennett", "sarrus", "jansen", "delta_hinged", "rssr")


def scaled_errors(mech, q):
    return mech.row_scale * rows(mech, q, np.zeros(mech.nv)).error


def singular_values(mech, q):
    """Those of the scaled rows at q, by numpy."""
    G = mech.row_scale[:, None] * rows(mech, q, np.zeros(mech.nv)).jacobian * mech.column_scale
    return np.linalg.svd(G, compute_uv=False)


def rank_by_svd(mech, q):
    return int(np.count_nonzero(singular_values(mech, q) > 1e-8))


def check_counts(mech, truth):
    report = hc.mobility(mech)
    assert report.closed
    assert not report.opposite
    assert not report.uncertain
    assert report.far == []
    assert report.finite_dof == truth.dof
    assert report.dof == (truth.dof if truth.here is None else truth.here)
    assert len(report.redundant) == truth.redundant
    assert len(report.idle_motions) == truth.idle
    assert report.gruebler == truth.dof - truth.redundant
    assert len(report.latent) == truth.shaky
    return report


# ------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize(
    ("scale", "askew"),
    [(1.0, True), *(pytest.param(*x, marks=pytest.mark.slow) for x in ((1.0, False), (1e3, True)))],
    ids=["askew", "m", "mm"],
)
@pytest.mark.parametrize("name", few(REGULAR, [*FEW, *list(REGULAR)[::6]]))
def test_the_doctor_knows_what_moves_and_what_repeats(name, scale, askew):
    drawing = REGULAR[name](scale=scale)
    report = check_counts(drawing.mechanism(askew=askew), drawing.truth)
    assert report.singular == []
    assert report.actuation == "fully"
    assert report.motors == list(drawing.motors)
    assert len(drawing.motors) == drawing.truth.dof - drawing.truth.idle
    assert (drawing.truth.redundant > 0) == (name in OVERCONSTRAINED)


@pytest.mark.parametrize("askew", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", few(SINGULAR, set(SINGULAR) - {"wren_6"}))
def test_the_doctor_knows_what_is_singular(name, askew):
    drawing = SINGULAR[name]()
    report = check_counts(drawing.mechanism(askew=askew), drawing.truth)
    assert report.singular == (["shaky"] if drawing.truth.shaky else ["bifurcation"])


@pytest.mark.parametrize("name", EVERY)
def test_what_is_drawn_is_closed_and_has_the_rank_of_the_truth(name):
    drawing, mech = drawn(name)
    truth = drawing.truth
    q = mech.reference
    assert np.abs(scaled_errors(mech, q)).max(initial=0.0) < 1e-14
    here = truth.dof if truth.here is None else truth.here
    assert mech.nv - rank_by_svd(mech, q) == here


@pytest.mark.parametrize("name", REGULAR)
def test_the_partition_has_that_rank_and_it_stays_along_a_walk(name):
    drawing, mech = drawn(name)
    places = walk(mech, mech.reference, 3)
    assert len(places) == 3
    for q in places:
        assert hc.partition(mech, q).rank == mech.nv - drawing.truth.dof
        assert rank_by_svd(mech, q) == mech.nv - drawing.truth.dof


@pytest.mark.parametrize("name", [n for n in REGULAR if not drawn(n)[0].truth.idle])
def test_motors_hold_it_against_gravity(name):
    drawing, mech = drawn(name)
    rest = np.zeros(mech.nv)
    held = hc.inverse_dynamics(mech, mech.reference, rest, np.zeros(drawing.truth.dof))
    assert held.certificate.ok
    assert np.abs(held.u).min() > 1e-4


# ------------------------------------------------------------------------------ rounded and bent


@pytest.mark.parametrize("name", EVERY)
def test_rounding_opens_the_loops_by_so_much(name):
    _, mech = drawn(name)
    same = rounded(mech, 0.0)
    q = mech.reference
    assert np.abs(scaled_errors(same, q)).max() < 1e-14
    for eps in (1e-9, 1e-5):
        off = np.abs(scaled_errors(rounded(mech, eps, 1), q)).max()
        assert 0.1 * eps < off < 100.0 * eps
        assert not np.array_equal(
            scaled_errors(rounded(mech, eps, 1), q), scaled_errors(rounded(mech, eps, 2), q)
        )


@pytest.mark.parametrize("name", EVERY)
def test_six_decimals_open_the_loops_in_the_sixth(name):
    mech = EVERY[name]().mechanism(askew=True)
    errors = [np.abs(scaled_errors(in_digits(mech, n), mech.reference)).max() for n in (6, 12)]
    assert 1e-7 < errors[0] < 2e-5
    assert 1e-13 < errors[1] < 2e-11


@pytest.mark.parametrize("name", EVERY)
def test_what_rounding_adds_to_the_rank_is_small(name):
    """Singular values that are lost become eps; those that count stay where they are."""
    drawing, mech = drawn(name)
    truth, eps = drawing.truth, 1e-7
    rank = mech.nv - (truth.dof if truth.here is None else truth.here)
    for seed in range(3):
        sizes = singular_values(rounded(mech, eps, seed), mech.reference)
        assert sizes[:rank].min(initial=1.0) > 0.04
        assert sizes[rank:].max(initial=0.0) < 6.0 * eps


@pytest.mark.parametrize("name", ZOO)
def test_rounding_takes_any_mechanism(name):
    mech = ZOO[name]()
    same, off = rounded(mech, 0.0), rounded(mech, 1e-6, 3)
    assert off.row_names == same.row_names == mech.row_names
    assert off.coordinate_names == mech.coordinate_names
    v = np.zeros(mech.nv)
    exact = rows(mech, mech.reference, v).error
    assert rows(same, mech.reference, v).error == pytest.approx(exact, abs=1e-12)
    tree = [
        (off.model.jointPlacements[j], mech.model.jointPlacements[j])
        for j in range(1, mech.model.njoints)
        if not (j == 1 and mech.model.joints[1].shortname() == "JointModelFreeFlyer")
    ]
    for found, given in tree:
        step = np.array(pin.log6(given.inverse() * found))
        assert np.abs(step).min() > 0.0
        assert np.linalg.norm(step[3:]) < 2.001e-6 * (1.0 + 2.0 * size(mech))


@pytest.mark.parametrize("name", few(OVERCONSTRAINED, [*FEW, *list(OVERCONSTRAINED)[::6]]))
def test_a_misfit_takes_motion_away(name):
    """No closed configuration close by, or a rigid one, or one that moves less."""
    drawing, mech = drawn(name)
    for seed in range(3):
        bent = misfit(mech, 1e-2, seed)
        pairs = zip(bent.constraints, mech.constraints, strict=True)
        assert sum(c is not d for c, d in pairs) == 1
        try:
            q, _ = hc.assemble(bent, restarts=0)
        except hc.AssemblyError:
            continue
        assert bent.nv - rank_by_svd(bent, q) < drawing.truth.dof
