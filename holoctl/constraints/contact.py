"""Point contacts with the ground: bilateral rows, along a normal and two tangents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, entries, positive, quiet, quoted, vector
from holoctl.base.errors import InputError
from holoctl.base.renamed import former_names
from holoctl.constraints.kinds import linear
from holoctl.constraints.wrench_rows import WrenchRows, wrench_rows
from holoctl.tree.frames import Frame, FrameLike, default_pair_name, own_frame, resolve_frame
from holoctl.tree.kinematics import place

__all__ = ["Contact"]


@former_names(frame="point")
@dataclass(frozen=True, eq=False)
class Contact:
    """A point of a body that stays at a point of the ground, or slides along it.

    Rows ``n . (p - ground) = 0``, m, for the normal and, if wanted, the tangents; all directions in
    world axes. The multiplier of a row is the force of the ground on the body along that direction,
    N. The contact is bilateral: a negative multiplier of the normal pulls. `UnilateralContact` only
    pushes.

    Parameters
    ----------
    frame : str or (str, pin.SE3)
        The frame whose origin touches the ground: as in `Closure`.
    normal : (3,) array_like, optional
        Direction out of the ground, world axes, of any length. Default: up, (0, 0, 1).
    tangents : bool or sequence of (3,), optional
        True: two directions at right angles to the normal. False: none, the point slides. Or
        one or two directions of your own, world axes.
    ground : (3,) array_like, optional
        The point of the ground, world, m. Default: the position of the point at the mechanism's
        reference configuration.
    name : str, optional
        Default: the name of the frame.
    t_stab : float, optional
        Time constant of Baumgarte's stabilisation, s. Default: none.

    Raises
    ------
    InputError
        For directions of length zero or that depend on each other, wrong shapes.

    See Also
    --------
    UnilateralContact : points that push, and hold by friction.
    impulse : the velocity after a foot lands.
    Closure : a joint between two bodies.
    Event : the instant at which a contact begins or ends.

    Examples
    --------
    A table under the tip takes one of two motions away:

    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> table = hc.Contact("tip_right", tangents=False, name="table")
    >>> hc.mobility(mech.with_constraints(table)).dof
    1
    """

    frame: FrameLike
    normal: Any = (0.0, 0.0, 1.0)
    tangents: bool | Sequence[Any] = True
    ground: Any = None
    name: str | None = None
    t_stab: float | None = None

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""
        owner = f"Contact {quoted(self.default_name)}"
        object.__setattr__(self, "frame", own_frame(self.frame))
        object.__setattr__(self, "normal", tuple(_unit(owner, "normal", self.normal)))
        object.__setattr__(self, "tangents", _tangents(owner, self.normal, self.tangents))
        if self.ground is not None:
            at = vector(f"{owner}: ground", self.ground, 3, "world point, m")
            object.__setattr__(self, "ground", tuple(at.tolist()))
        if self.t_stab is not None:
            positive(f"{owner}: t_stab", self.t_stab, "s")

    @property
    def default_name(self) -> str:
        """The name as given, or that of the frame."""
        return self.name if self.name is not None else default_pair_name(self.frame)

    def bind(self, model: pin.Model, name: str, reference: Vector) -> WrenchRows:
        """The rows of this contact on `model`: normal first."""
        owner = f"Contact {name!r}"
        touching = resolve_frame(model, self.frame, owner)
        if touching.joint == 0:
            raise InputError(
                f"{owner}: {touching.name!r} is fixed to the world, it cannot touch it"
            )
        at = self.ground
        if at is None:
            at = place(model, reference, touching).translation
        ground = Frame(0, pin.SE3(np.eye(3), np.array(at, dtype=float)), "universe")
        tangents: Any = self.tangents
        rows = [linear("normal", self.normal)]
        rows += [linear(f"tangent{i + 1}", direction) for i, direction in enumerate(tangents)]
        return wrench_rows(model, ground, touching, rows, name)


def _unit(owner: str, what: str, given: Any) -> list[float]:
    d = vector(f"{owner}: {what}", given, 3, "a direction in world axes")
    size = float(np.linalg.norm(d))
    if size < 1e-12:
        raise InputError(f"{owner}: {what} must have a direction; got {quoted(given)}")
    unit: list[float] = (d / size).tolist()
    return unit


def _tangents(owner: str, normal: Any, given: Any) -> tuple[tuple[float, ...], ...]:
    if given is False:
        return ()
    if given is True:
        n = np.array(normal)
        # the world axis least along the normal, made perpendicular to it
        t1 = np.eye(3)[int(np.argmin(np.abs(n)))]
        t1 = t1 - n * (n @ t1)
        t1 = t1 / np.linalg.norm(t1)
        return (tuple(t1.tolist()), tuple(np.cross(n, t1).tolist()))
    directions = entries(given)
    if directions is None:
        raise InputError(
            f"{owner}: tangents must be True, False or directions; got {quoted(given)}"
        )
    found = tuple(tuple(_unit(owner, "tangents", d)) for d in directions)
    if np.linalg.matrix_rank(np.array([normal, *found]), 1e-9) < 1 + len(found):
        raise InputError(
            f"{owner}: normal and tangents must be independent directions, three at most; got "
            f"{given!r}"
        )
    return found
