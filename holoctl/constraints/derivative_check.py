"""Comparison of derivatives given by a caller with differences.

No other check detects a wrong one: the certificate uses rows and their derivatives as they are
given, so an error in them is in the torque and in its certificate alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.errors import InputError
from holoctl.base.tolerances import DIFFERENCE_REACHES, DIFFERENCE_STATES

__all__ = ["Difference", "check_at_seeded_states", "difference", "worst"]

DIFFERENCE_BESIDE = 0.99
"""A state at which derivatives disagree is compared again at this fraction of its distance from the
reference: the first may have been next to a node of a table, but a wrong derivative is wrong at
both."""


DERIVATIVES_AGREE = 1e-4
"""Largest difference between given and numerical derivatives, relative to their size."""


@dataclass(frozen=True, eq=False)
class Difference:
    """A derivative by differences, and bounds of its error, entry by entry: of the whole error, and
    of the part that is rounding of the function."""

    value: NDArray[np.float64]
    error: NDArray[np.float64]
    rounding: NDArray[np.float64]

    def __getitem__(self, i: int) -> Difference:
        return Difference(self.value[i], self.error[i], self.rounding[i])


def check_at_seeded_states(size: int, look: Callable[[Vector, Vector, float], str | None]) -> None:
    """Raise `InputError` if ``look(step, rates, reach)`` returns a fault both at a state and next
    to it (at one of them alone it may be a kink). States are seeded steps (size,) from far to near,
    with rates (size,). Those at which `look` raises any error are left out: functions need not be
    defined everywhere.
    """
    rng, looked_at = np.random.default_rng(0), 0
    for reach in DIFFERENCE_REACHES:
        step, rates = rng.normal(size=(2, size))
        try:
            with np.errstate(all="ignore"):
                wrong = look(reach * step, rates, reach)
        except Exception:
            continue
        if wrong is not None:
            try:
                with np.errstate(all="ignore"):
                    again = look(DIFFERENCE_BESIDE * reach * step, rates, reach)
            except Exception:
                again = wrong
            if again is not None:
                raise InputError(wrong)
        looked_at += 1
        if looked_at == DIFFERENCE_STATES:
            return


def worst(given: Vector, tries: Sequence[Difference], size: Vector) -> int | None:
    """The entry of `given` that is farthest from the derivative; None if all agree.

    Parameters
    ----------
    given : (n,) array
    tries : sequence of Difference
        The same derivative by steps of `DIFFERENCE_PARTS`. An entry agrees if it agrees with one of
        them. Those after the first do not count if their steps are too small for the rounding of
        the function.
    size : (n,) array
        Size of the terms whose sum each entry is: the scale for entries that are zero up to
        rounding. It is that of the entry's own row, as rows may have any size.

    Returns
    -------
    int or None
    """
    excess = np.full(given.shape, np.inf)
    for i, d in enumerate(tries):
        own = np.maximum(np.abs(given), np.abs(d.value))
        off = (
            np.abs(given - d.value)
            - DERIVATIVES_AGREE * own
            - d.error
            - 1e-2 * DERIVATIVES_AGREE * size
        )
        if i:
            off[d.rounding > DERIVATIVES_AGREE * np.maximum(own, size)] = np.inf
        excess = np.minimum(excess, off)
    excess[np.isnan(excess)] = np.inf
    i = int(np.argmax(excess))
    return i if excess[i] > 0.0 else None


def difference(
    f: Callable[[float], NDArray[np.float64]],
    h: float,
    noise: NDArray[np.float64] | float = 0.0,
) -> Difference:
    """f'(0) by central differences of fourth order; `noise` is the error of f.

    For a smooth f, the difference of second order gives the error. A kink within the step may look
    smooth: hence several steps, see `worst`.
    """
    there, back = f(h), f(-h)
    near = (there - back) / (2.0 * h)
    best = (4.0 * near - (f(2.0 * h) - f(-2.0 * h)) / (4.0 * h)) / 3.0
    size = 1.0 + np.maximum(np.abs(there), np.abs(back))
    rounding = 10.0 * np.maximum(noise, 10.0 * float(np.finfo(float).eps) * size) / h
    return Difference(best, 4.0 * np.abs(best - near) + rounding, rounding)
