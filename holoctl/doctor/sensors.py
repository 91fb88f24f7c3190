"""The motions that sensors observe, their noise gain, and the additional sensor that helps most.

    T = (S c / u) Gamma        Gamma: the motions, an orthonormal basis of them, scaled

Sensors are judged here and at configurations nearby, by the largest noise gain among them.
Reference: docs/doctor.md, "Sensors"; observability and noise gain: estimation/observability.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Indices, Mask, Vector
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import pivoted_qr
from holoctl.base.tolerances import UNSEEN_MOTION
from holoctl.closing.body_graph import bodies_at
from holoctl.closing.idle.basis import idle_basis
from holoctl.closing.rank import rank_within
from holoctl.closing.sampled_configurations import Sample, Samples
from holoctl.doctor.motion_types import Motion, described, without
from holoctl.estimation.measurement_model import (
    MeasurementModel,
    measurement_model,
    scalar_measurements,
)
from holoctl.estimation.observability import noise_gain, observability_of
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import plain

__all__ = ["SensorReport", "reported_sensors", "sensors"]

HELPFUL_SENSOR = 0.9
"""An additional sensor helps if it reduces the noise gain to at most this fraction."""


INF, NONE = float("inf"), np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class SensorReport:
    """The motions that sensors observe.

    Attributes
    ----------
    measured : tuple of str
        The sensors; empty if none are examined.
    seen : int
        The number of motions that they observe in general.
    idle : int
        The number of idle motions that they do not observe, which need no sensor.
    unseen : tuple of Motion
        The other motions that they do not observe.
    gain, nearby_gain : float
        Noise gain: the standard deviation of the least accurate coordinate divided by that of the
        sensors, scaled; here, and the largest at configurations nearby. Inf if the sensors do not
        suffice, and at a dead point of the sensors.
    more : tuple of str
        The additional sensor that helps most. If motions are unobserved, all are observed with it,
        at the least gain (several names if one is not enough, none if no joints suffice); else it
        lowers the gain most, by at least a tenth; empty if no sensor does.
    more_gain, more_nearby_gain : float
        The gains with the additional sensor.
    """

    measured: tuple[str, ...] = ()
    seen: int = 0
    idle: int = 0
    unseen: tuple[Motion, ...] = ()
    gain: float = INF
    nearby_gain: float = INF
    more: tuple[str, ...] = ()
    more_gain: float = INF
    more_nearby_gain: float = INF

    @property
    def suffice(self) -> bool:
        """Whether they determine the state in general, except for idle motions."""
        return bool(self.measured) and not self.unseen


class _SensedPlace(NamedTuple):
    """A configuration with its motions and scaled measurement Jacobians."""

    at: Sample
    motions: Array  # (nv, k), orthonormal
    S: Array  # (m, nv), of the sensors
    more: Array  # (n, nv), of the sensors that might be added


def reported_sensors(mech: Mechanism, measured: Iterable[str] | None) -> MeasurementModel | None:
    """The sensors of a report: those named, else the motors; None if motors do not act on joints.

    Raises
    ------
    InputError
        For names that are no joints, as `measurement_model`.
    """
    if measured is None and (not mech.actuated or mech.motors.missing):
        return None
    return measurement_model(mech, measured)


def sensors(
    mech: Mechanism, s: Samples, measured: MeasurementModel | None, t: float
) -> SensorReport:
    """Judge the sensors at all samples."""
    if measured is None:
        return SensorReport()
    if not s.finite_dof:
        return SensorReport(measured.names, gain=0.0, nearby_gain=0.0)
    single = scalar_measurements(mech)
    labels, which, balls = _others(mech, measured, single)
    places = []
    for at, motions in _configurations(s):
        more = single.scaled_jacobian(at.q)[which] if single else np.zeros((0, mech.nv))
        places.append(_SensedPlace(at, motions, measured.scaled_jacobian(at.q), more))
    sights = [observability_of(p.motions, p.S) for p in places]
    usual = max(range(len(places)), key=lambda i: sights[i].observed.shape[1])
    place, here, own = places[usual], sights[usual], places[0].at is s.here
    idle = _idle(mech, place.at, measured, t) if here.unobserved.shape[1] else here.unobserved
    hidden = without(here.unobserved, idle)
    moved = place.more @ idle, place.more @ hidden
    gains = _gains(places, NONE)
    found, with_more = _most_helpful(places, np.flatnonzero(~balls), moved, gains)
    if hidden.shape[1] and not found.size:
        found, with_more = _most_helpful(places, np.arange(which.size), moved, gains)
    return SensorReport(
        measured.names, here.observed.shape[1], idle.shape[1],
        described(bodies_at(mech, place.at, t), hidden),
        *((INF, INF) if hidden.shape[1] else _reported(gains, own)),
        tuple(labels[i] for i in found), *_reported(with_more, own),
    )  # fmt: skip


def _configurations(s: Samples) -> list[tuple[Sample, Array]]:
    """Configurations with their motions; that of the report first unless it is a bifurcation."""
    found = list(zip(s.generic, s.tangents, strict=True))
    if s.generic[0] is not s.here and s.here.null.shape[1] == s.finite_dof:
        found.insert(0, (s.here, s.here.null))
    return found


def _others(
    mech: Mechanism, measured: MeasurementModel, single: MeasurementModel | None
) -> tuple[list[str], Indices, Mask]:
    """Joints of one coordinate that are not measured: their names, their indices in `single`, and
    whether they are hinges of a ball joint, where no sensor can be mounted."""
    if single is None:
        return [], NONE, np.zeros(0, dtype=bool)
    columns = set(measured.columns[measured.columns >= 0].tolist())
    which = [
        i
        for i, (name, column) in enumerate(zip(single.labels, single.columns, strict=True))
        if column not in columns and name not in measured.labels
    ]
    in_balls = _in_balls(mech)
    balls = [single.columns[i] >= 0 and in_balls[single.columns[i]] for i in which]
    return [single.labels[i] for i in which], np.array(which, dtype=np.intp), np.array(balls, bool)


def _in_balls(mech: Mechanism) -> Mask:
    """A mask (nv,): coordinates of three or more joints in series without mass between them."""
    model = plain(mech.model)
    row = list(range(model.njoints))  # the first joint of each series
    for j in range(2, model.njoints):
        above = int(model.parents[j])
        if above > 0 and model.inertias[above].mass == 0.0:
            row[j] = row[above]
    many = np.bincount(row, minlength=model.njoints) > 2
    found: Mask = many[np.array(row)[mech.joint_of]]
    return found


def _idle(mech: Mechanism, at: Sample, measured: MeasurementModel, t: float) -> Array:
    """The idle motions in which these sensors are at rest."""
    try:
        return idle_basis(mech, at.q, t, held=measured.jacobian)
    except SingularityError:
        return np.zeros((mech.nv, 0))


def _gains(places: Sequence[_SensedPlace], added: Indices) -> Vector:
    """Noise gains with some sensors added; inf where fewer motions are observed than elsewhere."""
    sights = [observability_of(p.motions, np.vstack([p.S, p.more[added]])) for p in places]
    most = max(x.observed.shape[1] for x in sights)
    weights = np.ones(places[0].S.shape[0] + added.size)
    return np.array(
        [noise_gain(x, weights) if x.observed.shape[1] == most else INF for x in sights]
    )


def _reported(gains: Vector, own: bool) -> tuple[float, float]:
    """The gain here and the largest nearby; `own`: whether the first gain is that here."""
    nearby = gains[1:] if own and gains.size > 1 else gains
    return float(gains[0]) if own else INF, float(nearby.max())


def _most_helpful(
    places: Sequence[_SensedPlace], among: Indices, moved: tuple[Array, Array], gains: Vector
) -> tuple[Indices, Vector]:
    """The sensors to be added, and the gains with them; none, and inf, if no sensor helps.

    Sensors must help at all configurations; of these the best one at the first configuration is
    chosen. There, equal legs around a centre have equal gains, and the first one is named; nearby,
    rounding would choose one.
    """
    of_idle, of_hidden = (what[among] for what in moved)
    enough = HELPFUL_SENSOR * gains.max() if not of_hidden.shape[1] else INF
    found, best, least = NONE, np.full(gains.size, INF), INF
    for some in _options(of_idle, of_hidden):
        added = among[some]
        with_it = _gains(places, added)
        better = with_it.max() < enough and with_it[0] < least
        if better or (not found.size and of_hidden.shape[1]):
            found, best, least = added, with_it, with_it[0] * (1.0 - 1e-6)
    return found, best


def _options(of_idle: Array, of_hidden: Array) -> Iterator[Indices]:
    """Sets of sensors that observe all hidden motions, from their rates in idle and hidden motions.

    A sensor that also moves with an idle motion observes only the sum of both motions. So such
    sensors are taken only if the others do not suffice.
    """
    n, hidden = of_hidden.shape
    if not hidden:
        yield from np.arange(n)[:, None]
        return
    clean = np.flatnonzero(np.abs(of_idle).max(axis=1, initial=0.0) <= UNSEEN_MOTION)
    if hidden == 1:
        alone = clean[np.abs(of_hidden[clean, 0]) > UNSEEN_MOTION]
        if alone.size:
            yield from alone[:, None]
            return
    both = np.hstack([of_hidden, of_idle])
    for rows, moved in ((clean, of_hidden), (np.arange(n), both)):
        some = moved[rows]
        if some.size and rank_within(some, UNSEEN_MOTION) == some.shape[1]:
            yield rows[pivoted_qr(some.T, some.shape[1]).pivots[: some.shape[1]]]
            return
