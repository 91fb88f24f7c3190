"""`hc.corrected` and `hc.constraint_errors`: states of other integrators."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import overconstrained as oc
import pinocchio as pin
import pytest
import zoo
from support import closed_states, few, mechanism, shared_partition

import holoctl as hc
from holoctl.base.linalg import null_space_by_svd
from holoctl.closing.manifold_projection import CORRECTIONS, projected_onto_manifold
from holoctl.rows.evaluate import constraint_rows, scaled_rows_at


def beside(mech, q, size, seed=0):
    """A state off q by about `size` (scaled), with any velocity."""
    rng = np.random.default_rng(seed)
    step = size * mech.column_scale * rng.normal(size=mech.nv)
    return pin.integrate(mech.model, q, step), mech.column_scale * rng.normal(size=mech.nv)


def off(mech, q, v, t=0.0):
    _, rows = constraint_rows(mech, q, v, t)
    return np.abs(mech.row_scale * np.array([rows.error, rows.rate])).max(initial=0.0)


@pytest.mark.parametrize("name", few(zoo.ZOO))
@pytest.mark.parametrize("given", [False, True])
def test_all_rows_hold_and_the_step_is_the_shortest(name, given):
    mech, part = mechanism(name), shared_partition(name)
    q0, _ = closed_states(name, 20)[0]
    for seed, size in enumerate((0.0, 1e-9, 1e-6, 1e-4)):
        q, v = beside(mech, q0, size, seed)
        x, y = hc.corrected(mech, q, v, partition=part if given else None)
        assert off(mech, x, y) < 1e-12
        moved = np.array([pin.difference(mech.model, q, x), y - v]) / mech.column_scale
        G = scaled_rows_at(mech, x, y, 0.0).jacobian
        Z = null_space_by_svd(G, part.rank)[3]
        assert np.abs(moved @ Z).max(initial=0.0) < 100.0 * size**2 + 1e-12
        assert not np.shares_memory(x, q)
        assert not np.shares_memory(y, v)


@pytest.mark.parametrize("name", few(zoo.ZOO))
def test_the_quick_law_is_the_plain_one(name):
    """Newton with a fresh pseudo-inverse at every step."""
    mech, part = mechanism(name), shared_partition(name)
    q, v = beside(mech, closed_states(name, 20)[0][0], 1e-6)
    c, r = mech.column_scale, mech.row_scale[part.rows]
    x = q
    for _ in range(5):
        _, rows = constraint_rows(mech, x, v)
        G = r[:, None] * rows.jacobian[part.rows] * c
        y = v - c * np.linalg.lstsq(G, r * rows.rate[part.rows], rcond=None)[0]
        step = -c * np.linalg.lstsq(G, r * rows.error[part.rows], rcond=None)[0]
        x = pin.normalize(mech.model, pin.integrate(mech.model, x, step))
    found = projected_onto_manifold(mech, part.rows, q, v, 0.0)
    assert np.abs(found[0] - x).max() < 1e-12
    assert np.abs(found[1] - y).max() < 1e-11


def test_from_too_far_or_beside_a_singularity_the_branch_is_not_told():
    mech = zoo.parallelogram()  # folds at q = 0, where two branches cross
    q, v = hc.assemble(mech)
    hc.corrected(mech, q, v)
    crank = [1e-3, 0.0, 1e-3]
    with pytest.raises(hc.HoloctlError):  # off by as much as the branches are apart
        hc.corrected(mech, pin.integrate(mech.model, np.zeros(3), np.add(crank, [0, 9e-4, 0])), v)
    for size in (0.3, 1.0, 3.0):
        with pytest.raises(hc.InconsistentError, match="too long for its error"):
            hc.corrected(mech, q + size * np.array([1.0, -1.0, 0.3]), v)
    with pytest.raises(hc.HoloctlError, match="singular"):
        hc.corrected(mech, np.zeros(3), v)


def test_it_stays_on_its_side_of_a_fold():
    """Both branches of a parallelogram near its fold, with the errors of an integrator."""
    mech = zoo.parallelogram()
    for crank in (0.3, 0.03, 0.003):
        for sign in (1.0, -1.0):
            parallel = np.array([sign * crank, -sign * crank, sign * crank])
            crossed, _ = hc.assemble(
                mech, [sign * crank, -sign * 3.0 * crank, -sign * 4.0 * crank], locked=["crank"],
            )  # fmt: skip
            assert np.abs(crossed - parallel).max() > 2.0 * crank
            for q in (parallel, crossed):
                x, _ = hc.corrected(mech, q + 0.05 * crank**2, np.zeros(3))
                assert np.abs(x - q).max() < 0.2 * crank


def walked(mech, q, steps, length, **options):
    """Along the one motion, put back at every step: the least singular values of kept rows."""
    way = None
    for _ in range(steps):
        rank = mech.nv - 1
        Z = null_space_by_svd(scaled_rows_at(mech, q, np.zeros(mech.nv), 0.0).jacobian, rank)[3]
        way = Z[:, 0] if way is None else Z @ (Z.T @ way) / np.linalg.norm(Z.T @ way)
        q = pin.integrate(mech.model, q, length * way * mech.column_scale)
        q, _ = hc.corrected(mech, q, np.zeros(mech.nv), **options)
        assert off(mech, q, np.zeros(mech.nv)) < 1e-11
    return q


@pytest.mark.parametrize("name", ["bricard", "bennett"])
def test_rows_are_decided_anew_on_the_way_and_never_silently_wrong(name):
    mech = zoo.ZOO[name]()
    q, _ = hc.assemble(mech)
    hc.corrected(mech, q, np.zeros(mech.nv))
    held = mech.per_thread("corrected", dict)
    first = held["partition"]
    walked(mech, q, 300, 0.03)
    assert (held["partition"] is first) == (name == "bennett")  # its rows stay good enough
    assert held["partition"].rank == first.rank


def test_one_partition_for_each_thread():
    mech = zoo.four_bar()
    q, v = hc.assemble(mech)
    found = []

    def ask():
        hc.corrected(mech, q + 1e-6, v)
        found.append(mech.per_thread("corrected", dict)["partition"])

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    assert found[0] is not found[1]


def test_a_partition_of_another_place_is_refused_where_its_rows_are_not_enough():
    """Kept rows of a partition that was changed: one that leaves out what counts."""
    mech = zoo.six_row_four_bar()
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    wrong = dataclasses.replace(
        part, rank=2, rows=part.rows[:2], dependent=part.dependent[:2],
        independent=np.append(part.independent, part.dependent[2]),
    )  # fmt: skip
    x, v = beside(mech, q, 1e-3)
    with pytest.raises(hc.InconsistentError, match="was left out of the partition"):
        hc.corrected(mech, x, v, partition=wrong)
    with pytest.raises(hc.InconsistentError, match="breaks the velocity"):
        hc.corrected(mech, q, v, partition=wrong)


def test_a_partition_that_does_not_fit_any_more_is_decided_again():
    """What is held was decided where the rank is another: it is not the last word."""
    mech = zoo.six_row_four_bar()
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    mech.per_thread("corrected", dict)["partition"] = dataclasses.replace(
        part, rank=2, rows=part.rows[:2], dependent=part.dependent[:2],
        independent=np.append(part.independent, part.dependent[2]),
    )  # fmt: skip
    x, y = hc.corrected(mech, *beside(mech, q, 1e-4))
    assert off(mech, x, y) < 1e-12


def test_rounded_geometry_is_met_as_it_is_meant():
    drawing = oc.OVERCONSTRAINED["bennett"]()
    mech = dataclasses.replace(oc.in_digits(drawing.mechanism(), 4), tolerance=1e-3)
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    assert part.tolerance == 1e-3
    assert part.left_out.size
    for options in ({}, {"partition": part}):
        x, y = hc.corrected(mech, *beside(mech, q, 1e-5), **options)
        errors = hc.constraint_errors(mech, x, y)
        assert np.abs(errors.position[part.rows]).max() < 1e-12
        assert 1e-9 < errors.closure < 1e-3
    exact = dataclasses.replace(mech, tolerance=0.0)
    with pytest.raises(hc.HoloctlError):
        hc.corrected(exact, *beside(mech, q, 1e-5))


def test_constraints_that_depend_on_time():
    mech = zoo.timed_arm()
    q, v = hc.assemble(mech, t=0.4)
    for t in (0.4, 0.41):
        x, y = hc.corrected(mech, q, v, t=t)
        assert off(mech, x, y, t) < 1e-12
        assert hc.constraint_errors(mech, x, y, t=t).velocity_residual < 1e-12


def test_without_constraints_nothing_is_moved():
    model = zoo.one_of_each()
    mech = hc.Mechanism(model, [])
    q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    x, v = hc.corrected(mech, q, np.ones(mech.nv))
    assert np.abs(x - q).max() < 1e-15
    assert (v == 1.0).all()
    assert not np.shares_memory(x, q)
    assert repr(hc.constraint_errors(mech, q)) == "<ConstraintErrors: no rows>"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"q": [0.0, 0.0]}, r"q.* must have shape \(3,\)"),
        ({"v": [0.0, 0.0]}, r"v.* must have shape \(3,\)"),
        ({"q": [np.nan, 0.0, 0.0]}, "q.* must be finite"),
        ({"v": [np.inf, 0.0, 0.0]}, "v.* must be finite"),
        ({"t": np.nan}, "t .*must be"),
        ({"partition": 3}, "must be a Partition"),
        ({"partition": "five_bar"}, "belongs to another mechanism"),
    ],
)
def test_refusals(change, words):
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[0]
    if change.get("partition") == "five_bar":
        change = {"partition": shared_partition("five_bar")}
    given = {"q": q, "v": v, "t": 0.0, "partition": None} | change
    with pytest.raises(hc.InputError, match=words):
        hc.corrected(mech, **given)
    if "partition" not in change:
        del given["partition"]
        with pytest.raises(hc.InputError, match=words):
            hc.constraint_errors(mech, **given)


@pytest.mark.parametrize("name", few(zoo.ZOO))
def test_errors_are_those_of_the_rows(name):
    mech = mechanism(name)
    q, v = beside(mech, closed_states(name, 20)[0][0], 1e-2)
    _, rows = constraint_rows(mech, q, v)
    found = hc.constraint_errors(mech, q, v)
    assert np.abs(found.position - rows.error).max() < 1e-12
    assert np.abs(found.velocity - rows.rate).max() < 1e-11
    scaled = np.abs(mech.row_scale * rows.error)
    assert abs(found.closure - scaled.max()) < 1e-12
    assert found.worst == mech.row_names[int(np.argmax(scaled))]
    assert repr(found.worst) in repr(found)
    assert set(hc.methods.by_constraint(mech, found.position)) == set(mech.constraint_names)
    alone = hc.constraint_errors(mech, q)
    assert (alone.velocity, alone.velocity_residual) == (None, None)
    assert alone.closure == found.closure
    with pytest.raises(ValueError, match="read-only"):
        found.position[0] = 0.0


def test_the_last_step_of_a_correction_counts():
    """Newton's method on exp(x) - 1 = 0 from above goes down by about one a step: this start takes
    just as many steps as are allowed, and one farther away takes more."""
    arm = pin.Model()
    zoo.add_body(arm, 0, pin.JointModelRZ(), zoo.at(), "hinge", zoo.bar(0.5))
    row = hc.Custom(
        lambda q: np.exp(q) - 1.0, lambda q: np.exp(q)[None], lambda q, v: np.exp(q) * v**2,
        name="steep",
    )  # fmt: skip
    mech = hc.Mechanism(arm, [row])
    start, steps = 3.0, 0
    x = start
    while np.exp(x) - 1.0 > 1e-13:
        x, steps = x + np.exp(-x) - 1.0, steps + 1
    assert steps == CORRECTIONS
    keep = np.array([0])
    q, _ = projected_onto_manifold(mech, keep, np.array([start]), np.zeros(1), 0.0)
    assert abs(q[0]) < 1e-13
    with pytest.raises(hc.InconsistentError, match="too far off"):
        projected_onto_manifold(mech, keep, np.array([start + 2.0]), np.zeros(1), 0.0)
