"""The reduced equation of motion of a closed chain at a tick: gamma, M, and the known efforts.

    gamma' M a = gamma' (B u + w) + tau        w = F - h

If the rows can be prepared for a tick they are; a state that is doubtful there, or beyond its
limits, is evaluated by the general path, in the same coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, finite
from holoctl.base.tolerances import INVERSE_DOUBT
from holoctl.forces.sum_of_forces import all_in_a_tick
from holoctl.mechanism.checks import check_state
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.coordinate_split import split_rows
from holoctl.projector.partition import Partition
from holoctl.projector.projection import projection_of
from holoctl.rows.constraint_residuals import constraint_residuals
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.terms import check_finite, terms_at
from holoctl.tree.live_motion import live_motion

__all__ = ["ReducedMotion", "reduced_motion"]


_Tick = Callable[[Vector, Vector, float], "ReducedMotion | None"]


class ReducedMotion(NamedTuple):
    """A state and the terms of its equation of motion; the arrays must not be written to.

    Attributes
    ----------
    q, v : (nq,) and (nv,) arrays
        The state; with an explicit chart, corrected by it.
    t : float
        Time, s.
    gamma : (nv, k) array
        A basis of the admissible velocities, by the coordinates of the partition.
    M : (nv, nv) array
        The inertia matrix of the tree.
    w : (nv,) array
        ``F - h``: forces of the mechanism less Coriolis, centrifugal and gravity efforts.
    """

    q: Vector
    v: Vector
    t: float
    gamma: Array
    M: Array
    w: Vector


def reduced_motion(
    mech: Mechanism, part: Partition, limits: StateLimits
) -> Callable[[Vector, Vector, float], ReducedMotion]:
    """A function (q, v, t) of one loop; it raises the same errors as the general path.

    Raises
    ------
    InputError, SingularityError, InconsistentError
        By the function: as `project`, and for a state beyond its limits.
    """
    tick = _prepared(mech, part, limits)

    def at(q: Vector, v: Vector, t: float) -> ReducedMotion:
        found = None if tick is None else tick(q, v, t)
        return in_general(mech, part, limits, q, v, t) if found is None else found

    return at


def in_general(
    mech: Mechanism, part: Partition, limits: StateLimits, q: Vector, v: Vector, t: float
) -> ReducedMotion:
    """The general path: by the projector."""
    q, v, t = check_state(mech, q, v, t)
    T = terms_at(mech, q, v, t)
    check_finite(T)
    limits.check(mech.name, *constraint_residuals(T), "its external efforts are not estimated")
    gamma = projection_of(T, part, "split").gamma
    return ReducedMotion(T.q, T.v, t, gamma, T.M, T.F - T.h)


def _prepared(mech: Mechanism, part: Partition, limits: StateLimits) -> _Tick | None:
    """By the factors of a tick; None if the rows cannot be prepared."""
    model = mech.model
    motion = live_motion(model, model.createData())
    if motion is None or mech.chart is not None:
        return None
    split = split_rows(mech, part, part.independent, motion, INVERSE_DOUBT, limits)
    constrain, solve, G_ind, data = split.constrain, split.solve, split.G_ind, split.data
    r, k = part.rank, part.independent.size
    X, ordered = np.zeros((r, k), order="F"), np.zeros((mech.nv, k))
    ordered[r:] = np.eye(k)
    of_dependent = ordered[:r]
    order = np.argsort(np.concatenate([split.dependent, split.independent]))
    friction, others = all_in_a_tick(mech.bound_forces, model, motion)
    crba, nle = pin.crba, pin.nonLinearEffects

    def tick(q: Vector, v: Vector, t: float) -> ReducedMotion | None:
        if not constrain(q, v, t):
            return None
        X[:] = G_ind
        solve(X)  # G_dep gamma_dep = -G_ind
        np.negative(X, of_dependent)
        M: Array = crba(model, data, q)
        w: Vector = nle(model, data, q, v)
        np.negative(w, w)
        if friction is not None:
            w += friction(q, v, t)
        if others is not None:
            w += others(q, v, t)
        if not finite(w):
            return None
        return ReducedMotion(q.copy(), v.copy(), t, ordered.take(order, 0), M, w)

    return tick
