"""Affine maps and selections of Pinocchio's results, each one product or one gather."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from holoctl.base.checks import Array, Vector

__all__ = ["affine_map", "both_and_difference", "difference", "workspace"]


DENSE = 1200
"""An affine map with at most this number of entries is one dense product, a larger one a gather."""


def both_and_difference(
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


def difference(
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


def affine_map(coefficients: Array, X: Array, out: Array) -> Callable[[], None]:
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


def workspace(
    shapes: dict[str, tuple[int, ...]],
) -> tuple[Vector, dict[str, Array], dict[str, int]]:
    """One flat array, views of its named parts, and the index at which each starts."""
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    starts = np.cumsum([0, *sizes])
    work = np.zeros(starts[-1])
    part, start = {}, {}
    for name, at, size in zip(shapes, starts, sizes, strict=False):
        part[name], start[name] = work[at : at + size].reshape(shapes[name]), int(at)
    return work, part, start
