"""Inverse dynamics on unilateral contacts: tasks within friction cones and limits of motors.

    gamma' (M a + h - J' f - F - Jc' f_c) = gamma' B u        a = gamma ydd + bias
    Jc a + drift = 0        f_c in the friction cones        u within limits

Jc are the rows of the contacts, f_c the forces of the ground along them. The tasks are met in least
squares. The program in ydd, u and f_c is contact_program.py; contacts, and so the equations, may
change from call to call, without a new mechanism.
Reference: docs/derivations-control.md, "Unilateral contacts".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pinocchio as pin

from holoctl.base.checks import (
    Array,
    Vector,
    counted,
    entries,
    listing,
    number,
    one_of,
    quiet,
    shown,
    vector,
)
from holoctl.base.errors import (
    InconsistentError,
    InputError,
    LimitError,
    NotActuatedError,
)
from holoctl.base.linalg import (
    largest,
    least_squares,
    null_space_by_svd,
    orthonormal_columns,
)
from holoctl.control.contact_certificate import (
    STANDARD_GRAVITY,
    ContactCertificate,
    contact_certificate,
)
from holoctl.control.contact_program import (
    OPTIMAL,
    SAME_RANK,
    ContactProgram,
    bilateral_solution,
    infeasibility_ray,
    program_around,
    solved_program,
)
from holoctl.control.contact_rows import ContactRows, checked_contacts, contact_rows
from holoctl.control.effort_bounds import effort_bounds
from holoctl.control.nearest_by_cvxpy import by_cvxpy
from holoctl.control.nearest_efforts import Solver, by_daqp
from holoctl.control.tasks.task_protocol import mechanism_size
from holoctl.control.tasks.task_terms import bound_to
from holoctl.dynamics.actuation import effort_scales
from holoctl.dynamics.effort_response import inertia_of_motions
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import external_efforts
from holoctl.projector.arguments import shared_projection
from holoctl.projector.partition import Partition
from holoctl.projector.projection import Projection
from holoctl.tree.frozen_model import plain

__all__ = ["ContactInverseDynamics", "contact_inverse_dynamics"]

SOLVERS = ("daqp", "cvxpy")

CONTACTS_AGREE = 1e-6
"""Contacts may contradict each other by this much, relative to the size of their terms."""

ACTIVE = 1e-9
"""A condition is active if its multiplier is above this, relative to the largest."""

AT_BOUND = 1e-9
"""A point is unloaded if its normal force is within this of its least, in weights."""

IN_THE_RAY = 1e-6
"""Conditions with a smaller share in the proof are not named."""


# -------------------------------------------------------------------------------------- the law


class _Units(NamedTuple):
    """Units of the unknowns: accelerations (scaled), efforts (nu,), forces."""

    motion: float
    efforts: Vector
    force: float


class _Unknowns(NamedTuple):
    """x = (z, u, f) in units; ``a = a0 + Z z``, and the dynamics ``E x = e``."""

    Z: Array
    a0: Vector
    E: Array
    e: Vector
    condition: float
    units: _Units

    def split(self, x: Vector) -> tuple[Vector, Vector, Vector]:
        """a, u and f of x."""
        n, nu = self.Z.shape[1], self.units.efforts.size
        a: Vector = self.a0 + self.units.motion * (self.Z @ x[:n])
        return a, self.units.efforts * x[n : n + nu], self.units.force * x[n + nu :]


def _unknowns(P: Projection, ground: ContactRows, known: Vector) -> _Unknowns:
    """The motions that keep the contacts, and the reduced equation of motion."""
    mech, T = P.mechanism, P.terms
    c, size = mech.column_scale[:, None], mechanism_size(mech)
    N = c * orthonormal_columns(P.gamma * P.scale / c)
    J = ground.jacobian @ N / size
    right = -(ground.drift + ground.jacobian @ P.bias) / size
    sizes = np.linalg.svd(J, compute_uv=False)
    rank = int((sizes > SAME_RANK * sizes.max(initial=0.0)).sum())
    y0 = least_squares(J, right, SAME_RANK) if J.size else np.zeros(P.k)
    off = largest(J @ y0 - right)
    if off > CONTACTS_AGREE * (1.0 + largest(right)):
        raise InconsistentError(
            f"{mech.name}: no motion keeps these contacts at the velocity v (off by {off:.2g}, "
            "scaled): their points move against each other or the constraints; project v first",
            residual=off,
        )
    Z = N @ null_space_by_svd(J, rank)[3]
    inertia_of_motions(P, N)
    mass = float(pin.computeTotalMass(plain(mech.model))) or 1.0  # rotors alone
    units = _Units(
        STANDARD_GRAVITY / size,
        effort_scales(mech)[0] * (mass * STANDARD_GRAVITY * size),
        mass * STANDARD_GRAVITY,
    )
    a0, moment = P.bias + N @ y0, units.force * size
    per_unit = (
        T.M @ Z * units.motion, -mech.B * units.efforts, -ground.jacobian.T * units.force,
    )  # fmt: skip
    E = N.T @ np.hstack(per_unit) / moment
    e = -(N.T @ (T.M @ a0 + T.h - known)) / moment
    condition = float(sizes[0] / sizes[rank - 1]) if rank else 1.0
    return _Unknowns(Z, a0, E, e, condition, units)


def _conditions(
    x: _Unknowns, ground: ContactRows, bounds: tuple[Vector, Vector]
) -> tuple[Array, Vector, Vector]:
    """C, lower and upper: the cones, then the limits of motors."""
    n, nu, force = x.Z.shape[1], x.units.efforts.size, x.units.force
    c, m = ground.cone.shape if ground.cone.size else (0, 0)
    C = np.zeros((c + nu, n + nu + m))
    C[:c, n + nu :] = ground.cone
    C[c:, n : n + nu] = np.eye(nu)
    lower = np.concatenate([np.full(c, -np.inf), bounds[0] / x.units.efforts])
    return C, lower, np.concatenate([ground.bound / force, bounds[1] / x.units.efforts])


def _levels(x: _Unknowns, tasks: tuple[Array, Vector]) -> list[tuple[Array, Vector]]:
    """Tasks, efforts and forces: what the bilateral solution meets, one after the other."""
    (T, t), n, nu = tasks, x.Z.shape[1], x.units.efforts.size
    every = np.eye(x.E.shape[1])
    moved = np.zeros((t.size, every.shape[0]))
    moved[:, :n] = T @ x.Z
    efforts, forces = every[n : n + nu], every[n + nu :]
    return [
        (moved, (t - T @ x.a0) / x.units.motion),
        (efforts, np.zeros(nu)),
        (forces, np.zeros(forces.shape[0])),
    ]


def _efforts(
    P: Projection, ground: ContactRows, tasks: tuple[Array, Vector], known: Vector,
    bounds: tuple[Vector, Vector], solver: str,
) -> ContactInverseDynamics:  # fmt: skip
    """The efforts and forces at a state, under ``known = J' f + F``."""
    mech = P.mechanism
    unknowns = _unknowns(P, ground, known)
    conditions = _conditions(unknowns, ground, bounds)
    levels = _levels(unknowns, tasks)
    start, (W, _, forces, _) = bilateral_solution(unknowns.E, unknowns.e, levels)
    program = program_around(start, forces, levels[0][0], conditions)
    found, motion_kept = solved_program(program, _daqp), True
    if found is None or found.residual > OPTIMAL:
        motion_kept, forces = False, W
        program = program_around(start, W, levels[0][0], conditions)
        order = (by_cvxpy, _daqp) if solver == "cvxpy" else (_daqp, by_cvxpy)
        found = solved_program(program, *order)
    if found is None:
        _raise_infeasible(mech, ground, program)
    a, u, f = unknowns.split(start + forces @ found.s)
    u = np.clip(u, *bounds)
    certificate = contact_certificate(
        P, ground, a, u, f, known, bounds, unknowns.condition, found.residual
    )
    names: tuple[str, ...] = ()
    if not motion_kept:
        names = _active(mech, ground, f, found.multipliers, unknowns.units.force)
    return ContactInverseDynamics(u, a, MappingProxyType(ground.forces(f)), names, certificate)


