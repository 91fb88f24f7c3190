"""Explicit Runge-Kutta steps of a motion, in the tangent space of the start of each step.

    q = q0 (+) d        d' = D(d)^-1 v        v' = a(t, q, v)        (d, v) from (0, v0)

D is the right Jacobian of the joint spaces: the identity except for rotations in space. One
function computes the stages of all methods; a method is a value with the coefficients of scipy's
classes. A new method needs (1) A, B, C of its stages; (2) the norm of its error as a function of
all slopes; (3) the polynomial within a step.
References: E. Hairer, S. Norsett, G. Wanner, Solving Ordinary Differential Equations I, chapter II
(embedded methods, dense output, detection of stiffness).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import solved
from holoctl.mechanism.mechanism import Mechanism

__all__ = [
    "DOP853",
    "DORMAND_PRINCE",
    "Coefficients",
    "Slope",
    "Stages",
    "Trial",
    "by_slopes",
    "from_rest",
    "in_tangent_space",
    "tried",
]

STIFF = {"RK45": 2.5, "DOP853": 3.0}
"""A step counts as limited by stability, and not by accuracy, if h times the fastest rate is larger
than this: half of the stability limit of the method; regular motions have up to 1.5."""


Acceleration = Callable[[float, Vector, Vector], Vector]
Slope = Callable[[float, Vector, Vector, Vector], Vector]
"""slope(t, q0, x, out) of x = (d, v): `out` (2 nv,), filled."""

Stages = Callable[
    ["Coefficients", float, Vector, Vector, Vector | None, float], tuple[Vector, Vector, Array]
]
"""stages(method, t, q0, v0, first, h): x at the end, x of the stage before, and all slopes K.
`first` is the slope at the start, None if it is not known."""

ErrorNorm = Callable[[Array, Vector, float], float]
Within = Callable[["Trial", Slope], Callable[[float], Vector]]


@dataclass(frozen=True, eq=False)
class Coefficients:
    """A method: stages ``x0 + h A K`` at ``t + C h``, end ``x0 + h B K``.

    `error` returns the norm of the error of a step from its slopes K (that at its end included), a
    scale and h; `within` the polynomial x(theta), 0 <= theta <= 1; `stiff` is an entry of `STIFF`.
    """

    name: str
    A: Array
    B: Vector
    C: Vector
    order: int
    error: ErrorNorm
    within: Within
    stiff: float


class Trial(NamedTuple):
    """A trial step: from (t, q0, v0) by h to x = (d, v), with slopes K; it is accurate enough if
    `error` is at most 1."""

    t: float
    q0: Vector
    h: float
    x0: Vector
    x: Vector
    K: Array
    error: float
    last_stage: Vector


def in_tangent_space(mech: Mechanism) -> Callable[[Acceleration], Slope]:
    """A function that turns an acceleration a(t, q, v) into the slope of x = (d, v)."""
    model, nv = mech.model, mech.nv
    turning_in_space = [
        slice(j.idx_v, j.idx_v + j.nv) for j in model.joints if j.nq != j.nv and j.nv > 1
    ]
    integrate, right_jacobian = pin.integrate, pin.dIntegrate

    def flat(acceleration: Acceleration) -> Slope:
        def of_flat(t: float, q0: Vector, x: Vector, slope: Vector) -> Vector:
            v = x[nv:]
            slope[:nv] = v
            slope[nv:] = acceleration(t, q0 + x[:nv], v)
            return slope

        return of_flat

    def turning(acceleration: Acceleration) -> Slope:
        def of_turning(t: float, q0: Vector, x: Vector, slope: Vector) -> Vector:
            d, v = x[:nv], x[nv:]
            slope[nv:] = acceleration(t, integrate(model, q0, d), v)
            slope[:nv] = v
            if turning_in_space:
                D = right_jacobian(model, q0, d, pin.ArgumentPosition.ARG1)
                for of_joint in turning_in_space:
                    slope[of_joint] = solved(D[of_joint, of_joint], v[of_joint])
            return slope

        return of_turning

    return flat if mech.nq == nv else turning


def by_slopes(slope: Slope) -> Stages:
    """The stages of a step, each by one call of `slope`."""

    def stages(
        method: Coefficients, t: float, q0: Vector, v0: Vector, first: Vector | None, h: float
    ) -> tuple[Vector, Vector, Array]:
        A, B, C = _times(method, h)
        x0, count = from_rest(v0), len(C)
        K = np.empty((count + 1, x0.size))
        if first is None:
            slope(t, q0, x0, K[0])
        else:
            K[0] = first
        x = x0
        for i in range(1, count):
            x = A[i].dot(K[:i]) + x0
            slope(t + C[i], q0, x, K[i])
        last = x
        x = B.dot(K[:count]) + x0
        slope(t + h, q0, x, K[count])
        return x, last, K

    return stages


def from_rest(v: Vector) -> Vector:
    """x = (0, v)."""
    x = np.zeros(2 * v.size)
    x[v.size :] = v
    return x


def tried(
    stages: Stages, method: Coefficients, t: float, q0: Vector, v0: Vector, first: Vector | None,
    h: float, scale: Callable[[Vector, Vector], Vector],
) -> Trial:  # fmt: skip
    """One trial step; `first` is the slope at its start, `scale(x0, x)` the unit of its errors."""
    x, last, K = stages(method, t, q0, v0, first, h)
    x0 = from_rest(v0)
    error = h * method.error(K, scale(x0, x), h)
    return Trial(t, q0, h, x0, x, K, error, last)


@lru_cache(maxsize=8)
def _times(method: Coefficients, h: float) -> tuple[tuple[Vector, ...], Vector, tuple[float, ...]]:
    """h A by rows, h B and h C."""
    A = tuple(h * row[:i] for i, row in enumerate(method.A))
    return A, h * method.B, tuple((h * method.C).tolist())


def _table(A: Array) -> Array:
    """A as a square array; scipy leaves out columns that are zero."""
    table = np.zeros((len(A), len(A)))
    table[:, : A.shape[1]] = A[:, : len(A)]
    return table


def _dormand_prince() -> Coefficients:
    from scipy.integrate import RK45

    E, P = RK45.E, RK45.P

    def error(K: Array, scale: Vector, h: float) -> float:
        e = E.dot(K) / scale
        return sqrt(e.dot(e) / e.size)

    def within(step: Trial, slope: Slope) -> Callable[[float], Vector]:
        Q = step.h * step.K.T.dot(P)

        def at(theta: float) -> Vector:
            x: Vector = step.x0 + Q.dot(theta ** np.arange(1, 5))
            return x

        return at

    return Coefficients("RK45", _table(RK45.A), RK45.B, RK45.C, 5, error, within, STIFF["RK45"])


def _dop853() -> Coefficients:
    from scipy.integrate import DOP853 as table

    E3, E5 = table.E3, table.E5

    def error(K: Array, scale: Vector, h: float) -> float:
        fifth, third = E5.dot(K) / scale, E3.dot(K) / scale
        by_fifth, by_third = float(fifth.dot(fifth)), float(third.dot(third))
        if by_fifth == 0.0:
            return 0.0
        return by_fifth / sqrt((by_fifth + 0.01 * by_third) * fifth.size)

    def within(step: Trial, slope: Slope) -> Callable[[float], Vector]:
        h, x0, (stages, size) = step.h, step.x0, step.K.shape
        K = np.empty((stages + len(table.C_EXTRA), size))
        K[:stages] = step.K
        for i, (a, c) in enumerate(zip(table.A_EXTRA, table.C_EXTRA, strict=True), stages):
            slope(step.t + c * h, step.q0, x0 + h * a[:i].dot(K[:i]), K[i])
        change, first, last = step.x - x0, K[0], K[stages - 1]
        F = np.vstack([change, h * first - change, 2.0 * change - h * (first + last),
                       h * table.D.dot(K)])  # fmt: skip

        def at(theta: float) -> Vector:
            x = np.zeros(size)
            for i, f in enumerate(reversed(F)):
                x = (x + f) * (theta if i % 2 == 0 else 1.0 - theta)
            return x0 + x

        return at

    return Coefficients(
        "DOP853", _table(table.A), table.B, table.C, 8, error, within, STIFF["DOP853"]
    )


DORMAND_PRINCE = _dormand_prince()
DOP853 = _dop853()
