"""Poles of PD control of a double integrator with sampling, zero-order hold and delay.

    z_k = x(t_k - delay)          delay = (m + f) h,  0 <= f < 1,  a = f h,  b = h - a
    z_k+1 = [1 h; 0 1] z_k + [a (a/2 + b); a] u_k-m-1 + [b^2/2; b] u_k-m         u_k = -[kp kd] z_k
    e = z - 1:   (1 + e)^(m+1) e^2 + N1(e) + (1 + e) N0(e) = 0,   N(e) = (kp g1 + kd g2) e + kp h g2

exactly: between two samples the measured state moves under the efforts held at that time. Divided
by z^(m+1) e^2 the equation is

    1 + w^2 p(z) + 2 d w r(z) = 0        w bandwidth, d damping;  stable for small w

and at the limit of stability a pole z = exp(j theta) is on the unit circle: the imaginary part
gives w(theta), the real part theta. Without sampling

    s^2 + (kd s + kp) exp(-s delay) = 0

References: J. Ackermann, Robust Control, the chapter on D-decomposition; K. Astrom and
B. Wittenmark, Computer-Controlled Systems, the chapter on sampled systems with time delays;
D. Breda, S. Maset and R. Vermiglio, pseudospectral discretisation of the infinitesimal generator of
delay equations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array
from holoctl.base.tolerances import TICK_ROUNDED

__all__ = ["DelayInTicks", "damping_left", "largest_bandwidth", "late", "loop_exponents"]

LOOP_ANGLES = (400, 64)
"""Numbers of angles at which a crossing of the unit circle by a pole is searched: at small angles,
and for each tick of delay at larger ones."""

BARELY_DAMPED = 1e-6
"""With a damping ratio up to this the largest bandwidth is so small that a tick acts as a delay of
half a tick."""

NEAR_ONE = 0.1
"""Poles of a sampled loop nearer to z = 1 than this are refined by Newton's method."""

POLE_STEPS = 50
"""Largest number of steps of that method."""

POLES_EXACT = 1e-14  # relative
"""It ends if the poles change by no more."""

DECAYS_FASTER = 2.0
"""Poles that decay faster than the requested ones by this factor do not count in the damping
left."""

DELAY_NODES = 30
"""Number of nodes along the history of a continuous loop with delay."""

SLOW_LOOP = 0.1
"""Poles whose product with the delay is below this start the iteration at their values without
delay."""


Complex = NDArray[np.complex128]


class DelayInTicks(NamedTuple):
    """A delay in ticks: a number of whole ticks, and the parts a, b (s) of the tick in which it
    ends."""

    whole: int
    a: float
    b: float


def late(rate: float, delay: float) -> DelayInTicks:
    """A delay, s, in ticks of ``1 / rate`` s."""
    ticks, h = delay * rate, 1.0 / rate
    whole = int(np.floor(ticks + TICK_ROUNDED))
    part = max(ticks - whole, 0.0)
    a = part * h if part > TICK_ROUNDED else 0.0
    return DelayInTicks(whole, a, h - a)


def loop_exponents(bandwidth: float, damping: float, rate: float | None, delay: float) -> Complex:
    """Exponents s of the loop, 1/s: ``log(z) / h`` of a sampled loop; of a continuous loop with
    delay the ones that decay most slowly.

    Parameters
    ----------
    bandwidth, damping : float
        ``kp = bandwidth^2``, ``kd = 2 damping bandwidth``.
    rate : float or None
        Ticks per second; None: continuous.
    delay : float
        Delay of the loop, s.
    """
    kp, kd = bandwidth**2, 2.0 * damping * bandwidth
    if rate is not None:
        e = _roots(kp, kd, 1.0 / rate, late(rate, delay))
        x, y = e.real, e.imag  # numpy's log1p of complex numbers has fewer digits
        with np.errstate(divide="ignore"):
            size = 0.5 * np.log1p(np.maximum(x * (2.0 + x) + y * y, -1.0))
        return np.asarray(rate * size + 1j * (rate * np.arctan2(y, 1.0 + x)), dtype=complex)
    if delay == 0.0:
        return np.asarray(np.roots([1.0, kd, kp]), dtype=complex)
    return _of_delay(kp, kd, delay)


def damping_left(bandwidth: float, damping: float, rate: float | None, delay: float) -> float:
    """The smallest ``-Re s / |s|`` of the loop; negative if it is not stable.

    Poles that decay faster than the requested ones by more than `DECAYS_FASTER` are left out.
    """
    s = loop_exponents(bandwidth, damping, rate, delay)
    s = s[np.isfinite(s)]
    requested = bandwidth * (damping + np.sqrt(max(damping**2 - 1.0, 0.0)))
    slow = -s.real <= max(DECAYS_FASTER * requested, float((-s.real).min()))
    return float((-s.real[slow] / np.abs(s[slow])).min())


def largest_bandwidth(damping: float, rate: float | None, delay: float) -> float:
    """The bandwidth, rad/s, up to which the loop with this damping is stable; inf without limit."""
    x = np.sqrt(2.0 * damping**2 + np.sqrt(4.0 * damping**4 + 1.0))  # crossover over bandwidth
    margin = float(np.arctan(2.0 * damping * x) / x)
    if rate is None:
        return margin / delay if delay > 0.0 else float("inf")
    if damping <= BARELY_DAMPED:  # so slow that a tick acts as a delay of half a tick
        return margin / (delay + 0.5 / rate)
    return _first_crossing(damping, rate, late(rate, delay))


