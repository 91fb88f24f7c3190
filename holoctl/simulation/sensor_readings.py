"""Readings of simulated sensors at a tick: the delayed state with noise and quantisation."""

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
    """The measured positions and rates of a plant.

    Attributes
    ----------
    plant : Mechanism
    readings : MeasurementModel or None
        None if the whole state is measured.
    labels : tuple of m str
        A name for each rate.
    single : (k,) int array
        Indices of the rates whose coordinate is a single position; parts of a ball, a free or a
        planar joint are not.
    places : (k,) int array
        Indices of these positions in the measured vector; for a continuous joint in a whole
        configuration, the index of the cosine, which is followed by the sine.
    cosine : (k,) bool array
        Whether the position is measured as a cosine and a sine.
    linear : (k,) bool array
        Whether the position is a length.
    turns : (k,) bool array
        Whether the position is an angle that is known up to whole turns.
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
        """The measured positions at a configuration; noise is a step in the tangent space."""
        model, sensors = self.plant.model, self.readings
        if sensors is None:
            return q.copy() if noise is None else pin.integrate(model, q, noise)
        if noise is None:
            return sensors.at(q)
        own = sensors.columns >= 0
        step = np.zeros(model.nv)
        step[sensors.columns[own]] = noise[own]
        x = sensors.at(pin.integrate(model, q, step))
        if sensors.of_cut.size:  # cut joints get their own noise, not that of the tree joints
            x[sensors.of_cut] = sensors.at(q)[sensors.of_cut] + noise[~own]
        return x

    def rates(self, q: Vector, v: Vector) -> Vector:
        """The measured rates at a state."""
        return v.copy() if self.readings is None else self.readings.rates(q, v)

    def singles(self, x: Vector) -> Vector:
        """The single positions in the measured vector x."""
        found, there = x[self.places], self.places[self.cosine]
        found[self.cosine] = np.arctan2(x[there + 1], x[there])
        return found

    def put(self, x: Vector, singles: Vector) -> None:
        """Write single positions into the measured vector x."""
        there, angles = self.places[self.cosine], singles[self.cosine]
        x[self.places[~self.cosine]] = singles[~self.cosine]
        x[there], x[there + 1] = np.cos(angles), np.sin(angles)


@dataclass
class SimulatedSensors:
    """The sensors of a run; they store the states that are read after a delay.

    Attributes
    ----------
    names : tuple of str or None
        Names of the measured joints; None for the whole state.
    model : SensorModel
        Model of the plant that was read last.
    noise : pair of (m,) arrays
        Standard deviations of positions and of rates.
    step : (k,) array
        Resolution of the single positions; 0 for those that are not rounded.
    rate, delay : float
        Ticks per second; delay, s.
    random : numpy.random.Generator
    coming : iterator
        Increasing instants of the states that are still to be stored; `next` is the first, s.
    filter : RateFilter or None
        Makes the rates of single positions; None if rates are measured.
    kept : deque
        Stored states that have not been read yet: plant, q, v.
    last : float
        Time of the last reading, s; negative before the first.
    start : (plant, q, v) or None
        The state at the start, which is read until the delay is over.
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
        """Store the states of a piece, without its end, that are read later."""
        while self.next < piece.stop.t:
            state = state_within(motion, piece, self.next)
            self.kept.append((motion.plant, state.q, state.v))
            self.next = next(self.coming, np.inf)

    def at_tick(self, motion: PlantMotion, t: float) -> tuple[Vector, Vector]:
        """The measured positions and rates at a tick."""
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
            fine = np.abs(count) < 2.0**52  # larger floats are whole numbers already
            singles[rounding] = np.where(fine, np.rint(count) * step, singles[rounding])
            model.put(x, singles)
        return x, rates

    def _filter(self, by: RateFilter, x: Vector, rates: Vector, t: float) -> None:
        """Replace the rates of single positions by those of the filter `by`."""
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
    """The sensors of a run, which read the plant for the controller; None for the exact state.

    Raises
    ------
    InputError
        If `sensors` is not a `Sensors` value, a name is not that of a joint, a shape does not match
        the measurements, the bandwidth is too large for the ticks, the measured coordinates of the
        plant differ from those of the model, or the controller uses other measurements.
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
                "noise of rates was given, but with rate_bandwidth the rates come from a filter "
                "and are not measured: give noise=(positions, 0)"
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
    """The instant of the state that is read at a tick, s; rounded to a tick if it is close to
    one."""
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
    """The sensor model of another plant; `InputError` if it measures other coordinates."""
    model = _model(plant, names)
    if model.labels != before.labels:
        raise InputError(
            f"the sensors read {listing(model.labels)} of the plant {plant.name!r}, but "
            f"{listing(before.labels)} of {before.plant.name!r}; both must have the same "
            "measured coordinates"
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
    """A measured joint: its numbers of rates and of positions, which of its coordinates are
    lengths, whether each coordinate is a single position, and whether that is a cosine followed by
    a sine."""

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
    """Resolution of the single positions, rad or m; 0 for those that are not rounded."""
    all_counts = _spread("counts", counts, len(model.labels))
    rest = ~np.isin(np.arange(all_counts.size), model.single)
    if isinstance(counts, tuple) and np.isfinite(all_counts[rest]).any():
        wrong = [model.labels[i] for i in np.flatnonzero(rest & np.isfinite(all_counts))]
        raise InputError(
            f"counts of the sensors: the coordinates {listing(wrong)} are no single positions that "
            "could be rounded; give inf for them"
        )
    with np.errstate(over="ignore"):
        step = np.where(model.linear, 1.0, 2.0 * np.pi) / all_counts[model.single]
    if not np.isfinite(step).all():
        raise InputError(
            f"counts of the sensors are too small: the resolution 1 / counts is not finite; got "
            f"{counts}"
        )
    return step


def _check_controller(controller: Any, names: tuple[str, ...] | None) -> None:
    """Raise `InputError` if a controller of the library uses other measurements than `names`."""
    if not isinstance(controller, Tracking):
        return
    if controller.loop is None:
        if names is None:
            return
        raise InputError(
            f"the controller needs the whole state, and the sensors read {listing(names)}; "
            'take ctl.track_from_motors(reference), which uses these, or hc.Sensors("all")'
        )
    measured = controller.loop.measured
    if names is None:
        raise InputError(
            f"the controller needs measurements of {listing(measured)}: give sensors="
            "hc.Sensors(measured), or take ctl.track(reference), which uses the whole state"
        )
    if names != measured:
        raise InputError(
            f"the controller needs measurements of {listing(measured)}, in this order; the sensors "
            f"read {listing(names)}"
        )
