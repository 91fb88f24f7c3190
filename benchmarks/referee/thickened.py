"""Thin bars and points for those who want some inertia about each axis."""

from __future__ import annotations

import numpy as np
import pinocchio as pin


def thickened(model: pin.Model) -> pin.Model:
    """A copy whose bodies have some inertia about each axis, as MuJoCo and Exudyn ask for.

    Only thin bars and points in a plane have none; they do not turn about that axis.
    """
    found = pin.Model(model)
    for j in range(1, model.njoints):
        inertia = model.inertias[j]
        matrix = inertia.inertia
        if inertia.mass > 0.0 and np.linalg.eigvalsh(matrix)[0] <= 0.0:
            more = np.diag([1.0, 0.0, 0.0]) if matrix.any() else np.eye(3)
            size = matrix.max() or inertia.mass
            found.inertias[j] = pin.Inertia(inertia.mass, inertia.lever, matrix + size * more)
    return found
