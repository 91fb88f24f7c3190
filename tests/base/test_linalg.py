"""Factorisations at their corners: empty, singular, not positive definite."""

from __future__ import annotations

import numpy as np
import pytest

from holoctl.base.linalg import (
    cholesky,
    lu,
    null_space_by_svd,
    orthonormal_columns,
    pivoted_qr,
    turned_over,
)


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


def test_two_zeros_of_a_determinant_at_once_are_seen():
    K = np.random.default_rng(0).normal(size=(4, 4))
    both = np.diag([1.0, -1.0, -1.0, 1.0])
    assert np.linalg.det(both) > 0.0
    assert turned_over(both)
    assert turned_over(np.linalg.solve(K, K @ both))
    assert not turned_over(np.eye(4))
    assert not turned_over(np.diag([5.0, 1.0, 0.1, 1.0]))
    assert turned_over(np.full((4, 4), np.inf))
