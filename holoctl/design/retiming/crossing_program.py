"""The fastest motion along a path through type-2 (actuation) singularities, as a convex program.

    min sum 2 h_i r_i      r_i (y_i + y_i+1) >= 1,   y_i^2 <= b_i,   b = 0 at both ends
    A u = r1 b'/2 + r2 b + r3                      at every node, with u within its limits
    w' (r1 b'/2 + r2 b + r3) = 0                   at a singularity s*, where w' A = 0
    w' A_s u = w' (r1 b'/2 + r2 b + r3)_s          on both sides of s*: the limits of u there

b = sd^2 is a cubic spline with a continuous second derivative, so that sdd = b'/2 has a continuous
first one. The third line is needed for finite efforts; the fourth, its derivative along the path
with w held, determines u there: one u, if the path has a continuous third derivative. Forces and
limits that change with the speed are linearised in b near the last solution.
Reference: docs/derivations-crossing.md, "The plan".
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import BSpline

from holoctl.base.checks import Array, Vector
from holoctl.design.paths.dynamics import Dynamics
from holoctl.design.retiming.convex_programs import solved
from holoctl.design.retiming.limit_rows import Box, effort_boxes, friction_near, joint_rows
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = [
    "EffortTerms",
    "PathSingularity",
    "effort_terms",
    "excess_at",
    "fastest_through",
    "least_excess",
    "usual_speed",
]

DEGREE = 3

NODES_A_PIECE = 3
"""Nodes of the path in each polynomial of the spline of b."""

LEAST = 1e-7
"""b is at least this share of its usual value at the nodes."""

AT_REST = 1e-6
"""Speeds below this share of the largest count as rest."""

_STENCIL = np.array([-25.0, 48.0, -36.0, 16.0, -3.0]) / 12.0
"""Coefficients of a derivative at the first of five places in equal steps."""


class EffortTerms(NamedTuple):
    """``A u = r1 sdd + r2 b + r3`` at n nodes: (n, p, nu) and three (n, p)."""

    A: Array
    r1: Array
    r2: Array
    r3: Array


class PathSingularity(NamedTuple):
    """A type-2 singularity on a path.

    Attributes
    ----------
    node : int
        Its node.
    w : (p,) array
        ``w' A = 0``, of norm one.
    sides : two of Dynamics
        At five places, of which the first is the singularity, in equal steps: backwards, and
        forwards.
    """

    node: int
    w: Vector
    sides: tuple[Dynamics, Dynamics]

    def along(self, sd: float) -> tuple[float, float, float]:
        """w' r1, w' r2, w' r3 there, at a speed."""
        terms = effort_terms(self.sides[1], np.full(5, sd))
        return float(self.w @ terms.r1[0]), float(self.w @ terms.r2[0]), float(self.w @ terms.r3[0])

    def derivatives(self, sd: float) -> list[tuple[Vector, float, float, float]]:
        """The derivatives of w' A, w' r1, w' r2, w' r3 by s, at a speed, on both sides."""
        found = []
        for side, sign in zip(self.sides, (-1.0, 1.0), strict=True):
            step = sign * float(np.abs(np.diff(side.path.s)).mean())
            terms = effort_terms(side, np.full(5, sd))
            A, r1, r2, r3 = (np.tensordot(_STENCIL / step, x, 1) for x in terms)
            found.append((self.w @ A, float(self.w @ r1), float(self.w @ r2), float(self.w @ r3)))
        return found


def effort_terms(dyn: Dynamics, sd: Vector) -> EffortTerms:
    """The coefficients of the efforts near the speeds sd, exact there."""
    friction = friction_near(dyn, sd)
    at, by_b = _in_b(friction.at, friction.slope, sd)
    return EffortTerms(dyn.A, dyn.r1, dyn.r2 - by_b, dyn.r3 - at)


def _in_b(first: Array, slope: Array, sd: Vector) -> tuple[Array, Array]:
    """``first + slope sd`` near the speeds sd, as a constant and a coefficient of b = sd^2; at rest
    the constant alone."""
    moves = (sd > AT_REST * float(sd.max(initial=0.0)))[:, None]
    near = np.where(moves, sd[:, None], 1.0)
    return first + np.where(moves, 0.5 * slope * near, 0.0), np.where(
        moves, 0.5 * slope / near, 0.0
    )


class _Variables(NamedTuple):
    """b and its two derivatives at the nodes, cvxpy expressions, by coefficients of the spline."""

    knots: Vector
    c: Any
    b: Any
    slope: Any
    bend: Any


