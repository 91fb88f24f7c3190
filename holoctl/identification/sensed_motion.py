"""The closed states of a measured motion, with accelerations, at equidistant times (nodes).

    x, xd, xdd of the sensors --> q, v (closed-state estimator)
    a = N z + bias        S a + Sdot v = xdd

S is the measurement Jacobian and N a basis of the admissible velocities; with more sensors than
motions z is least squares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Mask, Vector, counted
from holoctl.base.errors import (
    AssemblyError,
    BranchError,
    HoloctlError,
    InconsistentError,
    InputError,
    SingularityError,
)
from holoctl.base.linalg import least_squares, orthonormal_columns, solved
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.identification.measurements import Measurements
from holoctl.identification.zero_phase_filter import (
    FLAT,
    Grid,
    fitted_period,
    fourier,
    grids_of,
)
from holoctl.projector.projection import Projection, projected
from holoctl.rows.evaluate import may_depend_on_time

__all__ = [
    "SensedMotion",
    "SensedState",
    "closed_states",
    "filtered_motion",
    "periodic_motion",
    "sampling_rate",
]

WIDER = 2.0
"""Positions are filtered at this many times the cutoff: the motion is unchanged, and noise of the
rates and accelerations, which columns of W square, is small."""

OF_RATE = 0.25
"""At most at this fraction of their sampling rate, so that a sum over samples is the integral."""

SLOWEST = 8.0
"""The lowest sampling rate of positions, in cutoffs."""

ILL_CONDITIONED = 1e6
"""States at which the kept rows have a larger condition number are left out."""

NOT_PERIODIC = 0.1
"""The largest residual of a periodic motion, relative to its standard deviation."""


class SensedMotion(NamedTuple):
    """Positions, rates and accelerations of the sensors at nodes.

    Attributes
    ----------
    there : (j,) bool array
        At which nodes they are known.
    x, xd, xdd : (j, m) arrays
    notes : tuple of str
        What was left out, and why.
    """

    there: Mask
    x: Array
    xd: Array
    xdd: Array
    notes: tuple[str, ...]


def _samples(data: Measurements, turns: Mask) -> tuple[Vector, Array, Array | None, list[str]]:
    """Samples that are not missing, angles without jumps by whole turns, and a note."""
    every = data.positions if data.rates is None else np.hstack([data.positions, data.rates])
    there = np.isfinite(every).all(axis=1)
    x = data.positions[there].copy()
    x[:, turns] = np.unwrap(x[:, turns], axis=0)
    missing = int(np.count_nonzero(~there))
    notes = [f"{counted(missing, 'row')} of positions or rates missing"] if missing else []
    return data.t[there], x, None if data.rates is None else data.rates[there], notes


def sampling_rate(what: str, t: Vector, cutoff: float, least: float) -> float:
    """The sampling rate, Hz; an `InputError` if it is lower than `least` cutoffs."""
    frequency = 1.0 / float(np.median(np.diff(t)))
    if frequency < least * cutoff:
        raise InputError(
            f"{what} are sampled at {frequency:.4g} Hz; cutoff={cutoff:g} Hz needs "
            f"{least * cutoff:g} Hz or more: lower the cutoff"
            + ("; or is t in milliseconds?" if frequency <= 10.0 else "")
        )
    return frequency


def filtered_motion(
    data: Measurements, turns: Mask, nodes: Grid, cutoff: float, bridge: float
) -> SensedMotion:
    """By the zero-phase filter and its derivatives."""
    t, x, rates, notes = _samples(data, turns)
    frequency = sampling_rate("positions", t, cutoff, SLOWEST)
    wide, at = min(WIDER * cutoff, OF_RATE * frequency), nodes.times
    there, found = np.zeros(nodes.samples, dtype=bool), np.zeros((3, nodes.samples, x.shape[1]))
    signal = x if rates is None else np.hstack([x, rates])
    for grid, values in grids_of(t, signal, bridge):
        here = grid.inside(at, FLAT.span(wide))
        there |= here
        smooth, first = (FLAT.matrix(grid, at[here], wide, d) for d in (0, 1))
        if rates is None:
            second = FLAT.matrix(grid, at[here], wide, 2)
            found[:, here] = smooth @ values, first @ values, second @ values
        else:
            x_part, v_part = np.split(values, 2, axis=1)
            found[:, here] = smooth @ x_part, smooth @ v_part, first @ v_part
    longest = float(np.diff(t).max())
    if longest > max(bridge, 1.5 / frequency):
        notes.append(
            f"positions have pauses of up to {longest:.3g} s, longer than the {bridge:.3g} s that "
            "are interpolated: equations there are left out"
        )
    return SensedMotion(there, found[0], found[1], found[2], tuple(notes))


def periodic_motion(
    data: Measurements, turns: Mask, nodes: Grid, cutoff: float, period: float | None,
    harmonics: int | None,
) -> SensedMotion:  # fmt: skip
    """By a Fourier series, least squares."""
    t, x, _, notes = _samples(data, turns)
    if period is None:
        period = fitted_period(t, x, 5)
        notes.append(f"the period of the motion is {period:.6g} s")
    if not period <= 0.75 * (t[-1] - t[0]):
        raise InputError(
            f"the motion has no period within 0.7 times its {t[-1] - t[0]:.4g} s"
            + (f" (period {period:g} s)" if np.isfinite(period) else "")
            + ": give period=, a longer motion, or method='filter'"
        )
    count = max(1, int(cutoff * period)) if harmonics is None else harmonics
    if 2 * count + 1 > t.size // 2:
        raise InputError(
            f"{counted(count, 'harmonic')} need {4 * count + 2} samples; got {t.size}: lower the "
            "cutoff or harmonics="
        )
    F = fourier(t, period, count)
    of_x = least_squares(F, x)
    off = (x - F @ of_x).std(axis=0) / np.maximum(x.std(axis=0), 1e-12)
    moves = x.std(axis=0) > 1e-3 * x.std(axis=0).max()
    if (off[moves] > NOT_PERIODIC).any():
        raise InputError(
            f"the motion does not repeat every {period:.6g} s: {off[moves].max():.0%} of it is not "
            f"in a series of {counted(count, 'harmonic')}; method='filter' needs no period"
        )
    at = nodes.times
    found = [fourier(at, period, count, d) @ of_x for d in (0, 1, 2)]
    there = (at >= t[0]) & (at <= t[-1])
    return SensedMotion(there, found[0], found[1], found[2], tuple(notes))


# ----------------------------------------------------------------------------- closed states


class SensedState(NamedTuple):
    """A closed state at a node: its index, projection, acceleration."""

    node: int
    P: Projection
    a: Vector


def closed_states(
    estimator: ClosedStateEstimator, nodes: Grid, motion: SensedMotion, left_out: list[str]
) -> Iterator[SensedState]:
    """The closed states along a motion; those near singular configurations are left out, and
    `left_out` gets a note.

    Raises
    ------
    BranchError, AssemblyError, InconsistentError
        Where the branch cannot be followed, with the time.
    """
    mech, before, singular = estimator.mech, -2, list[float]()
    depends, solve = may_depend_on_time(mech), _acceleration(estimator)
    for i in np.flatnonzero(motion.there).tolist():
        at = nodes.start + nodes.step * i
        t = at if depends else 0.0
        try:
            if i != before + 1:
                estimator.resynchronise(motion.x[i], t)
            q, v = estimator.state_in_place(motion.x[i], motion.xd[i], t)
        except (BranchError, AssemblyError, InconsistentError, SingularityError) as error:
            raise _placed(error, at, first=before == -2) from error
        before, q = i, q.copy()
        try:
            P = projected(mech, q, v, t, estimator.partition, t_stab=False)
        except SingularityError:
            singular.append(at)
            continue
        if not P.condition <= ILL_CONDITIONED:
            singular.append(at)
            continue
        yield SensedState(i, P, solve(P, motion.xdd[i]))
    if singular:
        left_out.append(
            f"{counted(len(singular), 'state')} near a singular configuration left out, from "
            f"t = {singular[0]:.4g} s on"
        )


def _placed(error: HoloctlError, at: float, first: bool) -> HoloctlError:
    """The error with its time and likely causes."""
    if first:
        cause = (
            "start= is a closed configuration near the first sample, on the branch of the robot; "
            "likely causes otherwise: zero positions, signs or units (degrees) of the encoders"
        )
    else:
        cause = "likely causes: a lost sample or counter, another branch, a dead point on the way"
    text = f"at t = {at:.6g} s the closed state does not follow the measurements: {error}; {cause}"
    if isinstance(error, BranchError):
        return BranchError(text, why=error.why)
    if isinstance(error, InconsistentError):
        return InconsistentError(text, residual=error.residual)
    return BranchError(text, why="reach")


def _acceleration(estimator: ClosedStateEstimator) -> Callable[[Projection, Vector], Vector]:
    """The function (P, xdd) -> a (nv,) with ``S a + Sdot v = xdd``."""
    readings, mech = estimator.readings, estimator.mech
    c, weight = mech.column_scale, 1.0 / readings.unit
    cut = readings.of_cut.size > 0
    constant = None if cut else readings.jacobian(mech.reference)
    all_seen = not estimator.unseen

    def solve(P: Projection, xdd: Vector) -> Vector:
        if all_seen and not cut and np.array_equal(P.independent, readings.columns):
            found: Vector = P.gamma @ xdd + P.bias
            return found
        S = readings.jacobian(P.q) if constant is None else constant
        right = xdd - S @ P.bias
        if cut:
            right[readings.columns < 0] -= np.concatenate(
                [joint.bias(P.kinematics) for joint in readings.cut]
            )
        if all_seen and xdd.size == P.k:
            found = P.bias + P.gamma @ solved(S @ P.gamma, right)
        else:
            N = c[:, None] * orthonormal_columns(P.gamma * P.scale / c[:, None])
            found = P.bias + N @ least_squares(weight[:, None] * (S @ N), weight * right)
        return found

    return solve
