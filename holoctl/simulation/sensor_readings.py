"""What the sensors of a simulation read at a tick: of the state some time ago, noise, rounding."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Indices, Mask, Vector, listing
from holoctl.base.errors import InputError
from holoctl.base.tolerances import TICK_ROUNDED
from holoctl.constraints.joint_coordinates import TreeJoint
from holoctl.control.loop import Tracking
from holoctl.estimation.measurement_model import MeasurementModel, measurement_model
from holoctl.estimation.rate_filter import RateFilter
from holoctl.mechanism.mechanism import Mechanism
from holoctl.simulation.motion import PlantMotion, StepSolution
from holoctl.simulation.record import state_within
from holoctl.simulation.sensors import WHOLE_STATE, Sensors
from holoctl.tree.coordinates import translational
from holoctl.tree.frozen_model import plain

__all__ = ["SimulatedSensors", "simulated_sensors"]


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
    """The sensors of a run; they remember what is read later.

    Attributes
    ----------
    names : tuple of str or None
        What is measured; None for the whole state.
    model : SensorModel
        Of the plant that was read last.
    step : (k,) array
        To what positions are rounded; 0 where they are not.
    coming : iterator
        Instants from which something is still to be read, ascending; `next` is the first.
    kept : deque
        States that were there, not read yet: plant, q, v.
    """

    names: tuple[str, ...] | None
    model: SensorModel
    noise: tuple[Vector, Vector]
    step: Vector
    rate: float
    delay: float
    random: np.random.Generator
    coming: Iterator[float]
    filter: RateFilter | None
    next: float = field(init=False)
    kept: deque[tuple[Mechanism, Vector, Vector]] = field(default_factory=deque)
    last: float = -1.0
    start: tuple[Mechanism, Vector, Vector] | None = None

    def __post_init__(self) -> None:
        self.next = next(self.coming, np.inf)

    def keep(self, motion: PlantMotion, piece: StepSolution) -> None:
        """Keep the states of a piece that are read later, but for its end."""
        while self.next < piece.stop.t:
            state = state_within(motion, piece, self.next)
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
        if plant is not self.model.plant:
            self.model = _same_model(plant, self.names, self.model)
        x, rates = self._read(q, v)
        if self.filter is not None:
            self._filter(self.filter, x, rates, t)
        self.last = t
        return x, rates

    def _read(self, q: Vector, v: Vector) -> tuple[Vector, Vector]:
        model, m = self.model, len(self.model.labels)
        if any(sigma.any() for sigma in self.noise):
            noise, of_rates = (sigma * self.random.normal(size=m) for sigma in self.noise)
            x, rates = model.positions(q, noise), model.rates(q, v) + of_rates
        else:
            x, rates = model.positions(q, None), model.rates(q, v)
        rounding = self.step > 0.0
        if rounding.any():
            singles, step = model.singles(x), self.step[rounding]
            count = singles[rounding] / step
            fine = np.abs(count) < 2.0**52  # else a float is a whole count as it is
            singles[rounding] = np.where(fine, np.rint(count) * step, singles[rounding])
            model.put(x, singles)
        return x, rates

    def _filter(self, by: RateFilter, x: Vector, rates: Vector, t: float) -> None:
        """Put the rates of a filter where there is a position for each."""
        single, singles = self.model.single, self.model.singles(x)
        if self.last < 0.0:
            by.reset(singles, rates[single])
            return
        h = t - self.last  # the last tick may be shorter
        whole = abs(h * self.rate - 1.0) <= TICK_ROUNDED
        rates[single] = by.rate(singles, None if whole else h)


def simulated_sensors(
    controller: Any, sensors: Any, mech: Mechanism, plant: Mechanism, ticks: Sequence[float],
    rate: float,
) -> SimulatedSensors | None:  # fmt: skip
    """The sensors that show a controller the plant, from the start on; None for the state as it is.

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
    model = _model(mech, names)
    if plant is not mech:
        model = _same_model(plant, names, model)
    m, single = len(model.labels), model.single
    positions, rates = (_spread("noise", sigma, m) for sigma in sensors.noise)
    rate_filter = None
    if sensors.rate_bandwidth is not None:
        left = ~np.isin(np.arange(m), single)
        if np.any(rates) and not left.any():
            raise InputError(
                "noise of rates, but with rate_bandwidth they are those of a filter and not "
                "measured: give noise=(positions, 0)"
            )
        try:
            rate_filter = RateFilter(sensors.rate_bandwidth, 1.0 / rate, model.turns)
        except InputError as error:
            raise InputError(f"rate_bandwidth of the sensors: {error}") from None
        rates = np.where(left, rates, 0.0)
    step = np.zeros(single.size) if sensors.counts is None else _steps(model, sensors.counts)
    delay = sensors.delay if sensors.delay * rate > TICK_ROUNDED else 0.0
    return SimulatedSensors(
        names, model, (positions, rates), step, rate, delay, np.random.default_rng(sensors.seed),
        _coming(ticks, delay, rate), rate_filter,
    )  # fmt: skip


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


