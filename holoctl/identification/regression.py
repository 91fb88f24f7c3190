"""The equations of parameters along a measured motion.

    y = W p        y = F[Mu u - L known]        W = F[L (columns of the parameters)]

L and Mu: rows of the equation of motion in units of efforts (effort_rows.py). F is one zero-phase
filter: the same linear operator on the measured efforts, at their rate, and on every column, at
nodes (zero_phase_filter.py). y and W are its values at two samples for each period of the cutoff.
Derivation: docs/derivations-identification.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from holoctl.base.checks import (
    Array,
    Indices,
    Mask,
    Vector,
    counted,
    freeze,
    listing,
    number,
    one_of,
    positive,
    quiet,
    whole,
)
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.single_threaded_blas import one_thread
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.identification.base_parameters import check_parameters
from holoctl.identification.effort_rows import EffortRows, effort_rows, row_labels
from holoctl.identification.lag import estimated_lag
from holoctl.identification.measurements import Measurements
from holoctl.identification.parameters import Parameters, parameter_rows
from holoctl.identification.sensed_motion import (
    SensedMotion,
    closed_states,
    filtered_motion,
    periodic_motion,
    sampling_rate,
)
from holoctl.identification.zero_phase_filter import SHARP, Grid, grids_of
from holoctl.mechanism.bound_limits import applicable, bound_limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.projection import Projection

__all__ = ["Regression", "equations_at", "regression"]

METHODS = ("filter", "periodic")

NODES = 5
"""Closed states for each equation."""

BRIDGE = 0.1
"""Gaps up to this fraction of a period of the cutoff are interpolated."""

SLOWEST_EFFORTS = 4.0
"""The lowest sampling rate of efforts, in cutoffs."""

SATURATED = 0.99
"""An effort above this fraction of its limit is saturated."""

BEYOND = 1.05
"""A limit that efforts exceed by this factor is none of the drive."""

LARGEST_LAG = 0.5
"""The largest lag that is searched for, in periods of the cutoff."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Equations of parameters, the result of `regression`.

    Attributes
    ----------
    model : Parameters
    measurements : Measurements
    t : (s,) array
        Times of the samples, s.
    q, v, a : (s, nq), (s, nv) and (s, nv) arrays
        Closed states there, and accelerations.
    W : (s, g, p) array
        Columns of the parameters: for each sample a row for each of g labels.
    y : (s, g) array
        Measured efforts, less those of known forces.
    labels : tuple of g str
        Motors; or motions, if there are more motors than motions; then passive motions.
    rate : float
        Samples per second, Hz: two for each period of the cutoff; noise of the efforts in adjacent
        samples is independent.
    lag : float
        The time by which efforts were recorded later than positions, s.
    notes : tuple of str
        What was left out of the measurements, and what was estimated.

    See Also
    --------
    regression : returns it.
    measurement_diagnosis : what is wrong with it.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> model = hc.Parameters(hc.load(hc.robot_file("four_bar")))
    >>> t = np.arange(0.0, 2.0, 0.002)
    >>> data = hc.regression(model, hc.Measurements(t, 1.0 + 0.3 * np.sin(6 * t), 0.0 * t), lag=0.0)
    >>> data.W.shape, data.rate
    ((29, 1, 30), 20.0)
    """

    model: Parameters
    measurements: Measurements
    t: Vector
    q: Array
    v: Array
    a: Array
    W: Array
    y: Array
    labels: tuple[str, ...]
    rate: float
    lag: float = 0.0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        return (
            f"<Regression of {self.model.mech.name!r}: {counted(self.t.size, 'sample')} of "
            f"{counted(len(self.labels), 'row')}, {counted(self.W.shape[2], 'parameter')}>"
        )

    def __str__(self) -> str:
        return "\n".join([repr(self)[1:-1], *(f"  {x}" for x in self.notes)])


def equations_at(
    model: Parameters, P: Projection, a: Vector, u: Vector, before: EffortRows | None = None
) -> tuple[Array, Vector]:
    """W (g, p) and y (g,) at a state with acceleration a and motor efforts u."""
    rows = effort_rows(P, before)
    W, known = parameter_rows(model, P, a, rows.L.T)
    return W, rows.of_efforts @ u - known


@quiet
def regression(
    model: Parameters,
    data: Measurements,
    *,
    cutoff: float = 10.0,
    method: str = "filter",
    period: float | None = None,
    harmonics: int | None = None,
    lag: float | str = "estimate",
    start: Any = None,
) -> Regression:
    """The equations of parameters along a measured motion.

    The closed state follows from the measured joints on the branch of `start`. Efforts and columns
    of parameters pass the same zero-phase filter, which removes vibrations and noise from both
    without making them disagree. Equations next to gaps, to efforts at their limits and to singular
    configurations are left out, and the notes of the result say so.

    Parameters
    ----------
    model : Parameters
    data : Measurements
    cutoff : float, optional
        Where the filter of the equations halves the power, Hz: above the frequencies of the
        motion, below those of vibrations. Positions are filtered at up to twice that.
    method : {"filter", "periodic"}, optional
        How positions become rates and accelerations: by the derivatives of the filter, or by a
        Fourier series fitted to a motion that repeats, which averages all periods.
    period : float, optional
        Of a periodic motion, s. Default: from the data.
    harmonics : int, optional
        Of the Fourier series. Default: up to the cutoff.
    lag : "estimate" or float, optional
        The time by which efforts are recorded later than positions, s. By default it is estimated:
        that of the best fit.
    start : (nq,) array_like, optional
        A closed configuration on the branch of the motion, near its first sample. Default:
        assembled from ``mech.reference``.

    Returns
    -------
    Regression

    Raises
    ------
    InputError
        For names and shapes that do not fit the mechanism, a sampling rate that is too low for
        the cutoff, measurements that are too short, and a lag that is too long to be one.
    BranchError, InconsistentError
        Where the closed state does not follow the measurements: it names the time, and causes.
    NotActuatedError
        If the motors drive no motion.

    See Also
    --------
    Measurements : times, positions and efforts, from arrays or a file.
    identify : the parameters of these equations.
    measurement_diagnosis : what is wrong with them.

    References
    ----------
    docs/derivations-identification.md, "The filter".

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> model = hc.Parameters(hc.load(hc.robot_file("four_bar")))
    >>> t = np.arange(0.0, 2.0, 0.002)
    >>> data = hc.Measurements(t, 1.0 + 0.3 * np.sin(6.0 * t), np.zeros(t.size))
    >>> hc.regression(model, data, cutoff=10.0, lag=0.0)
    <Regression of 'four_bar': 29 samples of 1 row, 30 parameters>
    """
    check_parameters(model)
    if not isinstance(data, Measurements):
        raise InputError(
            f"expected Measurements; got {type(data).__name__}: hc.Measurements(t, positions, "
            "efforts) makes them"
        )
    f, bridge = positive("cutoff", cutoff, "Hz"), BRIDGE / positive("cutoff", cutoff)
    one_of("method", method, METHODS)
    if method == "filter" and not (period is None and harmonics is None):
        raise InputError("period= and harmonics= are for method='periodic'")
    given = None if isinstance(lag, str) and one_of("lag", lag, ("estimate",)) else number(
        "lag", lag, "s"
    )  # fmt: skip
    efforts = _efforts(model, data, f, bridge)
    estimator = ClosedStateEstimator(model.mech, data.measured, start=start)
    _check_positions(estimator, data)
    turns, step = estimator.readings.turns, 1.0 / (2.0 * f * NODES)
    nodes = Grid(float(data.t[0]), step, 1 + int((data.t[-1] - data.t[0]) / step))
    if method == "filter":
        motion = filtered_motion(data, turns, nodes, f, bridge)
    else:
        period = None if period is None else positive("period", period, "s")
        count = None if harmonics is None else whole("harmonics", harmonics, 1)
        motion = periodic_motion(data, turns, nodes, f, period, count)
    with one_thread():
        return _filtered(model, data, f, estimator, nodes, motion, efforts, given)


def _check_positions(estimator: ClosedStateEstimator, data: Measurements) -> None:
    """Raise `InputError` for positions of other joints than the measured ones."""
    readings, name = estimator.readings, estimator.mech.name
    if readings.whole:
        raise InputError(
            f"{name}: a joint that is measured whole, such as a floating base, has no filter for "
            f"its quaternion; measure joints of one coordinate each (measured: {readings.names})"
        )
    if data.positions.shape[1] != readings.numbers:
        raise InputError(
            f"{name}: positions must have a column for each of {', '.join(readings.labels)}; got "
            f"{data.positions.shape[1]}: Measurements(..., measured=[...]) names other joints"
        )


class _EffortPieces(NamedTuple):
    """Equidistant pieces of the measured efforts, and notes."""

    pieces: list[tuple[Grid, Array]]
    notes: list[str]


def _efforts(model: Parameters, data: Measurements, cutoff: float, bridge: float) -> _EffortPieces:
    """Efforts in the order of u; samples at a limit count as missing, and are not interpolated."""
    mech = model.mech
    order, t = data.order_of(mech.actuator_names), data.t_efforts
    u = data.efforts[:, order]
    missing, notes = ~np.isfinite(u).all(axis=1), list[str]()
    at_limit = _at_limits(mech, data, order, u, notes)
    cut = at_limit.any(axis=1)
    if missing.any():
        notes.append(f"{counted(int(missing.sum()), 'row')} of efforts missing")
    if cut.any():
        names = [mech.actuator_names[i] for i in np.flatnonzero(at_limit.any(axis=0))]
        notes.append(
            f"{counted(int(cut.sum()), 'sample')} with efforts at their limits left out "
            f"({', '.join(names)})"
        )
    sampling_rate("efforts", t[~missing], cutoff, SLOWEST_EFFORTS)
    pieces = list[tuple[Grid, Array]]()
    edges = np.flatnonzero(np.diff(np.concatenate([[True], cut, [True]])))
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        here = np.arange(first, last)[~missing[first:last]]
        pieces += grids_of(t[here], u[here], bridge)
    return _EffortPieces(pieces, notes)


def _at_limits(
    mech: Mechanism, data: Measurements, order: Indices, u: Array, notes: list[str]
) -> Mask:
    """(n', nu) which efforts are at their limits; limits that efforts exceed are ignored."""
    known = np.isfinite(u)
    if data.effort_limits is not None:
        lower, upper = -data.effort_limits[order], data.effort_limits[order]
    elif mech.limits is not None:
        lower, upper = bound_limits(mech, applicable(mech, mech.limits)).effort
    else:
        return np.zeros(u.shape, dtype=bool)
    high, low = u.max(axis=0, initial=0.0, where=known), u.min(axis=0, initial=0.0, where=known)
    over = (high > BEYOND * np.maximum(upper, 0.0)) | (low < BEYOND * np.minimum(lower, 0.0))
    for i in np.flatnonzero(over):
        notes.append(
            f"efforts of {mech.actuator_names[i]!r}, {low[i]:.4g} to {high[i]:.4g}, exceed their "
            f"limits, {lower[i]:.4g} to {upper[i]:.4g}, which are ignored: wrong units or gain=?"
        )
    at_limit = (u >= SATURATED * upper) | (u <= SATURATED * lower)
    return np.asarray(at_limit & (u != 0.0) & ~over, dtype=bool)


class _Nodes(NamedTuple):
    """States and rows at nodes; zero where a state is not known."""

    there: Mask
    q: Array
    v: Array
    a: Array
    W: Array
    known: Array
    of_efforts: Array


def _evaluated(
    model: Parameters, estimator: ClosedStateEstimator, nodes: Grid, motion: SensedMotion,
    notes: list[str],
) -> _Nodes:  # fmt: skip
    """The equations at all nodes, before the filter."""
    mech, j, p = model.mech, nodes.samples, len(model.names)
    there, singular = np.zeros(j, dtype=bool), 0
    q, v, a = np.zeros((j, mech.nq)), np.zeros((j, mech.nv)), np.zeros((j, mech.nv))
    rows, table = None, None
    for state in closed_states(estimator, nodes, motion, notes):
        i, P = state.node, state.P
        try:
            rows = effort_rows(P, rows)
        except SingularityError:
            singular += 1
            continue
        if table is None:
            g = len(rows.L)
            table = np.zeros((j, g, p)), np.zeros((j, g)), np.zeros((j, g, mech.nu))
        there[i], q[i], v[i], a[i], table[2][i] = True, P.q, P.v, state.a, rows.of_efforts
        table[0][i], table[1][i] = parameter_rows(model, P, state.a, rows.L.T)
    if singular:
        notes.append(f"{counted(singular, 'state')} near a singularity of the actuation left out")
    if table is None:
        raise InputError(
            f"{mech.name}: no state is left: {'; '.join(notes) or 'the measurements are too short'}"
        )
    if not (np.isfinite(table[0]).all() and np.isfinite(table[1]).all()):
        own = f"own columns {listing(list(model.columns), 6)} or " if model.columns else ""
        raise InputError(f"{mech.name}: {own}known forces are not finite along this motion")
    return _Nodes(there, q, v, a, *table)


def _filtered(
    model: Parameters, data: Measurements, cutoff: float, estimator: ClosedStateEstimator,
    nodes: Grid, motion: SensedMotion, efforts: _EffortPieces, lag: float | None,
) -> Regression:  # fmt: skip
    """The equations at nodes and the efforts, filtered, at two samples a period."""
    mech, notes = model.mech, [*motion.notes, *efforts.notes]
    every = _evaluated(model, estimator, nodes, motion, notes)
    span, g = SHARP.span(cutoff), every.known.shape[1]
    at = np.arange(0, nodes.samples, NODES)
    s, gone = nodes.times[at], np.concatenate([[0], np.cumsum(~every.there)])
    half = int(np.ceil(span / nodes.step))
    whole_window = (at >= half) & (at + half < nodes.samples)
    first, last = (at - half).clip(0), (at + half + 1).clip(max=nodes.samples)
    margin = span + (LARGEST_LAG / cutoff if lag is None else abs(lag))
    of = np.full(at.size, -1)
    for k, (grid, _) in enumerate(efforts.pieces):
        of[grid.inside(s, margin)] = k
    keep = whole_window & (gone[last] == gone[first]) & (of >= 0)
    if not keep.any():
        raise InputError(
            f"{mech.name}: no equation is left of {np.ptp(data.t):.4g} s: the filter needs "
            f"{2.0 * margin:.3g} s without a pause around each; raise the cutoff, or give lag=, or "
            "a longer motion" + "".join(f"; {x}" for x in notes)
        )
    at, s, of = at[keep], s[keep], of[keep]
    smooth = SHARP.matrix(nodes, s, cutoff)
    W = (smooth @ every.W.reshape(nodes.samples, -1)).reshape(at.size, g, -1)
    known = smooth @ every.known
    measured = _measured(efforts, nodes, every, s, of, cutoff)
    if lag is None:
        lag, note = estimated_lag(W, lambda x: measured(x) - known, LARGEST_LAG / cutoff)
        notes.append(note)
    elif lag:
        notes.append(f"efforts lag by {1e3 * lag:.3g} ms (given)")
    labels = row_labels(mech, estimator.partition.actuation_rank, g)
    return Regression(
        model, data, s, every.q[at], every.v[at], every.a[at], W, measured(lag) - known, labels,
        2.0 * cutoff, lag, tuple(notes),
    )  # fmt: skip


def _measured(
    efforts: _EffortPieces, nodes: Grid, every: _Nodes, s: Vector, of: Indices, cutoff: float
) -> Callable[[float], Array]:
    """The filtered ``Mu u`` (s, g) at times s as a function of the lag of the efforts."""
    M, there = every.of_efforts, every.there
    fixed = bool((M[there] == M[there][0]).all())
    course = None if fixed else CubicSpline(nodes.times[there], M[there])

    def measured(lag: float) -> Array:
        found = np.zeros((s.size, M.shape[1]))
        for k, (grid, u) in enumerate(efforts.pieces):
            here = of == k
            if not here.any():
                continue
            rows = u @ M[there][0].T if course is None else np.einsum(
                "ngm,nm->ng", course(grid.times - lag), u
            )  # fmt: skip
            found[here] = SHARP.matrix(grid, s[here] + lag, cutoff) @ rows
        return found

    return measured
