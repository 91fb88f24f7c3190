"""A curve of closed configurations: polynomials of degree five between nodes.

    q(x) = q_i (+) w(x - x_i)        w(h) = sum_k c_k h^k,  k = 1 ... 5

w has value, first and second derivative of the curve at both nodes. With W(w) the derivative of
q (+) w by w, the identity except for joints with rotations about several axes,

    v = W w'        a = W w'' + Wd w'

For joints whose steps do not commute

    v = sum_k c_k b_k      a = sum_k c_k e_k      c_k = (-1)^k / (k + 1)!
    b_0 = w',  b_k = [w, b_k-1]      e_0 = w'',  e_k = [w', b_k-1] + [w, e_k-1]

[.,.] is the Lie bracket of each joint (tree/lie_bracket.py), here for many nodes at once.
References: quintic Hermite interpolation; docs/trajectories.md; J. Sola, J. Deray and D.
Atchuthan, "A micro Lie theory for state estimation in robotics", 2018: the right Jacobian.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from math import factorial
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.special import bernoulli

from holoctl.base.checks import Array, Vector, read_only, unpickled
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.lie_bracket import adjoint_velocity

__all__ = [
    "Brackets",
    "Curve",
    "CurveMotion",
    "MotorCurve",
    "brackets",
    "curve_through",
    "motor_curve",
    "moved_by",
    "polynomial",
    "seen_from",
]


_TERMS = tuple((-1.0) ** k / float(np.prod(range(1, k + 2))) for k in range(16))
_INVERSE = tuple(float(x) / factorial(k) for k, x in enumerate(bernoulli(24)))
_NONE = 1e-17


class Brackets(NamedTuple):
    """The Lie brackets of a mechanism: ``[x, y] = (sign x[one] y[two]) @ sums``."""

    one: NDArray[np.intp]
    two: NDArray[np.intp]
    sign: Array
    sums: Array

    def of(self, x: Array, y: Array) -> Array:
        """[x, y] of arrays (.., nv)."""
        found: Array = (self.sign * x[..., self.one] * y[..., self.two]) @ self.sums
        return found


def brackets(mech: Mechanism) -> Brackets:
    """The Lie brackets of a mechanism."""
    found: Brackets = mech.per_thread("path brackets", lambda: _constants(mech))
    return found


def _constants(mech: Mechanism) -> Brackets:
    found = [
        (i, j, sign, k)
        for i, unit in enumerate(np.eye(mech.nv))
        for (k, j), sign in np.ndenumerate(adjoint_velocity(mech.model, unit))
        if sign
    ]
    sums = np.zeros((len(found), mech.nv))
    for row, (_, _, _, k) in enumerate(found):
        sums[row, k] = 1.0
    one, two, sign = ([entry[n] for entry in found] for n in range(3))
    left, right = np.array(one, dtype=np.intp), np.array(two, dtype=np.intp)
    return Brackets(left, right, np.array(sign, dtype=float), sums)


def moved_by(b: Brackets, w: Array, d: Array, dd: Array) -> tuple[Array, Array]:
    """v and a from w, w', w'': arrays (.., nv)."""
    v, a = d.copy(), dd.copy()
    if not b.one.size:
        return v, a
    bk, ek = d, dd
    for c in _TERMS[1 : _count(w)]:
        bk, ek = b.of(w, bk), b.of(d, bk) + b.of(w, ek)
        v += c * bk
        a += c * ek
    return v, a


def seen_from(b: Brackets, w: Array, v: Array, a: Array) -> tuple[Array, Array]:
    """w' and w'' from v and a; w is shorter than half a turn."""
    if not b.one.size:
        return v.copy(), a.copy()
    d = _back(b, w, v)
    return d, _back(b, w, a - moved_by(b, w, d, np.zeros_like(d))[1])


def _back(b: Brackets, w: Array, v: Array) -> Array:
    """w' from v: ``v + [w, v] / 2 + sum_k B_k / k! [w, [w, ... v]]``, B_k the Bernoulli numbers."""
    d, bk = v.copy(), v
    for k, c in enumerate(_INVERSE[1 : _count(w) + 4], 1):
        bk = b.of(w, bk)
        if c:
            d += (-c if k == 1 else c) * bk
    return d


def _count(w: Array) -> int:
    """The number of terms of the series that are larger than rounding."""
    size, term, k = float(np.abs(w).max(initial=0.0)) * 1.8, 1.0, 1
    while term > _NONE and k < len(_TERMS):
        term *= size / (k + 1)
        k += 1
    return k


class CurveMotion(NamedTuple):
    """q, and its first and second derivative as a velocity and an acceleration, (nv,)."""

    q: Vector
    v: Vector
    a: Vector