def _daqp() -> Solver:
    return by_daqp


def _active(
    mech: Mechanism, ground: ContactRows, f: Vector, multipliers: Vector, force: float
) -> tuple[str, ...]:
    """The names of active conditions: motors, then contacts."""
    sizes = np.abs(multipliers)
    acting = sizes > ACTIVE * float(sizes.max(initial=0.0))
    names = [name for name, on in zip(mech.actuator_names, acting[-mech.nu :], strict=True) if on]
    gaps = (ground.bound - ground.cone @ f) / force if ground.cone.size else ground.bound
    for contact in ground.contacts:
        own = contact.default_name
        rows = [i for i, label in enumerate(ground.labels) if label[0] == own]
        unloaded = {
            ground.labels[i][1] for i in rows
            if ground.labels[i][2] == "lifts" and gaps[i] <= AT_BOUND
        }  # fmt: skip
        kinds = {
            "lifts" if ground.labels[i][1] in unloaded else ground.labels[i][2]
            for i in rows
            if acting[i]
        }
        if "lifts" in kinds and len(unloaded) < len(contact.points):
            kinds = (kinds - {"lifts"}) | {"tips"}
        names += [f"{own}.{kind}" for kind in sorted(kinds)]
    return tuple(names)


_MEANING = {
    "lifts": "to pull, or push less than its least",
    "slides": "to hold beyond its friction",
    "presses": "to carry more than its most",
}


