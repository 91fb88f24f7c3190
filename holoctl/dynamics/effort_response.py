"""The response of accelerations to motor efforts: the reduced dynamics with u as the only variable.

    W = gamma' M gamma        A = gamma' B        c = gamma' (M bias + h - F - J' f)
    W ydd = A u - c           a = Y u + a0        Y = gamma W^-1 A        H = A' W^-1 A

for any number of motors, equal to that of motions, larger or smaller. H is the metric of efforts by
kinetic energy: du' H du = da' M da, by Gauss's principle of least constraint.

References: F. Udwadia and R. Kalaba, Analytical Dynamics, the chapter on Gauss's principle;
docs/derivations.md, "Limits".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import Cholesky, cholesky
from holoctl.base.tolerances import SINGULAR
from holoctl.dynamics.actuation import Actuation, actuation
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.projection import Projection, projection_of
from holoctl.rows.terms import terms_at

__all__ = ["EffortResponse", "effort_response", "inertia_of_motions", "response_at"]


class EffortResponse(NamedTuple):
    """The response; see the docstring of this module.

    Attributes
    ----------
    H : (nu, nu) array
        In 1 / (kg m^2), 1 / (kg m) or 1 / kg.
    Y : (nv, nu) array
    a0 : (nv,) array
        The acceleration without efforts of motors.
    """

    H: Array
    Y: Array
    a0: Vector


def effort_response(P: Projection, act: Actuation, efforts: Vector) -> EffortResponse:
    """The response at a state, under known ``efforts = J' f + F``.

    Raises
    ------
    SingularityError
        If some motion has no inertia.
    """
    mech, N, T = P.mechanism, act.basis, P.terms  # N: gamma made orthonormal
    M, W = T.M, inertia_of_motions(P, act.basis)
    A = N.T @ mech.B
    WA = W.solve(A)
    a0 = P.bias + N @ W.solve(N.T @ (efforts - T.h - M @ P.bias))
    return EffortResponse(A.T @ WA, N @ WA, a0)


def inertia_of_motions(P: Projection, N: Array) -> Cholesky:
    """``N' M N`` in factors, for a basis N of the admissible motions.

    Raises
    ------
    SingularityError
        If some motion has no inertia.
    """
    W = cholesky(N.T @ P.terms.M @ N)
    if not W.condition <= SINGULAR:
        raise SingularityError(
            f"{P.mechanism.name}: a motion has no inertia (condition number of gamma' M gamma "
            f"{W.condition:.1e}), so its acceleration is not determined; give its bodies a mass",
            condition=W.condition,
        )
    return W


@np.errstate(all="ignore")
def response_at(
    mech: Mechanism, part: Partition, q: Vector, v: Vector, t: float, known: Vector | None
) -> EffortResponse:
    """The response at a checked state, under known efforts in addition to the mechanism's forces.

    Raises
    ------
    SingularityError
        As `effort_response`, and if the split or the actuation is singular.
    """
    T = terms_at(mech, q, v, t)
    P = projection_of(T, part)
    return effort_response(P, actuation(P), T.F if known is None else known + T.F)
