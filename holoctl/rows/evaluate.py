"""All rows of a mechanism at a state, and the indices of those of each constraint.

error phi(q, t)    rate G v + phi_t    G    drift: d2/dt2 phi at a = 0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, known_name, read_only, shaped
from holoctl.constraints.constraint_protocol import Rows
from holoctl.constraints.user_constraints import checked_rows, of_library
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.layout import layout
from holoctl.tree.kinematics import Kinematics, kinematics
from holoctl.tree.live_motion import live_motion

__all__ = [
    "ScaledRows",
    "by_constraint",
    "constraint_rows",
    "may_depend_on_time",
    "rows_at",
    "rows_of",
    "scaled_rows_at",
]


class ScaledRows(NamedTuple):
    """All m rows at a state, in scaled rows and coordinates.

    Attributes
    ----------
    jacobian : (m, nv) array
        ``Dr G Dc``; a new array.
    error, rate : (m,) arrays
        ``Dr phi`` and ``Dr (G v + phi_t)``.
    """

    jacobian: Array
    error: Vector
    rate: Vector


def constraint_rows(
    mech: Mechanism, q: Vector, v: Vector, t: float = 0.0
) -> tuple[Kinematics, Rows]:
    """Kinematics and all constraint rows at (q, v), rows in the order of the constraints."""
    return kinematics(mech.model, workspace(mech), q, v, t), rows_at(mech, q, v, t)


def rows_at(
    mech: Mechanism, q: Vector, v: Vector, t: float = 0.0, *, in_a_tick: bool = False
) -> Rows:
    """All constraint rows at (q, v), in the order of the constraints; read-only.

    The evaluation is prepared once for each thread. User-defined rows are evaluated by their
    `rows`, or `in_a_tick` by the `tick` that they offer. If the prepared evaluation fails, as at
    half a turn of an orientation or for numbers that are not finite, each constraint is evaluated
    separately.
    """
    if in_a_tick and mech.chart is None:
        return mech.per_thread("rows in a tick", lambda: _prepared(mech, without_ticks=False))(
            q, v, t
        )
    return mech.per_thread("rows", lambda: _prepared(mech, without_ticks=True))(q, v, t)


def _prepared(mech: Mechanism, *, without_ticks: bool) -> Callable[[Vector, Vector, float], Rows]:
    model, m, nv = mech.model, mech.row_scale.size, mech.nv
    data, rest = model.createData(), np.zeros(nv)
    motion = live_motion(model, data)

    def one_by_one(q: Vector, v: Vector, t: float) -> Rows:
        kin = kinematics(model, data, q, v, t)
        found, G, W = np.zeros((3, m)), np.zeros((m, nv)), None
        for block, where in mech.blocks:
            r = checked_rows(block, block.rows(kin), nv)
            found[:, where], G[where] = (r.rate, r.error, r.drift), r.jacobian
            W = r.wrenches if len(mech.blocks) == 1 else None
        return _frozen(found, G, W)

    if motion is None or m == 0:
        return one_by_one
    unscaled, every = np.ones(m), np.arange(m)
    parts, order, WJ, S = layout(
        mech, motion, every, unscaled, StateLimits(1.0, 1.0), without_ticks=without_ticks
    )
    in_order = np.array_equal(order, every)
    place = np.argsort(order)
    wrenches = [part.wrenches for part in parts if part.wrenches is not None]
    evaluators, first = [part.evaluate for part in parts], parts[0]
    alone = len(parts) == 1 and in_order

    def evaluate(q: Vector, v: Vector, t: float) -> Rows:
        pin.computeForwardKinematicsDerivatives(model, data, q, v, rest)
        off = 0.0
        for part in evaluators:
            off += part(q, v, t)
        if not off < np.inf:
            return one_by_one(q, v, t)
        found, G, W = np.empty((3, m)), WJ * S, None
        if alone:
            found[:2] = first.off
            np.negative(first.right, found[2])
            return _frozen(found, G, wrenches[0]().copy("K") if wrenches else None)
        np.concatenate([part.off for part in parts], 1, out=found[:2])
        np.negative(np.concatenate([part.right for part in parts]), found[2])
        if len(wrenches) == len(parts):
            W = np.concatenate([of_part() for of_part in wrenches])
        if not in_order:
            found, G = found.take(place, 1), G.take(place, 0)
            W = None if W is None else W.take(place, 0)
        return _frozen(found, G, W)

    return evaluate


def _frozen(found: Array, jacobian: Array, wrenches: Array | None) -> Rows:
    """Read-only `Rows` from rates, errors and drifts (3, m)."""
    rates, errors, drifts = read_only(found)
    if wrenches is not None:
        read_only(wrenches)
    return Rows(errors, rates, read_only(jacobian), drifts, wrenches)


def scaled_rows_at(mech: Mechanism, q: Vector, v: Vector, t: float) -> ScaledRows:
    """All rows at a state, which is not checked; not finite if the state is out of range."""
    r, rows = mech.row_scale, rows_at(mech, q, v, t, in_a_tick=True)
    return ScaledRows(rows.jacobian * mech.scale, r * rows.error, r * rows.rate)


def may_depend_on_time(mech: Mechanism) -> bool:
    """Whether some row may depend on time: a user-defined one, or a `Custom` with ``time=True``."""

    def found() -> bool:
        return any(
            getattr(getattr(b, "description", None), "time", False) or not of_library(b)
            for b in mech.bound
        )

    return mech.per_thread("may depend on time", found)


def rows_of(mech: Mechanism, name: Any) -> slice:
    """The indices of the rows of one constraint among all m."""
    i = mech.constraint_names.index(
        known_name(name, mech.constraint_names, "constraint", mech.name)
    )
    start = sum(len(bound.labels) for bound in mech.bound[:i])
    return slice(start, start + len(mech.bound[i].labels))


def by_constraint(mech: Mechanism, x: Any) -> dict[str, Vector]:
    """Numbers of all rows, such as multipliers or impulses, as one array for each constraint.

    Parameters
    ----------
    mech : Mechanism
    x : (m,) array_like
        One number for each row, finite or not; or one boolean, as in ``result.unique``.

    Returns
    -------
    dict
        Constraint name to the numbers of its rows, in the order of ``mech.constraint_names``.

    Raises
    ------
    InputError
        For a wrong shape, or values that are not numbers.

    See Also
    --------
    constraint_wrenches : forces and moments on the bodies.
    constraint_errors : errors of all rows.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> found = hc.inverse_dynamics(mech, q, v, [0.0, 0.0])
    >>> {name: x.size for name, x in hc.methods.by_constraint(mech, found.multipliers).items()}
    {'tip_hinge': 5}
    """
    check_mechanism(mech)
    is_mask = isinstance(x, np.ndarray) and x.dtype == bool and not np.ma.is_masked(x)
    if not (is_mask and x.shape == mech.row_scale.shape):
        x = shaped("x", x, mech.row_scale.size, "one number for each row")
    return {name: x[rows_of(mech, name)] for name in mech.constraint_names}
