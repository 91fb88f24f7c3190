"""Where to look: one closed configuration, and others that the mechanism can reach.

A rank at one configuration says what holds there; the largest rank nearby says what holds in
general. Where the two differ, the configuration is singular, and nothing is redundant for it.
Reference: docs/derivations.md, "Scaling and rank"; docs/doctor.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import null_space_by_svd
from holoctl.base.tolerances import ROUNDED
from holoctl.closing.lyapunov_schmidt import (
    ContinuationPlace,
    Neighbourhood,
    around,
    followed,
    neighbourhood,
)
from holoctl.closing.rank import manifold_rank, scaled_jacobian
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Sample", "Samples", "goes_on", "sample", "samples", "still", "tangent"]

FEW_STEPS = 12
"""Of many directions so many random mixtures are followed, where few of them lead back."""

LOOKED_AT = 3
"""So many reachable configurations are looked at closely, beside the one asked about."""


@dataclass(frozen=True, eq=False)
class Sample:
    """One configuration; G in scaled rows and scaled coordinates.

    Attributes
    ----------
    q : (nq,) array
    error : float
        Largest scaled constraint error.
    G : (m, nv) array
    rank : int
    values : (min(m, nv),) array
        Singular values of G, largest first.
    null : (nv, nv - rank) array
        Orthonormal basis of the velocities with ``G v = 0``, scaled coordinates.
    tolerance : float
        Where geometry is rounded, how exactly it is meant: what is smaller is nothing. Else 0.
    """

    q: Vector
    error: float
    G: Array
    rank: int
    values: Vector
    null: Array
    tolerance: float = 0.0


@dataclass(frozen=True, eq=False)
class Samples:
    """A configuration and others near it.

    Attributes
    ----------
    here : Sample
    generic : tuple of Sample
        Configurations on the largest component of those that meet here, all of one rank: `here`
        first if it is like the others.
    generic_rank : int
        Their rank.
    tangents : tuple of (nv, n) arrays
        For each of `generic`, an orthonormal basis of the velocities that continue as finite
        motions: all of ``null``, or less where some are shaky.
    crossing : bool
        Whether other paths cross the largest one at `here`, with the same rank.
    """

    here: Sample
    generic: tuple[Sample, ...]
    generic_rank: int
    tangents: tuple[Array, ...]
    crossing: bool = False

    @property
    def finite_dof(self) -> int:
        """Motions that go on: what is left of nv - generic_rank without the shaky ones."""
        return int(self.tangents[0].shape[1])


def sample(
    mech: Mechanism, q: Vector, t: float, error: float | None = None, tolerance: float = 0.0
) -> Sample:
    """Rank and null space at one configuration; `error` in place of the error there, if given."""
    G, errors = scaled_jacobian(mech, q, t)
    largest = float(np.abs(errors).max(initial=0.0))
    rank = manifold_rank(G, largest if error is None else error, tolerance)
    values = np.asarray(np.linalg.svd(G, compute_uv=False)) if G.size else np.zeros(0)
    return Sample(q, largest, G, rank, values, null_space_by_svd(G, rank)[3], tolerance)


def still(at: Sample, held: Array, motions: Array) -> tuple[int, Array]:
    """The motions in which what is held rests.

    Parameters
    ----------
    at : Sample
    held : (h, nv) array
        Rows of length one by scaled velocities.
    motions : (nv, n) array
        Orthonormal basis, scaled.

    Returns
    -------
    rank : int
        Of the rows on the motions.
    resting : (nv, n - rank) array
        Orthonormal basis of those that are left.
    """
    A = held @ motions
    rank = manifold_rank(A, at.error, at.tolerance)
    return rank, motions @ null_space_by_svd(A, rank)[3]


def samples(mech: Mechanism, q: Vector, t: float, tolerance: float = 0.0) -> Samples:
    """Look around at a closed q.

    Paths of different dimension may meet at q: what is said in general is said of the largest.
    """
    here = sample(mech, q, t, tolerance=tolerance)
    at_q = neighbourhood(mech, q, t, rank=here.rank, tolerance=tolerance)
    own = tangent(here, at_q)
    places = around(at_q, 6 if here.G.size else 1)
    farthest = max((float(np.linalg.norm(place.y)) for place in places), default=0.0)
    # near a crossing the motions of both paths seem to go on
    far = [place for place in places if np.linalg.norm(place.y) > 0.4 * farthest]
    reached = [_reached(mech, place.x, t, tolerance) for place in _spread(far)]
    elsewhere = _largest(at_q, reached)
    rank, dof = elsewhere[0][0].rank if elsewhere else here.rank, own.shape[1]
    if elsewhere:
        dof = elsewhere[0][1].shape[1]
    crossing = here.rank == rank and here.null.shape[1] > dof < _ways(at_q, own)
    usual = here.rank == rank and own.shape[1] == dof and not crossing
    generic = ([(here, own)] if usual or not elsewhere else []) + elsewhere[:LOOKED_AT]
    return Samples(
        here, tuple(s for s, _ in generic), rank, tuple(T for _, T in generic), crossing
    )  # fmt: skip


def _spread(places: list[ContinuationPlace]) -> list[ContinuationPlace]:
    """In an order in which each is in a direction as different as can be from those before."""
    if len(places) < 3:
        return places
    ways = np.array([place.y / np.linalg.norm(place.y) for place in places])
    alike, order = np.abs(ways @ ways.T), [0]
    while len(order) < len(places):
        left = np.delete(np.arange(len(places)), order)
        order.append(int(left[np.argmin(alike[left][:, order].max(axis=1))]))
    return [places[i] for i in order]


def _reached(mech: Mechanism, x: Vector, t: float, tolerance: float) -> Sample:
    found = sample(mech, x, t, tolerance=tolerance)
    return found if found.error >= ROUNDED else sample(mech, x, t, ROUNDED, tolerance)


def _largest(at_q: Neighbourhood, reached: list[Sample]) -> list[tuple[Sample, Array]]:
    """Those on the largest component that was found, with the motions that go on there.

    No more go on than the rank leaves: the smallest rank is looked at first.
    """
    found: list[tuple[Sample, Array]] = []
    for rank in sorted({s.rank for s in reached}):
        if found and found[0][1].shape[1] >= at_q.mech.nv - rank:
            break
        like = [s for s in reached if s.rank == rank][: 2 * LOOKED_AT]
        looked = [(s, tangent(s, _beside(at_q, s))) for s in like]
        dof = max(T.shape[1] for _, T in looked)
        if not found or dof > found[0][1].shape[1]:
            found = [pair for pair in looked if pair[1].shape[1] == dof]
    return found


def _beside(n: Neighbourhood, s: Sample) -> Neighbourhood:
    return neighbourhood(n.mech, s.q, n.t, rank=s.rank, weak=0.5 * n.weak, tolerance=s.tolerance)


def tangent(s: Sample, n: Neighbourhood) -> Array:
    """The part of the null space along which the mechanism does move, where it is smooth.

    A shaky direction keeps the constraints to first order only: closing the mechanism after a
    step along it leads back. Steps are mixtures of all directions, for each alone may go on where
    two together do not.
    """
    k = s.null.shape[1]
    if s.rank == s.G.shape[0] or k == 0:
        return s.null  # all rows are independent: the manifold is smooth
    rng = np.random.default_rng(k)
    ways, enough = rng.normal(size=(k, FEW_STEPS)) / np.sqrt(k), 0.25 * np.sqrt(FEW_STEPS / k)
    u, back = _back(n, ways, enough) if k > FEW_STEPS else (np.eye(k), FEW_STEPS)
    if 3 * back > FEW_STEPS:
        u, back = _back(n, np.linalg.qr(rng.normal(size=(k, k)))[0], 0.5)
    T: Array = s.null @ u[:, back:]
    return T


def _back(n: Neighbourhood, ways: Array, enough: float) -> tuple[Array, int]:
    """Directions, those first that lead back, and how many these are."""
    u, sizes, _ = np.linalg.svd(np.column_stack([_left(n, way) for way in ways.T]))
    return u, int(np.count_nonzero(sizes > enough))


def _left(n: Neighbourhood, way: Vector) -> Vector:
    """What is left of a way in the null space after a step along it; nothing if not found out."""
    there = followed(n, n.reach * way)
    return np.zeros(way.size) if there is None else way - there.y / n.reach


def _ways(n: Neighbourhood, T: Array) -> int:
    """How many independent directions go on, each alone: more than go on together where paths
    cross."""
    others = null_space_by_svd((n.Z.T @ T).T, T.shape[1])[3]
    k = others.shape[1]
    if k == 0:
        return int(T.shape[1])
    mixed = np.random.default_rng(k).normal(size=(k, k + LOOKED_AT))
    went = []
    for way in np.column_stack([np.eye(k), mixed / np.linalg.norm(mixed, axis=0)]).T:
        there = followed(n, n.reach * (others @ way))
        went.append(np.zeros(k) if there is None else others.T @ there.y / n.reach)
    sizes = np.linalg.svd(np.array(went), compute_uv=False)
    return int(T.shape[1]) + int(np.count_nonzero(sizes > 0.3))


def goes_on(mech: Mechanism, s: Sample, x: Vector, t: float) -> bool:
    """Whether a unit velocity x in the null space goes on as a motion; so if not found out."""
    n = neighbourhood(mech, s.q, t, rank=s.rank, tolerance=s.tolerance)
    way = n.Z.T @ x
    there = followed(n, n.reach * way)
    return there is None or float(way @ there.y) > 0.5 * n.reach
