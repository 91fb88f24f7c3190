"""Observability: which motions the sensors determine at a closed configuration.

    T = (S c / u) Gamma        Gamma: a basis of the admissible velocities, scaled

The rank of T is the number of observed motions. Motions in its null space must be idle: bodies that
spin between two joints, and move nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import BranchError, InputError
from holoctl.base.linalg import null_space_by_svd, pivoted_qr, solved
from holoctl.base.tolerances import UNSEEN_MOTION
from holoctl.closing.idle.basis import idle_basis
from holoctl.closing.nearby_configurations import nearby_configurations
from holoctl.closing.rank import rank_within, scaled_jacobian
from holoctl.estimation.estimator_system import Borders
from holoctl.estimation.measurement_model import MeasurementModel
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = [
    "MEASURED",
    "Observability",
    "checked_observability",
    "first_borders",
    "moved_by",
    "noise_gain",
    "observability",
    "observability_of",
]

MEASURED = "the measured joints", "measure"
"""The words of messages for the joints whose positions are known, and for adding one to them."""


class Observability(NamedTuple):
    """Which motions are observed at a closed configuration.

    Attributes
    ----------
    observed : (nv, b) array
        An orthonormal basis of the motions that the sensors observe, scaled.
    unobserved : (nv, i) array
        An orthonormal basis of the motions that no sensor observes, scaled.
    jacobian : (m, nv) array
        The measurement Jacobian ``S c / u``: rates of the sensors by scaled velocities, scaled.
    """

    observed: Array
    unobserved: Array
    jacobian: Array


def observability(
    mech: Mechanism, part: Partition, sensors: MeasurementModel, q: Vector, t: float
) -> Observability:
    """Which motions the sensors observe at a closed configuration."""
    G, _ = scaled_jacobian(mech, q, t, part.rows)
    motions = null_space_by_svd(G, part.rank)[3]
    return observability_of(motions, sensors.scaled_jacobian(q))


def observability_of(motions: Array, S: Array) -> Observability:
    """Which of given motions are observed by sensors.

    Parameters
    ----------
    motions : (nv, k) array
        An orthonormal basis, scaled.
    S : (m, nv) array
        Rates of the sensors by scaled velocities, scaled.
    """
    T = S @ motions
    rank = rank_within(T, UNSEEN_MOTION) if T.size else 0
    _, _, observed, unobserved = null_space_by_svd(T, rank)
    return Observability(motions @ observed, motions @ unobserved, S)


def noise_gain(here: Observability, weights: Vector) -> float:
    """Standard deviation of the worst coordinate divided by that of the sensors, scaled.

        gamma = Gamma (T' W T)^-1 T' W        T = S Gamma: by the observed motions

    Sensors are assumed independent and equally accurate; unobserved motions are at rest.
    """
    T = here.jacobian @ here.observed
    TW = T.T * weights
    noisy = here.observed @ np.linalg.solve(TW @ T, TW)
    return float(np.sqrt((noisy * noisy).sum(axis=1).max(initial=0.0)))


def checked_observability(
    mech: Mechanism,
    part: Partition,
    sensors: MeasurementModel,
    q: Vector,
    t: float,
    words: tuple[str, str] = MEASURED,
) -> Observability:
    """`observability`, checked: all unobserved motions must be idle. `words`: as `MEASURED`.

    Raises
    ------
    InputError
        If the sensors do not observe a motion that is not idle.
    BranchError
        If they observe it nearby: the configuration is a dead point of the sensors.
    """
    here = observability(mech, part, sensors, q, t)
    if not here.unobserved.shape[1]:
        return here
    idle = idle_basis(mech, q, t, held=sensors.jacobian)
    left = here.unobserved - idle @ (idle.T @ here.unobserved)
    hidden = left[:, np.linalg.norm(left, axis=0) > 1e-6]
    if not hidden.shape[1]:
        return here
    rank = part.independent.size - here.unobserved.shape[1]
    for nearby in nearby_configurations(mech, q, t):
        if observability(mech, part, sensors, nearby, t).observed.shape[1] > rank:
            raise BranchError(
                f"{mech.name}: this configuration is a dead point of {words[0]}, "
                f"{listing(sensors.names)}: they do not determine how "
                f"{_hidden(mech, sensors, hidden)} move here, though they do nearby; start at "
                "another configuration",
                why="dead point",
            )
    raise InputError(
        f"{mech.name}: {words[0]}, {listing(sensors.names)}, do not determine how "
        f"{_hidden(mech, sensors, hidden)} move; {words[1]} one of these too"
    )


def _hidden(mech: Mechanism, sensors: MeasurementModel, motions: Array) -> str:
    """The coordinates that unobserved motions move, without the measured ones."""
    x = np.abs(motions).max(axis=1)
    x[sensors.columns[sensors.columns >= 0]] = 0.0
    names = np.array(mech.coordinate_names)[x > UNSEEN_MOTION * max(float(x.max()), 1e-300)]
    return listing(names.tolist(), 8)


def moved_by(mech: Mechanism, motions: Array) -> tuple[str, ...]:
    """The names of the coordinates that each of some motions moves, after a change of basis in
    which each motion moves few of them."""
    count = motions.shape[1]
    if not count:
        return ()
    pivots = pivoted_qr(motions.T, count).pivots[:count]
    apart = solved(np.asfortranarray(motions[pivots].T), np.asfortranarray(motions.T)).T
    found = []
    for x in apart.T:
        names = np.array(mech.coordinate_names)[np.abs(x) > 1e-6 * np.abs(x).max()]
        found.append(listing(names.tolist(), 6))
    return tuple(found)


def first_borders(here: Observability, weights: Vector, known: bool) -> Borders:
    """The borders of `EstimatorSystem` at the configuration of an `Observability`."""
    if known:
        return Borders(np.zeros((0, weights.size)), here.unobserved)
    return Borders((here.jacobian @ here.observed).T * weights, here.unobserved)
