"""Which coordinates to use as independent: the choice of `partition`, the motors, a good choice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Array, Indices
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.base.linalg import lu, one_norm, pivoted_qr
from holoctl.base.tolerances import SINGULAR
from holoctl.closing.rank import scaled_size
from holoctl.closing.sampled_configurations import Sample, Samples
from holoctl.doctor.redundancy import Redundancy
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import in_their_order, partition

__all__ = ["CoordinateChoice", "choice"]


@dataclass(frozen=True)
class CoordinateChoice:
    """Independent coordinates, and the condition numbers of the rows on the others (scaled); the
    fields are those of `MobilityReport`."""

    independent: tuple[str, ...] = ()
    independent_condition: float = float("inf")
    actuated_condition: float | None = None
    best_independent: tuple[str, ...] = ()
    best_condition: float = float("inf")


def choice(mech: Mechanism, s: Samples, r: Redundancy, t: float) -> CoordinateChoice:
    """Which coordinates to use: the choice of `partition`, the motors, the best conditioned."""
    at = s.generic[0]
    names = mech.coordinate_names
    kept = at.G[r.kept]
    found = pivoted_qr(kept * in_their_order(mech.nv), s.generic_rank)
    pivots = np.sort(found.pivots[: s.generic_rank])
    dependent = _dependent(mech, at, t, pivots)
    best = min(dependent, pivots, key=lambda columns: _condition(kept, columns))
    motors = [names.index(n) for n in mech.actuated]
    condition = None
    if motors and len(motors) == mech.nv - s.generic_rank:
        others = np.setdiff1d(np.arange(mech.nv), motors)
        condition = _condition(kept, others)

    def without(columns: Indices) -> tuple[str, ...]:
        return tuple(names[i] for i in np.setdiff1d(np.arange(mech.nv), columns))

    return CoordinateChoice(
        without(dependent), _condition(kept, dependent), condition,
        without(best), _condition(kept, best),
    )  # fmt: skip


def _dependent(mech: Mechanism, at: Sample, t: float, best: Indices) -> Indices:
    try:
        chosen = partition(mech, at.q, t=t).dependent
    except (SingularityError, InconsistentError):
        return best
    return chosen if chosen.size == best.size else best


def _condition(kept: Array, columns: Indices) -> float:
    """The exact condition number in the 1-norm: an estimate may depend on the sign of a rounding
    error."""
    size = scaled_size(kept)
    factors = lu(kept[:, columns], size)
    if not factors.condition <= SINGULAR:
        return float("inf")
    return max(factors.condition, size * one_norm(factors.solve(np.eye(columns.size))))
