"""Every method of the constrained dynamics, held against the others and against redundancy."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from support import (
    closed_states,
    mechanism,
    open_states,
    relative,
    shared_partition,
    solve_tolerance,
)
from zoo import ZOO, _add, _at, _inertia, standing_leg

import holoctl as hc
from holoctl.base.linalg import null_space_by_svd
from holoctl.dynamics.reference import saddle_point
from holoctl.dynamics.reference.pinocchio_constraints import direct_by_anchors
from holoctl.rows.terms import scaled_rows

GENERAL = ["direct", "range_space", "null_space"]
CONTACTS_ONLY = {"standing_leg"}
WHOLE = {
    "spatial_arms", "universal_rods", "six_row_four_bar", "idle_rod", "weld_chain", "welded_arms",
}  # fmt: skip


def feet(n, points):
    """A trunk on n legs of six joints, each foot held at its corners by points with two tangents:
    every foot has 3 x points rows, of which six count."""
    rng = np.random.default_rng(5)
    m = pin.Model()
    _add(m, 0, pin.JointModelFreeFlyer(), _at(), "trunk", _inertia(rng, 20.0))
    kinds = [pin.JointModelRZ, pin.JointModelRX, *3 * [pin.JointModelRY], pin.JointModelRX]
    names = ["yaw", "roll", "hip", "knee", "ankle", "foot"]
    places = [(0, 0, 0), (0, 0, -0.05), (0, 0, -0.05), (0, 0, -0.4), (0, 0, -0.4), (0, 0, -0.05)]
    contacts, motors = [], []
    for side in range(n):
        parent = "trunk"
        for kind, name, place in zip(kinds, names, places, strict=True):
            at = _at(0.0, 0.1 - 0.2 * side, -0.1) if parent == "trunk" else _at(*place)
            _add(m, parent, kind(), at, f"{name}_{side}", _inertia(rng, 1.5))
            parent = f"{name}_{side}"
            motors.append(parent)
        corners = [(0.12, 0.05), (0.12, -0.05), (-0.08, 0.05), (-0.08, -0.05)][:points]
        contacts += [
            hc.Contact((parent, _at(x, y, -0.04)), name=f"corner_{side}_{i}")
            for i, (x, y) in enumerate(corners)
        ]
    reference = pin.neutral(m)
    reference[2] = 1.0
    reference[7:] = n * [0.1, 0.05, -0.5, 1.0, -0.5, -0.05]
    return hc.Mechanism(m, contacts, motors, reference=reference, name=f"{n}_feet")


def least_norm(mech, T, part, force):
    """lambda of least norm in scaled rows, by the SVD of all rows cut at the known rank."""
    G = mech.row_scale[:, None] * T.jacobian * mech.column_scale
    U, s, V, _ = null_space_by_svd(G, part.rank)
    return mech.row_scale * (U @ ((V.T @ (mech.column_scale * force)) / s))


@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", list(ZOO))
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
            assert relative(res.a, expected.a) < tol
            assert relative(T.jacobian.T @ res.multipliers, T.jacobian.T @ expected.multipliers) < (
                10 * tol
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
        assert relative(res.a, expected.a) < 1e-7
        assert relative(res.multipliers, expected.multipliers) < 1e-6


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
        assert relative(res.a, expected.a) < 1e-9
        assert relative(res.multipliers, lam) < 1e-8
        assert res.certificate.ok
    assert hc.is_fully_actuated(mech, q, partition=part)


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
    at = _at(0.1, 0.2, -0.1, pin.exp3(np.array([0.3, -0.2, 0.5])))
    again = dataclasses.replace(
        weld, a=(weld.a[0], weld.a[1] * at), b=(weld.b[0], weld.b[1] * at), name="again"
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
        assert relative(res.a, expected.a) < tol
        assert relative(res.multipliers, expected.multipliers) < 1e-7
        assert res.certificate.ok or not closed


def test_six_rows_on_a_four_bar():
    mech, part = mechanism("six_row_four_bar"), shared_partition("six_row_four_bar")
    for q, v in closed_states("six_row_four_bar")[:10]:
        T = hc.terms(mech, q, v)
        for method in [*GENERAL, "proximal", "projection"]:
            res = hc.forward_dynamics(mech, q, v, np.ones(4), method=method, partition=part)
            lam = least_norm(mech, T, part, T.M @ res.a + T.h - np.ones(4))
            assert relative(res.multipliers, lam) < 1e-8
            assert relative(res.a, hc.forward_dynamics(mech, q, v, np.ones(4), terms=T).a) < 1e-9


def test_what_a_method_cannot_do_is_refused_by_name():
    four_bar, q = mechanism("four_bar"), mechanism("four_bar").reference
    zero = np.zeros(3)
    with pytest.raises(hc.InputError, match="contacts only; these are none: 'pin'"):
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
        "relaxed": lambda **k: hc.inverse_dynamics_relaxed(
            mech, q, v, np.zeros(2), partition=part, **k
        ),
    }.items():
        assert call(terms=T) is not None, name
        with pytest.raises(hc.InputError, match="this very mechanism"):
            call(terms=S)
        with pytest.raises(hc.InputError, match="another state"):
            call(terms=hc.terms(mech, q, v + 1.0))
    with pytest.raises(hc.InputError, match="t_stab"):
        hc.forward_dynamics(mech, q, v, np.zeros(4), partition=part, terms=T, t_stab=0.1)


def test_numbers_by_constraint():
    mech = mechanism("geared_slider")
    named = hc.by_constraint(mech, np.arange(4.0))
    assert list(named) == ["pin", "gear", "rack"]
    assert named["pin"].tolist() == [0.0, 1.0]
    assert named["rack"].tolist() == [3.0]
    with pytest.raises(hc.InputError, match="one number for each row"):
        hc.by_constraint(mech, np.zeros(3))


# -------------------------------------------------------------------------------- impacts


@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize("name", list(ZOO))
def test_impacts_close_the_rows_and_lose_energy(name, method):
    """G v+ = 0, momentum balance, no gain of energy, and the multiplier's sign."""
    mech, part = mechanism(name), shared_partition(name)
    rng = np.random.default_rng(3)
    lost = 0.0
    for q, _ in closed_states(name)[:20]:
        v = rng.normal(size=mech.nv)
        T = hc.terms(mech, q, v)
        phi_t = T.rate - T.jacobian @ T.v
        hit = hc.impulse(mech, q, v, method=method, partition=part)
        assert np.abs(mech.row_scale * (T.jacobian @ hit.v + phi_t)).max() < 1e-9
        assert hit.balance < 1e-10
        change = T.M @ (hit.v - v)
        assert relative(change, T.jacobian.T @ hit.impulses) < 1e-8
        if name != "timed_arm":  # there the bench pushes
            assert hit.energy < 1e-12
        lost = min(lost, hit.energy)
        again = hc.impulse(mech, q, hit.v, method=method, partition=part)
        assert relative(again.v, hit.v) < 1e-9
        assert np.abs(again.impulses).max() < 1e-6 * (1.0 + np.abs(hit.impulses).max())
    assert lost < -1e-5 or name == "timed_arm"


