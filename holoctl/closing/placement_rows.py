"""The derivatives of rows by displacements of joints and of frames of constraints.

    phi changes by  w . X (dtranslation, drotation)        body 2 moves: +, body 1 moves: -

for a row with the wrench w, and X the motion, in world axes, of the bodies that the frame carries.
Derivation: docs/derivations.md, "Repaired geometry".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.frame_displacements import frames_of, movable
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import constraint_rows
from holoctl.tree.frames import Frame
from holoctl.tree.frozen_model import plain

__all__ = ["Placements", "placements_of", "scaled_rows_by_placement"]


@dataclass(frozen=True, eq=False)
class Placements:
    """n placements that may be displaced, and the bodies that they carry.

    Attributes
    ----------
    names : tuple of n str
    joints : tuple of int
        The joints, which are the first of the n.
    frames : tuple of (constraint, Frame)
        For each of the others: the index of the constraint, and the initial frame.
    sign : (m, n) array
        +1 if a placement moves only body 2 of a row, -1 only body 1, else 0.
    length : (n,) array
        Size of their loops, m.
    """

    names: tuple[str, ...]
    joints: tuple[int, ...]
    frames: tuple[tuple[int, int], ...]
    sign: Array
    length: Vector

    @property
    def units(self) -> Vector:
        """(6 n,): the size of one scaled unit of each entry, m or rad."""
        found: Vector = np.column_stack([np.repeat(self.length[:, None], 3, axis=1),
                                         np.ones((self.length.size, 3))]).ravel()  # fmt: skip
        return found


def placements_of(mech: Mechanism) -> Placements:
    """All placements that can be displaced."""
    model = plain(mech.model)
    joints = tuple(range(1, model.njoints))
    frames = tuple(
        (i, 0 if side == "a" else 1)
        for i, constraint in enumerate(mech.constraints)
        for side in frames_of(constraint)
    )
    sign = np.zeros((mech.row_scale.size, len(joints) + len(frames)))
    moves = np.zeros((model.njoints, len(joints)))  # joint k is moved by placement j
    for k in joints:
        moves[k, [j - 1 for j in list(model.supports[k]) if j > 0]] = 1.0
    row, length = 0, np.zeros(sign.shape[1])
    for i, bound in enumerate(mech.bound):
        here = slice(row, row := row + len(bound.labels))
        if not isinstance(bound, WrenchRows):
            continue
        ends = bound.frames1[0].joint, bound.frames2[0].joint
        sign[here, : len(joints)] = moves[ends[1]] - moves[ends[0]]
        for column, (of, side) in enumerate(frames, start=len(joints)):
            if of == i:
                sign[here, column] = 1.0 if side else -1.0
        of_lengths = mech.row_scale[here][bound.is_length]
        if of_lengths.size:
            length = np.maximum(length, np.any(sign[here] != 0.0, axis=0) / of_lengths.min())
    return Placements(movable(mech), joints, frames, sign, np.where(length > 0.0, length, 1.0))


def scaled_rows_by_placement(
    mech: Mechanism, q: Vector, places: Placements
) -> tuple[Vector, Array, Array]:
    """Scaled error, scaled G, and the derivative of the error by scaled moves, (m, 6 n), at q."""
    kin, rows = constraint_rows(mech, q, np.zeros(mech.nv))
    model, wrenches = plain(mech.model), np.zeros((mech.row_scale.size, 6))
    row = 0
    for bound in mech.bound:
        here = slice(row, row := row + len(bound.labels))
        if isinstance(bound, WrenchRows):
            wrenches[here] = bound.rows(kin).wrenches
    at = [kin.placements[model.parents[j]] * model.jointPlacements[j] for j in places.joints]
    for i, side in places.frames:
        frame = _frame(mech, i, side)
        at.append(kin.placements[frame.joint] * frame.placement)
    X = np.array([x.toActionMatrix() for x in at])
    A = places.sign[:, :, None] * np.einsum("mk,nkl->mnl", wrenches, X)
    r = mech.row_scale
    scaled = r[:, None] * A.reshape(r.size, -1) * places.units
    return r * rows.error, r[:, None] * rows.jacobian * mech.column_scale, scaled


def _frame(mech: Mechanism, constraint: int, side: int) -> Frame:
    bound = mech.bound[constraint]
    if not isinstance(bound, WrenchRows):
        raise TypeError(mech.constraint_names[constraint])
    return (bound.frames2 if side else bound.frames1)[0]
