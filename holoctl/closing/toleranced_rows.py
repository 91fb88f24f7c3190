"""Toleranced geometry: the rows that close exactly and determine the motion, if it is rounded.

    rank = max over configurations nearby of #{ sigma_i(G') > tau }        tau: mech.tolerance
    rows = argmax min over these of sigma_min(G'[rows])

A singular value is the change of a combination of rows per rad or size of the loop: a combination
with a singular value below tau is redundant to within tau. The kept rows then close exactly, and
the others stay open by the rounding. Exact geometry is detected, and is not affected.
Derivation: docs/derivations.md, "Toleranced geometry".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.linalg import largest, singular_values
from holoctl.base.tolerances import (
    CLOSED_ALREADY,
    LATENT_ROOT,
    LOOKED_AROUND,
    RANK,
    REACHED,
    ROUNDED,
)
from holoctl.closing.least_squares import distance, least_squares_point
from holoctl.closing.nearest_state import nearest_configuration
from holoctl.closing.newton import Problem, everywhere, newton
from holoctl.closing.rank import first_independent, manifold_rank, pivot_rows, rank_within
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["KeptRows", "closed_by_kept_rows", "independence", "kept_rows", "toleranced_rows"]

LATENT_REACH = 0.02  # scaled
"""Length of the path along the kept rows on which the rows left out are tested for opening."""


WANDERED, CLOSES_IN = 1e-6, 10  # scaled; a count
"""Exact geometry closes within this distance from the least-squares point, in at most this number
of Newton steps."""

FARTHER = (0.3, 0.6)  # scaled
"""Further steps, at which rows are compared too, so that they are independent over a long
distance."""

CLEARLY_BETTER = 2.0
"""Rows that are closed at the given configuration are kept unless others are this many times more
independent."""


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The rows that determine the motion of rounded geometry.

    Attributes
    ----------
    q : (nq,) array
        The configuration of the decision: a least-squares point of all rows.
    rows : (rank,) int array
        Rows that determine the motion, in ascending order.
    latent : int array
        Rows that are redundant to first order but still constrain the motion: they open along the
        motions of the kept rows.
    error, lost : float
        Largest scaled error at q, and the largest singular value that does not count.
    nearby : tuple of (nq,) arrays
        Configurations of the same rank near q, also least-squares points.
    """

    q: Vector
    rows: Indices
    latent: Indices
    error: float
    lost: float
    nearby: tuple[Vector, ...]

    @property
    def rank(self) -> int:
        """Rank of G, to within the tolerance."""
        return self.rows.size

    @property
    def off(self) -> float:
        """The rounding of the geometry, scaled."""
        return max(self.error, self.lost)


def kept_rows(p: Problem, q: Vector, tau: float, at: Vector | None = None) -> KeptRows | None:
    """Determine rank and rows near a least-squares point; None if the geometry is exact.

    Parameters
    ----------
    p : Problem
        With all rows; only the free coordinates are used.
    q : (nq,) array
        From `least_squares_point`.
    tau : float
        Tolerance of the geometry, above zero.
    at : (nq,) array, optional
        Rows that are closed there are preferred.
    """
    p = _in_scaled_coordinates(p)
    error, G = p.scaled_rows(q)
    if _exact_here(p, q, tau):
        return None
    if p.free.size < p.mech.nv:  # rows that are superfluous because of a lock are not redundant
        p = everywhere(p.mech, q, p.t)
        error, G = p.scaled_rows(q)
    nearby = _around(p, q, G, tau)
    places = [G, *(p.scaled_rows(x)[1] for x in nearby)]
    ranks = [rank_within(at_place, tau) for at_place in places]
    rank = max(ranks)
    if _exact_nearby(p, nearby, rank):
        return None
    ahead = [p.scaled_rows(x)[1] for x in _ahead(p, q, nearby, tau)]
    regular = [G for G, r in zip(places, ranks, strict=True) if r == rank]
    regular += [G for G in ahead if rank_within(G, tau) == rank]
    closed = error if at is None else p.scaled_rows(at)[0]
    rows = _most_independent(regular, rank, np.abs(closed) <= CLOSED_ALREADY)
    s = singular_values(regular[0])
    return KeptRows(
        q, rows, _latent(p, q, rows, tau), largest(error),
        float(s[rank]) if rank < s.size else 0.0,
        tuple(x for x, r in zip(nearby, ranks[1:], strict=True) if r == rank),
    )  # fmt: skip


def toleranced_rows(mech: Mechanism, q: Vector, t: float) -> KeptRows | None:
    """The rows that determine the motion at a closed q; None if the geometry is exact."""
    tau = mech.tolerance
    if tau == 0.0 or mech.row_scale.size == 0:
        return None
    p = everywhere(mech, q, t)
    there, error = least_squares_point(p, q, tau)
    return kept_rows(p, there, tau, q) if error <= tau else None


def closed_by_kept_rows(p: Problem, meant: KeptRows) -> tuple[Problem, Vector] | None:
    """The problem of the kept rows alone, and its solution nearest to the guess.

    If rows that are left out would open by more than the tolerance on the path to it, or constrain
    the motion although they are redundant to first order, the solution nearest to the configuration
    of the decision. None if there is none within the tolerance.
    """
    held, tau = replace(p, rows=meant.rows), p.mech.tolerance
    q = newton(held, meant.q, None)
    if meant.latent.size == 0:
        nearest = nearest_configuration(held, q)
        if largest(p.scaled_rows(nearest)[0]) <= tau:
            q = nearest
    closes = largest(held.scaled_rows(q)[0]) <= p.tol and largest(p.scaled_rows(q)[0]) <= tau
    return (held, q) if closes else None


