"""Lines that represent bodies in pictures and in the view, each fixed in its body.

    p = X_j a ... X_j b        the line from a to b in joint j, in the world

A body is drawn as lines from its joint to the joints and the frames of closures that are attached
to it; if there are none, to its fixed frames, or to its centre of mass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import plain

__all__ = ["BodyLine", "body_lines", "fastened"]

DRAWN_LENGTH = 1e-9  # m
"""Shorter lines are not drawn."""


@dataclass(frozen=True, eq=False)
class BodyLine:
    """A line fixed in a body, from the origin of its joint.

    Attributes
    ----------
    joint : int
        Index of the joint that moves the body, above 0.
    end : (3,) array
        Its end in the frame of the joint, m.
    """

    joint: int
    end: Vector


def fastened(mech: Mechanism) -> tuple[int, ...]:
    """Joints that are attached to their parent body: not those that float, or move in a plane."""
    lengths = np.bincount(mech.joint_of[mech.lengths[1]], minlength=mech.model.njoints)
    return tuple(j for j in range(1, mech.model.njoints) if lengths[j] < 2)


def body_lines(mech: Mechanism) -> tuple[BodyLine, ...]:
    """The lines of all bodies except the ground, in the order of joints, then of constraints; lines
    of zero length and duplicates are included."""
    model, lines, held = plain(mech.model), list[BodyLine](), set(fastened(mech))
    anchors = [f for b in mech.bound for f in b.anchors if f.joint]
    anchored = {f.joint for f in anchors}
    for j in range(1, model.njoints):
        if j in held and (parent := int(model.parents[j])):
            lines.append(BodyLine(parent, model.jointPlacements[j].translation.copy()))
        if not model.children[j] and j not in anchored:
            lines += [BodyLine(j, end) for end in _ends(model, j)]
    return (*lines, *(BodyLine(f.joint, f.placement.translation) for f in anchors))


def _ends(model: pin.Model, j: int) -> list[Vector]:
    """Ends of lines in a body without attached joints or closures: its fixed frames, else its
    centre of mass."""
    frames = [
        f.placement.translation
        for f in model.frames
        if f.parentJoint == j and f.type in (pin.FrameType.BODY, pin.FrameType.OP_FRAME)
    ]
    frames = [p for p in frames if np.linalg.norm(p) > DRAWN_LENGTH]
    return frames or [model.inertias[j].lever.copy()]
