"""Actuation: the motions that motors drive, and the efforts that balance a given force.

    A = N' B = Q [R1 R2; 0 0] P'        N: gamma made orthonormal
    gamma' B u = gamma' w               u: least squares in it, least norm in u

The first columns of N Q are the motions that motors drive, the others the passive ones.
Derivation: docs/derivations.md, "Inverse dynamics".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector, listing, read_only, vector
from holoctl.base.errors import InputError, NotActuatedError, SingularityError
from holoctl.base.linalg import PivotedQR, orthonormal_columns, pivoted_qr
from holoctl.base.tolerances import ACTUATION_SINGULAR, MOST_UNEQUAL, UNIT
from holoctl.dynamics.lost_motion import lost_motion
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.projection import Projection

__all__ = [
    "Actuation",
    "actuation",
    "effort_scales",
    "effort_weights",
    "scaled_motors",
    "target_consistent",
]

TARGET_CONSISTENT = 1e-6
"""A target may violate the constraints by this much, relative to its size."""


class Actuation(NamedTuple):
    """``A = N' B`` factored, ``A P = Q [R1 R2; 0 0]``, cut at its rank rho.

    N is gamma made orthonormal in scaled coordinates, so that rank, condition number and least
    squares do not depend on the choice of coordinates; B is scaled by `u_scale`.

    Attributes
    ----------
    basis : (nv, k) array
        N, for unscaled velocities: ``v = N z``.
    factors : PivotedQR
        The first rho columns of Q are the driven motions, the others the passive.
    driven : (nv, rho) array
        Basis of the motions that the motors drive.
    u_scale : (nu,) array
        u = u_scale x scaled u.
    cost : (nu,) array
        Size of each scaled effort in the norm by which redundant motors share efforts.
    rank : int
        rho: the number of independent motions that the motors drive.
    condition : float
        Condition number of R1.
    """

    basis: Array
    factors: PivotedQR
    driven: Array
    u_scale: Vector
    cost: Vector
    rank: int
    condition: float

    @property
    def passive(self) -> Array:
        """(nv, k - rho): basis of the motions that no motor drives."""
        return self.basis @ self.factors.q[:, self.rank :]

    def efforts(self, w: Vector) -> Vector:
        """u with ``gamma' B u = gamma' w``: least squares in it, least norm in u."""
        f = self.factors
        rhs = w.dot(self.driven)
        scaled = np.zeros(self.u_scale.size)
        if f.r2.size == 0:
            scaled[f.pivots] = f.solve_r1(rhs)
        else:
            cost = self.cost[f.pivots]
            wide = pivoted_qr((np.hstack([f.r1, f.r2]) / cost).T, self.rank)
            scaled[f.pivots] = wide.shortest(rhs) / cost
        return self.u_scale * scaled


def actuation(P: Projection, weights: Vector | None = None) -> Actuation:
    """Factor gamma' B with the rank from the partition.

    Raises
    ------
    NotActuatedError
        If the mechanism cannot move, or the motors drive none of its motions.
    SingularityError
        If the motors drive fewer motions here than nearby.
    """
    mech, rho = P.mechanism, P.partition.actuation_rank
    if P.k == 0:
        raise NotActuatedError(
            f"{mech.name} has no degree of freedom ({mech.nv} coordinates, constraints of rank "
            f"{P.rank}), so torques cannot move it and are undetermined"
        )
    if rho == 0:
        raise NotActuatedError(
            f"{mech.name}: the motors {listing(mech.actuator_names)} drive none of its "
            f"{P.k} motions"
        )
    u_scale, cost = effort_scales(mech, weights)
    c = mech.column_scale[:, None]
    basis = c * orthonormal_columns(P.gamma * P.scale / c)
    E = basis.T.dot(mech.B) * u_scale
    factors = pivoted_qr(E, rho, size=UNIT)
    condition = factors.condition
    if condition > ACTUATION_SINGULAR:
        motions, sizes, _ = np.linalg.svd(E)
        lost = lost_motion(
            mech, float(sizes[rho - 1]), (basis / c) @ motions[:, rho - 1], "all motors hold"
        )
        raise SingularityError(
            f"{mech.name}: the motors {listing(mech.actuator_names)} do not determine the "
            f"motion at this configuration (condition number of gamma' B "
            f"{condition:.1e}): an actuation singularity, such as a dead point, where "
            f"{lost.words}; no torque is given there",
            condition=condition, names=mech.actuator_names, kind="type 2", value=lost.value,
            q=P.q.copy(), motion=lost.words,
        )  # fmt: skip
    driven = basis.dot(factors.q[:, :rho])
    return Actuation(basis, factors, driven, u_scale, cost, rho, condition)


def target_consistent(tolerance: float) -> float:
    """Largest violation of the constraints by a target, relative to its size; `tolerance` is that
    of rounded geometry."""
    return max(TARGET_CONSISTENT, tolerance)


def effort_scales(mech: Mechanism, weights: Vector | None = None) -> tuple[Vector, Vector]:
    """`u_scale` and `cost` of `Actuation`: Dc B u_scale has columns of norm one."""

    def constants() -> tuple[Vector, Vector]:
        u_scale = 1.0 / np.linalg.norm(mech.column_scale[:, None] * mech.B, axis=0)
        return read_only(u_scale), read_only(np.ones(mech.nu))

    u_scale, alike = mech.per_thread("effort_scales", constants)
    return u_scale, alike if weights is None else np.sqrt(weights) * u_scale


def scaled_motors(mech: Mechanism) -> Array:
    """B (nv, nu) in scaled coordinates, with columns of norm one."""
    found: Array = mech.column_scale[:, None] * mech.B * effort_scales(mech)[0]
    return found


def effort_weights(mech: Mechanism, weights: Any) -> Vector | None:
    """Weights of the motor efforts, checked; read-only."""
    if weights is None:
        return None
    w = vector("weights", weights, mech.nu, "one weight a motor")
    if w.min() <= 0.0:
        raise InputError(f"weights of the efforts must be above zero; got {w}")
    if w.max() > MOST_UNEQUAL * w.min():
        raise InputError(
            f"weights of the efforts may differ by a factor of {MOST_UNEQUAL:.0e}; got {w}"
        )
    w.setflags(write=False)
    return w
