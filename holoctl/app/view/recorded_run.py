"""The data of a `Run` that a page shows: configurations by time, charts of efforts and positions,
and events. A motion of the page is shown in the same way, as a run that rests.

Nothing is interpolated: the nearest recorded instant is shown, with the closure error of the plant.
A chart has at most `PLACES` intervals; of the instants in each it keeps the smallest and the
largest effort of each motor, so that no peak is lost.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from holoctl.app.plot_run import check_run
from holoctl.app.units import motor_units, position_units
from holoctl.app.view.dragging import drag_model
from holoctl.app.view.holding_efforts import holding_efforts
from holoctl.app.view.overlays import Instant
from holoctl.app.view.shown_posture import Posture, moved
from holoctl.base.checks import Array, Indices, Vector, counted, positive, quiet, read_only
from holoctl.base.errors import InputError
from holoctl.dynamics.certificate import limit
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limits import MODEL, Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.simulation.run import Run

__all__ = ["Recorded", "csv_text", "filmed", "frames", "recorded", "thinned"]


RATE = 30.0
"""Pictures per second of a motion."""

PLACES = 300
"""Largest number of intervals of a chart."""

MOST_MOTORS = 4
"""Largest number of motors whose efforts are in the text of an instant."""

NEAR = 0.25
"""An event is in the text of an instant if it is at most this number of seconds away."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A run with the data that a page shows.

    Attributes
    ----------
    mech : Mechanism
    run : Run
    t : (p,) array
        Times of the chart, s.
    u : (p, nu) array
        Efforts of the chart; nan if the controller was not called.
    names : tuple of nu str
        Names of the motors.
    unit : str
        Unit of the efforts.
    limits : (2, nu) array or None
        Lower and upper limits of efforts, infinite for motors without one; None if no motor has
        one.
    words : str
        Sentences on the end of the run and on its events.
    positions : (n, nu) array
        Positions of the motors at all instants, rad or m, with turns counted; nan for a motor
        without single coordinates.
    """

    mech: Mechanism
    run: Run
    t: Vector
    u: Array
    names: tuple[str, ...]
    unit: str
    limits: Array | None
    words: str
    positions: Array = field(repr=False)
    _marks: tuple[tuple[float, str], ...] = field(repr=False, default=())

    @property
    def start(self) -> float:
        """Time of the first instant, s."""
        return float(self.run.t[0])

    @property
    def end(self) -> float:
        """Time of the last instant, s."""
        return float(self.run.t[-1])

    def index(self, t: float) -> int:
        """The recorded instant nearest to a time."""
        return int(_nearest(self.run.t, np.array([t]))[0])

    def at(self, t: float) -> Vector:
        """The configuration (nq,) at the recorded instant nearest to a time."""
        q: Vector = self.run.q[self.index(t)]
        return q

    def instant(self, t: float) -> Instant:
        """The recorded instant nearest to a time, with velocity and motor efforts."""
        i = self.index(t)
        return Instant(self.run.q[i], float(self.run.t[i]), self.run.v[i], self.run.u[i])

    def is_open(self, t: float) -> bool:
        """Whether the recorded instant nearest to a time is not closed."""
        return not self.run.closure[self.index(t)] <= limit("closure", self.mech.tolerance)

    def status(self, t: float) -> str:
        """A text with the time, the efforts at it, and events around it."""
        i = self.index(t)
        efforts = [
            f"{name} {u:+.3g} {unit}".rstrip()
            for name, u, unit in zip(
                self.names, self.run.u[i].tolist(), motor_units(self.mech), strict=True
            )
            if np.isfinite(u)
        ]
        more = [f"{len(efforts) - MOST_MOTORS} more"] if len(efforts) > MOST_MOTORS else []
        at = f"t = {self.run.t[i]:.3f} s"
        parts = [": ".join([at, ", ".join(efforts[:MOST_MOTORS] + more)]) if efforts else at]
        if self.is_open(t):
            parts.append(f"closure error {self.run.closure[i]:.1e} (scaled)")
        parts += [what for when, what in self._marks if abs(when - t) <= NEAR]
        if self.run.ended and self.end - t <= NEAR:
            parts.append(f"ended by {self.run.ended}")
        return "; ".join(parts)


@quiet
def recorded(mech: Mechanism, run: Run, limits: Any = MODEL) -> Recorded:
    """The data of a run of a mechanism that a page shows.

    Parameters
    ----------
    mech : Mechanism
    run : Run
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
        Those of efforts are drawn.

    Raises
    ------
    InputError
        For a value that is not a run, a run of another mechanism, or one without instants.
    """
    check_run(run, mech)
    if not run.t.size:
        raise InputError("run has no instant, so there is nothing to show")
    t, u = thinned(run.t, run.u)
    asked = requested_limits(mech, limits, "recorded") or Limits()
    bounds = bound_limits(mech, asked).effort
    units = sorted({unit or "N m, N" for unit in motor_units(mech)})
    marks = _marks_of(run)
    return Recorded(
        mech, run, read_only(t), read_only(u), mech.actuator_names, ", ".join(units) or "N m",
        bounds if np.isfinite(bounds).any() else None, _words(mech, run, marks),
        read_only(_positions(mech, run.q)), marks,
    )  # fmt: skip


@quiet
def filmed(posture: Posture, pictures: Array, words: str, times: Vector | None = None) -> Recorded:
    """Closed configurations (n, nq) that follow a posture, as a run at rest: with the efforts that
    hold each of them, nan where there are none. Default for the times: `RATE`."""
    mech, at, n = posture.mech, posture, len(pictures)
    u, closure = np.full((n, mech.nu), np.nan), np.zeros(n)
    for i, q in enumerate(pictures):
        at = moved(at, q)
        held = holding_efforts(mech, q, at.part).rows if at.closed else ()
        u[i], closure[i] = [row.effort for row in held] or np.nan, at.gap
    none = np.zeros(0)
    film = recorded(mech, Run(
        t=np.arange(n) / RATE if times is None else times, q=pictures, v=np.zeros((n, mech.nv)),
        u=u, closure=closure,
        energy={}, tick_time=np.zeros(n), repartitions=none, crossings=none,
        type_2_at=none, smallest_singular_value=np.full(n, np.inf), least_singular_value=np.inf,
        smallest_at=0.0, saturated=np.zeros((0, 3)), events=np.zeros((0, 2)), steps=0,
        evaluations=0, ended="", sensors="", seed=0, versions="",
    ))  # fmt: skip
    turns = np.nan_to_num(posture.motors - film.positions[0])  # counted by the posture
    words = f"{words}\nThe efforts are those that hold each configuration at rest.".strip()
    return replace(film, words=words, positions=read_only(film.positions + turns))


def csv_text(shown: Recorded) -> str:
    """All instants as comma-separated values: time, positions and efforts of motors, closure error,
    and q."""
    mech, run = shown.mech, shown.run
    head = ["t (s)"]
    for what, units in ("position", position_units(mech)), ("effort", motor_units(mech)):
        head += [f"{what} of {x} ({y})" for x, y in zip(shown.names, units, strict=True)]
    head += ["closure error (scaled)", *(f"q[{i}]" for i in range(mech.nq))]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(head)
    table.writerows(np.column_stack([run.t, shown.positions, run.u, run.closure, run.q]).tolist())
    return text.getvalue()


def frames(shown: Recorded, rate: float = 30.0) -> tuple[Vector, Indices, Array]:
    """Times (n,), s; the recorded instants (n,) nearest to them; and the configurations (n, nq).

    Raises
    ------
    InputError
        For a rate, 1/s, that is not positive.
    """
    rate = positive("rate", rate, "1/s")
    count = int(np.floor((shown.end - shown.start) * rate + 1e-9))
    times = shown.start + np.arange(count + 1) / rate
    if times[-1] < shown.end:
        times = np.append(times, shown.end)
    which = _nearest(shown.run.t, times)
    return times, which, shown.run.q[which]


def _nearest(t: Vector, wanted: Vector) -> Indices:
    after = np.clip(np.searchsorted(t, wanted), 1, max(t.size - 1, 1))
    after = np.minimum(after, t.size - 1)
    before = np.maximum(after - 1, 0)
    closer = wanted - t[before] <= t[after] - wanted
    return np.where(closer, before, after).astype(np.intp)


def _positions(mech: Mechanism, q: Array) -> Array:
    """Positions of the motors (n, nu) at configurations that follow each other."""
    model = drag_model(mech)
    found = np.full((len(q), mech.nu), np.nan)
    for i in np.flatnonzero(model.numbered):
        on = np.flatnonzero(mech.B[:, i])
        places = model.places[on]
        x = q[:, places].copy()
        for k in np.flatnonzero(model.continuous[on]):
            x[:, k] = np.unwrap(np.arctan2(q[:, places[k] + 1], q[:, places[k]]))
        found[:, i] = x @ mech.B[on, i]
    return found


def thinned(t: Vector, u: Array) -> tuple[Vector, Array]:
    """At most ``2 PLACES`` times with the extreme efforts of each interval, in the order of
    time."""
    if t.size <= 2 * PLACES:
        return t.copy(), u.copy()
    edges = np.linspace(0, t.size, PLACES + 1).astype(int)
    times = np.stack([t[edges[:-1]], t[edges[1:] - 1]], axis=1).reshape(-1)
    if not u.shape[1]:
        return times, np.zeros((times.size, 0))
    low = np.fmin.reduceat(u, edges[:-1], axis=0)
    high = np.fmax.reduceat(u, edges[:-1], axis=0)
    rising = u[edges[:-1]] <= u[edges[1:] - 1]
    pairs = np.stack([np.where(rising, low, high), np.where(rising, high, low)], axis=1)
    return times, pairs.reshape(-1, u.shape[1])


def _marks_of(run: Run) -> tuple[tuple[float, str], ...]:
    found = [(float(t), f"singular configuration crossed at {t:.3f} s") for t in run.crossings]
    found += [(float(t), f"event {int(k)} at {t:.3f} s") for t, k in run.events]
    return tuple(sorted(found))


def _words(mech: Mechanism, run: Run, marks: tuple[tuple[float, str], ...]) -> str:
    length = f"{run.t[-1] - run.t[0]:.4g} s"
    parts = [f"{counted(run.t.size, 'instant')} over {length}; the nearest one is shown."]
    off = run.closure[~(run.closure <= limit("closure", mech.tolerance))]
    if off.size:
        most = f"{off.max():.1e} (scaled)" if np.isfinite(off).all() else "not a number"
        parts.append(f"Open instants: {off.size}, largest closure error {most}.")
    if run.ended:
        parts.append(f"It ended by {run.ended}.")
    if len(run.crossings):
        parts.append(f"Singular configurations crossed: {len(run.crossings)}.")
    if len(run.events):
        parts.append(f"Events: {len(run.events)}.")
    parts += [what for _, what in marks[:MOST_EVENTS]]
    return "\n".join(parts)


MOST_EVENTS = 10
"""Largest number of events in the words of a run."""
