"""The law of tasks: the commanded task acceleration, and the motion that achieves it.

    e = wanted - value        ed = a rate of the reference - J v

acceleration     xdd = a_ref + kd ed + kp e
inertia Ld       xdd = a_ref + Ld^-1 (K e + D ed + F)       F: the external force on the task
natural inertia  xdd = a_ref + A (K e + D ed)               A = J_y W^-1 J_y', the mobility

Of all motions ydd with this xdd, the one nearest to the posture's ydd_p in the metric of the
inertia W, which is dynamically consistent: the posture's part does not accelerate the task.

    ydd = ydd_p + W^-1 J_y' A^-1 (xdd - bias - J_y ydd_p)

A task of lower priority uses the remaining motions, and is achieved as well as these allow. Near a
singular posture A^-1 is damped if that is chosen:

    (A + damping I)^-1

relative to `mobility_size`; the damping is that of tasks/task_singularity.py.

References: O. Khatib, "A unified approach for motion and force control of robot manipulators: the
operational space formulation", 1987; N. Hogan, "Impedance control: an approach to manipulation",
1985; docs/derivations.md, "Task space".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import (
    cholesky,
    least_squares,
    lu,
    orthonormal_columns,
    singular_values,
)
from holoctl.base.tolerances import TASK_SINGULAR
from holoctl.control.tasks.task_protocol import BoundTask, ReferenceMotion
from holoctl.control.tasks.task_singularity import NominalTask, condition_of, damping_of

__all__ = [
    "HeldPosture",
    "PriorityLevel",
    "TaskLaw",
    "TaskRequest",
    "check_regular",
    "critical_damping",
    "gains",
    "matrix",
    "mobility_size",
    "null_space",
    "prioritised",
    "prioritised_damped",
    "times",
]


@dataclass(eq=False)
class TaskRequest:
    """The inputs of a tick of a task law besides the state, and its outputs besides the torque.

    Attributes
    ----------
    wanted : tuple of ReferenceMotion
        One for each task.
    outside : (nv,) array or None
        External efforts that an impedance responds to.
    damping : float
        Output: the damping of singular tasks, relative to their mobility; zero away from
        singularities.
    rates : function () -> (nu,) array, or None
        Output: the rates of the motors at which friction was compensated, unless as measured.
    """

    wanted: tuple[ReferenceMotion, ...]
    outside: Vector | None
    damping: float = 0.0
    rates: Callable[[], Vector] | None = None


def times(gain: Array, x: Vector) -> Vector:
    """A gain, a vector for a diagonal one, times x."""
    found: Vector = gain * x if gain.ndim == 1 else gain.dot(x)
    return found


def matrix(gain: Array) -> Array:
    """A gain as a matrix."""
    return np.diag(gain) if gain.ndim == 1 else gain


@dataclass(frozen=True, eq=False)
class HeldPosture:
    """The posture law of motions that no task needs: the motors are held, or only damped.

    Attributes
    ----------
    held : array or None
        The posture, as it was given; not writable.
    error : function (q) -> (nu,) array, or None
        The position errors of the motors from the posture.
    kp, kd : float
        Gains, 1/s^2 and 1/s.
    """

    held: Vector | None
    error: Callable[[Vector], Vector] | None
    kp: float
    kd: float

    def acceleration(self, q: Vector, rates: Vector) -> Vector:
        """The commanded acceleration of the motors (nu,), at their rates."""
        found: Vector = -self.kd * rates
        if self.error is not None:
            found += self.kp * self.error(q)
        return found


@dataclass(frozen=True, eq=False)
class TaskLaw:
    """A law of tasks.

    Attributes
    ----------
    tasks : tuple of BoundTask
    stiffness, damping : tuples of (rows,) or (rows, rows) arrays
        kp and kd of accelerations, or K and D of forces; damping is None if it is the critical
        damping of the natural inertia.
    inertia : (rows, rows) array or None
        The inertia of an impedance, if it is given.
    natural : bool
        Whether stiffness and damping give forces that act on the natural inertia.
    posture : HeldPosture
    weights : tuple of float or None
        The weights of tasks that share one level; None: by priority.
    damped : bool
        Whether singular tasks are damped; else they are refused.
    usual : tuple of NominalTask
        The nominal scale and mobility of each task.
    """

    tasks: tuple[BoundTask, ...]
    stiffness: tuple[Array, ...]
    damping: tuple[Array | None, ...]
    inertia: Array | None
    natural: bool
    posture: HeldPosture
    weights: tuple[float, ...] | None
    damped: bool
    usual: tuple[NominalTask, ...] = ()

    def command(self, i: int, e: Vector, ed: Vector, damping: Array) -> Vector:
        """``D ed + K e``: a force for an impedance, else an acceleration."""
        return times(damping, ed) + times(self.stiffness[i], e)


def gains(law: TaskLaw) -> tuple[Array, Array | None]:
    """Stiffness and damping of the first task, divided by the given inertia if there is one."""
    stiffness, damping = law.stiffness[0], law.damping[0]
    if law.inertia is None or damping is None:
        return stiffness, damping
    per_inertia = cholesky(law.inertia)
    return per_inertia.solve(matrix(stiffness)), per_inertia.solve(matrix(damping))


# ------------------------------------------------------------------------------ many tasks


class PriorityLevel(NamedTuple):
    """Rows of one priority.

    Attributes
    ----------
    J : (rows, nv) array
        The Jacobian in scaled rows and coordinates, each row divided by its nominal size.
    right : (rows, n) array
        The target of ``J E z`` for each of n motions.
    labels : tuple of str
        The names of the rows.
    roots : (rows,) array
        The factors of rows in least squares, if there are more rows than motions: the nominal size
        times the root of the weight.
    mobility : float
        The nominal mobility.
    """

    J: Array
    right: Array
    labels: tuple[str, ...]
    roots: Vector
    mobility: float


def prioritised(name: str, levels: Sequence[PriorityLevel], E: Array, posture: Array) -> Array:
    """z (k, n) that achieves the levels, each as well as the previous ones allow.

    Parameters
    ----------
    name : str
        The name of the mechanism, for messages.
    levels : sequence of PriorityLevel
    E : (nv, k) array
        The motions, in scaled coordinates; z are coordinates whose inertia is the identity.
    posture : (k, n) array
        The z of the posture, for motions that no level needs.

    Raises
    ------
    SingularityError
        For a level that is singular, or contradicts the previous ones.
    """
    k, n = posture.shape
    z, free = np.zeros((k, n)), np.eye(k)
    for i, level in enumerate(levels):
        if free.shape[1] == 0:
            break
        motions = E @ free
        check_regular(name, level, motions, i)
        J, right = level.J @ motions, level.right - level.J @ (E @ z)
        rows, left = J.shape
        if rows <= left:
            z = z + free @ (J.T @ cholesky(J @ J.T).solve(right))
            free = free @ null_space(J)
        else:
            J, right = level.roots[:, None] * J, level.roots[:, None] * right
            z = z + free @ least_squares(J, right)
            free = free[:, :0]
    return z + free @ (free.T @ (posture - z))


def prioritised_damped(
    levels: Sequence[PriorityLevel], E: Array, posture: Array
) -> tuple[Array, float]:
    """As `prioritised`, with the damped inverse near singular levels, and the largest damping.

    P are the remaining motions, a projection if nothing is damped; the motion that damping takes
    from a level remains for the later levels and the posture.
    """
    k, n = posture.shape
    z, most, left = np.zeros((k, n)), 0.0, k
    P, F = np.eye(k), np.eye(k)  # P = F F' as long as nothing is damped
    T = lu(E.T @ orthonormal_columns(E))  # E = Q T'
    for level in levels:
        rows = min(level.J.shape[0], left)
        if rows == 0:
            break
        X, right, tall = level.J @ E, level.right, level.J.shape[0] > left
        sizes = singular_values(T.solve(P @ X.T))[:rows]  # of X P along Q
        damping, usual = damping_of(sizes), level.mobility
        if tall:
            X, right = level.roots[:, None] * X, level.roots[:, None] * right
            usual *= float((level.roots**2).mean())
        most, added = max(most, damping), damping * mobility_size(X @ P, usual)
        A = X @ P @ X.T
        values, axes = np.linalg.eigh(0.5 * (A + A.T))
        values, axes = values[-rows:] + added, axes[:, -rows:]
        K = P @ X.T @ (axes / values) @ axes.T
        z = z + K @ (right - X @ z)
        if most > 0.0:
            P = P - K @ X @ P
            P = 0.5 * (P + P.T)
        else:
            F = F[:, :0] if tall else F @ null_space(X @ F)
            P = F @ F.T
        left -= rows
    return z + P @ posture, most


def mobility_size(J: Array, usual: float) -> float:
    """The mobility that damping is relative to: the mean diagonal entry of ``J J'``, or the nominal
    mobility if that is larger, so that the damping does not vanish with the rows."""
    return max(float(np.vecdot(J, J).mean()), usual)


def check_regular(name: str, level: PriorityLevel, motions: Array, before: int) -> None:
    """Raise `SingularityError` for a singular level, by the condition of its Jacobian for an
    orthonormal basis of the motions in scaled coordinates, which is independent of masses."""
    condition = condition_of(singular_values(level.J @ orthonormal_columns(motions)))
    if not condition <= TASK_SINGULAR:
        raise SingularityError(
            _why(name, level, motions, condition, before),
            condition=condition, names=list(level.labels),
        )  # fmt: skip


def null_space(J: Array) -> Array:
    """Orthonormal basis of the motions that do not move J z."""
    rows, k = J.shape
    qr, tau, _, _ = lapack.dgeqrf(J.T)
    square = np.zeros((k, k), order="F")
    square[:, :rows] = qr
    q, _, _ = lapack.dorgqr(square, tau)
    return np.asarray(q)[:, rows:]


def _why(name: str, level: PriorityLevel, motions: Array, condition: float, before: int) -> str:
    left = " with the motions that the tasks before it leave" if before else ""
    sizes = np.linalg.norm(level.J @ orthonormal_columns(motions), axis=1)
    still = [
        label
        for label, size in zip(level.labels, sizes.tolist(), strict=True)
        if size * TASK_SINGULAR <= 1.0
    ]
    if still:
        of_them = " that is left" if before else ""
        why = f"no motion{of_them} moves {listing(still, 6)}; take other axes"
    else:
        why = (
            "some direction of it cannot be moved, such as that of a stretched arm; keep away from "
            "this configuration, or take fewer axes"
        )
    return (
        f"{name}: the task {listing(level.labels, 6)} is singular here{left} (condition number "
        f"{condition:.1e}): {why}, or at_singular='damp'"
    )


# ---------------------------------------------------------------------------- critical damping


def critical_damping(stiffness: Array, inertia: Array) -> Array:
    """D with damping ratio one: ``D = 2 L (L^-1 K L^-T)^(1/2) L'``, with ``inertia = L L'``."""
    L = cholesky(inertia)
    X = L.whitened(L.whitened(matrix(stiffness)).T)
    sizes, axes, _ = lapack.dsyev(0.5 * (X + X.T))
    root = L.factor @ (axes * np.sqrt(np.sqrt(np.maximum(sizes, 0.0))))
    found: Array = 2.0 * root @ root.T
    return found
