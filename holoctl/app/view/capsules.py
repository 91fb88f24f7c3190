"""Shapes for bodies without geometry, along the lines of `body_lines`, as in pictures.

A body is capsules from joint to joint: the tips of a capsule, its round ends included, are at the
joints. Bars that lie on each other do not flicker: the radius of a bar depends on the color of its
body, and two radii differ by more than the facets of a round bar.

A prismatic joint is a rod in a sleeve. On the ground the rod is a rail as long as its limits, and
the sleeve a carriage on it. On a moving body the sleeve is fixed where the joint is at zero, and a
thin rod leads from there to its present position: a rod that is fixed in either body would extend
beyond the joints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.app.body_lines import DRAWN_LENGTH, BodyLine, body_lines, fastened
from holoctl.app.palette import BODIES
from holoctl.app.view.base_plate import base_shapes
from holoctl.app.view.shapes import Bar, Shape, ball, capsule, color_of_joint, cylinder, lying
from holoctl.base.checks import Vector
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.limits import Pair
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.scales import sizes
from holoctl.tree.coordinates import coordinate_names
from holoctl.tree.frozen_model import plain

__all__ = ["Slide", "bar_radius", "capsules", "drawn_size", "slide_bars", "slides", "thickness"]

_THICK = 0.0135
"""Radius of the thickest bar, as a share of the size of the mechanism."""

_THINNER = 0.08
"""The bars of each further color of a body are thinner by this share of the thickest."""

_SHORT = 0.25
"""Largest radius of a capsule, as a share of its length."""

_BALL = 1.4
"""Radius of the ball that represents a body without lines, in radii of the thickest bar."""

_ROD, _RAIL = 0.45, 0.35
"""Radii of the rod of a prismatic joint on a moving body and of a rail on the ground, in radii of
the thickest bar."""

_SLEEVE, _SLEEVE_LENGTH = 1.35, 5.0
"""Radius and length of a sleeve, in radii of the thickest bar."""

_BEYOND = 0.1
"""Length by which the rail of a prismatic joint without limits is extended, as a share of the size
of the mechanism."""


class Slide(NamedTuple):
    """A prismatic joint.

    Attributes
    ----------
    joint, parent : int
        The joint, and that which moves its parent body; 0 for the world.
    place, axis : (3,) arrays
        Its origin at zero, m, and its unit direction, in the frame of the parent.
    ends : tuple of 2 (3,) arrays
        The ends of its travel, m, in the frame of the parent.
    """

    joint: int
    parent: int
    place: Vector
    axis: Vector
    ends: tuple[Vector, Vector]

    @property
    def of_a_bar(self) -> bool:
        """Whether a bar of the parent leads to the origin of this joint."""
        return self.parent > 0 and float(np.linalg.norm(self.place)) > DRAWN_LENGTH


def capsules(mech: Mechanism) -> tuple[Shape, ...]:
    """Capsules for all bodies, sleeves and rails for prismatic joints, and the base.

    Parameters
    ----------
    mech : Mechanism

    Returns
    -------
    tuple of Shape
        In the order of joints. Each body has one capsule for each of its different lines; if it has
        none, and is an end of the tree, a ball at its joint. The rail of a prismatic joint belongs
        to the ground (joint 0), as the base does; it is as long as the limits allow, but at most
        one size of the mechanism longer than the interval between zero and the reference. Its
        carriage belongs to the body that slides, the sleeve of any other prismatic joint to its
        parent.
    """
    model, size, thick = plain(mech.model), drawn_size(mech), thickness(mech)
    found: list[list[Shape]] = [[] for _ in range(model.njoints)]
    for line in _once(body_lines(mech)):
        bar = _capsule(model, line.joint, np.zeros(3), line.end, bar_radius(line.joint, size))
        found[line.joint].append(bar)
    sliding = slides(mech)
    sleeves = [(one.joint if one.parent == 0 else one.parent, one) for one in sliding]
    with_shapes = {j for j, shapes in enumerate(found) if shapes} | {j for j, _ in sleeves}
    for j in range(1, model.njoints):
        slides_alone = any(j == one.joint for one in sliding)
        if j not in with_shapes and (slides_alone or not model.children[j]):
            solid = ball(_BALL * thick)
            found[j].append(Shape.of(solid, j, pin.SE3.Identity(), model.names[j]))
    for j, one in sleeves:
        found[j].append(_sleeve(model, j, one, thick))
    for one in sliding:
        if one.parent == 0 and float(np.linalg.norm(one.ends[1] - one.ends[0])) > DRAWN_LENGTH:
            found[0].append(_capsule(model, 0, *one.ends, _RAIL * thick))
    found[0] += base_shapes(mech, thick)
    return tuple(shape for shapes in found for shape in shapes)


def slide_bars(mech: Mechanism) -> tuple[Bar, ...]:
    """A rod for each prismatic joint on a moving body, from its zero to its present position."""
    radius = _ROD * thickness(mech)
    return tuple(
        Bar((one.parent, one.joint), (one.place, np.zeros(3)), radius, color_of_joint(one.joint))
        for one in slides(mech) if one.parent
    )  # fmt: skip


def thickness(mech: Mechanism) -> float:
    """The radius of the thickest bars of a mechanism, m."""
    return _THICK * drawn_size(mech)


def bar_radius(joint: int, size: float) -> float:
    """The radius of the bars of a body, m: one for each color."""
    return _THICK * size * (1.0 - _THINNER * ((joint - 1) % len(BODIES)))


def drawn_size(mech: Mechanism) -> float:
    """The size of a mechanism, m: that of its tree or of its largest loop."""
    tree, loops = sizes(mech.model, mech.reference, mech.bound, workspace(mech))
    return max(tree, *loops) if loops else tree


def _capsule(model: pin.Model, joint: int, a: Vector, b: Vector, radius: float) -> Shape:
    """A capsule whose tips are at a and b."""
    placement, length = lying(a, b)
    radius = min(radius, _SHORT * length)
    return Shape.of(capsule(radius, length - 2.0 * radius), joint, placement, model.names[joint])


def _sleeve(model: pin.Model, joint: int, slide: Slide, thick: float) -> Shape:
    """The sleeve of a prismatic joint: a carriage around its rail, a ring around its zero, or the
    end of a bar that leads there."""
    half = 0.5 * _SLEEVE_LENGTH * thick * slide.axis
    middle = slide.place - (half if slide.of_a_bar else 0.0)
    placement, length = lying(middle - half, middle + half)
    if joint == slide.joint:
        placement = model.jointPlacements[joint].actInv(placement)
    return Shape.of(cylinder(_SLEEVE * thick, length), joint, placement, model.names[joint])


def _once(lines: tuple[BodyLine, ...]) -> Iterable[BodyLine]:
    """The lines of nonzero length, without duplicates."""
    once = dict[tuple[float, ...], BodyLine]()
    for line in lines:
        if np.linalg.norm(line.end) > DRAWN_LENGTH:
            once.setdefault((line.joint, *np.round(line.end, 9).tolist()), line)
    return once.values()


# ---------------------------------------------------------------------------------- slides


def slides(mech: Mechanism) -> tuple[Slide, ...]:
    """The prismatic joints of a mechanism, in the order of joints."""
    model, names, size = plain(mech.model), coordinate_names(mech.model), drawn_size(mech)
    limits, axes, found = limits_of(mech).position or {}, _axes(mech), list[Slide]()
    for j in fastened(mech):
        if (far := float(np.linalg.norm(axes[j]))) <= DRAWN_LENGTH:
            continue
        at = float(mech.reference[model.idx_qs[j]])
        given = limits.get(names[model.idx_vs[j]], math.inf)
        span = _span(min(0.0, at), max(0.0, at), given, size / far)
        place = model.jointPlacements[j].translation.copy()
        ends = (place + span[0] * axes[j], place + span[1] * axes[j])
        found.append(Slide(j, int(model.parents[j]), place, axes[j] / far, ends))
    return tuple(found)


def _span(low: float, high: float, limits: float | Pair, size: float) -> Pair:
    """The shown interval of a prismatic joint; it extends beyond `low` and `high` without
    limits."""
    lower, upper = limits if isinstance(limits, tuple) else (-limits, limits)
    lower = low - _BEYOND * size if math.isinf(lower) else max(lower, low - size)
    upper = high + _BEYOND * size if math.isinf(upper) else min(upper, high + size)
    return lower, max(upper, lower)


def _axes(mech: Mechanism) -> list[Vector]:
    """The displacement of each joint of one coordinate by one unit of it, (3,), in the frame of the
    parent joint."""
    model, data, q = plain(mech.model), workspace(mech), pin.neutral(mech.model)
    found = []
    for x in (0.0, 1.0):
        for j in range(1, model.njoints):
            if model.nqs[j] == 1:
                q[model.idx_qs[j]] = x
        pin.forwardKinematics(model, data, q)
        found.append([X.translation.copy() for X in data.liMi])
    return [b - a for a, b in zip(*found, strict=True)]
