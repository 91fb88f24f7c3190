"""Rows prepared for a control tick: G and -drift in some twenty calls.

The rows are those of constraints/wrench_rows.py, with which tests compare them. Here all rows are
lines of one table, and the motion of the bodies is read directly from Pinocchio's memory, in world
axes at the world origin: placements X, velocities V, bias accelerations A. A row between bodies 1
and 2 is the wrench w = (n, s x n) on body 2 (direction rows: (0, s x n)), with

    n, s     affine in X: n = R_n a, rod: n = (p2 - p1) / L; s = p_s, direction: s = R_s b
    U        V2 - V1, with angular part omega_U
    e        U at s                                        (direction: omega_U x s)
    sdot     rate of s in world axes: V_s at s              (direction: omega_s x s)

with the bodies n and s as in constraints/kinds.py (1 and 2, slot: 2 and 1), and then

    G = (w J) * S
    -drift = w . (A1 - A2) + (n x omega_n) . e + (omega_U x n) . sdot - |e|^2 / L (rods only)
    rate = w . U    error = n . d    d: p2 - p1 (direction: s; rod: (p2 - p1) / 2, less L / 2)

Error and rate, also of redundant rows, decide whether the state is accepted: see `StateLimits`.
They come from the same product as -drift, at almost no cost. All cross products of a tick are one
product of two gathered tables.
Derivation: docs/derivations.md, "Rows in a tick".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Indices, Vector
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.state_limits import StateLimits, allowed_acceleration, least_acceleration
from holoctl.rows.tick.layout import Beside, layout
from holoctl.rows.tick.nonzero_rows import rows_that_open
from holoctl.rows.tick.prepared_rows import PreparedRows, per_limit
from holoctl.tree.live_motion import LiveMotion, live_motion

__all__ = ["Beside", "FastRows", "MoreRows", "fast_rows", "judged_rows", "why_not"]


@dataclass(frozen=True, eq=False)
class FastRows:
    """Some rows, scaled, for one thread: ``G a = right`` after `evaluate(q, v, t)`.

    Attributes
    ----------
    evaluate : function (q, v, t) -> bool
        Fills the two arrays below, which are the same objects at every call. Returns False if it
        fails, or if the state exceeds its limits; the arrays are then invalid.
    entries : array
        The wanted entries of the scaled G, in the shape of `wanted`.
    right : (r,) array
        -drift, scaled.
    kept_by : function (v, a) -> bool, or None
        Whether an acceleration satisfies the redundant rows, as accurately as the last evaluated
        state allows; None without redundant rows.
    off : function () -> (2, ..) array
        Rates and errors of the rows, scaled, over their limits, followed by those of the redundant
        ones; only with limits. The next evaluation may overwrite it.
    moved : function (q, v, t) -> bool
        As `evaluate` at the same q, but it does not fill `entries`.
    live : bool
        Whether the evaluation itself fills the array of `off`, so that `off` need not be called.
    placed : function (q), or None
        Fills `entries` and the errors only; nothing is checked, not even whether it is finite. None
        if some rows need a velocity or the time.
    more : MoreRows or None
        The additional rows, which are not those of constraints.
    """

    evaluate: Callable[[Vector, Vector, float], bool]
    entries: Array
    right: Vector
    kept_by: Callable[[Vector, Vector], bool] | None
    off: Callable[[], Array]
    moved: Callable[[Vector, Vector, float], bool]
    live: bool
    placed: Callable[[Vector], None] | None
    more: MoreRows | None = None


class MoreRows(NamedTuple):
    """Rows that are evaluated with those of constraints, and not compared with limits.

    Attributes
    ----------
    right : (m,) array
        -drift, scaled.
    rates, errors : (m,) arrays
        Not scaled.
    """

    right: Vector
    rates: Vector
    errors: Vector


def why_not(mech: Mechanism, motion: LiveMotion | None = None) -> str:
    """Why the rows of a mechanism cannot be prepared for a tick; empty if they can.

    A `motion` of the mechanism shows that Pinocchio's memory can be read directly.
    """
    if mech.chart is not None:
        return "an explicit chart moves the state"
    if mech.stabilised:
        return "a constraint is stabilised"
    if motion is None and live_motion(mech.model, mech.model.createData()) is None:
        return "this build of Pinocchio stores its results in another layout"
    return ""


def fast_rows(
    mech: Mechanism,
    motion: LiveMotion,
    rows: Indices,
    wanted: Indices,
    limits: StateLimits | None = None,
    tolerance: float = 0.0,
    more: Beside | None = None,
) -> FastRows:
    """Prepare rows of a mechanism for evaluation; see `why_not`.

    Parameters
    ----------
    mech : Mechanism
    motion : LiveMotion
        Of a workspace that no other function uses.
    rows : (r,) int array
        The indices of the rows, in the wanted order.
    wanted : int array
        Entries of G, as indices into G flattened row by row; -1 for a zero.
    limits : StateLimits, optional
        Limits of the errors of all rows of the mechanism; by default the state is not checked.
    tolerance : float, optional
        That of the partition: the violation of redundant rows that is allowed with rounded
        geometry.
    more : Beside, optional
        Rows along vectors that are evaluated too, such as those of a task; with limits only. In
        `wanted`, they follow all checked rows, which are in the order of `judged_rows`.
    """
    model, data, nv, r = mech.model, motion.data, mech.nv, rows.size
    judged = rows if limits is None else judged_rows(mech, rows)
    parts, order, WJ, S = layout(mech, motion, judged, mech.row_scale[judged], limits, more)
    rest = np.zeros(nv)

    # entries of G: gathered from WJ, whose rows are grouped by kind
    row_in_WJ = np.argsort(order)
    position = np.where(wanted < 0, 0, row_in_WJ[wanted // nv] * nv + wanted % nv)
    factor = np.where(wanted < 0, 0.0, S.reshape(-1)[position])
    entries, flat = np.zeros(wanted.shape), WJ.reshape(-1)

    # -drift: that of the only part if its rows are in the wanted order, else gathered
    in_order = len(parts) < 2 and np.array_equal(order, np.arange(order.size))
    rights, place = [p.right for p in parts], row_in_WJ[:r]
    right_of_all = parts[0].right if parts and in_order else np.zeros(order.size)
    result = right_of_all[:r] if in_order else np.zeros(r)

    # errors: those of `more`, which come last, are not checked
    evaluators, judge, checked = [p.evaluate for p in parts], limits is not None, slice(judged.size)
    reference = (order < r if tolerance > 0.0 else np.ones(order.size, dtype=bool))[checked]
    all_judged = WJ[checked], S[checked], right_of_all[checked]
    limits = limits or StateLimits()
    within, kept_by = _judges(parts, *all_judged, limits, tolerance, reference)
    one_part_in_order = in_order and len(parts) == 1 and order.size == judged.size
    all_off = parts[0].off if one_part_in_order else np.zeros((2, judged.size))

    def moved(q: Vector, v: Vector, t: float) -> bool:
        pin.computeForwardKinematicsDerivatives(model, data, q, v, rest)
        off = 0.0
        for part in evaluators:
            off += part(q, v, t)
        if not off < 1.0 and not (judge and off < np.inf and within(v)):
            return False
        if not in_order:
            np.concatenate(rights, out=right_of_all)
            right_of_all.take(place, None, result, "clip")
        return True

    def evaluate(q: Vector, v: Vector, t: float) -> bool:
        if not moved(q, v, t):
            return False
        flat.take(position, None, entries, "clip")
        np.multiply(entries, factor, entries)
        return True

    placers = [part.place for part in parts if part.place is not None]

    def placed(q: Vector) -> None:
        pin.computeJointJacobians(model, data, q)
        for place in placers:
            place()
        flat.take(position, None, entries, "clip")
        np.multiply(entries, factor, entries)

    def off_rows() -> Array:
        if not one_part_in_order and parts:
            np.concatenate([part.off for part in parts], 1).take(row_in_WJ, 1, all_off, "clip")
        return all_off

    added = None
    if more is not None and parts[-1].unchecked is not None:
        added = MoreRows(parts[-1].right[-more.scale.size :], *parts[-1].unchecked)
    return FastRows(
        evaluate, entries, result, kept_by if judged.size > r else None, off_rows, moved,
        one_part_in_order, placed if len(placers) == len(parts) else None, added,
    )  # fmt: skip


def judged_rows(mech: Mechanism, rows: Indices) -> Indices:
    """These rows, followed by the redundant ones, whose errors are checked too."""
    return np.concatenate([rows, _redundant(mech, rows)])


def _redundant(mech: Mechanism, rows: Indices) -> Indices:
    """The other rows, except those that are zero at every configuration."""
    others = rows_that_open(mech).copy()
    others[rows] = False
    return np.flatnonzero(others)


def _judges(
    parts: list[PreparedRows],
    WJ: Array,
    S: Array,
    right: Vector,
    limits: StateLimits,
    tolerance: float,
    reference: NDArray[np.bool_],
) -> tuple[Callable[[Vector], bool], Callable[[Vector, Vector], bool]]:
    """Two functions of the last evaluated state, with the residuals of the certificate.

    `within(v)`: whether the state is within its limits. `kept_by(v, a)`: whether an acceleration
    satisfies all rows, as accurately as the errors of the rows `reference` allow.
    """
    G, residual = np.zeros(WJ.shape), np.zeros(len(right))
    per_velocity, per_closure = per_limit(limits)
    least = least_acceleration(tolerance)

    def measured(v: Vector, which: NDArray[np.bool_] | slice = slice(None)) -> tuple[float, float]:
        off = np.hstack([p.off for p in parts])[:, : len(right)][:, which]
        rates, errors = np.abs(off).max(axis=1, initial=0.0)
        speed = 1.0 + np.abs(WJ * S).dot(np.abs(v)).max(initial=0.0)
        return float(errors) / per_closure, float(rates) / (per_velocity * float(speed))

    def within(v: Vector) -> bool:
        return limits.allow(*measured(v))

    def kept_by(v: Vector, a: Vector) -> bool:
        np.multiply(WJ, S, G)
        G.dot(a, residual)
        np.subtract(residual, right, residual)
        if residual.dot(residual) <= least**2:
            return True
        size = 1.0 + np.abs(G).dot(np.abs(a)).max() + np.abs(right).max()
        allowed = allowed_acceleration(*measured(v, reference), tolerance)
        return bool(np.abs(residual).max() <= allowed * size)

    return within, kept_by