def _in_scaled_coordinates(p: Problem) -> Problem:
    """The problem with equal weights: ranks and distances do not depend on the weights of a
    guess."""
    return replace(p, weights=1.0 / p.mech.column_scale**2)


# ---------------------------------------------------------------------------- exact geometry


def _exact_here(p: Problem, q: Vector, tau: float) -> bool:
    """Whether all rows close next to q, and every singular value within the tolerance is zero."""
    G, error = _closed_right_there(p, q)
    if G is None:
        return False
    locked = p.free.size < p.mech.nv  # then the rank does not matter
    return locked or manifold_rank(G, max(error, ROUNDED)) == rank_within(G, tau)


def _exact_nearby(p: Problem, nearby: list[Vector], rank: int) -> bool:
    """Whether all rows close nearby, with that rank: then q is a near-singular configuration of
    exact geometry, with small singular values."""
    ranks = []
    for x in nearby:
        G, error = _closed_right_there(p, x)
        if G is None:
            return False
        ranks.append(manifold_rank(G, max(error, ROUNDED)))
    return max(ranks, default=-1) == rank


def _closed_right_there(p: Problem, q: Vector) -> tuple[Array | None, float]:
    """G at the point next to a least-squares q at which all rows close, and the remaining error;
    None if there is none."""
    there = newton(replace(p, max_iter=CLOSES_IN), q, None)
    error, G = p.scaled_rows(there)
    closes = largest(error) <= CLOSED_ALREADY and distance(p.mech, q, there) <= WANDERED
    return G if closes else None, largest(error)


# --------------------------------------------------------------------------- rounded geometry


def _around(p: Problem, q: Vector, G: Array, tau: float) -> list[Vector]:
    """Configurations nearby that satisfy the rows to within tau, along directions that do not count
    for the rank here."""
    _, s, vt = np.linalg.svd(G, full_matrices=True)
    Z = vt[int(np.count_nonzero(s > max(tau, RANK))) :].T
    rng = np.random.default_rng(0)
    found = []
    # a single motion needs one direction
    for _ in range(LOOKED_AROUND if Z.shape[1] > 1 else Z.shape[1]):
        z = Z @ rng.normal(size=Z.shape[1])
        for step in (REACHED, -REACHED):
            x, error = least_squares_point(p, p.moved(q, step * z / np.linalg.norm(z)), tau)
            if error <= tau and 0.1 * REACHED < distance(p.mech, q, x) < 5.0 * REACHED:
                found.append(x)
    return found


def _ahead(p: Problem, q: Vector, nearby: list[Vector], tau: float) -> list[Vector]:
    """Configurations farther in the directions of those nearby: rows are chosen for all of them."""
    found = []
    for x in nearby:
        last, here = q, x
        for reach in FARTHER:
            way = pin.difference(p.mech.model, last, here) / p.mech.column_scale
            step = (way * reach / max(float(np.linalg.norm(way)), ROUNDED))[p.free]
            there, error = least_squares_point(p, p.moved(here, step), tau)
            if error > tau or not 0.3 * reach < distance(p.mech, here, there) < 3.0 * reach:
                break
            last, here = here, there
            found.append(there)
    return found


def _most_independent(places: list[Array], rank: int, closed: NDArray[np.bool_]) -> Indices:
    """Of the sets of rows suggested at each place, the one that is best at its worst place,
    compared with all rows there. A set of rows that are closed already is preferred if it is good
    enough.
    """
    of_all = np.array([singular_values(G)[rank - 1] if rank else 1.0 for G in places])

    def best(sets: list[Indices]) -> tuple[float, Indices]:
        """The most independent set and its measure; the first of equal ones."""
        different = list({tuple(rows.tolist()): rows for rows in sets}.values())
        worth = [_least_of(places, of_all, rows) for rows in different]
        return max(worth), different[int(np.argmax(worth))]

    sets = [pivot_rows(G, rank) for G in places]
    most, chosen = best([*sets, first_independent(places, rank)])
    where = np.flatnonzero(closed)
    if where.size >= rank:
        stay = [where[pivot_rows(G[where], rank)] for G in places]
        worth, kept = best(stay)
        if worth * CLEARLY_BETTER >= most:
            return kept
    return chosen


def independence(places: list[Array], rows: Indices) -> float:
    """The smallest singular value of some rows relative to that of all, at the worst of these
    places."""
    of_all = [singular_values(G)[rows.size - 1] if rows.size else 1.0 for G in places]
    return _least_of(places, np.array(of_all), rows)


def _least_of(places: list[Array], of_all: Vector, rows: Indices) -> float:
    if rows.size == 0:
        return 1.0
    own = np.array([singular_values(G[rows])[-1] for G in places])
    return float((own / of_all).min())


def _latent(p: Problem, q: Vector, rows: Indices, tau: float) -> Indices:
    """Rows left out that open by more than tau on a path along the kept ones."""
    held = replace(p, rows=rows)
    reach = max(LATENT_REACH, LATENT_ROOT * float(np.sqrt(tau)))
    G = held.scaled_rows(q)[1]
    Z = np.linalg.svd(G, full_matrices=True)[2][rows.size :].T if G.size else np.eye(G.shape[1])
    opened = np.zeros(p.mech.row_scale.size)
    for z in (*Z.T, *-Z.T):
        x = newton(held, p.moved(q, reach * z), None)
        error = np.abs(p.scaled_rows(x)[0])
        if largest(error[rows]) <= p.tol:
            opened = np.maximum(opened, error)
    return np.flatnonzero(opened > tau)
