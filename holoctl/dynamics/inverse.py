"""Inverse dynamics: the motor efforts that cause a given acceleration.

    w = M a + h - J' f - F        gamma' B u = gamma' w        G' lambda = w - B u

with a from the target. If the target is for the motors, passive motions follow the dynamics:

    a = driven x + passive z + bias        B' a = target        passive' w = 0

F are the forces of the mechanism: friction, springs. Through gamma, motors compensate friction in
passive and cut joints too.

References: R. Featherstone, Rigid Body Dynamics Algorithms, chapter 8 (closed-loop systems) and
chapter 9 (hybrid dynamics); docs/derivations.md, "Inverse dynamics".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector, counted, listing, one_of, quiet, vector
from holoctl.base.errors import InconsistentError, InputError, NotActuatedError, SingularityError
from holoctl.base.linalg import cholesky, largest, least_squares
from holoctl.base.tolerances import SINGULAR
from holoctl.dynamics.actuation import Actuation, actuation, effort_weights, target_consistent
from holoctl.dynamics.certificate import Certificate, certify, raise_if_bad, verdict
from holoctl.mechanism.checks import check_class
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import inverse_tree_dynamics
from holoctl.projector.arguments import shared_projection
from holoctl.projector.multipliers import multipliers
from holoctl.projector.partition import Partition, check_motors
from holoctl.projector.projection import Projection
from holoctl.rows.stabilisation import TimeConstants
from holoctl.rows.terms import Terms

__all__ = [
    "POLICIES",
    "InverseDynamics",
    "asked_acceleration",
    "checked_target",
    "driven_acceleration",
    "inverse_dynamics",
]

COORDINATES = ("actuated", "independent", "all")
POLICIES = ("raise", "project")


# -------------------------------------------------------------------------------------- the law


def _delivered(P: Projection, act: Actuation, a: Vector, efforts: Vector) -> InverseDynamics:
    """The efforts of motors and constraints at the acceleration a, under ``efforts = J' f + F``."""
    mech, T = P.mechanism, P.terms
    needed = inverse_tree_dynamics(mech, P.q, P.v, a)  # M a + h
    w = needed - efforts  # w = M a + h - J' f - F
    u = act.efforts(w)  # gamma' B u = gamma' w
    driven = mech.B.dot(u)
    force = w - driven
    lam, unique = multipliers(T, P.partition, force)  # G' lambda = w - B u
    certificate = certify(T, P.partition, a, driven + efforts, lam, act.condition, needed)
    return InverseDynamics(u, a, lam, unique, force.dot(P.gamma), certificate)


def driven_acceleration(
    P: Projection, act: Actuation, target: Vector, efforts: Vector, inconsistent: str = "raise"
) -> Vector:
    """a with ``B' a = target``; passive motions follow the dynamics.

    ``a = driven x + passive z + bias``: x from the target, z from the dynamics of the passive
    motions, ``passive' (M a + h - efforts) = 0``, with ``efforts = J' f + F``.
    """
    mech, f = P.mechanism, act.factors
    wanted = act.u_scale * (target - P.bias.dot(mech.B))  # (A P)' = [R1 R2]' Q', so [R1 R2]' x
    first, more = wanted[f.pivots[: act.rank]], wanted[f.pivots[act.rank :]]
    x = f.solve_r1(first, transposed=True)
    if more.size:
        off = float(np.abs(f.r2.T @ x - more).max())
        terms = np.abs(target) + np.abs(mech.B.T @ P.bias)
        size = 1.0 + float((act.u_scale * terms).max())
        if off > _consistent(P) * size and inconsistent == "raise":
            raise InconsistentError(
                f"{mech.name}: the target accelerations of the {mech.nu} motors contradict the "
                f"constraints, which allow {act.rank} independent motions (error "
                f"{off:.2g}, scaled); make them consistent, or pass inconsistent='project'",
                residual=off,
            )
        if off > 0.0:
            x = least_squares(np.hstack([f.r1, f.r2]).T, wanted[f.pivots])
    a: Vector = act.driven.dot(x) + P.bias
    if act.rank == P.k:
        return a
    N, M, h = act.passive, P.terms.M, P.terms.h
    reduced = cholesky(N.T @ M @ N)
    if reduced.condition > SINGULAR:
        raise SingularityError(
            f"{mech.name}: a motion that no motor drives has no inertia (condition "
            f"number {reduced.condition:.1e}); give its bodies a mass",
            condition=reduced.condition,
        )
    return a + N @ reduced.solve(N.T @ (efforts - h - M @ a))


