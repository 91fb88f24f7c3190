"""Scales of rows and coordinates: a characteristic length for each group of coupled loops.

    row_scale     1 / L for lengths, 1 for angles
    column_scale  L for translational coordinates, 1 for angular ones

L is the size of the loops at the reference configuration. docs/derivations.md, "Scaling and rank".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.errors import InputError
from holoctl.constraints.constraint_protocol import BoundRows, constraint_of
from holoctl.tree.coordinates import joint_of_coordinate, translational
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = ["loop_length", "scales", "sizes"]

NO_SIZE = 1e-12  # m
"""Loops up to this size are points, which have no size of their own."""


def scales(
    model: pin.Model, reference: Vector, bound: Sequence[BoundRows]
) -> tuple[Vector, Vector]:
    """Row and column scales from a characteristic length for each group of coupled loops."""
    nv = model.nv
    kin = kinematics(model, model.createData(), reference, np.zeros(nv), 0.0)
    length = np.full(nv, _spread(model, kin, np.ones(nv, dtype=bool), []))
    row_length: list[Vector] = [np.zeros(0)] * len(bound)
    for columns, members in _coupled_groups(bound, nv):
        L = _spread(model, kin, columns, [bound[i] for i in members])
        length[columns] = L
        for i in members:
            row_length[i] = np.full(len(bound[i].labels), L)
    column_scale = np.where(translational(model), length, 1.0)
    rows = [_scale(b, n, column_scale) for b, n in zip(bound, row_length, strict=True)]
    return np.concatenate(rows) if rows else np.zeros(0), column_scale


def _scale(bound: BoundRows, length: Vector, columns: Vector) -> Vector:
    """Factors of rows, which must be numbers above zero."""
    owner = f"constraint {constraint_of(bound.labels[0])!r}"
    try:
        found = np.asarray(bound.scale(length.copy(), columns.copy()))
    except Exception as error:  # a user-defined class may raise anything
        raise InputError(f"{owner}: scale raised {type(error).__name__}: {error}") from error
    good = found.shape == length.shape and found.dtype.kind in "fiu"
    if not good or not ((found > 0.0) & np.isfinite(found)).all():
        raise InputError(
            f"{owner}: scale must give {length.size} "
            f"numbers above zero, one for each row; got {str(found)[:60]}"
        )
    return found.astype(float)


def loop_length(bound: Sequence[BoundRows], at: int, row_scale: Vector) -> float:
    """The size of the loop that the constraint with this index closes, m."""
    start = sum(len(b.labels) for b in bound[:at])
    scale = row_scale[start : start + len(bound[at].labels)]
    lengths = scale[scale != 1.0]
    return float(1.0 / lengths[0]) if lengths.size else 1.0


def sizes(
    model: pin.Model, reference: Vector, bound: Sequence[BoundRows], data: pin.Data | None = None
) -> tuple[float, list[float]]:
    """Size of the tree, and of each group of coupled loops, m: the diagonal of the box around
    joints, centres of mass and frames of closures, at the reference; `data` is a workspace."""
    kin = kinematics(model, data or model.createData(), reference, np.zeros(model.nv), 0.0)
    found = []
    for columns, members in _coupled_groups(bound, model.nv):
        group = [bound[i] for i in members]
        if any(b.anchors for b in group):
            found.append(_spread(model, kin, columns, group))
    return _spread(model, kin, np.ones(model.nv, dtype=bool), []), found


def _coupled_groups(
    bound: Sequence[BoundRows], nv: int
) -> list[tuple[NDArray[np.bool_], list[int]]]:
    """Constraints that share coordinates, directly or through others, with those coordinates."""
    groups: list[tuple[NDArray[np.bool_], list[int]]] = []
    for i, b in enumerate(bound):
        columns: NDArray[np.bool_] = np.asarray(b.support.any(axis=0))
        members, apart = [i], []
        for other, theirs in groups:
            if (other & columns).any():
                columns, members = np.logical_or(columns, other), theirs + members
            else:
                apart.append((other, theirs))
        groups = [*apart, (columns, members)]
    return groups


def _spread(
    model: pin.Model, kin: Kinematics, columns: NDArray[np.bool_], bound: Sequence[BoundRows]
) -> float:
    """Diagonal of the box around joint origins, centres of mass and closure frames, m."""
    joints = np.unique(joint_of_coordinate(model)[columns]).tolist()
    points, inertias = [kin.placements[j].translation for j in joints], plain(model).inertias
    points += [kin.placements[j].act(inertias[j].lever) for j in joints if inertias[j].mass > 0.0]
    points += [kin.point(frame) for b in bound for frame in b.anchors]
    if not points:
        return 1.0
    diagonal = float(np.linalg.norm(np.ptp(np.array(points), axis=0)))
    return diagonal if diagonal > NO_SIZE else 1.0
