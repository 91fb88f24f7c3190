"""Compiled laws give the numbers of the Python path, on the manifold and off it."""

from __future__ import annotations

import contextlib

import numpy as np
import pinocchio as pin
import pytest
import zoo
from expressed import (
    EXPRESSED,
    QUICK,
    case,
    compiled,
    five_bar,
    forward_reference,
    inverse_reference,
    states,
    tolerance,
)
from support import (
    ANY_STATE,
    assert_coordinates_close,
    assert_rows_close,
    closed_states,
    few,
    mechanism,
    relative,
    shared_partition,
)
from zoo import ZOO

import holoctl as hc
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws.inverse_dynamics import holding_function
from holoctl.dynamics.certificate import Certificate

# ------------------------------------------------------------------------------ agreement


@pytest.mark.parametrize("name", few(EXPRESSED, QUICK))
def test_terms_are_those_of_the_python_path(name):
    mech, _ = case(name)
    f, rng = compiled(name), np.random.default_rng(1)
    before = f.fallbacks
    for q, v in [*states(name, "closed", 5), *states(name, "open", 15)]:
        t = rng.uniform()
        T, got = hc.terms(mech, q, v, t=t), f.terms(q, v, t)
        size = 1.0 + np.abs(v).max() ** 2
        for what in ("error", "rate", "jacobian", "drift", "M", "h"):
            x, y = getattr(got, what), getattr(T, what)
            close = assert_coordinates_close if what in "Mh" else assert_rows_close
            close(mech, x, y, 1e-12 * (size + np.abs(y).max(initial=0.0)), (q, v), what=what)
    assert f.fallbacks == before
    assert np.abs(T.h).max() > 0.01


@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", few([n for n in EXPRESSED if n != "feet_without_motors"], QUICK))
def test_inverse_dynamics_is_that_of_the_python_path(name, where):
    mech, part = case(name)
    f, rng = compiled(name), np.random.default_rng(2)
    prepared = hc.PreparedInverseDynamics(mech, part, f.weights, "project", **ANY_STATE)
    before, given = f.fallbacks, states(name, where, 40)
    for q, v in given:
        target, t, count = rng.normal(size=mech.nu), rng.uniform(), f.fallbacks
        u = f.inverse_dynamics(q, v, target, t)
        if f.fallbacks == count:
            expected, condition = inverse_reference(prepared, q, v, target, t)
            assert np.abs(expected).max() > 1e-6
            assert relative(u, expected) < tolerance(condition)
    # far off the manifold a split may be singular
    assert f.fallbacks - before <= (0.1 if where == "closed" else 0.4) * len(given)


@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", few(EXPRESSED, QUICK))
def test_forward_dynamics_is_that_of_the_python_path(name, where):
    mech, part = case(name)
    f, rng = compiled(name), np.random.default_rng(3)
    before, given = f.fallbacks, states(name, where, 40)
    for q, v in given:
        tau, t, count = rng.normal(size=mech.nv), rng.uniform(), f.fallbacks
        a = f.forward_dynamics(q, v, tau, t)
        if f.fallbacks == count:
            expected, condition = forward_reference(mech, part, q, v, tau, t)
            assert relative(a, expected) < tolerance(condition)
    assert f.fallbacks - before <= (0.1 if where == "closed" else 0.4) * len(given)


@pytest.mark.parametrize(
    "name",
    few(["four_bar", "floating_leg", "weld_chain", "three_motors"], ["four_bar", "floating_leg"]),
)
def test_forward_undoes_inverse(name):
    mech, part = case(name)
    f, rng = compiled(name), np.random.default_rng(4)
    for q, v in states(name, "closed", 10):
        P = hc.project(mech, q, v, partition=part)
        target = mech.B.T @ (P.gamma @ rng.normal(size=P.k) + P.bias)
        a = f.forward_dynamics(q, v, mech.B @ f.inverse_dynamics(q, v, target))
        assert relative(mech.B.T @ a, target) < 1e-9


@pytest.mark.parametrize("name", few(hc.robot_names(), ["four_bar", "five_bar", "delta"]))
def test_our_robots_compile(name):
    mech = hc.load(hc.robot_file(name))
    f = hc.compile(mech, ["inverse_dynamics"], flags=["-O0"])
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    target = np.ones(mech.nu)
    expected = hc.inverse_dynamics(mech, q, v, target, partition=f.partition).u
    assert relative(f.inverse_dynamics(q, v, target), expected) < 1e-11
    assert f.fallbacks == 0


# ------------------------------------------------------------------- arrays and arguments


