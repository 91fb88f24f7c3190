"""Rates from positions by a filter of known delay, for drives that give no rates.

A second-order tracking loop, critically damped, follows the positions x; its rate r is the result:

    e = x - xh                 the lag of the loop
    xh' = r
    r'  = p^2 e - 2 p r        rate by position: s p^2 / (s + p)^2

Between two readings x is a straight line of slope s = (x_k - x_{k-1}) / h, for which the step is
exact: the lag tends to 2 s / p, and the deviations of (e, r) from (2 s / p, s) decay by

    exp(-p h) [1 + p h, h; -p^2 h, 1 - p h]
"""

from __future__ import annotations

from math import exp, expm1, sinh, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.angles import wrapped
from holoctl.base.checks import (
    Vector,
    as_given,
    entries,
    finite,
    flag,
    numbers,
    positive,
    quiet,
    shown,
    vector,
)
from holoctl.base.errors import InputError
from holoctl.base.linalg import largest

__all__ = ["RateFilter"]

SLOWEST_RATE_FILTER = 1e-6
"""The least bandwidth of a rate filter times its tick."""


HALF_POWER = sqrt(sqrt(2.0) - 1.0)
"""The frequency at which p^2 / (s + p)^2 has half its power, divided by p."""


class RateFilter:
    """Rates from positions that are read once a tick: a second-order tracking loop.

    With a double pole at -p, p = 1.55 `bandwidth`, its rate is the true rate filtered by
    ``p^2 / (s + p)^2``: no overshoot and no steady error for a ramp; the rate of a slow motion is
    2 / p late. Positions are interpolated linearly between readings; for such motions the filter
    is exact.

    A higher bandwidth gives less delay and more noise: see `delay` and `noise_gain`.

    A filter remembers its last reading: use one for each loop.

    Parameters
    ----------
    bandwidth : float
        The frequency at which a rate is attenuated to 0.71 (half its power), rad/s; below
        ``pi / dt``.
    dt : float
        s, from one reading to the next.
    turning : bool or (m,) array_like of bool, optional
        Which positions are angles known up to whole turns, of continuous joints or of encoders
        that wrap: their steps are taken the shorter way round. For other positions True has no
        effect as long as they move by less than pi (rad or m) from one reading to the next.

    Attributes
    ----------
    bandwidth, dt : float
    turning : bool or (m,) array
    delay : float
        The delay of the rate of a slowly changing motion, s.
    noise_gain : float
        Standard deviation of the rate divided by that of the positions, 1/s, for noise that is
        independent from reading to reading. Rounding to counts of width w is noise of about
        ``w / sqrt(12)`` if the joint moves by some counts a tick.

    Raises
    ------
    InputError
        For numbers that are not above zero, and a bandwidth out of the range for `dt`.

    See Also
    --------
    ClosedStateEstimator : takes rates of the measured joints.
    Sensors : simulates drives without rates, with this filter.

    References
    ----------
    G. F. Franklin, J. D. Powell, M. Workman, Digital Control of Dynamic Systems: discrete
    equivalents of continuous filters, with inputs that are straight lines between samples.

    Examples
    --------
    >>> import holoctl as hc
    >>> rates = hc.RateFilter(bandwidth=300.0, dt=1e-3)
    >>> rates.reset([0.5, -0.2])
    >>> rates.rate([0.501, -0.202]).round(3).tolist()
    [0.08, -0.16]
    >>> round(1e3 * rates.delay, 2)
    4.29
    """

    bandwidth: float
    dt: float
    turning: bool | NDArray[np.bool_]
    delay: float
    noise_gain: float

    def __init__(self, bandwidth: float, dt: float, turning: Any = True) -> None:
        self.bandwidth = positive("bandwidth", bandwidth, "rad/s")
        self.dt = positive("dt", dt, "s")
        phase = self.bandwidth * self.dt
        if not SLOWEST_RATE_FILTER <= phase < np.pi:
            raise InputError(
                f"bandwidth must be below pi / dt, half of the sampling frequency, and at least "
                f"{SLOWEST_RATE_FILTER:g} / dt; got {self.bandwidth:g} rad/s with readings every "
                f"{self.dt:g} s (pi / dt is {np.pi / self.dt:.4g} rad/s). It is in rad/s: "
                "2 pi times one in Hz"
            )
        self.turning = _turning(turning)
        self._pole = self.bandwidth / HALF_POWER
        self.delay, gain = _delay_and_gain(self._pole * self.dt)
        self.delay, self.noise_gain = self.delay * self.dt, gain / self.dt
        self._step = _step(self._pole, self.dt)
        self._x: Vector | None = None
        self._lag = self._rate = np.zeros(0)

    def __repr__(self) -> str:
        return (
            f"<RateFilter: bandwidth {self.bandwidth:g} rad/s, every {self.dt:g} s; "
            f"{1e3 * self.delay:.3g} ms late, noise times {self.noise_gain:.3g} 1/s>"
        )

    @quiet
    def rate(self, x: Any, elapsed: float | None = None) -> Vector:
        """The rates at a reading; the first reading is a start at rest.

        Parameters
        ----------
        x : (m,) array_like
            Positions, rad or m.
        elapsed : float, optional
            The time since the last reading, s, if ticks were skipped. Default: `dt`.

        Returns
        -------
        (m,) array
            rad/s or m/s.

        Raises
        ------
        InputError
            For another shape than before, or numbers that are not finite; such a reading is not
            remembered.
        """
        if self._x is None:
            self.reset(x)
            return self._rate.copy()
        x = as_given("x", x, self._x.size, "positions").copy()
        if not finite(x):
            vector("x", x, x.size, "positions")
        h = self.dt if elapsed is None else positive("elapsed", elapsed, "s")
        pole = self._pole
        decay, one, two, three = self._step if h == self.dt else _step(pole, h)
        slope = self._moved(x - self._x) / h
        steady = 2.0 / pole * slope
        e, r = steady - self._lag, self._rate - slope
        lag, rate = steady - decay * (one * e + h * r), slope - decay * (two * e - three * r)
        if not finite(rate):
            raise InputError("x is out of range: its rates are not finite")
        self._x, self._lag, self._rate = x, lag, rate
        return rate.copy()

    @quiet
    def reset(self, x: Any, rate: Any = None) -> None:
        """Start at a reading: the motion before it is assumed at rest, or at constant rates.

        Parameters
        ----------
        x : (m,) array_like
            Positions, rad or m.
        rate : (m,) array_like, optional
            rad/s or m/s. Default: zero.

        Raises
        ------
        InputError
            For shapes that do not match, or numbers that are not finite.
        """
        given = numbers("x", x, "positions")
        m = given.size if isinstance(self.turning, bool) else self.turning.size
        x = vector("x", given, m, "positions")
        rate = np.zeros(m) if rate is None else vector("rate", rate, m, "rates")
        self._x, self._lag, self._rate = x, 2.0 / self._pole * rate, rate

    def _moved(self, step: Vector) -> Vector:
        """The steps, angles by the shorter way round; shorter steps than pi are not changed."""
        if largest(step) <= np.pi:
            return step
        return np.where(self.turning & (np.abs(step) > np.pi), wrapped(step), step)


