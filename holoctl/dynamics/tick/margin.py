"""The smallest singular value sigma of gamma' B in a tick, compared with a margin.

    X = gamma (B' gamma)^-1        sigma = 1 / |X|       trace X'X bounds |X|^2

in scaled coordinates, with columns of B of norm one, as in dynamics/actuation_side.py. Where the
motors are the independent coordinates, B' gamma is the identity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from holoctl.base.checks import Array
from holoctl.dynamics.actuation import effort_scales
from holoctl.dynamics.tick.constraints_and_tree import NumericConstraints
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.coordinate_split import Split

__all__ = ["near_singularity"]


def near_singularity(
    mech: Mechanism, split: Split, K: NumericConstraints, own: bool, margin: float | None
) -> Callable[[], bool] | None:
    """A function: whether sigma is below the margin at the state of the last rows, or unknown; None
    if that cannot be. `own` as in `numeric_constraints`."""
    dependent, independent = split.dependent, split.independent
    if margin is None or (own and not dependent.size):
        return None
    most, k, scale = margin**-2.0, independent.size, mech.column_scale
    G_ind, solve, syev = split.G_ind, split.solve, lapack.dsyev
    X, u_scale = np.zeros((dependent.size, k), order="F"), effort_scales(mech)[0]
    flat, scaled = X.reshape(-1, order="F"), scale[independent] / scale[dependent, None]
    larger = float(np.max(scaled, initial=0.0)) ** 2

    def below(S: Array) -> bool:
        return not syev(S, 0)[0][-1] <= most

    def near() -> bool:
        np.copyto(X, G_ind)
        solve(X)  # -gamma of the dependent coordinates
        if k + larger * flat.dot(flat) <= most:
            return False
        np.multiply(X, scaled, X)
        return below(X.T.dot(X) + np.eye(k))

    def near_for_any_motors() -> bool:
        Y = np.linalg.solve(K.actuation() * u_scale, (K.basis() / scale[:, None]).T)
        return below(Y.dot(Y.T))

    return near if own else near_for_any_motors
