"""Inverse dynamics within limits of motors and joints.

    gamma' B u_cmd = gamma' (M a_cmd + h - J' f - F)        a_cmd from the target
    u = u_cmd within limits, by limit_policies.py           a = Y u + a0

References: docs/derivations.md, "Limits".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from holoctl.base.checks import (
    Vector,
    counted,
    listing,
    numbers,
    one_of,
    positive,
    quiet,
    vector,
)
from holoctl.base.errors import InputError
from holoctl.base.linalg import cholesky, largest
from holoctl.base.renamed import formerly
from holoctl.base.tolerances import SINGULAR
from holoctl.control.braking_limits import braking_limits
from holoctl.control.effort_bounds import least_efforts
from holoctl.control.limit_policies import LIMIT_POLICIES, LimitRequest, LimitsLaw
from holoctl.control.nearest_by_cvxpy import by_cvxpy
from holoctl.control.nearest_efforts import by_daqp
from holoctl.dynamics.actuation import Actuation, actuation, effort_weights
from holoctl.dynamics.certificate import Certificate, certify, raise_if_bad, verdict
from holoctl.dynamics.effort_response import effort_response
from holoctl.dynamics.inverse import asked_acceleration, checked_target, driven_acceleration
from holoctl.dynamics.tick.inverse_by_projection import general_acceleration
from holoctl.laws.acceleration_bounds import caused
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limited_coordinates import change_in_a_tick, coordinates_at
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import external_efforts, inverse_tree_dynamics
from holoctl.projector.arguments import shared_projection
from holoctl.projector.multipliers import multipliers
from holoctl.projector.partition import Partition, check_motors
from holoctl.projector.projection import Projection

__all__ = ["SOLVERS", "LimitedInverseDynamics", "WithinLimits", "limited_inverse_dynamics"]

SOLVERS = ("daqp", "cvxpy")
LEAST = "least"


# -------------------------------------------------------------------------------------- the law


def _limited(
    P: Projection, act: Actuation, law: LimitsLaw, a_cmd: Vector, known: Vector, preferred: Vector
) -> LimitedInverseDynamics:
    """The efforts within limits at a state, under ``known = J' f + F``."""
    mech, T, B = P.mechanism, P.terms, P.mechanism.B

    def efforts(a: Vector) -> Vector:
        """The solution of gamma' B u = gamma' (M a + h - known) nearest to `preferred`."""
        w = inverse_tree_dynamics(mech, P.q, P.v, a) - known
        return preferred + act.efforts(w - B @ preferred)

    def change(u: Vector, a: Vector) -> Vector:
        forward, tau = partial(general_acceleration, mech, P.partition), B @ u + known - T.F
        return change_in_a_tick(forward, mech, law.bound, P.q, P.v, a, tau, T.t, law.dt)

    def base() -> Vector:
        return efforts(driven_acceleration(P, act, np.zeros(mech.nu), known, "project"))

    here = coordinates_at(mech, law.bound, P.q, P.v, T.t, T.kinematics)
    response = effort_response(P, act, known)
    u_cmd = efforts(a_cmd)
    a = caused(response.a0, response.Y, u_cmd, 0.0)
    joints = here if law.bound.names else None
    request = LimitRequest(u_cmd, P.v, a, joints, lambda: response[:2], base, change)
    found = law.outcome(request)
    u, a = found.u, a_cmd
    if found.scale != 1.0:
        a = caused(response.a0, response.Y, u, 0.0)
    w = inverse_tree_dynamics(mech, P.q, P.v, a) - known
    lam, _ = multipliers(T, P.partition, w - B @ u)
    certificate = certify(T, P.partition, a, B @ u + known, lam, act.condition)
    names = law.names(here.positions, here.velocities, found.limiting)
    softened = law.softened(here.positions, here.velocities, found)
    return LimitedInverseDynamics(u, a, certificate, names, softened, found.scale)


# ----------------------------------------------------------------------- result and arguments


