"""Integration of a run, step by step, through events that may change the plant."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, listing, vector
from holoctl.base.errors import InconsistentError, InputError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import CLOSED, CLOSEST
from holoctl.closing.manifold_projection import projected_onto_manifold
from holoctl.control.loop import Tracking
from holoctl.design.feedback.state_feedback import Feedback
from holoctl.dynamics.actuation_side import hold_of_motors
from holoctl.dynamics.contact_forces import SLIDES, STICKS
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.simulation.actuation_monitor import ActuationMonitor
from holoctl.simulation.contact_modes import Contacting, ContactMode, plant_in_mode
from holoctl.simulation.contact_motion import ContactRun
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
    PlantDynamics,
    PlantMotion,
    RunTally,
    Settings,
    State,
    StepSolution,
)
from holoctl.simulation.rank_monitor import usual_independence
from holoctl.simulation.record import Record, closed, keep, keep_piece, state_within
from holoctl.simulation.saturation import Saturation
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

AS_CLOSED = 4e-16  # scaled
"""A start with errors of at most this is not projected: next to a singular configuration a
projection would change the direction of its velocity."""

STARTS = 2e-6  # scaled, relative
"""Largest change of the velocity by the projection of a start."""

EVENT_AGAIN = 5
"""Largest number of times that the step to an event is repeated, to end at its instant."""

MOST_EVENTS = 1000
"""Number of events within one tick at which a run is given up."""


@dataclass(frozen=True, eq=False)
class PlantDecisions:
    """The choices made once for a plant: its partition, and the `usual_independence` of its
    rows."""

    plant: Mechanism
    partition: Partition
    usual: float


@dataclass
class RunInProgress:
    """A run while it is integrated.

    u is the command to the motors; `known` are the decisions for each plant, by its id; `fresh` is
    true until a step after the start, or after an event, has been checked for events; `ended` says
    why the run ended, empty if it has not; `first` is the first command, and `controlled` becomes
    true with a controller of the library, and with another command than the first; `sides` is the
    monitor of type-2 singularities; `contacts` are unilateral contacts, None without.
    """

    motion: PlantMotion
    events: tuple[PendingEvent, ...]
    record: Record
    inputs: Inputs
    held: bool
    u: Vector
    known: dict[int, PlantDecisions]
    sensors: SimulatedSensors | None
    saturation: Saturation
    fresh: bool = True
    ended: str = ""
    first: Vector | None = None
    controlled: bool = False
    contacts: ContactRun | None = None
    sides: ActuationMonitor = field(init=False)
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        self.settings = self.motion.settings
        self.sides = _monitor_of_sides(self.motion)
        self.controlled = isinstance(self.inputs.controller, (Tracking, Feedback))

    def commanded(self, t: float, rates: Vector) -> None:
        """Note the command u that holds from t on, with the rates of the motors there."""
        if self.first is None:
            self.first = self.u.copy()
        self.controlled = self.controlled or not np.array_equal(self.u, self.first)
        self.saturation.note(t, self.u, rates)

    def command(self, t: float, q: Vector, v: Vector) -> Vector:
        """The motor efforts at a state: under the command of the tick, or of a continuous
        controller."""
        plant = self.motion.plant
        u = self.u if self.held else self.inputs.command(plant, t, q, v)
        if not self.held and self.inputs.controller is not None:
            self.u = u
            self.commanded(t, plant.B.T @ v)
        return self.inputs.acting(plant, u, v)

    @property
    def watched(self) -> tuple[PendingEvent, ...]:
        """The events of the caller, then those of contacts."""
        return self.events if self.contacts is None else self.events + self.contacts.pending

    def contact_forces(self, t: float, q: Vector, v: Vector, u: Vector) -> Array:
        """Forces on the points of contacts while the motors produce u, (n, 3)."""
        contacts, plant = self.contacts, self.motion.plant
        if contacts is None or contacts.due or not np.isfinite(u).all():
            return np.zeros((0 if contacts is None else contacts.points.friction.size, 3))
        loads, tau = self.inputs.loads(plant), plant.B @ u
        return contacts.forces(t, q, v, tau if loads is None else tau + loads(t, q, v))

    def value(self, i: int, t: float, q: Vector, v: Vector) -> float:
        """The function of an event."""
        event = self.watched[i].event
        if i >= len(self.events):
            return float(event.function(t, q, v))
        return float(self.inputs.called(t, lambda: value_of(event, i, t, q, v)))


# ------------------------------------------------------------------------------------- start


def decided(plant: Mechanism, q: Vector, v: Vector, t: float) -> PlantDecisions:
    """Rank, rows and coordinates at a start, and the usual independence of the rows.

    Raises
    ------
    InconsistentError
        If the start is not on the constraints.
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
    """A motion that starts at (t, q, v)."""
    plant, part, c = at.plant, at.partition, at.plant.column_scale
    allowed = max(CLOSED, part.tolerance)  # the tolerance is zero unless the geometry is rounded
    off, slip, speed = _check_start(plant, q, v, t, allowed)
    if not (off <= AS_CLOSED and slip <= AS_CLOSED * speed):
        q, closed = projected_onto_manifold(plant, part.rows, q, v, t, CLOSEST)
        change = largest((closed - v) / c)
        if not change <= max(STARTS, part.tolerance) * speed:
            raise SingularityError(
                f"{plant.name}: the start is so near to a singular configuration that its velocity "
                f"is not determined (projecting it onto the manifold changes it by {change:.1e}, "
                "scaled); start farther from it"
            )
        v = closed
    return PlantMotion(plant, part, at.usual, settings, tally, t, q, v, tau)