def _first_crossing(damping: float, rate: float, by: DelayInTicks) -> float:
    """The least bandwidth at which a pole is on the unit circle, rad/s."""
    few, many = LOOP_ANGLES
    start = min(0.1 * damping / (by.whole + 1), 1e-3)
    angles = np.concatenate(
        [np.geomspace(start, 0.1, few), np.linspace(0.1, np.pi, many * (by.whole + 2))[1:-1]]
    )
    left = _crossing(angles, damping, rate, by)[0]
    at = np.flatnonzero(left[:-1] * left[1:] <= 0.0)
    low, high, at_low = angles[at], angles[at + 1], left[at]
    for _ in range(60):
        middle = 0.5 * (low + high)
        here = _crossing(middle, damping, rate, by)[0]
        before = here * at_low > 0.0
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    found = []
    for angle, about in zip(low, _crossing(low, damping, rate, by)[1], strict=True):
        w = _of_real_part(angle, damping, rate, by)  # better conditioned than the imaginary part
        found.append(w[np.argmin(np.abs(w - about))])
    found.extend(_of_real_part(np.pi, damping, rate, by))  # the pole at z = -1
    return rate * min(float(x.real) for x in found if x.real > 0.0 and abs(x.imag) <= 1e-6 * abs(x))


def _over_integrators(angles: Array, rate: float, by: DelayInTicks) -> tuple[Complex, Complex]:
    """p and r at z = exp(j angle), with time in ticks."""
    a, b, e = by.a * rate, by.b * rate, np.expm1(1j * angles)
    z = 1.0 + e
    p = (a * (0.5 * a + b) + 0.5 * z * b * b) * e + (a + z * b)
    shift = np.exp(-1j * (by.whole + 1) * angles) / e
    return p * shift / e, (a + z * b) * shift


def _crossing(angles: Array, damping: float, rate: float, by: DelayInTicks) -> tuple[Array, Array]:
    """The real part, times a square, with w from the imaginary part; and w h."""
    p, r = _over_integrators(angles, rate, by)
    w = -2.0 * damping * r.imag / np.where(p.imag == 0.0, np.inf, p.imag)
    left = p.imag**2 + (2.0 * damping) ** 2 * r.imag * (r.imag * p.real - r.real * p.imag)
    return left, w


def _of_real_part(angle: float, damping: float, rate: float, by: DelayInTicks) -> Complex:
    """The two values of w h at which the real part vanishes."""
    (p,), (r,) = _over_integrators(np.array([angle]), rate, by)
    return np.roots([p.real, 2.0 * damping * r.real, 1.0]).astype(complex)


def _roots(kp: float, kd: float, h: float, by: DelayInTicks) -> Complex:
    """e = z - 1 of all poles: eigenvalues of a companion matrix; those near 0, which slow loops
    have, are refined by Newton's method on all of them at once (Aberth).

    The polynomial is ``z^m e^2 + N0(e)`` if the delay is a whole number of ticks, else z times that
    plus N1.
    """
    a, b, m = by.a, by.b, by.whole + (by.a > 0.0)
    now = np.array([kp * 0.5 * b * b + kd * b, kp * h * b])  # N0: slope, constant
    before = np.array([kp * a * (0.5 * a + b) + kd * a, kp * h * a])  # N1
    in_z = np.zeros(m + 3)
    in_z[:3] = 1.0, -2.0, 1.0
    for N, power in ((now, by.a > 0.0), (before, 0)):
        in_z[m + 1 - power] += N[0]
        in_z[m + 2 - power] += N[1] - N[0]
    e: Complex = np.asarray(np.roots(in_z) - 1.0, dtype=complex)
    slow = h * np.roots([1.0, kd, kp]).astype(complex)  # the poles without delay
    if np.abs(slow).max() * (m + 1) < SLOW_LOOP:
        e[np.argsort(np.abs(e))[:2]] = slow
    e = np.asarray(e * (1.0 + 1e-9j * np.arange(e.size)), dtype=complex)  # separates equal poles
    near = np.flatnonzero(np.abs(e) < NEAR_ONE)
    for _ in range(POLE_STEPS):
        x = e[near]
        z = 1.0 + x
        n0, n1 = now[0] * x + now[1], before[0] * x + before[1]
        f, df = z**m * x * x + n1, z**m * 2.0 * x + before[0]
        df += m * z ** max(m - 1, 0) * x * x
        f, df = (f + z * n0, df + n0 + z * now[0]) if by.a > 0.0 else (f + n0, df + now[0])
        apart = x[:, None] - e
        others = (1.0 / np.where(apart == 0.0, np.inf, apart)).sum(axis=1)
        slope = df - f * others
        step = np.where(slope == 0.0, 0.0, f / np.where(slope == 0.0, 1.0, slope))
        e[near] = x - step
        if (np.abs(step) <= POLES_EXACT * np.abs(x)).all():
            break
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
