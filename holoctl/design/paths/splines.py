"""Numbers along a path: polynomials between knots, through way-points or samples of a function.

way-points    cubic splines in chord length, second derivative continuous, ends not-a-knot
a function    a spline of degree five through samples, as many as it takes
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, CubicSpline, make_interp_spline

from holoctl.base.checks import Vector
from holoctl.base.errors import InputError
from holoctl.design.paths.following import Path
from holoctl.design.paths.rows import Wanted

__all__ = ["at_rest_spline", "chord_lengths", "sampled", "through_points"]

PATH_SAMPLES, PATH_SAMPLED, PATH_SMOOTH = (200, 3200), 1e-9, 1e-6  # counts; scaled
"""Samples of a function that is a path, at first and at most: until between them it is off by no
more than the second; at most it may be off by the third."""


Array = NDArray[np.float64]


def along(spline: CubicSpline | BSpline) -> Path:
    """A spline as a function s -> `Wanted`: value, first and second derivative."""

    def at(s: float) -> Wanted:
        return Wanted(spline(s), spline(s, 1), spline(s, 2))

    return at


def chord_lengths(steps: Vector, owner: str) -> Vector:
    """Where way-points stand in [0, 1], by the lengths of the steps between them."""
    if not (steps > 0.0).all():
        i = int(np.argmin(steps))
        raise InputError(
            f"{owner}: way-points {i} and {i + 1} are the same; a path must not stand still"
        )
    s = np.concatenate([[0.0], np.cumsum(steps)])
    found: Vector = s / s[-1]
    return found


def through_points(s: Vector, points: Array) -> Path:
    """The cubic spline through points (n, p) at s; a line where there are two."""
    return along(CubicSpline(s, points))


def at_rest_spline(t: Vector, points: Array) -> Path:
    """The spline of degree five through points, without rate and acceleration at both ends."""
    still: Any = [(1, np.zeros(points.shape[1])), (2, np.zeros(points.shape[1]))]
    return along(make_interp_spline(t, points, k=5, bc_type=(still, still)))


def sampled(value: Callable[[float], Vector], scale: Any, owner: str) -> Path:
    """The spline through samples of a function of s in [0, 1], p numbers.

    Raises
    ------
    InputError
        Where the function is not smooth.
    """
    n, before, coarser = PATH_SAMPLES[0], np.inf, None
    known = {x: value(x) for x in np.linspace(0.0, 1.0, n + 1).tolist()}
    while True:
        s = np.linspace(0.0, 1.0, n + 1)
        spline = make_interp_spline(s, np.array([known[x] for x in s.tolist()]), k=5)
        between = np.linspace(0.0, 1.0, 2 * n + 1)[1::2]
        known |= {x: value(x) for x in between.tolist()}
        middle = np.array([known[x] for x in between.tolist()])
        off = np.abs(scale * (spline(between) - middle)).max(axis=1)
        worst = int(np.argmax(off))
        if off[worst] <= PATH_SAMPLED:
            return along(spline)
        if coarser is not None and before <= PATH_SMOOTH and not off[worst] < 0.5 * before:
            return along(
                coarser
            )  # what is left is noise, which derivatives of more samples enlarge
        before, coarser = float(off[worst]), spline
        n *= 2
        if n > PATH_SAMPLES[1]:
            if off[worst] <= PATH_SMOOTH:
                return along(spline)
            raise InputError(
                f"{owner}: the path is not smooth near s = {between[worst]:.4g}: a spline through "
                f"{n // 2 + 1} samples is off by {off[worst]:.2g} (scaled) there. Positions along "
                "a path need two derivatives: round its corners, or give way-points"
            )