@dataclass(frozen=True, eq=False)
class LimitedInverseDynamics:
    """The result of `limited_inverse_dynamics`: efforts within limits, and the active limits.

    Attributes
    ----------
    u : (nu,) array
        Motor efforts, N m or N, in the order of ``mech.actuated``; within their limits, exactly.
    a : (nv,) array
        The acceleration they cause, passive motions included.
    certificate : Certificate
        The certificate of this motion, which need not be the commanded one.
    saturated : tuple of str
        The active limits: motors by name, joints as ``"name.position"``, ``"name.velocity"`` or
        ``"name.acceleration"``. Empty if the commanded efforts are returned unchanged.
    softened : tuple of str
        Limits of joints that the motors cannot keep, or that are exceeded already, named likewise.
    scale : float
        1 if nothing was limited; with the policy "scale" the fraction s of the commanded motion,
        0 to 1; nan for the nearest efforts.

    See Also
    --------
    limited_inverse_dynamics : returns it.
    WithinLimits : the policy.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> slower = hc.WithinLimits(hc.Limits(effort=5.0), policy="scale")
    >>> found = hc.limited_inverse_dynamics(mech, q, v, [200.0, 0.0], slower)
    >>> round(found.scale, 3), found.saturated
    (0.481, ('motor_left',))
    """

    u: Vector
    a: Vector
    certificate: Certificate
    saturated: tuple[str, ...]
    softened: tuple[str, ...]
    scale: float

    def __repr__(self) -> str:
        limited = f", limited by {listing(self.saturated)}" if self.saturated else ""
        return (
            f"<LimitedInverseDynamics: {counted(self.u.size, 'effort')} up to "
            f"{largest(self.u):.3g} N m or N{limited}, {verdict(self.certificate)}>"
        )

    def raise_if_bad(self) -> LimitedInverseDynamics:
        """This result, or `SingularityError` or `InconsistentError` if it is not certified."""
        raise_if_bad(self.certificate)
        return self


@dataclass(frozen=True, eq=False)
class WithinLimits:
    """Limits, and the policy for a motion that exceeds them.

    Parameters
    ----------
    limits : "model", Limits or None
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
    policy : str, optional
        ``"nearest"``, ``"scale"`` or ``"raise"``: see `limited_inverse_dynamics`.
    dt : float, optional
        The tick over which the efforts will be held, s.
    metric : (nu,) or (nu, nu) array_like, optional
        The cost ``du' metric du`` of a change of efforts instead of Gauss's metric, symmetric and
        positive definite, or its diagonal. ``1 / limit**2`` is equivalent to clipping.
    preload : (nu,) array_like or "least", optional
        The preferred efforts of redundant motors, N m or N, as far as the motion leaves a choice;
        ``"least"``: as small as their limits allow, as the tension of cables. Default: the efforts
        of least norm.
    solver : str, optional
        ``"daqp"``, or ``"cvxpy"``: the same program written out in cvxpy, by Clarabel; slow.

    Raises
    ------
    InputError
        For an unknown policy or solver, a tick that is not above zero.

    See Also
    --------
    limited_inverse_dynamics : takes it in the place of limits.
    Limits : the limits.

    Examples
    --------
    >>> import holoctl as hc
    >>> within = hc.WithinLimits(hc.Limits(effort=5.0), policy="scale", dt=2e-3)
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> found = hc.limited_inverse_dynamics(mech, q, v, [200.0, 0.0], within)
    >>> bool(abs(found.u).max() <= 5.0), 0.0 < found.scale < 1.0
    (True, True)
    """

    limits: Limits | str | None
    policy: str = "nearest"
    dt: float = 1e-3
    metric: Any = None
    preload: Any = None
    solver: str = "daqp"

    def __post_init__(self) -> None:
        """Check the arguments that need no mechanism."""
        one_of("policy", self.policy, LIMIT_POLICIES)
        one_of("solver", self.solver, SOLVERS)
        object.__setattr__(self, "dt", positive("dt", self.dt, "s"))