def _check_start(
    plant: Mechanism, q: Vector, v: Vector, t: float, allowed: float
) -> tuple[float, float, float]:
    """Error, rate and speed at a start, scaled; `InconsistentError` above `allowed`."""
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
    """Integrate a run step by step, through all events, to an instant."""
    while run.motion.t < stop and not run.ended:
        if run.contacts is not None:
            if run.contacts.due:
                _change_contacts(run, "start")
            run.contacts.begin_step(run.motion)
        if not run.watched:
            _keep(run, advanced(run.motion, stop))
            continue
        before = copy(run.motion)
        try:
            piece = advanced(run.motion, stop)
            hit = _event_within(run, piece)
            pieces = [piece] if hit is None else _up_to(run, before, hit)
        except BaseException:  # record nothing of a step whose events were not all found
            _restore(run, before)
            _remove_later(run.record.events, (before.t, np.inf))
            raise
        for piece in pieces:
            _keep(run, piece)
        if hit is not None and hit.i >= len(run.events):
            _contact_event(run, hit)
        elif hit is not None:
            _react(run, hit)


def _keep(run: RunInProgress, piece: StepSolution) -> None:
    """Record a piece, and keep the states of it that sensors read later."""
    motion, sides = run.motion, run.sides
    at_end, crossed = piece.stop.t == motion.t, motion.tally.crossings[-1:]
    step = sides.over(
        piece, motion.monitor.last if at_end else None, motion.monitor.of_kept.value, motion.usual,
        next((t for t in crossed if piece.start.t < t <= piece.stop.t), None),
    )  # fmt: skip
    ends = bool(step.changes) and motion.settings.hold_side and _is_controlled(run, piece)
    if ends:
        piece = _cut(run, piece, step.changes[0])
    keep_piece(run.record, motion, sides, piece, run.command)
    if run.sensors is not None:
        run.sensors.keep(motion, piece)
    if ends:
        raise _other_side(run, piece.stop)
    motion.tally.type_2 += step.changes
    sides.move(step)


def _monitor_of_sides(motion: PlantMotion) -> ActuationMonitor:
    return ActuationMonitor(motion.plant, motion.part, motion.t, motion.monitor.last)


