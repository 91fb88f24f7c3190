"""Singularities that end a path, and the motion that is lost there, in words.

    type 2    E = N' B loses rank: a motion in N moves while all motors hold
    type 1    D N loses rank:      a motion in N moves while the task, rows D, holds

N are the motions as orthonormal columns in scaled coordinates, as in type_2.py. A path of motors
ends at a type-2 singularity, and a path of poses at a type-1 singularity; what a path of poses
meets of type 2 is seen by `type_2_along`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from scipy.optimize import brentq

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import largest, null_space_by_svd, singular_values
from holoctl.base.tolerances import CLOSED
from holoctl.closing.rank import scaled_jacobian
from holoctl.dynamics.actuation import scaled_motors
from holoctl.dynamics.actuation_side import has_sides, hold_of_motors
from holoctl.dynamics.lost_motion import lost_motion
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["ADVICE", "check_sides", "singular_end"]

PATH_ENDS = 0.02  # scaled
"""A path that cannot be followed further ends at a singularity if the smallest singular value of
its driven rows is below this at its last node."""

ROWS_HOLD = 1e-3  # scaled
"""Where the smallest singular value of the kept rows G is below this, they may be singular
themselves, and nothing is said of motors or tasks."""

ADVICE = (
    "lead the path around it, or stay on one side; another start may lie on a branch without it"
)
"""What to do about a path that meets a singularity."""


def singular_end(
    mech: Mechanism,
    part: Partition,
    p: int,
    task: Sequence[str],
    K: Array,
    q: Vector,
    s: float,
) -> SingularityError | None:
    """The error for a path that cannot be followed beyond a node; None if neither the motors nor
    the task are singular there.

    K are its rows, as in path_system.py, of which p are driven; `task` are their names, empty if
    they are those of coordinates.
    """
    r = part.rank
    if not np.isfinite(K).all() or (r and not singular_values(K[:r])[-1] > ROWS_HOLD):
        return None  # the constraints themselves are singular
    N = null_space_by_svd(np.delete(K, np.s_[r : r + p], axis=0), mech.nv - p)[3]
    _, sizes, turned = np.linalg.svd(K[r : r + p] @ N)
    if not sizes[-1] < PATH_ENDS:
        return None
    motors = hold_of_motors(mech, part, q)
    if not task:
        if not motors.value < PATH_ENDS:  # of the coordinates alone
            return None
        lost, kind, of = motors, "type 2", "gamma' B"
        text = "a type-2 (actuation) singularity"
    else:
        held = f"the task ({', '.join(task)}) holds"
        lost, kind = lost_motion(mech, float(sizes[-1]), N @ turned[-1], held), "type 1"
        text, of = "a type-1 (serial) singularity of the task", "the task"
        if motors.value < PATH_ENDS:
            kind, text = "type 1 and type 2", f"{text}, and a type-2 (actuation) one at once"
    return SingularityError(
        f"{mech.name}: the path cannot be followed beyond s = {s:.6g} on this branch: it comes to "
        f"{text}, as at the end of the workspace; the smallest singular value of "
        f"{of} falls to {lost.value:.2g} (scaled) there, and vanishes beyond: {lost.words}; "
        f"{ADVICE}",
        names=lost.names, kind=kind, value=lost.value, place=s, q=q.copy(), motion=lost.words,
        condition=float(sizes[0] / sizes[-1]) if sizes[-1] > 0.0 else np.inf,
    )  # fmt: skip


def check_sides(
    mech: Mechanism, part: Partition, before: tuple[float, Vector], after: tuple[float, Vector]
) -> None:
    """Raise `SingularityError` if two closed configurations of a path, each with its s, are proved
    to lie on different sides of a type-2 singularity: with as many motors as motions, det [G; B']
    changes its sign."""
    (begin, one), (end, two) = before, after
    error = scaled_jacobian(mech, two, 0.0)[1]
    if not has_sides(mech, part) or not largest(error) <= max(CLOSED, part.tolerance):
        return

    def side(share: float) -> float:
        G = scaled_jacobian(mech, pin.interpolate(mech.model, one, two, share), 0.0, part.rows)[0]
        if part.rank and not singular_values(G)[-1] > ROWS_HOLD:
            return 0.0
        return float(np.linalg.det(np.vstack([G, scaled_motors(mech).T])))

    if not side(0.0) * side(1.0) < 0.0:
        return
    share = float(brentq(side, 0.0, 1.0, xtol=1e-6))
    q = pin.interpolate(mech.model, one, two, share)
    lost, s = hold_of_motors(mech, part, q), begin + share * (end - begin)
    raise SingularityError(
        f"{mech.name}: the configurations of the path at s = {begin:.6g} and {end:.6g} lie on "
        "different sides of a type-2 (actuation) singularity: the smallest singular value of "
        f"gamma' B vanishes between them, near s = {s:.4g}: {lost.words}; {ADVICE}",
        names=lost.names, kind="type 2", value=0.0, place=s, q=q, motion=lost.words,
    )  # fmt: skip
