"""The rows once more, laid out for a control tick: G and -drift in some twenty calls.

The rows are those of constraints/wrench.py, which is the oracle of this module in the tests. Here
all rows are lines of one table, and the motion of the bodies is read where Pinocchio keeps it, in
world axes at the world origin: placements X, velocities V, bias accelerations A. A row between
bodies 1 and 2 is the wrench w = (n, s x n) on body 2 (direction rows: (0, s x n)), with

    n, s     affine in X: n = R1 a, rod: n = (p2 - p1) / L; s = p2, direction: s = R2 b
    U        V2 - V1, with angular part omega_U
    e        rate of s seen from body 1: U at s            (direction: omega_U x s)
    sdot     rate of s seen from the world: V2 at s        (direction: omega_2 x s)

and then

    G = (w J) * S
    -drift = w . (A1 - A2) + (n x omega_1) . e + (omega_U x n) . sdot - |e|^2 / L (rods only)

All cross products of a tick are one product of two gathered tables. Derivation:
docs/derivations.md, "Rows in a tick".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.checks import Vector
from holoctl.constraints.contract import BoundRows
from holoctl.constraints.coupling import BoundCoupling
from holoctl.constraints.wrench import YZX, ZXY, WrenchRows
from holoctl.errors import InputError
from holoctl.mechanism import Mechanism
from holoctl.tree import Frame, LiveMotion, kinematics, live_motion

__all__ = ["FastRows", "fast_rows", "in_own_workspace", "why_not"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

DENSE = 1200
"""An affine map with up to this many entries is one dense product, a larger one a gather."""

Evaluate = Callable[[Vector, Vector, float], bool]

HALF_TURN = 0.1
"""Orientation rows are not evaluated where cos(angle / 2) is smaller."""


@dataclass(frozen=True, eq=False)
class FastRows:
    """Some rows, scaled, for one thread: ``G a = right`` after `evaluate(q, v, t)`.

    Attributes
    ----------
    evaluate : function (q, v, t) -> bool
        Fills the two arrays below, which are the same at every call; False where it cannot, and
        then they hold nothing of use.
    entries : array
        The entries of the scaled G that were asked for, in the shape that was asked for.
    right : (r,) array
        -drift, scaled.
    """

    evaluate: Evaluate
    entries: Array
    right: Vector


def why_not(mech: Mechanism) -> str:
    """Why the rows of a mechanism cannot be laid out for a tick; empty where they can."""
    if mech.chart is not None:
        return "an explicit chart moves the state"
    if any(c.t_stab is not None for c in mech.constraints):
        return "a constraint is stabilised"
    if live_motion(mech.model, mech.model.createData()) is None:
        return "this build of Pinocchio keeps its results in another layout"
    return ""


def fast_rows(mech: Mechanism, motion: LiveMotion, rows: Indices, wanted: Indices) -> FastRows:
    """Lay out rows of a mechanism; see `why_not`.

    Parameters
    ----------
    mech : Mechanism
    motion : LiveMotion
        Of a workspace that nobody else uses.
    rows : (r,) int array
        Which rows, in the order wanted.
    wanted : int array
        Entries of G, as positions in G flattened row by row; -1 asks for a zero.
    """
    model, data, nv, r = mech.model, motion.data, mech.nv, rows.size
    WJ, S, right = np.zeros((r, nv)), np.ones((r, nv)), np.zeros(r)
    parts: list[Evaluate] = []
    others: list[tuple[BoundRows, Indices, Vector, slice]] = []
    order: list[int] = []  # the rows as they stand in WJ: kind by kind
    for kind, block, here, local in _by_kind(mech, rows):
        at, scale = slice(len(order), len(order) + len(here)), mech.row_scale[rows[here]]
        order += here
        if isinstance(block, WrenchRows):
            S[at] = block.S[block.pair[local]]
        if isinstance(block, WrenchRows) and kind == "turning":
            parts.append(_turning(block, local, motion, WJ[at], right[at]))
        elif isinstance(block, WrenchRows):
            parts.append(_along(block, local, scale, motion, WJ[at], right[at]))
        elif type(block) is BoundCoupling:  # its rows are constant; those of others may not be
            WJ[at] = scale[:, None] * block.jacobian
        else:
            others.append((block, local, scale, at))
    if others:
        parts.append(_others(mech, data, others, WJ, right))

    row_in_WJ = np.argsort(order)
    position = np.where(wanted < 0, 0, row_in_WJ[wanted // nv] * nv + wanted % nv)
    factor = np.where(wanted < 0, 0.0, S.reshape(-1)[position])
    entries, flat, rest = np.zeros(wanted.shape), WJ.reshape(-1), np.zeros(nv)
    in_order = np.array_equal(row_in_WJ, np.arange(r))
    result = right if in_order else np.zeros(r)

    def evaluate(q: Vector, v: Vector, t: float) -> bool:
        pin.computeForwardKinematicsDerivatives(model, data, q, v, rest)
        for part in parts:
            if not part(q, v, t):
                return False
        flat.take(position, None, entries, "clip")
        np.multiply(entries, factor, entries)
        if not in_order:
            right.take(row_in_WJ, None, result, "clip")
        return True

    return FastRows(evaluate, entries, result)


def _by_kind(mech: Mechanism, rows: Indices) -> Iterator[tuple[str, BoundRows, list[int], Indices]]:
    """Kind, block of the mechanism, positions in `rows`, and rows of the block."""
    for block, its_rows in mech._blocks:
        number = {int(row): i for i, row in enumerate(its_rows)}
        found: dict[str, list[int]] = {}
        for position, row in enumerate(rows.tolist()):
            if row in number:
                turning = (
                    isinstance(block, WrenchRows) and block.kinds[number[row]] == "orientation"
                )
                found.setdefault("turning" if turning else "plain", []).append(position)
        for kind, here in found.items():
            yield kind, block, here, np.array([number[int(rows[i])] for i in here], dtype=np.intp)


def in_own_workspace(
    local: threading.local, lay_out: Callable[[Any], Any], owner: Any, *args: Any
) -> Any:
    """``tick(*args)`` with the tick that ``lay_out(owner)`` made for this thread; None without
    one, or where the caller has numpy raise its floating-point errors and it did.

    While it runs it cannot be called again in the same thread: its workspace is in use.
    """
    try:
        tick = local.tick
    except AttributeError:
        tick = local.tick = lay_out(owner)
    if tick is None:
        return None
    local.tick = _busy
    try:
        return tick(*args)
    except (FloatingPointError, RuntimeWarning):
        return None
    finally:
        local.tick = tick


def _busy(*_: Any) -> None:
    raise InputError(
        "called while another call in this thread was under way, from a signal handler or a "
        "callback; the workspace of the thread is in use: set a flag there instead"
    )


# ------------------------------------------------------- linear rows, direction rows and rods


def _along(
    table: WrenchRows, i: Indices, scale: Vector, motion: LiveMotion, WJ: Array, right: Vector
) -> Evaluate:
    """Rows along a vector n: see the head of this file."""
    m, kinds, pair = i.size, table.kinds[i], table.pair[i]
    direction, rod = kinds == "direction", kinds == "rod"
    frames1, frames2 = [table.frames1[c] for c in pair], [table.frames2[c] for c in pair]
    per_length = np.where(rod, scale / np.where(rod, table.length[i], 1.0), 0.0)
    n_and_s = np.zeros((2, m, 4 * motion.bodies))
    for k in range(m):
        if rod[k]:
            _add_vector(n_and_s[0, k], frames2[k], [0, 0, 0, per_length[k]])
            _add_vector(n_and_s[0, k], frames1[k], [0, 0, 0, -per_length[k]])
        else:
            _add_vector(n_and_s[0, k], frames1[k], [*(scale[k] * table.a[i[k]]), 0])
        arm = [*table.b[i[k]], 0] if direction[k] else [0, 0, 0, 1]
        _add_vector(n_and_s[1, k], frames2[k], arm)

    # One flat workspace, from which any mixture of vectors is gathered in one call. Vectors
    # are gathered component by component: (3, m) arrays of positions in the workspace.
    shapes = {"n_s": (2 * m, 3), "V": (6, 3 * m), "crosses": (5, 3, m), "zero": (1,)}
    work, part, start = _workspace(shapes)
    row, component = np.arange(m), np.arange(3)[:, None]
    n, s = (start["n_s"] + 3 * (m * k + row) + component for k in range(2))
    v2, u = (start["V"] + 3 * m * component + m * k + row for k in (1, 2))
    omega1, omega2, omega_u = (start["V"] + 3 * m * (3 + component) + m * k + row for k in range(3))
    s_x_n, n_x_omega1, omega_u_x_n = (
        start["crosses"] + m * (3 * k + component) + row for k in range(3)
    )
    zero = np.full((3, m), start["zero"])
    first, second = np.stack([s, n, omega_u, omega_u, omega2]), np.stack([n, omega1, n, s, s])
    gather_factors = np.ascontiguousarray(
        [[first[:, YZX], first[:, ZXY]], [second[:, ZXY], second[:, YZX]]]
    )
    gather_terms = np.stack([
        np.where(direction, zero, n), s_x_n, n_x_omega1, omega_u_x_n,  # w, then with e and sdot
        np.where(direction, zero, u), np.where(direction, zero, v2),
    ])  # fmt: skip

    affine = _affine(n_and_s.reshape(2 * m, -1), motion.placements, part["n_s"])
    bodies1, bodies2 = [f.joint for f in frames1], [f.joint for f in frames2]
    V, crosses = part["V"], part["crosses"]
    factors, terms, right_terms = (
        np.zeros((2, 2, 5, 3, m)),
        np.zeros((6, 3, m)),
        np.zeros((4, 3, m)),
    )
    A = right_terms[:2].reshape(6, m)
    both_and_difference = _both_and_difference(motion.velocities, bodies1, bodies2, V)
    difference = _difference(motion.accelerations, bodies1, bodies2, A)
    (P, Q), (P1, P2) = factors, factors[0]
    left, rates, turning, e_sdot = terms[:4], terms[4:], crosses[3:], right_terms[2:]
    e, by_row, ones = right_terms[2], right_terms.reshape(12, m), np.ones(12)
    W, J = left[:2].reshape(6, m).T, motion.J
    any_rod = bool(rod.any())

    def evaluate(q: Vector, v: Vector, t: float) -> bool:
        affine()  # n, s
        both_and_difference()  # V1, V2, U
        work.take(gather_factors, None, factors, "clip")
        np.multiply(P, Q, P)
        np.subtract(P1, P2, crosses)  # s x n, n x omega_1, omega_U x n, omega_U x s, omega_2 x s
        work.take(gather_terms, None, terms, "clip")  # w, n x omega_1, omega_U x n; u, v2
        difference()  # A1 - A2
        np.add(rates, turning, e_sdot)
        stretch = per_length * (e * e).sum(axis=0) if any_rod else 0.0
        np.multiply(left, right_terms, right_terms)
        ones.dot(by_row, right)
        if any_rod:
            np.subtract(right, stretch, right)
        W.dot(J, WJ)
        return True

    return evaluate


def _both_and_difference(
    motions: Array, bodies1: list[int], bodies2: list[int], out: Array
) -> Callable[[], None]:
    """A function that sets `out` (6, 3 m) to motions of bodies 1, of bodies 2, and 2 - 1."""
    m = len(bodies1)
    if 3 * m * motions.shape[0] <= DENSE:
        one, two = _selection(motions, bodies1), _selection(motions, bodies2)
        choice, transposed = np.hstack([one, two, two - one]), motions.T

        def dense() -> None:
            transposed.dot(choice, out)

        return dense
    position = 6 * np.array([*bodies1, *bodies2, *bodies2]) + _SIX
    flat, of1, difference = motions.reshape(-1), out[:, :m], out[:, 2 * m :]

    def gather() -> None:
        flat.take(position, None, out, "clip")
        np.subtract(difference, of1, difference)

    return gather


def _difference(
    motions: Array, bodies1: list[int], bodies2: list[int], out: Array
) -> Callable[[], None]:
    """A function that sets `out` (6, m) to motions of bodies 1 minus those of bodies 2."""
    if len(bodies1) * motions.shape[0] <= DENSE:
        choice = _selection(motions, bodies1) - _selection(motions, bodies2)
        transposed = motions.T

        def dense() -> None:
            transposed.dot(choice, out)

        return dense
    position = np.array([6 * np.array(bodies) + _SIX for bodies in (bodies1, bodies2)])
    flat, both = motions.reshape(-1), np.zeros(position.shape)
    of1, of2 = both

    def gather() -> None:
        flat.take(position, None, both, "clip")
        np.subtract(of1, of2, out)

    return gather


def _selection(motions: Array, bodies: list[int]) -> Array:
    """(njoints, m): column i selects body i of the list."""
    chosen = np.zeros((motions.shape[0], len(bodies)))
    chosen[bodies, np.arange(len(bodies))] = 1.0
    return chosen


_SIX = np.arange(6)[:, None]


def _add_vector(row: Array, frame: Frame, local: list[float]) -> None:
    """Add to an affine row: a vector (or with last entry 1, a point) given in a frame."""
    column = 4 * frame.joint
    row[column : column + 3] += frame.placement.rotation @ local[:3]
    row[column : column + 3] += frame.placement.translation * local[3]
    row[column + 3] += local[3]


def _affine(coefficients: Array, X: Array, out: Array) -> Callable[[], None]:
    """A function that sets ``out = coefficients X``; few entries of a row differ from zero."""
    if coefficients.size <= DENSE:

        def dense() -> None:
            coefficients.dot(X, out)

        return dense

    terms = int((coefficients != 0.0).sum(axis=1).max())
    columns = np.argsort(coefficients == 0.0, axis=1, kind="stable")[:, :terms].T
    position = np.ascontiguousarray(3 * columns[:, :, None] + np.arange(3))
    values = np.take_along_axis(coefficients.T, columns, axis=0)
    factors = np.ascontiguousarray(np.broadcast_to(values[:, :, None], position.shape))
    flat, gathered, ones = X.reshape(-1), np.zeros(position.shape), np.ones(terms)
    by_term, flat_out = gathered.reshape(terms, -1), out.reshape(-1)

    def apply() -> None:
        flat.take(position, None, gathered, "clip")
        np.multiply(gathered, factors, gathered)
        ones.dot(by_term, flat_out)

    return apply


def _workspace(
    shapes: dict[str, tuple[int, ...]],
) -> tuple[Vector, dict[str, Array], dict[str, int]]:
    """One flat array, its named parts as views, and where they start."""
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    starts = np.cumsum([0, *sizes])
    work = np.zeros(starts[-1])
    part, start = {}, {}
    for name, at, size in zip(shapes, starts, sizes, strict=False):
        part[name], start[name] = work[at : at + size].reshape(shapes[name]), int(at)
    return work, part, start


# ------------------------------------------------------------------------ orientation rows


def _turning(
    table: WrenchRows, i: Indices, motion: LiveMotion, WJ: Array, right: Vector
) -> Evaluate:
    """Rows ``2 x_i`` of the quaternion (x, w) of R1^T R2: w = (0, R1 E_i^T), E = w I - skew(x),

        -drift = m . (alpha_1 - alpha_2 + omega_1 x omega_2) + |omega_U|^2 x_i / 2

    with m = R1 E_i^T the moment of the row."""
    pairs, pair = np.unique(table.pair[i], return_inverse=True)
    count, m, component = pairs.size, i.size, table.component[i]
    axes = np.zeros((2, count, 3, 4 * motion.bodies))
    for j, which in enumerate(pairs):
        for k in range(3):
            _add_vector(axes[0, j, k], table.frames1[which], [*np.eye(3)[k], 0.0])
            _add_vector(axes[1, j, k], table.frames2[which], [*np.eye(3)[k], 0.0])
    all_axes = np.ones(18 * count + 1)  # axes of frames 1, of frames 2, and a one
    R = all_axes[:-1].reshape(2, count, 3, 3)  # R[0, j, k] is axis k of frame 1
    affine, R1 = _affine(axes.reshape(6 * count, -1), motion.placements, R.reshape(-1, 3)), R[0]
    one, other, along = np.indices((3, 3, 3)).reshape(3, 27)  # axis of 1, axis of 2, component
    first_axis, the_one = 9 * np.arange(count)[:, None], np.full((count, 1), 18 * count)
    gather_axes = np.ascontiguousarray([
        np.hstack([first_axis + 3 * one + along, the_one]),
        np.hstack([first_axis + 9 * count + 3 * other + along, the_one]),
    ])  # fmt: skip
    products, axes_2 = both_axes = np.zeros((2, count, 28))
    unscaled, quaternion = np.zeros((count, 4)), np.zeros((count, 4))
    four_w2, twice_w, factor = unscaled[:, 3], np.zeros(count), np.zeros(count)
    factor_of_all = factor[:, None]
    E, moments, W = np.zeros((count, 3, 3)), np.zeros((count, 3, 3)), np.zeros((m, 3))
    nine_of_E = E.reshape(count, 9)
    gather_moments = 9 * pair[:, None] + 3 * component[:, None] + np.arange(3)
    gather_x = 4 * pair + component

    joints = np.array([[table.frames1[j].joint, table.frames2[j].joint] for j in pairs]).T
    angular = np.ascontiguousarray(6 * joints[:, :, None] + 3 + np.arange(3))
    gather_factors = np.ascontiguousarray([
        [angular[0][:, YZX], angular[0][:, ZXY]], [angular[1][:, ZXY], angular[1][:, YZX]],
    ])  # fmt: skip
    gather_c = 3 * pair[:, None] + np.arange(3)
    omega, alpha = np.zeros((2, count, 3)), np.zeros((2, count, 3))
    (omega1, omega2), (alpha1, alpha2) = omega, alpha
    factors = np.zeros((2, 2, count, 3))
    (P, Q), (P1, P2) = factors, factors[0]
    U, c, c_of_rows = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((m, 3))
    ones, halves, half_square = np.ones(3), np.full(3, 0.5), np.zeros(count)
    velocities, accelerations = motion.velocities.reshape(-1), motion.accelerations.reshape(-1)
    J, most = motion.J[3:], 0.0625 * (count + 1.0 / HALF_TURN**2)

    def evaluate(q: Vector, v: Vector, t: float) -> bool:
        affine()  # R1, R2
        all_axes.take(gather_axes, None, both_axes, "clip")
        np.multiply(products, axes_2, products)
        products.dot(_TIMES_FOUR_W, unscaled)  # 4 w (x, w) of R1^T R2
        np.sqrt(four_w2, twice_w)
        np.divide(0.5, twice_w, factor)  # 1 / 4 w
        if not factor.dot(factor) < most:
            return False
        np.multiply(unscaled, factor_of_all, quaternion)
        quaternion.dot(_HALF_ROTATION, nine_of_E)
        np.matmul(E, R1, moments)
        moments.take(gather_moments, None, W, "clip")
        velocities.take(angular, None, omega, "clip")
        accelerations.take(angular, None, alpha, "clip")
        velocities.take(gather_factors, None, factors, "clip")
        np.multiply(P, Q, P)
        np.subtract(P1, P2, c)  # omega_1 x omega_2
        np.add(c, alpha1, c)
        np.subtract(c, alpha2, c)
        c.take(gather_c, None, c_of_rows, "clip")
        np.multiply(W, c_of_rows, c_of_rows)
        c_of_rows.dot(ones, right)
        np.subtract(omega2, omega1, U)
        np.multiply(U, U, U)
        U.dot(halves, half_square)  # |omega_U|^2 / 2
        np.add(right, half_square.take(pair) * quaternion.take(gather_x), right)
        W.dot(J, WJ)
        return True

    return evaluate


_TIMES_FOUR_W = np.zeros((3, 3, 4))
for _k, (_i, _j) in enumerate([(2, 1), (0, 2), (1, 0)]):  # R32 - R23, R13 - R31, R21 - R12
    _TIMES_FOUR_W[_i, _j, _k], _TIMES_FOUR_W[_j, _i, _k] = 1.0, -1.0
    _TIMES_FOUR_W[_k, _k, 3] = 1.0  # trace, and 1: 4 w^2
_TIMES_FOUR_W = np.vstack([np.repeat(_TIMES_FOUR_W.reshape(9, 4), 3, axis=0), [0.0, 0.0, 0.0, 1.0]])

_HALF_ROTATION = np.zeros((4, 9))  # (x, y, z, w) to [[w, z, -y], [-z, w, x], [y, -x, w]]
_HALF_ROTATION[3, [0, 4, 8]] = 1.0
_HALF_ROTATION[[2, 0, 1], [1, 5, 6]] = 1.0
_HALF_ROTATION[[1, 2, 0], [2, 3, 7]] = -1.0


# ------------------------------------------------------------------------------- all others


def _others(
    mech: Mechanism,
    data: pin.Data,
    blocks: list[tuple[BoundRows, Indices, Vector, slice]],
    WJ: Array,
    right: Vector,
) -> Evaluate:
    """Rows known only through the contract: callbacks, classes of the user's own."""

    def evaluate(q: Vector, v: Vector, t: float) -> bool:
        kin = kinematics(mech.model, data, q, v, t)
        for block, which, scale, at in blocks:
            rows = block.rows(kin)
            WJ[at] = scale[:, None] * rows.jacobian[which]
            right[at] = -scale * rows.drift[which]
        return True

    return evaluate