def _is_controlled(run: RunInProgress, piece: StepSolution) -> bool:
    """Whether the motion is under control: not by efforts that were the same at every call."""
    if not run.held and run.inputs.controller is not None:
        run.command(piece.stop.t, piece.stop.q, piece.stop.v)
    return run.controlled


def _cut(run: RunInProgress, piece: StepSolution, t: float) -> StepSolution:
    """A piece up to an instant within it, at which the motion then is."""
    motion, tally = run.motion, run.motion.tally
    stop = state_within(motion, piece, t)
    motion.t, motion.q, motion.v, motion.closure = stop
    for recorded, since in (
        (tally.crossings, t), (tally.repartitions, t), (run.record.events, (t, np.inf)),
    ):  # fmt: skip
        _remove_later(recorded, since)
    return piece._replace(stop=stop)


def _other_side(run: RunInProgress, at: State) -> SingularityError:
    """The error of a run under control at a type-2 singularity."""
    plant, sides = run.motion.plant, run.sides
    run.motion.tally.type_2.append(at.t)
    sides.least = (0.0, at.t)
    lost = hold_of_motors(plant, sides.part, at.q, at.t).words
    weak = [plant.actuator_names[i] for i in sorted(run.saturation.since)]
    limits = f" The motors {listing(weak, 4)} are at their limits." if weak else ""
    return SingularityError(
        f"{plant.name}: under its controller the motion goes through a type-2 (actuation) "
        f"singularity at t = {at.t:.9g} s, q = {np.round(at.q, 4).tolist()}: {lost} there, and on "
        "the other side the motors act the other way round."
        f"{limits} Keep the motion farther away, or give stronger motors; "
        'hc.Integrator(at_actuation_singularity="record") lets the run continue',
        names=plant.actuator_names, kind="type 2", value=0.0, time=at.t, q=at.q.copy(), motion=lost,
    )  # fmt: skip


def keep_last(run: RunInProgress, after_error: bool = False) -> None:
    """Record the state at which a run ends, unless it is recorded already; the efforts are nan
    after an error if the controller raises another one."""
    record, motion = run.record, run.motion
    if record.count and not motion.t > record.t[record.count - 1]:
        return

    def command(t: float, q: Vector, v: Vector) -> Vector:
        try:
            return run.command(t, q, v)
        except Exception:
            if after_error:  # the first error is the one to report
                return np.full(run.u.size, np.nan)
            raise

    def pushed(t: float, q: Vector, v: Vector, u: Vector) -> Array:
        try:
            return run.contact_forces(t, q, v, u)
        except Exception:
            if after_error:
                return np.full(record.pushed.shape[1:], np.nan)  # type: ignore[union-attr]
            raise

    record.t[record.count], record.contacts = motion.t, pushed
    keep(record, motion, run.sides, motion.state, command)


# ---------------------------------------------------------------------------------- events


def _event_within(run: RunInProgress, piece: StepSolution) -> EventCrossing | None:
    """The first event of a piece that has a reaction or ends the run; events before it are
    recorded."""
    motion, start, stop = run.motion, piece.start.t, piece.stop.t

    def closed_at(t: float) -> tuple[Vector, Vector]:
        state = closed(motion, piece.part, State(t, *piece.at(t), np.inf))
        return state.q, state.v

    while start < stop:
        over = StepInterval(start, stop, piece.at, closed_at, run.fresh)
        hit = first_event(run.watched, over, run.value)
        if hit is None:
            run.fresh = run.fresh and stop - start <= EVENT_SHORT
            break
        event = run.watched[hit.i].event
        if hit.i >= len(run.events) or event.terminal or event.reaction is not None:
            return hit
        _record_event(run, hit.t, hit)
        start = hit.t
    return None


