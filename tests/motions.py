"""Closed states along a motion, far from where anything was decided."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.rows.evaluate import scaled_rows_at


def along_motion(mech, count=300, step=0.03, seed=0) -> Iterator[tuple]:
    """(q, v, G): closed states one step (scaled) after the other along one way, with velocities
    along it, and the scaled Jacobian of all rows there. It ends early where the way does.
    """
    q, at_rest = hc.assemble(mech)[0], np.zeros(mech.nv)
    rank, c = hc.partition(mech, q).rank, mech.column_scale
    heading = np.random.default_rng(seed).normal(size=mech.nv)
    for _ in range(count):
        G = scaled_rows_at(mech, q, at_rest, 0.0).jacobian
        motions = np.linalg.svd(G)[2][rank:]
        heading = motions.T @ (motions @ heading)
        heading /= np.linalg.norm(heading)
        yield q, 1.3 * c * heading, G
        q = pin.integrate(mech.model, q, step * c * heading)
        for _ in range(20):
            rows = scaled_rows_at(mech, q, at_rest, 0.0)
            if np.abs(rows.error).max(initial=0.0) < 1e-13:
                break
            u, s, vt = np.linalg.svd(rows.jacobian, full_matrices=False)
            back = vt[:rank].T @ (u[:, :rank].T @ rows.error / s[:rank])
            q = pin.integrate(mech.model, q, -c * back)
        else:
            return
