"""Actuation of the motions: gamma' B, its rank, and the motions that no motor drives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import singular_values
from holoctl.closing.sampled_configurations import Sample, still
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["ActuationReport", "actuation", "motor_rows", "verdict"]


@dataclass(frozen=True, eq=False)
class ActuationReport:
    """The motors on the admissible motions at one configuration.

    Attributes
    ----------
    rank : int
        The rank of gamma' B.
    values : array
        Singular values of gamma' B, for an orthonormal gamma and motors of unit length (scaled).
    undriven : (nv, n) array
        Orthonormal basis of the motions that move no motor, scaled coordinates.
    """

    rank: int
    values: Vector
    undriven: Array


def actuation(mech: Mechanism, at: Sample, gamma: Array) -> ActuationReport:
    """``gamma' B`` at one configuration, for motions gamma in scaled coordinates."""
    motors = motor_rows(mech)
    A = motors @ gamma  # (nu, k)
    rank, undriven = still(at, motors, gamma)
    values = singular_values(A)
    return ActuationReport(rank, values, undriven)


def motor_rows(mech: Mechanism) -> Array:
    """(nu, nv): the rates of the motors by scaled velocities, rows of length one."""
    B = mech.column_scale[:, None] * mech.B
    rows: Array = (B / np.linalg.norm(B, axis=0)).T
    return rows


def verdict(motors: int, rank: int, dof: int) -> str:
    """The field `MobilityReport.actuation` for a number of motors, their rank, and the dof."""
    if motors == 0:
        return "none"
    if rank == motors == dof:
        return "fully"
    if rank == motors:
        return "under"
    return "redundantly" if rank == dof else "both"
