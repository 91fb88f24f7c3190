"""Torques of rounded geometry: those of the exact mechanism, on every path, or a refusal."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from exported import Exported
from inside import general_path
from overconstrained import OVERCONSTRAINED, drawn, few, meant, rounded

import holoctl as hc

MOVING = [name for name in OVERCONSTRAINED if drawn(name)[1].nu]
EPS = [1e-9, 1e-6, 1e-5]
FEW = ["four_bar", "bennett", "sarrus", "cardan_z", "planar_3rrr", "press", "altmann", "tripteron"]


def states(name, eps, seed=0):
    """The exact mechanism and the rounded one, each at its own closed and moving state."""
    _, exact = drawn(name)
    mech = meant(exact, eps, seed)
    rng = np.random.default_rng(3)
    speed, target = rng.normal(size=exact.nv) * exact.column_scale, rng.normal(size=exact.nu)
    q0, _ = hc.assemble(exact)
    return [(m, *hc.assemble(m, q0, speed), target) for m in (exact, mech)]


def condition(part, result):
    """What errors are multiplied by: the rows, then the motors."""
    return max(1.0, part.condition) * max(1.0, result.certificate.condition)


@pytest.mark.parametrize("eps", EPS)
@pytest.mark.parametrize("name", few(MOVING, FEW))
def test_torques_accelerations_and_certificates(name, eps):
    (exact, q0, v0, target), (mech, q, v, _) = states(name, eps)
    part0, part = hc.partition(exact, q0), hc.partition(mech, q)
    expected = hc.inverse_dynamics(exact, q0, v0, target, partition=part0, inconsistent="project")
    found = hc.inverse_dynamics(mech, q, v, target, partition=part, inconsistent="project")
    size = max(1.0, np.abs(expected.u).max())
    assert np.abs(expected.u).max() > 1e-3
    assert np.abs(found.u - expected.u).max() <= 100 * eps * condition(part0, expected) * size
    assert found.certificate.ok
    assert found.certificate.closure <= 1e-12
    assert found.certificate.redundant <= 50 * eps
    if part.tolerance:
        assert "rounded" in str(found.certificate)
        assert found.certificate.tolerance == mech.tolerance
    for method in ("projection", "direct", "null_space", "range_space"):
        forward = hc.forward_dynamics(mech, q, v, mech.B @ found.u, partition=part, method=method)
        assert forward.a == pytest.approx(found.a, rel=1e-8, abs=1e-8)
        assert forward.certificate.ok
    # multipliers: of least norm in both, so of the same size, and the same where they are unique
    lam = np.abs(found.multipliers - expected.multipliers) * mech.row_scale
    assert lam.max() <= 1e3 * eps * condition(part0, expected) * (
        1.0 + np.abs(expected.multipliers / mech.row_scale).max()
    )


@pytest.mark.parametrize("name", few(MOVING, FEW))
def test_the_tick_is_the_general_path(name):
    _, (mech, q, v, target) = states(name, 1e-6)
    prepared = hc.PreparedInverseDynamics(mech, hc.partition(mech, q))
    u = prepared.torque(q, v, target)
    assert u == pytest.approx(general_path(prepared, q, v, target, 0.0), rel=1e-9, abs=1e-9)
    forward = hc.PreparedForwardDynamics(mech, prepared.partition)
    a = forward.acceleration(q, v, mech.B @ u)
    assert mech.B.T @ a == pytest.approx(target, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", few(MOVING, ["four_bar", "bennett"]))
def test_compiled_laws(name):
    _, (mech, q, v, target) = states(name, 1e-6)
    part = hc.partition(mech, q)
    expected = hc.PreparedInverseDynamics(mech, part).torque(q, v, target)
    compiled = hc.compile(mech, partition=part)
    assert compiled.inverse_dynamics(q, v, target) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert compiled.certificate(q, v, target).ok


@pytest.mark.parametrize("name", ["four_bar", pytest.param("schatz", marks=pytest.mark.slow)])
def test_exported_c(name, tmp_path):
    _, (mech, q, v, target) = states(name, 1e-6)
    part = hc.partition(mech, q)
    exported = Exported(mech, tmp_path, partition=part)
    status, u = exported.call("inverse_dynamics", q, v, target)
    assert status == "OK"
    expected = hc.PreparedInverseDynamics(mech, part).torque(q, v, target)
    assert u == pytest.approx(expected, rel=1e-9, abs=1e-9)


# -------------------------------------------------------------------------------- what is refused


def test_a_tolerance_that_closures_could_not_be_told_from_is_refused():
    _, exact = drawn("four_bar")
    mech = dataclasses.replace(rounded(exact, 1e-6), tolerance=1e-3)
    part = hc.partition(mech, hc.assemble(mech)[0])
    assert part.tolerance == 1e-3
    for make in (
        lambda: hc.PreparedInverseDynamics(mech, part, closure_limit=1e-3),
        lambda: hc.ComputedTorque(mech, 1.0, 1.0, partition=part, closure_limit=1e-4),
        lambda: hc.compile(mech, partition=part, closure_limit=1e-3),
    ):
        with pytest.raises(hc.InputError, match="closure_limit"):
            make()
    hc.PreparedInverseDynamics(mech, part, closure_limit=1.1e-3)
    hc.PreparedInverseDynamics(mech, part, closure_limit=None)


def test_rows_left_out_are_watched():
    """A part that is not as meant: the state that the sensors give opens a redundant row."""
    _, exact = drawn("four_bar")
    mech = dataclasses.replace(rounded(exact, 1e-7), tolerance=1e-5)
    q, v = hc.assemble(mech, None, np.ones(mech.nv))
    part = hc.partition(mech, q)
    bent = dataclasses.replace(rounded(exact, 1e-4), tolerance=1e-5)
    x, w = hc.assemble(dataclasses.replace(bent, tolerance=5e-3), q, v)
    result = hc.inverse_dynamics(bent, x, w, [1.0], partition=part)
    assert "redundant" in result.certificate.failures
    with pytest.raises(hc.InconsistentError, match="redundant"):
        result.raise_if_bad()
    torn = dataclasses.replace(rounded(exact, 5e-2), tolerance=1e-5)
    broken = np.add(q, [0.0, 0.05, 0.0])
    for law, state in (
        (hc.PreparedInverseDynamics(torn, part).torque, q),
        (hc.PreparedInverseDynamics(mech, part).torque, broken),
        (hc.compile(mech, partition=part).inverse_dynamics, broken),
    ):
        with pytest.raises(hc.InconsistentError, match="closure_limit"):
            law(state, v, [1.0])


def test_methods_that_take_all_rows_are_refused_or_not_used():
    _, exact = drawn("press")
    mech = dataclasses.replace(rounded(exact, 1e-6), tolerance=1e-4)
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    assert part.tolerance > 0.0
    with pytest.raises(hc.InputError, match="rounded"):
        hc.forward_dynamics(mech, q, v, np.zeros(mech.nv), partition=part, method="proximal")


def test_a_simulation_keeps_to_the_kept_rows_and_watches_the_others():
    _, exact = drawn("four_bar")
    mech = dataclasses.replace(rounded(exact, 1e-6), tolerance=1e-4)
    q, v = hc.assemble(mech)
    run = hc.simulate(mech, lambda t, q, v: [0.5], q, v, duration=0.2)
    assert run.closure.max() < 1e-8
    assert np.abs(run.q[-1] - q).max() > 1e-3
    ideal = hc.simulate(exact, lambda t, q, v: [0.5], *hc.assemble(exact), duration=0.2)
    assert np.abs(run.q[-1] - ideal.q[-1]).max() < 1e-4
