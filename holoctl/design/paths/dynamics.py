"""Efforts along a path, affine in sdd and sd^2:

    gamma' B u = r1 sdd + r2 sd^2 + r3 - f(sd)

    r1 = gamma' M q'                r2 = gamma' (M q'' + h(q, q') - h(q, 0))
    r3 = gamma' (h(q, 0) - F - J'f)

f are the forces that change with the speed: friction. If there are as many motors as motions, u is
unique; with more motors it is the least-squares solution, scaled by the limits, within the limits.
Reference: D. Verscheure et al., "Time-optimal path tracking for robots: a convex optimization
approach", IEEE Transactions on Automatic Control, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import daqp
import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import NotActuatedError, SingularityError
from holoctl.base.linalg import least_squares
from holoctl.base.tolerances import ACTUATION_SINGULAR, DAQP_FEASIBLE
from holoctl.design.paths.closed_path import ClosedPath
from holoctl.forces.sum_of_forces import all_efforts
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import external_efforts
from holoctl.tree.kinematics import kinematics

__all__ = ["Dynamics", "dynamics_along", "shared_efforts", "speed_forces"]


IDLE_BALANCED = 1e-3
"""Bodies that spin freely are held still on a path if the efforts about their axes that would be
needed are below this share of the others, and so negligible for the motors."""


@dataclass(frozen=True, eq=False)
class Dynamics:
    """The coefficients of the efforts along a path: n nodes, p driven motions.

    Attributes
    ----------
    path : ClosedPath
    A : (n, p, nu) array
        gamma' B.
    r1, r2, r3 : (n, p) arrays
    speedy : bool
        Whether the mechanism has forces that may change with the speed.
    """

    path: ClosedPath
    A: Array
    r1: Array
    r2: Array
    r3: Array
    speedy: bool

    def balance(self, sdd: Vector, b: Vector, f: Array) -> Array:
        """gamma' B u (n, p) at accelerations and squared speeds (n,), f (n, p)."""
        found: Array = self.r1 * sdd[:, None] + self.r2 * b[:, None] + self.r3 - f
        return found


def dynamics_along(path: ClosedPath, f_ext: Any, at_singular: bool = False) -> Dynamics:
    """The coefficients at all nodes.

    Raises
    ------
    SingularityError
        If the motors do not determine the motion at a node; not with `at_singular`.
    NotActuatedError
        If idle motions would not stay at rest.
    """
    mech = path.system.mech
    model, data, n = mech.model, workspace(mech), path.s.size
    rest = np.zeros(mech.nv)
    w = np.zeros((n, 3, mech.nv))
    for i, (q, d1, d2) in enumerate(zip(path.q, path.d1, path.d2, strict=True)):
        w[i, 2] = pin.rnea(model, data, q, rest, rest)
        w[i, 0] = pin.rnea(model, data, q, rest, d1)
        w[i, 1] = pin.rnea(model, data, q, d1, d2)
    w[:, :2] -= w[:, 2:]
    if f_ext is not None or mech.bound_forces:
        for i, q in enumerate(path.q):
            kin = kinematics(model, data, q, rest, 0.0)
            w[i, 2] -= external_efforts(mech, kin, f_ext)
            if mech.bound_forces:
                w[i, 2] -= all_efforts(mech.bound_forces, kin).total
    gammaT = np.swapaxes(path.gamma, 1, 2)
    A = gammaT @ mech.B
    if not at_singular:
        _check_actuation(path, A)
    _check_idle(path, w, A)
    r1, r2, r3 = np.moveaxis(w @ path.gamma, 1, 0)
    return Dynamics(path, A, r1, r2, r3, bool(mech.bound_forces))


def speed_forces(path: ClosedPath, sd: Vector) -> Array:
    """f (n, p): the forces of the mechanism at these speeds minus those at rest."""
    mech = path.system.mech
    found = np.zeros((path.s.size, mech.nv))
    for i, q in enumerate(path.q):
        found[i] = _forces(mech, q, sd[i] * path.d1[i]) - _forces(mech, q, 0.0 * path.d1[i])
    reduced: Array = np.einsum("iv,ivp->ip", found, path.gamma)
    return reduced


def _forces(mech: Mechanism, q: Vector, v: Vector) -> Vector:
    kin = kinematics(mech.model, workspace(mech), q, v, 0.0)
    found: Vector = all_efforts(mech.bound_forces, kin).total
    return found


def _check_actuation(path: ClosedPath, A: Array) -> None:
    mech = path.system.mech
    c = mech.column_scale
    sizes = np.linalg.norm(path.gamma / c[:, None], axis=1)  # of each driven motion
    motors = np.linalg.norm(c[:, None] * mech.B, axis=0)
    scaled = A / sizes[:, :, None] / motors
    values = np.linalg.svd(scaled, compute_uv=False)
    least = values[:, -1] / np.maximum(values[:, 0], 1e-300)
    worst = int(np.argmin(least))
    if not least[worst] * ACTUATION_SINGULAR >= 1.0:
        raise SingularityError(
            f"{mech.name}: at s = {path.s[worst]:.4g} of the path the motors "
            f"{listing(mech.actuator_names)} do not determine the motion: an actuation "
            "singularity, such as a dead point, which no motion along a path may pass",
            names=mech.actuator_names,
        )


def _check_idle(path: ClosedPath, w: Array, A: Array) -> None:
    """Raise `NotActuatedError` if idle motions, which are held still, would move."""
    mech, idle = path.system.mech, path.system.idle
    if not idle.size:
        return
    c = mech.column_scale
    left = np.abs((w * c) @ idle).max(axis=(0, 2))
    size = np.abs(w * c).max(axis=(0, 2))
    if (left > IDLE_BALANCED * np.maximum(size, size.max() * IDLE_BALANCED)).any():
        moving = np.abs(idle).max(axis=1) > IDLE_BALANCED
        names = [mech.coordinate_names[i] for i in np.flatnonzero(moving)]
        raise NotActuatedError(
            f"{mech.name}: bodies that spin freely, which no motor drives, would start to spin "
            f"along this path, as their masses are not balanced about their axes: "
            f"{listing(names, 8)}; drive them, lock them, or balance them"
        )


def shared_efforts(A: Array, r: Array, lower: Array, upper: Array) -> Array:
    """u (n, nu) at n nodes: A (n, p, nu), r (n, p), bounds (n, nu)."""
    n, p, nu = A.shape
    if nu == p:
        return np.asarray(np.linalg.solve(A, r[:, :, None])[:, :, 0], dtype=float)
    size = np.maximum(np.abs(lower), np.abs(upper)).max(axis=0)
    strongest = float(size[np.isfinite(size)].max(initial=0.0))
    size = np.where(np.isfinite(size), size, strongest or 1.0)
    return np.array(
        [_one(A[i] * size, r[i], lower[i] / size, upper[i] / size) * size for i in range(n)]
    )


def _one(A: Array, r: Vector, lower: Vector, upper: Vector) -> Vector:
    p, nu = A.shape
    u = least_squares(A, r)
    if (u >= lower).all() and (u <= upper).all():
        return u
    room = 1e-6 * (1.0 + np.abs(u))  # the solution is on limits, which a solver meets inexactly
    low, high = np.concatenate([lower - room, r]), np.concatenate([upper + room, r])
    sense = np.zeros(nu + p, dtype=np.intc)
    sense[nu:] = 5  # an equality
    H, f = np.eye(nu), np.zeros(nu)
    x, _, flag, _ = daqp.solve(H, f, A, high, low, sense, primal_tol=DAQP_FEASIBLE)
    return np.asarray(x) if flag >= 1 else u
