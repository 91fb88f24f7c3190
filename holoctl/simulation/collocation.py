"""A step over a singular configuration on the smooth branch, by collocation at Gauss points.

    x(t) = x_a + int x'        x'_j = (D^-1 v_j, a(t_j, q_j, v_j))        j: nodes inside (t_a, t_b)

The accelerations are smooth along a branch, but cannot be computed where the rows are dependent,
and are inaccurate close to it. A collocation step evaluates them at its nodes only, and the nodes
are chosen away from the singular configuration. The states at the nodes are projected onto the
manifold, so that the unknown is one smooth motion; a prediction need only be good enough to
converge to the right branch. The motion passes the singular configuration if all rows stay closed
along the polynomial and s changes its sign. In a mechanism that is only nearly singular, such as a
parallelogram whose bars are not quite equal, the rows open along it.
References: E. Hairer, S. Norsett, G. Wanner, Solving Ordinary Differential Equations I, the section
on collocation methods; docs/derivations.md, "Simulation".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.polynomial import chebyshev, legendre
from scipy.optimize import brentq

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import HoloctlError, has_time
from holoctl.base.linalg import largest, singular_values
from holoctl.base.tolerances import CLOSEST
from holoctl.closing.manifold_projection import projected_onto_manifold
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import ScaledRows, scaled_rows_at
from holoctl.simulation.explicit_steps import Slope, from_rest
from holoctl.simulation.rank_monitor import RankMonitor, SingularPairs, singular_pairs

__all__ = ["AcceptedState", "Crossing", "States", "StepStart", "crossing", "predicted"]

PREDICTED_BY = 6
"""Number of accepted states from which the motion over the next step is predicted."""


NODES = (8, 9, 10, 5, 4)
"""Numbers of nodes of the step over a singular configuration, in order of preference."""

FEWER_NODES = (6, 7, 3)
"""Likewise of the coarser step, which estimates the error of the first."""

NODES_APART = 0.0375
"""A number of nodes is taken if each node is farther from the singular configuration than this
share of the step."""

PICARD = 1e-13  # scaled
"""The iteration for the nodes has converged if x changes by less; or if it changes by less than the
square root of this and the change no longer halves."""

PICARD_STEPS = 40
"""The largest number of iterations for the nodes."""

BESIDE = 0.02
"""The singular vectors that locate a singular configuration are those of a state at this distance
from it, as a share of the step."""

REFINED_INSTANTS = 4
"""The largest number of times that the instant of a singular configuration is refined."""


States = Callable[[float], tuple[Vector, Vector]]
"""A function of the time, s, that returns two vectors: (v, a), or (q, v)."""


class AcceptedState(NamedTuple):
    """An accepted state: its time, velocity and acceleration."""

    t: float
    v: Vector
    a: Vector


class StepStart(NamedTuple):
    """The state at which a step starts, and the slope of the motion in its tangent space."""

    mech: Mechanism
    part: Partition
    slope: Slope
    t: float
    q: Vector
    v: Vector


@dataclass(frozen=True, eq=False)
class Crossing:
    """A motion over a singular configuration.

    Attributes
    ----------
    stop : float
        Time up to which the polynomial is valid, s.
    x : function (t) -> (d, v)
        The polynomial: the state in the tangent space of the start.
    rates : function (t) -> (v, a)
        Velocity and acceleration of the polynomial; constant acceleration after its end.
    instant : float
        Time at which the rows are singular, s; nan if they are not within the step.
    open : float
        The largest scaled error of the rows along the polynomial; rounding, if the motion passes
        the singular configuration.
    error : float
        Scaled difference from the same step with fewer nodes.
    """

    stop: float
    x: Callable[[float], Vector]
    rates: States
    instant: float
    open: float
    error: float


def crossing(
    start: StepStart, stop: float, guess: States, monitor: RankMonitor, zero: float
) -> Crossing | None:
    """The motion from `start` to the time `stop`, with a zero of s expected after `zero` seconds.

    None if there is no such motion, or the iteration does not find it. `guess` predicts (v, a).
    """
    mech, t, h, nv = start.mech, start.t, stop - start.t, start.mech.nv
    try:
        fine = _collocated(start, h, guess, _rule(NODES, zero / h))
        coarse = fine and _collocated(start, h, fine.rates, _rule(FEWER_NODES, zero / h))
        if fine is None or coarse is None:
            return None
        c, speed = mech.column_scale, largest(start.v / mech.column_scale)
        error = (fine.x(1.0) - coarse.x(1.0)) / np.concatenate([c, c * (1.0 + speed)])
        instant = _instant(fine, monitor)
        places = np.linspace(0.0, 1.0, 9)[1:].tolist()
        places += [instant] if np.isfinite(instant) else []
        opened = max(largest(fine.rows(theta).error) for theta in places)
    except HoloctlError as failure:
        if has_time(failure):  # raised by a function of the caller
            raise
        return None
    except np.linalg.LinAlgError:
        return None

    def rates(time: float) -> tuple[Vector, Vector]:
        theta = min((time - t) / h, 1.0)
        v_there, a = fine.x(theta)[nv:], fine.slope(theta)[nv:]
        return v_there + max(0.0, time - stop) * a, a

    x = lambda time: fine.x((time - t) / h)  # noqa: E731
    return Crossing(stop, x, rates, t + instant * h, opened, largest(error))


def predicted(nodes: Sequence[AcceptedState]) -> States:
    """v and a at times soon after the last of `nodes`, by a polynomial through the last states."""
    nodes = nodes[-PREDICTED_BY:]
    last = nodes[-1]
    if len(nodes) < 2:
        return lambda t: (last.v + (t - last.t) * last.a, last.a)
    times = np.array([node.t for node in nodes])
    length = max(float(times[-1] - times[0]), 1e-300)
    s, degree = (times - times[-1]) / length, min(2 * len(nodes) - 1, 2 * PREDICTED_BY - 2)
    values = chebyshev.chebvander(2.0 * s + 1.0, degree)
    slopes = np.stack(
        [chebyshev.chebval(2.0 * s + 1.0, chebyshev.chebder(e)) * 2.0 for e in np.eye(degree + 1)],
        1,
    )
    right = np.vstack([[node.v for node in nodes], [length * node.a for node in nodes]])
    # the nodes next to the end have the largest weight
    weight = 1.0 / (np.abs(s) + 1e-3)
    w = np.concatenate([weight, weight * np.maximum(np.abs(s), 1e-3)])[:, None]
    coefficients = np.linalg.lstsq(w * np.vstack([values, slopes]), w * right, rcond=1e-13)[0]
    derived = chebyshev.chebder(coefficients) * 2.0 / length

    def at(t: float) -> tuple[Vector, Vector]:
        x = 2.0 * (t - last.t) / length + 1.0
        v, a = (np.asarray(chebyshev.chebval(x, series)) for series in (coefficients, derived))
        return v, a

    return at


# ------------------------------------------------------------------------------- collocation


class _Rule(NamedTuple):
    """Nodes c in (0, 1) and A = int_0^c of their Lagrange polynomials."""

    c: Vector
    A: Array
    basis: Array  # of values at the nodes, as Legendre series


@lru_cache(maxsize=100)
def _gauss(count: int) -> _Rule:
    x: Vector = np.asarray(legendre.leggauss(count)[0], dtype=float)
    basis = np.asarray(
        np.linalg.solve(legendre.legvander(x, count - 1), np.eye(count)), dtype=float
    )
    return _Rule(0.5 * (x + 1.0), _integral(basis, x), basis)


def _integral(basis: Array, x: Vector) -> Array:
    """int from 0 to (x + 1) / 2 of each Lagrange polynomial."""
    series = legendre.legint(basis, axis=0, lbnd=-1.0)
    return 0.5 * np.atleast_2d(np.asarray(legendre.legval(x, series), dtype=float).T)


def _rule(counts: Sequence[int], zero: float) -> _Rule:
    """The first of these numbers of nodes whose nodes are away from a zero at this share of the
    step; if there is none, the number with the largest distance."""
    rules = [_gauss(count) for count in counts]
    apart = [float(np.abs(rule.c - zero).min()) for rule in rules]
    good = [rule for rule, gap in zip(rules, apart, strict=True) if gap > NODES_APART]
    return good[0] if good else rules[int(np.argmax(apart))]


@dataclass(frozen=True, eq=False)
class _Polynomial:
    """The polynomial x(theta), 0 <= theta <= 1, given by its slopes K at the nodes."""

    start: StepStart
    h: float
    x0: Vector
    K: Array
    rule: _Rule

    def x(self, theta: float) -> Vector:
        weights = _integral(self.rule.basis, np.array([2.0 * theta - 1.0]))[0]
        x: Vector = self.x0 + self.h * weights.dot(self.K)
        return x

    def slope(self, theta: float) -> Vector:
        weights = np.asarray(legendre.legval(2.0 * theta - 1.0, self.rule.basis))
        x: Vector = weights.dot(self.K)
        return x

    def rates(self, t: float) -> tuple[Vector, Vector]:
        first, second = np.split(self.slope((t - self.start.t) / self.h), 2)
        return first, second

    def rows(self, theta: float) -> ScaledRows:
        (mech, _, _, t, q, _), (d, v) = self.start, np.split(self.x(theta), 2)
        return scaled_rows_at(mech, pin.integrate(mech.model, q, d), v, t + theta * self.h)


def _collocated(start: StepStart, h: float, guess: States, rule: _Rule) -> _Polynomial | None:
    """The polynomial by Picard's iteration; None if it does not converge."""
    mech, part, slope, t, q, v = start
    model, x0 = mech.model, from_rest(v)
    times = t + h * rule.c
    K = np.array([np.concatenate(guess(time)) for time in times])
    unit = np.concatenate([mech.column_scale, mech.column_scale])
    last = np.inf
    for _ in range(PICARD_STEPS):
        X, new = x0 + h * rule.A.dot(K), np.empty_like(K)
        for j, (time, x) in enumerate(zip(times, X, strict=True)):
            d, v_j = np.split(x, 2)
            q_j, v_j = projected_onto_manifold(
                mech, part.rows, pin.integrate(model, q, d), v_j, time, CLOSEST
            )
            x_j = np.concatenate([pin.difference(model, q, q_j), v_j])
            slope(time, q, x_j, new[j])
        change, K = h * largest((new - K) / unit), new
        if not np.isfinite(change):
            return None
        if change <= PICARD or (change <= np.sqrt(PICARD) and change > 0.5 * last):
            return _Polynomial(start, h, x0, K, rule)
        last = change
    return None


