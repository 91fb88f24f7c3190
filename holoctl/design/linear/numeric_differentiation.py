"""Derivatives by differences that know whether they are right.

    f'(0) ~ sum w_k [f(r_k h) - f(-r_k h)] / (2 h)             r_k = 1, sqrt 3, sqrt 8: sixth order
    kink  ~ sum z_k [f(r_k h) + f(-r_k h) - 2 f(0)] / h        slope on the right less on the left

Two of the three steps give a difference of fourth order. Where the two do not agree, or a kink is
seen, the step is too long (friction that sets in within a small rate, a spring that goes slack
next by), and shorter ones are tried. The steps have no common measure, so that no ripple hides.
Other weights allow for a curvature that jumps here, as at the nodes of a table that is smooth.
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
"""Steps of differences of sixth order along a motion, from the first on until one is short enough;
beside a singular configuration, or where friction sets in, the later ones are."""

STEPS_OF_RATES = (0.3, 3e-2, 3e-3, 3e-4, 3e-5, 3e-6, 3e-7)  # scaled, 1/s
"""The same along a rate. Without friction the acceleration is quadratic in it, and any will do."""

SMOOTH_ENOUGH, NOT_SMOOTH = 1e-8, 1e-6
"""Differences of fourth and sixth order that agree to the first, relative, are good; where none
agree to the second there is no derivative, and half the jump of the slope counts as such."""

BESIDE_VALUE = 1e-5
"""Derivatives below this share of the value count as so much: it is rounded, and they are not
known better."""

KINK_STEP, KINK, BESIDE_KINK = 1e-7, 1e-4, 1e-2  # scaled; relative, both
"""Where derivatives are exact, slopes on both sides of the point are compared with them by steps of
the first length, and may differ by the second; those below the third share of the value count as
so much."""


Function = Callable[[float], Vector]


def _weights(steps: Array, powers: list[int]) -> Array:
    """Those w with ``sum w_k r_k^p`` one for the first of the powers, zero for the others."""
    return np.linalg.solve((steps[:, None] ** np.array(powers)).T, np.eye(len(steps))[0])


_STEPS = np.sqrt([1.0, 3.0, 8.0])
_SIXTH = _weights(_STEPS, [1, 3, 5])
_FOURTH = np.append(_weights(_STEPS[:2], [1, 3]), 0.0)
_CURVED = _weights(_STEPS, [1, 2, 3])
_CURVED_LESS = np.append(_weights(_STEPS[:2], [1, 2]), 0.0)
_KINK = _weights(_STEPS, [1, 2, 4])
_KINK_OF_TWO = _weights(_STEPS[:2], [1, 2])


def derivative(f: Function, steps: Sequence[float], what: str, floor: float = 1.0) -> Vector:
    """f'(0) by the longest of the steps, which descend, that is short enough.

    Parameters
    ----------
    f : function of a number
        Of order one in both, or larger.
    steps : sequence of float
    what : str
        What f is, for the message.
    floor : float, optional
        Errors count as a share of f', or of this where f' is less (or f itself is very large).

    Raises
    ------
    SingularityError
        Where f is not smooth, by whatever step.
    """
    here = f(0.0)
    best, least, trouble = np.zeros(0), np.inf, None
    for h in steps:
        try:
            ahead, behind = (np.array([f(s * h * r) for r in _STEPS]) for s in (1.0, -1.0))
        except (InputError, SingularityError) as error:
            trouble = error  # it ends on the way
            continue
        kink = largest(_KINK @ (ahead + behind - 2.0 * here)) / (2.0 * h)
        rounding = np.finfo(float).eps * largest(here) / h
        for good, check in ((_SIXTH, _FOURTH), (_CURVED, _CURVED_LESS)):
            found = good @ (ahead - behind) / (2.0 * h)
            apart = largest(found - check @ (ahead - behind) / (2.0 * h))
            size = max(largest(found), floor, BESIDE_VALUE * largest(here))
            off = max(apart, kink, rounding) / size
            if off < least:
                best, least = found, off
            if least <= SMOOTH_ENOUGH:
                return best
    if least <= NOT_SMOOTH:
        return best
    if trouble is not None and not least < np.inf:
        raise trouble
    raise _not_smooth(what, least)


def check_kink(f: Function, slope: Vector, what: str) -> None:
    """Raise `SingularityError` where `slope` (n,) is not f'(0): of two slopes, and at a jump, an
    expression knows one.

    Raises
    ------
    SingularityError
    """
    here, h = f(0.0), KINK_STEP
    ahead, behind = (np.array([f(s * h * r) for r in _STEPS[:2]]) for s in (1.0, -1.0))
    kink = largest(_KINK_OF_TWO @ (ahead + behind - 2.0 * here)) / (2.0 * h)
    apart = largest(_FOURTH[:2] @ (ahead - behind) / (2.0 * h) - slope)
    off = max(kink, apart) / max(largest(slope), 1.0, BESIDE_KINK * largest(here))
    if not off <= KINK:
        raise _not_smooth(what, off)


def _not_smooth(what: str, off: float) -> SingularityError:
    return SingularityError(
        f"{what} is not smooth at this state: differences of it do not agree (by {off:.1e}, "
        "relative). Is there a force with a kink here, such as a stop, a rope that goes slack or "
        "friction without a transition, or is it next to a singular configuration? Move away from "
        "it, or make the force smooth"
    )
