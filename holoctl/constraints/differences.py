"""Derivatives that a caller gives, compared with differences: a wrong one shows nowhere else.

The certificate takes rows and their derivatives as they are given, so an error in them is in the
torque and in its certificate alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holoctl.checks import Vector

__all__ = ["REACHES", "STATES", "STEP", "Difference", "difference"]

REACHES = (0.5, 0.5, 0.2, 0.05, 1e-2, 1e-3, 1e-5)
"""How far from the reference callbacks are tried (rad, m), in turn, as far as they are defined."""

STATES, STEP = 3, 1e-3
"""So many states are enough; the step of a difference (rad, m), a tenth of a smaller reach."""

AGREE = 1e-4
"""Derivatives given and differenced may differ by this much of their size."""


@dataclass(frozen=True, eq=False)
class Difference:
    """A derivative by differences, and how far it may be off, entry by entry."""

    value: NDArray[np.float64]
    error: NDArray[np.float64]

    def __getitem__(self, i: int) -> Difference:
        return Difference(self.value[i], self.error[i])

    def worst(self, given: Vector) -> int | None:
        """The entry of `given` that is farthest from the derivative; None if all agree."""
        size = np.maximum(np.abs(given), np.abs(self.value))
        excess = np.abs(given - self.value) - AGREE * size - self.error
        excess -= 1e-2 * AGREE * size.max()  # entries that are zero but for rounding
        i = int(np.argmax(excess))
        return i if excess[i] > 0.0 else None


def difference(
    f: Callable[[float], NDArray[np.float64]], h: float, noise: float = 0.0
) -> Difference:
    """f'(0) by central differences of fourth order; f may be off by `noise`.

    That of second order tells how good it is, so a kink or a noisy function refuses nothing.
    """
    there, back = f(h), f(-h)
    near = (there - back) / (2.0 * h)
    best = (4.0 * near - (f(2.0 * h) - f(-2.0 * h)) / (4.0 * h)) / 3.0
    size = 1.0 + float(max(np.abs(there).max(), np.abs(back).max()))
    rounding = 10.0 * max(noise, 10.0 * float(np.finfo(float).eps) * size) / h
    return Difference(best, 4.0 * np.abs(best - near) + rounding)
