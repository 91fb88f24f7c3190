"""Where the doctor looks: one closed configuration, and others that the mechanism can reach.

A rank at one configuration says what holds there; the largest rank nearby says what holds in
general. Where the two differ, the configuration is singular, and nothing is redundant for it.
Reference: docs/derivations.md, "Scaling and rank"; docs/doctor.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.linalg import null_space_by_svd
from holoctl.base.tolerances import LOOKED_AT, MOTION_REACH, ROUNDED
from holoctl.closing.nearby_configurations import configuration_along, nearby_configurations
from holoctl.closing.rank import manifold_rank, scaled_jacobian
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Sample", "Samples", "sample", "samples", "travelled"]

Array = NDArray[np.float64]


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
        Configurations of the largest rank, `here` first if it is one.
    generic_rank : int
    tangents : tuple of (nv, n) arrays
        For each of `generic`, an orthonormal basis of the velocities that continue as finite
        motions: all of ``null``, or less where some are shaky.
    """

    here: Sample
    generic: tuple[Sample, ...]
    generic_rank: int
    tangents: tuple[Array, ...]

    @property
    def finite_dof(self) -> int:
        """Motions that go on: what is left of nv - generic_rank without the shaky ones."""
        return int(self.tangents[0].shape[1])


def sample(mech: Mechanism, q: Vector, t: float, error: float | None = None) -> Sample:
    """Rank and null space at one configuration; `error` in place of the error there, if given."""
    G, errors = scaled_jacobian(mech, q, t)
    largest = float(np.abs(errors).max(initial=0.0))
    rank = manifold_rank(G, largest if error is None else error)
    values = np.asarray(np.linalg.svd(G, compute_uv=False)) if G.size else np.zeros(0)
    return Sample(q, largest, G, rank, values, null_space_by_svd(G, rank)[3])


def samples(mech: Mechanism, q: Vector, t: float) -> Samples:
    """Look around at a closed q."""
    here = sample(mech, q, t)
    nearby = nearby_configurations(mech, q, t, count=6)
    reached = [_reached(mech, x, t) for x in nearby]
    rank = max([here.rank, *(s.rank for s in reached)])
    elsewhere = [s for s in reached if s.rank == rank][:LOOKED_AT]
    generic = [here] if here.rank == rank else []
    generic += elsewhere
    tangents = [_tangent(mech, s, t) for s in generic]
    # a posture may be special: how many motions go on is asked elsewhere, if there is elsewhere
    dof = max(T.shape[1] for T in tangents[-len(elsewhere) :] or tangents)
    both = [(s, T) for s, T in zip(generic, tangents, strict=True) if T.shape[1] == dof]
    return Samples(here, tuple(s for s, _ in both), rank, tuple(T for _, T in both))


def _reached(mech: Mechanism, x: Vector, t: float) -> Sample:
    found = sample(mech, x, t)
    return found if found.error >= ROUNDED else sample(mech, x, t, ROUNDED)


def _tangent(mech: Mechanism, s: Sample, t: float) -> Array:
    """The part of the null space along which the mechanism does move.

    A shaky direction keeps the constraints to first order only: closing the mechanism after a
    step along it leads back.
    """
    if s.rank == s.G.shape[0] or s.null.shape[1] == 0:
        return s.null  # all rows are independent: the manifold is smooth
    went = []
    for n in s.null.T:
        d = travelled(mech, s.q, n, t)
        went.append(s.null.T @ (n if d is None else d))  # not found out: as the rank says
    u, sizes, _ = np.linalg.svd(np.array(went).T)
    tangent: Array = s.null @ u[:, : int(np.count_nonzero(sizes > 0.5))]
    return tangent


def travelled(mech: Mechanism, q: Vector, x: Vector, t: float) -> Vector | None:
    """How far the mechanism goes along a unit velocity x, over the length of the step: x, if it
    goes on; less for what leads back. None where it was not found out."""
    there = configuration_along(mech, q, MOTION_REACH * x, t)
    if there is None:
        return None
    d: Vector = pin.difference(mech.model, q, there) / mech.column_scale
    return d / MOTION_REACH
