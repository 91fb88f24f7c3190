"""The velocity at which friction is compensated, if it is not the measured one.

    v* = v_t + N_d x + N_p z        B' v* = rates        N_p' M (v* - v) = 0

N_d are the motions that motors drive, N_p the passive ones (dynamics/actuation.py). So driven
motions have the rates of the reference, without measurement noise, and passive motions keep their
measured momentum: v* is the velocity after impulses of the motors alone on v. It does not depend on
the choice of coordinates, or of joints to cut.
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
    """v* for the rates of motors (nu,), or for the nearest ones that the constraints allow."""
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
