"""Inverse dynamics on unilateral contacts: tasks within friction cones and limits of motors.

    gamma' (M a + h - J' f - F - Jc' w) = gamma' B u        a = gamma ydd + bias
    Jc a + drift = 0        w in the friction cones        u within limits

Jc are the rows of the contacts, w the forces of the ground along them. The tasks are met in least
squares. The law is contact_law.py; contacts may change from call to call, without a new mechanism.
Reference: docs/derivations-control.md, "Unilateral contacts".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from holoctl.base.checks import (
    Array,
    Vector,
    counted,
    entries,
    listing,
    number,
    one_of,
    positive,
    quiet,
    shown,
    vector,
)
from holoctl.base.errors import InconsistentError, InputError, NotActuatedError
from holoctl.base.linalg import largest, orthonormal_columns
from holoctl.constraints.unilateral_contact import checked_contacts
from holoctl.control.contact_certificate import ContactCertificate, contact_certificate
from holoctl.control.contact_joints import joint_rows
from holoctl.control.contact_law import active_conditions, contact_solution, moment_unit
from holoctl.control.contact_motion import ReducedTerms
from holoctl.control.contact_rows import (
    ContactRows,
    accelerations_of_points,
    bound_contacts,
    contact_rows,
    forces_on_points,
)
from holoctl.control.controller_limits import limits_law
from holoctl.control.effort_bounds import effort_bounds
from holoctl.control.tasks.task_terms import bound_to
from holoctl.dynamics.actuation import effort_scales
from holoctl.dynamics.effort_response import inertia_of_motions
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limited_coordinates import coordinates_at
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import external_efforts
from holoctl.projector.arguments import shared_projection
from holoctl.projector.partition import Partition
from holoctl.projector.projection import Projection

__all__ = [
    "ContactInverseDynamics",
    "contact_inverse_dynamics",
    "reduced_terms",
]

SOLVERS = ("daqp", "cvxpy")

CONTACT_POLICIES = ("raise", "nearest")

SPREAD = 1e-6
"""Forces on points must add up to the wrench of a foot within this, over the weight of all bodies
times the size of the mechanism."""


@dataclass(frozen=True, eq=False)
class ContactInverseDynamics:
    """The result of `contact_inverse_dynamics`: efforts, motion, and forces of the ground.

    Attributes
    ----------
    u : (nu,) array
        Motor efforts, N m or N, in the order of ``mech.actuated``; within their limits, exactly.
    a : (nv,) array
        The acceleration they cause.
    forces : mapping of str to (points, 3) array
        The force of the ground on each point of each contact, world axes, N. Those of a plane foot
        are one of many ways to cause its wrench.
    saturated : tuple of str
        What is active: motors by name, contacts as ``"name.slides"`` (friction is used up),
        ``"name.lifts"`` (no point is loaded beyond its least), ``"name.tips"`` (some points are
        not), ``"name.presses"`` (a point carries its most), and limits of joints as
        ``"name.position"``, ``"name.velocity"`` or ``"name.acceleration"``. Empty if motion and
        efforts are those of bilateral contacts.
    slip : mapping of str to (points, 3) array
        The acceleration of each point, world axes, m/s^2: zero, but with the policy "nearest" where
        no efforts keep the contacts.
    certificate : ContactCertificate

    See Also
    --------
    contact_inverse_dynamics : returns it.
    UnilateralContact : the contacts.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> table = hc.UnilateralContact("tip_right", friction=0.0, name="table")
    >>> found = hc.contact_inverse_dynamics(mech, q, v, [0.0, 0.0], table)
    >>> found.forces["table"].shape, found.certificate.ok
    ((1, 3), True)
    """

    u: Vector
    a: Vector
    forces: Mapping[str, Array]
    saturated: tuple[str, ...]
    slip: Mapping[str, Array]
    certificate: ContactCertificate

    def __repr__(self) -> str:
        limited = f", limited by {listing(self.saturated)}" if self.saturated else ""
        bad = listing(self.certificate.failures)
        verdict = "certified" if self.certificate.ok else f"NOT certified ({bad})"
        return (
            f"<ContactInverseDynamics: {counted(self.u.size, 'effort')} up to "
            f"{largest(self.u):.3g} N m or N{limited}, {verdict}>"
        )

    def raise_if_bad(self) -> ContactInverseDynamics:
        """This result, or `SingularityError` or `InconsistentError` if it is not certified."""
        self.certificate.raise_if_bad()
        return self


@quiet
def contact_inverse_dynamics(
    mech: Mechanism,
    q: Any,
    v: Any,
    target: Any,
    contacts: Any,
    limits: Limits | str | None = None,
    *,
    f_ext: Any = None,
    efforts: Any = None,
    partition: Partition | None = None,
    projection: Projection | None = None,
    policy: str = "raise",
    solver: str = "daqp",
    dt: float = 1e-3,
) -> ContactInverseDynamics:
    """The motor efforts for target accelerations on contacts that only push.

    The points of the contacts do not accelerate, each force is inside its friction cone, and
    efforts are within limits. The tasks are met in least squares, as well as all this allows.

    Where no condition is active, this is `inverse_dynamics` of the mechanism with bilateral
    contacts: of all solutions the smallest efforts, and of these the smallest forces.

    Parameters
    ----------
    mech : Mechanism
        With its loops only. A contact that is a constraint of `mech` stays bilateral.
    q : (nq,) array_like
        Configuration.
    v : (nv,) array_like
        Velocity, rad/s or m/s, at which the contacts rest.
    target : (nu,) array_like, or list of tuples
        Accelerations of the motors, ``B' a``, rad/s^2 or m/s^2; or tuples (task, acceleration) or
        (task, acceleration, weight): a `FrameTask`, `PostureTask`, `CenterOfMassTask` or
        `CustomTask`, the acceleration of its rows, m/s^2 and rad/s^2, and the weight of its
        squared errors, above zero (1 by default). Lengths are divided by the size of the mechanism.
        Where a condition is active, weights below 1e-9 of the largest have little effect.
    contacts : UnilateralContact or list of UnilateralContact
        Those that act now; an empty list in flight.
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
        Those of efforts are always kept. Those of joints are bounds of accelerations, as in
        `limited_inverse_dynamics`, and softened where they cannot be kept.
    f_ext, efforts, partition, projection
        As in `inverse_dynamics`.
    policy : str, optional
        Where no efforts keep the contacts: ``"raise"`` an error, or the ``"nearest"`` motion: cones
        and limits are kept, and contacts slip, tip or lift, as little as possible in the metric of
        the inertia.
    solver : str, optional
        ``"daqp"``, or ``"cvxpy"``: by Clarabel, slow. Residuals of each answer are checked; if they
        are too large the other solver is asked.
    dt : float, optional
        The tick over which limits of joints are kept, s.

    Returns
    -------
    ContactInverseDynamics

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, unknown names, frames of the world, limits
        of position of joints that cannot be braked.
    LimitError
        With the policy "raise", if no motion and no efforts within limits keep the contacts. Its
        `names` are the contacts that would have to pull or slide, and the motors whose limits
        exclude it, by an infeasibility certificate.
    NotActuatedError
        If there are no motors, or the mechanism cannot move.
    SingularityError
        If the split is singular at this state, or a motion has no inertia.
    InconsistentError
        If no motion keeps the contacts at this velocity, or no solver decides.

    See Also
    --------
    UnilateralContact : the contacts.
    inverse_dynamics : for bilateral contacts, as constraints of the mechanism.
    limited_inverse_dynamics : without contacts.

    References
    ----------
    docs/contacts.md; docs/derivations-control.md, "Unilateral contacts".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> table = hc.UnilateralContact("tip_right", friction=0.0, name="table")
    >>> found = hc.contact_inverse_dynamics(mech, q, v, [0.0, 0.0], table)
    >>> bool(found.forces["table"][0, 2] >= 0.0), found.certificate.ok
    (True, True)
    """
    check_mechanism(mech)
    one_of("solver", solver, SOLVERS)
    one_of("policy", policy, CONTACT_POLICIES)
    positive("dt", dt, "s")
    if mech.nu == 0:
        raise NotActuatedError(f"{mech.name} has no motors; name some with actuated=")
    acting = checked_contacts(contacts)
    requested = requested_limits(mech, limits, "contact_inverse_dynamics") or Limits()
    law = limits_law(mech, requested, "nearest", dt)
    t = projection.terms.t if isinstance(projection, Projection) else 0.0
    P = shared_projection(mech, q, v, t, None, partition, projection, None)
    if P.k == 0:
        raise NotActuatedError(f"{mech.name} has no degree of freedom, so no effort moves it")
    ground = contact_rows(P.kinematics, bound_contacts(mech, acting))
    tasks = _tasks(P, target)
    known = external_efforts(mech, P.kinematics, f_ext, efforts) + P.terms.F
    bounds = effort_bounds(law.bound, mech.B.T @ P.v)
    N, terms = reduced_terms(P, ground, tasks, known)
    joints = None
    if law.bound.names:
        at = coordinates_at(mech, law.bound, P.q, P.v, t, P.kinematics)
        joints = joint_rows(law, at, N, P.bias)
    found = contact_solution(mech, terms, ground, bounds, policy, solver, joints)
    y = found.motion()
    a = P.bias + N @ y
    slip = terms.J @ y - terms.c if found.slipping else np.zeros(terms.c.size)
    certificate = contact_certificate(P, ground, a, found, slip, known, bounds)
    names = active_conditions(mech, ground, found, joints)
    return ContactInverseDynamics(
        found.u, a, _forces(P, ground, found.w), names, _slip(P, ground, slip), certificate
    )


def reduced_terms(
    P: Projection, ground: ContactRows, tasks: tuple[Array, Vector], known: Vector
) -> tuple[Array, ReducedTerms]:
    """A basis N of the motions, and the terms of the law in its coordinates."""
    mech, terms, (T, t), J = P.mechanism, P.terms, tasks, ground.jacobian
    c = mech.column_scale[:, None]
    N = c * orthonormal_columns(P.gamma * P.scale / c)
    inertia_of_motions(P, N)
    g = N.T @ (terms.M @ P.bias + terms.h - known)
    return N, ReducedTerms(
        N.T @ terms.M @ N, g, N.T @ mech.B, J @ N, -(ground.drift + J @ P.bias), T @ N,
        t - T @ P.bias,
    )  # fmt: skip


def _forces(P: Projection, ground: ContactRows, w: Vector) -> Mapping[str, Array]:
    """The force on each point."""
    found = {}
    for one, part in zip(ground.contacts, ground.split(ground.scale * w), strict=True):
        found[one.name], off = forces_on_points(P.kinematics, one, part)
        if off > SPREAD * moment_unit(P.mechanism):
            raise InconsistentError(
                f"{P.mechanism.name}: the points of {one.name!r} cannot cause its wrench (off by "
                f"{off:.2g} N); its cone is badly scaled",
                residual=off,
            )
    return MappingProxyType(found)


def _slip(P: Projection, ground: ContactRows, slip: Vector) -> Mapping[str, Array]:
    """The acceleration of each point."""
    parts = zip(ground.contacts, ground.split(slip / ground.scale), strict=True)
    return MappingProxyType(
        {one.name: accelerations_of_points(P.kinematics, one, part) for one, part in parts}
    )


def _tasks(P: Projection, target: Any) -> tuple[Array, Vector]:
    """T and t: the weighted, scaled rows of the tasks, met where ``T a = t``."""
    mech, given = P.mechanism, entries(target)
    if given is None or not given or not isinstance(given[0], tuple):
        wanted = vector("target", target, mech.nu, "accelerations of the motors, or task tuples")
        scale = effort_scales(mech)[0]
        return scale[:, None] * mech.B.T, scale * wanted
    rows, right = [], []
    for i, one in enumerate(given):
        if not isinstance(one, tuple) or len(one) not in (2, 3):
            raise InputError(
                f"target[{i}] must be (task, acceleration) or (task, acceleration, weight); got "
                f"{shown(one)!r}"
            )
        task, wanted = one[:2]
        weight = number(f"target[{i}]: weight", one[2] if len(one) == 3 else 1.0)
        if not weight > 0.0:
            raise InputError(f"target[{i}]: weight must be above zero; got {weight}")
        bound = bound_to(mech, task)
        motion, factor = bound.at(P.kinematics), np.sqrt(weight) * bound.scale
        asked = vector(f"target[{i}]", wanted, factor.size, f"accelerations of {bound.labels}")
        rows.append(factor[:, None] * motion.jacobian)
        right.append(factor * (asked - motion.drift))
    return np.concatenate(rows), np.concatenate(right)
