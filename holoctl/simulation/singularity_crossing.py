"""When a step over a singular configuration is tried, and when it is taken.

collocation.py makes it; here is decided how long it is, and whether rows, error and end of the run
let it pass.
"""

from __future__ import annotations

import numpy as np

from holoctl.base.tolerances import CLOSEST
from holoctl.closing.manifold_projection import projected_onto_manifold
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.simulation.collocation import AcceptedState, Crossing, StepStart, crossing, predicted
from holoctl.simulation.motion import (
    NEAR_SINGULAR,
    PlantMotion,
    StepEnd,
    StepSolution,
    arrive,
    slope_here,
    state_at,
)
from holoctl.simulation.rank_monitor import monitor_at

__all__ = ["step_over", "time_to_singular"]

LOST = 1e-4
"""Below this fraction of its usual value, the smallest singular value of the rows is too small to
determine the motion: the run crosses the singularity or ends."""


PASSED, MISSED = 1e-10, 1e-8  # scaled
"""A motion passes a singular configuration where no row opens by more than the first; where one
opens by more than the second it misses it. In between it cannot be told."""

PASSES = (10.0, 1e-10)  # -; scaled
"""The step over it may be off by so many times rtol, or by the second number."""

FAR_TICKS = 3.0
"""Under a controller a singular configuration is stepped over where it is nearer than so many
ticks."""

NEXT_TO, LENGTHS = 0.2, (0.5, 0.2, 0.1)  # shares
"""Where the motion is next to it, by this share of the time in which s gets usual, the step over it
is longer: by these shares, one after the other."""

ALIKE = 2.0
"""Rows that open along a step by the same, within this factor, when looked at from nearer, tell
that the motion misses it."""

SOON = 1e-3
"""A singular configuration beyond the end of a run is stepped over only where s is below this share
of what is usual."""

STOPS_SHORT = 1e-6
"""A motion that is not to go over a singular configuration ends before it by this share of the step
over it."""


def time_to_singular(motion: PlantMotion) -> float:
    """How far from a singular configuration in time, s: ahead, or behind with a minus; 0 where
    none is near."""
    s = motion.monitor.of_all
    if s.rate == 0.0 or s.value > NEAR_SINGULAR * motion.usual:
        return 0.0
    return s.zero if s.rate < 0.0 and np.isfinite(s.zero) else -s.value / abs(s.rate)


def step_over(motion: PlantMotion, stop: float, near: float) -> StepSolution | None:
    """A step over what is ahead, or away from what is just behind; None: a usual one serves."""
    plant, settings, s, usual = motion.plant, motion.settings, motion.monitor.of_all, motion.usual
    at_it = s.value < LOST * usual
    too_far = settings.ticks and near > FAR_TICKS * settings.tick
    if not at_it and (near < 0.0 or too_far):
        return None
    beyond = motion.t + near > settings.end  # the run ends before: nothing is asked there
    if beyond and s.value > SOON * usual:
        return None
    width = NEAR_SINGULAR * usual / max(abs(s.rate), 1e-300)
    lengths = [2.0 * near]
    if abs(near) < NEXT_TO * width:  # as of a tick that starts there: nodes are to be well off it
        lengths = [length * width for length in LENGTHS]
    start = StepStart(plant, motion.part, motion.slope, motion.t, motion.q, motion.v)
    guess = motion.guess or predicted(motion.nodes or [_here(motion, at_it)])
    for h in lengths:
        found = crossing(start, motion.t + h, guess, motion.monitor, near)
        if found is None:
            continue
        if found.open > MISSED:
            # where rows open as much when looked at from nearer, it does not pass
            motion.missed = motion.opened < ALIKE * found.open < ALIKE**2 * motion.opened
            motion.opened = found.open
            return None
        accurate = found.error <= max(PASSES[0] * settings.rtol, PASSES[1])
        told = near < 0.0 or np.isfinite(found.instant)
        if found.open <= PASSED and accurate and told:
            return _passed(motion, found, stop)
    return None


def _here(motion: PlantMotion, at_it: bool) -> AcceptedState:
    nv = motion.plant.nv
    a = np.zeros(nv) if at_it else slope_here(motion)[nv:]
    return AcceptedState(motion.t, motion.v, a)


def _passed(motion: PlantMotion, found: Crossing, stop: float) -> StepSolution:
    plant, part, start, crosses = motion.plant, motion.part, motion.t, motion.settings.cross
    end = min(stop, found.stop)
    ahead = np.isfinite(found.instant) and found.instant <= end
    if ahead and not crosses:  # up to there the motion is as good as any
        motion.ahead = found.instant
        end = found.instant - STOPS_SHORT * (found.instant - start)
    q, v = state_at(plant.model, motion.q, found.x(end))
    if end == found.stop:
        q, v = projected_onto_manifold(plant, part.rows, q, v, end, CLOSEST)
    if ahead and crosses:
        motion.tally.crossings.append(found.instant)
    motion.tally.steps += 1
    _, a = found.rates(end)
    motion.monitor = monitor_at(plant, part, q, v, a, end)
    motion.nodes, motion.first, motion.solver, motion.opened = [], None, None, 0.0
    landed = StepEnd(q, v, scaled_rows_at(plant, q, v, end), True)
    piece = arrive(motion, end, landed, a, end - start, motion.q, found.x)
    motion.guess = found.rates if end < found.stop else None
    motion.h = max(motion.h, end - start)
    return piece