def _admissible(P: Projection, target: Vector, inconsistent: str) -> Vector:
    """A target for all coordinates, checked against (or projected on) G a + drift = 0."""
    mech, r = P.mechanism, P.mechanism.row_scale
    missing = r * (P.rows.jacobian @ target + P.rows.drift + P.terms.stabilisation)
    size = 1.0 + largest(P.terms.sizes @ np.abs(target))
    off = largest(missing)
    if off > _consistent(P) * size and inconsistent == "raise":
        raise InconsistentError(
            f"{mech.name}: the target acceleration contradicts the constraints (G a + drift is "
            f"off by {off:.2g}, scaled); give actuated or independent accelerations instead, "
            "or pass inconsistent='project'",
            residual=off,
        )
    scaled = P.gamma * P.scale / mech.column_scale[:, None]
    y = least_squares(scaled, (target - P.bias) / mech.column_scale)
    return P.gamma @ (P.scale * y) + P.bias


def _consistent(P: Projection) -> float:
    """Largest violation of the constraints by a target, relative to its size."""
    return target_consistent(P.partition.tolerance)


# ------------------------------------------------------------------- result, and function


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """The result of `inverse_dynamics`: efforts, acceleration, multipliers and certificate.

    Attributes
    ----------
    u : (nu,) array
        Motor efforts, N m or N, in the order of ``mech.actuated``.
    a : (nv,) array
        The acceleration they cause, including passive motions.
    multipliers : (m,) array
        lambda of every row, N or N m; of least norm (scaled rows) if rows are redundant.
    unique : (m,) bool array
        Whether each multiplier is determined in spite of redundancy.
    unbalanced : (k,) array
        ``gamma' (M a + h - J' f - F - B u)``: the part of the required efforts that no motor can
        deliver, per column of gamma. Zero (to rounding) if the solution is exact.
    certificate : Certificate

    See Also
    --------
    inverse_dynamics : returns it.
    constraint_wrenches : forces in closures, from the multipliers.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> found = hc.inverse_dynamics(mech, *hc.assemble(mech), target=[1.0, 2.0])
    >>> found.a.round(2).tolist(), bool(abs(found.unbalanced).max() < 1e-9)
    ([1.0, 0.3, 2.0, -1.51], True)
    """

    u: Vector
    a: Vector
    multipliers: Vector
    unique: NDArray[np.bool_]
    unbalanced: Vector
    certificate: Certificate

    def __repr__(self) -> str:
        return (
            f"<InverseDynamics: {counted(self.u.size, 'effort')} up to {largest(self.u):.3g} N m "
            f"or N, {verdict(self.certificate)}>"
        )

    def raise_if_bad(self) -> InverseDynamics:
        """This result, or `SingularityError` or `InconsistentError` if it is not certified."""
        raise_if_bad(self.certificate)
        return self


