"""Forward dynamics under explicit constraints q = gamma(y): FDgq of spatial_v2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, numbers, quiet, vector
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.linalg import cholesky
from holoctl.base.tolerances import SINGULAR
from holoctl.constraints.explicit_chart import GammaCallback, call_gamma_q
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import inertia, nonlinear_efforts
from holoctl.tree.coordinates import support

__all__ = ["fdgq"]


@quiet
def fdgq(
    model: pin.Model,
    gamma_q: GammaCallback,
    q: Any,
    v: Any,
    tau: Any,
    *,
    f_ext: Any = None,
) -> Vector:
    """Acceleration of a tree under an explicit constraint ``q = gamma(y)``.

    A reference implementation without a `Mechanism`: the computation of spatial_v2's FDgq, with
    Pinocchio's H and C. The stabilisation is the callback's own.

    Parameters
    ----------
    model : pin.Model
        A tree of joints with one number each way (nq = nv).
    gamma_q : callable
        ``gamma_q(model, q0, v0) -> q, v, G, gs``: from a state that need not satisfy the
        constraint, one that does (or does better), the Jacobian G (nv, k) of gamma (called
        `gamma` elsewhere in this library), and the bias gs (nv,) = ``Gdot yd`` plus its
        stabilisation, such as ``(2/T) (v - v0) + (q - q0) / T^2``.
    q, v : (nv,) array_like
        State, rad or m, rad/s or m/s. Never changed.
    tau : (nv,) array_like
        Efforts, N m or N.
    f_ext : (njoints - 1, 6) array_like, optional
        Row i: the external force on the body of joint i + 1, as moment about the base origin
        (N m), then force (N), in base axes.

    Returns
    -------
    (nv,) array
        Acceleration, rad/s^2 or m/s^2.

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, here or from the callback.
    SingularityError
        If some motion has no inertia.

    See Also
    --------
    GammaQ : the same callback as a constraint of a mechanism.
    forward_dynamics : every mechanism, with a certificate.

    References
    ----------
    R. Featherstone, Rigid Body Dynamics Algorithms, section 3.2, and the documentation of
    spatial_v2 on gamma_q; docs/from-spatial-v2.md.

    Examples
    --------
    A parallelogram: the other two angles follow from that of the crank.

    >>> import numpy as np, holoctl as hc
    >>> model = hc.load(hc.robot_file("four_bar")).model
    >>> def parallelogram(model, q0, v0):
    ...     G = np.array([[1.0], [-1.0], [1.0]])
    ...     return G @ q0[:1], G @ v0[:1], G, np.zeros(3)
    >>> a = hc.methods.fdgq(model, parallelogram, np.ones(3), np.zeros(3), np.zeros(3))
    >>> a.round(2).tolist()
    [-42.47, 42.47, -42.47]
    """
    mech = Mechanism(model)
    nv = mech.nv
    if mech.nq != nv:
        raise InputError(
            "fdgq: spatial_v2's convention needs nq = nv; this model has joints (free-flyer, "
            f"spherical, continuous) with nq = {mech.nq}, nv = {nv}"
        )
    q0, v0 = vector("q", q, nv, "configuration"), vector("v", v, nv, "velocity")
    tau = vector("tau", tau, nv, "efforts")
    q, v, G, gs = call_gamma_q(gamma_q, mech.model, q0, v0)
    H = inertia(mech, q)
    C = nonlinear_efforts(mech, q, v) - _base_forces(mech, q, f_ext)
    GHG = cholesky(G.T @ H @ G)
    if GHG.condition > SINGULAR:
        raise SingularityError(
            f"fdgq: some motion has no inertia (condition number of G' H G {GHG.condition:.1e})",
            condition=GHG.condition,
        )
    return G @ GHG.solve(G.T @ (tau - C - H @ gs)) + gs


def _base_forces(mech: Mechanism, q: Vector, f_ext: Any) -> Vector:
    """Efforts of forces given as (moment about the base origin, force), a row for each body."""
    if f_ext is None:
        return np.zeros(mech.nv)
    bodies = mech.model.njoints - 1
    f = numbers("f_ext", f_ext, "a row for each body: moment, force")
    if f.shape != (bodies, 6) or not np.isfinite(f).all():
        raise InputError(f"f_ext must be finite, with shape ({bodies}, 6); got shape {f.shape}")
    J = pin.computeJointJacobians(mech.model, mech.model.createData(), q).reshape(6, mech.nv)
    wrenches = np.hstack([f[:, 3:], f[:, :3]])  # linear part first, as in Pinocchio
    on = np.array([support(mech.model, j + 1) for j in range(bodies)])
    efforts: Vector = (on * (wrenches @ J)).sum(axis=0)
    return efforts
