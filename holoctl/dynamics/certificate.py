"""The certificate: residuals of a solution in all rows and in the whole equation of motion.

    closure, velocity    r phi, r (G v + phi_t)
    acceleration         r (G a + drift)
    dynamics             M a + h - B u - J' f - F - G' lambda
    power                dE/dt - v' (B u + J' f + F_lost + F_external + G' lambda)

r scales the rows; all but the first are divided by the size of their terms, which may cancel.
Residuals use every constraint row, including the redundant ones that the projector left out, and
the equation of motion of the whole tree, not its projection. The power balance is independent of
these: the rate of energy, including that of springs, is computed by differences along the motion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Indices, Vector
from holoctl.base.errors import HoloctlError, InconsistentError, SingularityError
from holoctl.base.html_table import Cells, html_table
from holoctl.base.linalg import largest
from holoctl.base.renamed import former_names
from holoctl.base.tolerances import TOLERANCES, WEIGHT_SHARE
from holoctl.forces.sum_of_forces import stored_energy
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import energies, inverse_tree_dynamics
from holoctl.projector.multipliers import constraint_effort
from holoctl.projector.partition import Partition
from holoctl.rows.constraint_residuals import of_state, with_chart, worst
from holoctl.rows.terms import Terms
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import kinematics

__all__ = [
    "Certificate",
    "certify",
    "largest_size",
    "limit",
    "off_dynamics",
    "off_rows",
    "raise_if_bad",
    "verdict",
    "weight",
]

ENERGY_MOVED, ENERGY_LONGEST, ENERGY_SHORTEST = 1e-2, 1e-2, 1e-2  # scaled; s; -
"""Step of the differences of energy: it moves the mechanism by the first (scaled) and changes its
velocity by this fraction; at most the second, s; the velocity shortens it at most by the third
factor."""

KINK_PARTS = (0.5, 0.05, 0.005)
"""If the step may cross a kink of a spring, such as a rope that becomes taut, the differences of
its energy are one-sided, with these fractions of the step."""

STANDING = 1e-9  # 1/s
"""Below this scaled speed a mechanism counts as at rest."""


@former_names(velocity_residual="velocity")
@dataclass(frozen=True)
class Certificate:
    """Residuals of a solution of the constrained equation of motion; all pure numbers.

    Attributes
    ----------
    closure : float
        Largest constraint error of all rows, lengths divided by the size of their loop; with an
        explicit chart also the distance by which it moved the state.
    velocity_residual : float
        Largest rate of all rows, scaled likewise, over 1 + the size of its terms (1/s).
    acceleration : float
        Largest ``G a + drift`` (plus stabilisation) of all rows, over 1 + its terms (1/s^2).
    dynamics : float
        Largest entry of ``M a + h - B u - J^T f - F - G^T lambda``, over the size of its terms.
    power : float
        ``dE/dt - v^T (B u + J^T f + F_lost + F_external + G^T lambda)``, over the size of its
        terms. dE/dt is taken by differences along the motion (v, a) of the energy: kinetic, of
        gravity, and what springs store.
    condition : float
        Condition number of gamma' B with an orthonormal gamma in scaled coordinates (inverse
        dynamics; the same for every choice of coordinates), or of gamma' M gamma with unit
        diagonal (forward dynamics).
    rank : int
        Rank of G.
    redundant : float
        The largest of `closure`, `velocity_residual` and `acceleration` of only the rows that were
        left out as redundant. With rounded geometry, those three are of the other rows.
    tolerance : float
        Largest `redundant` with rounded geometry: the tolerance of the partition; else 0.
    ok : bool
        Whether every number is within `TOLERANCES`.

    See Also
    --------
    inverse_dynamics : one of the functions that return it.
    results.BatchCertificate : of many states.
    constraint_errors : the errors of a state alone.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> certificate = hc.inverse_dynamics(mech, *hc.assemble(mech), [0.0, 0.0]).certificate
    >>> certificate.ok, certificate.rank, certificate.dynamics < 1e-9
    (True, 2, True)
    """

    closure: float
    velocity_residual: float
    acceleration: float
    dynamics: float
    power: float
    condition: float
    rank: int
    redundant: float = 0.0
    tolerance: float = 0.0

    @property
    def failures(self) -> tuple[str, ...]:
        """The names of the numbers that exceed their tolerance."""
        return tuple(n for n in TOLERANCES if not getattr(self, n) <= limit(n, self.tolerance))

    @property
    def ok(self) -> bool:
        """Whether every number is within its tolerance."""
        return not self.failures

    def _repr_html_(self) -> str:
        return html_table("Certificate", lambda: _parts(self))

    def __str__(self) -> str:
        verdict = "This solution is certified" if self.ok else "This solution is NOT certified"
        text = (
            f"{verdict}. The constraints have a closure error of {self.closure:.1e}, a velocity "
            f"residual of {self.velocity_residual:.1e} and an acceleration residual of "
            f"{self.acceleration:.1e} (scaled). The equation of motion of the whole tree has a "
            f"residual of {self.dynamics:.1e}, the power balance one of {self.power:.1e}. The "
            f"constraints have rank {self.rank}; the solved matrix has condition number "
            f"{self.condition:.2g}."
        )
        if self.tolerance > 0.0:
            text += (
                " The geometry is rounded: nearly redundant rows are left out, and their error is "
                f"{self.redundant:.1e} (tolerance {self.tolerance:.0e})."
            )
        for name in self.failures:
            most = limit(name, self.tolerance)
            text += f" {_MEANING[name]} ({getattr(self, name):.1e} > {most:.0e})."
        return text


def _parts(c: Certificate) -> Iterator[Cells]:
    """The lines of a table in a notebook: each number and its tolerance."""
    yield "", "is", "at most", verdict(c)
    for name in TOLERANCES:
        most = limit(name, c.tolerance)
        bad = name in c.failures
        yield name, f"{getattr(c, name):.1e}", f"{most:.0e}", _MEANING[name] if bad else ""
    yield "rank", c.rank, "", ""


_OF_GEOMETRY = ("closure", "velocity_residual", "redundant")
"""The numbers whose tolerance includes that of rounded geometry."""

_MEANING = {
    "closure": "The configuration is not closed: assemble it, or check the sensors",
    "velocity_residual": "The velocity violates the constraints: project it",
    "acceleration": "The acceleration breaks constraints that were left out as redundant: the "
    "state is off the manifold or the target contradicts them",
    "dynamics": "The equation of motion is not satisfied: the motors cannot produce this motion",
    "redundant": "Rows that were left out as redundant do not hold: they are not redundant, or "
    "the errors of the geometry exceed its tolerance (see hc.mobility)",
    "power": "The power balance fails",
    "condition": "The matrix is close to singular: motors that hardly move the mechanism here, "
    "or a motion with hardly any inertia",
}


def limit(name: str, tolerance: float) -> float:
    """The largest value of a number of a certificate; `tolerance` is that of rounded geometry."""
    most = TOLERANCES[name]
    return max(most, tolerance) if name in _OF_GEOMETRY else most


def verdict(certificate: Certificate) -> str:
    """Whether a result is certified, for its `repr`; if not, with the numbers beyond their
    tolerance."""
    return "certified" if certificate.ok else f"NOT certified ({', '.join(certificate.failures)})"


def raise_if_bad(certificate: Certificate) -> None:
    """Raise an error for a certificate that is not `ok`.

    Raises
    ------
    SingularityError
        If the condition number is too large.
    InconsistentError
        If a residual is too large.
    """
    if certificate.ok:
        return
    error: HoloctlError
    if "condition" in certificate.failures:
        error = SingularityError(str(certificate), condition=certificate.condition)
    else:
        worst = max(getattr(certificate, name) for name in certificate.failures)
        error = InconsistentError(str(certificate), residual=worst)
    raise error


def certify(
    T: Terms,
    part: Partition,
    a: Vector,
    efforts: Vector,
    multipliers: Vector,
    condition: float,
    w: Vector | None = None,
) -> Certificate:
    """Compute the residuals of a solution.

    Parameters
    ----------
    T : Terms
    part : Partition
        The partition of the solution.
    a : (nv,) array
        Acceleration.
    efforts : (nv,) array
        ``B u + J^T f + F``.
    multipliers : (m,) array
        lambda.
    condition : float
        Condition number of the factored matrix.
    w : (nv,) array, optional
        ``M a + h``, if it is known.
    """
    mech, h = T.mechanism, T.h
    constraint = T.rows.jacobian.T.dot(multipliers)
    closing, left = None, part.left_out
    if part.tolerance > 0.0:
        closing = part.rows
        # nearly redundant rows act like the kept ones: the efforts that the kept rows can exert
        constraint = constraint_effort(T, part, constraint)
    w = inverse_tree_dynamics(mech, T.q, T.v, a) if w is None else w
    error, rate = of_state(T)
    missing = _of_acceleration(T, a)
    closure, velocity = with_chart(T, worst(error, closing), worst(rate, closing))
    redundant = 0.0
    if left.size:
        redundant = max(worst(error, left), worst(rate, left), worst(missing, left) / T.stiffness)
    stored, sizes = T.applied.springs, np.abs(w - h) + np.abs(h)
    if mech.forces:
        sizes += np.abs(stored) + np.abs(T.applied.losses)
    return Certificate(
        closure,
        velocity,
        acceleration=worst(missing, closing),
        dynamics=off_dynamics(T, w, efforts, constraint),
        power=_power_balance(T, a, efforts - stored + constraint, sizes),
        condition=condition,
        rank=part.rank,
        redundant=redundant,
        tolerance=part.tolerance,
    )


def off_rows(T: Terms, a: Vector, rows: Indices | None = None) -> float:
    """The number `acceleration` of a certificate, for all rows or some."""
    return worst(_of_acceleration(T, a), rows)


def _of_acceleration(T: Terms, a: Vector) -> Vector:
    """(m,) ``r (G a + drift + stabilisation)`` over the size of its terms."""
    r = T.mechanism.row_scale
    needed = r * (T.rows.drift + T.stabilisation)
    size = 1.0 + largest(T.sizes.dot(np.abs(a))) + largest(needed)
    missing: Vector = (r * T.rows.jacobian.dot(a) + needed) / size
    return missing


def off_dynamics(T: Terms, w: Vector, efforts: Vector, constraint: Vector) -> float:
    """The number `dynamics` of a certificate: the residual of ``w = M a + h``, over the size of its
    terms."""
    c, h = T.mechanism.column_scale, T.h  # M a and h may cancel, as in free fall: separate sizes
    terms = c * np.array([w - h, h, efforts, constraint, w - efforts - constraint])
    *sizes, off = np.abs(terms).max(axis=1, initial=0.0).tolist()
    return _ratio(off, sum(sizes) + WEIGHT_SHARE * weight(T.mechanism))


def weight(mech: Mechanism) -> float:
    """Weight of all bodies, N, times the size of the largest loop, m (1 m without lengths)."""

    def found() -> float:
        model = plain(mech.model)
        gravity = float(np.linalg.norm(model.gravity.linear))
        return float(pin.computeTotalMass(model)) * gravity * largest_size(mech)

    return mech.per_thread("weight", found)


def largest_size(mech: Mechanism) -> float:
    """The size of the largest loop, m; 1 m without lengths."""
    return float((1.0 / mech.row_scale).max(initial=float(mech.column_scale.max())))


def _power_balance(T: Terms, a: Vector, efforts: Vector, sizes: Vector) -> float:
    """Relative error of dE/dt = v . efforts, with E differenced along q + s v, v + s a."""
    mech, v = T.mechanism, T.v
    speed, rise = largest(v / mech.column_scale), largest(a / mech.column_scale)
    if speed < STANDING:
        return 0.0  # no motion, no power: the balance is empty, not wrong
    h = min(ENERGY_MOVED / speed, ENERGY_LONGEST)
    if rise > 0.0:
        h = min(h, max(ENERGY_MOVED * speed / rise, ENERGY_SHORTEST * h))
    there = _along(T, h * _TIMES)
    kinetic, potential = energies(mech, there, v + h * _TIMES[:, None] * a)
    stored, large = _stored(T, there), kinetic + np.abs(potential)
    stores = bool(stored.any())
    if stores:
        large = large + np.abs(stored)
    size = float((sizes + np.abs(efforts)).dot(np.abs(v))) + 1e-9 * largest(large) / h
    springless = float(_SIXTH_ORDER.dot(kinetic + potential)) / h - float(efforts.dot(v))
    off = abs(springless + float(_SIXTH_ORDER.dot(stored)) / h)
    if stores and not off <= TOLERANCES["power"] * size:
        off = min(off, *(abs(springless + rate) for rate in _stored_on_one_side(T, h)))
    return _ratio(off, size)


_TIMES = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
_SIXTH_ORDER = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60.0
"""Weights of the central difference of sixth order."""

_AHEAD = np.array([-147.0, 360.0, -450.0, 400.0, -225.0, 72.0, -10.0]) / 60.0
"""Weights of the one-sided difference of sixth order, at steps 0 to 6."""


def _along(T: Terms, times: Vector) -> list[Vector]:
    """Configurations at some times along the motion."""
    if T.mechanism.nq == T.mechanism.nv:  # q is a vector space
        return list(T.q + times[:, None] * T.v)
    return [pin.integrate(T.mechanism.model, T.q, move) for move in times[:, None] * T.v]


def _stored(T: Terms, there: list[Vector]) -> Vector:
    """The energy stored in springs, J, at some configurations."""
    mech, found = T.mechanism, np.zeros(len(there))
    if any(force.stores for force in mech.bound_forces):
        data = workspace(mech)
        for i, q in enumerate(there):
            found[i] = stored_energy(mech.bound_forces, kinematics(mech.model, data, q, T.v, T.t))
    return found


def _stored_on_one_side(T: Terms, h: float) -> list[float]:
    """Rates of the energy in springs before and after this instant, W, with shorter and shorter
    steps. A rope that becomes taut or slack, and an angle at half a turn from rest, have a
    different formula on either side: differences across the kink are wrong for both.
    """
    steps = np.arange(7.0)
    return [
        float(_AHEAD.dot(_stored(T, _along(T, s * steps)))) / s
        for part in KINK_PARTS
        for s in (part * h, -part * h)
    ]


def _ratio(error: float, size: float) -> float:
    return error / size if size > 0.0 else (0.0 if error == 0.0 else float("inf"))