@quiet
@formerly(
    **{
        name: f"hc.WithinLimits(limits, {name}=...) in the place of limits"
        for name in ("policy", "metric", "preload", "dt", "solver")
    },
    **{name: f"projection=hc.project(mech, q, v, {name}=...)" for name in ("t", "t_stab", "terms")},
)
def limited_inverse_dynamics(
    mech: Mechanism,
    q: Any,
    v: Any,
    target: Any,
    limits: Limits | WithinLimits | str | None,
    *,
    f_ext: Any = None,
    efforts: Any = None,
    coordinates: str = "actuated",
    inconsistent: str = "raise",
    weights: Any = None,
    partition: Partition | None = None,
    projection: Projection | None = None,
) -> LimitedInverseDynamics:
    """The motor efforts for a target acceleration, as far as limits allow.

    Efforts within all limits are those of `inverse_dynamics`, unchanged. Else, by the policy:

    - ``"nearest"``: the efforts whose accelerations are nearest to the commanded ones, in the
      metric of kinetic energy (Gauss's principle of least constraint);
    - ``"scale"``: the commanded motion, slower: ``u = base + s (u_cmd - base)`` with the largest s
      in [0, 1]; base are the efforts of the motion that does not accelerate the motors. If no s is
      within limits, the nearest. For redundant motors u_cmd are the efforts of least norm, also
      with "raise";
    - ``"raise"``: a `LimitError`.

    Limits of efforts are always kept. Limits of joints, passive ones too, become bounds of
    accelerations that can be kept from now on; they are softened if the motors cannot keep them,
    and a coordinate beyond a limit is returned to it gently.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration.
    v : (nv,) array_like
        Velocity, rad/s or m/s.
    target : (nu,), (k,) or (nv,) array_like
        As in `inverse_dynamics`.
    limits : "model", Limits, WithinLimits or None
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
        With the policy "nearest", for a tick of 1 ms; a `WithinLimits` gives another policy or
        tick.
    f_ext, efforts, coordinates, inconsistent, weights, partition, projection
        As in `inverse_dynamics`. Another time, or another stabilisation, is given by a projection,
        ``hc.project(mech, q, v, t=..., t_stab=...)``.

    Returns
    -------
    LimitedInverseDynamics

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, unknown names, limits of position of joints
        that cannot be braked.
    LimitError
        With the policy "raise", beyond a limit.
    NotActuatedError, SingularityError, InconsistentError
        As `inverse_dynamics`.
    AssemblyError
        If a position is limited, no acceleration, and the reference cannot be assembled.

    See Also
    --------
    inverse_dynamics : without limits.
    WithinLimits : limits with policy and tick.
    ComputedTorque : a controller with limits.

    References
    ----------
    docs/limits.md; docs/derivations.md, "Limits".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> weak = hc.Limits(effort={"motor_left": 3.0})
    >>> found = hc.limited_inverse_dynamics(mech, q, v, [200.0, 0.0], weak)
    >>> found.u[0].round(9).tolist(), found.saturated
    (3.0, ('motor_left',))
    """
    check_mechanism(mech)
    target = checked_target(mech, target, coordinates, inconsistent)
    within = limits if isinstance(limits, WithinLimits) else WithinLimits(limits)
    requested = requested_limits(mech, within.limits, "limited_inverse_dynamics")
    bound, preload = bound_limits(mech, requested or Limits()), within.preload
    law = LimitsLaw(
        mech, bound, braking_limits(mech, bound), within.policy,
        _checked_metric(mech, within.metric), within.dt,
        by_daqp if within.solver == "daqp" else by_cvxpy(),
    )  # fmt: skip
    preferred = _preferred(mech, bound, preload)
    t = projection.terms.t if isinstance(projection, Projection) else 0.0
    P = shared_projection(mech, q, v, t, None, partition, projection, None)
    check_motors(mech, P.partition)
    if preload is not None and P.partition.actuation_rank == mech.nu:
        raise InputError(
            f"{mech.name}: preload is for more motors than motions; its {mech.nu} motors drive "
            f"{mech.nu} motions, and leave no choice"
        )
    act = actuation(P, effort_weights(mech, weights))
    known = external_efforts(mech, P.terms.kinematics, f_ext, efforts) + P.terms.F
    a = asked_acceleration(P, act, target, known, coordinates, inconsistent)
    return _limited(P, act, law, a, known, preferred)


def _checked_metric(mech: Mechanism, metric: Any) -> Any:
    """A metric of efforts as a matrix, or None.

    Raises
    ------
    InputError
        For a wrong shape, or a matrix that is not symmetric and positive definite.
    """
    if metric is None:
        return None
    H = numbers("metric", metric)
    if H.shape == (mech.nu,):
        H = np.diag(H)
    if H.shape != (mech.nu, mech.nu):
        raise InputError(
            f"metric must have shape ({mech.nu}, {mech.nu}), or ({mech.nu},) for a diagonal; got "
            f"{H.shape}"
        )
    if not np.isfinite(H).all() or np.abs(H - H.T).max() > 1e-9 * np.abs(H).max():
        raise InputError("metric must be finite and symmetric")
    H = 0.5 * (H + H.T)
    if not (H.diagonal() > 0.0).all() or not cholesky(H).condition <= SINGULAR:
        raise InputError("metric must be positive definite: efforts without cost are undetermined")
    return H


def _preferred(mech: Mechanism, bound: BoundLimits, preload: Any) -> Vector:
    """The preferred efforts, as far as the motion leaves a choice."""
    if preload is None:
        return np.zeros(mech.nu)
    if isinstance(preload, str):
        one_of("preload", preload, (LEAST,))
        return least_efforts(bound)
    return vector("preload", preload, mech.nu, "efforts of the motors")
