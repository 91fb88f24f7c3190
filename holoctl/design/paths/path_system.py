"""Constraints and what drives a path, as one square system at a configuration.

    K = [G; D; N']        K q' = [0; w'; 0]        K q'' = [-drift; w'' - Dd q'; 0]

G are the kept rows, D the rows of what is driven, w(s): coordinates, or a task; N the idle motions
that nothing drives, held still. All is scaled. ``gamma = K^-1 [0; I; 0]``.
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
    "kept_rows",
]


class PathReference(NamedTuple):
    """w(s) and its derivatives by s.

    Attributes
    ----------
    value : object
        As the drive has it.
    rate, acceleration : (p,) arrays
        By s; not scaled.
    """

    value: Any
    rate: Vector
    acceleration: Vector


class Drive(Protocol):
    """What is driven along a path: p rows.

    Attributes
    ----------
    labels : tuple of p str
    scale : (p,) array
        What makes rows pure numbers.
    """

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def scale(self) -> Vector: ...

    def left(self, q: Vector, value: Any) -> tuple[Vector, Array]:
        """From q to a value (p,), and D (p, nv); rows and coordinates are scaled."""
        ...

    def drift(self, q: Vector, v: Vector) -> Vector:
        """``Dd v`` (p,); not scaled."""
        ...


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates of the tree that are driven; of those that turn without end the angle.

    Attributes
    ----------
    labels : tuple of p str
    columns, places : (p,) int arrays
        Where they stand in v, and in q.
    turning : (p,) bool array
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
        """Their numbers (p,)."""
        found: Vector = q.take(self.places)
        for i in self._which:
            at = self.places[i]
            found[i] = np.arctan2(q[at + 1], q[at])
        return found

    def left(self, q: Vector, value: Any) -> tuple[Vector, Array]:
        """From q to a value, the shorter way round."""
        off = value - self.at(q)
        if self._which:
            off[self.turning] = wrapped(off[self.turning])
        return off * self.scale, self.D  # a coordinate over its own scale: one again

    def drift(self, q: Vector, v: Vector) -> Vector:
        """Zero."""
        return np.zeros(self.columns.size)


# ------------------------------------------------------------------------------- the constraints


@dataclass(frozen=True, eq=False)
class PartitionRows:
    """The rows of a partition, for one thread.

    Attributes
    ----------
    at : function (q) -> G (r, nv), errors (r,), worst of all rows
        Scaled rows and coordinates; the arrays may be overwritten by the next call. Errors are not
        finite out of range.
    right : function (q, v) -> (r,) array
        -drift, scaled.
    """

    at: Callable[[Vector], tuple[Array, Vector, float]]
    right: Callable[[Vector, Vector], Vector]


def kept_rows(mech: Mechanism, rows: Indices) -> PartitionRows:
    """The rows laid out as in a tick, or evaluated as usual where they cannot be."""
    found: PartitionRows = mech.per_thread(
        f"path rows {rows.tolist()}", lambda: _laid_out(mech, rows)
    )
    return found


def _laid_out(mech: Mechanism, rows: Indices) -> PartitionRows:
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
    """K at a configuration, factored.

    Attributes
    ----------
    lu : LU
        Its condition number is not estimated.
    sign, size : float
        Of its determinant: the sign, and the logarithm of its size.
    """

    lu: LU
    sign: float
    size: float

    def over(self, before: Factored) -> float:
        """Its determinant over another one; of what is larger than e times that, only e."""
        return self.sign * before.sign * math.exp(min(self.size - before.size, 1.0))


UNFACTORED = Factored(LU(np.zeros((0, 0)), np.zeros(0, dtype=np.intp), np.inf), 0.0, -np.inf)
"""In the place of a matrix that nobody factored yet."""


def factored(K: Array) -> Factored:
    """A square matrix, scaled, factored; the sign is 0 where it is singular."""
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
