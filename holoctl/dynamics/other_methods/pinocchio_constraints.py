"""Pinocchio's own constrained dynamics, for the constraints that it can express.

The proximal algorithm iterates towards the solution with a small regularisation, which makes
redundant rows harmless. It is for comparison, and for its speed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing
from holoctl.base.errors import InconsistentError, InputError
from holoctl.base.linalg import cholesky, largest, lu
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.rigid_constraints import rigid_constraint_models
from holoctl.rows.pinocchio_rows import Anchor, Anchored, anchored, anchors
from holoctl.rows.terms import Terms

__all__ = ["direct_by_anchors", "proximal", "rigid_constraints"]

PROXIMAL_MU, PROXIMAL_ITERATIONS, PROXIMAL_ACCURACY = 1e-10, 30, 1e-13
"""Pinocchio's constrained dynamics: regularisation, most iterations, and the accuracy at which they
end."""

PROXIMAL_CLOSED = 1e-6  # scaled
"""Largest scaled error of a state for the proximal method."""

REFINEMENTS, REFINED = 3, 1e-13
"""The sparse factorisation: most steps of refinement, and the largest residuals of its rows and of
its equations of motion, each relative to the largest of their terms."""

ANCHOR_BLIND = 1e6
"""Condition number from which the rows of the mechanism do not determine those of an anchor."""


def proximal(T: Terms, efforts: Vector) -> tuple[Vector, float]:
    """``a`` by `pinocchio.constraintDynamics`, and the condition number of M."""
    mech = T.mechanism
    if T.stabilisation.any():
        raise InputError(f"{mech.name}: method 'proximal' does not stabilise; leave t_stab out")
    models = rigid_constraints(mech)
    error = largest(mech.row_scale * T.error)
    if error > PROXIMAL_CLOSED:
        raise InconsistentError(
            f"{mech.name}: the rows of method 'proximal' are exact on the manifold only; the "
            f"largest scaled error is {error:.1e}: assemble the state, or use another method",
            residual=error,
        )
    datas = pin.StdVec_RigidConstraintData()
    for m in models:
        datas.append(m.createData())
    data = mech.model.createData()
    pin.initConstraintDynamics(mech.model, data, models, datas)
    settings = pin.ProximalSettings(PROXIMAL_ACCURACY, PROXIMAL_MU, PROXIMAL_ITERATIONS)
    a = pin.constraintDynamics(mech.model, data, T.q, T.v, efforts, models, datas, settings)
    if not abs(float(a.sum())) < float("inf"):
        raise InconsistentError(f"{mech.name}: Pinocchio's proximal algorithm found no solution")
    return a.copy(), cholesky(T.M).condition


def direct_by_anchors(T: Terms, efforts: Vector) -> tuple[Vector, float] | None:
    """``a`` by Pinocchio's sparse factorisation of the whole system, if all rows form anchors: see
    rows/pinocchio_rows.py. The factored system has `PROXIMAL_MU` in place of the zero block, so
    that redundant anchors do no harm; refinement with the true system, whose matrix is not formed,
    removes the difference. Returns None if some rows form no anchor, or the refined solution is not
    exact: then the dense form is used.
    """
    mech, model = T.mechanism, T.mechanism.model

    def prepared() -> tuple[tuple[Anchor, ...], Anchored | None]:
        found = anchors(mech)
        return found, anchored(model, found) if found else None

    found, workspace = mech.per_thread("anchors", prepared)
    if workspace is None:
        return None
    rows = _rows_of_anchors(T, found)
    if rows is None:
        return None
    J, right = rows
    models, datas, data = workspace.models, workspace.datas, workspace.data
    pin.computeAllTerms(model, data, T.q, T.v)
    for m, d in zip(models, datas, strict=True):
        m.calc(model, data, d)
    workspace.factors.compute(model, data, models, datas, PROXIMAL_MU)
    f, size = efforts - T.h, right.size
    reactions, a = np.zeros(size), np.zeros(mech.nv)
    off_rows, off_efforts = right, f
    for refinements in range(1 + REFINEMENTS):
        step = np.ravel(workspace.factors.solve(np.concatenate([off_rows, off_efforts])))
        reactions, a = reactions + step[:size], a + step[size:]
        off_rows, off_efforts = right - J @ a, f - J.T @ reactions - T.M @ a
        if refinements == 0:
            continue
        of_rows = np.abs(J) @ np.abs(a) + np.abs(right)
        of_efforts = np.abs(J.T) @ np.abs(reactions) + np.abs(T.M) @ np.abs(a) + np.abs(f)
        rows_hold = (np.abs(off_rows) <= REFINED * of_rows.max()).all()
        if rows_hold and (np.abs(off_efforts) <= REFINED * of_efforts.max()).all():
            return a, cholesky(T.M).condition
    return None


def _rows_of_anchors(
    T: Terms, found: Sequence[Anchor]
) -> tuple[NDArray[np.float64], Vector] | None:
    """J and the right-hand side of ``J a = right`` from the rows of the mechanism; None if they do
    not determine it."""
    if T.rows.wrenches is None:
        return None
    ours = np.column_stack([T.jacobian, -(T.drift + T.stabilisation)])
    theirs, ends = np.empty_like(ours), np.cumsum([anchor.rows.size for anchor in found])
    points = [i for i, anchor in enumerate(found) if anchor.rows.size == 3]
    if points:  # all at once
        rows = np.array([found[i].rows for i in points])
        # the T of the points, constant and regular
        axes = np.array([found[i].tables[0].a for i in points])
        theirs[ends[points, None] + [-3, -2, -1]] = np.linalg.solve(axes, ours[rows])
    for anchor, end in zip(found, ends, strict=True):
        if anchor.rows.size == 6:
            factors = lu(anchor.transformation(T.kinematics, T.rows.wrenches))
            if not factors.condition < ANCHOR_BLIND:
                return None
            theirs[end - 6 : end] = factors.solve(ours[anchor.rows])
    return theirs[:, :-1], theirs[:, -1]


def rigid_constraints(mech: Mechanism) -> pin.StdVec_RigidConstraintModel:
    """The constraints of a mechanism as Pinocchio's constraint models, row by row.

    Raises
    ------
    InputError
        If there are others than points with three rows (spherical closures, contacts with two
        tangents) and welds; it names them.
    """
    models, others = rigid_constraint_models(
        mech.model, mech.constraints, mech.constraint_names, mech.bound, hinges=False
    )
    if others:
        raise InputError(
            f"{mech.name}: method 'proximal' is for points with three rows (spherical closures, "
            f"contacts with two tangents) and welds; it cannot express {listing(list(others))}; "
            "any other method can"
        )
    for one in models:  # this method takes closed states
        one.m_baumgarte_parameters.Kp = one.m_baumgarte_parameters.Kd = 0.0
    return models
