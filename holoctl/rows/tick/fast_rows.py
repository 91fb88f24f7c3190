"""The rows once more, laid out for a control tick: G and -drift in some twenty calls.

The rows are those of constraints/wrench_rows.py, which is the oracle of this module in the tests.
Here all rows are lines of one table, and the motion of the bodies is read where Pinocchio keeps it,
in world axes at the world origin: placements X, velocities V, bias accelerations A. A row between
bodies 1 and 2 is the wrench w = (n, s x n) on body 2 (direction rows: (0, s x n)), with

    n, s     affine in X: n = R_n a, rod: n = (p2 - p1) / L; s = p_s, direction: s = R_s b
    U        V2 - V1, with angular part omega_U
    e        U at s                                        (direction: omega_U x s)
    sdot     rate of s seen from the world: V_s at s       (direction: omega_s x s)

with the bodies n and s that constraints/kinds.py names (1 and 2, slot: 2 and 1), and then

    G = (w J) * S
    -drift = w . (A1 - A2) + (n x omega_n) . e + (omega_U x n) . sdot - |e|^2 / L (rods only)
    rate = w . U    error = n . d    d: p2 - p1 (direction: s; rod: (p2 - p1) / 2, less L / 2)

Error and rate judge the state, those of redundant rows too: see `StateLimits`. They come out of
the same product as -drift, so that they cost next to nothing. All cross products of a tick are
one product of two gathered tables. Derivation: docs/derivations.md, "Rows in a tick".
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
        Fills the two arrays below, which are the same at every call; False where it cannot, or
        where the state is past its limits, and then they hold nothing of use.
    entries : array
        The entries of the scaled G that were asked for, in the shape that was asked for.
    right : (r,) array
        -drift, scaled.
    kept_by : function (v, a) -> bool, or None
        Whether an acceleration keeps the redundant rows, as far as the state that was evaluated
        last allows; None where there are none to ask.
    off : function () -> (2, ..) array
        Rates and errors of the rows, scaled, over their limits, and behind them those of the
        redundant ones; only with limits. It may change with the next evaluation.
    moved : function (q, v, t) -> bool
        As `evaluate` at the same q, but `entries` are left as they are.
    live : bool
        Whether what `off` gives is filled by the evaluation itself, and need not be asked for.
    placed : function (q), or None
        Fills `entries` and the errors alone; nothing is judged, not even whether it is finite. None
        where some rows need a velocity or the time.
    more : MoreRows or None
        Of rows that are not those of constraints.
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
    """Rows that are evaluated with those of constraints, and not judged.

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
    """Why the rows of a mechanism cannot be laid out for a tick; empty where they can.

    `motion` of the mechanism, where there is one already, shows that it can be had.
    """
    if mech.chart is not None:
        return "an explicit chart moves the state"
    if mech.stabilised:
        return "a constraint is stabilised"
    if motion is None and live_motion(mech.model, mech.model.createData()) is None:
        return "this build of Pinocchio keeps its results in another layout"
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
    """Lay out rows of a mechanism; see `why_not`.

    Parameters
    ----------
    mech : Mechanism
    motion : LiveMotion
        Of a workspace that nobody else uses.
    rows : (r,) int array
        Which rows, in the order wanted.
    wanted : int array
        Entries of G, as positions in G flattened row by row; -1 asks for a zero.
    limits : StateLimits, optional
        How far all rows of the mechanism may be off; without, the state is not judged.
    tolerance : float, optional
        That of the partition: by how much redundant rows may be broken where geometry is rounded.
    more : Beside, optional
        Rows along vectors that are evaluated too, such as those of a task; with limits only. Their
        entries of G are wanted behind all rows that are judged, in the order of `judged_rows`.
    """
    model, data, nv, r = mech.model, motion.data, mech.nv, rows.size
    judged = rows if limits is None else judged_rows(mech, rows)
    parts, order, WJ, S = layout(mech, motion, judged, mech.row_scale[judged], limits, more)
    extra = 0 if more is None else more.scale.size

    row_in_WJ = np.argsort(order)  # the rows stand in WJ kind by kind
    position = np.where(wanted < 0, 0, row_in_WJ[wanted // nv] * nv + wanted % nv)
    factor = np.where(wanted < 0, 0.0, S.reshape(-1)[position])
    entries, flat, rest = np.zeros(wanted.shape), WJ.reshape(-1), np.zeros(nv)
    in_order = len(parts) < 2 and np.array_equal(order, np.arange(order.size))
    rights, place = [p.right for p in parts], row_in_WJ[:r]
    right_of_all = parts[0].right if parts and in_order else np.zeros(order.size)
    result = right_of_all[:r] if in_order else np.zeros(r)
    evaluators, judge = [p.evaluate for p in parts], limits is not None
    of_judged = slice(judged.size)  # those that are not judged stand last
    noisy = (order < r if tolerance > 0.0 else np.ones(order.size, dtype=bool))[of_judged]
    limits = limits or StateLimits()
    all_judged = WJ[of_judged], S[of_judged], right_of_all[of_judged]
    within, kept_by = _judges(parts, *all_judged, limits, tolerance, noisy)

    as_they_are = len(parts) == 1 and np.array_equal(order, np.arange(judged.size))
    all_off = parts[0].off if as_they_are else np.zeros((2, judged.size))

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
        if not as_they_are and parts:
            np.concatenate([part.off for part in parts], 1).take(row_in_WJ, 1, all_off, "clip")
        return all_off

    told = parts[-1].told if more is not None else None
    return FastRows(
        evaluate, entries, result, kept_by if judged.size > r else None, off_rows, moved,
        as_they_are, placed if len(placers) == len(parts) else None,
        None if told is None else MoreRows(parts[-1].right[-extra:], *told),
    )  # fmt: skip


def judged_rows(mech: Mechanism, rows: Indices) -> Indices:
    """These rows, and behind them the redundant ones, by which a state is judged too."""
    return np.concatenate([rows, _redundant(mech, rows)])


def _redundant(mech: Mechanism, rows: Indices) -> Indices:
    """The other rows, but for those that are zero always, whatever the configuration."""
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
    noisy: NDArray[np.bool_],
) -> tuple[Callable[[Vector], bool], Callable[[Vector, Vector], bool]]:
    """Two functions of the state that was evaluated last, in the measures of the certificate.

    `within(v)`: whether it is within its limits. `kept_by(v, a)`: whether an acceleration keeps
    all rows, as far as the state allows, by the `noisy` ones of its rows.
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
        allowed = allowed_acceleration(*measured(v, noisy), tolerance)
        return bool(np.abs(residual).max() <= allowed * size)

    return within, kept_by
