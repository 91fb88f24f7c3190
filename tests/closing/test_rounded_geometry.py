"""Rounded geometry: what closes, which rows decide, and what stays as it was."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from overconstrained import GENERIC, OVERCONSTRAINED, drawn, in_digits, meant, misfit
from support import few, mechanism, rows
from zoo import ZOO

import holoctl as hc

ROUNDINGS = [1e-11, 1e-9, 1e-7, 1e-6, 1e-5]
TYPICAL = [1e-6, *(pytest.param(e, marks=pytest.mark.slow) for e in ROUNDINGS if e != 1e-6)]
SEEDS = [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2, 3, 4))]
FEW = ["bennett", "sarrus", "schatz", "four_bar", "planar_3rrr"]


def scaled_error(mech, q, t=0.0):
    return np.abs(mech.row_scale * rows(mech, q, np.zeros(mech.nv), t).error)


def distance(mech, q, x):
    return np.abs(pin.difference(mech.model, q, x) / mech.column_scale).max(initial=0.0)


def moves_nearby(mech):
    """Whether it closes near its reference and can move there."""
    try:
        q, _ = hc.assemble(mech, restarts=0)
        return distance(mech, mech.reference, q) < 0.1 and hc.partition(mech, q).rank < mech.nv
    except hc.HoloctlError:
        return False


# --------------------------------------------------------------------------- what is rounded


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("eps", TYPICAL)
@pytest.mark.parametrize("name", few(OVERCONSTRAINED, [*FEW, *list(OVERCONSTRAINED)[::8]]))
def test_what_is_redundant_stays_redundant_when_it_is_rounded(name, eps, seed):
    drawing, exact = drawn(name)
    mech = meant(exact, eps, seed)
    q, v = hc.assemble(mech)
    assert not v.any()
    part = hc.partition(mech, q)
    assert part.rank == mech.row_scale.size - drawing.truth.redundant
    assert not part.uncertain
    assert part.actuation_rank == len(drawing.motors)
    error = scaled_error(mech, q)
    assert error[part.rows].max(initial=0.0) <= 1e-12  # the kept rows close exactly
    assert 1e-3 * eps < error.max() < 50 * eps  # and the others as far as they can
    assert distance(mech, hc.assemble(exact)[0], q) < 100 * eps
    assert part.tolerance == mech.tolerance or error.max() < 1e-9


@pytest.mark.parametrize("name", GENERIC)
def test_what_is_not_overconstrained_closes_exactly_when_it_is_rounded(name):
    _, exact = drawn(name)
    for eps in ROUNDINGS:
        mech = meant(exact, eps)
        q, _ = hc.assemble(mech)
        part = hc.partition(mech, q)
        assert part.rank == mech.row_scale.size
        assert part.tolerance == 0.0
        assert scaled_error(mech, q).max() <= 1e-12


@pytest.mark.parametrize("digits", few([4, 5, 6, 8], [4, 6]))
@pytest.mark.parametrize("name", ["four_bar", "bennett", "sarrus", "jansen", "cardan_z"])
def test_files_with_so_many_digits(name, digits):
    drawing, _ = drawn(name)
    askew = drawing.mechanism(askew=True)
    mech = dataclasses.replace(in_digits(askew, digits), tolerance=min(100 * 10.0**-digits, 5e-3))
    assert not moves_nearby(dataclasses.replace(mech, tolerance=0.0))
    part = hc.partition(mech, hc.assemble(mech)[0])
    assert part.rank == mech.row_scale.size - drawing.truth.redundant


@pytest.mark.parametrize("name", few(["bennett", "four_bar", "schatz", "delta_hinged"], FEW))
def test_guesses_from_afar_lead_to_the_posture_of_the_exact_mechanism(name):
    _, exact = drawn(name)
    mech, rng = meant(exact, 1e-6), np.random.default_rng(5)
    q0, _ = hc.assemble(exact)
    for _ in range(5):
        away = 0.3 * rng.uniform(-1.0, 1.0, mech.nv) * mech.column_scale
        guess = pin.integrate(mech.model, q0, away)
        expected, _ = hc.assemble(exact, guess)
        assert distance(mech, expected, q0) > 1e-3
        assert distance(mech, expected, hc.assemble(mech, guess)[0]) < 1e3 * 1e-6


@pytest.mark.parametrize("name", few(ZOO))
def test_locked_joints_weights_time_and_velocities(name):
    """On the other zoo: floating bases, rods, contacts, couplings, charts, what depends on t."""
    exact, eps = mechanism(name), 1e-7
    mech, rng = meant(exact, eps), np.random.default_rng(1)
    q0, _ = hc.assemble(exact)
    part = hc.partition(exact, q0)
    guess = pin.integrate(mech.model, q0, 0.1 * rng.normal(size=mech.nv) * mech.column_scale)
    weights = rng.uniform(0.5, 10.0, mech.nv)
    speed = rng.normal(size=mech.nv) * mech.column_scale
    locked = [n for n in np.array(mech.coordinate_names)[part.independent] if "[" not in n][:2]
    for options in ({}, {"weights": weights}, {"t": 0.3}):
        (q, v), (x, w) = (hc.assemble(m, guess, speed, **options) for m in (exact, mech))
        assert distance(mech, q, x) < 1e4 * eps
        assert w == pytest.approx(v, rel=1e4 * eps, abs=1e5 * eps)
        assert hc.partition(mech, x, t=options.get("t", 0.0)).rank == part.rank
    q, x = (hc.assemble(m, q0, locked=locked)[0] for m in (exact, mech))
    assert distance(mech, q, x) < 1e3 * eps


# ----------------------------------------------------------------------------- what is exact


@pytest.mark.parametrize("name", [*few(ZOO), *few(OVERCONSTRAINED, FEW)])
def test_exact_geometry_gives_exactly_what_it_gives_without_a_tolerance(name):
    exact = mechanism(name) if name in ZOO else drawn(name)[1]
    for tolerance in (1e-9, 1e-4):
        mech = dataclasses.replace(exact, tolerance=tolerance)
        (q, v), (x, w) = hc.assemble(exact), hc.assemble(mech)
        assert np.array_equal(q, x)
        assert np.array_equal(v, w)
        one, other = hc.partition(exact, q), hc.partition(mech, x)
        assert other.tolerance == 0.0
        for field in dataclasses.fields(one):
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name


@pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-4, 1e-6])
def test_near_a_singular_configuration_exact_geometry_is_exact(angle):
    """Close to a dead point an honest singular value is below the tolerance."""
    _, exact = drawn("four_bar")
    q0, _ = hc.assemble(exact)
    mech = dataclasses.replace(exact, tolerance=1e-4)
    names, closed = mech.coordinate_names, 0
    for target in np.linspace(-np.pi, np.pi, 7):
        guess = q0.copy()
        guess[0] = target + angle
        try:
            q, _ = hc.assemble(exact, guess, locked=[names[0]], restarts=0)
        except hc.AssemblyError:
            continue
        assert np.array_equal(q, hc.assemble(mech, guess, locked=[names[0]], restarts=0)[0])
        closed += 1
    assert closed > 1


@pytest.mark.parametrize("locked", [["crank", "rocker"], ["crank", "coupler", "rocker"]])
def test_locks_that_contradict_each_other_are_refused_whatever_the_tolerance(locked):
    """What a lock makes superfluous does not repeat other rows."""
    mech = hc.load(hc.robot_file("four_bar"))
    assert mech.tolerance > 0.0
    q, _ = hc.assemble(mech)
    assert np.array_equal(q, hc.assemble(mech, q, locked=locked)[0])
    for off in (1e-7, 5e-5):
        with pytest.raises(hc.AssemblyError):
            hc.assemble(mech, np.add(q, [off, 0.0, 0.0]), locked=locked, restarts=0)


# -------------------------------------------------------------------------------- real misfits


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("amount", [1e-1, 1e-2])
@pytest.mark.parametrize("name", few(OVERCONSTRAINED, FEW))
def test_a_real_misfit_is_not_taken_for_rounding(name, amount, seed):
    drawing, exact = drawn(name)
    mech = dataclasses.replace(misfit(exact, amount, seed), tolerance=1e-4)
    try:
        q, _ = hc.assemble(mech, restarts=2, max_iter=50)
        rank = hc.partition(mech, q).rank
    except hc.HoloctlError:
        return
    assert rank > mech.row_scale.size - drawing.truth.redundant  # elsewhere, and not as meant


# ---------------------------------------------------------------------------------- the door


@pytest.mark.parametrize("value", [-1e-6, 1e-13, 1e-2, 1.0, np.nan, np.inf, "1e-4", None, True])
def test_a_tolerance_must_be_a_small_number(value):
    exact = mechanism("four_bar_weldless")
    with pytest.raises(hc.InputError, match="tolerance"):
        dataclasses.replace(exact, tolerance=value)


def test_the_tolerance_is_told_and_kept():
    mech = dataclasses.replace(mechanism("bennett"), tolerance=1e-5)
    assert mech.tolerance == mech.with_enabled().tolerance == 1e-5
    assert mech.with_model(mech.model).tolerance == 1e-5
    names = mech.constraint_names
    assert mech.without(*names).tolerance == 1e-5
    linkage = drawn("sarrus")[0].linkage()
    assert linkage.mechanism(tolerance=1e-7).tolerance == 1e-7
    assert linkage.mechanism().tolerance == 0.0
