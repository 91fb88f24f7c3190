"""Placements and velocities of the bodies of a tree at (q, v), computed once for all constraints.

Spatial vectors are in world axes at the world origin, linear part first, as in Pinocchio: a motion
is ``(velocity of the body point at the origin, angular velocity)``, a wrench is ``(force, moment
about the origin)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.tree.frames import Frame

__all__ = ["Kinematics", "kinematics", "place"]


@dataclass(frozen=True, eq=False)
class Kinematics:
    """The motion of the tree at (q, v, t), computed once and shared by all constraints.

    Attributes
    ----------
    q, v, t : (nq,) array, (nv,) array, float
        Configuration, velocity, time in s.
    placements : sequence of pin.SE3
        World placement of every joint frame, index 0 the world ("universe").
    accelerations : sequence of pin.Motion
        Spatial acceleration of each joint frame at zero acceleration of the coordinates, in
        the joint's own axes.
    J : (6, nv) array
        World Jacobian: column i is the motion of the bodies that coordinate i moves, at unit rate.

    See Also
    --------
    results.Terms : has it, as ``kinematics``.
    protocols.BoundRows : evaluates rows from it.
    protocols.LiveMotion : the same in a control loop.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> kin = hc.terms(mech, q, v).kinematics
    >>> tip = hc.protocols.resolve_frame(mech.model, "tip_right", "example")
    >>> kin.point(tip)[2].round(3).tolist()
    0.45
    """

    q: Vector
    v: Vector
    t: float
    placements: Sequence[pin.SE3]
    accelerations: Sequence[pin.Motion]
    J: Array

    def point(self, frame: Frame) -> Vector:
        """World position of the origin of a frame, m."""
        p: Vector = self.placements[frame.joint].act(frame.placement.translation)
        return p

    def bias_accelerations(self, frames: Sequence[Frame]) -> Array:
        """(n, 6): ``Jdot v`` of the bodies that carry the frames, spatial, world axes and origin.

        Not from Pinocchio's dJ, which ignores the motion of the axes within composite and universal
        joints.
        """
        return np.array(
            [self.placements[f.joint].act(self.accelerations[f.joint]).vector for f in frames]
        )


def kinematics(model: pin.Model, data: pin.Data, q: Vector, v: Vector, t: float) -> Kinematics:
    """The kinematics of `model` at (q, v); `data` is a workspace and may be used again."""
    # copies, because data holds views that the next call overwrites
    accelerations: Sequence[pin.Motion]
    if np.count_nonzero(v):
        at_zero = np.zeros(model.nv)  # explicit zeros, because otherwise data.a is stale
        pin.forwardKinematics(model, data, q, v, at_zero)
        accelerations = pin.StdVec_Motion(data.a)
    else:
        pin.forwardKinematics(model, data, q)
        accelerations = (pin.Motion.Zero(),) * model.njoints
    pin.computeJointJacobians(model, data)
    # With one coordinate the bindings give J as a vector, hence the shape.
    J = data.J.reshape(6, model.nv).copy()
    q, v = q.view(), v.view()  # a view, because the array may be the caller's
    for seen in (q, v, J):
        seen.flags.writeable = False
    return Kinematics(q, v, t, pin.StdVec_SE3(data.oMi), accelerations, J)


def place(model: pin.Model, q: Vector, frame: Frame) -> pin.SE3:
    """World placement of a frame at q."""
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    return data.oMi[frame.joint] * frame.placement
