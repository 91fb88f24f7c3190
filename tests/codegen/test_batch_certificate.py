"""Certificates of compiled batches: the numbers of `Certificate`, at every state."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from expressed import case, compiled, five_bar, states
from forced import forced
from overconstrained import drawn, meant
from support import ANY_STATE, few, mechanism, stretched

import holoctl as hc
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws import law_with_certificate

NUMBERS = ("closure", "velocity_residual", "acceleration", "dynamics", "redundant")

T0 = 0.3
"""s, of all states."""

SAME, ROUNDING = 1e-9, 1e-12
"""What two paths may differ by: relatively, and where a number is rounding."""


def robot(name):
    mech = hc.load(hc.robot_file(name))
    return mech, hc.partition(mech, hc.assemble(mech)[0])


def overconstrained(name, eps):
    _, exact = drawn(name)
    mech = meant(exact, eps) if eps else exact
    return mech, hc.partition(mech, hc.assemble(mech)[0])


MECHANISMS = {
    "four_bar": lambda: case("four_bar"),
    "five_bar": lambda: case("five_bar"),
    "floating_leg": lambda: case("floating_leg"),  # passive motions, a quaternion
    "three_motors": lambda: case("three_motors"),  # more motors than motions
    "stabilised": lambda: case("stabilised"),
    "timed_arm_expressed": lambda: case("timed_arm_expressed"),
    "no_constraints": lambda: case("no_constraints"),
    "third_bar": lambda: case("third_bar"),  # rows that repeat each other
    "delta": lambda: robot("delta"),
    "stewart": lambda: robot("stewart"),
    "leg": lambda: robot("leg"),
    "five_bar with every force": lambda: forced("five_bar"),
    "bennett": lambda: overconstrained("bennett", 0.0),
    "rounded bennett": lambda: overconstrained("bennett", 1e-6),
    "rounded four_bar": lambda: overconstrained("four_bar", 1e-6),
}
"""Name to mechanism and partition."""

made = cache(lambda name: MECHANISMS[name]())

REDUNDANT, ROUNDED = ("third_bar", "bennett"), ("rounded bennett", "rounded four_bar")


def states_of(name, count=4):
    """Tables of states on the manifold, beside it and far from it."""
    mech, _ = made(name)
    rng, found = np.random.default_rng(3), []
    home, _ = hc.assemble(mech, t=T0)
    for i in range(3 * count):
        off = (0.0, 1e-4, 0.05)[i % 3] * mech.column_scale
        guess = pin.integrate(mech.model, home, 0.05 * rng.normal(size=mech.nv) * mech.column_scale)
        q, v = hc.assemble(mech, guess, rng.normal(size=mech.nv) * mech.column_scale, t=T0)
        q = pin.integrate(mech.model, q, off * rng.normal(size=mech.nv))
        found.append((q, v + off * rng.normal(size=mech.nv)))
    return tuple(np.array(x) for x in zip(*found, strict=True))


def judge(name, numbers, reference):
    """Compare numbers (N, 5) with certificates; and see that they say something."""
    expected = np.array([[getattr(c, what) for what in NUMBERS] for c in reference])
    np.testing.assert_allclose(numbers, expected, SAME, ROUNDING, err_msg=name)
    if name != "no_constraints":
        assert (expected[:, :2].max(axis=0) > 1e-3).all()
        assert (expected[::3, :2] < 1e-9).all()
    if name in REDUNDANT:
        assert (expected[:, 2:].max(axis=0) > 1e-4).all()
        assert np.ptp(expected[1::3, 3]) > 1e-7
    if name in ROUNDED:
        assert reference[0].tolerance > 0.0
        assert (expected[::3, 4] > 1e-8).all()
    return expected


@pytest.mark.parametrize("name", few(MECHANISMS, ("third_bar",)))
def test_expressions_are_those_of_the_certificate(name):
    """Inverse and forward, on the manifold and off it."""
    mech, part = made(name)
    E, rng = symbolic(mech, part), np.random.default_rng(5)
    Q, V = states_of(name)
    laws = {
        hc.inverse_dynamics: (law_with_certificate.certified_inverse(E, None, "project"), mech.nu),
        hc.forward_dynamics: (law_with_certificate.certified_forward(E), mech.nv),
    }
    for law, (function, size) in laws.items():
        options = {"inconsistent": "project"} if law is hc.inverse_dynamics else {}
        found, reference = [], []
        for q, v in zip(Q, V, strict=True):
            x, t = rng.normal(size=size), T0
            expected = law(mech, q, v, x, t=t, partition=part, **options)
            _, numbers, guard = function(q, v, x, t)
            assert guard < 1.0
            found.append(np.array(numbers)[:, 0])
            reference.append(expected.certificate)
        judge(name, np.array(found), reference)


def test_efforts_that_are_wrong_are_told(monkeypatch):
    mech, part = case("five_bar")
    E = symbolic(mech, part)
    right = law_with_certificate.inverse_function

    def wrong(*args):
        f = right(*args)
        x = [f.sx_in(i) for i in range(4)]
        u, a, guard = f.call(x, True, False)
        return type(f)("wrong", x, [1.001 * u, a, guard])

    monkeypatch.setattr(law_with_certificate, "inverse_function", wrong)
    q, v = states("five_bar", "closed", 1)[0]
    u, numbers, _ = law_with_certificate.certified_inverse(E)(q, v, np.ones(2), 0.0)
    expected = hc.inverse_dynamics(mech, q, v, np.ones(2), partition=part).u
    np.testing.assert_allclose(np.array(u)[:, 0], 1.001 * expected)
    assert float(numbers[3]) > 1e-5


@pytest.mark.parametrize(
    "name", few([n for n in MECHANISMS if n != "no_constraints"], ("five_bar",))
)
def test_a_batch_with_certificates(name):
    mech, part = made(name)
    options = {"partition": part, "inconsistent": "project", "flags": ["-O0"], **ANY_STATE}
    if name == "five_bar":
        f = five_bar()
    else:
        f = hc.compile(mech, ["inverse_dynamics", "forward_dynamics"], **options)
    rng, t, (Q, V) = np.random.default_rng(6), T0, states_of(name)
    T, TAU = rng.normal(size=(len(Q), mech.nu)), rng.normal(size=(len(Q), mech.nv))
    U, found = f.inverse_dynamics_batch(Q, V, T, t, certificate=True)
    np.testing.assert_allclose(U, f.inverse_dynamics_batch(Q, V, T, t), SAME, SAME)
    rows = zip(Q, V, T, strict=True)
    certificates = [
        hc.inverse_dynamics(mech, *row, inconsistent="project", t=t, partition=part).certificate
        for row in rows
    ]
    expected = judge(name, np.column_stack([getattr(found, n) for n in NUMBERS]), certificates)
    assert found.tolerance == part.tolerance
    off = (expected[:, :2] > max(1e-6, part.tolerance)).any(axis=1)
    assert not found.ok[off].any()
    assert found.ok[::3].all()
    A, found = f.forward_dynamics_batch(Q, V, TAU, t, certificate=True)
    np.testing.assert_allclose(A, f.forward_dynamics_batch(Q, V, TAU, t), 1e-7, 1e-7)
    rows = zip(Q, V, TAU, strict=True)
    certificates = [
        hc.forward_dynamics(mech, *row, t=t, partition=part).certificate for row in rows
    ]
    judge(name, np.column_stack([getattr(found, n) for n in NUMBERS]), certificates)
    assert f.fallbacks == 0 or name == "five_bar"


def test_where_python_answers_it_certifies_too():
    f, mech = five_bar(), mechanism("five_bar")
    Q, V = (np.array(x) for x in zip(*states("five_bar", "closed", 6), strict=True))
    T, TAU = np.ones((6, 2)), np.ones((6, 4))
    Q[2] = np.add(stretched(1e-3), [0.0, 1e-4, 0.0, 0.0])  # rods in line: the guard is in doubt
    out = np.zeros((6, 2))
    for method, law, x, options in (
        (f.inverse_dynamics_batch, hc.inverse_dynamics, T, {"out": out}),
        (f.forward_dynamics_batch, hc.forward_dynamics, TAU, {}),
    ):
        count = f.fallbacks
        X, found = method(Q, V, x, certificate=True, workers=1, **options)
        assert f.fallbacks == count + 1
        expected = law(mech, Q[2], V[2], x[2], partition=f.partition)
        np.testing.assert_allclose(X[2], getattr(expected, "u" if x is T else "a"), SAME)
        for name in NUMBERS:
            assert getattr(found, name)[2] == pytest.approx(
                getattr(expected.certificate, name), SAME, ROUNDING
            )
        np.testing.assert_array_equal(found.ok, [True, True, False, True, True, True])
    assert f.inverse_dynamics_batch(Q, V, T, certificate=True, out=out)[0] is out
    assert len(f.inverse_dynamics_batch(Q[:0], V[:0], T[:0], certificate=True)[1]) == 0


def test_errors_of_a_batch_with_certificates_tell_the_state():
    f = five_bar()
    Q, V = (np.array(x) for x in zip(*states("five_bar", "closed", 6), strict=True))
    T = np.ones((6, 2))
    V[4, 0] = np.nan
    with pytest.raises(hc.InputError, match=r"v.*finite") as caught:
        f.inverse_dynamics_batch(Q, V, T, certificate=True)
    assert "at state 4 of the batch" in caught.value.__notes__
    with pytest.raises(hc.InputError, match="TAU must have shape"):
        f.forward_dynamics_batch(Q, V, T, certificate=True)
    with pytest.raises(hc.InputError, match=r"Q, V and TAU must have as many rows; got 6, 6, 3"):
        f.forward_dynamics_batch(Q, V, np.ones((3, 4)))
    with pytest.raises(hc.InputError, match="certificate must be"):
        f.inverse_dynamics_batch(Q, V, T, certificate="yes")
    only = compiled("five_bar", ("inverse_dynamics",))
    with pytest.raises(hc.InputError, match="not compiled"):
        only.forward_dynamics_batch(Q, V, np.ones((6, 4)), certificate=True)


def test_the_value_judges_and_tells():
    good = np.full(4, 1e-12)
    numbers = dict.fromkeys(NUMBERS, good)
    found = hc.results.BatchCertificate(**numbers)
    assert found.ok.all()
    assert found.raise_if_bad() is found
    assert repr(found) == "<BatchCertificate of 4 states: certified>"
    bad = hc.results.BatchCertificate(
        **numbers | {"closure": [0.0, 1e-5, 0.0, 2e-5], "dynamics": [0.0, np.nan, 0.0, 0.0]}
    )
    assert bad.ok.tolist() == [True, False, True, False]
    assert bad.failures == ("closure", "dynamics")
    assert repr(bad) == "<BatchCertificate of 4 states: NOT certified at 2 (closure, dynamics)>"
    told = r"2 states of a batch of 4.*\(1, 3\).*2\.0e-05 at state 3.*nan at state 1"
    with pytest.raises(hc.InconsistentError, match=told):
        bad.raise_if_bad()
    with pytest.raises(ValueError, match="read-only"):
        bad.closure[0] = 1.0
    again = pickle.loads(pickle.dumps(bad))
    assert not again.closure.flags.writeable
    rounded = hc.results.BatchCertificate(**numbers | {"closure": [2e-5] * 4}, tolerance=1e-4)
    assert rounded.ok.all()
