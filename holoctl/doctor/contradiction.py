"""Why a mechanism does not close: rows that contradict each other.

At a least-squares solution that is no solution, ``G' phi = 0`` with phi not zero: the rows with
an error contradict each other, and no small motion reduces it; another posture might. Linear
couplings are decided exactly, by rank.
Reference: docs/doctor.md, "Contradictions".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.errors import AssemblyError
from holoctl.closing.assembly import assemble
from holoctl.closing.axis_sign import opposite_closures
from holoctl.closing.rank import scaled_jacobian
from holoctl.constraints.constraint_protocol import constraint_of
from holoctl.constraints.coupling import Coupling
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import rows_of

__all__ = ["ClosingResult", "closing"]

RESTARTS, RESTART_STEPS = (4, 20), 60
"""If a mechanism does not close from the given configuration: the least and the largest number of
starts around it, and the number of Newton steps from each."""

RESTART_DESCENTS = 5
"""The number of times that the best of them is minimised further, until no motion reduces its
error."""

RESTART_WORK, RESTART_CALLS = 5000.0, 5e5
"""The work of all starts, in steps of a small mechanism; and the overhead of the calls of a step,
in products."""

CONTRADICTION_SHARE = 1e-3
"""Rows with at least this fraction of the largest error are part of a contradiction."""

ROUNDED_ERROR = 5e-3
"""Largest error (scaled) that rounded geometry may explain."""

STATIONARY = 1e-4
"""Largest ``|G' phi| / |phi|`` (scaled) at which no motion reduces the error."""


@dataclass(frozen=True, eq=False)
class ClosingResult:
    """The result of the attempt to close a mechanism; the fields are those of `MobilityReport`."""

    q: Vector
    closed: bool
    contradictions: tuple[str, ...] = ()
    opposite: tuple[str, ...] = ()
    message: str = ""
    error: float = 0.0
    far: tuple[str, ...] = ()


def closing(mech: Mechanism, q: Vector, t: float) -> ClosingResult:
    """Close the mechanism from q, or find the rows that prevent it.

    It is closed from q first, until convergence; then from starts around it, fewer for a large
    mechanism, so that the work is bounded, and the same on every computer.
    """
    first = _tried(mech, q, t, restarts=0)
    if first.closed:
        return first
    disagreeing = _couplings(mech, t)
    if disagreeing:
        return replace(first, contradictions=disagreeing, opposite=())
    more = _tried(mech, q, t, restarts=_starts(mech), max_iter=RESTART_STEPS)
    if more.closed:
        return more
    for tried in (more, first):
        if tried.opposite:
            return ClosingResult(tried.q, True, opposite=tried.opposite)
    found = more if more.error < first.error else first
    contradicting = _contradicting(mech, found.q, t)
    for _ in range(RESTART_DESCENTS):
        if contradicting:
            break
        found = _tried(mech, found.q, t, restarts=0)  # further to the minimum
        if found.closed:
            return found
        contradicting = _contradicting(mech, found.q, t)
    return replace(
        found, contradictions=contradicting, opposite=_opposite(mech, found, contradicting, t)
    )


def _opposite(
    mech: Mechanism, found: ClosingResult, contradicting: tuple[str, ...], t: float
) -> tuple[str, ...]:
    """Closures of contradicting rows whose axes have opposite directions, if the error is so small
    that rounded geometry explains it."""
    if not found.error < ROUNDED_ERROR:
        return ()
    closures = {constraint_of(row) for row in contradicting}
    return tuple(name for name in opposite_closures(mech, found.q, t) if name in closures)


def _tried(
    mech: Mechanism, q: Vector, t: float, restarts: int, max_iter: int = 200
) -> ClosingResult:
    """The result of one call of `assemble`."""
    try:
        return ClosingResult(assemble(mech, q, t=t, restarts=restarts, max_iter=max_iter)[0], True)
    except AssemblyError as error:
        best, opposite = q if error.q is None else error.q, tuple(error.opposite)
        return ClosingResult(best, False, (), opposite, str(error), error.residual)


def _starts(mech: Mechanism) -> int:
    """The number of starts within the work: a step costs some calls, and a least-squares
    solution."""
    n, m = mech.nv, mech.row_scale.size
    work = RESTART_STEPS * (1.0 + (n + m) * n**2 / RESTART_CALLS)
    return int(np.clip(RESTART_WORK / work, *RESTARTS))


def _couplings(mech: Mechanism, t: float) -> tuple[str, ...]:
    """Linear rows ``C q = d`` without a solution: a left null vector y with ``y . d != 0``."""
    parts = [
        rows_of(mech, name)
        for name, c in zip(mech.constraint_names, mech.constraints, strict=True)
        if isinstance(c, Coupling)
    ]
    if not parts:
        return ()
    where = np.concatenate([np.arange(s.start, s.stop) for s in parts])
    C, e = scaled_jacobian(mech, mech.reference, t, where)
    y = np.abs(e - C @ np.linalg.lstsq(C, e, rcond=1e-10)[0])
    names = mech.row_names
    return tuple(names[where[i]] for i in np.flatnonzero(y > 1e-9 * (1.0 + np.abs(e).max())))


def _contradicting(mech: Mechanism, q: Vector, t: float) -> tuple[str, ...]:
    """Rows with an error that no small motion reduces; none if a small motion would reduce it."""
    G, error = scaled_jacobian(mech, q, t)
    if np.linalg.norm(G.T @ error) > STATIONARY * np.linalg.norm(error):
        return ()
    names = mech.row_names
    return tuple(
        names[i] for i in np.flatnonzero(np.abs(error) > CONTRADICTION_SHARE * np.abs(error).max())
    )
