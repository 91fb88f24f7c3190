"""Closures that turn across the hinges of their loop: frames whose z points elsewhere.

In a planar loop all hinges are parallel, the closing one too. A closure turns about one axis of its
frames, z for a revolute one; where the frames were drawn with another axis along the hinges, the
loop locks, or cannot be closed. A cylindrical closure whose z is in the plane of the loop is right
as it is: its z is a slide. So is every closure that leaves a slide in that plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.constraints.closure import Closure
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.kinematics import kinematics

__all__ = ["TURNS", "CrossedAxis", "crossed_axes", "normal_of_axes"]

PARALLEL_HINGES = 1e-4
"""Sine of the angle below which hinges of a loop are parallel: files write a right angle as
1.5708, which is off by 3.7e-6, at every joint of a chain."""

CROSSED_HINGES = 0.02
"""Sine of the angle from which an axis was not meant to be parallel: less is rounding."""


TURNS = 1e-9
"""Rate of turning, rad by rad or m, below which a joint slides."""


@dataclass(frozen=True)
class CrossedAxis:
    """A closure that turns about another axis than the hinges of its otherwise planar loop.

    Attributes
    ----------
    closure : str
    hinges : str
        Direction of the hinges in the frames of the closure: ``"x"``, ``"y"``, or a vector; for
        both, where they differ.
    turns : str
        The axis of its frames that the closure turns about.
    axes : str
        The axes with which it would turn about the hinges; empty where no axis is along them.
    """

    closure: str
    hinges: str
    turns: str
    axes: str


def crossed_axes(
    mech: Mechanism, q: Vector, t: float, tolerance: float = 0.0
) -> tuple[CrossedAxis, ...]:
    """Look at all closures that turn about one axis; q need not be closed."""
    kin = kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), t)
    found = []
    for c, name, rows in zip(mech.constraints, mech.constraint_names, mech.bound, strict=True):
        if not (isinstance(c, Closure) and c.parallel_axis and isinstance(rows, WrenchRows)):
            continue
        n = _common_axis(kin.J[:, rows.support.any(axis=0)], max(PARALLEL_HINGES, tolerance))
        if n is None:
            continue
        turns = c.parallel_axis
        seen = [kin.placements[f.joint].rotation @ f.placement.rotation for f in rows.anchors]
        local = [R.T @ n for R in seen]
        if not _pins(local[0], rows):
            continue  # a piston, which slides in the plane of the loop and is not to turn
        off = [float(np.linalg.norm(np.delete(x, "xyz".index(turns)))) for x in local]
        if max(off) > CROSSED_HINGES:
            hinges = list(dict.fromkeys(map(_direction, local)))
            found.append(CrossedAxis(name, " and ".join(hinges), turns, _axes(hinges, rows)))
    return tuple(found)


def _common_axis(J: Array, off: float) -> Vector | None:
    """The direction of at least two hinges, where the others, and all slides, keep to a plane."""
    if np.count_nonzero(np.linalg.norm(J[3:], axis=0) > TURNS) < 2:
        return None
    return normal_of_axes(J, off, max(float(np.abs(J[:3]).max()), TURNS))


def normal_of_axes(J: Array, off: float, size: float) -> Vector | None:
    """(3,): what all screws (6, n) turn about, and slide across; None where there is no such.

    `off` is the sine of the angle below which they do, `size` that of lengths in J, m.
    """
    linear, angular = J[:3].T, J[3:].T
    sizes = np.linalg.norm(angular, axis=1)
    if not (turning := sizes > TURNS).any():
        return None
    n: Vector = angular[turning][0] / sizes[turning][0]
    across = np.abs(np.cross(angular, n)).max() > off
    return None if across or np.abs(linear @ n).max() > off * size else n


def _lengths(rows: WrenchRows) -> list[str]:
    """The axes of frame 1 along which a closure holds the point."""
    held = [label.rsplit(".", 1)[-1] for label in rows.labels]
    return [axis for axis in held if axis in ("x", "y", "z")]


def _pins(n: Vector, rows: WrenchRows) -> bool:
    """Whether a closure holds its point in the plane across n, which is given in frame 1."""
    axes = np.eye(3)[["xyz".index(axis) for axis in _lengths(rows)]]
    in_plane = axes - np.outer(axes @ n, n)
    sizes = np.linalg.svd(in_plane, compute_uv=False)
    return bool(np.count_nonzero(sizes > CROSSED_HINGES) == 2)


def _direction(x: Vector) -> str:
    """A direction in a frame: an axis, if it is along one."""
    i = int(np.argmax(np.abs(x)))
    if np.linalg.norm(np.delete(x, i)) < CROSSED_HINGES:
        return "xyz"[i]
    one_way = np.copysign(1.0, x[i]) * x + 0.0  # a line has no sense
    return f"({', '.join(f'{entry:.2g}' for entry in one_way)})"


def _axes(hinges: list[str], rows: WrenchRows) -> str:
    """The axes of a closure that turns about the hinges, and holds what this one holds."""
    if len(hinges) > 1 or hinges[0] not in ("x", "y", "z"):
        return ""
    return " ".join([*_lengths(rows), *(f"r{axis}" for axis in "xyz" if axis != hinges[0])])
