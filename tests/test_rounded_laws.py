"""Torques of rounded geometry: those of the exact mechanism, on every path, or a refusal."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from exported import Exported
from inside import fast_path, general_path
from overconstrained import OVERCONSTRAINED, drawn, meant, rounded
from overconstrained_drawing import Drawing, Truth
from support import few

import holoctl as hc

MOVING = [name for name in OVERCONSTRAINED if drawn(name)[1].nu]
EPS = [1e-9, 1e-6, 1e-5]
LAW = ["inverse_dynamics"]
FEW = ["four_bar", "bennett", "sarrus", "cardan_z", "press", "tripteron"]


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


@pytest.mark.parametrize("eps", few(EPS, [1e-6]))
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


@pytest.mark.parametrize("name", few(MOVING, ["bennett"]))
def test_compiled_laws(name):
    _, (mech, q, v, target) = states(name, 1e-6)
    part = hc.partition(mech, q)
    expected = hc.PreparedInverseDynamics(mech, part).torque(q, v, target)
    compiled = hc.compile(mech, partition=part, flags=["-O0"])
    assert compiled.inverse_dynamics(q, v, target) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert compiled.certificate(q, v, target).ok


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "schatz"])
def test_exported_c(name, tmp_path):
    _, (mech, q, v, target) = states(name, 1e-6)
    part = hc.partition(mech, q)
    exported = Exported(mech, tmp_path, partition=part)
    status, u = exported.call("inverse_dynamics", q, v, target)
    assert status == "OK"
    expected = hc.PreparedInverseDynamics(mech, part).torque(q, v, target)
    assert u == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_a_geometry_that_is_too_coarse_for_c_is_told_as_such(tmp_path):
    mech = dataclasses.replace(rounded(drawn("tripteron")[1], 5e-4), tolerance=9e-3)
    with pytest.raises(hc.HoloctlError, match=r"the geometry is rounded by 2e-03.*more digits"):
        Exported(mech, tmp_path, measured="all")


def test_a_geometry_that_barely_determines_the_motion_is_exported(tmp_path):
    """The guard is above one half everywhere, as the motion by the rows is nearly undetermined."""
    mech = dataclasses.replace(rounded(drawn("sarrus")[1], 7.5e-4), tolerance=9e-3)
    exported, prepared = Exported(mech, tmp_path, measured="all"), hc.PreparedInverseDynamics(mech)
    q, v = hc.assemble(mech, v_guess=mech.column_scale)
    target = np.ones(mech.nu)
    status, u = exported.call("inverse_dynamics", q, v, target)
    assert status == "OK"
    assert 0.5 < exported.c.guard < 0.9
    assert np.abs(u).max() > 1e-2
    assert u == pytest.approx(prepared.torque(q, v, target), rel=1e-11)


# -------------------------------------------------------------------------------- what is refused


def test_a_tolerance_that_closures_could_not_be_told_from_is_refused():
    _, exact = drawn("four_bar")
    mech = dataclasses.replace(rounded(exact, 1e-6), tolerance=1e-3)
    part = hc.partition(mech, hc.assemble(mech)[0])
    assert part.tolerance == 1e-3
    for make in (
        lambda: hc.PreparedInverseDynamics(mech, part, closure_limit=1e-3),
        lambda: hc.ComputedTorque(mech, 1.0, 1.0, partition=part, closure_limit=1e-4),
        lambda: hc.compile(mech, LAW, partition=part, flags=["-O0"], closure_limit=1e-3),
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
        (hc.compile(mech, LAW, partition=part, flags=["-O0"]).inverse_dynamics, broken),
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
    assert run.closure.max() < mech.tolerance  # of the rows that were left out
    rows = hc.partition(mech, q).rows
    errors = [
        mech.row_scale * hc.terms(mech, q, v).error for q, v in zip(run.q, run.v, strict=True)
    ]
    assert np.abs(np.array(errors)[:, rows]).max() < 1e-11
    assert np.abs(run.q[-1] - q).max() > 1e-3
    ideal = hc.simulate(exact, lambda t, q, v: [0.5], *hc.assemble(exact), duration=0.2)
    assert np.abs(run.q[-1] - ideal.q[-1]).max() < 1e-4


# ------------------------------------------------------------------- where rows become dependent


def parallelogram(legs):
    """Cranks of 0.3 m that stay parallel; they are in line with the ground at the angle 0."""
    drawing = Drawing("parallelogram", Truth(1, 3 * (legs - 1)), ("foot_0",))
    end = 0.3 * np.array([np.cos(0.5), np.sin(0.5), 0.0])
    feet = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.05], [0.4, -0.35, 0.02]])[:legs]
    for i, foot in enumerate(feet):
        drawing.hinge(f"foot_{i}", "universe", f"crank_{i}", foot)
        drawing.hinge(f"head_{i}", f"crank_{i}", "rod", foot + end)
    return drawing.mechanism()


def at_angle(mech, angle, q0):
    """All cranks at this angle from the line of the ground, and their rates."""
    joints = np.array(mech.coordinate_names)
    sense = np.where(np.char.startswith(joints, "foot"), 1.0, -1.0)
    assert np.abs(q0).max() < 1e-4  # as it is drawn
    return (angle - 0.5) * sense, sense


@pytest.mark.parametrize("eps", few([1e-7, 1e-6], [1e-6]))
def test_rows_are_kept_that_serve_on_a_long_way(eps):
    """A third leg off the line: some rows are singular in line with the ground, all are not."""
    exact = parallelogram(3)
    mech = meant(exact, eps, 1)
    q0, _ = hc.assemble(mech)
    part = hc.partition(mech, q0)
    ideal = hc.PreparedInverseDynamics(exact, hc.partition(exact, hc.assemble(exact)[0]))
    prepared, compiled = (
        hc.PreparedInverseDynamics(mech, part),
        hc.compile(mech, LAW, partition=part, flags=["-O0"]),
    )
    served = 0
    for angle in np.geomspace(2e-4, 0.3, 25):
        q, v = at_angle(mech, angle, q0)
        expected = ideal.torque(q, v, [0.3])
        guess, speed = hc.assemble(mech, q, v)
        for law in (prepared.torque, compiled.inverse_dynamics):
            assert law(guess, speed, [0.3]) == pytest.approx(expected, rel=0.01)
            served += 1
    assert served == 50


def test_no_torque_where_the_geometry_does_not_tell_the_motion(tmp_path):
    """Two legs: in line, paths cross; close to that small errors turn the motion altogether."""
    exact = parallelogram(2)
    mech = meant(exact, 1e-6, 1)
    q0, _ = hc.assemble(mech)
    part = hc.partition(mech, q0)
    laws = [
        hc.PreparedInverseDynamics(mech, part).torque,
        hc.compile(mech, LAW, partition=part, flags=["-O0"]).inverse_dynamics,
        lambda q, v, target: hc.inverse_dynamics(mech, q, v, target, partition=part).u,
        lambda q, v, target: (
            hc.forward_dynamics(mech, q, v, np.zeros(mech.nv), partition=part, method="direct").a
        ),
    ]
    exported = Exported(mech, tmp_path, partition=part)
    for angle in (3e-3, 1e-3):
        q, v = hc.assemble(mech, *at_angle(mech, angle, q0))
        for law in laws:
            with pytest.raises(hc.SingularityError, match=r"rounded|singular"):
                law(q, v, [0.3])
        assert exported.call("inverse_dynamics", q, v, [0.3])[0] != "OK"
        assert hc.PreparedInverseDynamics(exact, hc.partition(exact, [0.0, 0.0, 0.0])).torque(
            *at_angle(exact, angle, q0), [0.3]
        )
    q, v = hc.assemble(mech, *at_angle(mech, 0.2, q0))
    u = [law(q, v, [0.3])[0] for law in laws[:3]]
    assert u == pytest.approx([u[0]] * 3, rel=1e-9)
    assert exported.call("inverse_dynamics", q, v, [0.3])[0] == "OK"


# ----------------------------------------------------------------------- options of laws


@pytest.mark.parametrize("T", few([0.1, 0.01], [0.01]))
def test_stabilisation_does_not_take_rounding_for_an_open_closure(T):
    _, exact = drawn("four_bar")
    closures = [dataclasses.replace(c, t_stab=T) for c in exact.constraints]
    stabilised = dataclasses.replace(exact, constraints=closures)
    mech = meant(stabilised, 1e-6)
    q, v = hc.assemble(mech, None, np.ones(mech.nv))
    part = hc.partition(mech, q)
    expected = hc.inverse_dynamics(mech, q, v, [1.0], partition=part, t_stab=False).u
    result = hc.inverse_dynamics(mech, q, v, [1.0], partition=part)
    assert result.certificate.ok
    assert result.u == pytest.approx(expected, rel=1e-6)
    assert hc.PreparedInverseDynamics(mech, part).torque(q, v, [1.0]) == pytest.approx(result.u)
    compiled = hc.compile(mech, LAW, partition=part, flags=["-O0"])
    assert compiled.inverse_dynamics(q, v, [1.0]) == pytest.approx(result.u)


def test_a_partition_belongs_to_its_tolerance():
    _, exact = drawn("four_bar")
    mech = meant(exact, 1e-6)
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    with pytest.raises(hc.InputError, match="tolerance"):
        hc.inverse_dynamics(dataclasses.replace(mech, tolerance=0.0), q, v, [1.0], partition=part)


def test_more_motors_than_motions_stay_on_the_fast_path():
    _, exact = drawn("four_bar")
    names = exact.coordinate_names
    mech = dataclasses.replace(meant(exact, 1e-6), actuated=names)
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    ideal = dataclasses.replace(exact, actuated=names)
    target = 0.01 * hc.forward_dynamics(ideal, *hc.assemble(ideal), np.zeros(3)).a
    assert np.abs(target).max() > 0.01
    u = hc.inverse_dynamics(mech, q, v, target, partition=part).u
    tick = fast_path(hc.PreparedInverseDynamics(mech, part))
    assert tick(q, v, target, 0.0, None) == pytest.approx(u, abs=1e-6)


def test_locked_rates_that_contradict_each_other_are_refused():
    _, exact = drawn("four_bar")
    for mech in (exact, meant(exact, 1e-6), dataclasses.replace(exact, tolerance=1e-4)):
        q, _ = hc.assemble(mech)
        for rates in ([1.0, -3.0, 2.0], [1.0, 0.0, 1.0]):
            with pytest.raises(hc.AssemblyError):
                hc.assemble(mech, q, rates, locked=mech.coordinate_names[:2])
