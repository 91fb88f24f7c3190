"""Closures: where their rows vanish, in which order and with which sign."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from compare import ROUNDING, closed_state, rows_at, unlike
from zoo import ZOO, floating_leg

import holoctl as hc

FREEDOM = {
    "spherical": ["rx", "ry", "rz"],
    "revolute": ["rz"],
    "universal": ["rx", "ry"],
    "cylindrical": ["z", "rz"],
    "prismatic": ["z"],
    "planar": ["x", "y", "rz"],
    "weld": [],
}
"""What each joint leaves free of the motion of b seen from a."""


SIX = ("x", "y", "z", "rx", "ry", "rz")


def shifted(axis, by):
    """The placement that moves by `by` along, or turns by it about, an axis."""
    motion = np.zeros(6)
    motion[SIX.index(axis)] = by
    return pin.exp6(pin.Motion(motion))


def tied(kind, seen=None, seed=0):
    """Rows between two frames on the spatial arms, b placed at `seen` from a, and the state.

    `kind` is a joint, or an axis subset.
    """
    arms = ZOO["spatial_arms"]()
    rng = np.random.default_rng(seed)
    q, v = rng.normal(size=(2, 6))
    data = arms.model.createData()
    pin.forwardKinematics(arms.model, data, q)
    Ma = pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3))
    Mb = data.oMi[6].actInv(data.oMi[3] * Ma * (seen or pin.SE3.Identity()))
    which = {"joint": kind} if kind in FREEDOM else {"axes": kind}
    loop = hc.Closure(("a3", Ma), ("b3", Mb), name="tie", **which)
    mech = hc.Mechanism(arms.model, [loop])
    return mech, q, v


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", [*FREEDOM, "x", "rz", "x rz", "rx ry", "ry z rz", "rx ry rz"])
def test_rows_vanish_for_coincident_frames(kind, seed):
    mech, q, v = tied(kind, seed=seed)
    error, _, jacobian, _ = rows_at(mech, q, v)
    count = 6 - len(FREEDOM[kind]) if kind in FREEDOM else len(kind.split())
    assert error.shape == (count,)
    assert np.abs(error).max() < 1e-13
    assert np.linalg.matrix_rank(jacobian, tol=1e-6) == count


@pytest.mark.parametrize(
    ("joint", "axis"), [(joint, axis) for joint, free in FREEDOM.items() for axis in free]
)
def test_rows_stay_zero_along_the_freedom_of_the_joint(joint, axis):
    for by in (0.4, -1.1):
        mech, q, v = tied(joint, shifted(axis, by))
        assert np.abs(rows_at(mech, q, v)[0]).max() < 1e-13


@pytest.mark.parametrize(
    ("joint", "axis"),
    [(joint, axis) for joint, free in FREEDOM.items() for axis in SIX if axis not in free],
)
def test_rows_notice_every_other_motion(joint, axis):
    """By the shift itself: lengths in m, small angles in rad."""
    for by in (1e-4, -1e-4):
        mech, q, v = tied(joint, shifted(axis, by))
        assert abs(np.abs(rows_at(mech, q, v)[0]).max() - 1e-4) < 1e-9


SUBSETS = [
    "x y z rx ry rz",
    "rz z ry y rx x",
    "z x",
    "rx ry",
    "rz rx",
    "y rz ry",
    "y rz",
    "rx",
    "ry",
]


@pytest.mark.parametrize("axis", SIX)
@pytest.mark.parametrize("axes", SUBSETS)
def test_axis_subsets_have_a_row_for_each_axis_in_the_order_written(axes, axis):
    """The row of the axis that was moved shows the size of the move; the others are zero."""
    for by in (1e-5, -1e-5):
        mech, q, v = tied(axes, shifted(axis, by))
        expected = [1e-5 if word == axis else 0.0 for word in axes.split()]
        assert np.abs(np.abs(rows_at(mech, q, v)[0]) - expected).max() < 1e-9


@pytest.mark.parametrize("axes", [*SUBSETS, "rz"])
def test_the_error_of_an_axis_has_the_sign_of_b_seen_from_a(axes):
    """Lengths and orientations grow with the motion; other angular rows are rad up to sign."""
    words = axes.split()
    oriented = sum(word[0] == "r" for word in words) == 3
    for word in words:
        mech, q, v = tied(axes, shifted(word, 1e-5))
        error = rows_at(mech, q, v)[0][words.index(word)]
        signed = word in "xyz" or oriented
        assert abs((error if signed else abs(error)) - 1e-5) < 1e-9, word


@pytest.mark.parametrize("joint", FREEDOM)
def test_the_rows_of_a_joint_are_named_after_what_they_fix(joint):
    fixed = [axis for axis in SIX if axis not in FREEDOM[joint]]
    for axis in fixed:
        mech, q, v = tied(joint, shifted(axis, 1e-5))
        labels = [name.partition(".")[2] for name in mech.row_names]
        assert sorted(labels) == sorted(fixed)
        error = rows_at(mech, q, v)[0][labels.index(axis)]
        signed = axis in "xyz" or joint in ("weld", "prismatic")
        assert abs((error if signed else abs(error)) - 1e-5) < 1e-9, axis


def test_the_rows_of_one_axis_subset_are_a_permutation_of_another():
    (mech, q, v), (other, _, _) = tied("x z rx ry rz", seed=3), tied("rz x ry z rx", seed=3)
    assert mech.row_names == ("tie.x", "tie.z", "tie.rx", "tie.ry", "tie.rz")
    assert other.row_names == ("tie.rz", "tie.x", "tie.ry", "tie.z", "tie.rx")
    where = [mech.row_names.index(label) for label in other.row_names]
    q = q + 0.1
    for x, y in zip(rows_at(mech, q, v), rows_at(other, q, v), strict=True):
        assert unlike(x[where], y) < ROUNDING


@pytest.mark.parametrize("name", ZOO)
def test_rows_follow_the_order_of_the_constraints(name):
    """Rows of several constraints are those of each alone, one after the other."""
    mech = ZOO[name]()
    extra = hc.Closure("universe", mech.model.names[-1], axes="rz z", name="extra")
    constraints = (extra, *mech.constraints[::-1])
    both = dataclasses.replace(mech, constraints=constraints)
    alone = [dataclasses.replace(mech, constraints=[c]) for c in constraints]
    q, v = closed_state(mech)
    q = pin.integrate(mech.model, q, 0.1 * np.ones(mech.nv))
    together = rows_at(both, q, v)
    apart = [np.concatenate(x) for x in zip(*(rows_at(m, q, v) for m in alone), strict=True)]
    for x, y in zip(together, apart, strict=True):
        assert unlike(x, y) < ROUNDING
    assert both.row_names == sum((m.row_names for m in alone), ())


def test_swapping_the_frames_of_a_spherical_closure_keeps_its_length():
    one, q, v = tied("spherical", pin.SE3.Random())
    c = one.constraints[0]
    two = dataclasses.replace(one, constraints=[dataclasses.replace(c, a=c.b, b=c.a)])
    x, y = rows_at(one, q, v)[0], rows_at(two, q, v)[0]
    assert unlike(np.linalg.norm(x), np.linalg.norm(y)) < ROUNDING
    assert np.linalg.norm(x) > 0.1


def test_a_closure_to_the_world_holds_a_frame_still():
    mech = floating_leg()
    q, v = closed_state(mech)
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    base = data.oMi[1].copy()
    held = hc.Mechanism(mech.model, [hc.Closure(("universe", base), "base", joint="weld")])
    error, _, jacobian, _ = rows_at(held, q, v)
    assert np.abs(error).max() < 1e-14
    assert np.array_equal(jacobian[:, 6:], np.zeros((6, 8)))
    assert np.linalg.matrix_rank(jacobian) == 6


def test_columns_of_common_ancestors_are_exactly_zero():
    mech = floating_leg()
    q, v = closed_state(mech)
    jacobian = rows_at(mech, q, v)[2]
    moving = np.flatnonzero((jacobian != 0.0).any(axis=0))
    names = {mech.coordinate_names[i] for i in moving}
    assert names == {"motor_crank", "push_rod", "knee"}
