"""The one primitive behind every closure: a row is a wrench between two bodies.

A closure row does not change when both bodies move together, so its rate is
``w . (V2 - V1)`` with a wrench w = (force, moment) about the world origin and V1, V2 the
spatial velocities of the two bodies there. With J the world Jacobian and S the matrix of +1
(the coordinate moves body 2 only), -1 (body 1 only) and 0 (both or none),

    G = (W J) * S        rate = w . (V2 - V1)
    drift = w . (A2 - A1) + wdot . (V2 - V1) + extra

Columns of common ancestors are exactly zero, and ``sum lambda_i w_i`` is the constraint
wrench on body 2. Derivation and table of rows: docs/derivations.md, "Closure rows".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.checks import Vector
from holoctl.constraints.contract import Rows
from holoctl.tree import Frame, Kinematics, support

__all__ = [
    "YZX",
    "ZXY",
    "Row",
    "WrenchRows",
    "direction",
    "is_plain",
    "linear",
    "orientation",
    "rod",
    "stacked",
    "wrench_rows",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Row:
    """One row between frames 1 and 2: see `linear`, `direction`, `orientation`, `rod`."""

    kind: str
    label: str
    a: tuple[float, float, float] = (0.0, 0.0, 0.0)
    b: tuple[float, float, float] = (0.0, 0.0, 0.0)
    component: int = 0
    length: float = 0.0


KINDS = ("linear", "direction", "orientation", "rod")
"""What this module evaluates. Others have read what each of them is, and know no more."""


def linear(label: str, n: Sequence[float]) -> Row:
    """``n . (p2 - p1) = 0`` with n fixed in frame 1."""
    return Row("linear", label, a=(n[0], n[1], n[2]))


def direction(label: str, a: Sequence[float], b: Sequence[float]) -> Row:
    """``a . b = 0`` with a fixed in frame 1 and b in frame 2."""
    return Row("direction", label, a=(a[0], a[1], a[2]), b=(b[0], b[1], b[2]))


def orientation(label: str, component: int) -> Row:
    """``2 x_i = 0`` with (w, x) the quaternion of R1^T R2, w >= 0."""
    return Row("orientation", label, component=component)


def rod(label: str, length: float) -> Row:
    """``(d . d - L^2) / (2 L) = 0`` with d = p2 - p1: the distance stays L."""
    return Row("rod", label, length=length)


@dataclass(frozen=True, eq=False)
class WrenchRows:
    """Rows between pairs of frames, laid out as arrays so that all are evaluated at once.

    Attributes
    ----------
    frames1, frames2 : the C pairs of frames.
    on1, on2 : (C, nv) arrays of 0 and 1: the coordinates that move frame 1, frame 2.
    pair : (m,) int array: the pair of each row.
    kinds : (m,) array of "linear", "direction", "orientation", "rod".
    a, b : (m, 3) arrays: vectors fixed in frame 1 and in frame 2.
    component : (m,) int array, for orientation rows.
    length : (m,) array, m, for rods.
    """

    labels: tuple[str, ...]
    frames1: tuple[Frame, ...]
    frames2: tuple[Frame, ...]
    on1: Array
    on2: Array
    pair: Indices
    kinds: NDArray[np.str_]
    a: Array
    b: Array
    component: Indices
    length: Vector

    @cached_property
    def S(self) -> Array:
        """(C, nv): +1 where a coordinate moves body 2 only, -1 body 1 only, else 0."""
        return self.on2 - self.on1

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self.S[self.pair] != 0.0
        return mask

    @property
    def anchors(self) -> tuple[Frame, ...]:
        return self.frames1 + self.frames2

    @cached_property
    def _turning(self) -> Indices:
        return np.flatnonzero(self.kinds == "orientation")

    @cached_property
    def _along(self) -> Indices:
        return np.flatnonzero(self.kinds != "orientation")

    @cached_property
    def _lines(self) -> _Lines:
        i, kinds = self._along, self.kinds[self._along, None]
        length = np.where(kinds == "rod", self.length[i, None], 1.0)
        is_direction, is_rod = kinds == "direction", kinds == "rod"
        any_direction, any_rod = bool(is_direction.any()), bool(is_rod.any())
        return _Lines(
            self.pair[i], self.a[i], self.b[i], length, is_direction, is_rod, any_direction, any_rod
        )

    @cached_property
    def _signs(self) -> Array:
        signs: Array = self.S[self.pair]
        return signs

    def scale(self, length: Vector, columns: Vector) -> Vector:
        """Lengths are divided by the characteristic length; angles stay."""
        return np.where(np.isin(self.kinds, ("linear", "rod")), 1.0 / length, 1.0)

    def wrenches(self, kin: Kinematics) -> Array:
        """(m, 6): w of every row, (force, moment) about the world origin, on body 2."""
        return self._evaluated(_geometry(self, kin))[1]

    def _evaluated(self, g: _Geometry) -> tuple[Array, Array, Array, Array]:
        """Error, w, wdot and extra of all rows."""
        if not self._turning.size:
            return _between(self, g, self._along)
        m = len(self.labels)
        error, extra, W, Wdot = np.empty(m), np.empty(m), np.empty((m, 6)), np.empty((m, 6))
        for i, evaluate in ((self._along, _between), (self._turning, _orientation)):
            if i.size:
                error[i], W[i], Wdot[i], extra[i] = evaluate(self, g, i)
        return error, W, Wdot, extra

    def rows(self, kin: Kinematics) -> Rows:
        """Error, rate, Jacobian and drift of all rows."""
        g = _geometry(self, kin)
        error, W, Wdot, extra = self._evaluated(g)
        jacobian = (W @ kin.J) * self._signs
        if not g.moving:  # as assembly asks, most often of all
            return Rows(error, np.zeros(len(error)), jacobian, np.zeros(len(error)), W)
        dV, dA = g.dV[self.pair], g.dA[self.pair]
        return Rows(
            error=error,
            rate=_dot(W, dV),
            jacobian=jacobian,
            drift=_dot(W, dA) + _dot(Wdot, dV) + extra,
            wrenches=W,
        )


def is_plain(bound: object) -> bool:
    """Whether rows are of the kinds of this module and evaluated as here: those that other ways
    of evaluating them know. A class of one's own, or a kind of one's own, may be anything."""
    return type(bound) is WrenchRows and bool(np.isin(bound.kinds, KINDS).all())


def wrench_rows(
    model: pin.Model, frame1: Frame, frame2: Frame, rows: Sequence[Row], name: str
) -> WrenchRows:
    """Bind the rows of one pair of frames to a model; labels become ``name.label``."""
    return WrenchRows(
        labels=tuple(f"{name}.{row.label}" for row in rows),
        frames1=(frame1,),
        frames2=(frame2,),
        on1=support(model, frame1.joint)[None, :].astype(float),
        on2=support(model, frame2.joint)[None, :].astype(float),
        pair=np.zeros(len(rows), dtype=np.intp),
        kinds=np.array([row.kind for row in rows], dtype=np.str_),
        a=np.array([row.a for row in rows]),
        b=np.array([row.b for row in rows]),
        component=np.array([row.component for row in rows], dtype=np.intp),
        length=np.array([row.length for row in rows]),
    )


def stacked(tables: Iterable[WrenchRows]) -> WrenchRows:
    """Several tables as one, rows in order: evaluating it costs little more than one of them."""
    t = list(tables)
    first = np.cumsum([0, *(len(x.frames1) for x in t)])
    return WrenchRows(
        labels=sum((x.labels for x in t), ()),
        frames1=sum((x.frames1 for x in t), ()),
        frames2=sum((x.frames2 for x in t), ()),
        on1=np.vstack([x.on1 for x in t]),
        on2=np.vstack([x.on2 for x in t]),
        pair=np.concatenate([x.pair + start for x, start in zip(t, first, strict=False)]),
        kinds=np.concatenate([x.kinds for x in t]),
        a=np.vstack([x.a for x in t]),
        b=np.vstack([x.b for x in t]),
        component=np.concatenate([x.component for x in t]),
        length=np.concatenate([x.length for x in t]),
    )


# ------------------------------------------------------------------------------ evaluation


@dataclass(frozen=True, eq=False)
class _Lines:
    """What `_between` reads of the rows along a vector, picked out once."""

    pair: Indices
    a: Array
    b: Array
    length: Array  # (n, 1), 1 where the row is no rod
    is_direction: NDArray[np.bool_]  # (n, 1)
    is_rod: NDArray[np.bool_]
    any_direction: bool
    any_rod: bool


@dataclass(frozen=True, eq=False)
class _Geometry:
    """Positions and motions of the C pairs, in world axes (points in m, spatial at origin)."""

    R1: Array  # (C, 3, 3)
    R2: Array
    p1: Array  # (C, 3)
    p2: Array
    omega1: Array
    omega2: Array
    p1dot: Array
    p2dot: Array
    dV: Array  # (C, 6): V2 - V1
    dA: Array  # (C, 6): A2 - A1 at zero joint acceleration
    moving: bool  # False where v = 0, and with it all motions


def _geometry(table: WrenchRows, kin: Kinematics) -> _Geometry:
    X1 = [kin.placements[f.joint] * f.placement for f in table.frames1]
    X2 = [kin.placements[f.joint] * f.placement for f in table.frames2]
    R1, p1 = np.array([X.rotation for X in X1]), np.array([X.translation for X in X1])
    R2, p2 = np.array([X.rotation for X in X2]), np.array([X.translation for X in X2])
    if not kin.v.any():
        none = np.zeros((len(p1), 6))
        turn = none[:, :3]
        return _Geometry(R1, R2, p1, p2, turn, turn, turn, turn, none, none, moving=False)
    V1 = (table.on1 * kin.v) @ kin.J.T
    V2 = (table.on2 * kin.v) @ kin.J.T
    moving = table.S * kin.v
    return _Geometry(
        R1, R2, p1, p2,
        omega1=V1[:, 3:],
        omega2=V2[:, 3:],
        p1dot=V1[:, :3] + _cross(V1[:, 3:], p1),
        p2dot=V2[:, :3] + _cross(V2[:, 3:], p2),
        dV=moving @ kin.J.T,
        dA=kin.bias_accelerations(table.frames2) - kin.bias_accelerations(table.frames1),
        moving=True,
    )  # fmt: skip


def _between(table: WrenchRows, g: _Geometry, i: Indices) -> tuple[Array, Array, Array, Array]:
    """Rows along a vector n: linear, direction and rod are three choices of n and an arm s,

        w = (n or 0, s x n)        wdot = (ndot or 0, sdot x n + s x ndot)

    linear:    error n . d,                 n fixed in 1, s = p2
    direction: error n . b,                 n fixed in 1, s = b fixed in 2, no force
    rod:       error (d . d - L^2) / (2 L), n = d / L,    s = p2
    """
    t = table._lines
    c, is_direction, is_rod, L = t.pair, t.is_direction, t.is_rod, t.length
    n, s = _turn(g.R1[c], t.a), g.p2[c]
    d = s - g.p1[c]
    n1, error = n, _dot(n, d)
    if t.any_direction:
        s = np.where(is_direction, _turn(g.R2[c], t.b), s)
        error = np.where(is_direction[:, 0], _dot(n, s), error)
    if t.any_rod:
        n = np.where(is_rod, d / L, n)
        stretch = (_dot(d, d) - L[:, 0] ** 2) / (2.0 * L[:, 0])
        error = np.where(is_rod[:, 0], stretch, error)
    w, wdot = np.empty((len(i), 6)), np.zeros((len(i), 6))
    w[:, :3], w[:, 3:] = np.where(is_direction, 0.0, n) if t.any_direction else n, _cross(s, n)
    if g.moving:
        ndot, sdot = _cross(g.omega1[c], n1), g.p2dot[c]
        if t.any_direction:
            sdot = np.where(is_direction, _cross(g.omega2[c], s), sdot)
        if t.any_rod:
            ndot = np.where(is_rod, (g.p2dot[c] - g.p1dot[c]) / L, ndot)
        wdot[:, :3] = np.where(is_direction, 0.0, ndot) if t.any_direction else ndot
        wdot[:, 3:] = _cross(sdot, n) + _cross(s, ndot)
    return error, w, wdot, np.zeros(len(i))


def _orientation(table: WrenchRows, g: _Geometry, i: Indices) -> tuple[Array, Array, Array, Array]:
    """error 2 x_i, w = (0, R1 E_i^T), wdot = (0, omega1 x R1 E_i^T),
    extra = -|omega2 - omega1|^2 x_i / 2, with E = w I - skew(x)."""
    c, k = table.pair[i], table.component[i]
    quaternion = {j: _half_turn_free(g.R1[j].T @ g.R2[j]) for j in set(c.tolist())}
    x = np.array([quaternion[j][:3] for j in c])
    E = np.array([_half_rotation(quaternion[j]) for j in c])
    every = np.arange(len(i))
    moment, xk = _turn(g.R1[c], E[every, k]), x[every, k]
    w, wdot = np.zeros((len(i), 6)), np.zeros((len(i), 6))
    w[:, 3:] = moment
    if not g.moving:
        return 2.0 * xk, w, wdot, np.zeros(len(i))
    domega = g.omega2[c] - g.omega1[c]
    wdot[:, 3:] = _cross(g.omega1[c], moment)
    return 2.0 * xk, w, wdot, -0.5 * _dot(domega, domega) * xk


def _half_turn_free(R: Array) -> Array:
    """Quaternion (x, y, z, w) of a rotation matrix, with w >= 0."""
    xyzw: Array = pin.Quaternion(R).coeffs()
    return xyzw if xyzw[3] >= 0.0 else -xyzw


def _half_rotation(xyzw: Array) -> Array:
    """E = w I - skew(x): d/dt (2 x) = E R1^T (omega2 - omega1)."""
    x, y, z, w = xyzw
    return np.array([[w, z, -y], [-z, w, x], [y, -x, w]])


def _turn(R: Array, local: Array) -> Array:
    """World axes of vectors given in rotated axes, one rotation per vector."""
    return (R @ local[:, :, None])[:, :, 0]


def _dot(a: Array, b: Array) -> Array:
    return np.asarray((a * b).sum(axis=-1))


def _cross(a: Array, b: Array) -> Array:
    """Row-wise cross product; np.cross, or indices in brackets, cost several times as much."""
    return a.take(YZX, 1) * b.take(ZXY, 1) - a.take(ZXY, 1) * b.take(YZX, 1)


YZX, ZXY = np.array([1, 2, 0]), np.array([2, 0, 1])
