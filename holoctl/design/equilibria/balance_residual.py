"""The residual of the balance of efforts at rest.

    w = Dc (h - F - B u)                 scaled; at rest
    r = Z Z' w        [G'; B'] Z = 0     u to be found: motions that no motor moves
                      G' Z = 0           u given: all motions

r is the part of the efforts that neither the constraints nor the motors balance. Z is an
orthonormal basis in scaled coordinates, and ``Z Z'`` does not depend on its choice, so r is a
smooth function of q. An equilibrium is a closed q with r = 0. Each entry is measured relative to
the efforts that act on it, |Z Z'| times the sizes of the terms of w, so that a pendulum of one gram
on an arm of one ton is not neglected.
Reference: docs/derivations.md, "Inverse dynamics".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest, null_space_by_svd
from holoctl.base.tolerances import WEIGHT_SHARE
from holoctl.doctor.actuation import motor_rows
from holoctl.forces.sum_of_forces import all_efforts
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import inertia, nonlinear_efforts
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import rows_at
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = ["Balance"]

BALANCE_ROUNDED = 4.0
"""A residual is rounding up to this number times the number of coordinates times the machine
epsilon times the largest effort."""

BALANCE_STEP = 1e-5  # scaled
"""Step of the differences for the derivative of r."""


@dataclass(frozen=True, eq=False)
class Balance:
    """The equation of an equilibrium: see the head of this module.

    Attributes
    ----------
    mech : Mechanism
    part : Partition
        Its kept rows and ranks are used.
    u : (nu,) array or None
        Given motor efforts; None if they are to be found.
    t : float
        Time, s.
    unit : float or (nv,) array
        Unit of r during the search, N m.
    """

    mech: Mechanism
    part: Partition
    u: Vector | None
    t: float
    unit: float | Vector = 1.0

    def terms(self, kin: Kinematics) -> tuple[Vector, Vector, Vector]:
        """h, F and B u at rest, scaled: (nv,) each, N m."""
        mech, rest = self.mech, np.zeros(self.mech.nv)
        F = all_efforts(mech.bound_forces, kin).total
        Bu = rest if self.u is None else mech.B @ self.u
        c = mech.column_scale
        return c * nonlinear_efforts(mech, kin.q, rest), c * F, c * Bu

    def rows(self, kin: Kinematics) -> Array:
        """(rank, nv): the kept rows of G, scaled."""
        G = rows_at(self.mech, kin.q, kin.v, kin.t).jacobian
        scaled: Array = (G * self.mech.scale)[self.part.rows]
        return scaled

    def motions(self, kin: Kinematics, *, driven: bool) -> Array:
        """(nv, k): Z, of all motions, or, unless `driven`, of those that no motor moves."""
        A, rank = self.rows(kin), self.part.rank
        if self.mech.nu and not driven:
            A, rank = np.vstack([A, motor_rows(self.mech)]), rank + self.part.actuation_rank
        return null_space_by_svd(A, rank)[3]

    def left(self, kin: Kinematics) -> Vector:
        """r, (nv,), in the unit."""
        h, F, Bu = self.terms(kin)
        Z = self.motions(kin, driven=self.u is not None)
        r: Vector = Z @ (Z.T @ (h - F - Bu)) / self.unit
        return r

    def left_and_slope(self, kin: Kinematics) -> tuple[Vector, Array]:
        """r, and its derivative by steps of q (nv, nv), by central differences."""
        mech, D = self.mech, np.zeros((self.mech.nv, self.mech.nv))
        for i, size in enumerate(BALANCE_STEP * mech.column_scale):
            plus, minus = (self.left(self.beside(kin.q, i, side * size)) for side in (1.0, -1.0))
            D[:, i] = (plus - minus) / (2.0 * size)
        return self.left(kin), D

    def beside(self, q: Vector, i: int, step: float) -> Kinematics:
        """The kinematics at rest after a step of one coordinate."""
        move = np.zeros(self.mech.nv)
        move[i] = step
        return self.at(pin.integrate(self.mech.model, q, move))

    def at(self, q: Vector) -> Kinematics:
        """The kinematics at rest."""
        mech = self.mech
        return kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), self.t)

    def off(self, kin: Kinematics) -> float:
        """The largest entry of r as a share of the efforts that act on it; rounding counts as
        zero."""
        sizes, r = self._sizes(kin), np.abs(self.unit * self.left(kin))
        rounding = BALANCE_ROUNDED * sizes.size * np.finfo(float).eps * largest(self.acting(kin))
        counts = (sizes > 0.0) & (r > rounding)
        return largest(r[counts] / sizes[counts])

    def usual(self, q: Vector) -> Vector:
        """(nv,): usual sizes of the efforts on each entry of r around a configuration, N m."""
        beside = pin.integrate(self.mech.model, q, 0.1 * self.mech.column_scale)
        places = [self.at(place) for place in (q, beside)]
        sizes = np.maximum(*map(self._sizes, places))
        acting = max(largest(self.acting(kin)) for kin in places)
        usual = np.where(sizes > 0.0, sizes, largest(sizes) or 1.0)
        return np.maximum(usual, WEIGHT_SHARE * acting)  # not below the rounding of other entries

    def acting(self, kin: Kinematics) -> Vector:
        """(nv,): sizes of the terms of w, N m."""
        found: Vector = sum(map(np.abs, self.terms(kin)), np.zeros(self.mech.nv))
        return found

    def carried(self, kin: Kinematics) -> Vector:
        """(nv,): moment, on a lever of their size, of the weight of the bodies that a coordinate
        moves, N m."""
        mech, model = self.mech, plain(self.mech.model)
        masses = np.array([body.mass for body in model.inertias])
        for i in range(model.njoints - 1, 0, -1):
            masses[model.parents[i]] += masses[i]
        moved = masses[mech.joint_of] * inertia(mech, kin.q).diagonal()
        gravity = float(np.linalg.norm(model.gravity.linear))
        found: Vector = gravity * mech.column_scale * np.sqrt(np.maximum(moved, 0.0))
        return found

    def _sizes(self, kin: Kinematics) -> Vector:
        """(nv,): sizes of the efforts on each entry of r; 0 for coordinates that the motions Z
        hardly move, whose entries add no information."""
        Z = self.motions(kin, driven=self.u is not None)
        touched = np.linalg.norm(Z, axis=1) >= 0.5 / np.sqrt(max(Z.shape[0], 1))
        sizes = np.abs(Z @ Z.T) @ (self.acting(kin) + WEIGHT_SHARE * self.carried(kin))
        found: Vector = np.where(touched, sizes, 0.0)
        return found
