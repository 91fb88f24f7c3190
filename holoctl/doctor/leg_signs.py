"""By what sign modes are parted although legs may roll.

A leg between a universal and a ball joint may turn its cross over, and the determinant of the rows
changes its sign, but the mode is the same. The two columns of the cross enter by the velocity that
they give the ball alone:

    (a1 x r) x (a2 x r) = (r . (a1 x a2)) r        a1, a2: axes of the cross; r: from it to the ball

So the determinant has the factor r . (a1 x a2), which changes its sign with it. What is left when
it is divided out is the same for all legs that roll, and like the factor vanishes at singular
configurations only.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from holoctl.base.checks import Array, Mask, Vector
from holoctl.base.linalg import singular_values
from holoctl.closing.bodies import Bodies, bodies_at
from holoctl.closing.samples import sample
from holoctl.doctor.rolled import Joints, joints_at, may_roll
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["sign_of_legs", "that_roll"]

MOST_HUNG, ON_A_LINE = 10, 1e-3  # a count; of the size of the mechanism
"""Signs of modes are told apart from those of legs that roll where so many bodies hang on points at
most, and none but legs on points of one line."""


def that_roll(mech: Mechanism, q: Vector, t: float, size: float) -> Mask:
    """Bodies that hang on two points, as legs do, and parts of joints."""
    _, joints, may = _looked_at(mech, q, t, size)
    mask = ~joints.own
    for some in _hung(joints, np.flatnonzero(~may).tolist()):
        if len(_outer(joints, some)) == 2:
            mask[list(some)] = True
    return mask & may


def sign_of_legs(mech: Mechanism, q: Vector, t: float, size: float) -> int:
    """The sign of the factors of all legs at a configuration; 0 where more may roll than legs
    between a universal joint of the tree and a ball joint."""
    here, joints, may = _looked_at(mech, q, t, size)
    if _gimbals(here):
        return 0
    hung = _hung(joints, np.flatnonzero(~may).tolist())
    if len(hung) > MOST_HUNG:
        return 0
    sign = 1
    for n in range(1, len(hung) + 1):
        for some in combinations(hung, n):
            together = set[int]().union(*some)
            outer = _outer(joints, together)
            points = np.array([joints.centres[k] for k in outer]).reshape(-1, 3)
            if not _on_a_line(points, size):
                continue
            if n == 1:
                sign *= _of_leg(here, joints, together, outer)
            elif _connected(joints, together):
                return 0
    return sign


def _of_leg(here: Bodies, joints: Joints, leg: set[int], outer: list[int]) -> int:
    """The sign of its factor; 0 where it is no such leg."""
    if len(outer) != 2:
        return 0
    freedoms = [here.edges[k].free.shape[1] for k in outer]
    if sorted(freedoms) != [2, 3]:
        return 0
    cross, ball = outer if freedoms[0] == 2 else reversed(outer)
    body, start, end = here.edges[cross].b, joints.centres[cross], joints.centres[ball]
    parts = here.within.get(body, [])
    if len(parts) != 1 or joints.pairs[cross][1] not in leg or start is None or end is None:
        return 0  # the cross is cut, or hangs on the leg
    columns = np.concatenate([here.columns[parts[0]], here.columns[body]])
    if columns.size != 2:
        return 0
    a, b = here.J[3:, columns].T
    size = float(np.linalg.norm(a) * np.linalg.norm(b) * np.linalg.norm(end - start))
    factor = float((end - start) @ np.cross(a, b))
    return int(np.sign(factor)) if abs(factor) > here.at_rest * size else 0


def _outer(joints: Joints, bodies: set[int]) -> list[int]:
    """Joints with a centre between these bodies and others."""
    return [
        k
        for k, (a, b) in enumerate(joints.pairs)
        if joints.centres[k] is not None and (a in bodies) != (b in bodies)
    ]


def _on_a_line(points: Array, size: float) -> bool:
    """Whether there are two points and more, all of them on one line."""
    if len(points) < 2:
        return False
    s = singular_values((points - points.mean(axis=0)) / size)
    return bool(s[0] > ON_A_LINE and (s.size < 2 or s[1] <= ON_A_LINE))


def _connected(joints: Joints, bodies: set[int]) -> bool:
    reached, grows = {min(bodies)}, True
    while grows:
        ties = (set(pair) for pair in joints.pairs if bodies.issuperset(pair))
        new = set[int]().union(*(tie for tie in ties if tie & reached)) - reached
        reached, grows = reached | new, bool(new)
    return reached == bodies


def _looked_at(mech: Mechanism, q: Vector, t: float, size: float) -> tuple[Bodies, Joints, Mask]:
    here = bodies_at(mech, sample(mech, q, t), t)
    return here, joints_at(mech, q, t, size), may_roll(mech)


def _gimbals(here: Bodies) -> bool:
    """Whether joints in series turn about three axes: two positions of them are one."""
    for body, parts in here.within.items():
        columns = np.concatenate([here.columns[j] for j in (*parts, body)])
        turning = np.abs(here.J[3:, columns]).max(axis=0) > here.at_rest
        if np.count_nonzero(turning) > 2:
            return True
    return False


def _hung(joints: Joints, held: list[int]) -> list[set[int]]:
    """Bodies that move together about points: what joints without a centre tie is one; but what is
    tied to the world."""
    sets: list[set[int]] = [{0, *held}]
    for body in {x for pair in joints.pairs for x in pair} - sets[0]:
        sets.append({body})
    for (a, b), centre in zip(joints.pairs, joints.centres, strict=True):
        if centre is None:
            one, other = (next(s for s in sets if x in s) for x in (a, b))
            if one is not other:
                one |= other
                sets.remove(other)
    return [s for s in sets if 0 not in s]
