"""How near a task is to singular: by its Jacobian in scaled rows, along an orthonormal basis.

Masses and the choice of coordinates do not matter then. Rows are relative to the usual size of the
task, that near the reference of the mechanism: a screw moves its slide by little for each turn, and
always does; a stretched arm has lost what it had. Of singular values sigma, relative,

    condition    max(sigma_1, 1) / sigma_m
    damping      d^2 (1 - s^2 / d^2)^2 where s < d    1 / s^2 = sum 1 / (sigma_i^2 / mean + lost)

with mean the larger of one and the mean square of sigma. The damping is smooth, and exactly zero
away from singular postures.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.errors import HoloctlError
from holoctl.base.linalg import largest, orthonormal_columns, singular_values
from holoctl.base.tolerances import TASK_DAMPED, TASK_HELD, TASK_LOST, TASK_NEAR
from holoctl.closing.assembly import assemble
from holoctl.control.tasks.contract import BoundTask
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.projection import Projection, projected

__all__ = ["condition_of", "damping_of", "relative_scale"]

Array = NDArray[np.float64]


def condition_of(sizes: Vector) -> float:
    """Condition number from singular values, relative to the usual size."""
    return max(float(sizes[0]), 1.0) / float(sizes[-1]) if sizes[-1] > 0.0 else float("inf")


def damping_of(sizes: Vector) -> float:
    """The damping for such singular values, relative to the mobility."""
    squares = sizes * sizes
    relative = squares / max(float(squares.mean()), 1.0)
    s2 = 1.0 / float((1.0 / (relative + TASK_LOST)).sum())
    return TASK_DAMPED**2 * max(0.0, 1.0 - s2 / TASK_DAMPED**2) ** 2


def relative_scale(mech: Mechanism, part: Partition, key: object, task: BoundTask) -> Vector:
    """The scale of a task over its usual size; `key` is the description, found once for each."""
    known: dict[object, float] = mech.per_thread("usual sizes of tasks", dict)
    try:
        size = known.get(key)
    except TypeError:  # a description that has no hash
        return task.scale / _usual_size(mech, part, task)
    if size is None:
        size = known[key] = _usual_size(mech, part, task)
    return task.scale / size


def _usual_size(mech: Mechanism, part: Partition, task: BoundTask) -> float:
    """The largest singular value at and around the reference; where closures hold the rows still,
    and this is rounding, of floats or of the geometry, what the tree would move."""
    try:
        middle = assemble(mech)[0]
    except HoloctlError:
        middle = mech.reference
    rest, c = np.zeros(mech.nv), mech.column_scale
    rng, own, whole, basis = np.random.default_rng(0), 0.0, 0.0, None
    for _ in range(TASK_NEAR[0]):
        step = np.zeros(mech.nv)
        if basis is not None:
            y = rng.normal(size=basis.shape[1])
            step = c * (basis @ (TASK_NEAR[1] * y / np.linalg.norm(y)))
        try:
            P = projected(mech, pin.integrate(mech.model, middle, step), rest, 0.0, part)
            J, motions = _scaled(P, task)
        except HoloctlError:
            continue
        basis = motions if basis is None else basis
        if np.isfinite(J).all() and np.isfinite(motions).all():
            own = max(own, largest(singular_values(J @ motions)))
            whole = max(whole, float(np.sqrt(np.vecdot(J, J).max(initial=0.0))))
    held = max(TASK_HELD, part.tolerance)
    return (own if own > held * whole else whole) or 1.0


def _scaled(P: Projection, task: BoundTask) -> tuple[Array, Array]:
    """J in scaled rows and coordinates, and an orthonormal basis of the motions."""
    c = P.mechanism.column_scale
    J = task.scale[:, None] * task.at(P.kinematics).jacobian * c
    return J, orthonormal_columns(P.gamma / c[:, None])
