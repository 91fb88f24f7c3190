"""Constraints and driven rows of a path, as one square system at a configuration.

    K = [G; D; N']        K q' = [0; w'; 0]        K q'' = [-drift; w'' - Dd q'; 0]

G are the kept rows; D the driven rows, coordinates or a task, with values w(s); N the idle motions,
which are held still. All rows and columns are scaled. ``gamma = K^-1 [0; I; 0]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from holoctl.base.angles import wrapped
from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.linalg import LU, largest
from holoctl.base.tolerances import UNLIMITED
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import rows_at
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.fast_rows import fast_rows, why_not
from holoctl.tree.live_motion import live_motion

__all__ = [
    "UNFACTORED",
    "Coordinates",
    "Drive",
    "Factored",
    "PartitionRows",
    "PathReference",
    "factored",
    "partition_rows",
]


class PathReference(NamedTuple):
    """w(s) and its derivatives by s.

    Attributes
    ----------
    value : object
        A value in the form that the drive takes.
    rate, acceleration : (p,) arrays
        First and second derivative by s; not scaled.
    """

    value: Any
    rate: Vector
    acceleration: Vector


class Drive(Protocol):
    """The p driven rows of a path.

    Attributes
    ----------
    labels : tuple of p str
    scale : (p,) array
        Factors that make the rows dimensionless.
    """

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def scale(self) -> Vector: ...

    def left(self, q: Vector, value: Any) -> tuple[Vector, Array]:
        """The difference of a value from that at q (p,), and D (p, nv); rows and coordinates are
        scaled."""
        ...

    def drift(self, q: Vector, v: Vector) -> Vector:
        """``Dd v`` (p,); not scaled."""
        ...


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Driven coordinates of the tree; for continuous joints the angle.

    Attributes
    ----------
    labels : tuple of p str
    columns, places : (p,) int arrays
        Their indices in v and in q.
    turning : (p,) bool array
        Whether the joint is continuous, with cosine and sine in q.
    scale : (p,) array
    D : (p, nv) array
    """

    labels: tuple[str, ...]
    columns: Indices
    places: Indices
    turning: NDArray[np.bool_]
    scale: Vector
    D: Array
    _which: list[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_which", np.flatnonzero(self.turning).tolist())

    def at(self, q: Vector) -> Vector:
        """Their values (p,)."""
        found: Vector = q.take(self.places)
        for i in self._which:
            at = self.places[i]
            found[i] = np.arctan2(q[at + 1], q[at])
        return found

    def left(self, q: Vector, value: Any) -> tuple[Vector, Array]:
        """The difference of a value from that at q, with angles within half a turn; and D."""
        off = value - self.at(q)
        if self._which:
            off[self.turning] = wrapped(off[self.turning])
        return off * self.scale, self.D  # D of scaled rows and scaled coordinates is one

    def drift(self, q: Vector, v: Vector) -> Vector:
        """Zero."""
        return np.zeros(self.columns.size)


# ------------------------------------------------------------------------------- the constraints


@dataclass(frozen=True, eq=False)
class PartitionRows:
    """The rows of a partition, for one thread.

    Attributes
    ----------
    at : function (q) -> G (r, nv), errors (r,), largest error of all rows
        Rows and coordinates are scaled; the next call may overwrite the arrays. Errors are not
        finite out of range.
    right : function (q, v) -> (r,) array
        -drift, scaled.
    """

    at: Callable[[Vector], tuple[Array, Vector, float]]
    right: Callable[[Vector, Vector], Vector]


def partition_rows(mech: Mechanism, rows: Indices) -> PartitionRows:
    """The rows prepared as in a tick; evaluated by `rows_at` if they cannot be."""
    found: PartitionRows = mech.per_thread(
        f"path rows {rows.tolist()}", lambda: _prepared(mech, rows)
    )
    return found


def _prepared(mech: Mechanism, rows: Indices) -> PartitionRows:
    c, r, nv, rest = mech.column_scale, mech.row_scale, mech.nv, np.zeros(mech.nv)

    def in_general(q: Vector) -> tuple[Array, Vector, float]:
        found = rows_at(mech, q, rest, 0.0)
        errors = r * found.error
        worst = largest(errors)
        return found.jacobian[rows] * mech.scale[rows], errors[rows], worst

    def drift_in_general(q: Vector, v: Vector) -> Vector:
        found: Vector = -(r * rows_at(mech, q, v, 0.0).drift)[rows]
        return found

    if not rows.size or why_not(mech):
        return PartitionRows(in_general, drift_in_general)
    motion = live_motion(mech.model, mech.model.createData())
    if motion is None:  # pragma: no cover - why_not says so
        return PartitionRows(in_general, drift_in_general)
    wanted = np.arange(rows.size * nv).reshape(rows.size, nv)
    fast = fast_rows(mech, motion, rows, wanted, StateLimits(None, None))
    entries, right, off, placed = fast.entries, fast.right, fast.off, fast.placed
    count = rows.size

    def in_a_tick(q: Vector) -> tuple[Array, Vector, float]:
        if placed is not None:
            placed(q)
        elif not fast.evaluate(q, rest, 0.0):
            return in_general(q)
        errors = off()[1] * UNLIMITED
        return entries * c, errors[:count], largest(errors)

    def drift(q: Vector, v: Vector) -> Vector:
        if not fast.moved(q, v, 0.0):
            return drift_in_general(q, v)
        return right.copy()

    return PartitionRows(in_a_tick, drift)


# ------------------------------------------------------------------------------ the square system


class Factored(NamedTuple):
    """The factors of K at a configuration.

    Attributes
    ----------
    lu : LU
        Its condition number is not estimated.
    sign, size : float
        Sign of the determinant, and logarithm of its absolute value.
    """

    lu: LU
    sign: float
    size: float

    def over(self, before: Factored) -> float:
        """The ratio of its determinant to that of `before`, at most e in absolute value."""
        return self.sign * before.sign * math.exp(min(self.size - before.size, 1.0))


UNFACTORED = Factored(LU(np.zeros((0, 0)), np.zeros(0, dtype=np.intp), np.inf), 0.0, -np.inf)
"""A placeholder before the first matrix is factored."""


def factored(K: Array) -> Factored:
    """The factors of a scaled square matrix; the sign is 0 if it is singular."""
    n = K.shape[0]
    factors, pivots, info = lapack.dgetrf(K)
    order = list(range(n))
    sign = 1.0
    for i, p in enumerate(pivots.tolist()):
        if i != p:
            order[i], order[p] = order[p], order[i]
            sign = -sign
    product = float(factors.diagonal().prod())
    if info or not math.isfinite(product) or product == 0.0:
        return Factored(LU(factors, np.array(order), np.inf), 0.0, -np.inf)
    if product < 0.0:
        sign = -sign
    return Factored(LU(factors, np.array(order), np.nan), sign, math.log(abs(product)))
