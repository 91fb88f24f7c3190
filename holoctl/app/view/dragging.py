"""What is led along the closed motions, and what stands still meanwhile.

    v = c T y        T: the motions at q, scaled, orthonormal
    a v = 1, and as little as can be, one after the other:  B_o' v,  v of the base,  v / c

a is the row that is led: of a motor, or along a motion. B_o are the other motors. Those that stand
still, and are independent, are then held exactly, and no other motion is let in:

    K = [G; a; B_h'; N']        N: what is left of T beside v and B_h

K is followed as a path is: design/paths/following.py. All is decided anew from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Indices, Mask, Vector
from holoctl.base.linalg import largest, least_squares, null_space_by_svd, pivoted_qr
from holoctl.base.tolerances import DRAG_AT_REST, DRAG_LOCKED
from holoctl.closing.rank import scaled_jacobian
from holoctl.constraints.wrench import WrenchRows
from holoctl.design.paths.following import System, system_of
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.tree.coordinates import translational
from holoctl.tree.frozen_model import plain

__all__ = [
    "DragDrive",
    "MotorRows",
    "drag_system",
    "least_motion",
    "motions_at",
    "motor_rows",
    "numbered",
    "readings",
    "rotors",
    "slides",
]


class MotorRows(NamedTuple):
    """The motors of a mechanism as rows.

    Attributes
    ----------
    rows : (nu, nv) array
        Rates by scaled velocities, pure numbers, the largest entry of each 1.
    unit : (nu,) array
        What a motor moves, rad or m, where its row moves by one.
    base : (b,) int array
        Coordinates of joints at the world that float or slide in a plane, without motor.
    """

    rows: Array
    unit: Vector
    base: Indices


def motor_rows(mech: Mechanism) -> MotorRows:
    """The motors as rows, once for each thread."""
    return mech.per_thread("view motors", lambda: _motor_rows(mech))


def _motor_rows(mech: Mechanism) -> MotorRows:
    rows = mech.B.T * mech.column_scale
    unit = np.abs(rows).max(axis=1, initial=0.0)
    unit[unit == 0.0] = 1.0
    model, driven = plain(mech.model), (mech.B != 0.0).any(axis=1)
    base = list[int]()
    for j in range(1, model.njoints):
        columns = list(range(model.idx_vs[j], model.idx_vs[j] + model.nvs[j]))
        floats = model.joints[j].shortname() in ("JointModelFreeFlyer", "JointModelPlanar")
        if model.parents[j] == 0 and floats and not driven[columns].any():
            base += columns
    return MotorRows(rows / unit[:, None], unit, np.array(base, dtype=np.intp))


def readings(mech: Mechanism, q: Vector, near: Vector) -> Vector:
    """Where the motors are (nu,), rad or m: ``B' x`` of the numbers x of their coordinates.

    Parameters
    ----------
    near : (nu,) array
        Turns of continuous joints are counted on from there. A motor on a coordinate that is no number
        of its own, as of a ball joint, is where `near` says.
    """
    places, turning = _places(mech)
    found = near.copy()
    for i, column in enumerate(mech.B.T):
        on = np.flatnonzero(column)
        if not numbered(mech, i) or (on.size > 1 and turning[on].any()):
            continue
        if on.size == 1 and turning[on[0]]:
            at, turn = places[on[0]], 2.0 * np.pi * abs(column[on[0]])
            x = column[on[0]] * np.arctan2(q[at + 1], q[at])
            found[i] = x + turn * np.round((near[i] - x) / turn)
        else:
            found[i] = column[on] @ q[places[on]]
    return found


def numbered(mech: Mechanism, motor: int) -> bool:
    """Whether a motor acts on coordinates that are numbers of their own, not of a ball or so."""
    places, _ = _places(mech)
    return bool((places[mech.B[:, motor] != 0.0] >= 0).all())


def _places(mech: Mechanism) -> tuple[Indices, Mask]:
    """Where each coordinate stands in q, -1 where it is no number; and which are continuous."""

    def found() -> tuple[Indices, Mask]:
        model = plain(mech.model)
        places = np.full(mech.nv, -1, dtype=np.intp)
        turning = np.zeros(mech.nv, dtype=bool)
        for j in range(1, model.njoints):
            flat = model.nqs[j] == model.nvs[j]
            for i in range(model.nvs[j]) if flat or model.nvs[j] == 1 else ():
                places[model.idx_vs[j] + i] = model.idx_qs[j] + i
                turning[model.idx_vs[j] + i] = not flat
        return places, turning

    return mech.per_thread("view places", found)


def slides(mech: Mechanism, motor: int) -> bool:
    """Whether a motor drives lengths alone."""
    return bool(translational(mech.model)[mech.B[:, motor] != 0.0].all())


def rotors(mech: Mechanism) -> Indices:
    """The coordinates of bodies to which nothing is fastened, and which couplings tie to others."""

    def found() -> Indices:
        model, held = plain(mech.model), np.zeros(mech.model.njoints, dtype=bool)
        coupled = np.zeros(mech.nv, dtype=bool)
        for rows in mech.bound:
            if isinstance(rows, WrenchRows):
                held[[f.joint for f in (*rows.frames1, *rows.frames2)]] = True
            else:
                coupled |= rows.support.any(axis=0)
        carries = np.array([len(children) > 0 for children in model.children])
        alone = coupled & ~(held | carries)[mech.joint_of]
        return np.flatnonzero(alone).astype(np.intp)

    return mech.per_thread("view rotors", found)


# ------------------------------------------------------------------------------- the direction


def motions_at(mech: Mechanism, part: Partition, q: Vector) -> Array:
    """T, an orthonormal basis of the motions at a closed q, (nv, k), scaled."""
    G, _ = scaled_jacobian(mech, q, 0.0, part.rows)
    return null_space_by_svd(G, part.rank)[3]


def least_motion(mech: Mechanism, T: Array, motor: int) -> Vector | None:
    """The motion (nv,), scaled, in which a motor goes by one unit, and as little else as can be.

    None where no motion moves the motor.
    """
    motors = motor_rows(mech)
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
    """A drive of paths: one row that is led, motors that are held; measured from a home.

    Attributes
    ----------
    labels : tuple of p str
    scale : (p,) array
        Ones.
    rows : (p, nv) array
        By velocities that are not scaled; pure numbers.
    """

    mech: Mechanism
    home: Vector
    labels: tuple[str, ...]
    scale: Vector
    rows: Array

    def left(self, q: Vector, value: Any) -> tuple[Vector, Array]:
        """From q to how far the rows are from home; the rows are scaled."""
        mech = self.mech
        if mech.nq == mech.nv:
            return value - self.rows @ (q - self.home), self.rows * mech.column_scale
        away = pin.difference(mech.model, self.home, q)
        D = pin.dDifference(mech.model, self.home, q, pin.ArgumentPosition.ARG1)
        return value - self.rows @ away, self.rows @ D * mech.column_scale

    def drift(self, q: Vector, v: Vector) -> Vector:
        """Zero: exact for hinges and slides; else a prediction is a little worse."""
        return np.zeros(self.scale.size)


def drag_system(
    mech: Mechanism, part: Partition, q: Vector, T: Array, t: Vector, motor: int = -1
) -> tuple[System, Indices]:
    """The system that leads along the motion t (nv,), scaled, and the motors that are held.

    Row 0 of what drives it is the motor, or where that is -1 the motion itself.
    """
    motors = motor_rows(mech)
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
