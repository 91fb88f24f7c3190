"""The laws that hold for every mechanism, over the zoo, 100 seeded states each."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from support import (
    TOL,
    assert_coordinates_close,
    assert_rows_close,
    closed_states,
    dense_kkt,
    drift_by_differences,
    feasible_target,
    few,
    jacobian_by_differences,
    mechanism,
    open_states,
    potential_slope,
    rate_by_differences,
    relative,
    rows,
    shared_partition,
    solve_tolerance,
)
from zoo import ZOO

import holoctl as hc
from holoctl.tree.frames import resolve_frame

NAMES = list(ZOO)
UNDERACTUATED = ("floating_leg", "universal_rods", "standing_leg", "idle_rod")
UNEQUAL = (*UNDERACTUATED, "three_motors")  # as many motors as motions: all others
POINTS = (
    "four_bar",
    "five_bar",
    "five_bar_revolute",
    "four_bar_weldless",
    "spatial_arms",
    "floating_leg",
    "universal_rods",
    "third_bar",
    "idle_rod",
)  # closed by points
METHODS = ["split", "qr", "orthonormal"]


@pytest.fixture(params=few(NAMES))
def name(request):
    return request.param


@pytest.fixture(params=few([slice(0, 30), slice(30, 100)], [slice(0, 30)]), ids=["first", "others"])
def which(request):
    """Of the states: the first of them in every run, all in the long one."""
    return request.param


def states(name, where):
    return closed_states(name) if where == "closed" else open_states(name)


@pytest.mark.parametrize("where", ["closed", "open"])
def test_jacobian_is_the_derivative_of_the_error(name, where, which):
    mech, largest = mechanism(name), 0.0
    for q, v in states(name, where)[which]:
        r = rows(mech, q, v)
        G = jacobian_by_differences(mech, q, v)
        largest = max(largest, np.abs(G).max())
        tol = TOL["difference"] * (1.0 + np.abs(G).max())
        assert_rows_close(mech, r.jacobian, G, tol, (q, v), what="G")
        rate = rate_by_differences(mech, q, v)
        size = 1.0 + np.abs(v).max()
        assert_rows_close(mech, r.rate, rate, TOL["difference"] * size, (q, v), what="rate")
        if name != "timed_arm":
            assert_rows_close(
                mech, r.rate, r.jacobian @ v, TOL["exact"] * size, (q, v), what="rate"
            )
    assert largest > 0.1


@pytest.mark.parametrize("where", ["closed", "open"])
def test_drift_is_the_derivative_of_the_rate(name, where, which):
    mech = mechanism(name)
    largest = 0.0
    for q, slow in states(name, where)[which]:
        v = 3.0 * slow  # the drift grows with the square
        r = rows(mech, q, v)
        drift = drift_by_differences(mech, q, v)
        tol = TOL["difference"] * (1.0 + np.abs(drift).max())
        assert_rows_close(mech, r.drift, drift, tol, (q, v), what="drift")
        largest = max(largest, np.abs(drift).max())
    assert largest > 0.1 or (name, where) == ("third_bar", "closed")  # its coupler only translates


def test_rows_at_rest_are_those_in_motion_without_their_rates(name):
    """At rest the terms in v are left out, not computed to be zero."""
    mech = mechanism(name)
    for q, v in open_states(name)[:10]:
        rest, moving = rows(mech, q, 0.0 * v), rows(mech, q, v)
        np.testing.assert_array_equal(rest.error, moving.error)
        np.testing.assert_array_equal(rest.jacobian, moving.jacobian)
        if name != "timed_arm":
            assert not rest.rate.any()
            assert not rest.drift.any()
        assert np.abs(moving.rate).max() > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_gamma_and_bias_satisfy_all_rows_on_the_manifold(name, method, which):
    mech, part = mechanism(name), shared_partition(name)
    largest = 0.0
    for q, v in closed_states(name)[which]:
        P = hc.project(mech, q, v, method, partition=part)
        r = mech.row_scale
        G, drift = r[:, None] * P.rows.jacobian, r * P.rows.drift
        size = np.abs(P.gamma).max()
        assert (
            np.linalg.matrix_rank(P.gamma / mech.column_scale[:, None]) == P.k == mech.nv - P.rank
        )
        tol = solve_tolerance(P.condition) * size
        assert_rows_close(mech, G @ P.gamma, 0.0, tol, (q, v), what="G gamma")
        bound = solve_tolerance(P.condition) * (1.0 + np.abs(P.bias).max())
        assert_rows_close(mech, G @ P.bias, -drift, bound, (q, v), what="G bias")
        phi_t = r * (P.rows.rate - P.rows.jacobian @ v)
        assert_rows_close(mech, G @ P.v_t, -phi_t, bound, (q, v), what="G v_t")
        s = 1.0 / mech.column_scale
        left = np.linalg.lstsq(s[:, None] * P.gamma, s * (v - P.v_t), rcond=None)[0]
        assert np.abs(s * (P.gamma @ left + P.v_t - v)).max() < 1e-8 * (1.0 + np.abs(s * v).max())
        largest = max(largest, np.abs(drift).max())
    assert largest > 0.1 or name == "third_bar"  # its coupler only translates


@pytest.mark.parametrize("method", METHODS)
def test_forward_dynamics_agrees_with_the_dense_kkt_system(name, method, which):
    mech, part = mechanism(name), shared_partition(name)
    rng, largest = np.random.default_rng(5), 0.0
    for q, v in closed_states(name)[which]:
        tau = 5.0 * rng.normal(size=mech.nv)
        P = hc.project(mech, q, v, method, partition=part)
        res = hc.forward_dynamics(mech, q, v, tau, projection=P)
        a, constraint = dense_kkt(mech, q, v, tau)
        tol = solve_tolerance(P.condition * res.certificate.condition)
        largest = max(largest, np.abs(a).max())
        assert_coordinates_close(mech, res.a, a, tol, (q, v), by_size=True)
        efforts = P.rows.jacobian.T @ res.multipliers
        assert_coordinates_close(
            mech, efforts, constraint, tol, (q, v), what="G' lambda", by_size=True
        )
        assert res.certificate.ok, str(res.certificate)
    assert largest > 1.0


def pinocchio_constraints(mech):
    """The closures as Pinocchio's own points (planar ones: a point with one row too many)."""
    found = pin.StdVec_RigidConstraintModel()
    for c in mech.constraints:
        f1, f2 = (resolve_frame(mech.model, frame, c.default_name) for frame in (c.a, c.b))
        found.append(
            pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, mech.model, f1.joint, f1.placement, f2.joint,
                f2.placement, pin.ReferenceFrame.LOCAL,
            )
        )  # fmt: skip
    return found


