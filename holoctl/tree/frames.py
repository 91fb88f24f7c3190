"""Frames fixed to bodies, found by name.

A name is looked up as a joint first, then as a body, then as any other frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pinocchio as pin

from holoctl.base.checks import listing, one_of, plain_name, quoted, suggestion
from holoctl.base.errors import InputError
from holoctl.tree.frozen_model import check_model, has_joint, plain
from holoctl.tree.frozen_placement import FrozenPlacement
from holoctl.tree.supported_joints import check_placement

__all__ = [
    "AXES",
    "LETTERS",
    "POSE_AXES",
    "Frame",
    "FrameLike",
    "default_pair_name",
    "frames_of_two_bodies",
    "named_axes",
    "own_frame",
    "resolve_frame",
]

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
"""The axes of a frame, by letter."""

LETTERS = tuple(AXES)
"""x, y, z, in order."""

POSE_AXES = ("x", "y", "z", "rx", "ry", "rz")
"""Along and about the axes of a frame."""

FrameLike = str | tuple[str, pin.SE3]
"""The name of a joint, body or frame, or (such a name or "universe", placement in it)."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame fixed to a body.

    Attributes
    ----------
    joint : int
        Index of the joint that moves the body; 0 for the world.
    placement : pin.SE3
        The frame in the axes of that joint.
    name : str

    See Also
    --------
    protocols.resolve_frame : returns it.
    protocols.Kinematics : places it at a state.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> frame = hc.protocols.resolve_frame(mech.model, "tip_right", "example")
    >>> mech.model.names[frame.joint], frame.placement.translation[0].round(3).tolist()
    ('elbow_right', 0.35)
    """

    joint: int
    placement: pin.SE3
    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.placement, FrozenPlacement):
            object.__setattr__(self, "placement", FrozenPlacement(self.placement))


def resolve_frame(model: pin.Model, frame: Any, owner: str) -> Frame:
    """Find a frame by name (a joint first, then a body, then any other frame), or check a pair.

    Parameters
    ----------
    model : pin.Model
    frame : str or (str, pin.SE3)
        A name, or a name and a placement relative to the joint, body or frame of that name.
    owner : str
        The subject of error messages, such as ``"Rod 'tie'"``.

    Returns
    -------
    Frame

    Raises
    ------
    InputError
        For an argument that is neither a name nor a pair, an unknown name, a name of several
        frames, or an invalid placement.

    See Also
    --------
    protocols.Frame : the result.
    protocols.wrench_rows : takes frames.

    Examples
    --------
    >>> import holoctl as hc
    >>> model = hc.load(hc.robot_file("five_bar")).model
    >>> frame = hc.protocols.resolve_frame(model, "tip_left", "example")
    >>> frame.name, frame.joint
    ('tip_left', 2)
    """
    check_model(model, owner)
    model = plain(model)
    if isinstance(frame, tuple) and len(frame) == 2 and isinstance(frame[1], pin.SE3):
        name, placement = frame
        if not isinstance(name, str):
            raise InputError(f"{owner}: {name!r} is no name of a joint, body or frame")
        base = resolve_frame(model, name, owner)
        check_placement(f"{owner}: the placement given in {name!r}", placement)
        return Frame(base.joint, base.placement * placement, name)
    if not isinstance(frame, str):
        raise InputError(
            f"{owner}: a frame is the name of a joint, body or frame of the model, or "
            f"(such a name, pin.SE3); got {quoted(frame)}"
        )
    if has_joint(model, frame):
        return Frame(model.getJointId(frame), pin.SE3.Identity(), frame)
    named = [f for f in model.frames if f.name == frame]
    found = [f for f in named if f.type == pin.FrameType.BODY] or named
    if len(found) > 1:
        raise InputError(
            f"{owner}: {frame!r} names {len(found)} frames of the model; "
            "give (joint name, pin.SE3) instead"
        )
    if not found:
        names = list(dict.fromkeys([*model.names, *(f.name for f in model.frames)]))
        raise InputError(
            f"{owner}: there is no joint or frame called {frame!r}"
            f"{suggestion(frame, names)}; valid names: {listing(names)}"
        )
    return Frame(found[0].parentJoint, found[0].placement.copy(), frame)


def frames_of_two_bodies(
    model: pin.Model, frames: tuple[Any, Any], owner: str, so: str
) -> tuple[Frame, Frame]:
    """`resolve_frame` of two frames, which must be fixed to different bodies.

    `so` is the consequence if they are not, for the message.

    Raises
    ------
    InputError
        If a name is unknown, or both are fixed to one body.
    """
    a, b = (resolve_frame(model, frame, owner) for frame in frames)
    if a.joint == b.joint:
        raise InputError(
            f"{owner}: {a.name!r} and {b.name!r} are fixed to the same body, so {so}; is one of "
            "the names wrong?"
        )
    return a, b


def default_pair_name(*frames: Any) -> str:
    """``a-b`` from the names of frames, or of the joints that they are placed in."""
    return "-".join(plain_name(f[0] if isinstance(f, tuple) and f else f) for f in frames)


def own_frame(frame: FrameLike) -> FrameLike:
    """The frame, with a read-only copy of its placement."""
    if isinstance(frame, tuple) and len(frame) == 2 and isinstance(frame[1], pin.SE3):
        return (frame[0], FrozenPlacement(frame[1]))
    return frame


def named_axes(owner: str, given: Any, valid: tuple[str, ...]) -> tuple[str, ...]:
    """The axes in ``"x y rz"``, or in a sequence of such names.

    Parameters
    ----------
    owner : str
        The subject of error messages, such as ``"FrameTask 'tip'"``.
    given : str or sequence of str
    valid : tuple of str
        `LETTERS` or `POSE_AXES`.

    Raises
    ------
    InputError
        For axes other than these, an axis named twice, or no axis.
    """
    axes = given.split() if isinstance(given, str) else given
    if not isinstance(axes, (tuple, list)) or not axes:
        raise InputError(
            f"{owner}: axes must be any of {quoted(' '.join(valid))}; got {quoted(given)}"
        )
    for axis in axes:
        one_of(f"{owner}: axes", axis, valid)
    if len(set(axes)) < len(axes):
        raise InputError(f"{owner}: axes names one twice: {' '.join(axes)!r}")
    return tuple(axes)
