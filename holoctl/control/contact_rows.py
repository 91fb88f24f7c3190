"""The rows and the friction cones of unilateral contacts, at a state.

    d/dt (J v) = J a + drift = 0        cone w <= bound        efforts of the ground: J' w

A plane foot has six rows, along and about the axes of its sole at the middle of its points, and w
is the wrench of the ground there. Other contacts have three rows for each point, along two tangents
and the normal of the ground, and w are the forces on the points. Without friction only the rows of
the normal direction remain. Rows are scaled by the size of the mechanism, and w are moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pinocchio as pin
from scipy.linalg import block_diag
from scipy.optimize import nnls

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InconsistentError, InputError
from holoctl.constraints.unilateral_contact import (
    Sole,
    UnilateralContact,
    edges_of_pyramid,
    pyramid,
    wrench_cone,
)
from holoctl.control.tasks.frame_task import BoundFrameTask, FrameTask
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import Frame, resolve_frame
from holoctl.tree.kinematics import Kinematics, place

__all__ = [
    "BoundContact",
    "ContactRows",
    "accelerations_of_points",
    "bound_contacts",
    "check_tilt",
    "cones",
    "contact_rows",
    "forces_on_points",
]

TILT = 0.1  # rad
"""Largest angle between a sole and its ground."""

NO_MOMENT = 1e-9
"""Coefficients of a facet below this, relative to the largest, are zero."""


class BoundContact(NamedTuple):
    """A contact of one mechanism.

    Attributes
    ----------
    contact : UnilateralContact
    rows : tuple of BoundFrameTask
        One for a plane foot, else one for each point.
    scale : (m,) array
        The factors of the rows.
    cone : (c, m) array
        Of scaled w, each row with a largest coefficient of one.
    bound : (c,) array
        Scaled likewise, N m.
    kinds : tuple of c (int, str)
        The point (-1 for all) and the meaning of an active condition: ``"slides"``, ``"tips"``,
        ``"lifts"`` or ``"presses"``.
    sole : Sole or None
        With z out of the ground, in the axes of the frame.
    frame, ground : Frame
        `ground` has the normal as z axis.
    """

    contact: UnilateralContact
    rows: tuple[BoundFrameTask, ...]
    scale: Vector
    cone: Array
    bound: Vector
    kinds: tuple[tuple[int, str], ...]
    sole: Sole | None
    frame: Frame
    ground: Frame

    @property
    def name(self) -> str:
        """The name of the contact."""
        return self.contact.default_name


class ContactRows(NamedTuple):
    """The contacts at a state: m rows, and c conditions on w.

    Attributes
    ----------
    contacts : tuple of BoundContact
    jacobian : (m, nv) array
    drift : (m,) array
    cone : (c, m) array
    bound : (c,) array
    scale : (m,) array
        The factors of the rows: those not scaled have the wrench ``scale * w``.
    """

    contacts: tuple[BoundContact, ...]
    jacobian: Array
    drift: Vector
    cone: Array
    bound: Vector
    scale: Vector

    def split(self, w: Vector) -> list[Vector]:
        """The parts of a vector by rows, one for each contact."""
        ends = np.cumsum([one.scale.size for one in self.contacts], dtype=int)
        return np.split(w, ends)[:-1]


# ------------------------------------------------------------------------------- the contacts


def bound_contacts(
    mech: Mechanism, contacts: Sequence[UnilateralContact]
) -> tuple[BoundContact, ...]:
    """The contacts of a mechanism, bound once for each mechanism and thread.

    Raises
    ------
    InputError
        For unknown frames, frames fixed to their ground, and a sole that is upright at the
        reference, so that its side is unknown.
    """
    known: WeakKeyDictionary[UnilateralContact, BoundContact]
    known = mech.per_thread("unilateral_contacts", WeakKeyDictionary)
    for contact in contacts:
        if contact not in known:
            known[contact] = _bound(mech, contact)
    return tuple(known[contact] for contact in contacts)


def _bound(mech: Mechanism, contact: UnilateralContact) -> BoundContact:
    owner = f"UnilateralContact {contact.default_name!r}"
    frame = resolve_frame(mech.model, contact.frame, owner)
    on = resolve_frame(mech.model, contact.relative_to, f"{owner}: relative_to")
    if frame.joint == on.joint:
        raise InputError(
            f"{owner}: {frame.name!r} is fixed to "
            + ("the world" if on.joint == 0 else f"the body of {on.name!r}")
            + ", so the ground cannot push it"
        )
    turned = on.placement * pin.SE3(contact.ground_axes, np.zeros(3))
    ground = Frame(on.joint, turned, on.name)
    sole = _upward(mech, contact, frame, ground)
    rubs = contact.friction > 0.0
    if sole is not None:
        axes, places = ("x y z rx ry rz" if rubs else "z rx ry"), [sole.placement]
        A = wrench_cone(sole.points, contact.friction, contact.facets)
        floor = _least_wrench(sole, contact)
        kinds = [_meaning(row, rubs) for row in A]
        A = np.vstack([A, -np.eye(A.shape[1])[2 if rubs else 0]])  # all points together
        b, labels = A @ floor, [*((-1, kind) for kind in kinds), (-1, "lifts")]
    else:
        axes = "x y z" if rubs else "z"
        places = [pin.SE3(np.eye(3), np.array(point)) for point in contact.points]
        faces = pyramid(contact.friction, contact.facets)
        up = np.eye(faces.shape[1])[-1:]
        one = [
            (faces, 0.0, "slides"),
            (-up, -contact.least, "lifts"),
            (up, contact.most, "presses"),
        ]
        kept = [x for x in one if x[1] < np.inf]
        block = np.vstack([rows for rows, _, _ in kept])
        limits = np.concatenate([np.full(len(rows), limit) for rows, limit, _ in kept])
        A, b = block_diag(*len(places) * [block]), np.tile(limits, len(places))
        kinds = [kind for rows, _, kind in kept for _ in rows]
        labels = [(i, kind) for i in range(len(places)) for kind in kinds]
    tasks = tuple(
        FrameTask(
            (mech.model.names[frame.joint], frame.placement * place), axes,
            relative_to=(mech.model.names[ground.joint], ground.placement), local=sole is not None,
        ).bind(mech)
        for place in places
    )  # fmt: skip
    scale = np.concatenate([task.scale for task in tasks])
    size = np.abs(A * scale).max(axis=1)
    return BoundContact(
        contact, tasks, scale, A * scale / size[:, None], b / size, tuple(labels), sole, frame,
        ground,
    )  # fmt: skip


def _upward(
    mech: Mechanism, contact: UnilateralContact, frame: Frame, ground: Frame
) -> Sole | None:
    """The sole with z out of the ground at the reference."""
    sole = contact.sole
    if sole is None:
        return None
    frame_at, ground_at = (place(mech.model, mech.reference, x) for x in (frame, ground))
    z = (frame_at * sole.placement).rotation[:, 2] @ ground_at.rotation[:, 2]
    if abs(z) < np.sin(TILT):
        raise InputError(
            f"UnilateralContact {contact.default_name!r}: at the reference the plane of its points "
            "is at right angles to the ground; the normal and the points do not fit, or the "
            "reference= of the mechanism has the foot upright"
        )
    if z > 0.0:
        return sole
    over = pin.SE3(np.diag([1.0, -1.0, -1.0]), np.zeros(3))
    return Sole(sole.placement * over, sole.points * (1.0, -1.0))


def _least_wrench(sole: Sole, contact: UnilateralContact) -> Vector:
    """The wrench of the least normal force at each point."""
    rubs, force = contact.friction > 0.0, np.array([0.0, 0.0, contact.least])
    found: Vector = np.sum([_wrench(point, force, rubs) for point in sole.points], axis=0)
    return found


def _meaning(facet: Vector, rubs: bool) -> str:
    """What happens where a facet of the wrench cone is active."""
    held = np.abs(facet[[0, 1, 5]]).max() if rubs else 0.0
    return "slides" if held > NO_MOMENT * np.abs(facet).max() else "tips"


# ------------------------------------------------------------------------------- at a state


def contact_rows(kin: Kinematics, contacts: Sequence[BoundContact]) -> ContactRows:
    """The rows and cones of some contacts.

    Raises
    ------
    InconsistentError
        For a sole that is tilted against its ground.
    """
    for one in contacts:
        if one.sole is not None:
            check_tilt(one, float(sole_axes(kin, one)[:, 2] @ ground_axes(kin, one)[:, 2]))
    motions = [rows.at(kin) for one in contacts for rows in one.rows]
    scale = np.concatenate([np.zeros(0), *(one.scale for one in contacts)])
    nv = kin.v.size
    return ContactRows(
        tuple(contacts),
        scale[:, None] * np.concatenate([np.zeros((0, nv)), *(x.jacobian for x in motions)]),
        scale * np.concatenate([np.zeros(0), *(x.drift for x in motions)]),
        *cones(contacts),
        scale,
    )


def cones(contacts: Sequence[BoundContact]) -> tuple[Array, Vector]:
    """The conditions ``cone w <= bound`` of all contacts."""
    cone = block_diag(*(x.cone for x in contacts)) if contacts else np.zeros((0, 0))
    return cone, np.concatenate([np.zeros(0), *(x.bound for x in contacts)])


def check_tilt(one: BoundContact, cosine: float) -> None:
    """Raise `InconsistentError` for a sole that does not stand flat."""
    if not cosine >= np.cos(TILT):
        angle = float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
        raise InconsistentError(
            f"{one.name!r} is tilted by {angle:.3g} degrees against its ground, so that it does "
            f"not stand on all its points; up to {np.degrees(TILT):.2g} degrees are taken as flat. "
            "Does normal= fit, or is it a contact of fewer points now?",
            residual=angle,
        )


def sole_axes(kin: Kinematics, one: BoundContact) -> Array:
    """(3, 3): the axes of the forces of a plane foot, world axes."""
    placement = kin.placements[one.frame.joint] * one.frame.placement
    return np.asarray((placement * one.sole.placement).rotation if one.sole else placement.rotation)


def ground_axes(kin: Kinematics, one: BoundContact) -> Array:
    """(3, 3): the axes of the ground, world axes; z is its normal."""
    return np.asarray((kin.placements[one.ground.joint] * one.ground.placement).rotation)


def forces_on_points(kin: Kinematics, one: BoundContact, w: Vector) -> tuple[Array, float]:
    """The forces (n, 3) on the points, world axes, N, of the wrench w of a contact, not scaled; and
    how much of the wrench they leave out, N.

    Those of a plane foot are the shortest, if these are in the cones, else some in the cones.
    """
    rubs = one.contact.friction > 0.0
    if one.sole is None:
        return _of_points(kin, one, w), 0.0
    points, least = one.sole.points, one.contact.least
    size, n = float(np.abs(points).max()), len(points)
    unit = np.array([1.0, 1.0, 1.0, size, size, size] if rubs else [1.0, size, size])
    corners = edges_of_pyramid(one.contact.friction, one.contact.facets)
    edges = np.hstack([corners, np.ones((len(corners), 1))])  # forces in the sole
    rays = np.array([_wrench(point, edge, rubs) for point in points for edge in edges]).T
    rest = w - _least_wrench(one.sole, one.contact)
    shares, off = nnls(rays / unit[:, None], rest / unit)
    local = shares.reshape(n, -1) @ edges + (0.0, 0.0, least)
    every = [_wrench(point, axis, rubs) for point in points for axis in np.eye(3)]
    shortest = np.linalg.lstsq(np.array(every).T / unit[:, None], w / unit, rcond=None)[0]
    if rubs:
        faces, short = pyramid(one.contact.friction, one.contact.facets), shortest.reshape(n, 3)
        if (short @ faces.T <= 0.0).all() and (short[:, 2] >= least).all():
            return short @ sole_axes(kin, one).T, 0.0
    return local @ sole_axes(kin, one).T, float(off)


def _of_points(kin: Kinematics, one: BoundContact, rows: Vector) -> Array:
    """Vectors (n, 3) of the points of a contact without a sole, world axes, of those by rows."""
    local = rows.reshape(len(one.contact.points), -1)
    wide = np.hstack([np.zeros((len(local), 3 - local.shape[1])), local])
    return np.asarray(wide @ ground_axes(kin, one).T)


def _wrench(point: Vector, force: Vector, rubs: bool) -> Vector:
    (x, y), (fx, fy, fz) = point, force
    all_of = np.array([fx, fy, fz, y * fz, -x * fz, x * fy - y * fx])
    return all_of if rubs else all_of[2:5]


def accelerations_of_points(kin: Kinematics, one: BoundContact, rates: Vector) -> Array:
    """The accelerations (n, 3) of points, world axes, of those of the rows, not scaled."""
    rubs = one.contact.friction > 0.0
    if one.sole is None:
        return _of_points(kin, one, rates)
    linear, turning = (rates[:3], rates[3:]) if rubs else (
        np.array([0.0, 0.0, rates[0]]), np.array([*rates[1:], 0.0])
    )  # fmt: skip
    arms = np.hstack([one.sole.points, np.zeros((len(one.sole.points), 1))])
    return np.asarray((linear + np.cross(turning, arms)) @ sole_axes(kin, one).T)
