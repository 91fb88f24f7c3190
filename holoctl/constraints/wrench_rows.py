"""The primitive of all closures: rows that are wrenches between two bodies.

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

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Indices, Vector, entries, quoted, read_only
from holoctl.base.errors import InputError
from holoctl.base.tolerances import DIFFERENCE_PARTS, DIFFERENCE_STEP
from holoctl.constraints.constraint_protocol import Rows
from holoctl.constraints.derivative_check import difference, worst
from holoctl.constraints.kinds import Along, Composed, Kind, Orientation, Row
from holoctl.tree.coordinates import support
from holoctl.tree.frames import Frame
from holoctl.tree.frozen_model import check_model
from holoctl.tree.kinematics import Kinematics

__all__ = [
    "EVALUATIONS",
    "YZX",
    "ZXY",
    "Lines",
    "WrenchRows",
    "rows_between",
    "stacked",
    "upright_quaternion",
    "wrench_rows",
]

COMPOSED_REACHES = (3.0, 2.0, 1.0, 0.5, 0.5, 0.2, 0.2, 0.05)  # m, or cosines
"""Sizes of the parts of a composed row at which its derivatives are checked."""

BESIDE_A_POLE = 1e-9
"""A function of rows that divides by zero is evaluated at this distance from the pole."""


_Evaluate = Callable[["WrenchRows", "_PairMotion", Indices], tuple[Array, Array, Array, Array]]
"""evaluate(table, geometry, rows) -> error, w, wdot and extra of these rows."""


@dataclass(frozen=True, eq=False)
class WrenchRows:
    """Rows between pairs of frames, stored as arrays so that all are evaluated at once.

    Attributes
    ----------
    frames1, frames2 : the C pairs of frames.
    on1, on2 : (C, nv) arrays of 0 and 1: the coordinates that move frame 1, frame 2.
    pair : (m,) int array: the pair of each row.
    kinds : tuple of m values of constraints/kinds.py.
    a, b : (m, 3) arrays: the vectors of rows along a vector.
    component : (m,) int array, for orientation rows.
    size : (m,) array: the length of a rod, m, or the pitch of a screw, m/rad.
    """

    labels: tuple[str, ...]
    frames1: tuple[Frame, ...]
    frames2: tuple[Frame, ...]
    on1: Array
    on2: Array
    pair: Indices
    kinds: tuple[Kind, ...]
    a: Array
    b: Array
    component: Indices
    size: Vector

    def __post_init__(self) -> None:
        for array in (self.on1, self.on2, self.pair, self.a, self.b, self.component, self.size):
            read_only(array)

    @cached_property
    def S(self) -> Array:
        """(C, nv): +1 where a coordinate moves body 2 only, -1 body 1 only, else 0."""
        return read_only(self.on2 - self.on1)

    @cached_property
    def moves(self) -> Array:
        """(3C, nv): `on1`, `on2` and `S`, one below the other."""
        return read_only(np.vstack([self.on1, self.on2, self.S]))

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self.S[self.pair] != 0.0
        return mask

    @cached_property
    def anchors(self) -> tuple[Frame, ...]:
        return self.frames1 + self.frames2

    def of(self, sort: type) -> Indices:
        """The rows whose kind is of one sort: `Along`, `Orientation` or `Composed`."""
        return np.flatnonzero([type(kind) is sort for kind in self.kinds])

    @cached_property
    def _sorts(self) -> tuple[tuple[Indices, _Evaluate], ...]:
        """The rows of each sort, and the function that evaluates them."""
        return tuple((i, how) for sort, how in EVALUATIONS.items() if (i := self.of(sort)).size)

    @cached_property
    def _along(self) -> Indices:
        return self.of(Along)

    @cached_property
    def composed(self) -> tuple[tuple[int, Composed, slice], ...]:
        """The composed rows: index, kind, and the indices of their parts in `parts`."""
        found, stop = [], 0
        for i in self.of(Composed).tolist():
            kind = self.kinds[i]
            if isinstance(kind, Composed):
                found.append((i, kind, slice(stop, stop := stop + len(kind.parts))))
        return tuple(found)

    @cached_property
    def parts(self) -> WrenchRows:
        """The parts of all composed rows, between the same pairs of frames."""
        rows = [row for _, kind, _ in self.composed for row in kind.parts]
        pair = [self.pair[i] for i, kind, _ in self.composed for _ in kind.parts]
        return replace(self, pair=np.array(pair, dtype=np.intp), **_columns(rows))

    @cached_property
    def _lines(self) -> Lines:
        return self.lines(self._along)

    def lines(self, i: Indices) -> Lines:
        """The numbers of rows along a vector."""
        along = [k for row in i.tolist() if isinstance(k := self.kinds[row], Along)]
        rod = np.array([kind.normal is None for kind in along], dtype=bool)
        normal = np.array([(kind.normal or 1) - 1 for kind in along], dtype=np.intp)
        arm = np.array([kind.arm - 1 for kind in along], dtype=np.intp)
        pair, C = self.pair[i], len(self.frames1)
        point = np.array([kind.point for kind in along], dtype=bool)
        return Lines(
            pair=pair,
            first=pair,
            second=C + pair,
            holders=np.array([C * normal + pair, C * arm + pair]),
            a=self.a[i],
            b=self.b[i],
            vectors=np.array([self.a[i], np.where(point[:, None], 0.0, self.b[i])]),
            normal=normal,
            arm=arm,
            point=point,
            rod=rod,
            length=np.where(rod, self.size[i], 1.0),
        )

    @cached_property
    def _signs(self) -> Array:
        return read_only(self.S[self.pair])

    def scale(self, length: Vector, columns: Vector) -> Vector:
        """Lengths are divided by the characteristic length; angles are unchanged."""
        return np.where(self.is_length, 1.0 / length, 1.0)

    @cached_property
    def is_length(self) -> NDArray[np.bool_]:
        """(m,) whether the error of a row is a length; else it is an angle."""
        return np.array([kind.point for kind in self.kinds], dtype=bool)

    def _evaluated(self, g: _PairMotion) -> tuple[Array, Array, Array, Array]:
        """Error, w, wdot and extra of all rows."""
        if len(self._sorts) == 1:
            i, evaluate = self._sorts[0]
            return evaluate(self, g, i)
        m = len(self.labels)
        error, extra, W, Wdot = np.empty(m), np.empty(m), np.empty((m, 6)), np.empty((m, 6))
        for i, evaluate in self._sorts:
            error[i], W[i], Wdot[i], extra[i] = evaluate(self, g, i)
        return error, W, Wdot, extra

    def rows(self, kin: Kinematics) -> Rows:
        """Error, rate, Jacobian and drift of all rows."""
        g = _pair_motions(self, kin)
        error, W, Wdot, extra = self._evaluated(g)
        jacobian = (W @ kin.J) * self._signs
        if not g.moving:  # the most frequent case: assembly
            return Rows(error, np.zeros(len(error)), jacobian, np.zeros(len(error)), W)
        dV, dA = g.dV.take(self.pair, 0), g.dA.take(self.pair, 0)
        return Rows(
            error=error,
            rate=np.vecdot(W, dV),
            jacobian=jacobian,
            drift=np.vecdot(W, dA) + np.vecdot(Wdot, dV) + extra,
            wrenches=W,
        )


def wrench_rows(
    model: pin.Model, frame1: Frame, frame2: Frame, rows: Sequence[Row], name: str
) -> WrenchRows:
    """Bind the rows of one pair of frames to a model; labels become ``name.label``.

    Parameters
    ----------
    model : pin.Model
    frame1, frame2 : Frame
        As returned by `resolve_frame`.
    rows : sequence of Row
        Made by the functions of `kinds`.
    name : str
        That of the constraint.

    Returns
    -------
    WrenchRows
        Bound rows, the result that `bind` must return.

    Raises
    ------
    InputError
        For a row whose kind is of none of the sorts of constraints/kinds.py, and for a user-defined
        kind whose gradient or curvature is not that of its value.

    See Also
    --------
    protocols.kinds : the rows.
    protocols.resolve_frame : the frames.
    protocols.BoundRows : what it returns.

    Examples
    --------
    >>> import holoctl as hc
    >>> model = hc.load(hc.robot_file("five_bar")).model
    >>> ends = [hc.protocols.resolve_frame(model, x, "tie") for x in ("tip_left", "tip_right")]
    >>> rod = hc.protocols.kinds.rod("distance", length=0.3)
    >>> hc.protocols.wrench_rows(model, *ends, [rod], "tie").labels
    ('tie.distance',)
    """
    check_model(model, f"constraint {name!r}")
    rows = entries(rows) or []
    for frame in (frame1, frame2):
        if not isinstance(frame, Frame):
            raise InputError(
                f"constraint {name!r}: {frame!r} is not a frame; hc.protocols.resolve_frame "
                "finds one"
            )
    if not rows or not all(isinstance(row, Row) for row in rows):
        raise InputError(
            f"constraint {name!r}: rows must be values that hc.protocols.kinds makes, one or more; "
            f"got {str(rows)[:80]}"
        )
    labels = [row.label for row in rows]
    if len(set(labels)) < len(labels):
        raise InputError(f"constraint {name!r}: labels of rows must differ; got {labels}")
    for row in rows:
        if type(row.kind) not in EVALUATIONS:
            sorts = ", ".join(sort.__name__ for sort in EVALUATIONS)
            raise InputError(
                f"constraint {name!r}: the kind of row {row.label!r} must be a value of one of "
                f"{sorts}; got {quoted(row.kind)}"
            )
        if isinstance(row.kind, Along) and row.kind.own_axes:
            raise InputError(
                f"constraint {name!r}: row {row.label!r} is a rate along axes of its own frame, "
                "which is not the rate of an error: only tasks can use it"
            )
        if isinstance(row.kind, Composed) and (wrong := _wrong_derivatives(row.kind, row.size)):
            raise InputError(f"constraint {name!r}: row {row.label!r}: {wrong}")
    return rows_between(model, frame1, frame2, rows, name)


def rows_between(
    model: pin.Model, frame1: Frame, frame2: Frame, rows: Sequence[Row], name: str
) -> WrenchRows:
    """`wrench_rows` without the checks; rates are allowed too."""
    return WrenchRows(
        frames1=(frame1,),
        frames2=(frame2,),
        on1=support(model, frame1.joint)[None, :].astype(float),
        on2=support(model, frame2.joint)[None, :].astype(float),
        pair=np.zeros(len(rows), dtype=np.intp),
        **_columns(rows) | {"labels": tuple(f"{name}.{row.label}" for row in rows)},
    )


@lru_cache(maxsize=1000)
def _wrong_derivatives(kind: Composed, size: float) -> str:
    """The error of the derivatives of a function of rows; empty if there is none."""
    rng, faults, tested, why = np.random.default_rng(0), list[str](), 0, "guard is one or more"
    try:
        for reach in COMPOSED_REACHES:
            x, xdot = rng.normal(size=(2, len(kind.parts)))
            try:
                if not kind.guard((reach * x).tolist()) < 1.0:
                    continue
                found = _compared(kind, size, reach * x, xdot)
            except ZeroDivisionError:  # a pole
                why = "functions divide by zero"
                continue
            faults += [found] if found else []
            tested += 1
    except InputError as error:
        return str(error)
    except Exception as error:  # user code may raise anything
        return f"its functions raised {type(error).__name__}: {error}"
    if not tested:
        return f"its {why} at every test point, with size {size:g}, so it cannot be used"
    # a single fault may be due to a kink
    return faults[-1] if len(faults) > 1 or len(faults) == tested else ""


def _compared(kind: Composed, size: float, x: Vector, xdot: Vector) -> str:
    """The error of gradient and curvature at x against differences, as text; None if there is
    none."""
    f_x = np.asarray(kind.gradient(x.tolist(), size), dtype=float)
    if f_x.shape != x.shape:
        raise InputError(f"gradient must give a number for each of {x.size} parts; got {f_x.shape}")

    def along(s: float) -> Vector:
        there = (x + s * xdot).tolist()
        slope = np.asarray(kind.gradient(there, size)).dot(xdot)
        return np.array([float(kind.value(there, size, math.atan2, math.floor)), slope])

    given = np.array([f_x.dot(xdot), float(kind.curvature(x.tolist(), xdot.tolist(), size))])
    if not np.isfinite([*given, *along(0.0)]).all():
        raise InputError(
            f"its value and derivatives must be finite; at x = {x.round(4).tolist()} they are not"
        )
    tries = [difference(along, part * DIFFERENCE_STEP) for part in DIFFERENCE_PARTS]
    if (i := worst(given, tries, np.full(2, np.abs(f_x).dot(np.abs(xdot))))) is None:
        return ""
    return (
        f"at x = {x.round(4).tolist()}, xdot = {xdot.round(4).tolist()} its "
        f"{('gradient . xdot', 'curvature')[i]} is {given[i]:.6g}, and by differences "
        f"{tries[0].value[i]:.6g}"
    )


def _columns(rows: Sequence[Row]) -> dict[str, Any]:
    """The columns of a table, from its rows."""
    return {
        "labels": tuple(row.label for row in rows),
        "kinds": tuple(row.kind for row in rows),
        "a": np.array([row.a for row in rows]),
        "b": np.array([row.b for row in rows]),
        "component": np.array([row.component for row in rows], dtype=np.intp),
        "size": np.array([row.size for row in rows]),
    }


def stacked(tables: Iterable[WrenchRows]) -> WrenchRows:
    """Several tables as one, rows in order; its evaluation takes little longer than that of one."""
    t = list(tables)
    first = np.cumsum([0, *(len(x.frames1) for x in t)])
    return WrenchRows(
        labels=sum((x.labels for x in t), ()),
        frames1=sum((x.frames1 for x in t), ()),
        frames2=sum((x.frames2 for x in t), ()),
        on1=np.vstack([x.on1 for x in t]),
        on2=np.vstack([x.on2 for x in t]),
        pair=np.concatenate([x.pair + start for x, start in zip(t, first, strict=False)]),
        kinds=sum((x.kinds for x in t), ()),
        a=np.vstack([x.a for x in t]),
        b=np.vstack([x.b for x in t]),
        component=np.concatenate([x.component for x in t]),
        size=np.concatenate([x.size for x in t]),
    )


# ------------------------------------------------------------------------------ evaluation


@dataclass(frozen=True, eq=False)
class Lines:
    """n rows along a vector, as numbers: frame 1 has the index 0, frame 2 the index 1.

    Attributes
    ----------
    pair : (n,) int array
        The pair of frames.
    first, second : (n,) int arrays
        Frame 1 and frame 2, among all 2C frames, those of frames 1 first.
    holders : (2, n) int array
        The frame in which n is fixed, and that of s, among the same.
    a, b : (n, 3) arrays
        The vector n if it is fixed in a frame, and s if it is a direction.
    vectors : (2, n, 3) array
        a; b, or zero if s is a point.
    normal, arm : (n,) int arrays
        The frame in which n is fixed (for a rod, with which it turns), and that of s.
    point : (n,) bool array
        Whether s is the origin of its frame, and the row has a force.
    rod : (n,) bool array
        Whether n is d / L.
    length : (n,) array
        L of a rod, 1 for other rows.
    """

    pair: Indices
    first: Indices
    second: Indices
    holders: Indices
    a: Array
    b: Array
    vectors: Array
    normal: Indices
    arm: Indices
    point: NDArray[np.bool_]
    rod: NDArray[np.bool_]
    length: Vector

    @cached_property
    def force(self) -> Array:
        """(n, 1): 1 where the row has a force, else 0."""
        return read_only(self.point[:, None].astype(float))

    @cached_property
    def any_direction(self) -> bool:
        return not self.point.all()

    @cached_property
    def any_rod(self) -> bool:
        return bool(self.rod.any())


class _PairMotion(NamedTuple):
    """Positions and motions of the C pairs, in world axes (points in m, spatial at origin)."""

    axes: Array  # (2C, 3, 3): of frames 1, then of frames 2
    origins: Array  # (2C, 3)
    V: Array  # (2C, 6)
    dV: Array  # (C, 6): V2 - V1
    dA: Array  # (C, 6): A2 - A1 at zero joint acceleration
    moving: bool  # False where v = 0, and with it all motions

    @property
    def R(self) -> Array:
        """(2, C, 3, 3): the axes."""
        return self.axes.reshape(2, -1, 3, 3)

    @property
    def p(self) -> Array:
        """(2, C, 3): the origins."""
        return self.origins.reshape(2, -1, 3)

    @property
    def omega(self) -> Array:
        """(2, C, 3): the angular velocities."""
        return self.V[:, 3:].reshape(2, -1, 3)

    @property
    def pdot(self) -> Array:
        """(2, C, 3): the velocities of the origins."""
        pdot = self.V[:, :3] + _cross(self.V[:, 3:], self.origins)
        return pdot.reshape(2, -1, 3)


def _pair_motions(table: WrenchRows, kin: Kinematics) -> _PairMotion:
    C = len(table.frames1)
    X = [kin.placements[f.joint] * f.placement for f in table.anchors]
    R, p = np.array([x.rotation for x in X]), np.array([x.translation for x in X])
    if not np.count_nonzero(kin.v):
        none = np.zeros((2 * C, 6))
        return _PairMotion(R, p, none, none[:C], none[:C], moving=False)
    V = (table.moves * kin.v).dot(kin.J.T)
    A = kin.bias_accelerations(table.anchors)
    return _PairMotion(R, p, V[: 2 * C], V[2 * C :], A[C:] - A[:C], moving=True)


def _between(table: WrenchRows, g: _PairMotion, i: Indices) -> tuple[Array, Array, Array, Array]:
    """Rows along a vector n at an arm s, as defined in constraints/kinds.py:

    w = (n or 0, s x n)        wdot = (ndot or 0, sdot x n + s x ndot)
    """
    t = table._lines
    x = _turn(g.axes.take(t.holders, 0), t.vectors)  # n, and s if it is a direction
    x[1] += t.force * g.origins.take(t.holders[1], 0)
    n, s = x
    d = g.origins.take(t.second, 0) - g.origins.take(t.first, 0)
    error = np.vecdot(n, np.where(t.point[:, None], d, s) if t.any_direction else d)
    if t.any_rod:
        L, is_rod = t.length[:, None], t.rod[:, None]
        n = np.where(is_rod, d / L, n)
        error = np.where(t.rod, (np.vecdot(d, d) - t.length**2) / (2.0 * t.length), error)
    if not g.moving:
        w = np.concatenate([t.force * n, _cross(s, n)], -1)
        return error, w, np.zeros(w.shape), np.zeros(len(i))
    V = g.V.take(t.holders, 0)
    ndot, sdot = _cross(V[:, :, 3:], x)
    sdot += t.force * V[1, :, :3]
    if t.any_rod:
        pdot = g.pdot
        ndot = np.where(is_rod, (pdot[1, t.pair] - pdot[0, t.pair]) / L, ndot)
    force = np.array([n, ndot])
    moment = _cross(s, force)
    moment[1] += _cross(sdot, n)
    w, wdot = np.concatenate([t.force * force, moment], -1)
    return error, w, wdot, np.zeros(len(i))


def _orientation(
    table: WrenchRows, g: _PairMotion, i: Indices
) -> tuple[Array, Array, Array, Array]:
    """error 2 x_i, w = (0, R1 E_i^T), wdot = (0, omega1 x R1 E_i^T),
    extra = -|omega2 - omega1|^2 x_i / 2, with E = w I - skew(x)."""
    c, k = table.pair[i], table.component[i]
    R, omega = g.R, g.omega
    quaternion = {j: upright_quaternion(R[0, j].T @ R[1, j]) for j in set(c.tolist())}
    x = np.array([quaternion[j][:3] for j in c])
    E = np.array([_half_rotation(quaternion[j]) for j in c])
    every = np.arange(len(i))
    moment, xk = _turn(R[0, c], E[every, k]), x[every, k]
    w, wdot = np.zeros((len(i), 6)), np.zeros((len(i), 6))
    w[:, 3:] = moment
    if not g.moving:
        return 2.0 * xk, w, wdot, np.zeros(len(i))
    domega = omega[1, c] - omega[0, c]
    wdot[:, 3:] = _cross(omega[0, c], moment)
    return 2.0 * xk, w, wdot, -0.5 * np.vecdot(domega, domega) * xk


def _composed(table: WrenchRows, g: _PairMotion, i: Indices) -> tuple[Array, Array, Array, Array]:
    """Functions of rows along vectors: w and wdot by f_x, extra ``xdot' f_xx xdot``."""
    parts, m = table.parts, len(i)
    x, w_x, wdot_x, _ = _between(parts, g, np.arange(len(parts.labels)))
    xdot = np.vecdot(w_x, g.dV[parts.pair])
    error, w, wdot, extra = np.empty(m), np.empty((m, 6)), np.empty((m, 6)), np.empty(m)
    for k, (row, kind, at) in enumerate(table.composed):
        here, size = x[at].tolist(), float(table.size[row])
        try:
            error[k], gradient, extra[k] = _composed_at(kind, here, xdot[at].tolist(), size)
        except ZeroDivisionError:  # a pole, such as axes of a screw that are exactly opposite
            beside = [one + BESIDE_A_POLE * (i + 1) for i, one in enumerate(here)]
            error[k], gradient, extra[k] = _composed_at(kind, beside, xdot[at].tolist(), size)
        f_x = np.array(gradient)
        w[k], wdot[k] = f_x @ w_x[at], f_x @ wdot_x[at]
    return error, w, wdot, extra


