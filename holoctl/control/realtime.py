"""Timing: a quiet process, and a loop that calls a function at a fixed rate."""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import positive, quoted
from holoctl.base.errors import InputError
from holoctl.base.renamed import former_names
from holoctl.base.single_threaded_blas import one_thread

__all__ = ["LoopStatistics", "realtime", "run_at_rate"]

SHORTEST, LONGEST, RESOLUTION = 1e-7, 1e5, 1.01
"""The range of times of the histogram, s, and the ratio of neighbouring bins."""

BINS = 2 + math.ceil(math.log(LONGEST / SHORTEST) / math.log(RESOLUTION))


SLOWEST, FASTEST = 1e-3, 1e6
"""Rates that make sense for a loop, Hz."""


@contextmanager
def realtime() -> Iterator[None]:
    """Keep Python's garbage collector and the threads of BLAS out of a control loop.

    ``with hc.realtime(): ...``, or ``@hc.realtime()`` on a function. On entry garbage is
    collected, the remaining objects are frozen (`gc.freeze`), the collector is disabled, and every
    BLAS that numpy and scipy have loaded is limited to one thread: OpenBLAS hands even small
    factorisations to its other threads, and waits for them on a busy computer. On exit, also by
    an exception, everything is restored. Contexts may be nested.

    All of this holds for the whole process. Loops in several threads share one context around
    them all. If some objects were frozen before, the frozen objects are left frozen.

    It changes neither the priority of the process nor the processor that it runs on: see
    docs/realtime.md.

    Raises
    ------
    None
        Errors from inside pass through unchanged.

    See Also
    --------
    run_at_rate : a loop at a fixed rate.
    ComputedTorque : the law of such a loop.

    Examples
    --------
    >>> import holoctl as hc
    >>> with hc.realtime():
    ...     statistics = hc.run_at_rate(lambda t: None, frequency=1000.0, duration=0.01)
    >>> statistics.ticks + statistics.skipped
    10
    """
    enabled, frozen = gc.isenabled(), gc.get_freeze_count() > 0
    with one_thread():
        try:
            gc.collect()
            gc.freeze()
            gc.disable()
            yield
        finally:
            if not frozen:
                gc.unfreeze()
            if enabled:
                gc.enable()
            else:
                gc.disable()


@former_names(frequency="rate")
@dataclass(frozen=True)
class LoopStatistics:
    """Statistics of how a loop kept its rate. Times in s; ``str()`` is a small table.

    The percentiles are never too low and at most 1 % too high (0.1 us for all shorter times); the
    worst values are exact. A loop without a single tick has nan for its times.

    Attributes
    ----------
    frequency : float
        The requested number of ticks per second.
    ticks : int
        Calls of step.
    missed : int
        Calls that ended after the next tick was due.
    skipped : int
        Ticks without a call, because the next one was due before they could begin.
    step_median, step_p99, step_p999, step_worst : float
        Duration of a call.
    late_median, late_p99, late_p999, late_worst : float
        Delay of a call after its tick was due: the wake-up by the operating system, or the rest
        of the previous call if it took too long.

    See Also
    --------
    run_at_rate : returns it.
    realtime : keeps disturbances out of the loop.

    Examples
    --------
    >>> import holoctl as hc
    >>> statistics = hc.run_at_rate(lambda t: t > 0.004, frequency=1000.0)
    >>> statistics.frequency, statistics.step_median <= statistics.step_worst
    (1000.0, True)
    """

    frequency: float
    ticks: int
    missed: int
    skipped: int
    step_median: float
    step_p99: float
    step_p999: float
    step_worst: float
    late_median: float
    late_p99: float
    late_p999: float
    late_worst: float

    def __str__(self) -> str:
        rows = {
            "step": (self.step_median, self.step_p99, self.step_p999, self.step_worst),
            "late": (self.late_median, self.late_p99, self.late_p999, self.late_worst),
        }
        lines = [
            f"{self.ticks} ticks at {self.frequency:g} Hz, {self.missed} missed, "
            f"{self.skipped} skipped; times in us",
            f"{'':<6}{'median':>12}{'99 %':>12}{'99.9 %':>12}{'worst':>12}",
        ]
        for name, times in rows.items():
            lines.append(f"{name:<6}" + "".join(f"{1e6 * t:>12.1f}" for t in times))
        return "\n".join(lines)


