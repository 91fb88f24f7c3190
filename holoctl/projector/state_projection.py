"""A state projected onto the manifold, for user-defined integrators, at every step.

    q <- q (+) -c G'[rows]^+ e        v <- v - c G'[rows]^+ rate        then all rows are judged

The rows are those of a partition. By default one is stored with the mechanism, and determined again
if its rows become nearly dependent although the mechanism is regular, or if it is not valid.
Reference: P. Deuflhard, Newton Methods for Nonlinear Problems, the chapters on convergence and on
underdetermined systems (the contraction test).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.base.checks import Vector, quiet
from holoctl.base.errors import HoloctlError, InconsistentError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import CLOSED, TIGHT, TOLERANCES
from holoctl.closing.closed_state import ClosedState
from holoctl.closing.manifold_projection import Correction, TrustRegion, newton_projection
from holoctl.mechanism.checks import check_state
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_partition, nearest_partition
from holoctl.projector.repartition import decided_anew, ill_conditioned, independence
from holoctl.rows.evaluate import scaled_rows_at

__all__ = ["corrected"]

CONTRACTS, LARGEST_CORRECTION = 0.25, 0.1  # a ratio; scaled
"""Each step of a user's correction is at most this fraction of the one before, otherwise its limit
is uncertain (from Kantorovich's h <= 1/2); longest first step."""

DOUBTFUL_ROWS = 1e3
"""Condition number of kept rows from which a correction tests whether others are better."""


TRUST = TrustRegion(TOLERANCES["condition"], LARGEST_CORRECTION, CONTRACTS)
"""Trust region of a user's correction: steps that contract as Newton's do near a solution."""


@quiet
def corrected(
    mech: Mechanism, q: Any, v: Any, *, t: float = 0.0, partition: Partition | None = None
) -> ClosedState:
    """Project a state with small errors onto the constraints, by the shortest correction.

    For user-defined integrators and sensor readings, at every step. Newton's method with the
    shortest steps in scaled coordinates; then v is projected onto the constraints. `hc.assemble`
    closes larger errors, and is slower.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration, with an error of at most 0.1 (rad, or of the size of the loop).
    v : (nv,) array_like
        Velocity, rad/s or m/s.
    t : float, optional
        Time, s, for constraints that depend on it.
    partition : Partition, optional
        Its rows are used for the correction. By default one is determined at the first call in each
        thread, which is slow, and stored with the mechanism; it is determined again if other rows
        are better.

    Returns
    -------
    ClosedState
        ``q, v``, or with names: ``.q``, ``.v``; new arrays.

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, a partition of another mechanism.
    InconsistentError
        If the steps of Newton's method are so long that the branch of the state is not determined;
        if rows that were left out as redundant are open by more than 1e-6, or have a larger
        velocity error (scaled; the tolerance of rounded geometry if that is larger).
    SingularityError
        If the kept rows are singular here.
    AssemblyError
        If the first call, which determines the rows, finds no closed configuration near q.

    See Also
    --------
    constraint_errors : the errors of a state.
    assemble : closes larger errors.
    ClosedStateEstimator : the state from the motors alone.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> q, v = hc.assemble(mech)
    >>> q, v = hc.corrected(mech, q + 1e-4, v)
    >>> hc.constraint_errors(mech, q, v).closure < 1e-12
    True
    """
    q, v, t = check_state(mech, q, v, t)
    if mech.row_scale.size == 0:
        return ClosedState(q, v)
    if partition is not None:
        check_partition(mech, partition)
        return _judged(mech, partition, q, v, t)
    held: dict[str, Partition] = mech.per_thread("corrected", dict)
    fresh = "partition" not in held
    if fresh:
        held["partition"] = nearest_partition(mech, q, t)
    try:
        return _by_better_rows(mech, held, q, v, t)
    except HoloctlError as error:
        if fresh:
            raise
        last = error
    try:  # it was made elsewhere, and its rank may differ here
        held["partition"] = nearest_partition(mech, q, t)
        return _judged(mech, held["partition"], q, v, t)
    except HoloctlError:
        raise last from None


def _by_better_rows(
    mech: Mechanism, held: dict[str, Partition], q: Vector, v: Vector, t: float
) -> ClosedState:
    """The projection by the stored partition, or by a new one if its rows are ill-conditioned
    here."""
    part = held["partition"]
    found: Correction | SingularityError | InconsistentError
    try:
        found = _followed(mech, part, q, v, t)
        doubtful = found.condition > DOUBTFUL_ROWS
    except (SingularityError, InconsistentError) as error:
        found, doubtful = error, True
    if doubtful and part.rank:
        G = scaled_rows_at(mech, q, v, t).jacobian
        if ill_conditioned(part, independence(G, part)):
            held["partition"] = part = decided_anew(mech, part, G)
            found = _followed(mech, part, q, v, t)
    if not isinstance(found, Correction):
        raise found
    return _checked(mech, part, found)


def _judged(mech: Mechanism, part: Partition, q: Vector, v: Vector, t: float) -> ClosedState:
    return _checked(mech, part, _followed(mech, part, q, v, t))


def _followed(mech: Mechanism, part: Partition, q: Vector, v: Vector, t: float) -> Correction:
    if part.rank == 0:
        return Correction(q, v, scaled_rows_at(mech, q, v, t), 1.0)
    return newton_projection(mech, part.rows, q, v, t, TIGHT, TRUST)


def _checked(mech: Mechanism, part: Partition, found: Correction) -> ClosedState:
    """The state if all rows hold there, including those that were left out; else an error."""
    _, errors, rates = found.rows
    allowed = max(CLOSED, part.tolerance)
    speed = 1.0 + largest(found.v / mech.column_scale)
    for off, limit, what in (
        (errors, allowed, "is open by"), (rates, allowed * speed, "breaks the velocity by"),
    ):  # fmt: skip
        if not largest(off) <= limit:
            worst = int(np.argmax(np.abs(off)))
            raise InconsistentError(
                f"{mech.name}: after the projection by the rows that determine the motion, "
                f"{mech.row_names[worst]} {what} {abs(off[worst]):.1e} (scaled), more than "
                f"{limit:.0e}: it was left out of the partition as redundant, but is not redundant "
                "here. Is the state on another branch, or was the partition made at another one, "
                "or at a singular configuration?",
                residual=float(abs(off[worst])),
            )
    return ClosedState(found.q, found.v)
