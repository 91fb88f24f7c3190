"""One accepted step of a motion: explicit, implicit, or over a singular configuration.

Steps end well before a singular configuration that is ahead, until the motion is close to it and
one step passes it (singularity_crossing.py). The end of a step is projected onto the manifold, and
accepted or refused, by `judged` in motion.py.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from holoctl.base.errors import HoloctlError, InputError, SingularityError, has_time
from holoctl.simulation.explicit_steps import (
    DOP853,
    DORMAND_PRINCE,
    Coefficients,
    Trial,
    tried,
)
from holoctl.simulation.implicit_steps import SHORTEST_STEP, implicit_step
from holoctl.simulation.motion import (
    NEAR_SINGULAR,
    PlantMotion,
    StepEnd,
    StepSolution,
    arrive,
    check_effort,
    judged,
    lost,
    too_fast,
)
from holoctl.simulation.singularity_crossing import LOST, step_over, time_to_singular

__all__ = ["METHODS", "advanced"]

STIFF_STEPS = 15
"""Forces count as stiff after this number of steps that were limited by stability."""


EXPLICIT = {"DOP853": DOP853, "RK45": DORMAND_PRINCE}
IMPLICIT = ("LSODA", "Radau", "BDF")
METHODS = ("auto", *EXPLICIT, *IMPLICIT)


def advanced(motion: PlantMotion, stop: float) -> StepSolution:
    """One accepted step, at most to `stop`; the motion is moved to its end."""
    try:
        return _advanced(motion, stop)
    except (
        InputError
    ) as error:  # numbers out of range; errors of the caller's functions have a time
        if has_time(error):
            raise
        raise too_fast(motion) from error


def _advanced(motion: PlantMotion, stop: float) -> StepSolution:
    if motion.ahead is not None:
        raise SingularityError(
            f"{motion.plant.name}: the motion runs into a singular configuration at t = "
            f"{motion.ahead:.9g} s, where the constraints lose rank and paths branch; "
            'hc.Integrator(at_singular="cross") follows the smooth one'
        )
    near = time_to_singular(motion)
    if near and not motion.missed:
        piece = step_over(motion, stop, near)
        if piece is not None:
            return piece
    if motion.monitor.of_all.value < LOST * motion.usual:
        raise lost(motion)
    longest = np.inf
    if near:
        longest = 0.5 * abs(near)
    elif motion.monitor.of_all.rate < 0.0:  # s may have its minimum just above zero
        s = motion.monitor.of_all
        longest = min(0.5 * s.zero, s.value / abs(s.rate))
    if motion.plant.nq != motion.plant.nv:  # D of a whole turn is singular
        longest = min(longest, 1.0 / max(float(np.abs(motion.v).max()), 1e-300))
    longest = min(longest, motion.settings.longest)
    motion.guess = None
    explicit = EXPLICIT.get(motion.method)
    if explicit is None and motion.monitor.of_all.value < 2.0 * NEAR_SINGULAR * motion.usual:
        explicit = DOP853  # an implicit solver would be restarted at each of the short steps
    if explicit is None:
        return implicit_step(motion, stop, longest)
    return _explicit(motion, explicit, stop, longest)


def _explicit(
    motion: PlantMotion, method: Coefficients, stop: float, longest: float
) -> StepSolution:
    t, q, v, nv = motion.t, motion.q, motion.v, motion.plant.nv
    h, shortest = min(motion.h, longest), SHORTEST_STEP * max(1.0, abs(t))
    failure: Exception | None = None
    while True:
        last = t + h * (1.0 + 1e-9) >= stop
        h = stop - t if last else h
        if not h > shortest and not last:
            raise failure or too_fast(motion)
        if motion.tally.evaluations != motion.spent or not motion.settings.ticks:
            check_effort(motion)  # otherwise it was checked at the tick
        try:
            trial = tried(motion.stages, method, t, q, v, motion.first, h, motion.scale)
        except HoloctlError as error:
            if has_time(error):  # raised by a function of the caller
                raise
            failure, h = error, 0.25 * h
            continue
        motion.tally.steps, motion.first = motion.tally.steps + 1, trial.K[0]
        if not trial.error <= 1.0:
            shorter = 0.9 * trial.error ** (-1.0 / method.order)
            h *= max(0.2, shorter) if np.isfinite(trial.error) else 0.2
            continue
        end = stop if last else t + h
        landed = judged(motion, q, trial.x, end)
        if isinstance(landed, StepEnd):
            break
        failure, h = landed, 0.5 * h
    growth = min(10.0, 0.9 * max(trial.error, 1e-10) ** (-1.0 / method.order))
    motion.h = max(motion.h, h) if last and growth >= 1.0 else h * growth
    if growth < 2.0:  # the error, or stability, limits the steps
        _count_stiffness(motion, method, trial)
    slope = trial.K[-1].copy()
    slope[:nv] = landed.v
    motion.first = None if landed.moved else slope
    motion.evaluated = motion.tally.evaluations
    polynomial = cache(partial(method.within, trial, motion.slope))  # made when first needed
    x = lambda time: polynomial()((time - t) / trial.h)  # noqa: E731
    return arrive(motion, end, landed, slope[nv:], h, q, x)


def _count_stiffness(motion: PlantMotion, method: Coefficients, trial: Trial) -> None:
    """Count a step as stiff by the change of slopes between the last two stages, which are at the
    same time."""
    change = trial.x - trial.last_stage
    size = float(change.dot(change))
    if size > 0.0:
        slope = trial.K[-1] - trial.K[-2]
        stiff = trial.h * float(np.sqrt(slope.dot(slope) / size)) > method.stiff
        motion.stiff = motion.stiff + 1 if stiff else max(0, motion.stiff - 2)
    if motion.stiff >= STIFF_STEPS and motion.settings.method == "auto":
        motion.method = "Radau" if motion.settings.ticks else "LSODA"