def test_out_takes_the_result_and_may_be_an_input():
    f = five_bar()
    q, v = closed_states("five_bar")[0]
    target, out = np.array([1.0, 2.0]), np.zeros(2)
    u = f.inverse_dynamics(q, v, target)
    assert f.inverse_dynamics(q, v, target, out=out) is out
    assert (out == u).all()
    place = target.copy()
    assert f.inverse_dynamics(q, v, place, out=place) is place
    assert (place == u).all()
    strided = np.zeros(4)[::2]
    assert f.inverse_dynamics(q, v, target, out=strided) is strided
    assert (strided == u).all()
    assert (f.inverse_dynamics(q, v, target, 0.0, out=None) == u).all()
    out.setflags(write=False)
    for bad, word in ((out, "read-only"), (np.zeros(3), "out must be"), ([0.0, 0.0], "out must")):
        with pytest.raises(hc.InputError, match=word):
            f.inverse_dynamics(q, v, target, out=bad)


def test_any_form_of_numbers_is_taken():
    f = five_bar()
    before = f.fallbacks
    q, v = closed_states("five_bar")[0]
    u = f.inverse_dynamics(q, v, np.array([1.0, 2.0]))
    spread = np.repeat(q, 2)[::2]
    for given in (
        (q.tolist(), v.tolist(), [1, 2]),
        (spread, v[::-1].copy()[::-1], np.array([1, 2])),
        (q.astype(">f8"), v, np.array([1.0, 2.0], order="F")),
    ):
        assert (f.inverse_dynamics(*given) == u).all()
    assert (f.inverse_dynamics(q, v, target=[1.0, 2.0], t=1) == u).all()
    assert (f.inverse_dynamics(q=q, v=v, target=[1.0, 2.0]) == u).all()
    readable = q.copy()
    readable.setflags(write=False)
    assert (f.inverse_dynamics(readable, v, np.array([1.0, 2.0])) == u).all()
    assert f.fallbacks == before


def test_bad_arguments_are_refused_in_words():
    f = five_bar()
    q, v = closed_states("five_bar")[0]
    for args, word in (
        ((q[:3], v, [0.0, 0.0]), "q must have shape"),
        ((q, [0.0], [0.0, 0.0]), "v must have shape"),
        ((q, v, np.zeros((2, 1))), "target must have shape"),
        ((q, v, "ab"), "target must be an array"),
        ((q, v, [0.0, 0.0], "now"), "t "),
        ((q, v, [0.0, 0.0], np.nan), "t "),
    ):
        with pytest.raises(hc.InputError, match=word):
            f.inverse_dynamics(*args)
    with pytest.raises(hc.InputError, match="tau must have shape"):
        f.forward_dynamics(q, v, [1.0])
    for call in (lambda: f.inverse_dynamics(q, v), lambda: f.inverse_dynamics(q, v, q, 0.0, q, q)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError):
        f.inverse_dynamics(q, v, np.ones(2), place=q)
    with pytest.raises(hc.InputError, match="not compiled"):
        f.torque(q, v, q, v, v)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, in the Python path
def test_numbers_that_are_not_finite_never_become_a_torque(bad):
    """Every entry of every input: an error, also where it has no part in the torque."""
    f = compiled("floating_leg")
    q, v = closed_states("floating_leg")[0]
    good = {"q": q, "v": v, "target": np.ones(3)}
    out = np.full(3, 7.0)
    for which, x in good.items():
        for i in range(x.size):
            given = {**good, which: np.where(np.arange(x.size) == i, bad, x)}
            if np.isfinite(bad):  # squares overflow
                with contextlib.suppress(hc.HoloctlError):
                    assert np.isfinite(f.inverse_dynamics(*given.values())).all()
                continue
            with pytest.raises(hc.InputError, match=rf"{which}.*finite|norm 1"):
                f.inverse_dynamics(*given.values(), out=out)
            assert (out == 7.0).all()
            tables = [np.tile(x, (3, 1)) for x in given.values()]
            with pytest.raises(hc.InputError, match=rf"{which}.*finite|norm 1"):
                f.inverse_dynamics_batch(*tables)


# -------------------------------------------------------------------------------- control