@pytest.mark.parametrize("name", few(POINTS))
def test_forward_dynamics_agrees_with_pinocchio(name, which):
    mech, part = mechanism(name), shared_partition(name)
    rng = np.random.default_rng(6)
    models = pinocchio_constraints(mech)
    data = mech.model.createData()
    datas = pin.StdVec_RigidConstraintData()
    for m in models:
        datas.append(m.createData())
    pin.initConstraintDynamics(mech.model, data, models, datas)
    settings = pin.ProximalSettings(1e-14, 1e-6, 100)
    for q, v in closed_states(name)[which]:
        tau = 5.0 * rng.normal(size=mech.nv)
        a = pin.constraintDynamics(mech.model, data, q, v, tau, models, datas, settings)
        res = hc.forward_dynamics(mech, q, v, tau, partition=part)
        tol = solve_tolerance(res.certificate.condition)
        assert_coordinates_close(mech, res.a, a, tol, (q, v), by_size=True)


@pytest.mark.parametrize("method", METHODS)
def test_forward_undoes_inverse(name, method, which):
    mech, part = mechanism(name), shared_partition(name)
    rng = np.random.default_rng(7)
    for q, v in closed_states(name)[which]:
        P = hc.project(mech, q, v, method, partition=part)
        target = feasible_target(P, rng)
        inverse = hc.inverse_dynamics(mech, q, v, target, projection=P)
        forward = hc.forward_dynamics(mech, q, v, mech.B @ inverse.u, projection=P)
        tol = solve_tolerance(forward.certificate.condition * P.condition)
        assert relative(mech.B.T @ inverse.a, target) < tol
        assert_coordinates_close(mech, forward.a, inverse.a, tol, (q, v), by_size=True)
        assert_rows_close(
            mech, forward.multipliers, inverse.multipliers, tol, (q, v), what="multiplier",
            by_size=True,
        )  # fmt: skip
        assert np.abs(inverse.u).max() > 1e-3
        assert inverse.certificate.ok, str(inverse.certificate)