@dataclass(frozen=True, eq=False)
class Curve:
    """See the head of this module.

    Attributes
    ----------
    mech : Mechanism
    x : (n,) array
        The nodes, increasing.
    q : (n, nq) array
    c : (n - 1, 5, nv) array
        The coefficients of h, h^2, ... h^5.
    known : dict
        What was computed of it before.
    """

    mech: Mechanism
    x: Vector
    q: Array
    c: Array
    known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    _nodes: list[float] = field(init=False, repr=False)

    __setstate__ = unpickled

    def __post_init__(self) -> None:
        for array in (self.x, self.q, self.c):
            read_only(array)
        object.__setattr__(self, "_nodes", self.x.tolist())

    def place(self, x: float) -> tuple[int, float]:
        """The interval that contains x, and the distance of x from its start."""
        i = min(max(bisect_right(self._nodes, x) - 1, 0), len(self._nodes) - 2)
        return i, x - self._nodes[i]

    def at(self, x: float) -> CurveMotion:
        """q, q', q'' at x."""
        i, h = self.place(x)
        return self.within(i, h)

    def within(self, i: int, h: float) -> CurveMotion:
        """q, q', q'' at the distance h after node i."""
        w, d, dd = polynomial(self.c[i], h)
        if self.mech.nq == self.mech.nv:
            return CurveMotion(self.q[i] + w, d, dd)
        model = self.mech.model
        there: Vector = pin.normalize(model, pin.integrate(model, self.q[i], w))
        return CurveMotion(there, *moved_by(brackets(self.mech), w, d, dd))

    def between(self, share: float = 0.5) -> tuple[Array, Array, Array]:
        """q (n - 1, nq), q' and q'' (n - 1, nv) at a share of each interval."""
        h = share * np.diff(self.x)
        k = np.stack([h, h * h, h**3, h**4, h**5], axis=1)
        k1 = np.stack([np.ones_like(h), 2.0 * h, 3.0 * h * h, 4.0 * h**3, 5.0 * h**4], axis=1)
        k2 = np.stack([0.0 * h, 0.0 * h + 2.0, 6.0 * h, 12.0 * h * h, 20.0 * h**3], axis=1)
        w, d, dd = (np.einsum("ik,ikv->iv", x, self.c) for x in (k, k1, k2))
        mech = self.mech
        if mech.nq == mech.nv:
            return self.q[:-1] + w, d, dd
        pairs = zip(self.q[:-1], w, strict=True)
        q = np.array([pin.normalize(mech.model, pin.integrate(mech.model, *x)) for x in pairs])
        return q, *moved_by(brackets(mech), w, d, dd)


def polynomial(c: Array, h: float) -> tuple[Vector, Vector, Vector]:
    """w, w', w'' of coefficients (5, n) at h."""
    k = np.array(
        (
            (h, h * h, h**3, h**4, h**5),
            (1.0, 2.0 * h, 3.0 * h * h, 4.0 * h**3, 5.0 * h**4),
            (0.0, 2.0, 6.0 * h, 12.0 * h * h, 20.0 * h**3),
        )
    )
    w, d, dd = k.dot(c)
    return w, d, dd


def curve_through(mech: Mechanism, x: Vector, q: Array, v: Array, a: Array) -> Curve:
    """The curve with q, q', q'' at its nodes: (n,), (n, nq), (n, nv), (n, nv)."""
    h = np.diff(x)[:, None]
    d0, dd0 = v[:-1], a[:-1]  # at w = 0, W = 1 and Wd w' = 0
    if mech.nq == mech.nv:
        w1, d1, dd1 = np.diff(q, axis=0), v[1:], a[1:]
    else:
        w1 = np.array([pin.difference(mech.model, *pair) for pair in pairwise(q)])
        d1, dd1 = seen_from(brackets(mech), w1, v[1:], a[1:])
    left = w1 - h * d0 - 0.5 * h * h * dd0
    dleft = h * (d1 - d0 - h * dd0)
    ddleft = h * h * (dd1 - dd0)
    c3 = (10.0 * left - 4.0 * dleft + 0.5 * ddleft) / h**3
    c4 = (-15.0 * left + 7.0 * dleft - ddleft) / h**4
    c5 = (6.0 * left - 3.0 * dleft + 0.5 * ddleft) / h**5
    return Curve(mech, x.copy(), q.copy(), np.stack([d0, 0.5 * dd0, c3, c4, c5], axis=1))


# ------------------------------------------------------------------------------ the motors alone


@dataclass(frozen=True, eq=False)
class MotorCurve:
    """The positions of the motors along a curve.

    Attributes
    ----------
    q : (n, nu) array
        Positions at the nodes, with whole turns counted.
    c : (n - 1, 5, nu) array
    first, last, rest : (nu,) arrays
        Positions at both ends; zeros.
    """

    q: Array
    c: Array
    first: Vector
    last: Vector
    rest: Vector

    __setstate__ = unpickled

    def at(self, i: int, h: float) -> tuple[Vector, Vector, Vector]:
        """Positions and derivatives at the distance h after node i."""
        w, d, dd = polynomial(self.c[i], h)
        return self.q[i] + w, d, dd


def motor_curve(mech: Mechanism, curve: Curve) -> MotorCurve | None:
    """The curve of the motors; None if a motor has no single position."""
    if not mech.actuated or mech.motors.missing:
        return None
    columns = [mech.coordinate_names.index(name) for name in mech.actuated]
    c = np.ascontiguousarray(curve.c[:, :, columns])
    first = mech.motor_positions(curve.q[0])
    h = np.diff(curve.x)[:, None, None] ** np.arange(1, 6)[:, None]
    q = np.vstack([first, first + np.cumsum((c * h).sum(axis=1), axis=0)])
    return MotorCurve(q, c, first, q[-1], np.zeros(mech.nu))
