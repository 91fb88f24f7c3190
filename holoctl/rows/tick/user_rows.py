"""Rows in a tick that are known only by the interface of constraints.

Those that offer a `tick` fill their arrays themselves; the others are evaluated by their `rows`,
which computes the kinematics again. See constraints/constraint_protocol.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.errors import InputError
from holoctl.base.tolerances import TICK_AGREES
from holoctl.constraints.constraint_protocol import BoundRows, Evaluate, Rows, offered
from holoctl.constraints.user_constraints import (
    checked_rows,
    of_library,
    rows_where_defined,
    seeded_states,
)
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.prepared_rows import PreparedRows, per_limit
from holoctl.tree.kinematics import kinematics
from holoctl.tree.live_motion import LiveMotion, live_motion

__all__ = ["BlockRows", "check_ticks", "rows_of_blocks"]


class BlockRows(NamedTuple):
    """Rows of one block: their indices, and their scales."""

    block: BoundRows
    which: Indices
    scale: Vector


def rows_of_blocks(
    mech: Mechanism,
    motion: LiveMotion,
    blocks: Sequence[BlockRows],
    WJ: Array,
    limits: StateLimits | None,
    without_ticks: bool = False,
) -> PreparedRows:
    """Prepare rows one block after the other. With `without_ticks`, user-defined rows are evaluated
    by their `rows`, because their `tick` may be a different function."""
    ticks = [_tick(b.block, without_ticks) for b in blocks]
    counts = [len(b.block.labels) for b in blocks]
    starts = np.cumsum([0, *counts])
    rates_errors, drift = np.zeros((2, starts[-1])), np.zeros(starts[-1])
    G, fills, by_rows = np.zeros((starts[-1], mech.nv)), list[Evaluate](), []
    for (block, _, _), tick, start, count in zip(blocks, ticks, starts, counts, strict=False):
        at = slice(start, start + count)
        rows = Rows(rates_errors[1, at], rates_errors[0, at], G[at], drift[at])
        if tick:
            fills.append(tick(motion, rows))
        else:
            by_rows.append((block, rows))
    which = np.concatenate([b.which + start for b, start in zip(blocks, starts, strict=False)])
    scale = np.concatenate([b.scale for b in blocks])
    factors, column = np.outer(per_limit(limits), scale), scale[:, None]
    right, off = np.zeros(which.size), np.zeros((2, which.size))
    flat_off, linear = off.reshape(-1), all(_is_linear(b.block) for b in blocks)
    moving = bool(by_rows) or not linear

    def scaled() -> None:
        G.take(which, 0, WJ, "clip")
        np.multiply(WJ, column, WJ)
        drift.take(which, None, right, "clip")
        np.multiply(right, -scale, right)

    if not moving:
        scaled()
        if limits is None:  # constant rows, and the state is not checked
            return PreparedRows(lambda q, v, t: 0.0, right, off)

    def evaluate(q: Vector, v: Vector, t: float) -> float:
        for fill in fills:
            fill(q, v, t)
        if by_rows:
            kin = kinematics(mech.model, motion.data, q, v, t)
            for block, rows in by_rows:
                _copy(checked_rows(block, block.rows(kin), mech.nv), rows)
        if moving:
            scaled()
        rates_errors.take(which, 1, off, "clip")
        np.multiply(off, factors, off)
        return float(flat_off.dot(flat_off))

    return PreparedRows(evaluate, right, off)


def _tick(block: BoundRows, without_ticks: bool) -> Callable[..., Evaluate] | None:
    if without_ticks and not (of_library(block) and _is_linear(block)):
        return None
    return offered(block, "tick")


def _is_linear(block: BoundRows) -> bool:
    """Whether Jacobian and drift are constant, according to a block that offers a `tick`."""
    return offered(block, "tick") is not None and bool(getattr(block, "linear", False))


def _copy(found: Rows, rows: Rows) -> None:
    rows.error[:], rows.rate[:], rows.drift[:] = found.error, found.rate, found.drift
    rows.jacobian[:] = found.jacobian


def check_ticks(mech: Mechanism) -> None:
    """Raise `InputError`, which names the constraint, if an offered `tick` differs from the rows.

    Those of the library are compared by its tests. Each state is evaluated twice, because a tick
    may keep state between calls. The comparison is made once for each mechanism and thread.
    """
    mech.per_thread("ticks_are_right", lambda: _compared(mech))


def _compared(mech: Mechanism) -> bool:
    own = [(b, name) for b, name in zip(mech.bound, mech.constraint_names, strict=True)
           if not of_library(b)]  # fmt: skip
    motion = live_motion(mech.model, mech.model.createData()) if own else None
    if motion is None:
        return True
    for bound, name in own:
        tick = offered(bound, "tick")
        if tick is None:
            continue
        owner, m, nv = f"{mech.name}: tick of constraint {name!r}", len(bound.labels), mech.nv
        rows = Rows(np.zeros(m), np.zeros(m), np.zeros((m, nv)), np.zeros(m))
        try:
            evaluate = tick(motion, rows)
            at_once = rows.jacobian.copy(), rows.drift.copy()
            seen = _seen(mech, bound)
            for q, v, t, by_rows in [*seen, *reversed(seen)]:
                pin.computeForwardKinematicsDerivatives(mech.model, motion.data, q, v, np.zeros(nv))
                evaluate(q, v, t)
                G, drift = at_once if _is_linear(bound) else (rows.jacobian, rows.drift)
                ticked = Rows(rows.error, rows.rate, G, drift)
                _compare(owner, bound, ticked, by_rows, f"q = {q.round(4).tolist()}, "
                         f"v = {v.round(4).tolist()}, t = {t:g}")  # fmt: skip
        except InputError:
            raise
        except Exception as error:  # user code may raise anything
            raise InputError(f"{owner} raised {type(error).__name__}: {error}") from error
    return True


def _compare(owner: str, bound: BoundRows, ticked: Rows, by_rows: Rows, where: str) -> None:
    m = len(bound.labels)
    for what in ("error", "rate", "jacobian", "drift"):
        expected = getattr(by_rows, what)
        off = np.abs(getattr(ticked, what) - expected).reshape(m, -1).max(axis=1)
        if not off.max() <= TICK_AGREES * (1.0 + np.abs(expected).max()):
            row = bound.labels[int(np.argmax(np.where(np.isnan(off), np.inf, off)))]
            raise InputError(
                f"{owner} is not its rows: {what} of row {row!r} is off by {off.max():.1e} at "
                f"{where}"
            )


def _seen(mech: Mechanism, bound: BoundRows) -> list[tuple[Vector, Vector, float, Rows]]:
    """Seeded states off the manifold, with the rows there; states at which rows are undefined are
    left out."""
    found = []
    for q, v, t, _ in seeded_states(mech.model, mech.reference):
        rows, _ = rows_where_defined(bound, mech.model, (q, v, t))
        if rows is not None:
            found.append((q, v, t, rows))
    return found
