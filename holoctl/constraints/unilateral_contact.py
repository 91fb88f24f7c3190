"""Unilateral contacts: points of a body on the ground that push, and hold by dry friction.

    n . f >= least >= 0        n . f <= most                       at every point, f in N
    d_i . f <= friction cos(pi / facets) n . f                     i = 1 ... facets

f is the force of the ground on a point, n the normal out of the ground, and d_i are `facets`
directions in the ground at equal angles. The pyramid of these rows lies inside Coulomb's cone
|f_t| <= friction n . f and touches it along its edges, so that a force in it never slides.

Points of a plane foot act together: their forces add up to a wrench in a cone with 6 coordinates.
With a normal force of one, its section is the convex hull of the wrenches of the edges of all
pyramids; the facets of the hull are those of the cone.

Reference: docs/derivations-control.md, "Unilateral contacts".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from scipy.spatial import ConvexHull

from holoctl.base.checks import (
    Array,
    entries,
    listing,
    number,
    numbers,
    quiet,
    quoted,
    shown,
    vector,
    whole,
)
from holoctl.base.errors import InputError
from holoctl.constraints.contact import Contact
from holoctl.tree.frames import FrameLike, default_pair_name, own_frame

__all__ = [
    "Sole",
    "UnilateralContact",
    "checked_contacts",
    "edges_of_pyramid",
    "pyramid",
    "wrench_cone",
]

LEAST_FACETS = 3

ONE_LINE = 1e-6
"""Points lie in one line if they are within this of it, relative to their distances."""

ONE_PLANE = 1e-3
"""Points lie in one plane likewise."""

SAME_FACET = 1e-9
"""Facets of the scaled wrench cone with coefficients within this are the same."""


class Sole(NamedTuple):
    """The plane of the points of a foot.

    Attributes
    ----------
    placement : pin.SE3
        Its axes in those of the frame of the contact: origin in the middle of the points, z at
        right angles to the plane, to either side.
    points : (n, 2) array
        Along x and y, m.
    """

    placement: pin.SE3
    points: Array


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
        Direction out of the ground, axes of `relative_to`, of any length. Default: (0, 0, 1), up.
        Three points or more stand flat: the normal is that of their plane, and this tells its side.
    friction : float, optional
        Coefficient of friction. 0: without friction, the points slide freely.
    facets : int, optional
        Number of faces of the pyramid in the cone, 3 or more. More faces are closer to the cone:
        4 keep friction of at least 0.71 of the coefficient in all directions, 8 of 0.92. Those of a
        plane foot turn with it.
    least, most : float, optional
        Bounds of the normal force of each point, N. Default: 0 and none.
    name : str, optional
        Default: the name of the frame.
    relative_to : str or (str, pin.SE3), optional
        The body or frame that is the ground, such as an object in a hand. Default: the world.
    ground : (3,) array_like, optional
        A point of the ground, world, m; the ground is the plane through it. Default: the origin.
    restitution : float, optional
        Coefficient of restitution e of an impact, 0 to 1 (Newton's): the normal velocity after it
        is -e times that before. Only a simulation uses it, and `ground`.

    Raises
    ------
    InputError
        For no points, points of a foot that are not in one plane, a normal of length zero, a
        friction below zero, fewer than three facets, ``least`` below zero or not below ``most``, a
        restitution outside 0 to 1.

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
    relative_to: FrameLike = "universe"
    ground: Any = (0.0, 0.0, 0.0)
    restitution: float = 0.0

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""
        owner = f"UnilateralContact {quoted(self.default_name)}"
        if self.name is not None and not (isinstance(self.name, str) and self.name):
            raise InputError(f"{owner}: name must be a text that is not empty")
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
            "frame": own_frame(self.frame), "relative_to": own_frame(self.relative_to),
            "points": tuple(map(tuple, points.tolist())),
            "facets": whole(f"{owner}: facets", self.facets, LEAST_FACETS),
            "friction": friction, "least": least, "most": most,
        }  # fmt: skip
        for name, value in given.items():
            object.__setattr__(self, name, value)
        checked = Contact("", self.normal, name=self.default_name)
        object.__setattr__(self, "normal", checked.normal)
        sizes = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
        if len(points) > LEAST_FACETS and sizes[2] > ONE_PLANE * sizes[0]:
            raise InputError(
                f"{owner}: points must lie in one plane, that of a foot (off by "
                f"{sizes[2]:.2g} m); make a contact for each point of uneven ground"
            )

    @property
    def default_name(self) -> str:
        """The name as given, or that of the frame."""
        return self.name if self.name is not None else default_pair_name(self.frame)

    @cached_property
    def bilateral(self) -> tuple[Contact, ...]:
        """A `Contact` for each point: the same rows, without the conditions on forces.

        Without friction only the row of the normal.

        Raises
        ------
        InputError
            If the ground is not the world.
        """
        if self.relative_to != "universe":
            raise InputError(
                f"UnilateralContact {quoted(self.default_name)}: a Contact is with the world, and "
                "the ground of this contact is another frame (relative_to=); tie the two bodies by "
                "a Closure"
            )
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
    def ground_axes(self) -> Array:
        """(3, 3): two tangents and the normal as columns, in the axes of `relative_to`."""
        tangents: Any = Contact("", self.normal).tangents
        return np.array([*tangents, self.normal]).T

    @cached_property
    def sole(self) -> Sole | None:
        """The plane of the points; None for fewer than three, for points in one line, and where the
        load of single points is bounded by `most`."""
        points = np.array(self.points)
        middle = points.mean(axis=0)
        _, sizes, axes = np.linalg.svd(points - middle)
        if len(points) < LEAST_FACETS or sizes[1] <= ONE_LINE * sizes[0] or self.most < np.inf:
            return None
        z = axes[2]
        x = np.eye(3)[int(np.argmin(np.abs(z[:2])))]
        x = x - z * (z @ x)
        x /= np.linalg.norm(x)
        R = np.array([x, np.cross(z, x), z]).T
        return Sole(pin.SE3(R, middle), (points - middle) @ R[:, :2])


def pyramid(friction: float, facets: int) -> Array:
    """A with ``A f <= 0``: the faces of a pyramid, for f along two tangents and the normal; with
    friction zero f is along the normal, and there are no faces."""
    if friction == 0.0:
        return np.zeros((0, 1))
    angles = 2.0 * np.pi * np.arange(facets) / facets
    inside = np.full(facets, -friction * np.cos(np.pi / facets))
    return np.array([np.cos(angles), np.sin(angles), inside]).T


def edges_of_pyramid(friction: float, facets: int) -> Array:
    """(n, 2): the tangential forces along the edges of a pyramid with a normal force of one."""
    if friction == 0.0:
        return np.zeros((1, 2))
    angles = np.pi * (2.0 * np.arange(facets) + 1.0) / facets
    return friction * np.array([np.cos(angles), np.sin(angles)]).T


def wrench_cone(points: Array, friction: float, facets: int) -> Array:
    """A with ``A w <= 0``: the wrenches that points (n, 2) in a plane z = 0 push with.

    w = (fx, fy, fz, mx, my, mz) at the origin; with friction zero w = (fz, mx, my).
    """
    size = float(np.abs(points).max())
    x, y = np.repeat(points / size, 1 if friction == 0.0 else facets, axis=0).T
    fx, fy = np.tile(edges_of_pyramid(friction, facets).T, len(points))
    section = np.array([fx, fy, y, -x, x * fy - y * fx] if friction > 0.0 else [y, -x]).T
    spread = np.array(2 * [max(friction, 1e-300)] + [1.0, 1.0, friction])
    unit = spread if friction > 0.0 else np.ones(2)
    equations = ConvexHull(section / unit).equations  # normal . x + offset <= 0
    _, first = np.unique(np.round(equations / SAME_FACET), axis=0, return_index=True)
    normals, offsets = equations[np.sort(first), :-1] / unit, equations[np.sort(first), -1:]
    forces, moments = np.split(normals, [-3 if friction > 0.0 else 0], axis=1)
    return np.hstack([forces, offsets, moments / size])


def checked_contacts(contacts: Any) -> tuple[UnilateralContact, ...]:
    """The contacts that a caller gives.

    Raises
    ------
    InputError
        For anything else, and for two contacts of one name.
    """
    given = [contacts] if isinstance(contacts, UnilateralContact) else entries(contacts)
    if given is None or not all(isinstance(one, UnilateralContact) for one in given):
        raise InputError(
            f"contacts must be a list of hc.UnilateralContact; got {shown(contacts)!r}"
        )
    names = [contact.default_name for contact in given]
    if len(set(names)) < len(names):
        raise InputError(
            f"contacts must have different names; got {listing(names)}: give name= to some"
        )
    return tuple(given)
