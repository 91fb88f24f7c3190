"""Rows of the equation of motion in units of motor efforts.

    L (M a + h - F) = Mu u        u: measured efforts

    driven, as many motors as driven motions      L = (D' B)^-1 D'              Mu = 1
    driven, more motors                           L = C^-1 D', C C' = D' B S B' D     Mu = L B
    passive                                       L = Z'                        Mu = 0

D and Z are bases of the driven and of the passive motions (dynamics/actuation.py), S scales of the
motors: equal noise of the motors is then independent noise of the rows. All rows are smooth
functions of time, as a filter requires: D and Z follow those of the state before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import cholesky, largest, lu, solved
from holoctl.dynamics.actuation import actuation, effort_scales
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.projection import Projection

__all__ = ["WORST_CONDITION", "EffortRows", "effort_rows", "row_labels"]

WORST_CONDITION = 1e3
"""Equations at states where gamma' B has a larger condition number are left out: errors of the
state would count more than the motion."""


class EffortRows(NamedTuple):
    """Rows at a state.

    Attributes
    ----------
    L : (g, nv) array
    of_efforts : (g, nu) array
        Mu.
    driven, passive : (nv, rho) and (nv, k - rho) arrays, or None
        The bases D and Z; None if no row depends on them.
    """

    L: Array
    of_efforts: Array
    driven: Array | None = None
    passive: Array | None = None


def effort_rows(P: Projection, before: EffortRows | None = None) -> EffortRows:
    """The rows at a state; `before` are those of an adjacent state.

    Raises
    ------
    SingularityError
        Near a singular configuration of the actuation.
    NotActuatedError
        If the motors drive no motion.
    """
    mech, rho = P.mechanism, P.partition.actuation_rank
    if rho == P.k == mech.nu:
        u_scale = effort_scales(mech)[0]
        gamma = P.gamma * P.scale
        factors = lu(gamma.T @ mech.B * u_scale, largest(gamma / mech.column_scale[:, None]))
        _check(mech, factors.condition)
        L = u_scale[:, None] * factors.solve(gamma.T)
        return EffortRows(L, np.eye(rho))
    act = actuation(P)
    _check(mech, act.condition)
    D, Z, c = act.driven, act.passive, mech.column_scale[:, None]
    if before is not None and before.passive is not None:
        Z = _aligned(Z, before.passive, c)
    if rho == mech.nu:
        L = solved(D.T @ mech.B, D.T)
        return EffortRows(np.vstack([L, Z.T]), np.eye(rho + Z.shape[1], rho), None, Z)
    if before is not None and before.driven is not None:
        D = _aligned(D, before.driven, c)
    A = D.T @ mech.B * act.u_scale
    L = cholesky(A @ A.T).whitened(D).T * np.exp(np.log(act.u_scale).mean())
    return EffortRows(
        np.vstack([L, Z.T]), np.vstack([L @ mech.B, np.zeros((Z.shape[1], mech.nu))]), D, Z
    )


def _check(mech: Mechanism, condition: float) -> None:
    if not condition <= WORST_CONDITION:
        raise SingularityError(
            f"{mech.name}: the motors hardly determine the motion at this configuration (condition "
            f"number of gamma' B {condition:.1e}), near an actuation singularity",
            condition=condition, names=mech.actuator_names,
        )  # fmt: skip


def _aligned(X: Array, before: Array, c: Array) -> Array:
    """The basis of the columns of X, orthonormal over c, that is nearest to another one."""
    U, _, Vt = np.linalg.svd((X / c).T @ (before / c))
    found: Array = X @ (U @ Vt)
    return found


def row_labels(mech: Mechanism, rank: int, k: int) -> tuple[str, ...]:
    """A label for each row."""
    motors = (
        mech.actuator_names if rank == mech.nu else tuple(f"motion {i + 1}" for i in range(rank))
    )
    return (*motors, *(f"passive motion {i + 1}" for i in range(k - rank)))
