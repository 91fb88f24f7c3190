"""The point where rows are satisfied as well as they can be together: truncated Gauss-Newton.

    step = -V1 S1^-1 U1' e        G' = U S V', the singular values above `cut`

Rows of rounded geometry that repeat others nearly cannot all be met. The directions in which they
differ have singular values of the size of the rounding: a step along them would be e / s, of order
one, to a posture that nobody meant. So these directions stay where they are.
Derivation: docs/derivations.md, "Rounded geometry".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.linalg import in_range, largest
from holoctl.base.tolerances import CUT_ERRORS, LARGEST_CUT, LONGEST_STEP, ROUNDING, STALLED
from holoctl.closing.newton import Problem

__all__ = ["settled"]

Array = NDArray[np.float64]


def settled(p: Problem, q: Vector, least_cut: float) -> tuple[Vector, float]:
    """A least-squares point of the rows of `p` near q, and the largest scaled error there.

    Parameters
    ----------
    p : Problem
    q : (nq,) array
    least_cut : float
        Directions with a smaller singular value do not move; as long as the error falls, nor do
        those below ten times the error.
    """
    error, G = p.scaled_rows(q)
    shrinking, stalls = True, 0
    for _ in range(p.max_iter):
        size = float(np.linalg.norm(error))
        cut = max(least_cut, min(CUT_ERRORS * size, LARGEST_CUT)) if shrinking else least_cut
        step = _step(G, error, cut)
        q, error, G = _nearer(p, q, error, G, step)
        if largest(error) <= ROUNDING:
            break
        if float(np.linalg.norm(error)) > STALLED * size:
            if not shrinking and (stalls == 2 or np.linalg.norm(step) <= ROUNDING):
                break
            stalls += not shrinking
            shrinking = False
    return q, largest(error)


def _step(G: Array, error: Vector, cut: float) -> Vector:
    u, s, vt = np.linalg.svd(in_range(G), full_matrices=False)
    acts = s > cut
    step = -vt[acts].T @ ((u.T @ error)[acts] / s[acts])
    longest: Vector = step * min(1.0, LONGEST_STEP / max(float(np.linalg.norm(step)), ROUNDING))
    return longest


def _nearer(
    p: Problem, q: Vector, error: Vector, G: Array, step: Vector
) -> tuple[Vector, Vector, Array]:
    """q after the longest part of the step that helps; q itself where none does."""
    for fraction in (1.0, 0.5, 0.25, 0.06, 0.01):
        trial = p.moved(q, fraction * step)
        there = p.scaled_rows(trial)
        if np.linalg.norm(there[0]) < np.linalg.norm(error):
            return trial, *there
    return q, error, G
