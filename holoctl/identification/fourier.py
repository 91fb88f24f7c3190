"""Periodic motions that start and end at rest: finite Fourier series.

    x(t) = x_0 + sum_k a_k sin(k w t) + b_k (cos(k w t) - 1)        w = 2 pi / period

x(0) = x_0. The rate at t = 0 is zero if sum_k k a_k = 0, the acceleration if sum_k k^2 b_k = 0: of
2 h coefficients 2 (h - 1) are free. Source: docs/derivations-identification.md, "Excitation".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Array, Vector, freeze
from holoctl.base.linalg import orthonormal_columns
from holoctl.design.paths.path_system import PathReference

__all__ = ["Series", "free_coefficients", "terms"]


@dataclass(frozen=True, eq=False)
class Series:
    """A periodic motion of k coordinates.

    Attributes
    ----------
    first : (k,) array
        Values at t = 0.
    coefficients : (2 h, k) array
        a_1 ... a_h, b_1 ... b_h.
    period : float
        s.
    """

    first: Vector
    coefficients: Array
    period: float

    def __post_init__(self) -> None:
        freeze(self)

    def __call__(self, t: float) -> PathReference:
        """Values, rates and accelerations at a time."""
        x, xd, xdd = (row @ self.coefficients for row in terms(self, t))
        return PathReference(self.first + x, xd, xdd)


def terms(series: Series, t: float) -> Array:
    """The factors (3, 2 h) of the coefficients in values, rates and accelerations."""
    h = len(series.coefficients) // 2
    k = np.arange(1, h + 1)
    w = 2.0 * np.pi * k / series.period
    s, c = np.sin(w * t), np.cos(w * t)
    return np.array([
        np.append(s, c - 1.0), np.append(w * c, -w * s), np.append(-w * w * s, -w * w * c),
    ])  # fmt: skip


def free_coefficients(harmonics: int) -> Array:
    """Z (2 h, 2 h - 2): coefficients Z y start at rest; a normal y has rates of harmonics that are
    alike."""
    k = np.arange(1.0, harmonics + 1)
    Z = np.zeros((2 * harmonics, 2 * harmonics - 2))
    for i, rest in enumerate((np.ones(harmonics), k)):  # of k a_k and k b_k
        rows = slice(i * harmonics, (i + 1) * harmonics)
        columns = slice(i * (harmonics - 1), (i + 1) * (harmonics - 1))
        basis = orthonormal_columns(np.column_stack([rest, np.eye(harmonics)[:, 1:]]))[:, 1:]
        Z[rows, columns] = basis / k[:, None]
    return Z
