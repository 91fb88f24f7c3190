"""Forward dynamics: the acceleration that given efforts cause.

    gamma' M gamma ydd = gamma' (tau + J' f + F - h - M bias)        a = gamma ydd + bias
    G' lambda = M a + h - tau - J' f - F

This is FDgq of spatial_v2, with gamma from rows. Other methods solve the same saddle-point system.
References: R. Featherstone, Rigid Body Dynamics Algorithms, section 3.2; docs/derivations.md,
"Forward dynamics" and "Saddle-point methods".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector, counted, listing, one_of, quiet, vector
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.linalg import cholesky, largest
from holoctl.base.tolerances import SINGULAR
from holoctl.constraints.contact import Contact
from holoctl.dynamics.certificate import Certificate, certify, raise_if_bad, verdict
from holoctl.dynamics.other_methods.pinocchio_constraints import direct_by_anchors, proximal
from holoctl.dynamics.other_methods.saddle_point import direct, null_space, range_space
from holoctl.mechanism.checks import check_class
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import (
    articulated_body_solver,
    inverse_tree_dynamics,
    sparse_solver,
)
from holoctl.projector.arguments import shared_projection, shared_state
from holoctl.projector.multipliers import multipliers
from holoctl.projector.partition import Partition
from holoctl.projector.projection import Projection
from holoctl.rows.stabilisation import TimeConstants
from holoctl.rows.terms import Terms, scaled_rows

__all__ = ["ForwardDynamics", "accelerate", "forward_dynamics"]

METHODS = ("projection", "direct", "range_space", "null_space", "kokkevis", "proximal")


# -------------------------------------------------------------------------------------- the law


def accelerate(P: Projection, efforts: Vector) -> tuple[Vector, float]:
    """``a`` under ``efforts = tau + J^T f + F``, and the condition number of gamma' M gamma."""
    gamma, bias, T = P.gamma, P.bias, P.terms
    Mr = cholesky(gamma.T @ T.M @ gamma)
    if Mr.condition > SINGULAR:
        raise SingularityError(
            f"{P.mechanism.name}: some motion that the constraints allow has no inertia "
            f"(condition number of gamma' M gamma {Mr.condition:.1e}): bodies without mass, or "
            "coordinates that hardly determine the others here (split: "
            f"{P.condition:.1e})",
            condition=Mr.condition,
        )
    ydd = Mr.solve(gamma.T @ (efforts - T.h - T.M @ bias))  # ydd = (g' M g)^-1 g' (...)
    return gamma @ ydd + bias, Mr.condition


# ------------------------------------------------------------------- result, and function


@dataclass(frozen=True, eq=False)
class ForwardDynamics:
    """The result of `forward_dynamics`: acceleration, multipliers and certificate.

    Attributes
    ----------
    a : (nv,) array
        Acceleration, rad/s^2 or m/s^2.
    multipliers : (m,) array
        lambda of every row, N or N m; of least norm (scaled rows) if rows are redundant.
    unique : (m,) bool array
        Whether each multiplier is determined in spite of redundancy.
    certificate : Certificate

    See Also
    --------
    forward_dynamics : returns it.
    methods.by_constraint : the multipliers of each constraint.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> found = hc.forward_dynamics(mech, *hc.assemble(mech), u=[0.0, 0.0])
    >>> [name for name, alone in zip(mech.row_names, found.unique) if alone]
    ['tip_hinge.x', 'tip_hinge.y']
    """

    a: Vector
    multipliers: Vector
    unique: NDArray[np.bool_]
    certificate: Certificate

    def __repr__(self) -> str:
        return (
            f"<ForwardDynamics: {counted(self.a.size, 'acceleration')} up to "
            f"{largest(self.a):.3g} rad/s^2 or m/s^2, {verdict(self.certificate)}>"
        )

    def raise_if_bad(self) -> ForwardDynamics:
        """This result, or `SingularityError` or `InconsistentError` if it is not certified."""
        raise_if_bad(self.certificate)
        return self