def _record_event(run: RunInProgress, t: float, hit: EventCrossing) -> None:
    """Record an event; the functions of all events are then evaluated again."""
    motion, found, w = run.motion, run.record.events, run.events[hit.i]
    found.append((t, hit.i))
    recent = found[-MOST_EVENTS:]
    if len(recent) == MOST_EVENTS and recent[-1][0] - recent[0][0] < motion.settings.tick:
        raise InconsistentError(
            f"{motion.plant.name}: {MOST_EVENTS} events within one tick; do they cause each other, "
            "or does a body bounce at ever shorter intervals? Return a mechanism in which it rests "
            "from the reaction"
        )
    for other in run.watched:
        other.value = np.nan
    w.side, w.rate, w.stopped = (1.0 if hit.rate > 0.0 else -1.0), hit.rate, False
    run.fresh = True


def _up_to(run: RunInProgress, before: PlantMotion, hit: EventCrossing) -> list[StepSolution]:
    """Integrate from the start of the step in which an event was found to the event itself.

    A step that ends at the event differs from the longer one by its error, and so does the instant
    of the event; the step is repeated until that instant is right.
    """
    t, latest = hit.t, run.motion.t
    for _ in range(EVENT_AGAIN):
        _restore(run, copy(before))
        pieces = list[StepSolution]()
        while run.motion.t < t:
            pieces.append(advanced(run.motion, t))
        _project(run.motion)
        if not pieces or not hit.smooth:
            break
        motion = run.motion
        later = -run.value(hit.i, motion.t, motion.q, motion.v) / hit.rate if hit.rate else 0.0
        near = abs(later) <= 0.1 * (latest - before.t) and before.t < t + later <= latest
        if abs(later) <= EVENT_TIME * max(1.0, abs(t)) or not near:
            break
        t += later
    return pieces


def _project(motion: PlantMotion) -> None:
    """Project the state at an event, so that the motion continues from a closed state."""
    here = motion.state
    state = closed(motion, motion.part, here)
    if state.q is not here.q:
        motion.q, motion.v, motion.closure = state.q, state.v, state.closure
        motion.first, motion.solver = None, None


def _restore(run: RunInProgress, before: PlantMotion) -> None:
    """Return a run to the motion before a step, and remove the records of that step."""
    for recorded in (run.motion.tally.crossings, run.motion.tally.repartitions):
        _remove_later(recorded, before.t)
    before.solver = None
    run.motion = before


def _remove_later(recorded: list[Any], since: Any) -> None:
    """Remove the entries of an ascending list that are later than an instant."""
    while recorded and recorded[-1] > since:
        recorded.pop()


def _react(run: RunInProgress, hit: EventCrossing) -> None:
    """Apply the reaction of an event at the current state, and end the run if it is terminal."""
    motion, i = run.motion, hit.i
    event = run.events[i].event
    _record_event(run, motion.t, hit)
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
        _continue_with(run, plant, v, i)
    if event.terminal:
        run.ended = f"event {i}"


def _continue_with(run: RunInProgress, plant: Mechanism, v: Vector, i: int) -> None:
    """Continue a run with the plant and the velocity that the reaction of event i returned."""
    motion, record, known, inputs = run.motion, run.record, run.known, run.inputs
    t, q, settings = motion.t, motion.q, run.settings
    tau = inputs.held(plant, run.u) if settings.ticks else inputs.continuous(plant)
    try:
        if id(plant) not in known:
            known[id(plant)] = decided(plant, q, v, t)
        at = known[id(plant)]
        at = replace(at, partition=repartitioned(plant, at.partition, q, v, t))
        run.motion = started(at, settings, motion.tally, t, q, v, tau)
    except (InconsistentError, SingularityError) as error:
        error.add_note(
            f"after the reaction of event {i}: the mechanism and the velocity that it returns must "
            "satisfy the constraints; hc.impulse, for example, computes such a velocity"
        )
        raise
    if run.contacts is not None:
        run.contacts.rebased(plant, at.partition)
    if plant is not motion.plant:
        record.plants.append((record.count, plant))
        least = run.sides.least
        run.sides = _monitor_of_sides(run.motion)
        run.sides.least = min(least, run.sides.least)


