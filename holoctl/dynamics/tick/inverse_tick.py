"""Inverse dynamics in a tick, with all constants prepared once.

With the kept rows split into dependent and independent columns,

    G_dep a_dep = -drift - G_ind ydd       a from the motion
    w = M a + h - F                        recursive Newton-Euler, forces of the mechanism
    G_dep' y = w_dep                       two vector solves in all: gamma is not formed
    gamma' B u = w_ind - G_ind' y

Derivation: docs/derivations.md, "Inverse dynamics in a tick".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Array, Indices, Vector, listing
from holoctl.base.tolerances import INVERSE_DOUBT
from holoctl.dynamics.tick.acceleration_task import AccelerationTask, Context
from holoctl.dynamics.tick.constraints_and_tree import TickState, numeric_constraints, numeric_tree
from holoctl.dynamics.tick.margin import near_singularity
from holoctl.estimation.estimator_system import EstimatorSystem
from holoctl.estimation.measurement_model import MeasurementModel
from holoctl.laws.forward import mobility, response
from holoctl.laws.inverse import holding, inverse
from holoctl.mechanism.coupled_motors import coupled_motors
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.coordinate_split import Split, split_rows
from holoctl.projector.partition import Partition, most_condition
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.fast_rows import why_not
from holoctl.tree.live_motion import LiveMotion, live_motion

__all__ = [
    "InverseTick", "LastSolve", "Options", "Tick", "coupled", "prepare", "prepare_for_estimate",
    "why_general",
]  # fmt: skip

PASSIVE_DOUBT = 3e2
"""With passive coordinates, real-time inverse dynamics hands over at this norm already: their
motion depends on gamma' M gamma, whose condition number is that of G_dep squared."""


Tick = Callable[[Vector, Vector, Any, float, Vector | None, Vector | None], Vector | None]
"""tick(q, v, target, t, efforts, rates) -> u, or None if the general path must be used. Without a
target, u holds the mechanism at rest, and v is only checked. With rates of the motors, friction is
evaluated at the motion with these rates; see dynamics/friction_velocity.py. A target that is not an
array is a request of the task."""


class Options(NamedTuple):
    """Options of inverse dynamics, as in `PreparedInverseDynamics`."""

    weights: Vector | None
    inconsistent: str
    limits: StateLimits
    task: AccelerationTask | None = None


class LastSolve(NamedTuple):
    """Further results at the state of the last successful tick.

    Attributes
    ----------
    efforts : Tick
        The efforts for another target at the same state.
    acceleration : function (q, v, t) -> (nv,) array or None
        The acceleration caused by the last efforts for a target; the next call overwrites it. If
        friction is compensated at the reference, this is not the target, because the friction at v
        differs.
    response : function (q) -> (H, Y) or None
        The response to efforts, as in dynamics/effort_response.py, with which tests compare; None
        if some motion has no inertia.
    mobility : function (q) -> H or None
        Only H of the response.
    """

    efforts: Tick
    acceleration: Callable[[Vector, Vector, float], Vector | None]
    response: Callable[[Vector], tuple[Array, Array] | None]
    mobility: Callable[[Vector], Array | None]


class InverseTick(NamedTuple):
    """A tick of one thread, and the further results after it."""

    tick: Tick
    last: LastSolve


def why_general(mech: Mechanism, part: Partition, motion: LiveMotion | None = None) -> str:
    """Why the fast path cannot be used; empty if it can. `motion` as in `why_not`."""
    rho, k = part.actuation_rank, part.independent.size
    if rows := why_not(mech, motion):
        return rows
    if rho == 0 or rho < min(mech.nu, k):
        return "the motors drive fewer motions than there are motors and motions" + coupled(mech)
    if rho < k and _motor_coordinates(mech, part) is None:
        return "some motion is passive, and not every motor drives an independent coordinate"
    return ""


def coupled(mech: Mechanism) -> str:
    """The motors that add no motion, as the end of a sentence; empty if couplings tie none."""
    tied = coupled_motors(mech)
    which = f" ({listing(tied)}: couplings tie what they drive to what other motors drive)"
    return which if tied else ""


def prepare(mech: Mechanism, part: Partition, options: Options) -> InverseTick | None:
    """The tick of one thread, or None if only the general path can be used."""
    motion = live_motion(mech.model, mech.model.createData())
    if motion is None or why_general(mech, part, motion):
        return None
    motors, independent, guard = _motor_coordinates(mech, part), part.independent, INVERSE_DOUBT
    if motors is not None:
        passive = np.setdiff1d(independent, motors)
        independent = np.concatenate([motors, passive])
        guard = PASSIVE_DOUBT if passive.size else guard
    more = None if options.task is None else options.task.rows
    split = split_rows(mech, part, independent, motion, guard, options.limits, more)
    return _tick(mech, part, split, motion, motors is not None, options)


