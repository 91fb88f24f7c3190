"""The rows of an estimator: errors of all rows, G of the kept ones, readings of cut joints."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.tolerances import UNLIMITED
from holoctl.estimation.measurement_model import MeasurementModel
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import rows_at
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.fast_rows import FastRows, fast_rows
from holoctl.rows.tick.nonzero_rows import rows_that_open
from holoctl.tree.kinematics import Kinematics, kinematics
from holoctl.tree.live_motion import LiveMotion, live_motion

__all__ = ["EstimatorRows", "estimator_rows"]


class EstimatorRows(NamedTuple):
    """Rows at a configuration, at zero velocity; `evaluate` overwrites the arrays.

    Attributes
    ----------
    evaluate : function (q, t) -> bool
        Evaluate the rows; False if a value is out of range.
    G_unknown : (r, n) array, F-ordered
        The columns of the unknown coordinates in the kept rows, scaled; may be written to.
    G_known : (r, nv - n) array
        The columns of the known coordinates.
    off : function () -> (2, ..) array
        Rates and errors, scaled, over `UNLIMITED`; kept rows first.
    cut, cut_jacobian : arrays
        Values of the cut joints that are measured, rad or m, and their Jacobian.
    fast : FastRows or None
        The prepared rows, which a tick of the dynamics may share.
    motion : LiveMotion or None
        The kinematics of the prepared rows.
    live : bool
        Whether `evaluate` overwrites the array that `off()` returns.
    """

    evaluate: Callable[[Vector, float], bool]
    G_unknown: Array
    G_known: Array
    off: Callable[[], Array]
    cut: Vector
    cut_jacobian: Array
    fast: FastRows | None
    motion: LiveMotion | None
    live: bool


def estimator_rows(
    mech: Mechanism, part: Partition, sensors: MeasurementModel, unknown: Indices, known: Indices
) -> EstimatorRows:
    """Prepare the rows for one thread; `unknown` and `known` are coordinates."""
    motion = live_motion(mech.model, mech.model.createData())
    if motion is None or mech.chart is not None:
        return _in_general(mech, part, sensors, unknown, known)
    nv, r, n = mech.nv, part.rank, unknown.size
    row = np.arange(r)[:, None] * nv
    wanted = np.concatenate([(row + unknown).reshape(-1, order="F"), (row + known).reshape(-1)])
    fast = fast_rows(mech, motion, part.rows, wanted, StateLimits(None, None), part.tolerance)
    G_unknown = fast.entries[: r * n].reshape((r, n), order="F")
    G_known = fast.entries[r * n :].reshape(r, known.size)
    rest, of_rows = np.zeros(nv), fast.evaluate
    cut, S = np.zeros(sensors.of_cut.size), np.zeros((sensors.of_cut.size, nv))
    placed = fast.placed

    def rows_at(q: Vector, t: float) -> bool:
        if placed is None:
            return of_rows(q, rest, t)
        placed(q)
        return True

    if not cut.size:
        return EstimatorRows(rows_at, G_unknown, G_known, fast.off, cut, S, fast, motion, fast.live)
    data, J = motion.data, motion.J

    def evaluate(q: Vector, t: float) -> bool:
        if not rows_at(q, t):
            return False
        kin = Kinematics(q, rest, t, data.oMi, (), J)
        cut[:], S[:] = sensors.cut_values(kin), sensors.cut_jacobian(kin)
        return True

    return EstimatorRows(evaluate, G_unknown, G_known, fast.off, cut, S, fast, motion, fast.live)


def _in_general(
    mech: Mechanism, part: Partition, sensors: MeasurementModel, unknown: Indices, known: Indices
) -> EstimatorRows:
    """The rows by their general definition, if they cannot be prepared for a tick."""
    kept, r = part.rows, mech.row_scale
    opening = rows_that_open(mech).copy()
    opening[kept] = False
    order = np.concatenate([kept, np.flatnonzero(opening)])
    G_unknown = np.zeros((kept.size, unknown.size), order="F")
    G_known, off = np.zeros((kept.size, known.size)), np.zeros((2, order.size))
    rest = np.zeros(mech.nv)
    cut, S = np.zeros(sensors.of_cut.size), np.zeros((sensors.of_cut.size, mech.nv))

    def evaluate(q: Vector, t: float) -> bool:
        kin = kinematics(mech.model, workspace(mech), q, rest, t)
        rows = rows_at(mech, q, rest, t)
        G = r[kept, None] * rows.jacobian[kept]
        G_unknown[:], G_known[:] = G[:, unknown], G[:, known]
        off[0], off[1] = (r * rows.rate)[order], (r * rows.error)[order]
        np.divide(off, UNLIMITED, off)
        if cut.size:
            cut[:], S[:] = sensors.cut_values(kin), sensors.cut_jacobian(kin)
        return bool(np.isfinite(G).all() and np.isfinite(off).all())

    return EstimatorRows(evaluate, G_unknown, G_known, lambda: off, cut, S, None, None, True)
