"""Impacts: the velocity after constraints close instantaneously, and the impulses of the rows.

    M (v+ - v-) = G^T p        G v+ + phi_t = v_plus

Positions do not change, and finite efforts have no influence. The equations are those of forward.py
with v+ instead of the acceleration, M v- of the efforts, and v_plus of the drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import (
    Vector,
    counted,
    known_name,
    listing,
    number,
    one_of,
    quiet,
    quoted,
    vector,
)
from holoctl.base.errors import InconsistentError, InputError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import SINGULAR
from holoctl.constraints.contact import Contact
from holoctl.dynamics.other_methods.saddle_point import direct, null_space, range_space
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import sparse_solver
from holoctl.projector.arguments import shared_state
from holoctl.projector.multipliers import constraint_effort, multipliers
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import rows_of
from holoctl.rows.terms import Terms

__all__ = ["Impact", "impulse"]

SEPARATING = 1e-9
"""Contacts that separate faster than this, relative to 1 + the fastest row, do not collide."""

IMPACT_CONSISTENT = 1e-8
"""Rows that were left out as redundant may differ from v_plus by this much, relative to its
size."""


METHODS = ("direct", "range_space", "null_space")


# -------------------------------------------------------------------------------------- the law


def _struck(T: Terms, part: Partition, before: Vector, after: Vector, method: str) -> Vector:
    """v+ with ``G v+ = after``, from ``before = v-``."""
    mech, c, r, keep = T.mechanism, T.mechanism.column_scale, T.mechanism.row_scale, part.rows
    M, G = c[:, None] * T.M * c, r[:, None] * T.rows.jacobian * c
    v_minus, k = before / c, r * after
    if method == "range_space":
        # x is the change of velocity, so that M v- is not divided by factors of M
        change = (k - G @ v_minus)[keep]
        found = range_space(sparse_solver(mech, T.q), c, M, G[keep], np.zeros(mech.nv), change)
        x = v_minus + found.x
    else:  # [M G'; G 0] (v+, -p) = (M v-, k)
        found = (direct if method == "direct" else null_space)(M, G[keep], M @ v_minus, k[keep])
        x = found.x
    if not found.condition <= SINGULAR or not np.isfinite(x).all():
        raise SingularityError(
            f"{mech.name}: the impact meets a singular matrix (condition number "
            f"{found.condition:.1e}): bodies or motions without inertia",
            condition=found.condition,
        )
    _check_rows(mech, G, np.abs(x) + np.abs(v_minus), x, k, part.tolerance)
    return c * x


# ------------------------------------------------------------------- result, and function


@dataclass(frozen=True, eq=False)
class Impact:
    """The result of `impulse`: the velocity after the impact, and the impulses.

    Attributes
    ----------
    v : (nv,) array
        Velocity after the impact, rad/s or m/s.
    impulses : (m,) array
        p of every row, N s or N m s, with the sign of the multipliers; of least norm (scaled rows)
        if rows are redundant.
    unique : (m,) bool array
        Whether each impulse is determined in spite of redundancy.
    energy : float
        Change of the kinetic energy, J.
    balance : float
        Largest entry of ``M (v+ - v-) - G^T p``, over the size of its terms.

    See Also
    --------
    impulse : returns it.
    methods.by_constraint : the impulses of each constraint.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> hit = hc.impulse(mech, hc.assemble(mech)[0], [1.0, 0.0, 0.0])
    >>> round(hit.energy, 4), hit.balance < 1e-9
    (-0.0091, True)
    """

    v: Vector
    impulses: Vector
    unique: NDArray[np.bool_]
    energy: float
    balance: float

    def __repr__(self) -> str:
        return (
            f"<Impact: {counted(self.v.size, 'velocity', 'velocities')} up to "
            f"{largest(self.v):.3g} rad/s or m/s after it, kinetic energy changed by "
            f"{self.energy:.3g} J>"
        )


@quiet
def impulse(
    mech: Mechanism,
    q: Any,
    v: Any,
    v_plus: Any = None,
    *,
    restitution: Mapping[str, float] | None = None,
    method: str = "direct",
    t: float = 0.0,
    partition: Partition | None = None,
    terms: Terms | None = None,
) -> Impact:
    """The velocity after an impact that ends with given rates of all rows.

    Parameters
    ----------
    mech : Mechanism
        With the constraints that hold after the impact; its rows are bilateral.
    q : (nq,) array_like
        Configuration, on the constraints.
    v : (nv,) array_like
        Velocity before the impact, rad/s or m/s.
    v_plus : (m,) array_like, optional
        Rates of the rows after it, ``G v+ + phi_t``, m/s or rad/s. Default: zero, all close.
    restitution : mapping of str to float, optional
        Instead of v_plus: contact name to the coefficient e, 0 to 1, with which its normal rate is
        reversed (-e times the rate before); all other rows close. A negative normal impulse means
        that the ground would have to pull there.
    method : str, optional
        ``"direct"``, ``"range_space"`` or ``"null_space"``; all give the same result.
    t : float, optional
        Time, s.
    partition, terms : optional
        A partition, or terms at the same state, to share. Without the first the partition is
        determined again, which is slow.

    Returns
    -------
    Impact

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, unknown names, a coefficient outside
        0 to 1, or both v_plus and restitution.
    InconsistentError
        If v_plus contradicts the constraints (rows that depend on each other have different rates),
        a contact with restitution separates already, or the coefficients together increase the
        kinetic energy.
    SingularityError
        If a motion has no inertia.

    See Also
    --------
    Event : the instant of an impact in a simulation.
    Contact : the constraint of a foot that lands.
    forward_dynamics : accelerations between impacts.

    References
    ----------
    docs/derivations.md, "Impacts".

    Examples
    --------
    The crank turns alone until its loop closes; the impact takes kinetic energy:

    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> q, _ = hc.assemble(mech)
    >>> hit = hc.impulse(mech, q, [1.0, 0.0, 0.0])
    >>> hit.v.round(3).tolist(), hit.energy < 0.0
    ([2.016, -2.447, 0.391], True)
    """
    check_mechanism(mech)
    one_of("method", method, METHODS)
    T, part = shared_state(mech, q, v, t, partition=partition, terms=terms)
    before = T.given[1]  # an explicit chart has corrected T.v already
    phi_t = T.rows.rate - T.rows.jacobian @ T.v
    wanted = _wanted(mech, T.rows.jacobian @ before + phi_t, v_plus, restitution)
    after = _struck(T, part, before, wanted - phi_t, method)
    momentum = T.M @ (after - before)
    p, unique = multipliers(T, part, momentum)
    energy = 0.5 * float((after - before) @ T.M @ (after + before))
    sizes = np.abs(T.rows.jacobian) @ np.abs(T.v)
    at_rest = (np.abs(phi_t) <= 1e-10 * sizes.max(initial=1e-300)).all()  # up to rounding
    if restitution is not None and at_rest:
        _check_energy(mech, 0.5 * float(before @ T.M @ before), energy, restitution)
    given = T.rows.jacobian.T @ p
    if part.tolerance > 0.0:  # nearly redundant rows act like the kept ones
        given = constraint_effort(T, part, given)
    off = largest(mech.column_scale * (momentum - given))
    size = largest(mech.column_scale * (np.abs(T.M) @ (np.abs(after) + np.abs(before))))
    balance = off / size if size > 0.0 else 0.0
    if not np.isfinite([energy, balance, *p]).all():
        raise InputError("the impact is not finite: an input is out of range")
    return Impact(after, p, unique, energy, balance)


def _wanted(
    mech: Mechanism, rate: Vector, v_plus: Any, restitution: Mapping[str, float] | None
) -> Vector:
    """The rates of all rows after the impact."""
    m = mech.row_scale.size
    if restitution is None:
        return np.zeros(m) if v_plus is None else vector("v_plus", v_plus, m, "a rate for each row")
    if v_plus is not None:
        raise InputError("give one of v_plus= and restitution=, not both")
    if not isinstance(restitution, Mapping):
        raise InputError(
            "restitution must be a mapping of contact names to coefficients; got "
            f"{type(restitution).__name__}"
        )
    contacts = [
        name
        for name, c in zip(mech.constraint_names, mech.constraints, strict=True)
        if isinstance(c, Contact)
    ]
    wanted = np.zeros(m)
    for name, given in restitution.items():
        e = number(f"restitution[{quoted(name)}]", given)
        if not 0.0 <= e <= 1.0:
            raise InputError(f"restitution[{name!r}] must be from 0 to 1; got {e}")
        normal = rows_of(mech, known_name(name, contacts, "contact", "restitution")).start
        if rate[normal] > SEPARATING * (1.0 + np.abs(rate).max()):
            raise InconsistentError(
                f"{mech.name}: contact {name!r} separates before the impact, at "
                f"{rate[normal]:.3g} m/s, so there is no collision; leave it out, by "
                "mech.with_enabled(...)",
                residual=float(rate[normal]),
            )
        wanted[normal] = -e * rate[normal]
    return wanted


def _check_rows(
    mech: Mechanism,
    G: NDArray[np.float64],
    speeds: Vector,
    x: Vector,
    k: Vector,
    tolerance: float,
) -> None:
    """Check that all rows have the requested rate, including redundant rows, to within the
    tolerance of the geometry."""
    off = np.abs(G @ x - k)
    size = largest(np.abs(G) @ speeds + np.abs(k))
    bad = np.flatnonzero(~(off <= max(IMPACT_CONSISTENT, tolerance) * size))
    if bad.size:
        names = [mech.row_names[i] for i in bad]
        raise InconsistentError(
            f"{mech.name}: the requested rates contradict each other: with those of the kept rows, "
            f"{listing(names)} cannot have theirs (errors up to {off.max() / size:.1e} of the "
            "largest); dependent rows need consistent rates",
            residual=float(off.max()),
        )


def _check_energy(
    mech: Mechanism, before: float, energy: float, restitution: Mapping[str, float]
) -> None:
    """Check the energy: different coefficients of coupled rows may increase it, even between 0 and
    1."""
    if energy > 1e-9 * before:
        raise InconsistentError(
            f"{mech.name}: these coefficients of restitution raise the kinetic energy by "
            f"{energy:.2g} J from {before:.2g} J, which no impact does; coupled "
            f"contacts, or their tangents, need smaller ones: {dict(restitution)}",
            residual=energy,
        )
