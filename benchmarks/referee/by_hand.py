"""The acceleration of planar bodies of one freedom, from closed forms in 40 digits.

    m a'' + m' r^2 / 2 + V' = Q      m = sum mass |p'|^2 + I angle'^2,  V = -sum mass p . g

' is d/da, r the rate of a, Q the effort on a; all derivatives by differences in 40 digits. Knows
nothing of holoctl, Pinocchio or SymPy's mechanics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp

DIGITS = 40
Of = Callable[[Any], Any]
"""A function of the coordinate, in mpmath's numbers."""


@dataclass(frozen=True)
class Moving:
    """A body: mass, moment of inertia about its centre, where that is, and how it is turned."""

    mass: float
    inertia: float
    x: Of
    y: Of
    angle: Of


def accelerations(
    bodies: Sequence[Moving], coordinates: Sequence[Of], a: float, rate: float,
    gravity: tuple[float, float], effort: float = 0.0,
) -> tuple[list[float], list[float], list[float]]:  # fmt: skip
    """Of coordinates that are functions of a: their values, rates and accelerations."""
    with mp.workdps(DIGITS):
        mass, slope, force = mp.mpf(0), mp.mpf(0), mp.mpf(effort)
        for b in bodies:
            for weight, place, pull in (
                (b.mass, b.x, gravity[0]), (b.mass, b.y, gravity[1]), (b.inertia, b.angle, 0.0),
            ):  # fmt: skip
                first, second = mp.diff(place, a), mp.diff(place, a, 2)
                mass += weight * first**2
                slope += 2 * weight * first * second
                force += weight * pull * first
        second_rate = (force - slope * mp.mpf(rate) ** 2 / 2) / mass
        q = [float(c(mp.mpf(a))) for c in coordinates]
        first = [mp.diff(c, a) for c in coordinates]
        v = [float(x * rate) for x in first]
        found = [
            float(x * second_rate + mp.diff(c, a, 2) * rate**2)
            for x, c in zip(first, coordinates, strict=True)
        ]
        return q, v, found
