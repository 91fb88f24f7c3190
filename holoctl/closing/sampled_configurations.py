"""Samples of closed configurations: a given one, and others that the mechanism can reach.

The rank at one configuration is local; the largest rank nearby is the generic one. If the two
differ, the configuration is singular, which does not make rows redundant.
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
"""Number of random combinations that are followed if there are many directions and few of them lead
back."""

LOOKED_AT = 3
"""Number of reachable configurations that are analysed, in addition to the given one."""


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
        Tolerance of rounded geometry: smaller singular values do not count. 0 for exact geometry.
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
        Configurations on the largest component of those that meet here, all of one rank; `here` is
        the first if it has this rank too.
    generic_rank : int
        Their rank.
    tangents : tuple of (nv, n) arrays
        For each of `generic`, an orthonormal basis of the velocities that continue as finite
        motions: all of ``null``, or less if some are only infinitesimal.
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
        """The number of finite motions: nv - generic_rank without infinitesimal ones."""
        return int(self.tangents[0].shape[1])


def sample(
    mech: Mechanism, q: Vector, t: float, error: float | None = None, tolerance: float = 0.0
) -> Sample:
    """Rank and null space at one configuration; `error` replaces the error there, if given."""
    G, errors = scaled_jacobian(mech, q, t)
    largest = float(np.abs(errors).max(initial=0.0))
    rank = manifold_rank(G, largest if error is None else error, tolerance)
    values = np.asarray(np.linalg.svd(G, compute_uv=False)) if G.size else np.zeros(0)
    return Sample(q, largest, G, rank, values, null_space_by_svd(G, rank)[3], tolerance)


def still(at: Sample, held: Array, motions: Array) -> tuple[int, Array]:
    """The motions in which the held rates are zero.

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
        Rank of the rows on the motions.
    resting : (nv, n - rank) array
        Orthonormal basis of the remaining motions.
    """
    A = held @ motions
    rank = manifold_rank(A, at.error, at.tolerance)
    return rank, motions @ null_space_by_svd(A, rank)[3]


def samples(mech: Mechanism, q: Vector, t: float, tolerance: float = 0.0) -> Samples:
    """A sample at a closed q, and samples nearby.

    Paths of different dimension may meet at q: generic results are those of the largest.
    """
    here = sample(mech, q, t, tolerance=tolerance)
    at_q = neighbourhood(mech, q, t, rank=here.rank, tolerance=tolerance)
    own = tangent(here, at_q)
    places = around(at_q, 6 if here.G.size else 1)
    farthest = max((float(np.linalg.norm(place.y)) for place in places), default=0.0)
    # near a crossing the motions of both paths seem to be finite
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
    """The places in an order such that the direction of each differs most from those before."""
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
    """The samples on the largest component found, with the finite motions there.

    The rank limits the number of finite motions, so the smallest rank is tested first.
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
    """The part of the null space along which the mechanism has finite motions, if it is smooth.

    An infinitesimal motion satisfies the constraints to first order only: closing the mechanism
    after a step along it leads back. Steps are combinations of all directions, because two
    directions that are finite separately need not be finite together.
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
    """The directions, beginning with those that lead back, and the number of these."""
    u, sizes, _ = np.linalg.svd(np.column_stack([_left(n, way) for way in ways.T]))
    return u, int(np.count_nonzero(sizes > enough))


def _left(n: Neighbourhood, way: Vector) -> Vector:
    """The part of a direction that remains after a step along it is closed; zero if that is
    unknown."""
    there = followed(n, n.reach * way)
    return np.zeros(way.size) if there is None else way - there.y / n.reach


def _ways(n: Neighbourhood, T: Array) -> int:
    """The number of independent directions that are finite separately: at a crossing of paths more
    than are finite together."""
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
    """Whether a unit velocity x in the null space is a finite motion; True if that is unknown."""
    n = neighbourhood(mech, s.q, t, rank=s.rank, tolerance=s.tolerance)
    way = n.Z.T @ x
    there = followed(n, n.reach * way)
    return there is None or float(way @ there.y) > 0.5 * n.reach
