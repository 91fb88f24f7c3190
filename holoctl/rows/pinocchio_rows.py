"""Rows expressed as constraints of Pinocchio, for its sparse factorisation.

An anchor is a Pinocchio constraint that fixes a frame of body 2 to a frame of body 1: its origin (3
rows), or its whole placement (6). Its rows are the twist t of frame 2 relative to frame 1, along
the axes of frame 1. The corresponding rows of this library, 3 of a point or any 6 between two
bodies, are

    rate = T t        G = T J        G a = -drift   <=>   J a = T^-1 (-drift)

with a regular T(q): both allow the same motions and the same acceleration. Only the right-hand side
differs. Along the rows of this library at zero acceleration, t' is

    three rows of a point       0
    the six of a weld           (-alpha x d - w x (u + w x d), alpha),  alpha = |w|^2 x / (2 x_0)
    six linear rows             see `_of_contacts`
    any six, where t = 0        0

with t = (u, w), d from origin 1 to origin 2, and (x, x_0) the quaternion of R1^T R2. So Pinocchio's
factorisation solves the equations of this library, off the manifold too.
Derivation: docs/derivations.md, "Anchors".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.linalg import lapack

from holoctl.base.checks import Array, Indices, Vector
from holoctl.constraints.kinds import LINEAR
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.rigid_constraints import is_point, is_weld
from holoctl.rows.evaluate import constraint_rows
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import Kinematics

__all__ = [
    "Anchor",
    "Anchored",
    "anchored",
    "anchors",
    "motion_of_rows",
]

ANCHOR_WHOLE = 1e-6
"""Six rows are an anchor if the least singular value of the scaled T at the reference is larger."""

ANCHOR_HALF_TURN = 2.9  # rad
"""A weld that is open by a larger angle is left to other solvers: its rotation axis is undefined
near half a turn."""

ANCHOR_DOUBT = 1e4
"""Six other rows of an anchor are left to other solvers if a pivot of the scaled T is smaller than
one over this."""

ANCHOR_AT_REST = 1e-9  # m/s, rad/s
"""Twists of an anchor up to this are rounding: their squares are negligible compared with a."""


@dataclass(frozen=True, eq=False)
class Anchor:
    """A Pinocchio constraint, and the equivalent rows of the mechanism.

    Attributes
    ----------
    rows : (3,) or (6,) int array
        The indices of the rows.
    tables : tuple of WrenchRows
        The same rows, one table for each constraint.
    """

    rows: Indices
    tables: tuple[WrenchRows, ...]

    @property
    def frames(self) -> tuple[Frame, Frame]:
        """Frames 1 and 2: those of the first table."""
        return self.tables[0].frames1[0], self.tables[0].frames2[0]

    def transformation(self, kin: Kinematics, wrenches: Array) -> Array:
        """T, square: the rows of the mechanism are ``T J`` with the J of the anchor. `wrenches` are
        those of all rows of the mechanism."""
        frame = self.frames[0]
        to_world = (kin.placements[frame.joint] * frame.placement).toActionMatrix()
        T: Array = wrenches[self.rows] @ to_world
        return T[:, : self.rows.size]

    def model(self, model: pin.Model) -> pin.ConstraintModel:
        """The constraint model of Pinocchio."""
        a, b = self.frames
        kind = (
            pin.PointAnchorConstraintModel
            if self.rows.size == 3
            else pin.FrameAnchorConstraintModel
        )
        return pin.ConstraintModel(kind(model, a.joint, a.placement, b.joint, b.placement))


def anchors(mech: Mechanism) -> tuple[Anchor, ...]:
    """The anchors that are equivalent to all rows; empty if some rows belong to none.

    Six rows between the same two bodies are one anchor, even of several constraints: contacts of
    one foot may fix it like a weld.
    """
    between: dict[tuple[int, int], list[Anchor]] = {}
    start = 0
    for table in mech.bound:
        if type(table) is not WrenchRows:
            return ()
        rows, start = np.arange(start, start + len(table.labels)), start + len(table.labels)
        bodies = table.frames1[0].joint, table.frames2[0].joint
        between.setdefault(bodies, []).append(Anchor(rows, (table,)))
    kin, rows_there = constraint_rows(mech, mech.reference, np.zeros(mech.nv))
    W = rows_there.wrenches
    if W is None:
        return ()
    found: list[Anchor] = []
    for single in between.values():
        together = Anchor(
            np.concatenate([one.rows for one in single]), sum((one.tables for one in single), ())
        )
        found += [together] if _is_whole(mech, kin, W, together) else single
    return tuple(found) if all(_is_whole(mech, kin, W, one) for one in found) else ()


def _is_whole(mech: Mechanism, kin: Kinematics, wrenches: Array, anchor: Anchor) -> bool:
    if anchor.rows.size == 3 and len(anchor.tables) == 1:
        return is_point(anchor.tables[0])
    if anchor.rows.size != 6:
        return False
    scale = mech.row_scale[anchor.rows]
    is_length = np.concatenate([t.is_length for t in anchor.tables])
    if not is_length.any():
        return False
    length = 1.0 / scale[is_length].max()
    T = scale[:, None] * anchor.transformation(kin, wrenches) * np.array([length] * 3 + [1.0] * 3)
    return bool(np.linalg.svd(T, compute_uv=False)[-1] > ANCHOR_WHOLE)


@dataclass(frozen=True, eq=False)
class Anchored:
    """A workspace for one thread: constraint models are neither copied nor pickled."""

    models: Any
    datas: Any
    data: pin.Data
    factors: Any


def anchored(model: pin.Model, found: Sequence[Anchor]) -> Anchored:
    """Pinocchio's models and data of anchors, and the factorisation prepared for them."""
    data = model.createData()
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for anchor in found:
        models.append(anchor.model(model))
    for m in models:
        datas.append(m.createData())
    factors = pin.ConstraintCholeskyDecomposition(model, data, models, datas)
    return Anchored(models, datas, data, factors)


