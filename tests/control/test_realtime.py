"""Timing: what `realtime` changes and puts back, and which ticks `run_at_rate` runs.

Which ticks run is tested with a clock that only moves when it is told to; what needs the real
clock has bounds that a busy machine keeps.
"""

from __future__ import annotations

import dataclasses
import gc
import math
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from refusals import refused
from support import ROOT
from threadpoolctl import threadpool_info, threadpool_limits

import holoctl as hc

# ---------------------------------------------------------------------------------- realtime


def blas_threads():
    return {lib["filepath"]: lib["num_threads"] for lib in threadpool_info()
            if lib["user_api"] == "blas"}  # fmt: skip


def state():
    return gc.isenabled(), gc.get_freeze_count() > 0, blas_threads()


@pytest.fixture(scope="module")
def loaded():
    """What scipy loads when it is first limited."""
    with hc.realtime():
        pass


@pytest.fixture
def usual(loaded):
    """Collector on, nothing frozen, two BLAS threads; put back afterwards."""
    enabled = gc.isenabled()
    gc.enable()
    gc.unfreeze()
    np.linalg.solve(np.eye(2), np.ones(2))
    with threadpool_limits(limits=2, user_api="blas"):
        yield state()
    gc.unfreeze()
    (gc.enable if enabled else gc.disable)()


def check_quiet():
    enabled, frozen, threads = state()
    assert not enabled
    assert frozen
    assert set(threads.values()) <= {1}
    if sys.platform == "linux":  # elsewhere BLAS may be one without a limit to set
        assert threads


def test_quiet_inside_and_as_before_outside(usual):
    assert usual[:2] == (True, False)
    with hc.realtime():
        check_quiet()
    assert state() == usual


def test_as_before_after_an_exception(usual):
    with pytest.raises(ZeroDivisionError), hc.realtime():
        1 / 0  # noqa: B018
    assert state() == usual


def test_nesting(usual):
    with hc.realtime():
        with hc.realtime():
            check_quiet()
        check_quiet()
    assert state() == usual


def test_as_a_decorator_more_than_once(usual):
    @hc.realtime()
    def quiet(x):
        check_quiet()
        return x + 1

    assert [quiet(1), quiet(2)] == [2, 3]
    assert state() == usual


def test_a_collector_that_was_off_stays_off(usual):
    gc.disable()
    with hc.realtime():
        gc.enable()
    assert not gc.isenabled()
    assert state()[1:] == usual[1:]


def test_what_was_frozen_before_stays_frozen(usual):
    gc.freeze()
    before = gc.get_freeze_count()
    with hc.realtime():
        check_quiet()
    assert gc.get_freeze_count() >= 0.9 * before  # frozen objects may die, never thaw
    assert gc.isenabled()
    assert blas_threads() == usual[2]


def test_libraries_that_nothing_has_loaded_yet_are_limited_too():
    program = """
import sys
import holoctl as hc
from threadpoolctl import threadpool_info
before = "scipy.linalg" in sys.modules
with hc.realtime():
    import scipy.linalg
    print(before, *(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"))
"""
    usual = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, timeout=60, check=True, env=usual,
    )  # fmt: skip
    before, *threads = done.stdout.split()
    assert before == "False"
    assert set(threads) <= {"1"}


# ---------------------------------------------------------------- ticks, with a clock of our own


