"""The terms of the equation of motion at one state, computed once and shared.

    M a + h = tau + J^T f + F + G^T lambda        G a = -(drift + stabilisation)

All methods that solve this system start from these terms. This file adds stabilisation, and
corrects the state by an explicit chart.
Derivations: docs/derivations.md, "Explicit charts" and "Stabilisation".
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import (
    Array,
    Indices,
    Vector,
    counted,
    finite,
    freeze,
    listing,
    made_again,
    quiet,
    read_only,
)
from holoctl.base.errors import InputError
from holoctl.base.linalg import PivotedQR, largest, pivoted_qr
from holoctl.constraints.constraint_protocol import Rows
from holoctl.forces.force_protocol import Efforts
from holoctl.forces.sum_of_forces import all_efforts, change_by_velocity
from holoctl.mechanism.checks import check_state
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import external_efforts, inertia, nonlinear_efforts
from holoctl.rows.evaluate import rows_at, rows_of
from holoctl.rows.stabilisation import (
    TimeConstants,
    check_time_constants,
    stabilisation,
    stiffness,
    time_constant,
    time_constants,
)
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = [
    "Terms",
    "check_finite",
    "check_same_state",
    "scaled_rows",
    "shared_terms",
    "terms",
    "terms_at",
]


@dataclass(frozen=True, eq=False)
class Terms:
    """The result of `terms`; M, h, F and others are computed at the first access, and stored.

    Attributes
    ----------
    mechanism : Mechanism
    q, v, t
        The state; with an explicit chart (`GammaQ`), the corrected one.
    rows : Rows
        Error, rate, Jacobian and drift of all m rows, unscaled.
    stabilisation : (m,) array
        Baumgarte's term of each row, zero without stabilisation: ``G a = -drift - stabilisation``.
    pull : (nv,) array
        Acceleration by the stabilisation of an explicit chart.
    stiffness : float
        1 + the largest ratio of the accelerations of stabilisation to the errors and rates that
        cause them.
    given : ((nq,) array, (nv,) array)
        The given state.

    See Also
    --------
    terms : returns it.
    project : takes it as ``terms=``.
    protocols.Rows : its rows.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> here = hc.terms(mech, *hc.assemble(mech))
    >>> bool(np.allclose(here.M, here.M.T)), here.of("pin").error.size
    (True, 5)
    """

    mechanism: Mechanism
    q: Vector
    v: Vector
    t: float
    rows: Rows
    stabilisation: Vector
    pull: Vector
    given: tuple[Vector, Vector]
    stiffness: float = 1.0

    def __post_init__(self) -> None:
        freeze(self)

    def __reduce__(self) -> tuple[Any, ...]:  # a pickled array forgets that it is read-only
        return made_again, (Terms, {f.name: getattr(self, f.name) for f in fields(self)})

    @cached_property
    def kinematics(self) -> Kinematics:
        """Placements, bias accelerations and Jacobian of the tree."""
        mech = self.mechanism
        return kinematics(mech.model, workspace(mech), self.q, self.v, self.t)

    @cached_property
    def M(self) -> Array:
        """(nv, nv) inertia matrix of the tree."""
        return read_only(inertia(self.mechanism, self.q)[...])

    @cached_property
    def h(self) -> Vector:
        """(nv,) Coriolis, centrifugal and gravity efforts, N m or N; `InputError` if infinite."""
        h = nonlinear_efforts(self.mechanism, self.q, self.v)
        if not finite(h) and not np.isfinite(h).all():
            raise InputError(
                f"{self.mechanism.name}: h, the Coriolis, centrifugal and gravity efforts, is not "
                "finite at this state; q or v is out of range"
            )
        return read_only(h[...])

    @cached_property
    def applied(self) -> Efforts:
        """The efforts of springs, friction and other forces of the mechanism; see `Efforts`."""
        mech = self.mechanism
        if not mech.forces:
            return mech.per_thread(
                "no efforts", lambda: Efforts(*read_only(np.zeros((3, mech.nv))))
            )
        with np.errstate(all="ignore"):
            found = all_efforts(mech.bound_forces, self.kinematics)
        if not np.isfinite(found.total).all():
            raise InputError(
                f"{mech.name}: efforts of {listing(mech.force_names)} are not "
                "finite at this state; q, v or t is out of range"
            )
        return found

    @cached_property
    def F(self) -> Vector:
        """(nv,) efforts of all forces of the mechanism, N m or N; zero without forces."""
        return self.applied.total if self.mechanism.forces else self.applied.springs

    def known_efforts(self, f_ext: Any, efforts: Any = None) -> Vector:
        """(nv,) ``J' f``, efforts on the coordinates, and F; see `external_efforts`."""
        if f_ext is None and efforts is None:
            return self.F
        kin = None if f_ext is None else self.kinematics
        return external_efforts(self.mechanism, kin, f_ext, efforts) + self.F

    @cached_property
    def F_v(self) -> Array:
        """(nv, nv) the derivative of F by v."""
        with np.errstate(all="ignore"):
            return read_only(change_by_velocity(self.mechanism.bound_forces, self.kinematics)[...])

    @cached_property
    def sizes(self) -> Array:
        """(m, nv) ``|Dr G|``: the sizes of the terms of a scaled row."""
        return read_only(np.abs(self.mechanism.row_scale[:, None] * self.rows.jacobian))

    @cached_property
    def scaled(self) -> Array:
        """(m, nv) ``Dr G Dc``: G in scaled rows and scaled coordinates."""
        return read_only(self.rows.jacobian * self.mechanism.scale)

    def factored(self, rows: Indices) -> PivotedQR:
        """``G'[rows]^T P = Q [R1; 0]`` of independent scaled rows; stored too."""
        key = rows.tobytes()
        if key not in self._factors:
            self._factors[key] = pivoted_qr(self.scaled_of(rows).T, rows.size)
        return self._factors[key]

    def scaled_of(self, rows: Indices) -> Array:
        """Some rows of `scaled`, in ascending order."""
        return self.scaled if rows.size == len(self.scaled) else self.scaled.take(rows, 0)

    @cached_property
    def _factors(self) -> dict[bytes, PivotedQR]:
        """Factors by the indices of the rows."""
        return {}

    @property
    def error(self) -> Vector:
        """(m,) phi(q, t), m or rad."""
        return self.rows.error

    @property
    def rate(self) -> Vector:
        """(m,) ``G v + phi_t``, m/s or rad/s."""
        return self.rows.rate

    @property
    def jacobian(self) -> Array:
        """(m, nv) G."""
        return self.rows.jacobian

    @property
    def drift(self) -> Vector:
        """(m,) second time derivative of phi at zero acceleration, m/s^2 or rad/s^2."""
        return self.rows.drift

    def __repr__(self) -> str:
        off = largest(self.mechanism.row_scale * self.error)
        stabilised = ", stabilised" if self.stabilisation.any() or self.pull.any() else ""
        return (
            f"<Terms of {self.mechanism.name!r} at t = {self.t:g} s: "
            f"{counted(self.error.size, 'row')}, closure error {off:.1e} (scaled){stabilised}>"
        )

    def of(self, name: str) -> Rows:
        """The rows of one constraint, by its name."""
        here, r = rows_of(self.mechanism, name), self.rows
        return Rows(r.error[here], r.rate[here], r.jacobian[here], r.drift[here])


