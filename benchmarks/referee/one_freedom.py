"""A motion of one freedom from where the bodies are at each value of its coordinate.

Independent of holoctl and of Pinocchio: the only input is a closed form of the poses, periodic
in the coordinate a. Derivatives by a are those of trigonometric interpolation, exact to rounding
where the poses are smooth. Then

    m(a) a'' + m'(a) a'^2 / 2 + V'(a) = 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

Array = NDArray[np.float64]
Pose = tuple[Array, Array]
"""Centre of mass in the world, rotation of the body."""

NOISE = 1e-15
"""Harmonics below this, relative to the largest, are rounding and left out."""


@dataclass(frozen=True, eq=False)
class OneFreedom:
    """Mass and potential along the coordinate, as Fourier series."""

    mass: Array
    potential: Array

    def motion(self, times: Array, start: float, rate: float) -> tuple[Array, Array]:
        """The coordinate and its rate at the instants, from those at 0."""
        mass, slope = _function(self.mass), _function(_derived(self.mass))
        force = _function(_derived(self.potential))

        def derivative(_: float, x: Array) -> list[float]:
            a, r = x
            return [r, -(0.5 * slope(a) * r * r + force(a)) / mass(a)]

        run = solve_ivp(
            derivative, (0.0, times[-1]), [start, rate], method="DOP853", t_eval=times,
            rtol=1e-13, atol=1e-14,
        )  # fmt: skip
        return run.y[0], run.y[1]

    def energy(self, a: Array, rate: Array) -> Array:
        """Kinetic and potential, J."""
        mass, potential = _function(self.mass), _function(self.potential)
        return np.array(
            [0.5 * mass(x) * r * r + potential(x) for x, r in zip(a, rate, strict=True)]
        )


def one_freedom(
    poses: Callable[[float], Sequence[Pose]], bodies: Sequence[tuple[float, Array]],
    gravity: Array, samples: int = 256,
) -> OneFreedom:  # fmt: skip
    """Sample the poses over a period; `bodies`: mass and central inertia in body axes."""
    at = [poses(a) for a in 2.0 * np.pi * np.arange(samples) / samples]
    mass, potential = np.zeros(samples), np.zeros(samples)
    for k, (m, inertia) in enumerate(bodies):
        p, R = (np.array([pose[k][i] for pose in at]) for i in (0, 1))
        dp, dR = _slopes(p), _slopes(R)
        spin = np.einsum("nji,njk->nik", R, dR)  # R' dR: the skew matrix of the turning
        w = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
        mass += m * (dp * dp).sum(axis=1) + np.einsum("ni,ij,nj->n", w, inertia, w)
        potential -= m * p @ gravity
    return OneFreedom(_series(mass), _series(potential))


def _slopes(values: Array) -> Array:
    n = len(values)
    factor = 1j * np.fft.fftfreq(n, 1.0 / n)
    factor[n // 2] = 0.0
    shape = (n,) + (1,) * (values.ndim - 1)
    c = np.fft.fft(values, axis=0)
    c[np.abs(c) < NOISE * np.abs(c).max()] = 0.0
    return np.fft.ifft(c * factor.reshape(shape), axis=0).real


def _series(values: Array) -> Array:
    """c with f(a) = Re sum c_k exp(i k a), k from 0."""
    c = 2.0 * np.fft.rfft(values)[: len(values) // 2] / len(values)
    c[0] *= 0.5
    kept = np.flatnonzero(np.abs(c) > NOISE * np.abs(c).max())
    return c[: kept[-1] + 1]


def _derived(c: Array) -> Array:
    return 1j * np.arange(len(c)) * c


def _function(c: Array) -> Callable[[float], float]:
    k = 1j * np.arange(len(c))
    return lambda a: float((c @ np.exp(k * a)).real)
