"""Inverse dynamics for motors that cannot follow every target: the relaxed form of RBDL.

A motor acts like a spring between the commanded and the actual acceleration,

    u = W (target - B' a) + B' (h - F)
    (M + B W B') a + h = B (W target + B' (h - F)) + J' f + F + G' lambda

so there is a solution for any target, and the equation of motion holds exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.base.checks import numbers, quiet, vector
from holoctl.base.errors import InputError, NotActuatedError, SingularityError
from holoctl.base.linalg import orthonormal_columns, pivoted_qr
from holoctl.base.tolerances import SINGULAR, UNIT
from holoctl.dynamics.actuation import scaled_motors
from holoctl.dynamics.certificate import certify
from holoctl.dynamics.inverse import InverseDynamics
from holoctl.dynamics.other_methods.saddle_point import direct
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import inverse_tree_dynamics
from holoctl.projector.arguments import shared_state
from holoctl.projector.multipliers import multipliers
from holoctl.projector.partition import Partition
from holoctl.projector.projection import project
from holoctl.rows.stabilisation import TimeConstants
from holoctl.rows.terms import Terms, scaled_rows

__all__ = ["inverse_dynamics_relaxed", "is_fully_actuated"]

FULL_PIVOT = 1e-8
"""Pivots of the scaled N' B below this count as zero: the motors do not determine the motion."""


@quiet
def inverse_dynamics_relaxed(
    mech: Mechanism,
    q: Any,
    v: Any,
    target: Any,
    *,
    f_ext: Any = None,
    efforts: Any = None,
    stiffness: Any = None,
    t: float = 0.0,
    t_stab: TimeConstants = None,
    partition: Partition | None = None,
    terms: Terms | None = None,
) -> InverseDynamics:
    """Motor efforts that approximate a target acceleration, which need not be possible.

    A higher stiffness follows the target more closely; the remaining error is distributed over the
    motors. Even a possible target is not met exactly, except without gravity and motion: use
    `inverse_dynamics` if the target is possible.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration.
    v : (nv,) array_like
        Velocity, rad/s or m/s.
    target : (nu,) array_like
        Accelerations of the motors, ``B' a``, rad/s^2 or m/s^2.
    f_ext : mapping or pin.StdVec_Force, optional
    efforts : (nv,) array_like, optional
        External forces, and other known efforts on the coordinates: as in `inverse_dynamics`.
    stiffness : (nu, nu) array_like, optional
        W, symmetric and positive definite: effort per error of the acceleration, kg m^2 or kg.
        Default, as in RBDL: ``100 B' M B``.
    t, t_stab, partition, terms : optional
        As in `inverse_dynamics`.

    Returns
    -------
    InverseDynamics
        With ``a``, the acceleration that the efforts cause; ``target - B' a`` is the remaining
        error.

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, a stiffness that is not symmetric and
        positive definite.
    NotActuatedError
        If the mechanism has no motors.
    SingularityError
        If a motion has no inertia.

    See Also
    --------
    inverse_dynamics : follows a possible target exactly.
    limited_inverse_dynamics : the nearest motion within limits.

    References
    ----------
    RBDL, documentation of InverseDynamicsConstraintsRelaxed; docs/from-rbdl.md.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> found = hc.methods.inverse_dynamics_relaxed(mech, q, v, [10.0, 0.0])
    >>> (mech.B.T @ found.a).round(1).tolist()
    [10.1, -0.2]
    """
    check_mechanism(mech)
    if mech.nu == 0:
        raise NotActuatedError(f"{mech.name} has no motors, so there are no torques to compute")
    target = vector("target", target, mech.nu, "accelerations of the motors, B' a")
    T, part = shared_state(mech, q, v, t, t_stab, partition, terms=terms)
    W = _stiffness(mech, T, stiffness)
    known = T.known_efforts(f_ext, efforts)
    B, c = mech.B, mech.column_scale
    G, k = scaled_rows(T, part.rows)
    wanted = W @ target + B.T @ (T.h - T.F)
    found = direct(c[:, None] * (T.M + B @ W @ B.T) * c, G, c * (B @ wanted + known - T.h), k)
    if not found.condition <= SINGULAR:
        raise SingularityError(
            f"{mech.name}: some motion that the constraints allow has neither inertia nor a motor "
            f"(condition number {found.condition:.1e})",
            condition=found.condition,
        )
    a = c * found.x
    u = wanted - W @ (B.T @ a)
    w = inverse_tree_dynamics(mech, T.q, T.v, a) - known
    force = w - B @ u
    lam, unique = multipliers(T, part, force)
    certificate = certify(T, part, a, B @ u + known, lam, found.condition)
    P = project(mech, *T.given, partition=part, t=t, terms=T)
    return InverseDynamics(u, a, lam, unique, P.gamma.T @ force, certificate)


@quiet
def is_fully_actuated(
    mech: Mechanism, q: Any, *, t: float = 0.0, partition: Partition | None = None
) -> bool:
    """Whether the motors determine every motion at q: rank of gamma' B = number of motions.

    Then `inverse_dynamics` follows any target that the constraints allow. The result is for this
    configuration: at a dead point (type-2 singularity) it is False, although it is True nearby.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration.
    t : float, optional
        Time, s.
    partition : Partition, optional
        Default: determined at the closed configuration nearest to q, which is slow.

    Returns
    -------
    bool

    Raises
    ------
    InputError
        For a wrong shape, or numbers that are not finite.

    See Also
    --------
    partition : the rank of the actuation, and coordinates.
    mobility : names the motions without a motor.

    Examples
    --------
    >>> import dataclasses, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> one_motor = dataclasses.replace(mech, actuated=["motor_left"], limits=None)
    >>> q, _ = hc.assemble(mech)
    >>> hc.methods.is_fully_actuated(mech, q), hc.methods.is_fully_actuated(one_motor, q)
    (True, False)
    """
    check_mechanism(mech)
    P = project(mech, q, np.zeros(mech.nv), "orthonormal", partition=partition, t=t)
    if P.k == 0 or mech.nu < P.k:
        return P.k == 0
    c = mech.column_scale[:, None]
    A = orthonormal_columns(P.gamma / c).T @ scaled_motors(mech)
    return bool(pivoted_qr(A, tol=FULL_PIVOT, size=UNIT).rank == P.k)


def _stiffness(mech: Mechanism, T: Terms, given: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    if given is None:
        return np.asarray(100.0 * mech.B.T @ T.M @ mech.B)
    W = numbers("stiffness", given)
    if W.shape != (mech.nu, mech.nu) or not np.isfinite(W).all():
        raise InputError(
            f"stiffness must be a finite matrix of shape ({mech.nu}, {mech.nu}); got {W.shape}"
        )
    symmetric = np.abs(W - W.T).max() <= 1e-12 * np.abs(W).max()
    if not symmetric or np.linalg.eigvalsh(W).min() <= 0.0:
        raise InputError("stiffness must be symmetric and positive definite")
    return W