def test_impacts_to_given_rates_and_restitution():
    mech = standing_leg()
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    v = np.random.default_rng(0).normal(size=mech.nv)
    v[2] = -5.0  # downwards
    T = hc.terms(mech, q, v)
    assert (T.rate[[0, 3]] < 0.0).all()
    wanted = np.array([0.1, -0.2, 0.3, 0.0, 0.5])
    for method in GENERAL:
        hit = hc.impulse(mech, q, v, wanted, method=method, partition=part)
        assert np.abs(T.jacobian @ hit.v - wanted).max() < 1e-10
    back = hc.impulse(mech, q, v, restitution={"heel": 0.4, "toe": 0.4}, partition=part)
    rate = T.jacobian @ back.v
    assert rate[[0, 3]] == pytest.approx(-0.4 * T.rate[[0, 3]])
    assert np.abs(rate[[1, 2, 4]]).max() < 1e-10
    assert back.energy < 0.0
    v_plus = np.where(np.isin(np.arange(5), [0, 3]), -0.4 * T.rate, 0.0)
    assert relative(hc.impulse(mech, q, v, v_plus, partition=part).v, back.v) < 1e-12


def test_impacts_that_cannot_be_are_told():
    mech = feet(1, 4)
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    v = np.random.default_rng(1).normal(size=mech.nv)
    v[2] = -9.0
    with pytest.raises(hc.InconsistentError, match="contradict each other"):
        hc.impulse(mech, q, v, np.arange(12.0), partition=part)
    with pytest.raises(hc.InconsistentError, match="contradict each other"):
        hc.impulse(mech, q, v, restitution={"corner_0_0": 1.0}, partition=part)
    two, q = standing_leg(), hc.assemble(standing_leg())[0]
    part = hc.partition(two, q)
    T = hc.terms(two, q, np.zeros(two.nv))
    v = -np.linalg.solve(T.M, T.jacobian[0])  # as after a kick downwards on the heel alone
    with pytest.raises(hc.InconsistentError, match="raise the kinetic energy"):
        hc.impulse(two, q, v, restitution={"heel": 1.0}, partition=part)
    assert hc.impulse(two, q, v, restitution={"heel": 0.8, "toe": 0.8}, partition=part).energy < 0
    for given, word in (
        ({"heel": 1.5}, "0 to 1"),
        ({"hell": 0.5}, "did you mean 'heel'"),
        ([0.5], "mapping"),
    ):
        with pytest.raises(hc.InputError, match=word):
            hc.impulse(two, q, v, restitution=given, partition=part)
    with pytest.raises(hc.InputError, match="not both"):
        hc.impulse(two, q, v, np.zeros(5), restitution={"heel": 0.5}, partition=part)


