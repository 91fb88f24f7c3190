"""Capsules for bodies without geometry, along the lines of `body_lines`, as in pictures.

A prismatic joint on the ground is a thin rail as long as its limits. On a moving body it is a thin
bar from its zero position to its present position, as in pictures: a rod fixed in either body would
extend beyond the joints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pinocchio as pin

from holoctl.app.body_lines import DRAWN_LENGTH, BodyLine, body_lines, fastened
from holoctl.app.view.shapes import Bar, Shape, ball, capsule, color_of_joint, lying
from holoctl.base.checks import Vector
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.limits import Pair
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.scales import sizes
from holoctl.tree.coordinates import coordinate_names
from holoctl.tree.frozen_model import plain

__all__ = ["capsules", "slide_bars"]

_THICK = 0.012
"""Radius of a capsule, as a share of the size of the mechanism."""

_BALL = 1.4
"""Radius of the ball that represents a body without lines, in radii of a capsule."""

_THIN = 0.35
"""Radius of the bar of a prismatic joint, in radii of a capsule."""

_BEYOND = 0.1
"""Length by which the rail of a prismatic joint without limits is extended, as a share of the size
of the mechanism."""


def capsules(mech: Mechanism) -> tuple[Shape, ...]:
    """Capsules for all bodies, rails for all slides on the ground.

    Parameters
    ----------
    mech : Mechanism

    Returns
    -------
    tuple of Shape
        In the order of joints. Each body has one capsule for each of its different lines; if it has
        none, and is an end of the tree or slides, a ball at its joint. The rail of a prismatic
        joint belongs to the ground (joint 0); it is as long as the limits allow, but at most one
        size of the mechanism longer than the interval between zero and the reference.
    """
    model, size = plain(mech.model), _size(mech)
    found: list[list[Shape]] = [[] for _ in range(model.njoints)]
    for line in _once(body_lines(mech)):
        found[line.joint].append(_capsule(model, line.joint, np.zeros(3), line.end, _THICK * size))
    slides = _slides(mech, size)
    for j in range(1, model.njoints):
        if not found[j] and (j in slides or not model.children[j]):
            solid = ball(_BALL * _THICK * size)
            found[j].append(Shape.of(solid, j, pin.SE3.Identity(), model.names[j]))
    for j, (a, b) in slides.items():
        if not model.parents[j]:
            found[0].append(_capsule(model, 0, a, b, _THIN * _THICK * size))
    return tuple(shape for shapes in found for shape in shapes)


def slide_bars(mech: Mechanism) -> tuple[Bar, ...]:
    """A bar for each prismatic joint on a moving body, from its zero to its present position."""
    model, size = plain(mech.model), _size(mech)
    return tuple(
        Bar((int(model.parents[j]), j), (model.jointPlacements[j].translation.copy(), np.zeros(3)),
            _THIN * _THICK * size, color_of_joint(j))
        for j in _slides(mech, size) if model.parents[j]
    )  # fmt: skip


def _size(mech: Mechanism) -> float:
    tree, loops = sizes(mech.model, mech.reference, mech.bound, workspace(mech))
    return max(tree, *loops) if loops else tree


def _capsule(model: pin.Model, joint: int, a: Vector, b: Vector, radius: float) -> Shape:
    placement, length = lying(a, b)
    return Shape.of(capsule(radius, length), joint, placement, model.names[joint])


def _once(lines: tuple[BodyLine, ...]) -> Iterable[BodyLine]:
    """The lines of nonzero length, without duplicates."""
    once = dict[tuple[float, ...], BodyLine]()
    for line in lines:
        if np.linalg.norm(line.end) > DRAWN_LENGTH:
            once.setdefault((line.joint, *np.round(line.end, 9).tolist()), line)
    return once.values()


# ---------------------------------------------------------------------------------- slides


def _slides(mech: Mechanism, size: float) -> dict[int, tuple[Vector, Vector]]:
    """The two ends of the travel of each prismatic joint, m, in the frame of the parent joint."""
    model, names = plain(mech.model), coordinate_names(mech.model)
    limits, axes, found = limits_of(mech).position or {}, _axes(mech), {}
    for j in fastened(mech):
        if (far := float(np.linalg.norm(axes[j]))) <= DRAWN_LENGTH:
            continue
        at = float(mech.reference[model.idx_qs[j]])
        given = limits.get(names[model.idx_vs[j]], math.inf)
        span = _span(min(0.0, at), max(0.0, at), given, size / far)
        place = model.jointPlacements[j].translation
        found[j] = (place + span[0] * axes[j], place + span[1] * axes[j])
    return found


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
