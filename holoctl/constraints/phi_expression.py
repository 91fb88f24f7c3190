"""Rows from phi as an expression: its derivatives, and their evaluation in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.casadi_virtual_machine import virtual_machine
from holoctl.base.checks import Vector
from holoctl.base.errors import InputError
from holoctl.base.tolerances import EXPRESSIONS_AGREE, PHI_AGREES
from holoctl.constraints.constraint_protocol import Evaluate, Rows
from holoctl.tree.position_rates import tangent

__all__ = ["check_same_rows", "derivatives", "rows_at", "rows_function", "rows_machine"]

SX = Any
"""A `casadi.SX`: a matrix of expressions."""

PARTS = ("error", "rate", "jacobian", "drift")
"""The arrays of `Rows`."""


def derivatives(model: pin.Model, phi: SX, q: SX, v: SX, t: SX) -> tuple[SX, SX, SX]:
    """Rate (r, 1), Jacobian (r, nv) and drift (r, 1) of phi(q, t), along v."""
    import casadi as ca

    qdot, one = tangent(model, q) @ v, ca.SX(1.0)
    rate = ca.jtimes(phi, q, qdot) + ca.jtimes(phi, t, one)
    drift = ca.jtimes(rate, q, qdot) + ca.jtimes(rate, t, one)
    return rate, ca.jacobian(rate, v), drift


def rows_function(owner: str, model: pin.Model, phi: SX, q: SX, t: SX) -> Any:
    """(q, v, t) -> error, rate, transposed Jacobian and drift, a `casadi.Function`.

    Raises `InputError` for a phi of other symbols than q and t.
    """
    import casadi as ca

    v = ca.SX.sym("v", model.nv)
    rate, G, drift = derivatives(model, phi, q, v, t)
    outputs = [ca.densify(x) for x in (phi, rate, G.T, drift)]
    if others := ca.Function("phi", [q, t], [phi], {"allow_free": True}).get_free():
        raise InputError(f"{owner} must depend on its arguments alone; it has the symbols {others}")
    return ca.Function("rows", [q, v, t], outputs, {"cse": True})


def rows_machine(function: Any, rows: Rows) -> Evaluate:
    """A `rows_function` that fills the arrays of `rows`, for one thread."""
    return virtual_machine(function, (rows.error, rows.rate, rows.jacobian, rows.drift))


def rows_at(function: Any, q: Vector, v: Vector, t: float) -> Rows:
    """The rows at a state by a `rows_function`, in new arrays."""
    m, nv = function.numel_out(0), v.size
    rows = Rows(np.zeros(m), np.zeros(m), np.zeros((m, nv)), np.zeros(m))
    rows_machine(function, rows)(q, v, t)
    return rows


def check_same_rows(owner: str, found: Rows, given: Rows, parts: Sequence[str] = PARTS) -> None:
    """Raise `InputError` if rows by an expression differ from those given, relative to their
    size."""
    size = np.abs(found.jacobian).sum(axis=1)
    size = size + np.abs([found.error, found.rate, found.drift]).sum(axis=0)
    for what in parts:
        expected = np.asarray(getattr(given, what), dtype=float).reshape(size.size, -1)
        off = np.abs(getattr(found, what).reshape(expected.shape) - expected).max(axis=1)
        same = (PHI_AGREES if what == "error" else EXPRESSIONS_AGREE) * size
        if not (off <= same).all():
            row = int(np.argmax(np.where(off <= same, -1.0, off)))
            of = "phi" if what == "error" else f"{what}, by differentiation,"
            raise InputError(
                f"{owner} is not its phi: its {of} is off by {off[row]:.2g} in row {row} at one "
                f"configuration, where its rows give {np.abs(expected[row]).max():.4g} at most"
            )
