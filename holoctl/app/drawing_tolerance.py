"""How far rows may stay open, for what is drawn: as far as a certificate lets them."""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.dynamics.certificate import limit
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import partition

__all__ = ["closure_limit"]


def closure_limit(mech: Mechanism, q: Vector, t: float, error: float) -> float:
    """What the closure error may be at most, scaled; `error` is how large it is at q.

    The tolerance of a mechanism counts where its geometry is rounded, and `partition` knows whether
    it is. Asked for where it matters, and once.
    """
    exact, rounded = limit("closure", 0.0), limit("closure", mech.tolerance)
    if rounded == exact or not exact < error <= rounded:
        return exact if not error > rounded else rounded
    try:
        found = mech.per_thread(
            "closure_limit", lambda: np.float64(limit("closure", partition(mech, q, t=t).tolerance))
        )
    except InconsistentError:
        return exact  # nothing is rounded: it is open
    except SingularityError:
        return rounded  # no rank to tell by
    return float(found)