def test_solutions_do_not_depend_on_the_basis(name, which):
    mech, part = mechanism(name), shared_partition(name)
    rng = np.random.default_rng(8)
    for q, v in closed_states(name)[which]:
        projections = [hc.project(mech, q, v, m, partition=part) for m in METHODS]
        target, tau = feasible_target(projections[0], rng), rng.normal(size=mech.nv)
        inverse = [hc.inverse_dynamics(mech, q, v, target, projection=P) for P in projections]
        forward = [hc.forward_dynamics(mech, q, v, tau, projection=P) for P in projections]
        tol = solve_tolerance(max(P.condition for P in projections)
                              * max(f.certificate.condition for f in forward))  # fmt: skip
        for x, y in zip(inverse[1:], forward[1:], strict=True):
            assert relative(x.u, inverse[0].u) < tol
            assert_coordinates_close(mech, x.a, inverse[0].a, tol, (q, v), by_size=True)
            assert_coordinates_close(mech, y.a, forward[0].a, tol, (q, v), by_size=True)
            assert_rows_close(
                mech, y.multipliers, forward[0].multipliers, tol, (q, v), what="multiplier",
                by_size=True,
            )  # fmt: skip


@pytest.mark.parametrize("name", few([n for n in NAMES if n not in UNEQUAL]))
def test_classical_law_with_the_dense_inertia_matrix(name, which):
    """u = (gamma' B)^-1 gamma' (M a + h), all in numpy, for fully actuated mechanisms."""
    mech, part = mechanism(name), shared_partition(name)
    rng = np.random.default_rng(9)
    data = mech.model.createData()
    for q, v in closed_states(name)[which]:
        P = hc.project(mech, q, v, partition=part)
        assert P.k == mech.nu
        target = rng.normal(size=mech.nu)
        ydd = np.linalg.solve(mech.B.T @ P.gamma, target - mech.B.T @ P.bias)
        w = pin.crba(mech.model, data, q) @ (P.gamma @ ydd + P.bias)
        w = w + pin.nonLinearEffects(mech.model, data, q, v)
        u = np.linalg.solve(P.gamma.T @ mech.B, P.gamma.T @ w)
        res = hc.inverse_dynamics(mech, q, v, target, projection=P)
        assert relative(res.u, u) < solve_tolerance(res.certificate.condition * P.condition)


@pytest.mark.parametrize("name", few([n for n in NAMES if n not in (*UNEQUAL, "timed_arm")]))
def test_holding_torques_balance_the_potential_energy(name):
    """Virtual work: the holding efforts are the slope of the potential energy along gamma."""
    mech, part = mechanism(name), shared_partition(name)
    rest = np.zeros(mech.nv)
    for q, _ in closed_states(name)[:20]:
        P = hc.project(mech, q, rest, partition=part)
        res = hc.inverse_dynamics(mech, q, rest, rest, coordinates="all", projection=P)
        for column in P.gamma.T:
            slope = potential_slope(mech, q, column)
            assert res.u @ (mech.B.T @ column) == pytest.approx(slope, rel=1e-8, abs=1e-8)
        assert np.abs(res.u).max() > 1e-2
        assert res.certificate.ok


def test_multipliers_are_of_least_norm_and_know_what_is_unique(name):
    mech, part = mechanism(name), shared_partition(name)
    rng = np.random.default_rng(10)
    for q, v in closed_states(name)[:30]:
        res = hc.forward_dynamics(mech, q, v, 5.0 * rng.normal(size=mech.nv), partition=part)
        G = mech.row_scale[:, None] * rows(mech, q, v).jacobian * mech.column_scale
        scaled = res.multipliers / mech.row_scale
        shortest = np.linalg.lstsq(G.T, G.T @ scaled, rcond=1e-9)[0]
        assert np.abs(scaled).max() > 1e-3
        assert_rows_close(
            mech, scaled, shortest, 1e-9, (q, v), what="scaled multiplier", by_size=True
        )
        _, s, Vt = np.linalg.svd(G.T)
        null = Vt[np.count_nonzero(s > 1e-9 * s[0]) :]
        free = np.abs(null).max(axis=0, initial=0.0) > 1e-8
        assert (res.unique == ~free).all()


