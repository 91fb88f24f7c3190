"""Bodies that turned about the line between two ball or universal joints, and moved nothing else.

A leg between a universal and a ball joint stands in the same place in two ways: its cross turned
over, and it about itself, by half a turn where its axes are at right angles. Who counts where a
platform can be counts these as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Mask, Vector
from holoctl.base.linalg import least_squares, singular_values
from holoctl.closing.bodies import bodies_at
from holoctl.closing.samples import sample
from holoctl.constraints.wrench import WrenchRows
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Joints", "apart", "joints_at", "may_roll", "rolled"]


@dataclass(frozen=True, eq=False)
class Joints:
    """The joints at a configuration, in the world.

    Attributes
    ----------
    pairs : tuple of (int, int)
        The bodies that each ties; one body for all that are welded together.
    centres : tuple of (3,) arrays or None
        The point that ball and universal joints turn about, m.
    own : (bodies,) mask
        Bodies that stand for themselves: no parts of a joint, nor of another body.
    """

    pairs: tuple[tuple[int, int], ...]
    centres: tuple[Vector | None, ...]
    own: Mask


def joints_at(mech: Mechanism, q: Vector, t: float, size: float) -> Joints:
    """For mechanisms of this size, m."""
    here = bodies_at(mech, sample(mech, q, t), t)
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
    return Joints(tuple(pairs), tuple(centres), own)


def _centre(twists: Array, at_rest: float, size: float) -> Vector | None:
    """The point about which all twists turn, where there are two of them or three."""
    v, w = twists[:3], twists[3:]
    if w.shape[1] not in (2, 3) or singular_values(w)[-1] <= at_rest:
        return None
    A = np.vstack([[[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]] for x, y, z in w.T])  # -w x c = v
    c = least_squares(A, v.T.ravel())
    return size * c if np.abs(A @ c - v.T.ravel()).max() <= at_rest else None


def may_roll(mech: Mechanism) -> Mask:
    """Bodies that no constraint holds but those between bodies."""
    free = np.ones(int(mech.model.njoints), dtype=bool)
    for bound in mech.bound:
        if not isinstance(bound, WrenchRows):
            touched = np.asarray(bound.support, dtype=bool).any(axis=0)
            free[mech.joint_of[touched]] = False
    return free


def rolled(
    a: Joints, b: Joints, A: Sequence[pin.SE3], B: Sequence[pin.SE3], moved: Mask, near: float,
    size: float,
) -> bool:  # fmt: skip
    """Whether the bodies that moved from places A to places B only rolled.

    `near` is how near is the same, lengths in units of `size`.
    """
    if a.pairs != b.pairs:
        return False
    for group in _groups(a, set(np.flatnonzero(moved & a.own).tolist())):
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
            return False  # it hangs on one point
    return True


def apart(A: pin.SE3, B: pin.SE3, size: float) -> float:
    """The largest difference of two places, lengths in units of `size`."""
    lengths = np.abs(A.translation - B.translation).max() / size
    return float(max(np.abs(A.rotation - B.rotation).max(), lengths))


def _groups(a: Joints, bodies: set[int]) -> Iterator[set[int]]:
    """Bodies that joints tie together."""
    left = set(bodies)
    while left:
        group, grows = {left.pop()}, True
        while grows:
            ties = [p for p in a.pairs if (p[0] in group) != (p[1] in group)]
            new = {x for p in ties for x in p} & left
            group, left, grows = group | new, left - new, bool(new)
        yield group
