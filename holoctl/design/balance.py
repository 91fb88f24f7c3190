"""What of all efforts at rest neither the constraints nor the motors balance.

    w = Dc (h - F - B u)                 scaled; at rest
    r = Z Z' w        [G'; B'] Z = 0     u to be found: motions that no motor moves
                      G' Z = 0           u given: all motions

Z is an orthonormal basis in scaled coordinates, and ``Z Z'`` does not depend on its choice, so r is
a smooth function of q. An equilibrium is a closed q with r = 0.
Reference: docs/derivations.md, "Inverse dynamics".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.linalg import largest, null_space_by_svd
from holoctl.base.tolerances import BALANCE_STEP, WEIGHT_SHARE
from holoctl.doctor.actuation import motor_rows
from holoctl.dynamics.certificate import weight
from holoctl.forces.together import all_efforts
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import nonlinear_efforts
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import constraint_rows
from holoctl.tree.kinematics import Kinematics

__all__ = ["Balance"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Balance:
    """See the head of this module.

    Attributes
    ----------
    mech : Mechanism
    part : Partition
        Its kept rows and ranks count.
    u : (nu,) array or None
        Efforts that are given; None where they are to be found.
    t : float
    unit : float
        What r is divided by on the way, N m.
    """

    mech: Mechanism
    part: Partition
    u: Vector | None
    t: float
    unit: float = 1.0

    def terms(self, kin: Kinematics) -> tuple[Vector, Vector, Vector]:
        """h, F and B u at rest, scaled: (nv,) each, N m."""
        mech, rest = self.mech, np.zeros(self.mech.nv)
        F = all_efforts(mech.bound_forces, kin).total
        Bu = rest if self.u is None else mech.B @ self.u
        c = mech.column_scale
        return c * nonlinear_efforts(mech, kin.q, rest), c * F, c * Bu

    def rows(self, kin: Kinematics) -> Array:
        """(rank, nv): the kept rows of G, scaled."""
        _, found = constraint_rows(self.mech, kin.q, kin.v, kin.t, kin)
        scaled: Array = (found.jacobian * self.mech.scale)[self.part.rows]
        return scaled

    def left(self, kin: Kinematics) -> Vector:
        """r, (nv,), over the unit."""
        h, F, Bu = self.terms(kin)
        A, rank = self.rows(kin), self.part.rank
        if self.u is None and self.mech.nu:
            A, rank = np.vstack([A, motor_rows(self.mech)]), rank + self.part.actuation_rank
        Z = null_space_by_svd(A, rank)[3]
        r: Vector = Z @ (Z.T @ (h - F - Bu)) / self.unit
        return r

    def left_and_slope(self, kin: Kinematics) -> tuple[Vector, Array]:
        """r, and its derivative by steps of q (nv, nv), by central differences."""
        mech, D = self.mech, np.zeros((self.mech.nv, self.mech.nv))
        for i, size in enumerate(BALANCE_STEP * mech.column_scale):
            ahead, behind = (self.left(self.beside(kin.q, i, side * size)) for side in (1.0, -1.0))
            D[:, i] = (ahead - behind) / (2.0 * size)
        return self.left(kin), D

    def beside(self, q: Vector, i: int, step: float) -> Kinematics:
        """The kinematics where one coordinate has moved."""
        move = np.zeros(self.mech.nv)
        move[i] = step
        return self.at(pin.integrate(self.mech.model, q, move))

    def at(self, q: Vector) -> Kinematics:
        """The kinematics at rest."""
        return constraint_rows(self.mech, q, np.zeros(self.mech.nv), self.t)[0]

    def off(self, kin: Kinematics) -> float:
        """The largest of r as a share of the efforts that act."""
        size = sum(largest(x) for x in self.terms(kin)) + WEIGHT_SHARE * weight(self.mech)
        error = self.unit * largest(self.left(kin))
        return error / size if size > 0.0 else 0.0

    def usual(self, q: Vector) -> float:
        """Usual size of the efforts about a configuration, N m; 1 where nothing acts."""
        step = 0.1 * self.mech.column_scale
        beside = pin.integrate(self.mech.model, q, step)
        sizes = [largest(x) for place in (q, beside) for x in self.terms(self.at(place))]
        return max(*sizes, weight(self.mech)) or 1.0
