"""Least squares for rows that cannot all be satisfied: truncated Gauss-Newton.

    step = -V1 S1^-1 U1' e        G' = U S V', the singular values above `cut`

Rows of rounded geometry that are nearly redundant cannot all be satisfied. The directions in which
they differ have singular values of the size of the rounding: a step along them would be e / s, of
order one, to an unintended posture. So there is no step along these directions. Directions with
small but larger singular values are included last; if the step along them is long, the geometry is
wrong, not rounded.
Derivation: docs/derivations.md, "Toleranced geometry".
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import in_range, largest
from holoctl.base.tolerances import ROUNDING
from holoctl.closing.newton import LONGEST_STEP, Problem
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["distance", "least_squares_point"]

CUT_ERRORS, LARGEST_CUT = 10.0, 1e-2
"""Cut of singular values while rows contradict each other slightly: this factor times the error, at
most the second number."""

FARTHEST_SLIDE = 0.5  # scaled
"""Longest step along directions with small singular values for which the rows count as rounded."""

FALLS_NO_MORE, FALLS_UNSEEN = 0.9, 1e-8
"""The error has stalled if a step reduces it to no less than the first fraction of it; a step whose
first-order reduction is below the second fraction counts as zero, because its square is
rounding."""


def least_squares_point(p: Problem, q: Vector, least_cut: float) -> tuple[Vector, float]:
    """A least-squares point of the rows of `p` near q, and the largest scaled error there.

    The error may be that of an intermediate point, if the rows with small singular values would
    need a long step.

    Parameters
    ----------
    p : Problem
    q : (nq,) array
    least_cut : float
        There is no step along directions with a smaller singular value; as long as the error falls,
        also not along those below ten times the error.
    """
    error, G = p.scaled_rows(q)
    shrinking, stalls, strong, left = True, 0, q, largest(error)
    for _ in range(p.max_iter):
        size = float(np.linalg.norm(error))
        cut = max(least_cut, min(CUT_ERRORS * size, LARGEST_CUT)) if shrinking else least_cut
        step, gain = _step(G, error, cut)
        if helps := gain > FALLS_UNSEEN * size:
            q, error, G = _nearer(p, q, error, G, step)
        if largest(error) <= ROUNDING:
            break
        if float(np.linalg.norm(error)) > FALLS_NO_MORE * size:
            if not shrinking and (stalls == 3 or not helps or np.linalg.norm(step) <= ROUNDING):
                break
            if shrinking:
                shrinking, strong, left = False, q, largest(error)
            stalls += 1
    if not shrinking and distance(p.mech, strong, q) > FARTHEST_SLIDE:
        return strong, left
    return q, largest(error)


def distance(mech: Mechanism, q: Vector, x: Vector) -> float:
    """The distance between q and x in scaled coordinates."""
    return float(np.linalg.norm(pin.difference(mech.model, q, x) / mech.column_scale))


def _step(G: Array, error: Vector, cut: float) -> tuple[Vector, float]:
    """The step, and its first-order reduction of the error."""
    u, s, vt = np.linalg.svd(in_range(G), full_matrices=False)
    acts = s > cut
    met = (u.T @ error)[acts]
    step = -vt[acts].T @ (met / s[acts])
    longest: Vector = step * min(1.0, LONGEST_STEP / max(float(np.linalg.norm(step)), ROUNDING))
    return longest, float(np.linalg.norm(met))


def _nearer(
    p: Problem, q: Vector, error: Vector, G: Array, step: Vector
) -> tuple[Vector, Vector, Array]:
    """q after the longest fraction of the step that reduces the error; q itself if none does."""
    for fraction in (1.0, 0.5, 0.25, 0.06, 0.01):
        trial = p.moved(q, fraction * step)
        there = p.scaled_rows(trial)
        if np.linalg.norm(there[0]) < np.linalg.norm(error):
            return trial, *there
    return q, error, G