# ------------------------------------------------------------------------------- in a tick


def motion_of_rows(
    mech: Mechanism, anchor: Anchor, found: Any, right: Vector
) -> Callable[[], bool] | None:
    """A function that sets `right` so that ``J a = right`` is equivalent to the rows.

    The function returns False at states that other solvers must handle; None if it could handle no
    state.

    Parameters
    ----------
    mech : Mechanism
    anchor : Anchor
    found : pin.FrameAnchorConstraintData or pin.PointAnchorConstraintData
        Pinocchio's data of the anchor.
    right : (3,) or (6,) array
    """
    table, place = anchor.tables[0], found.c1Mc2
    read = (
        (found, "constraint_position_error"), (found, "constraint_velocity_error"),
        (found, "constraint_acceleration_error"), (place, "translation"), (place, "rotation"),
    )  # fmt: skip
    if not all(np.shares_memory(getattr(x, name), getattr(x, name)) for x, name in read):
        return None  # copies, which would not change with the workspace
    if anchor.rows.size == 3:
        return _of_point(found, right)
    if len(anchor.tables) == 1 and is_weld(table):
        return _of_weld(found, right)
    if all(set(t.kinds) == {LINEAR} for t in anchor.tables):
        return _of_contacts(mech, anchor, found, right)
    return None


def _of_point(found: Any, right: Vector) -> Callable[[], bool]:
    bias = found.constraint_acceleration_error

    def evaluate() -> bool:
        np.negative(bias, right)
        return True

    return evaluate


def _of_weld(found: Any, right: Vector) -> Callable[[], bool]:
    twist, bias = found.constraint_velocity_error, found.constraint_acceleration_error
    turn, d = found.constraint_position_error[3:], found.c1Mc2.translation

    def evaluate() -> bool:
        if not turn.dot(turn) < ANCHOR_HALF_TURN**2:
            return False
        np.negative(bias, right)
        if not twist.dot(twist) < ANCHOR_AT_REST**2:
            np.add(right, _of_moving_weld(twist.tolist(), turn.tolist(), d.tolist()), right)
        return True

    return evaluate