@pytest.mark.parametrize("compensation", ["full", "gravity"])
@pytest.mark.parametrize("name", ["five_bar", "three_motors", "floating_leg", "wheel"])
def test_the_controller_is_that_of_python(name, compensation):
    mech = wheel() if name == "wheel" else mechanism(name)
    if name == "floating_leg" and compensation == "gravity":
        ctl = hc.ComputedTorque(mech, 50.0, 5.0, compensation)
        with pytest.raises(hc.InputError, match="passive"):
            hc.compile(ctl, ["torque"])
        return
    ctl = hc.ComputedTorque(mech, 50.0, 5.0, compensation, shared_partition(name)
                            if name in ZOO else None)  # fmt: skip
    f, rng = hc.compile(ctl, ["torque"], flags=["-O0"]), np.random.default_rng(1)
    for q, v in (
        states(name, "closed", 15)
        if name in ZOO
        else [(wheel_at(a), np.ones(1)) for a in (-3.0, 0.4, 3.1)]
    ):
        q_ref, v_ref, a_ref = rng.normal(size=(3, mech.nu))
        expected = ctl.torque(q, v, q_ref, v_ref, a_ref)
        assert relative(f.torque(q, v, q_ref, v_ref, a_ref), expected) < 1e-11
        whole = pin.integrate(mech.model, q, 0.1 * rng.normal(size=mech.nv))
        if mech.nq != mech.nu:
            expected = ctl.torque(q, v, whole, v_ref, a_ref)
            assert relative(f.torque(q, v, whole, v_ref, a_ref), expected) < 1e-12
    assert f.fallbacks == 0
    with pytest.raises(hc.InputError, match="v_ref must be finite"):
        f.torque(q, v, q_ref, v_ref * np.nan, a_ref)


def wheel():
    m = pin.Model()
    zoo.add_body(m, 0, pin.JointModelRUBY(), zoo.at(), "wheel", zoo.bar(0.2))
    return hc.Mechanism(m, (), ["wheel"])


def wheel_at(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def test_motors_without_a_position_take_the_controllers_own_way():
    mech = mechanism("hung_plate")
    ctl = hc.ComputedTorque(mech, 50.0, 5.0, partition=shared_partition("hung_plate"))
    f = hc.compile(ctl, ["torque"], flags=["-O0"])
    q, v = closed_states("hung_plate")[0]
    one = np.ones(1)
    assert f.torque(q, v, q, one, one) == pytest.approx(ctl.torque(q, v, q, one, one), rel=1e-12)


def test_a_compiled_controller_simulates():
    mech = mechanism("five_bar")
    ctl = hc.ComputedTorque(mech, 400.0, 40.0, partition=shared_partition("five_bar"))
    f = hc.compile(ctl, flags=["-O0"])
    q, v = hc.assemble(mech)
    runs = [
        hc.simulate(mech, lambda t, q, v, c=c: c.torque(q, v, [2.2, 0.9], [0.0, 0.0], [0.0, 0.0]),
                    q, v, 0.05)
        for c in (ctl, f)
    ]  # fmt: skip
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-9
    assert "torque" in repr(f)


def test_a_controller_brings_its_own_partition():
    mech, part = case("five_bar")
    ctl = hc.ComputedTorque(mech, 1.0, 1.0, partition=part)
    with pytest.raises(hc.InputError, match="neither"):
        hc.compile(ctl, partition=part)
    with pytest.raises(hc.InputError, match="controller"):
        hc.compile(mech, ["torque"])
    with pytest.raises(hc.InputError, match="functions"):
        hc.compile(mech, ["inverse"])
    with pytest.raises(hc.InputError, match="name one"):
        hc.compile(mech, [])
    with pytest.raises(hc.InputError, match="Mechanism"):
        hc.compile(mech.model)


def test_holding_is_that_of_python():
    for name in ("five_bar", "spatial_arms", "three_motors"):
        mech, part = case(name)
        f, prepared = holding_function(symbolic(mech, part)), hc.PreparedInverseDynamics(mech, part)
        for q, _ in states(name, "closed", 5):
            u, guard = f(q, 0.0)
            assert guard < 1.0
            assert relative(np.array(u)[:, 0], prepared.holding(q)) < 1e-11


def test_the_certificate_is_there_on_demand():
    f = five_bar()
    q, v = closed_states("five_bar")[0]
    certificate = f.certificate(q, v, [1.0, 2.0])
    assert isinstance(certificate, Certificate)
    assert certificate.ok


# ---------------------------------------------------------------------- what a hostile reader tried


def test_the_certificate_is_that_of_the_compiled_efforts(monkeypatch):
    f = compiled("five_bar", ("inverse_dynamics",))
    q, v = closed_states("five_bar")[0]
    assert f.certificate(q, v, np.ones(2)).ok
    right = f.inverse_dynamics(q, v, np.ones(2))
    monkeypatch.setitem(f.__dict__, "inverse_dynamics", lambda *args: 1.001 * right)
    assert not f.certificate(q, v, np.ones(2)).ok


def test_arrays_that_are_not_aligned_are_taken():
    f = compiled("five_bar", ("inverse_dynamics",))
    q, v = closed_states("five_bar")[0]
    raw = np.zeros(8 * 4 + 1, dtype=np.uint8)[1:].view(float)
    raw[:] = q
    assert not raw.flags.aligned
    wanted = f.inverse_dynamics(q, v, np.ones(2))
    np.testing.assert_array_equal(f.inverse_dynamics(raw, v, np.ones(2)), wanted)
