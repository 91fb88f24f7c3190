"""Condition and damping of a task, by its Jacobian in scaled rows along an orthonormal basis.

They are independent of masses and of the choice of coordinates. Each row is relative to its nominal
size, that near the reference of the mechanism: a screw always moves its slide by little for each
turn; a stretched arm has lost mobility. With singular values sigma, relative,

    condition    max(sigma_1, 1) / sigma_m
    damping      d^2 (1 - s^2 / d^2)^2 where s < d    1 / s^2 = sum 1 / (sigma_i^2 / mean + lost)

with mean the larger of one and the mean square of sigma. The damping is smooth, and exactly zero
away from singular postures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import HoloctlError
from holoctl.base.linalg import cholesky, orthonormal_columns
from holoctl.base.tolerances import SINGULAR, TASK_DAMPED, TASK_LOST
from holoctl.closing.assembly import assemble
from holoctl.control.tasks.task_protocol import BoundTask
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.projection import projected

__all__ = ["NominalTask", "condition_of", "damping_of", "usual"]

TASK_NEAR, TASK_HELD = (4, 0.3), 1e-7  # a count and a scaled step; a share
"""The nominal size of a row of a task is the largest at the reference, and at TASK_NEAR[0]
configurations at a distance of TASK_NEAR[1]; closures hold a row still if its size is less than the
fraction TASK_HELD of that of the tree alone."""

TASK_NONE = 1e-12  # scaled
"""A task whose rows are all smaller than this, along coordinates of the tree, is moved by none."""

TASKS_REMEMBERED = 100
"""The number of tasks whose nominal sizes a mechanism remembers."""


def condition_of(sizes: Vector) -> float:
    """Condition number from singular values relative to the nominal size."""
    return max(float(sizes[0]), 1.0) / float(sizes[-1]) if sizes[-1] > 0.0 else float("inf")


def damping_of(sizes: Vector) -> float:
    """The damping for singular values relative to the nominal size, relative to the mobility."""
    squares = sizes * sizes
    relative = squares / max(float(squares.mean()), 1.0)
    s2 = 1.0 / float((1.0 / (relative + TASK_LOST)).sum())
    return TASK_DAMPED**2 * max(0.0, 1.0 - s2 / TASK_DAMPED**2) ** 2


class NominalTask(NamedTuple):
    """The nominal size and mobility of a task, at and around the reference.

    Attributes
    ----------
    scale : (rows,) array
        The scale of each row over its nominal size.
    mobility : float
        Mean of the diagonal of the mobility in such rows.
    """

    scale: Vector
    mobility: float


def usual(mech: Mechanism, part: Partition, key: object, task: BoundTask) -> NominalTask:
    """The largest size and mobility at a few configurations; remembered for the description
    `key`."""
    known: dict[object, NominalTask] = mech.per_thread("tasks as usual", dict)
    try:
        found = known.get(key)
    except TypeError:  # a description that has no hash
        return _usual(mech, part, task)
    if found is None:
        if len(known) >= TASKS_REMEMBERED:
            known.clear()
        found = known[key] = _usual(mech, part, task)
    return found


def _usual(mech: Mechanism, part: Partition, task: BoundTask) -> NominalTask:
    """`usual` without memory. Rows that closures hold still, up to rounding errors of floats or of
    the geometry, have the nominal size of the tree alone."""
    there = [(J, E) for J, E in map(_at(mech, part, task), _around(mech, part)) if J.size]
    rows = task.scale.size
    own, whole = np.zeros(rows), np.zeros(rows)
    for J, E in there:
        own = np.maximum(own, np.linalg.norm(J @ orthonormal_columns(E), axis=1))
        whole = np.maximum(whole, np.linalg.norm(J, axis=1))
    most = float(whole.max(initial=0.0))
    most = most if most > TASK_NONE else 1.0  # the tree does not move it either, up to rounding
    held = max(TASK_HELD, part.tolerance) * most
    size = np.where(own > held, own, most)
    moved = [J[own > held] / size[own > held, None] @ E for J, E in there]
    mobility = max((float(np.vecdot(X, X).sum()) / rows for X in moved), default=0.0)
    if not mobility > 0.0:  # nothing moves the task
        bases = (E for _, E in there if E.size)
        mobility = max((float((E * E).sum()) / E.shape[1] for E in bases), default=1.0)
    return NominalTask(task.scale / size, mobility)


def _around(mech: Mechanism, part: Partition) -> Iterator[Vector]:
    """The assembled reference, and configurations near it along the motions."""
    try:
        middle = assemble(mech)[0]
    except HoloctlError:
        middle = mech.reference
    yield middle
    rng, c, rest = np.random.default_rng(0), mech.column_scale, np.zeros(mech.nv)
    try:
        P = projected(mech, middle, rest, 0.0, part)
    except HoloctlError:
        return
    basis = orthonormal_columns(P.gamma / c[:, None])
    for _ in range(TASK_NEAR[0] if basis.shape[1] else 0):
        y = rng.normal(size=basis.shape[1])
        yield pin.integrate(
            mech.model, middle, c * (basis @ (TASK_NEAR[1] * y / np.linalg.norm(y)))
        )


def _at(
    mech: Mechanism, part: Partition, task: BoundTask
) -> Callable[[Vector], tuple[Array, Array]]:
    """A function (q) that returns J in scaled rows and coordinates, and motions E whose inertia is
    the identity; empty arrays if there are none."""
    c, rest, none = mech.column_scale, np.zeros(mech.nv), np.zeros((0, 0))

    def at(q: Vector) -> tuple[Array, Array]:
        try:
            P = projected(mech, q, rest, 0.0, part)
            J = task.scale[:, None] * task.at(P.kinematics).jacobian * c
        except Exception:  # also of user-defined functions: q may not be closed
            return none, none
        L = cholesky(P.gamma.T @ P.terms.M @ P.gamma)
        if not L.condition <= SINGULAR:  # some motion has no inertia, so no metric is used
            return J, P.gamma / c[:, None]
        E = L.whitened(P.gamma / c[:, None])
        good = np.isfinite(J).all() and np.isfinite(E).all()
        return (J, E) if good else (none, none)

    return at
