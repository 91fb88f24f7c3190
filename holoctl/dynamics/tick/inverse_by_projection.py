"""The general path of a tick, used if the result of the fast one is in doubt.

It solves by the projector, as `inverse_dynamics` and `forward_dynamics` do, an order of magnitude
slower than the fast path; and it checks the residuals, so that the result is exact, or an error
explains why there is none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, vector
from holoctl.base.errors import InputError
from holoctl.dynamics.actuation import actuation
from holoctl.dynamics.actuation_side import check_margin
from holoctl.dynamics.certificate import off_dynamics, off_rows
from holoctl.dynamics.forward import accelerate
from holoctl.dynamics.friction_velocity import velocity_at_reference
from holoctl.dynamics.inverse import driven_acceleration
from holoctl.dynamics.tick.inverse_tick import Options
from holoctl.forces.sum_of_forces import all_efforts
from holoctl.mechanism.checks import check_state
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import inverse_tree_dynamics
from holoctl.projector.multipliers import constraint_effort
from holoctl.projector.partition import Partition
from holoctl.projector.projection import projection_of
from holoctl.rows.constraint_residuals import constraint_residuals
from holoctl.rows.state_limits import check_solution
from holoctl.rows.terms import Terms, check_finite, terms_at

__all__ = ["general_acceleration", "general_efforts"]


@np.errstate(all="ignore")
def general_efforts(
    mech: Mechanism,
    part: Partition,
    options: Options,
    q: Vector,
    v: Vector,
    target: Any,
    t: float,
    known: Vector | None = None,
    rates: Vector | None = None,
) -> Vector:
    """The motor efforts for a target of the motors; without one, those that hold at rest.

    `known` are efforts in addition to those of the mechanism's forces. With `rates` of the motors,
    friction is evaluated at the motion with these rates. A target that is not an array is a request
    of the task.

    Raises
    ------
    InputError, SingularityError, InconsistentError
        As `PreparedInverseDynamics.torque`.
    """
    q, v, t = check_state(mech, q, v, t)
    T = terms_at(mech, q, v, t)
    check_finite(T)
    off = constraint_residuals(T)
    options.limits.check(mech.name, *off)
    if options.limits.margin is not None:
        check_margin(mech, part, options.limits.margin, q, t)
    if target is None and v.any():  # the state is checked with its v, and held at rest
        T = terms_at(mech, q, np.zeros(mech.nv), t)
    P = projection_of(T, part)
    act = actuation(P, options.weights)
    known = T.F if known is None else known + T.F
    if options.task and target is not None and not isinstance(target, np.ndarray):
        target, rates, push, *_ = options.task.general(P, act, target, known)
        known = known if push is None else known - push
    if rates is not None and target is not None:
        known = known + _at_other_rates(T, velocity_at_reference(P, act, rates))
    if target is None:
        a = np.zeros(mech.nv)
    else:
        target = vector("target", target, mech.nu, "accelerations of the motors, B' a")
        a = driven_acceleration(P, act, target, known, options.inconsistent)
    w = inverse_tree_dynamics(mech, P.q, P.v, a)
    u = act.efforts(w - known)
    if not np.isfinite(u).all():
        raise InputError("the torque is not finite: an input or the model is out of range")
    broken = missing = 0.0
    if target is not None:  # at rest, the part that motors cannot hold is left out
        reached = mech.B @ u + known
        # by the rows themselves: near a singularity the basis is not orthogonal to them
        constraint = constraint_effort(T, part, w - reached)
        broken, missing = off_rows(T, a), off_dynamics(T, w, reached, constraint)
    if part.tolerance > 0.0:
        off = constraint_residuals(T, part.rows)  # errors of rows left out are not noise
    check_solution(mech.name, *off, broken, missing, act.condition, T.stiffness * part.tolerance)
    return u


def _at_other_rates(T: Terms, v: Vector) -> Vector:
    """The change of the efforts if friction is evaluated at the velocity v."""
    friction = [force for force in T.mechanism.bound_forces if force.friction]
    if not friction:
        return np.zeros(T.mechanism.nv)
    there = all_efforts(friction, replace(T.kinematics, v=v)).total
    change: Vector = there - all_efforts(friction, T.kinematics).total
    return change


@np.errstate(all="ignore")
def general_acceleration(
    mech: Mechanism, part: Partition, q: Vector, v: Vector, tau: Vector, t: float
) -> Vector:
    """The acceleration that efforts on the coordinates cause.

    Raises
    ------
    InputError, SingularityError
        As `PreparedForwardDynamics.acceleration`.
    """
    q, v, t = check_state(mech, q, v, t)
    tau = vector("tau", tau, mech.nv, "efforts on the coordinates; mech.B @ u for motors")
    T = terms_at(mech, q, v, t)
    check_finite(T)
    a, _ = accelerate(projection_of(T, part), tau + T.F)
    if not np.isfinite(a).all():
        raise InputError("the acceleration is not finite: an input is out of range")
    return a
