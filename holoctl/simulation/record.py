"""What of a motion is kept: states at instants that were asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.base.linalg import largest
from holoctl.closing.manifold_projection import projected_onto_manifold
from holoctl.forces.together import stored_energy
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import energies
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.simulation.motion import Piece, PlantMotion, RunTally, State, largest_jump
from holoctl.simulation.run import KINDS, Run, versions
from holoctl.tree.kinematics import kinematics

__all__ = ["Record", "closed", "finished", "keep", "keep_piece", "record_for"]

RECORDED = 1e-12  # scaled
"""States between the ends of a step are put back where they are off by more."""


Array = NDArray[np.float64]

Command = Callable[[float, Vector, Vector], Vector]
"""u(t, q, v) that acts."""


@dataclass
class Record:
    """Rows of a run, as many as `count` of them filled."""

    t: Vector
    q: Array
    v: Array
    u: Array
    closure: Vector
    tick_time: Vector
    sensors: str = ""
    count: int = 0
    spent: float = 0.0
    plants: list[tuple[int, Mechanism]] = field(default_factory=list)
    events: list[tuple[float, int]] = field(default_factory=list)
    bar: Any = None

    @property
    def next(self) -> float:
        """The instant that is asked for next; inf where none is."""
        return float(self.t[self.count]) if self.count < self.t.size - 1 else np.inf


def record_for(plant: Mechanism, instants: Vector, sensors: str = "") -> Record:
    """An empty record of these instants, with a row more for where a run ends early."""
    n = instants.size
    return Record(
        np.append(instants, np.inf), np.empty((n + 1, plant.nq)), np.empty((n + 1, plant.nv)),
        np.zeros((n + 1, plant.nu)), np.zeros(n + 1), np.zeros(n + 1), sensors, plants=[(0, plant)],
    )  # fmt: skip


def keep(record: Record, motion: PlantMotion, state: State, command: Command) -> None:
    """Keep a state at the next instant, with the efforts that act there."""
    i = record.count
    if state.closure > RECORDED:
        state = closed(motion, motion.part, state)
    u = command(state.t, state.q, state.v)
    record.q[i], record.v[i], record.u[i] = state.q, state.v, u
    record.closure[i], record.tick_time[i] = state.closure, record.spent
    record.count = i + 1
    if record.bar is not None:
        record.bar.update()


def keep_piece(record: Record, motion: PlantMotion, piece: Piece, command: Command) -> None:
    """Keep the states of a piece at all instants that are asked for, but for its end."""
    while record.next < piece.stop.t:
        t = record.next
        state = piece.start
        if t > state.t:
            q, v = piece.within(t)
            state = closed(motion, piece.part, State(t, q, v, np.inf))
        keep(record, motion, state, command)


def closed(motion: PlantMotion, part: Partition, state: State) -> State:
    """The state put back on its constraints, if it is off by what matters and can be."""
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


def finished(record: Record, tally: RunTally, ended: str, seed: int) -> Run:
    """The run so far."""
    n = record.count
    stored = [np.zeros(n) for _ in KINDS]
    for (start, plant), (stop, _) in zip(
        record.plants, [*record.plants[1:], (n, None)], strict=True
    ):
        here = slice(min(start, n), min(stop, n))
        if here.start < here.stop:
            for kind, of_kind in zip(stored, _energies(plant, record, here), strict=True):
                kind[here] = of_kind
    return Run(
        t=record.t[:n].copy(), q=record.q[:n].copy(), v=record.v[:n].copy(),
        u=record.u[:n].copy(), closure=record.closure[:n].copy(),
        energy=dict(zip(KINDS, stored, strict=True)),
        tick_time=record.tick_time[:n].copy(), repartitions=np.array(tally.repartitions),
        crossings=np.array(tally.crossings),
        events=np.array(record.events, dtype=float).reshape(-1, 2), steps=tally.steps,
        evaluations=tally.evaluations, ended=ended, sensors=record.sensors, seed=seed,
        versions=versions(),
    )  # fmt: skip


def _energies(plant: Mechanism, record: Record, here: slice) -> tuple[Vector, Vector, Vector]:
    Q, V = record.q[here], record.v[here]
    kinetic, gravity = energies(plant, list(Q), V)
    springs = np.zeros(kinetic.size)
    if any(force.stores for force in plant.bound_forces):
        data = workspace(plant)
        for i, (q, v, t) in enumerate(zip(Q, V, record.t[here].tolist(), strict=True)):
            springs[i] = stored_energy(plant.bound_forces, kinematics(plant.model, data, q, v, t))
    return kinetic, gravity, springs
