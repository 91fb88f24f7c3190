"""Idle motions: bodies between two others that move and move nothing else.

The spin of a rod between two ball joints is one. No motor drives it, and none needs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.linalg import null_space_by_svd
from holoctl.base.tolerances import BODY_AT_REST
from holoctl.doctor.bodies import Bodies
from holoctl.doctor.motion import Motion, described
from holoctl.doctor.samples import travelled

__all__ = ["idle_spaces", "independent_motions"]

Array = NDArray[np.float64]


def idle_spaces(here: Bodies, undriven: Array) -> list[tuple[frozenset[int], Array]]:
    """Sets of bodies that can move alone without effect, and a basis of their motions."""
    found: dict[frozenset[int], Array] = {}
    for body in here.moving(undriven):
        basis = _least(here, undriven, body)
        group = frozenset(here.moving(basis))
        if group not in found and all(_is_idle(here, group, x) for x in basis.T):
            found[group] = basis
    return list(found.items())


def independent_motions(
    here: Bodies, spaces: Sequence[tuple[frozenset[int], Array]], t: float
) -> tuple[list[Motion], Array]:
    """As many motions as are independent and go on, those of few bodies first, and their basis."""
    found, basis = list[Motion](), np.zeros((here.mech.nv, 0))
    for group, space in sorted(spaces, key=lambda x: (len(x[0]), sorted(x[0]))):
        for x in space.T:
            rest = x - basis @ (basis.T @ x)
            size = float(np.linalg.norm(rest))
            if size > 1e-3 and _goes_on(here, x, t):
                basis = np.column_stack([basis, rest / size])
                (motion,) = described(here, x[:, None])
                found.append(replace(motion, bodies=here.names(group, x)))
    return found, basis


def _least(here: Bodies, space: Array, body: int) -> Array:
    """The motions in `space` that move `body` and as little else as possible: far bodies rest."""
    for other in here.from_far(body):
        resting = space @ _null(here.twists(other, space))
        if resting.shape[1] and np.abs(here.twists(body, resting)).max() > BODY_AT_REST:
            space = resting
    return space


def _null(A: Array) -> Array:
    s = np.linalg.svd(A, compute_uv=False)
    return null_space_by_svd(A, int(np.count_nonzero(s > BODY_AT_REST)))[3]


def _is_idle(here: Bodies, group: frozenset[int], x: Vector) -> bool:
    """Whether this motion is one of these bodies alone.

    The bodies lie between two different ones at rest. Either all move as one, or one of them
    turns about points (or an axis) of both ends, and the others, such as the parts of a ball
    joint made of three hinges, turn about a point of one end.
    """
    edges = here.boundary(group)
    if len({outside for outside, _ in edges}) < 2:
        return False
    twists = {body: here.twists(body, x[:, None])[:, 0] for body in group}
    size = max(float(np.abs(w).max()) for w in twists.values())
    same = next(iter(twists.values()))
    if all(np.abs(w - same).max() <= BODY_AT_REST * size for w in twists.values()):
        return True

    def ends(body: int) -> set[int]:
        """The bodies at rest whose joint with the group is a fixed point of this body."""
        w = twists[body]
        return {
            outside
            for outside, point in edges
            if np.abs(here.velocity(w, point)).max() <= BODY_AT_REST * size
        }

    fixed = {body: ends(body) for body in group}
    return all(fixed.values()) and any(len(e) > 1 for e in fixed.values())


def _goes_on(here: Bodies, x: Vector, t: float) -> bool:
    d = travelled(here.mech, here.q, x, t)
    return d is None or float(x @ d) > 0.5
