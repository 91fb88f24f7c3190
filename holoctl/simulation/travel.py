"""A run on its way: step by step, through events, from one plant to the next."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from holoctl.base.checks import Vector, vector
from holoctl.base.errors import InconsistentError, InputError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import CLOSED, CLOSEST, EVENT_SHORT, EVENT_TIME
from holoctl.closing.manifold_projection import projected_onto_manifold
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.simulation.events import Hit, Stretch, Watched, first_event, value_of
from holoctl.simulation.given import Inputs, tell_time
from holoctl.simulation.motion import (
    Efforts,
    Piece,
    PlantMotion,
    RunTally,
    Settings,
    State,
    begun,
    state_of,
)
from holoctl.simulation.record import Command, Record, closed, keep, keep_piece
from holoctl.simulation.seen import SimulatedSensors
from holoctl.simulation.stepping import advanced
from holoctl.simulation.watch import usual_independence

__all__ = [
    "Decided",
    "Travel",
    "check_plant",
    "decided",
    "keep_last",
    "keep_last_of_error",
    "started",
    "travel_to",
]

AS_CLOSED, STARTS = 4e-16, 2e-6  # scaled
"""A start that is off by no more than the first stays as it is: next to a singular configuration,
to put it back would turn its velocity. By more than the second, relative, nothing may."""

EVENT_AGAIN = 5
"""How often at most the step to an event is taken again, to end at its instant."""

MOST_EVENTS = 1000
"""So many events within one tick, and a run counts as gone wild."""


@dataclass(frozen=True, eq=False)
class Decided:
    """What is decided once for a plant."""

    plant: Mechanism
    partition: Partition
    usual: float


@dataclass
class Travel:
    """A run on its way; u is what its motors are told."""

    motion: PlantMotion
    events: tuple[Watched, ...]
    record: Record
    given: Inputs
    held: bool
    u: Vector
    fresh: bool = True
    known: dict[int, Decided] = field(default_factory=dict)
    ended: str = ""
    seen: SimulatedSensors | None = None

    def command(self, t: float, q: Vector, v: Vector) -> Vector:
        """The motor efforts that act in a state: those of the tick, or of a continuous
        controller."""
        plant = self.motion.plant
        u = self.u if self.held else self.given.command(plant, t, q, v)
        return self.given.acting(plant, u, v)

    def value(self, i: int, t: float, q: Vector, v: Vector) -> float:
        """The function of an event."""
        try:
            with np.errstate(**self.given.theirs):
                return value_of(self.events[i].event, i, t, q, v)
        except Exception as error:
            tell_time(error, t)
            raise


# ------------------------------------------------------------------------------------- start


def decided(plant: Mechanism, q: Vector, v: Vector, t: float) -> Decided:
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
    return Decided(plant, part, usual_independence(plant, part, q, t))


def started(
    at: Decided, settings: Settings, tally: RunTally, t: float, q: Vector, v: Vector, tau: Efforts
) -> PlantMotion:
    """A motion from there."""
    plant, part = at.plant, at.partition
    _check_start(plant, q, v, t, max(CLOSED, part.tolerance))  # only where it is rounded
    rows, c = scaled_rows_at(plant, q, v, t), plant.column_scale
    speed = 1.0 + largest(v / c)
    if not (largest(rows.error) <= AS_CLOSED and largest(rows.rate) <= AS_CLOSED * speed):
        q, closed = projected_onto_manifold(plant, part.rows, q, v, t, CLOSEST)
        change = largest((closed - v) / c)
        if not change <= max(STARTS, part.tolerance) * speed:
            raise SingularityError(
                f"{plant.name}: the start is so near to a singular configuration that its velocity "
                f"cannot be told (putting it back on the constraints changes it by {change:.1e}, "
                "scaled); start farther from it"
            )
        v = closed
    return begun(plant, part, at.usual, settings, tally, (t, q, v), tau)


def _check_start(plant: Mechanism, q: Vector, v: Vector, t: float, allowed: float) -> None:
    rows = scaled_rows_at(plant, q, v, t)
    off, slip = largest(rows.error), largest(rows.rate)
    speed = 1.0 + largest(v / plant.column_scale)
    if not (off <= allowed and slip <= allowed * speed):
        raise InconsistentError(
            f"{plant.name}: the start is not on the constraints (scaled error {off:.1e}, rate "
            f"{slip:.1e}); call hc.assemble(mech, q0, v0) first",
            residual=max(off, slip),
        )


def travel_to(travel: Travel, stop: float) -> None:
    """Step by step, through all events, to an instant."""
    while travel.motion.t < stop and not travel.ended:
        if not travel.events:
            _keep(travel, advanced(travel.motion, stop))
            continue
        before = copy(travel.motion)
        try:
            piece = advanced(travel.motion, stop)
            hit = _event_within(travel, piece)
            pieces = [piece] if hit is None else _up_to(travel, before, hit)
        except BaseException:  # what was not looked at is not told
            _go_back(travel, before)
            told = travel.record.events
            while told and told[-1][0] > before.t:
                told.pop()
            raise
        for piece in pieces:
            _keep(travel, piece)
        if hit is not None:
            _react(travel, hit)


def _keep(travel: Travel, piece: Piece) -> None:
    """What is recorded of a piece, and what is read later."""
    keep_piece(travel.record, travel.motion, piece, travel.command)
    if travel.seen is not None:
        travel.seen.keep(travel.motion, piece)


def keep_last(travel: Travel) -> None:
    """The state where a run ends, unless it is there already."""
    _keep_last(travel, travel.command)


def keep_last_of_error(travel: Travel) -> None:
    """The same where it ends by an error; a controller that raises has no efforts there."""

    def command(t: float, q: Vector, v: Vector) -> Vector:
        try:
            return travel.command(t, q, v)
        except Exception:  # there is one already
            return np.full(travel.u.size, np.nan)

    _keep_last(travel, command)


def _keep_last(travel: Travel, command: Command) -> None:
    record, motion = travel.record, travel.motion
    if record.count and not motion.t > record.t[record.count - 1]:
        return
    record.t[record.count] = motion.t
    keep(record, motion, state_of(motion), command)


# ---------------------------------------------------------------------------------- events


def _event_within(travel: Travel, piece: Piece) -> Hit | None:
    """The first event of a piece that has a reaction, or ends the run; others are told."""
    motion, start, stop = travel.motion, piece.start.t, piece.stop.t

    def closed_at(t: float) -> tuple[Vector, Vector]:
        q, v = piece.at(t)
        state = closed(motion, piece.part, State(t, q, v, np.inf))
        return state.q, state.v

    while start < stop:
        over = Stretch(start, stop, piece.at, closed_at, travel.fresh)
        hit = first_event(travel.events, over, travel.value)
        if hit is None:
            travel.fresh = travel.fresh and stop - start <= EVENT_SHORT
            break
        event = travel.events[hit.i].event
        if event.terminal or event.reaction is not None:
            return hit
        _happens(travel, hit.t, hit)
        start = hit.t
    return None


def _happens(travel: Travel, t: float, hit: Hit) -> None:
    """Tell an event; from there all are asked anew."""
    motion, found, w = travel.motion, travel.record.events, travel.events[hit.i]
    found.append((t, hit.i))
    recent = found[-MOST_EVENTS:]
    if len(recent) == MOST_EVENTS and recent[-1][0] - recent[0][0] < motion.settings.tick:
        raise InconsistentError(
            f"{motion.plant.name}: {MOST_EVENTS} events within one tick; do they set each other "
            "off, or does something bounce ever faster? Let it rest by a reaction"
        )
    for other in travel.events:
        other.value = np.nan
    w.side, w.rate, w.stopped = (1.0 if hit.rate > 0.0 else -1.0), hit.rate, False
    travel.fresh = True


def _up_to(travel: Travel, before: PlantMotion, hit: Hit) -> list[Piece]:
    """The motion goes to an event from before the step that it was found in.

    The step that ends there differs from the longer one by its error, and the event moves by that.
    """
    t, latest = hit.t, travel.motion.t
    for _ in range(EVENT_AGAIN):
        _go_back(travel, copy(before))
        pieces = list[Piece]()
        while travel.motion.t < t:
            pieces.append(advanced(travel.motion, t))
        _put_back(travel.motion)
        if not pieces or not hit.smooth:
            break
        motion = travel.motion
        later = -travel.value(hit.i, motion.t, motion.q, motion.v) / hit.rate if hit.rate else 0.0
        near = abs(later) <= 0.1 * (latest - before.t) and before.t < t + later <= latest
        if abs(later) <= EVENT_TIME * max(1.0, abs(t)) or not near:
            break
        t += later
    return pieces


def _put_back(motion: PlantMotion) -> None:
    """Where an event happens the state is closed, so that what goes on from there is the same."""
    here = state_of(motion)
    state = closed(motion, motion.part, here)
    if state.q is not here.q:
        motion.q, motion.v, motion.closure = state.q, state.v, state.closure
        motion.first, motion.solver = None, None


def _go_back(travel: Travel, before: PlantMotion) -> None:
    """To before a step that went too far."""
    for told in (travel.motion.tally.crossings, travel.motion.tally.repartitions):
        while told and told[-1] > before.t:
            told.pop()
    before.solver = None
    travel.motion = before


def _react(travel: Travel, hit: Hit) -> None:
    """What an event does, where the motion is now."""
    motion, i = travel.motion, hit.i
    event = travel.events[i].event
    _happens(travel, motion.t, hit)
    if event.reaction is not None:
        with np.errstate(**travel.given.theirs):
            given = event.reaction(motion.t, motion.q.copy(), motion.v.copy())
        if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], Mechanism):
            raise InputError(
                f"the reaction of event {i} must return (mech, v): a Mechanism and its velocity; "
                f"it returned {type(given).__name__} {str(given)[:60]!r}"
            )
        plant, v = given
        check_plant(motion.plant, plant, f"the mechanism that the reaction of event {i} returns")
        v = vector(f"v of the reaction of event {i}", v, plant.nv, "velocity")
        _go_on(travel, plant, v, i)
    if event.terminal:
        travel.ended = f"event {i}"


def _go_on(travel: Travel, plant: Mechanism, v: Vector, i: int) -> None:
    """With another plant, or another velocity."""
    motion, record, known = travel.motion, travel.record, travel.known
    t, q, settings, given = motion.t, motion.q, motion.settings, travel.given
    tau = given.held(plant, travel.u) if settings.ticks else given.continuous(plant)
    try:
        if id(plant) not in known:
            known[id(plant)] = decided(plant, q, v, t)
        at = known[id(plant)]
        at = replace(at, partition=repartitioned(plant, at.partition, q, v, t))
        travel.motion = started(at, settings, motion.tally, t, q, v, tau)
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
