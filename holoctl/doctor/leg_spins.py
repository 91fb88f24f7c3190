"""Bodies that turned about the line between two ball or universal joints, and moved nothing else.

A leg between a universal and a ball joint has two configurations with the same end points: in the
second one the cross is turned over, and the leg is turned about itself, by half a turn if its axes
are at right angles. Both count as one assembly mode: `rolled`. But the determinant of the rows
changes its sign. The two columns of the cross enter only by the velocity of the ball joint:

    (a1 x r) x (a2 x r) = (r . (a1 x a2)) r        a1, a2: axes of the cross; r: from it to the ball

So the determinant has the factor r . (a1 x a2), which changes its sign as well: `sign_of_legs`. The
determinant divided by this factor is the same for all legs that roll, and like the factor vanishes
only at singular configurations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Mask, Vector
from holoctl.base.linalg import least_squares, singular_values
from holoctl.closing.body_graph import Bodies, bodies_at
from holoctl.closing.sampled_configurations import sample
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["LegJoints", "apart", "joints_at", "may_roll", "rolled", "sign_of_legs", "that_roll"]

MOST_HUNG, ON_A_LINE = 10, 1e-3  # a count; of the size of the mechanism
"""Limits for `sign_of_legs`: the largest number of groups of bodies that are connected by points
only; and the largest distance of points from a common line."""


@dataclass(frozen=True, eq=False)
class LegJoints:
    """The joints at a configuration, in the world.

    Attributes
    ----------
    pairs : tuple of (int, int)
        The bodies that each joint connects; bodies that are welded together count as one.
    centres : tuple of (3,) arrays or None
        The centre of each ball or universal joint, m; None for other joints.
    own : (bodies,) mask
        Bodies that are no parts of a joint, nor welded to a body before them.
    """

    pairs: tuple[tuple[int, int], ...]
    centres: tuple[Vector | None, ...]
    own: Mask

    def outer(self, bodies: set[int]) -> list[int]:
        """The joints with a centre between these bodies and others."""
        return [
            k
            for k, (a, b) in enumerate(self.pairs)
            if self.centres[k] is not None and (a in bodies) != (b in bodies)
        ]

    def hung(self, held: Iterable[int]) -> list[set[int]]:
        """Groups of bodies that are connected to other groups by joints with a centre only,
        without the group of the world and of the bodies `held`."""
        grounded = {0, *held}
        ties = [pair for pair, c in zip(self.pairs, self.centres, strict=True) if c is None]
        bodies = {x for pair in self.pairs for x in pair} | grounded
        groups = _tied(bodies, [*ties, *((0, body) for body in grounded)])
        return [group for group in groups if 0 not in group]


def joints_at(mech: Mechanism, q: Vector, t: float, size: float) -> LegJoints:
    """The joints of a mechanism of this size, m, at a configuration."""
    return _joints(bodies_at(mech, sample(mech, q, t), t), size)


def _joints(here: Bodies, size: float) -> LegJoints:
    first = {int(label): i for i, label in reversed(list(enumerate(here.welded.tolist())))}
    of = [first[int(label)] for label in here.welded]
    pairs, centres = [], []
    for edge in here.edges:
        v, w = here.size * edge.free[:3], edge.free[3:]
        twists = np.vstack([(v + np.cross(here.middle, w.T).T) / size, w])
        pairs.append((of[edge.a], of[edge.b]))
        centres.append(_centre(twists, here.at_rest, size))
    own = np.array([of[i] == i for i in range(len(of))])
    own[[part for parts in here.within.values() for part in parts]] = False
    return LegJoints(tuple(pairs), tuple(centres), own)


def _centre(twists: Array, at_rest: float, size: float) -> Vector | None:
    """The point that two or three twists all turn about; None if there is none."""
    v, w = twists[:3], twists[3:]
    if w.shape[1] not in (2, 3) or singular_values(w)[-1] <= at_rest:
        return None
    A = np.vstack([-pin.skew(x) for x in w.T])  # -w x c = v
    c = least_squares(A, v.T.ravel())
    return size * c if np.abs(A @ c - v.T.ravel()).max() <= at_rest else None


def may_roll(mech: Mechanism) -> Mask:
    """Bodies that no constraints depend on except those between bodies."""
    free = np.ones(int(mech.model.njoints), dtype=bool)
    for bound in mech.bound:
        if not isinstance(bound, WrenchRows):
            touched = np.asarray(bound.support, dtype=bool).any(axis=0)
            free[mech.joint_of[touched]] = False
    return free


def rolled(
    a: LegJoints, b: LegJoints, A: Sequence[pin.SE3], B: Sequence[pin.SE3], moved: Mask,
    near: float, size: float,
) -> bool:  # fmt: skip
    """Whether the bodies that moved from poses A to poses B only rolled.

    Poses are the same within `near`, lengths in units of `size`.
    """
    if a.pairs != b.pairs:
        return False
    for group in _tied(np.flatnonzero(moved & a.own).tolist(), a.pairs):
        one = min(group)
        D = B[one] * A[one].inverse()
        if any(apart(D * A[i], B[i], size) > near for i in group):
            return False
        centres: list[Vector] = []
        for pair, centre in zip(a.pairs, a.centres, strict=True):
            if (pair[0] in group) == (pair[1] in group):
                continue
            if centre is None or np.abs(D.act(centre) - centre).max() > near * size:
                return False
            centres.append(centre)
        if max((float(np.abs(c - centres[0]).max()) for c in centres), default=0.0) <= near * size:
            return False  # the bodies are connected by one point
    return True


def apart(A: pin.SE3, B: pin.SE3, size: float) -> float:
    """The largest difference of two poses, lengths in units of `size`."""
    lengths = np.abs(A.translation - B.translation).max() / size
    return float(max(np.abs(A.rotation - B.rotation).max(), lengths))


def _tied(bodies: Iterable[int], pairs: Iterable[tuple[int, int]]) -> list[set[int]]:
    """The groups of these bodies that the pairs connect."""
    of = {body: {body} for body in bodies}
    for a, b in pairs:
        if a in of and b in of and of[a] is not of[b]:
            of[a] |= of[b]
            of.update(dict.fromkeys(of[b], of[a]))
    return list({id(group): group for group in of.values()}.values())


# ------------------------------------------------------------------------------------------- signs


def that_roll(mech: Mechanism, q: Vector, t: float, size: float) -> Mask:
    """Bodies that are connected by two points only, as legs are, and parts of joints."""
    joints, may = joints_at(mech, q, t, size), may_roll(mech)
    mask = ~joints.own
    for some in joints.hung(np.flatnonzero(~may).tolist()):
        if len(joints.outer(some)) == 2:
            mask[list(some)] = True
    return mask & may


def sign_of_legs(mech: Mechanism, q: Vector, t: float, size: float) -> int:
    """The sign of the factors of all legs at a configuration; 0 if bodies may roll that are no legs
    between a universal joint of the tree and a ball joint."""
    here = bodies_at(mech, sample(mech, q, t), t)
    if _gimbals(here):
        return 0
    joints = _joints(here, size)
    hung = joints.hung(np.flatnonzero(~may_roll(mech)).tolist())
    if len(hung) > MOST_HUNG:
        return 0
    sign = 1
    for n in range(1, len(hung) + 1):
        for some in combinations(hung, n):
            together = set[int]().union(*some)
            outer = joints.outer(together)
            points = np.array([joints.centres[k] for k in outer]).reshape(-1, 3)
            if not _on_a_line(points, size):
                continue
            if n == 1:
                sign *= _of_leg(here, joints, together, outer)
            elif len(_tied(together, joints.pairs)) == 1:
                return 0
    return sign


def _of_leg(here: Bodies, joints: LegJoints, leg: set[int], outer: list[int]) -> int:
    """The sign of the factor of a leg; 0 if it is no leg between a universal and a ball joint."""
    if len(outer) != 2:
        return 0
    freedoms = [here.edges[k].free.shape[1] for k in outer]
    if sorted(freedoms) != [2, 3]:
        return 0
    cross, ball = outer if freedoms[0] == 2 else reversed(outer)
    body, start, end = here.edges[cross].b, joints.centres[cross], joints.centres[ball]
    parts = here.within.get(body, [])
    if len(parts) != 1 or joints.pairs[cross][1] not in leg or start is None or end is None:
        return 0  # the universal joint is cut, or the cross is a child of the leg
    columns = np.concatenate([here.columns[parts[0]], here.columns[body]])
    if columns.size != 2:
        return 0
    a, b = here.J[3:, columns].T
    size = float(np.linalg.norm(a) * np.linalg.norm(b) * np.linalg.norm(end - start))
    factor = float((end - start) @ np.cross(a, b))
    return int(np.sign(factor)) if abs(factor) > here.at_rest * size else 0


def _on_a_line(points: Array, size: float) -> bool:
    """Whether there are two or more points, all on one line."""
    if len(points) < 2:
        return False
    s = singular_values((points - points.mean(axis=0)) / size)
    return bool(s[0] > ON_A_LINE and (s.size < 2 or s[1] <= ON_A_LINE))


def _gimbals(here: Bodies) -> bool:
    """Whether joints in series turn about three axes: two positions of them are the same pose."""
    for body, parts in here.within.items():
        columns = np.concatenate([here.columns[j] for j in (*parts, body)])
        turning = np.abs(here.J[3:, columns]).max(axis=0) > here.at_rest
        if np.count_nonzero(turning) > 2:
            return True
    return False
