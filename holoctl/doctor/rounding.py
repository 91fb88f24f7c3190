"""Rounded geometry: the errors of redundant rows, and the tolerance within which they agree.

If redundant rows contradict each other by rounding errors, the mechanism with exact rows does not
close, or closes at another configuration and cannot move. So the guess is examined again with a
coarse tolerance: if all rows are nearly satisfied there, and leave motions, it is rounded.
Reference: docs/derivations.md, "Toleranced geometry"; docs/rounded-geometry.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.linalg import singular_values
from holoctl.base.tolerances import CLOSURE_LIMIT
from holoctl.closing.least_squares import distance, least_squares_point
from holoctl.closing.newton import everywhere
from holoctl.closing.toleranced_rows import kept_rows
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Rounding", "wanted"]

FAR = 0.7  # scaled
"""A coordinate that moved by more (rad, or sizes of its loop) while closing is reported."""


COARSE_CUT, ROUNDING_MARGIN, LARGEST_WANTED = 3e-3, 30.0, 5e-3  # scaled; -; scaled
"""The tolerance of the second examination; the ratio of a suggested tolerance to the error of the
rows; and the largest suggested tolerance."""


@dataclass(frozen=True)
class Rounding:
    """The rounding of the geometry.

    Attributes
    ----------
    tolerance : float
        The tolerance of the mechanism if rows repeat others only within it; 0 if they do exactly.
    off : float
        Largest scaled error of all rows at their least-squares solution.
    repeats : float
        The scaled accuracy with which the rows left out repeat the others.
    wanted : float
        A tolerance with which the mechanism would close at the given configuration and move; 0 if
        none is known.
    motions : int
        The number of motions that it would have.
    """

    tolerance: float = 0.0
    off: float = 0.0
    repeats: float = 0.0
    wanted: float = 0.0
    motions: int = 0


def wanted(mech: Mechanism, guess: Vector, t: float, motions: int = 1) -> Rounding:
    """The tolerance with which it would close near the guess, with at least `motions` motions."""
    if mech.row_scale.size == 0:
        return Rounding()
    p = everywhere(mech, guess, t)
    q, error = least_squares_point(p, guess, COARSE_CUT)
    s = singular_values(p.scaled_rows(q)[1])
    lost = float(s[s <= COARSE_CUT].max(initial=0.0))
    least = max(error, lost)
    needs = min(_one_digit(ROUNDING_MARGIN * least), LARGEST_WANTED)
    if 3.0 * least > needs:
        return Rounding()
    if not mech.tolerance < needs < CLOSURE_LIMIT or distance(mech, guess, q) > FAR:
        return Rounding()
    meant = kept_rows(p, q, needs)
    if meant is None or meant.latent.size or mech.nv - meant.rank < max(motions, 1):
        return Rounding()
    return Rounding(off=error, repeats=lost, wanted=needs, motions=mech.nv - meant.rank)


def _one_digit(x: float) -> float:
    """x rounded up to one digit."""
    if x <= 0.0:
        return 0.0
    unit = 10.0 ** np.floor(np.log10(x))
    return float(f"{np.ceil(x / unit - 1e-9) * unit:.0e}")