def test_a_full_stop_is_an_ordinary_impact():
    """v in the range of M^-1 G': everything stops, and rounding is no contradiction."""
    for name in ("standing_leg", "four_bar", "five_bar", "spatial_arms", "floating_leg", "bennett"):
        mech, part = mechanism(name), shared_partition(name)
        q, _ = closed_states(name)[0]
        T = hc.terms(mech, q, np.zeros(mech.nv))
        for seed in range(5):
            kick = np.random.default_rng(seed).normal(size=len(T.error))
            v = np.linalg.solve(T.M, T.jacobian.T @ kick)
            for method in GENERAL:
                hit = hc.impulse(mech, q, v, method=method, partition=part)
                assert np.abs(hit.v).max() < 1e-9 * np.abs(v).max()
                assert hit.balance < 1e-10


def test_a_contact_that_separates_does_not_hit():
    mech = standing_leg()
    q, _ = hc.assemble(mech)
    rising = np.zeros(mech.nv)
    rising[2] = 1.0
    with pytest.raises(hc.InconsistentError, match="'heel' separates"):
        hc.impulse(mech, q, rising, restitution={"heel": 0.3})


def test_inertia_that_rows_do_not_show_is_missed_by_no_method():
    m = pin.Model()
    _add(m, 0, pin.JointModelRZ(), _at(), "light", pin.Inertia.Zero())
    _add(m, "light", pin.JointModelRZ(), _at(), "twin", _inertia(np.random.default_rng(0)))
    mech = hc.Mechanism(m, [], ["twin"])
    for method in ("projection", *GENERAL, "kokkevis"):
        with pytest.raises(hc.SingularityError):
            hc.forward_dynamics(mech, [0.1, 0.2], [0.3, 0.4], [1.0, 2.0], method=method)
    for method in GENERAL:
        with pytest.raises(hc.SingularityError):
            hc.impulse(mech, [0.1, 0.2], [0.3, 0.4], method=method)
    with pytest.raises(hc.SingularityError):
        hc.PreparedForwardDynamics(mech).acceleration([0.1, 0.2], [0.3, 0.4], [1.0, 2.0])


