"""Unilateral contacts: points of a body on the ground that push, and hold by dry friction.

    n . f >= least >= 0        n . f <= most                       at every point, f in N
    d_i . f <= friction cos(pi / facets) n . f                     i = 1 ... facets

f is the force of the ground on a point, n the normal out of the ground, and d_i are `facets`
directions in the ground at equal angles. The pyramid of these rows lies inside Coulomb's cone
|f_t| <= friction n . f and touches it along its edges, so that a force in it never slides.

Reference: docs/derivations-control.md, "Unilateral contacts".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, number, numbers, quiet, quoted, vector, whole
from holoctl.base.errors import InputError
from holoctl.constraints.contact import Contact
from holoctl.tree.frames import FrameLike, default_pair_name, own_frame

__all__ = ["UnilateralContact"]

LEAST_FACETS = 3


@dataclass(frozen=True, eq=False)
class UnilateralContact:
    """Points of a body that stand on the ground: they push, and hold by friction.

    The ground pushes with a force inside the friction cone of each point. A plane foot is several
    points, such as its four corners.

    Parameters
    ----------
    frame : str or (str, pin.SE3)
        A frame of the body: as in `Closure`.
    points : (n, 3) array_like, optional
        The points that touch the ground, in the axes of the frame, m. Default: its origin.
    normal : (3,) array_like, optional
        Direction out of the ground, world axes, of any length. Default: up, (0, 0, 1).
    friction : float, optional
        Coefficient of friction. 0: without friction, the points slide freely.
    facets : int, optional
        Number of faces of the pyramid in the cone, 3 or more. More faces are closer to the cone:
        4 keep friction of at least 0.71 of the coefficient in all directions, 8 of 0.92.
    least, most : float, optional
        Bounds of the normal force of each point, N. Default: 0 and none.
    name : str, optional
        Default: the name of the frame.
    ground : (3,) array_like, optional
        A point of the ground, world, m; the ground is the plane through it. Default: the origin.
    restitution : float, optional
        Coefficient of restitution e of an impact, 0 to 1 (Newton's): the normal velocity after it
        is -e times that before. Only a simulation uses it, and `ground`.

    Raises
    ------
    InputError
        For no points, a normal of length zero, a friction below zero, fewer than three facets,
        ``least`` below zero or not below ``most``, a restitution outside 0 to 1.

    See Also
    --------
    contact_inverse_dynamics : efforts of motors for a robot on such contacts.
    simulate : motion with such contacts, ``contacts=``.
    Contact : bilateral rows, of a point that also pulls.

    Examples
    --------
    >>> import holoctl as hc
    >>> corners = [(0.12, 0.05, 0), (0.12, -0.05, 0), (-0.08, 0.05, 0), (-0.08, -0.05, 0)]
    >>> foot = hc.UnilateralContact("ankle", corners, friction=0.7, name="left_foot")
    >>> [contact.name for contact in foot.bilateral]
    ['left_foot_1', 'left_foot_2', 'left_foot_3', 'left_foot_4']
    """

    frame: FrameLike
    points: Any = ((0.0, 0.0, 0.0),)
    normal: Any = (0.0, 0.0, 1.0)
    friction: float = 0.6
    facets: int = 4
    least: float = 0.0
    most: float = float("inf")
    name: str | None = None
    ground: Any = (0.0, 0.0, 0.0)
    restitution: float = 0.0

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""
        owner = f"UnilateralContact {quoted(self.default_name)}"
        points = numbers(f"{owner}: points", self.points, "points in the axes of the frame, m")
        if points.ndim != 2 or points.shape[1] != 3 or not points.size:
            raise InputError(
                f"{owner}: points must have shape (n, 3), one row for each point, n >= 1; got "
                f"shape {points.shape}"
            )
        if not np.isfinite(points).all():
            raise InputError(f"{owner}: points must be finite")
        friction = number(f"{owner}: friction", self.friction)
        least = number(f"{owner}: least", self.least, "N")
        endless = isinstance(self.most, float) and self.most == float("inf")
        most = float("inf") if endless else number(f"{owner}: most", self.most, "N")
        if friction < 0.0:
            raise InputError(f"{owner}: friction must not be negative; got {friction}")
        if not 0.0 <= least < most:
            raise InputError(
                f"{owner}: least must be zero or above, and below most: the ground only pushes; "
                f"got least {least} and most {most}"
            )
        restitution = number(f"{owner}: restitution", self.restitution)
        if not 0.0 <= restitution <= 1.0:
            raise InputError(f"{owner}: restitution must be from 0 to 1; got {restitution}")
        ground = vector(f"{owner}: ground", self.ground, 3, "a point of the ground, world, m")
        given: dict[str, Any] = {
            "ground": tuple(ground.tolist()), "restitution": restitution,
            "frame": own_frame(self.frame),
            "points": tuple(map(tuple, points.tolist())),
            "facets": whole(f"{owner}: facets", self.facets, LEAST_FACETS),
            "friction": friction, "least": least, "most": most,
        }  # fmt: skip
        for name, value in given.items():
            object.__setattr__(self, name, value)
        checked = Contact("", self.normal, name=self.default_name)
        object.__setattr__(self, "normal", checked.normal)

    @property
    def default_name(self) -> str:
        """The name as given, or that of the frame."""
        return self.name if self.name is not None else default_pair_name(self.frame)

    @cached_property
    def bilateral(self) -> tuple[Contact, ...]:
        """A `Contact` for each point: the same rows, without the conditions on forces.

        Without friction only the row of the normal.
        """
        given: Any = self.frame
        base, at = given if isinstance(given, tuple) else (given, pin.SE3.Identity())
        one = len(self.points) == 1
        return tuple(
            Contact(
                (base, at * pin.SE3(np.eye(3), np.array(point))),
                self.normal,
                tangents=self.friction > 0.0,
                name=self.default_name if one else f"{self.default_name}_{i}",
            )
            for i, point in enumerate(self.points, 1)
        )

    @property
    def axes(self) -> Array:
        """(rows, 3): the directions of the rows of a point, world axes, normal first."""
        contact = self.bilateral[0]
        tangents: Any = contact.tangents
        return np.array([contact.normal, *tangents])

    @property
    def cone(self) -> tuple[Array, Vector]:
        """``A x <= b`` for the forces x of a point along `axes`: facets, then least, then most."""
        rows: list[list[float]] = []
        if self.friction > 0.0:
            inside = self.friction * np.cos(np.pi / self.facets)
            angles = 2.0 * np.pi * np.arange(self.facets) / self.facets
            rows = [[-inside, np.cos(angle), np.sin(angle)] for angle in angles]
        width = 3 if rows else 1
        normal = [1.0, *(width - 1) * [0.0]]
        A = np.array([*rows, [-x for x in normal], normal])
        return A, np.array([*len(rows) * [0.0], -self.least, self.most])

    def pulled_and_slid(self, y: Vector) -> tuple[float, float, float]:
        """What multipliers of the rows of `cone` add up to: the shares of pulling, of sliding and
        of pressing beyond `most`.

        Faces on all sides together bound the normal force as `least` does. So sliding is the least
        sum of multipliers of faces with the same effect along the ground; the rest is pulling.
        """
        *faces, pulling, pressing = y.tolist()
        if not faces:
            return pulling, 0.0, pressing
        angles = np.pi / self.facets * np.arange(2 * self.facets)
        d = faces @ np.array([np.cos(angles[::2]), np.sin(angles[::2])]).T
        corners = np.array([np.cos(angles[1::2]), np.sin(angles[1::2])]) / np.cos(
            np.pi / self.facets
        )
        sliding = max(0.0, float((d @ corners).max()))
        inside = self.friction * np.cos(np.pi / self.facets)
        return pulling + inside * max(0.0, sum(faces) - sliding), sliding, pressing
