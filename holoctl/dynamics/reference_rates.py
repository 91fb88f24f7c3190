"""The velocity at which friction is compensated, where it is not the measured one.

    v* = v + N_d x        B' v* = rates

N_d are the motions that motors drive, at right angles (scaled) to those that none drives. So v* is
the velocity nearest to v, along the constraints, at which the motors have these rates; motions
that no motor drives stay as they are measured.
Reference: docs/forces.md, "Friction in a controller".
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.linalg import least_squares
from holoctl.dynamics.actuation import Actuation
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["velocity_at_reference"]


def velocity_at_reference(mech: Mechanism, act: Actuation, v: Vector, rates: Vector) -> Vector:
    """v* of the rates of motors (nu,); where these contradict each other, of the nearest ones."""
    f = act.factors  # (A P)' = [R1 R2]' Q', so [R1 R2]' x = what is missing
    missing = (act.u_scale * (rates - mech.B.T @ v))[f.pivots]
    x = f.solve_r1(missing, transposed=True) if f.r2.size == 0 else None
    if x is None:
        x = least_squares(np.hstack([f.r1, f.r2]).T, missing)
    v_star: Vector = v + act.driven @ x
    return v_star