@quiet
def forward_dynamics(
    mech: Mechanism,
    q: Any,
    v: Any,
    tau: Any = None,
    *,
    u: Any = None,
    f_ext: Any = None,
    method: str = "projection",
    t: float = 0.0,
    t_stab: TimeConstants = None,
    partition: Partition | None = None,
    projection: Projection | None = None,
    terms: Terms | None = None,
) -> ForwardDynamics:
    """The acceleration under given efforts: ``M a + h = tau + J^T f + F + G^T lambda``.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration; may be off the manifold, and is moved only by an explicit chart.
    v : (nv,) array_like
        Velocity, rad/s or m/s.
    tau : (nv,) array_like, optional
        Efforts on the coordinates, N m or N. Default: none besides those of the motors.
    u : (nu,) array_like, optional
        Motor efforts, N m or N, which are added as ``B u``. One of `tau` and `u` must be given.
    f_ext : mapping or pin.StdVec_Force, optional
        Frame name to (force, moment), N and N m, world axes, at the origin of the frame; or
        one force for each joint in joint axes.
    method : str, optional
        ``"projection"``: project on the basis of admissible velocities. ``"direct"``: the whole
        system for a and lambda at once (if all rows are points or welds, by Pinocchio's sparse
        factorisation). ``"range_space"``: first lambda, with a sparse factorisation of M.
        ``"null_space"``: first a, with an orthonormal basis of motions. ``"kokkevis"``: the same as
        range-space with responses to unit forces by the articulated-body algorithm, for contacts
        only. ``"proximal"``: Pinocchio's own algorithm, for spherical and weld closures and
        contacts with two tangents, at states on the manifold and with exact geometry. All give the
        same result.
    t : float, optional
        Time, s.
    t_stab : float, False or mapping of str to float or False, optional
        Time constant of Baumgarte's stabilisation, s, for all constraints or by name; False: none.
        Default: that of each constraint.
    partition, projection, terms : optional
        A partition, or a projection or terms at the same state, to share. Without the first or
        second the partition is determined again, which is slow.

    Returns
    -------
    ForwardDynamics

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, unknown names, neither `tau` nor `u`.
    SingularityError
        If the split is singular here, or a motion has no inertia.

    See Also
    --------
    PreparedForwardDynamics : the same in a loop.
    inverse_dynamics : the motor efforts for an acceleration.
    impulse : the jump of the velocity in an impact.
    simulate : the motion over time.

    References
    ----------
    R. Featherstone, Rigid Body Dynamics Algorithms, section 3.2, and the documentation of
    spatial_v2 on gamma_q; docs/derivations.md, "Forward dynamics".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> found = hc.forward_dynamics(mech, q, v, u=[0.0, 0.0])
    >>> found.certificate.ok, (mech.B.T @ found.a).round(1).tolist()
    (True, [31.1, -31.1])
    """
    check_class(mech)
    one_of("method", method, METHODS)
    tau = _applied(mech, tau, u)
    if method == "projection":
        P = shared_projection(mech, q, v, t, t_stab, partition, projection, terms)
        T, part = P.terms, P.partition
        efforts = tau + T.known_efforts(f_ext)
        a, condition = accelerate(P, efforts)
    else:
        T, part = shared_state(mech, q, v, t, t_stab, partition, projection, terms)
        efforts = tau + T.known_efforts(f_ext)
        a, condition = _solved(T, part, efforts, method)
    w = inverse_tree_dynamics(mech, T.q, T.v, a)
    lam, unique = multipliers(T, part, w - efforts)
    certificate = certify(T, part, a, efforts, lam, condition, w)
    return ForwardDynamics(a, lam, unique, certificate)


def _applied(mech: Mechanism, tau: Any, u: Any) -> Vector:
    """``tau + B u``; what is not given is zero."""
    if tau is None and u is None:
        raise InputError("forward_dynamics needs efforts: tau of coordinates, or u of motors")
    efforts = np.zeros(mech.nv)
    if tau is not None:
        efforts = vector("tau", tau, mech.nv, "efforts on the coordinates; u= takes motors")
    if u is not None:
        efforts = efforts + mech.B @ vector("u", u, mech.nu, "efforts of the motors")
    return efforts


# ------------------------------------------------------------------------------- other methods


def _solved(T: Terms, part: Partition, efforts: Vector, method: str) -> tuple[Vector, float]:
    """``a`` and a condition number by one of the methods for the saddle-point system."""
    mech, c = T.mechanism, T.mechanism.column_scale
    rounded = part.tolerance > 0.0
    if method == "proximal":
        if rounded:
            raise InputError(
                f"{mech.name}: its geometry is rounded, so its rows contradict each other "
                "slightly, and method 'proximal' uses all of them; any other method keeps those "
                "that determine the motion"
            )
        return proximal(T, efforts)
    if method == "direct" and not rounded:
        whole = direct_by_anchors(T, efforts)
        if whole is not None:
            return whole
    M, f = c[:, None] * T.M * c, c * (efforts - T.h)
    G, k = scaled_rows(T, part.rows)
    if method == "direct":
        found = direct(M, G, f, k)
    elif method == "null_space":
        found = null_space(M, G, f, k)
    elif method == "range_space":
        found = range_space(sparse_solver(mech, T.q), c, M, G, f, k)
    else:
        _check_contacts_only(mech)
        found = range_space(articulated_body_solver(mech, T.q), c, M, G, f, k)
    if not found.condition <= SINGULAR:
        raise SingularityError(
            f"{mech.name}: method {method!r} meets a singular matrix (condition number "
            f"{found.condition:.1e}): {_CAUSE[method]}, or kept rows that depend on each other "
            "at this state",
            condition=found.condition,
        )
    return c * found.x, found.condition


_CAUSE = {
    "direct": "a motion without inertia",
    "null_space": "a motion without inertia",
    "range_space": "bodies without mass, which this method needs",
    "kokkevis": "bodies without mass, which this method needs",
}


def _check_contacts_only(mech: Mechanism) -> None:
    """Raise `InputError` for constraints other than contacts; it names them."""
    named = zip(mech.constraint_names, mech.constraints, strict=True)
    others = [name for name, constraint in named if not isinstance(constraint, Contact)]
    if others:
        raise InputError(
            f"{mech.name}: method 'kokkevis' is for contacts only; these are not contacts: "
            f"{listing(others)}; use any other method"
        )