def _contact_event(run: RunInProgress, hit: EventCrossing) -> None:
    """Continue a run after the end of a mode of its contacts."""
    contacts, motion = run.contacts, run.motion
    if contacts is None:
        return
    what, i = contacts.means[hit.i - len(run.events)]
    run.fresh = True
    if what == "stops" and not contacts.stopped(motion.t, motion.q, motion.v, i):
        for other in run.watched:  # it has turned: its direction is noted at the next step
            other.value = np.nan
        return
    _change_contacts(run, what)


def _change_contacts(run: RunInProgress, what: str) -> None:
    """Decide the mode of the contacts, and continue in it."""
    contacts, motion, settings = run.contacts, run.motion, run.settings
    if contacts is None:
        return
    old = contacts.mode.state
    after = contacts.change(motion, what)
    recent = contacts.found[-MOST_EVENTS:]
    if len(recent) == MOST_EVENTS and recent[-1][0] - recent[0][0] < settings.tick:
        raise InconsistentError(
            f"{motion.plant.name}: {MOST_EVENTS} events of contacts within one tick, the last: "
            f"{recent[-1][3]} at point {recent[-1][2]} of {recent[-1][1]!r}"
        )
    if what == "start" or not np.array_equal(old, after.mode.state):
        run.motion = _in_new_mode(run, contacts, after)
    else:
        at = PlantDecisions(motion.plant, motion.part, motion.usual)
        run.motion = _started_in_mode(run, contacts, at, after.v)
    contacts.watch(lambda: run.motion)
    run.fresh = True
    for event in run.events:
        event.value = np.nan
    if run.motion.plant is not motion.plant:
        least = run.sides.least
        run.sides = _monitor_of_sides(run.motion)
        run.sides.least = min(least, run.sides.least)


def _in_new_mode(run: RunInProgress, contacts: ContactRun, after: Contacting) -> PlantMotion:
    """The motion with the rows of contacts. Where these lose rank, as those of feet on symmetrical
    legs, there are only the normal ones; forces of least norm hold the others."""
    t, q, v, mode = run.motion.t, run.motion.q, after.v, after.mode
    position = contacts.points.motion(contacts.plant, q, v, t).position

    def motion_of(mode: ContactMode) -> PlantMotion:
        plant = plant_in_mode(contacts.points, contacts.plant, mode, position)
        at = run.known.get(id(plant)) or decided(plant, q, v, t)
        return _started_in_mode(run, contacts, at, v)

    contacts.by_forces = mode.rubs
    try:
        return motion_of(mode)
    except SingularityError:
        if not (mode.state == STICKS).any():
            raise
    contacts.by_forces = True
    return motion_of(replace(mode, state=np.minimum(mode.state, SLIDES)))


def _started_in_mode(
    run: RunInProgress, contacts: ContactRun, at: PlantDecisions, v: Vector
) -> PlantMotion:
    """A motion with the forces of contacts."""
    t, q, settings = run.motion.t, run.motion.q, run.settings
    at = replace(at, partition=repartitioned(at.plant, at.partition, q, v, t))

    def dynamics(mech: Mechanism, part: Partition) -> PlantDynamics:
        base = settings.dynamics(mech, part)
        return contacts.dynamics(base) if mech is at.plant else base

    in_mode = replace(settings, dynamics=dynamics)
    return started(at, in_mode, run.motion.tally, t, q, v, run.motion.tau)


def check_plant(mech: Mechanism, plant: Mechanism, what: str) -> None:
    """Raise `InputError` unless it has the same coordinates and motors as a mechanism."""
    if mech.coordinate_names != plant.coordinate_names or mech.nq != plant.nq:
        raise InputError(f"{what} must have the same coordinates, in the same order, as mech")
    if mech.actuator_names != plant.actuator_names:
        raise InputError(f"{what} must have the same motors, in the same order, as mech")