@quiet
def inverse_dynamics(
    mech: Mechanism,
    q: Any,
    v: Any,
    target: Any,
    *,
    f_ext: Any = None,
    efforts: Any = None,
    coordinates: str = "actuated",
    inconsistent: str = "raise",
    weights: Any = None,
    t: float = 0.0,
    t_stab: TimeConstants = None,
    partition: Partition | None = None,
    projection: Projection | None = None,
    terms: Terms | None = None,
) -> InverseDynamics:
    """The motor efforts for a target acceleration: ``gamma' B u = gamma' (M a + h - J' f - F)``.

    Passive motions, which no motor drives, follow the dynamics when the target is for the actuated
    coordinates. Holding torques: ``v = 0``, ``target = zeros(nv)``, ``coordinates="all"``;
    ``unbalanced`` and the certificate report the part that the motors cannot hold.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration; may be off the manifold, and is moved only by an explicit chart.
    v : (nv,) array_like
        Velocity, rad/s or m/s.
    target : (nu,), (k,) or (nv,) array_like
        Accelerations, rad/s^2 or m/s^2: (nu,), of the motors ("actuated", ``B' a``); (k,), of
        the independent coordinates of the projection ("independent"); (nv,), of all ("all").
    f_ext : mapping or pin.StdVec_Force, optional
        Frame name to (force, moment), N and N m, world axes, at the origin of the frame; or
        one force for each joint in joint axes.
    efforts : (nv,) array_like, optional
        Known efforts on the coordinates in addition to those of the motors and of the mechanism's
        `forces`, N m or N.
    coordinates : str, optional
        ``"actuated"``, ``"independent"`` or ``"all"``: the coordinates of the target.
    inconsistent : str, optional
        What to do with a target that the constraints do not allow: ``"raise"``, or ``"project"`` to
        the nearest one that they allow.
    weights : (nu,) array_like, optional
        For more motors than motions: the efforts of least ``sum w_i u_i^2``, w_i > 0. Default: all
        efforts have equal weights, forces times the size of their loop.
    t : float, optional
        Time, s.
    t_stab : float, False or mapping of str to float or False, optional
        Time constant of Baumgarte's stabilisation, s, for all constraints or by name; False: none.
        Default: that of each constraint.
    partition, projection, terms : optional
        A partition, or a projection or terms at the same state, to share. Without the first or
        second the partition is determined again, which is slow.

    Returns
    -------
    InverseDynamics

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, unknown names.
    NotActuatedError
        If there are no motors, they drive no motion, or the mechanism cannot move.
    SingularityError
        If the split, or the actuation, is singular at this state.
    InconsistentError
        If the constraints do not allow the target and ``inconsistent="raise"``.

    See Also
    --------
    PreparedInverseDynamics : the same in a loop.
    limited_inverse_dynamics : within limits of motors and joints.
    methods.inverse_dynamics_relaxed : targets that need not be possible.
    forward_dynamics : the acceleration under given efforts.
    constraint_wrenches : forces in closures, from the multipliers.

    References
    ----------
    docs/derivations.md, "Inverse dynamics".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> found = hc.inverse_dynamics(mech, q, v, target=[0.0, 0.0])
    >>> found.u.round(2).tolist(), found.certificate.ok
    ([-2.3, 2.3], True)
    """
    check_class(mech)
    target = checked_target(mech, target, coordinates, inconsistent)
    P = shared_projection(mech, q, v, t, t_stab, partition, projection, terms)
    check_motors(mech, P.partition)
    act = actuation(P, effort_weights(mech, weights))
    known = P.terms.known_efforts(f_ext, efforts)
    a = asked_acceleration(P, act, target, known, coordinates, inconsistent)
    return _delivered(P, act, a, known)


def checked_target(mech: Mechanism, target: Any, coordinates: str, inconsistent: str) -> Any:
    """Check a target and its options, as far as possible without a state."""
    one_of("coordinates", coordinates, COORDINATES)
    one_of("inconsistent", inconsistent, POLICIES)
    if mech.nu == 0:
        raise NotActuatedError(
            f"{mech.name} has no motors, so there are no torques to compute; name some with "
            "actuated= (in a YAML description: name_mot)"
        )
    if coordinates == "actuated":
        return vector("target", target, mech.nu, "accelerations of the motors, B' a")
    if coordinates == "all":
        return vector("target", target, mech.nv, "accelerations of all coordinates")
    return target


def asked_acceleration(
    P: Projection, act: Actuation, target: Any, known: Vector, coordinates: str, inconsistent: str
) -> Vector:
    """The acceleration of all coordinates for a target, under known efforts."""
    if coordinates == "actuated":
        return driven_acceleration(P, act, target, known, inconsistent)
    if coordinates == "all":
        return _admissible(P, target, inconsistent)
    if P.independent.size != P.k:
        raise InputError(
            "coordinates='independent' needs a projection with coordinates; this one is "
            f"{P.method!r}"
        )
    target = vector("target", target, P.k, f"accelerations of {_independent(P)}")
    a: Vector = P.gamma @ target + P.bias
    return a


def _independent(P: Projection) -> str:
    return listing([P.mechanism.coordinate_names[i] for i in P.independent])