def _of_moving_weld(twist: list[float], turn: list[float], d: list[float]) -> list[float]:
    """t' along the rows of a moving weld: see the docstring of this file. `turn` is the rotation
    vector. All arguments are floats: numpy would take twice as long."""
    u, w = twist[:3], twist[3:]
    angle = math.hypot(*turn)
    tan_by_2 = math.tan(angle / 2.0) / (2.0 * angle) if angle > 1e-8 else 0.25
    size = (w[0] * w[0] + w[1] * w[1] + w[2] * w[2]) * tan_by_2
    alpha = [size * turn[0], size * turn[1], size * turn[2]]
    return _at_origin_1(u, w, [0.0, 0.0, 0.0], alpha, d)


def _at_origin_1(
    u: list[float], w: list[float], a2: list[float], alpha: list[float], d: list[float]
) -> list[float]:
    """t' if frame 2 has the acceleration a2 at its own origin, relative to frame 1: u = v2 - w x d
    has the rate a2 - alpha x d - w x v2."""
    wd = _cross(w, d)
    one, other = _cross(alpha, d), _cross(w, [u[0] + wd[0], u[1] + wd[1], u[2] + wd[2]])
    return [
        a2[0] - one[0] - other[0], a2[1] - one[1] - other[1], a2[2] - one[2] - other[2], *alpha
    ]  # fmt: skip


def _cross(a: list[float], b: list[float]) -> tuple[float, float, float]:
    (x, y, z), (u, v, w) = a, b
    return y * w - z * v, z * u - x * w, x * v - y * u


def _of_contacts(
    mech: Mechanism, anchor: Anchor, found: Any, right: Vector
) -> Callable[[], bool] | None:
    """Six linear rows n at points r of body 2: they fix it if T, with rows (n, R r x n) about
    origin 2, is regular, which depends on the rotation R. A point has the acceleration a2 + alpha x
    R r + w x (w x R r), so T (a2, alpha) = -n . (w x (w x R r))."""
    (frame1, frame2), n, r = anchor.frames, np.zeros((6, 3)), np.zeros((6, 3))
    tables = [(table, i) for table in anchor.tables for i in range(len(table.labels))]
    for row, (table, i) in enumerate(tables):
        to_1 = frame1.placement.rotation.T @ table.frames1[0].placement.rotation
        n[row] = to_1 @ table.a[i]
        r[row] = frame2.placement.actInv(table.frames2[0].placement.translation)
    r *= mech.row_scale[anchor.rows, None]  # in the unit of length of the rows
    length = 1.0 / float(mech.row_scale[anchor.rows[0]])
    moment = np.einsum("kab,ib,ic->ikca", _LEVI_CIVITA, n, r).reshape(18, 9)
    along = np.einsum("ia,ic->ica", n, r).reshape(6, 9)
    d, R = found.c1Mc2.translation, found.c1Mc2.rotation
    columns_of_R = R.T.reshape(9)  # column-major, as stored
    if not np.shares_memory(columns_of_R, R):
        return None
    T, inverse = np.zeros((6, 6), order="F"), np.zeros(6)
    T[:, :3] = n
    moments, getrf, getrs = T[:, 3:], lapack.dgetrf, lapack.dgetrs
    twist, bias = found.constraint_velocity_error, found.constraint_acceleration_error
    w = twist[3:]

    def evaluate() -> bool:
        moments[:] = moment.dot(columns_of_R).reshape(6, 3)
        factors, order, info = getrf(T)
        if info:
            return False
        np.divide(1.0, factors.diagonal(), inverse)
        if not inverse.dot(inverse) < ANCHOR_DOUBT**2:
            return False
        np.negative(bias, right)
        if not twist.dot(twist) < ANCHOR_AT_REST**2:
            # -n . (w x (w x R r)) = |w|^2 n . R r - (n . w) (w . R r)
            inwards = w.dot(w) * along.dot(columns_of_R) - n.dot(w) * r.dot(w.dot(R))
            x = getrs(factors, order, inwards)[0].tolist()
            t, a2 = twist.tolist(), [length * x[0], length * x[1], length * x[2]]
            np.add(right, _at_origin_1(t[:3], t[3:], a2, x[3:], d.tolist()), right)
        return True

    return evaluate


_LEVI_CIVITA = np.zeros((3, 3, 3))
_LEVI_CIVITA[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1.0
_LEVI_CIVITA[[0, 1, 2], [2, 0, 1], [1, 2, 0]] = -1.0
