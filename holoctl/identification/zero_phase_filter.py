"""The zero-phase filter of measurements, and a periodic motion fitted to them.

    H(f) = exp(-s) (1 + s + ... + s^(m-1) / (m-1)!)        s = (2 pi f sigma)^2 / 2
    k(t) = g(t) (1 - He_2(z)/2 + ... + (-1/2)^j He_2j(z) / j!)        z = t / sigma, j = m - 1

g is the Gaussian of standard deviation sigma, He_n are Hermite polynomials, and H = 1 - O(f^2m) is
flat below the cutoff, at which it halves the power. The kernel k is defined in continuous time: the
same linear operator is applied to signals of any rate and time base, as a sum over their samples,
and its derivatives give rates and accelerations of the filtered signal.
Derivation: docs/derivations-identification.md, "The filter".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermeval
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from holoctl.base.checks import Array, Mask, Vector
from holoctl.base.linalg import least_squares

__all__ = ["FLAT", "SHARP", "Grid", "ZeroPhase", "fitted_period", "fourier", "grids_of"]


class ZeroPhase(NamedTuple):
    """A filter of order m: where it halves the power, and where its kernel is cut.

    Attributes
    ----------
    terms : int
        m.
    width : float
        sigma times the cutoff.
    reach : float
        The kernel is zero beyond this many sigma; what is cut is negligible.
    """

    terms: int
    width: float
    reach: float

    def span(self, cutoff: float) -> float:
        """Half the length of the kernel, s."""
        return self.reach * self.width / cutoff

    def matrix(self, grid: Grid, at: Vector, cutoff: float, derivative: int = 0) -> csr_array:
        """(s, n): samples of a grid to the filtered signal, or its derivative, at times `at`.

        The times must be inside the grid by `span`.
        """
        sigma = self.width / cutoff
        half = int(np.ceil(self.span(cutoff) / grid.step))
        middle = np.rint((at - grid.start) / grid.step).astype(int)
        places = middle[:, None] + np.arange(-half, half + 1)
        z = (at[:, None] - grid.start - grid.step * places) / sigma
        series = np.zeros(2 * self.terms - 1 + derivative)
        series[derivative::2] = np.cumprod(np.append(1.0, -0.5 / np.arange(1, self.terms)))
        k = hermeval(z, series) * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
        k *= grid.step / sigma * (-1.0 / sigma) ** derivative
        k[(places < 0) | (places >= grid.samples)] = 0.0
        rows = np.repeat(np.arange(at.size), places.shape[1])
        columns = places.clip(0, grid.samples - 1).ravel()
        return csr_array((k.ravel(), (rows, columns)), shape=(at.size, grid.samples))


SHARP = ZeroPhase(2, 0.23369, 5.5)
"""For equations: white noise that it has filtered is independent (correlation below 0.01) at two
samples for each period of the cutoff."""

FLAT = ZeroPhase(4, 0.37200, 8.0)
"""For positions: it changes signals at a fifth of its cutoff by 5e-6."""


class Grid(NamedTuple):
    """Equidistant times: from `start`, s, every `step`, s."""

    start: float
    step: float
    samples: int

    @property
    def times(self) -> Vector:
        """(samples,) array, s."""
        return np.asarray(self.start + self.step * np.arange(self.samples), dtype=float)

    def inside(self, at: Vector, margin: float) -> Mask:
        """Which times are inside by a margin, s."""
        slack = 1e-9 * self.step
        last = self.start + self.step * (self.samples - 1)
        found: Mask = (at >= self.start + margin - slack) & (at <= last - margin + slack)
        return found


UNEVEN = 0.01
"""Times that are within this fraction of a step of equidistant ones count as equidistant."""

FEWEST = 4
"""Pieces of fewer samples are left out: a cubic spline needs 4."""


def grids_of(t: Vector, x: Array, bridge: float) -> list[tuple[Grid, Array]]:
    """Samples x (n, ..) as equidistant pieces: uneven times, and gaps up to `bridge` (s), are
    interpolated by cubic splines; at longer gaps a new piece begins."""
    if t.size < FEWEST:
        return []
    step = float(np.median(np.diff(t)))
    cuts = np.flatnonzero(np.diff(t) > max(bridge, 1.5 * step)) + 1
    found = list[tuple[Grid, Array]]()
    for times, values in zip(np.split(t, cuts), np.split(x, cuts), strict=True):
        if times.size < FEWEST:
            continue
        length = float(times[-1] - times[0])
        count = 1 + round(length / step)
        grid = Grid(float(times[0]), length / (count - 1), count)
        even = count == times.size and np.abs(grid.times - times).max() < UNEVEN * step
        found.append((grid, values if even else CubicSpline(times, values)(grid.times)))
    return found


# -------------------------------------------------------------------------- periodic motions


def fourier(t: Vector, period: float, harmonics: int, derivative: int = 0) -> Array:
    """(n, 1 + 2 harmonics): the columns of a Fourier series, or of its derivative."""
    w = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    phase = np.outer(t, w) + 0.5 * np.pi * derivative
    constant = np.full((t.size, 1), 0.0 if derivative else 1.0)
    return np.hstack([constant, np.cos(phase) * w**derivative, np.sin(phase) * w**derivative])


def fitted_period(t: Vector, x: Array, harmonics: int) -> float:
    """The period (s) of a motion x (n, m), from 0.2 to 0.7 times its duration; nan without one."""
    grid = np.linspace(t[0], t[-1], min(t.size, 2000))
    even = np.column_stack([np.interp(grid, t, column) for column in x.T])
    even = (even - even.mean(axis=0)) / np.maximum(even.std(axis=0), 1e-12)
    step, n = float(grid[1] - grid[0]), grid.size
    shifts = np.arange(int(0.2 * n), int(0.7 * n))
    apart = np.array([np.mean((even[s:] - even[: n - s]) ** 2) for s in shifts])
    small = np.flatnonzero(apart <= max(4.0 * apart.min(), 0.02))  # the first of its multiples
    if small.size == 0 or apart.min() > 0.5:
        return float("nan")
    first = small[: 1 + int(np.argmax(np.append(np.diff(small) > 1, True)))]
    guess = float(shifts[first[apart[first].argmin()]]) * step

    def misfit(period: float) -> float:
        F = fourier(grid, period, harmonics)
        return float(np.sum((even - F @ least_squares(F, even)) ** 2))

    found = minimize_scalar(
        misfit, bounds=(guess - 2.0 * step, guess + 2.0 * step), method="bounded",
        options={"xatol": 1e-7 * guess},
    )  # fmt: skip
    return float(found.x)
