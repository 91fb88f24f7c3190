"""The projection: gamma, a basis of the admissible velocities, and the bias acceleration.

    v = gamma yd + v_t        G gamma = 0        G v_t = -phi_t
    a = gamma ydd + bias        G bias = -(drift + stabilisation)

Three methods to compute all x with ``G' x = target`` from the kept rows in scaled coordinates:

    split          G' = [G_ind G_dep]     x_dep = G_dep^-1 target - G_dep^-1 G_ind x_ind
    qr             G' P = Q [R1 R2]       x_dep = R1^-1 Q^T target - R1^-1 R2 x_ind
    orthonormal    G'^T P = [Y Z] [R; 0]  x = Y R^-T P^T target + Z y

Forward dynamics, inverse dynamics and control all use this result.
References: R. Featherstone, Rigid Body Dynamics Algorithms, chapter 3 (constraints) and chapter 8
(closed-loop systems), spatial_v2's gamma_q; Wehage and Haug's coordinate partitioning;
docs/derivations.md, "Projection".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import (
    Array,
    Indices,
    Vector,
    counted,
    freeze,
    listing,
    one_of,
    quiet,
    read_only,
    unpickled,
)
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.linalg import largest, lu, pivoted_qr
from holoctl.base.tolerances import SINGULAR, UNIT
from holoctl.closing.rank import scaled_size
from holoctl.constraints.constraint_protocol import Rows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import (
    SPLIT_LIMIT,
    Partition,
    check_determined,
    coordinates,
    shared_partition,
)
from holoctl.rows.evaluate import may_depend_on_time
from holoctl.rows.stabilisation import TimeConstants
from holoctl.rows.terms import Terms, scaled_rows, shared_terms, terms_at
from holoctl.tree.kinematics import Kinematics

__all__ = ["METHODS", "Projection", "finite_projection", "project", "projected", "projection_of"]


METHODS = ("auto", "split", "qr", "orthonormal")


# -------------------------------------------------------------------------------------- the law


def projection_of(T: Terms, part: Partition, method: str = "auto") -> Projection:
    """gamma and bias from given terms."""
    check_determined(T, part)
    mech, c = T.mechanism, T.mechanism.column_scale
    G, right = scaled_rows(T, part.rows)  # G' = Dr G Dc, right = -Dr (drift + stabilisation)
    if mech.chart is not None:
        right = right - G @ (T.pull / c)  # the chart's part is added to the bias directly
    targets = [right]
    if T.mechanism.chart is not None or may_depend_on_time(mech):
        phi_t = mech.row_scale * (T.rows.rate - T.rows.jacobian.dot(T.v))
        targets.append(-phi_t[part.rows])
    x = _basis(mech, G, np.array(targets).T, part, method)
    # back from scaled coordinates: v = Dc v', and y keeps the units of its coordinates
    y_scale = c[x.independent] if x.independent.size else np.ones(x.gamma.shape[1])
    bias, *moved = c * x.particular.T
    if mech.chart is not None:
        bias = bias + T.pull
    v_t = moved[0] if moved else np.zeros(mech.nv)
    return Projection(
        gamma=read_only(c[:, None] * x.gamma / y_scale),
        bias=read_only(bias),
        v_t=read_only(v_t),
        independent=x.independent,
        dependent=x.dependent,
        scale=y_scale,
        rank=part.rank,
        condition=x.condition,
        method=x.method,
        partition=part,
        terms=T,
    )


class _Basis(NamedTuple):
    """All solutions of ``G' x = target``: x = gamma y + particular, in scaled coordinates."""

    gamma: Array
    particular: Array
    independent: Indices
    dependent: Indices
    condition: float
    method: str


