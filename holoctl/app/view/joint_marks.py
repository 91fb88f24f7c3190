"""Marks of the joints in the view: an axle for each axis of rotation, a collar for each motor on a
prismatic joint, a ball for any other joint.

Motors have their own color and are larger. A mark is fixed in a body, so that it is at its joint at
every configuration.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from holoctl.app.body_lines import DRAWN_LENGTH, fastened
from holoctl.app.palette import JOINT, MOTOR
from holoctl.app.view.capsules import slides, thickness
from holoctl.app.view.shapes import Shape, Solid, ball, color_of, cylinder, lying
from holoctl.base.checks import Vector
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.frozen_model import plain

__all__ = ["joint_marks", "motor_joints"]

_AXLE, _MOTOR, _LENGTH = 1.25, 1.8, 3.2
"""Radii of the mark of a joint and of a motor, and the length of an axle, in radii of the thickest
bar."""

_COLLAR = 1.65
"""Radius of the collar of a motor on a prismatic joint, in radii of the thickest bar."""


def joint_marks(mech: Mechanism) -> tuple[Shape, ...]:
    """The marks of all joints that are attached to their parent body, in the order of joints.

    A prismatic joint has a mark if a motor drives it: it is drawn as a rod in a sleeve.
    """
    model, thick, motors = plain(mech.model), thickness(mech), motor_joints(mech)
    sliding, found = {one.joint: one for one in slides(mech)}, list[Shape]()
    for j in fastened(mech):
        driven = j in motors
        radius, color = (_MOTOR, MOTOR) if driven else (_AXLE, JOINT)
        solid: Solid
        at, placement = j, pin.SE3.Identity()
        if (slide := sliding.get(j)) is not None:
            if not driven:
                continue
            half = 0.5 * _LENGTH * thick * slide.axis
            middle = slide.place - (half if slide.of_a_bar else 0.0)
            placement, length = lying(middle - half, middle + half)
            solid, at = cylinder(_COLLAR * thick, length), slide.parent
            if slide.parent == 0:  # on the carriage
                at, placement = j, model.jointPlacements[j].actInv(placement)
        elif (axis := _axis(mech, j)) is not None:
            placement, length = lying(-0.5 * _LENGTH * thick * axis, 0.5 * _LENGTH * thick * axis)
            solid = cylinder(radius * thick, length * (1.1 if driven else 1.0))
        else:
            solid = ball(radius * thick)
        found.append(Shape.of(solid, at, placement, model.names[j], color_of(color)))
    return tuple(found)


def motor_joints(mech: Mechanism) -> frozenset[int]:
    """The joints on which motors act."""
    driven = np.abs(mech.B).max(axis=1, initial=0.0) > 0.0
    return frozenset(int(j) for j in mech.joint_of[driven])


def _axis(mech: Mechanism, joint: int) -> Vector | None:
    """The unit axis of a joint of one rotation, in its frame; None for other joints."""
    model, data = plain(mech.model), workspace(mech)
    if model.nvs[joint] != 1:
        return None
    pin.computeJointJacobians(model, data, pin.neutral(model))
    J = pin.getJointJacobian(model, data, joint, pin.LOCAL).reshape(6, -1)
    axis: Vector = J[3:, model.idx_vs[joint]]
    size = float(np.linalg.norm(axis))
    return axis / size if size > DRAWN_LENGTH else None
