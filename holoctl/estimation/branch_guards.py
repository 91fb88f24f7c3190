"""Guards of an estimator: whether the mechanism may have left its branch between two readings.

The determinant of K vanishes at a dead point. Ahead, it is extrapolated linearly from the last two
calls. Without such a history, the state is extrapolated backwards with its measured rates, and the
reading is refused if a dead point lies on that path. Doubtful readings are refused. Limits of the
guards: base/tolerances.py; reasons: docs/derivations-estimation.md.
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
        The state before the last one; None if the sensors jumped between them.
    read : int
        The number of readings with rates that were followed without a jump since `reset`; at
        most 2.
    way : (m,) array
        The step of the sensors in the last call, rad or m.
    size : float
        The largest scaled step of the sensors, which decays from call to call.
    refused : int
        The number of calls that were refused since the last state.
    """

    place: FollowedState
    before: FollowedState | None
    read: int
    way: Vector
    size: float
    refused: int

    def forget(self) -> None:
        """Discard the history: it does not predict the next reading."""
        self.before, self.read = None, 0

    def refuse(self, size: float = np.inf) -> None:
        """Count a refused call; `size` is its scaled step of the sensors, ignored if too large."""
        if size <= FAR_TICK:
            self.size = max(size, SIZE_FADES * self.size)
        self.refused += 1

    def follow(
        self, there: FollowedState, way: Vector, size: float, back: bool, rates: Vector | None
    ) -> None:
        """Remember the state of a call; `back` if the sensors returned from a glitch."""
        if size > FAR_TICK:
            self.forget()
        else:
            if self.read < 2 and rates is not None and rates.any():  # zero rates prove nothing
                self.read += 1
            if not back:
                self.before = self.place
        self.size, self.way = max(min(size, FAR_TICK), SIZE_FADES * self.size), way
        self.place, self.refused = there, 0


def dead_point_ahead(
    memory: BranchMemory, there: FollowedState, way: Vector, per_unit: Vector
) -> tuple[bool, bool]:
    """Whether the determinant, extrapolated from the last two calls, vanishes within the next ones;
    and whether the sensors have returned to their values before a long step, as after a glitch.
    Then the extrapolation leaves that step out."""
    if memory.before is None:
        return False, False
    before, last, now = memory.before.determinant, memory.place.determinant, there.determinant
    ticks, back = DEAD_POINT_TICKS + memory.refused, False
    if DEAD_POINT_TICKS * abs(last - before) >= min(before, last):  # else no effect below
        left = largest((way + memory.way) * per_unit)
        back = left <= WAY_BACK * largest(memory.way * per_unit)
    if now + DEAD_POINT_TICKS * (now - last) > 0.0 and now + ticks * (last - before) > 0.0:
        return False, back
    return not (back and now + ticks * (now - before) > 0.0), back


def dead_point_passed(
    mech: Mechanism, K: EstimatorSystem, memory: BranchMemory, there: FollowedState, rates: Vector,
    size: float,
) -> bool:  # fmt: skip
    """Whether the mechanism may have passed a dead point since the last state.

    The state is extrapolated backwards with its measured velocity v, held constant:

        t - window ............... t - elapsed ............... t
        end of the path            last state (assumed)        this reading

    A dead point may have been passed if the determinant of K vanishes within `window` before t; or
    if the mechanism moved far within `elapsed` and v is not constant on that path, so that the
    extrapolation is no evidence. K is factored at `there` afterwards.
    """
    if _history_excludes_dead_point(memory, size):
        return False
    v = velocity_at(K, there, rates)
    speed = largest(v / mech.column_scale)
    if not 0.0 < speed < np.inf:
        return False
    elapsed, window = _backward_times(memory, there)
    curved = elapsed * speed > FIRST_WAY and not _is_straight(mech, K, there, rates, v, elapsed)
    passed = curved or _vanishes_backwards(mech, K, there, v, min(window, BACK_LONGEST / speed))
    K.evaluate(there.q, there.t)
    K.factor(there.borders)
    return passed


def _history_excludes_dead_point(memory: BranchMemory, size: float) -> bool:
    """Whether two followed readings with rates prove the branch, and the sensors have not jumped
    while the determinant was falling."""
    jumped = size > min(FAR_TICK, max(JUMPS_BY * memory.size, JUMPS_FROM))
    before = memory.before
    falling = before is not None and memory.place.determinant <= before.determinant
    return memory.read > 1 and not (jumped and falling)


def _backward_times(memory: BranchMemory, there: FollowedState) -> tuple[float, float]:
    """The time since the last state, and the time before `there` in which a dead point counts, s.

    `FIRST_WAIT` is assumed if t gives no time since the last state. The window is `FIRST_SLOWED`
    times the time since then, for the rates may have fallen meanwhile; and at least `FIRST_TICK`,
    or `FIRST_GAP` if more than one tick lies between, by the change of the determinant.
    """
    proved, since = memory.read > 1, there.t - memory.place.t
    change, most = there.determinant / memory.place.determinant, 1.0 + 1.0 / DEAD_POINT_TICKS
    one_tick = not (proved or memory.refused) and 1.0 / most < change < most
    if since > 0.0:
        elapsed = min(since, FIRST_GAP)
        return elapsed, max(FIRST_TICK if one_tick else FIRST_GAP, FIRST_SLOWED * elapsed)
    return 0.0 if proved else FIRST_WAIT, FIRST_WAIT if one_tick else FIRST_GAP


def _is_straight(
    mech: Mechanism, K: EstimatorSystem, there: FollowedState, rates: Vector, v: Vector,
    elapsed: float,
) -> bool:  # fmt: skip
    """Whether the velocity at constant sensor rates is nearly the same `elapsed` seconds before
    `there`; K is evaluated at that earlier configuration afterwards."""
    q, change = pin.integrate(mech.model, there.q, -elapsed * v), np.inf
    if K.evaluate(q, there.t) and K.factor(there.borders):
        before = velocity_at(K, there._replace(gamma=K.gamma(), drift=K.drift()), rates)
        change = largest((before - v) / mech.column_scale)
    return elapsed * change <= FIRST_TURN


def _vanishes_backwards(
    mech: Mechanism, K: EstimatorSystem, there: FollowedState, v: Vector, back: float
) -> bool:
    """Whether the determinant of K falls below `TURNED_BACK` of itself on the straight path back:
    at `back` seconds before `there`, at half of that, and so on."""
    speed = largest(v / mech.column_scale)
    for _ in range(BACK_TRIALS):
        q = pin.integrate(mech.model, there.q, -back * v)
        ratio = K.factor(there.borders) / there.det if K.evaluate(q, there.t) else 0.0
        if not ratio > TURNED_BACK:
            return True
        if back * speed <= BACK_SHORTEST:
            break
        back *= 0.5
    return False