def _basis(mech: Mechanism, G: Array, target: Array, part: Partition, method: str) -> _Basis:
    """By index split, by column-pivoted QR, or orthonormal; "auto" uses the first that is
    well-conditioned."""
    if method == "orthonormal":
        return _orthonormal(mech, G, target, part)
    size = scaled_size(G)
    if method != "qr":
        ind, dep = part.independent, part.dependent
        factors = lu(G.take(dep, 1), size)
        if method == "split" or factors.condition <= SPLIT_LIMIT:
            _check_split(mech, ind, dep, factors.condition)
            X = factors.solve(np.concatenate([-G.take(ind, 1), target], 1))  # G_dep^-1 [-G_ind t]
            return _with_coordinates(X, ind, dep, factors.condition, "split")
    qr = pivoted_qr(G, part.rank, size=size)  # G' P = Q [R1 R2]
    dep, order = qr.pivots[: part.rank], np.argsort(qr.pivots[part.rank :])
    ind = qr.pivots[part.rank :][order]
    _check_split(mech, ind, dep, qr.condition)
    X = qr.solve_r1(np.hstack([-qr.r2[:, order], qr.q.T @ target]))  # R1^-1 [-R2 Q^T target]
    return _with_coordinates(X, ind, dep, qr.condition, "qr")


def _with_coordinates(
    X: Array, independent: Indices, dependent: Indices, condition: float, method: str
) -> _Basis:
    """x_dep = X [x_ind; 1] for each target: gamma and particular stack [I 0; X] in joint order."""
    k = independent.size
    x = np.zeros((k + dependent.size, X.shape[1]))
    x[independent] = _identity(k, X.shape[1])
    x[dependent] = X
    return _Basis(x[:, :k], x[:, k:], independent, dependent, condition, method)


@lru_cache(maxsize=100)
def _identity(k: int, n: int) -> Array:
    """[I 0], (k, n)."""
    return read_only(np.eye(k, n))


def _orthonormal(mech: Mechanism, G: Array, target: Array, part: Partition) -> _Basis:
    """gamma' spans the null space of G', particular' is the shortest solution."""
    qr = pivoted_qr(G.T, part.rank, size=UNIT)  # G'^T P = Q [R1; 0]
    if qr.condition > SINGULAR:
        names = [mech.row_names[i] for i in part.rows]
        raise SingularityError(
            f"{mech.name}: the kept rows {listing(names)} are singular at this state "
            f"(condition number {qr.condition:.1e}): move away, or make a partition here",
            condition=qr.condition, names=names,
        )  # fmt: skip
    none = np.zeros(0, dtype=np.intp)
    return _Basis(
        qr.q[:, part.rank :], qr.shortest(target), none, none, qr.condition, "orthonormal"
    )


def _check_split(
    mech: Mechanism, independent: Indices, dependent: Indices, condition: float
) -> None:
    """Raise `SingularityError` if the independent coordinates do not determine the others."""
    if condition <= SINGULAR:
        return
    raise SingularityError(
        f"{mech.name}: at this state the dependent coordinates {coordinates(mech, dependent)} "
        f"do not follow from {coordinates(mech, independent)} (condition number "
        f"{condition:.1e}): a singular configuration for this choice; try method='qr', another "
        "partition, or move away",
        condition=condition,
        names=[mech.coordinate_names[i] for i in dependent],
    )


# ------------------------------------------------------------------- result, and function


