"""Base parameters: ranks by torque and by energy, combinations, and undecided ranks."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from support import few, mechanism

import holoctl as hc
from holoctl.identification.base_parameters import base_of, equilibrated, gap_rank
from holoctl.identification.closed_samples import closed_samples
from holoctl.identification.parameters import parameter_rows

RANKS = {"five_bar": 11, "four_bar": 8, "delta": 34, "leg": 35, "stewart": 82, "geared_arm": 28}


def samples(mech, count, seed=3):
    q = hc.assemble(mech)[0]
    return list(closed_samples(mech, hc.partition(mech, q), q, count, np.random.default_rng(seed)))


def energy_rows(mech, states):
    """Kinetic and potential energy by the parameters of bodies, less those of the first state."""
    data, found = mech.model.createData(), []
    for P, _ in states:
        kinetic = pin.computeKineticEnergyRegressor(mech.model, data, P.q, P.v)
        found.append(kinetic + pin.computePotentialEnergyRegressor(mech.model, data, P.q))
    return np.array(found)[1:] - found[0]


@pytest.mark.parametrize("robot", few(RANKS, ("five_bar", "four_bar", "leg", "geared_arm")))
def test_the_rank_is_the_same_by_torque_and_by_energy(robot):
    mech = hc.load(hc.robot_file(robot))
    model = hc.Parameters(mech)
    base = hc.base_parameters(model)
    assert (base.rank, base.decided) == (RANKS[robot], True)
    assert base.gap > 1e6
    rows = energy_rows(mech, samples(mech, 3 * len(model.names)))
    bodies = [i for i in range(1, mech.model.njoints) if mech.model.inertias[i].mass > 0.0]
    rows = rows[:, [10 * j - 10 + i for j in bodies for i in range(10)]]
    norms, seen = equilibrated(rows)
    s = np.linalg.svd(rows[:, seen] / norms[seen], compute_uv=False)
    assert gap_rank(s, rows.shape)[0] == RANKS[robot]


@pytest.mark.parametrize("robot", ["five_bar", "leg"])
def test_combinations_explain_the_torque_at_other_states(robot):
    mech = hc.load(hc.robot_file(robot))
    model = hc.Parameters(mech, friction="motors", rotors=True)
    base = hc.base_parameters(model)
    W = np.vstack([parameter_rows(model, P, a)[0] for P, a in samples(mech, 30, seed=9)])
    at = [model.names.index(x) for x in base.independent]
    assert len(base.expressions) == base.rank == len(at)
    y = W @ model.values
    np.testing.assert_allclose(W[:, at] @ base.of(model.values), y, atol=1e-9 * np.abs(y).max())
    rng = np.random.default_rng(0)
    null = np.linalg.svd(base.matrix)[2][base.rank :].T
    change = null @ rng.normal(size=null.shape[1])
    assert np.abs(change).max() > 0.1
    assert np.abs(W @ change).max() < 1e-8 * np.abs(W).max()


def test_what_cannot_be_seen_is_named():
    base = hc.base_parameters(hc.Parameters(hc.load(hc.robot_file("five_bar"))))
    assert "proximal_left.m" in base.unseen
    assert "distal_left.Ixx" in base.unseen
    assert any("distal_left.m" in x and x.startswith("proximal_left") for x in base.expressions)
    assert "11 of 40 parameters" in repr(base)


@pytest.mark.parametrize(("name", "unknown", "seeds", "rank"), [
    ("bennett", {}, (0, 2), 7),  # kept rows alone have another branch
    ("planar_chain", {}, (0, 1), 22),  # translations without end
    ("sine_gear", {}, (0, 1), 6),  # the walk ends at a singularity and begins again
    ("geared_slider", {"friction": "joints"}, (0, 3), 16),  # joints that turn together
])  # fmt: skip
def test_the_rank_does_not_depend_on_the_seed(name, unknown, seeds, rank):
    model = hc.Parameters(mechanism(name), **unknown)
    for seed in seeds:
        base = hc.base_parameters(model, seed=seed)
        assert (base.rank, base.decided) == (rank, True)


def test_two_large_gaps_leave_two_ranks():
    assert gap_rank(np.array([1.0, 0.5, 1e-9]), (9, 3))[::2] == (2, True)
    assert gap_rank(np.array([1.0, 0.5, 1e-5, 1e-14]), (9, 4))[::2] == (3, False)


def test_a_small_gap_is_undecided():
    rng = np.random.default_rng(1)
    mech = hc.load(hc.robot_file("four_bar"))
    every = hc.Parameters(mech)
    model = hc.Parameters(mech, known=every.names[10:])
    W = rng.normal(size=(200, 10))
    W[:, 9] = W[:, 8] + 1e-2 * W[:, 7] + 1e-1 * rng.normal(size=200)
    W[:, 5] = W[:, 4] + 1e-8 * rng.normal(size=200)
    W[:, 3] = W[:, 2] + 1e-11 * rng.normal(size=200)
    found = base_of(model, W)
    assert found.decided
    assert found.rank in (8, 9)
    noisy = base_of(model, rng.normal(size=(40, 10)) * np.logspace(0, -8, 10)[rng.permutation(10)])
    assert noisy.rank == 10  # scaled columns
    U, _, V = np.linalg.svd(rng.normal(size=(40, 10)), full_matrices=False)
    assert not base_of(model, U * np.logspace(0, -13, 10) @ V).decided


def test_bad_arguments_are_refused():
    mech = hc.load(hc.robot_file("four_bar"))
    with pytest.raises(hc.InputError, match=r"hc\.Parameters"):
        hc.base_parameters(mech)
    with pytest.raises(hc.InputError, match="start"):
        hc.base_parameters(hc.Parameters(mech), [0.0])
    with pytest.raises(hc.InputError, match="samples"):
        hc.base_parameters(hc.Parameters(mech), samples=-1)
