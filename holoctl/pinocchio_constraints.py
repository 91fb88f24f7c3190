"""Pinocchio's own constrained dynamics, for the constraints that it can express whole.

The proximal algorithm iterates towards the solution with a small regularisation, which makes
redundant rows harmless. It is there to compare with, and for its speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.checks import Vector, listing
from holoctl.constraints.wrench import WrenchRows
from holoctl.equation import Terms
from holoctl.errors import InconsistentError, InputError
from holoctl.linalg import cholesky
from holoctl.mechanism import Mechanism

__all__ = ["direct_by_points", "proximal", "rigid_constraints"]

MU, ITERATIONS, ACCURACY = 1e-10, 30, 1e-13
"""Regularisation, most iterations, and the accuracy at which they end."""

CLOSED = 1e-6
"""The proximal method takes states up to this scaled error."""

REFINEMENTS, REFINED = 3, 1e-13
"""Steps of refinement at most, and to what its rows and its equations of motion then hold, each
relative to the largest of their terms."""


def proximal(T: Terms, efforts: Vector) -> tuple[Vector, float]:
    """``a`` by `pinocchio.constraintDynamics`, and the condition number of M."""
    mech = T.mechanism
    if T.stabilisation.any():
        raise InputError(f"{mech.name}: method 'proximal' does not stabilise; leave t_stab out")
    models = rigid_constraints(mech)
    error = float(np.abs(mech.row_scale * T.error).max(initial=0.0))
    if error > CLOSED:
        raise InconsistentError(
            f"{mech.name}: method 'proximal' has rows that are ours on the manifold only; the "
            f"largest scaled error is {error:.1e}: assemble the state, or use another method",
            residual=error,
        )
    datas = pin.StdVec_RigidConstraintData()
    for m in models:
        datas.append(m.createData())
    data = mech.model.createData()
    pin.initConstraintDynamics(mech.model, data, models, datas)
    settings = pin.ProximalSettings(ACCURACY, MU, ITERATIONS)
    a = pin.constraintDynamics(mech.model, data, T.q, T.v, efforts, models, datas, settings)
    if not abs(float(a.sum())) < float("inf"):
        raise InconsistentError(f"{mech.name}: Pinocchio's proximal algorithm found no solution")
    return a.copy(), cholesky(T.M).condition


def direct_by_points(T: Terms, efforts: Vector) -> tuple[Vector, float] | None:
    """``a`` by Pinocchio's sparse factorisation of the whole system, where all rows are points.

    The factorisation is of a system with `MU` in the place of the zero block; refinement
    with the true system removes what that changed. Returns None where a constraint
    is no point with three rows, or the refined solution is not exact: the dense form serves.
    """
    mech, model = T.mechanism, T.mechanism.model
    points = [rows for rows in mech._bound if isinstance(rows, WrenchRows) and _is_point(rows)]
    if not points or len(points) < len(mech._bound):
        return None
    held = getattr(mech._local, "anchors", None)  # constraint models do not pickle: one a thread
    if held is None:
        held = mech._local.anchors = _anchors(mech, points)
    models, datas, data, factors = held
    pin.computeAllTerms(model, data, T.q, T.v)
    for m, d in zip(models, datas, strict=True):
        m.calc(model, data, d)
    J = pin.getConstraintsJacobian(model, data, models, datas).reshape(-1, mech.nv)
    wanted = -(T.drift + T.stabilisation).reshape(-1, 3)
    # our rows are those of the anchor along the axes rows.a of frame a
    right = np.concatenate([np.linalg.solve(p.a, k) for p, k in zip(points, wanted, strict=True)])
    m = right.size
    K = np.block([[np.zeros((m, m)), J], [J.T, T.M]])
    rhs = np.concatenate([right, efforts - T.h])
    factors.compute(model, data, models, datas, MU)
    x = np.ravel(factors.solve(rhs))
    for _ in range(REFINEMENTS):
        x = x + np.ravel(factors.solve(rhs - K @ x))
        off, terms = np.abs(rhs - K @ x), np.abs(K) @ np.abs(x) + np.abs(rhs)
        rows_hold = (off[:m] <= REFINED * terms[:m].max()).all()  # m/s^2; the others are efforts
        if rows_hold and (off[m:] <= REFINED * terms[m:].max()).all():
            return x[m:], cholesky(T.M).condition
    return None


def _anchors(mech: Mechanism, points: Sequence[WrenchRows]) -> tuple[Any, Any, pin.Data, Any]:
    """Models and data of the points, a workspace, and the factorisation laid out for them."""
    model, data = mech.model, mech.model.createData()
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for rows in points:
        a, b = rows.frames1[0], rows.frames2[0]
        anchor = pin.PointAnchorConstraintModel(model, a.joint, a.placement, b.joint, b.placement)
        models.append(pin.ConstraintModel(anchor))
    for m in models:
        datas.append(m.createData())
    factors = pin.ConstraintCholeskyDecomposition(model, data, models, datas)
    return models, datas, data, factors


def _is_point(rows: WrenchRows) -> bool:
    straight = rows.kinds.tolist() == 3 * ["linear"]
    return straight and abs(float(np.linalg.det(rows.a))) > 1e-3


def rigid_constraints(mech: Mechanism) -> pin.StdVec_RigidConstraintModel:
    """The constraints of a mechanism as Pinocchio has them.

    Raises
    ------
    InputError
        If there are others than points with three rows (spherical closures, contacts with two
        tangents) and welds; it names them.
    """
    others, models = [], pin.StdVec_RigidConstraintModel()
    for name, rows in zip(mech.constraint_names, mech._bound, strict=True):
        if not isinstance(rows, WrenchRows):
            others.append(name)
            continue
        weld = sorted(rows.kinds.tolist()) == 3 * ["linear"] + 3 * ["orientation"]
        if not weld and not _is_point(rows):
            others.append(name)
            continue
        # the body first: the world as the first body is a trap of some of Pinocchio's algorithms
        b, a = rows.frames2[0], rows.frames1[0]
        if b.joint == 0:
            a, b = b, a
        kind = pin.ContactType.CONTACT_6D if weld else pin.ContactType.CONTACT_3D
        models.append(
            pin.RigidConstraintModel(
                kind, mech.model, b.joint, b.placement, a.joint, a.placement,
                pin.ReferenceFrame.LOCAL,
            )
        )  # fmt: skip
    if others:
        raise InputError(
            f"{mech.name}: method 'proximal' is for points with three rows (spherical closures, "
            f"contacts with two tangents) and welds; it cannot express {listing(others)}; any "
            "other method serves"
        )
    return models
