"""The square system of an estimator at a configuration: rows, measurement Jacobian, borders.

    K = [G; A S / u; N' / c]        K d = [-phi; A (x - s(q)) / u; 0]

G are the kept rows, scaled; S is the measurement Jacobian, u units of sensors, c of coordinates.
N are the idle motions that no sensor observes (held still), and A weights the sensors if there are
more of them than motions:

    A = Gamma' (S c / u)' W         Gamma: a basis of the observed motions, scaled

A and N are borders, chosen at one configuration and kept for many: the solution is as accurate at
the others, but determinants can only be compared if their borders are the same. If all sensors are
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
"""Up to FEW_PIVOTS pivots have a product within the range of floats; up to MOST_SWAPS pivot orders
have their parity remembered."""


class Borders(NamedTuple):
    """The borders that make K square; see the head of this module.

    Attributes
    ----------
    A : (b, m) array
        The weighting of the sensors; empty if their steps are known.
    N : (nv, i) array
        The idle motions that no sensor observes, orthonormal, scaled.
    """

    A: Array
    N: Array


@dataclass(frozen=True, eq=False)
class EstimatorSystem:
    """K of one thread; its functions refer to the configuration evaluated and factored last.

    Attributes
    ----------
    evaluate : function (q, t) -> bool
        Evaluate the rows at zero velocity, and the readings of cut joints; False out of range.
    factor : function (borders) -> float
        Factor K; returns its determinant, of which only ratios are meaningful.
    open : function (rows) -> float
        The largest scaled error of these rows (a slice; the kept rows come first).
    right : function (q, x, borders) -> array, float
        The right-hand side for ``phi = 0`` and ``s(q) = x``, and its largest entry.
    solved : function (right) -> (nv,) array
        The Newton step for a right-hand side.
    gamma : function () -> (nv, b) array
        The derivative of a step by the step of the sensors multiplied by the borders.
    drift : function () -> (nv,) array or None
        v with the sensors at rest; None if no constraint depends on time.
    difference : function (q, x, cut) -> (m,) array
        x - s(q), angles of continuous joints by the shorter way round; `cut` is `cut()` at q.
    taken_back : function (x, step) -> array
        The readings from which a step of the sensors (m,) leads to x.
    cut : function () -> array
        Values of the cut joints that are measured, rad or m.
    combined : function (borders, step) -> (b,) array
        A step, or a rate, of the sensors (m,) multiplied by the borders.
    gain : function (gamma, borders) -> float
        The noise gain: standard deviation of the worst coordinate by that of the sensors, scaled.
    gain_at_most : function (gamma, borders) -> float
        An upper bound of the gain that is faster to compute.
    borders : function (gamma) -> Borders
        Borders chosen at the configuration factored last.
    known : bool
        Whether the steps of all sensors are known.
    timed : bool
        Whether some constraint may depend on time.
    bordered : bool
        Whether K has borders.
    redundant : bool
        Whether rows are left out, or there are more sensors than motions.
    rank : int
        The number of kept rows.
    rows : EstimatorRows
    unknown : (n,) int array
        The coordinates of the columns of K.
    pivots : (n,) array
        The pivots of K; the array is the same at every call.
    solve, solve_transposed : function (b) -> None
        Overwrite b (n,) or (n, k), F-ordered, with the solution for K, or its transpose.
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
    """Prepare K for one thread.

    Parameters
    ----------
    mech : Mechanism
    part : Partition
        Its rows are those of G.
    sensors : MeasurementModel
    weights : (m,) array
        The weights of the sensors, scaled.
    b, i : int
        The number of observed motions, and of idle motions that are not observed.
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
        if not unit:  # pivots are near one at the start, so that their product stays in range
            unit = float(np.exp(-np.log(np.abs(pivots)).mean())) if n > FEW_PIVOTS else 1.0
        det = math.prod(pivots.tolist() if unit == 1.0 else (pivots * unit).tolist())
        swapped = order.tobytes()
        if swapped not in signs:
            if len(signs) > MOST_SWAPS:
                signs.clear()
            signs[swapped] = -1.0 if np.count_nonzero(order != in_order) % 2 else 1.0
        return float(det * signs[swapped])

    def closure_error(which: slice) -> float:
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
    place = np.full(nv, nv)  # the index of each coordinate in (d_U, .., 0)
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

    def chosen_borders(found: Array) -> Borders:
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
        rows.evaluate, factor, closure_error, right, solved, gamma, drift, differ,
        sensors.taken_back(), cut.copy, combined, gain, gain_at_most, chosen_borders, known, timed,
        bool(f or i), r < off().shape[1] or m > b, r, rows, unknown, pivots, solve,
        solve_transposed,
    )  # fmt: skip
