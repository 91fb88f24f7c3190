"""Closures whose axis is across the hinges of their planar loop: frames with a wrong z axis.

In a planar loop all hinges are parallel, that of the closure too. A closure turns about one axis of
its frames, z for a revolute one; if the frames have another axis along the hinges, the loop locks,
or cannot be closed. A cylindrical closure whose z is in the plane of the loop is correct: its z is
a sliding direction. So is every closure that leaves a sliding direction in that plane.
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
1.5708, with an error of 3.7e-6, at every joint of a chain."""

CROSSED_HINGES = 0.02
"""Sine of the angle above which an axis is intentionally not parallel: less is rounding."""


TURNS = 1e-9
"""Angular rate, rad by rad or m, below which a joint slides."""


@dataclass(frozen=True)
class CrossedAxis:
    """A closure that turns about another axis than the hinges of its otherwise planar loop.

    Attributes
    ----------
    closure : str
        The name of the closure.
    hinges : str
        Direction of the hinges in the frames of the closure: ``"x"``, ``"y"``, or a vector; for
        both frames if they differ.
    turns : str
        The axis of its frames that the closure turns about.
    axes : str
        The argument `axes` with which it would turn about the hinges; empty if no axis of its
        frames is along them.
    """

    closure: str
    hinges: str
    turns: str
    axes: str


def crossed_axes(
    mech: Mechanism, q: Vector, t: float, tolerance: float = 0.0
) -> tuple[CrossedAxis, ...]:
    """Examine all closures that turn about one axis; q need not be closed."""
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
            continue  # a piston: it slides in the plane of the loop and must not turn
        sines = [float(np.linalg.norm(np.delete(x, "xyz".index(turns)))) for x in local]
        if max(sines) > CROSSED_HINGES:
            hinges = list(dict.fromkeys(map(_direction, local)))
            found.append(CrossedAxis(name, " and ".join(hinges), turns, _axes(hinges, rows)))
    return tuple(found)


def _common_axis(J: Array, sine: float) -> Vector | None:
    """The common direction of at least two hinges, if all joints move in the plane across it."""
    if np.count_nonzero(np.linalg.norm(J[3:], axis=0) > TURNS) < 2:
        return None
    return normal_of_axes(J, sine, max(float(np.abs(J[:3]).max()), TURNS))


def normal_of_axes(J: Array, sine: float, size: float) -> Vector | None:
    """The unit vector (3,) that all screws J (6, n) turn about and slide across; None if none.

    Directions are parallel if the sine of their angle is at most `sine`; `size` is that of lengths
    in J, m.
    """
    linear, angular = J[:3].T, J[3:].T
    sizes = np.linalg.norm(angular, axis=1)
    if not (turning := sizes > TURNS).any():
        return None
    n: Vector = angular[turning][0] / sizes[turning][0]
    across = np.abs(np.cross(angular, n)).max() > sine
    return None if across or np.abs(linear @ n).max() > sine * size else n


def _lengths(rows: WrenchRows) -> list[str]:
    """The axes of frame 1 along which a closure constrains its point."""
    held = [label.rsplit(".", 1)[-1] for label in rows.labels]
    return [axis for axis in held if axis in ("x", "y", "z")]


def _pins(n: Vector, rows: WrenchRows) -> bool:
    """Whether a closure constrains its point in both directions across n, given in frame 1."""
    axes = np.eye(3)[["xyz".index(axis) for axis in _lengths(rows)]]
    in_plane = axes - np.outer(axes @ n, n)
    sizes = np.linalg.svd(in_plane, compute_uv=False)
    return bool(np.count_nonzero(sizes > CROSSED_HINGES) == 2)


def _direction(x: Vector) -> str:
    """The name of a direction in a frame: an axis, if it is along one."""
    i = int(np.argmax(np.abs(x)))
    if np.linalg.norm(np.delete(x, i)) < CROSSED_HINGES:
        return "xyz"[i]
    one_way = np.copysign(1.0, x[i]) * x + 0.0  # a line has no sign
    return f"({', '.join(f'{entry:.2g}' for entry in one_way)})"


def _axes(hinges: list[str], rows: WrenchRows) -> str:
    """The argument `axes` of a closure that turns about the hinges, with the same point rows."""
    if len(hinges) > 1 or hinges[0] not in ("x", "y", "z"):
        return ""
    return " ".join([*_lengths(rows), *(f"r{axis}" for axis in "xyz" if axis != hinges[0])])
