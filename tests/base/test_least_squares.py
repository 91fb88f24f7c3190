"""What a pivoted QR answers: the closest fit, and the shortest solution."""

from __future__ import annotations

import numpy as np
import pytest

from holoctl.base.linalg import largest, pivoted_qr


@pytest.mark.parametrize("n", [0, 1, 3, 5])
def test_the_fit_and_the_shortest_solution_are_those_of_lstsq(n):
    rng = np.random.default_rng(n)
    A, b, c = rng.normal(size=(5, n)), rng.normal(size=5), rng.normal(size=n)
    qr = pivoted_qr(A, n)
    np.testing.assert_allclose(qr.fitted(b), np.linalg.lstsq(A, b, rcond=None)[0], atol=1e-12)
    np.testing.assert_allclose(qr.shortest(c), np.linalg.lstsq(A.T, c, rcond=None)[0], atol=1e-12)


def test_the_shortest_solution_of_many_right_hand_sides():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(4, 2)), rng.normal(size=(2, 3))
    X = pivoted_qr(A, 2).shortest(B)
    np.testing.assert_allclose(A.T @ X, B, atol=1e-12)
    np.testing.assert_allclose(X, np.linalg.lstsq(A.T, B, rcond=None)[0], atol=1e-12)


def test_the_fit_leaves_out_what_the_rank_does():
    A = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    x = pivoted_qr(A, 2).fitted(np.array([2.0, 4.0, 6.0]))
    np.testing.assert_allclose(A @ x, [3.0, 3.0, 6.0], atol=1e-12)
    assert x[0] == 0.0  # the pivots are the second and the third column


def test_the_largest_of_nothing_is_nothing():
    assert largest(np.zeros(0)) == 0.0
    assert largest(np.array([1.0, -2.0])) == 2.0
    assert np.isnan(largest(np.array([1.0, np.nan])))
