"""PD control of a double integrator, by samples that are held and come late: where its poles are.

    z_k = x(t_k - delay)          delay = (m + f) h,  0 <= f < 1,  a = f h,  b = h - a
    z_k+1 = [1 h; 0 1] z_k + [a (a/2 + b); a] u_k-m-1 + [b^2/2; b] u_k-m         u_k = -[kp kd] z_k
    e = z - 1:   (1 + e)^(m+1) e^2 + N1(e) + (1 + e) N0(e) = 0,   N(e) = (kp g1 + kd g2) e + kp h g2

exactly: what was measured moves on by the effort that was held then. Without samples

    s^2 + (kd s + kp) exp(-s delay) = 0

Reference: K. Astrom and B. Wittenmark, Computer-Controlled Systems, the chapter on sampled systems
with time delays; D. Breda, S. Maset and R. Vermiglio, pseudospectral discretisation of the
infinitesimal generator of delay equations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.tolerances import (
    DECAYS_FASTER,
    DELAY_NODES,
    LOOP_BISECTED,
    LOOP_GRID,
    NEWTON_TRUSTED,
    TICK_ROUNDED,
)

__all__ = ["Late", "damping_left", "largest_bandwidth", "late", "loop_exponents"]

Complex = NDArray[np.complex128]
Array = NDArray[np.float64]


class Late(NamedTuple):
    """A delay in ticks: whole ones, and the rest as two parts a + b of a tick, s."""

    whole: int
    a: float
    b: float


def late(rate: float, delay: float) -> Late:
    """`delay` s at `rate` ticks a second."""
    ticks, h = delay * rate, 1.0 / rate
    whole = int(np.floor(ticks + TICK_ROUNDED))
    part = max(ticks - whole, 0.0)
    a = part * h if part > TICK_ROUNDED else 0.0
    return Late(whole, a, h - a)


def loop_exponents(bandwidth: float, damping: float, rate: float | None, delay: float) -> Complex:
    """Exponents s of the loop, 1/s: in ticks ``log(z) / h``; of a continuous one with delay those
    that decay most slowly.

    Parameters
    ----------
    bandwidth, damping : float
        ``kp = bandwidth^2``, ``kd = 2 damping bandwidth``.
    rate : float or None
        Ticks per second; None: continuous.
    delay : float
        s.
    """
    kp, kd = bandwidth**2, 2.0 * damping * bandwidth
    if rate is not None:
        e = _roots(kp, kd, 1.0 / rate, late(rate, delay))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log1p(e) * rate, dtype=complex)
    if delay == 0.0:
        return np.asarray(np.roots([1.0, kd, kp]), dtype=complex)
    return _of_delay(kp, kd, delay)


def damping_left(bandwidth: float, damping: float, rate: float | None, delay: float) -> float:
    """The smallest ``-Re s / |s|``, below zero where the loop is not stable; of the poles that do
    not decay faster than those asked for by `DECAYS_FASTER`: others are over before these begin."""
    s = loop_exponents(bandwidth, damping, rate, delay)
    s = s[np.isfinite(s)]
    asked = bandwidth * (damping + np.sqrt(max(damping**2 - 1.0, 0.0)))
    slow = -s.real <= max(DECAYS_FASTER * asked, float((-s.real).min()))
    return float((-s.real[slow] / np.abs(s[slow])).min())


def largest_bandwidth(damping: float, rate: float | None, delay: float) -> float:
    """The bandwidth, rad/s, up to which the loop with this damping is stable; inf where always."""
    x = np.sqrt(2.0 * damping**2 + np.sqrt(4.0 * damping**4 + 1.0))  # crossover over bandwidth
    margin = float(np.arctan(2.0 * damping * x) / x)
    if rate is None:
        return margin / delay if delay > 0.0 else float("inf")

    def stable(bandwidth: float) -> bool:
        return bool(loop_exponents(bandwidth, damping, rate, delay).real.max() < 0.0)

    low = LOOP_GRID[0] * margin / (delay + 0.5 / rate)
    while not stable(low):
        low *= 0.5
    high = low * LOOP_GRID[1]
    while stable(high):
        low, high = high, high * LOOP_GRID[1]
    while high - low > LOOP_BISECTED * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


def _roots(kp: float, kd: float, h: float, by: Late) -> Complex:
    """e = z - 1 of all poles, each by Newton's method to its last digits.

    ``z^m e^2 + N0(e)`` where the delay is in whole ticks, else z times it and N1.
    """
    a, b, m = by.a, by.b, by.whole + (by.a > 0.0)
    now = np.array([kp * 0.5 * b * b + kd * b, kp * h * b])  # N0: slope, constant
    before = np.array([kp * a * (0.5 * a + b) + kd * a, kp * h * a])  # N1
    in_z = np.zeros(m + 3)
    in_z[:3] = 1.0, -2.0, 1.0
    for N, power in ((now, by.a > 0.0), (before, 0)):
        in_z[m + 1 - power] += N[0]
        in_z[m + 2 - power] += N[1] - N[0]
    e = np.roots(in_z).astype(complex) - 1.0
    for _ in range(3):
        z = 1.0 + e
        n0, n1 = now[0] * e + now[1], before[0] * e + before[1]
        f, df = z**m * e * e + n1, z**m * 2.0 * e + before[0]
        df += m * z ** max(m - 1, 0) * e * e
        f, df = (f + z * n0, df + n0 + z * now[0]) if by.a > 0.0 else (f + n0, df + now[0])
        step = f / np.where(df == 0.0, np.inf, df)
        e = e - np.where(np.abs(step) < NEWTON_TRUSTED * np.abs(e), step, 0.0)
    return np.asarray(e, dtype=complex)


def _of_delay(kp: float, kd: float, delay: float) -> Complex:
    """The slowest roots of ``s^2 + (kd s + kp) exp(-s delay)``: eigenvalues of the shift along the
    history, by Chebyshev nodes, then Newton's method."""
    n = DELAY_NODES
    x = np.cos(np.pi * np.arange(n + 1) / n)
    c = np.r_[2.0, np.ones(n - 1), 2.0] * (-1.0) ** np.arange(n + 1)
    D = np.outer(c, 1.0 / c) / (x[:, None] - x + np.eye(n + 1))
    D = (D - np.diag(D.sum(axis=1))) * 2.0 / delay
    shift = np.kron(D, np.eye(2))
    shift[:2] = 0.0
    shift[:2, :2] = [[0.0, 1.0], [0.0, 0.0]]
    shift[:2, -2:] = [[0.0, 0.0], [-kp, -kd]]
    values: Complex = np.asarray(np.linalg.eigvals(shift), dtype=complex)
    s = values[np.argsort(-values.real)][:4]
    for _ in range(4):
        late_by = np.exp(-s * delay)
        f = s * s + (kd * s + kp) * late_by
        s = s - f / (2.0 * s + (kd - delay * (kd * s + kp)) * late_by)
    return np.asarray(s, dtype=complex)
