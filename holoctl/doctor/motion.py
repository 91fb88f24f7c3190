"""One motion, told by the rates of the coordinates in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array
from holoctl.base.linalg import pivoted_qr
from holoctl.closing.bodies import Bodies
from holoctl.mechanism.open_tree import nonlinear_efforts

__all__ = ["Motion", "described"]

GRAVITY_WORKS = 1e-6
"""Gravity works on a motion by more than this share of the weight of all times its size."""


@dataclass(frozen=True)
class Motion:
    """One motion, by the rates of the coordinates in it.

    Attributes
    ----------
    rates : tuple of (str, float)
        Coordinates and their rates, rad/s or m/s, the first one 1, then the largest first (lengths
        in units of the size of their loop).
    loaded : bool
        Whether gravity works on it at the configuration of the report.
    bodies : tuple of str
        For an idle motion: the bodies that move.
    """

    rates: tuple[tuple[str, float], ...]
    loaded: bool
    bodies: tuple[str, ...] = ()


def described(here: Bodies, space: Array) -> tuple[Motion, ...]:
    """Motions by coordinates: each has one coordinate of its own, with rate 1."""
    mech = here.mech
    gravity = mech.column_scale * nonlinear_efforts(mech, here.q, np.zeros(mech.nv))
    weight = pin.computeTotalMass(mech.model) * np.linalg.norm(mech.model.gravity.linear)
    if space.shape[1] == 0:
        return ()
    qr = pivoted_qr(space.T, space.shape[1])
    own = qr.pivots[: space.shape[1]]
    basis = np.linalg.solve(space[own].T, space.T)  # rows: motions
    found = []
    for i, x in sorted(zip(own.tolist(), basis, strict=True), key=lambda motion: motion[0]):
        rates = x * mech.column_scale / mech.column_scale[i]
        parts = np.flatnonzero(np.abs(x) > 1e-9 * np.abs(x).max())
        order = sorted(parts.tolist(), key=lambda j: (j != i, -abs(x[j])))
        named = tuple((mech.coordinate_names[j], float(rates[j])) for j in order)
        heavy = abs(gravity @ x) > GRAVITY_WORKS * weight * here.size * np.abs(x).max()
        found.append(Motion(named, bool(heavy)))
    return tuple(found)