def prepare_for_estimate(
    mech: Mechanism,
    part: Partition,
    see: EstimatorSystem,
    sensors: MeasurementModel,
    options: Options,
) -> InverseTick | None:  # fmt: skip
    """The tick at the state of the last estimate, where G_dep is factored already.

    None if the measured coordinates are not the independent ones, or not in the order of the
    motors.
    """
    fast, motion, unseen, columns = see.rows.fast, see.rows.motion, see.unknown, sensors.columns
    if fast is None or motion is None or not see.known or see.bordered:
        return None
    if why_general(mech, part, motion) or not np.array_equal(unseen, part.dependent):
        return None
    motors = _motor_coordinates(mech, part)
    if motors is not None and not np.array_equal(motors, columns):
        return None
    per_unit, moved, pivots = 1.0 / mech.column_scale[unseen], fast.moved, see.pivots
    limit, inverse = min(INVERSE_DOUBT, most_condition(part)) ** 2, np.zeros(unseen.size)

    def constrain(q: Vector, v: Vector, t: float) -> bool:
        np.divide(per_unit, pivots, inverse)
        return bool(inverse.dot(inverse) < limit) and moved(q, v, t)

    split = Split(
        constrain, see.solve, see.solve_transposed, fast.right, see.rows.G_known, unseen, columns,
        motion.data, fast.kept_by,
    )  # fmt: skip
    return _tick(mech, part, split, motion, motors is not None, options)


def _motor_coordinates(mech: Mechanism, part: Partition) -> Indices | None:
    """The coordinate of each motor, if each drives one independent coordinate at ratio 1."""
    motors: Indices = np.argmax(mech.B, axis=0)
    if not set(motors.tolist()) <= set(part.independent.tolist()):
        return None
    selection = np.zeros(mech.B.shape)
    selection[motors, np.arange(mech.nu)] = 1.0
    own = len(set(motors.tolist())) == mech.nu
    return motors if own and np.array_equal(selection, mech.B) else None


def _tick(
    mech: Mechanism, part: Partition, split: Split, motion: LiveMotion, own: bool, options: Options
) -> InverseTick | None:
    """One tick: the laws with the NumPy operators."""
    here = TickState()
    K = numeric_constraints(mech, part, split, here, own, options.weights, options.inconsistent)
    tree = numeric_tree(mech, split.data, motion, here)
    constrain, factor, undriven = split.constrain, K.factor, K.undriven
    near = near_singularity(mech, split, K, own, options.limits.margin)
    of_motors, of_rates = K.of_motors, K.of_rates
    motion_of, a, at = None, None, None
    pushed: Vector | None = None
    if options.task is not None:
        if undriven is None:
            motion_of = options.task.prepare(Context(mech, split, motion, K, tree))
        if motion_of is None:
            return None

    def tick(
        q: Vector, v: Vector, target: Any, t: float, efforts: Vector | None, rates: Vector | None
    ) -> Vector | None:
        nonlocal a, at, pushed
        if not constrain(q, v, t) or (factor is not None and not factor()):
            return None
        if near is not None and near():
            return None
        if motion_of is None or target is None or type(target) is np.ndarray:
            return efforts_here(q, v, target, t, efforts, rates)
        here.at(q, v, t, efforts)
        found = motion_of(q, v, t, target)
        if found is None or here.doubtful:
            return None
        pushed = found.push
        u: Vector
        u, a, at = inverse(K, tree, found.motion, found.rates, pushed)
        return None if here.doubtful else u

    def efforts_here(
        q: Vector, v: Vector, target: Vector | None, t: float, efforts: Vector | None,
        rates: Vector | None,
    ) -> Vector | None:  # fmt: skip
        nonlocal a, at, pushed
        here.at(q, v, t, efforts)
        if target is not None:
            c, pushed = of_motors(target), None
            u, a, at = inverse(K, tree, c, None if rates is None else of_rates(rates), None)
        elif undriven is None:
            u = holding(K, tree)
        else:
            return None  # an unbalanced remainder needs the least squares of the general path
        return None if here.doubtful else u

    def acceleration(q: Vector, v: Vector, t: float) -> Vector | None:
        change = None if at is None else tree.friction_change(at)
        if change is None and pushed is None:
            return a
        N, per_inertia = mobility(K, tree)
        more = 0.0 if change is None else N.T.dot(change)
        found: Vector = a + N.dot(per_inertia(more if pushed is None else more + pushed))
        return None if here.doubtful else found

    def all_response(q: Vector) -> tuple[Array, Array] | None:
        H, N, moved = response(K, tree)
        return None if here.doubtful else (H, N.dot(moved))

    def of_motions(q: Vector) -> Array | None:
        H: Array = response(K, tree)[0]
        return None if here.doubtful else H

    return InverseTick(tick, LastSolve(efforts_here, acceleration, all_response, of_motions))