def _raise_infeasible(mech: Mechanism, ground: ContactRows, program: ContactProgram) -> NoReturn:
    """Raise the error of a program without solution."""
    ray = infeasibility_ray(program)
    if ray is None:
        raise InconsistentError(
            f"{mech.name}: no solver found efforts on these contacts, and none proved that there "
            "are none: the state is at the edge of what friction and limits allow, or badly scaled"
        )
    shares: dict[tuple[str, str], float] = {}
    y, at = np.abs(ray), 0
    for contact in ground.contacts:
        rows = contact.cone[1].size
        for _ in contact.points:
            for kind, share in zip(
                _MEANING, contact.pulled_and_slid(y[at : at + rows]), strict=True
            ):
                label = (contact.default_name, kind)
                shares[label] = shares.get(label, 0.0) + share
            at += rows
    shares |= {(name, ""): float(y[at + i]) for i, name in enumerate(mech.actuator_names)}
    largest_first = sorted(shares, key=lambda label: -shares[label])
    named = [x for x in largest_first if shares[x] > IN_THE_RAY * max(shares.values())]
    motors = [name for name, kind in named if not kind]
    reasons = [f"{name!r} would have {_MEANING[kind]}" for name, kind in named if kind]
    if motors:
        reasons.append(f"the motors {listing(motors)} are too weak to avoid it")
    raise LimitError(
        f"{mech.name}: no efforts within limits keep these contacts, whatever the motion: "
        f"{'; '.join(reasons)}. Release a contact, or change the state",
        names=[f"{name}.{kind}" if kind else name for name, kind in named],
    )


# ----------------------------------------------------------------------- result and arguments


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
        The force of the ground on each point of each contact, world axes, N.
    saturated : tuple of str
        What is active: motors by name, contacts as ``"name.slides"`` (friction is used up),
        ``"name.lifts"`` (no point is loaded beyond its least), ``"name.tips"`` (some points are
        not), ``"name.presses"`` (a point carries its most). Empty if motion and efforts are those
        of bilateral contacts.
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
    solver: str = "daqp",
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
        Where a condition is active, weights below 1e-5 of the largest have little effect.
    contacts : UnilateralContact or list of UnilateralContact
        Those that act now; an empty list in flight.
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
        Efforts and `speed_torque` are kept: limits of joints are left out of those of the
        mechanism, and refused in a `Limits`.
    f_ext, efforts, partition, projection
        As in `inverse_dynamics`.
    solver : str, optional
        ``"daqp"``, or ``"cvxpy"``: by Clarabel, slow. Residuals of each answer are checked; if they
        are too large the other solver is asked.

    Returns
    -------
    ContactInverseDynamics

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, unknown names, frames of the world, limits
        of joints.
    LimitError
        If no motion and no efforts within limits keep the contacts. Its `names` are the contacts
        that would have to pull or slide, and the motors whose limits exclude it, by an
        infeasibility certificate.
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
    limited_inverse_dynamics : limits of joints, without contacts.

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
    if mech.nu == 0:
        raise NotActuatedError(f"{mech.name} has no motors; name some with actuated=")
    acting = checked_contacts(contacts)
    bound = bound_limits(mech, _effort_limits(mech, limits))
    t = projection.terms.t if isinstance(projection, Projection) else 0.0
    P = shared_projection(mech, q, v, t, None, partition, projection, None)
    if P.k == 0:
        raise NotActuatedError(f"{mech.name} has no degree of freedom, so no effort moves it")
    ground = contact_rows(mech, P.kinematics, acting)
    tasks = _tasks(P, target)
    known = external_efforts(mech, P.kinematics, f_ext, efforts) + P.terms.F
    bounds = effort_bounds(bound, mech.B.T @ P.v)
    return _efforts(P, ground, tasks, known, bounds, solver)


def _effort_limits(mech: Mechanism, given: Any) -> Limits:
    """The limits of motors in the argument `limits`."""
    limits = requested_limits(mech, given, "contact_inverse_dynamics") or Limits()
    joints = [x for x in ("velocity", "position", "acceleration") if getattr(limits, x) is not None]
    if joints and not isinstance(given, str):
        raise InputError(
            f"{mech.name}: contact_inverse_dynamics keeps limits of efforts; it cannot keep "
            f"those of {' and '.join(joints)}: give Limits(effort=..., speed_torque=...) alone, "
            'or "model", whose limits of joints are left out'
        )
    return Limits(effort=limits.effort, speed_torque=limits.speed_torque)


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
