"""Continuation from one closed state to the next along the readings, on the same branch.

    m(l) = s(q) + l (x - s(q)),  0 <= l <= 1        path of the sensors, in substeps
    d = gamma dm + rho / 2 (gamma - gamma_before) dm            predictor
    K d = [-phi; A (m(l) - s(q)) / u; 0]                        corrector

m(l) is a vector of sensor readings. The difference m(l) - s(q) is nearly linear in q near the end
of a substep, however far x is. If the branch cannot be followed there is no result.

The corrector and its substeps are those of closing/continuation.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest
from holoctl.base.tolerances import (
    BEND,
    BORDERS_WORN,
    GAIN_LIMIT,
    TIGHT,
)
from holoctl.closing.continuation import Steps, corrected, determinant_kept, in_substeps
from holoctl.estimation.estimator_system import Borders, EstimatorSystem
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Accept", "Follow", "FollowedState", "Tally", "following", "placed_at", "velocity_at"]


class FollowedState(NamedTuple):
    """A closed configuration, and its velocity as a function of the sensor rates.

    Attributes
    ----------
    q : (nq,) array
        Configuration.
    t : float
        Time, s.
    cut : array
        Values of the cut joints that are measured, rad or m.
    gamma : (nv, b) array
        `EstimatorSystem.gamma` at q.
    drift : (nv,) array or None
        `EstimatorSystem.drift` at q.
    borders : Borders
        The borders that K was factored with.
    det : float
        The determinant of K with these borders.
    decided : float
        The determinant at the configuration where these borders were chosen.
    determinant : float
        The determinant divided by that of the start, continued when borders are chosen again.
    bend : (nv, b) array
        The change of gamma since the previous state.
    step : (b,) array
        The step of the sensors since the previous state, multiplied by the borders.
    square : float
        ``step . step``
    """

    q: Vector
    t: float
    cut: Vector
    gamma: Array
    drift: Vector | None
    borders: Borders
    det: float
    decided: float
    determinant: float
    bend: Array
    step: Vector
    square: float


@dataclass(slots=True)
class Tally:
    """The computational work of a call, and how it ended.

    Attributes
    ----------
    most : int
        The largest number of factorisations of K.
    factored, newton, substeps : int
        The number of factorisations, of Newton corrections, and of accepted substeps.
    contraction : float
        The largest ratio of a correction to the previous one.
    why : str
        Why the last substep was rejected: ``"far"``, ``"first"``, ``"slow"``, ``"singular"``,
        ``"range"``, ``"gain"``, ``"control"`` (by the caller's `Accept`).
    gain : float
        The noise gain at the last accepted state if the path was not completed.
    reached : float
        The fraction of the path that was followed, 0 to 1.
    closure : float
        The largest scaled error of the rows at the end.
    """

    most: int
    factored: int = 0
    newton: int = 0
    substeps: int = 0
    contraction: float = 0.0
    why: str = ""
    gain: float = 0.0
    reached: float = 0.0
    closure: float = 0.0


Follow = Callable[[FollowedState, Vector, Vector, float, Tally], FollowedState | None]
"""follow(place, x, way, t, tally): the state in which the sensors read x at t, with
``way = x - s(q)`` at the last state; K is factored there. None if it is not reached."""

Accept = Callable[[FollowedState, FollowedState], bool]
"""accept(here, there): one more condition on a substep."""


def placed_at(system: EstimatorSystem, q: Vector, t: float, borders: Borders) -> FollowedState:
    """The first state of a continuation, at a closed configuration; K is factored there."""
    system.evaluate(q, t)
    det = system.factor(borders)
    gamma = system.gamma()
    drift, at_rest = system.drift(), np.zeros(gamma.shape[1])
    return FollowedState(
        q, t, system.cut(), gamma, drift, borders, det, det, 1.0, 0.0 * gamma, at_rest, 0.0
    )


def velocity_at(system: EstimatorSystem, place: FollowedState, rates: Vector | None) -> Vector:
    """v (nv,) from the rates of the sensors (m,); zero if there are none."""
    if rates is None:
        return np.zeros(place.gamma.shape[0])
    v: Vector = place.gamma.dot(system.combined(place.borders, rates))
    return v if place.drift is None else v + place.drift


def following(mech: Mechanism, system: EstimatorSystem, accept: Accept | None = None) -> Follow:
    """Prepare the continuation for one thread; see the head of this module."""
    per_c, model, flat = 1.0 / mech.column_scale, mech.model, mech.nq == mech.nv
    gain_at_most, combined, taken_back = system.gain_at_most, system.combined, system.taken_back
    evaluate, factor, right = system.evaluate, system.factor, system.right
    known, timed, with_cut = system.known, system.timed, system.cut().size > 0
    size_of = largest if (per_c == 1.0).all() else lambda d: largest(d * per_c)
    moved: Callable[[Vector, Vector], Vector] = np.add if flat else partial(pin.integrate, model)
    steps = Steps(system.solved, size_of, moved, TIGHT)

    def follow(
        place: FollowedState, x: Vector, way: Vector, t: float, tally: Tally
    ) -> FollowedState | None:
        there = substep(place, x, way, 1.0, t, tally)
        if there is not None:
            tally.substeps, tally.reached = 1, 1.0
            return there

        def next_state(here: FollowedState, share: float) -> FollowedState | None:
            way = system.difference(here.q, x, here.cut)
            there = substep(here, x, way, share, here.t + share * (t - here.t), tally)
            tally.substeps += there is not None
            return there

        def may_go_on() -> bool:
            return tally.factored < tally.most and tally.why != "gain"

        here, left = in_substeps(next_state, place, first=0.5, may_go_on=may_go_on)
        tally.reached = 1.0 - left
        if left:
            tally.gain = system.gain(here.gamma, here.borders)
            return None
        return here

    def substep(
        here: FollowedState, x: Vector, way: Vector, share: float, t: float, tally: Tally
    ) -> FollowedState | None:
        """The state at a fraction of the path; None if rejected, with the reason in `tally.why`."""
        borders, whole, det = here.borders, share == 1.0, 0.0
        part = way if whole else share * way
        goal = x if whole or known else taken_back(x, (1.0 - share) * way)
        step = part if known else combined(borders, part)
        d = here.gamma.dot(step)
        if here.square > 0.0:
            rho = float(step.dot(here.step)) / here.square
            d += here.bend.dot((0.5 * min(max(rho, -BEND), BEND)) * step)
        if here.drift is not None:
            d += here.drift * (t - here.t)

        def linearised(q: Vector) -> tuple[Vector, float] | str:
            nonlocal det
            if tally.factored >= tally.most:
                return tally.why or "slow"
            tally.factored += 1
            if not evaluate(q, t):
                return "range"
            det = factor(borders)
            return right(q, goal, borders) if determinant_kept(det / here.det) else "singular"

        why, q, size, count, contraction = corrected(steps, linearised, here.q, d)
        tally.newton += count
        tally.contraction = max(tally.contraction, contraction)
        if why:
            tally.why = why
            return None
        tally.closure = size
        if not flat:
            q = pin.normalize(model, q)
        gamma = system.gamma()
        most = gain_at_most(gamma, borders)
        if not most <= GAIN_LIMIT and not system.gain(gamma, borders) <= GAIN_LIMIT:
            tally.why = "gain"
            return None
        there = FollowedState(
            q, t, system.cut() if with_cut else here.cut, gamma, system.drift() if timed else None,
            borders, det, here.decided, here.determinant * (det / here.det),
            gamma - here.gamma, step, float(step.dot(step)),
        )  # fmt: skip
        if accept is not None and not accept(here, there):
            tally.why = "control"
            return None
        return with_conditioned_borders(there) if system.bordered else there

    def with_conditioned_borders(here: FollowedState) -> FollowedState:
        """The state with borders chosen here if the determinant has changed too much since."""
        if 1.0 / BORDERS_WORN < here.det / here.decided < BORDERS_WORN:
            return here
        borders = system.borders(here.gamma)
        det = factor(borders)
        if not det:
            return here
        gamma = system.gamma()
        return here._replace(
            borders=borders, det=det, decided=det, gamma=gamma, drift=system.drift(), square=0.0,
        )  # fmt: skip

    return follow
