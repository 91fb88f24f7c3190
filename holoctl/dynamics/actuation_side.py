"""The smallest singular value of gamma' B at a state, and the side of a type-2 singularity.

    K X = [0; I]        K = [G_rows; B'],   X = N E'^-1,   E = N' B
    sigma = 1 / |X|     N: an orthonormal basis of the admissible velocities
    det K               vanishes where E is singular; its sign tells the sides

in scaled coordinates, with columns of B of norm one, as in design/paths/type_2.py. The sign is one
and the same along a motion while the same independent rows are kept.
Reference: C. Gosselin and J. Angeles, "Singularity analysis of closed-loop kinematic chains", IEEE
Transactions on Robotics and Automation, 1990.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.linalg import null_space_by_svd
from holoctl.closing.rank import scaled_jacobian
from holoctl.dynamics.actuation import scaled_motors
from holoctl.dynamics.lost_motion import LostMotion, lost_motion
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = [
    "AT_SINGULARITY",
    "NO_MOTORS",
    "ActuationSide",
    "actuation_side",
    "check_margin",
    "check_margin_of",
    "has_sides",
    "hold_of_motors",
    "least_held_motion",
    "same_side",
]

AT_SINGULARITY = 1e-12
"""Below this smallest singular value the sign of the determinant is not determined."""


class ActuationSide(NamedTuple):
    """How far a state is from a type-2 singularity.

    Attributes
    ----------
    sigma : float
        The smallest singular value of gamma' B, scaled; inf without motors or motions.
    sign : float
        1 or -1, which differ on the two sides; 0 at the singularity, and if the number of motors is
        not that of the motions, which has no sides.
    """

    sigma: float
    sign: float


NO_MOTORS = ActuationSide(float("inf"), 0.0)


def has_sides(mech: Mechanism, part: Partition) -> bool:
    """Whether type-2 singularities separate sides: as many motors as motions, all driven."""
    return 0 < mech.nu == mech.nv - part.rank == part.actuation_rank


def actuation_side(mech: Mechanism, part: Partition) -> Callable[[Array], ActuationSide]:
    """A function of the scaled Jacobian (m, nv) of all rows at a state; its kept rows must be
    independent there."""
    rank, nv, nu, rows = part.rank, mech.nv, mech.nu, part.rows
    motors = scaled_motors(mech)
    if not part.actuation_rank:
        return lambda G: NO_MOTORS
    if not has_sides(mech, part):
        return lambda G: ActuationSide(_held(_basis(G, part).T @ motors, part), 0.0)
    driven, alone = np.argmax(np.abs(motors), axis=0), np.count_nonzero(motors) == nu
    if rank and alone and np.unique(driven).size == nu:
        return _of_own_coordinates(part, motors, driven)
    K, right = np.zeros((nv, nv), order="F"), np.zeros((nv, nu), order="F")
    right[rank:] = np.eye(nu)

    def side(G: Array) -> ActuationSide:
        K[:rank], K[rank:] = G[rows], motors.T
        lu, pivots, singular = lapack.dgetrf(K)
        if singular:
            return ActuationSide(0.0, 0.0)
        X = lapack.dgetrs(lu, pivots, right)[0]
        return _side_of(X.T.dot(X), lu, pivots, 1.0)

    return side


def _of_own_coordinates(
    part: Partition, motors: Array, driven: Indices
) -> Callable[[Array], ActuationSide]:
    """`actuation_side` if each motor drives a coordinate of its own, in half of the time:
    ``K = [A D; 0 1]`` with the driven columns last, and ``X = [-A^-1 D; 1]``."""
    nv, nu = motors.shape
    others = np.setdiff1d(np.arange(nv), driven)
    of_A, of_D = (part.rows * nv + columns[:, None] for columns in (others, driven))
    one = np.eye(nu)
    turn = float(np.linalg.det(np.eye(nv)[np.concatenate([others, driven])]))
    turn = float(np.sign(turn * np.prod(motors[driven, np.arange(nu)])))

    def side(G: Array) -> ActuationSide:
        flat = G.reshape(-1)
        lu, pivots, singular = lapack.dgetrf(flat.take(of_A).T, 1)
        if singular:
            return ActuationSide(0.0, 0.0)
        X = lapack.dgetrs(lu, pivots, flat.take(of_D).T, 0, 1)[0]
        return _side_of(X.T.dot(X) + one, lu, pivots, turn)

    return side


def _side_of(S: Array, lu: Array, pivots: Indices, turn: float) -> ActuationSide:
    """From S = X' X and the factors of K, or of A; `turn` is the sign of det K / det A."""
    sigma = float(lapack.dsyev(S, 0)[0][-1]) ** -0.5
    if not sigma >= AT_SINGULARITY:
        return ActuationSide(sigma if sigma > 0.0 else 0.0, 0.0)  # 0 for nan
    swapped = np.count_nonzero(pivots != _places(pivots.size))
    odd = (swapped + np.count_nonzero(lu.diagonal() < 0.0)) % 2
    return ActuationSide(sigma, -turn if odd else turn)


