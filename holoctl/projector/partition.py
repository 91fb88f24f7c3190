"""The partition: kept rows and independent coordinates, determined once.

    rank of G' = Dr G Dc at a closed q        rows: pivots of G'^T P = Q R
    G'[rows] = [G_ind G_dep], G_dep regular   dependent: pivots of G'[rows] P = Q R

in stages, so that actuated coordinates stay independent if possible.
References: Wehage and Haug's coordinate partitioning; docs/derivations.md, "Scaling and rank" and
"Projection".
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Indices, Vector, counted, listing, number, quiet
from holoctl.base.errors import InconsistentError, InputError, SingularityError
from holoctl.base.linalg import largest, lu, pivoted_qr, singular_values
from holoctl.base.tolerances import CLOSED, CLOSED_ALREADY, ROUNDED, SINGULAR, UNCERTAIN, UNIT
from holoctl.closing.assembly import assemble
from holoctl.closing.nearby_configurations import nearby_configurations
from holoctl.closing.rank import (
    manifold_rank,
    pivot_rows,
    rank_within,
    scaled_jacobian,
    scaled_size,
)
from holoctl.closing.toleranced_rows import KeptRows, toleranced_rows
from holoctl.closing.toleranced_rows import independence as rows_independence
from holoctl.mechanism.checks import check_configuration, coordinate_indices
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.terms import Terms

__all__ = [
    "Partition",
    "check_determined",
    "check_motors",
    "check_partition",
    "coordinates",
    "in_their_order",
    "most_condition",
    "nearest_partition",
    "partition",
    "preferred_dependents",
    "shared_partition",
]

SPLIT_LIMIT = 1e5
"""`method="auto"` replaces the coordinate split by the rank-revealing QR above this condition
number (gamma' M gamma squares it)."""


EARLIER = 1e-9
"""Relative reduction, times its index, of a coordinate's column, so that the first of equal columns
is chosen."""

PREFERENCE = 1e3
"""Actuated coordinates are chosen as independent unless the choice is this many times worse
conditioned."""

UNDETERMINED = 0.05
"""With geometry rounded by e, the motion is determined while e condition^2 is less than this, with
the condition number of the kept rows from their pivots."""


log = logging.getLogger(__name__)

_T = TypeVar("_T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Partition:
    """The result of `partition`: rank, kept rows and independent coordinates.

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
        Condition number of the scaled G[rows, dependent] at the configuration of the decision.
    gap : float
        Ratio of the smallest singular value that counts to the largest that does not (of the scaled
        G; inf if all count).
    actuation_rank : int
        Rank of gamma' B (scaled), at generic configurations near the one given.
    coordinate_names, row_names : tuple of str
        Names of the indices: a mechanism with other coordinates or rows needs its own partition.
    B : (nv, nu) array
        The actuation matrix of `actuation_rank`.
    tolerance : float
        Closure and velocity errors (scaled) that rows left out may have in addition to those
        allowed for all rows: the tolerance of the mechanism if its geometry turned out to be
        rounded; else 0.
    off : float
        The rounding of the geometry (scaled): the largest row error at a least-squares point of all
        rows.
    independence : float
        The smallest singular value of the kept rows over the rank-th one of all rows (scaled), at
        the configuration of the decision: the reference for other configurations.
    chosen : bool
        Whether the caller named the independent coordinates.

    See Also
    --------
    partition : returns it.
    project : takes it as ``partition=``.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> part = hc.partition(mech, hc.assemble(mech)[0])
    >>> [mech.row_names[i] for i in part.rows], part.actuation_rank
    (['tip_hinge.x', 'tip_hinge.y'], 2)
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
    tolerance: float = 0.0
    off: float = 0.0
    independence: float = 1.0
    chosen: bool = False

    def __repr__(self) -> str:
        names = listing([self.coordinate_names[i] for i in self.independent], 6)
        unclear = " (uncertain)" if self.uncertain else ""
        return (
            f"<Partition: rank {self.rank}{unclear}, "
            f"{self.independent.size} of {counted(len(self.coordinate_names), 'coordinate')} "
            f"independent: {names}; condition number {self.condition:.2g}>"
        )

    def __post_init__(self) -> None:
        for name in ("rows", "independent", "dependent", "B"):
            object.__setattr__(self, name, _fixed(getattr(self, name)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Partition, tuple(getattr(self, f.name) for f in fields(self))

    @cached_property
    def fits(self) -> bool:
        """Whether the numbers of rows and coordinates agree with the names."""
        columns = np.sort(np.concatenate([self.independent, self.dependent]))
        of_all = np.array_equal(columns, np.arange(len(self.coordinate_names)))
        of_rows = bool((self.rows < len(self.row_names)).all())
        return of_all and of_rows and self.rows.size == self.dependent.size == self.rank

    @cached_property
    def left_out(self) -> Indices:
        """The rows that are not kept, in ascending order."""
        return _fixed(np.setdiff1d(np.arange(len(self.row_names)), self.rows))

    @cached_property
    def motors_left_out(self) -> bool:
        """Whether all coordinates of motors could be independent, but some are not."""
        driven = (self.B != 0.0).any(axis=1)
        could = np.count_nonzero(driven) == self.B.shape[1] == self.actuation_rank
        return bool(could and driven[self.dependent].any()) and not self.chosen

    @property
    def uncertain(self) -> bool:
        """Whether the rank is not clear: the gap in the singular values is less than 100."""
        return self.gap < UNCERTAIN


def _fixed(x: NDArray[_T]) -> NDArray[_T]:
    """`x` itself if it is read-only, else a read-only copy: laws are prepared from it."""
    if x.flags.writeable:
        x = x.copy()
        x.setflags(write=False)
    return x


@quiet
def partition(
    mech: Mechanism, q: Any, *, independent: Iterable[str] | None = None, t: float = 0.0
) -> Partition:
    """Determine rank, kept rows and independent coordinates at a closed configuration.

    If rows depend on others only to within ``mech.tolerance``, the geometry is rounded: the rank is
    the number of singular values (scaled) above the tolerance, the kept rows are those that
    determine the motion best here and nearby, and the others may stay open by it
    (`Partition.tolerance`). With exact geometry the tolerance has no effect.

    By default, actuated coordinates are preferred as independent ones, unless that choice is a
    thousand times worse conditioned than the best one.

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
        If q is not closed to 1e-6 (scaled), or with rounded geometry to the tolerance.
    SingularityError
        If the rank of G is lower here than nearby (a singular configuration, at which no choice is
        valid), or the given independent coordinates do not determine the others.

    See Also
    --------
    project : gamma and bias at a state, with this partition.
    mobility : explains the rank.
    results.Partition : the result.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> part = hc.partition(mech, hc.assemble(mech)[0])
    >>> part.rank, part.independent.tolist()
    (2, [0, 2])
    """
    q, t = check_configuration(mech, q), number("t", t, "time, s")
    G, errors = scaled_jacobian(mech, q, t)
    error = largest(errors)
    if not error <= max(CLOSED, mech.tolerance):
        raise _not_closed(mech, error)
    return _decided(mech, q, t, G, error, _meant(mech, G, q, t), independent)


def _decided(
    mech: Mechanism, q: Vector, t: float, G: Array, error: float, meant: KeptRows | None,
    independent: Iterable[str] | None = None,
) -> Partition:  # fmt: skip
    """The partition, with the rows that determine the motion of rounded geometry, or None."""
    if meant is None:
        if not error <= CLOSED:
            raise _not_closed(mech, error)
        rank = manifold_rank(G, error)
        nearby = _neighbours(mech, G, rank, q, t)
        rows = pivot_rows(G, rank)
    else:
        rank = meant.rank
        if meant.error <= CLOSED_ALREADY:
            log.warning(
                "%s: all rows are satisfied, and %s of them are nearly dependent: their singular "
                "values are at most %.1g, less than the tolerance of the geometry, %g, so they are "
                "left out; if they are intended, give a smaller tolerance",
                mech.name, mech.row_scale.size - rank, meant.lost, mech.tolerance,
            )  # fmt: skip
        nearby, rows = list(meant.nearby), meant.rows
        # the rows determine the motion nearby only
        if (here := rank_within(G[rows], mech.tolerance)) < rank:
            raise _singular(mech, G, here, rank)
    kept = G[rows]
    if independent is None:
        dependent = preferred_dependents(mech, kept, rank)
    else:
        dependent = _given_dependents(mech, independent, rank)
    free = np.setdiff1d(np.arange(mech.nv), dependent)
    condition = lu(kept[:, dependent], scaled_size(kept)).condition
    if condition > SINGULAR:
        raise SingularityError(
            f"{mech.name}: the coordinates {coordinates(mech, free)} do not determine the "
            f"others, {coordinates(mech, dependent)} (condition number {condition:.1e}); "
            "choose others, or none",
            condition=condition, names=[mech.coordinate_names[i] for i in dependent],
        )  # fmt: skip
    return Partition(
        rank, rows, free, dependent, condition, _gap(G, rank),
        _actuation_rank(mech, rank, q, t, nearby, meant), mech.coordinate_names, mech.row_names,
        mech.B, 0.0 if meant is None else mech.tolerance, 0.0 if meant is None else meant.off,
        rows_independence([G], rows), independent is not None,
    )  # fmt: skip


def _not_closed(mech: Mechanism, error: float) -> InconsistentError:
    return InconsistentError(
        f"{mech.name}: q is not closed (largest scaled error {error:.1e}), so rank and rows "
        "cannot be determined there; call hc.assemble(mech, q) first",
        residual=error,
    )


def _meant(mech: Mechanism, G: Array, q: Vector, t: float) -> KeptRows | None:
    """The rows that determine the motion of rounded geometry near q; None if it is exact, or no row
    is redundant."""
    if mech.tolerance == 0.0 or rank_within(G, mech.tolerance) == G.shape[0]:
        return None
    return toleranced_rows(mech, q, t)


def _gap(G: Array, rank: int) -> float:
    s = singular_values(G)
    left_out = s[rank] if rank < s.size else 0.0
    if rank == 0 or left_out == 0.0:
        return float("inf")
    return float(s[rank - 1] / left_out)


def _neighbours(mech: Mechanism, G: Array, rank: int, q: Vector, t: float) -> list[Vector]:
    """Closed configurations near a q with deficient rank; `SingularityError` if it is deficient
    only at q."""
    if rank == min(G.shape):
        return []
    nearby = nearby_configurations(mech, q, t)
    generic = max(
        (manifold_rank(scaled_jacobian(mech, x, t)[0], ROUNDED) for x in nearby), default=0
    )
    if generic > rank:
        raise _singular(mech, G, rank, generic)
    return nearby


def _singular(mech: Mechanism, G: Array, rank: int, generic: int) -> SingularityError:
    vanishing = np.setdiff1d(np.arange(G.shape[0]), pivot_rows(G, rank))
    return SingularityError(
        f"{mech.name}: the constraints have rank {rank} at this configuration but "
        f"{generic} nearby: a singular configuration (a dead point or a bifurcation), "
        "where the independent coordinates are not defined; move away from it",
        names=[mech.row_names[i] for i in vanishing],
    )


def _given_dependents(mech: Mechanism, independent: Iterable[str], rank: int) -> Indices:
    """All coordinates except those that the caller names as independent."""
    chosen = coordinate_indices(mech, independent, "independent")
    if chosen.size != mech.nv - rank:
        raise InputError(
            f"independent: {mech.nv} coordinates and rank {rank} leave {mech.nv - rank} "
            f"independent ones; got {chosen.size}: {coordinates(mech, chosen)}"
        )
    return np.setdiff1d(np.arange(mech.nv), chosen)


def preferred_dependents(mech: Mechanism, kept: Array, rank: int) -> Indices:
    """Pivot columns: those of a chart, then unactuated coordinates, then motors; or the best of
    all."""
    late = np.where((mech.B != 0.0).any(axis=1), 2, 1)
    if mech.chart is not None:
        late[mech.chart.dependent] = 0
    found: list[int] = []
    left = kept * in_their_order(mech.nv)
    for stage in range(3):
        columns = np.flatnonzero(late == stage)
        wanted = rank - len(found) if stage == 2 else None
        qr = pivoted_qr(left[:, columns], wanted, tol=1.0 / SPLIT_LIMIT, size=UNIT)
        count = qr.rank
        found += columns[qr.pivots[:count]].tolist()
        left = qr.q[:, count:].T @ left  # the part orthogonal to these columns
    preferred = np.sort(np.array(found, dtype=np.intp))
    best = np.sort(pivoted_qr(kept * in_their_order(mech.nv), rank).pivots[:rank])
    if len(found) < rank:
        return best
    size = scaled_size(kept)
    good = lu(kept[:, best], size).condition * PREFERENCE
    return preferred if lu(kept[:, preferred], size).condition <= good else best


def in_their_order(n: int) -> Vector:
    """Factors of columns, close to 1, so that of equal ones the first is the pivot: otherwise
    rounding would choose between equivalent joints, differently on each computer."""
    return 1.0 - EARLIER * np.arange(n, dtype=float)


def _actuation_rank(
    mech: Mechanism, rank: int, q: Vector, t: float, nearby: list[Vector], meant: KeptRows | None
) -> int:
    """Rank of gamma' B, the largest of q and closed configurations near it."""

    def here(x: Vector) -> int:
        G, error = scaled_jacobian(mech, x, t, None if meant is None else meant.rows)
        null = pivoted_qr(G.T, rank).q[:, rank:]
        B = mech.column_scale[:, None] * mech.B
        A = null.T @ (B / np.linalg.norm(B, axis=0))
        if meant is not None:
            return rank_within(A, mech.tolerance)
        return manifold_rank(A, largest(error))

    found = here(q)
    if found < min(mech.nu, mech.nv - rank):
        found = max([found, *(here(x) for x in nearby or nearby_configurations(mech, q, t))])
    return found


def coordinates(mech: Mechanism, indices: Indices) -> str:
    """Names of coordinates, for a message."""
    return listing([mech.coordinate_names[i] for i in indices])


# --------------------------------------------------------------------- given partitions


def shared_partition(given: Partition | None, T: Terms) -> Partition:
    """The given partition, checked, or a new one."""
    if given is None:
        given = nearest_partition(T.mechanism, T.q, T.t)
    check_partition(T.mechanism, given)
    return given


def nearest_partition(mech: Mechanism, q: Vector, t: float) -> Partition:
    """The partition at the closed configuration nearest to q.

    Rounded geometry needs a least-squares point next to q, whether q was closed before or not. So a
    q that is closed to within the tolerance is not closed first, which would compute that point
    twice.
    """
    G, errors = scaled_jacobian(mech, q, t)
    error = largest(errors)
    if 1e-12 < error <= mech.tolerance:
        meant = _meant(mech, G, q, t)
        if meant is not None and rank_within(G[meant.rows], mech.tolerance) == meant.rank:
            return _decided(mech, q, t, G, error, meant)
    closed = q if error <= 1e-12 else assemble(mech, q, t=t)[0]
    return partition(mech, closed, t=t)


def check_partition(mech: Mechanism, partition: Any) -> None:
    """Raise `InputError` for anything but a Partition, or for one that cannot belong to this
    mechanism."""
    if not isinstance(partition, Partition):
        raise InputError(f"partition must be a Partition; got {type(partition).__name__}")
    m = mech.row_scale.size
    if partition.tolerance not in (0.0, mech.tolerance):
        raise InputError(
            f"partition was made with tolerance = {partition.tolerance:g}, but {mech.name} has "
            f"{mech.tolerance:g}; make one with hc.partition"
        )
    if partition.coordinate_names != mech.coordinate_names:
        raise InputError(
            "partition belongs to another mechanism, with coordinates "
            f"{listing(partition.coordinate_names)}; {mech.name} has "
            f"{listing(mech.coordinate_names)}"
        )
    if partition.row_names != mech.row_names:
        raise InputError(
            f"partition belongs to another mechanism, or to another set of its constraints, with "
            f"rows {listing(partition.row_names)}; {mech.name} has {listing(mech.row_names)}; "
            "make one with hc.partition for each set"
        )
    if not partition.fits:
        raise InputError(
            f"partition was changed, or belongs to another mechanism: its indices do not fit the "
            f"{mech.nv} coordinates and {m} rows of {mech.name}"
        )


def most_condition(partition: Partition) -> float:
    """Condition number of the kept rows above which rounded geometry does not determine the motion.

    Rows whose directions have errors e change the direction of motion by ``e condition``, and its
    acceleration, a further derivative, by ``e condition^2``.
    """
    return float(np.sqrt(UNDETERMINED / partition.off)) if partition.off > 0.0 else float("inf")


def _by_pivots(pivots: Vector) -> float:
    """An estimate of the condition number from the pivots of a pivoted QR, slightly below the true
    one."""
    if pivots.size == 0:
        return 1.0
    return float(max(pivots[0], UNIT) / pivots[-1]) if pivots[-1] > 0.0 else float("inf")


def check_determined(T: Terms, partition: Partition) -> None:
    """Raise `SingularityError` if the geometry is not exact enough to determine the motion here."""
    most = most_condition(partition)
    if most == float("inf"):
        return
    mech = T.mechanism
    condition = _by_pivots(T.factored(partition.rows).diagonal)
    if condition > most:
        raise SingularityError(
            f"{mech.name}: the rows that determine the motion have condition number "
            f"{condition:.1e} here, and the geometry is rounded by {partition.off:.0e}: the "
            f"motion by them is not determined (above {most:.0e}). This is close to a singular "
            "configuration; or a partition made here has better rows; or give the geometry with "
            "more digits (hc.repaired_geometry)",
            condition=condition,
        )


def check_motors(mech: Mechanism, partition: Partition) -> None:
    """Raise `InputError` for a partition that was made with other motors."""
    if partition.B is not mech.B and not np.array_equal(partition.B, mech.B):
        raise InputError(
            f"partition was made with other motors than those of {mech.name}: "
            f"{listing(mech.actuator_names)}; make one with hc.partition"
        )
