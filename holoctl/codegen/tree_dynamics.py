"""The dynamics of the tree as expressions: ``M a + h``, and M.

Forces and motions are computed in the axes of the steps, where most entries are zero or constant,
and CasADi folds these. References: R. Featherstone, Rigid Body Dynamics Algorithms, chapter 5
(recursive Newton-Euler) and chapter 6 (composite rigid bodies).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from holoctl.base.checks import Array
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.tree import Step, TreeSteps, constant

__all__ = [
    "composite_wrenches",
    "fill_column",
    "mass_matrix",
    "rotor_inertia",
    "symmetric",
    "tree_efforts",
]


def tree_efforts(tree: TreeSteps, v: SX, a: SX, gravity: bool = True) -> SX:
    """``M a + h`` (nv, 1), by the recursive Newton-Euler algorithm in the axes of the bodies.

    With U = skew(alpha) + skew(omega)^2, a point at r moves with acceleration ``a0 + U r``, so

        force = m a0 + U c,      moment = axial(U J) + c x a0

    with c and J the integrals of r and ``r r^T`` over the body. Without velocities and gravity
    this is ``M a``.
    """
    ca = casadi_module()
    cross, zero = ca.cross, ca.SX.zeros(3)
    n = len(tree.steps)
    omega, alpha, at, U = [zero] * n, [zero] * n, [zero] * n, [ca.SX.zeros(3, 3)] * n
    at[0] = -constant(tree.gravity) if gravity else zero
    force, moment = [zero] * n, [zero] * n
    for i, s in enumerate(tree.steps[1:], 1):
        j, Rt = s.parent, s.R.T
        carried = Rt @ omega[j]
        turn, slide = _motion(s, v)
        turn_a, slide_a = _motion(s, a)
        omega[i] = carried + turn
        alpha[i] = Rt @ alpha[j] + cross(carried, turn) + turn_a
        at[i] = Rt @ (at[j] + U[j] @ s.p) + slide_a
        if not slide.is_zero():
            at[i] += cross(carried + omega[i], slide)
        U[i] = _second_rate(omega[i], alpha[i])
        if _has_inertia(s):
            c, UJ = _exact(s.first), U[i] @ _exact(s.second)
            force[i] = s.mass * at[i] + U[i] @ c
            moment[i] = cross(c, at[i]) + _axial(UJ)
    efforts = ca.SX.zeros(tree.nv)
    for i in range(n - 1, 0, -1):
        s = tree.steps[i]
        for c in s.columns:
            k = c.coordinate
            efforts[k] = _dot(c.angular, moment[i]) + _dot(c.linear, force[i])
            if tree.armature[k]:
                efforts[k] += tree.armature[k] * a[k]
        if s.parent:
            pushed = s.R @ force[i]
            force[s.parent] = force[s.parent] + pushed
            moment[s.parent] = moment[s.parent] + s.R @ moment[i] + cross(s.p, pushed)
    return efforts


def mass_matrix(tree: TreeSteps) -> SX:
    """M (nv, nv), by the composite-rigid-body algorithm; entries that are always zero are not
    stored."""
    M = casadi_module().SX(tree.nv, tree.nv)
    for i, k, f, m in composite_wrenches(tree):
        fill_column(M, tree, i, k, f, m)
    return M + rotor_inertia(tree)


def rotor_inertia(tree: TreeSteps) -> SX:
    """The armature of the coordinates, (nv, nv)."""
    ca = casadi_module()
    return ca.sparsify(ca.diag(ca.SX(tree.armature)))


def composite_wrenches(tree: TreeSteps) -> Iterator[tuple[int, int, SX, SX]]:
    """Of each coordinate its step, its index, and the force and moment that its unit acceleration
    takes there, with all bodies that the step carries as one body; the last steps first.
    The armature stays apart."""
    ca, cross = casadi_module(), casadi_module().cross
    mass = [s.mass for s in tree.steps]
    first = [_exact(s.first) for s in tree.steps]
    inertia = [_about_origin(s.second) for s in tree.steps]
    for i in range(len(tree.steps) - 1, 0, -1):
        s = tree.steps[i]
        for column in s.columns:
            w, u = constant(column.angular), constant(column.linear)
            f = mass[i] * u + cross(w, first[i])
            yield i, column.coordinate, f, inertia[i] @ w + cross(first[i], u)
        if s.parent:
            turned = s.R @ first[i]
            shifted = ca.skew(s.p) @ ca.skew(turned + 0.5 * mass[i] * s.p)
            mass[s.parent] += mass[i]
            first[s.parent] = first[s.parent] + turned + mass[i] * s.p
            inertia[s.parent] = inertia[s.parent] + symmetric(
                s.R @ inertia[i] @ s.R.T - shifted - shifted.T
            )


def symmetric(A: SX) -> SX:
    """A symmetric matrix, of whose upper half nothing is computed."""
    ca = casadi_module()
    return ca.tril2symm(ca.tril(A))


def fill_column(
    M: SX, tree: TreeSteps, i: int, k: int, f: SX, m: SX, base: int = 0
) -> tuple[SX, SX]:
    """Row and column k of M from the force and moment that unit acceleration of k takes at step i,
    of the coordinates from there down to the step `base`; what is left to that one."""
    ca = casadi_module()
    while i != base:
        s = tree.steps[i]
        for other in s.columns:
            value = _dot(other.angular, m) + _dot(other.linear, f)
            if not value.is_zero():
                M[other.coordinate, k] = M[k, other.coordinate] = value
        f = s.R @ f
        m = s.R @ m + ca.cross(s.p, f)
        i = s.parent
    return f, m


def _motion(s: Step, rates: SX) -> tuple[SX, SX]:
    """``S_w x`` and ``S_v x`` of a step."""
    ca = casadi_module()
    turn, slide = ca.SX.zeros(3), ca.SX.zeros(3)
    for c in s.columns:
        turn = turn + constant(c.angular) * rates[c.coordinate]
        slide = slide + constant(c.linear) * rates[c.coordinate]
    return turn, slide


def _second_rate(w: SX, alpha: SX) -> SX:
    """``skew(alpha) + skew(w)^2``."""
    ca = casadi_module()
    x, y, z = w[0], w[1], w[2]
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    ax, ay, az = alpha[0], alpha[1], alpha[2]
    return ca.vertcat(
        ca.horzcat(-(yy + zz), xy - az, xz + ay),
        ca.horzcat(xy + az, -(xx + zz), yz - ax),
        ca.horzcat(xz - ay, yz + ax, -(xx + yy)),
    )


def _axial(A: SX) -> SX:
    """The integral of r x (U r), from A = U J."""
    ca = casadi_module()
    return ca.vertcat(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1])


def _dot(constant: Sequence[float] | Array, x: SX) -> SX:
    """A constant vector times an expression, without the terms that are zero."""
    total = casadi_module().SX(0.0)
    for c, entry in zip(constant, x.elements(), strict=True):
        if c:
            total = total + float(c) * entry
    return total


def _has_inertia(s: Step) -> bool:
    return isinstance(s.mass, casadi_module().SX) or bool(s.mass or s.second.any())


def _about_origin(second: Array | SX) -> SX:
    """The inertia of a body about its origin, ``tr(J) - J``."""
    ca = casadi_module()
    if isinstance(second, ca.SX):
        return ca.trace(second) * ca.SX.eye(3) - second
    return _exact(np.trace(second) * np.eye(3) - second)


def _exact(x: Array | SX) -> SX:
    """Expressions of constants that have a unit, so that no size is small in itself. Expressions
    stay as they are."""
    ca = casadi_module()
    return x if isinstance(x, ca.SX) else ca.SX(ca.DM(np.array(x, dtype=float)))