@quiet
def terms(
    mech: Mechanism, q: Any, v: Any, *, t: float = 0.0, t_stab: TimeConstants = None
) -> Terms:
    """All terms of the equation of motion at (q, v), to be shared by several calls.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration; may be off the manifold.
    v : (nv,) array_like
        Velocity, rad/s or m/s.
    t : float, optional
        Time, s.
    t_stab : float, False or mapping of str to float or False, optional
        Time constant T of Baumgarte's stabilisation, s: ``G a = -drift - (2/T) rate - error /
        T^2``; for all constraints, or by name. False: none. Default, and for constraints not named:
        that of each constraint, or none.

    Returns
    -------
    Terms

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, and numbers so large that rows are not
        finite.

    See Also
    --------
    project : gamma and bias, with these terms.
    inverse_dynamics : takes them as ``terms=``.
    constraint_errors : the errors alone, faster.

    References
    ----------
    docs/derivations.md, "Stabilisation".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> here = hc.terms(mech, *hc.assemble(mech))
    >>> here.h.round(3).tolist(), here.jacobian.shape
    ([0.959, 0.613, 0.008], (5, 3))
    """
    return _checked_terms(mech, q, v, t, t_stab)


def _checked_terms(mech: Mechanism, q: Any, v: Any, t: Any, t_stab: TimeConstants) -> Terms:
    q, v, t = check_state(mech, q, v, t)
    check_time_constants(mech, t_stab)
    T = terms_at(mech, q, v, t, t_stab)
    check_finite(T)
    return T


