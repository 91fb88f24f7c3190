"""Rows along a vector in a tick: see the docstring of rows/tick/fast_rows.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Indices, Vector
from holoctl.constraints.wrench_rows import YZX, ZXY, Lines, WrenchRows
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.affine_maps import (
    affine_map,
    both_and_difference,
    difference,
    workspace,
)
from holoctl.rows.tick.prepared_rows import PreparedRows, per_limit
from holoctl.tree.frames import Frame
from holoctl.tree.live_motion import LiveMotion, add_vector

__all__ = ["along"]


def along(
    table: WrenchRows,
    i: Indices,
    scale: Vector,
    motion: LiveMotion,
    WJ: Array,
    limits: StateLimits | None,
    unchecked: Vector | None = None,
) -> PreparedRows:
    """Rows along a vector n: see the docstring of rows/tick/fast_rows.py. The last ones, with the
    scales `unchecked`, are not compared with limits."""
    m, line, judged = i.size, table.lines(i), limits is not None
    frames1, frames2 = ([frames[c] for c in line.pair] for frames in (table.frames1, table.frames2))
    coefficients = _vectors(line, scale, frames1, frames2, motion.bodies)[: 3 if judged else 2]
    # One flat workspace, from which any mixture of vectors is gathered in one call.
    shapes = {
        "n_s_d": (len(coefficients) * m, 3), "V": (6, 3 * m), "crosses": (5, 3, m), "zero": (1,),
    }  # fmt: skip
    work, part, start = workspace(shapes)
    at = _tables(line, start, judged)
    affine = affine_map(coefficients.reshape(len(coefficients) * m, -1), motion.placements,
                        part["n_s_d"])  # fmt: skip
    bodies1, bodies2 = [f.joint for f in frames1], [f.joint for f in frames2]
    V, crosses, factors = part["V"], part["crosses"], np.zeros((2, 2, 5, 3, m))
    # the factors, term by term: A, e and sdot, U and d; with the wrenches on the left
    count, gather_factors, gather_terms = at.products, at.factors, at.terms
    terms, products = np.zeros((2 + len(gather_terms), 3, m)), np.zeros((3 * count + 1, m))
    on_right, on_left, gathered = terms[:count], terms[count:], terms[2:]
    A, rates = terms[:2].reshape(6, m), terms[2:4]
    term_by_term, e = products[:-1].reshape(count, 3, m), terms[2]
    rod, length = line.rod, line.length
    products[-1] = np.where(rod, -0.5 * scale * length, 0.0)  # less L / 2
    per_length, any_rod = np.where(rod, scale / length, 0.0), bool(rod.any())
    summed = _sums(count, limits)
    sums = np.zeros((len(summed), m))
    right, off = sums[0], sums[1:]
    flat_off = off.reshape(-1)
    of_both_and_difference = both_and_difference(motion.velocities, bodies1, bodies2, V)
    of_difference = difference(motion.accelerations, bodies1, bodies2, A)
    (P, Q), (P1, P2) = factors, factors[0]
    turning = crosses[3:]
    W, J = on_left[:2].reshape(6, m).T, motion.J
    of_unchecked = off[:, m - (0 if unchecked is None else unchecked.size) :]
    rates_and_errors, per_unit = np.zeros(of_unchecked.shape), None
    if unchecked is not None:
        per_unit = 1.0 / (np.array(per_limit(limits))[:, None] * unchecked)

    def evaluate(q: Vector, v: Vector, t: float) -> float:
        affine()  # n, s, d
        of_both_and_difference()  # V1, V2, U
        work.take(gather_factors, None, factors, "clip")
        np.multiply(P, Q, P)
        np.subtract(P1, P2, crosses)  # s x n, n x omega_n, omega_U x n, omega_U x s, omega_s x s
        work.take(gather_terms, None, gathered, "clip")
        of_difference()  # A1 - A2
        np.add(rates, turning, rates)  # e and sdot
        np.multiply(on_left, on_right, term_by_term)
        summed.dot(products, sums)
        if any_rod:
            np.subtract(right, per_length * (e * e).sum(axis=0), right)
        W.dot(J, WJ)
        if per_unit is not None:
            np.multiply(of_unchecked, per_unit, rates_and_errors)
            of_unchecked[:] = 0.0
        return float(flat_off.dot(flat_off))

    if unchecked is not None:
        return PreparedRows(evaluate, right, off, None, rates_and_errors)
    if not judged:
        return PreparedRows(evaluate, right, off, wrenches=lambda: W)
    _, per_closure = per_limit(limits)
    constants = per_closure * products[-1] if any_rod else None
    own = _placing(at, work, part["n_s_d"], off[1], per_closure, constants)
    return PreparedRows(evaluate, right, off, lambda: own(affine, WJ, J), wrenches=lambda: W)


def _placing(
    at: _VectorTables, work: Vector, n_s_d: Array, errors: Vector, per_closure: float,
    constants: Vector | None,
) -> Callable[[Callable[[], None], Array, Array], None]:  # fmt: skip
    """A function (affine, WJ, J) that fills only the errors and WJ."""
    m = errors.size
    factors = np.ascontiguousarray(at.factors[:, :, 0])
    both, wrenches = np.zeros(factors.shape), np.zeros((2, 3, m))
    (P, Q), (P1, P2) = both, both[0]
    force, moment = wrenches
    W, n, d = wrenches.reshape(6, m).T, n_s_d[:m], n_s_d[2 * m :]
    nd, per_entry, of_force = np.zeros((m, 3)), np.full(3, per_closure), at.force

    def place(affine: Callable[[], None], WJ: Array, J: Array) -> None:
        affine()  # n, s, d
        work.take(factors, None, both, "clip")
        np.multiply(P, Q, P)
        np.subtract(P1, P2, moment)  # s x n
        work.take(of_force, None, force, "clip")
        W.dot(J, WJ)
        np.multiply(n, d, nd)
        nd.dot(per_entry, errors)
        if constants is not None:
            np.add(errors, constants, errors)

    return place


def _vectors(
    line: Lines, scale: Vector, frames1: Sequence[Frame], frames2: Sequence[Frame], bodies: int
) -> Array:
    """(3, m, 4 bodies): n, s and d of each row, as affine functions of the placements."""
    sides, m = (frames1, frames2), len(frames1)
    found = np.zeros((3, m, 4 * bodies))
    for k in range(m):
        n, s, d = found[:, k]
        if line.rod[k]:  # n = d / L; d from the middle, for (d . d - L^2) / 2L
            add_vector(n, frames2[k], [0, 0, 0, scale[k] / line.length[k]])
            add_vector(n, frames1[k], [0, 0, 0, -scale[k] / line.length[k]])
        else:
            add_vector(n, sides[line.normal[k]][k], [*(scale[k] * line.a[k]), 0])
        add_vector(s, sides[line.arm[k]][k], [0, 0, 0, 1] if line.point[k] else [*line.b[k], 0])
        half = 0.5 if line.rod[k] else 1.0
        if line.point[k]:
            add_vector(d, frames2[k], [0, 0, 0, half])
            add_vector(d, frames1[k], [0, 0, 0, -half])
        else:
            d[:] = s
    return found


class _VectorTables(NamedTuple):
    """The indices of each vector in the workspace, component by component: (3, m) arrays."""

    factors: Indices  # (2, 2, 5, 3, m): of the five cross products, y z - z y
    terms: Indices  # (.., 3, m): e, sdot, [U, omega_U, d], then their factors
    force: Indices  # (3, m): the force of the wrench
    products: int


def _tables(line: Lines, start: dict[str, int], judged: bool) -> _VectorTables:
    m = line.pair.size
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
    factors = [[first[:, YZX], first[:, ZXY]], [second[:, ZXY], second[:, YZX]]]
    direction = ~line.point
    force = np.where(direction, zero, n)
    # e and sdot without their rotational parts
    e_sdot = [np.where(direction, zero, u), np.where(direction, zero, v_s)]
    left, right_side = [force, s_x_n, n_x_omega_n, omega_u_x_n], list[Indices]()
    if judged:  # rate = w . U, error = n . d
        left, right_side = [*left, force, s_x_n, n], [u, omega_u, d]
    terms = np.stack([*e_sdot, *right_side, *left])
    return _VectorTables(np.ascontiguousarray(factors), terms, force, len(left))


def _sums(count: int, limits: StateLimits | None) -> Array:
    """The matrix that sums `count` products of vectors and a constant to -drift, rate and error."""
    chosen = np.zeros((1 if limits is None else 3, 3 * count + 1))
    chosen[0, :12] = 1.0
    if limits is not None:
        chosen[1, 12:18], chosen[2, 18:] = per_limit(limits)
    return chosen
