"""Corners that the other tests do not reach: empty matrices, refusals, results as exceptions."""

from __future__ import annotations

import sys

import numpy as np
import pinocchio as pin
import pytest
from support import closed_states, mechanism, shared_partition

import holoctl as hc
from holoctl.base.linalg import cholesky, lu, null_space_by_svd, orthonormal_columns, pivoted_qr


def test_lu_solves():
    A = np.random.default_rng(0).normal(size=(5, 5))
    b = np.arange(5.0)
    assert A @ lu(A).solve(b) == pytest.approx(b, abs=1e-12)


def test_empty_matrices_are_matrices():
    none = np.zeros((0, 0))
    assert lu(none).condition == cholesky(none).condition == pivoted_qr(none).condition == 1.0
    for solve in (lu(none).solve, cholesky(none).solve):
        assert solve(np.zeros(0)).shape == (0,)
    assert pivoted_qr(none).solve_r1(np.zeros((0, 2))).shape == (0, 2)
    assert orthonormal_columns(np.zeros((3, 0))).shape == (3, 0)
    assert null_space_by_svd(np.zeros((0, 3)), 0)[3] == pytest.approx(np.eye(3))


def test_a_matrix_that_is_not_positive_definite_has_no_condition_number():
    assert cholesky(np.array([[1.0, 2.0], [2.0, 1.0]])).condition == np.inf
    assert cholesky(np.diag([1.0, 0.0])).condition == np.inf
    assert lu(np.zeros((2, 2))).condition == np.inf


def test_raise_if_bad_returns_what_is_good_and_raises_what_is_not():
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    q, v = closed_states("five_bar")[0]
    forward = hc.forward_dynamics(mech, q, v, np.ones(mech.nv), partition=part)
    assert forward.raise_if_bad() is forward
    off = pin.integrate(mech.model, q, 0.01 * np.ones(mech.nv))
    bad = hc.forward_dynamics(mech, off, v, np.ones(mech.nv), partition=part)
    with pytest.raises(hc.InconsistentError, match="not closed") as caught:
        bad.raise_if_bad()
    assert caught.value.residual > 1e-6


def test_time_constants_of_contacts_and_rods_are_checked():
    assert hc.Contact("foot", t_stab=0.1).t_stab == 0.1
    for make in (lambda: hc.Contact("foot", t_stab=0.0), lambda: hc.Rod("a", "b", t_stab=-1.0)):
        with pytest.raises(hc.InputError, match="t_stab"):
            make()


def test_a_custom_scale_must_be_finite():
    with pytest.raises(hc.InputError, match="scale"):
        hc.Custom(lambda q: [q[0]], scale=float("inf"))


def test_independent_coordinates_need_a_basis_with_coordinates():
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    q, v = closed_states("five_bar")[0]
    P = hc.project(mech, q, v, "orthonormal", partition=part)
    with pytest.raises(hc.InputError, match="orthonormal"):
        hc.inverse_dynamics(mech, q, v, [0.0, 0.0], coordinates="independent", projection=P)


@pytest.mark.parametrize("installed", [True, False])
def test_simulation_with_a_progress_bar_or_without_tqdm(installed, monkeypatch, capsys):
    if installed:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    mech = mechanism("five_bar")
    q, v = closed_states("five_bar")[0]
    run = hc.simulate(mech, lambda t, q, v: np.zeros(2), q, v, duration=0.003, progress=True)
    assert len(run.t) == 4
    assert ("ticks" in capsys.readouterr().err) == installed


def test_simulation_refuses_a_negative_noise_and_a_start_that_is_open():
    mech = mechanism("five_bar")
    q, v = closed_states("five_bar")[0]
    idle = lambda t, q, v: np.zeros(2)  # noqa: E731
    with pytest.raises(hc.InputError, match="noise"):
        hc.simulate(mech, idle, q, v, duration=0.01, noise=(-1.0, 0.0))
    with pytest.raises(hc.InconsistentError, match="assemble"):
        hc.simulate(mech, idle, q + 0.1, v, duration=0.01)


@pytest.mark.parametrize("function", ["forward", "inverse", "relaxed"])
def test_external_forces_are_a_pair_or_six_numbers_in_a_row(function):
    """(force, moment), as documented; all forms are the same force."""
    mech, part = mechanism("spatial_arms"), shared_partition("spatial_arms")
    q, v = closed_states("spatial_arms")[0]
    call = {
        "forward": lambda f: hc.forward_dynamics(mech, q, v, np.ones(6), {"b2": f}, partition=part),
        "inverse": lambda f: hc.inverse_dynamics(mech, q, v, np.ones(3), {"b2": f}, partition=part),
        "relaxed": lambda f: hc.inverse_dynamics_relaxed(
            mech, q, v, np.ones(3), f_ext={"b2": f}, partition=part
        ),
    }[function]
    force, moment = np.array([1.0, -2.0, 3.0]), [0.4, 0.5, -0.6]
    wanted = call([*force, *moment]).a, call([*force, *moment]).multipliers
    assert np.abs(wanted[1] - call(np.zeros(6)).multipliers).max() > 1e-3  # guard: it matters
    for pair in ((force, moment), [tuple(force), moment], np.array([force, moment]),
                 pin.Force(force, np.array(moment))):  # fmt: skip
        np.testing.assert_array_equal(call(pair).a, wanted[0])
        np.testing.assert_array_equal(call(pair).multipliers, wanted[1])
    for wrong in ((force,), (force, moment, moment), np.ones((3, 2)), np.ones(5), (force, 1.0)):
        with pytest.raises(hc.InputError, match=r"f_ext\['b2'\].*(pair|real numbers)"):
            call(wrong)
    with pytest.raises(hc.InputError, match=r"f_ext\['b2'\].*finite"):
        call((force, [0.0, np.nan, 0.0]))
