"""Decision whether a motion takes a step over a singular configuration.

collocation.py computes the step; this module chooses its length, and accepts it by the errors of
the rows, the error of the step and the end of the run.
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


PASSED = 1e-10  # scaled
"""A motion passes a singular configuration if no error of a row exceeds this along the step."""

MISSED = 1e-8  # scaled
"""A motion misses the singular configuration if the error of a row exceeds this along the step;
between `PASSED` and this it is undecided."""

PASSES = (10.0, 1e-10)  # -; scaled
"""Largest error of the step: the first number times rtol, or the second number, if larger."""

FAR_TICKS = 3.0
"""Under a controller a step over a singular configuration is tried only if it is nearer than this
number of ticks."""

NEXT_TO = 0.2
"""A motion is next to a singular configuration if it is nearer than this share of the time in which
s grows to its usual value."""

LENGTHS = (0.5, 0.2, 0.1)
"""Lengths of the step that are tried then, as shares of the same time."""

ALIKE = 2.0
"""The motion misses the singular configuration if the errors of the rows of two attempts, the
second from nearer, are equal within this factor."""

SOON = 1e-3
"""If a singular configuration is after the end of a run, a step over it is tried only if s is below
this share of its usual value."""

STOPS_SHORT = 1e-6
"""A motion that may not pass a singular configuration ends before it by this share of the step over
it."""


def time_to_singular(motion: PlantMotion) -> float:
    """Time until a singular configuration, s; negative if it was passed, 0 if none is near."""
    s = motion.monitor.of_all
    if s.rate == 0.0 or s.value > NEAR_SINGULAR * motion.usual:
        return 0.0
    return s.zero if s.rate < 0.0 and np.isfinite(s.zero) else -s.value / abs(s.rate)


def step_over(motion: PlantMotion, stop: float, near: float) -> StepSolution | None:
    """A step over a singular configuration ahead, or away from one just passed; None if an ordinary
    step is to be taken."""
    plant, settings, s, usual = motion.plant, motion.settings, motion.monitor.of_all, motion.usual
    at_it = s.value < LOST * usual
    too_far = settings.ticks and near > FAR_TICKS * settings.tick
    if not at_it and (near < 0.0 or too_far):
        return None
    beyond = motion.t + near > settings.end  # the run ends before the singular configuration
    if beyond and s.value > SOON * usual:
        return None
    width = NEAR_SINGULAR * usual / max(abs(s.rate), 1e-300)
    lengths = [2.0 * near]
    if abs(near) < NEXT_TO * width:  # such as a tick that starts there: nodes need a distance to it
        lengths = [length * width for length in LENGTHS]
    start = StepStart(plant, motion.part, motion.slope, motion.t, motion.q, motion.v)
    guess = motion.guess or predicted(motion.nodes or [_here(motion, at_it)])
    for h in lengths:
        found = crossing(start, motion.t + h, guess, motion.monitor, near)
        if found is None:
            continue
        if found.open > MISSED:
            # equal errors from nearer: the motion does not pass the singular configuration
            motion.missed = motion.opened < ALIKE * found.open < ALIKE**2 * motion.opened
            motion.opened = found.open
            return None
        accurate = found.error <= max(PASSES[0] * settings.rtol, PASSES[1])
        located = near < 0.0 or np.isfinite(found.instant)
        if found.open <= PASSED and accurate and located:
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
    if ahead and not crosses:  # the motion is accurate up to there
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
