"""The equations of parameters along a measured motion.

    y = W p        a row for each motor and sample, in units of its effort

At each sample, N a basis of the admissible velocities and N' B = Q [R1; 0] (dynamics/actuation.py):

    R1^-1 Q1' N' (W p + known) = u         of the motors
    Q2' N' (W p + known) = 0               of passive motions

With more motors than motions the driven rows are those of N' B u, whitened for equal noise of the
motors. Efforts and every column of W are filtered alike: see regression's docstring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import butter, sosfiltfilt

from holoctl.base.checks import Array, Vector, counted, freeze, positive, quiet
from holoctl.base.linalg import cholesky, least_squares, orthonormal_columns
from holoctl.dynamics.actuation import Actuation, actuation
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.identification.base_parameters import check_parameters
from holoctl.identification.measurements import Measurements
from holoctl.identification.parameters import Parameters, parameter_rows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.projection import Projection, project

__all__ = ["Regression", "equations_at", "regression", "row_labels"]


@dataclass(frozen=True, eq=False)
class Regression:
    """Equations of parameters, the result of `regression`.

    Attributes
    ----------
    model : Parameters
    measurements : Measurements
    t : (s,) array
        Times of the samples, s.
    q, v, a : (s, nq), (s, nv) and (s, nv) arrays
        Closed states there, and accelerations.
    W : (s, g, p) array
        Columns of the parameters: for each sample a row for each of g labels.
    y : (s, g) array
        Measured efforts, less those of known forces.
    labels : tuple of g str
        Motors; or motions, if there are more motors than motions; then passive motions.
    rate : float
        Samples per second, Hz; residuals of adjacent samples are independent up to this rate.
    """

    model: Parameters
    measurements: Measurements
    t: Vector
    q: Array
    v: Array
    a: Array
    W: Array
    y: Array
    labels: tuple[str, ...]
    rate: float

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        return (
            f"<Regression of {self.model.mech.name!r}: {counted(self.t.size, 'sample')} of "
            f"{counted(len(self.labels), 'row')}, {counted(self.W.shape[2], 'parameter')}>"
        )


def equations_at(model: Parameters, P: Projection, a: Vector, u: Vector) -> tuple[Array, Vector]:
    """W (g, p) and y (g,) at a state with acceleration a and motor efforts u."""
    act = actuation(P)
    W, known = parameter_rows(model, P, a, act.basis)
    all_of_it = np.column_stack([W, act.basis.T @ (P.mechanism.B @ u) - known])
    found = _in_efforts(act, all_of_it)
    return found[:, :-1], found[:, -1]


def _in_efforts(act: Actuation, X: Array) -> Array:
    """Rows along the basis N (k, n) as rows of efforts: of motors, then of passive motions."""
    f = act.factors
    driven = f.q[:, : act.rank].T @ X
    if f.r2.size == 0:
        u = np.zeros_like(driven)
        u[f.pivots] = f.solve_r1(driven)
        driven = u * act.u_scale[:, None]
    else:
        R = np.hstack([f.r1, f.r2])
        driven = cholesky(R @ R.T).whitened(driven.T).T * np.exp(np.log(act.u_scale).mean())
    return np.vstack([driven, f.q[:, act.rank :].T @ X])


def row_labels(mech: Mechanism, rank: int, k: int) -> tuple[str, ...]:
    """A label for each row of `equations_at`."""
    motors = (
        mech.actuator_names if rank == mech.nu else tuple(f"motion {i + 1}" for i in range(rank))
    )
    return (*motors, *(f"passive motion {i + 1}" for i in range(k - rank)))


@quiet
def regression(
    model: Parameters, data: Measurements, *, cutoff: float = 10.0, start: Any = None
) -> Regression:
    """The equations of parameters along a measured motion.

    Parameters
    ----------
    model : Parameters
    data : Measurements
    cutoff : float, optional
        Of the zero-phase filter, Hz.
    start : (nq,) array_like, optional
        A closed configuration on the branch of the motion, near its first sample. Default:
        assembled from ``mech.reference``.

    Returns
    -------
    Regression
    """
    check_parameters(model)
    mech, f = model.mech, positive("cutoff", cutoff, "Hz")
    dt = float(np.median(np.diff(data.t)))
    low = butter(4, 5.0 * f * 2.0 * dt, output="sos")
    x = sosfiltfilt(low, data.positions, axis=0)
    xd = np.gradient(x, dt, axis=0)
    xdd = np.gradient(xd, dt, axis=0)
    every = max(1, int(1.0 / (10.0 * f * dt)))
    at = np.arange(0, data.t.size, every)
    estimator = ClosedStateEstimator(mech, data.measured, start=start)
    estimator.resynchronise(x[0])
    states, rows = list[tuple[Vector, Vector, Vector]](), list[tuple[Array, Vector]]()
    for i in at:
        q, v = estimator.state(x[i], xd[i])
        P = project(mech, q, v, partition=estimator.partition)
        a = _acceleration(P, estimator, xdd[i])
        states.append((q, v, a))
        rows.append(equations_at(model, P, a, data.efforts[i]))
    W, y = (np.array(part) for part in zip(*rows, strict=True))
    out = butter(4, f * 2.0 * dt * every, output="sos")
    W, y = (sosfiltfilt(out, part, axis=0) for part in (W, y))
    keep = slice(10, -10, max(1, int(1.0 / (2.0 * f * dt * every))))
    q, v, a = (np.array(part)[keep] for part in zip(*states, strict=True))
    rank = estimator.partition.actuation_rank
    return Regression(
        model, data, data.t[at][keep], q, v, a, W[keep], y[keep],
        row_labels(mech, rank, P.k), 2.0 * f,
    )  # fmt: skip


def _acceleration(P: Projection, estimator: ClosedStateEstimator, xdd: Vector) -> Vector:
    """a (nv,) with these accelerations of the sensors: ``S a + Sdot v = xdd``."""
    readings = estimator.readings
    S, c = readings.jacobian(P.q), P.mechanism.column_scale
    drift = np.zeros(xdd.size)
    if readings.of_cut.size:
        drift[readings.columns < 0] = np.concatenate([j.bias(P.kinematics) for j in readings.cut])
    weight = 1.0 / readings.unit
    N = c[:, None] * orthonormal_columns(P.gamma * P.scale / c[:, None])
    found: Vector = P.bias + N @ least_squares(
        weight[:, None] * (S @ N), weight * (xdd - S @ P.bias - drift)
    )
    return found
