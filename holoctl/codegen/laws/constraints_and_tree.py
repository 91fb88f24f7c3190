"""The constraints and the tree as expressions: what laws are written over; laws/operators.py.

    rho = nu <= k   C = [B, E]        E selects coordinates of motions that no motor drives
    rho = k < nu    C = E             least squares in the motion, least norm in the efforts

K = [G; C'] is that of `Bordered`; rho is the rank of the actuation, k the number of motions, nu of
motors. docs/derivations.md, "Inverse dynamics in a tick" and "Inverse dynamics".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from holoctl.base.checks import Array, Indices, one_of
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.base.linalg import pivoted_qr
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.elimination import factored, least_squares, lower_solve, upper_solve
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.bordered_elimination import Bordered, bordered, selection
from holoctl.codegen.matrices import column, columns, scalars
from holoctl.codegen.tree_dynamics import mass_matrix
from holoctl.dynamics.actuation import effort_scales, effort_weights, target_consistent
from holoctl.dynamics.inverse import POLICIES
from holoctl.dynamics.tick.inverse_tick import coupled
from holoctl.projector.partition import check_motors
from holoctl.projector.projection import projected

__all__ = [
    "MotorBorder",
    "SymbolicConstraints",
    "SymbolicTree",
    "free_constraints",
    "motor_border",
    "motor_constraints",
]


@dataclass(frozen=True, eq=False)
class SymbolicConstraints:
    """`laws.contract.Constraints` as expressions: columns (n, 1) and matrices.

    Attributes
    ----------
    bordered : Bordered
    unit : (k,) array
        What scales c.
    guard : list of expressions
        Of the quantities that were computed; each is below one if they can be trusted.
    """

    bordered: Bordered
    unit: Array
    guard: list[SX]
    of_motors: Callable[[SX], SX]
    of_rates: Callable[[SX], SX]
    motion: Callable[[SX], SX]
    velocity: Callable[[SX], SX]
    along: Callable[[SX], SX]
    share: Callable[[SX], SX]
    basis: Callable[[], SX]
    actuation: Callable[[], SX]
    undriven: Callable[[], SX] | None
    keeps: None = None

    @property
    def rows(self) -> Callable[[SX], tuple[SX, SX, SX]]:
        """J_c, and what is known of rows J."""
        return self.bordered.rows


@dataclass(frozen=True, eq=False)
class SymbolicTree:
    """`laws.contract.Tree` as expressions. With a `portion`, friction is that of this portion of
    the requested velocity, and of v else: exactly, for 1 or 0."""

    E: Expressions
    portion: SX | None = None
    guard: list[SX] = field(default_factory=list)
    steps: int = 2

    @property
    def v(self) -> SX:
        """The velocity."""
        return self.E.v

    @property
    def friction(self) -> bool:
        """Whether there is any."""
        return self.E.forces.friction is not None

    def needed(self, a: SX, at: SX | None) -> SX:
        """``M a + h - F``."""
        if at is None:
            return self.E.needed(a)
        if self.portion is not None:
            at = self.portion * at + (1.0 - self.portion) * self.E.v
        self.guard.extend(self.E.forces.friction_guard_at(self.E.v, at))
        return self.E.needed(a, at)

    def at_rest(self) -> SX:
        """Where nothing accelerates; who asks puts zero for v."""
        return self.E.needed(casadi_module().SX.zeros(self.E.mech.nv))

    def inertia_times(self, X: SX) -> SX:
        """``M X``."""
        return mass_matrix(self.E.tree) @ X

    def cholesky(self, W: SX) -> Callable[[SX], SX]:
        """Of a reduced inertia."""
        ca, factors = casadi_module(), factored(W, self.E.precision.reduced)
        self.guard.extend(factors.guard)

        def solve(b: SX) -> SX:
            return ca.horzcat(*(column(factors.solve(scalars(x))) for x in ca.horzsplit(b)))

        return solve


def free_constraints(E: Expressions) -> SymbolicConstraints:
    """The constraints with c of the independent coordinates, without motors."""
    free = E.partition.independent
    unit = 1.0 / E.mech.column_scale[free]
    K = bordered(E, selection(E.mech.nv, free), unit)

    @cache
    def basis() -> SX:
        return K.basis(free.size)

    def no_motors(_: SX) -> SX:
        raise NotActuatedError(f"{E.mech.name}: these constraints were prepared without motors")

    return SymbolicConstraints(
        K, unit, list(K.guard), no_motors, no_motors, K.motion, K.velocity, K.along, no_motors,
        basis, lambda: basis().T @ casadi_module().SX(E.mech.B), None,
    )  # fmt: skip


def motor_constraints(
    E: Expressions, weights: Array | None = None, inconsistent: str = "project"
) -> SymbolicConstraints:
    """The constraints with what drives them.

    Raises
    ------
    NotActuatedError
        If the mechanism has no motors, cannot move, or its motors drive nothing.
    InputError
        If the motors drive fewer motions than there are motors and motions.
    """
    mech, part = E.mech, E.partition
    one_of("inconsistent", inconsistent, POLICIES)
    if mech.nu == 0:
        raise NotActuatedError(f"{mech.name} has no motors, so there are no torques")
    check_motors(mech, part)
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
    border = motor_border(E)
    K = bordered(E, border.C, border.unit)
    weights = effort_weights(mech, weights)
    if border.redundant:
        return _shared(E, K, border, weights, inconsistent)
    return _driven(E, K, border)


def _driven(E: Expressions, K: Bordered, border: MotorBorder) -> SymbolicConstraints:
    """As many motors as motions, or fewer: they stand first in c."""
    ca, nu, k, passive = casadi_module(), E.mech.nu, border.unit.size, border.passive.size

    def padded(of_motors: SX) -> SX:
        return ca.vertcat(of_motors, ca.SX.zeros(passive)) if passive else of_motors

    return SymbolicConstraints(
        K, border.unit, list(K.guard), padded, padded, K.motion, K.velocity, K.along,
        lambda x: x[:nu], cache(lambda: K.basis(k)), lambda: ca.SX(np.eye(k)[:, :nu]),
        (lambda: K.basis(passive)) if passive else None,
    )  # fmt: skip


def _shared(
    E: Expressions, K: Bordered, border: MotorBorder, weights: Array | None, inconsistent: str
) -> SymbolicConstraints:
    """More motors than motions: the nearest motion, and the efforts of least norm."""
    ca, mech = casadi_module(), E.mech
    k, unit = border.unit.size, ca.SX(1.0 / border.unit)
    u_scale, cost = effort_scales(mech, weights)
    N, none, guard = K.basis(k), ca.SX.zeros(k), list(K.guard)
    BT = ca.SX(mech.B.T)
    Y = ca.SX(np.diag(u_scale)) @ BT @ N @ ca.SX(np.diag(1.0 / border.unit))  # (nu, k), scaled
    least = E.precision.least_pivot
    Q, R, of_Y = least_squares(columns(Y), least)
    bias, v_t = K.motion(none), K.velocity(none)
    guard += of_Y

    def nearest(wanted: SX) -> tuple[SX, list[SX]]:
        """c, and what is left of scaled rates or accelerations."""
        y, left = _nearest(Q, wanted)
        return unit * column(upper_solve(R, y)), left

    def of_motors(target: SX) -> SX:
        c, left = nearest(ca.SX(u_scale) * (target - BT @ bias))
        if inconsistent == "raise":
            consistent = target_consistent(E.partition.tolerance)
            guard.extend((x / (0.1 * consistent)) ** 2 for x in left)
        return c

    def share(x: SX) -> SX:
        w, A, Q_w, R_w = unit * x, Y, Q, R
        if weights is not None:
            A = ca.SX(np.diag(1.0 / cost)) @ Y
            Q_w, R_w, more = least_squares(columns(A), least)
            # weights are unequal by intention, so pivots may be a hundred times smaller here
            guard.extend((0.01 / float(cost.min())) ** 2 * d for d in more)
        u, left = ca.SX.zeros(mech.nu), w
        for _ in range(1 if weights is None else 2):  # with unequal weights Q loses digits
            s = lower_solve(R_w, scalars(left))
            u = u + sum((s[j] * column(Q_w[j]) for j in range(k)), ca.SX.zeros(mech.nu))
            left = w - A.T @ u
        return ca.SX(u_scale / cost) * u

    return SymbolicConstraints(
        K, border.unit, guard, of_motors, lambda x: nearest(ca.SX(u_scale) * (x - BT @ v_t))[0],
        lambda c: bias + N @ c, lambda c: v_t + N @ c, lambda w: N.T @ w, share,
        lambda: N, lambda: (BT @ N).T, None,
    )  # fmt: skip


def _nearest(Q: list[list[SX]], wanted: SX) -> tuple[list[SX], list[SX]]:
    """``Q' wanted``, and what is left of it."""
    ca, left, y = casadi_module(), scalars(wanted), []
    for direction in Q:
        y.append(ca.dot(column(direction), column(left)))
        left = [x - y[-1] * c for x, c in zip(left, direction, strict=True)]
    return y, left


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
        Whether there are more motors than motions; else B is the first part of C.
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
