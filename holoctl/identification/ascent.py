"""The motion with the most information within limits, by sequential quadratic programming.

    max 1/2 log det M(y)      slack(y) >= 0          y: free coefficients of the series

M and slack depend on values, rates and accelerations at each sample, so their derivatives by these
are enough, whatever the number of coefficients. Each step solves

    min 1/2 d'H d - g'd      A d + slack >= 0        |d| <= trust

with H from differences of gradients (damped BFGS), and is corrected once or twice for the curvature
of the limits. Reference: J. Nocedal and S. Wright, Numerical Optimization, chapter 18.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import daqp
import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import HoloctlError
from holoctl.identification.excited_states import Excited, ExcitedStates
from holoctl.identification.fourier import Series, free_coefficients, terms

__all__ = ["Candidate", "Gradient", "Search", "gradient", "improved", "random_start"]

FIRST_TRUST, LARGEST_TRUST, SMALLEST_TRUST = 0.05, 0.5, 1e-4
"""Bounds of the change of a coefficient in a step, of the range of its motor; the search ends when
no step longer than the smallest is better."""

OVER = 3e-3
"""Largest excess over a limit during the search, of its range."""

CORRECTIONS, SHORTER = 3, 8
"""Number of corrections of a step for the curvature of the limits, and of shorter steps."""

SCALINGS, NARROW = 14, 0.03
"""The largest multiple of a motion within limits is found in at most this number of evaluations, to
this share of it."""


class Candidate(NamedTuple):
    """A motion, and what it is worth.

    Attributes
    ----------
    y : (2 h - 2, p) array
        Free coefficients, in units of the motors.
    excited : Excited
        At its samples.
    Q, R : (n k, b) and (b, b) arrays
        ``W = Q R`` of all rows over sqrt(n), so that M = R'R: exact where M is nearly singular.
    value : float
        ``log det M``; -inf if M is singular.
    """

    y: Array
    excited: Excited
    Q: Array
    R: Array
    value: float


@dataclass(frozen=True, eq=False)
class Search:
    """What does not change during the search.

    Attributes
    ----------
    states : ExcitedStates
    first : (p,) array
        Values of the driven coordinates at the start.
    unit : (p,) array
        Their units.
    basis : (parameters, b) array
        Columns of the base parameters, scaled.
    period : float
    harmonics, samples : int
    """

    states: ExcitedStates
    first: Vector
    unit: Vector
    basis: Array
    period: float
    harmonics: int
    samples: int

    def series(self, y: Array) -> Series:
        """The motion of free coefficients."""
        free = free_coefficients(self.harmonics)
        return Series(self.first, (free @ y) * self.unit, self.period)

    def at(self, y: Array) -> Candidate | None:
        """A candidate; None if the motion leaves the workspace, or comes to a singularity."""
        try:
            found = self.states.excited(self.states.motion(self.series(y), self.samples))
        except HoloctlError:
            return None
        if not np.isfinite(found.slack).all():
            return None
        return self.valued(y, found)

    def valued(self, y: Array, found: Excited) -> Candidate:
        """A candidate of an evaluated motion."""
        W = (found.W @ self.basis).reshape(-1, self.basis.shape[1]) / np.sqrt(len(found.W))
        Q, R = np.linalg.qr(W)
        size = np.abs(np.diag(R))
        value = 2.0 * float(np.log(size).sum()) if size.min() > 0.0 else -np.inf
        return Candidate(y, found, Q, R, value)


def random_start(search: Search, rng: np.random.Generator) -> Candidate | None:
    """A random motion as large as limits allow; None if there is none."""
    size = (2 * search.harmonics - 2, search.unit.size)
    return within_limits(search, rng.normal(size=size), SCALINGS)


def within_limits(search: Search, y: Array, most: int) -> Candidate | None:
    """The largest multiple of a motion that is within limits."""
    low, high, scale, best = 0.0, np.inf, 0.3, None
    for _ in range(most):
        found = search.at(scale * y)
        if found is not None and float(found.excited.slack.min()) >= 0.0:
            low, best = scale, found
        else:
            high = scale
        if high - low < NARROW * high:
            break
        scale = 2.0 * scale if np.isinf(high) else 0.5 * (low + high)
    return best


class Gradient(NamedTuple):
    """Derivatives at a candidate by y, flattened: of 1/2 log det M, and of all distances."""

    g: Vector
    A: Array


def gradient(search: Search, at: Candidate) -> Gradient:
    slopes = search.states.slopes(at.excited, search.basis)
    path = at.excited.path
    n, p = path.s.size, search.unit.size
    by_W = np.linalg.solve(at.R, at.Q.T).T.reshape(n, -1, len(at.R)) / np.sqrt(n)  # W M^-1
    g = np.einsum("nkb,njkb->nj", by_W, slopes.W, optimize=True).reshape(n, 3, p)
    series = search.series(at.y)
    free = free_coefficients(search.harmonics)
    of_y = np.array([terms(series, t) for t in path.s.tolist()]) @ free
    by_y = np.einsum("nac,naj->cj", of_y, g, optimize=True) * search.unit
    slack = slopes.slack.reshape(n, 3, p, -1)
    A = np.einsum("nac,najm->nmcj", of_y, slack, optimize=True) * search.unit
    return Gradient(by_y.ravel(), A.reshape(n * slack.shape[3], -1))


class AscentStep(NamedTuple):
    """An accepted step: its candidate, d, and the limits that were active with their
    multipliers."""

    found: Candidate
    d: Vector
    rows: Any
    multipliers: Vector


def improved(search: Search, at: Candidate, iterations: int, bar: Any) -> Candidate:
    """A better motion, after at most this number of steps; `bar` is updated by each."""
    trust, H, last = FIRST_TRUST, np.zeros((0, 0)), None
    for _ in range(iterations):
        bar.update(1)
        here = gradient(search, at)
        if last is None:
            H = np.eye(here.g.size) * (np.linalg.norm(here.g) / 0.3 + 1e-300)
        else:
            before, step = last
            change = before.g - here.g - step.multipliers @ (here.A - before.A)[step.rows]
            H = _updated(H, step.d, change)
        found = None
        for _ in range(SHORTER):
            found = _step(at, search, here, H, trust)
            if found is not None or trust < SMALLEST_TRUST:
                break
            trust /= 3.0
        if found is None:
            break
        last, at, trust = (here, found), found.found, min(2.0 * trust, LARGEST_TRUST)
    return at


def _step(
    at: Candidate, search: Search, here: Gradient, H: Array, trust: float
) -> AscentStep | None:  # fmt: skip
    """A step to a better motion; None if there is none within the trust region."""
    slack, n = at.excited.slack.ravel(), here.g.size
    far = np.abs(here.A).sum(axis=1) * trust
    expected = slack
    for _ in range(CORRECTIONS):
        rows = np.flatnonzero(expected < far)
        lower = np.concatenate([np.full(n, -trust), np.minimum(-expected[rows], 0.0)])
        upper = np.concatenate([np.full(n, trust), np.full(rows.size, 1e30)])
        sense = np.zeros(n + rows.size, dtype=np.intc)
        A = np.ascontiguousarray(here.A[rows])
        d, _, flag, info = daqp.solve(H, -here.g, A, upper, lower, sense)
        if flag < 1:
            return None
        d = np.array(d)
        found = search.at(at.y + d.reshape(at.y.shape))
        if found is None:
            return None
        if float(found.excited.slack.min()) > -OVER:
            multipliers = np.abs(np.asarray(info["lam"])[n:])
            return AscentStep(found, d, rows, multipliers) if found.value > at.value else None
        expected = np.minimum(slack, found.excited.slack.ravel() - here.A @ d)
    return None


def _updated(H: Array, d: Vector, change: Vector) -> Array:
    """H after a step with this change of the gradient, positive definite (Powell's damping)."""
    Hd = H @ d
    size, along = float(d @ Hd), float(d @ change)
    if along < 0.2 * size:
        share = 0.8 * size / (size - along)
        change = share * change + (1.0 - share) * Hd
    found: Array = H - np.outer(Hd, Hd) / size + np.outer(change, change) / float(d @ change)
    return found
