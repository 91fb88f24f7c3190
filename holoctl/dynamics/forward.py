"""Forward dynamics: the acceleration that given efforts cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.certificate import Certificate, certify, raise_if_bad
from holoctl.checks import Vector, one_of, vector
from holoctl.errors import SingularityError
from holoctl.linalg import cholesky
from holoctl.mechanism import Mechanism, check_mechanism
from holoctl.open_tree import (
    external_efforts,
    inertia,
    inverse_tree_dynamics,
    nonlinear_efforts,
)
from holoctl.projector import SINGULAR, Partition, Projection, multipliers, resolve_projection

__all__ = ["ForwardDynamics", "forward_dynamics"]

METHODS = ("projection",)


@dataclass(frozen=True, eq=False)
class ForwardDynamics:
    """What `forward_dynamics` returns.

    Attributes
    ----------
    a : (nv,) array
        Acceleration, rad/s^2 or m/s^2.
    multipliers : (m,) array
        lambda of every row, N or N m; of least norm (scaled rows) where rows are redundant.
    unique : (m,) bool array
        Which multipliers redundancy does not leave open.
    certificate : Certificate
    """

    a: Vector
    multipliers: Vector
    unique: NDArray[np.bool_]
    certificate: Certificate

    def raise_if_bad(self) -> ForwardDynamics:
        """This result, or `SingularityError` or `InconsistentError` if it is not certified."""
        raise_if_bad(self.certificate)
        return self


def forward_dynamics(
    mech: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    f_ext: Any = None,
    method: str = "projection",
    *,
    t: float = 0.0,
    t_stab: float | None = None,
    partition: Partition | None = None,
    projection: Projection | None = None,
) -> ForwardDynamics:
    """The acceleration under given efforts: ``M a + h = tau + J^T f + G^T lambda``.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration; may be off the manifold, and is moved only by an explicit chart.
    v : (nv,) array_like
        Velocity, rad/s or m/s.
    tau : (nv,) array_like
        Efforts on the coordinates, N m or N; ``mech.B @ u`` for motors.
    f_ext : mapping or pin.StdVec_Force, optional
        Frame name to (force, moment), N and N m, world axes, at the origin of the frame; or
        one force for each joint in joint axes.
    method : str, optional
        ``"projection"``: project on the basis of admissible velocities.
    t : float, optional
        Time, s.
    t_stab : float, optional
        Time constant of Baumgarte's stabilisation, s. Default: that of each constraint.
    partition, projection : optional
        A decision, or a projection at this very state, to share. Without either the partition
        is decided anew, which is slow.

    Returns
    -------
    ForwardDynamics

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, unknown names.
    SingularityError
        If the split is singular here, or a motion has no inertia.

    References
    ----------
    R. Featherstone, Rigid Body Dynamics Algorithms, section 3.2, and the documentation of
    spatial_v2 on gamma_q; docs/derivations.md, "Forward dynamics".
    """
    check_mechanism(mech)
    one_of("method", method, METHODS)
    tau = vector("tau", tau, mech.nv, "efforts on the coordinates; mech.B @ u for motors")
    P = resolve_projection(mech, q, v, t, t_stab, partition, projection)
    efforts = tau + external_efforts(mech, P.kinematics, f_ext)
    a, condition = accelerate(P, efforts)
    w = inverse_tree_dynamics(mech, P.q, P.v, a)
    lam, unique = multipliers(P, w - efforts)
    return ForwardDynamics(a, lam, unique, certify(P, a, efforts, lam, condition))


def accelerate(P: Projection, efforts: Vector) -> tuple[Vector, float]:
    """``a`` under ``efforts = tau + J^T f``, and the condition number of gamma' M gamma."""
    mech = P.mechanism
    gamma, bias = P.gamma, P.bias
    M, h = inertia(mech, P.q), nonlinear_efforts(mech, P.q, P.v)
    Mr = cholesky(gamma.T @ M @ gamma)
    if Mr.condition > SINGULAR:
        raise SingularityError(
            f"{mech.name}: some motion that the constraints allow has no inertia (condition "
            f"number of gamma' M gamma {Mr.condition:.1e}): bodies without mass, or coordinates "
            f"that barely determine the others here (split: {P.condition:.1e})",
            condition=Mr.condition,
        )
    # FDgq: ydd = (g' M g)^-1 g' (tau + J' f - h - M bias),  a = g ydd + bias
    ydd = Mr.solve(gamma.T @ (efforts - h - M @ bias))
    return gamma @ ydd + bias, Mr.condition
