"""Rows along a vector in a tick: see the head of rows/tick/fast_rows.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.constraints.wrench import YZX, ZXY, WrenchRows
from holoctl.rows.state_limits import StateLimits
from holoctl.rows.tick.affine_maps import (
    add_vector,
    affine_map,
    both_and_difference,
    difference,
    workspace,
)
from holoctl.rows.tick.part import Part, per_limit
from holoctl.tree.live_motion import LiveMotion

__all__ = ["along"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


def along(
    table: WrenchRows,
    i: Indices,
    scale: Vector,
    motion: LiveMotion,
    WJ: Array,
    limits: StateLimits | None,
) -> Part:
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
            add_vector(n_k, frames2[k], [0, 0, 0, per_length[k]])
            add_vector(n_k, frames1[k], [0, 0, 0, -per_length[k]])
        else:
            add_vector(n_k, sides[line.normal[k]][k], [*(scale[k] * line.a[k]), 0])
        add_vector(s_k, sides[line.arm[k]][k], [0, 0, 0, 1] if line.point[k] else [*line.b[k], 0])
        half = 0.5 if rod[k] else 1.0
        if direction[k]:
            d_k[:] = s_k
        else:
            add_vector(d_k, frames2[k], [0, 0, 0, half])
            add_vector(d_k, frames1[k], [0, 0, 0, -half])
    if limits is None:
        n_s_d = n_s_d[:2]

    # One flat workspace, from which any mixture of vectors is gathered in one call. Vectors
    # are gathered component by component: (3, m) arrays of positions in the workspace.
    shapes = {"n_s_d": (len(n_s_d) * m, 3), "V": (6, 3 * m), "crosses": (5, 3, m), "zero": (1,)}
    work, part, start = workspace(shapes)
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

    affine = affine_map(n_s_d.reshape(len(n_s_d) * m, -1), motion.placements, part["n_s_d"])
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
    of_both_and_difference = both_and_difference(motion.velocities, bodies1, bodies2, V)
    of_difference = difference(motion.accelerations, bodies1, bodies2, A)
    (P, Q), (P1, P2) = factors, factors[0]
    turning = crosses[3:]
    W, J = on_left[:2].reshape(6, m).T, motion.J
    any_rod = bool(rod.any())

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
        return float(flat_off.dot(flat_off))

    return Part(evaluate, right, off)


def _sums(count: int, limits: StateLimits | None) -> Array:
    """What is added up of `count` products of vectors and a constant: -drift, rate and error."""
    chosen = np.zeros((1 if limits is None else 3, 3 * count + 1))
    chosen[0, :12] = 1.0
    if limits is not None:
        chosen[1, 12:18], chosen[2, 18:] = per_limit(limits)
    return chosen
