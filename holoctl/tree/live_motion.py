"""Views of the motion of all bodies in Pinocchio's memory, without a copy: for control ticks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.lib.stride_tricks import as_strided

from holoctl.base.checks import Array
from holoctl.tree.frames import Frame

__all__ = ["LiveMotion", "add_vector", "live_motion"]


@dataclass(frozen=True, eq=False)
class LiveMotion:
    """Views of the motion of all bodies in a `pin.Data`, which change with it.

    Filled by ``pin.computeForwardKinematicsDerivatives``; world axes at the world origin.

    Attributes
    ----------
    placements : (4 njoints, 3) array
        ``[R p]^T`` of every joint frame, one below the other: the columns of R, then p.
    velocities, accelerations : (njoints, 6) arrays
        Spatial, linear part first.
    J : (6, nv) array
        World Jacobian.
    data : pin.Data
        The object that owns the memory; it must live as long as the views.

    See Also
    --------
    protocols.BoundRows : its `tick` reads it.
    protocols.TaskTick : a tick that reads it.
    protocols.Kinematics : the same at one state.
    """

    placements: Array
    velocities: Array
    accelerations: Array
    J: Array
    data: pin.Data

    @property
    def bodies(self) -> int:
        """The number of joints, including the universe."""
        return int(self.velocities.shape[0])


def add_vector(row: Array, frame: Frame, local: list[float]) -> None:
    """Add a vector given in a frame, or with last entry 1 a point, to a row of coefficients that is
    multiplied with `LiveMotion.placements`."""
    column = 4 * frame.joint
    row[column : column + 3] += frame.placement.rotation @ local[:3]
    row[column : column + 3] += frame.placement.translation * local[3]
    row[column + 3] += local[3]


def live_motion(model: pin.Model, data: pin.Data) -> LiveMotion | None:
    """The live views of `data`, or None if this build of Pinocchio stores the motion differently.

    Reading the bodies one by one through the bindings takes longer than the rest of a control tick.
    """
    placements = _one_block([X.rotation.T for X in data.oMi], 12)
    velocities = _one_block([V.vector for V in data.ov], 6)
    accelerations = _one_block([A.vector for A in data.oa], 6)
    if placements is None or velocities is None or accelerations is None:
        return None
    here = data.oMi[0]
    if _address(here.translation) != _address(here.rotation) + 9 * 8:
        return None
    J = data.J.reshape(6, model.nv, order="F")  # a vector where nv = 1
    if J.dtype != np.float64 or _address(J) != _address(data.J):
        return None  # a copy, which would not change with the workspace
    return LiveMotion(placements.reshape(-1, 3), velocities, accelerations, J, data)


def _one_block(items: list[Array], size: int) -> Array | None:
    """The array of which these views, `size` numbers apart, are parts; None if there is none."""
    starts = np.array([_address(item) for item in items])
    if not np.array_equal(starts, starts[0] + 8 * size * np.arange(len(items))):
        return None
    if any(item.dtype != np.float64 or not item.flags.c_contiguous for item in items):
        return None
    return as_strided(items[0], shape=(len(items), size), strides=(8 * size, 8))


def _address(x: Array) -> int:
    return int(x.__array_interface__["data"][0])
