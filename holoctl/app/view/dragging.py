"""The motion of a drag among the admissible motions, and the motors held meanwhile.

    v = c T y        T: the motions at q, scaled, orthonormal
    a v = 1, with least norm, in this order of priority:  B_o' v,  v of the base,  v / c

a is the dragged row: of a motor, or along a motion. B_o are the other motors. Independent motors
that do not move in v are held exactly, and all other motions are excluded:

    K = [G; a; B_h'; N']        N: the complement of v and B_h in T

The system is followed like a path: design/paths/path_continuation.py. All choices are made again at
each step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Indices, Mask, Vector
from holoctl.base.linalg import largest, least_squares, null_space_by_svd, pivoted_qr
from holoctl.base.tolerances import DRAG_LOCKED
from holoctl.closing.rank import scaled_jacobian
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.design.paths.path_continuation import System, system_of
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.tree.coordinates import translational
from holoctl.tree.frozen_model import plain

__all__ = [
    "DragDrive",
    "DragModel",
    "drag_model",
    "drag_system",
    "least_motion",
    "motions_at",
    "readings",
]

DRAG_AT_REST = 1e-9
"""Motors that move by less than this fraction of the motion are at rest, and are held exactly."""


class DragModel(NamedTuple):
    """Quantities that do not change while a mechanism is dragged.

    Attributes
    ----------
    rows : (nu, nv) array
        Rates of the motors by scaled velocities, dimensionless, the largest entry of each row 1.
    unit : (nu,) array
        Motion of a motor, rad or m, if its row moves by one.
    slides, numbered : (nu,) masks
        Motors that drive lengths alone; motors on single coordinates, not on those of a ball joint,
        for example.
    base : int array
        Coordinates of joints at the world that float or slide in a plane, without motor.
    rotors : int array
        Coordinates of bodies without attached joints or closures that couplings tie to others.
    places : (nv,) int array
        Index of each coordinate in q, -1 if it is no single position.
    continuous : (nv,) mask
        Coordinates of continuous joints.
    limits : BoundLimits
    """

    rows: Array
    unit: Vector
    slides: Mask
    numbered: Mask
    base: Indices
    rotors: Indices
    places: Indices
    continuous: Mask
    limits: BoundLimits


def drag_model(mech: Mechanism) -> DragModel:
    """The `DragModel` of a mechanism, made once for each thread."""
    return mech.per_thread("drag model", lambda: _drag_model(mech))


def _drag_model(mech: Mechanism) -> DragModel:
    model, driven, lengths = plain(mech.model), mech.B != 0.0, translational(mech.model)
    rows = mech.B.T * mech.column_scale
    unit = np.abs(rows).max(axis=1, initial=0.0)
    unit[unit == 0.0] = 1.0
    places, continuous = np.full(mech.nv, -1, dtype=np.intp), np.zeros(mech.nv, dtype=bool)
    base, held = list[int](), np.array([len(children) > 0 for children in model.children])
    for j in range(1, model.njoints):
        columns = model.idx_vs[j] + np.arange(model.nvs[j])
        flat = model.nqs[j] == model.nvs[j]
        if flat or model.nvs[j] == 1:
            places[columns] = model.idx_qs[j] + np.arange(model.nvs[j])
            continuous[columns] = not flat
        floats = model.joints[j].shortname() in ("JointModelFreeFlyer", "JointModelPlanar")
        if model.parents[j] == 0 and floats and not driven[columns].any():
            base += columns.tolist()
    coupled = np.zeros(mech.nv, dtype=bool)
    for bound in mech.bound:
        if isinstance(bound, WrenchRows):
            held[[f.joint for f in (*bound.frames1, *bound.frames2)]] = True
        else:
            coupled |= bound.support.any(axis=0)
    return DragModel(
        rows / unit[:, None], unit,
        np.array([lengths[on].all() for on in driven.T], dtype=bool),
        np.array([(places[on] >= 0).all() for on in driven.T], dtype=bool),
        np.array(base, dtype=np.intp), np.flatnonzero(coupled & ~held[mech.joint_of]),
        places, continuous, bound_limits(mech, limits_of(mech)),
    )  # fmt: skip


def readings(mech: Mechanism, q: Vector, near: Vector) -> Vector:
    """Positions of the motors (nu,), rad or m: ``B' x`` with the positions x of their coordinates.

    Parameters
    ----------
    near : (nu,) array
        The turns of continuous joints are those nearest to these positions. A motor without single
        coordinates, on a ball joint for example, keeps this value.
    """
    model, found = drag_model(mech), near.copy()
    places, continuous = model.places, model.continuous
    for i in np.flatnonzero(model.numbered):
        column = mech.B[:, i]
        on = np.flatnonzero(column)
        if not continuous[on].any():
            found[i] = column[on] @ q[places[on]]
        elif on.size == 1:
            at, turn = places[on[0]], 2.0 * np.pi * abs(column[on[0]])
            x = column[on[0]] * np.arctan2(q[at + 1], q[at])
            found[i] = x + turn * np.round((near[i] - x) / turn)
    return found


# ------------------------------------------------------------------------------- the direction


def motions_at(mech: Mechanism, part: Partition, q: Vector) -> Array:
    """T, an orthonormal basis of the motions at a closed q, (nv, k), scaled."""
    G, _ = scaled_jacobian(mech, q, 0.0, part.rows)
    return null_space_by_svd(G, part.rank)[3]


def least_motion(mech: Mechanism, T: Array, motor: int) -> Vector | None:
    """The motion (nv,), scaled, in which a motor moves by one unit and all else as little as
    possible.

    None if no motion moves the motor.
    """
    motors = drag_model(mech)
    own = motors.rows[motor] @ T
    size = float(np.linalg.norm(own))
    if not size > DRAG_LOCKED:
        return None
    y, Z = own / size**2, null_space_by_svd(own[None], 1)[3]
    others = np.delete(motors.rows, motor, axis=0) @ T
    for level in (others, T[motors.base], T):
        if not Z.shape[1] or not level.shape[0]:
            continue
        A = level @ Z
        _, s, Vt = np.linalg.svd(A)
        rank = int(np.count_nonzero(s > DRAG_LOCKED))
        y = y - Z @ least_squares(A, level @ y, rcond=DRAG_LOCKED / max(float(s[0]), DRAG_LOCKED))
        Z = Z @ Vt[rank:].T
    found: Vector = T @ y
    return found


# ---------------------------------------------------------------------------- the square system


@dataclass(frozen=True, eq=False)
class DragDrive:
    """Driven rows of a drag: the dragged row and those of held motors, measured from `home`.

    Attributes
    ----------
    labels : tuple of p str
    scale : (p,) array
        Ones.
    rows : (p, nv) array
        By velocities that are not scaled; dimensionless.
    """

    mech: Mechanism
    home: Vector
    labels: tuple[str, ...]
    scale: Vector
    rows: Array

    def left(self, q: Vector, value: Any) -> tuple[Vector, Array]:
        """The difference of a value from that at q, and the rows, scaled."""
        mech = self.mech
        if mech.nq == mech.nv:
            return value - self.rows @ (q - self.home), self.rows * mech.column_scale
        away = pin.difference(mech.model, self.home, q)
        D = pin.dDifference(mech.model, self.home, q, pin.ArgumentPosition.ARG1)
        return value - self.rows @ away, self.rows @ D * mech.column_scale

    def drift(self, q: Vector, v: Vector) -> Vector:
        """Zero: exact for joints of one coordinate; for others the prediction is less accurate."""
        return np.zeros(self.scale.size)


def drag_system(
    mech: Mechanism, part: Partition, q: Vector, T: Array, t: Vector, motor: int = -1
) -> tuple[System, Indices]:
    """The square system along the motion t (nv,), scaled, and the indices of held motors.

    Row 0 of its drive is the motor, or the motion itself if `motor` is -1.
    """
    motors = drag_model(mech)
    size = float(np.linalg.norm(t))
    own = motors.rows[motor] if motor >= 0 else t / size**2
    still = np.abs(motors.rows @ t) <= DRAG_AT_REST * largest(t)
    still[motor if motor >= 0 else []] = False
    resting = np.flatnonzero(still)
    S, y = motors.rows[resting] @ T, (T.T @ t) / size
    qr = pivoted_qr(S.T, tol=DRAG_LOCKED, size=1.0)
    kept = np.sort(qr.pivots[: qr.rank])
    held, S = resting[kept], S[kept]
    N = T @ null_space_by_svd(np.vstack([y[None], S]), 1 + held.size)[3]
    rows = np.vstack([own[None], motors.rows[held]]) / mech.column_scale
    names = [mech.actuator_names[i] for i in ([motor] if motor >= 0 else [])]
    labels = (*(names or ["motion"]), *(mech.actuator_names[i] for i in held))
    drive = DragDrive(mech, q, labels, np.ones(rows.shape[0]), rows)
    return system_of(mech, part, drive, N), held
