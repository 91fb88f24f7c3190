"""Modes, models in discrete time, python-control; linear models as values."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import eigvals, expm
from scipy.signal import cont2discrete
from support import closed_states, mechanism
from zoo import add_body, at, bar, vertical

import holoctl as hc


def model_like(A, B=None, rate=None, dt=None, names=None):
    """A linear model of given numbers: that of sliders, its matrices put in."""
    A = np.array(A, dtype=float)
    n, model = len(A) // 2, pin.Model()
    names = names or [f"x{i}" for i in range(n)]
    for name in names:
        add_body(model, 0, pin.JointModelPX(), at(), name, bar(0.2))
    model.gravity = pin.Motion.Zero()
    lin = hc.linearize(hc.Mechanism(model, [], names), np.zeros(n))
    B = lin.B if B is None else np.array(B, dtype=float)
    rate = np.zeros(2 * n) if rate is None else np.array(rate, dtype=float)
    return dataclasses.replace(lin, A=A, B=B, rate=rate, dt=dt)


def sentences(A, dt=None):
    lin = model_like(A)
    return [x.sentence for x in (lin if dt is None else lin.discretized(dt)).modes()]


SWING = "oscillates at 0.4985 Hz (3.132 rad/s), "
TOLD = {
    "double integrator": ([[0, 1], [0, 0]], 2 * ["drifts (no restoring force): 'x0'"]),
    "one with noise": ([[0, 1], [3e-11, -1e-12]], 2 * ["drifts (no restoring force): 'x0'"]),
    "other noise": ([[0, 1], [-3e-11, 1e-12]], 2 * ["drifts (no restoring force): 'x0'"]),
    "pendulum down": ([[0, 1], [-9.81, 0]], [SWING + "not damped: 'x0'"]),
    "pendulum up": (
        [[0, 1], [9.81, 0]],
        [
            "decays by a factor of e in 0.319 s: 'x0'",
            "diverges by a factor of e in 0.319 s: 'x0'",
        ],
    ),
    "damped": (
        [[0, 1], [-9.81, -0.5]],
        ["oscillates at 0.4969 Hz (3.122 rad/s), damping ratio 0.08: 'x0'"],
    ),
    "fed": (
        [[0, 1], [-9.81, 0.5]],
        ["oscillates at 0.4969 Hz (3.122 rad/s), and grows by a factor of e in 4 s: 'x0'"],
    ),
    "coasting": (
        [[0, 1], [0, -0.5]],
        ["drifts (no restoring force): 'x0'", "decays by a factor of e in 2 s: 'x0'"],
    ),
    "critically damped": ([[0, 1], [-1, -2]], 2 * ["decays by a factor of e in 1 s: 'x0'"]),
    "critically, fast": ([[0, 1], [-1e6, -2e3]], 2 * ["decays by a factor of e in 0.001 s: 'x0'"]),
    "slow beside stiff": (
        [[0, 0, 1, 0], [0, 0, 0, 1], [-0.05, 0, 0, 0], [0, -1e9, 0, 0]],
        [
            "oscillates at 0.03559 Hz (0.2236 rad/s), not damped: 'x0'",
            "oscillates at 5033 Hz (3.162e+04 rad/s), not damped: 'x1'",
        ],
    ),
    "two carts on a spring": (
        [[0, 0, 1, 0], [0, 0, 0, 1], [-5, 5, 0, 0], [5, -5, 0, 0]],
        [
            *2 * ["drifts (no restoring force): 'x0', 'x1'"],
            "oscillates at 0.5033 Hz (3.162 rad/s), not damped: 'x0', 'x1'",
        ],
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_sentences(name):
    A, told = TOLD[name]
    assert sorted(sentences(A)) == sorted(told)
    for dt in (1e-6, 1e-3) if "stiff" not in name else (1e-6,):
        assert sorted(sentences(A, dt)) == sorted(told)


def test_what_is_gone_after_a_tick():
    (slow, fast) = model_like([[0, 1], [-1, -1e5]]).discretized(1e-1).modes()
    assert slow.value == pytest.approx(-1e-5, rel=1e-6)
    assert fast.sentence == "decays within a tick: 'x0'"
    assert fast.stable


def test_fields_of_modes():
    drift, decay = model_like([[0, 1], [0, -0.5]]).modes()
    assert drift.drifts
    assert not drift.stable
    assert drift.value == drift.frequency == 0.0
    assert np.isnan(drift.damping)
    assert decay.stable
    assert decay.damping == 1.0
    assert decay.value == pytest.approx(-0.5)
    for name, stable in (("pendulum down", [False]), ("pendulum up", [False, True])):
        assert sorted(x.stable for x in model_like(TOLD[name][0]).modes()) == stable
    (swing,) = model_like(TOLD["damped"][0]).modes()
    assert swing.value == pytest.approx(-0.25 + 1j * np.sqrt(9.81 - 0.0625), rel=1e-12)
    assert swing.frequency == pytest.approx(np.sqrt(9.81), rel=1e-12)
    assert swing.shape[1] / swing.shape[0] == pytest.approx(swing.value, rel=1e-12)
    assert np.abs(swing.shape).max() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="read-only"):
        swing.shape[0] = 0.0
    again = pickle.loads(pickle.dumps(swing))
    assert repr(again) == repr(swing) == f"<Mode: {swing.sentence}>"
    assert not again.shape.flags.writeable


@pytest.mark.parametrize("name", ["floating_leg", "standing_leg", "five_bar"])
def test_modes_are_eigenvalues(name):
    mech, (q, v) = mechanism(name), closed_states(name, count=3)[0]
    lin = hc.linearize(mech.with_forces([hc.JointFriction(viscous=0.7)]) if name != "floating_leg"
                       else mech, q, v)  # fmt: skip
    for model in (lin, lin.discretized(1e-3)):
        expected = eigvals(lin.A)
        found = [x.value for x in model.modes()]
        found += [x.value.conjugate() for x in model.modes() if x.value.imag > 0.0]
        assert len(found) == expected.size
        for value in found:
            assert np.abs(expected - value).min() < 1e-4 * max(1.0, abs(value))
    frequencies = [x.frequency for x in lin.modes()]
    assert frequencies == sorted(frequencies)


def test_hanging_and_standing_pendulums():
    """From a mechanism: 9.81 * 1.5 / length, down and up."""
    model = vertical(pin.Model())
    add_body(model, 0, pin.JointModelRZ(), at(), "swing", bar(0.4))
    mech = hc.Mechanism(model, [], ["swing"])
    (down,) = hc.linearize(mech, [-np.pi / 2]).modes()
    assert down.frequency == pytest.approx(np.sqrt(9.81 * 1.5 / 0.4), rel=1e-10)
    assert down.sentence.endswith("not damped: 'swing'")
    lin = hc.linearize(mech, [np.pi / 2])
    assert lin.at_equilibrium
    assert {x.sentence.split()[0] for x in lin.modes()} == {"diverges", "decays"}
    assert not hc.linearize(mech, [0.3]).at_equilibrium
    assert not hc.linearize(mech, [-np.pi / 2], [0.1]).at_equilibrium


def test_equilibria():
    """Rounding that a stiff spring makes an acceleration of is one; a fall beside it is none."""
    A = [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, -1e9, 0, 0]]
    for rate, rests in [
        ([0, 0, 0, 0], True), ([0, 0, 1e-7, 0], True), ([0, 0, 0, 1e-3], True),
        ([0, 0, 1e-3, 0], False), ([0, 0, 0, 100.0], False), ([1e-3, 0, 0, 0], False),
        ([0, 1e-3, 0, 0], False), ([0, 0, -9.81, 1e-3], False),
    ]:  # fmt: skip
        lin = model_like(A, rate=rate)
        assert lin.at_equilibrium is rests
        assert lin.discretized(1e-6).at_equilibrium is rests
        assert ("at an equilibrium" in repr(lin)) is rests


def test_moving_is_no_equilibrium():
    model = pin.Model()
    model.gravity = pin.Motion.Zero()
    add_body(model, 0, pin.JointModelFreeFlyer(), at(), "base", pin.Inertia.Random())
    mech = hc.Mechanism(model, [], [])
    lin = hc.linearize(mech, pin.neutral(model), [0.5, 0, 0, 0, 0, 0], along="motion")
    assert np.abs(lin.rate).max() < 1e-12
    assert not lin.at_equilibrium
    assert "along a motion" in repr(lin)


# ------------------------------------------------------------------------------- discrete time


@pytest.mark.parametrize("dt", [1e-4, 1e-2, 0.3])
def test_discretized_as_scipy_does(dt):
    mech, (q, v) = mechanism("standing_leg"), closed_states("standing_leg", count=3)[0]
    lin = hc.linearize(mech, q, v, outputs="motors")
    found = lin.discretized(dt)
    n = len(lin.states)
    inputs = np.column_stack([lin.B, lin.rate])  # the rate as an input that is held at one
    A, B, *_ = cont2discrete((lin.A, inputs, lin.C, np.zeros((4, 5))), dt)
    for ours, theirs in ((found.A, A), (found.B, B[:, :-1]), (found.rate, B[:, -1])):
        assert np.abs(ours - theirs).max() < 1e-12 * max(1.0, np.abs(theirs).max())
    assert np.array_equal(found.C, lin.C)
    assert np.array_equal(found.D, lin.D)
    assert found.dt == dt
    assert found.states == lin.states
    assert f"in ticks of {dt:g} s" in repr(found)
    assert np.abs(found.rate).max() > 1e-5
    assert n == found.A.shape[0]


def test_a_discrete_step_is_what_the_robot_makes():
    """From the point itself, u held: rate is the step, to the curvature of the motion."""
    mech = mechanism("five_bar")
    q, v = hc.assemble(mech, v_guess=[0.5, 0.0, 0.0, 0.0])
    u = np.array([0.3, -0.2])
    errors = []
    for dt in (2e-3, 1e-3):
        step = hc.linearize(mech, q, v, u).discretized(dt)
        of = step.partition.independent
        run = hc.simulate(mech, lambda t, q, v: u, q, v, dt, frequency=1.0 / dt)
        moved = np.concatenate([(run.q[-1] - q)[of], (run.v[-1] - v)[of]])
        errors.append(np.abs(moved - step.rate).max())
    assert errors[0] < 1e-4 * np.abs(moved).max()
    assert errors[1] < 0.3 * errors[0]


def test_refusals_of_ticks():
    lin = model_like([[0, 1], [9.81, 0]])
    for dt in (0.0, -1e-3, np.nan, np.inf, "1 ms", None):
        with pytest.raises(hc.InputError, match="dt"):
            lin.discretized(dt)
    with pytest.raises(hc.InputError, match="exceeds the range of floats"):
        lin.discretized(1e6)
    with pytest.raises(hc.InputError, match="already"):
        lin.discretized(1e-3).discretized(1e-3)


# ------------------------------------------------------------------------------ python-control


def test_python_control_has_it_with_its_names():
    control = pytest.importorskip("control")
    mech, (q, _) = mechanism("floating_leg"), closed_states("floating_leg", count=3)[0]
    tasks = ["motors", hc.FrameTask("knee", axes="x z"), "force knee_bar"]
    lin = hc.linearize(mech, q, outputs=tasks)
    system = lin.to_control()
    for ours, theirs in zip("ABCD", (system.A, system.B, system.C, system.D), strict=True):
        assert np.array_equal(getattr(lin, ours), theirs)
    assert tuple(system.state_labels) == lin.states
    assert tuple(system.input_labels) == lin.inputs
    assert "force knee_bar.x" in lin.outputs  # there are no points in names of theirs
    assert tuple(system.output_labels) == tuple(x.replace(".", "_") for x in lin.outputs)
    assert system.isctime(strict=True)
    held = lin.discretized(5e-3)
    sampled = control.c2d(system, 5e-3)
    assert np.abs(sampled.A - held.A).max() < 1e-12
    assert np.abs(sampled.B - held.B).max() < 1e-12
    assert held.to_control().dt == 5e-3
    assert tuple(held.to_control().state_labels) == lin.states


def test_names_without_points_still_differ():
    pytest.importorskip("control")
    lin = model_like(np.zeros((6, 6)), names=["a.b", "a_b", "a_b_"])
    assert lin.to_control().state_labels[:3] == ["a_b__", "a_b", "a_b_"]


def test_without_motors_or_motions():
    pytest.importorskip("control")
    lin = hc.linearize(hc.Mechanism(mechanism("four_bar").model, [], []), np.zeros(3))
    assert lin.to_control().ninputs == 0


# ----------------------------------------------------------------------------------- as a value


def test_linear_models_are_values():
    mech, (q, v) = mechanism("five_bar"), closed_states("five_bar", count=3)[0]
    lin = hc.linearize(mech, q, v, [1.0, 2.0], ["motors", "left_rod"], along="motion", t=0.5)
    for again in (pickle.loads(pickle.dumps(lin)), copy.deepcopy(lin), copy.copy(lin)):
        for field in dataclasses.fields(lin):
            one, other = getattr(lin, field.name), getattr(again, field.name)
            if isinstance(one, np.ndarray):
                assert np.array_equal(one, other)
                assert not other.flags.writeable
            elif field.name not in ("mech", "partition"):
                assert one == other
        assert np.abs(again.discretized(1e-3).A - expm(1e-3 * lin.A)).max() < 1e-14
        assert repr(again) == repr(lin)
        assert hc.linearize(again.mech, q, v, partition=again.partition).states == lin.states
    given = np.zeros((4, 4))
    made = dataclasses.replace(lin, A=given)
    given[0, 0] = 1.0
    assert made.A[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        lin.B[0, 0] = 1.0
    assert repr(lin).startswith(
        "<Linearization of 'five_bar': 2 motions, 2 motors, 3 outputs, in c"
    )
