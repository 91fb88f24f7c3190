"""Where the doctor looks: one closed configuration, and others that the mechanism can reach.

A rank at one configuration says what holds there; the largest rank nearby says what holds in
general. Where the two differ, the configuration is singular, and nothing is redundant for it.
Reference: docs/derivations.md, "Rank"; docs/doctor.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.assembly import configuration_along, manifold_rank, nearby_configurations
from holoctl.checks import Vector
from holoctl.linalg import null_space_by_svd
from holoctl.mechanism import Mechanism, constraint_rows

__all__ = ["Sample", "Samples", "samples"]

Array = NDArray[np.float64]

REACH = 0.02
"""Scaled length of the steps that tell whether a motion goes on."""

LOOKED_AT = 3
"""So many reachable configurations are looked at closely."""


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
    """

    q: Vector
    error: float
    G: Array
    rank: int
    values: Vector
    null: Array


@dataclass(frozen=True, eq=False)
class Samples:
    """A configuration and others near it.

    Attributes
    ----------
    here : Sample
    generic : tuple of Sample
        Configurations of the largest rank; `here` alone where the mechanism cannot move.
    generic_rank : int
    moves : bool
        Whether any other closed configuration was reached.
    tangents : tuple of (nv, n) arrays
        For each of `generic`, an orthonormal basis of the velocities that continue as finite
        motions: all of ``null``, or less where some are shaky.
    """

    here: Sample
    generic: tuple[Sample, ...]
    generic_rank: int
    moves: bool
    tangents: tuple[Array, ...]

    @property
    def finite_dof(self) -> int:
        """Motions that go on: what is left of nv - generic_rank without the shaky ones."""
        return max(int(T.shape[1]) for T in self.tangents)


def sample(mech: Mechanism, q: Vector, t: float) -> Sample:
    """Rank and null space at one configuration."""
    _, rows = constraint_rows(mech, q, np.zeros(mech.nv), t)
    r = mech.row_scale
    G = r[:, None] * rows.jacobian * mech.column_scale
    error = float(np.abs(r * rows.error).max(initial=0.0))
    rank = manifold_rank(G, error)
    values = np.asarray(np.linalg.svd(G, compute_uv=False)) if G.size else np.zeros(0)
    return Sample(q, error, G, rank, values, null_space_by_svd(G, rank)[3])


def samples(mech: Mechanism, q: Vector, t: float) -> Samples:
    """Look around at a closed q."""
    here = sample(mech, q, t)
    reached = [sample(mech, x, t) for x in nearby_configurations(mech, q, t, count=6)]
    rank = max([here.rank, *(s.rank for s in reached)])
    generic = tuple(s for s in reached if s.rank == rank)[:LOOKED_AT] or (here,)
    tangents = tuple(_tangent(mech, s, t) for s in generic)
    return Samples(here, generic, rank, bool(reached), tangents)


def _tangent(mech: Mechanism, s: Sample, t: float) -> Array:
    """The part of the null space along which the mechanism does move.

    A shaky direction keeps the constraints to first order only: closing the mechanism after a
    step along it leads back.
    """
    if s.rank == s.G.shape[0] or s.null.shape[1] == 0:
        return s.null  # all rows are independent: the manifold is smooth
    went = []
    for n in s.null.T:
        x = configuration_along(mech, s.q, REACH * n, t)
        d = np.zeros(mech.nv) if x is None else pin.difference(mech.model, s.q, x)
        went.append(s.null.T @ (d / mech.column_scale) / REACH)
    u, sizes, _ = np.linalg.svd(np.array(went).T)
    tangent: Array = s.null @ u[:, : int(np.count_nonzero(sizes > 0.5))]
    return tangent
