"""One accepted step of a motion: explicit, implicit, or over a singular configuration.

The step ends well before a singular configuration that is ahead, until the motion is close to it,
and a step goes over it (passage.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.base.errors import HoloctlError, InconsistentError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import (
    ALIKE,
    CLOSEST,
    COARSEST_STEPS,
    FAR_TICKS,
    LENGTHS,
    LOST,
    MISSED,
    NEAR_SINGULAR,
    NEXT_TO,
    PASSED,
    PASSES,
    PUT_IMPLICIT,
    SHORTEST_STEP,
    SOON,
    STIFF_STEPS,
    STOPS_SHORT,
)
from holoctl.closing.correction import put_back
from holoctl.rows.tick.all_rows import scaled_rows_at
from holoctl.simulation.explicit_steps import (
    DOP853,
    DORMAND_PRINCE,
    Coefficients,
    Slope,
    Trial,
    from_rest,
    tried,
)
from holoctl.simulation.motion import (
    Landed,
    Motion,
    Piece,
    arrive,
    check_effort,
    judged,
    lost,
    state_of,
    too_fast,
)
from holoctl.simulation.passage import Node, Passage, over, predicted
from holoctl.simulation.slope_derivative import slope_derivative
from holoctl.simulation.watch import first_look

__all__ = ["METHODS", "advanced"]

EXPLICIT = {"DOP853": DOP853, "RK45": DORMAND_PRINCE}
IMPLICIT = ("LSODA", "Radau", "BDF")
METHODS = ("auto", *EXPLICIT, *IMPLICIT)


def advanced(motion: Motion, stop: float) -> Piece:
    """One accepted step, at the most to `stop`; the motion is then at its end."""
    if motion.ahead is not None:
        raise SingularityError(
            f"{motion.plant.name}: the motion runs into a singular configuration at t = "
            f"{motion.ahead:.9g} s, where the constraints lose rank and paths branch; "
            'at_singular="cross" follows the smooth one'
        )
    near = _near(motion)
    if near and not motion.missed:
        piece = _over(motion, stop, near)
        if piece is not None:
            return piece
    if motion.look.of_all.value < LOST * motion.usual:
        raise lost(motion)
    longest = np.inf
    if near:
        longest = 0.5 * abs(near)
    elif motion.look.of_all.rate < 0.0:
        longest = 0.5 * motion.look.of_all.zero
    if motion.plant.nq != motion.plant.nv:  # D of a whole turn is singular
        longest = min(longest, 1.0 / max(float(np.abs(motion.v).max()), 1e-300))
    longest = min(longest, motion.settings.longest)
    motion.guess = None
    explicit = EXPLICIT.get(motion.method)
    if explicit is None and motion.look.of_all.value < 2.0 * NEAR_SINGULAR * motion.usual:
        explicit = DOP853  # implicit ones would start anew at each of the short steps
    if explicit is None:
        return _implicit(motion, stop, longest)
    return _explicit(motion, explicit, stop, longest)


def _near(motion: Motion) -> float:
    """How far from a singular configuration in time, s: ahead, or behind with a minus; 0 where
    none is near."""
    s = motion.look.of_all
    if s.rate == 0.0 or s.value > NEAR_SINGULAR * motion.usual:
        return 0.0
    return s.zero if s.rate < 0.0 and np.isfinite(s.zero) else -s.value / abs(s.rate)


# ------------------------------------------------------------------------------------ explicit


def _explicit(motion: Motion, method: Coefficients, stop: float, longest: float) -> Piece:
    plant, t, q, v, nv = motion.plant, motion.t, motion.q, motion.v, motion.plant.nv
    h, shortest = min(motion.h, longest), SHORTEST_STEP * max(1.0, abs(t))
    failure: Exception | None = None
    scale = _scale(motion)
    while True:
        last = t + h * (1.0 + 1e-9) >= stop
        h = stop - t if last else h
        if not h > shortest and not last:
            raise failure or too_fast(motion)
        check_effort(motion)
        try:
            trial = tried(motion.stages, method, t, q, v, motion.first, h, scale)
        except HoloctlError as error:
            if hasattr(error, "time"):  # of the caller's own functions
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
        if isinstance(landed, Landed):
            break
        failure, h = landed, 0.5 * h
    growth = min(10.0, 0.9 * max(trial.error, 1e-10) ** (-1.0 / method.order))
    motion.h = max(motion.h, h) if last and growth >= 1.0 else h * growth
    if growth < 2.0:  # the error, or stability, shortens the steps
        _count_stiffness(motion, method, trial)
    slope = trial.K[-1].copy()
    slope[:nv] = landed.v
    motion.first = None if landed.moved else slope
    motion.evaluated = motion.tally.evaluations
    start, part, rhs = state_of(motion), motion.part, motion.slope
    arrive(motion, end, landed, slope[nv:], h)
    return Piece(start, state_of(motion), _within(plant.model, method, trial, rhs), part)


def _slope_here(motion: Motion) -> Vector:
    if motion.first is None:
        motion.first = _slope_at(motion, motion.t, motion.q, motion.v)
    return motion.first


def _slope_at(motion: Motion, t: float, q: Vector, v: Vector) -> Vector:
    return motion.slope(t, q, from_rest(v), np.empty(2 * v.size))


def _scale(motion: Motion) -> Callable[[Vector, Vector], Vector]:
    """What errors are counted by: angles by one, rates by themselves."""
    nv, rtol, atol = motion.plant.nv, motion.settings.rtol, motion.settings.atol
    positions = (atol + rtol) * motion.plant.column_scale

    def scale(x0: Vector, x: Vector) -> Vector:
        sizes = np.maximum(np.abs(x0), np.abs(x))
        np.multiply(sizes, rtol, sizes)
        np.add(sizes, atol, sizes)
        sizes[:nv] = positions
        return sizes

    return scale


def _within(
    model: pin.Model, method: Coefficients, trial: Trial, slope: Slope
) -> Callable[[float], tuple[Vector, Vector]]:
    polynomial: list[Callable[[float], Vector]] = []

    def within(t: float) -> tuple[Vector, Vector]:
        if not polynomial:
            polynomial.append(method.within(trial, slope))
        x = polynomial[0]((t - trial.t) / trial.h)
        return pin.normalize(model, pin.integrate(model, trial.q0, x[: model.nv])), x[model.nv :]

    return within


def _count_stiffness(motion: Motion, method: Coefficients, trial: Trial) -> None:
    """How fast slopes change between the last two stages, which are at the same time."""
    change = trial.x - trial.last_stage
    size = float(change.dot(change))
    if size > 0.0:
        slope = trial.K[-1] - trial.K[-2]
        stiff = trial.h * float(np.sqrt(slope.dot(slope) / size)) > method.stiff
        motion.stiff = motion.stiff + 1 if stiff else max(0, motion.stiff - 2)
    if motion.stiff >= STIFF_STEPS and motion.settings.method == "auto":
        motion.method = "Radau" if motion.settings.ticks else "LSODA"


# ------------------------------------------------------------------------------------ implicit


def _implicit(motion: Motion, stop: float, longest: float) -> Piece:
    """A step of scipy's solvers; they start anew where the state was put back, or efforts
    changed."""
    plant, nv, start = motion.plant, motion.plant.nv, motion.t
    while True:
        check_effort(motion)
        held_back = longest > 4.0 * motion.longest
        if motion.solver is None or motion.solver.t != start or held_back:
            motion.solver, motion.q0, motion.longest = (
                _solver(motion, stop, longest),
                motion.q,
                longest,
            )
        solver, q0 = motion.solver, motion.q0
        try:
            message = solver.step()
            if solver.status == "failed":
                raise InconsistentError(f"{plant.name}: the integrator gave up: {message}")
            motion.tally.steps += 1
            landed = judged(motion, q0, solver.y, solver.t, _put_from(motion))
        except SingularityError as error:
            landed, step = error, min(longest, stop - start)
        else:
            step = solver.t - start
            if isinstance(landed, Landed) and step <= longest * (1.0 + 1e-9):
                break
        longest = longest if step > longest * (1.0 + 1e-9) else 0.5 * step
        motion.solver = None
        if not longest > SHORTEST_STEP * max(1.0, abs(start)):
            raise lost(motion) if isinstance(landed, Landed) else landed
    end, x, within = float(solver.t), solver.y, solver.dense_output()
    far = plant.nq != nv and largest(x[:nv]) > 1.0
    if landed.moved or far or solver.status != "running":
        motion.solver = None
    model, before, part = plant.model, state_of(motion), motion.part
    motion.first = _slope_at(motion, end, landed.q, landed.v)
    arrive(motion, end, landed, motion.first[nv:], end - start)

    def at(t: float) -> tuple[Vector, Vector]:
        x = within(t)
        return pin.normalize(model, pin.integrate(model, q0, x[:nv])), x[nv:]

    return Piece(before, state_of(motion), at, part)


def _solver(motion: Motion, stop: float, longest: float) -> Any:
    from scipy import integrate

    q0, slope, settings, c = motion.q, motion.slope, motion.settings, motion.plant.column_scale
    rtol, atol = settings.rtol, settings.atol
    if motion.method != "Radau":
        rtol, atol = min(rtol, COARSEST_STEPS), min(atol, COARSEST_STEPS)
    errors = np.concatenate([(atol + rtol) * c, np.full(c.size, atol)])
    x0 = np.concatenate([np.zeros(c.size), motion.v])
    return getattr(integrate, motion.method)(
        lambda t, x: slope(t, q0, x, np.empty(x.size)), motion.t, x0, stop,
        max_step=longest, rtol=rtol, atol=errors, jac=slope_derivative(motion),
    )  # fmt: skip


def _put_from(motion: Motion) -> float:
    """Implicit steps go on from where they are: each correction costs a new start."""
    return max(1.0, min(PUT_IMPLICIT[0] * motion.settings.rtol, PUT_IMPLICIT[1]))


# ------------------------------------------------------------------ over a singular configuration


def _over(motion: Motion, stop: float, near: float) -> Piece | None:
    """A step over what is ahead, or away from what is just behind; None: a usual one serves."""
    plant, look = motion.plant, motion.look
    at_it = look.of_all.value < LOST * motion.usual
    if near < 0.0 and not at_it:
        return None
    if motion.settings.ticks and not at_it and near > FAR_TICKS * motion.settings.tick:
        return None
    beyond = motion.t + near > motion.settings.end  # the run ends before: nothing is asked there
    if beyond and look.of_all.value > SOON * motion.usual:
        return None
    width = NEAR_SINGULAR * motion.usual / max(abs(look.of_all.rate), 1e-300)
    lengths = [2.0 * near]
    if abs(near) < NEXT_TO * width:  # as of a tick that starts there: nodes are to be well off it
        lengths = [length * width for length in LENGTHS]
    guess = motion.guess or predicted(motion.nodes or [_here(motion, at_it)])
    for h in lengths:
        found = over(
            plant, motion.part, motion.slope, motion.q, motion.v, motion.t, motion.t + h, guess,
            look, near,
        )  # fmt: skip
        if found is None:
            continue
        if found.open > MISSED:
            # where rows open as much when looked at from nearer, it does not pass
            motion.missed = motion.opened < ALIKE * found.open < ALIKE**2 * motion.opened
            motion.opened = found.open
            return None
        accurate = found.error <= max(PASSES[0] * motion.settings.rtol, PASSES[1])
        told = near < 0.0 or np.isfinite(found.instant)
        if found.open <= PASSED and accurate and told:
            return _passed(motion, found, stop)
    return None


def _here(motion: Motion, at_it: bool) -> Node:
    nv = motion.plant.nv
    a = np.zeros(nv) if at_it else _slope_here(motion)[nv:]
    return Node(motion.t, motion.v, a)


def _passed(motion: Motion, found: Passage, stop: float) -> Piece:
    plant, start = motion.plant, motion.t
    end = min(stop, found.stop)
    ahead = np.isfinite(found.instant) and found.instant <= end
    if ahead and not motion.settings.cross:  # up to there the motion is as good as any
        motion.ahead = found.instant
        end = found.instant - STOPS_SHORT * (found.instant - start)
    q, v = found.at(end)
    q = pin.normalize(plant.model, q)
    if end == found.stop:
        q, v = put_back(plant, motion.part.rows, q, v, end, CLOSEST)
    if ahead and motion.settings.cross:
        motion.tally.crossings.append(found.instant)
    motion.tally.steps += 1
    _, a = found.rates(end)
    motion.look = first_look(plant, motion.part, q, v, a, end)
    motion.nodes, motion.first, motion.solver, motion.opened = [], None, None, 0.0
    landed = Landed(q, v, scaled_rows_at(plant, q, v, end), True)
    before, part = state_of(motion), motion.part
    arrive(motion, end, landed, a, end - start)
    motion.guess = found.rates if end < found.stop else None
    motion.h = max(motion.h, end - start)

    def at(t: float) -> tuple[Vector, Vector]:
        q_t, v_t = found.at(t)
        return pin.normalize(plant.model, q_t), v_t

    return Piece(before, state_of(motion), at, part)
