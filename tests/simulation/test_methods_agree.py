"""Methods of integration agree, on constraints of every kind; stiff forces; fast spins."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from support import closed_states, few, mechanism, together
from zoo import at, five_bar

import holoctl as hc

OTHERS = ("RK45", "LSODA", "Radau", "BDF")
KINDS = {"alone": {}, "ticks": {"frequency": 50.0}, "analog": {"hold": False}}
NAMES = ("four_bar", "sine_chart", "timed_arm", "floating_leg", "hung_plate", "bennett")


def both(mech, q, v, duration, method, controller=None, **options):
    runs = [
        hc.simulate(mech, controller, q, v, duration, **together(method=m, **options))
        for m in ("DOP853", method)
    ]
    return [
        pin.difference(mech.model, *pair) for pair in zip(*(r.q for r in runs), strict=True)
    ], runs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", OTHERS)
@pytest.mark.parametrize("name", few(NAMES, ["four_bar"]))
def test_methods_agree(name, method, kind):
    mech = mechanism(name)
    q, v = closed_states(name, 30)[3]
    u = 0.5 * np.ones(mech.nu)
    controller = None if kind == "alone" else lambda t, q, v: np.sin(8.0 * t) * u
    off, (exact, run) = both(mech, q, v, 0.06, method, controller, **KINDS[kind])
    assert np.abs(off).max() < 1e-7
    assert np.abs(run.v - exact.v).max() < 1e-5 * (1.0 + np.abs(exact.v).max())
    assert run.closure.max() < 1e-11


@pytest.mark.parametrize("method", ["auto", "RK45"])
@pytest.mark.parametrize("name", few(NAMES[1:], ["floating_leg", "hung_plate"]))
def test_explicit_methods_agree(name, method):
    mech = mechanism(name)
    q, v = closed_states(name, 30)[3]
    u = 0.5 * np.ones(mech.nu)
    for kind, options in KINDS.items():
        controller = None if kind == "alone" else lambda t, q, v: np.sin(8.0 * t) * u
        off, _ = both(mech, q, v, 0.03, method, controller, **options)
        assert np.abs(off).max() < 1e-7


@pytest.mark.parametrize("method", ["auto", *OTHERS])
def test_loads_from_outside_agree(method):
    mech = mechanism("floating_leg")
    q, v = closed_states("floating_leg", 30)[3]
    tip = mech.model.names[-1]
    options = {
        "f_ext": lambda t, q, v: {tip: ([np.sin(9.0 * t), 0.0, 2.0], [0.0, 0.1, 0.0])},
        "efforts": lambda t, q, v: -0.2 * v,
    }
    off, (one, _) = both(mech, q, v, 0.1, method, frequency=100.0, **options)
    assert np.abs(off).max() < 1e-7
    alone = hc.simulate(mech, None, q, v, 0.1, frequency=100.0)
    assert np.abs(one.q - alone.q).max() > 1e-4


def spinning(joint):
    model = pin.Model()
    model.gravity.linear = np.zeros(3)
    body = model.addJoint(0, joint, at(), "body")
    inertia = pin.Inertia(2.0, np.zeros(3), np.diag([0.01, 0.02, 0.025]))
    model.appendBodyToJoint(body, inertia, at())
    return hc.Mechanism(model, [], [], name="top"), inertia


@pytest.mark.parametrize("method", ["auto", *OTHERS])
@pytest.mark.parametrize("joint", [pin.JointModelSpherical(), pin.JointModelFreeFlyer()])
def test_a_body_that_spins_fast_keeps_its_momentum(joint, method):
    """About its middle axis, which is not steady: it turns over, at 60 rad/s."""
    mech, inertia = spinning(joint)
    q = pin.neutral(mech.model)
    v = np.concatenate([np.zeros(mech.nv - 3), [0.1, 60.0, 0.1]])
    run = hc.simulate(
        mech,
        None,
        q,
        v,
        0.4,
        integrator=hc.Integrator(method=method),
        output=np.linspace(0.0, 0.4, 9),
    )
    momenta = [
        pin.Quaternion(q[-4:]).toRotationMatrix() @ inertia.inertia @ v[-3:]
        for q, v in zip(run.q, run.v, strict=True)
    ]
    tolerance = 1e-6 if method in ("auto", "RK45") else 1e-4
    size = np.linalg.norm(momenta[0])
    assert np.abs(np.array(momenta) - momenta[0]).max() < tolerance * size
    assert np.ptp(run.energy["kinetic"]) < tolerance * run.energy["kinetic"][0]
    assert np.abs(np.linalg.norm(run.q[:, -4:], axis=1) - 1.0).max() < 1e-12


def test_rounded_geometry_agrees_too():
    exact = mechanism("bennett")
    model = exact.model.copy()
    rng = np.random.default_rng(0)
    for i in range(1, model.njoints):
        shift = pin.exp6(pin.Motion(1e-7 * rng.normal(size=6)))
        model.jointPlacements[i] = model.jointPlacements[i] * shift
    mech = dataclasses.replace(exact.with_model(model), tolerance=1e-4)
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    for method in ("auto", "RK45", "Radau"):
        off, (_, run) = both(mech, q, v, 0.1, method, frequency=50.0)
        assert np.abs(off).max() < 1e-7
        assert run.closure.max() < 1e-4


# ------------------------------------------------------------------------------- stiff forces

FRICTION = hc.JointFriction(coulomb=2.0, transition=1e-4)


@pytest.mark.parametrize("method", ["auto", "LSODA"])
def test_stiff_forces_take_few_steps(method):
    """`auto` goes over to a method for them; DOP853 alone takes ten thousand steps."""
    mech = five_bar("revolute").with_forces([FRICTION])
    q, v = hc.assemble(mech)
    options = {"rtol": 1e-7, "atol": 1e-9}
    run = hc.simulate(mech, None, q, v, 0.1, **together(method=method, **options))
    exact = hc.simulate(
        mech, None, q, v, 0.1, integrator=hc.Integrator(method="Radau", rtol=1e-10, atol=1e-12)
    )
    assert run.steps < 300
    assert run.q == pytest.approx(exact.q, abs=1e-6)
    assert run.closure.max() < 1e-11
    free = hc.simulate(five_bar("revolute"), None, q, v, 0.1, **together(**options))
    assert np.abs(free.q[-1] - run.q[-1]).max() > 1e-2


@pytest.mark.parametrize("rate", [1000.0, 20.0])
def test_stiff_forces_under_ticks(rate):
    mech = five_bar("revolute").with_forces([FRICTION])
    q, v = hc.assemble(mech)
    options = {"rtol": 1e-7, "atol": 1e-9, "frequency": rate}
    auto, radau = (
        hc.simulate(mech, lambda t, q, v: [1.0, -1.0], q, v, 0.05, **together(method=m, **options))
        for m in ("auto", "Radau")
    )
    assert auto.q == pytest.approx(radau.q, abs=1e-7)
    assert auto.steps < 200


def test_what_is_too_stiff_for_a_method_is_told():
    mech = five_bar("revolute").with_forces([FRICTION])
    q, v = hc.assemble(mech)
    with pytest.raises(hc.InconsistentError, match="too fast to integrate") as caught:
        hc.simulate(
            mech, None, q, v, 0.1, integrator=hc.Integrator(method="DOP853"), frequency=20.0
        )
    assert 0.0 < caught.value.time < 0.05
    assert caught.value.run.closure.max() < 1e-11
