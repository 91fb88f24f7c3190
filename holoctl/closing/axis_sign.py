"""The sign of axes that a closure keeps parallel: they may have the same or opposite directions.

The rows of such a closure, a cross product, vanish for both; the cosine distinguishes them.
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Vector
from holoctl.constraints.closure import Closure
from holoctl.constraints.constraint_protocol import Rows, constraint_of
from holoctl.constraints.kinds import direction
from holoctl.constraints.wrench_rows import WrenchRows, stacked, wrench_rows
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.frames import AXES
from holoctl.tree.kinematics import kinematics

__all__ = ["axis_sign_rows", "cosine_rows", "flipped", "opposite_closures"]


def axis_sign_rows(mech: Mechanism) -> WrenchRows | None:
    """For each closure that keeps an axis parallel: the cosine between that axis of both frames."""
    return mech.per_thread("axis signs", lambda: _axis_sign_rows(mech))


def _axis_sign_rows(mech: Mechanism) -> WrenchRows | None:
    tables = []
    for c, name, bound in zip(mech.constraints, mech.constraint_names, mech.bound, strict=True):
        axis = c.parallel_axis if isinstance(c, Closure) else None
        if axis is not None and isinstance(bound, WrenchRows):
            cosine = direction(axis, AXES[axis], AXES[axis])
            tables.append(
                wrench_rows(mech.model, bound.frames1[0], bound.frames2[0], [cosine], name)
            )
    return stacked(tables) if tables else None


def cosine_rows(mech: Mechanism, q: Vector, t: float, axis_signs: WrenchRows) -> Rows:
    """The cosines at q, with their Jacobian."""
    return axis_signs.rows(kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), t))


def flipped(mech: Mechanism, q: Vector, t: float, axis_signs: WrenchRows | None) -> tuple[str, ...]:
    """Labels of the axes that point in opposite directions at q."""
    if axis_signs is None:
        return ()
    cosines = cosine_rows(mech, q, t, axis_signs).error
    return tuple(label for label, c in zip(axis_signs.labels, cosines, strict=True) if c < 0.0)


def opposite_closures(mech: Mechanism, q: Vector, t: float) -> tuple[str, ...]:
    """Closures whose axes point in opposite directions at q."""
    labels = flipped(mech, q, t, axis_sign_rows(mech))
    return tuple(sorted({constraint_of(label) for label in labels}))
