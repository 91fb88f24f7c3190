"""The base: a plate beside the joints and closures that are fixed to the world.

Contacts are no part of it: there the robot stands on the ground itself.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.spatial import ConvexHull

from holoctl.app.body_lines import DRAWN_LENGTH, fastened
from holoctl.app.view.shapes import Shape, Solid, capsule, lying, mesh
from holoctl.base.checks import Array, Vector
from holoctl.constraints.contact import Contact
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.coordinates import translational
from holoctl.tree.frozen_model import plain

__all__ = ["base_shapes"]

_BORDER, _HALF = 3.0, 0.6
"""Distance from the points of the base to the edge of its plate, and half the thickness of the
plate, in radii of the thickest bar."""

_BESIDE = 1.7
"""Distance from the points of the base to the middle of its plate, in radii of the thickest bar:
bars that lie along the plate touch it."""

_STRUT = 0.8
"""Radius of a strut of a base that is not flat, in radii of the thickest bar."""

_AROUND = 16
"""Number of corners of the edge of a plate around a point."""


def base_shapes(mech: Mechanism, thick: float) -> list[Shape]:
    """The base of a mechanism.

    Parameters
    ----------
    mech : Mechanism
    thick : float
        Radius of the thickest bar, m.

    Returns
    -------
    list of Shape
        A plate beside the points that are fixed to the world, on the side away from the bodies, or
        below them; it is level if the points are in one line. Struts from their mean to each if
        they are not in one plane. Empty if there are none, as of a floating robot.
    """
    points = _fixed_points(mech)
    if not len(points):
        return []
    middle = points.mean(axis=0)
    _, spread, axes = np.linalg.svd(np.vstack([points - middle, np.zeros((3, 3))]))
    if spread[2] > thick:
        solids = [lying(middle, p) for p in points if np.linalg.norm(p - middle) > DRAWN_LENGTH]
        return [
            Shape.of(capsule(_STRUT * thick, length), 0, placement, "universe")
            for placement, length in solids
        ]
    normal = axes[2] if spread[1] > thick else _level(mech, axes[0] if spread[0] > thick else None)
    beside = points - _side(mech, middle, normal, thick) * _BESIDE * thick * normal
    return [Shape.of(_plate(beside, normal, thick), 0, pin.SE3.Identity(), "universe")]


def _fixed_points(mech: Mechanism) -> Array:
    """(n, 3): origins of joints on the world that neither float nor slide, and ends of constraints
    there, except contacts."""
    model, lengths = plain(mech.model), translational(mech.model)
    slides = {int(j) for j in mech.joint_of[lengths]}
    found = [
        model.jointPlacements[j].translation
        for j in fastened(mech)
        if model.parents[j] == 0 and j not in slides
    ]
    for given, rows in zip(mech.constraints, mech.bound, strict=True):
        if not isinstance(given, Contact):
            found += [f.placement.translation for f in rows.anchors if f.joint == 0]
    return np.array(found).reshape(-1, 3)


def _side(mech: Mechanism, middle: Vector, normal: Vector, thick: float) -> float:
    """1 if the bodies are on the side of the normal at the reference, or up is; else -1."""
    model = plain(mech.model)
    mass = sum(inertia.mass for inertia in list(model.inertias)[1:])
    centre = pin.centerOfMass(model, model.createData(), mech.reference) if mass > 0.0 else middle
    height = float(normal @ (centre - middle))
    if abs(height) > thick:
        return 1.0 if height > 0.0 else -1.0
    return 1.0 if float(normal @ _level(mech, None)) >= -DRAWN_LENGTH else -1.0


def _level(mech: Mechanism, line: Vector | None) -> Vector:
    """The direction nearest to up, at right angles to a line."""
    gravity = plain(mech.model).gravity.linear
    up = -gravity if np.any(gravity) else np.array([0.0, 0.0, 1.0])
    up = up / float(np.linalg.norm(up))
    if line is None:
        return up
    across = up - line * float(line @ up)
    if float(np.linalg.norm(across)) < 1e-3:  # the line is upright
        across = np.cross(line, np.eye(3)[int(np.argmin(np.abs(line)))])
    found: Vector = across / float(np.linalg.norm(across))
    return found


def _plate(points: Array, normal: Vector, thick: float) -> Solid:
    """The convex hull of flat discs around the points."""
    x = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    x /= float(np.linalg.norm(x))
    angles = 2.0 * np.pi * np.arange(_AROUND) / _AROUND
    edge = np.outer(np.cos(angles), x) + np.outer(np.sin(angles), np.cross(normal, x))
    disc = np.vstack([_BORDER * edge + side * _HALF * normal for side in (-1.0, 1.0)])
    corners = (points / thick)[:, None] + disc  # about 1, whatever the size of the mechanism
    hull = ConvexHull(corners.reshape(-1, 3))
    triangles = hull.points[hull.simplices]
    turned = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    inward = np.einsum("ij,ij->i", turned, hull.equations[:, :3]) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    vertices = thick * triangles.reshape(-1, 3)  # not shared, so that edges are sharp
    return mesh(vertices, np.arange(len(vertices), dtype=np.int64).reshape(-1, 3))