def terms_at(
    mech: Mechanism, q: Vector, v: Vector, t: float, t_stab: TimeConstants = None
) -> Terms:
    """`terms` without argument checks, for callers that have made them."""
    given = q, v
    q, v, pull = _charted(mech, q, v, t_stab)
    rows = rows_at(mech, q, v, t)
    term, stiff = _stabilised(mech, rows, t_stab)
    if mech.chart is not None:
        term = term - rows.jacobian @ pull
    return Terms(mech, q, v, t, rows, term, pull, given, stiff)


def check_finite(T: Terms) -> None:
    """Raise `InputError`, which names the row, if numbers of the rows are not finite."""
    rows = T.rows
    G = rows.jacobian.reshape(-1)
    if all(map(finite, (rows.error, rows.rate, rows.drift, T.stabilisation, G))):
        return  # then so are all terms
    sizes = np.abs([rows.error, rows.rate, rows.drift, T.stabilisation]).sum(axis=0)
    sizes += np.abs(rows.jacobian).sum(axis=1)
    bad = np.flatnonzero(~np.isfinite(sizes))
    if bad.size:
        raise InputError(
            f"{T.mechanism.name}: row {T.mechanism.row_names[bad[0]]!r} is not finite at this "
            "state; q, v or t is out of range, or t_stab too short"
        )


def shared_terms(
    given: Terms | None, mech: Mechanism, q: Any, v: Any, t: Any, t_stab: TimeConstants
) -> Terms:
    """The terms that a caller gave, checked, or new ones."""
    if given is None:
        return _checked_terms(mech, q, v, t, t_stab)
    if t_stab is not None:
        raise InputError("give t_stab= to terms, not together with terms=")
    if not isinstance(given, Terms) or given.mechanism is not mech:
        raise InputError("terms must be Terms of the same mechanism object")
    check_same_state(given, "terms were", q, v, t)
    return given


def check_same_state(T: Terms, what: str, q: Any, v: Any, t: Any) -> None:
    """Raise `InputError` unless the terms are those of the state that the caller gives."""
    q, v, t = check_state(T.mechanism, q, v, t)
    same = np.array_equal(q, T.given[0]) and np.array_equal(v, T.given[1])
    if not same or t != T.t:
        raise InputError(f"{what} made at another state or time than the one given")


def scaled_rows(T: Terms, keep: NDArray[np.intp]) -> tuple[Array, Vector]:
    """``Dr G Dc`` and ``-Dr (drift + stabilisation)`` of the rows `keep`."""
    right = -T.mechanism.row_scale * (T.rows.drift + T.stabilisation)
    return T.scaled_of(keep), right[keep]


def _charted(
    mech: Mechanism, q0: Vector, v0: Vector, t_stab: TimeConstants
) -> tuple[Vector, Vector, Vector]:
    """The state corrected by the chart, and the stabilisation that pulls the given state towards
    it."""
    chart, pull = mech.chart, np.zeros(mech.nv)
    if chart is None:
        return q0, v0, pull
    corrected = chart.chart(q0, v0)
    i = next(i for i, b in enumerate(mech.bound) if b is chart)
    T = time_constant(mech.constraints[i], mech.constraint_names[i], t_stab)
    if np.isfinite(T):
        move = pin.difference(mech.model, q0, corrected.q)
        pull = stabilisation(corrected.v - v0, move, T)
    return corrected.q, corrected.v, pull


def _stabilised(mech: Mechanism, rows: Rows, t_stab: TimeConstants) -> tuple[Vector, float]:
    """Baumgarte's term of each row, zero without stabilisation; and its stiffness."""
    term = np.zeros(len(rows.error))
    if t_stab is None and not mech.stabilised:
        return term, 1.0
    T = time_constants(mech, t_stab)
    on = np.isfinite(T)
    term[on] = stabilisation(rows.rate[on], rows.error[on], T[on])
    return term, stiffness(mech, t_stab)
