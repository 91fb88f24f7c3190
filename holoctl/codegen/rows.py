"""The constraint rows as expressions: error, rate, Jacobian, drift.

Each pair of frames is seen from a body above both (codegen/relative_motion.py). With p, omega,
alpha the motion of the frames seen from there, at zero joint acceleration,

    d = p2 - p1        U = v2 - v1 at p2        D = bias of the acceleration of p2 seen from body 1

    linear n       n . d                     n . U                     n . D
    direction      n . b                     dw . (b x n)              (dalpha, dw terms)
    rod            (d . d - L^2) / (2 L)     n . U,   n = d / L        n . (a2 - a1) + |ddot|^2 / L
    orientation    2 x_i                     m_i . dw                  m_i . (dalpha - omega1 x dw)
                                                                         - |dw|^2 x_i / 2

The rows are those of constraints/wrench_rows.py, which is the oracle in the tests. For a law that
does not care which basis of the rows it gets, rows that span a constant space (three linear rows,
two in a plane, three of an orientation) are taken along constant axes: an invertible combination of
the same rows, exact off the manifold too, with fewer operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Indices
from holoctl.base.errors import InputError
from holoctl.base.tolerances import DIFFERENCE_TIMES, HALF_TURN
from holoctl.codegen.casadi_import import SX, casadi_module, column_asked
from holoctl.codegen.relative_motion import (
    Pair,
    StepMotion,
    mirrored,
    moved,
    pair_between,
    placed,
    point_motion,
    see,
    turns,
)
from holoctl.codegen.tree import TreeSteps, constant
from holoctl.constraints.constraint_protocol import BoundRows, constraint_of, offered
from holoctl.constraints.custom import BoundCustom
from holoctl.constraints.kinds import Along, Composed, Kind, Orientation
from holoctl.constraints.phi_expression import check_same_rows, derivatives, rows_at, rows_function
from holoctl.constraints.user_constraints import checked_rows, is_finite, of_library
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import kinematics

__all__ = ["SymbolicRows", "check_expressions", "check_rows", "symbolic_rows"]


@dataclass(frozen=True, eq=False)
class SymbolicRows:
    """Rows as expressions.

    Attributes
    ----------
    error, rate, drift : (r,) lists of scalar expressions
        As in `Rows`.
    jacobian : (r,) list of dict
        Coordinate to entry of G; what is not there is zero.
    guard : list of scalar expressions
        Each is below one where the rows can be trusted.
    turned : bool
        Whether some rows are taken along other axes of the same span.
    """

    error: list[SX]
    rate: list[SX]
    drift: list[SX]
    jacobian: list[dict[int, SX]]
    guard: list[SX]
    turned: bool = False


def check_rows(mech: Mechanism) -> None:
    """Raise `InputError` for a constraint that has no expressions, by name."""
    for bound, name in zip(mech.bound, mech.constraint_names, strict=True):
        if why := _opaque(bound):
            raise InputError(f"{mech.name}: constraint {name!r} cannot be compiled: {why}")


def _opaque(bound: BoundRows) -> str:
    """Why rows have no expressions; empty where they have."""
    if type(bound) is WrenchRows:  # a subclass may evaluate otherwise
        sorts = {type(kind).__name__: type(kind) for kind in bound.kinds}
        unknown = [name for name, sort in sorts.items() if sort not in EXPRESSIONS]
        return f"rows of the sort {unknown[0]} have no expressions" if unknown else ""
    why: str = getattr(bound, "opaque", "")
    if why or offered(bound, "expression"):
        return why
    return f"rows of a {type(bound).__name__} have no expressions"


def symbolic_rows(
    mech: Mechanism, tree: TreeSteps, v: SX, t: SX, rows: Indices, same_space: bool = False
) -> SymbolicRows:
    """Some rows of a mechanism, in the order wanted; see `check_rows`.

    Parameters
    ----------
    mech : Mechanism
    tree : TreeSteps
    v, t : (nv, 1) symbols, symbol
    rows : (r,) int array
    same_space : bool
        Whether other rows of the same span may stand in their places.
    """
    r = len(rows)
    found = SymbolicRows([None] * r, [None] * r, [None] * r, [{} for _ in rows], [], same_space)
    seen: dict[tuple[int, int], StepMotion] = {}
    start = 0
    for bound in mech.bound:
        m = len(bound.labels)
        here = [(i, int(row) - start) for i, row in enumerate(rows) if start <= row < start + m]
        start += m
        if not here:
            continue
        if type(bound) is WrenchRows:
            for pair in np.unique(bound.pair[[k for _, k in here]]).tolist():
                of_pair = [(i, k) for i, k in here if bound.pair[k] == pair]
                motion = pair_between(tree, bound.frames1[pair], bound.frames2[pair], v, seen)
                _wrench_rows(found, bound, of_pair, motion, same_space)
        else:
            _differentiated(found, mech, bound, here, tree, v, t)
    return found


def check_expressions(mech: Mechanism, tree: TreeSteps, t: SX, samples: Array) -> None:
    """Raise `InputError` where an expression that a constraint offers is not its phi, by name.

    Parameters
    ----------
    mech : Mechanism
    tree : TreeSteps
    t : symbol
    samples : (s, nq) array
        Configurations: it is compared beside each, where phi is not zero.
    """
    data, rng = mech.model.createData(), np.random.default_rng(0)
    for bound, name in zip(mech.bound, mech.constraint_names, strict=True):
        if type(bound) is WrenchRows:
            continue
        what_is = "casadi" if of_library(bound) else "expression"
        owner = f"{mech.name}: {what_is} of constraint {name!r}"
        function = rows_function(owner, mech.model, _phi(mech, bound, tree, t), tree.q, t)
        rows = bound.by_callbacks if type(bound) is BoundCustom else bound.rows
        for sample, when in zip(samples, cycle(DIFFERENCE_TIMES), strict=False):
            x = pin.integrate(mech.model, sample, np.full(mech.nv, 0.1))
            speed = rng.normal(size=mech.nv)
            try:
                given = rows(kinematics(mech.model, data, x, speed, when))
            except Exception:
                if of_library(bound):
                    raise
                continue  # rows need not be defined everywhere, and say so as they like
            given = checked_rows(bound, given, mech.nv)
            if is_finite(given):
                check_same_rows(owner, rows_at(function, x, speed, when), given)


def _phi(mech: Mechanism, bound: BoundRows, tree: TreeSteps, t: SX) -> SX:
    """The errors of a constraint that offers an expression, checked."""
    expression, name = offered(bound, "expression"), constraint_of(bound.labels[0])
    seen: dict[tuple[int, int], StepMotion] = {}
    rest = casadi_module().SX.zeros(mech.nv)

    def place(frame: Frame) -> tuple[SX, SX]:
        return placed(see(tree, (0, 0), tree.of_joint[frame.joint], rest, seen), frame)

    return column_asked(
        f"{mech.name}: expression of constraint {name!r}",
        lambda: expression and expression(tree.q, t, place), len(bound.labels),
    )  # fmt: skip


# ---------------------------------------------------------------------------- wrench rows


def _wrench_rows(
    found: SymbolicRows,
    table: WrenchRows,
    here: list[tuple[int, int]],
    pair: Pair,
    same_space: bool,
) -> None:
    by_kind: dict[Kind, list[tuple[int, int]]] = {}
    for i, k in here:
        by_kind.setdefault(table.kinds[k], []).append((i, k))
    for kind, members in by_kind.items():
        EXPRESSIONS[type(kind)](found, table, members, pair, same_space)


def _along(
    found: SymbolicRows, table: WrenchRows, members: list[tuple[int, int]], pair: Pair, free: bool
) -> None:
    """Rows along a vector n, seen from the frame that n is fixed in."""
    kind = table.kinds[members[0][1]]
    if not isinstance(kind, Along) or kind.normal is None:
        _rod(found, table, members, pair)
        return
    seen = pair if kind.normal == 1 else mirrored(pair)
    if not kind.point:
        _direction(found, table, members, seen)
    else:  # n . (p2 - p1) = -n . (p1 - p2)
        normals = table.a if kind.normal == 1 else -table.a
        _linear(found, members, seen, normals, free)


def _linear(
    found: SymbolicRows,
    members: list[tuple[int, int]],
    pair: Pair,
    normals: NDArray[np.float64],
    free: bool,
) -> None:
    """``n . (p2 - p1)``: the acceleration of p2 seen from body 1, along n."""
    ca = casadi_module()
    v1, a1 = point_motion(pair.one, pair.p2)
    v2, a2 = point_motion(pair.two, pair.p2)
    d, U = pair.p2 - pair.p1, v2 - v1
    D = a2 - a1 - 2.0 * ca.cross(pair.one.omega, U)
    axes = np.array([normals[k] for _, k in members])
    directions = [pair.R1 @ constant(a) for a in axes]
    if free:
        directions = _constant_span(axes, directions, pair.R1)
    columns = moved(pair, pair.p2, pair.p2)
    for (i, _), n in zip(members, directions, strict=True):
        found.error[i], found.rate[i], found.drift[i] = _dot(n, d), _dot(n, U), _dot(n, D)
        found.jacobian[i].update(_entries((c, _dot(n, g)) for c, g in columns))


def _rod(
    found: SymbolicRows, table: WrenchRows, members: list[tuple[int, int]], pair: Pair
) -> None:
    v1, a1 = point_motion(pair.one, pair.p1)
    v2, a2 = point_motion(pair.two, pair.p2)
    d, rate = pair.p2 - pair.p1, v2 - v1
    columns = moved(pair, pair.p1, pair.p2)
    for i, k in members:
        L = float(table.size[k])
        n = d / L
        found.error[i] = (_dot(d, d) - L**2) / (2.0 * L)
        found.rate[i] = _dot(n, rate)
        found.drift[i] = _dot(n, a2 - a1) + _dot(rate, rate) / L
        found.jacobian[i].update(_entries((c, _dot(n, g)) for c, g in columns))


def _direction(
    found: SymbolicRows, table: WrenchRows, members: list[tuple[int, int]], pair: Pair
) -> None:
    ca = casadi_module()
    w1, w2 = pair.one.omega, pair.two.omega
    dw, dalpha = w2 - w1, pair.two.alpha - pair.one.alpha
    for i, k in members:
        n, b = pair.R1 @ constant(table.a[k]), pair.R2 @ constant(table.b[k])
        c = ca.cross(b, n)
        cdot = ca.cross(ca.cross(w2, b), n) + ca.cross(b, ca.cross(w1, n))
        found.error[i], found.rate[i] = _dot(n, b), _dot(c, dw)
        found.drift[i] = _dot(c, dalpha) + _dot(cdot, dw)
        found.jacobian[i].update(_entries((j, _dot(c, turn)) for j, turn in turns(pair)))


def _orientation(
    found: SymbolicRows, table: WrenchRows, members: list[tuple[int, int]], pair: Pair, free: bool
) -> None:
    ca = casadi_module()
    w1 = pair.one.omega
    dw = pair.two.omega - w1
    D = pair.two.alpha - pair.one.alpha - ca.cross(w1, dw)
    R = pair.R1.T @ pair.R2
    w = 0.5 * ca.sqrt(1.0 + ca.trace(R))
    x = ca.vertcat(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]) / (4.0 * w)
    found.guard.append((HALF_TURN / w) ** 2)
    fast = 0.5 * _dot(dw, dw)
    if free and len(members) == 3:
        # E^-1 takes 2 x to 2 x / w and E to the identity: rows along constant axes
        x = pair.R1 @ (x / w)
        moments = [constant(e) for e in np.eye(3)]
        parts = [x[c] for c in range(3)]
    else:
        E = w * ca.SX.eye(3) - ca.skew(x)
        moments = [pair.R1 @ E[int(table.component[k]), :].T for _, k in members]
        parts = [x[int(table.component[k])] for _, k in members]
    for (i, _), m, part in zip(members, moments, parts, strict=True):
        found.error[i], found.rate[i] = 2.0 * part, _dot(m, dw)
        found.drift[i] = _dot(m, D) - fast * part
        found.jacobian[i].update(_entries((j, _dot(m, turn)) for j, turn in turns(pair)))


def _composed(
    found: SymbolicRows, table: WrenchRows, members: list[tuple[int, int]], pair: Pair, free: bool
) -> None:
    """f(x) of rows along vectors, and the chain rule."""
    ca = casadi_module()
    for row, kind, at in table.composed:
        places = [i for i, k in members if k == row]
        if not places:
            continue
        i, n, size = places[0], len(kind.parts), float(table.size[row])
        parts = SymbolicRows([None] * n, [None] * n, [None] * n, [{} for _ in kind.parts], [])
        _wrench_rows(parts, table.parts, list(enumerate(range(at.start, at.stop))), pair, False)
        x, xdot = ca.SX.sym("x", n), ca.SX.sym("xdot", n)
        f = kind.value([x[k] for k in range(n)], size, ca.atan2, ca.floor)
        f_x = ca.gradient(f, x)
        rate = ca.dot(f_x, xdot)
        function = ca.Function("f", [x, xdot], [f, f_x, rate, ca.jtimes(rate, x, xdot)])
        given = [ca.vertcat(*parts.error), ca.vertcat(*parts.rate)]
        value, along, rate, curvature = function.call(given, True, False)
        found.error[i], found.rate[i] = value, rate
        found.drift[i] = ca.dot(along, ca.vertcat(*parts.drift)) + curvature
        for k, entries in enumerate(parts.jacobian):
            for column, entry in entries.items():
                term = along[k] * entry
                row_of_G = found.jacobian[i]
                row_of_G[column] = row_of_G[column] + term if column in row_of_G else term
        found.guard.append(kind.guard(parts.error) ** 2)


EXPRESSIONS: dict[type, Callable[..., None]] = {
    Along: _along,
    Orientation: _orientation,
    Composed: _composed,
}
"""Rows between two bodies as expressions, sort by sort."""


def _constant_span(axes: NDArray[np.float64], directions: list[SX], R1: SX) -> list[SX]:
    """Constant directions of the same span, where there are; else the directions."""
    ca = casadi_module()
    count = len(axes)
    if count == 1 or not np.allclose(axes @ axes.T, np.eye(count), atol=1e-14):
        return directions
    if count == 3:
        return [constant(e) for e in np.eye(3)]
    normal = R1 @ constant(np.cross(axes[0], axes[1]))
    if not normal.is_constant():
        return directions
    n = np.array(ca.DM(normal)).reshape(3)
    first = np.eye(3)[int(np.argmin(np.abs(n)))]
    first = first - n * (n @ first)
    first /= np.linalg.norm(first)
    return [constant(first), constant(np.cross(n, first))]


# ----------------------------------------------------------------------- other constraints


def _differentiated(
    found: SymbolicRows, mech: Mechanism, bound: BoundRows, here: list[tuple[int, int]],
    tree: TreeSteps, v: SX, t: SX,
) -> None:  # fmt: skip
    """phi as an expression, differentiated along v and t."""
    phi = _phi(mech, bound, tree, t)
    rate, G, drift = derivatives(mech.model, phi, tree.q, v, t)
    for i, k in here:
        found.error[i], found.rate[i], found.drift[i] = phi[k], rate[k], drift[k]
        found.jacobian[i].update(_entries((c, G[k, c]) for c in range(v.numel())))


def _entries(pairs: Any) -> dict[int, SX]:
    """The entries that are not always zero."""
    return {c: x for c, x in pairs if not x.is_zero()}


def _dot(a: SX, b: SX) -> SX:
    return casadi_module().dot(a, b)
