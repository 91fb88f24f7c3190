"""How near a task is to singular: by its Jacobian in scaled rows, along an orthonormal basis.

Masses and the choice of coordinates do not matter then. Singular values sigma are relative to
`size_of`, so that rows which closures hold still, which are noise, are not taken for small ones.

    condition    max(sigma_1, size) / sigma_m
    damping      d^2 (1 - s^2 / d^2)^2 where s < d    1 / s^2 = sum 1 / (sigma_i^2 / mean + lost)

with mean the larger of the mean square of sigma and of size^2. The damping is smooth, and exactly
zero away from singular postures.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.tolerances import TASK_DAMPED, TASK_LOST, TASK_SHARE, TASK_STILL

__all__ = ["condition_of", "damping_of", "size_of"]

Array = NDArray[np.float64]


def size_of(J: Array) -> float:
    """How large singular values of a Jacobian in scaled rows and coordinates are taken to be at
    least, so that rows which nothing moves are not taken for small ones."""
    rows = np.vecdot(J, J)
    return max(TASK_STILL, TASK_SHARE * float(np.sqrt(rows.max(initial=0.0))))


def condition_of(sizes: Vector, size: float) -> float:
    """Condition number from singular values and `size_of`."""
    return max(float(sizes[0]), size) / float(sizes[-1]) if sizes[-1] > 0.0 else float("inf")


def damping_of(sizes: Vector, size: float) -> float:
    """The damping for singular values of a scaled Jacobian, relative to its mobility."""
    squares = sizes * sizes
    relative = squares / max(float(squares.mean()), size**2)
    s2 = 1.0 / float((1.0 / (relative + TASK_LOST)).sum())
    return TASK_DAMPED**2 * max(0.0, 1.0 - s2 / TASK_DAMPED**2) ** 2
