"""All rows of a mechanism at a state, and where those of each constraint stand.

error phi(q, t)    rate G v + phi_t    G    drift: d2/dt2 phi at a = 0
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, known_name, read_only, shaped
from holoctl.base.tolerances import ALWAYS_CLOSED, RANDOM_CONFIGURATIONS
from holoctl.constraints.contract import Rows
from holoctl.constraints.kinds import Composed
from holoctl.constraints.user_classes import checked_rows, of_library
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = ["by_constraint", "constraint_rows", "may_depend_on_time", "rows_of", "rows_that_open"]


def constraint_rows(
    mech: Mechanism, q: Vector, v: Vector, t: float = 0.0, kin: Kinematics | None = None
) -> tuple[Kinematics, Rows]:
    """Kinematics and all constraint rows at (q, v), rows in the order of the constraints."""
    if kin is None:
        kin = kinematics(mech.model, workspace(mech), q, v, t)
    if len(mech.blocks) == 1:
        return kin, checked_rows(mech.blocks[0].rows, mech.blocks[0].rows.rows(kin), mech.nv)
    m = len(mech.row_scale)
    error, rate, drift, G = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros((m, mech.nv))
    for block, where in mech.blocks:
        r = checked_rows(block, block.rows(kin), mech.nv)
        error[where], rate[where], drift[where] = r.error, r.rate, r.drift
        G[where] = r.jacobian
    return kin, Rows(error, rate, G, drift)


def rows_that_open(mech: Mechanism) -> NDArray[np.bool_]:
    """Which of the m rows can be off at all; the others are zero whatever the configuration.

    Such as the rows of a hinge that keep a planar loop in its plane. Rows between bodies are
    analytic functions of q: one that vanishes at several random q does so everywhere. Kinds of
    somebody's own need not be. Looked at once; not to be written to.
    """
    return mech.per_thread("rows_that_open", lambda: read_only(_opening(mech)))


def _opening(mech: Mechanism) -> NDArray[np.bool_]:
    opens = np.ones(mech.row_scale.size, dtype=bool)
    tables = [(block.table, block.where) for block in mech.blocks if block.table is not None]
    if not tables:
        return opens
    rng, (table, where) = np.random.default_rng(0), tables[0]
    may_dwell = [isinstance(kind, Composed) and not kind.analytic for kind in table.kinds]
    largest, data = np.zeros(where.size), mech.model.createData()
    for _ in range(RANDOM_CONFIGURATIONS):
        step = rng.normal(size=mech.nv) * mech.column_scale
        q = pin.integrate(mech.model, pin.neutral(mech.model), step)
        error = table.rows(kinematics(mech.model, data, q, np.zeros(mech.nv), 0.0)).error
        largest = np.maximum(largest, np.abs(mech.row_scale[where] * error))
    opens[where] = (largest > ALWAYS_CLOSED) | np.array(may_dwell)
    return opens


def may_depend_on_time(mech: Mechanism) -> bool:
    """Whether some row may: those of the library do not, but for `Custom` that says so."""
    return any(
        getattr(getattr(b, "description", None), "time", False) or not of_library(b)
        for b in mech.bound
    )


def rows_of(mech: Mechanism, name: Any) -> slice:
    """Where the rows of one constraint stand among all m."""
    i = mech.constraint_names.index(
        known_name(name, mech.constraint_names, "constraint", mech.name)
    )
    start = sum(len(bound.labels) for bound in mech.bound[:i])
    return slice(start, start + len(mech.bound[i].labels))


def by_constraint(mech: Mechanism, x: Any) -> dict[str, Vector]:
    """Numbers of all rows, such as multipliers or impulses, as one array for each constraint.

    Parameters
    ----------
    mech : Mechanism
    x : (m,) array_like
        One number for each row, finite or not; or True or False, as in ``result.unique``.

    Returns
    -------
    dict
        Constraint name to the numbers of its rows, in the order of ``mech.constraint_names``.

    Raises
    ------
    InputError
        For a wrong shape, or what is no numbers.
    """
    check_mechanism(mech)
    is_mask = isinstance(x, np.ndarray) and x.dtype == bool and not np.ma.is_masked(x)
    if not (is_mask and x.shape == mech.row_scale.shape):
        x = shaped("x", x, mech.row_scale.size, "one number for each row")
    return {name: x[rows_of(mech, name)] for name in mech.constraint_names}
