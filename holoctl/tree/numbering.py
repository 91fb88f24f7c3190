"""The numbering of joints: depth-first, as Pinocchio's algorithms need it.

The descendants of every joint follow it without a gap; siblings are in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.base.errors import InputError
from holoctl.tree.frozen_model import check_model, plain

__all__ = ["depth_first_order", "is_depth_first", "renumbered", "with_locked_joints"]


def depth_first_order(model: pin.Model) -> list[int]:
    """Joint indices in depth-first order, the world first, siblings in their given order."""
    model = plain(model)
    children: list[list[int]] = [[] for _ in range(model.njoints)]
    for j in range(1, model.njoints):
        children[model.parents[j]].append(j)
    order: list[int] = []
    stack = [0]
    while stack:
        j = stack.pop()
        order.append(j)
        stack += reversed(children[j])
    return order


def is_depth_first(model: pin.Model) -> bool:
    """Whether the descendants of every joint follow it without a gap."""
    return depth_first_order(model) == list(range(model.njoints))


def renumbered(model: pin.Model) -> pin.Model:
    """A copy of `model` with its joints numbered depth-first.

    Pinocchio's composite-rigid-body algorithm, its sparse factorisations and its constraint
    Jacobians need that numbering and give wrong numbers without it, silently. Joints keep
    their names, siblings their order; inertias, limits, gains, frames, gravity and reference
    configurations move along. The entries of q and v are those of the new order.

    Parameters
    ----------
    model : pin.Model
        Any kinematic tree. It is not changed.

    Returns
    -------
    pin.Model
        The renumbered copy.

    Raises
    ------
    InputError
        If `model` is not a pin.Model, or has mimic joints.

    See Also
    --------
    Mechanism : requires this numbering.

    Examples
    --------
    >>> import pinocchio as pin, holoctl as hc
    >>> model = pin.Model()
    >>> for name, parent in (("left", 0), ("right", 0), ("left_hand", 1)):
    ...     _ = model.addJoint(parent, pin.JointModelRZ(), pin.SE3.Identity(), name)
    >>> list(hc.renumbered(model).names)
    ['universe', 'left', 'left_hand', 'right']
    """
    check_model(model, "renumbered")
    if len(model.mimicking_joints):
        raise InputError(
            "renumbered: the model has mimic joints; build it without (mimic=False) and "
            "impose each as a hc.Coupling"
        )
    return _rebuilt(model, range(1, model.njoints), {})


def with_locked_joints(model: pin.Model, kept: Collection[int], q: Vector) -> pin.Model:
    """A copy with some joints alone; the others are welded at q, and frames of their names stay.

    Unlike `pin.buildReducedModel`, it takes a `renumbered` model too, and keeps the frames of
    bodies apart from those of joints.

    Parameters
    ----------
    model : pin.Model
    kept : collection of int
        The joints that stay.
    q : (nq,) array
        The configuration of the others.
    """
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    locked = {j: data.liMi[j].copy() for j in range(1, model.njoints) if j not in kept}
    return _rebuilt(model, kept, locked)


def _rebuilt(model: pin.Model, kept: Collection[int], locked: Mapping[int, pin.SE3]) -> pin.Model:
    """The model of the joints `kept`, depth-first; `locked` has the placements of the others in
    their parents."""
    order = [j for j in depth_first_order(model)[1:] if j in kept]
    new = pin.Model()
    new.name, new.gravity = model.name, model.gravity.copy()
    place, inside = {0: 0}, {0: pin.SE3.Identity()}
    new.inertias[0] = model.inertias[0]
    for j in depth_first_order(model)[1:]:
        above = int(model.parents[j])
        if j in locked:
            place[j], inside[j] = place[above], inside[above] * locked[j]
            new.appendBodyToJoint(place[j], model.inertias[j], inside[j])
            continue
        inside[j] = pin.SE3.Identity()
        placement = inside[above] * model.jointPlacements[j]
        place[j] = new.addJoint(place[above], model.joints[j], placement, model.names[j])
        new.inertias[place[j]] = model.inertias[j]
    of_v = np.concatenate(
        [np.arange(model.nvs[j]) + model.idx_vs[j] for j in order] or [np.zeros(0)]
    ).astype(int)
    of_q = np.concatenate(
        [np.arange(model.nqs[j]) + model.idx_qs[j] for j in order] or [np.zeros(0)]
    ).astype(int)
    for per_v in _PER_VELOCITY:
        setattr(new, per_v, getattr(model, per_v)[of_v])
    for per_q in _PER_CONFIGURATION:
        setattr(new, per_q, getattr(model, per_q)[of_q])
    frame_place: dict[int, int] = {0: 0}
    for i, f in enumerate(model.frames):
        if i:
            fixed = f.parentJoint in locked
            moved = pin.Frame(
                f.name, place[f.parentJoint], frame_place.get(f.parentFrame, 0),
                inside[f.parentJoint] * f.placement,
                pin.FrameType.FIXED_JOINT if fixed and f.type == pin.FrameType.JOINT else f.type,
                f.inertia,
            )  # fmt: skip
            frame_place[i] = new.addFrame(moved, False)
    names = {f.name for f in new.frames}
    for j in locked:
        if model.names[j] not in names:
            own = pin.Frame(model.names[j], place[j], 0, inside[j], pin.FrameType.OP_FRAME)
            new.addFrame(own, False)
    for entry in model.referenceConfigurations:
        new.referenceConfigurations[entry.key()] = entry.data()[of_q]
    return new


_PER_VELOCITY = (
    "armature", "damping", "rotorInertia", "rotorGearRatio",
    "lowerEffortLimit", "upperEffortLimit", "lowerVelocityLimit", "upperVelocityLimit",
    "lowerDryFrictionLimit", "upperDryFrictionLimit",
)  # fmt: skip

_PER_CONFIGURATION = ("lowerPositionLimit", "upperPositionLimit", "positionLimitMargin")
