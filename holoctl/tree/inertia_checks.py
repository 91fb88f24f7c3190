"""Masses and inertias that a rigid body can have, up to the rounding of numbers in a file."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError
from holoctl.base.tolerances import SIX_DIGITS

__all__ = [
    "about_one_axis",
    "check_mass",
    "check_moments",
    "nearest_moments",
    "parallel",
    "rigid_body",
]

MOVED_INERTIA = 1e-13
"""Rounding of an inertia that was moved to the centre of mass, as a fraction of mass times lever^2:
the moments of a point mass are then not exactly zero, and may be negative."""


def rigid_body(mass: float, com: Array, inertia: Array) -> pin.Inertia:
    """A body of mass, kg, centre of mass (3,), m, and inertia (3, 3) about it, kg m^2.

    Pinocchio's own constructor raises where rounding makes a zero moment negative.
    """
    found = pin.Inertia.Zero()
    found.mass, found.lever, found.inertia = mass, com, inertia
    return found


def check_mass(what: str, mass: float) -> None:
    """Raise `InputError` for a mass, kg, that is negative or not finite; zero is allowed."""
    if mass < 0.0 or not np.isfinite(mass):
        wanted = "not be negative" if mass < 0.0 else "be finite"
        why = "; no body has a negative mass" if mass < 0.0 else ""
        raise InputError(f"{what}: mass (kg) must {wanted}; got {mass:.6g}{why}")


def check_moments(what: str, inertia: Array, moved: float = 0.0) -> None:
    """Raise an error for an inertia that no distribution of mass has.

    Points (all moments zero) and rods (one zero, two equal) are bodies. So are moments without
    mass: an idealised rotor.

    Parameters
    ----------
    what : str
        The body, for messages.
    inertia : (3, 3) array
        About the centre of mass, kg m^2, in any axes; symmetric.
    moved : float, optional
        mass times lever^2, kg m^2, if the inertia may have been moved to the centre of mass over
        that lever: rounding of this size is allowed.

    Raises
    ------
    InputError
        For numbers that are not finite, a negative principal moment, or one that is larger than the
        sum of the others; the message lists the three moments.
    """
    if not np.isfinite(inertia).all():
        raise InputError(f"{what} (kg m^2) must be finite; got {inertia.tolist()}")
    size = float(np.abs(inertia).max())
    if size == 0.0:
        return
    moments = size * np.linalg.eigvalsh(inertia / size)  # scaled: no overflow, no underflow
    small, middle, large = moments.tolist()
    principal = f"its principal moments are {small:.6g}, {middle:.6g}, {large:.6g} kg m^2"
    if small < -SIX_DIGITS * size - MOVED_INERTIA * moved:
        raise InputError(f"{what} must have no negative principal moment; {principal}")
    if small + middle < (1.0 - SIX_DIGITS) * large - MOVED_INERTIA * moved:
        raise InputError(
            f"{what}: no body has it, because one principal moment is larger than the sum of the "
            f"others; {principal}. Is it about the centre of mass, and are its axes those of the "
            "body?"
        )


def about_one_axis(inertia: Array) -> tuple[Vector, Array] | None:
    """The only axis with a moment of inertia, and the inertia of a flat body with this moment.

    Files of planar mechanisms leave the other moments out. They have no influence on a body that
    turns about this axis alone: a flat body, whose other moments are half of the given one, moves
    in the same way.

    Parameters
    ----------
    inertia : (3, 3) array
        About the centre of mass, in the axes of the file.

    Returns
    -------
    axis : (3,) array
        One of the three axes.
    completed : (3, 3) array
    None
        Instead of both, if any other moment or product is not zero.
    """
    moments = np.diag(inertia)
    if np.count_nonzero(inertia) != 1 or np.count_nonzero(moments) != 1 or moments.sum() < 0.0:
        return None
    axis = (moments > 0.0).astype(float)
    return axis, np.diag(0.5 * moments.sum() * (1.0 + axis))


def parallel(axis: Vector, other: Vector) -> bool:
    """Whether two directions are the same, or opposite, up to the rounding of a file."""
    across = float(np.linalg.norm(np.cross(axis, other)))
    return across <= SIX_DIGITS * float(np.linalg.norm(axis) * np.linalg.norm(other))


def nearest_moments(inertia: Array) -> Array:
    """The nearest possible inertia, in the Frobenius norm, to one without negative moments.

    The excess of the largest principal moment is distributed over the three.
    """
    moments, axes = np.linalg.eigh(inertia)
    excess = max(float(moments[2] - moments[0] - moments[1]), 0.0)
    moments = moments + excess / 3.0 * np.array([1.0, 1.0, -1.0])
    found: Array = (axes * moments) @ axes.T
    return found
