"""The law of a payload in small matrices: the motion of its frame, columns, estimate, threshold.

See estimation/payload_estimator.py, which has the equations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from scipy.linalg import lapack

from holoctl.base.checks import Array, Vector
from holoctl.tree.frames import Frame

__all__ = [
    "CARRIED",
    "FLOOR",
    "SURE_MASS",
    "WEAKEST",
    "PayloadMotion",
    "payload_columns",
    "payload_motion",
    "solved_payload",
    "statistic",
]

WEAKEST = 1e-6
"""A combination of parameters is unknown if its information is less than this fraction of that of
the best one, first moments over the size of the mechanism."""

CARRIED = 1e-3
"""A parameter is unknown if it changes by more than this per unit of an unknown one."""

FLOOR = 1e-12
"""Added to the covariance of z, relative to its largest entry, before it is factored."""

SURE_MASS = 3.0
"""The centre of mass is known if the mass is more than so many standard deviations."""


class PayloadMotion(NamedTuple):
    """The motion of the frame of a payload at a tick, in its axes, linear part first.

    Attributes
    ----------
    J : (6, nv) array
    drift : (6,) array
        Acceleration at tree acceleration zero, less gravity.
    w : (3,) array
        Angular rate, rad/s.
    """

    J: Array
    drift: Vector
    w: Vector


def payload_motion(model: pin.Model, frame: Frame) -> Callable[[Vector, Vector], PayloadMotion]:
    """A function (q, v) of one loop."""
    model = model.copy()
    own = pin.Frame("payload of holoctl", frame.joint, pin.SE3(frame.placement), pin.OP_FRAME)
    own, gravity, still = model.addFrame(own), model.gravity.linear.copy(), np.zeros(model.nv)
    data = model.createData()

    def at(q: Vector, v: Vector) -> PayloadMotion:
        pin.forwardKinematics(model, data, q, v, still)
        drift: Vector = pin.getFrameClassicalAcceleration(model, data, own).vector
        R = pin.updateFramePlacement(model, data, own).rotation
        drift[:3] -= gravity.dot(R)
        w = pin.getFrameVelocity(model, data, own).angular
        return PayloadMotion(pin.computeFrameJacobian(model, data, q, own), drift, w)

    return at


def payload_columns(a: list[float], w: list[float], size: float) -> Array:
    """Half of [A  U; 0  -skew(A)], the columns of U and skew times `size`; of twice A, alpha, w."""
    x, y, z, ax, ay, az = a
    wx, wy, wz = w
    m, s, c = 0.25, 0.25 * size, 0.125 * size
    xx, yy, zz, xy, xz, yz = wx * wx, wy * wy, wz * wz, wx * wy, wx * wz, wy * wz
    return np.array([
        (m * x, -c * (yy + zz), c * xy - s * az, c * xz + s * ay),
        (m * y, c * xy + s * az, -c * (xx + zz), c * yz - s * ax),
        (m * z, c * xz - s * ay, c * yz + s * ax, -c * (xx + yy)),
        (0.0, 0.0, s * z, -s * y),
        (0.0, -s * z, 0.0, s * x),
        (0.0, s * y, -s * x, 0.0),
    ])  # fmt: skip


def statistic(omega: Array, z: Vector) -> float:
    """``z' Omega^-1 z``, made less by a floor of Omega."""
    A = omega.copy()
    top = float(A.diagonal().max())
    if not top > 0.0:
        return 0.0
    A.flat[::5] += FLOOR * top
    L, info = lapack.dpotrf(A, lower=1, overwrite_a=1)
    if info != 0:
        return 0.0
    y, _ = lapack.dtrtrs(L, z, lower=1)
    return float(y.dot(y))


def solved_payload(information: Array, omega: Array) -> tuple[Vector, Array, Any]:
    """Parameters (4,), covariance (4, 4) and which are known, in the units of the information, by
    Cholesky's method with complete pivoting; those without a pivot are set to zero."""
    A = information[:4, :4]
    x, C, known = np.zeros(4), np.zeros((4, 4)), np.zeros(4, dtype=bool)
    top = float(A.diagonal().max())
    if not top > 0.0:
        return x, C, known
    L, pivots, rank, _ = lapack.dpstrf(A, tol=WEAKEST * top, lower=1)
    first, left = pivots[:rank] - 1, pivots[rank:] - 1
    L11, L21 = L[:rank, :rank], L[rank:, :rank]
    whole, _ = lapack.dpotrs(L11, np.eye(rank), lower=1)  # Lambda^-1 of these
    x[first] = whole.dot(information[first, 4])
    C[np.ix_(first, first)] = whole.dot(omega[np.ix_(first, first)]).dot(whole)
    known[first] = True
    if left.size:
        carried, _ = lapack.dtrtrs(L11, L21.T, lower=1, trans=1)
        known[first] = np.abs(carried).max(axis=1) <= CARRIED
    return x, C, known
