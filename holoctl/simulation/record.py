"""The record of a run: states at the requested instants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, numbers
from holoctl.base.errors import InconsistentError, InputError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import MOST_TICKS
from holoctl.closing.manifold_projection import projected_onto_manifold
from holoctl.forces.sum_of_forces import stored_energy
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import energies
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.simulation.actuation_monitor import ActuationMonitor
from holoctl.simulation.contact_motion import ContactRun, no_contact_events
from holoctl.simulation.motion import PlantMotion, RunTally, State, StepSolution, largest_jump
from holoctl.simulation.run import KINDS, Run, versions
from holoctl.simulation.sensors import Sensors
from holoctl.tree.kinematics import kinematics

__all__ = [
    "Command",
    "Record",
    "checked_output",
    "closed",
    "finished",
    "keep",
    "keep_piece",
    "record_for",
    "state_within",
    "ticks_of",
]

LAST_TICK, ROUNDED_INSTANT = 1e-9, 1e-12  # a share of a tick; of the duration
"""A last tick that is shorter than the first does not count; an instant to record that is closer to
the end than the second is the end."""

RECORDED = 1e-12  # scaled
"""States between the ends of a step are projected onto the manifold if their error is larger."""


Command = Callable[[float, Vector, Vector], Vector]
"""u(t, q, v): the motor efforts that act at a state."""


@dataclass
class Record:
    """The arrays of a run while it is recorded: one row for each instant, `count` of them filled.

    `spent` is the time of the last call of the controller, s; `plants` and `events` are pairs
    (first row, mechanism) and (instant, index of the event); `bar` is a progress bar or None.
    `contacts(t, q, v, u)` are the forces of contact points, recorded in `pushed`.
    """

    t: Vector
    q: Array
    v: Array
    u: Array
    closure: Vector
    tick_time: Vector
    smallest_singular_value: Vector
    sensors: Sensors | None = None
    count: int = 0
    spent: float = 0.0
    plants: list[tuple[int, Mechanism]] = field(default_factory=list)
    events: list[tuple[float, int]] = field(default_factory=list)
    bar: Any = None
    contacts: Any = None
    pushed: Array | None = None

    @property
    def next(self) -> float:
        """The next instant to record, s; inf if there is none."""
        return float(self.t[self.count]) if self.count < self.t.size - 1 else np.inf


def ticks_of(duration: float, rate: float) -> Vector:
    """The instants of all ticks, and the end, s."""
    count = max(1, int(np.ceil(duration * rate - LAST_TICK)))
    return np.append(np.arange(count) / rate, duration)


def checked_output(output: Any, duration: float) -> Vector:
    """The instants to record, s: increasing, from 0 to the duration."""
    instants = numbers("output", output, "instants, s")
    if instants.ndim != 1 or instants.size == 0:
        raise InputError(f"output must be an (n,) array of instants, s; got shape {instants.shape}")
    if not np.isfinite(instants).all():
        bad = int(np.flatnonzero(~np.isfinite(instants))[0])
        raise InputError(f"output must be finite, s; entry {bad} is {instants[bad]}")
    if instants.size > MOST_TICKS:
        raise InputError(f"output has {instants.size} instants; a run has at most {MOST_TICKS:.0e}")
    instants = instants.astype(float)
    if abs(instants[-1] - duration) <= ROUNDED_INSTANT * duration:  # 3 * 0.1 is more than 0.3
        instants[-1] = duration
    if not (np.diff(instants) > 0.0).all():
        bad = 1 + int(np.flatnonzero(~(np.diff(instants) > 0.0))[0])
        raise InputError(
            f"output must be increasing; entry {bad}, {instants[bad]:g} s, is not after the entry "
            "before it"
        )
    if not (instants[0] >= 0.0 and instants[-1] <= duration):
        raise InputError(
            f"output must be within 0 and the duration, {duration:g} s; got {instants[0]:g} to "
            f"{instants[-1]:g}"
        )
    return instants


def record_for(plant: Mechanism, instants: Vector, sensors: Sensors | None) -> Record:
    """An empty record of these instants, with one more row for the end of a run that ends early."""
    n = instants.size
    return Record(
        np.append(instants, np.inf), np.empty((n + 1, plant.nq)), np.empty((n + 1, plant.nv)),
        np.zeros((n + 1, plant.nu)), np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1), sensors,
        plants=[(0, plant)],
    )  # fmt: skip


def keep(
    record: Record, motion: PlantMotion, sides: ActuationMonitor, state: State, command: Command
) -> None:
    """Record a state at the next instant, with the efforts that act there."""
    i = record.count
    record.smallest_singular_value[i] = sides.sigma(state)
    if state.closure > RECORDED:
        state = closed(motion, motion.part, state)
    u = command(state.t, state.q, state.v)
    record.q[i], record.v[i], record.u[i] = state.q, state.v, u
    record.closure[i], record.tick_time[i] = state.closure, record.spent
    if record.pushed is not None:
        record.pushed[i] = record.contacts(state.t, state.q, state.v, u)
    record.count = i + 1
    if record.bar is not None:
        record.bar.update()


def keep_piece(
    record: Record, motion: PlantMotion, sides: ActuationMonitor, piece: StepSolution,
    command: Command,
) -> None:  # fmt: skip
    """Record the states of a piece at all requested instants before its end."""
    while record.next < piece.stop.t:
        keep(record, motion, sides, state_within(motion, piece, record.next), command)


def state_within(motion: PlantMotion, piece: StepSolution, t: float) -> State:
    """The state at an instant of a piece, on the constraints."""
    if t <= piece.start.t:
        return piece.start
    return closed(motion, piece.part, State(t, *piece.at(t), np.inf))


def closed(motion: PlantMotion, part: Partition, state: State) -> State:
    """The state projected onto the manifold, if its error is above `RECORDED` and the projection
    succeeds."""
    plant, (t, q, v, _) = motion.plant, state
    rows = scaled_rows_at(plant, q, v, t)
    off = largest(rows.error)
    if off > RECORDED or largest(rows.rate) > RECORDED:
        try:
            there, rates = projected_onto_manifold(plant, part.rows, q, v, t)
        except (SingularityError, InconsistentError):  # next to a singular configuration
            return State(t, q, v, off)
        c = plant.column_scale
        if largest((rates - v) / c) <= largest_jump(motion) * (1.0 + largest(v / c)):
            q, v = there, rates
            off = largest(scaled_rows_at(plant, q, v, t).error)
    return State(t, q, v, off)


def finished(
    record: Record, tally: RunTally, sides: ActuationMonitor, saturated: Array, ended: str,
    contacts: ContactRun | None,
) -> Run:  # fmt: skip
    """The `Run` of the states recorded so far."""
    n, sensors = record.count, record.sensors
    arrays = {name: getattr(record, name)[:n].copy() for name in _RECORDED}
    stored = np.zeros((len(KINDS), n))
    stops = [start for start, _ in record.plants[1:]] + [n]
    for (start, plant), stop in zip(record.plants, stops, strict=True):
        here = slice(min(start, n), min(stop, n))
        if here.start < here.stop:
            stored[:, here] = _energies(plant, record, here)
    pushed = np.zeros((n, 0, 3)) if record.pushed is None else record.pushed[:n]
    forces, happened = {}, no_contact_events()
    if contacts is not None:
        forces = contacts.points.forces(pushed)
        happened = np.array(contacts.found, dtype=happened.dtype)
    return Run(
        **arrays, contact_forces=forces, contact_events=happened,
        energy=dict(zip(KINDS, stored, strict=True)),
        repartitions=np.array(tally.repartitions),
        crossings=np.sort([*tally.crossings, *tally.type_2]), type_2_at=np.array(tally.type_2),
        least_singular_value=sides.least[0], smallest_at=sides.least[1], saturated=saturated,
        events=np.array(record.events, dtype=float).reshape(-1, 2), steps=tally.steps,
        evaluations=tally.evaluations, ended=ended, versions=versions(),
        sensors="" if sensors is None else repr(sensors),
        seed=0 if sensors is None else sensors.seed,
    )  # fmt: skip


_RECORDED = ("t", "q", "v", "u", "closure", "tick_time", "smallest_singular_value")


def _energies(plant: Mechanism, record: Record, here: slice) -> tuple[Vector, Vector, Vector]:
    Q, V = record.q[here], record.v[here]
    kinetic, gravity = energies(plant, list(Q), V)
    springs = np.zeros(kinetic.size)
    if any(force.stores for force in plant.bound_forces):
        data = workspace(plant)
        for i, (q, v, t) in enumerate(zip(Q, V, record.t[here].tolist(), strict=True)):
            springs[i] = stored_energy(plant.bound_forces, kinematics(plant.model, data, q, v, t))
    return kinetic, gravity, springs
