"""A damped start for assembly, so that it ends at a closed configuration near the guess.

    min |d|^2 + c |e|^2        d: the step from the guess, in the metric        e: scaled rows

Newton's method on the rows alone follows their linearisation: far from the manifold, or near a
change of posture, its steps are long and end in another posture. Here the distance from the guess
has a cost. One weight c is enough, because the remaining error is small.
References: J. Nocedal and S. Wright, Numerical Optimization, the chapter on penalty methods;
docs/derivations.md, "Assembly".
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import least_squares
from holoctl.closing.newton import LONGEST_STEP, Problem, residual
from holoctl.constraints.wrench_rows import WrenchRows

__all__ = ["damped_start"]

START_WEIGHT, START_STEPS = 10.0, 20  # a weight; a count
"""Weight of the squared scaled error relative to the squared distance from the guess; most
steps."""

SHORT_STEP = 0.05  # scaled
"""A start whose first step is shorter is left to Newton's method on the rows."""


def damped_start(p: Problem, axis_signs: WrenchRows | None) -> Vector:
    """A configuration between the guess and a closed one near it, with a small closure error.

    Gauss-Newton steps within a trust region that shrinks when they do not reduce the cost. It is
    the guess itself if the first step is short, because Newton's method converges from there.
    """
    q, reach = p.guess, LONGEST_STEP
    error, G = residual(p, q, axis_signs)
    if np.sqrt(START_WEIGHT) * float(np.linalg.norm(error)) <= SHORT_STEP:  # no step is longer
        return q
    both, A = _both(p, q, error, G)
    for _ in range(min(START_STEPS, p.max_iter)):
        step = least_squares(A, -both)
        length = float(np.linalg.norm(step))
        if length <= SHORT_STEP or reach <= SHORT_STEP:
            break
        trial = p.moved(q, step * min(1.0, reach / length))
        new, new_A = _both(p, trial, *residual(p, trial, axis_signs))
        if new @ new < both @ both:
            q, both, A, reach = trial, new, new_A, min(2.0 * reach, LONGEST_STEP)
        else:
            reach = 0.25 * min(reach, length)
    return q


def _both(p: Problem, q: Vector, error: Vector, G: Array) -> tuple[Vector, Array]:
    """The residual of the least-squares problem, and its Jacobian by steps in the metric."""
    c = np.sqrt(START_WEIGHT)
    d = pin.difference(p.mech.model, p.guess, q)[p.free]
    D = pin.dDifference(p.mech.model, p.guess, q, pin.ArgumentPosition.ARG1)[p.free][:, p.free]
    return np.append(c * error, d / p.metric), np.vstack([c * G, D * p.metric / p.metric[:, None]])
