"""Why a mechanism does not close: rows that contradict each other.

At a least-squares solution that is no solution, ``G' phi = 0`` with phi not zero: the rows with
an error pull against each other, and no small motion helps; another posture might. Linear
couplings are decided exactly, by rank.
Reference: docs/doctor.md, "Contradictions".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.errors import AssemblyError
from holoctl.base.tolerances import CONTRADICTION_SHARE, STATIONARY
from holoctl.closing.assembly import assemble
from holoctl.closing.rank import scaled_jacobian
from holoctl.constraints.coupling import Coupling
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import rows_of

__all__ = ["Closing", "closing"]


@dataclass(frozen=True, eq=False)
class Closing:
    """What came of the attempt to close a mechanism.

    Attributes
    ----------
    q : (nq,) array
        The closed configuration, or the one that comes nearest to closing.
    closed : bool
    contradictions : tuple of str
        Rows that cannot hold together.
    opposite : tuple of str
        Closures that close only with their axes in opposite directions.
    message : str
        What assembly said where it found no way and no contradiction is proved.
    error : float
        Largest constraint error at q (scaled).
    far : tuple of str
        Coordinates that had to move far to close it.
    """

    q: Vector
    closed: bool
    contradictions: tuple[str, ...] = ()
    opposite: tuple[str, ...] = ()
    message: str = ""
    error: float = 0.0
    far: tuple[str, ...] = ()


def closing(mech: Mechanism, q: Vector, t: float) -> Closing:
    """Close the mechanism from q, or find the rows that prevent it."""
    try:
        return Closing(assemble(mech, q, t=t)[0], True)
    except AssemblyError as error:
        best = q if error.q is None else error.q
        if error.opposite:
            return Closing(best, True, opposite=error.opposite)
        disagreeing = _couplings(mech, t) or _pulling(mech, best, t)
        return Closing(best, False, disagreeing, message=str(error))


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


def _pulling(mech: Mechanism, q: Vector, t: float) -> tuple[str, ...]:
    """Rows with an error where no small motion reduces it; none where one would."""
    G, error = scaled_jacobian(mech, q, t)
    if np.linalg.norm(G.T @ error) > STATIONARY * np.linalg.norm(error):
        return ()
    names = mech.row_names
    return tuple(
        names[i] for i in np.flatnonzero(np.abs(error) > CONTRADICTION_SHARE * np.abs(error).max())
    )