def _variables(cp: Any, s: Vector, usual: float) -> _Variables:
    inner = s[NODES_A_PIECE : s.size - NODES_A_PIECE : NODES_A_PIECE]
    knots = np.concatenate([s[:1].repeat(DEGREE + 1), inner, s[-1:].repeat(DEGREE + 1)])
    count = knots.size - DEGREE - 1
    c, spline = cp.Variable(count), BSpline(knots, usual * np.eye(count), DEGREE)
    return _Variables(knots, c, *((spline.derivative(k) if k else spline)(s) @ c for k in range(3)))


def fastest_through(
    dyn: Dynamics, bound: BoundLimits, singular: list[PathSingularity], sd: Vector, tight: Vector
) -> BSpline | None:
    """b, sd^2 by s, of the fastest motion near the speeds sd (n,); None if there is none. `tight`
    (n,) are shares of limits that are not used."""
    cp: Any = import_module("cvxpy")
    s, n, usual = dyn.path.s, dyn.path.s.size, usual_speed(dyn, bound)
    x = _variables(cp, s, usual)
    rows = _limited(cp, x, dyn, bound, singular, sd, tight, 0.0)
    y, rate, share = cp.Variable(n), cp.Variable(n - 1), x.b[1:-1] / usual
    both, h = y[:-1] + y[1:], np.diff(s) / np.diff(s).mean()
    rows += [y[0] == 0.0, y[-1] == 0.0, x.b[0] == 0.0, x.b[-1] == 0.0, share >= LEAST]
    rows.append(cp.SOC(share + 1.0, cp.vstack([2.0 * y[1:-1], share - 1.0])))
    rows.append(cp.SOC(rate + both, cp.vstack([np.full(n - 1, 2.0), rate - both])))
    if not solved(cp.Problem(cp.Minimize(h @ rate), rows)):
        return None
    return BSpline(x.knots, usual * x.c.value, DEGREE)


def least_excess(
    dyn: Dynamics, bound: BoundLimits, singular: list[PathSingularity], sd: Vector
) -> float | None:
    """The least excess over limits of efforts, as a share of them, of any motion near the speeds
    sd; None if other limits prevent all motions."""
    cp: Any = import_module("cvxpy")
    usual, e = usual_speed(dyn, bound), cp.Variable(nonneg=True)
    x = _variables(cp, dyn.path.s, usual)
    tight = np.zeros(dyn.path.s.size)
    rows = _limited(cp, x, dyn, bound, singular, sd, tight, e)
    rows += [x.b[0] == 0.0, x.b[-1] == 0.0, x.b[1:-1] / usual >= LEAST]
    return float(e.value) if solved(cp.Problem(cp.Minimize(e), rows)) else None


def excess_at(dyn: Dynamics, bound: BoundLimits, one: PathSingularity, sd: float) -> float | None:
    """The least excess over limits of efforts, as a share of them, at a singularity alone, whatever
    the speed and its two derivatives, with forces and limits as near the speed sd."""
    cp: Any = import_module("cvxpy")
    usual, e, there = usual_speed(dyn, bound), cp.Variable(nonneg=True), np.array([one.node])
    x = _Variables(
        np.zeros(0), None, usual * cp.Variable(1, nonneg=True), usual * cp.Variable(1),
        usual * cp.Variable(1),
    )  # fmt: skip
    at, size = np.full(1, sd), _effort_sizes(dyn, bound)
    terms = EffortTerms(*(r[:1] for r in effort_terms(one.sides[1], np.full(5, sd))))
    path = dyn.path.where(np.isin(np.arange(dyn.path.s.size), there))
    boxes = [_EffortBox(box, at) for box in effort_boxes(path, bound, at)]
    U = cp.Variable((1, dyn.A.shape[2]))
    per_row = np.abs(dyn.A[there] * size).max(axis=(0, 2))
    rows = _balance(cp, x, terms, U, size, np.where(per_row > 0.0, per_row, 1.0))
    both, u = _at_singularity(cp, x, one._replace(node=0), terms.A[0], U[0], size, at)
    rows += both + [row for v in (U[0], u) for box in boxes for row in box.rows(v, 0, x, size, e)]
    return float(e.value) if solved(cp.Problem(cp.Minimize(e), rows)) else None


class _EffortBox(NamedTuple):
    """Bounds of efforts near the speeds sd, with those that change with the speed linear in b."""

    box: Box
    sd: Vector

    def rows(
        self, u: Any, i: Any, x: _Variables, size: Vector, excess: Any, room: Any = 1.0
    ) -> Any:
        """Rows of the efforts u over their sizes at node i, or (n, nu) at all nodes, i = None."""
        box, found = self.box, []
        for sign, most, slope in ((1.0, box.upper, -box.falls), (-1.0, box.lower, box.rises)):
            first, by_b = (y / size for y in _in_b(most, slope, self.sd))
            for j in np.flatnonzero(np.isfinite(most).all(axis=0)).tolist():
                if i is None:
                    limit = first[:, j] * room + _times(by_b[:, j], x.b)
                    found.append(sign * (u[:, j] - limit) <= excess)
                else:
                    found.append(sign * (u[j] - first[i, j] - by_b[i, j] * x.b[i]) <= excess)
        return found