# ------------------------------------------------------ the instant of the singular configuration


def _instant(p: _Polynomial, monitor: RankMonitor) -> float:
    """The zero of s, as a share of the step; nan if s keeps its sign.

    ``u' G' w`` is s with its sign if u and w are the singular vectors of s. These rotate along the
    step, so the zero is found with those of the start, and again with those of a state next to the
    zero; at the zero itself they are not unique.
    """
    rank = p.start.part.rank
    instant = _zero(p, monitor.pairs, 0.0, 1.0)
    least = _least(p, rank, instant)
    for _ in range(REFINED_INSTANTS if np.isfinite(instant) else 0):
        beside = instant - BESIDE if instant > 0.5 else instant + BESIDE
        pairs = singular_pairs(p.rows(beside).jacobian, rank)
        around = max(0.0, instant - 10.0 * BESIDE), min(1.0, instant + 10.0 * BESIDE)
        again = _zero(p, pairs, *around)
        found = _least(p, rank, again)
        if not found < least:
            break
        instant, least = again, found
    return instant


def _zero(p: _Polynomial, pairs: SingularPairs | None, first: float, last: float) -> float:
    """The zero of ``u' G' w`` between two shares of the step; nan if it keeps its sign."""
    if pairs is None:
        return float("nan")
    u, w = pairs.U[:, -1], pairs.W[:, -1]

    def value(theta: float) -> float:
        return float(u.dot(p.rows(theta).jacobian).dot(w))

    if value(first) * value(last) >= 0.0:
        return float("nan")
    return float(brentq(value, first, last, xtol=1e-12))


def _least(p: _Polynomial, rank: int, theta: float) -> float:
    """s at a share of the step; nan at nan."""
    if not np.isfinite(theta):
        return theta
    return float(singular_values(p.rows(theta).jacobian)[rank - 1])
