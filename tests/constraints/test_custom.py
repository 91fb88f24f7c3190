"""Constraints of one's own: callbacks, numerical derivatives, time."""

from __future__ import annotations

import pickle

import numpy as np
import pinocchio as pin
import pytest
import zoo
from support import assert_rows_close, closed_states, mechanism, relative, rows

import holoctl as hc


def without(*parts):
    """The sine gear with some of its callbacks left to differences."""
    given = {"jacobian": zoo.sine_jacobian, "drift": zoo.sine_drift}
    kept = {name: f for name, f in given.items() if name not in parts}
    mech = mechanism("sine_gear")
    return hc.Mechanism(mech.model, [hc.Custom(zoo.sine, **kept)], ["shoulder"])


@pytest.mark.parametrize("left_out", [("drift",), ("jacobian",), ("jacobian", "drift")])
def test_numerical_derivatives_replace_callbacks(left_out):
    exact, numeric = mechanism("sine_gear"), without(*left_out)
    for q, v in closed_states("sine_gear")[:20]:
        a, b = rows(exact, q, v), rows(numeric, q, v)
        assert_rows_close(exact, b.jacobian, a.jacobian, 1e-11, (q, v), what="G")
        tol = 1e-8 * (1.0 + np.abs(a.drift).max())
        assert_rows_close(exact, b.drift, a.drift, tol, (q, v), what="drift")
    assert np.abs(a.drift).max() > 1e-2


def test_numerical_derivatives_are_along_v_for_quaternions_too():
    """A ball joint kept upright: phi from the quaternion, rate from the angular velocity."""
    m = pin.Model()
    j = m.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "ball")
    m.inertias[j] = pin.Inertia(1.0, np.array([0.0, 0.0, 0.3]), np.diag([0.1, 0.2, 0.3]))

    def lean(q):
        return [(pin.Quaternion(q[3], q[0], q[1], q[2]).matrix() @ [0.0, 0.0, 1.0])[0]]

    custom = hc.Mechanism(m, [hc.Custom(lean)], ["ball[1]"])
    q, v = hc.assemble(custom, pin.integrate(m, pin.neutral(m), np.array([0.4, 0.3, -0.2])),
                       [1.0, 2.0, 3.0])  # fmt: skip
    R = pin.Quaternion(q[3], q[0], q[1], q[2]).matrix()
    expected = np.array([1.0, 0.0, 0.0]) @ R @ -pin.skew(np.array([0.0, 0.0, 1.0]))
    assert np.abs(rows(custom, q, v).jacobian[0] - expected).max() < 1e-10
    res = hc.forward_dynamics(custom, q, v, np.zeros(3))
    assert res.certificate.ok


def _rate_t(q, t):
    return [-0.15 * np.cos(3.0 * t)]


def _wave(q, t):
    return [q[1] - 2.0 * np.sin(q[0]) - 0.05 * np.sin(3.0 * t)]


def _wave_jacobian(q, t):
    return zoo.sine_jacobian(q)


def _wave_drift(q, v, t):
    return [zoo.sine_drift(q, v)[0] + 0.45 * np.sin(3.0 * t)]


WAVE = {"jacobian": _wave_jacobian, "rate_t": _rate_t, "drift": _wave_drift}


@pytest.mark.parametrize(
    ("what", "wrong"),
    [
        ("jacobian", lambda q, t: -np.array(_wave_jacobian(q, t))),
        ("jacobian", lambda q, t: 1.001 * np.array(_wave_jacobian(q, t))),
        ("jacobian", lambda q, t: [[0.0, 1.0]]),
        ("rate_t", lambda q, t: [0.0]),
        ("drift", lambda q, v, t: np.zeros(1)),
        ("drift", lambda q, v, t: zoo.sine_drift(q, v)),  # the terms of time forgotten
        ("drift", lambda q, v, t: -np.array(_wave_drift(q, v, t))),
    ],
)
def test_derivatives_that_are_not_those_of_phi_are_refused(what, wrong):
    """A wrong one was certified: the certificate takes rows as they are given."""
    model = mechanism("sine_gear").model
    hc.Mechanism(model, [hc.Custom(_wave, **WAVE, time=True, name="wave")], ["shoulder"])
    for others in (WAVE, {}):
        given = hc.Custom(_wave, **(others | {what: wrong}), time=True, name="wave")
        with pytest.raises(hc.InputError, match=f"^{what} of Custom 'wave' is not the derivative"):
            hc.Mechanism(model, [given], ["shoulder"])