def _times(coefficients: Vector, expression: Any) -> Any:
    return import_module("cvxpy").multiply(coefficients, expression)


def _balance(
    cp: Any, x: _Variables, terms: EffortTerms, U: Any, size: Vector, per_row: Vector
) -> list[Any]:
    """``A u = r1 b'/2 + r2 b + r3`` at all nodes, each row over its size."""
    rows = []
    for j in range(terms.A.shape[1]):
        needed = _times(0.5 * terms.r1[:, j], x.slope) + _times(terms.r2[:, j], x.b)
        delivered = cp.sum(_times(terms.A[:, j] * size, U), axis=1)
        rows.append((delivered - needed - terms.r3[:, j]) / per_row[j] == 0.0)
    return rows


def _at_singularity(
    cp: Any, x: _Variables, one: PathSingularity, A: Array, before: Any, size: Vector, sd: Vector
) -> tuple[list[Any], Any]:
    """The rows at a singularity, of the efforts just before it and just after it; and the
    latter."""
    i, after = one.node, cp.Variable(A.shape[1])
    r1, r2, r3 = one.along(float(sd[i]))
    rows = [A * size / max(float(np.abs(A * size).max()), 1e-300) @ (after - before) == 0.0]
    for u, (by_A, *by) in zip((before, after), one.derivatives(float(sd[i])), strict=True):
        unit = float(np.abs(by_A * size).max())
        needed = 0.5 * (by[0] * x.slope[i] + r1 * x.bend[i]) + by[1] * x.b[i] + r2 * x.slope[i]
        rows.append((by_A * size @ u - needed - by[2]) / unit == 0.0)
    rows.append((0.5 * r1 * x.slope[i] + r2 * x.b[i] + r3) / unit == 0.0)
    return rows, after


def _limited(
    cp: Any, x: _Variables, dyn: Dynamics, bound: BoundLimits, singular: list[PathSingularity],
    sd: Vector, tight: Vector, excess: Any,
) -> list[Any]:  # fmt: skip
    """All rows of b and of the efforts at the nodes."""
    size, U = _effort_sizes(dyn, bound), cp.Variable((dyn.A.shape[0], dyn.A.shape[2]))
    boxes = [_EffortBox(box, sd) for box in effort_boxes(dyn.path, bound, sd)]
    per_row, room = np.abs(dyn.A * size).max(axis=(0, 2)), 1.0 - tight
    rows = _balance(cp, x, effort_terms(dyn, sd), U, size, per_row)
    for one in singular:
        more, after = _at_singularity(cp, x, one, dyn.A[one.node], U[one.node], size, sd)
        rows += more
        rows += [row for box in boxes for row in box.rows(after, one.node, x, size, excess)]
    rows += [row for box in boxes for row in box.rows(U, None, x, size, excess, room)]
    joints = joint_rows(dyn.path, bound)
    for k in range(joints.a.shape[1]):
        total = _times(0.5 * joints.a[:, k], x.slope) + _times(joints.b[:, k], x.b)
        rows.append(total + joints.c[:, k] * room <= 0.0)
    fast = np.flatnonzero(np.isfinite(joints.most[1:-1])) + 1
    if fast.size:
        rows.append(x.b[fast] / (joints.most[fast] * room[fast] ** 2) <= 1.0)
    return rows


def _effort_sizes(dyn: Dynamics, bound: BoundLimits) -> Vector:
    """A usual size of each effort: its limit, or the largest at rest."""
    finite = np.where(np.isfinite(bound.effort), np.abs(bound.effort), 0.0).max(axis=0)
    known = finite[finite > 0.0]
    return np.where(finite > 0.0, finite, float(known.max()) if known.size else 1.0)


def usual_speed(dyn: Dynamics, bound: BoundLimits) -> float:
    """A usual value of b: that reached half-way with the median acceleration within the limits of
    efforts and of joints, from rest; or the median limit of velocities, if less."""
    joints, size = joint_rows(dyn.path, bound), _effort_sizes(dyn, bound)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_efforts = (np.linalg.norm(dyn.A * size, axis=2) / np.abs(dyn.r1)).min(axis=1)
        of_joints = (1.0 / np.abs(joints.a)).min(axis=1, initial=np.inf)
    gains = [np.median(of_joints)]
    if np.isfinite(bound.effort).any():
        gains.append(np.median(of_efforts))
    span = float(dyn.path.s[-1] - dyn.path.s[0])
    found = min(span * float(min(gains)), float(np.median(joints.most)))
    return found if np.isfinite(found) and found > 0.0 else 1.0
