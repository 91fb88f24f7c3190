"""Type-2 (actuation) singularities along a curve: where motors no longer determine the motion.

    E = N' B        N: a basis of the admissible velocities, orthonormal in scaled coordinates;
                    columns of B of norm one there

The smallest singular value of E is that of gamma' B, whatever gamma: 0 at a type-2 singularity.
With as many motors as motions det E, with N continued along the curve, changes its sign at a
crossing, also between two places that are looked at.
Reference: C. Gosselin and J. Angeles, "Singularity analysis of closed-loop kinematic chains", IEEE
Transactions on Robotics and Automation, 1990.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from holoctl.base.checks import Vector
from holoctl.base.tolerances import TYPE_2
from holoctl.design.paths.curve import Curve
from holoctl.dynamics.actuation import effort_scales
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.tick.all_rows import scaled_rows_at

__all__ = ["Type2", "type_2_along"]

Array = NDArray[np.float64]


class Type2(NamedTuple):
    """How near a curve comes to type-2 singularities.

    Attributes
    ----------
    least : float
        The smallest singular value of gamma' B, scaled; inf without motors or motions.
    at : float
        Where that is, x.
    places : tuple of float
        x of the singularities that are crossed or touched, ascending.
    """

    least: float
    at: float
    places: tuple[float, ...]


def type_2_along(mech: Mechanism, part: Partition, curve: Curve) -> Type2:
    """The smallest singular value along a curve: at its nodes and half-way, and where it may vanish
    beside these."""
    rank, k = part.actuation_rank, mech.nv - part.rank
    start, end = float(curve.x[0]), float(curve.x[-1])
    if not rank:
        return Type2(np.inf, start, ())
    motors, rest = mech.column_scale[:, None] * mech.B * effort_scales(mech)[0], np.zeros(mech.nv)

    def basis(q: Array) -> Array:
        """N' (..., k, nv)."""
        rows = np.array([scaled_rows_at(mech, x, rest, 0.0).jacobian for x in q])
        if not part.rank:
            return np.broadcast_to(np.eye(mech.nv), (len(q), mech.nv, mech.nv))
        found: Array = np.linalg.svd(rows)[2][:, part.rank :]
        return found

    def least(N: Array) -> Vector:
        return np.asarray(np.linalg.svd(N @ motors, compute_uv=False)[:, rank - 1], dtype=float)

    x = np.sort(np.concatenate([curve.x, 0.5 * (curve.x[1:] + curve.x[:-1])]))
    N = basis(np.array([curve.at(s).q for s in x.tolist()]))
    sizes, places = least(N), list[float]()
    if rank == k == mech.nu:
        turns = np.linalg.det(N[:-1] @ np.swapaxes(N[1:], 1, 2))
        signs = np.sign(np.linalg.det(N @ motors))

        def continued(s: float, i: int) -> float:
            here = basis(curve.at(s).q[None])[0]
            return float(np.linalg.det(here @ motors) * np.sign(np.linalg.det(N[i] @ here.T)))

        for i in np.flatnonzero(signs[1:] * signs[:-1] * np.sign(turns) < 0.0).tolist():
            places.append(float(brentq(continued, x[i], x[i + 1], args=(i,))))
    known = [(float(sizes.min()), float(x[np.argmin(sizes)])), *((0.0, place) for place in places)]
    for i in _may_vanish(sizes):
        low, high = float(x[max(i - 1, 0)]), float(x[min(i + 1, x.size - 1)])
        found: Any = minimize_scalar(
            lambda s: float(least(basis(curve.at(s).q[None]))[0]), bounds=(low, high),
            method="bounded", options={"xatol": 1e-9 * (end - start)},
        )  # fmt: skip
        known.append((float(found.fun), float(found.x)))
        if found.fun < TYPE_2 and not any(low <= place <= high for place in places):
            places.append(float(found.x))
    smallest, at = min(known)
    return Type2(smallest, at, tuple(sorted(places)))


def _may_vanish(sizes: Vector) -> list[int]:
    """The smallest, and local minima that may come to zero beside the place where they are looked
    at: by what they change to the next places."""
    before, after = np.append(np.inf, sizes[:-1]), np.append(sizes[1:], np.inf)
    change = np.maximum(*(np.where(np.isfinite(y), y - sizes, 0.0) for y in (before, after)))
    minima = (sizes <= before) & (sizes <= after) & (sizes <= change)
    minima[np.argmin(sizes)] = True
    return [int(i) for i in np.flatnonzero(minima)]