def test_derivatives_are_compared_where_phi_is_defined():
    def phi(q):
        if abs(q[1]) > 1e-3:
            raise ValueError("outside")
        return [q[0] - np.sqrt(1e-6 - q[1] ** 2)]

    def jacobian(q):
        return [[1.0, q[1] / np.sqrt(1e-6 - q[1] ** 2)]]

    model = mechanism("sine_gear").model
    hc.Mechanism(model, [hc.Custom(phi, jacobian)])
    with pytest.raises(hc.InputError, match="jacobian of Custom 'phi'"):
        hc.Mechanism(model, [hc.Custom(phi, lambda q: -np.array(jacobian(q)))])


def test_rows_of_any_size_are_compared_by_their_own():
    """One row in other units must not hide what is wrong with another."""
    model = mechanism("sine_gear").model

    def phi(q):
        return [1e6 * q[0], 1e-3 * np.sin(q[1])]

    def custom(factor):
        def jacobian(q):
            return [[1e6, 0.0], [0.0, factor * 1e-3 * np.cos(q[1])]]

        return hc.Custom(phi, jacobian, rows=2)

    hc.Mechanism(model, [custom(1.0)])
    for factor in (2.0, 1.001, 0.0):
        with pytest.raises(hc.InputError, match="jacobian @ v of row 1 is"):
            hc.Mechanism(model, [custom(factor)])


def test_a_constraint_in_time_drives_the_mechanism():
    """Simulated, the tip follows the bench; its velocity is the imposed one."""
    mech = mechanism("timed_arm")
    q, v = hc.assemble(mech, t=0.0)
    run = hc.simulate(mech, lambda t, q, v: np.zeros(2), q, v, 0.5, rate=50.0)
    for t, q, v in zip(run.t, run.q, run.v, strict=True):
        assert abs(zoo.tip_height(q, t)[0]) < 1e-10
        r = rows(mech, q, v, t)
        assert abs(r.rate[0]) < 1e-9
        assert r.jacobian @ v == pytest.approx(0.15 * np.cos(3.0 * t), abs=1e-8)
    part = hc.partition(mech, run.q[-1], t=0.5)
    res = hc.inverse_dynamics(mech, run.q[-1], run.v[-1], [1.0, 2.0], t=0.5, partition=part)
    assert res.certificate.ok, str(res.certificate)
    assert res.certificate.power < 1e-8
    back = hc.forward_dynamics(mech, run.q[-1], run.v[-1], mech.B @ res.u, t=0.5, partition=part)
    assert relative(mech.B.T @ back.a, [1.0, 2.0]) < 1e-8


def test_named_callbacks_pickle():
    mech = mechanism("timed_arm")
    again = pickle.loads(pickle.dumps(mech))
    q, v = closed_states("timed_arm")[0]
    assert (rows(again, q, v).drift == rows(mech, q, v).drift).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hc.Custom(None), "phi must be a function"),
        (lambda: hc.Custom(zoo.sine, jacobian=3), "jacobian must be a function"),
        (lambda: hc.Custom(zoo.sine, rows=0), "rows"),
        (lambda: hc.Custom(zoo.sine, scale=0.0), "scale"),
        (lambda: hc.Custom(zoo.sine, scale=[1.0, 2.0]), "scale"),
        (lambda: hc.Custom(zoo.sine, rate_t=zoo.sine), "time=True"),
        (lambda: hc.Custom(zoo.sine, t_stab=0.0), "t_stab"),
        (lambda: arm(hc.Custom(lambda q: [1.0, 2.0], name="two")), "phi of Custom 'two'"),
        (lambda: arm(hc.Custom(lambda q: [np.nan], name="nan")), "finite"),
        (lambda: arm(hc.Custom(zoo.sine, lambda q: [[1.0]], name="thin")), "jacobian of Custom"),
        (lambda: arm(hc.Custom(lambda q: "high", name="word")), "real numbers"),
    ],
)
def test_callbacks_that_make_no_sense_are_refused(make, words):
    with pytest.raises(hc.InputError, match=words):
        make()


def arm(custom):
    return hc.Mechanism(mechanism("sine_gear").model, [custom])


@pytest.mark.parametrize("scale", [[1.0, 1.0], [1.0, 2.0, 3.0]])
def test_more_scales_than_rows_are_told_about_rows(scale):
    with pytest.raises(hc.InputError, match=rf"rows=1.*did you mean rows={len(scale)}\?"):
        hc.Custom(lambda q: q[: len(scale)], scale=scale)


def test_more_numbers_than_rows_are_told_about_rows():
    mech = zoo.ZOO["four_bar"]()
    with pytest.raises(hc.InputError, match=r"got \(2,\); rows=1 tells how many"):
        mech.with_constraints(hc.Custom(lambda q: q[:2]))
