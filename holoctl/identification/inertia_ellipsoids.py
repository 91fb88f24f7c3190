"""Bodies as ellipsoids of uniform density, to be seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.identification.pseudo_inertia import pseudo_inertia

__all__ = ["InertiaEllipsoid", "inertia_ellipsoid"]


class InertiaEllipsoid(NamedTuple):
    """The ellipsoid of uniform density with the mass, centre and inertia of a body.

    Attributes
    ----------
    mass : float
        kg.
    centre : (3,) array
        Of mass, m, in the axes of the joint of the body.
    semi_axes : (3,) array
        m, in ascending order.
    rotation : (3, 3) array
        Their directions, as columns, in the axes of the joint.

    See Also
    --------
    results.Fit : ``fit.ellipsoids()`` returns them.

    Examples
    --------
    >>> import numpy as np
    >>> from holoctl.results import InertiaEllipsoid
    >>> ball = InertiaEllipsoid(1.0, np.zeros(3), np.full(3, 0.1), np.eye(3))
    >>> float(round(0.4 * ball.mass * ball.semi_axes[0] ** 2, 6))  # its moment of inertia
    0.004
    """

    mass: float
    centre: Vector
    semi_axes: Vector
    rotation: Array


def inertia_ellipsoid(ten: Vector) -> InertiaEllipsoid:
    """Of the ten parameters of a body with a mass."""
    J = pseudo_inertia(ten)
    centre = J[:3, 3] / J[3, 3]
    moments, axes = np.linalg.eigh(J[:3, :3] - np.outer(centre, centre) * J[3, 3])
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    return InertiaEllipsoid(
        float(J[3, 3]), centre, np.sqrt(5.0 * np.maximum(moments, 0.0) / J[3, 3]), axes
    )
