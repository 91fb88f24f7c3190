"""The square system of an estimator at a configuration: rows, measurement Jacobian, borders.

    K = [G; A S / u; N' / c]        K d = [-phi; A (x - s(q)) / u; 0]

G are the kept rows, scaled; S is the measurement Jacobian, u units of sensors, c of coordinates.
N are the idle motions that no sensor tells (held still), and A weighs sensors that are more than
motions:

    A = Gamma' (S c / u)' W         Gamma: a basis of the observed motions, scaled

Both are borders, decided at one configuration and kept for many: what follows from them elsewhere
is as right, and a determinant compares only with one of the same borders. Where all sensors are
coordinates of the tree, as many as motions, their steps d_S are known, and K is smaller:

    K = [G_U; N_U' / c]             K d_U = [-phi; 0] at s(q) = x           U: not measured

Derivation: docs/derivations.md, "The closed state from encoders".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.linalg import largest, orthonormal_columns
from holoctl.base.tolerances import UNLIMITED
from holoctl.estimation.estimator_rows import EstimatorRows, estimator_rows
from holoctl.estimation.measurement_model import MeasurementModel
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import may_depend_on_time

__all__ = ["Borders", "EstimatorSystem", "estimator_system_of"]

FEW_PIVOTS, MOST_SWAPS = 50, 1000  # counts
"""The product of so many pivots is within the range of floats; of so many orders of pivots it is
remembered which are even."""


class Borders(NamedTuple):
    """What fills K up to a square; see the head of this module.

    Attributes
    ----------
    A : (b, m) array
        Empty where the steps of the sensors are known.
    N : (nv, i) array
        Orthonormal, scaled.
    """

    A: Array
    N: Array


@dataclass(frozen=True, eq=False)
class EstimatorSystem:
    """K of one thread. What is asked is of the configuration evaluated, and factored, last.

    Attributes
    ----------
    evaluate : function (q, t) -> bool
        The rows at rest, and what sensors of cut joints read; False out of range.
    factor : function (borders) -> float
        K factored; its determinant, of which only ratios mean something.
    open : function (rows) -> float
        The largest error of these rows (a slice; the kept ones stand first), scaled.
    right : function (q, x, borders) -> array, float
        The right side for ``phi = 0`` and ``s(q) = x``; its largest entry.
    solved : function (right) -> (nv,) array
        The step that it asks for.
    gamma : function () -> (nv, b) array
        A step by what the borders make of that of the sensors.
    drift : function () -> (nv,) array or None
        v with the sensors at rest; None where no constraint depends on time.
    difference : function (q, x, cut) -> (m,) array
        How far x is from s(q), the shorter way round; `cut` as `cut()` was there.
    taken_back : function (x, step) -> array
        The numbers from which a step of the sensors (m,) leads to x.
    cut : function () -> array
        Numbers of the cut joints that are measured.
    combined : function (borders, step) -> (b,) array
        What the borders make of a step, or a rate, of the sensors (m,).
    gain : function (gamma, borders) -> float
        Of noise: standard deviation of the worst coordinate by that of the sensors, scaled.
    gain_at_most : function (gamma, borders) -> float
        At least the gain, quickly.
    borders : function (gamma) -> Borders
        Decided anew.
    known : bool
        Whether the steps of all sensors are known.
    timed : bool
        Whether some constraint may depend on time.
    bordered : bool
        Whether there are borders at all.
    redundant : bool
        Whether rows are left out, or sensors are more than motions.
    rank : int
        How many rows are kept.
    rows : EstimatorRows
    unknown : (n,) int array
        The coordinates that K is by.
    pivots : (n,) array
        Those of K, where it is factored: the array is the same at every call.
    solve, solve_transposed : function (b) -> None
        Overwrites b (n,) or (n, k), F-ordered, by the factors of K.
    """

    evaluate: Callable[[Vector, float], bool]
    factor: Callable[[Borders], float]
    open: Callable[[slice], float]
    right: Callable[[Vector, Vector, Borders], tuple[Vector, float]]
    solved: Callable[[Vector], Vector]
    gamma: Callable[[], Array]
    drift: Callable[[], Vector | None]
    difference: Callable[[Vector, Vector, Vector], Vector]
    taken_back: Callable[[Vector, Vector], Vector]
    cut: Callable[[], Vector]
    combined: Callable[[Borders, Vector], Vector]
    gain: Callable[[Array, Borders], float]
    gain_at_most: Callable[[Array, Borders], float]
    borders: Callable[[Array], Borders]
    known: bool
    timed: bool
    bordered: bool
    redundant: bool
    rank: int
    rows: EstimatorRows
    unknown: Indices
    pivots: Vector
    solve: Callable[[Array], None]
    solve_transposed: Callable[[Array], None]


def estimator_system_of(
    mech: Mechanism, part: Partition, sensors: MeasurementModel, weights: Vector, b: int, i: int
) -> EstimatorSystem:
    """Lay out K for one thread.

    Parameters
    ----------
    mech : Mechanism
    part : Partition
        Its rows are those of G.
    sensors : MeasurementModel
    weights : (m,) array
        Of the sensors, scaled.
    b, i : int
        How many motions are observed, and how many are idle and are not.
    """
    nv, r, m, c, u = mech.nv, part.rank, sensors.columns.size, mech.column_scale, sensors.unit
    known = m == b and not sensors.of_cut.size
    known_columns = sensors.columns if known else np.zeros(0, dtype=np.intp)
    unknown = np.setdiff1d(np.arange(nv), known_columns)
    n, f = unknown.size, 0 if known else b
    rows = estimator_rows(mech, part, sensors, unknown, known_columns)
    G, G_known, off, cut = rows.G_unknown, rows.G_known, rows.off, rows.cut
    K = G if n == r else np.zeros((n, n), order="F")
    S_per_u, own = np.zeros((m, nv)), np.flatnonzero(sensors.columns >= 0)
    S_per_u[own, sensors.columns[own]] = 1.0 / u[own]
    of_cut, differ = np.flatnonzero(sensors.columns < 0), sensors.differences()
    timed = may_depend_on_time(mech)
    getrf, getrs, order = lapack.dgetrf, lapack.dgetrs, np.zeros(n, dtype=np.int32)
    in_order, pivots, unit = np.arange(n), K.T.reshape(-1)[:: n + 1], 0.0
    noise = u / c[:, None]
    signs: dict[bytes, float] = {}
    of_kept = np.zeros((n, b), order="F")
    if not known:
        of_kept[r : r + b] = np.eye(b)
    X_known, stacked = np.zeros((n, b), order="F"), np.vstack([np.zeros((n, b)), np.eye(b)])
    X_kept, X_idle = X_known[:r], X_known[r:]
    order_of_all = np.argsort(np.concatenate([unknown, sensors.columns if known else []]))

    def factor(borders: Borders) -> float:
        nonlocal order, unit
        if K is not G:
            K[:r] = G
            if f:
                if of_cut.size:
                    S_per_u[of_cut] = rows.cut_jacobian / u[of_cut, None]
                K[r : r + f] = borders.A.dot(S_per_u)
            if i:
                K[r + f :] = (borders.N / c[:, None])[unknown].T
        if not n:
            return 1.0
        _, order, info = getrf(K, 1)
        if info:
            return 0.0
        if not unit:  # about one at the start, so that no product of many leaves the range
            unit = float(np.exp(-np.log(np.abs(pivots)).mean())) if n > FEW_PIVOTS else 1.0
        det = math.prod(pivots.tolist() if unit == 1.0 else (pivots * unit).tolist())
        swapped = order.tobytes()
        if swapped not in signs:
            if len(signs) > MOST_SWAPS:
                signs.clear()
            signs[swapped] = -1.0 if np.count_nonzero(order != in_order) % 2 else 1.0
        return float(det * signs[swapped])

    def open_by(which: slice) -> float:
        errors = off()[1, which]
        return float(np.abs(errors).max(initial=0.0)) * UNLIMITED

    def solve(rhs: Array) -> None:
        if n:
            getrs(K, order, rhs, 0, 1)

    def solve_transposed(rhs: Array) -> None:
        if n:
            getrs(K, order, rhs, 1, 1)

    of_rows = np.zeros(n)
    rhs_of_rows, live = of_rows[:r], off()[1, :r] if rows.live else None

    def right(q: Vector, x: Vector, borders: Borders) -> tuple[Vector, float]:
        np.multiply(off()[1, :r] if live is None else live, -UNLIMITED, rhs_of_rows)
        if f:
            of_rows[r : r + f] = borders.A.dot(differ(q, x, cut) / u)
        if i:
            of_rows[n - i :] = 0.0
        return of_rows, largest(of_rows)

    in_full, padded = np.zeros(nv), np.zeros(nv + 1)
    place = np.full(nv, nv)  # where each coordinate stands in (d_U, .., 0)
    place[unknown] = np.arange(n)

    def solved(rhs: Vector) -> Vector:
        if not known:
            found = rhs.copy()
            solve(found)
            return found
        solve(rhs)
        padded[:n] = rhs
        return padded.take(place, None, in_full, "clip")

    def gamma() -> Array:
        if not known:
            X = of_kept.copy(order="F")
            solve(X)
            return X
        np.negative(G_known, X_kept)
        X_idle[:] = 0.0
        solve(X_known)
        stacked[:n] = X_known
        return stacked.take(order_of_all, 0)

    def drift() -> Vector | None:
        if not timed:
            return None
        rhs = np.zeros(n)
        np.multiply(off()[0, :r], -UNLIMITED, rhs[:r])
        return solved(rhs).copy()

    def combined(borders: Borders, step: Vector) -> Vector:
        return step if known else borders.A.dot(step / u)

    def gain(found: Array, borders: Borders) -> float:
        noisy = found * noise if known else found.dot(borders.A) / c[:, None]
        return float(np.sqrt((noisy * noisy).sum(axis=1).max(initial=0.0)))

    alike = known and bool((noise == 1.0).all())

    def gain_at_most(found: Array, borders: Borders) -> float:
        noisy = found if alike else found * noise if known else found.dot(borders.A) / c[:, None]
        flat = noisy.reshape(-1)
        return math.sqrt(float(flat.dot(flat)))

    def decided(found: Array) -> Borders:
        N = np.zeros((nv, i))
        if i:
            X = np.zeros((n, i), order="F")
            X[n - i :] = np.eye(i)
            solve(X)
            N[unknown] = X / c[unknown, None]
            N = orthonormal_columns(N)
        if known:
            return Borders(np.zeros((0, m)), N)
        Gamma = orthonormal_columns(found / c[:, None])
        return Borders((S_per_u * c).dot(Gamma).T * weights, N)

    return EstimatorSystem(
        rows.evaluate, factor, open_by, right, solved, gamma, drift, differ, sensors.taken_back(),
        cut.copy, combined, gain, gain_at_most, decided, known, timed, bool(f or i),
        r < off().shape[1] or m > b, r, rows, unknown, pivots, solve,
        solve_transposed,
    )  # fmt: skip
