"""The certificate of a solution on unilateral contacts.

    of the mechanism    dynamics/certificate.py, with the forces of contacts as known efforts
    velocity            Jc v
    acceleration        Jc a + drift
    cones, limits       the largest violations
    optimality          the duality gap of the program

All are recomputed from a, u and forces, except the last, which is that of the solved program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Vector, listing
from holoctl.base.errors import InconsistentError
from holoctl.base.linalg import largest
from holoctl.control.contact_law import ContactSolution, moment_unit
from holoctl.control.contact_rows import ContactRows
from holoctl.dynamics.certificate import Certificate, certify, raise_if_bad
from holoctl.mechanism.open_tree import inverse_tree_dynamics
from holoctl.projector.multipliers import multipliers
from holoctl.projector.projection import Projection

__all__ = ["CONTACT_TOLERANCES", "ContactCertificate", "contact_certificate"]

CONTACT_TOLERANCES = {
    "contact_velocity": 1e-6,
    "contact_acceleration": 1e-8,
    "cones": 1e-8,
    "limits": 1e-8,
    "optimality": 1e-8,
}
"""The largest numbers of a certified solution on contacts, in addition to those of `TOLERANCES`."""


@dataclass(frozen=True)
class ContactCertificate:
    """Residuals of a solution on unilateral contacts; all pure numbers.

    Attributes
    ----------
    motion : Certificate
        Closure, acceleration, dynamics and power of the mechanism, with the forces of the ground as
        known efforts. Its condition number is that of the rows of the contacts.
    contact_velocity : float
        Largest velocity of a point, over the size of the mechanism (1/s).
    contact_acceleration : float
        Largest acceleration of a point beside its `slip`, over the size of its terms.
    cones : float
        Largest violation of a friction cone or of a bound of a normal force, over the weight of all
        bodies times the size of the mechanism, and 1 N m.
    limits : float
        Largest violation of a limit of effort, over the limit.
    optimality : float
        The duality gap relative to the cost, which bounds the error of the cost; or the largest
        violation of a condition.
    ok : bool
        Whether every number is within its tolerance.

    See Also
    --------
    contact_inverse_dynamics : returns it.
    results.Certificate : that of the mechanism.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> table = hc.UnilateralContact("tip_right", friction=0.0, name="table")
    >>> certificate = hc.contact_inverse_dynamics(mech, q, v, [0.0, 0.0], table).certificate
    >>> certificate.ok, certificate.cones < 1e-8, certificate.motion.dynamics < 1e-9
    (True, True, True)
    """

    motion: Certificate
    contact_velocity: float
    contact_acceleration: float
    cones: float
    limits: float
    optimality: float

    @property
    def failures(self) -> tuple[str, ...]:
        """The names of the numbers that exceed their tolerance."""
        own = [name for name, most in CONTACT_TOLERANCES.items() if not getattr(self, name) <= most]
        return (*self.motion.failures, *own)

    @property
    def ok(self) -> bool:
        """Whether every number is within its tolerance."""
        return not self.failures

    def raise_if_bad(self) -> None:
        """Raise `SingularityError` or `InconsistentError` if this is not `ok`."""
        raise_if_bad(self.motion)
        if self.ok:
            return
        parts = [f"{name} {getattr(self, name):.1e}" for name in self.failures]
        raise InconsistentError(
            f"This solution on contacts is NOT certified: {listing(parts)}",
            residual=max(getattr(self, name) for name in self.failures),
        )


def contact_certificate(
    P: Projection, ground: ContactRows, a: Vector, found: ContactSolution, slip: Vector,
    known: Vector, bounds: tuple[Vector, Vector],
) -> ContactCertificate:  # fmt: skip
    """Compute the residuals of a solution.

    Parameters
    ----------
    P : Projection
    ground : ContactRows
    a : (nv,) array
    found : ContactSolution
    slip : (m,) array
        Of the rows; zero where the contacts are kept.
    known : (nv,) array
        ``J' f + F``.
    bounds : two (nu,) arrays
        Of the efforts.
    """
    mech, T, J, u = P.mechanism, P.terms, ground.jacobian, found.u
    efforts = mech.B @ u + known + J.T @ found.w
    w = inverse_tree_dynamics(mech, P.q, P.v, a)
    lam, _ = multipliers(T, P.partition, w - efforts)
    terms = largest(np.abs(J) @ np.abs(a)) + largest(ground.drift)
    over = ground.cone @ found.w - ground.bound
    lower, upper = bounds
    past = np.maximum(lower - u, u - upper)
    limit = 1.0 + np.minimum(np.abs(lower), np.abs(upper))
    return ContactCertificate(
        motion=certify(T, P.partition, a, efforts, lam, found.condition, w),
        contact_velocity=largest(J @ P.v),
        contact_acceleration=largest(J @ a + ground.drift - slip) / (1.0 + terms),
        cones=float(over.max(initial=0.0)) / (1.0 + moment_unit(mech)),
        limits=float((np.maximum(past, 0.0) / limit).max(initial=0.0)),
        optimality=found.residual,
    )
