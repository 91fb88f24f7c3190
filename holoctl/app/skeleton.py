"""The points and lines in the world with which a mechanism is drawn.

Bodies are the lines of `body_lines`. A prismatic joint is a line along its travel from zero.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from holoctl.app.body_lines import DRAWN_LENGTH, body_lines, fastened
from holoctl.app.drawing_tolerance import closure_limit
from holoctl.base.checks import Array, Vector, counted, listing
from holoctl.base.linalg import largest
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.rows.constraint_errors import constraint_errors
from holoctl.rows.evaluate import by_constraint
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = ["Skeleton", "is_rod", "normal_of_plane", "skeleton"]

IN_A_PLANE = 1e-9
"""Axes of rotation of a planar mechanism are parallel, and its prismatic joints orthogonal to them,
to within this or the tolerance of its geometry."""


_Line = tuple[Vector, Vector]


@dataclass(frozen=True, eq=False)
class Skeleton:
    """A mechanism at a configuration, as points (n, 3) and lines (n, 2, 3) in the world, m.

    Attributes
    ----------
    bodies, slides, rods, gaps : (n, 2, 3) arrays
        Lines. Gaps are between ends that should meet and do not.
    joints, motors, closures, ground, open_ends : (n, 3) arrays
        Points. Motors are joints too, of a prismatic joint the middle of its travel; ground are the
        points that are fixed to the world.
    off : str
        The constraints that do not hold, and their errors, in words; empty if all hold.
    """

    bodies: Array
    slides: Array
    rods: Array
    gaps: Array
    joints: Array
    motors: Array
    closures: Array
    ground: Array
    open_ends: Array
    off: str

    @property
    def points(self) -> Array:
        """All points and ends of lines, (n, 3)."""
        lines = (self.bodies, self.slides, self.rods, self.gaps)
        there = (self.joints, self.closures, self.ground, self.open_ends)
        return np.vstack([*(x.reshape(-1, 3) for x in lines), *there])


def skeleton(mech: Mechanism, q: Vector, t: float = 0.0) -> Skeleton:
    """The skeleton of a mechanism at q: a checked configuration, closed or not."""
    kin = kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), t)
    amounts = _amounts(mech, kin)
    most = closure_limit(mech, q, t, max(amounts.values(), default=0.0))
    off = {name: x for name, x in amounts.items() if not x <= most}
    held, rods, gaps, ends, ground = _closures(mech, kin, off)
    bodies, slides, hung = _bodies(mech, kin)
    origin = np.array([X.translation for X in kin.placements])
    middle = origin.copy()
    for j, (start, end) in zip(fastened(mech), slides, strict=True):
        middle[j] = 0.5 * (start + end)
    driven = mech.joint_of[np.abs(mech.B).max(axis=1, initial=0.0) > 0.0]
    return Skeleton(
        bodies=_lines(bodies),
        slides=_lines(slides),
        rods=_lines(rods),
        gaps=_lines(gaps),
        joints=origin[1:],
        motors=middle[np.unique(driven)],
        closures=_points(held),
        ground=_points([*hung, *ground]),
        open_ends=_points(ends),
        off=_sentence(off),
    )


def normal_of_plane(mech: Mechanism, q: Vector) -> Vector | None:
    """(3,): the direction about which all joints rotate, and across which they slide, at q; None if
    there is none.

    If no joint rotates, and all slide along one direction, the plane is vertical.
    """
    J = kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), 0.0).J
    near = max(IN_A_PLANE, mech.tolerance)
    shift, turn = J[:3].T, J[3:].T  # velocities of an arbitrary point, and angular velocities
    turning = np.linalg.norm(turn, axis=1) > near
    if turning.any():
        n: Vector = turn[turning][0] / np.linalg.norm(turn[turning][0])
    else:
        directions = np.linalg.svd(shift)[2]
        flat = np.linalg.matrix_rank(shift, near)
        if flat > 2:
            return None
        n = directions[2] if flat == 2 else np.cross(directions[0], [0.0, 0.0, 1.0])
        if (size := float(np.linalg.norm(n))) <= near:
            n, size = np.array([0.0, 1.0, 0.0]), 1.0  # along z: seen from the front
        n = n / size
    level = np.abs(shift @ n) <= near * (1.0 + np.abs(shift).max(initial=0.0))
    flat_turns = np.abs(turn - np.outer(turn @ n, n)).max(initial=0.0) <= near
    if not (level.all() and flat_turns):
        return None
    return n if n[np.argmax(np.abs(n))] > 0.0 else -n


# --------------------------------------------------------------------------------- bodies


def _bodies(mech: Mechanism, kin: Kinematics) -> tuple[list[_Line], list[_Line], list[Vector]]:
    """Lines of all bodies, lines of prismatic joints, and the points of joints fixed to the
    world."""
    model, X = plain(mech.model), kin.placements
    slides, ground = list[_Line](), list[Vector]()
    for j in fastened(mech):
        place = (X[model.parents[j]] * model.jointPlacements[j]).translation
        slides.append((place, X[j].translation))
        if not model.parents[j]:
            ground.append(place)
    lines = [(X[one.joint].translation, X[one.joint].act(one.end)) for one in body_lines(mech)]
    return lines, slides, ground


# -------------------------------------------------------------------------------- closures


def _closures(
    mech: Mechanism, kin: Kinematics, off: Collection[str]
) -> tuple[list[Vector], list[_Line], list[_Line], list[Vector],
           list[Vector]]:  # fmt: skip
    """Points of closures that hold; rods; gaps; ends of constraints that do not hold; points on the
    ground."""
    held, rods, gaps = list[Vector](), list[_Line](), list[_Line]()
    ends, ground = list[Vector](), list[Vector]()
    for name, rows in zip(mech.constraint_names, mech.bound, strict=True):
        ground += [kin.point(f) for f in rows.anchors if f.joint == 0]
        holds = name not in off
        if not isinstance(rows, WrenchRows):
            ends += [] if holds else [kin.point(f) for f in rows.anchors]
            continue
        for pair, (f1, f2) in enumerate(zip(rows.frames1, rows.frames2, strict=True)):
            a, b = kin.point(f1), kin.point(f2)
            if not holds:
                gaps.append((a, b))
                ends += [a, b]
                continue
            if is_rod(rows, pair):
                rods.append((a, b))
            held += [a, b]
    return held, rods, gaps, ends, ground


def is_rod(rows: WrenchRows, pair: int) -> bool:
    """Whether a row keeps the ends of this pair at a distance."""
    of_pair = np.flatnonzero(rows.pair == pair)
    return any(getattr(rows.kinds[i], "normal", 0) is None for i in of_pair)


def _amounts(mech: Mechanism, kin: Kinematics) -> dict[str, float]:
    """The largest error of each constraint, scaled."""
    errors = constraint_errors(mech, kin.q, t=kin.t).position * mech.row_scale
    return {name: largest(rows) for name, rows in by_constraint(mech, errors).items()}


def _sentence(off: Mapping[str, float]) -> str:
    if not off:
        return ""
    which = f"{counted(len(off), 'constraint')} open: {listing(list(off), 3)}"
    return f"{which}, by up to {max(off.values()):.2g} (scaled)"


def _points(found: list[Vector]) -> Array:
    """The points without duplicates."""
    once = dict[tuple[float, ...], Vector]()
    for p in found:
        once.setdefault(tuple(np.round(p, 9).tolist()), p)
    return np.array(list(once.values())).reshape(-1, 3)


def _lines(found: list[_Line]) -> Array:
    lines = np.array(found).reshape(-1, 2, 3)
    long: Array = lines[np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1) > DRAWN_LENGTH]
    return long
