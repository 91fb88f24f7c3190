"""Inverse dynamics: the motor efforts that cause a motion of the motors.

    rho = nu = k   C = B                    u from K' (y; u) = M a + h - F
    rho = nu < k   C = [B, E]               a = a0 + N z, N' (M a + h - F) = 0 where it is passive
    rho = k < nu   C = E, N = gamma         least norm in u, least squares in the target

K is that of `bordered`, rho the rank of the actuation, k the number of motions, nu of motors.
docs/derivations.md, "In a tick" and "Inverse dynamics"; the Python path is the oracle in the
tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.errors import InputError, NotActuatedError
from holoctl.base.linalg import pivoted_qr
from holoctl.codegen.casadi_extra import SX, casadi_module
from holoctl.codegen.elimination import least_squares, lower_solve, upper_solve
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.bordered import Bordered, bordered, selection
from holoctl.codegen.laws.forward_dynamics import following
from holoctl.codegen.laws.measures import redundant_doubt, state_doubt
from holoctl.codegen.matrices import column, columns, scalars, total
from holoctl.codegen.tree_dynamics import tree_efforts
from holoctl.dynamics.actuation import effort_scales, target_consistent
from holoctl.dynamics.tick.inverse_tick import coupled
from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics
from holoctl.projector.projection import projected
from holoctl.rows.closure_limits import StateLimits

__all__ = [
    "Aim",
    "Aimed",
    "Ground",
    "MotorBorder",
    "aimed_dynamics",
    "holding_function",
    "inverse_function",
    "motor_border",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


def inverse_function(
    E: Expressions,
    weights: Array | None = None,
    inconsistent: str = "raise",
    limits: StateLimits | None = None,
    at_reference: bool = False,
) -> Any:
    """``inverse_dynamics(q, v, target, t) -> u, a, doubt``, as `PreparedInverseDynamics.torque`.

    With limits, doubt tells of the state and of redundant rows too. `at_reference` puts ``rates``
    (nu,) and ``share`` before t: with a share of 1 friction is that of the motion whose motors have
    these rates, see dynamics/reference_rates.py, which is the oracle; with 0 that of v.

    Raises
    ------
    NotActuatedError
        If the mechanism has no motors, cannot move, or its motors drive nothing.
    InputError
        If the motors drive fewer motions than there are motors and motions.
    """
    ca = casadi_module()
    mech = E.mech
    target = ca.SX.sym("target", mech.nu)
    at = (ca.SX.sym("rates", mech.nu), ca.SX.sym("share")) if at_reference else ()
    u, a, doubt = _inverse(E, weights, inconsistent, target, at)
    if limits is not None:
        doubt = total([doubt, *state_doubt(E, limits), *redundant_doubt(E, a)])
    return ca.Function(
        "inverse_dynamics", [E.q, E.v, target, *at, E.t], [u, a, doubt],
        ["q", "v", "target", *["rates", "share"][: len(at)], "t"], ["u", "a", "doubt"],
    )  # fmt: skip


def holding_function(E: Expressions, weights: Array | None = None) -> Any:
    """``holding(q, t) -> u, doubt``, as `PreparedInverseDynamics.holding`, of any state.

    Raises
    ------
    NotActuatedError, InputError
        As `inverse_function`; also where some motion is passive, which nothing may hold.
    """
    ca = casadi_module()
    u, _, doubt = _inverse(E, weights, "project", None, ())
    zero = ca.SX.zeros(E.mech.nv)
    u, doubt = ca.substitute([u, doubt], [E.v], [zero])
    return ca.Function("holding", [E.q, E.t], [u, doubt], ["q", "t"], ["u", "doubt"])


@dataclass(frozen=True, eq=False)
class Ground:
    """Where a law of motions stands; dynamics/tick/aim.py has the same with numbers.

    Attributes
    ----------
    K : Bordered
        The motions are ``K a = [-drift; c]``.
    unit : (k,) array
        What scales c.
    of_motors : function ((nu,) list) -> (k,) list
        c for accelerations of the motors.
    """

    K: Bordered
    unit: Array
    of_motors: Callable[[list[SX]], list[SX]]


@dataclass(frozen=True, eq=False)
class Aimed:
    """What a law of motions asks for.

    Attributes
    ----------
    motion : (k,) list
        c.
    rates : (k,) list or None
        The same of the velocity that friction is taken at; None: v.
    push : (nv, 1) expression or None
        Efforts that the motors are to do the work of besides.
    doubt : list
    """

    motion: list[SX]
    rates: list[SX] | None
    push: SX | None
    doubt: list[SX]


Aim = Callable[[Ground], Aimed]
"""A law that asks for a motion, in the place of a target of the motors."""


def aimed_dynamics(E: Expressions, weights: Array | None, aim: Aim) -> tuple[SX, SX, SX]:
    """u, a and doubt of the motion that a law aims at; where no motion is passive.

    Raises
    ------
    NotActuatedError, InputError
        As `inverse_function`; also where some motion is passive.
    """
    if E.partition.actuation_rank < E.partition.independent.size:
        raise InputError(
            f"{E.mech.name}: some of its motions are passive, and the motion that a task asks for "
            "then cannot be compiled; the controller itself takes it"
        )
    return _inverse(E, weights, "project", aim, ())


@dataclass(frozen=True, eq=False)
class MotorBorder:
    """What a law puts below the kept rows; see `Bordered`.

    Attributes
    ----------
    C : (nv, k) array
    unit : (k,) array
        What scales the rows of C'.
    passive : int array
        Coordinates that tell the motions apart that no motor drives: the last columns of C.
    redundant : bool
        Whether there are more motors than motions; else B stands first in C.
    """

    C: Array
    unit: Array
    passive: Indices
    redundant: bool


def motor_border(E: Expressions) -> MotorBorder:
    """Motors and passive coordinates, or the independent ones where there are more motors."""
    mech, part = E.mech, E.partition
    if part.actuation_rank < mech.nu:
        free = part.independent
        none = np.zeros(0, dtype=np.intp)
        return MotorBorder(selection(mech.nv, free), 1.0 / mech.column_scale[free], none, True)
    u_scale, _ = effort_scales(mech)
    passive = _passive_coordinates(E)
    C = np.hstack([mech.B, selection(mech.nv, passive)])
    unit = np.concatenate([u_scale, 1.0 / mech.column_scale[passive]])
    return MotorBorder(C, unit, passive, False)


def _inverse(
    E: Expressions, weights: Array | None, inconsistent: str, target: SX | Aim | None,
    at: tuple[SX, ...],
) -> tuple[SX, SX, SX]:  # fmt: skip
    """u, a and doubt; without a target, of holding still. `at` are the rates and the share that
    friction is compensated by, or nothing."""
    mech, part = E.mech, E.partition
    # the same checks, in the same words
    prepared = PreparedInverseDynamics(mech, part, weights, inconsistent)
    rho, k, nu = part.actuation_rank, part.independent.size, mech.nu
    if k == 0 or rho == 0:
        raise NotActuatedError(f"{mech.name}: the motors drive none of its {k} motions")
    if rho < min(nu, k):
        raise InputError(
            f"{mech.name}: its {nu} motors drive {rho} of {k} motions, fewer than there are motors "
            f"and motions{coupled(mech)}, so the inverse dynamics cannot be compiled (other "
            "functions can); "
            "PreparedInverseDynamics takes it"
        )
    if rho < nu:
        return _redundant(E, prepared.weights, inconsistent, target, at)
    if rho < k and target is None:
        raise InputError(
            f"{mech.name}: some of its motions are passive, so nothing may hold it still and no "
            "law for that can be compiled; PreparedInverseDynamics.holding takes it"
        )
    return _driven(E, target, at)


def _driven(E: Expressions, target: SX | Aim | None, at: tuple[SX, ...]) -> tuple[SX, SX, SX]:
    """As many motors as motions, or fewer: u beside multipliers, ``K' (y; u) = M a + h - F``."""
    ca = casadi_module()
    mech, border = E.mech, motor_border(E)
    passive, K = border.passive, bordered(E, border.C, border.unit)
    doubt, push = [*E.doubt, *K.doubt], None
    if target is None:
        a = ca.SX.zeros(mech.nv)
    elif callable(target):
        aimed = target(Ground(K, border.unit, lambda accelerations: accelerations))
        a, push, doubt = K.motion(aimed.motion), aimed.push, [*doubt, *aimed.doubt]
        if aimed.rates is not None:
            at = (column(aimed.rates), ca.SX(1.0))
    else:
        a = K.motion([*scalars(target), *[ca.SX(0.0)] * passive.size])
    follow = None
    if passive.size:
        N = K.basis(passive.size)
        z, more = following(E, N)
        doubt += more

        def follow(w: SX) -> SX:
            """The motion along N that leaves ``N' w = 0``."""
            return N @ z(w)

    there = None
    if at:  # B' v = rates; what no motor drives has the momentum of v
        reference = K.velocity([*scalars(at[0]), *[ca.SX(0.0)] * passive.size])
        if follow is not None:
            reference = reference + follow(_inertia_times(E, reference - E.v))
        there = _shared(E, reference, at[1])
        doubt += E.forces.friction_doubt_at(E.v, there)
    w = E.needed(a, there)
    if follow is not None:
        a = a + follow(w)
        w = E.needed(a, there)
        moved = follow(w)  # what rounding left over
        a, w = a + moved, w + _inertia_times(E, moved)
    if push is not None:
        w = w + push
    u = K.efforts(w)[: mech.nu]
    return column(u), a, total(doubt)


