"""The closure error up to which a constraint is drawn as closed: that of a certificate."""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.dynamics.certificate import limit
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import partition

__all__ = ["closure_limit"]


def closure_limit(mech: Mechanism, q: Vector, t: float, error: float) -> float:
    """The largest accepted closure error, scaled; `error` is that at q.

    The tolerance of a mechanism applies only if its geometry is rounded, which `partition` decides.
    That is computed once, and only if `error` is between the two limits.
    """
    exact, rounded = limit("closure", 0.0), limit("closure", mech.tolerance)
    if rounded == exact or not exact < error <= rounded:
        return exact if not error > rounded else rounded
    try:
        found = mech.per_thread(
            "closure_limit", lambda: np.float64(limit("closure", partition(mech, q, t=t).tolerance))
        )
    except InconsistentError:
        return exact  # the geometry is not rounded: the constraint is open
    except SingularityError:
        return rounded  # the rank is undecided
    return float(found)
