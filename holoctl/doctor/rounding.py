"""Geometry that is rounded: how far rows are off, and how exactly it would have to be meant.

Where rows that repeat others are off by rounding, a mechanism taken exactly does not close, or
closes somewhere else and cannot move. So the guess is looked at once more with a coarse cut: if all
rows are met there nearly, and then leave motions, that is what was meant.
Reference: docs/derivations.md, "Rounded geometry"; docs/doctor.md.
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
"""Where a mechanism does not close or move, it is looked at once more with this tolerance; one that
serves is so many times what its rows are off, and at most the last."""


@dataclass(frozen=True)
class Rounding:
    """How exact the geometry is.

    Attributes
    ----------
    tolerance : float
        That of the mechanism, where rows repeat others only to within it; 0 where they do exactly.
    off : float
        Largest scaled error where all rows are met as well as they can be.
    repeats : float
        To what (scaled) the rows left out repeat the others.
    wanted : float
        A tolerance with which the mechanism would close where it was given, and move; 0 where none
        is known.
    motions : int
        How many motions it would have.
    """

    tolerance: float = 0.0
    off: float = 0.0
    repeats: float = 0.0
    wanted: float = 0.0
    motions: int = 0


def wanted(mech: Mechanism, guess: Vector, t: float, motions: int = 1) -> Rounding:
    """The tolerance with which it would close near the guess, with so many motions or more."""
    if mech.row_scale.size == 0:
        return Rounding()
    p = everywhere(mech, guess, t)
    q, error = least_squares_point(p, guess, COARSE_CUT)
    s = singular_values(p.scaled_rows(q)[1])
    lost = float(s[s <= COARSE_CUT].max(initial=0.0))
    off = max(error, lost)
    needs = min(_one_digit(ROUNDING_MARGIN * off), LARGEST_WANTED)
    if 3.0 * off > needs:
        return Rounding()
    if not mech.tolerance < needs < CLOSURE_LIMIT or distance(mech, guess, q) > FAR:
        return Rounding()
    meant = kept_rows(p, q, needs)
    if meant is None or meant.latent.size or mech.nv - meant.rank < max(motions, 1):
        return Rounding()
    return Rounding(off=error, repeats=lost, wanted=needs, motions=mech.nv - meant.rank)


def _one_digit(x: float) -> float:
    """Not less than x, in one digit."""
    if x <= 0.0:
        return 0.0
    unit = 10.0 ** np.floor(np.log10(x))
    return float(f"{np.ceil(x / unit - 1e-9) * unit:.0e}")