@dataclass(frozen=True, eq=False)
class Projection:
    """The result of `project`: gamma and bias at one state, with their terms and partition.

    Attributes
    ----------
    gamma : (nv, k) array
        Basis of the admissible velocities, k = nv - rank.
    bias : (nv,) array
        Acceleration for ydd = 0, including stabilisation if it is used.
    v_t : (nv,) array
        The velocity imposed by time-dependent constraints; zero without such.
    independent, dependent : int arrays
        Indices into v; ``gamma[independent]`` is the identity. Empty for a basis without
        coordinates ("orthonormal").
    scale : (k,) array
        Unit of each y: L for a translation, 1 for an angle or a basis without coordinates.
    rank : int
    condition : float
        Condition number of the factored scaled matrix.
    method : str
        "split", "qr" or "orthonormal".
    partition : Partition
    terms : Terms
        The terms that were used: state, all rows, kinematics, M and h.

    See Also
    --------
    project : returns it.
    results.Terms : M, h and rows at the state.
    task_terms : a task at this state.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> P = hc.project(mech, *hc.assemble(mech, v_guess=[1.0, 0.0, 0.0, 0.0]))
    >>> v = P.terms.v
    >>> bool(np.allclose(P.gamma @ v[P.independent], v))
    True
    """

    gamma: Array
    bias: Vector
    v_t: Vector
    independent: Indices
    dependent: Indices
    scale: Vector
    rank: int
    condition: float
    method: str
    partition: Partition
    terms: Terms

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    def __repr__(self) -> str:
        names = [self.mechanism.coordinate_names[i] for i in self.independent]
        of = f" of {listing(names, 6)}" if names else ""
        return (
            f"<Projection of {self.mechanism.name!r}: {counted(self.k, 'motion')}{of}, method "
            f"{self.method!r}, condition number {self.condition:.2g}>"
        )

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self.terms.mechanism

    @property
    def q(self) -> Vector:
        """(nq,) configuration; with an explicit chart (`GammaQ`), the corrected one."""
        return self.terms.q

    @property
    def v(self) -> Vector:
        """(nv,) velocity; with an explicit chart, the corrected one."""
        return self.terms.v

    @property
    def rows(self) -> Rows:
        """All constraint rows at the state, unscaled."""
        return self.terms.rows

    @property
    def kinematics(self) -> Kinematics:
        """Placements, bias accelerations and Jacobian of the tree."""
        return self.terms.kinematics

    @property
    def k(self) -> int:
        """Degrees of freedom: the columns of gamma."""
        return int(self.gamma.shape[1])


@quiet
def project(
    mech: Mechanism,
    q: Any,
    v: Any,
    method: str = "auto",
    *,
    partition: Partition | None = None,
    t_stab: TimeConstants = None,
    t: float = 0.0,
    terms: Terms | None = None,
) -> Projection:
    """Basis gamma of the admissible velocities, and bias acceleration, at (q, v).

    Admissible motions are ``v = gamma yd + v_t`` and ``a = gamma ydd + bias``.

    The state may be off the manifold and is not moved, except by an explicit chart: gamma and
    bias then satisfy the kept rows exactly, the redundant ones to the order of the error.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration.
    v : (nv,) array_like
        Velocity, rad/s or m/s.
    method : str, optional
        ``"split"``: independent and dependent coordinates of the partition. ``"qr"``: chosen at
        this state by column-pivoted QR. ``"orthonormal"``: an orthonormal basis (in scaled
        coordinates) without coordinates; it may jump between states. ``"auto"``: the split, or QR
        if that is ill-conditioned.
    partition : Partition, optional
        Default: determined at the closed configuration nearest to q, which is slow.
    t_stab : float, False or mapping of str to float or False, optional
        Time constant T of Baumgarte's stabilisation, s: ``G a = -drift - (2/T) rate - error /
        T^2``; for all constraints, or by name. False: none. Default, and for constraints not named:
        that of each constraint, or none.
    t : float, optional
        Time, s.
    terms : Terms, optional
        The result of `terms` at the same state, to share.

    Returns
    -------
    Projection

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, an unknown method.
    SingularityError
        If the independent coordinates do not determine the others at this state; it states them and
        the condition number.

    See Also
    --------
    partition : rows and coordinates, determined once.
    terms : M, h and rows at the same state.
    task_terms : a task in minimal coordinates.

    References
    ----------
    docs/derivations.md, "Projection" and "Stabilisation".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> P = hc.project(mech, q, v)
    >>> bool(abs(P.terms.jacobian @ P.gamma).max() < 1e-12)
    True
    """
    one_of("method", method, METHODS)
    T = shared_terms(terms, mech, q, v, t, t_stab)
    return finite_projection(projection_of(T, shared_partition(partition, T), method))


def finite_projection(P: Projection) -> Projection:
    """The projection itself, or an `InputError` if its numbers are not finite."""
    if not largest(P.gamma) + largest(P.bias) < np.inf:
        raise InputError(
            f"{P.mechanism.name}: gamma or bias is not finite at this state; q or v is out of range"
        )
    return P


def projected(
    mech: Mechanism,
    q: Vector,
    v: Vector,
    t: float,
    part: Partition,
    method: str = "auto",
    t_stab: TimeConstants = None,
) -> Projection:
    """`project` without argument checks, for callers that have made them."""
    return projection_of(terms_at(mech, q, v, t, t_stab), part, method)
