"""Derivatives by differences that check their own accuracy.

    f'(0) ~ sum w_k [f(r_k h) - f(-r_k h)] / (2 h)             r_k = 1, sqrt 3, sqrt 8: sixth order
    kink  ~ sum z_k [f(r_k h) + f(-r_k h) - 2 f(0)] / h        slope on the right less on the left

Two of the three steps give a difference of fourth order. If the two differences do not agree, or a
kink is found, the step is too long (friction with a transition at small rates, a spring that
becomes slack nearby), and shorter ones are tried. The ratios of the steps are irrational, so that
no periodic error cancels in all of them. Other weights allow for a curvature that jumps at the
point, as at the nodes of a spline.
Reference: docs/derivations.md, "Linear models".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.linalg import largest

__all__ = ["check_kink", "derivative"]

STEPS_OF_STATES = (3e-3, 3e-4, 3e-5, 3e-6, 3e-7)  # scaled
"""Steps of differences of sixth order by coordinates, tried in this order until one is short
enough; next to a singular configuration, or in the transition of friction, the later ones are
needed."""

STEPS_OF_RATES = (0.3, 3e-2, 3e-3, 3e-4, 3e-5, 3e-6, 3e-7)  # scaled, 1/s
"""Likewise by rates. Without friction the acceleration is quadratic in them, and every step is
good."""

SMOOTH_ENOUGH = 1e-8  # relative
"""A difference is accepted if that of fourth and that of sixth order agree to this."""

NOT_SMOOTH = 1e-6  # relative
"""There is no derivative if they do not agree to this for any step; half the jump of the slope
counts as a disagreement."""

BESIDE_VALUE = 1e-5
"""Errors of smaller derivatives are measured relative to this share of the value of the function,
which is rounded."""

KINK_STEP = 1e-7  # scaled
"""Step of the differences on both sides of the point that are compared with an exact derivative."""

KINK = 1e-4  # relative
"""Largest difference between these slopes and the exact derivative."""

BESIDE_KINK = 1e-2
"""Differences of smaller slopes are measured relative to this share of the value of the
function."""


Function = Callable[[float], Vector]


def _weights(steps: Array, powers: list[int]) -> Array:
    """The weights w with ``sum w_k r_k^p`` equal to 1 for the first of the powers, 0 for the
    others."""
    return np.linalg.solve((steps[:, None] ** np.array(powers)).T, np.eye(len(steps))[0])


_STEPS = np.sqrt([1.0, 3.0, 8.0])
_SIXTH = _weights(_STEPS, [1, 3, 5])
_FOURTH = np.append(_weights(_STEPS[:2], [1, 3]), 0.0)
_CURVED = _weights(_STEPS, [1, 2, 3])
_CURVED_LESS = np.append(_weights(_STEPS[:2], [1, 2]), 0.0)
_KINK = _weights(_STEPS, [1, 2, 4])
_KINK_OF_TWO = _weights(_STEPS[:2], [1, 2])


def derivative(f: Function, steps: Sequence[float], what: str, floor: float = 1.0) -> Vector:
    """f'(0) by the longest step that is short enough.

    Parameters
    ----------
    f : function of a number
        Argument and value have sizes of order one or larger.
    steps : sequence of float
        Decreasing.
    what : str
        The subject of the error message.
    floor : float, optional
        Errors are relative to f', or to this if f' is smaller (or to a share of f if f is very
        large).

    Raises
    ------
    SingularityError
        If f is not smooth for any step.
    """
    here = f(0.0)
    best, least, trouble = np.zeros(0), np.inf, None
    for h in steps:
        try:
            plus, minus = (np.array([f(s * h * r) for r in _STEPS]) for s in (1.0, -1.0))
        except (InputError, SingularityError) as error:
            trouble = error  # f is not defined over the whole step
            continue
        kink = largest(_KINK @ (plus + minus - 2.0 * here)) / (2.0 * h)
        rounding = np.finfo(float).eps * largest(here) / h
        for good, check in ((_SIXTH, _FOURTH), (_CURVED, _CURVED_LESS)):
            found = good @ (plus - minus) / (2.0 * h)
            apart = largest(found - check @ (plus - minus) / (2.0 * h))
            size = max(largest(found), floor, BESIDE_VALUE * largest(here))
            uncertainty = max(apart, kink, rounding) / size
            if uncertainty < least:
                best, least = found, uncertainty
            if least <= SMOOTH_ENOUGH:
                return best
    if least <= NOT_SMOOTH:
        return best
    if trouble is not None and not least < np.inf:
        raise trouble
    raise _not_smooth(what, least)


def check_kink(f: Function, slope: Vector, what: str) -> None:
    """Check that `slope` (n,), the derivative of an expression, is f'(0): at a kink or a jump an
    expression has the slope of one side.

    Raises
    ------
    SingularityError
        If it is not.
    """
    here, h = f(0.0), KINK_STEP
    plus, minus = (np.array([f(s * h * r) for r in _STEPS[:2]]) for s in (1.0, -1.0))
    kink = largest(_KINK_OF_TWO @ (plus + minus - 2.0 * here)) / (2.0 * h)
    apart = largest(_FOURTH[:2] @ (plus - minus) / (2.0 * h) - slope)
    difference = max(kink, apart) / max(largest(slope), 1.0, BESIDE_KINK * largest(here))
    if not difference <= KINK:
        raise _not_smooth(what, difference)


def _not_smooth(what: str, difference: float) -> SingularityError:
    return SingularityError(
        f"{what} is not smooth at this state: its differences do not agree (by {difference:.1e}, "
        "relative). Is there a force with a kink here, such as a stop, a rope that goes slack or "
        "friction without a transition, or is it next to a singular configuration? Move away from "
        "it, or make the force smooth"
    )
