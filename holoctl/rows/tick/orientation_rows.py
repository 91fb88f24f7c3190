"""Rows of an orientation in a tick."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.tolerances import HALF_TURN
from holoctl.constraints.wrench_rows import YZX, ZXY, WrenchRows
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.affine_maps import affine_map
from holoctl.rows.tick.prepared_rows import PreparedRows, per_limit
from holoctl.tree.live_motion import LiveMotion, add_vector

__all__ = ["turning"]


def turning(
    table: WrenchRows,
    i: Indices,
    scale: Vector,
    motion: LiveMotion,
    WJ: Array,
    limits: StateLimits | None,
) -> PreparedRows:
    """Rows ``2 x_i`` of the quaternion (x, w) of R1^T R2: w = (0, R1 E_i^T), E = w I - skew(x),

        -drift = m . (alpha_1 - alpha_2 + omega_1 x omega_2) + |omega_U|^2 x_i / 2

    with m = R1 E_i^T the moment of the row."""
    pairs, pair = np.unique(table.pair[i], return_inverse=True)
    count, m, component = pairs.size, i.size, table.component[i]
    at = _tables(table, pairs, pair, component)
    gather_axes, gather_moments, gather_x = at.axes, at.moments, at.x
    angular, gather_factors, gather_c = at.angular, at.factors, at.of_pair
    all_axes = np.ones(18 * count + 1)  # axes of frames 1, of frames 2, and a one
    R = all_axes[:-1].reshape(2, count, 3, 3)  # R[0, j, k] is axis k of frame 1
    axes = _axes(table, pairs, motion.bodies)
    affine, R1 = affine_map(axes, motion.placements, R.reshape(-1, 3)), R[0]
    products, axes_2 = both_axes = np.zeros((2, count, 28))
    unscaled, quaternion = np.zeros((count, 4)), np.zeros((count, 4))
    four_w2, twice_w, factor = unscaled[:, 3], np.zeros(count), np.zeros(count)
    factor_of_all = factor[:, None]
    E, moments, W = np.zeros((count, 3, 3)), np.zeros((count, 3, 3)), np.zeros((m, 3))
    nine_of_E = E.reshape(count, 9)
    omega, alpha = np.zeros((2, count, 3)), np.zeros((2, count, 3))
    (omega1, omega2), (alpha1, alpha2) = omega, alpha
    factors = np.zeros((2, 2, count, 3))
    (P, Q), (P1, P2) = factors, factors[0]
    U, c, c_of_rows = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((m, 3))
    ones, halves, half_square = np.ones(3), np.full(3, 0.5), np.zeros(count)
    velocities, accelerations = motion.velocities.reshape(-1), motion.accelerations.reshape(-1)
    J, most = motion.J[3:], 0.0625 * (count + 1.0 / HALF_TURN**2)
    right, off, U_of_rows = np.zeros(m), np.zeros((2, m)), np.zeros((m, 3))
    rate, error = off
    per_velocity, per_closure = per_limit(limits)
    to_rate, to_error, flat_off = np.full(3, per_velocity), 2.0 * per_closure, off.reshape(-1)

    def turn() -> float:
        """Fill quaternion and moments; the result is larger than `most` near half a turn."""
        affine()  # R1, R2
        all_axes.take(gather_axes, None, both_axes, "clip")
        np.multiply(products, axes_2, products)
        products.dot(_TIMES_FOUR_W, unscaled)  # 4 w (x, w) of R1^T R2
        np.sqrt(four_w2, twice_w)
        np.divide(0.5, twice_w, factor)  # 1 / 4 w
        np.multiply(unscaled, factor_of_all, quaternion)
        quaternion.dot(_HALF_ROTATION, nine_of_E)
        np.matmul(E, R1, moments)
        moments.take(gather_moments, None, W, "clip")
        return float(factor.dot(factor))

    def place() -> None:
        half = turn()
        np.multiply(quaternion.take(gather_x), to_error, error)
        if not half < most:
            error[:] = np.nan
        W.dot(J, WJ)

    def evaluate(q: Vector, v: Vector, t: float) -> float:
        if not turn() < most:
            return np.nan
        velocities.take(angular, None, omega, "clip")
        accelerations.take(angular, None, alpha, "clip")
        velocities.take(gather_factors, None, factors, "clip")
        np.multiply(P, Q, P)
        np.subtract(P1, P2, c)  # omega_1 x omega_2
        np.add(c, alpha1, c)
        np.subtract(c, alpha2, c)
        c.take(gather_c, None, c_of_rows, "clip")
        np.multiply(W, c_of_rows, c_of_rows)
        c_of_rows.dot(ones, right)
        np.subtract(omega2, omega1, U)
        x = quaternion.take(gather_x)
        if limits is not None:
            U.take(gather_c, None, U_of_rows, "clip")
            np.multiply(W, U_of_rows, U_of_rows)
            U_of_rows.dot(to_rate, rate)
            np.multiply(x, to_error, error)
        np.multiply(U, U, U)
        U.dot(halves, half_square)  # |omega_U|^2 / 2
        np.add(right, half_square.take(pair) * x, right)
        W.dot(J, WJ)
        return float(flat_off.dot(flat_off))

    def wrenches() -> Array:
        return np.hstack([np.zeros((m, 3)), W])

    return PreparedRows(evaluate, right, off, None if limits is None else place, wrenches=wrenches)


def _axes(table: WrenchRows, pairs: Indices, bodies: int) -> Array:
    """(6 count, 4 bodies): the axes of frames 1, then of frames 2, as affine functions of the
    placements."""
    axes = np.zeros((2, pairs.size, 3, 4 * bodies))
    for j, which in enumerate(pairs):
        for k in range(3):
            add_vector(axes[0, j, k], table.frames1[which], [*np.eye(3)[k], 0.0])
            add_vector(axes[1, j, k], table.frames2[which], [*np.eye(3)[k], 0.0])
    return axes.reshape(6 * pairs.size, -1)


class _OrientationTables(NamedTuple):
    """The indices of the numbers that an evaluation gathers."""

    axes: Indices  # (2, count, 28): pairs of components whose products make R1^T R2; and ones
    moments: Indices  # (m, 3): the moment of each row, among those of its pair
    x: Indices  # (m,): its component of the quaternion
    angular: Indices  # (2, count, 3): angular parts of the motions of bodies 1 and 2
    factors: Indices  # (2, 2, count, 3): of omega_1 x omega_2, y z - z y
    of_pair: Indices  # (m, 3): a vector of the pair of each row


def _tables(
    table: WrenchRows, pairs: Indices, pair: Indices, component: Indices
) -> _OrientationTables:
    count = pairs.size
    one, other, along = np.indices((3, 3, 3)).reshape(3, 27)  # axis of 1, axis of 2, component
    first_axis, the_one = 9 * np.arange(count)[:, None], np.full((count, 1), 18 * count)
    axes = [
        np.hstack([first_axis + 3 * one + along, the_one]),
        np.hstack([first_axis + 9 * count + 3 * other + along, the_one]),
    ]
    joints = np.array([[table.frames1[j].joint, table.frames2[j].joint] for j in pairs]).T
    angular = np.ascontiguousarray(6 * joints[:, :, None] + 3 + np.arange(3))
    factors = [
        [angular[0][:, YZX], angular[0][:, ZXY]], [angular[1][:, ZXY], angular[1][:, YZX]],
    ]  # fmt: skip
    return _OrientationTables(
        axes=np.ascontiguousarray(axes),
        moments=9 * pair[:, None] + 3 * component[:, None] + np.arange(3),
        x=4 * pair + component,
        angular=angular,
        factors=np.ascontiguousarray(factors),
        of_pair=3 * pair[:, None] + np.arange(3),
    )


_TIMES_FOUR_W = np.zeros((3, 3, 4))
for _k, (_i, _j) in enumerate([(2, 1), (0, 2), (1, 0)]):  # R32 - R23, R13 - R31, R21 - R12
    _TIMES_FOUR_W[_i, _j, _k], _TIMES_FOUR_W[_j, _i, _k] = 1.0, -1.0
    _TIMES_FOUR_W[_k, _k, 3] = 1.0  # trace, and 1: 4 w^2
_TIMES_FOUR_W = np.vstack([np.repeat(_TIMES_FOUR_W.reshape(9, 4), 3, axis=0), [0.0, 0.0, 0.0, 1.0]])

_HALF_ROTATION = np.zeros((4, 9))  # (x, y, z, w) to [[w, z, -y], [-z, w, x], [y, -x, w]]
_HALF_ROTATION[3, [0, 4, 8]] = 1.0
_HALF_ROTATION[[2, 0, 1], [1, 5, 6]] = 1.0
_HALF_ROTATION[[1, 2, 0], [2, 3, 7]] = -1.0
