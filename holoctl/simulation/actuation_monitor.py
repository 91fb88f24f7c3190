"""The monitor of type-2 (actuation) singularities in a simulation.

The smallest singular value sigma of gamma' B, and the sign that tells the sides, are computed at
the end of every accepted step. Within a step sigma changes by at most

    |change| <= |B| |change of G| / k        k: the smallest singular value of the kept rows

If it may vanish in between, it is evaluated there too, so that two changes of side within one step
are found as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from holoctl.base.checks import Array, Vector
from holoctl.dynamics.actuation_side import (
    AT_SINGULARITY,
    NO_MOTORS,
    ActuationSide,
    actuation_side,
    has_sides,
    same_side,
)
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.simulation.motion import State, StepSolution

__all__ = ["ActuationMonitor", "SidesOfStep"]

SAFETY = 2.0
"""The change of sigma within a step is bounded by this number times the estimate from its ends."""

WEAK = 1e-2
"""If the smallest singular value of the kept rows is below this share of its usual value, their
determinant may change its sign itself, and a change of side must show in bases too."""

PLACES = 6
"""Number of places in a step at which sigma is evaluated if it may vanish there, ends included."""

LOCATED = 1e-9
"""Accuracy of the place of a minimum, as a share of the step."""


class SidesOfStep(NamedTuple):
    """What a step did: the changes of side in it, ascending, s, and the state of the monitor at its
    end."""

    changes: tuple[float, ...]
    t: float
    G: Array
    here: ActuationSide
    least: tuple[float, float]


@dataclass
class ActuationMonitor:
    """sigma along a motion.

    Attributes
    ----------
    plant, part
        The mechanism, and the partition whose rows tell the sides.
    t, G
        The last state, s, and its scaled Jacobian of all rows.
    here : ActuationSide
        At that state, with the sign continued along the motion.
    side : float
        The side of the last state that is not at a singularity; 0 before the first.
    least : (float, float)
        The smallest sigma so far, and its instant, s.
    """

    plant: Mechanism
    part: Partition
    t: float
    G: Array
    here: ActuationSide = NO_MOTORS
    side: float = 0.0
    least: tuple[float, float] = (float("inf"), 0.0)
    _evaluate: Callable[[Array], ActuationSide] = field(init=False)
    _sided: bool = field(init=False)
    _turned: float = 1.0

    def __post_init__(self) -> None:
        self._evaluate = actuation_side(self.plant, self.part)
        self._sided = has_sides(self.plant, self.part) and self.plant.row_scale.size > 0
        self.here = self._evaluate(self.G)
        self.side = self.here.sign
        self.least = min(self.least, (self.here.sigma, self.t))

    @property
    def watches(self) -> bool:
        """Whether there are motors that drive motions."""
        return self.part.actuation_rank > 0

    def sigma(self, state: State) -> float:
        """sigma at a state of the step that follows, or at the last state."""
        if not self.watches or state.t == self.t:
            return self.here.sigma
        return self._at(state.t, state.q, state.v).sigma

    def over(
        self, piece: StepSolution, G: Array | None, kept: float, usual: float, passed: float | None
    ) -> SidesOfStep:
        """What a step does.

        G is the scaled Jacobian at its end, None if it is not known; `kept` the smallest singular
        value of the kept rows, and `usual` its usual one; `passed` the instant at which the step
        passed a configuration of lower rank, if it did.
        """
        if G is None:
            G = _jacobian(self.plant, piece.stop.t, piece.stop.q, piece.stop.v)
        if not self.watches:
            return SidesOfStep((), piece.stop.t, G, NO_MOTORS, self.least)
        self._keep_rows(piece.part)
        found = self._evaluate(G)
        least = min(self.least, (found.sigma, piece.stop.t))
        if not self._sided:
            return SidesOfStep((), piece.stop.t, G, found, least)
        if passed is not None:
            same = same_side(self.plant, self.part, self.G, G)
            self._turned = found.sign * self.side * (1.0 if same else -1.0) or self._turned
            here = ActuationSide(found.sigma, self._turned * found.sign)
            return SidesOfStep(() if same else (passed,), piece.stop.t, G, here, least)
        weak, differ = kept < WEAK * usual, self._turned * found.sign * self.side < 0.0
        if differ and weak and same_side(self.plant, self.part, self.G, G):
            self._turned = -self._turned  # the determinant of the rows has changed its sign
            differ = False
        here = ActuationSide(found.sigma, self._turned * found.sign)
        if weak and not differ:
            return SidesOfStep((), piece.stop.t, G, here, least)
        changes, within = self._within(piece, G, here, kept)
        return SidesOfStep(changes, piece.stop.t, G, here, min(least, within))

    def move(self, step: SidesOfStep) -> None:
        """Continue from the end of a step."""
        self.t, self.G, self.here, self.least = step.t, step.G, step.here, step.least
        self.side = step.here.sign or self.side

    # ------------------------------------------------------------------------ within a step

    def _at(self, t: float, q: Vector, v: Vector) -> ActuationSide:
        return self._evaluate(_jacobian(self.plant, t, q, v))

    def _keep_rows(self, part: Partition) -> None:
        """Tell the sides by the rows of another partition, with the same sign here."""
        if part is self.part:
            return
        self.part, self._evaluate = part, actuation_side(self.plant, part)
        self._turned = self.side * self._evaluate(self.G).sign or self._turned

    def _within(
        self, piece: StepSolution, G: Array, here: ActuationSide, kept: float
    ) -> tuple[tuple[float, ...], tuple[float, float]]:
        """The changes of side within a step, and its smallest sigma with its instant."""
        start, stop = piece.start.t, piece.stop.t
        change, differ = self._may_change(piece, G, kept), self.side * here.sign < 0.0
        known = self.side or here.sign
        if not known or (not differ and min(self.here.sigma, here.sigma) > change):
            return (), (float("inf"), start)

        def signed(t: float) -> float:
            found = self._at(t, *piece.at(t))
            return self._turned * found.sign * found.sigma

        ends = self.here.sign * self.here.sigma, here.sign * here.sigma
        if not differ and change < 0.1:  # a short step: is there a minimum near zero at all?
            middle = abs(signed(0.5 * (start + stop)))
            low = _lowest(abs(ends[0]), middle, abs(ends[1]))
            if low > 0.5 * min(abs(ends[0]), middle, abs(ends[1])):
                return (), (middle, 0.5 * (start + stop))
        return self._searched(signed, start, stop, ends, change)

    def _searched(
        self, signed: Callable[[float], float], start: float, stop: float,
        ends: tuple[float, float], change: float,
    ) -> tuple[tuple[float, ...], tuple[float, float]]:  # fmt: skip
        t = np.linspace(start, stop, PLACES).tolist()
        f = [ends[0], *map(signed, t[1:-1]), ends[1]]
        side = self.side or float(np.sign(ends[1]))
        for i in range(PLACES):  # at a singularity: the side from which the motion comes
            f[i] = f[i] or side * AT_SINGULARITY
            side = float(np.sign(f[i]))
        changes, least = list[float](), min((abs(x), at) for x, at in zip(f, t, strict=True))
        for i in range(PLACES - 1):
            low, high = t[i], t[i + 1]
            if f[i] * f[i + 1] < 0.0:
                changes.append(_zero(signed, low, high, f[i]))
                least = min(least, (0.0, changes[-1]))
                continue
            lowest = min(_around(f, i)) >= min(abs(f[i]), abs(f[i + 1]))
            if not lowest or min(abs(f[i]), abs(f[i + 1])) > change / (PLACES - 1):
                continue
            sign = np.sign(f[i] + f[i + 1])
            found: Any = minimize_scalar(
                lambda at, sign=sign: sign * signed(at), bounds=(low, high), method="bounded",
                options={"xatol": LOCATED * (stop - start)},
            )  # fmt: skip
            least = min(least, (max(0.0, float(found.fun)), float(found.x)))
            if found.fun < 0.0:
                at = float(found.x)
                changes += [_zero(signed, low, at, f[i]), _zero(signed, at, high, -sign)]
                least = min(least, (0.0, changes[-1]))
        return tuple(changes), least

    def _may_change(self, piece: StepSolution, G: Array, kept: float) -> float:
        """A bound of the change of sigma within a step."""
        if not kept > 0.0:
            return float("inf")
        c, h, change = self.plant.column_scale, piece.stop.t - piece.start.t, G - self.G
        before, after = piece.start.v / c, piece.stop.v / c
        most = max(np.vdot(change, change), h * h * max(before.dot(before), after.dot(after)))
        return SAFETY * sqrt(self.plant.nu * most) / kept


def _around(f: list[float], i: int) -> list[float]:
    """The sizes next to the interval from i to i + 1."""
    return [abs(x) for x in (*f[max(i - 1, 0) : i], *f[i + 2 : i + 3])] or [float("inf")]


def _lowest(first: float, middle: float, last: float) -> float:
    """The lowest value between the ends of the parabola through three values at equal distances."""
    slope, bend = 0.5 * (last - first), 0.5 * (first + last) - middle
    if bend <= 0.0 or abs(slope) >= 2.0 * bend:
        return min(first, middle, last)
    return middle - 0.25 * slope * slope / bend


def _zero(signed: Callable[[float], float], low: float, high: float, before: float) -> float:
    """The zero of a function with a change of sign between two instants; the first one if its sign
    there is that of a state before."""
    at_low, at_high = signed(low), signed(high)
    if at_low * at_high >= 0.0:
        return low if at_low * before <= 0.0 else high
    found: float = brentq(signed, low, high, xtol=1e-15)
    return found


def _jacobian(plant: Mechanism, t: float, q: Vector, v: Vector) -> Array:
    return scaled_rows_at(plant, q, v, t).jacobian
