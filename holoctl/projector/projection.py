"""The projector: a basis gamma of the admissible velocities, and the bias that goes with it.

    v = gamma yd + v_t        G gamma = 0        G v_t = -phi_t
    a = gamma ydd + bias        G bias = -drift

`partition` decides, once, at a closed configuration: the rank of G, which rows to keep, which
coordinates are independent. `project` evaluates gamma and bias at any state with that
decision; forward dynamics and the controllers consume the same result.
References: R. Featherstone, Rigid Body Dynamics Algorithms, chapter 3 (constraints) and
chapter 8 (closed-loop systems); Wehage and Haug's coordinate partitioning; derivations in
docs/derivations.md, "Projection".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing, number, one_of, quiet
from holoctl.base.errors import InconsistentError, InputError, SingularityError
from holoctl.base.linalg import largest, lu, pivoted_qr, singular_values
from holoctl.closing.assembly import assemble
from holoctl.closing.nearby import nearby_configurations
from holoctl.closing.rank import (
    ROUNDED,
    SINGULAR,
    UNIT,
    manifold_rank,
    scaled_jacobian,
    scaled_size,
)
from holoctl.constraints.contract import Rows
from holoctl.mechanism.mechanism import (
    Mechanism,
    check_configuration,
    coordinate_indices,
    row_names,
)
from holoctl.rows.stabilisation import TimeConstants
from holoctl.rows.terms import (
    Terms,
    check_same_state,
    check_terms,
    scaled_rows,
    terms,
    terms_at,
)
from holoctl.tree.kinematics import Kinematics

__all__ = [
    "METHODS",
    "Partition",
    "Projection",
    "check_motors",
    "check_partition",
    "constraint_effort",
    "multipliers",
    "partition",
    "project",
    "resolve_projection",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
_T = TypeVar("_T", bound=np.generic)

METHODS = ("auto", "split", "qr", "orthonormal")

CLOSED = 1e-6
"""No rank is decided at a configuration whose scaled error is larger than this."""

PREFERENCE = 1e3
"""Actuated coordinates are chosen as independent unless this many times worse conditioned."""

SPLIT_LIMIT = 1e5
"""`method="auto"` leaves the chosen split for the rank-revealing QR above this condition number
(gamma' M gamma squares it)."""

UNIQUE = 1e-9
"""A multiplier is unique if its leverage misses one by no more than this."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Which rows count and which coordinates are independent, decided once.

    Attributes
    ----------
    rank : int
        Rank of G on the constraint manifold.
    rows : (rank,) int array
        The kept rows, in ascending order. The others depend on them on the manifold.
    independent : (nv - rank,) int array
        Indices into v of the independent coordinates, in ascending order.
    dependent : (rank,) int array
        Indices into v of the others.
    condition : float
        Condition number of the scaled G[rows, dependent] where it was decided.
    gap : float
        Ratio of the smallest singular value that counts to the largest that does not (of the
        scaled G; inf where none is left out).
    actuation_rank : int
        Rank of gamma' B (scaled), at generic configurations near the one given.
    coordinate_names, row_names : tuple of str
        What the indices mean: a mechanism with other coordinates or rows needs a partition of
        its own.
    B : (nv, nu) array
        The actuation matrix that `actuation_rank` is about.
    """

    rank: int
    rows: Indices
    independent: Indices
    dependent: Indices
    condition: float
    gap: float
    actuation_rank: int
    coordinate_names: tuple[str, ...]
    row_names: tuple[str, ...]
    B: Array

    def __post_init__(self) -> None:
        for name in ("rows", "independent", "dependent", "B"):
            object.__setattr__(self, name, _fixed(getattr(self, name)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Partition, tuple(getattr(self, f.name) for f in fields(self))

    @property
    def uncertain(self) -> bool:
        """Whether the rank is not clear: the gap in the singular values is less than 100."""
        return self.gap < 100.0


@dataclass(frozen=True, eq=False)
class Projection:
    """gamma and bias at one state, with what they were made from.

    Attributes
    ----------
    gamma : (nv, k) array
        Basis of the admissible velocities, k = nv - rank.
    bias : (nv,) array
        Acceleration for ydd = 0, stabilisation included where it was asked for.
    v_t : (nv,) array
        The velocity that constraints which depend on time impose; zero without such.
    independent, dependent : int arrays
        Indices into v; ``gamma[independent]`` is the identity. Empty for a basis without
        coordinates ("orthonormal").
    scale : (k,) array
        Unit of each y: L for a translation, 1 for an angle or a basis without coordinates.
    rank : int
    condition : float
        Condition number of the scaled matrix that was solved with.
    method : str
        "split", "qr" or "orthonormal".
    partition : Partition
    terms : Terms
        What it was made from: state, all rows, kinematics, M and h.
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

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self.terms.mechanism

    @property
    def q(self) -> Vector:
        """(nq,) configuration; with an explicit chart (`GammaQ`), the one that it corrected."""
        return self.terms.q

    @property
    def v(self) -> Vector:
        """(nv,) velocity; with an explicit chart, the one that it corrected."""
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


def _fixed(x: NDArray[_T]) -> NDArray[_T]:
    """`x` itself where it cannot be written to, else such a copy: laws are laid out from it."""
    if x.flags.writeable:
        x = x.copy()
        x.setflags(write=False)
    return x


# ------------------------------------------------------------------------------- partition


@quiet
def partition(
    mech: Mechanism, q: Any, *, independent: Iterable[str] | None = None, t: float = 0.0
) -> Partition:
    """Decide rank, kept rows and independent coordinates at a closed configuration.

    Without `independent`, actuated coordinates are preferred, unless that choice is a thousand
    times worse conditioned than the best one.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        A closed configuration: see `assemble`.
    independent : iterable of str, optional
        The independent coordinates to use, nv - rank names.
    t : float, optional
        Time, s.

    Returns
    -------
    Partition

    Raises
    ------
    InputError
        For a wrong shape, unknown names, a wrong number of them.
    InconsistentError
        If q is not closed.
    SingularityError
        If the rank of G is lower here than nearby (a singular configuration, where no choice
        holds), or the coordinates asked for as independent do not determine the others.
    """
    q, t = check_configuration(mech, q), number("t", t, "time, s")
    G, error = _scaled_jacobian(mech, q, t)
    if not error <= CLOSED:
        raise InconsistentError(
            f"{mech.name}: q is not closed (largest scaled error {error:.1e}), so rank and rows "
            "cannot be decided there; call hc.assemble(mech, q) first",
            residual=error,
        )
    rank, gap = _rank_and_gap(G, error)
    nearby: list[Vector] = []
    if rank < min(G.shape):
        nearby = nearby_configurations(mech, q, t)
        generic = max(
            (manifold_rank(_scaled_jacobian(mech, x, t)[0], ROUNDED) for x in nearby), default=0
        )
        if generic > rank:
            raise SingularityError(
                f"{mech.name}: the constraints have rank {rank} at this configuration but "
                f"{generic} nearby: a singular configuration (a dead point or a bifurcation), "
                "where the independent coordinates are not defined; move away from it",
                names=_vanishing_rows(mech, G, rank),
            )
    rows = np.sort(pivoted_qr(G.T, rank).pivots[:rank])
    kept = G[rows]
    if independent is None:
        dependent = _preferred_dependents(mech, kept, rank)
    else:
        chosen = coordinate_indices(mech, independent, "independent")
        if chosen.size != mech.nv - rank:
            raise InputError(
                f"independent: {mech.nv} coordinates and rank {rank} leave {mech.nv - rank} "
                f"independent ones; got {chosen.size}: {_coordinates(mech, chosen)}"
            )
        dependent = np.setdiff1d(np.arange(mech.nv), chosen)
    free = np.setdiff1d(np.arange(mech.nv), dependent)
    condition = lu(kept[:, dependent], scaled_size(kept)).condition
    if condition > SINGULAR:
        raise SingularityError(
            f"{mech.name}: the coordinates {_coordinates(mech, free)} do not determine the "
            f"others, {_coordinates(mech, dependent)} (condition number {condition:.1e}); "
            "choose others, or none",
            condition=condition, names=[mech.coordinate_names[i] for i in dependent],
        )  # fmt: skip
    return Partition(
        rank, rows, free, dependent, condition, gap,
        _actuation_rank(mech, rank, q, t, nearby), mech.coordinate_names, row_names(mech), mech.B,
    )  # fmt: skip


def _scaled_jacobian(mech: Mechanism, q: Vector, t: float) -> tuple[Array, float]:
    """G in scaled rows and coordinates, and the largest scaled error."""
    G, error = scaled_jacobian(mech, q, t)
    return G, largest(error)


def _rank_and_gap(G: Array, error: float) -> tuple[int, float]:
    rank = manifold_rank(G, error)
    s = singular_values(G)
    left_out = s[rank] if rank < s.size else 0.0
    if rank == 0 or left_out == 0.0:
        return rank, float("inf")
    return rank, float(s[rank - 1] / left_out)


def _preferred_dependents(mech: Mechanism, kept: Array, rank: int) -> Indices:
    """Pivot columns: what a chart says, then unactuated ones, then motors; or the best of all."""
    late = np.where((mech.B != 0.0).any(axis=1), 2, 1)
    if mech.chart is not None:
        late[mech.chart.dependent] = 0
    found: list[int] = []
    left = kept
    for stage in range(3):
        columns = np.flatnonzero(late == stage)
        wanted = rank - len(found) if stage == 2 else None
        qr = pivoted_qr(left[:, columns], wanted, tol=1.0 / SPLIT_LIMIT, size=UNIT)
        count = qr.r1.shape[0]
        found += columns[qr.pivots[:count]].tolist()
        left = qr.q[:, count:].T @ left  # what these columns do not span
    preferred = np.sort(np.array(found, dtype=np.intp))
    best = np.sort(pivoted_qr(kept, rank).pivots[:rank])
    if len(found) < rank:
        return best
    size = scaled_size(kept)
    good = lu(kept[:, best], size).condition * PREFERENCE
    return preferred if lu(kept[:, preferred], size).condition <= good else best


def _actuation_rank(mech: Mechanism, rank: int, q: Vector, t: float, nearby: list[Vector]) -> int:
    """Rank of gamma' B, the most over q and closed configurations near it."""

    def here(x: Vector) -> int:
        G, error = _scaled_jacobian(mech, x, t)
        null = pivoted_qr(G.T, rank).q[:, rank:]
        B = mech.column_scale[:, None] * mech.B
        A = null.T @ (B / np.linalg.norm(B, axis=0))
        return manifold_rank(A, error)

    found = here(q)
    if found < min(mech.nu, mech.nv - rank):
        found = max([found, *(here(x) for x in nearby or nearby_configurations(mech, q, t))])
    return found


def _vanishing_rows(mech: Mechanism, G: Array, rank: int) -> list[str]:
    pivots = pivoted_qr(G.T, rank).pivots
    names = row_names(mech)
    return [names[i] for i in np.sort(pivots[rank:])]


def _coordinates(mech: Mechanism, indices: Indices) -> str:
    return listing([mech.coordinate_names[i] for i in indices])


# --------------------------------------------------------------------------------- project


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
    """gamma and bias at (q, v).

    The state may be off the manifold and is not moved, except by an explicit chart: gamma and
    bias then satisfy the kept rows exactly, the redundant ones to the order of the error.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
    v : (nv,) array_like
    method : str, optional
        ``"split"``: independent and dependent coordinates as the partition says.
        ``"qr"``: chosen anew at this state by column-pivoted QR.
        ``"orthonormal"``: an orthonormal basis (in scaled coordinates) without coordinates;
        it may jump between states. ``"auto"``: the split, or QR where that is ill-conditioned.
    partition : Partition, optional
        Default: decided at the closed configuration nearest to q, which is slow.
    t_stab : float, False or mapping of str to float or False, optional
        Time constant T of Baumgarte's stabilisation, s:
        ``G a = -drift - (2/T) rate - error / T^2``; of all constraints, or by name. False: none.
        Default, and for those not named: that of each constraint, or none.
    t : float, optional
        Time, s.
    terms : Terms, optional
        What `terms` returned at this very state, to share.

    Returns
    -------
    Projection

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, an unknown method.
    SingularityError
        If the dependent coordinates do not follow from the independent ones at this state; it
        names them and the condition number.

    References
    ----------
    docs/derivations.md, "Projection" and "Stabilisation".
    """
    one_of("method", method, METHODS)
    T, part = resolve_terms(mech, q, v, t, t_stab, partition, None, terms)
    return _finite(projection_of(T, part, method))


def check_partition(mech: Mechanism, partition: Any) -> None:
    """Raise `InputError` for what is no Partition, or one that cannot be of this mechanism."""
    if not isinstance(partition, Partition):
        raise InputError(f"partition must be a Partition; got {type(partition).__name__}")
    m = mech.row_scale.size
    if partition.coordinate_names != mech.coordinate_names:
        raise InputError(
            "partition belongs to another mechanism, with coordinates "
            f"{listing(partition.coordinate_names)}; {mech.name} has "
            f"{listing(mech.coordinate_names)}"
        )
    if partition.row_names != row_names(mech):
        raise InputError(
            f"partition belongs to another mechanism, or to another set of its constraints, with "
            f"rows {listing(partition.row_names)}; {mech.name} has {listing(row_names(mech))}; "
            "decide one with hc.partition for each set"
        )
    columns = np.sort(np.concatenate([partition.independent, partition.dependent]))
    fits = np.array_equal(columns, np.arange(mech.nv)) and (partition.rows < m).all()
    if not fits or not partition.rows.size == partition.dependent.size == partition.rank:
        raise InputError(
            f"partition was changed, or belongs to another mechanism: its indices do not fit the "
            f"{mech.nv} coordinates and {m} rows of {mech.name}"
        )


def check_motors(mech: Mechanism, partition: Partition) -> None:
    """Raise `InputError` for a partition whose rank of the actuation is that of other motors."""
    if not np.array_equal(partition.B, mech.B):
        raise InputError(
            f"partition was decided with other motors than those of {mech.name}: "
            f"{listing(mech.actuator_names)}; decide one with hc.partition"
        )


def projected(
    mech: Mechanism,
    q: Vector,
    v: Vector,
    t: float,
    part: Partition,
    method: str = "auto",
    t_stab: TimeConstants = None,
) -> Projection:
    """`project` without the checks: for callers that have made them."""
    return projection_of(terms_at(mech, q, v, t, t_stab), part, method)


def projection_of(T: Terms, part: Partition, method: str = "auto") -> Projection:
    """gamma and bias from terms that are there."""
    mech, c = T.mechanism, T.mechanism.column_scale
    G, right = scaled_rows(T, part.rows)  # scaled: G' = Dr G Dc
    right = right - G @ (T.pull / c)  # what the chart adds stands in the bias as it is
    phi_t = mech.row_scale * (T.rows.rate - T.rows.jacobian @ T.v)
    basis = _basis(mech, G, np.column_stack([right, -phi_t[part.rows]]), part, method)
    # back from scaled coordinates: v = Dc v', and y keeps the units of its coordinates
    y_scale = c[basis.independent] if basis.independent.size else np.ones(basis.gamma.shape[1])
    return Projection(
        c[:, None] * basis.gamma / y_scale,
        bias=c * basis.particular[:, 0] + T.pull,
        v_t=c * basis.particular[:, 1],
        independent=basis.independent,
        dependent=basis.dependent,
        scale=y_scale,
        rank=part.rank,
        condition=basis.condition,
        method=basis.method,
        partition=part,
        terms=T,
    )


@dataclass(frozen=True, eq=False)
class _Basis:
    """All solutions of ``G' x = target'``: x = gamma' y + particular', in scaled coordinates."""

    gamma: Array
    particular: Array
    independent: Indices
    dependent: Indices
    condition: float
    method: str


def _basis(mech: Mechanism, G: Array, target: Array, part: Partition, method: str) -> _Basis:
    """By index split, by column-pivoted QR, or orthonormal; "auto" is the first that is good."""
    if method == "orthonormal":
        return _orthonormal(mech, G, target, part)
    size = scaled_size(G)
    if method != "qr":
        factors = lu(G[:, part.dependent], size)
        if method == "split" or factors.condition <= SPLIT_LIMIT:
            _check_split(mech, part.independent, part.dependent, factors.condition)
            X = factors.solve(np.hstack([G[:, part.independent], target]))
            return _with_coordinates(
                X, part.independent, part.dependent, factors.condition, "split"
            )
    qr = pivoted_qr(G, part.rank, size=size)
    dependent, order = qr.pivots[: part.rank], np.argsort(qr.pivots[part.rank :])
    independent = qr.pivots[part.rank :][order]
    _check_split(mech, independent, dependent, qr.condition)
    X = qr.solve_r1(np.hstack([qr.r2[:, order], qr.q.T @ target]))
    return _with_coordinates(X, independent, dependent, qr.condition, "qr")


def _with_coordinates(
    X: Array, independent: Indices, dependent: Indices, condition: float, method: str
) -> _Basis:
    """gamma' stacks [I; -X] in joint order: x_dep = -X x_ind + the last two columns of X."""
    k = independent.size
    gamma = np.zeros((k + dependent.size, k))
    gamma[independent, np.arange(k)] = 1.0
    gamma[dependent] = -X[:, :k]
    particular = np.zeros((k + dependent.size, 2))
    particular[dependent] = X[:, k:]
    return _Basis(gamma, particular, independent, dependent, condition, method)


def _orthonormal(mech: Mechanism, G: Array, target: Array, part: Partition) -> _Basis:
    """gamma' spans the null space of G', particular' is the shortest solution."""
    qr = pivoted_qr(G.T, part.rank, size=UNIT)  # G'^T P = Q [R1; 0]
    if qr.condition > SINGULAR:
        names = [row_names(mech)[i] for i in part.rows]
        raise SingularityError(
            f"{mech.name}: the kept rows {listing(names)} are singular at this state "
            f"(condition number {qr.condition:.1e}): move away, or decide a partition here",
            condition=qr.condition, names=names,
        )  # fmt: skip
    none = np.zeros(0, dtype=np.intp)
    return _Basis(
        qr.q[:, part.rank :], qr.shortest(target), none, none, qr.condition, "orthonormal"
    )


def _check_split(
    mech: Mechanism, independent: Indices, dependent: Indices, condition: float
) -> None:
    """Raise `SingularityError` where the dependent coordinates do not follow."""
    if condition <= SINGULAR:
        return
    raise SingularityError(
        f"{mech.name}: at this state the dependent coordinates {_coordinates(mech, dependent)} "
        f"do not follow from {_coordinates(mech, independent)} (condition number "
        f"{condition:.1e}): a singular configuration for this choice; try method='qr', another "
        "partition, or move away",
        condition=condition,
        names=[mech.coordinate_names[i] for i in dependent],
    )


def _nearest_partition(mech: Mechanism, q: Vector, t: float) -> Partition:
    _, error = _scaled_jacobian(mech, q, t)
    closed = q if error <= 1e-12 else assemble(mech, q, t=t)[0]
    return partition(mech, closed, t=t)


def resolve_projection(
    mech: Mechanism,
    q: Any,
    v: Any,
    t: float,
    t_stab: TimeConstants,
    partition: Partition | None,
    projection: Projection | None,
    terms: Terms | None = None,
) -> Projection:
    """The projection a consumer works with: the one it was given, checked, or a new one."""
    if projection is None:
        T, part = resolve_terms(mech, q, v, t, t_stab, partition, None, terms)
        return _finite(projection_of(T, part))
    if not isinstance(projection, Projection) or projection.mechanism is not mech:
        raise InputError("projection must be a Projection of this very mechanism")
    if partition is not None or t_stab is not None or terms is not None:
        raise InputError(
            "give partition=, t_stab= and terms= to project, not along with projection="
        )
    check_same_state(projection.terms, "projection was", q, v, t)
    return projection


def resolve_terms(
    mech: Mechanism,
    q: Any,
    v: Any,
    t: float,
    t_stab: TimeConstants,
    partition: Partition | None,
    projection: Projection | None,
    shared: Terms | None,
) -> tuple[Terms, Partition]:
    """Terms and partition that a consumer works with which needs no basis."""
    if projection is not None:
        P = resolve_projection(mech, q, v, t, t_stab, partition, projection, shared)
        return P.terms, P.partition
    if shared is None:
        T = terms(mech, q, v, t=t, t_stab=t_stab)
    elif t_stab is not None:
        raise InputError("give t_stab= to terms, not along with terms=")
    else:
        T = check_terms(shared, mech, q, v, t)
    if partition is None:
        partition = _nearest_partition(mech, T.q, T.t)
    check_partition(mech, partition)
    return T, partition


def _finite(P: Projection) -> Projection:
    if not np.isfinite(P.gamma.sum() + P.bias.sum()):
        raise InputError(
            f"{P.mechanism.name}: gamma or bias is not finite at this state; q or v is out of range"
        )
    return P


# ----------------------------------------------------------------------------- multipliers


@quiet
def multipliers(T: Terms, part: Partition, force: Vector) -> tuple[Vector, NDArray[np.bool_]]:
    """lambda with ``G^T lambda = force``, and which entries are unique.

    Where rows are redundant, lambda is the solution of least norm in scaled rows, and entries
    that redundancy leaves open are not unique.

    Parameters
    ----------
    T : Terms
    part : Partition
    force : (nv,) array
        Effort of the constraints on the coordinates, ``M a + h - B u - J^T f``.

    Returns
    -------
    lambda : (m,) array
        N for linear rows, N m for angular ones; of unscaled rows.
    unique : (m,) bool array
    """
    mech, keep, rank = T.mechanism, part.rows, part.rank
    m = mech.row_scale.size
    G = mech.row_scale[:, None] * T.rows.jacobian * mech.column_scale
    qr = pivoted_qr(G[keep].T, rank)  # G_keep^T P = Q [R1; 0]
    on_kept = qr.fitted(mech.column_scale * force)
    if m == rank:
        return mech.row_scale * on_kept, np.ones(m, dtype=bool)
    # Redundant rows: G = E G_keep on the manifold, so G^T l = G_keep^T (E^T l), and the
    # shortest l with E^T l = on_kept is E (E^T E)^-1 on_kept = Qe Re^-T on_kept.
    E = np.zeros((m, rank))
    E[:, qr.pivots] = qr.solve_r1((G @ qr.q[:, :rank]).T).T
    e = pivoted_qr(E, rank)
    leverage = (e.q[:, :rank] ** 2).sum(axis=1)
    return mech.row_scale * e.shortest(on_kept), leverage > 1.0 - UNIQUE


def constraint_effort(T: Terms, part: Partition, force: Vector) -> Vector:
    """The part of `force` (nv,) that the kept rows can give, ``G_keep^T lambda``: least squares."""
    c = T.mechanism.column_scale
    G = T.mechanism.row_scale[part.rows, None] * T.rows.jacobian[part.rows] * c
    qr = pivoted_qr(G.T, part.rank)
    effort: Vector = G.T @ qr.fitted(c * force) / c
    return effort