def test_mass_does_not_cost_digits():
    """The same leg, light and heavy: every method, to rounding."""
    base = feet(1, 4)
    q, v = hc.assemble(base, None, np.random.default_rng(1).normal(size=base.nv))
    part = hc.partition(base, q)
    for factor in (1e-4, 1.0, 1e4, 1e8):
        model = base.model.copy()
        for i in range(1, model.njoints):
            old = model.inertias[i]
            model.inertias[i] = pin.Inertia(factor * old.mass, old.lever, factor * old.inertia)
        mech = base.with_model(model)
        tau = factor * np.random.default_rng(2).normal(size=mech.nv)
        expected = hc.forward_dynamics(mech, q, v, tau, partition=part).a
        for method in (*GENERAL, "kokkevis", "proximal"):
            res = hc.forward_dynamics(mech, q, v, tau, method=method, partition=part)
            assert relative(res.a, expected) < 1e-9, (factor, method)


# -------------------------------------------------------------------------------- wrenches


@pytest.mark.parametrize("axes", ["world", "body", "frame"])
@pytest.mark.parametrize(
    "name", ["spatial_arms", "weld_chain", "hung_plate", "standing_leg", "third_bar", "five_bar"]
)
def test_wrenches_do_the_work_of_the_multipliers(name, axes):
    """G' lambda is what the wrenches do to the bodies, by Pinocchio's Jacobians."""
    mech = mechanism(name)
    rng, data = np.random.default_rng(0), mech.model.createData()
    for q, v in closed_states(name)[:10]:
        lam = rng.normal(size=len(mech.row_scale))
        pin.computeJointJacobians(mech.model, data, q)
        wrenches = hc.constraint_wrenches(mech, q, lam, axes)
        efforts = np.zeros(mech.nv)
        for constraint, bound in zip(mech.constraint_names, mech._bound, strict=True):
            for w, frame in zip(
                wrenches[constraint], (bound.frames1[0], bound.frames2[0]), strict=True
            ):
                place = data.oMi[frame.joint] * frame.placement
                assert w.body == mech.model.names[frame.joint]
                assert relative(w.point, place.translation) < 1e-12
                R = {"world": np.eye(3), "body": data.oMi[frame.joint].rotation,
                     "frame": place.rotation}[axes]  # fmt: skip
                force, moment = R @ w.force, R @ w.moment
                about_origin = np.concatenate([force, moment + np.cross(w.point, force)])
                if frame.joint:
                    J = pin.getJointJacobian(
                        mech.model, data, frame.joint, pin.ReferenceFrame.WORLD
                    )
                    efforts += J.T @ about_origin
        expected = hc.terms(mech, q, v).jacobian.T @ lam
        assert np.abs(expected).max() > 0.1
        assert relative(efforts, expected) < 1e-10


def test_a_standing_foot_carries_the_weight():
    mech = feet(2, 4)
    q, _ = hc.assemble(mech)
    rest = np.zeros(mech.nv)
    res = hc.inverse_dynamics(mech, q, rest, rest, coordinates="all")
    assert res.certificate.ok
    wrenches = hc.constraint_wrenches(mech, q, res.multipliers)
    weight = 9.81 * sum(inertia.mass for inertia in mech.model.inertias)
    total = sum(on_foot.force for _, on_foot in wrenches.values())
    assert total == pytest.approx([0.0, 0.0, weight], abs=1e-8)
    for on_ground, on_foot in wrenches.values():
        assert on_ground.body == "universe"
        assert on_foot.force == pytest.approx(-on_ground.force)
        assert np.abs(on_foot.moment).max() < 1e-9  # a point contact has none


# ---------------------------------------------------------------------- sets that change


def test_a_foot_lifts_off_and_lands():
    both = feet(2, 3)
    names = both.constraint_names
    right = [n for n in names if n.startswith("corner_1")]
    single = both.with_enabled(**dict.fromkeys(right, False))
    assert single.constraint_names == tuple(n for n in names if n not in right)
    assert len(single.row_scale) == 9
    assert [c.default_name for _, c in single.parked] == right
    landed = single.with_enabled(**dict.fromkeys(right, True))
    assert landed.constraint_names == names
    assert landed.parked == ()
    q, v = hc.assemble(both, None, np.ones(both.nv))
    u = np.ones(both.nu)
    for one, other in ((both, landed), (single, both.without(*right))):
        a = hc.forward_dynamics(one, q, v, one.B @ u).a
        assert relative(hc.forward_dynamics(other, q, v, other.B @ u).a, a) < 1e-12
    assert relative(
        hc.forward_dynamics(single, q, v, both.B @ u).a,
        hc.forward_dynamics(both, q, v, both.B @ u).a,
    ) > 1e-3  # fmt: skip


