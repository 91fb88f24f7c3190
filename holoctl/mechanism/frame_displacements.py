"""Small displacements of joints and frames: the same mechanism with other geometry.

placement' = placement (exp(rotation), translation)        in the axes of the frame itself
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pinocchio as pin

from holoctl.base.checks import Vector, known_name, read_only, vector
from holoctl.base.errors import InputError
from holoctl.constraints.closure import Closure
from holoctl.constraints.constraint_protocol import Constraint
from holoctl.constraints.contact import Contact
from holoctl.constraints.rod import Rod
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import FrameLike

__all__ = ["Move", "frames_of", "movable", "moved"]


@dataclass(frozen=True, eq=False)
class Move:
    """A displacement of a joint, or of a frame of a constraint, relative to its placement before.

    Attributes
    ----------
    name : str
        That of a joint of the tree: its placement in its parent moves, together with all bodies
        that it carries. Or ``constraint.a``, ``constraint.b``, ``constraint.frame``: only that
        frame of a `Closure`, `Rod` or `Contact`.
    translation : (3,) array
        m, in the frame's own axes.
    rotation : (3,) array
        Rotation vector, rad, in the same axes.

    See Also
    --------
    repaired_geometry : returns them.
    results.RepairedGeometry : holds them.

    Examples
    --------
    A four-bar with a joint that is turned out of the plane by 3e-5 rad:

    >>> import dataclasses, pinocchio as pin, holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> model = mech.model.copy()
    >>> model.jointPlacements[2].rotation = pin.utils.rotate("x", 3e-5)
    >>> move = hc.repaired_geometry(dataclasses.replace(mech, model=model)).moves[0]
    >>> move.name, float(move.rotation[0].round(6))
    ('coupler', -3e-05)
    """

    name: str
    translation: Vector
    rotation: Vector

    def __post_init__(self) -> None:
        for what, unit in (("translation", "m"), ("rotation", "rad")):
            given = vector(f"Move {self.name!r}: {what}", getattr(self, what), 3, unit)
            object.__setattr__(self, what, read_only(given.copy()))

    @property
    def placement(self) -> pin.SE3:
        """The new frame relative to the old one."""
        return pin.SE3(pin.exp3(self.rotation), self.translation)


def frames_of(constraint: Constraint) -> tuple[str, ...]:
    """The fields that hold the frames of a constraint; none if it has none, or is user-defined."""
    if type(constraint) in (Closure, Rod):
        return ("a", "b")
    return ("frame",) if type(constraint) is Contact else ()


def movable(mech: Mechanism) -> tuple[str, ...]:
    """Names that can be displaced: joints in their order, then frames of constraints.

    Raises
    ------
    InputError
        If a joint has the same name as a frame of a constraint.
    """
    frames = [
        f"{name}.{side}"
        for name, constraint in zip(mech.constraint_names, mech.constraints, strict=True)
        for side in frames_of(constraint)
    ]
    names = (*list(mech.model.names)[1:], *frames)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{mech.name}: {twice[0]!r} is both a joint and a frame of a constraint; rename one"
        )
    return names


def moved(mech: Mechanism, moves: Sequence[Move]) -> Mechanism:
    """The mechanism with displaced joints and frames of constraints.

    Lengths of rods and points of contacts that were taken from the reference do not change.
    Constraints that are switched off (``mech.parked``) are not changed.

    Raises
    ------
    InputError
        For a name that is not `movable`, or occurs twice.
    """
    names, places = movable(mech), dict[str, pin.SE3]()
    for move in moves:
        known_name(move.name, names, "joint or frame of a constraint", f"{mech.name}: moved")
        if move.name in places:
            raise InputError(f"{mech.name}: moved: {move.name!r} is given twice")
        places[move.name] = move.placement
    if not places:
        return mech
    model = mech.model.copy()
    for j in range(1, model.njoints):
        if model.names[j] in places:
            model.jointPlacements[j] = model.jointPlacements[j] * places[model.names[j]]
    constraints = [
        _moved(constraint, name, mech.bound[i], places)
        for i, (name, constraint) in enumerate(
            zip(mech.constraint_names, mech.constraints, strict=True)
        )
    ]
    return replace(mech, model=model, constraints=constraints)


def _moved(constraint: Constraint, name: str, bound: Any, places: dict[str, pin.SE3]) -> Constraint:
    changes: dict[str, Any] = {}
    if type(constraint) is Rod and constraint.length is None:
        changes["length"] = float(bound.size[0])
    if type(constraint) is Contact and constraint.ground is None:
        changes["ground"] = tuple(bound.frames1[0].placement.translation.tolist())
    for side in frames_of(constraint):
        if (place := places.get(f"{name}.{side}")) is not None:
            changes[side] = _behind(getattr(constraint, side), place)
    if not changes:
        return constraint
    made: Any = constraint
    changed: Constraint = replace(made, **changes)
    return changed


def _behind(frame: FrameLike, place: pin.SE3) -> FrameLike:
    """The frame with the placement `place` in a frame."""
    if isinstance(frame, tuple):
        return (frame[0], pin.SE3(frame[1].rotation, frame[1].translation) * place)
    return (frame, place)
