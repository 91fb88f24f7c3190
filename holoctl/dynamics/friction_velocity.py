"""The motion at which friction is compensated, where it is not the measured one.

    v* = v_t + N_d x + N_p z        B' v* = rates        N_p' M (v* - v) = 0

N_d are the motions that motors drive, N_p those that none drives (dynamics/actuation.py). So driven
motions are those of the reference, without a trace of measured noise, and motions that no motor
drives have the momentum that they are measured with: v* is where impulses of the motors alone would
take v. No choice of coordinates, and of joints to cut, is in it.
Reference: docs/forces.md, "Friction in a controller".
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.linalg import cholesky, least_squares
from holoctl.dynamics.actuation import Actuation
from holoctl.projector.projection import Projection

__all__ = ["velocity_at_reference"]


def velocity_at_reference(P: Projection, act: Actuation, rates: Vector) -> Vector:
    """v* of the rates of motors (nu,); where these contradict each other, of the nearest ones."""
    f, N = act.factors, act.passive
    wanted = (act.u_scale * (rates - P.mechanism.B.T @ P.v_t))[f.pivots]  # (A P)' = [R1 R2]' Q'
    if f.r2.size == 0:
        x = f.solve_r1(wanted, transposed=True)
    else:
        x = least_squares(np.hstack([f.r1, f.r2]).T, wanted)
    reference: Vector = P.v_t + act.driven @ x
    if N.shape[1] == 0:
        return reference
    MN = P.terms.M @ N
    return reference + N @ cholesky(N.T @ MN).solve(MN.T @ (P.v - reference))
