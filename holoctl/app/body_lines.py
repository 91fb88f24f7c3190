"""Lines that stand for bodies, each fixed in its body: what pictures and the view both draw.

    p = X_j a ... X_j b        the line from a to b in joint j, in the world

A body is lines from its joint to what is fastened to it: further joints, frames of closures; where
there are none, its fixed frames, or its centre of mass.
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
        Where it ends, m, in the frame of the joint.
    """

    joint: int
    end: Vector


def fastened(mech: Mechanism) -> tuple[int, ...]:
    """Joints that are fastened to what they stand in: not those that float, or move in a plane."""
    lengths = np.bincount(mech.joint_of[mech.lengths[1]], minlength=mech.model.njoints)
    return tuple(j for j in range(1, mech.model.njoints) if lengths[j] < 2)


def body_lines(mech: Mechanism) -> tuple[BodyLine, ...]:
    """The lines of all bodies but the ground, in the order of joints, then of constraints; lines
    of no length, and such as stand twice, are among them."""
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
    """Of a body that nothing is fastened to: its fixed frames, else its centre of mass."""
    frames = [
        f.placement.translation
        for f in model.frames
        if f.parentJoint == j and f.type in (pin.FrameType.BODY, pin.FrameType.OP_FRAME)
    ]
    frames = [p for p in frames if np.linalg.norm(p) > DRAWN_LENGTH]
    return frames or [model.inertias[j].lever.copy()]
