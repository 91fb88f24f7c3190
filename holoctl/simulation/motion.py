"""A motion of a plant, step by accepted step.

A step is accepted where its error allows, where the state at its end is on all rows, putting it
back moves it by next to nothing, and the rows did not get singular on the way. Then the rows are
looked at (watch.py): they are decided anew where those kept get dependent, and the next step ends
well before a singular configuration, until the motion is close to it and a step goes over it
(passage.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import (
    JUMPS,
    LOST,
    MISSED,
    MOST_STEPS,
    NEAR_SINGULAR,
    OFF,
    PASSED,
    PASSES,
    PREDICTED_BY,
    PUT_BACK,
    STIFF_STEPS,
)
from holoctl.closing.correction import put_back
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.tick.all_rows import ScaledRows, scaled_rows_at
from holoctl.simulation.explicit_steps import (
    Acceleration,
    Coefficients,
    Slope,
    Trial,
    in_tangent_space,
    tried,
)
from holoctl.simulation.passage import Node, Passage, over, predicted
from holoctl.simulation.watch import (
    Look,
    better_rows,
    first_look,
    looked,
    usual_independence,
)

__all__ = ["Motion", "Piece", "advanced", "begun", "cut", "new_efforts"]

Array = NDArray[np.float64]

Dynamics = Callable[[Vector, Vector, Vector, float], Vector]
"""acceleration(q, v, tau, t)"""

Efforts = Callable[[float, Vector, Vector], Vector]
"""tau(t, q, v) on the coordinates."""


@dataclass(frozen=True, eq=False)
class Piece:
    """What one step covered: at(t) -> (q, v) for start <= t <= stop."""

    start: float
    stop: float
    at: Callable[[float], tuple[Vector, Vector]]


@dataclass
class Tally:
    """What a run took, and what happened on the way."""

    steps: int = 0
    evaluations: int = 0
    repartitions: list[float] = field(default_factory=list)
    crossings: list[float] = field(default_factory=list)


@dataclass
class Motion:
    """The state of a plant on its way, and what its next step needs."""

    plant: Mechanism
    part: Partition
    dynamics: Callable[[Partition], Dynamics]
    method: Coefficients
    rtol: float
    atol: float
    cross: bool
    tally: Tally
    t: float
    q: Vector
    v: Vector
    slope: Slope
    usual: float
    look: Look
    ratio: float
    h: float
    tau: Efforts
    acceleration: Dynamics
    first: Vector | None = None
    nodes: deque[Node] = field(default_factory=lambda: deque(maxlen=PREDICTED_BY))
    guess: Callable[[float], tuple[Vector, Vector]] | None = None
    stiff: int = 0
    spent: int = 0


def begun(
    plant: Mechanism, part: Partition, dynamics: Callable[[Partition], Dynamics],
    method: Coefficients, tolerances: tuple[float, float], cross: bool, tally: Tally,
    state: tuple[float, Vector, Vector], tau: Efforts, h: float,
) -> Motion:  # fmt: skip
    """A motion from a state on the constraints."""
    t, q, v = state
    look = first_look(plant, part, q, v, None, t)
    ratio = look.of_kept.value / max(look.of_all.value, 1e-300)
    usual = usual_independence(plant, part, q, t)
    motion = Motion(
        plant, part, dynamics, method, *tolerances, cross, tally, t, q, v, _no_slope, usual, look,
        ratio, h, tau, dynamics(part),
    )  # fmt: skip
    new_efforts(motion, tau)
    return motion


def _no_slope(t: float, q0: Vector, x: Vector) -> Vector:
    raise NotImplementedError


def new_efforts(motion: Motion, tau: Efforts) -> None:
    """Other efforts from here on: accelerations so far say nothing of those to come."""
    motion.tau, motion.first = tau, None
    motion.nodes.clear()
    tally, acceleration = motion.tally, motion.acceleration

    def a(t: float, q: Vector, v: Vector) -> Vector:
        tally.evaluations += 1
        return acceleration(q, v, tau(t, q, v), t)

    motion.slope = in_tangent_space(motion.plant, a)


# ------------------------------------------------------------------------------------- a step


def advanced(motion: Motion, stop: float) -> Piece:
    """One accepted step, at the most to `stop`; the motion is then at its end."""
    if near := _near(motion, stop):
        passage = _over(motion, stop, near)
        if passage is not None:
            return passage
    return _stepped(motion, stop, near)


def _near(motion: Motion, stop: float) -> float:
    """How far from a singular configuration in time, s: ahead, or behind with a minus; 0 where
    none is near."""
    s = motion.look.of_all
    if s.rate == 0.0 or s.value > NEAR_SINGULAR * motion.usual:
        return 0.0
    if np.isfinite(s.zero):
        return s.zero
    return -s.value / s.rate if s.rate > 0.0 else 0.0


def _stepped(motion: Motion, stop: float, near: float) -> Piece:
    plant, t, q, v, nv = motion.plant, motion.t, motion.q, motion.v, motion.plant.nv
    if motion.look.of_all.value < LOST * motion.usual:
        raise _lost(motion)
    speed = largest(v / plant.column_scale)
    h = motion.h
    if near:
        h = min(h, 0.5 * abs(near))
    elif np.isfinite(motion.look.of_all.zero):
        h = min(h, 0.5 * motion.look.of_all.zero)
    if plant.nq != nv:
        h = min(h, 1.0 / max(float(np.abs(v).max()), 1e-300))
    shortest = 1e-14 * max(1.0, abs(t))
    failure: Exception | None = None
    while True:
        last = t + h * (1.0 + 1e-9) >= stop
        h = stop - t if last else h
        if not h > shortest and not last or motion.tally.evaluations - motion.spent > MOST_STEPS:
            raise failure if failure is not None else _too_fast(motion)
        try:
            if motion.first is None:
                motion.first = motion.slope(t, q, np.concatenate([np.zeros(nv), v]))
            trial = tried(motion.slope, motion.method, t, q, v, motion.first, h, _scale(motion))
        except SingularityError as error:
            failure, h = error, 0.25 * h
            continue
        motion.tally.steps += 1
        if not trial.error <= 1.0:
            factor = 0.9 * trial.error ** (-1.0 / motion.method.order) if trial.error > 0 else 0.2
            h *= max(0.2, factor) if np.isfinite(trial.error) else 0.2
            continue
        found = _judged(motion, trial, t + h if not last else stop, speed)
        if isinstance(found, Exception):
            failure, h = found, 0.5 * h
            continue
        break
    q1, v1, rows, put = found
    end = stop if last else t + h
    growth = 0.9 * max(trial.error, 1e-10) ** (-1.0 / motion.method.order)
    if not last or growth < 1.0 or h >= motion.h:
        motion.h = h * min(10.0, growth)
    _count_stiffness(motion, trial)
    first = trial.K[-1].copy()
    motion.first = None if put else first
    if motion.first is not None:
        first[:nv] = v1
        motion.first = first
    _arrive(motion, end, q1, v1, rows, first[nv:], h)
    return _piece(motion, trial, end)


def _scale(motion: Motion) -> Callable[[Vector, Vector], Vector]:
    nv, rtol, atol = motion.plant.nv, motion.rtol, motion.atol
    positions = (atol + rtol) * motion.plant.column_scale

    def scale(x0: Vector, x: Vector) -> Vector:
        sizes = np.maximum(np.abs(x0), np.abs(x))
        np.multiply(sizes, rtol, sizes)
        np.add(sizes, atol, sizes)
        sizes[:nv] = positions
        return sizes

    return scale


def _judged(
    motion: Motion, trial: Trial, end: float, speed: float
) -> tuple[Vector, Vector, ScaledRows, bool] | Exception:
    """The state at the end of a step, put back on the constraints; or why not."""
    plant, part, nv = motion.plant, motion.part, motion.plant.nv
    model = plant.model
    d, v = trial.x[:nv], trial.x[nv:]
    q = trial.q0 + d if plant.nq == nv else pin.normalize(model, pin.integrate(model, trial.q0, d))
    rows = scaled_rows_at(plant, q, v, end)
    if motion.look.turned_over(rows.jacobian):
        return _lost(motion)
    off, slip = largest(rows.error), largest(rows.rate)
    allowed = max(OFF, part.tolerance)
    jump = JUMPS[0] * motion.rtol + JUMPS[1]
    if not (off <= allowed and slip <= (jump + part.tolerance) * (1.0 + speed)):
        return _left(motion, rows)
    if off <= PUT_BACK[0] and slip <= PUT_BACK[1] * (1.0 + speed):
        return q, v, rows, False
    try:
        back, v_back = put_back(plant, part.rows, q, v, end)
    except (SingularityError, InconsistentError) as error:
        return error
    if not largest((v_back - v) / plant.column_scale) <= jump * (1.0 + speed):
        return InconsistentError(
            f"{plant.name}: putting the state back on the constraints changes its velocity by "
            f"{largest((v_back - v) / plant.column_scale):.1e}",
            residual=largest((v_back - v) / plant.column_scale),
        )
    rows = scaled_rows_at(plant, back, v_back, end)
    if not largest(rows.error) <= allowed:
        return _left(motion, rows)
    return back, v_back, rows, True


def _arrive(
    motion: Motion, t: float, q: Vector, v: Vector, rows: ScaledRows, a: Vector, h: float
) -> None:
    """Take an accepted state; look at its rows, and decide them anew if need be."""
    plant = motion.plant
    motion.t, motion.q, motion.v = t, q, v
    motion.nodes.append(Node(t, v, a))
    look = looked(plant, motion.part, motion.look, rows.jacobian, q, v, a, t, h)
    part = better_rows(plant, motion.part, look, motion.ratio, h)
    if part is not motion.part:
        motion.part, motion.acceleration = part, motion.dynamics(part)
        motion.tally.repartitions.append(t)
        nodes = motion.nodes.copy()
        new_efforts(motion, motion.tau)
        motion.nodes = nodes
        look = first_look(plant, part, q, v, a, t)
        motion.ratio = look.of_kept.value / max(look.of_all.value, 1e-300)
    motion.look = look


def _piece(motion: Motion, trial: Trial, end: float) -> Piece:
    plant, slope, method = motion.plant, motion.slope, motion.method
    within: list[Callable[[float], Vector]] = []

    def at(t: float) -> tuple[Vector, Vector]:
        if t >= end:
            return motion.q, motion.v
        if not within:
            within.append(method.within(trial, slope))
        x = within[0]((t - trial.t) / trial.h)
        q = pin.normalize(plant.model, pin.integrate(plant.model, trial.q0, x[: plant.nv]))
        return q, x[plant.nv :]

    return Piece(trial.t, end, at)


def _count_stiffness(motion: Motion, trial: Trial) -> None:
    """Hairer's measure: how fast slopes change between the last two stages, which are at one
    time."""
    change = trial.x - trial.last_stage
    size = float(change.dot(change))
    if size == 0.0:
        return
    slope = trial.K[-1] - trial.K[-2]
    rate = trial.h * float(np.sqrt(slope.dot(slope) / size))
    motion.stiff = motion.stiff + 1 if rate > motion.method.stiff else max(0, motion.stiff - 2)


# ------------------------------------------------------------------ over a singular configuration


def _over(motion: Motion, stop: float, near: float) -> Piece | None:
    """A step over what is ahead, or away from what is just behind; None where a usual one serves."""
    plant, part, look = motion.plant, motion.part, motion.look
    lost = look.of_all.value < LOST * motion.usual
    if near < 0.0 and not lost:
        return None
    width = NEAR_SINGULAR * motion.usual / max(abs(look.of_all.rate), 1e-300)
    lengths = [2.0 * near] if near > 0.0 and not lost else [width, 0.3 * width, 0.1 * width]
    guess = motion.guess or predicted(list(motion.nodes) or [_here(motion)])
    for h in lengths:
        found = over(
            plant, part, motion.slope, motion.q, motion.v, motion.t, motion.t + h, guess, look,
            near,
        )  # fmt: skip
        if found is not None and _passes(motion, found, near):
            return _passed(motion, found, stop)
    return None


def _here(motion: Motion) -> Node:
    if motion.look.of_all.value < LOST * motion.usual:
        return Node(motion.t, motion.v, np.zeros(motion.plant.nv))
    if motion.first is None:
        x = np.concatenate([np.zeros(motion.plant.nv), motion.v])
        motion.first = motion.slope(motion.t, motion.q, x)
    return Node(motion.t, motion.v, motion.first[motion.plant.nv :])


def _passes(motion: Motion, found: Passage, near: float) -> bool:
    if near > 0.0 and not np.isfinite(found.instant):
        return False
    return found.open <= PASSED and found.error <= PASSES * motion.rtol


def _passed(motion: Motion, found: Passage, stop: float) -> Piece:
    plant, t = motion.plant, motion.t
    if np.isfinite(found.instant) and not motion.cross:
        raise SingularityError(
            f"{plant.name}: the motion runs into a singular configuration at t = "
            f"{found.instant:.9g} s, where the constraints lose rank and paths branch; "
            'at_singular="cross" follows the smooth one',
        )
    end = min(stop, found.stop)
    q, v = found.at(end)
    if end == found.stop:
        q, v = put_back(plant, motion.part.rows, pin.normalize(plant.model, q), v, end)
    if np.isfinite(found.instant) and found.instant <= end:
        motion.tally.crossings.append(found.instant)
    motion.tally.steps += 1
    rows = scaled_rows_at(plant, q, v, end)
    motion.first, a = None, found.acceleration(end)
    motion.nodes.clear()
    motion.look = first_look(plant, motion.part, q, v, a, end)
    motion.t, motion.q, motion.v = end, q, v
    motion.nodes.append(Node(end, v, a))
    motion.h = max(motion.h, end - t)
    part = better_rows(plant, motion.part, motion.look, motion.ratio, 0.0)
    _ = rows, part

    def at(time: float) -> tuple[Vector, Vector]:
        return (q, v) if time >= end else found.at(time)

    return Piece(t, end, at)


# ------------------------------------------------------------------------------------ errors


def _lost(motion: Motion) -> SingularityError:
    s = motion.look.of_all.value
    return SingularityError(
        f"{motion.plant.name}: the motion is at a singular configuration, or passes one by so "
        f"little that it cannot be told (the least singular value that counts is {s:.1e}, usual "
        f"are {motion.usual:.1e})",
        condition=motion.usual / s if s > 0.0 else float("inf"),
    )


def _left(motion: Motion, rows: ScaledRows) -> InconsistentError:
    plant, part = motion.plant, motion.part
    worst = int(np.argmax(np.abs(rows.error)))
    off = float(np.abs(rows.error).max(initial=0.0))
    if worst in part.left_out and part.tolerance > 0.0:
        return InconsistentError(
            f"{plant.name}: {plant.row_names[worst]} was left out as it repeats other rows nearly, "
            f"but it is open by {off:.1e} now, more than the tolerance of the geometry, "
            f"{part.tolerance:g}: it holds the mechanism after all",
            residual=off,
        )
    return InconsistentError(
        f"{plant.name}: the motion leaves its constraints: {plant.row_names[worst]} is open by "
        f"{off:.1e} (scaled), and rows slide by {largest(rows.rate):.1e}",
        residual=off,
    )


def _too_fast(motion: Motion) -> InconsistentError:
    """The error of a motion that asks for too many steps, with what may be the cause."""
    plant = motion.plant
    cause = "are the gains too high for the rate, or is the loop unstable?"
    if not motion.tau(motion.t, motion.q, motion.v).any():
        cause = (
            "no motor acts on it: is it close to a singular configuration, has a body next to no "
            "inertia, or is a tick (1 / rate) too long?"
        )
    if plant.forces:
        cause += (
            f" Or are forces stiff ({listing(plant.force_names)}), such as friction with a small "
            "transition in joints with little inertia?"
        )
    return InconsistentError(
        f"{plant.name}: the motion is too fast to integrate ({MOST_STEPS} evaluations within one "
        f"tick); {cause}"
    )


def cut(motion: Motion, piece: Piece, t: float) -> None:
    """Go back to an instant within the piece that was covered last."""
    raise NotImplementedError
