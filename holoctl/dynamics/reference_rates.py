"""The motion at which friction is compensated, where it is not the measured one.

    v* = v_t + N_d x + N_p N_p^+ (v - v_t)        B' v* = rates

N_d are the motions that motors drive, N_p those that none drives (dynamics/actuation.py), at right
angles to each other in scaled coordinates. So the driven motions are those of the reference,
without a trace of measured noise, and the others are as measured.
Reference: docs/forces.md, "Friction in a controller".
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.linalg import least_squares
from holoctl.dynamics.actuation import Actuation
from holoctl.projector.projection import Projection

__all__ = ["velocity_at_reference"]


def velocity_at_reference(P: Projection, act: Actuation, rates: Vector) -> Vector:
    """v* of the rates of motors (nu,); where these contradict each other, of the nearest ones."""
    mech, f, c = P.mechanism, act.factors, P.mechanism.column_scale
    wanted = (act.u_scale * (rates - mech.B.T @ P.v_t))[f.pivots]  # (A P)' = [R1 R2]' Q'
    if f.r2.size == 0:
        x = f.solve_r1(wanted, transposed=True)
    else:
        x = least_squares(np.hstack([f.r1, f.r2]).T, wanted)
    v_star: Vector = P.v_t + act.driven @ x
    if act.passive.shape[1]:
        N = act.passive / c[:, None]  # orthonormal
        v_star = v_star + act.passive @ (N.T @ ((P.v - P.v_t) / c))
    return v_star
