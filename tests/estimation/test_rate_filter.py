"""`RateFilter`: exact on straight lines, and late and noisy by what it tells."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
from refusals import refused
from scipy.integrate import solve_ivp
from support import ROOT

import holoctl as hc

DT = 1e-3
BANDWIDTHS = [0.5, 30.0, 300.0, 2000.0]


def told(filter_, positions):
    return np.array([filter_.rate(x) for x in positions])


def pole(bandwidth):
    """Of p^2 / (s + p)^2, which has half its power at the bandwidth."""
    return bandwidth / np.sqrt(np.sqrt(2.0) - 1.0)


def impulse(bandwidth, count):
    """Rates after one reading that is off by one."""
    x = np.zeros((count, 1))
    x[1] = 1.0
    return told(hc.RateFilter(bandwidth, DT), x)[1:, 0]


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_a_ramp_is_told_as_the_filter_says_and_then_exactly(bandwidth):
    p, t = pole(bandwidth), DT * np.arange(3000)
    found = told(hc.RateFilter(bandwidth, DT), t[:, None] * [2.0, -0.3])
    expected = 1.0 - (1.0 + p * t) * np.exp(-p * t)
    np.testing.assert_allclose(found, expected[:, None] * [2.0, -0.3], atol=1e-11)
    assert (np.diff(found[:, 0]) >= -1e-12).all()  # without overshoot


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_it_is_the_discrete_equivalent_by_scipy(bandwidth):
    """Inputs as straight lines between samples ("foh"), of s p^2 / (s + p)^2."""
    from scipy.signal import cont2discrete, dlsim  # slow to import, and of no other use here

    p = pole(bandwidth)
    system = cont2discrete(([p * p, 0.0], [1.0, 2.0 * p, p * p]), DT, method="foh")
    x = np.cumsum(np.random.default_rng(0).normal(size=200)) * 1e-3
    x[0] = 0.0
    _, expected = dlsim(system, x)
    found = told(hc.RateFilter(bandwidth, DT), x[:, None])
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("bandwidth", [30.0, 300.0])
def test_it_is_the_filter_that_is_stated(bandwidth):
    """By integrating its equations along straight lines between readings, with skipped ones."""
    p, rng = pole(bandwidth), np.random.default_rng(1)
    filter_ = hc.RateFilter(bandwidth, DT)
    filter_.reset([0.3], [0.7])
    x, state = 0.3, np.array([0.3 - 2.0 * 0.7 / p, 0.7])
    for ticks in (1, 1, 3, 1, 7, 2):
        to, h = x + 0.01 * rng.normal(), ticks * DT
        slope = (to - x) / h
        state = solve_ivp(
            lambda t, y, x=x, slope=slope: [y[1], p**2 * (x + slope * t - y[0]) - 2 * p * y[1]],
            (0.0, h), state, rtol=1e-11, atol=1e-13,
        ).y[:, -1]  # fmt: skip
        found = filter_.rate([to], None if ticks == 1 else h)
        assert found == pytest.approx(state[1:], rel=1e-7)
        x = to


@pytest.mark.parametrize("bandwidth", [10.0, 30.0, 300.0, 2000.0, 3000.0])
def test_it_is_as_late_as_it_says(bandwidth):
    """At constant acceleration, once what was before has died away."""
    t = DT * np.arange(int(40.0 * (1.0 / (bandwidth * DT)) + 100.0))
    filter_ = hc.RateFilter(bandwidth, DT)
    found = told(filter_, (0.5 * t**2)[:, None])[-1, 0]
    assert t[-1] - found == pytest.approx(filter_.delay, rel=1e-6)
    if bandwidth <= 300.0:
        assert filter_.delay == pytest.approx(2.0 / pole(bandwidth), rel=2e-3)


@pytest.mark.parametrize("bandwidth", [10.0, 30.0, 300.0, 2000.0, 3000.0])
def test_it_is_as_noisy_as_it_says(bandwidth):
    h = impulse(bandwidth, int(25.0 / (bandwidth * DT) + 100.0))
    filter_ = hc.RateFilter(bandwidth, DT)
    assert filter_.noise_gain == pytest.approx(np.sqrt(h @ h), rel=1e-9)
    if bandwidth >= 30.0:
        x = 1e-4 * np.random.default_rng(3).normal(size=(1000, 1000))
        found = told(hc.RateFilter(bandwidth, DT), x)[600:]
        assert found.std() == pytest.approx(1e-4 * filter_.noise_gain, rel=0.02)


@pytest.mark.parametrize("phase", [1e-6, 1e-3])
def test_slow_filters_tell_theirs_too(phase):
    """Where the formulas are close to 0/0; by the limits of a filter in continuous time."""
    filter_ = hc.RateFilter(phase / DT, DT)
    p = pole(phase / DT)
    assert filter_.delay == pytest.approx(2.0 / p, rel=phase)
    assert filter_.noise_gain == pytest.approx(0.5 * p * np.sqrt(p * DT), rel=2.0 * phase)


@pytest.mark.parametrize("bandwidth", [30.0, 300.0])
def test_at_its_bandwidth_half_the_power_is_left(bandwidth):
    h = impulse(bandwidth, 3000)
    response = h @ np.exp(-1j * bandwidth * DT * np.arange(h.size))
    assert abs(response) / bandwidth == pytest.approx(np.sqrt(0.5), rel=0.01)


def test_it_is_quieter_than_differences_of_the_same_delay():
    """A filtered difference of first order that is as late has two to five times the noise."""
    filter_ = hc.RateFilter(100.0, DT)
    first = 1.0 / filter_.delay  # its pole; the noise of such differences, for short ticks
    assert 2.0 < first / filter_.noise_gain < 5.0


def test_the_page_tells_its_numbers():
    page = (ROOT / "docs" / "encoders.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| (\d+) \| (\d+\.\d+) \| (\d+\.\d) \| (0\.\d+) \|", page)
    assert len(rows) == 4
    width = 2.0 * np.pi / 2**14 / np.sqrt(12.0)
    for row in rows:
        bandwidth, delay, gain, noise = map(float, row)
        filter_ = hc.RateFilter(bandwidth, 1e-3)
        assert 1e3 * filter_.delay == pytest.approx(delay, abs=6e-3)
        assert filter_.noise_gain == pytest.approx(gain, abs=0.06)
        assert filter_.noise_gain * width == pytest.approx(noise, abs=6e-5)
    assert "differences have 0.157" in page
    assert np.sqrt(2.0) / 1e-3 * width == pytest.approx(0.157, abs=6e-4)


# ------------------------------------------------------------------------------- turning


def around(x):
    return np.remainder(x + np.pi, 2.0 * np.pi) - np.pi


@pytest.mark.parametrize("turning", [True, [True, True]])
def test_turns_are_no_jumps(turning):
    t = DT * np.arange(2000)
    x = np.stack([300.0 * t, 5.0 * np.sin(3.0 * t) - 2.0], axis=1)
    found = told(hc.RateFilter(200.0, DT, turning), around(x))
    np.testing.assert_allclose(found, told(hc.RateFilter(200.0, DT, False), x), atol=1e-7)
    np.testing.assert_allclose(found, told(hc.RateFilter(200.0, DT), x), atol=1e-7)  # counted on


def test_what_does_not_turn_may_jump():
    filter_ = hc.RateFilter(200.0, DT, [False, True])
    filter_.reset([0.0, 0.0])
    jumped, turned = filter_.rate([6.0, 6.0])
    assert jumped > 0.0 > turned
    assert turned / jumped == pytest.approx((6.0 - 2.0 * np.pi) / 6.0)


# ------------------------------------------------------------------------------ remembers


def test_the_first_reading_is_a_start_at_rest():
    filter_, other = hc.RateFilter(100.0, DT), hc.RateFilter(100.0, DT)
    other.reset([0.4, 0.2])
    assert (filter_.rate([0.4, 0.2]) == 0.0).all()
    assert (filter_.rate([0.5, 0.1]) == other.rate([0.5, 0.1])).all()


def test_a_start_in_motion_goes_on():
    filter_ = hc.RateFilter(100.0, DT)
    filter_.reset([0.4], [3.0])
    x = 0.4 + 3.0 * DT * np.arange(1, 100)
    np.testing.assert_allclose(told(filter_, x[:, None]), 3.0, rtol=1e-12)


def test_a_skipped_reading_is_no_jump():
    filter_ = hc.RateFilter(100.0, DT)
    filter_.reset([0.0], [3.0])
    assert filter_.rate([3.0 * 4 * DT], 4 * DT) == pytest.approx(3.0, rel=1e-12)


def test_what_it_gives_and_takes_is_not_shared():
    filter_, twin = hc.RateFilter(100.0, DT), hc.RateFilter(100.0, DT)
    x = np.array([0.1])
    filter_.reset(x)
    twin.reset(x)
    x[:] = 7.0
    filter_.rate([0.2])[:] = 7.0
    twin.rate([0.2])
    assert (filter_.rate([0.3]) == twin.rate([0.3])).all()


def test_copies_go_on_from_there():
    filter_ = hc.RateFilter(100.0, DT, [True, False])
    told(filter_, [[0.1, 0.2], [0.2, 0.2]])
    others = [copy.deepcopy(filter_), pickle.loads(pickle.dumps(filter_))]
    expected = filter_.rate([0.3, 0.1])
    for other in others:
        assert (other.rate([0.3, 0.1]) == expected).all()


def test_it_says_what_it_is():
    said = repr(hc.RateFilter(300.0, DT))
    assert said == (
        "<RateFilter: bandwidth 300 rad/s, every 0.001 s; 4.29 ms late, noise times 127 1/s>"
    )


# -------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("bad", [None, "1", np.nan, np.inf, 0.0, -1.0, [1.0], 1j, True, 10**400])
@pytest.mark.parametrize("name", ["bandwidth", "dt"])
def test_numbers_that_are_no_good_are_refused(name, bad):
    refused(lambda: hc.RateFilter(**{"bandwidth": 100.0, "dt": DT, name: bad}), hc.InputError, name)


@pytest.mark.parametrize("bandwidth", [np.pi / DT, 1e9, 1e-4, 1e-320])
def test_a_bandwidth_that_ticks_cannot_have_is_refused(bandwidth):
    refused(lambda: hc.RateFilter(bandwidth, DT), hc.InputError, "bandwidth", "rad/s", "3142")


@pytest.mark.parametrize("bad", [None, "yes", 1, [0, 1], [[True]], ["a"], {}, np.nan])
def test_what_is_neither_turning_nor_not_is_refused(bad):
    refused(lambda: hc.RateFilter(100.0, DT, bad), hc.InputError, "turning")


@pytest.mark.parametrize(
    "bad",
    [None, "abc", [0.1], [0.1, 0.2, 0.3], [[0.1, 0.2]], 0.1, [0.1, np.nan], [np.inf, 0.1],
     [1j, 0.1], ["0.1", "0.2"], np.ma.array([0.1, 0.2], mask=[True, False]), [10**400, 0.1]],
)  # fmt: skip
def test_a_reading_that_is_no_good_is_refused_and_forgotten(bad):
    filter_, twin = hc.RateFilter(100.0, DT, [True, False]), hc.RateFilter(100.0, DT)
    for each in (filter_, twin):
        told(each, [[0.1, 0.2], [0.2, 0.1]])
    refused(lambda: filter_.rate(bad), hc.InputError, "x")
    refused(lambda: filter_.reset(bad), hc.InputError, "x")
    if bad is not None:
        refused(lambda: filter_.reset([0.1, 0.2], bad), hc.InputError, "rate")
    assert (filter_.rate([0.3, 0.1]) == twin.rate([0.3, 0.1])).all()


@pytest.mark.parametrize("bad", ["1", np.nan, np.inf, 0.0, -1.0, [1.0]])
def test_times_that_are_no_good_are_refused(bad):
    filter_ = hc.RateFilter(100.0, DT)
    filter_.reset([0.1])
    refused(lambda: filter_.rate([0.2], bad), hc.InputError, "elapsed")


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_floats_are_refused():
    filter_ = hc.RateFilter(100.0, DT, False)
    filter_.reset([0.0])
    with np.errstate(all="raise"):
        refused(lambda: filter_.rate([1.7e308]), hc.InputError, "range")
    assert (filter_.rate([0.0]) == 0.0).all()