def _shared(E: Expressions, reference: SX, share: SX) -> SX:
    """The reference, or v: exactly, for a share of 1 or 0."""
    return share * reference + (1.0 - share) * E.v


def _inertia_times(E: Expressions, a: SX) -> SX:
    """``M a``, without forming M."""
    return tree_efforts(E.tree, casadi_module().SX.zeros(E.mech.nv), a, gravity=False)


def _passive_coordinates(E: Expressions) -> Indices:
    """Coordinates that tell the passive motions apart best; none where there are no such."""
    mech, part = E.mech, E.partition
    count = part.independent.size - part.actuation_rank
    if count <= 0:
        return np.zeros(0, dtype=np.intp)
    P = projected(mech, E.samples[0], np.zeros(mech.nv), 0.0, part, "orthonormal")
    c = mech.column_scale[:, None]
    gamma = P.gamma / c
    driven = pivoted_qr(gamma.T @ (c * mech.B), part.actuation_rank)
    passive = gamma @ driven.q[:, part.actuation_rank :]
    return np.sort(pivoted_qr(passive.T, count).pivots[:count])


def _redundant(
    E: Expressions, weights: Array | None, inconsistent: str, target: SX | Aim | None,
    at: tuple[SX, ...],
) -> tuple[SX, SX, SX]:  # fmt: skip
    """More motors than motions: the nearest motion, and the efforts of least norm."""
    ca = casadi_module()
    mech, independent, border = E.mech, E.partition.independent, motor_border(E)
    unit = mech.column_scale[independent]
    u_scale, cost = effort_scales(mech, weights)
    K = bordered(E, border.C, border.unit)
    N = K.basis(independent.size)
    Y = ca.SX(np.diag(u_scale)) @ ca.SX(mech.B.T) @ N @ ca.SX(np.diag(unit))  # (nu, k), scaled
    Q, R, doubt = least_squares(columns(Y))
    a, bias = ca.SX.zeros(mech.nv), K.motion([ca.SX(0.0)] * independent.size)
    there = push = None

    def of_motors(accelerations: SX) -> tuple[SX, list[SX]]:
        """The nearest ydd, and what is left."""
        y, left = _nearest(Q, ca.SX(u_scale) * (accelerations - ca.SX(mech.B.T) @ bias))
        return ca.SX(unit) * column(upper_solve(R, y)), left

    if callable(target):
        aimed = target(Ground(K, border.unit, lambda x: scalars(of_motors(column(x))[0])))
        a, push, doubt = K.motion(aimed.motion), aimed.push, [*doubt, *aimed.doubt]
        if aimed.rates is not None:
            there = K.velocity(aimed.rates)
            doubt = [*doubt, *E.forces.friction_doubt_at(E.v, there)]
    elif target is not None:
        ydd, left = of_motors(target)
        if inconsistent == "raise":
            consistent = target_consistent(E.partition.tolerance)
            doubt = [*doubt, *((x / (0.1 * consistent)) ** 2 for x in left)]
        a = bias + N @ ydd
    if at:
        v_t = K.velocity([ca.SX(0.0)] * independent.size)
        y, _ = _nearest(Q, ca.SX(u_scale) * (at[0] - ca.SX(mech.B.T) @ v_t))
        there = _shared(E, v_t + N @ (ca.SX(unit) * column(upper_solve(R, y))), at[1])
        doubt = [*doubt, *E.forces.friction_doubt_at(E.v, there)]
    needed = E.needed(a, there)
    w = scalars(ca.SX(unit) * (N.T @ (needed if push is None else needed + push)))
    if weights is not None:
        Q, R, more = least_squares(columns(ca.SX(np.diag(1.0 / cost)) @ Y))
        # weights are unequal by intention, so pivots may be a hundred times smaller here
        doubt = [*doubt, *((0.01 / float(cost.min())) ** 2 * x for x in more)]
    A = Y if weights is None else ca.SX(np.diag(1.0 / cost)) @ Y
    x, left = ca.SX.zeros(mech.nu), column(w)
    for _ in range(1 if weights is None else 2):  # with unequal weights Q loses digits
        s = lower_solve(R, scalars(left))
        x = x + sum((s[j] * column(Q[j]) for j in range(len(Q))), ca.SX.zeros(mech.nu))
        left = column(w) - A.T @ x
    u = ca.SX(u_scale / cost) * x
    return u, a, total([*E.doubt, *K.doubt, *doubt])


def _nearest(Q: list[list[SX]], wanted: SX) -> tuple[list[SX], list[SX]]:
    """``Q' wanted``, and what is left of it."""
    ca, left, y = casadi_module(), scalars(wanted), []
    for direction in Q:
        y.append(ca.dot(column(direction), column(left)))
        left = [x - y[-1] * c for x, c in zip(left, direction, strict=True)]
    return y, left