def test_a_partition_is_of_one_set():
    """A foot that lands adds rows: with the partition of before they would be ignored."""
    both = feet(2, 3)
    single = both.with_enabled(corner_1_0=False, corner_1_1=False, corner_1_2=False)
    other = both.with_enabled(corner_0_0=False, corner_0_1=False, corner_0_2=False)
    q, _ = hc.assemble(both)
    part, zero = hc.partition(single, q), np.zeros(both.nv)
    assert hc.partition(single.with_model(single.model), q).row_names == part.row_names
    for mech in (both, other):
        for call in (
            lambda mech=mech: hc.PreparedForwardDynamics(mech, part),
            lambda mech=mech: hc.PreparedInverseDynamics(mech, part),
            lambda mech=mech: hc.ComputedTorque(mech, 1.0, 1.0, partition=part),
            lambda mech=mech: hc.project(mech, q, zero, partition=part),
            lambda mech=mech: hc.forward_dynamics(mech, q, zero, zero, partition=part),
            lambda mech=mech: hc.impulse(mech, q, zero, partition=part),
        ):
            with pytest.raises(hc.InputError, match="another set of its constraints"):
                call()


def test_sets_keep_order_names_and_what_they_share():
    import copy
    import pickle

    mech = mechanism("geared_slider")
    off = mech.with_enabled(gear=False)
    for twin in (off, pickle.loads(pickle.dumps(off)), copy.deepcopy(off)):
        assert twin.constraint_names == ("pin", "rack")
        assert twin.with_enabled(gear=True).constraint_names == ("pin", "gear", "rack")
    assert off.without("gear").parked == ()
    assert off.without("pin").with_enabled(gear=True).constraint_names == ("gear", "rack")
    belt = hc.Coupling({"wheel": 1.0, "rod": 1.0}, name="belt")
    assert mech.with_constraints(belt).constraint_names == ("pin", "gear", "rack", "belt")
    heavy = mech.model.copy()
    heavy.inertias[1] = pin.Inertia(9.0, np.array([0.1, 0.0, 0.0]), 0.1 * np.eye(3))
    assert mech.with_model(heavy).model.inertias[1].mass == 9.0
    assert mech.constraint_names == ("pin", "gear", "rack")  # mechanisms do not change
    tendons = dataclasses.replace(mech, actuated=(), actuation=np.ones((5, 2)) + np.eye(5, 2))
    assert (tendons.with_enabled(gear=False).B == tendons.B).all()
    for call, word in (
        (lambda: mech.without("geer"), "did you mean 'gear'"),
        (lambda: mech.with_enabled(geer=False), "did you mean 'gear'"),
        (lambda: mech.with_enabled(gear=0), "True or False"),
        (lambda: off.with_constraints(dataclasses.replace(belt, name="gear")), "used twice"),
        (lambda: mech.with_constraints("gear"), "not a constraint"),
        (lambda: mech.with_model(mechanism("four_bar").model), "no joint|no coordinate|shape"),
        (lambda: hc.Mechanism(mech.model, parked=[belt]), "parked"),
        (lambda: hc.Mechanism(mech.model, parked=[(-1, belt)]), "place"),
    ):
        with pytest.raises(hc.InputError, match=word):
            call()


# ----------------------------------------------------------------------------- relaxed


