"""Splines along a path, through way-points or samples of a function.

way-points    cubic splines in chord length, second derivative continuous, ends not-a-knot
a function    a spline of degree five through samples, refined until it is accurate
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from math import factorial
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline, make_interp_spline

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError
from holoctl.design.paths.curve import polynomial
from holoctl.design.paths.path_system import PathReference

__all__ = ["PiecewisePolynomial", "at_rest_spline", "chord_lengths", "sampled", "through_points"]

PATH_SAMPLES = (200, 3200)
"""Numbers of samples of a function: the first and the largest."""

PATH_SAMPLED = 1e-9  # scaled
"""The number of samples is doubled until the error of the spline between them is at most this."""

PATH_SMOOTH = 1e-6  # scaled
"""Largest error of the spline; a function with a larger one is not smooth."""


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial:
    """Piecewise polynomials of degree five at most: a function s -> `PathReference`.

    Attributes
    ----------
    s : (n,) array
        Knots.
    first : (n - 1, p) array
    c : (n - 1, 5, p) array
    """

    s: Vector
    first: Array
    c: Array
    _s: list[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_s", self.s.tolist())

    def __call__(self, s: float) -> PathReference:
        """Value, first and second derivative at s."""
        i = min(max(bisect_right(self._s, s) - 1, 0), len(self._s) - 2)
        w, d, dd = polynomial(self.c[i], s - self._s[i])
        return PathReference(self.first[i] + w, d, dd)


def chord_lengths(steps: Vector, owner: str) -> Vector:
    """The s of way-points in [0, 1], proportional to the lengths of the steps between them."""
    if not (steps > 0.0).all():
        i = int(np.argmin(steps))
        raise InputError(
            f"{owner}: way-points {i} and {i + 1} are the same; a path must not stand still"
        )
    s = np.concatenate([[0.0], np.cumsum(steps)])
    found: Vector = s / s[-1]
    return found


def through_points(s: Vector, points: Array) -> PiecewisePolynomial:
    """The cubic spline through points (n, p) at s; a straight line through two points."""
    if s.size == 2:
        d = np.diff(points, axis=0) / np.diff(s)[:, None]
        c = np.zeros((1, 5, points.shape[1]))
        c[0, 0] = d[0]
        return PiecewisePolynomial(s.copy(), points[:1].copy(), c)
    cubic = np.asarray(CubicSpline(s, points).c)[::-1]  # (order, n - 1, p), lowest first
    c = np.zeros((s.size - 1, 5, points.shape[1]))
    c[:, : cubic.shape[0] - 1] = np.moveaxis(cubic[1:], 0, 1)
    return PiecewisePolynomial(s.copy(), cubic[0].copy(), c)


def at_rest_spline(t: Vector, points: Array) -> PiecewisePolynomial:
    """The spline of degree five through points, with zero rate and acceleration at both ends."""
    still: Any = [(1, np.zeros(points.shape[1])), (2, np.zeros(points.shape[1]))]
    return _of_b_spline(make_interp_spline(t, points, k=5, bc_type=(still, still)))


def _of_b_spline(spline: Any) -> PiecewisePolynomial:
    x = np.unique(spline.t)
    c = [spline(x[:-1], k) / factorial(k) for k in range(6)]
    return PiecewisePolynomial(x, c[0], np.stack(c[1:], axis=1))


def sampled(value: Callable[[float], Vector], scale: Any, owner: str) -> PiecewisePolynomial:
    """The spline through samples of a function of s in [0, 1] with p values.

    Raises
    ------
    InputError
        If the function is not smooth.
    """
    n, before, coarser = PATH_SAMPLES[0], np.inf, None
    known = {x: value(x) for x in np.linspace(0.0, 1.0, n + 1).tolist()}
    while True:
        s = np.linspace(0.0, 1.0, n + 1)
        spline = _of_b_spline(make_interp_spline(s, np.array([known[x] for x in s.tolist()]), k=5))
        between = np.linspace(0.0, 1.0, 2 * n + 1)[1::2]
        off = np.zeros(between.size)
        for i, x in enumerate(between.tolist()):
            known[x] = value(x)
            off[i] = float(np.abs(scale * (spline(x).value - known[x])).max())
        worst = int(np.argmax(off))
        if off[worst] <= PATH_SAMPLED:
            return spline
        if coarser is not None and before <= PATH_SMOOTH and not off[worst] < 0.5 * before:
            return coarser  # the rest is noise, which more samples amplify in derivatives
        before, coarser = float(off[worst]), spline
        n *= 2
        if n > PATH_SAMPLES[1]:
            if off[worst] <= PATH_SMOOTH:
                return spline
            raise InputError(
                f"{owner}: the path is not smooth near s = {between[worst]:.4g}: a spline through "
                f"{n // 2 + 1} samples has an error of {off[worst]:.2g} (scaled) there. Positions "
                "along a path need two derivatives: round its corners, or give way-points"
            )
