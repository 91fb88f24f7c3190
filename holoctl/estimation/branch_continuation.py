"""From one closed state to the next along the readings, on the same branch or not at all.

    m(l) = s(q) + l (x - s(q)),  0 <= l <= 1        path of the sensors, in substeps
    d = gamma dm + rho / 2 (gamma - gamma_before) dm            predictor
    K d = [-phi; A (m(l) - s(q)) / u; 0]                        corrector

m(l) are numbers as sensors read them: near it a difference is nearly linear, however far x is.

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

__all__ = ["Follow", "FollowedState", "Tally", "following", "placed_at", "velocity_at"]


class FollowedState(NamedTuple):
    """A closed configuration, and the motion there.

    Attributes
    ----------
    q : (nq,) array
    t : float
    cut : array
        Numbers of the cut joints that are measured.
    gamma : (nv, b) array
        Of `EstimatorSystem.gamma`.
    drift : (nv,) array or None
    borders : Borders
    det : float
        Of K with these borders.
    decided : float
        What it was where these borders were decided.
    determinant : float
        The same over that of the start; it goes on where borders are decided anew.
    bend : (nv, b) array
        What gamma changed since the place before.
    step : (b,) array
        What the sensors moved since, by the borders.
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
    """What a call took.

    Attributes
    ----------
    most : int
        How often K may be factored.
    factored, newton, substeps : int
    contraction : float
        The largest one.
    why : str
        Of the last substep that did not count: ``"far"``, ``"first"``, ``"slow"``, ``"singular"``,
        ``"range"``, ``"gain"``.
    gain : float
        At the last place that was reached, where the way ends.
    reached : float
        How much of the way.
    closure : float
        What the rows were open by at the end, scaled.
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
"""follow(place, x, way, t, tally): the place where the sensors read x at t, which is `way` from
s(q); K is factored there. None where it is not reached."""


def placed_at(system: EstimatorSystem, q: Vector, t: float, borders: Borders) -> FollowedState:
    """A place to start from, at a closed configuration: K is factored there."""
    system.evaluate(q, t)
    det = system.factor(borders)
    gamma = system.gamma()
    drift, at_rest = system.drift(), np.zeros(gamma.shape[1])
    return FollowedState(
        q, t, system.cut(), gamma, drift, borders, det, det, 1.0, 0.0 * gamma, at_rest, 0.0
    )


def velocity_at(system: EstimatorSystem, place: FollowedState, rates: Vector | None) -> Vector:
    """v (nv,) by the rates of the sensors (m,); at rest without them."""
    if rates is None:
        return np.zeros(place.gamma.shape[0])
    v: Vector = place.gamma.dot(system.combined(place.borders, rates))
    return v if place.drift is None else v + place.drift


def following(mech: Mechanism, system: EstimatorSystem) -> Follow:
    """The continuation of one thread; see the head of this module."""
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

        def part_of_it(here: FollowedState, share: float) -> FollowedState | None:
            way = system.difference(here.q, x, here.cut)
            there = substep(here, x, way, share, here.t + share * (t - here.t), tally)
            tally.substeps += there is not None
            return there

        def may_go_on() -> bool:
            return tally.factored < tally.most and tally.why != "gain"

        here, left = in_substeps(part_of_it, place, first=0.5, may_go_on=may_go_on)
        tally.reached = 1.0 - left
        if left:
            tally.gain = system.gain(here.gamma, here.borders)
            return None
        return here

    def substep(
        here: FollowedState, x: Vector, way: Vector, share: float, t: float, tally: Tally
    ) -> FollowedState | None:
        """The place at a share of the way; None, and why, where that does not count."""
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
        return borders_anew(there) if system.bordered else there

    def borders_anew(here: FollowedState) -> FollowedState:
        """With borders decided here, where the determinant shows that they are ill-conditioned."""
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