@pytest.mark.parametrize("name", ["five_bar", "floating_leg", "three_motors", "standing_leg"])
def test_relaxed_torques_obey_their_law_and_the_equation_of_motion(name):
    mech, part = mechanism(name), shared_partition(name)
    rng = np.random.default_rng(0)
    for q, v in closed_states(name)[:10]:
        target = rng.normal(size=mech.nu)
        res = hc.inverse_dynamics_relaxed(mech, q, v, target, partition=part)
        T = hc.terms(mech, q, v)
        W = 100.0 * mech.B.T @ T.M @ mech.B
        law = W @ (target - mech.B.T @ res.a) + mech.B.T @ T.h
        assert relative(res.u, law) < 1e-9
        assert res.certificate.ok
        caused = hc.forward_dynamics(mech, q, v, mech.B @ res.u, partition=part).a
        assert relative(caused, res.a) < 1e-8
        stiff = hc.inverse_dynamics_relaxed(
            mech, q, v, target, stiffness=1e3 * W, partition=part
        )  # fmt: skip
        missed = target - mech.B.T @ res.a
        if name != "three_motors":
            assert np.abs(target - mech.B.T @ stiff.a).max() < 0.1 * np.abs(missed).max()
    for bad in (np.eye(7), -np.eye(mech.nu), np.triu(np.ones((mech.nu, mech.nu))), "W"):
        with pytest.raises(hc.InputError, match="stiffness"):
            hc.inverse_dynamics_relaxed(mech, q, v, target, stiffness=bad, partition=part)


def test_full_actuation_is_a_question_of_motions():
    expected = {
        "four_bar": True, "five_bar": True, "three_motors": True, "spatial_arms": True,
        "floating_leg": False, "standing_leg": False, "idle_rod": False, "hung_plate": True,
    }  # fmt: skip
    for name, full in expected.items():
        q, _ = closed_states(name)[0]
        mech, part = mechanism(name), shared_partition(name)
        assert hc.is_fully_actuated(mech, q, partition=part) is full, name
    base = mechanism("four_bar")
    rocker = dataclasses.replace(base, actuated=["rocker"])
    dead, _ = hc.assemble(rocker, [0.9, 0.0, 1.6], locked=["coupler"])
    part = hc.partition(rocker, hc.assemble(rocker)[0])
    assert not hc.is_fully_actuated(rocker, dead, partition=part)


# ------------------------------------------------------------------- stabilisation, by name


def stabilised(**time_constants):
    base = ZOO["geared_slider"]()
    constraints = [
        dataclasses.replace(c, t_stab=time_constants.get(c.default_name)) for c in base.constraints
    ]
    return hc.Mechanism(base.model, constraints, base.actuated, reference=base.reference)


def test_time_constants_by_name_are_those_of_the_constraints():
    q, v = np.array([1.0, -1.4, 0.6, 2.0, 0.1]), np.array([0.5, -0.4, 0.3, 0.2, -0.1])
    plain, own = stabilised(), stabilised(pin=0.05, gear=0.2)
    given = {"pin": 0.05, "gear": 0.2}
    expected = hc.terms(own, q, v).stabilisation
    assert np.count_nonzero(expected) == 3  # two rows of the pin, one of the gear
    np.testing.assert_array_equal(hc.terms(plain, q, v, t_stab=given).stabilisation, expected)
    np.testing.assert_array_equal(hc.terms(own, q, v, t_stab={"pin": 0.05}).stabilisation, expected)
    np.testing.assert_array_equal(
        hc.terms(own, q, v, t_stab={"pin": False, "gear": None}).stabilisation[2:], expected[2:]
    )
    assert not hc.terms(own, q, v, t_stab={"pin": False}).stabilisation[:2].any()
    assert not hc.terms(own, q, v, t_stab=False).stabilisation.any()
    part = hc.partition(plain, hc.assemble(plain)[0])
    for call in (hc.forward_dynamics, hc.inverse_dynamics):
        x = np.ones(plain.nv if call is hc.forward_dynamics else plain.nu)
        a = call(plain, q, v, x, t_stab=given, partition=part).a
        b = call(own, q, v, x, partition=hc.partition(own, hc.assemble(own)[0])).a
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("wrong", [{"pn": 0.1}, {"pin": 0.0}, {"pin": "x"}, True, 0, {1: 0.1}])
def test_time_constants_that_are_none(wrong):
    mech = stabilised()
    with pytest.raises(hc.InputError, match="t_stab"):
        hc.terms(mech, mech.reference, np.zeros(5), t_stab=wrong)
