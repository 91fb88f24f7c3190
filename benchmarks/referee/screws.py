"""Mobility of first order, by the screws of the joints in the posture drawn; plain numpy.

Around each loop the twists of its joints add up to nothing: freedoms less the rank of that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SMALL = 1e-9
"""Relative: what a singular value below it is not counted."""
AXES = {
    "revolute": ("rz",), "prismatic": ("z",), "cylindrical": ("rz", "z"),
    "universal": ("rx", "ry"), "spherical": ("rx", "ry", "rz"),
}  # fmt: skip
Joint = tuple[str, str, str, Array, Array]
"""Type, both bodies, rotation and place of its frame in the world."""


def twists(kind: str, R: Array, p: Array) -> Array:
    """A column for each freedom: angular, then linear part at the origin of the world."""
    found = []
    for name in AXES[kind]:
        axis = R[:, "xyz".index(name[-1])]
        turns = name.startswith("r")
        found.append(np.r_[axis, np.cross(p, axis)] if turns else np.r_[np.zeros(3), axis])
    return np.array(found).T


def mobility(joints: Sequence[Joint]) -> int:
    """Of the mechanism as drawn. Bodies hang on the world by a tree; other joints close loops."""
    columns = [twists(kind, R, p) for kind, _, _, R, p in joints]
    starts = np.cumsum([0, *(c.shape[1] for c in columns)])
    way: dict[str, dict[int, float]] = {"universe": {}}
    waiting = list(range(len(joints)))
    closing = []
    while waiting:
        i = next((k for k in waiting if joints[k][1] in way or joints[k][2] in way), None)
        if i is None:
            raise ValueError("a body hangs on nothing")
        waiting.remove(i)
        _, a, b, _, _ = joints[i]
        if a in way and b in way:
            closing.append(i)
        elif a in way:
            way[b] = way[a] | {i: 1.0}
        else:
            way[a] = way[b] | {i: -1.0}
    loops = np.zeros((6 * len(closing), int(starts[-1])))
    for row, i in enumerate(closing):
        _, a, b, _, _ = joints[i]
        around = {i: 1.0}
        for body, sign in ((a, 1.0), (b, -1.0)):
            for k, s in way[body].items():
                around[k] = around.get(k, 0.0) + sign * s
        for k, s in around.items():
            loops[6 * row : 6 * row + 6, starts[k] : starts[k + 1]] = s * columns[k]
    if not closing:
        return int(starts[-1])
    sizes = np.linalg.svd(loops, compute_uv=False)
    return int(starts[-1] - (sizes > SMALL * sizes[0]).sum())
