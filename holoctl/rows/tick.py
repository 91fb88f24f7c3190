"""The rows once more, laid out for a control tick: G and -drift in some twenty calls.

The rows are those of constraints/wrench.py, which is the oracle of this module in the tests. Here
all rows are lines of one table, and the motion of the bodies is read where Pinocchio keeps it, in
world axes at the world origin: placements X, velocities V, bias accelerations A. A row between
bodies 1 and 2 is the wrench w = (n, s x n) on body 2 (direction rows: (0, s x n)), with

    n, s     affine in X: n = R_n a, rod: n = (p2 - p1) / L; s = p_s, direction: s = R_s b
    U        V2 - V1, with angular part omega_U
    e        U at s                                        (direction: omega_U x s)
    sdot     rate of s seen from the world: V_s at s       (direction: omega_s x s)

with the bodies n and s that constraints/kinds.py names (1 and 2, slot: 2 and 1), and then

    G = (w J) * S
    -drift = w . (A1 - A2) + (n x omega_n) . e + (omega_U x n) . sdot - |e|^2 / L (rods only)
    rate = w . U    error = n . d    d: p2 - p1 (direction: s; rod: (p2 - p1) / 2, less L / 2)

Error and rate judge the state, those of redundant rows too: see `StateLimits`. They come out of
the same product as -drift, so that they cost next to nothing. All cross products of a tick are
one product of two gathered tables. Derivation: docs/derivations.md, "Rows in a tick".
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.errors import InputError
from holoctl.constraints.contract import BoundRows
from holoctl.constraints.coupling import BoundCoupling
from holoctl.constraints.kinds import KINDS, Along, Composed, Orientation
from holoctl.constraints.wrench import YZX, ZXY, WrenchRows, is_plain
from holoctl.mechanism.mechanism import Mechanism, rows_that_open
from holoctl.rows.consistency import TOLERANCES, StateLimits, allowed_acceleration
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import kinematics
from holoctl.tree.live_motion import LiveMotion, live_motion

__all__ = ["FastRows", "fast_rows", "in_own_workspace", "why_not"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

DENSE = 1200
"""An affine map with up to this many entries is one dense product, a larger one a gather."""

HALF_TURN = 0.1
"""Orientation rows are not evaluated where cos(angle / 2) is smaller."""

LAYOUTS: dict[type, str] = {Along: "along", Orientation: "turning", Composed: "composed"}
"""How kinds of rows between bodies are laid out here."""

UNLIMITED = 1e6
"""Errors are counted over this where they are not limited."""


@dataclass(frozen=True, eq=False)
class FastRows:
    """Some rows, scaled, for one thread: ``G a = right`` after `evaluate(q, v, t)`.

    Attributes
    ----------
    evaluate : function (q, v, t) -> bool
        Fills the two arrays below, which are the same at every call; False where it cannot, or
        where the state is past its limits, and then they hold nothing of use.
    entries : array
        The entries of the scaled G that were asked for, in the shape that was asked for.
    right : (r,) array
        -drift, scaled.
    kept_by : function (v, a) -> bool, or None
        Whether an acceleration keeps the redundant rows, as far as the state that was evaluated
        last allows; None where there are none to ask.
    """

    evaluate: Callable[[Vector, Vector, float], bool]
    entries: Array
    right: Vector
    kept_by: Callable[[Vector, Vector], bool] | None


class _Part(NamedTuple):
    """Rows of one kind: (m,) -drift and (2, m) rates and errors over their limits, scaled.

    `evaluate` fills them and the part's rows of WJ. It returns the sum of the squares of `off`,
    or what is not a number where it cannot evaluate.
    """

    evaluate: Callable[[Vector, Vector, float], float]
    right: Vector
    off: Array


def why_not(mech: Mechanism) -> str:
    """Why the rows of a mechanism cannot be laid out for a tick; empty where they can."""
    if mech.chart is not None:
        return "an explicit chart moves the state"
    if any(c.t_stab is not None for c in mech.constraints):
        return "a constraint is stabilised"
    if live_motion(mech.model, mech.model.createData()) is None:
        return "this build of Pinocchio keeps its results in another layout"
    return ""


def fast_rows(
    mech: Mechanism,
    motion: LiveMotion,
    rows: Indices,
    wanted: Indices,
    limits: StateLimits | None = None,
) -> FastRows:
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
    limits : StateLimits, optional
        How far all rows of the mechanism may be off; without, the state is not judged.
    """
    model, data, nv, r = mech.model, motion.data, mech.nv, rows.size
    judged = rows if limits is None else np.concatenate([rows, _redundant(mech, rows)])
    groups = sorted(_by_kind(mech, judged), key=lambda group: group[0] == "other")
    order = np.array([i for _, _, here, _ in groups for i in here], dtype=np.intp)
    WJ, S = np.zeros((judged.size, nv)), np.ones((judged.size, nv))
    parts: list[_Part] = []
    others: list[tuple[BoundRows, Indices, Vector]] = []
    stop = 0
    for kind, block, here, local in groups:
        at, stop = slice(stop, stop + len(here)), stop + len(here)
        scale = mech.row_scale[judged[here]]
        if kind == "other":
            others.append((block, local, scale))
        elif isinstance(block, BoundCoupling):
            parts.append(_coupling(block, scale, WJ[at], limits))
        elif isinstance(block, WrenchRows):
            S[at] = block.S[block.pair[local]]
            lay_out = {"along": _along, "turning": _turning, "composed": _composed}[kind]
            parts.append(lay_out(block, local, scale, motion, WJ[at], limits))
    if others:
        rest_of_WJ = WJ[judged.size - sum(len(local) for _, local, _ in others) :]
        parts.append(_others(mech, data, others, rest_of_WJ, limits))

    row_in_WJ = np.argsort(order)  # the rows stand in WJ kind by kind
    position = np.where(wanted < 0, 0, row_in_WJ[wanted // nv] * nv + wanted % nv)
    factor = np.where(wanted < 0, 0.0, S.reshape(-1)[position])
    entries, flat, rest = np.zeros(wanted.shape), WJ.reshape(-1), np.zeros(nv)
    in_order = len(parts) < 2 and np.array_equal(order, np.arange(r))
    result = parts[0].right if parts and in_order else np.zeros(r)
    rights, right_of_all, place = [p.right for p in parts], np.zeros(judged.size), row_in_WJ[:r]
    evaluators, judge = [p.evaluate for p in parts], limits is not None
    within, kept_by = _judges(parts, WJ, S, right_of_all, limits or StateLimits())

    def evaluate(q: Vector, v: Vector, t: float) -> bool:
        pin.computeForwardKinematicsDerivatives(model, data, q, v, rest)
        off = 0.0
        for part in evaluators:
            off += part(q, v, t)
        if not off < 1.0 and not (judge and off < np.inf and within(v)):
            return False
        flat.take(position, None, entries, "clip")
        np.multiply(entries, factor, entries)
        if not in_order:
            np.concatenate(rights, out=right_of_all)
            right_of_all.take(place, None, result, "clip")
        return True

    return FastRows(evaluate, entries, result, kept_by if judged.size > r else None)


def _redundant(mech: Mechanism, rows: Indices) -> Indices:
    """The other rows, but for those that are zero always, whatever the configuration."""
    return np.setdiff1d(np.flatnonzero(rows_that_open(mech)), rows).astype(np.intp)


def _by_kind(mech: Mechanism, rows: Indices) -> Iterator[tuple[str, BoundRows, list[int], Indices]]:
    """Kind, block of the mechanism, positions in `rows`, and rows of the block."""
    for block, its_rows in mech._blocks:
        number = {int(row): i for i, row in enumerate(its_rows)}
        found: dict[str, list[int]] = {}
        for position, row in enumerate(rows.tolist()):
            if row in number:
                found.setdefault(_kind(block, number[row]), []).append(position)
        for kind, here in found.items():
            yield kind, block, here, np.array([number[int(rows[i])] for i in here], dtype=np.intp)


def _kind(block: BoundRows, row: int) -> str:
    """What a row is laid out as. What is not known by its very type may be anything."""
    if isinstance(block, WrenchRows) and is_plain(block):
        return LAYOUTS[type(KINDS[str(block.kinds[row])])]
    return "coupling" if type(block) is BoundCoupling else "other"


def _judges(
    parts: list[_Part], WJ: Array, S: Array, right: Vector, limits: StateLimits
) -> tuple[Callable[[Vector], bool], Callable[[Vector, Vector], bool]]:
    """Two functions of the state that was evaluated last, in the measures of the certificate.

    `within(v)`: whether it is within its limits. `kept_by(v, a)`: whether an acceleration keeps
    all rows, as far as the state allows.
    """
    G, residual = np.zeros(WJ.shape), np.zeros(len(right))
    per_velocity, per_closure = _per_limit(limits)

    def measured(v: Vector) -> tuple[float, float]:
        rates, errors = np.abs(np.hstack([p.off for p in parts])).max(axis=1, initial=0.0)
        speed = 1.0 + np.abs(WJ * S).dot(np.abs(v)).max(initial=0.0)
        return float(errors) / per_closure, float(rates) / (per_velocity * float(speed))

    def within(v: Vector) -> bool:
        return limits.allow(*measured(v))

    def kept_by(v: Vector, a: Vector) -> bool:
        np.multiply(WJ, S, G)
        G.dot(a, residual)
        np.subtract(residual, right, residual)
        if residual.dot(residual) <= TOLERANCES["acceleration"] ** 2:
            return True
        size = 1.0 + np.abs(G).dot(np.abs(a)).max() + np.abs(right).max()
        return bool(np.abs(residual).max() <= allowed_acceleration(*measured(v)) * size)

    return within, kept_by


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


# ------------------------------------------------------------------------ rows along a vector


def _along(
    table: WrenchRows,
    i: Indices,
    scale: Vector,
    motion: LiveMotion,
    WJ: Array,
    limits: StateLimits | None,
) -> _Part:
    """Rows along a vector n: see the head of this file."""
    m, line = i.size, table.lines(i)
    direction, rod, length = ~line.point, line.rod, line.length
    sides = [table.frames1[c] for c in line.pair], [table.frames2[c] for c in line.pair]
    frames1, frames2 = sides
    per_length = np.where(rod, scale / length, 0.0)
    n_s_d = np.zeros((3, m, 4 * motion.bodies))
    for k in range(m):
        n_k, s_k, d_k = n_s_d[:, k]
        if rod[k]:
            _add_vector(n_k, frames2[k], [0, 0, 0, per_length[k]])
            _add_vector(n_k, frames1[k], [0, 0, 0, -per_length[k]])
        else:
            _add_vector(n_k, sides[line.normal[k]][k], [*(scale[k] * line.a[k]), 0])
        _add_vector(s_k, sides[line.arm[k]][k], [0, 0, 0, 1] if line.point[k] else [*line.b[k], 0])
        half = 0.5 if rod[k] else 1.0
        if direction[k]:
            d_k[:] = s_k
        else:
            _add_vector(d_k, frames2[k], [0, 0, 0, half])
            _add_vector(d_k, frames1[k], [0, 0, 0, -half])
    if limits is None:
        n_s_d = n_s_d[:2]

    # One flat workspace, from which any mixture of vectors is gathered in one call. Vectors
    # are gathered component by component: (3, m) arrays of positions in the workspace.
    shapes = {"n_s_d": (len(n_s_d) * m, 3), "V": (6, 3 * m), "crosses": (5, 3, m), "zero": (1,)}
    work, part, start = _workspace(shapes)
    row, component = np.arange(m), np.arange(3)[:, None]
    n, s, d = (start["n_s_d"] + 3 * (m * k + row) + component for k in range(3))
    v, omega = (start["V"] + 3 * m * (at + component) + row for at in (0, 3))  # of bodies 1
    v_s, omega_n, omega_s = v + m * line.arm, omega + m * line.normal, omega + m * line.arm
    u, omega_u = v + 2 * m, omega + 2 * m
    s_x_n, n_x_omega_n, omega_u_x_n = (
        start["crosses"] + m * (3 * k + component) + row for k in range(3)
    )
    zero = np.full((3, m), start["zero"])
    first, second = np.stack([s, n, omega_u, omega_u, omega_s]), np.stack([n, omega_n, n, s, s])
    gather_factors = np.ascontiguousarray(
        [[first[:, YZX], first[:, ZXY]], [second[:, ZXY], second[:, YZX]]]
    )
    force = np.where(direction, zero, n)
    e_sdot = [np.where(direction, zero, u), np.where(direction, zero, v_s)]  # less what turns
    left, right_side = [force, s_x_n, n_x_omega_n, omega_u_x_n], list[Indices]()
    if limits is not None:
        left, right_side = [*left, force, s_x_n, n], [u, omega_u, d]
    gather_terms = np.stack([*e_sdot, *right_side, *left])

    affine = _affine(n_s_d.reshape(len(n_s_d) * m, -1), motion.placements, part["n_s_d"])
    bodies1, bodies2 = [f.joint for f in frames1], [f.joint for f in frames2]
    V, crosses, factors = part["V"], part["crosses"], np.zeros((2, 2, 5, 3, m))
    # what is multiplied, term by term: A, e and sdot, U and d; with the wrenches on the left
    count = len(left)
    terms, products = np.zeros((2 + len(gather_terms), 3, m)), np.zeros((3 * count + 1, m))
    on_right, on_left, gathered = terms[:count], terms[count:], terms[2:]
    A, rates = terms[:2].reshape(6, m), terms[2:4]
    term_by_term, e = products[:-1].reshape(count, 3, m), terms[2]
    products[-1] = np.where(rod, -0.5 * scale * length, 0.0)  # less L / 2
    summed = _sums(count, limits)
    sums = np.zeros((len(summed), m))
    right, off = sums[0], sums[1:]
    flat_off = off.reshape(-1)
    both_and_difference = _both_and_difference(motion.velocities, bodies1, bodies2, V)
    difference = _difference(motion.accelerations, bodies1, bodies2, A)
    (P, Q), (P1, P2) = factors, factors[0]
    turning = crosses[3:]
    W, J = on_left[:2].reshape(6, m).T, motion.J
    any_rod = bool(rod.any())

    def evaluate(q: Vector, v: Vector, t: float) -> float:
        affine()  # n, s, d
        both_and_difference()  # V1, V2, U
        work.take(gather_factors, None, factors, "clip")
        np.multiply(P, Q, P)
        np.subtract(P1, P2, crosses)  # s x n, n x omega_n, omega_U x n, omega_U x s, omega_s x s
        work.take(gather_terms, None, gathered, "clip")
        difference()  # A1 - A2
        np.add(rates, turning, rates)  # e and sdot
        np.multiply(on_left, on_right, term_by_term)
        summed.dot(products, sums)
        if any_rod:
            np.subtract(right, per_length * (e * e).sum(axis=0), right)
        W.dot(J, WJ)
        return float(flat_off.dot(flat_off))

    return _Part(evaluate, right, off)


def _sums(count: int, limits: StateLimits | None) -> Array:
    """What is added up of `count` products of vectors and a constant: -drift, rate and error."""
    chosen = np.zeros((1 if limits is None else 3, 3 * count + 1))
    chosen[0, :12] = 1.0
    if limits is not None:
        chosen[1, 12:18], chosen[2, 18:] = _per_limit(limits)
    return chosen


def _per_limit(limits: StateLimits | None) -> tuple[float, float]:
    """Factors of rates and errors: one over their limits."""
    if limits is None:
        return 0.0, 0.0
    return 1.0 / (limits.velocity or UNLIMITED), 1.0 / (limits.closure or UNLIMITED)


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
    table: WrenchRows,
    i: Indices,
    scale: Vector,
    motion: LiveMotion,
    WJ: Array,
    limits: StateLimits | None,
) -> _Part:
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
    right, off, U_of_rows = np.zeros(m), np.zeros((2, m)), np.zeros((m, 3))
    rate, error = off
    per_velocity, per_closure = _per_limit(limits)
    to_rate, to_error, flat_off = np.full(3, per_velocity), 2.0 * per_closure, off.reshape(-1)

    def evaluate(q: Vector, v: Vector, t: float) -> float:
        affine()  # R1, R2
        all_axes.take(gather_axes, None, both_axes, "clip")
        np.multiply(products, axes_2, products)
        products.dot(_TIMES_FOUR_W, unscaled)  # 4 w (x, w) of R1^T R2
        np.sqrt(four_w2, twice_w)
        np.divide(0.5, twice_w, factor)  # 1 / 4 w
        if not factor.dot(factor) < most:
            return np.nan
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
        x = quaternion.take(gather_x)
        if limits is not None:
            U.take(gather_c, None, U_of_rows, "clip")
            np.multiply(W, U_of_rows, U_of_rows)
            U_of_rows.dot(to_rate, rate)
            np.multiply(x, to_error, error)
        np.multiply(U, U, U)
        U.dot(halves, half_square)  # |omega_U|^2 / 2
        np.add(right, half_square.take(pair) * x, right)
        W.dot(J, WJ)
        return float(flat_off.dot(flat_off))

    return _Part(evaluate, right, off)


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


def _composed(
    table: WrenchRows,
    i: Indices,
    scale: Vector,
    motion: LiveMotion,
    WJ: Array,
    limits: StateLimits | None,
) -> _Part:
    """Functions of rows along vectors, by the chain rule: see constraints/kinds.py."""
    of_row = {row: (row, kind, at) for row, kind, at in table.composed}
    wanted = [of_row[row] for row in i.tolist()]  # in the order of i, which need not be theirs
    parts, right, off = table.parts, np.zeros(i.size), np.zeros((2, i.size))
    count, flat_off = len(parts.labels), off.reshape(-1)
    WJ_x = np.zeros((count, WJ.shape[1]))
    unscaled = _along(parts, np.arange(count), np.ones(count), motion, WJ_x, StateLimits(1.0, 1.0))
    per_velocity, per_closure = _per_limit(limits)
    xdots, xs = unscaled.off
    atan2, floor = math.atan2, math.floor

    def evaluate(q: Vector, v: Vector, t: float) -> float:
        if not unscaled.evaluate(q, v, t) < np.inf:
            return np.nan
        for k, (row, kind, at) in enumerate(wanted):
            x, xdot, size = xs[at].tolist(), xdots[at].tolist(), float(table.size[row])
            if not kind.doubt(x) < 1.0:
                return np.nan
            f_x = scale[k] * np.array(kind.gradient(x, size))
            WJ[k] = f_x.dot(WJ_x[at])
            right[k] = f_x.dot(unscaled.right[at]) - scale[k] * kind.curvature(x, xdot, size)
            off[0, k] = per_velocity * f_x.dot(xdots[at])
            off[1, k] = per_closure * scale[k] * kind.value(x, size, atan2, floor)
        return float(flat_off.dot(flat_off))

    return _Part(evaluate, right, off)


def _coupling(bound: BoundCoupling, scale: Vector, WJ: Array, limits: StateLimits | None) -> _Part:
    """A linear row on coordinates: constant, so that only the state is judged."""
    WJ[:] = scale[:, None] * bound.jacobian
    off, factor = np.zeros((2, 1)), float(scale[0])
    per_velocity, per_closure = _per_limit(limits)
    of_v, of_q = per_velocity * WJ[0], per_closure * factor * bound.of_q
    offset = per_closure * factor * bound.offset

    def evaluate(q: Vector, v: Vector, t: float) -> float:
        rate, error = of_v.dot(v), of_q.dot(q) - offset
        off[0, 0], off[1, 0] = rate, error
        return float(rate * rate + error * error)

    return _Part(evaluate if limits is not None else lambda q, v, t: 0.0, np.zeros(1), off)


def _others(
    mech: Mechanism,
    data: pin.Data,
    blocks: list[tuple[BoundRows, Indices, Vector]],
    WJ: Array,
    limits: StateLimits | None,
) -> _Part:
    """Rows known only through the contract: callbacks, classes and kinds of the user's own."""
    right, off = np.zeros(len(WJ)), np.zeros((2, len(WJ)))
    per_velocity, per_closure = _per_limit(limits)
    flat_off, placed, stop = off.reshape(-1), list[tuple[Any, ...]](), 0
    for block, which, scale in blocks:
        at, stop = slice(stop, stop + which.size), stop + which.size
        placed.append((block, which, scale, at))

    def evaluate(q: Vector, v: Vector, t: float) -> float:
        kin = kinematics(mech.model, data, q, v, t)
        for block, which, scale, at in placed:
            rows = block.rows(kin)
            WJ[at] = scale[:, None] * rows.jacobian[which]
            right[at] = -scale * rows.drift[which]
            off[0, at] = per_velocity * scale * rows.rate[which]
            off[1, at] = per_closure * scale * rows.error[which]
        return float(flat_off.dot(flat_off))

    return _Part(evaluate, right, off)
