"""Forces with kinks, jumps and ripples: an error, or the right number; never a plausible one."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from scipy.interpolate import Akima1DInterpolator, CubicSpline, PchipInterpolator
from support import mechanism
from zoo import at

import holoctl as hc
from holoctl.design.linear.numeric_differentiation import derivative

CODE = ["forward_dynamics", "forward_dynamics_derivatives", "terms"]
BASE = mechanism("five_bar")
Q, _ = hc.assemble(BASE)


def with_force(function, casadi=None):
    return BASE.with_forces([hc.CustomForce(function, casadi, name="own")])


KINKED = {
    "friction without a transition": lambda q, v, t: -np.sign(v),
    "drag of one joint": lambda q, v, t: -0.01 * np.abs(v) * [1.0, 0.0, 0.0, 0.0],
    "a stop that is touched": lambda q, v, t: -np.maximum(q - Q, 0.0),
    "a spring of two rates": lambda q, v, t: -np.abs(q - Q),
    "a force that sets in": lambda q, v, t: -1e-3 * (q > Q),
    "a force that sets in next by": lambda q, v, t: -1e-3 * (q > Q + 1e-8),
}


@pytest.mark.parametrize("name", KINKED)
def test_kinks_are_refused(name):
    with pytest.raises(hc.SingularityError, match=r"not smooth.*kink"):
        hc.linearize(with_force(KINKED[name]), Q)


@pytest.mark.parametrize("far", [1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("size", [100.0, 1e-2])
def test_what_happens_farther_away_is_not_felt(far, size):
    expected = hc.linearize(BASE, Q).A
    for force in (
        lambda q, v, t: -size * np.maximum(q - Q - far, 0.0),
        lambda q, v, t: -size * (q > Q + far),
        lambda q, v, t: -size * (np.abs(v) > far),
    ):
        assert np.abs(hc.linearize(with_force(force), Q).A - expected).max() < 1e-6


def rope(gap):
    """The five-bar with a rope of 50 N/m from its elbow, slack by `gap`."""
    data = BASE.model.createData()
    pin.forwardKinematics(BASE.model, data, Q)
    elbow = (data.oMi[1] * at(0.3)).translation
    hook = at(*(elbow + np.array([0.0, 1.0, 0.0])))
    spring = hc.Spring(("left", at(0.3)), ("universe", hook), 50.0, 1.0 + gap, unilateral=True)
    return BASE.with_forces([spring])


def test_ropes_about_to_go_slack():
    free = hc.linearize(BASE, Q).A
    assert np.abs(hc.linearize(rope(1e-5), Q).A - free).max() < 1e-6
    assert np.abs(hc.linearize(rope(-1e-5), Q).A - free).max() > 1.0
    for gap in (0.0, 1e-8, -1e-8):
        with pytest.raises(hc.SingularityError, match="a rope that goes slack"):
            hc.linearize(rope(gap), Q)


def test_ripple_is_not_mistaken_for_its_alias():
    """Of whatever length: steps of 1, 2, 3 would see nothing of one of their own length."""
    expected, seen = hc.linearize(BASE, Q).A, 0
    for w in [2 * np.pi / 3e-3, 4 * np.pi / 3e-3, 2 * np.pi / 3e-4, 777.0, 2.5e4]:

        def cogging(q, v, t, w=w):
            return -1e-3 * np.sin(w * (q - Q))

        def spring(q, v, t, w=w):
            return -1e-3 * w * (q - Q)

        found, right = (hc.linearize(with_force(f), Q).A for f in (cogging, spring))
        seen += np.abs(right - expected).max() > 1.0
        assert np.abs(found - right).max() < 1e-6 * np.abs(right).max()
    assert seen == 5


@pytest.mark.parametrize("k", [1e6, 1e9])
def test_a_stiff_spring_hides_nothing(k):
    """A stop at the other motor is seen beside it, and the rest is known as ever."""
    spring = hc.JointSpring("left", k, float(Q[0]))
    part = hc.partition(BASE, Q)
    lin = hc.linearize(BASE.with_forces([spring]), Q, partition=part)
    expected = hc.linearize(BASE, Q, partition=part)
    assert lin.A[:, 1:] == pytest.approx(expected.A[:, 1:], abs=1e-8)
    assert lin.A[2:, 0] - expected.A[2:, 0] == pytest.approx(-k * lin.B[2:, 0], rel=1e-10)
    assert not lin.at_equilibrium  # it falls at the other motor
    stop = hc.CustomForce(lambda q, v, t: -np.array([0.0, 0.0, max(q[2] - Q[2], 0.0), 0.0]))
    with pytest.raises(hc.SingularityError, match="along right is not smooth"):
        hc.linearize(BASE.with_forces([spring, stop]), Q, partition=part)


def test_large_efforts_and_speeds():
    for u in (1e3, 1e9):
        lin = hc.linearize(BASE, Q, u=[u, -u])
        assert np.abs(lin.B - hc.linearize(BASE, Q).B).max() < 1e-12
        assert lin.A[2:, 2:] == pytest.approx(np.zeros((2, 2)), abs=1e-8 * u)
    slow, fast = (
        hc.linearize(BASE, *hc.assemble(BASE, Q, s * np.array([1.0, 0.5, -0.7, 0.2])))
        for s in (1.0, 1e4)
    )
    assert fast.A[2:, 2:] == pytest.approx(1e4 * slow.A[2:, 2:], rel=1e-10)


@pytest.mark.parametrize("curve", [PchipInterpolator, CubicSpline, Akima1DInterpolator])
def test_tables_are_known_at_their_nodes(curve):
    """Their curvature may jump there; straight pieces have a kink."""
    x = np.linspace(-3.0, 3.0, 61) + Q[0]
    y = np.sin(8.0 * (x - Q[0]) + 0.2)
    table = curve(x, y)
    value, slope = float(table(Q[0])), float(table(Q[0], 1))

    def line(q):
        return value + slope * (q - Q[0])

    found, expected = (
        hc.linearize(with_force(lambda q, v, t, f=f: -np.array([f(q[0]), 0, 0, 0])), Q).A
        for f in (table, line)
    )
    assert abs(slope) > 0.1
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()
    straight = with_force(lambda q, v, t: -np.interp(q, x, y) * [1, 0, 0, 0])
    with pytest.raises(hc.SingularityError, match="not smooth"):
        hc.linearize(straight, Q)


def test_functions_that_end_on_the_way():
    """A force that is not defined far off is asked nearer by; one that is nowhere, says so."""
    found = derivative(lambda h: ended(h, 1e-4), (3e-3, 3e-4, 3e-5), "f")
    assert found == pytest.approx(np.ones(1), rel=1e-9)
    with pytest.raises(hc.InputError, match="ended"):
        derivative(lambda h: ended(h, 1e-7), (3e-3, 3e-4, 3e-5), "f")
    with pytest.raises(hc.SingularityError, match="f is not smooth"):
        derivative(lambda h: np.array([np.nan]), (1e-3,), "f")


def ended(h, where):
    if abs(h) > where:
        raise hc.InputError("ended")
    return np.sin([h])


@pytest.mark.slow
def test_compiled_derivatives_know_of_kinks():
    """An expression has a slope at a kink too, one of two."""
    ca = pytest.importorskip("casadi")
    q0 = ca.DM(Q)
    for name, (function, expression) in {
        "drag": (lambda q, v, t: -np.abs(v), lambda q, v, t: -ca.fabs(v)),
        "friction": (lambda q, v, t: -np.sign(v), lambda q, v, t: -ca.sign(v)),
        "stop": (lambda q, v, t: -np.maximum(q - Q, 0), lambda q, v, t: -ca.fmax(q - q0, 0)),
    }.items():
        code = hc.compile(with_force(function, expression), CODE)
        with pytest.raises(hc.SingularityError, match=r"not smooth.*kink"):
            hc.linearize(code, Q)
        if name == "drag":
            _, v = hc.assemble(BASE, Q, [1.0, 0.5, -0.7, 0.2])
            found = hc.linearize(code, Q, v, partition=code.partition)
            expected = hc.linearize(code.mech, Q, v, partition=code.partition)
            assert np.abs(found.A - expected.A).max() < 1e-9 * np.abs(found.A).max()


@pytest.mark.slow
@pytest.mark.parametrize("transition", [1e-3, 1e-5])
def test_compiled_friction_is_smooth(transition):
    code = hc.compile(BASE.with_forces([hc.JointFriction(0.0, 0.5, transition=transition)]), CODE)
    for speed in (0.0, 0.7, 5.0):
        _, v = hc.assemble(BASE, Q, speed * transition * np.array([1.0, 0.5, -0.7, 0.2]))
        found = hc.linearize(code, Q, v, partition=code.partition)
        expected = hc.linearize(code.mech, Q, v, partition=code.partition)
        assert np.abs(found.A - expected.A).max() < 1e-7 * np.abs(found.A).max()