# -------------------------------------------------------------------------------------- models


def _model(plant: Mechanism, names: tuple[str, ...] | None) -> SensorModel:
    return _of_state(plant) if names is None else _of_joints(plant, measurement_model(plant, names))


def _same_model(
    plant: Mechanism, names: tuple[str, ...] | None, before: SensorModel
) -> SensorModel:
    """The same of another plant."""
    model = _model(plant, names)
    if model.labels != before.labels:
        raise InputError(
            f"of the plant {plant.name!r} the sensors read {listing(model.labels)}; of "
            f"{before.plant.name!r} {listing(before.labels)}"
        )
    return model


def _of_state(plant: Mechanism) -> SensorModel:
    model, joints = plain(plant.model), list[_MeasuredJoint]()
    lengths = translational(model)
    for j in range(1, model.njoints):
        nq, nv = model.nqs[j], model.nvs[j]
        of_joint = lengths[model.idx_vs[j] :][:nv].tolist()
        joints.append(_MeasuredJoint(nv, nq, of_joint, nq == nv or (nq, nv) == (2, 1), nq != nv))
    single, places, linear, cosine = _singles(joints)
    return SensorModel(plant, None, plant.coordinate_names, single, places, cosine, linear, cosine)


def _of_joints(plant: Mechanism, sensors: MeasurementModel) -> SensorModel:
    lengths, joints = translational(plain(plant.model)), list[_MeasuredJoint]()
    for joint in sensors.joints:
        count = size = joint.count
        if isinstance(joint, TreeJoint):
            size = 1 if joint.turning else joint.places.size
            linear = lengths[joint.columns].tolist()
        else:
            linear = [axis.linear for axis in joint.axes]
        joints.append(_MeasuredJoint(count, size, linear, size == count))
    single, places, is_length, cosine = _singles(joints)
    turns = sensors.turns[single]
    return SensorModel(plant, sensors, sensors.labels, single, places, cosine, is_length, turns)


class _MeasuredJoint(NamedTuple):
    """Rates and numbers of a joint among those that are read; which of its coordinates are lengths;
    whether each has a position, as a cosine with the sine behind it, or as it is."""

    rates: int
    numbers: int
    linear: list[bool]
    single: bool
    cosine: bool = False


def _singles(joints: Sequence[_MeasuredJoint]) -> tuple[Indices, Indices, Mask, Mask]:
    """`single`, `places`, `linear` and `cosine` of a `SensorModel`."""
    single, places, linear, cosine = list[int](), list[int](), list[bool](), list[bool]()
    rate = number = 0
    for joint in joints:
        if joint.single:
            single += range(rate, rate + joint.rates)
            places += range(number, number + joint.rates)
            linear += joint.linear
            cosine += [joint.cosine] * joint.rates
        rate, number = rate + joint.rates, number + joint.numbers
    return (
        np.array(single, dtype=np.intp), np.array(places, dtype=np.intp),
        np.array(linear, dtype=bool), np.array(cosine, dtype=bool),
    )  # fmt: skip


def _spread(name: str, given: float | tuple[float, ...], m: int) -> Vector:
    x = np.array(given)
    if x.ndim and x.size != m:
        raise InputError(
            f"{name} of the sensors must be a number, or shape ({m},), one for each rate that is "
            f"measured; got shape {x.shape}"
        )
    return np.broadcast_to(x, (m,)).copy()


def _steps(model: SensorModel, counts: float | tuple[float, ...]) -> Vector:
    """To what single positions are rounded; 0 where they are not."""
    all_counts = _spread("counts", counts, len(model.labels))
    rest = ~np.isin(np.arange(all_counts.size), model.single)
    if isinstance(counts, tuple) and np.isfinite(all_counts[rest]).any():
        wrong = [model.labels[i] for i in np.flatnonzero(rest & np.isfinite(all_counts))]
        raise InputError(
            f"counts of the sensors: {listing(wrong)} have no position for each coordinate, which "
            "could be rounded; give inf for them"
        )
    with np.errstate(over="ignore"):
        step = np.where(model.linear, 1.0, 2.0 * np.pi) / all_counts[model.single]
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