class Clock:
    """Stands in for the module `time`: moves when told to, and when someone sleeps."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []
        self.oversleep = {}

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds + self.oversleep.get(len(self.slept), 0.0)
        self.slept.append(seconds)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("holoctl.control.realtime.time", clock)
    return clock


def run(clock, durations, rate=4.0, duration=2.0):
    """The loop with a step that takes so many periods at tick i, else none; and its ticks t."""
    seen = []

    def step(t):
        seen.append(t)
        clock.now += durations.get(round(t * rate), 0.0) / rate

    return hc.run_at_rate(step, rate, duration), seen


def test_ticks_are_at_i_over_rate_exactly(clock):
    seen = []
    result = hc.run_at_rate(seen.append, 1000.0, 3.0)
    assert seen == [i / 1000.0 for i in range(3000)]
    assert (result.ticks, result.missed, result.skipped) == (3000, 0, 0)
    assert clock.now == pytest.approx(1000.0 + 2.999)


@pytest.mark.parametrize(
    ("rate", "duration", "ticks"),
    [(4.0, 2.0, 8), (4.0, 1.9, 8), (4.0, 0.01, 1), (1000.0, 0.3, 300), (3, 1, 3)],
)
def test_number_of_ticks(clock, rate, duration, ticks):
    assert hc.run_at_rate(lambda t: None, rate, duration).ticks == ticks


def test_in_time_is_not_missed(clock):
    result, seen = run(clock, {2: 0.9})
    assert seen == [i / 4 for i in range(8)]
    assert (result.missed, result.skipped) == (0, 0)


def test_a_little_too_long_is_missed_and_the_next_tick_begins_late(clock):
    result, seen = run(clock, {2: 1.5})
    assert seen == [i / 4 for i in range(8)]
    assert (result.missed, result.skipped) == (1, 0)
    assert result.late_worst == 0.125


def test_no_burst_after_an_overrun(clock):
    result, seen = run(clock, {2: 2.5})
    assert seen == [0.0, 0.25, 0.5, 1.0, 1.25, 1.5, 1.75]
    assert (result.ticks, result.missed, result.skipped) == (7, 1, 1)
    assert result.step_worst == 2.5 / 4
    assert result.late_worst == 1.5 / 4


def test_a_late_call_that_ends_late_is_missed_too(clock):
    result, seen = run(clock, {2: 1.5, 3: 0.75})
    assert seen == [i / 4 for i in range(8)]
    assert (result.missed, result.skipped) == (2, 0)


def test_a_late_wake_up_skips_what_has_passed(clock):
    clock.oversleep[2] = 3.5 / 4  # the sleep before tick 3 lasts until 6.5
    result, seen = run(clock, {})
    assert seen == [0.0, 0.25, 0.5, 1.5, 1.75]
    assert (result.ticks, result.missed, result.skipped) == (5, 0, 3)
    assert result.late_worst == 3.5 / 4


@pytest.mark.parametrize("periods", [1.0, 1.5, 3.0, 5.5, 6.0, 100.0])
def test_every_tick_of_a_duration_runs_or_is_skipped(clock, periods):
    result, seen = run(clock, {2: periods})
    assert result.ticks + result.skipped == 8
    assert result.ticks == len(seen)
    assert seen == sorted(set(seen))
    assert seen[-1] < 2.0


def test_a_loop_that_comes_to_no_tick_says_nan(clock):
    times = iter([0.0, 5.0])  # the thread lost the processor right after the start
    clock.perf_counter = lambda: next(times, 5.0)
    result = hc.run_at_rate(lambda t: None, 4.0, 1.0)
    assert (result.ticks, result.skipped) == (0, 4)
    assert math.isnan(result.step_worst)
    assert math.isnan(result.late_median)
    assert "nan" in str(result)


@pytest.mark.parametrize("end", [True, np.True_])
@pytest.mark.parametrize("duration", [None, 100.0])
def test_true_ends_the_loop(clock, end, duration):
    result = hc.run_at_rate(lambda t: end if t >= 1.0 else None, 4.0, duration)
    assert result.ticks == 5
    assert clock.now == 1001.0


@pytest.mark.parametrize("go_on", [None, False, np.False_])
def test_none_and_false_go_on(clock, go_on):
    assert hc.run_at_rate(lambda t: go_on, 4.0, 1.0).ticks == 4


def test_it_sleeps_once_a_tick(clock):
    hc.run_at_rate(lambda t: None, 4.0, 1.0)
    assert clock.slept == [0.25, 0.25, 0.25]


def test_percentiles_are_to_the_resolution(clock):
    rng = np.random.default_rng(0)
    spent = rng.lognormal(np.log(1e-4), 2.0, size=5001)
    times = iter(spent)

    def step(t):
        clock.now += next(times)

    result = hc.run_at_rate(step, 0.125, 8.0 * spent.size)
    assert (result.ticks, result.missed) == (5001, 0)
    for share, found in [(50, result.step_median), (99, result.step_p99), (99.9, result.step_p999)]:
        exact = np.percentile(spent, share, method="inverted_cdf")
        assert 0.9999 * exact <= found <= 1.0101 * exact
    assert result.step_worst == pytest.approx(spent.max(), rel=1e-6)
    assert result.late_worst == 0.0


def test_few_ticks_have_their_worst_as_high_percentile(clock):
    result, _ = run(clock, {2: 0.5})
    assert result.step_p999 == result.step_p99 == result.step_worst == 0.125
    assert result.step_median == 1e-7  # the shortest time that is told apart


# -------------------------------------------------------------------------- errors and words


@pytest.mark.parametrize(
    "error",
    [hc.SingularityError("stretched", condition=1e13), OSError("no bus"), KeyboardInterrupt()],
    ids=lambda e: type(e).__name__,
)
def test_errors_pass_through_with_a_note(clock, error):
    def step(t):
        if t == 1.5:
            raise error

    with pytest.raises(type(error)) as caught:
        hc.run_at_rate(step, 4.0)
    assert caught.value is error
    (note,) = error.__notes__
    assert "t = 1.5 s" in note
    assert "6 ticks at 4 Hz" in note


BAD = {
    "no function": (("go", 1000.0, 1.0), "step must be a function"),
    "rate of zero": ((print, 0, 1.0), "frequency .* must be above zero; got 0"),
    "negative rate": ((print, -5.0, 1.0), "frequency .* must be above zero"),
    "rate in words": ((print, "1 kHz", 1.0), "frequency .* must be a number; got '1 kHz'"),
    "infinite rate": ((print, math.inf, 1.0), "frequency .* must be finite"),
    "a rate too low": ((print, 1e-11, 2e11), "frequency must be from"),
    "a rate too high": ((print, 1e300, 0.02), "frequency must be from"),
    "rate of True": ((print, True, 1.0), "frequency .* must be a number"),
    "no duration": ((print, 1000.0, 0.0), "duration .* must be above zero"),
    "negative duration": ((print, 1000.0, -1.0), "duration .* must be above zero"),
    "duration nan": ((print, 1000.0, math.nan), "duration .* must be finite"),
    "duration in words": ((print, 1000.0, "long"), "duration .* must be a number"),
    "step returns u": ((lambda t: np.ones(2), 1000.0, 1.0), "step must return True .* ndarray"),
    "step returns one u": ((lambda t: 0.5, 1000.0, 1.0), "step must return True .* float '0.5'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(clock, case):
    arguments, message = BAD[case]
    with pytest.raises(hc.InputError, match=message):
        hc.run_at_rate(*arguments)


def test_statistics_are_frozen_and_read_well(clock):
    result, _ = run(clock, {2: 2.5})
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.ticks = 0
    assert str(result).splitlines() == [
        "7 ticks at 4 Hz, 1 missed, 1 skipped; times in us",
        "            median        99 %      99.9 %       worst",
        "step           0.1    625000.0    625000.0    625000.0",
        "late           0.1    375000.0    375000.0    375000.0",
    ]


# ------------------------------------------------------------------------ with the real clock


def test_it_waits_and_it_sleeps():
    start, busy = time.perf_counter(), time.thread_time()
    result = hc.run_at_rate(lambda t: None, 100.0, 0.3)
    waited = time.perf_counter() - start
    assert waited >= 0.29
    assert time.thread_time() - busy < 0.5 * waited
    assert result.ticks + result.skipped == 30
    assert result.ticks >= 1
    assert 0.0 <= result.late_median <= result.late_p99 <= result.late_p999 <= result.late_worst


def test_no_tick_begins_early_or_twice():
    start = time.perf_counter()
    seen = []
    hc.run_at_rate(lambda t: seen.append((t, time.perf_counter() - start)), 200.0, 0.2)
    ticks = [t for t, _ in seen]
    assert ticks == sorted(set(ticks))
    assert set(ticks) <= {i / 200.0 for i in range(40)}
    assert all(now >= t for t, now in seen)


def test_the_program_of_the_page_is_the_example():
    page = (ROOT / "docs" / "realtime.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert program == (ROOT / "examples" / "realtime_loop.py").read_text("utf-8")


# ------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("junk", [None, 5, "step", np.zeros(1)])
def test_a_loop_needs_a_function(junk):
    refused(lambda: hc.run_at_rate(junk, 1e3, 0.01), hc.InputError, "step", "function")


@pytest.mark.parametrize("returned", [0, 1, 1.0, "stop", [], np.zeros(1), hc.InputError])
def test_what_a_step_of_a_loop_must_not_return(returned):
    e = refused(lambda: hc.run_at_rate(lambda t: returned, 1e3, 0.01), hc.InputError, "step")
    assert "t = 0 s" in e.__notes__[0]


@pytest.mark.parametrize("rate", [1e-4, 1e7])
def test_rates_that_no_loop_keeps_are_refused(rate):
    refused(lambda: hc.run_at_rate(lambda t: True, rate), hc.InputError, "frequency", "Hz")


def test_realtime_takes_nothing_and_passes_errors_on():
    with pytest.raises(TypeError):
        hc.realtime(1)
    gc.unfreeze()  # what the start of the tests has frozen
    before = gc.isenabled(), gc.get_freeze_count()
    with pytest.raises(hc.InputError, match="step"), hc.realtime():
        hc.run_at_rate(None, 1e3)
    assert (gc.isenabled(), gc.get_freeze_count()) == before
