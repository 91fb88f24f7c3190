"""The time by which efforts were recorded later than positions.

The lag of the best fit: least squares in the parameters, whose residual is minimised over the lag,
first at equidistant lags, then by Gauss-Newton steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError
from holoctl.base.linalg import orthonormal_columns, pivoted_qr

__all__ = ["estimated_lag"]

TRIALS = 11
"""Lags that are tried first; an odd number, so that zero is one of them."""

INDEPENDENT = 1e-6
"""Pivots of scaled columns below this are dependent columns."""

STEPS, CONVERGED = 8, 1e-4
"""The most Gauss-Newton steps, and the length of the last one, in distances of trials."""

SIGNIFICANT = 3.0
"""A lag below this many of its standard deviations is zero."""

ENOUGH = 2
"""Equations for each parameter below which no lag is estimated."""


def estimated_lag(W: Array, y: Callable[[float], Array], largest: float) -> tuple[float, str]:
    """The lag, s, and a sentence about it.

    Parameters
    ----------
    W : (s, g, p) array
    y : function (lag) -> (s, g) array
    largest : float
        The largest lag, s.
    """
    size = np.sqrt(np.mean(y(0.0) ** 2, axis=0))
    moved = size > 0.0
    if not moved.any():
        return 0.0, "no lag of the efforts was estimated: they are zero"
    columns = (W[:, moved] / size[moved, None]).reshape(-1, W.shape[2])
    norms = np.linalg.norm(columns, axis=0)
    columns = columns[:, norms > 0.0] / norms[norms > 0.0]
    qr = pivoted_qr(columns, tol=INDEPENDENT)
    n, rank = len(columns), qr.rank
    if n < ENOUGH * rank:
        return 0.0, f"no lag of the efforts was estimated: {n} equations of {rank} parameters"
    Q = orthonormal_columns(columns[:, qr.pivots[:rank]])

    def residual(lag: float) -> Vector:
        b = (y(lag)[:, moved] / size[moved]).ravel()
        found: Vector = b - Q @ (Q.T @ b)
        return found

    trials = np.linspace(-largest, largest, TRIALS)
    cost = [float(r @ r) for r in map(residual, trials)]
    best = int(np.argmin(cost))
    by_chance = SIGNIFICANT * (2.0 / max(n - rank, 1)) ** 0.5 * cost[best]  # of other noise
    if best != TRIALS // 2 and cost[TRIALS // 2] - cost[best] <= by_chance:
        return 0.0, "no lag of the efforts was estimated: the motion does not tell it"
    if best in (0, TRIALS - 1):
        raise InputError(
            f"efforts fit best {abs(trials[best]):.3g} s or more "
            f"{'later' if best else 'earlier'} than positions: their clocks differ, or friction "
            "that the model lacks (friction=) looks like a lag; correct that, or give lag="
        )
    lag, distance = float(trials[best]), float(trials[1] - trials[0])
    small = 0.05 * distance
    for _ in range(STEPS):
        r, slope = residual(lag), (residual(lag + small) - residual(lag - small)) / (2.0 * small)
        step = -float(r @ slope) / float(slope @ slope)
        lag += float(np.clip(step, -0.5 * distance, 0.5 * distance))
        if abs(step) < CONVERGED * distance:
            break
    deviation = float(np.sqrt(r @ r / (n - rank) / (slope @ slope)))
    told = f"{1e3 * lag:.3g} +- {max(1e3 * deviation, 1e-3):.1g} ms"
    if abs(lag) < SIGNIFICANT * deviation or not abs(lag) <= largest:
        return 0.0, f"efforts have no lag (estimated {told})"
    return lag, f"efforts lag by {told} (estimated)"