@cache
def _places(n: int) -> Indices:
    return np.arange(n)


def same_side(mech: Mechanism, part: Partition, G: Array, other: Array) -> bool:
    """Whether two neighbouring states, with scaled Jacobians G and `other`, are on one side: by
    bases N, continued from one to the other, also through a configuration of lower rank."""
    N, there = _basis(G, part), _basis(other, part)
    motors = scaled_motors(mech)
    three = N.T @ motors, there.T @ motors, N.T @ there
    return bool(np.prod([np.sign(np.linalg.det(x)) for x in three]) >= 0.0)


def least_held_motion(mech: Mechanism, part: Partition, G: Array) -> tuple[float, Vector]:
    """The smallest singular value of gamma' B at a state with the scaled Jacobian G, and the
    velocity (nv,) that the motors hold least: its left singular vector, largest entry 1, scaled."""
    N, last = _basis(G, part), part.actuation_rank - 1
    motions, sizes, _ = np.linalg.svd(N.T @ scaled_motors(mech))
    w = N @ motions[:, last]
    v: Vector = mech.column_scale * (w / w[np.argmax(np.abs(w))])
    return float(sizes[last]), v


def hold_of_motors(mech: Mechanism, part: Partition, q: Vector, t: float = 0.0) -> LostMotion:
    """The motion on which the motors have the least hold; inf without motors or motions."""
    if not part.actuation_rank:
        return LostMotion(float("inf"), (), "")
    value, v = least_held_motion(mech, part, scaled_jacobian(mech, q, t)[0])
    return lost_motion(mech, value, v / mech.column_scale, "all motors hold")


def check_margin_of(mech: Mechanism, part: Partition) -> None:
    """Raise `InputError` for a mechanism without type-2 singularities that separate sides."""
    if not has_sides(mech, part):
        raise InputError(
            f"{mech.name}: margin is for as many motors as motions, which drive all of them; it "
            f"has {mech.nu} motors, which drive {part.actuation_rank} of "
            f"{mech.nv - part.rank} motions"
        )


def check_margin(mech: Mechanism, part: Partition, margin: float, q: Vector, t: float) -> None:
    """Raise `SingularityError` if the smallest singular value of gamma' B is below the margin."""
    lost = hold_of_motors(mech, part, q, t)
    if not lost.value >= margin:
        raise SingularityError(
            f"{mech.name}: close to a type-2 (actuation) singularity: the smallest singular value "
            f"of gamma' B is {lost.value:.2g} (scaled), below margin = {margin:g}, where "
            f"{lost.words}; no torque is given. Keep the motion farther away, or take a smaller "
            "margin",
            names=lost.names, kind="type 2", value=lost.value, q=q.copy(), motion=lost.words,
        )  # fmt: skip


def _basis(G: Array, part: Partition) -> Array:
    """N: an orthonormal basis of the admissible velocities, scaled, (nv, k)."""
    return null_space_by_svd(G, part.rank)[3]


def _held(E: Array, part: Partition) -> float:
    return float(np.linalg.svd(E, compute_uv=False)[part.actuation_rank - 1])
