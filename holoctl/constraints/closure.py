"""Joints that close a loop, and any subset of the six axes between two frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pinocchio as pin

from holoctl.base.checks import Vector, listing, number, one_of, positive, quoted
from holoctl.base.errors import InputError
from holoctl.constraints.kinds import SCREW, Row, direction, linear, orientation, screw
from holoctl.constraints.wrench_rows import WrenchRows, wrench_rows
from holoctl.tree.frames import (
    AXES,
    FrameLike,
    default_pair_name,
    frames_of_two_bodies,
    own_frame,
)

__all__ = ["JOINTS", "Closure", "check_pitch"]


def _parallel(label: str, of1: str, of2: str) -> Row:
    """Axis `of1` of frame 1 stays perpendicular to axis `of2` of frame 2."""
    return direction(label, AXES[of1], AXES[of2])


_POINT = tuple(linear(axis, AXES[axis]) for axis in "xyz")
_TURN = tuple(orientation("r" + axis, i) for i, axis in enumerate("xyz"))
_Z_PARALLEL = (_parallel("ry", "x", "z"), _parallel("rx", "y", "z"))

JOINTS: dict[str, tuple[Row, ...]] = {
    "spherical": _POINT,
    "revolute": (*_POINT, *_Z_PARALLEL),
    "universal": (*_POINT, _parallel("rz", "x", "y")),
    "cylindrical": (*_POINT[:2], *_Z_PARALLEL),
    "prismatic": (*_POINT[:2], *_TURN),
    "planar": (_POINT[2], *_Z_PARALLEL),
    "weld": (*_POINT, *_TURN),
    "screw": (*_POINT[:2], *_Z_PARALLEL, screw("screw", 1.0)),
}
"""The rows of each joint. Axes: z for revolute, prismatic, cylindrical, screw; the normal z for
planar; universal keeps x of frame 1 perpendicular to y of frame 2. The pitch of a screw is given by
its `Closure`."""

_ONE_WAY = ("revolute", "cylindrical", "planar", "screw")
"""Joints whose rows also vanish with axes z in opposite directions."""

# One angular axis: the two axes whose angle changes when b turns about it.
_ONE_ANGLE = {"rx": ("y", "z"), "ry": ("z", "x"), "rz": ("x", "y")}


@dataclass(frozen=True)
class Closure:
    """A joint, or a subset of axes, that ties frame `b` to frame `a`.

    The error is `b` seen from `a`, in the axes of `a`: linear rows in m; angular rows in rad for
    small angles, up to sign: rows of an orientation (weld, prismatic, three angular axes) grow with
    the angle, the others are cosines between two axes (docs/derivations.md, "Closure rows"). The
    multiplier of a row is the force (N) or moment (N m) on the body of `b` that does work as the
    error grows; the opposite acts on the body of `a`.

    Parameters
    ----------
    a, b : str or (str, pin.SE3)
        Two frames: the name of a joint (looked up first), body or frame of the model, or a
        joint name (or ``"universe"``, the world) with a placement in it.
    joint : str, optional
        ``"spherical"``, ``"revolute"``, ``"universal"``, ``"cylindrical"``, ``"prismatic"``,
        ``"planar"``, ``"screw"`` or ``"weld"``. The axis is z of both frames for revolute,
        cylindrical, prismatic and screw, the normal z for planar; universal keeps x of `a`
        perpendicular to y of `b`.
    axes : str, optional
        Instead of `joint`: any of ``"x y z rx ry rz"``, which become rows in the order
        written. One angular axis fixes an angle and leaves the other two free; two keep the
        remaining axis of both frames parallel; three fix the orientation.
    name : str, optional
        Name for messages, multipliers and reports. Default: ``"a-b"``.
    t_stab : float, optional
        Time constant of Baumgarte's stabilisation of these rows, s. Default: none.
    pitch : float, optional
        Pitch of a screw, m/rad: the translation of `b` along z for each radian that it turns about
        z; right-handed if positive. The row is ``pitch wrap(z / pitch - angle)``, with wrap to half
        a turn, because frames cannot count turns: any number of turns satisfies it.

    Raises
    ------
    InputError
        For an unknown joint or axis, both or neither of `joint` and `axes`, a time constant
        that is not above zero, a screw whose pitch is zero or not finite. Unknown frames are
        refused by `Mechanism`.

    See Also
    --------
    Rod : two points at a constant distance.
    Coupling : gears, belts and other linear relations of coordinates.
    joint_motion : position and rate of a joint that is cut.
    constraint_wrenches : forces and moments in the closure.

    Notes
    -----
    Angular rows of revolute, cylindrical and planar closures also vanish with the axes of the
    frames in opposite directions; `assemble` searches for the parallel solution and raises an error
    when only the opposite one exists. A single angular axis fixes its angle up to half a turn:
    assembly stays on the side of the guess.

    Examples
    --------
    >>> import pinocchio as pin, holoctl as hc
    >>> tree = pin.buildModelFromUrdf(str(hc.robot_file("four_bar")))
    >>> hinge = hc.Closure("coupler_pin", "rocker_pin", "revolute", name="pin")
    >>> hc.Mechanism(tree, [hinge], actuated=["crank"]).row_names
    ('pin.x', 'pin.y', 'pin.z', 'pin.ry', 'pin.rx')
    """

    a: FrameLike
    b: FrameLike
    joint: str | None = None
    axes: str | None = None
    name: str | None = None
    t_stab: float | None = None
    pitch: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", own_frame(self.a))
        object.__setattr__(self, "b", own_frame(self.b))
        owner = f"Closure {quoted(self.default_name)}"
        if (self.joint is None) == (self.axes is None):
            raise InputError(
                f"{owner}: give one of joint= and axes=; got joint={quoted(self.joint)}, "
                f"axes={quoted(self.axes)}; joints: {listing(list(JOINTS))}; axes: any of "
                "'x y z rx ry rz'"
            )
        if self.joint is not None:
            one_of(f"{owner}: joint", self.joint, list(JOINTS))
        if self.axes is not None:
            _subset(self.axes, owner)
        check_pitch(owner, self.joint, self.pitch)
        if self.t_stab is not None:
            positive(f"{owner}: t_stab", self.t_stab, "s")

    @property
    def default_name(self) -> str:
        """The name as given, or ``"a-b"``."""
        return self.name if self.name is not None else default_pair_name(self.a, self.b)

    @property
    def parallel_axis(self) -> str | None:
        """The axis that must point in the same direction in both frames, if the rows allow both
        directions."""
        if self.joint is not None:
            return "z" if self.joint in _ONE_WAY else None
        angular = [axis for axis in str(self.axes).split() if axis in _ONE_ANGLE]
        return _remaining(angular) if len(angular) == 2 else None

    def bind(self, model: pin.Model, name: str, reference: Vector) -> WrenchRows:
        """Rows of this closure on `model`."""
        owner = f"Closure {name!r}"
        rows = JOINTS[self.joint] if self.joint is not None else _subset(str(self.axes), owner)
        if self.pitch is not None:
            rows = tuple(screw(r.label, self.pitch) if r.kind is SCREW else r for r in rows)
        why = "the closure cannot constrain any motion"
        frames = frames_of_two_bodies(model, (self.a, self.b), owner, why)
        return wrench_rows(model, *frames, rows, name)


def check_pitch(owner: str, joint: str | None, pitch: Any) -> None:
    """Raise `InputError` for a screw without a valid pitch, or another joint with one."""
    if (joint == "screw") != (pitch is not None):
        raise InputError(
            f"{owner}: a screw, and no other joint, has a pitch=, m/rad (lead over 2 pi); got "
            f"{quoted(joint)} with pitch={quoted(pitch)}"
        )
    if pitch is not None and abs(number(f"{owner}: pitch", pitch, "m/rad")) < 1e-100:
        raise InputError(f"{owner}: the pitch must not be zero; a revolute joint turns without it")


def _remaining(angular: list[str]) -> str:
    return next(axis for axis in "xyz" if "r" + axis not in angular)


def _subset(axes: str, owner: str) -> tuple[Row, ...]:
    """Rows of an axis subset, in the order written."""
    words = axes.split() if isinstance(axes, str) else []
    unknown = [word for word in words if word not in (*AXES, *_ONE_ANGLE)]
    if not words or unknown or len(set(words)) != len(words):
        raise InputError(
            f"{owner}: axes must be one or more of 'x y z rx ry rz', each once; got {quoted(axes)}"
        )
    angular = [word for word in words if word in _ONE_ANGLE]
    rows: list[Row] = []
    for word in words:
        if word in AXES:
            rows.append(linear(word, AXES[word]))
        elif len(angular) == 3:
            rows.append(orientation(word, "xyz".index(word[1])))
        elif len(angular) == 2:
            # turning about `word` tilts the kept axis towards the third one
            kept = _remaining(angular)
            third = next(axis for axis in "xyz" if axis not in (kept, word[1]))
            rows.append(_parallel(word, third, kept))
        else:
            rows.append(_parallel(word, *_ONE_ANGLE[word]))
    return tuple(rows)
