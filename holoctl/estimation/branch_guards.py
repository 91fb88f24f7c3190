"""Whether the mechanism may have left its branch between two readings: the guards of an estimator.

The determinant of K vanishes at a dead point. It is continued as in the last two calls; and where
the past does not tell, the state is gone back from, straight by its rates. What is in doubt is
refused. Numbers of all guards: base/tolerances.py; why: docs/derivations-motions.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.base.linalg import largest
from holoctl.base.tolerances import (
    BACK_LONGEST,
    BACK_SHORTEST,
    BACK_TRIALS,
    DEAD_POINT_TICKS,
    FAR_TICK,
    FIRST_GAP,
    FIRST_SLOWED,
    FIRST_TICK,
    FIRST_TURN,
    FIRST_WAIT,
    FIRST_WAY,
    JUMPS_BY,
    JUMPS_FROM,
    SIZE_FADES,
    TURNED_BACK,
    WAY_BACK,
)
from holoctl.estimation.branch_continuation import FollowedState, velocity_at
from holoctl.estimation.estimator_system import EstimatorSystem
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["BranchMemory", "dead_point_ahead", "dead_point_passed"]


@dataclass(slots=True)
class BranchMemory:
    """What an estimator remembers of its branch from call to call.

    Attributes
    ----------
    place : FollowedState
        The last state.
    before : FollowedState or None
        In front of the last one, where that was no jump.
    read : int
        How many readings with rates were followed without a jump since it was told where it is; 2
        at most.
    way : (m,) array
        Of the sensors in the last call.
    size : float
        Of the largest step of the sensors, scaled, which fades from call to call.
    refused : int
        How many calls were refused since the last state.
    """

    place: FollowedState
    before: FollowedState | None
    read: int
    way: Vector
    size: float
    refused: int

    def forget(self) -> None:
        """The past tells nothing of now."""
        self.before, self.read = None, 0

    def refuse(self, size: float = np.inf) -> None:
        """A call is refused, with a step of the sensors of this size, if that counts."""
        if size <= FAR_TICK:
            self.size = max(size, SIZE_FADES * self.size)
        self.refused += 1

    def follow(
        self, there: FollowedState, way: Vector, size: float, back: bool, rates: Vector | None
    ) -> None:
        """A call led to a place; `back` where the sensors took back a glitch."""
        if size > FAR_TICK:
            self.forget()
        else:
            if self.read < 2 and rates is not None and rates.any():  # at rest nothing is proved
                self.read += 1
            if not back:
                self.before = self.place
        self.size, self.way = max(min(size, FAR_TICK), SIZE_FADES * self.size), way
        self.place, self.refused = there, 0


def dead_point_ahead(
    memory: BranchMemory, there: FollowedState, way: Vector, per_unit: Vector
) -> tuple[bool, bool]:
    """Whether the determinant would vanish soon if it went on as in the last two calls; and whether
    the sensors have gone back to where they were before a long step, as after a glitch: then it is
    as if that had not been."""
    if memory.before is None:
        return False, False
    before, last, now = memory.before.determinant, memory.place.determinant, there.determinant
    ticks, back = DEAD_POINT_TICKS + memory.refused, False
    if DEAD_POINT_TICKS * abs(last - before) >= min(before, last):  # else it hardly matters
        left = largest((way + memory.way) * per_unit)
        back = left <= WAY_BACK * largest(memory.way * per_unit)
    if now + DEAD_POINT_TICKS * (now - last) > 0.0 and now + ticks * (last - before) > 0.0:
        return False, back
    return not (back and now + ticks * (now - before) > 0.0), back


def dead_point_passed(
    mech: Mechanism, K: EstimatorSystem, memory: BranchMemory, there: FollowedState, rates: Vector,
    size: float,
) -> bool:  # fmt: skip
    """Whether the mechanism may have passed a dead point since the last state, where the past does
    not tell: straight back by its rates, the determinant vanishes within the time that has gone by,
    or may have."""
    last, before, proved = memory.place.determinant, memory.before, memory.read > 1
    jumped = size > min(FAR_TICK, max(JUMPS_BY * memory.size, JUMPS_FROM))
    if proved and not (jumped and before is not None and last <= before.determinant):
        return False
    v = velocity_at(K, there, rates)
    fast = largest(v / mech.column_scale)
    if not 0.0 < fast < np.inf:
        return False
    change, most = there.determinant / last, 1.0 + 1.0 / DEAD_POINT_TICKS
    at_once = not (proved or memory.refused) and 1.0 / most < change < most
    gone_by, back = there.t - memory.place.t, FIRST_GAP
    waited = min(gone_by, FIRST_GAP) if gone_by > 0.0 or proved else FIRST_WAIT
    least = FIRST_TICK if at_once else FIRST_GAP
    if gone_by > 0.0:
        back = max(least, FIRST_SLOWED * min(gone_by, FIRST_GAP))
    elif at_once:
        back = FIRST_WAIT
    back = min(back, BACK_LONGEST / fast)
    passed = waited * fast > FIRST_WAY and not _straight(mech, K, there, rates, v, waited)
    for _ in range(0 if passed else BACK_TRIALS):
        q = pin.integrate(mech.model, there.q, -back * v)
        gone = K.factor(there.borders) / there.det if K.evaluate(q, there.t) else 0.0
        passed = not gone > TURNED_BACK
        if passed or back * fast <= BACK_SHORTEST:
            break
        back *= 0.5
    K.evaluate(there.q, there.t)
    K.factor(there.borders)
    return passed


def _straight(
    mech: Mechanism, K: EstimatorSystem, there: FollowedState, rates: Vector, v: Vector,
    waited: float,
) -> bool:  # fmt: skip
    """Whether the rates of the coordinates hardly change on the way that they have gone; K is left
    at its beginning."""
    q, change = pin.integrate(mech.model, there.q, -waited * v), np.inf
    if K.evaluate(q, there.t) and K.factor(there.borders):
        before = velocity_at(K, there._replace(gamma=K.gamma(), drift=K.drift()), rates)
        change = largest((before - v) / mech.column_scale)
    return waited * change <= FIRST_TURN