def test_a_certificate_is_lost_when_a_solution_is_spoilt(name):
    """Guard: every residual reacts to the error that it is there for."""
    from holoctl.dynamics.certificate import certify

    mech, part = mechanism(name), shared_partition(name)
    q, v = closed_states(name)[0]
    P = hc.project(mech, q, v, partition=part)
    res = hc.inverse_dynamics(mech, q, v, feasible_target(P), projection=P)
    efforts = mech.B @ res.u
    good = certify(P.terms, P.partition, res.a, efforts, res.multipliers, 1.0)
    assert good.ok
    worse_a = certify(P.terms, P.partition, res.a + 1e-3, efforts, res.multipliers, 1.0)
    assert {"acceleration", "dynamics"} <= set(worse_a.failures)
    worse_u = certify(P.terms, P.partition, res.a, efforts * 1.001 + 1e-3, res.multipliers, 1.0)
    assert {"dynamics", "power"} <= set(worse_u.failures)
    worse_lambda = certify(P.terms, P.partition, res.a, efforts, res.multipliers * 1.01, 1.0)
    assert "dynamics" in worse_lambda.failures
    off = hc.project(mech, pin.integrate(mech.model, q, 0.01 * np.arange(mech.nv)), v + 0.01,
                     partition=part)  # fmt: skip
    assert {"closure", "velocity_residual"} <= set(
        certify(off.terms, off.partition, res.a, efforts, res.multipliers, 1.0).failures
    )


def test_the_order_of_constraints_and_rows_does_not_matter():
    """The same motions and torques; kept rows and multipliers may be others."""
    import dataclasses

    rng = np.random.default_rng(11)
    for name in ("five_bar_revolute", "third_bar", "geared_slider", "hung_plate", "standing_leg"):
        mech = mechanism(name)
        flipped = [
            dataclasses.replace(c, joint=None, axes="rx ry z y x")
            if isinstance(c, hc.Closure) and c.joint == "revolute" else c
            for c in reversed(mech.constraints)
        ]  # fmt: skip
        other = hc.Mechanism(
            mech.model, flipped, mech.actuated, reference=mech.reference, name=mech.name
        )
        parts = [shared_partition(name), hc.partition(other, hc.assemble(other)[0])]
        for q, v in closed_states(name, 20):
            P = hc.project(mech, q, v, partition=parts[0])
            target, tau = feasible_target(P, rng), rng.normal(size=mech.nv)
            u = [hc.inverse_dynamics(m, q, v, target, partition=p)
                 for m, p in zip((mech, other), parts, strict=True)]  # fmt: skip
            a = [hc.forward_dynamics(m, q, v, tau, partition=p)
                 for m, p in zip((mech, other), parts, strict=True)]  # fmt: skip
            tol = solve_tolerance(P.condition**2 * a[0].certificate.condition)
            assert relative(u[0].u, u[1].u) < tol
            assert relative(u[0].a, u[1].a) < tol
            assert relative(a[0].a, a[1].a) < tol


@pytest.mark.parametrize(
    ("name", "rows", "rank", "dof"),
    [("bennett", 5, 2, 1), ("bricard", 5, 4, 1), ("third_bar", 10, 3, 1),
     ("six_row_four_bar", 6, 3, 1), ("idle_rod", 3, 3, 2), ("five_bar_revolute", 5, 2, 2)],
)  # fmt: skip
def test_overconstrained_loops_have_the_rank_that_lets_them_move(name, rows, rank, dof):
    mech, part = mechanism(name), shared_partition(name)
    assert (len(mech.row_scale), part.rank, mech.nv - part.rank) == (rows, rank, dof)
    assert not part.uncertain
    for q, _ in closed_states(name, 20)[:10]:
        assert hc.partition(mech, q).rank == rank
