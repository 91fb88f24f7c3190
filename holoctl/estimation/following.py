"""From one closed state to the next along the readings, on the same branch or not at all.

    m(l) = s(q) + l (x - s(q)),  0 <= l <= 1        path of the sensors, in substeps
    d = gamma dm + rho / 2 (gamma - gamma_before) dm            predictor
    K d = [-phi; A (m(l) - s(q)) / u; 0]                        corrector

A substep counts only where all of it stays in the reach of Newton's method: short predictions and
first corrections, corrections that contract, a determinant of K that keeps its sign and changes by
no more than a factor. Else it is halved, and doubled after success.
Reference: P. Deuflhard, Newton Methods for Nonlinear Problems, the chapter on continuation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.linalg import largest
from holoctl.base.tolerances import (
    BEND,
    BORDERS_WORN,
    CONTRACTION,
    DETERMINANT_CHANGE,
    FIRST_CORRECTION,
    GAIN_LIMIT,
    PREDICTED_STEP,
    SETTLED_TICK,
    SHORTEST_SUBSTEP,
    TIGHT,
)
from holoctl.estimation.seen_motion import Borders, Seeing
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Place", "Tally", "followed", "placed_at"]

Array = NDArray[np.float64]


class Place(NamedTuple):
    """A closed configuration, and the motion there.

    Attributes
    ----------
    q : (nq,) array
    t : float
    cut : array
        Numbers of the cut joints that are measured.
    gamma : (nv, b) array
        Of `Seeing.gamma`.
    drift : (nv,) array or None
    borders : Borders
    det : float
        Of K with these borders.
    decided : float
        What it was where these borders were decided.
    scale : float
        ``det * scale`` goes on where borders are decided anew; one at the start.
    before : (nv, b) array
        gamma of the place before.
    step : (b,) array
        What the sensors moved since.
    """

    q: Vector
    t: float
    cut: Vector
    gamma: Array
    drift: Vector | None
    borders: Borders
    det: float
    decided: float
    scale: float
    before: Array
    step: Vector

    @property
    def determinant(self) -> float:
        """Over that of the start."""
        return self.det * self.scale


@dataclass
class Tally:
    """What a call took.

    Attributes
    ----------
    most : int
        How often K may be factored.
    factored, newton, substeps : int
    contraction : float
        The largest one.
    gain : float
        The largest one.
    why : str
        Of the last substep that did not count: ``"far"``, ``"first"``, ``"slow"``, ``"singular"``,
        ``"range"``, ``"gain"``.
    reached : float
        How much of the way.
    """

    most: int
    factored: int = 0
    newton: int = 0
    substeps: int = 0
    contraction: float = 0.0
    gain: float = 0.0
    why: str = ""
    reached: float = 0.0


def placed_at(see: Seeing, q: Vector, t: float, borders: Borders) -> Place:
    """A place to start from, at a closed configuration: K is factored there."""
    see.evaluate(q, t)
    det = see.factor(borders)
    gamma = see.gamma()
    scale = 1.0 / det if det != 0.0 else 1.0
    b = gamma.shape[1]
    return Place(
        q, t, see.cut(), gamma, see.drift(), borders, det, det, scale, gamma, np.zeros(b)
    )  # fmt: skip


def followed(
    mech: Mechanism, see: Seeing, place: Place, x: Vector, t: float, tally: Tally
) -> Place | None:
    """The place where the sensors read x at t, K factored there; None where it is not reached."""
    here, left, part = place, 1.0, 1.0  # what is left of the way, and the length of a substep
    while left > 0.0:
        share = part / left
        there = _substep(mech, see, here, x, t, min(share, 1.0), tally)
        if there is None:
            part *= 0.5
            if part < SHORTEST_SUBSTEP or tally.factored >= tally.most or tally.why == "gain":
                break
            continue
        here, left, part = there, max(left - part, 0.0) if share < 1.0 else 0.0, 2.0 * part
        tally.substeps += 1
    tally.reached = 1.0 - left
    return here if left == 0.0 else None


def _substep(
    mech: Mechanism, see: Seeing, here: Place, x: Vector, t: float, share: float, tally: Tally
) -> Place | None:
    """The place at a share of the way that is left; None where that does not count."""
    c, model, flat, borders = mech.column_scale, mech.model, mech.nq == mech.nv, here.borders
    way = see.difference(here.q, x, here.cut)
    ahead, step = (1.0 - share) * way, see.seen(borders, share * way)
    there_t = here.t + share * (t - here.t)
    d = here.gamma.dot(step) + _bend(here, step)
    if here.drift is not None:
        d += here.drift * (there_t - here.t)
    if not largest(d / c) <= PREDICTED_STEP:
        return _failed(tally, "far")
    q = here.q + d if flat else pin.integrate(model, here.q, d)
    before = np.inf
    while True:
        if tally.factored >= tally.most:
            return _failed(tally, tally.why or "slow")
        tally.factored += 1
        if not see.evaluate(q, there_t):
            return _failed(tally, "range")
        det = see.factor(borders)
        if not 1.0 / DETERMINANT_CHANGE < det / here.det < DETERMINANT_CHANGE:
            return _failed(tally, "singular")
        right, size = see.right(q, x, ahead, borders)
        if size <= SETTLED_TICK:
            break
        d = see.solved(right)
        length = largest(d / c)
        if before == np.inf:
            if not length <= FIRST_CORRECTION:
                return _failed(tally, "first")
        elif not length <= CONTRACTION * before:
            if size <= TIGHT:
                break  # it falls no more
            return _failed(tally, "slow")
        else:
            tally.contraction = max(tally.contraction, length / before)
        tally.newton += 1
        q, before = q + d if flat else pin.integrate(model, q, d), length
    if not flat:
        q = pin.normalize(model, q)
    gamma = see.gamma()
    gain = see.gain(gamma, borders)
    tally.gain = max(tally.gain, gain)
    if not gain <= GAIN_LIMIT:
        return _failed(tally, "gain")
    there = Place(
        q, there_t, see.cut(), gamma, see.drift(), borders, det, here.decided, here.scale,
        here.gamma, step,
    )  # fmt: skip
    return _with_borders_anew(see, there)


def _bend(here: Place, step: Vector) -> Vector:
    """What the second order adds to a step, by how gamma changed on the way here."""
    square = float(here.step.dot(here.step))
    if square == 0.0:
        return np.zeros(here.gamma.shape[0])
    rho = min(max(float(step.dot(here.step)) / square, -BEND), BEND)
    bend: Vector = (here.gamma - here.before).dot(0.5 * rho * step)
    return bend


def _with_borders_anew(see: Seeing, here: Place) -> Place:
    """With borders decided here, where the determinant shows that they are worn."""
    if not (here.borders.A.size or here.borders.N.size):
        return here
    if 1.0 / BORDERS_WORN < here.det / here.decided < BORDERS_WORN:
        return here
    borders = see.borders(here.gamma)
    det = see.factor(borders)
    gamma = see.gamma()
    return here._replace(
        borders=borders, det=det, decided=det, scale=here.scale * here.det / det, gamma=gamma,
        drift=see.drift(), before=gamma, step=np.zeros(gamma.shape[1]),
    )  # fmt: skip


def _failed(tally: Tally, why: str) -> None:
    tally.why = why
