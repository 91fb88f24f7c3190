"""Gains for a bandwidth: the sampled loop is exact, and so is where it gets unstable."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from scipy.signal import cont2discrete
from zoo import five_bar

import holoctl as hc
from holoctl.design.feedback.gains import law_of, sampled_model
from holoctl.design.feedback.sampled_loop import damping_left, largest_bandwidth, loop_exponents


@pytest.fixture(scope="module")
def lin():
    mech = hc.load(hc.robot_file("five_bar"))
    eq = hc.equilibrium(mech)
    return hc.linearize(mech, eq.q, u=eq.u)


def sampled(bandwidth, damping, rate, delay, ticks=400):
    """e of the double integrator itself, tick by tick: each effort acts from its tick on, and what
    is measured is the state a delay ago, followed exactly."""
    kp, kd, h = bandwidth**2, 2.0 * damping * bandwidth, 1.0 / rate
    x, efforts, seen = np.array([1.0, 0.0]), [], []

    def moved(x, u, s):
        return np.array([x[0] + s * x[1] + 0.5 * s * s * u, x[1] + s * u])

    for k in range(ticks):
        seen.append(x)
        past = k * h - delay
        i = int(np.floor(past / h + 1e-9))
        z = seen[0] if past <= 0.0 else moved(seen[i], efforts[i] if i < k else 0.0, past - i * h)
        efforts.append(-kp * z[0] - kd * z[1])
        x = moved(x, efforts[-1], h)
    return np.array(seen)[:, 0]


@pytest.mark.parametrize("damping", [0.1, 0.4, 0.5, 0.7, 1.0, 2.0])
def test_ticks_alone_have_a_closed_form(damping):
    found = largest_bandwidth(damping, 1000.0, 0.0)
    assert found == pytest.approx(1000.0 * min(1.0 / damping, 4.0 * damping), rel=1e-9)


@pytest.mark.parametrize("delay", [0.0, 0.4e-3, 1e-3, 1.7e-3, 5e-3])
@pytest.mark.parametrize("damping", [0.5, 1.0])
def test_the_largest_bandwidth_is_where_the_loop_itself_begins_to_grow(damping, delay):
    most = largest_bandwidth(damping, 1000.0, delay)
    for factor, grows in ((0.97, False), (1.03, True)):
        e = np.abs(sampled(factor * most, damping, 1000.0, delay))
        assert (e[-100:].max() > e[100:200].max()) == grows


@pytest.mark.parametrize("delay", [0.0, 0.4e-3, 1e-3, 2.3e-3])
def test_the_poles_are_those_of_the_motion(delay):
    """The motion of the loop obeys the recurrence whose roots they are."""
    z = np.exp(loop_exponents(80.0, 0.7, 1000.0, delay) / 1000.0)
    p = np.poly(z).real
    e = sampled(80.0, 0.7, 1000.0, delay, ticks=60)[8:]
    left = np.convolve(e, p, mode="valid")
    assert np.abs(left).max() < 1e-10 * np.abs(e).max()


@pytest.mark.parametrize("rate", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("ticks", [0.0, 1.0, 2.6, 40.0])
def test_slow_loops_keep_their_damping(rate, ticks):
    """To first order a delay, half a tick included, takes 1/2 - damping^2 of bandwidth times it."""
    for bandwidth in (1e-4, 1e-2, 1.0):
        late = bandwidth * (ticks + 0.5) / rate
        left = damping_left(bandwidth, 0.7, rate, ticks / rate)
        assert left == pytest.approx(0.7 - 0.01 * late, abs=1e-11 + late**2)


@pytest.mark.parametrize("damping", [1e-12, 1e-7, 1e-5, 1e-2, 30.0, 1e6])
@pytest.mark.parametrize("ticks", [0.0, 0.3, 7.0, 63.5])
def test_the_largest_bandwidth_is_where_a_pole_crosses(damping, ticks):
    most = largest_bandwidth(damping, 1e3, ticks * 1e-3)
    if ticks == 0.0:
        assert most == pytest.approx(1e3 * min(1.0 / damping, 4.0 * damping), rel=1e-9)
    if damping < 1e-9:
        return  # the poles themselves have no digits for that
    sides = [
        loop_exponents(x * most, damping, 1e3, ticks * 1e-3).real.max() for x in (0.999, 1.001)
    ]
    assert sides[0] < 0.0 < sides[1]
    assert loop_exponents(0.1 * most, damping, 1e3, ticks * 1e-3).real.max() < 0.0


def test_two_hundred_ticks_late_are_told_at_once(lin):
    start = time.process_time()
    with pytest.raises(hc.LimitError, match="too fast for this rate"):
        hc.gains_for(lin, 1.0, 0.7, frequency=1e3, delay=0.2)
    assert time.process_time() - start < 2.0  # took 18 s


def test_a_late_loop_without_ticks_is_closed_around_the_model_too(lin):
    """Weight that is compensated late pulls the robot down: as with short ticks."""
    for kwargs in ({"delay": 0.1}, {"delay": 0.1 - 0.5e-3, "frequency": 1e3}):
        with pytest.raises(hc.LimitError, match="diverges"):
            hc.gains_for(lin, 0.5, **kwargs)
    assert hc.gains_for(lin, 2.0, delay=0.02).frequency is None
    assert hc.gains_for(lin, 2.0, delay=1e-9).damping_left[0] == pytest.approx(1.0)


def test_a_short_tick_is_a_continuous_loop():
    for damping in (0.3, 1.0):
        ticks = largest_bandwidth(damping, 5e3, 5e-3 - 0.5 / 5e3)
        assert ticks == pytest.approx(largest_bandwidth(damping, None, 5e-3), rel=1e-3)
        left = damping_left(40.0, damping, 5e3, 5e-3 - 0.5 / 5e3)
        assert left == pytest.approx(damping_left(40.0, damping, None, 5e-3), rel=1e-3)


def test_a_continuous_loop_at_its_limit_swings_undamped():
    most = largest_bandwidth(0.7, None, 1e-3)
    assert abs(loop_exponents(most, 0.7, None, 1e-3).real.max()) < 1e-9 * most


def test_gains_and_what_is_left(lin):
    g = hc.gains_for(lin, 60.0, 0.7, frequency=1000.0, delay=2e-3)
    np.testing.assert_allclose(g.kp, 3600.0)
    np.testing.assert_allclose(g.kd, 84.0)
    s = loop_exponents(60.0, 0.7, 1000.0, 2e-3)
    slow = s[np.argmax(s.real)]
    np.testing.assert_allclose(g.damping_left, -slow.real / abs(slow))
    assert (g.damping_left < 0.7).all()
    assert repr(g).startswith("<Gains: bandwidth 60 rad/s (limit 296), damping ratio 0.7 (0.69")
    exact = hc.gains_for(lin, [60.0, 30.0], [0.7, 1.0])
    np.testing.assert_allclose(exact.damping_left, [0.7, 1.0])
    assert np.isinf(exact.largest_bandwidth).all()


def test_what_is_not_stable_is_refused(lin):
    with pytest.raises(
        hc.LimitError, match=r"'motor_right' is not stable.*largest .* 426.2 rad/s"
    ) as e:
        hc.gains_for(lin, [60.0, 600.0], [0.7, 1.0], frequency=1000.0, delay=1e-3)
    assert e.value.names == ("motor_right",)
    with pytest.raises(hc.LimitError, match="too fast for this rate"):
        hc.gains_for(lin, 1.0, 1.0, frequency=2.0)
    mech = dataclasses.replace(five_bar(), actuated=["left"])
    eq = hc.equilibrium(mech)
    with pytest.raises(hc.LimitError, match="no motor drives fall away"):
        hc.gains_for(hc.linearize(mech, eq.q, u=eq.u), 20.0, frequency=1000.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bandwidth": 0.0}, "bandwidth must be above zero"),
        ({"bandwidth": [1.0, 2.0, 3.0]}, r"shape \(2,\)"),
        ({"bandwidth": 1.0, "damping": -1.0}, "damping must be above zero"),
        ({"bandwidth": 1.0, "delay": -1.0}, "delay must not be negative"),
        ({"bandwidth": 1.0, "delay": 1.0, "frequency": 1e3}, "is it in ms"),
        ({"bandwidth": np.nan}, "bandwidth must be above zero"),
        ({"bandwidth": 1e200}, "its square finite"),
    ],
)
def test_what_makes_no_sense_is_refused(lin, given, said):
    with pytest.raises(hc.InputError, match=said):
        hc.gains_for(lin, **given)


def test_the_loop_on_the_model_is_that_of_the_efforts_that_are_held(lin):
    """Without delay: against scipy's zero-order hold."""

    g = hc.gains_for(lin, 60.0, 0.7, frequency=1000.0)
    K = law_of(lin, g)
    A, B = cont2discrete((lin.A, lin.B, np.eye(4), np.zeros((4, 2))), 1e-3)[:2]
    expected = np.sort_complex(np.linalg.eigvals(A - B @ K))
    found = np.linalg.eigvals(sampled_model(lin, K, 1000.0, 0.0))
    found = np.sort_complex(found[np.abs(found) > 1e-9])
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(
        np.sort_complex(np.log(expected) * 1e3)[:1], [-42.0 - 42.85j], rtol=0.05
    )


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 1e-3, 1.4e-3])
def test_a_simulation_agrees_where_the_limit_is(lin, delay):
    """Computed torque of the five-bar, sensors that are late: dies down or grows as is told."""
    mech, home, rest = lin.mech, lin.mech.motor_positions(lin.q), np.zeros(2)
    held = ["motor_left", "motor_right"]
    q0, v0 = hc.assemble(mech, lin.q + np.array([1e-4, 0.0, 5e-5, 0.0]), locked=held)
    most = hc.gains_for(lin, 60.0, 0.7, frequency=1e3, delay=delay).largest_bandwidth[0]
    for factor in (0.95, 1.05):
        w = factor * most
        ctl = hc.ComputedTorque(mech, w * w, 1.4 * w, partition=lin.partition)
        late = hc.Sensors("all", delay=delay) if delay else None
        track = ctl.track(lambda t: (home, rest, rest))
        try:
            run = hc.simulate(mech, track, q0, v0, 0.06, sensors=late)
        except hc.SingularityError:  # it swings to the other side of a type-2 singularity
            if factor < 1.0:
                raise
            continue
        except hc.InconsistentError as error:  # too fast to integrate
            if factor < 1.0 or "is the loop unstable, with gains too high" not in str(error):
                raise
            continue
        e = np.abs(mech.B.T @ (run.q - lin.q).T).max(axis=0)
        assert (e[40:].max() > e[20:40].max()) == (factor > 1.0)
