"""Rods: a constant distance between two points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, positive, quoted
from holoctl.base.errors import InputError
from holoctl.constraints.kinds import rod
from holoctl.constraints.wrench_rows import WrenchRows, wrench_rows
from holoctl.tree.frames import FrameLike, default_pair_name, frames_of_two_bodies, own_frame
from holoctl.tree.kinematics import place

__all__ = ["Rod"]


@dataclass(frozen=True)
class Rod:
    """A massless rod with ball joints at both ends: the points `a` and `b` stay `length` apart.

    One row, ``(d . d - length^2) / (2 length)`` with d from `a` to `b`: near the manifold the
    error in m. Its multiplier is the force in the rod, N, positive in compression (it pushes
    `b` away from `a`).

    Parameters
    ----------
    a, b : str or (str, pin.SE3)
        Two frames, whose origins are the ends of the rod: as in `Closure`.
    length : float, optional
        m, above zero. Default: the distance at the mechanism's reference configuration.
    name : str, optional
        Default: ``"a-b"``.
    t_stab : float, optional
        Time constant of Baumgarte's stabilisation, s. Default: none.

    Raises
    ------
    InputError
        For a length that is not above zero. Raised by `Mechanism` also for a length taken from a
        reference configuration at which the points coincide.

    See Also
    --------
    Closure : a joint, or a subset of axes.
    Spring : a rod that yields.
    constraint_wrenches : the force in the rod.

    Examples
    --------
    A rod from elbow to elbow takes one of two motions away:

    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> tie = hc.Rod("elbow_left", "elbow_right", name="tie")
    >>> hc.mobility(mech.with_constraints(tie)).dof
    1
    """

    a: FrameLike
    b: FrameLike
    length: float | None = None
    name: str | None = None
    t_stab: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", own_frame(self.a))
        object.__setattr__(self, "b", own_frame(self.b))
        if self.length is not None:
            positive(f"Rod {quoted(self.default_name)}: length", self.length, "m")
        if self.t_stab is not None:
            positive(f"Rod {self.default_name!r}: t_stab", self.t_stab, "s")

    @property
    def default_name(self) -> str:
        """The name as given, or ``"a-b"``."""
        return self.name if self.name is not None else default_pair_name(self.a, self.b)

    def bind(self, model: pin.Model, name: str, reference: Vector) -> WrenchRows:
        """The row of this rod on `model`."""
        owner = f"Rod {name!r}"
        why = "the rod cannot constrain any motion"
        frame1, frame2 = frames_of_two_bodies(model, (self.a, self.b), owner, why)
        length = self.length
        if length is None:
            p1 = place(model, reference, frame1).translation
            p2 = place(model, reference, frame2).translation
            length = float(np.linalg.norm(p2 - p1))
            if length <= 1e-9:
                raise InputError(
                    f"{owner}: its ends coincide at the reference configuration, so it has no "
                    "length there; give length=, or a Mechanism with reference="
                )
        return wrench_rows(model, frame1, frame2, [rod("length", length)], name)
