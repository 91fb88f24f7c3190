"""A run on its way: step by step, through events, from one plant to the next."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, vector
from holoctl.base.errors import InconsistentError, InputError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import CLOSED, CLOSEST
from holoctl.closing.manifold_projection import projected_onto_manifold
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.simulation.events import (
    EVENT_SHORT,
    EVENT_TIME,
    EventCrossing,
    PendingEvent,
    StepInterval,
    first_event,
    value_of,
)
from holoctl.simulation.inputs import Inputs
from holoctl.simulation.motion import (
    Efforts,
    PlantMotion,
    RunTally,
    Settings,
    State,
    StepSolution,
)
from holoctl.simulation.rank_monitor import usual_independence
from holoctl.simulation.record import Record, closed, keep, keep_piece
from holoctl.simulation.sensor_readings import SimulatedSensors
from holoctl.simulation.stepping import advanced

__all__ = [
    "PlantDecisions",
    "RunInProgress",
    "check_plant",
    "decided",
    "integrate_to",
    "keep_last",
    "started",
]

AS_CLOSED, STARTS = 4e-16, 2e-6  # scaled
"""A start that is off by no more than the first stays as it is: next to a singular configuration,
to put it back would turn its velocity. By more than the second, relative, nothing may."""

EVENT_AGAIN = 5
"""How often at most the step to an event is taken again, to end at its instant."""

MOST_EVENTS = 1000
"""So many events within one tick, and a run counts as gone wild."""


@dataclass(frozen=True, eq=False)
class PlantDecisions:
    """What is decided once for a plant: its partition, and what is usual for the independence of
    its rows."""

    plant: Mechanism
    partition: Partition
    usual: float


@dataclass
class RunInProgress:
    """A run on its way; u is what its motors are told, `fresh` where nothing was asked of the
    events since it started or one happened, `ended` why it ended."""

    motion: PlantMotion
    events: tuple[PendingEvent, ...]
    record: Record
    inputs: Inputs
    held: bool
    u: Vector
    known: dict[int, PlantDecisions]
    sensors: SimulatedSensors | None
    fresh: bool = True
    ended: str = ""

    def command(self, t: float, q: Vector, v: Vector) -> Vector:
        """The motor efforts that act in a state: those of the tick, or of a continuous
        controller."""
        plant = self.motion.plant
        u = self.u if self.held else self.inputs.command(plant, t, q, v)
        return self.inputs.acting(plant, u, v)

    def value(self, i: int, t: float, q: Vector, v: Vector) -> float:
        """The function of an event."""
        event = self.events[i].event
        return float(self.inputs.called(t, lambda: value_of(event, i, t, q, v)))


# ------------------------------------------------------------------------------------- start


def decided(plant: Mechanism, q: Vector, v: Vector, t: float) -> PlantDecisions:
    """At a start: rank, rows and coordinates, and what is usual for their independence.

    Raises
    ------
    InconsistentError
        If it is not on the constraints.
    SingularityError
        If it is a singular configuration.
    """
    _check_start(plant, q, v, t, max(CLOSED, plant.tolerance))
    part = partition(plant, q, t=t)
    return PlantDecisions(plant, part, usual_independence(plant, part, q, t))


def started(
    at: PlantDecisions,
    settings: Settings,
    tally: RunTally,
    t: float,
    q: Vector,
    v: Vector,
    tau: Efforts,
) -> PlantMotion:
    """A motion from there."""
    plant, part, c = at.plant, at.partition, at.plant.column_scale
    allowed = max(CLOSED, part.tolerance)  # only where it is rounded
    off, slip, speed = _check_start(plant, q, v, t, allowed)
    if not (off <= AS_CLOSED and slip <= AS_CLOSED * speed):
        q, closed = projected_onto_manifold(plant, part.rows, q, v, t, CLOSEST)
        change = largest((closed - v) / c)
        if not change <= max(STARTS, part.tolerance) * speed:
            raise SingularityError(
                f"{plant.name}: the start is so near to a singular configuration that its velocity "
                f"cannot be told (putting it back on the constraints changes it by {change:.1e}, "
                "scaled); start farther from it"
            )
        v = closed
    return PlantMotion(plant, part, at.usual, settings, tally, t, q, v, tau)


def _check_start(
    plant: Mechanism, q: Vector, v: Vector, t: float, allowed: float
) -> tuple[float, float, float]:
    """Error, rate and speed at a start, scaled; `InconsistentError` where it is off by more."""
    rows = scaled_rows_at(plant, q, v, t)
    off, slip = largest(rows.error), largest(rows.rate)
    speed = 1.0 + largest(v / plant.column_scale)
    if not (off <= allowed and slip <= allowed * speed):
        raise InconsistentError(
            f"{plant.name}: the start is not on the constraints (scaled error {off:.1e}, rate "
            f"{slip:.1e}); call hc.assemble(mech, q0, v0) first",
            residual=max(off, slip),
        )
    return off, slip, speed


def integrate_to(run: RunInProgress, stop: float) -> None:
    """Step by step, through all events, to an instant."""
    while run.motion.t < stop and not run.ended:
        if not run.events:
            _keep(run, advanced(run.motion, stop))
            continue
        before = copy(run.motion)
        try:
            piece = advanced(run.motion, stop)
            hit = _event_within(run, piece)
            pieces = [piece] if hit is None else _up_to(run, before, hit)
        except BaseException:  # what was not looked at is not told
            _go_back(run, before)
            _forget(run.record.events, (before.t, np.inf))
            raise
        for piece in pieces:
            _keep(run, piece)
        if hit is not None:
            _react(run, hit)


def _keep(run: RunInProgress, piece: StepSolution) -> None:
    """What is recorded of a piece, and what is read later."""
    keep_piece(run.record, run.motion, piece, run.command)
    if run.sensors is not None:
        run.sensors.keep(run.motion, piece)


def keep_last(run: RunInProgress, after_error: bool = False) -> None:
    """The state where a run ends, unless it is there already; a controller that raised an error has
    no efforts there."""
    record, motion = run.record, run.motion
    if record.count and not motion.t > record.t[record.count - 1]:
        return

    def command(t: float, q: Vector, v: Vector) -> Vector:
        try:
            return run.command(t, q, v)
        except Exception:
            if after_error:  # there is one already
                return np.full(run.u.size, np.nan)
            raise

    record.t[record.count] = motion.t
    keep(record, motion, motion.state, command)


# ---------------------------------------------------------------------------------- events


def _event_within(run: RunInProgress, piece: StepSolution) -> EventCrossing | None:
    """The first event of a piece that has a reaction, or ends the run; others are told."""
    motion, start, stop = run.motion, piece.start.t, piece.stop.t

    def closed_at(t: float) -> tuple[Vector, Vector]:
        state = closed(motion, piece.part, State(t, *piece.at(t), np.inf))
        return state.q, state.v

    while start < stop:
        over = StepInterval(start, stop, piece.at, closed_at, run.fresh)
        hit = first_event(run.events, over, run.value)
        if hit is None:
            run.fresh = run.fresh and stop - start <= EVENT_SHORT
            break
        event = run.events[hit.i].event
        if event.terminal or event.reaction is not None:
            return hit
        _happens(run, hit.t, hit)
        start = hit.t
    return None


def _happens(run: RunInProgress, t: float, hit: EventCrossing) -> None:
    """Tell an event; from there all are asked anew."""
    motion, found, w = run.motion, run.record.events, run.events[hit.i]
    found.append((t, hit.i))
    recent = found[-MOST_EVENTS:]
    if len(recent) == MOST_EVENTS and recent[-1][0] - recent[0][0] < motion.settings.tick:
        raise InconsistentError(
            f"{motion.plant.name}: {MOST_EVENTS} events within one tick; do they set each other "
            "off, or does something bounce ever faster? Let it rest by a reaction"
        )
    for other in run.events:
        other.value = np.nan
    w.side, w.rate, w.stopped = (1.0 if hit.rate > 0.0 else -1.0), hit.rate, False
    run.fresh = True


def _up_to(run: RunInProgress, before: PlantMotion, hit: EventCrossing) -> list[StepSolution]:
    """The motion goes to an event from before the step that it was found in.

    The step that ends there differs from the longer one by its error, and the event moves by that.
    """
    t, latest = hit.t, run.motion.t
    for _ in range(EVENT_AGAIN):
        _go_back(run, copy(before))
        pieces = list[StepSolution]()
        while run.motion.t < t:
            pieces.append(advanced(run.motion, t))
        _put_back(run.motion)
        if not pieces or not hit.smooth:
            break
        motion = run.motion
        later = -run.value(hit.i, motion.t, motion.q, motion.v) / hit.rate if hit.rate else 0.0
        near = abs(later) <= 0.1 * (latest - before.t) and before.t < t + later <= latest
        if abs(later) <= EVENT_TIME * max(1.0, abs(t)) or not near:
            break
        t += later
    return pieces


def _put_back(motion: PlantMotion) -> None:
    """Where an event happens the state is closed, so that what goes on from there is the same."""
    here = motion.state
    state = closed(motion, motion.part, here)
    if state.q is not here.q:
        motion.q, motion.v, motion.closure = state.q, state.v, state.closure
        motion.first, motion.solver = None, None


def _go_back(run: RunInProgress, before: PlantMotion) -> None:
    """To before a step that went too far."""
    for told in (run.motion.tally.crossings, run.motion.tally.repartitions):
        _forget(told, before.t)
    before.solver = None
    run.motion = before


def _forget(told: list[Any], since: Any) -> None:
    """Take away what was told of later than an instant."""
    while told and told[-1] > since:
        told.pop()


def _react(run: RunInProgress, hit: EventCrossing) -> None:
    """What an event does, where the motion is now."""
    motion, i = run.motion, hit.i
    event = run.events[i].event
    _happens(run, motion.t, hit)
    if event.reaction is not None:
        reaction = event.reaction
        given = run.inputs.called(
            motion.t, lambda: reaction(motion.t, motion.q.copy(), motion.v.copy())
        )
        if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], Mechanism):
            raise InputError(
                f"the reaction of event {i} must return (mech, v): a Mechanism and its velocity; "
                f"it returned {type(given).__name__} {str(given)[:60]!r}"
            )
        plant, v = given
        check_plant(motion.plant, plant, f"the mechanism that the reaction of event {i} returns")
        v = vector(f"v of the reaction of event {i}", v, plant.nv, "velocity")
        _go_on(run, plant, v, i)
    if event.terminal:
        run.ended = f"event {i}"


def _go_on(run: RunInProgress, plant: Mechanism, v: Vector, i: int) -> None:
    """With another plant, or another velocity."""
    motion, record, known, inputs = run.motion, run.record, run.known, run.inputs
    t, q, settings = motion.t, motion.q, motion.settings
    tau = inputs.held(plant, run.u) if settings.ticks else inputs.continuous(plant)
    try:
        if id(plant) not in known:
            known[id(plant)] = decided(plant, q, v, t)
        at = known[id(plant)]
        at = replace(at, partition=repartitioned(plant, at.partition, q, v, t))
        run.motion = started(at, settings, motion.tally, t, q, v, tau)
    except (InconsistentError, SingularityError) as error:
        error.add_note(
            f"after the reaction of event {i}: with what it returns the plant is to be on its "
            "constraints, with the velocity of hc.impulse, say"
        )
        raise
    if plant is not motion.plant:
        record.plants.append((record.count, plant))


def check_plant(mech: Mechanism, plant: Mechanism, what: str) -> None:
    """Raise `InputError` unless it has the same coordinates and motors as a mechanism."""
    if mech.coordinate_names != plant.coordinate_names or mech.nq != plant.nq:
        raise InputError(f"{what} must have the same coordinates, in the same order, as mech")
    if mech.actuator_names != plant.actuator_names:
        raise InputError(f"{what} must have the same motors, in the same order, as mech")
