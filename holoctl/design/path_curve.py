"""A curve of closed configurations: polynomials of degree five between nodes.

    q(x) = q_i (+) w(x - x_i)        w(h) = sum_k c_k h^k,  k = 1 ... 5

w has value, first and second derivative of the curve at both nodes. With W(w) the derivative of
q (+) w by w, which is one for all but joints with rotations of several axes,

    v = W w'        a = W w'' + Wd w'

Reference: quintic Hermite interpolation; docs/design.md, "Trajectories".
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, read_only
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Curve", "Motion", "MotorCurve", "curve_through", "motor_curve", "polynomial"]

Array = NDArray[np.float64]


class Motion(NamedTuple):
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
        The nodes, ascending.
    q : (n, nq) array
    c : (n - 1, 5, nv) array
        The coefficients of h, h^2, ... h^5.
    """

    mech: Mechanism
    x: Vector
    q: Array
    c: Array
    _nodes: list[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.x, self.q, self.c):
            read_only(array)
        object.__setattr__(self, "_nodes", self.x.tolist())

    def place(self, x: float) -> tuple[int, float]:
        """The interval where x is, and how far in it."""
        i = min(max(bisect_right(self._nodes, x) - 1, 0), len(self._nodes) - 2)
        return i, x - self._nodes[i]

    def at(self, x: float) -> Motion:
        """q, q', q'' at x."""
        i, h = self.place(x)
        return self.within(i, h)

    def within(self, i: int, h: float) -> Motion:
        """The same a step h behind node i."""
        w, d, dd = polynomial(self.c[i], h)
        if self.mech.nq == self.mech.nv:
            return Motion(self.q[i] + w, d, dd)
        return _on_the_group(self.mech.model, self.q[i], w, d, dd)


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
    if mech.nq == mech.nv:
        w1, d0, d1, dd0, dd1 = np.diff(q, axis=0), v[:-1], v[1:], a[:-1], a[1:]
    else:
        at_ends = [_seen_from(mech.model, q[i], Motion(q[i + 1], v[i + 1], a[i + 1]))
                   for i in range(len(x) - 1)]  # fmt: skip
        w1, d1, dd1 = (np.array(y) for y in zip(*at_ends, strict=True))
        d0, dd0 = v[:-1], a[:-1]  # W = 1 and Wd w' = 0 at w = 0
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
    """What a curve makes the motors do.

    Attributes
    ----------
    q : (n, nu) array
        Positions at the nodes, turns counted on.
    c : (n - 1, 5, nu) array
    first, last, rest : (nu,) arrays
        Positions at both ends; zeros.
    """

    q: Array
    c: Array
    first: Vector
    last: Vector
    rest: Vector

    def at(self, i: int, h: float) -> tuple[Vector, Vector, Vector]:
        """Positions and derivatives a step h behind node i."""
        w, d, dd = polynomial(self.c[i], h)
        return self.q[i] + w, d, dd


def motor_curve(mech: Mechanism, curve: Curve) -> MotorCurve | None:
    """The curve of the motors; None where they have no positions that are numbers."""
    if not mech.actuated or mech.motors.missing:
        return None
    columns = [mech.coordinate_names.index(name) for name in mech.actuated]
    c = np.ascontiguousarray(curve.c[:, :, columns])
    first = mech.motor_positions(curve.q[0])
    h = np.diff(curve.x)[:, None, None] ** np.arange(1, 6)[:, None]
    q = np.vstack([first, first + np.cumsum((c * h).sum(axis=1), axis=0)])
    return MotorCurve(q, c, first, q[-1], np.zeros(mech.nu))


# -------------------------------------------------------------- joints whose steps do not just add


def _on_the_group(model: pin.Model, q: Vector, w: Vector, d: Vector, dd: Vector) -> Motion:
    W, Wd = _slopes(model, q, w, d)
    there: Vector = pin.normalize(model, pin.integrate(model, q, w))
    return Motion(there, W @ d, W @ dd + Wd @ d)


def _seen_from(model: pin.Model, q: Vector, there: Motion) -> tuple[Vector, Vector, Vector]:
    """w, w', w'' of a motion, from a configuration nearby."""
    w: Vector = pin.difference(model, q, there.q)
    W = pin.dIntegrate(model, q, w, pin.ArgumentPosition.ARG1)
    d = np.linalg.solve(W, there.v)
    _, Wd = _slopes(model, q, w, d)
    return w, d, np.linalg.solve(W, there.a - Wd @ d)


def _slopes(model: pin.Model, q: Vector, w: Vector, d: Vector) -> tuple[Array, Array]:
    """W at w, and its derivative where w moves by d: by sixth-order differences."""
    argument = pin.ArgumentPosition.ARG1

    def slope(x: float) -> Array:
        found: Array = pin.dIntegrate(model, q, w + x * d, argument)
        return found

    size = float(np.abs(d).max(initial=0.0))
    if size == 0.0:
        return slope(0.0), np.zeros((d.size, d.size))
    x = 0.02 / size
    one, two, three = (slope(k * x) - slope(-k * x) for k in (1.0, 2.0, 3.0))
    return slope(0.0), (45.0 * one - 9.0 * two + three) / (60.0 * x)
