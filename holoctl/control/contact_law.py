"""The law of unilateral contacts at a state: efforts, motion and wrenches of the ground.

    contact_motion.py       motion and wrenches as functions of the efforts
    contact_program.py      the efforts, by a program around the bilateral solution

`contact_inverse_dynamics` and the controllers use this law.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, NoReturn

import numpy as np
import pinocchio as pin
from scipy.linalg import lapack
from scipy.optimize import linprog

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import InconsistentError, LimitError, SingularityError
from holoctl.control.contact_joints import JointRows
from holoctl.control.contact_motion import (
    ContactMotion,
    ReducedTerms,
    bilateral_unknowns,
    contact_motion,
)
from holoctl.control.contact_program import (
    BY_DAQP,
    ContactProgram,
    by_clarabel,
    infeasibility_ray,
    program_around,
    softened,
    solved_program,
)
from holoctl.control.contact_rows import ContactRows
from holoctl.control.nearest_by_cvxpy import by_cvxpy
from holoctl.control.tasks.task_protocol import mechanism_size
from holoctl.dynamics.actuation import effort_scales
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import plain

__all__ = [
    "STANDARD_GRAVITY",
    "ContactSolution",
    "active_conditions",
    "contact_solution",
    "moment_unit",
]

STANDARD_GRAVITY = 9.81  # m/s^2
"""For the units of a program and its residuals, also where the model has no gravity."""

CONTACTS_AGREE = 1e-6
"""Contacts may contradict each other by this much, relative to the size of their terms."""

ACTIVE = 1e-9
"""A condition is active if its multiplier is above this, relative to the largest."""

AT_BOUND = 1e-9
"""A contact is unloaded if its normal force is within this of its least, in weights."""

IN_THE_RAY = 1e-6
"""Conditions with a smaller share in the proof are not named."""

COSTS = {"lifts": 0.1, "presses": 0.1, "tips": 0.3, "slides": 1.0}
"""Conditions that together mean another one are named by that one: cheaper ones are preferred."""


class ContactSolution(NamedTuple):
    """The result of the law.

    Attributes
    ----------
    u : (nu,) array
        Within its bounds, exactly.
    w : (m,) array
        Scaled wrenches.
    motion : function () -> (k,) array
        y.
    multipliers : (c + nu + n,) array or None
        Of cones, limits of motors and of joints; None if motion and efforts are those of bilateral
        contacts.
    slipping : bool
        Whether contacts could not be kept.
    residual : float
        The relative duality gap, or the largest violation of a condition.
    condition : float
        Of the rows of contacts.
    """

    u: Vector
    w: Vector
    motion: Callable[[], Vector]
    multipliers: Vector | None
    slipping: bool
    residual: float
    condition: float


def moment_unit(mech: Mechanism) -> float:
    """The unit of moments, N m: the weight of all bodies times the size of the mechanism."""

    def unit() -> float:
        mass = float(pin.computeTotalMass(plain(mech.model))) or 1.0  # rotors alone
        return mass * STANDARD_GRAVITY * mechanism_size(mech)

    return mech.per_thread("moment unit", unit)


def contact_solution(
    mech: Mechanism, r: ReducedTerms, ground: ContactRows, bounds: tuple[Vector, Vector],
    policy: str = "raise", solver: str = "daqp", joints: JointRows | None = None,
) -> ContactSolution:  # fmt: skip
    """Solve the law.

    Parameters
    ----------
    mech : Mechanism
    r : ReducedTerms
    ground : ContactRows
    bounds : two (nu,) arrays
        Of efforts.
    policy : str
        ``"raise"``, or ``"nearest"``: contacts slip where they cannot be kept.
    solver : str
        ``"daqp"`` or ``"cvxpy"``.
    joints : JointRows, optional
        Limits of joints; softened where they cannot be kept.

    Raises
    ------
    SingularityError
        If a motion has no inertia.
    InconsistentError
        If contacts contradict each other, or no solver decides.
    LimitError
        With the policy "raise", if the program is infeasible.
    """
    motion = contact_motion(r)
    if motion is None:
        raise SingularityError(f"{mech.name}: a motion has no inertia; give its bodies a mass")
    if motion.off > CONTACTS_AGREE:
        raise InconsistentError(
            f"{mech.name}: no motion keeps these contacts at the velocity v (off by "
            f"{motion.off:.2g}, scaled): their points move against each other or the constraints; "
            "project v first",
            residual=motion.off,
        )
    nu, moment = mech.nu, moment_unit(mech)
    units = np.full(motion.Y.shape[1], moment)
    units[:nu] *= effort_scales(mech)[0]
    s = bilateral_unknowns(motion, units[:nu])
    moves = None if joints is None else motion.motions()
    if _allowed(motion, ground, s, bounds, joints, moves):
        return _solution(motion, s, bounds, None, 0.0)
    conditions = _conditions(motion.w0, motion.Y, ground, bounds, units, moment, joints, moves)
    scaled = _scaled(units[:nu], motion.Y, moment)
    if s.size > nu:  # other forces, the same motion
        C, lower, upper = conditions
        at, inner = C[:, :nu] @ s[:nu], slice(nu, None)
        only = program_around(
            s[inner], units[inner], np.zeros((0, 0)), scaled[nu:, inner],
            (C[:, inner], lower - at, upper - at),
        )  # fmt: skip
        found = solved_program(only, *BY_DAQP, recentre=False)
        if found is not None:
            s[inner] += units[inner] * found.d
            return _solution(motion, s, bounds, None, found.residual)
    program = program_around(s, units, motion.tasks, scaled, conditions)
    order = (by_cvxpy(), *BY_DAQP) if solver == "cvxpy" else (*BY_DAQP, by_clarabel)
    found = solved_program(program, *order)
    if found is None and joints is not None:
        found = solved_program(softened(program, joints.least.size), *order)
    if found is not None:
        s = s + units * found.d[: s.size]
        return _solution(motion, s, bounds, found.multipliers, found.residual)
    if policy == "raise":
        _raise_infeasible(mech, ground, program)
    return _slipping(mech, r, motion, ground, s, bounds, joints)


def _allowed(
    motion: ContactMotion, ground: ContactRows, s: Vector, bounds: tuple[Vector, Vector],
    joints: JointRows | None, moves: tuple[Vector, Array] | None,
) -> bool:  # fmt: skip
    """Whether the bilateral solution is within cones and limits."""
    u = s[: bounds[0].size]
    if (u < bounds[0]).any() or (u > bounds[1]).any():
        return False
    if joints is not None and moves is not None:
        a = joints.S.dot(moves[0] + moves[1].dot(u))
        if (a < joints.least).any() or (a > joints.most).any():
            return False
    return bool((ground.cone.dot(motion.wrenches(s)) <= ground.bound).all())


def _solution(
    motion: ContactMotion, s: Vector, bounds: tuple[Vector, Vector], multipliers: Vector | None,
    residual: float,
) -> ContactSolution:  # fmt: skip
    u = np.minimum(np.maximum(s[: bounds[0].size], bounds[0]), bounds[1])
    return ContactSolution(
        u, motion.wrenches(s), partial(motion.motion, s), multipliers, False, residual,
        motion.condition,
    )  # fmt: skip


def _conditions(
    w0: Vector, Y: Array, ground: ContactRows, bounds: tuple[Vector, Vector], units: Vector,
    moment: float, joints: JointRows | None, moves: tuple[Vector, Array] | None,
) -> tuple[Array, Vector, Vector]:  # fmt: skip
    """C, lower and upper by s, scaled: the cones, then the limits of motors, then those of joints;
    ``w = w0 + Y s``, and moves are y0 and Y_y of ``y = y0 + Y_y s``."""
    c, nu = ground.bound.size, bounds[0].size
    n = 0 if joints is None else joints.least.size
    C, lower, upper = np.zeros((c + nu + n, Y.shape[1])), np.empty(c + nu + n), np.empty(c + nu + n)
    C[:c] = ground.cone @ Y / moment
    C[np.arange(c, c + nu), np.arange(nu)] = 1.0 / units[:nu]
    lower[:c], upper[:c] = -np.inf, (ground.bound - ground.cone @ w0) / moment
    lower[c : c + nu], upper[c : c + nu] = bounds[0] / units[:nu], bounds[1] / units[:nu]
    if joints is not None and moves is not None:
        here = joints.S @ moves[0]
        C[c + nu :, : moves[1].shape[1]] = joints.S @ moves[1] / STANDARD_GRAVITY
        lower[c + nu :] = (joints.least - here) / STANDARD_GRAVITY
        upper[c + nu :] = (joints.most - here) / STANDARD_GRAVITY
    return C, lower, upper


def _scaled(of_motors: Vector, Y: Array, moment: float) -> Array:
    """(u, w) in units, by s."""
    nu = of_motors.size
    u = np.zeros((nu, Y.shape[1]))
    u[:, :nu] = np.diag(1.0 / of_motors)
    return np.concatenate([u, Y / moment])


def _slipping(
    mech: Mechanism, r: ReducedTerms, motion: ContactMotion, ground: ContactRows, s: Vector,
    bounds: tuple[Vector, Vector], joints: JointRows | None,
) -> ContactSolution:  # fmt: skip
    """The motion whose contacts slip least; u and all of w are unknowns."""
    nu, m, moment = mech.nu, r.c.size, moment_unit(mech)
    units = np.full(nu + m, moment)
    units[:nu] *= effort_scales(mech)[0]
    first = np.concatenate([s[:nu], motion.wrenches(s)])
    columns = np.concatenate([r.A, r.J.T, r.g[:, None], r.T.T], axis=1)
    columns, _ = lapack.dtrtrs(motion.L, columns, lower=1)
    x, T = columns[:, : nu + m + 1], columns[:, nu + m + 1 :].T  # x = x[:, :-1] s - x[:, -1]
    Y = np.hstack([np.zeros((m, nu)), np.eye(m)])
    y = lapack.dtrtrs(motion.L, x, lower=1, trans=1)[0]
    moves = -y[:, -1], y[:, :-1]
    program = program_around(
        first, units, T @ x[:, :-1], _scaled(units[:nu], Y, moment),
        _conditions(np.zeros(m), Y, ground, bounds, units, moment, joints, moves),
        slip=motion.along_rows(x[:, :-1]),
    )  # fmt: skip
    if joints is not None:
        program = softened(program, joints.least.size)
    found = solved_program(program, *BY_DAQP, by_clarabel)
    if found is None:
        _raise_infeasible(mech, ground, program)
    s = first + units * found.d[: first.size]
    caused = moves[0] + moves[1] @ s
    return ContactSolution(
        np.clip(s[:nu], *bounds), s[nu:], lambda: caused, found.multipliers, True, found.residual,
        motion.condition,
    )  # fmt: skip


# ------------------------------------------------------------------------------------- names


def active_conditions(
    mech: Mechanism, ground: ContactRows, solution: ContactSolution,
    joints: JointRows | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """The names of active conditions: motors, then contacts, then joints."""
    if solution.multipliers is None:
        return ()
    sizes = np.abs(solution.multipliers)
    acting = sizes > ACTIVE * float(sizes.max(initial=0.0))
    c, nu = ground.bound.size, mech.nu
    motors = acting[c : c + nu]
    names = [name for name, on in zip(mech.actuator_names, motors, strict=True) if on]
    gaps, at = (ground.bound - ground.cone @ solution.w) / moment_unit(mech), 0
    for contact in ground.contacts:
        rows = range(at, at := at + len(contact.kinds))
        labels = dict(zip(rows, contact.kinds, strict=True))
        empty = {
            i for row, (i, kind) in labels.items() if kind == "lifts" and gaps[row] <= AT_BOUND
        }
        found = {
            "lifts" if point in empty else kind
            for row, (point, kind) in labels.items()
            if acting[row]
        }
        loads = {point for point, _ in contact.kinds}
        if "lifts" in found and len(empty) < len(loads):
            found = (found - {"lifts"}) | {"tips"}
        names += [f"{contact.name}.{kind}" for kind in sorted(found)]
    if joints is not None:
        names += joints.names(np.where(acting, solution.multipliers, 0.0)[c + nu :])
    return tuple(names)


_MEANING = {
    "lifts": "to pull, or push less than its least",
    "tips": "to pull with some of its points",
    "slides": "to hold beyond its friction",
    "presses": "to carry more than its most",
}


def _raise_infeasible(mech: Mechanism, ground: ContactRows, program: ContactProgram) -> NoReturn:
    """Raise the error of a program without solution."""
    hard = ground.bound.size + mech.nu  # limits of joints are softened
    ray = infeasibility_ray(
        ContactProgram(program.root, program.regular, *(x[:hard] for x in program[2:]))
    )
    if ray is None:
        raise InconsistentError(
            f"{mech.name}: no solver found efforts on these contacts, and none proved that there "
            "are none: the state is at the edge of what friction and limits allow, or a target, a "
            "force or a mass is out of range"
        )
    shares, y, at = dict[tuple[str, str], float](), np.abs(ray), 0
    for contact in ground.contacts:
        rows = slice(at, at := at + len(contact.kinds))
        kinds = [kind for _, kind in contact.kinds]
        for kind, share in zip(
            kinds, _plainest(contact.cone, contact.bound, kinds, y[rows]), strict=True
        ):
            label = (contact.name, kind)
            shares[label] = shares.get(label, 0.0) + float(share)
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


def _plainest(cone: Array, bound: Vector, kinds: list[str], y: Vector) -> Vector:
    """Multipliers with the same effect as y, of conditions that say the same in plainer words:
    faces on all sides together bound the normal force."""
    if not y.any():
        return y
    cost = np.array([COSTS[kind] for kind in kinds])
    found = linprog(
        cost,
        A_eq=cone.T,
        b_eq=cone.T @ y,
        A_ub=bound[None, :],
        b_ub=np.array([bound @ y]),
        method="highs",
    )
    return np.asarray(found.x) if found.status == 0 else y
