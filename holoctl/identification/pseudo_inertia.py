"""Pseudo-inertias: bodies as symmetric matrices, which a body has if they are positive.

    J = [ S   h ]      S the second moments of the mass about the origin, kg m^2: S = tr(I)/2 - I
        [ h'  m ]      h = m c, kg m

Some distribution of mass has (m, h, I) if, and only if, J is positive semidefinite.
Source: P. Wensing, S. Kim, J.-J. Slotine, Linear matrix inequalities for physically consistent
inertial parameter identification, 2018. Reference: docs/derivations-identification.md.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector

__all__ = [
    "FLOOR",
    "MOMENTS",
    "floored_factor",
    "in_basis",
    "in_frame",
    "parameters_from",
    "pseudo_inertia",
    "relative_parameters",
    "symmetric_basis",
]

FLOOR = 1e-3
"""The least eigenvalue of the pseudo-inertia of a prior, lengths in units of the body and relative
to the largest: rods and points in CAD files have zeros, from which nothing could change."""

MOMENTS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
"""Ixx, Ixy, Iyy, Ixz, Iyz, Izz, in Pinocchio's order."""


def pseudo_inertia(ten: Vector) -> Array:
    """J (4, 4) of the ten parameters of a body."""
    moments = np.zeros((3, 3))
    for (i, k), x in zip(MOMENTS, ten[4:], strict=True):
        moments[i, k] = moments[k, i] = x
    J = np.zeros((4, 4))
    J[:3, :3] = 0.5 * np.trace(moments) * np.eye(3) - moments
    J[:3, 3] = J[3, :3] = ten[1:4]
    J[3, 3] = ten[0]
    return J


def parameters_from(J: Array) -> Vector:
    """The ten parameters of a pseudo-inertia (4, 4)."""
    moments = np.trace(J[:3, :3]) * np.eye(3) - J[:3, :3]
    return np.array([J[3, 3], *J[:3, 3], *(moments[i, k] for i, k in MOMENTS)])


def in_frame(placement: pin.SE3) -> Array:
    """T (10, 10): parameters in the axes of a frame become T times them in those of a joint, where
    the frame is at `placement`. ``J_joint = A J A'``, A the homogeneous matrix of the placement."""
    A = placement.homogeneous
    columns = [parameters_from(A @ pseudo_inertia(e) @ A.T) for e in np.eye(10)]
    return np.array(columns).T


def symmetric_basis() -> Array:
    """Ten symmetric matrices (10, 4, 4), orthonormal in the Frobenius norm."""
    found = []
    for i in range(4):
        for k in range(i + 1):
            E = np.zeros((4, 4))
            E[i, k] = E[k, i] = 1.0 if i == k else 0.5**0.5
            found.append(E)
    return np.array(found)


def in_basis(Z: Array) -> Vector:
    """The ten coordinates of a symmetric matrix in `symmetric_basis`."""
    found: Vector = np.einsum("nij,ij->n", symmetric_basis(), Z)
    return found


def floored_factor(ten: Vector, mass: float, length: float) -> Array:
    """L (4, 4) with ``L L' = J``, J of a prior, eigenvalues at least `FLOOR`.

    Parameters
    ----------
    ten : (10,) array
    mass, length : float
        The usual size of bodies of the robot, kg and m: a body without mass is taken to be `FLOOR`
        of it.
    """
    J = pseudo_inertia(ten)
    m = J[3, 3] if J[3, 3] > 0.0 else FLOOR * mass
    moments = float(np.trace(J[:3, :3]))
    unit = (moments / m) ** 0.5 if moments > 0.0 else length
    D = np.array([unit, unit, unit, 1.0]) * m**0.5
    values, vectors = np.linalg.eigh(J / D / D[:, None])
    least = FLOOR * max(float(values[-1]), 1.0)
    found: Array = D[:, None] * vectors * np.sqrt(np.maximum(values, least))
    return found


def relative_parameters(L: Array) -> Array:
    """A (10, 10): parameters of ``J = L (1 + Z) L'`` are A times the coordinates of 1 + Z."""
    return np.array([parameters_from(L @ E @ L.T) for E in symmetric_basis()]).T
