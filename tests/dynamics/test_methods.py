"""Every method of the constrained dynamics, held against the others and against redundancy."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from support import (
    GENERAL,
    assert_coordinates_close,
    assert_rows_close,
    closed_states,
    few,
    mechanism,
    open_states,
    relative,
    shared_partition,
    solve_tolerance,
)
from zoo import ZOO, at, feet

import holoctl as hc
from holoctl.base.linalg import null_space_by_svd
from holoctl.dynamics.other_methods import saddle_point
from holoctl.dynamics.other_methods.pinocchio_constraints import direct_by_anchors
from holoctl.rows.terms import scaled_rows

CONTACTS_ONLY = {"standing_leg"}
WHOLE = {
    "spatial_arms", "universal_rods", "six_row_four_bar", "idle_rod", "weld_chain", "welded_arms",
}  # fmt: skip


def least_norm(mech, T, part, force):
    """lambda of least norm in scaled rows, by the SVD of all rows cut at the known rank."""
    G = mech.row_scale[:, None] * T.jacobian * mech.column_scale
    U, s, V, _ = null_space_by_svd(G, part.rank)
    return mech.row_scale * (U @ ((V.T @ (mech.column_scale * force)) / s))


@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", few(ZOO))
def test_all_methods_agree(name, where):
    """Acceleration, multipliers and their mask, with stabilisation and without."""
    mech, part = mechanism(name), shared_partition(name)
    states = closed_states(name)[:30] if where == "closed" else open_states(name, 20)
    rng, compared = np.random.default_rng(0), 0
    methods = GENERAL + (["kokkevis"] if name in CONTACTS_ONLY else [])
    for q, v in states:
        tau, t_stab = rng.normal(size=mech.nv), [None, 0.1][compared % 2]
        T = hc.terms(mech, q, v, t_stab=t_stab)
        try:
            expected = hc.forward_dynamics(mech, q, v, tau, partition=part, terms=T)
        except hc.SingularityError:
            continue
        for method in methods:
            res = hc.forward_dynamics(mech, q, v, tau, method=method, partition=part, terms=T)
            cond = max(res.certificate.condition, expected.certificate.condition)
            tol = solve_tolerance(cond * hc.project(mech, q, v, partition=part).condition)
            assert_coordinates_close(mech, res.a, expected.a, tol, (q, v), by_size=True)
            efforts, wanted = (T.jacobian.T @ x.multipliers for x in (res, expected))
            assert_coordinates_close(
                mech, efforts, wanted, 10 * tol, (q, v), what="G' lambda", by_size=True
            )
            assert (res.unique == expected.unique).all()
            if where == "closed":
                assert res.certificate.ok or t_stab
        compared += 1
    assert compared >= 0.9 * len(states)
    assert np.abs(expected.multipliers).max() > 1e-3


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_pinocchio_own_algorithm_agrees(name):
    mech, part = mechanism(name), shared_partition(name)
    for q, v in closed_states(name)[:20]:
        tau = np.ones(mech.nv)
        expected = hc.forward_dynamics(mech, q, v, tau, partition=part)
        res = hc.forward_dynamics(mech, q, v, tau, method="proximal", partition=part)
        assert_coordinates_close(mech, res.a, expected.a, 1e-7, (q, v), by_size=True)
        assert_rows_close(
            mech, res.multipliers, expected.multipliers, 1e-6, (q, v), what="multiplier",
            by_size=True,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("mech", "rows", "rank"),
    [(feet(1, 4), 12, 6), (feet(2, 4), 24, 12)],
    ids=["four points on a foot", "two flat feet"],
)
def test_redundant_contacts(mech, rows, rank):
    """All methods: one acceleration, and the multipliers of least norm."""
    q, v = hc.assemble(mech, None, np.random.default_rng(1).normal(size=mech.nv))
    part = hc.partition(mech, q)
    assert (len(mech.row_scale), part.rank) == (rows, rank)
    T = hc.terms(mech, q, v)
    tau = mech.B @ np.random.default_rng(2).normal(size=mech.nu)
    expected = hc.forward_dynamics(mech, q, v, tau, partition=part, terms=T)
    force = T.M @ expected.a + T.h - tau
    lam = least_norm(mech, T, part, force)
    assert np.abs(lam).max() > 1.0
    assert not expected.unique.any()
    for method in [*GENERAL, "kokkevis", "proximal", "projection"]:
        res = hc.forward_dynamics(mech, q, v, tau, method=method, partition=part, terms=T)
        assert_coordinates_close(mech, res.a, expected.a, 1e-9, (q, v), by_size=True)
        assert_rows_close(
            mech, res.multipliers, lam, 1e-8, (q, v), what=f"{method}: multiplier", by_size=True
        )
        assert res.certificate.ok
    assert hc.methods.is_fully_actuated(mech, q, partition=part)


@pytest.mark.parametrize("t_stab", [None, 0.1])
@pytest.mark.parametrize("name", sorted(WHOLE | {"held_foot"}))
def test_whole_anchors_go_through_the_sparse_factorisation(name, t_stab):
    """Points, welds, and both; off the manifold too, moving and at rest, stabilised or not; the
    dense form is the oracle."""
    mech, part, rng = mechanism(name), shared_partition(name), np.random.default_rng(0)
    for i, (q, v) in enumerate([*closed_states(name)[:10], *open_states(name, 10)]):
        T = hc.terms(mech, q, v if i % 3 else np.zeros(mech.nv), t_stab=t_stab)
        tau = rng.normal(size=mech.nv)
        a, _ = direct_by_anchors(T, tau)
        dense = by_the_dense_form(T, part, tau)
        assert relative(a, dense.a) < max(1e-11, 1e-14 * dense.condition)
        res = hc.forward_dynamics(
            mech, T.q, T.v, tau, method="direct", partition=part, terms=T
        )  # fmt: skip
        assert (res.a == a).all()
    four_bar = mechanism("four_bar")  # two rows are no point
    assert direct_by_anchors(hc.terms(four_bar, *closed_states("four_bar")[0]), np.ones(3)) is None


class Dense(NamedTuple):
    """Acceleration of the dense saddle-point form, and its condition number."""

    a: np.ndarray
    condition: float


def by_the_dense_form(T, part, tau):
    c = T.mechanism.column_scale
    G, k = scaled_rows(T, part.rows)
    dense = saddle_point.direct(c[:, None] * T.M * c, G, c * (tau - T.h), k)
    return Dense(c * dense.x, dense.condition)


def redundant():
    """Rows twice over: two welds between the same bodies, four points on a foot."""
    arms = mechanism("welded_arms")
    weld = arms.constraints[0]
    X = at(0.1, 0.2, -0.1, pin.exp3(np.array([0.3, -0.2, 0.5])))
    again = dataclasses.replace(
        weld, a=(weld.a[0], weld.a[1] * X), b=(weld.b[0], weld.b[1] * X), name="again"
    )
    return {"two welds": arms.with_constraints(again), "four points": feet(1, 4)}


@pytest.mark.parametrize("name", ["two welds", "four points"])
def test_redundant_anchors(name):
    """On the manifold the sparse form serves; off it the rows contradict each other, and the kept
    rows decide, as in every method."""
    mech, rng = redundant()[name], np.random.default_rng(0)
    q, v = hc.assemble(mech, None, rng.normal(size=mech.nv))
    part = hc.partition(mech, q)
    assert part.rank < len(mech.row_scale)
    for closed in (True, False):
        if not closed:
            q, v = pin.integrate(mech.model, q, 0.1 * rng.normal(size=mech.nv)), v + 0.1
        T, tau = hc.terms(mech, q, v), rng.normal(size=mech.nv)
        found = direct_by_anchors(T, tau)
        assert (found is not None) == closed
        dense = by_the_dense_form(T, part, tau)
        tol = max(1e-10, 1e-13 * dense.condition)
        assert found is None or relative(found[0], dense.a) < tol
        res = hc.forward_dynamics(mech, q, v, tau, method="direct", partition=part, terms=T)
        expected = hc.forward_dynamics(mech, q, v, tau, partition=part, terms=T)
        assert_coordinates_close(mech, res.a, expected.a, tol, (q, v), by_size=True)
        assert_rows_close(
            mech, res.multipliers, expected.multipliers, 1e-7, (q, v), what="multiplier",
            by_size=True,
        )  # fmt: skip
        assert res.certificate.ok or not closed


def test_six_rows_on_a_four_bar():
    mech, part = mechanism("six_row_four_bar"), shared_partition("six_row_four_bar")
    for q, v in closed_states("six_row_four_bar")[:10]:
        T = hc.terms(mech, q, v)
        for method in [*GENERAL, "proximal", "projection"]:
            res = hc.forward_dynamics(mech, q, v, np.ones(4), method=method, partition=part)
            lam = least_norm(mech, T, part, T.M @ res.a + T.h - np.ones(4))
            assert_rows_close(
                mech, res.multipliers, lam, 1e-8, (q, v), what=f"{method}: multiplier", by_size=True
            )
            assert relative(res.a, hc.forward_dynamics(mech, q, v, np.ones(4), terms=T).a) < 1e-9


def test_what_a_method_cannot_do_is_refused_by_name():
    four_bar, q = mechanism("four_bar"), mechanism("four_bar").reference
    zero = np.zeros(3)
    with pytest.raises(hc.InputError, match="contacts only; these are not contacts: 'pin'"):
        hc.forward_dynamics(four_bar, q, zero, zero, method="kokkevis")
    with pytest.raises(hc.InputError, match="cannot express 'pin'"):
        hc.forward_dynamics(four_bar, q, zero, zero, method="proximal")
    with pytest.raises(hc.InputError, match="did you mean 'direct'"):
        hc.forward_dynamics(four_bar, q, zero, zero, method="directt")
    arms, q = mechanism("spatial_arms"), closed_states("spatial_arms")[0][0]
    with pytest.raises(hc.InconsistentError, match="on the manifold only"):
        hc.forward_dynamics(
            arms, q + 0.1, np.ones(6), np.zeros(6), method="proximal",
            partition=shared_partition("spatial_arms"),
        )  # fmt: skip
    with pytest.raises(hc.InputError, match="does not stabilise"):
        hc.forward_dynamics(
            arms, q, np.ones(6), np.zeros(6), method="proximal", t_stab=0.1,
            partition=shared_partition("spatial_arms"),
        )  # fmt: skip


def test_terms_are_shared_and_checked():
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    q, v = closed_states("five_bar")[0]
    T = hc.terms(mech, q, v)
    assert T.M is T.M
    assert relative(T.M @ np.ones(4) + T.h, pin.rnea(mech.model, mech.model.createData(), q, v,
                                                     np.ones(4))) < 1e-12  # fmt: skip
    tip = T.of("tip")
    assert (tip.jacobian == T.jacobian).all()
    geared = mechanism("geared_slider")
    S = hc.terms(geared, *closed_states("geared_slider")[0])
    assert (S.of("gear").jacobian == S.jacobian[2:3]).all()
    assert (S.of("rack").error == S.error[3:]).all()
    with pytest.raises(hc.InputError, match="no constraint called 'tap'"):
        T.of("tap")
    for name, call in {
        "forward": lambda **k: hc.forward_dynamics(mech, q, v, np.zeros(4), partition=part, **k),
        "inverse": lambda **k: hc.inverse_dynamics(mech, q, v, np.zeros(2), partition=part, **k),
        "impulse": lambda **k: hc.impulse(mech, q, v, partition=part, **k),
        "relaxed": lambda **k: hc.methods.inverse_dynamics_relaxed(
            mech, q, v, np.zeros(2), partition=part, **k
        ),
    }.items():
        assert call(terms=T) is not None, name
        with pytest.raises(hc.InputError, match="same mechanism object"):
            call(terms=S)
        with pytest.raises(hc.InputError, match="another state"):
            call(terms=hc.terms(mech, q, v + 1.0))
    with pytest.raises(hc.InputError, match="t_stab"):
        hc.forward_dynamics(mech, q, v, np.zeros(4), partition=part, terms=T, t_stab=0.1)


def test_numbers_by_constraint():
    mech = mechanism("geared_slider")
    named = hc.methods.by_constraint(mech, np.arange(4.0))
    assert list(named) == ["pin", "gear", "rack"]
    assert named["pin"].tolist() == [0.0, 1.0]
    assert named["rack"].tolist() == [3.0]
    with pytest.raises(hc.InputError, match="one number for each row"):
        hc.methods.by_constraint(mech, np.zeros(3))


@pytest.mark.parametrize("method", ["projection", "direct"])
def test_efforts_of_motors_are_added_as_b_u(method):
    mech, part = mechanism("four_bar"), shared_partition("four_bar")
    q, v = closed_states("four_bar")[0]
    u, tau = np.full(mech.nu, 0.7), np.linspace(-0.3, 0.4, mech.nv)

    def a(*given, **more):
        return hc.forward_dynamics(mech, q, v, *given, **more, method=method, partition=part).a

    np.testing.assert_array_equal(a(u=u), a(mech.B @ u))
    np.testing.assert_array_equal(a(tau, u=u), a(tau + mech.B @ u))
    assert np.abs(a(u=u) - a(tau)).max() > 1e-3
    with pytest.raises(hc.InputError, match=r"tau of coordinates, or u of motors"):
        a()
    with pytest.raises(hc.InputError, match="efforts of the motors"):
        a(u=tau)