def _turning(given: Any) -> bool | NDArray[np.bool_]:
    if isinstance(given, (bool, np.bool_)):
        return flag("turning", given)
    listed = entries(given)
    if listed and all(isinstance(x, (bool, np.bool_)) for x in listed):
        return np.array(listed)
    raise InputError(
        f"turning must be True or False, or one of these for each position; got {shown(given)!r}"
    )


def _step(pole: float, h: float) -> tuple[float, float, float, float]:
    """exp(-p h), and 1 + p h, p^2 h, 1 - p h; see the head of this module."""
    z = pole * h
    return exp(-z), 1.0 + z, pole * z, 1.0 - z


def _delay_and_gain(z: float) -> tuple[float, float]:
    """The delay, in ticks, and the noise gain, per tick, for z = p h.

    The rate is a moving average of the slopes in the last intervals, with weights
    ``w_j = f(j) - f(j + 1)``, ``f(k) = (1 + z k) a^k``, ``a = exp(-z)``; each slope is that in the
    middle of its interval. The weights of the positions are differences of these,
    ``a^k (A + B k)`` except for the first.
    """
    a, rest = exp(-z), -expm1(-z)
    delay = 0.5 + a / rest + z * a / rest**2
    twice = 4.0 * sinh(0.5 * z) ** 2  # a + 1/a - 2
    A, B = twice - 2.0 * z * sinh(z), z * twice
    b, rest = a * a, -expm1(-2.0 * z)
    first = -expm1(-z) - z * a  # 1 - f(1)
    squares = A * A * b / rest + 2.0 * A * B * b / rest**2 + B * B * b * (1.0 + b) / rest**3
    return delay, sqrt(first * first + squares)
