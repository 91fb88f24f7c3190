"""Errors of rotation: of three axes, two, and one."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused

import holoctl as hc
from holoctl.control.tasks.orientation_error import check_rotation, quaternion, turned_by

E = np.eye(3)
SUBSETS = [s for n in (1, 2, 3) for s in permutations(range(3), n)]
BIG = [s for s in SUBSETS if len(s) > 1]


def rotations(count=200, seed=0):
    """Of any angle below half a turn, about any axis."""
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(count, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    return [pin.exp3(a * x) for a, x in zip(rng.uniform(0.0, 3.1, count), axes, strict=True)]


def error(axes, local, D):
    return np.array(turned_by(axes, local)(D.ravel().tolist()))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_three_axes_are_the_logarithm(order):
    for D in rotations():
        for local in (False, True):
            np.testing.assert_allclose(error(order, local, D), pin.log3(D)[list(order)], atol=1e-12)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("axes", SUBSETS)
def test_small_errors_are_angles_about_the_axes(axes, local):
    """e = theta in first order, whatever the other axes: so de/dt = -omega."""
    for theta in 1e-5 * np.random.default_rng(0).normal(size=(20, 3)):
        e = error(axes, local, pin.exp3(theta))
        assert np.abs(e - theta[list(axes)]).max() < 2e-9


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("axes", SUBSETS)
def test_the_error_shrinks_as_the_frame_turns(axes, local):
    """de/dt = -rows of omega at e = 0, for any way that axes which are not named are turned."""
    rng, h = np.random.default_rng(1), 1e-6
    others = [i for i in range(3) if i not in axes]
    for _ in range(20):
        R, omega = pin.exp3(rng.normal(size=3)), rng.normal(size=3)
        turn = 0.0 if len(axes) == 1 else rng.normal()  # about the third axis: it costs nothing
        D = pin.exp3(turn * E[others[0]]) if others else np.eye(3)
        R_ref = R @ D if local else D @ R
        found = []
        for s in (h, -h):
            X = R @ pin.exp3(s * omega) if local else pin.exp3(s * omega) @ R
            found.append(error(axes, local, X.T @ R_ref if local else R_ref @ X.T))
        rate = (found[0] - found[1]) / (2.0 * h)
        np.testing.assert_allclose(found[0] + found[1], 0.0, atol=1e-9)
        np.testing.assert_allclose(rate, -omega[list(axes)], atol=1e-8)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("axes", [s for s in SUBSETS if len(s) == 2])
def test_two_axes_do_not_care_for_the_angle_about_the_third(axes, local):
    """In fixed axes D = twist swing, in those of the frame D = swing twist: a twist of the
    reference changes nothing, one of the frame turns e with it; the swing is the shortest turn."""
    (k,) = {0, 1, 2} - set(axes)
    rng = np.random.default_rng(2)
    for D in rotations(50):
        turn, whole = pin.exp3(rng.uniform(-9.0, 9.0) * E[k]), np.zeros(3)
        e = whole[list(axes)] = error(axes, local, D)
        again = error(axes, local, D @ turn if local else turn @ D)
        np.testing.assert_allclose(again, e, atol=1e-9)
        other = error(axes, local, turn.T @ D if local else D @ turn)
        np.testing.assert_allclose(other, (turn.T @ whole)[list(axes)], atol=1e-9)
        assert np.linalg.norm(e) == pytest.approx(np.arccos(D[k, k]), abs=1e-7)
        swing = pin.exp3(whole)
        twist = swing.T @ D if local else D @ swing.T
        np.testing.assert_allclose(twist @ E[k], E[k], atol=1e-12)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("i", range(3))
def test_one_axis_is_the_twist_about_it(i, local):
    """A turn about the axis is found whole; with a swing from it besides, the same."""
    rng = np.random.default_rng(3)
    for angle in np.linspace(-3.1, 3.1, 21):
        swing = rng.normal(size=3)
        swing[i] = 0.0
        swing *= rng.uniform(0.0, 2.5) / np.linalg.norm(swing)
        twist, swung = pin.exp3(angle * E[i]), pin.exp3(swing)
        for D in (twist @ swung, swung @ twist):
            assert error([i], local, D)[0] == pytest.approx(angle, abs=1e-12)


def test_half_a_turn_is_half_a_turn():
    """There are two ways back; either is one of length pi, about the right axis."""
    for D in (np.diag([1.0, -1.0, -1.0]), np.diag([-1.0, 1.0, -1.0]), np.diag([-1.0, -1.0, 1.0])):
        i = int(np.argmax(D.diagonal()))
        for local in (False, True):
            e = error((0, 1, 2), local, D)
            assert np.linalg.norm(e) == pytest.approx(np.pi, abs=1e-14)
            assert abs(e[i]) == pytest.approx(np.pi, abs=1e-14)
            assert abs(error((i,), local, D)[0]) == pytest.approx(np.pi, abs=1e-14)
            for axes in ((0, 1), (1, 2), (0, 2)):
                (k,) = {0, 1, 2} - set(axes)
                n = np.linalg.norm(error(axes, local, D))
                assert n == pytest.approx(0.0 if k == i else np.pi, abs=1e-14)


def test_close_to_half_a_turn_it_is_exact_still():
    for angle in np.pi - np.array([1e-3, 1e-6, 1e-9, 1e-12]):
        for x in rotations(10):
            axis = x[:, 0]
            e = error((0, 1, 2), False, pin.exp3(angle * axis))
            assert np.linalg.norm(e) == pytest.approx(angle, abs=1e-9)
            assert abs(e @ axis) == pytest.approx(angle, abs=1e-7)


def test_quaternions_are_those_of_pinocchio():
    for D in [*rotations(), np.eye(3), np.diag([1.0, -1.0, -1.0])]:
        found = quaternion(D.ravel().tolist())
        size = np.linalg.norm(found)
        assert 2.0 - 1e-14 <= size <= 4.0 + 1e-14
        w, x, y, z = np.array(found) / size
        assert w >= 0.0
        R = pin.Quaternion(w, x, y, z).toRotationMatrix()
        np.testing.assert_allclose(R, D, atol=1e-14)


@pytest.mark.parametrize(
    "R",
    [np.zeros((3, 3)), 2.0 * E, np.diag([1.0, 1.0, -1.0]), E + 1e-3, E * np.nan, np.inf * E,
     np.diag([2.0, 0.5, 1.0]), np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])],
)  # fmt: skip
def test_what_is_no_rotation_is_refused(R):
    refused(lambda: check_rotation(R.ravel().tolist()), hc.InputError, "rotation", "determinant")
    bound = hc.FrameTask("tip_right", "rx").bind(hc.load(hc.robot_file("five_bar")))
    refused(lambda: bound.wanted(pin.SE3(R, np.zeros(3))), hc.InputError, "rotation")


def test_a_rotation_that_is_off_by_little_is_told_by_how_much():
    for D in rotations(5):
        R = D.astype(np.float32).astype(float)
        refused(lambda R=R: check_rotation(R.ravel().tolist()), hc.InputError, "error", "e-0")
