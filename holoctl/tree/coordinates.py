"""The nv coordinates of a model: their names, their joints, what they move, their units.

A name refers to an index in v. In q a joint may have another index, and more numbers than
coordinates.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.tree.frozen_model import plain

__all__ = ["coordinate_names", "joint_of_coordinate", "support", "translational"]


def coordinate_names(model: pin.Model) -> tuple[str, ...]:
    """Names of the nv coordinates: the joint's, or ``joint[i]`` where it has several."""
    model = plain(model)
    names: list[str] = []
    for j in range(1, model.njoints):
        name, n = model.names[j], model.nvs[j]
        names += [name] if n == 1 else [f"{name}[{i}]" for i in range(n)]
    return tuple(names)


def joint_of_coordinate(model: pin.Model) -> NDArray[np.intp]:
    """Joint index of each of the nv coordinates."""
    model = plain(model)
    return np.repeat(np.arange(model.njoints), list(model.nvs)).astype(np.intp)


def support(model: pin.Model, joint: int) -> NDArray[np.bool_]:
    """Mask of the nv coordinates that move the body of `joint`."""
    model = plain(model)
    mask = np.zeros(model.nv, dtype=bool)
    while joint > 0:
        mask[model.idx_vs[joint] : model.idx_vs[joint] + model.nvs[joint]] = True
        joint = model.parents[joint]
    return mask


def translational(model: pin.Model) -> NDArray[np.bool_]:
    """Mask of the nv coordinates that translate without turning (unit: m)."""
    J = pin.computeJointJacobians(model, model.createData(), pin.neutral(model))
    turns: NDArray[np.bool_] = (np.abs(J.reshape(6, model.nv)[3:]) > 1e-12).any(axis=0)
    return ~turns
