"""The number of motions, and why counting joints and rows gives another number.

    dof = open_dof - rank(G)        Gruebler-Kutzbach: open_dof - rows

Redundant rows take no motion away, so the rule of Gruebler and Kutzbach counts too few motions: by
three for every planar or spherical loop.
Reference: K. J. Waldron and G. L. Kinzel, Kinematics, Dynamics, and Design of Machinery, on
mobility and its exceptions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, counted
from holoctl.closing.sampled_configurations import Sample, Samples
from holoctl.constraints.constraint_protocol import constraint_of
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.doctor.crossed_axes import TURNS, normal_of_axes
from holoctl.doctor.redundancy import Redundancy
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.rows.evaluate import rows_of
from holoctl.tree.kinematics import kinematics

__all__ = ["Counts", "counts"]

SPECIAL = 1e-7
"""Tolerance within which axes of a loop are parallel, or meet: a planar or spherical loop."""


@dataclass(frozen=True)
class Counts:
    """Coordinates, rows, ranks; the fields are those of `MobilityReport`, and:

    Attributes
    ----------
    crossing : bool
        Whether paths cross here though the rank is that of configurations nearby.
    reason : str
        Why the rule of Gruebler and Kutzbach gives another number than `dof`; empty if it does not.
    """

    open_dof: int
    rows: int
    active: int
    generic_rank: int
    finite_dof: int
    crossing: bool = False
    reason: str = ""

    @property
    def dof(self) -> int:
        """Motions that are possible at this instant."""
        return self.open_dof - self.active

    @property
    def gruebler(self) -> int:
        """Motions by the rule of Gruebler and Kutzbach, as if all rows were independent."""
        return self.open_dof - self.rows

    @property
    def shaky(self) -> int:
        """Motions that are possible to first order, in general, but not finitely."""
        return self.open_dof - self.generic_rank - self.finite_dof


def counts(mech: Mechanism, s: Samples, r: Redundancy, t: float) -> Counts:
    """The counts of a mechanism that closes."""
    reason = _reason(mech, s, r, t)
    ranks = (s.here.rank, s.generic_rank, s.finite_dof)
    return Counts(mech.nv, mech.row_scale.size, *ranks, s.crossing, reason)


def _reason(mech: Mechanism, s: Samples, r: Redundancy, t: float) -> str:
    if mech.row_scale.size == s.here.rank:
        return ""
    reasons = []
    if r.redundant:
        n = len(r.redundant)
        text = f"{counted(n, 'constraint row is', 'constraint rows are')} redundant"
        kinds = _loops(mech, s.generic[0], r, t)
        if kinds:
            text += f" ({'; '.join(kinds)})"
        reasons.append(text)
    short = mech.row_scale.size - s.here.rank - len(r.redundant)
    if short > 0:
        rows = counted(short, "row has", "rows have")
        reasons.append(f"{rows} no first-order effect at this configuration")
    return ", and ".join(reasons)


def _loops(mech: Mechanism, at: Sample, r: Redundancy, t: float) -> list[str]:
    """The special geometry of the loops with redundant rows."""
    concerned = {constraint_of(row) for row in r.redundant}
    kin = kinematics(mech.model, workspace(mech), at.q, np.zeros(mech.nv), t)
    kinds: dict[str, list[str]] = {}
    for name, rows in zip(mech.constraint_names, mech.bound, strict=True):
        if name in concerned and isinstance(rows, WrenchRows):
            size_of_loop = float((1.0 / mech.row_scale[rows_of(mech, name)]).max())
            J = kin.J[:, rows.support.any(axis=0)]
            kind = _kind(J, max(SPECIAL, at.tolerance), size_of_loop)
            kinds.setdefault(kind, []).append(name)
    return [f"{', '.join(loops)}: {kind}" for kind, loops in kinds.items()]


def _kind(J: Array, tolerance: float, length: float) -> str:
    """Planar, spherical, or special: from the screws (6, n) of the joints of a loop."""
    linear, angular = J[:3].T, J[3:].T
    size = max(float(np.abs(linear).max()), length)
    if normal_of_axes(J, tolerance, size) is not None:
        return "a planar loop"
    if (np.linalg.norm(angular, axis=1) > TURNS).any():
        # v + omega x p = 0 at one common point p
        A = np.concatenate([pin.skew(w) for w in angular])
        p = np.linalg.lstsq(A, -linear.ravel(), rcond=None)[0]
        if np.abs(A @ p + linear.ravel()).max() < tolerance * size:
            return "a spherical loop, all axes meet in a point"
    elif np.linalg.matrix_rank(linear, tol=tolerance * size) < 3:
        return "a loop of coplanar prismatic joints"
    return "special dimensions or directions"