def _composed_at(
    kind: Composed, x: list[float], xdot: list[float], size: float
) -> tuple[float, Sequence[float], float]:
    """Value, gradient and curvature."""
    value: float = kind.value(x, size, math.atan2, math.floor)
    return value, kind.gradient(x, size), kind.curvature(x, xdot, size)


def upright_quaternion(R: Array) -> Array:
    """Quaternion (x, y, z, w) of a rotation matrix, with w >= 0."""
    xyzw: Array = pin.Quaternion(R).coeffs()
    return xyzw if xyzw[3] >= 0.0 else -xyzw


def _half_rotation(xyzw: Array) -> Array:
    """E = w I - skew(x): d/dt (2 x) = E R1^T (omega2 - omega1)."""
    x, y, z, w = xyzw
    return np.array([[w, z, -y], [-z, w, x], [y, -x, w]])


def _turn(R: Array, local: Array) -> Array:
    """Vectors given in rotated axes, in world axes; one rotation per vector."""
    turned: Array = np.vecdot(R, local[..., None, :])
    return turned


def _cross(a: Array, b: Array) -> Array:
    """Row-wise cross product; np.cross, or indices in brackets, cost several times as much."""
    terms = a.take(_LEFT, -1) * b.take(_RIGHT, -1)
    return terms[..., :3] - terms[..., 3:]


YZX, ZXY = np.array([1, 2, 0]), np.array([2, 0, 1])
_LEFT, _RIGHT = np.concatenate([YZX, ZXY]), np.concatenate([ZXY, YZX])

EVALUATIONS: dict[type, _Evaluate] = {
    Along: _between,
    Orientation: _orientation,
    Composed: _composed,
}
"""The function that evaluates the rows of each sort, for all sorts."""
