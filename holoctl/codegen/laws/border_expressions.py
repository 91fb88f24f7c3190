"""The borders of K at the configurations where pivots are chosen, and where they start.

    K = [G; A S / u; N' / c]        A: of sensors that are more than the motions they see
                                    N: idle motions, that no sensor sees, held still

N is taken so that bodies that spin apart from each other have columns of their own. Elsewhere both
are what the C makes of the first ones by K there (templates/closed_state.c.in). The oracle is
estimation/estimator_system.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from holoctl.base.checks import Array
from holoctl.base.linalg import orthonormal_columns, pivoted_qr, solved
from holoctl.closing.rank import scaled_jacobian
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.estimation.measurement_model import MeasurementModel
from holoctl.estimation.observability import observability
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["BorderExpressions", "Sensing", "borders_at", "estimator_with", "sensing_of"]


@dataclass(frozen=True, eq=False)
class Sensing:
    """The sensors, their weights and the start of an estimator.

    Attributes
    ----------
    sensors : MeasurementModel
    weights : (m,) array
        Of the sensors, scaled.
    start : (nq,) array
    """

    sensors: MeasurementModel
    weights: Array
    start: Array


@dataclass(frozen=True, eq=False)
class BorderExpressions:
    """A and N at a configuration, by rates in their own units.

    Attributes
    ----------
    A : (b, m) array
        Empty, (0, m), where sensors are no more than the motions they see.
    N : (nv, i) array
    """

    A: Array
    N: Array


def sensing_of(estimator: ClosedStateEstimator) -> Sensing:
    """What `ClosedStateEstimator` was made of."""
    return Sensing(estimator.readings, estimator.scaled_weights, estimator.start)


def estimator_with(
    mech: Mechanism, part: Partition, measured: Any, given: ClosedStateEstimator | None
) -> ClosedStateEstimator:
    """The estimator with the rows of a partition: of the given joints, else that of a controller,
    else of the motors."""
    if given is None or measured is not None:
        return ClosedStateEstimator(mech, measured, partition=part)
    return given.with_rows(part)


def borders_at(
    mech: Mechanism, part: Partition, sensing: Sensing, places: Sequence[Array]
) -> list[BorderExpressions]:
    """The borders at the start, then those at each of these configurations."""
    sensors, c, u = sensing.sensors, mech.column_scale, sensing.sensors.unit
    here = observability(mech, part, sensors, sensing.start, 0.0)
    b, i = here.observed.shape[1], here.unobserved.shape[1]
    weighed = u.size > b
    N = _apart(mech, part, sensing, here.unobserved, places) if i else np.zeros((mech.nv, 0))
    A = (here.jacobian @ here.observed).T * sensing.weights if weighed else np.zeros((0, u.size))
    found = [BorderExpressions(A / u, N / c[:, None])]
    fits = A if weighed else np.eye(b)
    for q in places:
        G, _ = scaled_jacobian(mech, q, 0.0, part.rows)
        S = sensors.scaled_jacobian(q)
        K = np.asfortranarray(np.vstack([G, fits @ S, N.T]))
        if not np.linalg.cond(K) < 1e8:
            found.append(found[0])
            continue
        X = solved(K, np.asfortranarray(np.eye(mech.nv)[:, part.rank :]))
        Z = np.where(np.abs(X[:, b:]) > 1e-12, X[:, b:], 0.0)
        Gamma = orthonormal_columns(np.asfortranarray(X[:, :b]))
        A_here = (S @ Gamma).T * sensing.weights if weighed else A
        found.append(
            BorderExpressions(A_here / u, (orthonormal_columns(Z) if i else Z) / c[:, None])
        )
    return found


def _apart(
    mech: Mechanism, part: Partition, sensing: Sensing, unseen: Array, places: Sequence[Array]
) -> Array:
    """The same motions, where those that share no coordinate anywhere have columns apart."""
    shared = np.abs(unseen @ unseen.T) > 1e-9
    for q in places:
        there = observability(mech, part, sensing.sensors, q, 0.0).unobserved
        if there.shape == unseen.shape:
            shared |= np.abs(there @ there.T) > 1e-9
    count, label = connected_components(shared, directed=False)
    columns = []
    for k in range(count):
        own = np.where((label == k)[:, None], unseen, 0.0)
        rank = int(np.round(np.sum(own * own)))
        if rank:
            columns.append(pivoted_qr(np.asfortranarray(own), rank).q[:, :rank])
    return np.hstack(columns)