@former_names(frequency="rate")
def run_at_rate(
    step: Callable[[float], bool | None], frequency: float, duration: float | None = None
) -> LoopStatistics:
    """Call a function at a fixed rate, and return statistics of its timing.

    Tick i is due i / frequency after the start, by the clock `time.perf_counter`, independent
    of the duration of earlier ticks. Until then the thread sleeps. If calls take too long, or the
    operating system wakes the thread too late, ticks whose period has passed are skipped, so
    that t is never more than one period old.

    Parameters
    ----------
    step : callable
        ``step(t)``, with t = i / frequency in s, of the tick and not of the clock. It returns True
        to end the loop, and None or False to continue.
    frequency : float
        Ticks per second.
    duration : float, optional
        The duration, s; the ticks are those with ``0 <= t < duration``. Default: until step returns
        True.

    Returns
    -------
    LoopStatistics

    Raises
    ------
    InputError
        If step is no function or returns something else, or for a frequency or duration that is
        not a number above zero.

    See Also
    --------
    realtime : keeps the collector and threads out of the loop.
    results.LoopStatistics : the result.
    compile : shorter ticks.

    Notes
    -----
    Exceptions of step, and KeyboardInterrupt, pass through, with a note that states the tick and
    the statistics up to there. The caller must then decide what the motors do.

    Examples
    --------
    >>> import holoctl as hc
    >>> ticks = []
    >>> statistics = hc.run_at_rate(ticks.append, frequency=1000.0, duration=0.01)
    >>> len(ticks) == statistics.ticks
    True
    """
    if not callable(step):
        raise InputError(f"step must be a function of the time t; got {quoted(step)}")
    rate = positive("frequency", frequency, "ticks per s")
    if not SLOWEST <= rate <= FASTEST:
        raise InputError(f"frequency must be from {SLOWEST:g} to {FASTEST:g} Hz; got {rate:g}")
    end = math.inf if duration is None else positive("duration", duration, "s")
    N = max(1, math.ceil(min(end * rate - 1e-9, sys.maxsize)))
    clock = time.perf_counter
    ticks = missed = skipped = i = 0
    spent, late = _Times(), _Times()

    def statistics() -> LoopStatistics:
        return LoopStatistics(rate, ticks, missed, skipped, *spent.summary(), *late.summary())

    start = clock()
    try:
        while i < N:
            due = start + i / rate
            while (wait := due - clock()) > 0.0:
                time.sleep(wait)
            began = clock()
            overdue = min(int((began - start) * rate), N) - i
            if overdue > 0:
                skipped, i = skipped + overdue, i + overdue
            if i == N:
                break
            result = step(i / rate)
            ended = clock()
            if result is not None and not isinstance(result, (bool, np.bool_)):
                raise InputError(
                    "step must return True to end the loop, or None or False to continue; got "
                    f"{type(result).__name__} {str(result)[:60]!r}"
                )
            spent.add(ended - began)
            late.add(began - due)
            ticks, i = ticks + 1, i + 1
            if ended > start + i / rate:
                missed += 1
            if result:
                break
    except BaseException as error:
        error.add_note(f"in run_at_rate, at the tick t = {i / rate:.6g} s; so far:\n{statistics()}")
        raise
    return statistics()


class _Times:
    """The times of a loop of any length: a histogram of fixed size, and the longest time."""

    def __init__(self) -> None:
        self.counts = [0] * BINS
        self.worst = 0.0

    def add(self, seconds: float) -> None:
        """Count one time; bin k ends at ``SHORTEST * RESOLUTION**k``."""
        k = math.ceil(math.log(max(seconds, SHORTEST) / SHORTEST) / math.log(RESOLUTION))
        self.counts[min(k, BINS - 1)] += 1
        self.worst = max(self.worst, seconds)

    def summary(self) -> tuple[float, float, float, float]:
        """Median, percentiles 99 and 99.9, and the longest."""
        up_to = np.cumsum(self.counts)
        total = int(up_to[-1])
        if total == 0:
            return math.nan, math.nan, math.nan, math.nan
        bins = np.searchsorted(up_to, [0.5 * total, 0.99 * total, 0.999 * total])
        median, p99, p999 = (min(SHORTEST * RESOLUTION ** int(k), self.worst) for k in bins)
        return median, p99, p999, self.worst
