"""What a controller sees of a motion at a tick: the state some time ago, as its sensors read it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing
from holoctl.base.errors import InputError
from holoctl.base.tolerances import TICK_ROUNDED
from holoctl.constraints.joint_coordinates import TreeJoint
from holoctl.control.loop import Tracking
from holoctl.estimation.measurement_model import MeasurementModel, measurement_model
from holoctl.estimation.rate_filter import RateFilter
from holoctl.mechanism.mechanism import Mechanism
from holoctl.simulation.motion import Piece, PlantMotion, State
from holoctl.simulation.record import closed
from holoctl.simulation.sensors import WHOLE_STATE, Sensors
from holoctl.tree.coordinates import translational
from holoctl.tree.frozen_model import plain

__all__ = ["SimulatedSensors", "seen_by"]

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SensorModel:
    """What sensors see of a plant.

    Attributes
    ----------
    plant : Mechanism
    readings : Readings or None
        None where the whole state is measured.
    labels : tuple of m str
        A name for each rate.
    single : (k,) int array
        The rates whose coordinate has a position.
    places : (k,) int array
        Where these positions stand among the numbers that are read; of a continuous joint in a
        whole configuration, the cosine.
    cosine, linear, turns : (k,) bool arrays
        Whether a cosine and a sine stand there; whether it is a length; whether it is an angle that
        is known up to turns.
    """

    plant: Mechanism
    readings: MeasurementModel | None
    labels: tuple[str, ...]
    single: Indices
    places: Indices
    cosine: Mask
    linear: Mask
    turns: Mask

    def positions(self, q: Vector, noise: Vector | None) -> Vector:
        """The numbers that are read at a configuration, with a step in the tangent space."""
        model, sensors = self.plant.model, self.readings
        if sensors is None:
            return q.copy() if noise is None else pin.integrate(model, q, noise)
        if noise is None:
            return sensors.at(q)
        own = sensors.columns >= 0
        step = np.zeros(model.nv)
        step[sensors.columns[own]] = noise[own]
        x = sensors.at(pin.integrate(model, q, step))
        if sensors.of_cut.size:  # these are not moved by the noise of others
            x[sensors.of_cut] = sensors.at(q)[sensors.of_cut] + noise[~own]
        return x

    def rates(self, q: Vector, v: Vector) -> Vector:
        """The rates at a state."""
        return v.copy() if self.readings is None else self.readings.rates(q, v)

    def singles(self, x: Vector) -> Vector:
        """Positions of single coordinates, among the numbers x."""
        found, there = x[self.places], self.places[self.cosine]
        found[self.cosine] = np.arctan2(x[there + 1], x[there])
        return found

    def put(self, x: Vector, singles: Vector) -> None:
        """Write these among the numbers x."""
        there, angles = self.places[self.cosine], singles[self.cosine]
        x[self.places[~self.cosine]] = singles[~self.cosine]
        x[there], x[there + 1] = np.cos(angles), np.sin(angles)


@dataclass
class SimulatedSensors:
    """What the controller of a run sees; it remembers what is read later.

    Attributes
    ----------
    names : tuple of str or None
        What is measured; None for the whole state.
    view : SensorModel
        Of the plant that was seen last.
    step : (k,) array
        To what positions are rounded; 0 where they are not.
    coming : iterator
        Instants from which something is still to be read, ascending.
    kept : deque
        States that were there, not read yet: plant, q, v.
    """

    sensors: Sensors
    names: tuple[str, ...] | None
    view: SensorModel
    noise: tuple[Vector, Vector]
    step: Vector
    rate: float
    delay: float
    random: np.random.Generator
    coming: Iterator[float]
    next: float
    kept: deque[tuple[Mechanism, Vector, Vector]]
    filter: RateFilter | None
    last: float = -1.0
    start: tuple[Mechanism, Vector, Vector] | None = None

    def keep(self, motion: PlantMotion, piece: Piece) -> None:
        """Keep the states of a piece that are read later, but for its end."""
        while self.next < piece.stop.t:
            state = piece.start
            if self.next > state.t:
                state = closed(motion, piece.part, State(self.next, *piece.at(self.next), np.inf))
            self.kept.append((motion.plant, state.q, state.v))
            self.next = next(self.coming, np.inf)

    def at_tick(self, motion: PlantMotion, t: float) -> tuple[Vector, Vector]:
        """Positions and rates, as they are read at a tick."""
        now = motion.plant, motion.q, motion.v
        if self.start is None:
            self.start = now
        if self.delay > 0.0:
            now = self.kept.popleft() if _instant(t, self.delay, self.rate) > 0.0 else self.start
        plant, q, v = now
        if plant is not self.view.plant:
            self.view = _same_view(plant, self.names, self.view)
        x, rates = self._read(q, v)
        if self.filter is not None:
            self._filter(x, rates, t)
        self.last = t
        return x, rates

    def _read(self, q: Vector, v: Vector) -> tuple[Vector, Vector]:
        view, m = self.view, len(self.view.labels)
        noise, of_rates = None, None
        if any(sigma.any() for sigma in self.noise):
            noise = self.noise[0] * self.random.normal(size=m)
            of_rates = self.noise[1] * self.random.normal(size=m)
        x, rates = view.positions(q, noise), view.rates(q, v)
        if of_rates is not None:
            rates = rates + of_rates
        rounding = self.step > 0.0
        if rounding.any():
            singles, step = view.singles(x), self.step[rounding]
            count = singles[rounding] / step
            fine = np.abs(count) < 2.0**52  # else a float is a whole count as it is
            singles[rounding] = np.where(fine, np.rint(count) * step, singles[rounding])
            view.put(x, singles)
        return x, rates

    def _filter(self, x: Vector, rates: Vector, t: float) -> None:
        """Put the rates of a filter where there is a position for each."""
        view, singles = self.view, self.view.singles(x)
        if self.last < 0.0:
            self.filter.reset(singles, rates[view.single])  # type: ignore[union-attr]
            return
        h = t - self.last  # the last tick may be shorter
        whole = abs(h * self.rate - 1.0) <= TICK_ROUNDED
        rates[view.single] = self.filter.rate(singles, None if whole else h)  # type: ignore[union-attr]


def seen_by(
    controller: Any, sensors: Any, mech: Mechanism, plant: Mechanism, ticks: Sequence[float],
    rate: float,
) -> SimulatedSensors | None:  # fmt: skip
    """What a controller sees, from the start on; None for the state as it is.

    Raises
    ------
    InputError
        For what are no sensors, names of no joints, shapes that do not match what is measured, a
        bandwidth beyond the ticks, a plant in which other coordinates are measured, or a controller
        that is known to be one of something else.
    """
    if sensors is not None and not isinstance(sensors, Sensors):
        raise InputError(
            f"sensors must be hc.Sensors, or None for the exact state; got "
            f"{type(sensors).__name__} {str(sensors)[:60]!r}"
        )
    names: tuple[str, ...] | None = None
    if sensors is not None and sensors.measured != WHOLE_STATE:
        names = measurement_model(mech, sensors.measured).names
    _check_controller(controller, names)
    if sensors is None:
        return None
    view = _view(mech, names)
    if plant is not mech:
        view = _same_view(plant, names, view)
    m, k = len(view.labels), view.single.size
    positions, rates = (_spread("noise", sigma, m) for sigma in sensors.noise)
    turned, rate_filter = view.turns, None
    if sensors.rate_bandwidth is not None:
        left = np.ones(m, dtype=bool)
        left[view.single] = False
        if np.any(rates) and not left.any():
            raise InputError(
                "noise of rates, but with rate_bandwidth they are those of a filter and not "
                "measured: give noise=(positions, 0)"
            )
        try:
            rate_filter = RateFilter(sensors.rate_bandwidth, 1.0 / rate, turned)
        except InputError as error:
            raise InputError(f"rate_bandwidth of the sensors: {error}") from None
        rates = np.where(left, rates, 0.0)
    step = np.zeros(k) if sensors.counts is None else _steps(view, sensors.counts)
    delay = sensors.delay if sensors.delay * rate > TICK_ROUNDED else 0.0
    coming = _coming(ticks, delay, rate)
    return SimulatedSensors(
        sensors,
        names,
        view,
        (positions, rates),
        step,
        rate,
        delay,
        np.random.default_rng(sensors.seed),
        coming,
        next(coming, np.inf),
        deque(),
        rate_filter,
    )


# ------------------------------------------------------------------------------------ instants


def _instant(t: float, delay: float, rate: float) -> float:
    """From when what is read at a tick is; of a tick where that is one but for rounding."""
    then = t - delay
    k = np.rint(then * rate)
    return float(k / rate) if abs(then * rate - k) <= TICK_ROUNDED else then


def _coming(ticks: Sequence[float], delay: float, rate: float) -> Iterator[float]:
    if delay > 0.0:
        for t in ticks:
            then = _instant(t, delay, rate)
            if then > 0.0:
                yield then


# --------------------------------------------------------------------------------------- views


def _view(plant: Mechanism, names: tuple[str, ...] | None) -> SensorModel:
    return _of_state(plant) if names is None else _of_joints(plant, measurement_model(plant, names))


def _same_view(plant: Mechanism, names: tuple[str, ...] | None, before: SensorModel) -> SensorModel:
    """The same of another plant."""
    view = _view(plant, names)
    if view.labels != before.labels:
        raise InputError(
            f"of the plant {plant.name!r} the sensors read {listing(view.labels)}; of "
            f"{before.plant.name!r} {listing(before.labels)}"
        )
    return view


def _of_state(plant: Mechanism) -> SensorModel:
    model = plain(plant.model)
    single, places, cosine = list[int](), list[int](), list[bool]()
    for j in range(1, model.njoints):
        nq, nv, iq, iv = model.nqs[j], model.nvs[j], model.idx_qs[j], model.idx_vs[j]
        if nq == nv or (nq, nv) == (2, 1):
            single += range(iv, iv + nv)
            places += range(iq, iq + nv)
            cosine += [nq != nv] * nv
    lengths, turns = translational(model)[single], np.array(cosine, dtype=bool)
    return SensorModel(
        plant, None, plant.coordinate_names, np.array(single, dtype=np.intp),
        np.array(places, dtype=np.intp), turns, lengths, turns,
    )  # fmt: skip


def _of_joints(plant: Mechanism, sensors: MeasurementModel) -> SensorModel:
    lengths = translational(plain(plant.model))
    single, places, linear = list[int](), list[int](), list[bool]()
    number = rate = 0
    for joint in sensors.joints:
        count = joint.count
        size = count
        if isinstance(joint, TreeJoint):
            size = 1 if joint.turning else joint.places.size
            of_joint = lengths[joint.columns].tolist()
        else:
            of_joint = [axis.linear for axis in joint.axes]
        if size == count:
            single += range(rate, rate + count)
            places += range(number, number + count)
            linear += of_joint
        number, rate = number + size, rate + count
    which = np.array(single, dtype=np.intp)
    return SensorModel(
        plant, sensors, sensors.labels, which, np.array(places, dtype=np.intp),
        np.zeros(which.size, dtype=bool), np.array(linear, dtype=bool), sensors.turns[which],
    )  # fmt: skip


def _spread(name: str, given: float | tuple[float, ...], m: int) -> Vector:
    x = np.array(given)
    if x.ndim and x.size != m:
        raise InputError(
            f"{name} of the sensors must be a number, or shape ({m},), one for each rate that is "
            f"measured; got shape {x.shape}"
        )
    return np.broadcast_to(x, (m,)).copy()


def _steps(view: SensorModel, counts: float | tuple[float, ...]) -> Vector:
    """To what single positions are rounded; 0 where they are not."""
    all_counts = _spread("counts", counts, len(view.labels))
    rest = np.ones(all_counts.size, dtype=bool)
    rest[view.single] = False
    if isinstance(counts, tuple) and np.isfinite(all_counts[rest]).any():
        wrong = [view.labels[i] for i in np.flatnonzero(rest & np.isfinite(all_counts))]
        raise InputError(
            f"counts of the sensors: {listing(wrong)} have no position for each coordinate, which "
            "could be rounded; give inf for them"
        )
    with np.errstate(over="ignore"):
        step = np.where(view.linear, 1.0, 2.0 * np.pi) / all_counts[view.single]
    if not np.isfinite(step).all():
        raise InputError(f"counts of the sensors are so few that no position is left: {counts}")
    return step


def _check_controller(controller: Any, names: tuple[str, ...] | None) -> None:
    """Raise `InputError` for one that is made for something else than what it is shown."""
    if not isinstance(controller, Tracking):
        return
    if controller.loop is None:
        if names is None:
            return
        raise InputError(
            f"the controller follows by the whole state, and the sensors read {listing(names)}; "
            'ctl.track_from_motors(reference) goes by these, hc.Sensors("all") reads all'
        )
    measured = controller.loop.measured
    if names is None:
        raise InputError(
            f"the controller goes by what is measured, {listing(measured)}: give sensors="
            "hc.Sensors(measured), or take ctl.track(reference), which follows by the whole state"
        )
    if names != measured:
        raise InputError(
            f"the controller goes by {listing(measured)}, in this order; the sensors read "
            f"{listing(names)}"
        )
